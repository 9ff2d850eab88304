"""`pylogctl pipeline join`: events of two topics, or of a topic with a table in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.options import CONNECTION, OUTPUT, accepts
from pylogctl.cli.units import parse_duration_ms
from pylogctl.pipeline.event_options import EVENTS, NO_EVENTS, EventChoice
from pylogctl.pipeline.input import Corrupt, DataLoss, Paths, Until
from pylogctl.pipeline.spark import DEFAULT_SPARK, SPARK, SparkChoice
from pylogctl.pipeline.sql import READS, From
from pylogctl.pipeline.target_options import (
    NO_STREAM,
    NO_TARGET,
    STREAM,
    TARGET,
    StreamChoice,
    TargetChoice,
    file_format,
)
from pylogctl.pipeline.window import check_events, check_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from broker.spark.extraction import EventFields
    from pylogctl.pipeline.reading import Reading

NAME = "pipeline.join/1"

Left = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to read.")]
Right = Annotated[
    str | None,
    typer.Argument(metavar="[OTHER]", help="Topic to join with.", show_default=False),
]
Table = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="Instead of another topic: a table to join with, .parquet, .json or .csv.",
        rich_help_panel="Join",
    ),
]
TableColumn = Annotated[
    str | None,
    typer.Option(
        "--table-column",
        metavar="COLUMN",
        help="Column of the table that has the key.",
        rich_help_panel="Join",
    ),
]
OtherKey = Annotated[
    str | None,
    typer.Option(
        "--other-key-field",
        metavar="PATH",
        help="Field with the key in the other topic. Default: --key-field.",
        rich_help_panel="Events",
    ),
]
OtherTime = Annotated[
    str | None,
    typer.Option(
        "--other-time-field",
        metavar="PATH",
        help="Field with the time in the other topic. Default: --time-field.",
        rich_help_panel="Events",
    ),
]
OtherPattern = Annotated[
    str | None,
    typer.Option(
        "--other-pattern",
        metavar="RE",
        help="Regular expression for the other topic. Default: --pattern.",
        rich_help_panel="Events",
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within",
        metavar="DUR",
        help="How far apart in time two events may be that belong together.",
        rich_help_panel="Join",
    ),
]
How = Annotated[
    Literal["inner", "left"],
    typer.Option(
        "--how",
        help="Leave out messages that nothing belongs to (inner), or keep them (left).",
        rich_help_panel="Join",
    ),
]


class Join(NamedTuple):
    """What is joined, and how."""

    left: EventFields
    right: EventFields
    table: Path | None
    table_column: str
    within_ms: int | None
    watermark_ms: int | None
    how: Literal["inner", "left"]


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=READS,
    examples=(
        "pylogctl pipeline join orders payments --key-field .order --time-field .ts --within 1h",
        "pylogctl pipeline join web --table users.csv --table-column id --key-field .user "
        "--how left --output jsonl",
        "pylogctl pipeline join orders payments --key-field .order --time-field .ts --within 1h "
        "--stream --watermark 10m --checkpoint /var/lib/paid --into paid.parquet",
    ),
)
def join(
    env: Environment,
    *,
    topic: Left,
    other: Right = None,
    table: Table = None,
    table_column: TableColumn = None,
    events: Annotated[EventChoice, EVENTS] = NO_EVENTS,
    other_key_field: OtherKey = None,
    other_time_field: OtherTime = None,
    other_pattern: OtherPattern = None,
    within: Within = None,
    how: How = "inner",
    paths: Paths = None,
    start: From = None,
    until: Until = None,
    allow_data_loss: DataLoss = False,
    corrupt: Corrupt = "fail",
    stream: Annotated[StreamChoice, STREAM] = NO_STREAM,
    target: Annotated[TargetChoice, TARGET] = NO_TARGET,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Join messages of a topic with those of another one, or with a table.

    Keys come out of payloads and are compared as text. Two topics that are joined as streams need
    --watermark and --within, as a stream would have to keep all messages for ever without.
    """
    _check(topic, other, table, table_column, events)
    others = EventChoice(
        other_key_field or (None if other_pattern else events.key_field),
        other_time_field or (None if other_pattern else events.time_field),
        other_pattern or (None if other_key_field else events.pattern),
    )
    _check_times(stream, other, within, events, others)
    check_run(
        env,
        stream,
        target,
        has_paths=bool(paths),
        has_end=until is not None,
        is_bounded=other is not None,
    )
    from pylogctl.pipeline.reading import plan_reading, reporting
    from pylogctl.pipeline.spark import check_spark

    check_spark(env)
    left = events.fields()
    made = Join(
        left,
        replace(
            left,
            key_field=others.key_field,
            time_field=others.time_field,
            pattern=others.pattern,
        ),
        table,
        table_column or "",
        None if within is None else parse_duration_ms(within),
        None if stream.watermark is None else parse_duration_ms(stream.watermark),
        how,
    )
    readings = [
        plan_reading(
            env,
            [name],
            paths or [],
            start=start,
            until=until,
            allow_data_loss=allow_data_loss,
            skips_corrupt=corrupt == "skip",
        )
        for name in (topic, other)
        if name is not None
    ]
    with reporting(env, readings, spark) as reported:
        _run(env, made, reported, stream, target, spark)


