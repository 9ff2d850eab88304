"""The way messages take from input to sender, chosen by what the plan demands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol

from broker.clock import Clock
from broker.producer.producer import Producer
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError, UsageError
from pylogctl.cli.selection import PartitionPattern
from pylogctl.format.framing import Shape, escape
from pylogctl.format.framing_reader import ChunkReader, Framed, Refuse, read_messages
from pylogctl.produce.input_reader import Input
from pylogctl.produce.message_lane import Interpret, MessageLane, Outgoing, Route, partition_for
from pylogctl.produce.plan import Limits, Plan, Quota, Refusals
from pylogctl.produce.sender import Sender
from pylogctl.produce.text_lane import TextLane

if TYPE_CHECKING:
    from pylogctl.produce.receipts import Receipt

Step = Callable[[Outgoing, int, int], Outgoing]
"""Changes what is to be sent, given its number in the input and in the run."""


class Lane(Protocol):
    """A way from an input to the sender."""

    position: int
    """How far the current input is used, in bytes."""

    def read(self, reader: Input) -> None:
        """Send all messages of an input.

        Raises:
            CliError: a message cannot be sent, or a broker fails.
            InputStopped: a signal ended the input; all whole messages before that are sent.
        """


def make_lane(
    plan: Plan,
    fixed: TopicPartition | None,
    producer: Producer,
    sender: Sender,
    clock: Clock,
    *,
    limits: Limits,
    quota: Quota,
    refusals: Refusals,
    accepted: Callable[[bytes], None] | None,
    receipt: Receipt | None,
) -> Lane:
    """Return the fastest lane that does what the plan says.

    Args:
        plan: what to do.
        fixed: the partition that everything goes to, if there is one.
        producer: knows partitions.
        sender: takes batches.
        clock: for templates.
        limits: of messages and batches.
        quota: how many messages to send.
        refusals: told of messages that cannot be sent.
        accepted: given the input bytes of what is sent.
        receipt: what an earlier run has had confirmed.
    """
    if fixed is not None and plan.is_plain:
        return TextLane(
            sender,
            fixed,
            plan.framing.delimiter,
            limits=limits,
            quota=quota,
            refusals=refusals,
            accepted=accepted,
        )
    return MessageLane(
        sender,
        partial(_read_records, plan),
        _interpreter(plan, clock),
        _router(plan, producer, fixed),
        limits=limits,
        quota=quota,
        refusals=refusals,
        accepted=accepted,
        skip_empty=plan.input.skip_empty,
        is_confirmed=None if receipt is None else receipt.is_confirmed,
    )


def fixed_partition(plan: Plan, producer: Producer) -> TopicPartition | None:
    """Return the partition that everything goes to; None if each message has its own.

    Raises:
        CliError: there is no such partition.
        BrokerError: no broker can be reached.
    """
    if plan.partition is not None:
        return partition_for(producer, plan.topic, plan.partition_text, plan.partition)
    if plan.has_fixed_partition:
        return producer.choose_partition(plan.topic, plan.key)
    producer.partitions(plan.topic)
    return None


def _read_records(plan: Plan, stream: ChunkReader, refuse: Refuse) -> Iterator[Framed]:
    limit = plan.max_message_bytes
    if plan.input.csv_column is not None:
        from pylogctl.produce.csv_records import read_column

        return read_column(stream, plan.input.csv_column, max_message_bytes=limit, refuse=refuse)
    # What is cut off a message or put into it makes it shorter or longer than it came.
    if plan.key_delimiter is not None:
        limit += limit
    return read_messages(stream, plan.framing, max_message_bytes=limit, refuse=refuse)


def _interpreter(plan: Plan, clock: Clock) -> Interpret:
    """Return what makes of a framed message what is to be sent."""
    steps = []
    if plan.framing.shape is Shape.JSONL:
        steps.append(_open_envelope(plan))
    if plan.key_delimiter is not None:
        steps.append(_split_key(plan.key_delimiter, "line" if _is_by_line(plan) else "message"))
    if plan.input.template:
        steps.append(_expand_template(clock))

    def interpret(framed: Framed, number: int) -> Outgoing:
        outgoing = Outgoing(framed.payload)
        for step in steps:
            outgoing = step(outgoing, framed.number, number)
        return outgoing

    return interpret


def _is_by_line(plan: Plan) -> bool:
    by_line = (Shape.DELIMITED, Shape.HEX, Shape.BASE64, Shape.JSONL)
    return plan.framing.shape in by_line and plan.framing.delimiter == b"\n"


def _open_envelope(plan: Plan) -> Step:
    from pylogctl.format.envelope import read_envelope

    def step(outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        payload, partition = read_envelope(outgoing.payload, line_number, strict=plan.input.strict)
        if plan.keep_partition and partition is None:
            raise UsageError(f"line {line_number}: no partition, which --keep-partition needs")
        return Outgoing(payload, None, partition)

    return step


def _split_key(delimiter: bytes, what: str) -> Step:
    shown = escape(delimiter)

    def step(outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        key, found, payload = outgoing.payload.partition(delimiter)
        if not found:
            raise UsageError(f"{what} {line_number}: no key delimiter '{shown}' in it")
        return outgoing._replace(payload=payload, key=key)

    return step


def _expand_template(clock: Clock) -> Step:
    from pylogctl.produce.templates import expand

    def step(outgoing: Outgoing, line_number: int, number: int) -> Outgoing:
        return outgoing._replace(payload=expand(outgoing.payload, number, clock))

    return step


def _router(plan: Plan, producer: Producer, fixed: TopicPartition | None) -> Route:
    """Return what says where a message goes."""
    if fixed is not None:
        return lambda outgoing, framed: fixed
    if not plan.keep_partition:
        return lambda outgoing, framed: producer.choose_partition(plan.topic, outgoing.key)

    @cache
    def partition_of(pattern: PartitionPattern) -> TopicPartition:
        home = "" if pattern.home is None else f"{pattern.home}-"
        return partition_for(producer, plan.topic, f"{home}{pattern.first}", pattern)

    def keep(outgoing: Outgoing, framed: Framed) -> TopicPartition:
        assert outgoing.partition is not None  # refused before
        try:
            return partition_of(outgoing.partition)
        except CliError as error:
            message = f"line {framed.number}: {error.message}"
            raise CliError(error.status, message, hints=error.hints, code=error.code) from error

    return keep
