"""The plan of `pylogctl produce`: its options validated, before any connection is made.

Also the limits of a run and its batches, and the handling of messages that cannot be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.config import ProducerConfig
from broker.producer.producer import codec_of, compressed_topics_of
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import Acks
from broker.topic import validate_topic_name
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, UsageError
from pylogctl.cli.properties import PRODUCE, client_settings
from pylogctl.cli.selection import PartitionPattern, parse_partition
from pylogctl.cli.units import Rate, parse_duration_s, parse_rate, parse_size
from pylogctl.format.framing import (
    NO_FRAMING,
    Framing,
    FramingChoice,
    Shape,
    choose_framing,
    unescape,
)
from pylogctl.produce.audit_options import NO_AUDIT, AuditChoice
from pylogctl.produce.input_reader import STDIN

if TYPE_CHECKING:
    from pylogctl.produce.audit import AuditPlan


ANY_COUNT = (1 << 31) - 1
"""As a number of messages: no limit."""


class Limits(NamedTuple):
    """Sizes of messages and batches, and how long a batch may wait to become full."""

    message_bytes: int
    batch_messages: int
    batch_bytes: int
    linger_s: float


class Quota:
    """How many messages may still be sent.

    Args:
        max_messages: at the start; None for any number.
    """

    def __init__(self, max_messages: int | None) -> None:
        self._left = max_messages

    def is_used_up(self) -> bool:
        """Say whether no more may be sent."""
        return self._left == 0

    def of(self, count: int) -> int:
        """Return how many of `count` messages may be sent."""
        return count if self._left is None else min(count, self._left)

    def use(self, count: int) -> None:
        """Note that messages are being sent."""
        if self._left is not None:
            self._left -= count


class RefusedError(CliError):
    """A message that cannot be sent ends the run; the text names its input."""


class Refusals:
    """Messages that cannot be sent: the first one ends the run, or each is reported and counted.

    Args:
        skips: report them and continue.
        tell: reports an error.
    """

    def __init__(self, *, skips: bool, tell: Callable[[str], None]) -> None:
        self._skips = skips
        self._tell = tell
        self.count = 0
        """Messages left out."""

    def refuse(self, error: CliError, source: str = "", count: int = 1) -> None:
        """Leave messages out.

        Args:
            error: why they cannot be sent.
            source: which input they are from, to put before the text.
            count: how many they are.

        Raises:
            RefusedError: they end the run.
        """
        message = f"{source}{error.message}"
        if not self._skips:
            raise RefusedError(error.status, message, hints=error.hints, code=error.code)
        self._tell(message)
        self.count += count


DEFAULT_BATCH_BYTES = 512 << 10
DEFAULT_LINGER_S = 0.005


@dataclass(frozen=True, slots=True)
class Input:
    """Options of the input and its framing, as given; at most one framing."""

    files: Sequence[str] = ()
    framing: FramingChoice = NO_FRAMING
    jsonl: bool = False
    whole: bool = False
    each_file: bool = False
    csv_column: str | None = None
    strict: bool = False
    skip_empty: bool = False
    template: bool = False
    max_messages: int | None = None
    skips_errors: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Which partition messages go to, as given."""

    partition: str | None = None
    partitioner: str | None = None
    key: str | None = None
    key_delimiter: str | None = None
    keep_partition: bool = False


@dataclass(frozen=True, slots=True)
class Sending:
    """How messages are sent, as given."""

    codec: str | None = None
    batch_messages: int | None = None
    batch_bytes: str | None = None
    linger: str | None = None
    sync: bool = False
    rate: str | None = None
    max_size: str | None = None
    barrier: bool = True


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept of a run, as given."""

    verify: bool = False
    tee: bool = False
    receipt: Path | None = None
    resume: Path | None = None
    audit: AuditChoice = NO_AUDIT


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run needs to know.

    `linger_s` is None when the input decides; `key` and `key_delimiter` are bytes of their own;
    `config` has the `-X` properties with the options on top.
    """

    topic: str
    files: tuple[str, ...]
    framing: Framing
    input: Input
    records: Records
    config: ProducerConfig
    codec: Codec
    acks: Acks
    partition: PartitionPattern | None
    partition_text: str
    partitioner: str
    key: bytes | None
    key_delimiter: bytes | None
    keep_partition: bool
    batch_messages: int
    batch_bytes: int
    linger_s: float | None
    sync: bool
    rate: Rate | None
    max_message_bytes: int
    barrier: bool
    audit: AuditPlan | None

    @property
    def has_fixed_partition(self) -> bool:
        """Say whether all messages go to one partition."""
        if self.keep_partition or self.key_delimiter is not None:
            return False
        return self.partition is not None or self.key is not None or self.partitioner == "sticky"

    @property
    def is_plain(self) -> bool:
        """Say whether blocks of text may become sets without a look at each message."""
        given = self.input
        needs_look = given.csv_column is not None or given.skip_empty or given.template
        has_receipt = self.records.receipt is not None or self.records.resume is not None
        return (
            self.framing.shape is Shape.DELIMITED
            and self.has_fixed_partition
            and not needs_look
            and not has_receipt
        )


