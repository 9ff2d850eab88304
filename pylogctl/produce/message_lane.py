"""The thorough way: messages one by one, for everything that needs a look at each.

Framings beside plain delimiters, keys, templates, several partitions, receipts.

Which partition a message goes to.

Asks the producer for a topic's partitions; knows the ways to name one of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from broker.producer.producer import Producer
from broker.protocol.codec import encode
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.selection import PartitionPattern
from pylogctl.format.framing_reader import (
    ChunkReader,
    Framed,
    Refuse,
    too_large,
)
from pylogctl.produce.input_reader import Input, InputError, InputStopped
from pylogctl.produce.plan import Limits, Quota, Refusals, RefusedError
from pylogctl.produce.sender import Batch, Sender


class Outgoing(NamedTuple):
    """What is to be sent for one message of the input, and what decides where to."""

    payload: bytes
    key: bytes | None = None
    partition: PartitionPattern | None = None


class ReadRecords(Protocol):
    """Reads the messages of one input."""

    def __call__(self, stream: ChunkReader, refuse: Refuse) -> Iterator[Framed]:
        """Yield the messages as soon as they are complete."""


class Interpret(Protocol):
    """Makes of a framed message what is to be sent."""

    def __call__(self, framed: Framed, number: int) -> Outgoing:
        """Return it; `number` counts through the whole run. Raises UsageError."""


Route = Callable[[Outgoing, Framed], TopicPartition]
"""Says where a message goes. Raises CliError."""


class _OpenBatch:
    """Messages for one partition that wait to become a set."""

    __slots__ = ("numbers", "payload_bytes", "payloads")

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.numbers: list[int] = []
        self.payload_bytes = 0


class MessageLane:
    """Sends messages one by one, collected into batches by partition.

    Args:
        sender: where batches go.
        read_records: tells messages apart.
        interpret: says what each means.
        route: says where it goes.
        limits: of messages and batches.
        quota: how many messages to send.
        refusals: told of messages that cannot be sent.
        accepted: given the input bytes of each message that is sent.
        skip_empty: leave out messages without a byte.
        is_confirmed: says by number and payload whether an earlier run has sent a message.
    """

    def __init__(
        self,
        sender: Sender,
        read_records: ReadRecords,
        interpret: Interpret,
        route: Route,
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
        self._route = route
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
            partition = self._route(outgoing, framed)
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
