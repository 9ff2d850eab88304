"""Message sets on their way to brokers: sent in a window, counted when they are acknowledged.

Owns what is in flight, and what is known of it when a broker fails. Knows no input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from broker.errors import BrokerError, InvalidMessageError, MessageSizeTooLargeError
from broker.producer.producer import Delivery
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES
from broker.protocol.compression import Codec
from broker.protocol.message_set import wrap
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError
from pylogctl.cli.report import failure_of
from pylogctl.cli.units import Pacer


class Batch(NamedTuple):
    """Messages that go to one partition as one set.

    `numbers` says which messages of the whole run they are, from 1.
    """

    partition: TopicPartition
    message_set: Buffer
    numbers: Sequence[int]

    @property
    def payload_bytes(self) -> int:
        """Return how much the payloads take together."""
        return len(self.message_set) - ENTRY_OVERHEAD_BYTES * len(self.numbers)


def count_text(count: int) -> str:
    """Return a number of messages for people."""
    return f"{count} message{'s' * (count != 1)}"


def numbers_text(numbers: Sequence[int]) -> str:
    """Return which messages these are for people, such as `messages 3 to 7`."""
    first, last = numbers[0], numbers[-1]
    return f"message {first}" if first == last else f"messages {first} to {last}"


class Confirmed(NamedTuple):
    """A batch that a broker has acknowledged: at which offset, and the set as it was sent."""

    batch: Batch
    base_offset: int
    message_set: Buffer


class SetSink(Protocol):
    """Where sets go: a `Producer`, or nowhere."""

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Send a set, waiting for room in the window only."""

    def flush(self) -> None:
        """Wait until every delivery is done."""

    def barrier(self) -> None:
        """Wait until consumers can read all that was sent."""


class Nowhere:
    """A sink for dry runs."""

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Take a set and forget it."""
        delivery = Delivery(partition, b"")
        delivery.is_done = True
        return delivery

    def flush(self) -> None:
        """Return at once."""

    def barrier(self) -> None:
        """Return at once."""


class Sender:
    """Sends batches and keeps count.

    Args:
        sink: where they go.
        codec: how sets are compressed.
        max_message_bytes: what a wrapper may hold; a set that does not compress goes as it is.
        sync: wait for each acknowledgement before the next batch.
        pacer: limits the rate; None for no limit.
        observers: told of each acknowledged batch.
        refused: told of batches the broker does not take because of what is in them; raises to
            end the run.
    """

    def __init__(
        self,
        sink: SetSink,
        *,
        codec: Codec = Codec.NONE,
        max_message_bytes: int,
        sync: bool = False,
        pacer: Pacer | None = None,
        observers: Sequence[Callable[[Confirmed], None]] = (),
        refused: Callable[[Batch, BrokerError], None],
    ) -> None:
        self._sink = sink
        self._codec = codec
        self._max_message_bytes = max_message_bytes
        self._sync = sync
        self._pacer = pacer
        self._observers = observers
        self._refused = refused
        self._in_flight: dict[int, deque[tuple[Delivery, Batch]]] = {}
        self.partitions: dict[TopicPartition, int] = {}
        """How many messages were acknowledged in each partition."""
        self.payload_bytes = 0
        """Bytes of payload acknowledged."""
        self.has_failed = False
        """Whether a broker is gone, or has refused what it must not."""

    @property
    def message_count(self) -> int:
        """Return how many messages were acknowledged."""
        return sum(self.partitions.values())

    def send(self, batch: Batch) -> None:
        """Send a batch, waiting for its turn and for room in the window.

        Raises:
            CliError: a broker is gone, or refuses; the text says what was confirmed.
        """
        if self._pacer is not None:
            self._pacer.wait_for(len(batch.numbers), batch.payload_bytes)
        message_set = self._compressed(batch.message_set)
        window = self._in_flight.setdefault(batch.partition.home, deque())
        try:
            window.append((self._sink.send_set(batch.partition, message_set), batch))
            if self._sync:
                self._sink.flush()
        except BrokerError as error:
            raise self._failure(error, batch) from error
        self._settle()

    def _compressed(self, message_set: Buffer) -> Buffer:
        if not self._codec:
            return message_set
        wrapped = wrap(message_set, self._codec)
        is_too_large = len(wrapped) - ENTRY_OVERHEAD_BYTES > self._max_message_bytes
        return message_set if is_too_large else wrapped

    def flush(self) -> None:
        """Wait until all is acknowledged.

        Raises:
            CliError: a broker is gone, or refuses; the text says what was confirmed.
        """
        if not any(self._in_flight.values()):
            return
        try:
            self._sink.flush()
        except BrokerError as error:
            raise self._failure(error) from error
        self._settle()

    def barrier(self) -> None:
        """Wait until consumers can read all that was sent.

        Raises:
            CliError: a broker or the registry is gone, or takes too long; the text says how much
                was confirmed all the same.
        """
        try:
            self._sink.barrier()
        except BrokerError as error:
            failure = failure_of(error)
            assert failure is not None
            raise CliError(
                failure.status,
                f"{failure.message}; {count_text(self.message_count)} confirmed, and not known to "
                "be readable yet",
                hints=failure.hints,
                code=failure.code,
                details={"confirmed": self.message_count},
            ) from error

    def _settle(self) -> None:
        for window in self._in_flight.values():
            while window and window[0][0].is_done:
                delivery, batch = window.popleft()
                if delivery.error is None:
                    self._confirm(delivery, batch)
                elif isinstance(delivery.error, InvalidMessageError | MessageSizeTooLargeError):
                    self._refused(batch, delivery.error)
                else:
                    raise self._failure(delivery.error, batch) from delivery.error

    def _confirm(self, delivery: Delivery, batch: Batch) -> None:
        count = len(batch.numbers)
        self.partitions[batch.partition] = self.partitions.get(batch.partition, 0) + count
        self.payload_bytes += batch.payload_bytes
        confirmed = Confirmed(batch, delivery.base_offset, delivery.message_set)
        for observe in self._observers:
            observe(confirmed)

    def _failure(self, error: BrokerError, batch: Batch | None = None) -> BrokerError | CliError:
        """Return an error with what is known of all that was sent, `batch` being lost."""
        self.has_failed = True
        lost = [batch] if batch is not None else []
        # what other brokers have in flight may well have arrived
        with suppress(BrokerError):
            self._sink.flush()
        for window in self._in_flight.values():
            for delivery, sent in window:
                if delivery.is_done and delivery.error is None:
                    self._confirm(delivery, sent)
                elif sent is not batch:
                    lost.append(sent)
            window.clear()
        failure = failure_of(error)
        if failure is None or not lost:
            return error
        count = sum(len(one.numbers) for one in lost)
        first = min(one.numbers[0] for one in lost)
        return CliError(
            failure.status,
            f"{failure.message}; {count_text(self.message_count)} confirmed, {count} sent and not "
            f"confirmed, from message {first} on",
            hints=failure.hints,
            code=failure.code,
            details={"confirmed": self.message_count, "first_unconfirmed": first},
        )