def _check(
    topic: str, other: str | None, table: Path | None, column: str | None, events: EventChoice
) -> None:
    if (other is None) == (table is None):
        raise UsageError("name another topic to join with, or give --table FILE")
    if (table is None) != (column is None):
        raise UsageError("--table and --table-column go together")
    if events.key_field is None and events.pattern is None:
        raise UsageError("give --key-field, or --pattern with a group named key")
    if table is not None:
        file_format(table)
        if not table.exists():
            raise FileNotFoundError(2, "", str(table))
    if other == topic:
        raise UsageError(
            f"'{topic}' is named twice", hints=["pipeline sql joins a topic with itself"]
        )


def _check_times(
    stream: StreamChoice,
    other: str | None,
    within: str | None,
    events: EventChoice,
    others: EventChoice,
) -> None:
    if other is None:
        if within is not None:
            raise UsageError("--within is for two topics; a table has no time")
        return
    if stream.stream and within is None:
        raise UsageError(
            "--stream with two topics needs --within DUR, how far apart events may be",
            hints=["without it Spark would keep every message for ever"],
        )
    if within is not None:
        check_events(events)
        check_events(others)


def _run(
    env: Environment,
    made: Join,
    readings: list[Reading],
    stream: StreamChoice,
    target: TargetChoice,
    spark: SparkChoice,
) -> None:
    from pylogctl.pipeline.results import write_result
    from pylogctl.pipeline.spark import open_spark
    from pylogctl.pipeline.stream import run_stream

    with open_spark(env, spark) as session:
        joined = _joined(session, made, readings, is_stream=stream.stream)
        if stream.stream:
            run_stream(env, joined, target, stream, NAME)
        else:
            write_result(env, joined, target, NAME)


def _joined(
    session: SparkSession, made: Join, readings: list[Reading], *, is_stream: bool
) -> DataFrame:
    from broker.spark.extraction import events as events_of
    from broker.spark.frames import read_messages, stream_messages
    from broker.spark.joins import join_table, join_topics

    def side(reading: Reading, fields: EventFields) -> DataFrame:
        if is_stream:
            messages = stream_messages(session, reading.of_stream(), columns=["value"])
        else:
            messages = read_messages(session, reading.of_batch(), columns=["value"])
        return events_of(messages, fields)

    left = side(readings[0], made.left)
    if made.table is None:
        right = side(readings[1], made.right)
        return join_topics(
            left, right, within_ms=made.within_ms, watermark_ms=made.watermark_ms, how=made.how
        )
    form = file_format(made.table)
    options = {"header": "true"} if form == "csv" else {}
    table = session.read.format(form).options(**options).load(str(made.table))
    return join_table(left, table, made.table_column, how=made.how)
