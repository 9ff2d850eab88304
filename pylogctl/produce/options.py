"""The options of `pylogctl produce`; `plan` turns them into a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pylogctl.cli.declarations import Choice, inputs, limits, outputs, selection
from pylogctl.cli.options import CodecOption, MaxMessagesOption, RateOption, VerifyOption
from pylogctl.format.framing import NO_FRAMING, READ_FRAMING, FramingChoice


class InputOptions(Choice):
    """The input, its framing, and which messages are left out."""

    framing: Annotated[FramingChoice, READ_FRAMING] = NO_FRAMING
    jsonl: bool = inputs.flag("--jsonl", "A JSON object each, as consume --jsonl writes it.")
    strict: bool = inputs.flag("--strict", "Refuse unknown fields of --jsonl.")
    whole: bool = inputs.flag("--whole", "Each FILE, or all of stdin, is one message.")
    schema: str | None = inputs.option(
        "--schema auto|ID|FILE",
        "Messages are JSON: send each with the id of a schema in front, in binary if that is Avro. "
        "Auto: the latest of the topic's subject. A FILE is registered as the next one of that.",
    )
    csv_column: str | None = inputs.option(
        "--csv-column NAME", "One column of CSV with a header line."
    )
    skip_empty: bool = inputs.flag("--skip-empty", "Leave out messages without a byte.")
    envelope: bool = inputs.flag(
        "--envelope",
        "Put time, host and sequence in front of each message, as a topic with envelope=true has "
        "it always.",
    )
    template: bool = inputs.flag("--template", "Replace {i} {now} {uuid} {rand:16} in messages.")
    on_error: Literal["stop", "skip"] = inputs.option(
        "--on-error",
        "At a message that cannot be sent: stop, or leave it out and end with 6.",
        default="stop",
    )
    max_messages: MaxMessagesOption = None

    @property
    def skips_errors(self) -> bool:
        """Return whether messages that cannot be sent are left out."""
        return self.on_error == "skip"


class TargetOptions(Choice):
    """The partitions that messages go to."""

    partition: str | None = selection.option(
        "-p, --partition P", "Write to this one: 0, or 2-0 (broker-partition)."
    )
    partitioner: str | None = selection.option(
        "--partitioner sticky|random|round-robin|hash|NAME",
        "How partitions are chosen; sticky: one for the run, which keeps the order; NAME: a "
        "plug-in, such as module:name. Default: sticky, hash with a key.",
    )
    key: str | None = selection.option(
        "-k, --key STR", "Key of all messages; chooses the partition. Format kafka stores it."
    )
    header: list[str] | None = selection.option(
        "-H, --header NAME=VALUE", "Header of all messages, for topics of format kafka. Repeatable."
    )
    key_delimiter: str | None = selection.option(
        "-K, --key-delimiter STR",
        "A key stands before the first STR of each message; it chooses the partition. Topics of "
        "format kafka store it.",
    )
    keep_partition: bool = selection.flag(
        "--keep-partition", "The partition each --jsonl object names."
    )


class SendingOptions(Choice):
    """How messages are sent."""

    codec: CodecOption = None
    batch_messages: int | None = limits.option(
        "--batch-messages N",
        "Messages of a request at most. Default: as many as --batch-bytes holds.",
        min=1,
    )
    batch_bytes: str | None = limits.option(
        "--batch-bytes SIZE",
        "Size of a request at most, unless one message is larger. Default: 512KiB.",
    )
    linger: str | None = limits.option(
        "--linger DUR", "How long a message waits for more. Default: 5ms, 0 from a terminal."
    )
    sync: bool = limits.flag("--sync", "One request per message, one after another.")
    rate: RateOption = None
    max_size: str | None = limits.option(
        "--max-size SIZE", "Largest message; brokers have their own limit. Default: 1000000."
    )
    on_broker_loss: str | None = limits.option(
        "--on-broker-loss move|wait|fail",
        "When a broker is lost: send on to another partition (of topics without replicas), wait "
        "for the next leader, or fail. move:DUR and wait:DUR fail when nothing can be sent for "
        "DUR; move alone for --timeout (2m); wait alone never. Default: move; wait for --timeout "
        "with -p, -k, -K and --keep-partition.",
    )
    no_barrier: bool = outputs.flag(
        "--no-barrier",
        "End without waiting until all can be read: faster, but a crash of the machine can lose "
        "it and a consumer may not see it yet.",
    )


class RecordOptions(Choice):
    """Records of a run: verification, copies of its input, receipts, and counts."""

    verify: VerifyOption = False
    tee: bool = outputs.flag("--tee", "Copy accepted input to stdout.")
    receipt: Path | None = outputs.option(
        "--receipt FILE", "Write a JSON line for each message that is safe on disk."
    )
    resume: Path | None = inputs.option(
        "--resume FILE", "Leave out what this receipt says is sent already."
    )
    audit: str | None = outputs.option(
        "--audit TOPIC[:DUR]",
        "Publish to TOPIC how many messages were confirmed in each time window, of 10m or DUR; "
        "pylogctl audit compares.",
    )
    time_field: str | None = outputs.option(
        "--time-field PATH",
        "With --audit: field of JSON messages that has their time, such as .meta.ts; envelope: "
        "the time of --envelope. Default: the time they are confirmed.",
    )


class ProduceOptions(Choice):
    """All options of the command that no other command shares as a whole."""

    input: InputOptions
    target: TargetOptions
    sending: SendingOptions
    records: RecordOptions
