"""Options that several pipeline commands share: input, events, targets, streams, Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import OptionGroup, shared_option

if TYPE_CHECKING:
    from broker.spark.extraction import EventFields
    from broker.spark.tables import TableTarget

READS = (
    ExitStatus.FAILED,
    ExitStatus.NOT_FOUND,
    ExitStatus.CONFLICT,
    ExitStatus.TIMEOUT,
    ExitStatus.CORRUPT,
    ExitStatus.CONFIG,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)
_FILE_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}

Topics = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC...", help="Topics to read.", show_default=False)
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="RE",
        help="Instead of TOPIC: topics whose whole name matches (repeatable).",
        rich_help_panel="Selection",
    ),
]


@dataclass(frozen=True, slots=True)
class ReadChoice:
    """The input: segment files instead of brokers, and the first and last offsets."""

    paths: list[Path] | None = None
    start: str | None = None
    until: str | None = None


NO_READ = ReadChoice()


def _read_group(start_help: str) -> OptionGroup:
    return OptionGroup(
        (
            shared_option(
                "paths",
                list[Path] | None,
                None,
                "--path",
                metavar="PATH",
                panel="Input",
                help="Read segment files, directories or patterns instead of brokers (repeatable).",
            ),
            shared_option(
                "start",
                str | None,
                None,
                "--from",
                metavar="SPEC",
                panel="Selection",
                help=start_help,
            ),
            shared_option(
                "until",
                str | None,
                None,
                "--until",
                metavar="SPEC",
                panel="Selection",
                help="Offset to end at. Default: the present end.",
            ),
        ),
        ReadChoice,
    )


READ = _read_group("Offset to start at; see pylogctl help offsets. Default: start.")
LOAD = _read_group(
    "Offset to start at; earlier loads with later messages are retired, and their messages loaded "
    "again. Default: the end of the last load, or the start."
)


@dataclass(frozen=True, slots=True)
class LossChoice:
    """How to treat messages that are missing or damaged."""

    allow_data_loss: bool = False
    corrupt: Literal["fail", "skip"] = "fail"


NO_LOSS = LossChoice()
LOSS = OptionGroup(
    (
        shared_option(
            "allow_data_loss",
            bool,
            False,
            "--allow-data-loss",
            panel="Safety",
            help="Continue if messages to be read are gone, and report the missing offsets.",
        ),
        shared_option(
            "corrupt",
            Literal["fail", "skip"],
            "fail",
            "--corrupt",
            panel="Safety",
            help="How to treat messages that are damaged or cannot be decoded.",
        ),
    ),
    LossChoice,
)


@dataclass(frozen=True, slots=True)
class EventChoice:
    """Where the key and the time of an event are in a payload."""

    key_field: str | None = None
    time_field: str | None = None
    pattern: str | None = None
    time_format: str = "auto"
    time_zone: str = "UTC"
    year: int | None = None

    def check_time(self) -> None:
        """Raise a `UsageError` unless the options name the time of events."""
        if self.time_field is None and self.pattern is None:
            raise UsageError("give --time-field, or --pattern with a group named time")

    def fields(self) -> EventFields:
        """Return the fields to extract from payloads."""
        from broker.spark.extraction import EventFields, parse_time_format

        form = parse_time_format(self.time_format, self.time_zone)
        return EventFields(self.key_field, self.time_field, self.pattern, form, self.year)


NO_EVENTS = EventChoice()
EVENTS = OptionGroup(
    (
        shared_option(
            "key_field",
            str | None,
            None,
            "--key-field",
            metavar="PATH",
            panel="Events",
            help="Field of JSON messages with their key, such as .user.id.",
        ),
        shared_option(
            "time_field",
            str | None,
            None,
            "--time-field",
            metavar="PATH",
            panel="Events",
            help="Field of JSON messages with their time, such as .meta.ts.",
        ),
        shared_option(
            "pattern",
            str | None,
            None,
            "--pattern",
            metavar="RE",
            panel="Events",
            help="Instead of fields: a regular expression with groups named key and time.",
        ),
        shared_option(
            "time_format",
            str,
            "auto",
            "--time-format",
            metavar="FORMAT",
            panel="Events",
            help="Format of times, such as '%d/%b/%Y:%H:%M:%S %z'. Auto: "
            "ISO 8601, or seconds or milliseconds since 1970.",
        ),
        shared_option(
            "time_zone",
            str,
            "UTC",
            "--time-zone",
            metavar="ZONE",
            panel="Events",
            help="Zone of times without one, such as Europe/Paris.",
        ),
        shared_option(
            "year",
            int | None,
            None,
            "--year",
            metavar="YEAR",
            panel="Events",
            help="Year of times without one. Default: the newest that is not in the future.",
        ),
    ),
    EventChoice,
)


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A table of Iceberg or Delta to write."""

    into_table: str | None = None
    table_format: Literal["iceberg", "delta"] | None = None

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


