"""Options that several pipeline commands share: input, events, targets, streams, Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import argument, flag, option

if TYPE_CHECKING:
    from broker.spark.extraction import EventFields
    from broker.spark.tables import TableTarget

READS = (
    ExitStatus.FAILED,
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.CORRUPT,
    ExitStatus.CONFIG,
)
_FILE_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}

Topics = Annotated[list[str] | None, argument("TOPIC...", "Topics to read.")]
Include = Annotated[
    list[str] | None,
    option(
        "--include RE",
        "Selection",
        "Instead of TOPIC: topics whose whole name matches (repeatable).",
    ),
]


@dataclass(frozen=True, slots=True)
class ReadChoice:
    """The input: segment files instead of brokers, and the first and last offsets."""

    paths: list[Path] | None = option(
        "--path PATH",
        "Input",
        "Read segment files, directories or patterns instead of brokers (repeatable).",
    )
    start: str | None = option(
        "--from SPEC", "Selection", "Offset to start at; see pylogctl help offsets. Default: start."
    )
    until: str | None = option(
        "--until SPEC", "Selection", "Offset to end at. Default: the present end."
    )


NO_READ = ReadChoice()


@dataclass(frozen=True, slots=True)
class LoadChoice(ReadChoice):
    """The input of a load, which starts where the last one ended."""

    start: str | None = option(
        "--from SPEC",
        "Selection",
        "Offset to start at; earlier loads with later messages are retired, and their messages "
        "loaded again. Default: the end of the last load, or the start.",
    )


@dataclass(frozen=True, slots=True)
class LossChoice:
    """How to treat messages that are missing or damaged."""

    allow_data_loss: bool = flag(
        "--allow-data-loss",
        "Safety",
        "Continue if messages to be read are gone, and report the missing offsets.",
    )
    corrupt: Literal["fail", "skip"] = option(
        "--corrupt",
        "Safety",
        "How to treat messages that are damaged or cannot be decoded.",
        default="fail",
    )


NO_LOSS = LossChoice()


@dataclass(frozen=True, slots=True)
class EventChoice:
    """Where the key and the time of an event are in a payload."""

    key_field: str | None = option(
        "--key-field PATH", "Events", "Field of JSON messages with their key, such as .user.id."
    )
    time_field: str | None = option(
        "--time-field PATH", "Events", "Field of JSON messages with their time, such as .meta.ts."
    )
    pattern: str | None = option(
        "--pattern RE",
        "Events",
        "Instead of fields: a regular expression with groups named key and time.",
    )
    time_format: str = option(
        "--time-format FORMAT",
        "Events",
        "Format of times, such as '%d/%b/%Y:%H:%M:%S %z'. Auto: ISO 8601, or seconds or "
        "milliseconds since 1970.",
        default="auto",
    )
    time_zone: str = option(
        "--time-zone ZONE",
        "Events",
        "Zone of times without one, such as Europe/Paris.",
        default="UTC",
    )
    year: int | None = option(
        "--year YEAR",
        "Events",
        "Year of times without one. Default: the newest that is not in the future.",
    )

    def check_time(self) -> None:
        """Raise a `UsageError` unless the options name the time of events."""
        if self.time_field is None and self.pattern is None:
            raise UsageError("give --time-field, or --pattern with a group named time")

    def fields(self) -> EventFields:
        """Return the fields to extract from payloads."""
        from broker.spark.extraction import EventFields, parse_time_format

        form = parse_time_format(self.time_format, self.time_zone)
        return EventFields(self.key_field, self.time_field, self.pattern, form, self.year)


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A table of Iceberg or Delta to write."""

    into_table: str | None = option(
        "--into-table NAME",
        "Output",
        "Append to a table of a catalog that --spark-conf names, such as lake.logs.web, or to the "
        "table of Delta at a path; made if it is missing.",
    )
    table_format: Literal["iceberg", "delta"] | None = option(
        "--table-format",
        "Output",
        "Format of the table. --spark-conf spark.jars.packages=... brings its package.",
    )

    def target(self) -> TableTarget | None:
        """Return the table; None if there is none."""
        if (self.into_table is None) != (self.table_format is None):
            raise UsageError("--into-table NAME and --table-format go together")
        if self.into_table is None or self.table_format is None:
            return None
        from broker.errors import ConfigError
        from broker.spark.tables import TableTarget

        try:
            return TableTarget(self.into_table, self.table_format)
        except ConfigError as error:
            raise UsageError(str(error)) from error


@dataclass(frozen=True, slots=True)
class TargetChoice(TableChoice):
    """Target of the result: a file, a table, a topic, or by default standard output."""

    into: Path | None = option(
        "--into FILE",
        "Output",
        "Write the result to a file: .parquet, .json (an object a line) or .csv.",
    )
    to_topic: str | None = option(
        "--to-topic TOPIC",
        "Output",
        "Write the result to a topic: its column `value`, or each row as JSON.",
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
        raise UsageError(
            f"'{path}' has no known suffix", hints=[f"valid: {', '.join(_FILE_FORMATS)}"]
        )
    return found


NO_TARGET = TargetChoice()


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """Options of a job that runs as a stream."""

    stream: bool = flag(
        "--stream",
        "Stream",
        "Process new messages continuously, until stopped; --into is then a directory.",
    )
    checkpoint: Path | None = option(
        "--checkpoint DIR",
        "Stream",
        "Directory of the offsets and the state of a stream, for a restart.",
    )
    exit_at_end: bool = flag("-e, --exit-at-end", "Stream", "Stop at the end offsets of the start.")
    watermark: str | None = option(
        "--watermark DUR",
        "Stream",
        "How far behind the newest event an event may be to be counted.",
    )

    def check(self, *, is_bounded: bool) -> None:
        """Validate the options; a job that keeps events (`is_bounded`) needs a watermark."""
        if self.watermark is not None and not is_bounded:
            raise UsageError("--watermark cannot be used here: the query keeps no events")
        if self.stream and self.checkpoint is None:
            raise UsageError("--stream needs --checkpoint DIR, which stores its offsets and state")
        if self.stream and is_bounded and self.watermark is None:
            raise UsageError(
                "--stream needs --watermark DUR, how late events may be",
                hints=["without it Spark would keep all events for ever"],
            )
        if not self.stream and (self.checkpoint or self.exit_at_end or self.watermark):
            raise UsageError("--checkpoint, --exit-at-end and --watermark need --stream")


NO_STREAM = StreamChoice()
MASTER_VARIABLE = "PYLOGCTL_MASTER"


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Where Spark runs, and its settings."""

    master: str | None = option(
        "--master URL",
        "Connection",
        "Where Spark runs: local[CORES,ATTEMPTS], or a cluster's address. Default: all cores of "
        "this machine.",
        envvar=MASTER_VARIABLE,
    )
    spark_conf: list[str] | None = option(
        "--spark-conf KEY=VALUE",
        "Connection",
        "A setting of Spark (repeatable), such as spark.driver.memory=2g (1g by default), or "
        "spark.ui.enabled=true, which says the address of its pages.",
    )

    @property
    def is_local(self) -> bool:
        """Return whether everything runs on this machine."""
        return self.master is None or self.master.startswith("local")


DEFAULT_SPARK = SparkChoice()
TaskEngineChoice = Annotated[
    Literal["local", "spark"] | None,
    option(
        "--engine",
        "Connection",
        "Run on processes of this machine (local), without Java and Spark, or on Spark; the files "
        "are the same. Default: local, unless an option of Spark such as --master is given.",
    ),
]
