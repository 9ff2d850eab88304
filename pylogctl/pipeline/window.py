"""`pylogctl pipeline window`: counts per key in windows of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.options import CONNECTION, OUTPUT, accepts
from pylogctl.cli.units import parse_duration_ms
from pylogctl.pipeline.event_options import EVENTS, NO_EVENTS, EventChoice
from pylogctl.pipeline.input import Corrupt, DataLoss, Paths, Topics, Until, check_cluster
from pylogctl.pipeline.spark import DEFAULT_SPARK, SPARK, SparkChoice
from pylogctl.pipeline.sql import READS, From
from pylogctl.pipeline.target_options import (
    NO_STREAM,
    NO_TARGET,
    STREAM,
    TARGET,
    StreamChoice,
    TargetChoice,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from broker.spark.extraction import EventFields

NAME = "pipeline.window/1"

Size = Annotated[
    str | None,
    typer.Option("--size", metavar="DUR", help="Length of a window.", rich_help_panel="Windows"),
]
Slide = Annotated[
    str | None,
    typer.Option(
        "--slide",
        metavar="DUR",
        help="Sliding windows: how far each starts behind the one before. Default: --size.",
        rich_help_panel="Windows",
    ),
]
Session = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="DUR",
        help="Instead of --size: sessions, which end when a key is quiet for so long.",
        rich_help_panel="Windows",
    ),
]


class Windows:
    """Which windows the options ask for.

    Raises:
        UsageError: none, two kinds, or a duration is malformed.
    """

    def __init__(self, size: str | None, slide: str | None, session: str | None) -> None:
        if (size is None) == (session is None):
            raise UsageError("give either --size or --session")
        if slide is not None and size is None:
            raise UsageError("--slide needs --size")
        self._size_ms = None if size is None else parse_duration_ms(size)
        self._slide_ms = None if slide is None else parse_duration_ms(slide)
        self._gap_ms = 0 if session is None else parse_duration_ms(session)

    def counts(self, events: DataFrame, watermark_ms: int | None = None) -> DataFrame:
        """Return the counts of events in these windows."""
        from broker.spark.windows import count_sessions, count_windows

        if self._size_ms is None:
            return count_sessions(events, self._gap_ms, watermark_ms=watermark_ms)
        return count_windows(
            events, self._size_ms, slide_ms=self._slide_ms, watermark_ms=watermark_ms
        )


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=READS,
    examples=(
        "pylogctl pipeline window web --size 1m --key-field .status --time-field .time",
        "pylogctl pipeline window sshd --size 1d --sort -messages --time-format '%b %d %T' "
        "--pattern '^(?P<time>\\w+ +\\d+ [\\d:]+) .*Failed password .* from (?P<key>\\S+)'",
        "pylogctl pipeline window web --session 30m --key-field .user --time-field .time --stream "
        "--watermark 10m --checkpoint /var/lib/sessions --to-topic sessions",
    ),
)
def window(
    env: Environment,
    *,
    topics: Topics = None,
    size: Size = None,
    slide: Slide = None,
    session: Session = None,
    events: Annotated[EventChoice, EVENTS] = NO_EVENTS,
    paths: Paths = None,
    start: From = None,
    until: Until = None,
    allow_data_loss: DataLoss = False,
    corrupt: Corrupt = "fail",
    stream: Annotated[StreamChoice, STREAM] = NO_STREAM,
    target: Annotated[TargetChoice, TARGET] = NO_TARGET,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Count messages per key in windows of their own time.

    Messages without a time are left out. A stream gives a window once, when the watermark has
    passed its end; messages that come later do not count. Stopped and started again, it goes on
    from its checkpoint: files have each window once, a topic or standard output at least once.
    """
    windows = Windows(size, slide, session)
    check_events(events)
    check_run(env, stream, target, has_paths=bool(paths), has_end=until is not None)
    from pylogctl.pipeline.reading import plan_reading, reporting
    from pylogctl.pipeline.spark import check_spark

    check_spark(env)
    fields = events.fields()
    planned = plan_reading(
        env,
        topics or [],
        paths or [],
        start=start,
        until=until,
        allow_data_loss=allow_data_loss,
        skips_corrupt=corrupt == "skip",
    )
    with reporting(env, [planned], spark) as (reading,):
        if stream.stream:
            _count_stream(env, reading.of_stream(), fields, windows, stream, target, spark)
        else:
            _count_batch(env, reading.of_batch(), fields, windows, target, spark)


def _count_stream(
    env: Environment,
    options: dict[str, str],
    fields: EventFields,
    windows: Windows,
    stream: StreamChoice,
    target: TargetChoice,
    spark: SparkChoice,
) -> None:
    from broker.spark.extraction import events as events_of
    from broker.spark.frames import stream_messages
    from pylogctl.pipeline.spark import open_spark
    from pylogctl.pipeline.stream import run_stream

    watermark_ms = parse_duration_ms(stream.watermark or "")
    with open_spark(env, spark) as opened:
        messages = stream_messages(opened, options, columns=["value"])
        counts = windows.counts(events_of(messages, fields), watermark_ms)
        run_stream(env, counts, target, stream, NAME)


def _count_batch(
    env: Environment,
    options: dict[str, str],
    fields: EventFields,
    windows: Windows,
    target: TargetChoice,
    spark: SparkChoice,
) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as fn

    from broker.spark.extraction import events as events_of
    from broker.spark.frames import read_messages
    from pylogctl.pipeline.results import write_result
    from pylogctl.pipeline.spark import open_spark

    with open_spark(env, spark) as opened:
        messages = read_messages(opened, options, columns=["value"])
        seen = Observation()
        timeless = fn.count_if(fn.col("time").isNull()).alias("timeless")
        observed = events_of(messages, fields).observe(seen, timeless)
        write_result(env, windows.counts(observed), target, NAME, at_once=True)
        if count := seen.get["timeless"]:
            env.warn(f"{count} messages have no time: not counted")


def check_events(events: EventChoice) -> None:
    """Check that the time of events is said.

    Raises:
        UsageError: it is not.
    """
    if events.time_field is None and events.pattern is None:
        raise UsageError("give --time-field, or --pattern with a group named time")


def check_run(
    env: Environment,
    stream: StreamChoice,
    target: TargetChoice,
    *,
    has_paths: bool,
    has_end: bool,
    is_bounded: bool = True,
) -> None:
    """Check how a job runs and where its results go, before anything is started.

    Args:
        env: says how standard output is written.
        stream: whether it is a stream.
        target: where results go.
        has_paths: whether segment files are read.
        has_end: whether the user said where to end.
        is_bounded: whether a stream needs a watermark.

    Raises:
        UsageError: options contradict each other.
        CliError: a file would be replaced.
    """
    stream.check(is_bounded=is_bounded)
    target.check()
    check_cluster(env, has_paths=has_paths, to_topic=target.to_topic is not None)
    if not stream.stream:
        target.check_new()
        return
    if has_paths or has_end:
        raise UsageError("--stream reads topics as they grow; it cannot have --path or --until")
    if env.output == "json" and target.into is None and target.to_topic is None:
        raise UsageError("a stream is no single document; use --output jsonl")
    if stream.watermark is not None:
        parse_duration_ms(stream.watermark)
