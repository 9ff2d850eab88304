"""The options of `pylogctl consume`; `plan` turns them into a request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import Choice, OptionalValue, limits, outputs, selection
from pylogctl.cli.selection import TopicPatterns
from pylogctl.format.envelope import PayloadEncoding
from pylogctl.format.framing import NO_FRAMING, WRITE_FRAMING, FramingChoice

FOR_EVER = "forever"
WAIT = OptionalValue(r"\d[\d.a-z]*", FOR_EVER)
_PATTERNS = shared.topic_patterns("Read every topic whose whole name matches (repeatable).")


class ReadingOptions(Choice):
    """The topics, partitions and offsets to read."""

    patterns: Annotated[TopicPatterns, _PATTERNS] = shared.ALL_TOPICS
    partition: shared.PartitionsOption = None
    offset: list[str] | None = shared.offset_option(
        "Where to start, and to end: START[:END]; see pylogctl-offsets(7). Default: end."
    )
    from_beginning: bool = selection.flag("--from-beginning", "Same as -o start.")
    strict_offset: bool = selection.flag(
        "--strict-offset",
        "An offset out of range is an error, not moved into it, or to the start if a group had "
        "stored it.",
    )
    wait_for_topic: str | None = limits.option(
        "--wait-for-topic [DUR]", "Wait for a topic that does not exist yet."
    )
    exit_at_end: bool = limits.flag(
        "-e, --exit-at-end/--follow, --no-follow/-f",
        "Stop where each partition ended at the start. Default: --follow.",
    )
    allow_missing: shared.AllowMissingOption = False
    order: Literal["arrival", "partition"] = outputs.option(
        "--order",
        "As messages come, or one partition after another (needs an end).",
        default="arrival",
    )


class MembershipOptions(Choice):
    """The consumer group, and how its offsets are stored."""

    group: str | None = selection.option(
        "-g, --group G",
        "Share the topics with the other members of this group; all topics if none is named. "
        "-o says where partitions start that it has no offset of; those created later start at "
        "their beginning.",
    )
    commit: Literal["after", "before", "exit", "none"] = limits.option(
        "--commit",
        "When the group's offsets are stored. After: behind messages that were handled, so that "
        "none is lost. Before: in front of each message, so that none comes twice. Exit: at the "
        "end, or when another member gets the partition. None: a look that moves nothing.",
        default="after",
    )
    metrics_port: shared.MetricsPortOption = None


class Chosen(Choice):
    """Which of the messages read are written, and how many."""

    grep: str | None = selection.option(
        "--grep RE", "Only messages whose payload matches; -n counts those."
    )
    ignore_case: bool = selection.flag("-i, --ignore-case", "For --grep.")
    invert: bool = selection.flag("--invert", "Only messages --grep does not match.")
    grep_at: Literal["consumer", "broker"] = selection.option(
        "--grep-at",
        "Where --grep is matched. Broker: what does not match stays off the network; a broker "
        "that cannot match leaves it to the consumer.",
        default="consumer",
    )
    where: list[str] | None = selection.option(
        "--where EXPR", "Only messages for which this holds, such as size>1000 (repeatable)."
    )
    sample: str | None = selection.option("--sample N/M", "N of every M messages.")
    skip: int = selection.option("--skip N", "Leave out the first N messages.", min=0, default=0)
    max_messages: shared.MaxMessagesOption = None
    idle_timeout: float | None = limits.option(
        "--idle-timeout DUR", "Stop when nothing came for so long; status 7 if -n is not reached."
    )
    on_corrupt: Literal["stop", "skip", "raw"] | None = limits.option(
        "--on-corrupt",
        "Stop with status 8; leave out and end with 6; or write the stored bytes. Default: stop; "
        "raw for what --decode cannot read.",
    )


class Form(Choice):
    """The form of output, of which at most one may be given."""

    framing: Annotated[FramingChoice, WRITE_FRAMING] = NO_FRAMING
    decoding: shared.DecodeChoice = shared.NO_DECODE
    jsonl: bool = outputs.flag("--jsonl", "A JSON object each, with all that is known.")
    payload_encoding: PayloadEncoding = outputs.option(
        "--payload-encoding",
        "How --jsonl writes payloads. Auto: text if valid UTF-8, else base64.",
        default="auto",
    )
    raw: bool = outputs.flag(
        "--raw", "Payloads exactly, nothing between them; on a terminal too without escapes."
    )
    message_format: shared.MessageFormatOption = None
    to_dir: Path | None = outputs.option("--to-dir DIR", "A file for each message.")
    no_final_delimiter: bool = outputs.flag(
        "--no-final-delimiter", "Delimiter between messages, not after each."
    )
    strict_framing: bool = outputs.flag(
        "--strict-framing", "A payload that holds the delimiter is an error (status 8)."
    )
    unbuffered: bool = outputs.flag("-u, --unbuffered", "Flush after each message.")


class ExecChoice(Choice):
    """The command that `consume` runs, and what becomes of messages for which it fails."""

    exec_command: str | None = outputs.option(
        "--exec CMD",
        "Run CMD for each message, its payload on stdin; {topic}, {partition}, {offset}, "
        "{next_offset}, {size} and {number} are filled in. No shell is involved: pipes and "
        "redirections need sh -c '...', which gets a topic as an argument only: sh -c '... "
        '"$1"\' sh {topic}. Status 6 if it fails.',
    )
    retry_dir: Path | None = outputs.option(
        "--retry-dir DIR",
        "With --exec and --group: keep messages for which CMD fails in DIR, go on with the others, "
        "and run CMD for those again from time to time.",
    )
    retries: int | None = limits.option(
        "--retries N",
        "Run CMD again so often at once, before a message is kept. Default: 3.",
        min=0,
    )
    max_attempts: int | None = limits.option(
        "--max-attempts N",
        "Give a message up after N runs of CMD in all; it stays in DIR. Default: 0, never.",
        min=0,
    )


NO_COMMAND = ExecChoice()


class ConsumeOptions(Choice):
    """All options of the command that no other command shares as a whole."""

    reading: ReadingOptions
    membership: MembershipOptions
    chosen: Chosen
    form: Form
    execution: ExecChoice
