"""Options that several pipeline commands share: what is read, events, targets, streams, Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import OptionGroup, shared_option

if TYPE_CHECKING:
    from broker.spark.extraction import EventFields

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
"""Exit statuses of commands that read topics on Spark."""
_FILE_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}

Topics = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC...", help="Topics to read.", show_default=False)
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="RE",
        help="Instead: topics whose whole name matches (repeatable).",
        rich_help_panel="Selection",
    ),
]


@dataclass(frozen=True, slots=True)
class ReadChoice:
    """Where and how far to read, and how to treat messages that are gone or damaged."""

    paths: list[Path] | None = None
    start: str | None = None
    until: str | None = None
    allow_data_loss: bool = False
    corrupt: Literal["fail", "skip"] = "fail"


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
                help="Where to end. Default: where topics end now.",
            ),
            shared_option(
                "allow_data_loss",
                bool,
                False,
                "--allow-data-loss",
                panel="Safety",
                help="Continue if messages to be read are gone, and report what is missing.",
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
        ReadChoice,
    )


READ = _read_group("Where to start; see pylogctl help offsets. Default: start.")
LOAD = _read_group(
    "Where to start. Loads that have anything behind it are taken back, and loaded again. "
    "Default: where the last load ended, or the start."
)


@dataclass(frozen=True, slots=True)
class EventChoice:
    """Where key and time of an event are in a payload."""

    key_field: str | None = None
    time_field: str | None = None
    pattern: str | None = None
    time_format: str = "auto"
    time_zone: str = "UTC"
    year: int | None = None

    def check_time(self) -> None:
        """Raise a `UsageError` unless the options say where the time is."""
        if self.time_field is None and self.pattern is None:
            raise UsageError("give --time-field, or --pattern with a group named time")

    def fields(self) -> EventFields:
        """Return the fields to extract from payloads.

        Raises:
            QueryError: the format or the zone of times is unknown.
        """
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
            help="Field of JSON messages that has the key, such as .user.id.",
        ),
        shared_option(
            "time_field",
            str | None,
            None,
            "--time-field",
            metavar="PATH",
            panel="Events",
            help="Field of JSON messages that has their time, such as .meta.ts.",
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
            help="How times are written, such as '%d/%b/%Y:%H:%M:%S %z'. Auto: "
            "ISO 8601, or seconds or milliseconds since 1970.",
        ),
        shared_option(
            "time_zone",
            str,
            "UTC",
            "--time-zone",
            metavar="ZONE",
            panel="Events",
            help="Zone of times that name none, such as Europe/Paris.",
        ),
        shared_option(
            "year",
            int | None,
            None,
            "--year",
            metavar="YEAR",
            panel="Events",
            help="Year of times that name none. Default: the present one.",
        ),
    ),
    EventChoice,
)


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """Where results go: standard output if nothing is given."""

    into: Path | None = None
    to_topic: str | None = None

    def check(self) -> None:
        """Validate the options before anything is started.

        Raises:
            UsageError: the two contradict, or a file's suffix names no format.
            InvalidTopicError: no topic can have that name.
        """
        if self.into is not None and self.to_topic is not None:
            raise UsageError("--into and --to-topic cannot be used together")
        if self.into is not None:
            file_format(self.into)
        if self.to_topic is not None:
            from broker.topic import validate_topic_name

            validate_topic_name(self.to_topic)

    def check_new(self) -> None:
        """Raise a `CliError` if a file would be replaced."""
        if self.into is not None and self.into.exists():
            raise CliError(ExitStatus.CONFLICT, f"'{self.into}' exists; remove it first")


def file_format(path: Path) -> str:
    """Return the format that the suffix of a file's name stands for.

    Raises:
        UsageError: it stands for none.
    """
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
    ),
    TargetChoice,
)


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """Whether and how a job runs as a stream."""

    stream: bool = False
    checkpoint: Path | None = None
    exit_at_end: bool = False
    watermark: str | None = None

    def check(self, *, is_bounded: bool) -> None:
        """Validate that the options fit together.

        Args:
            is_bounded: whether the job keeps events, and so needs a bound for how long.

        Raises:
            UsageError: they do not fit.
        """
        if self.watermark is not None and not is_bounded:
            raise UsageError("--watermark has no meaning here: nothing waits for later messages")
        if self.stream and self.checkpoint is None:
            raise UsageError("--stream needs --checkpoint DIR, which keeps what is done")
        if self.stream and is_bounded and self.watermark is None:
            raise UsageError(
                "--stream needs --watermark DUR, how late events may come",
                hints=["without it Spark would keep everything for ever"],
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
            help="Run on as messages come, until stopped. --into is a directory of files then.",
        ),
        shared_option(
            "checkpoint",
            Path | None,
            None,
            "--checkpoint",
            metavar="DIR",
            panel="Stream",
            help="Where a stream keeps its offsets and state; started again it continues there.",
        ),
        shared_option(
            "exit_at_end",
            bool,
            False,
            "-e",
            "--exit-at-end",
            panel="Stream",
            help="Stop when everything that is there at the start is done.",
        ),
        shared_option(
            "watermark",
            str | None,
            None,
            "--watermark",
            metavar="DUR",
            panel="Stream",
            help="How far behind the newest time an event may come and still count.",
        ),
    ),
    StreamChoice,
)


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Where Spark runs, and with which settings."""

    master: str | None = None
    driver_memory: str | None = None
    spark_conf: list[str] | None = None
    log_file: Path | None = None

    @property
    def is_local(self) -> bool:
        """Return whether all runs on this machine."""
        return self.master is None or self.master.startswith("local")


DEFAULT_SPARK = SparkChoice()
SPARK = OptionGroup(
    (
        shared_option(
            "master",
            str | None,
            None,
            "--master",
            metavar="URL",
            panel="Connection",
            envvar="PYLOGCTL_MASTER",
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
            help="Heap of Spark's driver, such as 2g; on one machine that is all there is. "
            "Default: 1g.",
        ),
        shared_option(
            "spark_conf",
            list[str] | None,
            None,
            "--spark-conf",
            metavar="KEY=VALUE",
            panel="Connection",
            help="Any setting of Spark (repeatable).",
        ),
        shared_option(
            "log_file",
            Path | None,
            None,
            "--log-file",
            metavar="FILE",
            panel="Output",
            help="Where Spark's own log goes. Default: a temporary file, kept if Spark fails.",
        ),
    ),
    SparkChoice,
)
