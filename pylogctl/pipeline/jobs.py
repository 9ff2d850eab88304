"""Runs `pipeline sql`, `window`, `join` and `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from broker.errors import QueryError
from broker.log.offline.segments import total_bytes
from broker.spark import events, extraction, queries
from broker.spark.schema import COLUMNS, ENVELOPE, RECORD_COLUMNS
from broker.spark.source import read_messages, stream_messages
from broker.spark.verify import verify_on_spark
from pylogctl.cli.declarations import Choice
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.progress import progress
from pylogctl.log.command import segment_files
from pylogctl.log.document import report_verification
from pylogctl.pipeline.options import EventChoice, Job, JoinChoice, SparkChoice, WindowChoice
from pylogctl.pipeline.reading import PlannedReading, StreamOffsets, plan_reading, reporting
from pylogctl.pipeline.results import write_result
from pylogctl.pipeline.spark import in_parts, open_spark, parse_conf
from pylogctl.pipeline.stream import START, Identity, check_checkpoint, run_stream
from pylogctl.pipeline.table_file import check_file, read_file

_EMPTY_RELATIONS = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_CONF = {"spark.sql.session.timeZone": "UTC"}


@contextmanager
def _opened(
    job: Job,
    *topics: Sequence[str],
    check: Callable[[Job, list[PlannedReading]], None] = lambda *_: None,
) -> Iterator[tuple[SparkSession, list[PlannedReading]]]:
    """Plan a read for each list of topics, `check` the plans, and open Spark for the block."""
    on_absent = job.env.warn if job.stream.stream else None
    planned = [
        plan_reading(job.env, some, job.read, job.loss, on_absent=on_absent) for some in topics
    ]
    check(job, planned)
    with (
        reporting(job.env, planned, job.spark) as readings,
        open_spark(job.env, job.spark, _CONF, job.target.target()) as session,
    ):
        yield session, readings


def run_sql(job: Job, text: str, *, json: bool, schema: str | None) -> None:
    """Query topics, each of which becomes a view.

    `json` infers the fields of JSON payloads, `schema` has them in SQL's notation.
    """
    env = job.env
    with _opened(job, job.topics, check=_check_view_names) as (session, (reading,)):
        queries.check_syntax(session, text)  # before messages are read to infer fields
        # Spark drops the observation from the plan of a result that turns out to be empty
        session.conf.set("spark.sql.adaptive.optimizer.excludedRules", _EMPTY_RELATIONS)
        fixed = None if schema is None else queries.parse_schema(schema)
        schemas: dict[str, StructType | None] = dict.fromkeys(reading.topics, fixed)
        may_misfit = {} if fixed is None else dict.fromkeys(reading.topics, fixed)
        for topic in reading.topics if json else ():
            values = read_messages(session, reading.of_batch(topic), columns=["value"])
            inferred = _inferred(values, topic)
            schemas[topic] = inferred.schema
            if not inferred.fits_all:
                may_misfit[topic] = inferred.schema
            for field in inferred.rounded:
                env.warn(
                    f"topic '{topic}': the field '{field}' has fractions and integers beyond 2^53, "
                    "which are rounded: give --schema, with DECIMAL(38, 9) for instance"
                )
        observations: dict[str, list[Observation]] = {topic: [] for topic in may_misfit}

        def parsed(messages: DataFrame, topic: str, fields: StructType) -> DataFrame:
            if topic not in observations:
                return queries.with_json(messages, fields)
            observations[topic].append(Observation())
            return queries.with_json(messages, fields, observations[topic][-1])

        def make_views(columns: Sequence[str]) -> None:
            for topic, fields in schemas.items():
                table = read_messages(session, reading.of_batch(topic), columns=columns)
                if "value" in columns:
                    table = (
                        queries.with_text(table) if fields is None else parsed(table, topic, fields)
                    )
                queries.make_view(table, topic)
                env.trace(1, f"view {queries.quoted(topic)}: {', '.join(table.columns)}")

        columns = _columns_for(text, reading)
        make_views(columns)
        result = _narrowed(session, text, queries.query(session, text), columns, make_views)
        write_result(env, result, job.target, "pipeline.sql/1")
        env.flush()
        for topic, made in observations.items():
            used = [one for one in made if queries.is_observed(result, one)]
            if not used:
                continue  # the query does not read the topic
            count = queries.observed_misfits(result, used[0], is_written=not job.target.is_stdout)
            if count is None:
                values = read_messages(session, reading.of_batch(topic), columns=["value"])
                count = queries.count_misfits(values, may_misfit[topic])
            if count:
                env.warn(
                    f"topic '{topic}': {count} messages do not fit the schema: they are not JSON "
                    "objects, or have values of other types, which are null in the result"
                )


def _check_view_names(job: Job, planned: Sequence[PlannedReading]) -> None:
    """Refuse topics that would have the same view: Spark ignores the case of names."""
    if parse_conf(job.spark.spark_conf or ()).get(queries.CASE_SENSITIVE, "").lower() == "true":
        return
    by_view: dict[str, str] = {}
    for topic in planned[0].topics:
        other = by_view.setdefault(topic.lower(), topic)
        if other != topic:
            raise UsageError(
                f"topics '{other}' and '{topic}' cannot both be views: their names differ only in "
                "upper and lower case",
                f"name one of them with -t, or add --spark-conf {queries.CASE_SENSITIVE}=true",
            )


def _columns_for(text: str, reading: PlannedReading) -> Sequence[str]:
    """Return the columns of views; `SELECT *` has no `envelope`, as files of CSV cannot have it."""
    if reading.plan.has_records:
        return RECORD_COLUMNS
    return (*COLUMNS, ENVELOPE) if ENVELOPE in text.lower() else COLUMNS


def _narrowed(
    session: SparkSession,
    text: str,
    whole: DataFrame,
    columns: Sequence[str],
    make_views: Callable[[Sequence[str]], None],
) -> DataFrame:
    """Return the result of a query on views that have only the columns it needs.

    `whole` is its result on views with all columns; `make_views` replaces these views.
    """
    used = queries.used_columns(whole)
    if used is None or used == set(columns):
        return whole
    make_views([name for name in columns if name in used] or ["offset"])
    try:
        narrow = queries.query(session, text)
    except QueryError:
        return whole  # it names a column that it does not need
    return narrow if narrow.schema == whole.schema else whole


def _inferred(messages: DataFrame, topic: str) -> queries.InferredSchema:
    try:
        return queries.infer_schema(messages)
    except QueryError as error:
        raise QueryError(f"topic '{topic}': {error}") from error


def run_window(job: Job, choice: EventChoice, windows: WindowChoice) -> None:
    """Count events per key in windows or sessions; `choice` says where their parts are."""
    env, name = job.env, "pipeline.window/1"
    fields = replace(choice.fields(), value_field=windows.value_field)
    size_ms, slide_ms, gap_ms = windows.size, windows.slide, windows.session
    top, watermark_ms = windows.top, job.stream.watermark_ms()

    def counts_of(found: DataFrame) -> DataFrame:
        if gap_ms is not None:
            return events.count_sessions(found, gap_ms, watermark_ms=watermark_ms)
        assert size_ms is not None
        return events.count_windows(found, size_ms, slide_ms=slide_ms, watermark_ms=watermark_ms)

    def ranked(counts: DataFrame) -> DataFrame:
        return counts if top is None else events.largest(counts, top, windows.top_by)

    identity = _identity("window", job, choice, windows)

    def check_time(_: Job, planned: Sequence[PlannedReading]) -> None:
        if not planned[0].plan.has_records:  # these have a time of their own
            choice.check_time()

    with _opened(job, job.topics, check=check_time) as (session, (reading,)):

        def late_between(begun: StreamOffsets, ended: StreamOffsets, late_ms: int) -> int:
            between = reading.of_stream_batch(begun, ended)
            batch = extraction.events(read_messages(session, between, columns=["value"]), fields)
            return events.count_late(
                batch, late_ms, length_ms=size_ms, slide_ms=slide_ms, gap_ms=gap_ms
            )

        found = _events(session, job, reading, fields)
        if job.stream.stream:
            # all keys of a window are in the batch in which the watermark passes its end
            each = None if top is None else ranked
            run_stream(job, counts_of(found), name, identity, each, late_between)
            return
        # Spark drops the observation from the plan of a result that turns out to be empty
        session.conf.set("spark.sql.adaptive.optimizer.excludedRules", _EMPTY_RELATIONS)
        observation = Observation()
        timeless = fn.count_if(fn.col("time").isNull()).alias("timeless")
        value = fn.col("value") if "value" in found.columns else fn.lit(0)
        valueless = fn.count_if(fn.col("time").isNotNull() & value.isNull()).alias("valueless")
        counts = ranked(counts_of(found.observe(observation, timeless, valueless)))
        write_result(env, counts, job.target, name, order=("start", "key") if top is None else ())
        if count := observation.get["timeless"]:
            env.warn(f"{count} messages have no time: not counted")
        if count := observation.get["valueless"]:
            env.warn(f"{count} messages have no number: counted, but not in sums and averages")


def run_join(job: Job, choice: EventChoice, joining: JoinChoice) -> None:
    """Join events of two topics, or of a topic with a table.

    `choice` says where the key and time of each topic's events are.
    """
    name, table, how = "pipeline.join/1", joining.table, joining.how
    fields = [one.fields() for one in choice.of_both_topics()]
    if table is not None:
        check_file(table)
    identity = _identity("join", job, choice, joining)
    with _opened(job, *([one] for one in job.topics)) as (session, readings):
        left, *others = (
            _events(session, job, *side) for side in zip(readings, fields, strict=False)
        )
        if table is None:
            within_ms, watermark_ms = joining.within, job.stream.watermark_ms()
            joined = events.join_topics(
                left, *others, within_ms=within_ms, watermark_ms=watermark_ms, how=how
            )
        else:
            column = joining.table_column or ""
            joined = events.join_table(left, read_file(session, table), column, how=how)
        if job.stream.stream:
            run_stream(job, joined, name, identity)
        else:
            write_result(job.env, joined, job.target, name)


def _identity(command: str, job: Job, *choices: Choice) -> Identity:
    """Return the options that a stream's results depend on; refuse the checkpoint of others.

    They are texts, and lengths in ms.
    """
    values: dict[str, object] = {"command": command, "TOPIC": " ".join(job.topics)}
    for one in (*choices, job.target):
        values |= one.by_option
    table = job.target.target()
    values |= job.read.decoding.by_option
    values |= {START: job.read.start, "--into-table": table and table.identifier}
    identity = {
        name: str(value.absolute() if isinstance(value, Path) else value)
        for name, value in values.items()
        if value is not None
    }
    if job.stream.stream:
        check_checkpoint(job, identity)
    return identity


def _events(
    session: SparkSession, job: Job, reading: PlannedReading, fields: extraction.EventFields
) -> DataFrame:
    if job.stream.stream:
        messages = stream_messages(session, reading.of_stream(), columns=["value"])
    else:
        columns = ["key", "timestamp", "value"] if reading.plan.has_records else ["value"]
        messages = read_messages(session, reading.of_batch(), columns=columns)
    return extraction.events(messages, fields)


def verify_files(
    env: Environment, files: Sequence[Path], spark: SparkChoice, deep: bool
) -> ExitStatus:
    """Validate every byte of segment files, and render the report of `log verify`."""
    paths = segment_files(env, files)
    total = total_bytes(paths)
    with open_spark(env, spark) as session, progress(env, "verify", total) as meter:
        started_s = env.clock.monotonic_s()
        summary = verify_on_spark(session, paths, deep=deep, on_progress=in_parts(meter, total))
        elapsed_s = env.clock.monotonic_s() - started_s
    return report_verification(env, summary, elapsed_s)
