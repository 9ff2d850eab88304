"""The options of `pylogctl consume`; `plan` turns them into a request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from pylogctl.cli.options import (
    ALL_TOPICS,
    FetchSizeOption,
    MaxMessagesOption,
    MessageFormatOption,
    OptionalValue,
    PartitionsOption,
    TopicPatterns,
    offset_option,
    options_of,
    topic_patterns,
)
from pylogctl.consume.exec_options import EXECUTION, ExecChoice
from pylogctl.format.framing import NO_FRAMING, WRITE_FRAMING, FramingChoice

FOR_EVER = "forever"
WAIT = OptionalValue(r"\d[\d.a-z]*", FOR_EVER)
_PATTERNS = topic_patterns("Read every topic whose whole name matches (repeatable).")


@dataclass(frozen=True, slots=True)
class Reading:
    """The topics, partitions and offsets to read."""

    patterns: Annotated[TopicPatterns, _PATTERNS] = ALL_TOPICS
    partition: PartitionsOption = None
    offset: Annotated[
        list[str] | None,
        offset_option(
            "Where to start, and to end: START[:END]; see pylogctl-offsets(7). Default: end."
        ),
    ] = None
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Same as -o start.", rich_help_panel="Selection"),
    ] = False
    strict_offset: Annotated[
        bool,
        typer.Option(
            "--strict-offset",
            help="An offset out of range is an error, not moved into it, or to the start if a "
            "group had stored it.",
            rich_help_panel="Selection",
        ),
    ] = False
    wait_for_topic: Annotated[
        str | None,
        typer.Option(
            "--wait-for-topic",
            metavar="[DUR]",
            help="Wait for a topic that does not exist yet.",
            rich_help_panel="Limits",
        ),
    ] = None
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "-e",
            "--exit-at-end/--follow",
            "--no-follow/-f",
            help="Stop where each partition ended at the start. Default: --follow.",
            rich_help_panel="Limits",
        ),
    ] = False
    order: Annotated[
        Literal["arrival", "partition"],
        typer.Option(
            "--order",
            help="As messages come, or one partition after another (needs an end).",
            rich_help_panel="Output",
        ),
    ] = "arrival"


@dataclass(frozen=True, slots=True)
class MembershipOptions:
    """The consumer group, and how its offsets are stored."""

    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--group",
            metavar="G",
            help="Share the topics with the other members of this group; all topics if none is "
            "named. Starts where the group is, unless -o says otherwise and it has no other "
            "member.",
            rich_help_panel="Selection",
        ),
    ] = None
    default_offset: Annotated[
        Literal["start", "end"],
        typer.Option(
            "--default-offset",
            help="Where a group starts in a partition it has no offset of. Partitions that came "
            "into being while the group was reading their topic are read from their start.",
            rich_help_panel="Selection",
        ),
    ] = "end"
    commit: Annotated[
        Literal["auto", "exit", "none"],
        typer.Option(
            "--commit",
            help="When the group's offsets are stored. None: a look that moves nothing.",
            rich_help_panel="Limits",
        ),
    ] = "auto"
    commit_interval: Annotated[
        str,
        typer.Option(
            "--commit-interval", metavar="DUR", help="For --commit auto.", rich_help_panel="Limits"
        ),
    ] = "10s"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which of the messages read are written, and how many."""

    grep: Annotated[
        str | None,
        typer.Option(
            "--grep",
            metavar="RE",
            help="Only messages whose payload matches; -n counts those.",
            rich_help_panel="Selection",
        ),
    ] = None
    ignore_case: Annotated[
        bool,
        typer.Option("-i", "--ignore-case", help="For --grep.", rich_help_panel="Selection"),
    ] = False
    invert: Annotated[
        bool,
        typer.Option(
            "--invert", help="Only messages --grep does not match.", rich_help_panel="Selection"
        ),
    ] = False
    grep_at: Annotated[
        Literal["consumer", "broker"],
        typer.Option(
            "--grep-at",
            help="Where --grep is matched. Broker: what does not match stays off the network; a "
            "broker that cannot match leaves it to the consumer.",
            rich_help_panel="Selection",
        ),
    ] = "consumer"
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help="Only messages for which this holds, such as size>1000 (repeatable).",
            rich_help_panel="Selection",
        ),
    ] = None
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="N/M",
            help="N of every M messages.",
            rich_help_panel="Selection",
        ),
    ] = None
    skip: Annotated[
        int,
        typer.Option(
            "--skip",
            metavar="N",
            min=0,
            help="Leave out the first N messages.",
            rich_help_panel="Selection",
        ),
    ] = 0
    max_messages: MaxMessagesOption = None
    idle_timeout: Annotated[
        str | None,
        typer.Option(
            "--idle-timeout",
            metavar="DUR",
            help="Stop when nothing came for so long; status 7 if -n is not reached.",
            rich_help_panel="Limits",
        ),
    ] = None
    on_corrupt: Annotated[
        Literal["stop", "skip", "raw"],
        typer.Option(
            "--on-corrupt",
            help="Stop with status 8; leave out and end with 6; or write the stored bytes.",
            rich_help_panel="Limits",
        ),
    ] = "stop"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of output, of which at most one may be given."""

    framing: Annotated[FramingChoice, WRITE_FRAMING] = NO_FRAMING
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help="A JSON object each, with all that is known.", rich_help_panel="Output"
        ),
    ] = False
    payload_encoding: Annotated[
        Literal["auto", "utf8", "base64", "hex"],
        typer.Option(
            "--payload-encoding",
            help="How --jsonl writes payloads. Auto: text if valid UTF-8, else base64.",
            rich_help_panel="Output",
        ),
    ] = "auto"
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Payloads exactly, nothing between them; on a terminal too without escapes.",
            rich_help_panel="Output",
        ),
    ] = False
    message_format: MessageFormatOption = None
    pretty: Annotated[
        bool,
        typer.Option("--pretty", help="A header line and the payload.", rich_help_panel="Output"),
    ] = False
    to_dir: Annotated[
        Path | None,
        typer.Option(
            "--to-dir", metavar="DIR", help="A file for each message.", rich_help_panel="Output"
        ),
    ] = None
    no_final_delimiter: Annotated[
        bool,
        typer.Option(
            "--no-final-delimiter",
            help="Delimiter between messages, not after each.",
            rich_help_panel="Output",
        ),
    ] = False
    strict_framing: Annotated[
        bool,
        typer.Option(
            "--strict-framing",
            help="A payload that holds the delimiter is an error (status 8).",
            rich_help_panel="Output",
        ),
    ] = False
    unbuffered: Annotated[
        bool,
        typer.Option(
            "-u", "--unbuffered", help="Flush after each message.", rich_help_panel="Output"
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class Fetching:
    """How messages are fetched."""

    fetch_size: FetchSizeOption = None
    max_wait: Annotated[
        str | None,
        typer.Option(
            "--max-wait",
            metavar="DUR",
            help="How long a broker waits for new messages. Default: 500ms.",
            rich_help_panel="Connection",
        ),
    ] = None
    read_from: Annotated[
        str | None,
        typer.Option(
            "--read-from",
            metavar="leader|any|RACK",
            help="Read the leader, any in-sync replica, or one in a rack. Default: leader.",
            rich_help_panel="Connection",
        ),
    ] = None
    socket_buffer: Annotated[
        str | None,
        typer.Option(
            "--socket-buffer",
            metavar="SIZE",
            help="Receive buffer of the socket. Default: the system's.",
            rich_help_panel="Connection",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Options:
    """All options of the command that no other command shares as a whole."""

    reading: Annotated[Reading, options_of(Reading)]
    membership: Annotated[MembershipOptions, options_of(MembershipOptions)]
    chosen: Annotated[Chosen, options_of(Chosen)]
    form: Annotated[Form, options_of(Form)]
    execution: Annotated[ExecChoice, EXECUTION]
    fetching: Annotated[Fetching, options_of(Fetching)]


CONSUME = options_of(Options)
