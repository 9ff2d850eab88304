"""The thorough way from input to batches: message by message.

For framings beside plain delimiters, keys, templates, several partitions, receipts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from broker.clock import Clock
from broker.producer.producer import Producer
from broker.protocol.codec import encode
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.selection import PartitionPattern
from pylogctl.format.framing import Shape, escape
from pylogctl.format.framing_reader import (
    ChunkReader,
    Framed,
    Refuse,
    read_messages,
    too_large,
)
from pylogctl.produce.input_reader import Input, InputError, InputStopped
from pylogctl.produce.plan import Limits, Plan, Quota, Refusals, RefusedError
from pylogctl.produce.sender import Batch, Sender


class Outgoing(NamedTuple):
    """A message to send, and what its partition is chosen by."""

    payload: bytes
    key: bytes | None = None
    partition: PartitionPattern | None = None


ReadRecords = Callable[[ChunkReader, Refuse], Iterator[Framed]]
"""Yields the messages of an input as soon as they are complete."""
Interpret = Callable[[Framed, int], Outgoing]
"""Returns the message to send for a framed one and its number in the run. Raises UsageError."""
ChoosePartition = Callable[[Outgoing, Framed], TopicPartition]
"""Returns the partition of a message. Raises CliError."""
Step = Callable[[Outgoing, int, int], Outgoing]
"""Changes a message to send, given its number in the input and in the run."""


class _OpenBatch:
    """Messages for one partition that wait to become a set."""

    __slots__ = ("numbers", "payload_bytes", "payloads")

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.numbers: list[int] = []
        self.payload_bytes = 0


class MessageBatches:
    """Reads messages one by one, and sends them in batches by partition.

    Args:
        sender: takes batches.
        read_records: tells messages apart.
        interpret: makes of a framed message the one to send.
        choose_partition: returns its partition.
        limits: of messages and batches.
        quota: how many messages to send.
        refusals: counts messages that cannot be sent.
        accepted: called with the input bytes of each message that is sent.
        skip_empty: leave out messages without a byte.
        is_confirmed: returns by number and payload whether an earlier run has sent a message.
    """

    def __init__(
        self,
        sender: Sender,
        read_records: ReadRecords,
        interpret: Interpret,
        choose_partition: ChoosePartition,
        *,
        limits: Limits,
        quota: Quota,
        refusals: Refusals,
        accepted: Callable[[bytes], None] | None = None,
        skip_empty: bool = False,
        is_confirmed: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        self._sender = sender
        self._read_records = read_records
        self._interpret = interpret
        self._choose_partition = choose_partition
        self._limits = limits
        self._quota = quota
        self._refusals = refusals
        self._accepted = accepted
        self._skip_empty = skip_empty
        self._is_confirmed = is_confirmed
        self._open: dict[TopicPartition, _OpenBatch] = {}
        self._since_s: float | None = None
        self._count_before = self._count = 0
        self.position = 0
        """How far the current input is used, in bytes."""

    def read(self, reader: Input) -> None:
        """Send all messages of an input.

        Raises:
            CliError: a message cannot be sent, or a broker fails.
            InputStopped: a signal ended the input; all whole messages before that are sent.
        """
        reader.attend(self)
        self._count_before = self._count
        self.position = 0

        def refuse(number: int, error: UsageError) -> None:
            self._count = self._count_before + number
            self._refuse(error, reader)

        if self._quota.is_used_up():
            return
        for framed in self._records(reader, refuse):
            self._count = self._count_before + framed.number
            self.position = framed.position + len(framed.raw)
            self._take(framed, reader)
            if self._quota.is_used_up():
                break
        self._send_all()

    def _records(self, reader: Input, refuse: Refuse) -> Iterator[Framed]:
        """Yield the messages of an input; what came before its failure is sent."""
        try:
            yield from self._read_records(reader, refuse)
        except (InputStopped, InputError):
            self._send_all()
            raise
        except RefusedError:
            raise
        except CliError as error:
            # the reader also sends while it waits, and a broker's failure is none of the input
            if self._sender.has_failed:
                raise
            self._send_all()
            message = f"{reader.name}{error.message}"
            raise CliError(error.status, message, hints=error.hints, code=error.code) from error

    def due_s(self) -> float | None:
        """Return when the messages held back must go out."""
        return None if self._since_s is None else self._since_s + self._limits.linger_s

    def on_idle(self) -> None:
        """Send the messages held back and wait for their acknowledgement."""
        self._send_all()
        self._sender.flush()

    def _refuse(self, error: CliError, reader: Input) -> None:
        # what came before the message is sent, whatever becomes of the run
        self._send_all()
        self._refusals.refuse(error, reader.name)

    def _take(self, framed: Framed, reader: Input) -> None:
        number = self._count
        try:
            outgoing = self._interpret(framed, number)
            payload = outgoing.payload
            if self._skip_empty and not payload:
                return
            if len(payload) > self._limits.message_bytes:
                raise too_large(
                    framed.number, framed.position, len(payload), self._limits.message_bytes
                )
            partition = self._choose_partition(outgoing, framed)
        except CliError as error:
            self._refuse(error, reader)
            return
        self._quota.use(1)
        if self._is_confirmed is not None and self._is_confirmed(number, payload):
            return
        self._add(partition, number, payload)
        if self._accepted is not None:
            self._accepted(framed.raw)

    def _add(self, partition: TopicPartition, number: int, payload: bytes) -> None:
        batch = self._open.get(partition)
        if batch is None:
            batch = self._open[partition] = _OpenBatch()
        elif batch.payload_bytes + len(payload) > self._limits.batch_bytes:
            self._send(partition)
            batch = self._open[partition] = _OpenBatch()
        batch.payloads.append(payload)
        batch.numbers.append(number)
        batch.payload_bytes += len(payload)
        if len(batch.payloads) >= self._limits.batch_messages:
            self._send(partition)
        elif self._since_s is None:
            self._since_s = time.monotonic()
        elif time.monotonic() > self._since_s + self._limits.linger_s and self._limits.linger_s:
            self._send_all()

    def _send(self, partition: TopicPartition) -> None:
        batch = self._open.pop(partition)
        if not self._open:
            self._since_s = None
        self._sender.send(Batch(partition, encode(batch.payloads), batch.numbers))

    def _send_all(self) -> None:
        for partition in list(self._open):
            self._send(partition)


def partition_for(
    producer: Producer, topic: str, text: str, pattern: PartitionPattern
) -> TopicPartition:
    """Return the one partition that is meant.

    Args:
        producer: knows the cluster; a topic that does not exist yet will get its partition.
        topic: the topic.
        text: as the user gave it.
        pattern: what it means; must fit one partition.

    Raises:
        UsageError: it fits several.
        CliError: it fits none.
    """
    known = producer.partitions(topic)
    fitting = [one for one in known if pattern.matches(one)]
    if not fitting and producer.is_new(topic) and pattern.first == pattern.last:
        homes = [one.home for one in known if pattern.home in (None, one.home)]
        fitting = [TopicPartition(topic, home, pattern.first) for home in homes]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(one.name for one in (fitting or known))
    if fitting:
        raise UsageError(
            f"'{text}' fits {len(fitting)} partitions of topic '{topic}'",
            hints=[f"choose one: {names}"],
        )
    raise CliError(
        ExitStatus.NOT_FOUND,
        f"topic '{topic}' has no partition '{text}'",
        hints=[f"partitions: {names}"],
        code="PARTITION_NOT_FOUND",
    )


def read_records(plan: Plan, stream: ChunkReader, refuse: Refuse) -> Iterator[Framed]:
    """Yield the messages of an input, framed as the plan says."""
    limit = plan.max_message_bytes
    if plan.input.csv_column is not None:
        from pylogctl.produce.csv_records import read_column

        return read_column(stream, plan.input.csv_column, max_message_bytes=limit, refuse=refuse)
    # What is cut off a message or put into it makes it shorter or longer than it came.
    if plan.key_delimiter is not None:
        limit += limit
    return read_messages(stream, plan.framing, max_message_bytes=limit, refuse=refuse)


def interpreter(plan: Plan, clock: Clock) -> Interpret:
    """Return the steps between a framed message and the one to send, as one function."""
    steps: list[Step] = []
    if plan.framing.shape is Shape.JSONL:
        steps.append(_open_envelope(plan))
    if plan.key_delimiter is not None:
        by_line = (Shape.DELIMITED, Shape.HEX, Shape.BASE64, Shape.JSONL)
        is_by_line = plan.framing.shape in by_line and plan.framing.delimiter == b"\n"
        steps.append(_split_key(plan.key_delimiter, "line" if is_by_line else "message"))
    if plan.input.template:
        steps.append(_expand_template(clock))

    def interpret(framed: Framed, number: int) -> Outgoing:
        outgoing = Outgoing(framed.payload)
        for step in steps:
            outgoing = step(outgoing, framed.number, number)
        return outgoing

    return interpret


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


def partition_chooser(
    plan: Plan, producer: Producer, fixed: TopicPartition | None
) -> ChoosePartition:
    """Return the function that chooses partitions; `fixed` is the one of all messages."""
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
