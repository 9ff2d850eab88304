"""The work of `pipeline load`, `sql`, `window`, `join` and `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyspark.sql import Observation
from pyspark.sql import functions as fn

from broker.errors import InvalidMessageError, QueryError
from broker.log.segment import expand_paths
from broker.spark.events import count_sessions, count_windows, join_table, join_topics
from broker.spark.extraction import EventFields, events
from broker.spark.load import LoadRequest, PreparedLoad, look_at_load, prepare_load
from broker.spark.load_output import Manifest
from broker.spark.load_plan import LoadPlan
from broker.spark.queries import (
    infer_schema,
    make_view,
    parse_schema,
    query,
    quoted,
    with_json,
    with_text,
)
from broker.spark.source import read_messages, stream_messages
from broker.spark.verify import verify_on_spark
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.progress import progress
from pylogctl.cli.render import render
from pylogctl.log.document import report_verification
from pylogctl.pipeline.document import LOAD, PLAN, load_line, load_plan_records, load_records
from pylogctl.pipeline.options import (
    NO_STREAM,
    ReadChoice,
    SparkChoice,
    StreamChoice,
    TargetChoice,
    file_format,
)
from pylogctl.pipeline.reading import Reading, corrupt_error, plan_reading, reporting
from pylogctl.pipeline.results import run_stream, write_result
from pylogctl.pipeline.spark import in_parts, open_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from broker.log.verify import Engine

_SQL_CONF = {"spark.sql.session.timeZone": "UTC"}


class Job(NamedTuple):
    """The common part of `sql`, `window` and `join`: input, target of the result, and Spark."""

    env: Environment
    topics: Sequence[str]
    read: ReadChoice
    target: TargetChoice
    spark: SparkChoice
    stream: StreamChoice = NO_STREAM


def show_plan(env: Environment, request: LoadRequest) -> None:
    """Render the plan of a load.

    Raises:
        BrokerError: as for `broker.spark.load.run_load`.
    """
    plan = look_at_load(request)
    render(env, PLAN, load_plan_records(plan))
    _report_plan(env, plan)


def run_load(env: Environment, request: LoadRequest, spark: SparkChoice) -> None:
    """Run a load, and render its manifest.

    Raises:
        CliError: a message is damaged, and `--corrupt` is `fail`.
        BrokerError: as for `broker.spark.load.run_load`.
    """
    with prepare_load(request, clock=env.clock) as prepared:
        plan = prepared.plan
        _report_plan(env, plan)
        if plan.is_empty:
            render(env, LOAD, [])
            return
        started_s = env.clock.monotonic_s()
        manifest = _run(env, prepared, spark)
        elapsed_s = env.clock.monotonic_s() - started_s
    render(env, LOAD, load_records(manifest))
    env.flush()
    for partition, gap in manifest.left_out:
        env.warn(f"{partition}: {gap.text} ({gap.cause}, {gap.size_bytes} bytes from {gap.start})")
    env.note(load_line(manifest, elapsed_s))


def _run(env: Environment, prepared: PreparedLoad, spark: SparkChoice) -> Manifest:
    total = prepared.plan.size_bytes
    try:
        with open_spark(env, spark) as session, progress(env, "load", total) as meter:
            return prepared.run(session, in_parts(meter, total))
    except InvalidMessageError as error:
        raise corrupt_error(error) from error


def _report_plan(env: Environment, plan: LoadPlan) -> None:
    if plan.retiring:
        first, last = plan.retiring[0], plan.retiring[-1]
        which = f"load {first}" if first == last else f"loads {first} to {last}"
        env.note(f"{which}: taken back, and loaded again")
    for partition in plan.absent:
        env.warn(f"{partition} was loaded before, and is not there now: left as it is")


def run_sql(job: Job, text: str, *, json: bool, schema: str | None) -> None:
    """Query topics as views.

    Args:
        job: each of its topics becomes a view.
        text: the statement.
        json: infer the fields of JSON payloads.
        schema: fields of JSON payloads, in SQL's notation.

    Raises:
        QueryError: the query or schema is invalid, or payloads are not JSON.
        BrokerError: a topic cannot be read, or the result cannot be sent.
    """
    env = job.env
    planned = plan_reading(env, job.topics, job.read)
    with (
        reporting(env, [planned], job.spark) as (reading,),
        open_spark(env, job.spark, _SQL_CONF) as session,
    ):
        fixed = None if schema is None else parse_schema(schema)
        for topic in reading.topics:
            messages = read_messages(session, reading.of_batch(topic))
            try:
                found = infer_schema(messages) if json else fixed
            except QueryError as error:
                raise QueryError(f"topic '{topic}': {error}") from error
            table = with_text(messages) if found is None else with_json(messages, found)
            make_view(table, topic)
            env.trace(1, f"view {quoted(topic)}: {', '.join(table.columns)}")
        write_result(env, query(session, text), job.target, "pipeline.sql/1")


def run_window(
    job: Job,
    fields: EventFields,
    *,
    size_ms: int | None,
    slide_ms: int | None,
    gap_ms: int | None,
    watermark_ms: int | None,
) -> None:
    """Count events per key, in windows of `size_ms` or in sessions that end after `gap_ms`.

    Raises:
        BrokerError: a topic cannot be read, a length is invalid, or the result cannot be sent.
    """

    def counts_of(found: DataFrame) -> DataFrame:
        if gap_ms is not None:
            return count_sessions(found, gap_ms, watermark_ms=watermark_ms)
        assert size_ms is not None
        return count_windows(found, size_ms, slide_ms=slide_ms, watermark_ms=watermark_ms)

    env, name = job.env, "pipeline.window/1"
    planned = plan_reading(env, job.topics, job.read)
    with reporting(env, [planned], job.spark) as (reading,), open_spark(env, job.spark) as session:
        found = _events(session, job, reading, fields)
        if job.stream.stream:
            run_stream(env, counts_of(found), job.target, job.stream, name)
            return
        observation = Observation()
        timeless = fn.count_if(fn.col("time").isNull()).alias("timeless")
        counts = counts_of(found.observe(observation, timeless))
        write_result(env, counts, job.target, name, at_once=True)
        if count := observation.get["timeless"]:
            env.warn(f"{count} messages have no time: not counted")


def run_join(
    job: Job,
    fields: Sequence[EventFields],
    table: Path | None,
    table_column: str,
    *,
    within_ms: int | None,
    how: Literal["inner", "left"],
    watermark_ms: int | None,
) -> None:
    """Join events of two topics, or of a topic with a table.

    Args:
        job: its topics are one or two.
        fields: where the key and time of each topic's events are.
        table: file to join with instead of a second topic.
        table_column: column of the table that is compared with the key.
        within_ms: how far apart in time events of two topics may be.
        how: `left` keeps events of the first topic that have no partner.
        watermark_ms: how late an event of a stream may be.

    Raises:
        BrokerError: a topic cannot be read, the join is invalid, or the result cannot be sent.
    """
    env, name = job.env, "pipeline.join/1"
    readings = [plan_reading(env, [topic], job.read) for topic in job.topics]
    with reporting(env, readings, job.spark) as reported, open_spark(env, job.spark) as session:
        left = _events(session, job, reported[0], fields[0])
        if table is None:
            right = _events(session, job, reported[1], fields[1])
            joined = join_topics(
                left, right, within_ms=within_ms, watermark_ms=watermark_ms, how=how
            )
        else:
            form = file_format(table)
            options = {"header": "true"} if form == "csv" else {}
            rows = session.read.format(form).options(**options).load(str(table))
            joined = join_table(left, rows, table_column, how=how)
        if job.stream.stream:
            run_stream(env, joined, job.target, job.stream, name)
        else:
            write_result(env, joined, job.target, name)


def _events(session: SparkSession, job: Job, reading: Reading, fields: EventFields) -> DataFrame:
    if job.stream.stream:
        messages = stream_messages(session, reading.of_stream(), columns=["value"])
    else:
        messages = read_messages(session, reading.of_batch(), columns=["value"])
    return events(messages, fields)


def verify_files(
    env: Environment,
    files: Sequence[Path],
    spark: SparkChoice,
    deep: bool,
    max_errors: int,
    engine: Engine,
    piece_bytes: int,
) -> ExitStatus:
    """Validate every byte of segment files, and render the report of `log verify`."""
    paths = expand_paths(files)
    total = sum(path.stat().st_size for path in paths if path.is_file())
    with open_spark(env, spark) as session, progress(env, "verify", total) as meter:
        started_s = env.clock.monotonic_s()
        summary = verify_on_spark(
            session,
            paths,
            deep=deep,
            max_problems=max_errors,
            engine=engine,
            part_bytes=piece_bytes,
            on_progress=in_parts(meter, total),
        )
        elapsed_s = env.clock.monotonic_s() - started_s
    return report_verification(env, summary, elapsed_s)