NO_TABLE = TableChoice()
_TABLE_OPTIONS = (
    shared_option(
        "into_table",
        str | None,
        None,
        "--into-table",
        metavar="NAME",
        panel="Output",
        help="Append to a table of a catalog that --spark-conf names, such as lake.logs.web, or "
        "to the table of Delta at a path; made if it is missing.",
    ),
    shared_option(
        "table_format",
        Literal["iceberg", "delta"] | None,
        None,
        "--table-format",
        panel="Output",
        help="Format of the table. --spark-conf spark.jars.packages=... brings its package.",
    ),
)
TABLE = OptionGroup(_TABLE_OPTIONS, TableChoice)


@dataclass(frozen=True, slots=True)
class TargetChoice(TableChoice):
    """Target of the result: a file, a table, a topic, or by default standard output."""

    into: Path | None = None
    to_topic: str | None = None

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
TARGET = OptionGroup(
    (
        shared_option(
            "into",
            Path | None,
            None,
            "--into",
            metavar="FILE",
            panel="Output",
            help="Write the result to a file: .parquet, .json (an object a line) or .csv.",
        ),
        shared_option(
            "to_topic",
            str | None,
            None,
            "--to-topic",
            metavar="TOPIC",
            panel="Output",
            help="Write the result to a topic: its column `value`, or each row as JSON.",
        ),
        *_TABLE_OPTIONS,
    ),
    TargetChoice,
)


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """Options of a job that runs as a stream."""

    stream: bool = False
    checkpoint: Path | None = None
    exit_at_end: bool = False
    watermark: str | None = None

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
STREAM = OptionGroup(
    (
        shared_option(
            "stream",
            bool,
            False,
            "--stream",
            panel="Stream",
            help="Process new messages continuously, until stopped; --into is then a directory.",
        ),
        shared_option(
            "checkpoint",
            Path | None,
            None,
            "--checkpoint",
            metavar="DIR",
            panel="Stream",
            help="Directory of the offsets and the state of a stream, for a restart.",
        ),
        shared_option(
            "exit_at_end",
            bool,
            False,
            "-e",
            "--exit-at-end",
            panel="Stream",
            help="Stop at the end offsets of the start.",
        ),
        shared_option(
            "watermark",
            str | None,
            None,
            "--watermark",
            metavar="DUR",
            panel="Stream",
            help="How far behind the newest event an event may be to be counted.",
        ),
    ),
    StreamChoice,
)


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Where Spark runs, and its settings."""

    master: str | None = None
    driver_memory: str | None = None
    spark_conf: list[str] | None = None
    log_file: Path | None = None
    ui: bool = False

    @property
    def is_local(self) -> bool:
        """Return whether everything runs on this machine."""
        return self.master is None or self.master.startswith("local")


DEFAULT_SPARK = SparkChoice()
MASTER_VARIABLE = "PYLOGCTL_MASTER"
TaskEngineChoice = Annotated[
    Literal["local", "spark"] | None,
    typer.Option(
        "--engine",
        help="Run on processes of this machine (local), without Java and Spark, or on Spark; the "
        "files are the same. Default: local, unless an option of Spark such as --master is given.",
        rich_help_panel="Connection",
        show_default=False,
    ),
]
SPARK = OptionGroup(
    (
        shared_option(
            "master",
            str | None,
            None,
            "--master",
            metavar="URL",
            panel="Connection",
            envvar=MASTER_VARIABLE,
            help="Where Spark runs: local[CORES,ATTEMPTS], or a cluster's address. Default: all "
            "cores of this machine.",
        ),
        shared_option(
            "driver_memory",
            str | None,
            None,
            "--driver-memory",
            metavar="SIZE",
            panel="Limits",
            help="Heap of Spark's driver, such as 2g; a local Spark has no other. Default: 1g.",
        ),
        shared_option(
            "spark_conf",
            list[str] | None,
            None,
            "--spark-conf",
            metavar="KEY=VALUE",
            panel="Connection",
            help="A setting of Spark (repeatable).",
        ),
        shared_option(
            "log_file",
            Path | None,
            None,
            "--log-file",
            metavar="FILE",
            panel="Output",
            help="File of Spark's log. Default: a temporary file, kept if Spark fails.",
        ),
        shared_option(
            "ui",
            bool,
            False,
            "--ui",
            panel="Output",
            help="Start Spark's web interface, and say its address.",
        ),
    ),
    SparkChoice,
)
