"""Options that several pipeline commands share: input, events, targets, streams, Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from broker.errors import ConfigError
from broker.units import format_duration, parse_duration_ms
from pylogctl.audit.options import Judging
from pylogctl.cli import options as shared
from pylogctl.cli.declarations import (
    Choice,
    Panel,
    argument,
    connection,
    inputs,
    limits,
    outputs,
    safety,
    selection,
)
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.spark.extraction import EventFields
    from broker.spark.loading.dates import DateRule
    from broker.spark.tables import TableTarget

READS = (
    ExitStatus.FAILED,
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.CORRUPT,
    ExitStatus.CONFIG,
)
_EVENTS, _STREAM, _WINDOWS, _JOIN = map(Panel, ("Events", "Stream", "Windows", "Join"))
_FILE_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}

Topics = Annotated[list[str] | None, argument("TOPIC...", "Topics to read.")]
Include = Annotated[
    list[str] | None,
    selection.option(
        "--include RE[,..]", "Topics whose whole name matches, in place of named ones (repeatable)."
    ),
]


class ReadChoice(Choice):
    """The input: segment files instead of brokers, and the first and last offsets."""

    paths: list[Path] | None = inputs.option(
        "--path PATH",
        "Read segment files, directories or patterns instead of brokers (repeatable).",
    )
    start: str | None = selection.option(
        "--from SPEC", "Offset to start at; see pylogctl help offsets. Default: start."
    )
    until: str | None = selection.option(
        "--until SPEC", "Offset to end at. Default: the present end."
    )
    decoding: shared.DecodeChoice = shared.NO_DECODE


NO_READ = ReadChoice()


class LoadChoice(ReadChoice):
    """The input of a load, which starts where the last one ended."""

    start: str | None = selection.option(
        "--from SPEC",
        "Offset to start at; earlier loads with later messages are retired, and their messages "
        "loaded again. Default: the end of the last load, or the start.",
    )


class LossChoice(Choice):
    """How to treat messages that are missing or damaged."""

    allow_data_loss: bool = safety.flag(
        "--allow-data-loss",
        "Continue if messages to be read are gone, and report the missing offsets.",
    )
    corrupt: Literal["fail", "skip"] = safety.option(
        "--corrupt", "How to treat messages that are damaged or cannot be decoded.", default="fail"
    )


NO_LOSS = LossChoice()


class EventChoice(Choice):
    """Where the key and the time of an event are in a payload."""

    key_field: str | None = _EVENTS.option(
        "--key-field PATH", "Field of JSON messages with their key, such as .user.id."
    )
    time_field: str | None = _EVENTS.option(
        "--time-field PATH", "Field of JSON messages with their time, such as .meta.ts."
    )
    pattern: str | None = _EVENTS.option(
        "--pattern RE", "Instead of fields: a regular expression with groups named key and time."
    )
    time_format: str = _EVENTS.option(
        "--time-format FORMAT",
        "Format of times, such as '%b %d %T'. Auto: what pylogctl-offsets(7) lists under TIMES.",
        default="auto",
    )
    time_zone: str = _EVENTS.option(
        "--time-zone ZONE", "Zone of times without one, such as Europe/Paris.", default="UTC"
    )
    year: int | None = _EVENTS.option(
        "--year YEAR", "Year of times without one. Default: the newest that is not in the future."
    )

    def of_both_topics(self) -> tuple[EventChoice, EventChoice]:
        """Return where key and time are in the two topics of a join: PATH[,PATH] in each."""
        (key, _, other_key), (time, _, other_time) = (
            (text or "").partition(",") for text in (self.key_field, self.time_field)
        )
        first = replace(self, key_field=key or None, time_field=time or None)
        return first, replace(
            first, key_field=other_key or first.key_field, time_field=other_time or first.time_field
        )

    def check_time(self) -> None:
        """Raise a `UsageError` unless the options name the time of events."""
        if self.time_field is None and self.pattern is None:
            raise UsageError("give --time-field, or --pattern with a group named time")

    def fields(self) -> EventFields:
        """Return the fields to extract from payloads."""
        from broker.spark.extraction import EventFields
        from broker.spark.loading.dates import TimeFormat

        form = TimeFormat(self.time_format, self.time_zone, self.year)
        return EventFields(self.key_field, self.time_field, self.pattern, form)


class TableChoice(Choice):
    """A table of Iceberg or Delta to write."""

    into_table: str | None = outputs.option(
        "--into-table iceberg:NAME|delta:NAME",
        "Append to a table of a catalog that --spark-conf names, such as iceberg:lake.logs.web, or "
        "to that of Delta at a path; made if it is missing. --spark-conf spark.jars.packages=... "
        "brings the package of the format.",
    )

    def target(self) -> TableTarget | None:
        """Return the table; None if there is none."""
        if self.into_table is None:
            return None
        from broker.spark.tables import TableTarget

        table_format, _, name = self.into_table.partition(":")
        if table_format not in ("iceberg", "delta") or not name:
            raise UsageError(
                f"--into-table '{self.into_table}' does not begin with the format of the table",
                "valid: iceberg:lake.logs.web, delta:lake.logs.web, delta:/data/web",
            )
        try:
            return TableTarget(name, "delta" if table_format == "delta" else "iceberg")
        except ConfigError as error:
            raise UsageError(str(error)) from error


class TargetChoice(TableChoice):
    """Target of the result: a file, a table, a topic, or by default standard output."""

    into: Path | None = outputs.option(
        "--into FILE", "Write the result to a file: .parquet, .json (an object a line) or .csv."
    )
    to_topic: str | None = outputs.option(
        "--to-topic TOPIC", "Write the result to a topic: its column `value`, or each row as JSON."
    )

    def check(self) -> None:
        """Validate the options before anything is started."""
        targets = {
            "--into": self.into,
            "--into-table": self.into_table,
            "--to-topic": self.to_topic,
        }
        given = [name for name, value in targets.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} cannot be used together")
        self.target()
        if self.into is not None:
            file_format(self.into)
        if self.to_topic is not None:
            from broker.topic import validate_topic_name

            validate_topic_name(self.to_topic)

    def check_new(self) -> None:
        """Raise a `CliError` if a file would be replaced."""
        if self.into is not None and self.into.exists():
            raise CliError(ExitStatus.CONFLICT, f"'{self.into}' exists; remove it first")

    @property
    def is_stdout(self) -> bool:
        """Return whether results go to standard output."""
        return self.into is None and self.into_table is None and self.to_topic is None


def file_format(path: Path) -> str:
    """Return the format of a file by the suffix of its name."""
    found = _FILE_FORMATS.get(path.suffix.lower())
    if found is None:
        raise UsageError(f"'{path}' has no known suffix", f"valid: {', '.join(_FILE_FORMATS)}")
    return found


NO_TARGET = TargetChoice()


class StreamChoice(Choice):
    """Options of a job that runs as a stream."""

    stream: bool = _STREAM.flag(
        "--stream", "Process new messages continuously, until stopped; --into is then a directory."
    )
    checkpoint: Path | None = _STREAM.option(
        "--checkpoint DIR", "Directory of the offsets and the state of a stream, for a restart."
    )
    exit_at_end: bool = _STREAM.flag("-e, --exit-at-end", "Stop at the end offsets of the start.")
    watermark: str | None = _STREAM.option(
        "--watermark DUR", "How far behind the newest event an event may be to be counted."
    )
    metrics_port: shared.MetricsPortOption = None

    def watermark_ms(self) -> int | None:
        """Return how late an event may be; None for no limit."""
        return None if self.watermark is None else parse_duration_ms(self.watermark)

    def check(self, *, is_bounded: bool) -> None:
        """Validate the options; a job that keeps events (`is_bounded`) needs a watermark."""
        if self.watermark is not None and not is_bounded:
            raise UsageError("--watermark cannot be used here: the query keeps no events")
        if self.stream and self.checkpoint is None:
            raise UsageError("--stream needs --checkpoint DIR, which stores its offsets and state")
        if self.stream and is_bounded and self.watermark is None:
            raise UsageError(
                "--stream needs --watermark DUR, how late events may be",
                "without it Spark would keep all events for ever",
            )
        if not self.stream and (self.checkpoint or self.exit_at_end or self.watermark):
            raise UsageError("--checkpoint, --exit-at-end and --watermark need --stream")
        if not self.stream and self.metrics_port is not None:
            raise UsageError("--metrics-port is for a stream: it needs --stream")
        self.watermark_ms()


NO_STREAM = StreamChoice()


class PayloadChoice(Choice):
    """How a load reads payloads, and the dates of messages in them."""

    avro_schemas: Path | None = inputs.option(
        "--avro-schemas DIR",
        "Payloads are a zero byte, a schema id in four bytes and an Avro record: write the "
        "records as JSON. DIR has the schemas, as ID.avsc.",
    )
    avro_reader: int | None = inputs.option(
        "--avro-reader ID",
        "Instead of JSON, write columns of the schema ID, to which all records are resolved. "
        "Needs --avro-schemas and --format parquet.",
        min=0,
    )
    envelope: bool = inputs.flag(
        "--envelope",
        "A column envelope, with timestamp, host, producer and sequence, which are left out else.",
    )
    date_field: str | None = inputs.option(
        "--date-field PATH",
        "Date of messages: this field of JSON or Avro payloads, such as .meta.ts. Default: the "
        "day of the load.",
    )
    date_regex: str | None = inputs.option(
        "--date-regex RE", "Date of messages: the first group of RE, searched for in payloads."
    )
    date_format: str | None = inputs.option(
        "--date-format STR",
        "Format of these dates, such as '%b %d %T'. Default: what pylogctl-offsets(7) lists.",
    )
    year: int | None = inputs.option(
        "--year YEAR",
        "Year of dates whose --date-format has none. Default: the newest that is not in the "
        "future.",
        min=1,
        max=9999,
    )

    def dates(self, today: str) -> DateRule:
        """Return how dates are found; `today` is that of messages without one."""
        from broker.spark.loading.dates import AUTO, DateRule, TimeFormat

        form = TimeFormat(self.date_format or AUTO, year=self.year)
        return DateRule(today, self.date_field, self.date_regex, form)


class WindowChoice(Choice):
    """The windows, and what is counted in them."""

    size: int | None = _WINDOWS.option("--size DUR", "Length of a window.")
    slide: int | None = _WINDOWS.option(
        "--slide DUR", "Distance between the starts of sliding windows. Default: --size."
    )
    session: int | None = _WINDOWS.option(
        "--session DUR",
        "Instead of --size: sessions, which end when their key has no message for this time.",
    )
    top: int | None = _WINDOWS.option(
        "--top N", "Of each window only the N keys with the most messages.", min=1
    )
    top_by: Literal["messages", "sum", "average", "maximum"] = _WINDOWS.option(
        "--top-by", "Column that --top is by; sums need a value.", default="messages"
    )
    value_field: str | None = _EVENTS.option(
        "--value-field PATH",
        "Field of JSON messages with a number, such as .price: its sum, average, minimum and "
        "maximum per key. With --pattern: a group named value.",
    )

    def check(self, stream: StreamChoice, target: TargetChoice) -> None:
        """Validate the options before anything is started."""
        if (self.size is None) == (self.session is None):
            raise UsageError("give either --size or --session")
        if self.slide is not None and self.size is None:
            raise UsageError("--slide needs --size")
        if self.top is not None and self.size is None:
            raise UsageError("--top needs --size: sessions of different keys differ in time")
        if self.top is not None and stream.stream and target.into_table is not None:
            raise UsageError(
                "--top cannot be used with --stream and --into-table: rank what the table has"
            )
        if self.top is None and self.top_by != "messages":
            raise UsageError("--top-by needs --top")
        for name in ("--size", "--slide", "--session"):
            if self.by_option[name] == 0:
                raise UsageError(f"{name} is at least 1ms")
        if self.size is not None and self.slide is not None and self.slide > self.size:
            slide, size = (format_duration(one / 1000) for one in (self.slide, self.size))
            raise UsageError(
                f"--slide {slide} is longer than --size {size}: messages would be left out"
            )


class JoinChoice(Choice):
    """What a topic is joined with, and how."""

    table: Path | None = _JOIN.option(
        "--table FILE", "Table to join with instead of a topic, .parquet, .json or .csv."
    )
    table_column: str | None = _JOIN.option(
        "--table-column COLUMN", "Column of the table with the key."
    )
    within: int | None = _JOIN.option(
        "--within DUR", "Maximum difference in time of two events to be joined."
    )
    how: Literal["inner", "left"] = _JOIN.option(
        "--how",
        "Drop messages of TOPIC without a match (inner), or keep them (left).",
        default="inner",
    )

    def check(self, topic: str, other: str | None, events: EventChoice, *, is_stream: bool) -> None:
        """Validate the options before anything is started."""
        if (other is None) == (self.table is None):
            raise UsageError("name another topic to join with, or give --table FILE")
        if (self.table is None) != (self.table_column is None):
            raise UsageError("--table and --table-column go together")
        if events.key_field is None and events.pattern is None:
            raise UsageError("give --key-field, or --pattern with a group named key")
        if self.table is not None:
            file_format(self.table)
            if not self.table.exists():
                raise FileNotFoundError(2, "", str(self.table))
        if other == topic:
            raise UsageError(f"'{topic}' is named twice", "pipeline sql joins a topic with itself")
        if other is None and self.within is not None:
            raise UsageError("--within is for two topics; a table has no time")
        if other is not None and self.within is None and is_stream:
            raise UsageError(
                "--stream with two topics needs --within DUR, the maximum difference in time",
                "without it Spark would keep every message for ever",
            )
        if self.within is not None:
            events.check_time()


MASTER_VARIABLE = "PYLOGCTL_MASTER"


class SparkChoice(Choice):
    """Where Spark runs, and its settings."""

    master: str | None = connection.option(
        "--master URL",
        "Where Spark runs: local[CORES,ATTEMPTS], or a cluster's address. Default: all cores of "
        "this machine.",
        envvar=MASTER_VARIABLE,
    )
    spark_conf: list[str] | None = connection.option(
        "--spark-conf KEY=VALUE",
        "A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or "
        "spark.ui.enabled=true, which says the address of its pages.",
    )

    @property
    def is_local(self) -> bool:
        """Return whether everything runs on this machine."""
        return self.master is None or self.master.startswith("local")

    def check(self, env: Environment) -> None:
        """Validate that Spark can be started: PySpark, PyArrow and Java are installed."""
        from broker.spark.runtime.requirements import check_requirements

        java = check_requirements()
        env.trace(1, f"java {java.version} at {java.executable} ({java.source})")


class EngineChoice(SparkChoice):
    """Where the tasks of loads and compactions run: on Spark, or on processes of this machine."""

    local: bool = connection.flag(
        "--local",
        "Without Spark: on processes of this machine, which start at once. PYLOGCTL_MASTER does "
        "not count then.",
    )

    def checked(self, env: Environment, *, needs_spark: bool = False) -> SparkChoice | None:
        """Return the Spark that tasks run on, None if they run on processes of this machine."""
        from broker.spark.runtime.requirements import check_package

        if not self.local:
            try:
                self.check(env)
            except ConfigError as error:
                without = "--local needs only PyArrow, no PySpark and no Java"
                hints = () if needs_spark else (without,)
                raise CliError(ExitStatus.CONFIG, str(error), *hints) from error
            return self
        if needs_spark:
            raise UsageError("--into-table is written by Spark; it cannot be used with --local")
        if self.spark_conf or self.master not in (None, env.environ.get(MASTER_VARIABLE)):
            raise UsageError(
                "--master and --spark-conf are for Spark; they cannot be used with --local"
            )
        check_package("pyarrow", "PyArrow")
        return None


class AuditChoice(Choice):
    """What is compared with the counts of producers, and where Spark runs."""

    load: Path | None = inputs.option("--load DIR", "Directory of loads to compare, too.")
    include: Include = None
    time_field: str | None = selection.option(
        "--time-field PATH",
        "Field of JSON messages with their time, or envelope, as given to produce --time-field. "
        "Default: compare each topic as a whole.",
    )
    comparison: Judging
    spark: SparkChoice


class LatencyChoice(Choice):
    """The stages that messages are followed to, for how long, and what is too slow."""

    topics: list[str] = argument("TOPIC...", "Topics to measure.", default=...)
    group: str | None = selection.option(
        "-g, --group G", "Follow messages until this consumer group has committed them."
    )
    load: Path | None = inputs.option("--load DIR", "Follow messages into this directory of loads.")
    for_s: float = limits.option("--for DUR", "Measure so long.", default="30s")
    max_messages: int | None = limits.option(
        "-n, --max-messages N", "Stop when N messages came to all stages.", min=1
    )
    fail_above: float | None = limits.option(
        "--fail-above DUR", "Status 12 if a message took longer to a stage, or waits longer."
    )
    metrics_port: shared.MetricsPortOption = None


class Job(NamedTuple):
    """The common part of `sql`, `window` and `join`: input, target of the result, and Spark."""

    env: Environment
    topics: Sequence[str]
    read: ReadChoice
    loss: LossChoice
    target: TargetChoice
    spark: SparkChoice
    stream: StreamChoice = NO_STREAM
