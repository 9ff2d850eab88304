"""The options of pipeline commands that say where results go, and how a stream runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import OptionGroup, shared_option

FILE_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}
"""Formats by the suffix of a file's name."""


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """Where results go: standard output if nothing is given."""

    into: Path | None = None
    to_topic: str | None = None

    def check(self) -> None:
        """Check what can be checked before anything is started.

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
        """Check that no file would be replaced.

        Raises:
            CliError: there is a file of that name.
        """
        if self.into is not None and self.into.exists():
            raise CliError(ExitStatus.CONFLICT, f"'{self.into}' exists; remove it first")


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """Whether and how a job runs as a stream."""

    stream: bool = False
    checkpoint: Path | None = None
    exit_at_end: bool = False
    watermark: str | None = None

    def check(self, *, is_bounded: bool) -> None:
        """Check that options fit together.

        Args:
            is_bounded: whether the job needs a bound for what it keeps, as it keeps something.

        Raises:
            UsageError: they do not.
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


def file_format(path: Path) -> str:
    """Return the format that the suffix of a file's name stands for.

    Raises:
        UsageError: it stands for none.
    """
    found = FILE_FORMATS.get(path.suffix.lower())
    if found is None:
        raise UsageError(
            f"'{path}' has no known suffix", hints=[f"valid: {', '.join(FILE_FORMATS)}"]
        )
    return found


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
            help="Where a stream keeps what is done; started again it goes on there.",
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
NO_TARGET = TargetChoice()
NO_STREAM = StreamChoice()
