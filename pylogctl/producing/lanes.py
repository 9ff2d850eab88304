"""The way messages take from input to sender, chosen by what the plan demands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from broker.client.producer import Producer
from broker.clock import Clock
from broker.topic import TopicPartition
from pylogctl.envelope import read_envelope
from pylogctl.errors import UsageError
from pylogctl.framing import Shape
from pylogctl.framing_reader import ChunkReader, Framed, Refuse, read_messages
from pylogctl.producing.csv_records import read_column
from pylogctl.producing.input_reader import InputReader
from pylogctl.producing.limits import Limits, Quota, Refusals
from pylogctl.producing.message_lane import Interpret, MessageLane, Outgoing, Route
from pylogctl.producing.plan import Plan
from pylogctl.producing.receipts import Receipt
from pylogctl.producing.routing import partition_for
from pylogctl.producing.sender import Sender
from pylogctl.producing.templates import expand
from pylogctl.producing.text_lane import TextLane

_LINES = (Shape.DELIMITED, Shape.HEX, Shape.BASE64, Shape.JSONL)


class Lane(Protocol):
    """A way from an input to the sender."""

    position: int
    """How far the current input is used, in bytes."""

    def read(self, reader: InputReader) -> None:
        """Send all messages of an input.

        Raises:
            CliError: a message cannot be sent, or a broker fails.
            InputStopped: a signal ended the input; all whole messages before that are sent.
        """


def make_lane(
    plan: Plan,
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
        producer: knows partitions.
        sender: takes batches.
        clock: for templates.
        limits: of messages and batches.
        quota: how many messages to send.
        refusals: told of messages that cannot be sent.
        accepted: given the input bytes of what is sent.
        receipt: what an earlier run has had confirmed.

    Raises:
        CliError: there is no such partition.
        BrokerError: no broker can be reached.
    """
    fixed = fixed_partition(plan, producer)
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
        return read_column(stream, plan.input.csv_column, max_message_bytes=limit, refuse=refuse)
    # What is cut off a message or put into it makes it shorter or longer than it came.
    if plan.key_delimiter is not None:
        limit += limit
    return read_messages(stream, plan.framing, max_message_bytes=limit, refuse=refuse)


def _interpreter(plan: Plan, clock: Clock) -> Interpret:
    """Return what makes of a framed message what is to be sent."""
    is_jsonl = plan.framing.shape is Shape.JSONL
    is_line = plan.framing.shape in _LINES

    def interpret(framed: Framed, number: int) -> Outgoing:
        payload, key, partition = framed.payload, None, None
        if is_jsonl:
            payload, partition = read_envelope(payload, framed.number, strict=plan.input.strict)
        if plan.key_delimiter is not None:
            key, delimiter, payload = payload.partition(plan.key_delimiter)
            if not delimiter:
                what = "line" if is_line else "message"
                shown = plan.key_delimiter.decode("utf-8", "backslashreplace")
                raise UsageError(f"{what} {framed.number}: no key delimiter '{shown}' in it")
        if plan.input.template:
            payload = expand(payload, number, clock)
        return Outgoing(payload, key, partition if plan.keep_partition else None)

    return interpret


def _router(plan: Plan, producer: Producer, fixed: TopicPartition | None) -> Route:
    """Return what says where a message goes."""
    if fixed is not None:
        return lambda outgoing: fixed
    if not plan.keep_partition:
        return lambda outgoing: producer.choose_partition(plan.topic, outgoing.key)

    def keep(outgoing: Outgoing) -> TopicPartition:
        pattern = outgoing.partition
        if pattern is None:
            raise UsageError("a message names no partition, which --keep-partition needs")
        return partition_for(producer, plan.topic, str(pattern), pattern)

    return keep
