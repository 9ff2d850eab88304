"""The options of `pylogctl produce`; `plan` turns them into a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from pylogctl.cli.options import (
    CodecOption,
    MaxMessagesOption,
    RateOption,
    VerifyOption,
    options_of,
)
from pylogctl.format.framing import NO_FRAMING, READ_FRAMING, FramingChoice


@dataclass(frozen=True, slots=True)
class InputOptions:
    """The input, its framing, and which messages are left out."""

    framing: Annotated[FramingChoice, READ_FRAMING] = NO_FRAMING
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            help="A JSON object each, as consume --jsonl writes it.",
            rich_help_panel="Input",
        ),
    ] = False
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse unknown fields of --jsonl.", rich_help_panel="Input"),
    ] = False
    whole: Annotated[
        bool,
        typer.Option("--whole", help="All of the input is one message.", rich_help_panel="Input"),
    ] = False
    each_file: Annotated[
        bool, typer.Option("--each-file", help="Each FILE is one message.", rich_help_panel="Input")
    ] = False
    csv_column: Annotated[
        str | None,
        typer.Option(
            "--csv-column",
            metavar="NAME",
            help="One column of CSV with a header line.",
            rich_help_panel="Input",
        ),
    ] = None
    skip_empty: Annotated[
        bool,
        typer.Option(
            "--skip-empty", help="Leave out messages without a byte.", rich_help_panel="Input"
        ),
    ] = False
    template: Annotated[
        bool,
        typer.Option(
            "--template",
            help="Replace {i} {now} {uuid} {rand:16} in messages.",
            rich_help_panel="Input",
        ),
    ] = False
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            "--on-error",
            help="At a message that cannot be sent: stop, or leave it out and end with 6.",
            rich_help_panel="Input",
        ),
    ] = "stop"
    max_messages: MaxMessagesOption = None

    @property
    def skips_errors(self) -> bool:
        """Return whether messages that cannot be sent are left out."""
        return self.on_error == "skip"


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The partitions that messages go to."""

    partition: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--partition",
            metavar="P",
            help="Write to this one: 0, or 2-0 (broker-partition).",
            rich_help_panel="Selection",
        ),
    ] = None
    partitioner: Annotated[
        Literal["sticky", "random", "round-robin", "hash"] | None,
        typer.Option(
            "--partitioner",
            help="How partitions are chosen; sticky: one for the run, which keeps the order. "
            "Default: sticky, hash with a key.",
            rich_help_panel="Selection",
        ),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--key",
            metavar="STR",
            help="Key of all messages; chooses the partition, is not stored.",
            rich_help_panel="Selection",
        ),
    ] = None
    key_delimiter: Annotated[
        str | None,
        typer.Option(
            "-K",
            "--key-delimiter",
            metavar="STR",
            help="A key stands before the first STR of each message; it chooses the partition and "
            "is not stored.",
            rich_help_panel="Selection",
        ),
    ] = None
    keep_partition: Annotated[
        bool,
        typer.Option(
            "--keep-partition",
            help="The partition each --jsonl object names.",
            rich_help_panel="Selection",
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """How messages are sent."""

    codec: CodecOption = None
    batch_messages: Annotated[
        int | None,
        typer.Option(
            "--batch-messages",
            metavar="N",
            min=1,
            help="Messages of a request at most. Default: as many as --batch-bytes holds.",
            rich_help_panel="Limits",
        ),
    ] = None
    batch_bytes: Annotated[
        str | None,
        typer.Option(
            "--batch-bytes",
            metavar="SIZE",
            help="Size of a request at most, unless one message is larger. Default: 512KiB.",
            rich_help_panel="Limits",
        ),
    ] = None
    linger: Annotated[
        str | None,
        typer.Option(
            "--linger",
            metavar="DUR",
            help="How long a message waits for more. Default: 5ms, 0 from a terminal.",
            rich_help_panel="Limits",
        ),
    ] = None
    sync: Annotated[
        bool,
        typer.Option(
            "--sync", help="One request per message, one after another.", rich_help_panel="Limits"
        ),
    ] = False
    rate: RateOption = None
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            help="Largest message; brokers have their own limit. Default: 1000000.",
            rich_help_panel="Limits",
        ),
    ] = None
    on_broker_loss: Annotated[
        str | None,
        typer.Option(
            "--on-broker-loss",
            metavar="move|wait|fail",
            help="When a broker is lost: send on to another partition (of topics without "
            "replicas), wait for the next leader, or fail. move:DUR and wait:DUR fail when nothing "
            "can be sent for DUR; move alone for --timeout (2m); wait alone never. Default: "
            "move; wait for --timeout with -p, -k, -K and --keep-partition.",
            rich_help_panel="Limits",
        ),
    ] = None
    no_barrier: Annotated[
        bool,
        typer.Option(
            "--no-barrier",
            help="End without waiting until all can be read: faster, but a crash of the machine "
            "can lose it and a consumer may not see it yet.",
            rich_help_panel="Output",
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The topic and the windows in which counts of confirmed messages are published."""

    audit: Annotated[
        str | None,
        typer.Option(
            "--audit",
            metavar="TOPIC",
            help="Publish to TOPIC how many messages were confirmed in each time window; "
            "pylogctl audit compares.",
            rich_help_panel="Output",
        ),
    ] = None
    audit_window: Annotated[
        str | None,
        typer.Option(
            "--audit-window",
            metavar="DUR",
            help="Length of a window of --audit, at least 1s. Default: 10m.",
            rich_help_panel="Output",
        ),
    ] = None
    time_field: Annotated[
        str | None,
        typer.Option(
            "--time-field",
            metavar="PATH",
            help="With --audit: field of JSON messages that has their time, such as .meta.ts. "
            "Default: the time they are confirmed.",
            rich_help_panel="Output",
        ),
    ] = None


NO_AUDIT = AuditOptions()


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Records of a run: verification, copies of its input, receipts, and counts."""

    verify: VerifyOption = False
    tee: Annotated[
        bool,
        typer.Option("--tee", help="Copy accepted input to stdout.", rich_help_panel="Output"),
    ] = False
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt",
            metavar="FILE",
            help="Write a JSON line for each message that is safe on disk.",
            rich_help_panel="Output",
        ),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Leave out what this receipt says is sent already.",
            rich_help_panel="Input",
        ),
    ] = None
    audit: Annotated[AuditOptions, options_of(AuditOptions)] = NO_AUDIT


@dataclass(frozen=True, slots=True)
class Options:
    """All options of the command that no other command shares as a whole."""

    input: Annotated[InputOptions, options_of(InputOptions)]
    target: Annotated[TargetOptions, options_of(TargetOptions)]
    sending: Annotated[SendingOptions, options_of(SendingOptions)]
    records: Annotated[RecordOptions, options_of(RecordOptions)]


PRODUCE = options_of(Options)