def make_plan(
    env: Environment,
    topic: str,
    given: Input,
    target: Target,
    sending: Sending,
    records: Records,
) -> Plan:
    """Return what a run does.

    Raises:
        UsageError: an option is malformed, or two of them cannot go together.
        InvalidTopicError: there can be no such topic.
        typer.Exit: `-X dump` asked for the settings alone.
    """
    config = _config(env, sending, records)
    validate_topic_name(topic)
    _check_target(target, given)
    _check_records(env, given, sending, records)
    framing = _framing(given)
    batch_messages = sending.batch_messages or ANY_COUNT
    batch_bytes = DEFAULT_BATCH_BYTES
    if sending.batch_bytes is not None:
        batch_bytes = parse_size(sending.batch_bytes)
    has_key = target.key is not None or target.key_delimiter is not None
    return Plan(
        topic=topic,
        files=tuple(given.files) or (STDIN,),
        framing=framing,
        input=given,
        records=records,
        config=config,
        codec=_codec(config, topic),
        acks=Acks(int(config.acks)),
        partition=None if target.partition is None else parse_partition(target.partition),
        partition_text=target.partition or "",
        partitioner=target.partitioner or ("hash" if has_key else "sticky"),
        key=None if target.key is None else target.key.encode("utf-8", "surrogateescape"),
        key_delimiter=_key_delimiter(target),
        keep_partition=target.keep_partition,
        batch_messages=1 if sending.sync else batch_messages,
        batch_bytes=batch_bytes,
        linger_s=None if sending.linger is None else parse_duration_s(sending.linger),
        sync=sending.sync,
        rate=None if sending.rate is None else parse_rate(sending.rate),
        max_message_bytes=config.max_message_bytes,
        barrier=sending.barrier,
        audit=_audit(records.audit, topic),
    )


def _audit(choice: AuditChoice, topic: str) -> AuditPlan | None:
    if choice == NO_AUDIT:
        return None
    from pylogctl.produce.audit import make_audit_plan  # late: few runs are audited

    return make_audit_plan(choice, topic)


def _codec(config: ProducerConfig, topic: str) -> Codec:
    topics = compressed_topics_of(config)
    return codec_of(config) if not topics or topic in topics else Codec.NONE


def _check_target(target: Target, given: Input) -> None:
    chosen = {
        "--partition": target.partition is not None,
        "--key": target.key is not None,
        "--key-delimiter": target.key_delimiter is not None,
        "--keep-partition": target.keep_partition,
    }
    names = [name for name, is_given in chosen.items() if is_given]
    if len(names) > 1:
        raise UsageError(f"{names[0]} cannot be used with {names[1]} (each chooses the partition)")
    if names and target.partitioner is not None:
        has_key = names[0] in ("--key", "--key-delimiter")
        if not has_key or target.partitioner != "hash":
            raise UsageError(
                f"{names[0]} cannot be used with --partitioner {target.partitioner}",
                hints=["a key chooses the partition by its hash"] if has_key else [],
            )
    if target.key_delimiter == "":
        raise UsageError("--key-delimiter is empty")
    for option, is_given in (
        ("--keep-partition", target.keep_partition),
        ("--strict", given.strict),
    ):
        if is_given and not given.jsonl:
            raise UsageError(f"{option} needs --jsonl")


def _check_records(env: Environment, given: Input, sending: Sending, records: Records) -> None:
    if records.tee and env.settings.output is not None:
        raise UsageError("--tee cannot be used with --output (both write to stdout)")
    if records.resume is not None and given.template:
        raise UsageError("--template cannot be used with --resume (its messages never repeat)")
    if records.verify and not sending.barrier:
        raise UsageError(
            "--verify cannot be used with --no-barrier (only what is flushed can be read back)"
        )


def _framing(given: Input) -> Framing:
    others = {"--each-file": given.each_file, "--csv-column": given.csv_column is not None}
    named = [option for option, is_given in others.items() if is_given]
    framing = choose_framing(given.framing, jsonl=given.jsonl, whole=given.whole)
    if given.framing.names or framing != Framing(Shape.DELIMITED):
        named.append("another framing")
    if len(named) > 1:
        raise UsageError(f"only one framing is possible: {' and '.join(named)}")
    if given.each_file:
        if not given.files:
            raise UsageError("--each-file needs FILE...")
        return Framing(Shape.WHOLE)
    if framing.shape is Shape.WHOLE and len(given.files) > 1:
        raise UsageError(
            "--whole makes one message of one input",
            hints=["for a message of each file: --each-file"],
        )
    return framing


def _key_delimiter(target: Target) -> bytes | None:
    return None if target.key_delimiter is None else unescape(target.key_delimiter)


def _config(env: Environment, sending: Sending, records: Records) -> ProducerConfig:
    """Return the producer's settings: `-X` properties, and the options on top.

    Brokers acknowledge written messages, as the barrier at the end waits until they are flushed;
    a line of a receipt is final, so with --receipt brokers acknowledge flushed messages.
    """
    options = {
        "compression.codec": sending.codec,
        "max.message.size": None if sending.max_size is None else str(parse_size(sending.max_size)),
        "max.in.flight.requests": "1" if sending.sync else None,
    }
    use = PRODUCE
    if records.receipt is not None:
        committed = {"request.required.acks": str(Acks.COMMITTED.value)}
        use = use._replace(defaults=dict(use.defaults) | committed)
    config = client_settings(env, use, ProducerConfig, options)
    needs_offsets = "--receipt" if records.receipt is not None else ""
    needs_offsets = needs_offsets or ("--verify" if records.verify else "")
    if Acks(int(config.acks)) is Acks.NONE and needs_offsets:
        raise UsageError(f"{needs_offsets} cannot be used with request.required.acks=0")
    return config
