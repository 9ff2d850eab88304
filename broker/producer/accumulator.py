"""Queued messages of one broker, gathered in batches until a sender thread takes them.

A batch is full by count or bytes, and due by age. An `OutgoingSet` carries batches of one
partition in one request; while it is in flight, or waits for its retry, nothing else of its
partition is taken: that keeps the order whatever fails. Pure: no threads, no locks, no sockets;
the owner calls one method at a time and passes the time.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.errors import BrokerError
from broker.producer.delivery import OnDelivery, QueuedDelivery, Report, reports_of
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_SET_BYTES = 1 << 20
_REQUEST_BYTES = 8 << 20
_NO_TIME_S = float("-inf")


@dataclass(frozen=True, slots=True)
class BatchRules:
    """When a batch is sent, and how much may be queued.

    Args:
        capacity: messages that may be queued for one broker (those in flight do not count).
        batch_count: messages that make a batch full.
        batch_bytes: payload bytes that a batch may have; a larger message has one to itself.
        linger_s: how long a batch that is not full waits for more messages.
    """

    capacity: int = 10_000
    batch_count: int = 200
    batch_bytes: int = 1_000_000
    linger_s: float = 5.0


class Batch:
    """Messages that become one message set, and their deliveries, in order.

    `since_s` is when the first message came. The owner sets `is_prepared` (callbacks have seen the
    messages), `set_bytes` (size of the message set), `is_wrapped` (it is one wrapper) and, in the
    end, `is_done`.
    """

    __slots__ = (
        "deliveries",
        "is_closed",
        "is_done",
        "is_prepared",
        "is_wrapped",
        "payloads",
        "set_bytes",
        "since_s",
        "size_bytes",
    )

    def __init__(self, since_s: float) -> None:
        self.payloads: list[bytes] = []
        self.deliveries: list[QueuedDelivery] = []
        self.size_bytes = 0
        self.since_s = since_s
        self.is_closed = False
        self.set_bytes = 0
        self.is_wrapped = False
        self.is_prepared = False
        self.is_done = False

    def split_off_keyless(self) -> Batch | None:
        """Take the messages without a key out; return them as a batch, None if there are none."""
        is_keyless = [delivery.key is None for delivery in self.deliveries]
        if not any(is_keyless):
            return None
        taken = Batch(self.since_s)
        taken.is_closed = True
        taken.is_prepared = self.is_prepared
        for part, kept in ((taken, False), (self, True)):
            chosen = [index for index, one in enumerate(is_keyless) if one is not kept]
            part.payloads, part.deliveries = (
                [self.payloads[index] for index in chosen],
                [self.deliveries[index] for index in chosen],
            )
            part.size_bytes = sum(map(len, part.payloads))
        return taken

    def complete(
        self,
        partition: TopicPartition,
        base_offset: int,
        error: BrokerError | None,
        on_delivery: OnDelivery | None,
    ) -> None:
        """Complete the deliveries, and report on the messages.

        Args:
            partition: the target.
            base_offset: of the message set, -1 if unknown.
            error: why it was not delivered.
            on_delivery: called with a report on each message.
        """
        if error is not None or base_offset < 0 or self.is_wrapped:
            for delivery in self.deliveries:
                delivery.complete_message(base_offset, error)
        else:
            offset = base_offset
            for payload, delivery in zip(self.payloads, self.deliveries, strict=True):
                delivery.complete_message(offset, None)
                offset += ENTRY_OVERHEAD_BYTES + len(payload)
        if on_delivery is not None and self.payloads:
            reports = reports_of(
                partition,
                self.payloads,
                [delivery.key for delivery in self.deliveries],
                base_offset,
                is_wrapped=self.is_wrapped,
                error=error,
            )
            report(on_delivery, reports)


def report(on_delivery: OnDelivery, reports: Sequence[Report]) -> None:
    """Hand reports over; what the callback raises is logged, as a sender thread must live on."""
    try:
        on_delivery(reports)
    except Exception:
        logger.exception("failure in the report on messages to %s", reports[0].partition)


class OutgoingSet:
    """Batches of one partition that travel in one request.

    `failures` counts the attempts to send it, `error` is why the last one failed; `message_set`
    is empty until the owner has encoded the batches (`is_encoded`).
    """

    __slots__ = (
        "_on_complete",
        "batches",
        "error",
        "failures",
        "is_encoded",
        "message_set",
        "not_before_s",
        "partition",
    )

    def __init__(
        self,
        partition: TopicPartition,
        batches: list[Batch],
        on_complete: Callable[[OutgoingSet, int, BrokerError | None], None] | None = None,
    ) -> None:
        self.partition = partition
        self.batches = batches
        self.failures = 0
        self.error: BrokerError | None = None
        self.is_encoded = False
        self.message_set: Buffer = b""
        self.not_before_s = _NO_TIME_S
        self._on_complete = on_complete

    def complete(
        self, base_offset: int, error: BrokerError | None, *, is_raised: bool = False
    ) -> None:
        """Take note of the acknowledgement, or of the failure; see `PendingSet.complete`."""
        if self._on_complete is not None:
            self._on_complete(self, base_offset, error)


class _PartitionQueue:
    """Batches queued for one partition, behind the set that was taken last."""

    __slots__ = ("batches", "is_in_flight", "outgoing")

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()
        self.outgoing: OutgoingSet | None = None
        self.is_in_flight = False


class Accumulator:
    """The messages queued for one broker.

    Args:
        rules: of batches.
        on_complete: given to the sets that `take` returns.
    """

    def __init__(
        self,
        rules: BatchRules,
        on_complete: Callable[[OutgoingSet, int, BrokerError | None], None] | None = None,
    ) -> None:
        self._rules = rules
        self._on_complete = on_complete
        self._queues: dict[TopicPartition, _PartitionQueue] = {}
        self.message_count = 0
        """Messages that were not taken yet."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is queued or in flight."""
        return not self._queues

    def has_room(self, message_count: int) -> bool:
        """Return whether so many messages may be added; any number, if none is queued."""
        return not self.message_count or (
            self.message_count + message_count <= self._rules.capacity
        )

    def add(
        self,
        partition: TopicPartition,
        payloads: Sequence[bytes],
        delivery: QueuedDelivery,
        now_s: float,
    ) -> bool:
        """Add messages, whether there is room or not.

        Returns:
            Whether that changes what `take` or `wait_s` return.
        """
        queued = self._queues.get(partition)
        if queued is None:
            queued = self._queues[partition] = _PartitionQueue()
        rules, batches = self._rules, queued.batches
        batch = batches[-1] if batches else None
        has_news = False
        for payload in payloads:
            size_bytes = len(payload)
            if (
                batch is None
                or batch.is_closed
                or batch.size_bytes + size_bytes > rules.batch_bytes
            ):
                batch = Batch(now_s)
                if batches:
                    batches[-1].is_closed = True
                batches.append(batch)
                has_news = True
            batch.payloads.append(payload)
            batch.deliveries.append(delivery)
            batch.size_bytes += size_bytes
            if len(batch.payloads) >= rules.batch_count or batch.size_bytes >= rules.batch_bytes:
                batch.is_closed = True
                has_news = True
        self.message_count += len(payloads)
        return has_news

    def add_batch(self, partition: TopicPartition, batch: Batch) -> None:
        """Add a batch that another broker was to get, whether there is room or not."""
        queued = self._queues.setdefault(partition, _PartitionQueue())
        if queued.batches:
            queued.batches[-1].is_closed = True
        queued.batches.append(batch)
        self.message_count += len(batch.payloads)

    def take_keyless(self, partition: TopicPartition) -> list[Batch]:
        """Take the messages without a key that wait for a partition, none of which is in flight."""
        queued = self._queues.get(partition)
        if queued is None or queued.is_in_flight:
            return []
        taken = []
        outgoing = queued.outgoing
        if outgoing is not None:
            taken += [batch.split_off_keyless() for batch in outgoing.batches]
            outgoing.is_encoded = False
        for batch in queued.batches:
            taken.append(split := batch.split_off_keyless())
            self.message_count -= len(split.payloads) if split is not None else 0
        return [batch for batch in taken if batch is not None]

    def drop_empty(self, partition: TopicPartition) -> list[Batch]:
        """Drop the batches of a partition that have no message left; return them."""
        queued = self._queues[partition]
        dropped = [batch for batch in queued.batches if not batch.payloads]
        queued.batches = deque(batch for batch in queued.batches if batch.payloads)
        outgoing = queued.outgoing
        if outgoing is not None:
            dropped += [batch for batch in outgoing.batches if not batch.payloads]
            outgoing.batches = [batch for batch in outgoing.batches if batch.payloads]
            if not outgoing.batches:
                queued.outgoing = None
        if queued.outgoing is None and not queued.batches:
            del self._queues[partition]
        return dropped

    @property
    def waiting_partitions(self) -> list[TopicPartition]:
        """Return the partitions that messages wait for, none of which is in flight."""
        return [one for one, queued in self._queues.items() if not queued.is_in_flight]

    def take(self, now_s: float) -> list[OutgoingSet]:
        """Return the sets to send now, at most one of each partition.

        Each is in flight until `finish` or `put_back`. Partitions take turns where not all fit
        into one request.
        """
        taken: list[OutgoingSet] = []
        size_bytes = 0
        for partition, queued in list(self._queues.items()):
            if size_bytes >= _REQUEST_BYTES:
                break
            if queued.is_in_flight or self._due_s(queued) > now_s:
                continue
            if queued.outgoing is None:
                batches = self._gather(queued, now_s)
                queued.outgoing = OutgoingSet(partition, batches, self._on_complete)
            queued.is_in_flight = True
            taken.append(queued.outgoing)
            size_bytes += sum(batch.size_bytes for batch in queued.outgoing.batches)
            self._queues[partition] = self._queues.pop(partition)
        return taken

    def _gather(self, queued: _PartitionQueue, now_s: float) -> list[Batch]:
        gathered: list[Batch] = []
        size_bytes = 0
        while queued.batches and size_bytes < _SET_BYTES:
            batch = queued.batches[0]
            if not batch.is_closed and batch.since_s + self._rules.linger_s > now_s:
                break
            gathered.append(queued.batches.popleft())
            size_bytes += batch.size_bytes
            self.message_count -= len(batch.payloads)
        return gathered

    def _due_s(self, queued: _PartitionQueue) -> float:
        """Return from when on there is something to take for a partition not in flight."""
        if queued.outgoing is not None:
            return queued.outgoing.not_before_s
        batch = queued.batches[0]
        return _NO_TIME_S if batch.is_closed else batch.since_s + self._rules.linger_s

    def wait_s(self, now_s: float) -> float | None:
        """Return after how long `take` returns something; None: not before something is added."""
        due_s = min(
            (self._due_s(one) for one in self._queues.values() if not one.is_in_flight),
            default=None,
        )
        return None if due_s is None else max(0.0, due_s - now_s)

    def finish(self, outgoing: OutgoingSet) -> None:
        """Drop a set that was sent or given up."""
        queued = self._queues.get(outgoing.partition)
        if queued is None:
            return  # `take_all` has dropped it
        queued.outgoing = None
        queued.is_in_flight = False
        if not queued.batches:
            del self._queues[outgoing.partition]

    def put_back(self, outgoing: OutgoingSet, not_before_s: float) -> None:
        """Take back a set that is to be sent again, before all others of its partition."""
        outgoing.not_before_s = not_before_s
        self._queues[outgoing.partition].is_in_flight = False

    def retry_now(self) -> None:
        """Let sets that were put back be taken at once."""
        for queued in self._queues.values():
            if queued.outgoing is not None:
                queued.outgoing.not_before_s = _NO_TIME_S

    def close_batches(self) -> list[Batch]:
        """Make all that is queued due at once; return it, and what is in flight."""
        found: list[Batch] = []
        for queued in self._queues.values():
            if queued.outgoing is not None:
                found += queued.outgoing.batches
            for batch in queued.batches:
                batch.is_closed = True
                found.append(batch)
        return found

    def take_all(self) -> list[OutgoingSet]:
        """Take everything, due or not, to be given up; with nothing in flight."""
        taken = []
        for partition, queued in self._queues.items():
            if queued.outgoing is not None:
                taken.append(queued.outgoing)
            taken.append(OutgoingSet(partition, list(queued.batches), self._on_complete))
        self._queues.clear()
        self.message_count = 0
        return taken
