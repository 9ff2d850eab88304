"""Queued messages of one broker, gathered in batches until a sender thread takes them.

A batch is full by count or bytes, and due by age. An `OutgoingSet` carries batches of one
partition in one request; until it is completed no other set of its partition is taken, which keeps
the order whatever fails. No threads, locks or sockets here; the owner calls one method at a time
and passes the time.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from broker.client.counts import ProducerCounts
from broker.errors import BrokerError, ProducerClosedError
from broker.producer.delivery import Handle, OnDelivery, Report, reports_of
from broker.producer.encoder import Packer
from broker.producer.records import overhead_of, record_of
from broker.producer.settings import BatchRules
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, encode
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import HEADER_BYTES
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_SET_BYTES = 1 << 20
_REQUEST_BYTES = 8 << 20
_NO_TIME_S = float("-inf")


@dataclass(eq=False, slots=True)
class Batch:
    """Messages that become one message set, and their deliveries, in order."""

    since_s: float  # when the first message came
    can_move: bool  # all may go to another partition; else none may
    payloads: list[bytes] = field(default_factory=list)
    deliveries: list[Handle] = field(default_factory=list)
    size_bytes: int = 0
    is_closed: bool = False
    is_again: bool = False  # see `Accumulator.take_back`; it is not compressed
    offset_span: int = 0  # by how much the message set moves the end of the log
    is_wrapped: bool = False  # it is one wrapper
    is_done: bool = False

    def take_larger(self, limit: int, overhead: Callable[[Handle], int]) -> Batch | None:
        """Take out the calls with a message above a limit, as a batch: this one if all are.

        `overhead` returns what a message has besides its payload.
        """
        entries = list(zip(self.payloads, self.deliveries, strict=True))
        large = {id(one) for payload, one in entries if len(payload) + overhead(one) > limit}
        if not large:
            return None
        rest = [one for one in entries if id(one[1]) not in large]
        if not rest:
            return self
        taken = Batch(self.since_s, self.can_move)
        taken._fill([one for one in entries if id(one[1]) in large])
        self._fill(rest)
        return taken

    def split(self, limit: int, overhead: Callable[[Handle], int]) -> list[Batch]:
        """Return batches up to a limit with the messages of this one, which is the last."""
        parts: list[list[tuple[bytes, Handle]]] = [[]]
        left_bytes = limit
        for payload, delivery in zip(self.payloads, self.deliveries, strict=True):
            size_bytes = len(payload) + overhead(delivery)
            if parts[-1] and size_bytes > left_bytes:
                parts.append([])
                left_bytes = limit
            parts[-1].append((payload, delivery))
            left_bytes -= size_bytes
        batches = [*(Batch(self.since_s, self.can_move) for _ in parts[1:]), self]
        for batch, entries in zip(batches, parts, strict=True):
            batch._fill(entries)
        return batches

    def _fill(self, entries: Sequence[tuple[bytes, Handle]]) -> None:
        self.payloads = [payload for payload, _ in entries]
        self.deliveries = [delivery for _, delivery in entries]
        self.size_bytes = sum(map(len, self.payloads))

    def complete(
        self,
        partition: TopicPartition,
        base_offset: int,
        error: BrokerError | None,
        on_delivery: OnDelivery | None,
    ) -> None:
        """Complete the deliveries, and report on the messages; `base_offset` -1 if unknown."""
        for delivery in self.deliveries:
            delivery.partition = partition  # the set may have moved
        if error is not None or base_offset < 0 or self.is_wrapped:
            next_offset = base_offset + self.offset_span if base_offset >= 0 else -1
            for delivery in self.deliveries:
                delivery.complete_message(base_offset, next_offset, error)
        elif partition.has_records:
            for offset, delivery in enumerate(self.deliveries, base_offset):
                delivery.complete_message(offset, offset + 1, None)
        else:
            offset = base_offset
            for payload, delivery in zip(self.payloads, self.deliveries, strict=True):
                next_offset = offset + ENTRY_OVERHEAD_BYTES + len(payload)
                delivery.complete_message(offset, next_offset, None)
                offset = next_offset
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
    """Call `on_delivery`; its errors are logged, as a sender thread must not end by them."""
    try:
        on_delivery(reports)
    except Exception:
        logger.exception("failure in the report on messages to %s", reports[0].partition)


@dataclass(eq=False, slots=True)
class OutgoingSet:
    """Batches of one partition that are sent in one request."""

    partition: TopicPartition  # can change
    batches: list[Batch]
    on_complete: Callable[[OutgoingSet, int, BrokerError | None], None] | None = None
    message_set: Buffer = b""  # until the owner has encoded the batches
    is_numbered: bool = True
    stamp: ProducerStamp | None = None
    queued_for: TopicPartition = field(init=False)
    can_move: bool = field(init=False)

    def __post_init__(self) -> None:
        self.queued_for = self.partition
        self.can_move = all(batch.can_move for batch in self.batches)

    @property
    def message_count(self) -> int:
        """Return the number of its messages."""
        return sum(len(batch.payloads) for batch in self.batches)

    @property
    def offset_span(self) -> int:
        """Return by how much it moves the end of the log."""
        return sum(batch.offset_span for batch in self.batches)

    def encode(self, packer: Packer) -> None:
        """Make the message set, one of those of each batch."""
        if self.partition.has_records:
            self._encode_records(packer)
            return
        sets = []
        for batch in self.batches:
            message_set: Buffer
            if batch.is_again:
                message_set, batch.is_wrapped = encode(batch.payloads), False
            else:
                message_set, batch.is_wrapped = packer.pack(self.partition.topic, batch.payloads)
            batch.offset_span = len(message_set)
            sets.append(message_set)
        self.message_set = sets[0] if len(sets) == 1 else b"".join(sets)

    def _encode_records(self, packer: Packer) -> None:
        """Make a record batch, of the only batch: brokers find few of them that are sent again."""
        (batch,) = self.batches
        batch.offset_span = len(batch.payloads)
        if batch.payloads:
            now_ms = time.time_ns() // 1_000_000
            pairs = zip(batch.deliveries, batch.payloads, strict=True)
            records = [
                record_of(delivery, number, payload, now_ms)
                for number, (delivery, payload) in enumerate(pairs)
            ]
            self.message_set = packer.pack_records(
                self.partition.topic, records, compresses=not batch.is_again
            )
            self.is_numbered = False

    def complete_batches(
        self,
        base_offset: int,
        error: BrokerError | None,
        on_delivery: OnDelivery | None,
        *,
        logs: bool,
    ) -> None:
        """Complete the deliveries of all batches, and report on the messages.

        `logs`: a failure is logged.
        """
        if error is not None and logs and self.batches:
            logger.error(
                "%d messages to %s not delivered: %s", self.message_count, self.partition, error
            )
        for batch in self.batches:
            batch.complete(self.partition, base_offset, error, on_delivery)
            if base_offset >= 0:
                base_offset += batch.offset_span

    def complete(
        self, base_offset: int, error: BrokerError | None, *, is_raised: bool = False
    ) -> None:
        """Pass the outcome to the owner; see `PendingSet.complete`."""
        if isinstance(error, ProducerClosedError):
            error = ProducerClosedError(
                f"the producer was closed before this was delivered to {self.partition}"
            )
        if self.on_complete is not None:
            self.on_complete(self, base_offset, error)


@dataclass(eq=False, slots=True)
class _PartitionQueue:
    """Batches queued for one partition, behind the set that is in flight, if there is one."""

    batches: deque[Batch] = field(default_factory=deque)
    outgoing: OutgoingSet | None = None


@dataclass(eq=False, slots=True)
class Accumulator:
    """The messages queued for one broker; `on_complete` is given to the sets of `take`.

    `counts` are of the thread that takes.
    """

    rules: BatchRules
    on_complete: Callable[[OutgoingSet, int, BrokerError | None], None] | None = None
    counts: ProducerCounts = field(default_factory=ProducerCounts)
    max_record_batch_bytes: int = sys.maxsize
    message_count: int = field(default=0, init=False)  # not taken yet
    queued_bytes: int = field(default=0, init=False)  # of their payloads
    _queues: dict[TopicPartition, _PartitionQueue] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.counts.queues.append(self)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is queued or in flight."""
        return not self._queues

    def has_room(self, message_count: int, size_bytes: int) -> bool:
        """Return whether messages may be added, with payloads of this size; any, if none is queued.

        `size_bytes` is that of all their payloads together.
        """
        return not self.message_count or (
            self.message_count + message_count <= self.rules.capacity
            and self.queued_bytes + size_bytes <= self.rules.capacity_bytes
        )

    def add(
        self, partition: TopicPartition, payloads: Sequence[bytes], delivery: Handle, now_s: float
    ) -> bool:
        """Add messages even without room; return whether that changes when `take` is due."""
        queued = self._queues.get(partition)
        if queued is None:
            queued = self._queues[partition] = _PartitionQueue()
        rules, batches, can_move = self.rules, queued.batches, delivery.can_move
        overhead_bytes, batch_bytes = 0, rules.batch_bytes
        if partition.has_records:
            overhead_bytes = overhead_of(delivery)
            batch_bytes = min(batch_bytes, self.max_record_batch_bytes - HEADER_BYTES)
        batch = batches[-1] if batches else None
        has_news = False
        for payload in payloads:
            size_bytes = len(payload) + overhead_bytes
            if (
                batch is None
                or batch.is_closed
                or batch.can_move is not can_move
                or batch.size_bytes + size_bytes > batch_bytes
            ):
                batch = Batch(now_s, can_move)
                if batches:
                    batches[-1].is_closed = True
                batches.append(batch)
                has_news = True
            batch.payloads.append(payload)
            batch.deliveries.append(delivery)
            batch.size_bytes += size_bytes
            self.queued_bytes += size_bytes
            if len(batch.payloads) >= rules.batch_count or batch.size_bytes >= batch_bytes:
                batch.is_closed = True
                has_news = True
        self.message_count += len(payloads)
        return has_news

    def take(self, now_s: float) -> list[OutgoingSet]:
        """Return the sets to send now, at most one of each partition.

        Each is in flight until `finish`. Partitions take turns if not all fit into one request.
        """
        taken: list[OutgoingSet] = []
        size_bytes = 0
        for partition, queued in list(self._queues.items()):
            if size_bytes >= _REQUEST_BYTES:
                break
            if queued.outgoing is not None or self._due_s(queued) > now_s:
                continue
            batches = self._gather(queued, now_s, 1 if partition.has_records else _SET_BYTES)
            queued.outgoing = OutgoingSet(partition, batches, self.on_complete)
            taken.append(queued.outgoing)
            size_bytes += sum(batch.size_bytes for batch in batches)
            self._queues[partition] = self._queues.pop(partition)
        return taken

    def _gather(self, queued: _PartitionQueue, now_s: float, max_bytes: int) -> list[Batch]:
        gathered: list[Batch] = []
        size_bytes = 0
        while queued.batches and size_bytes < max_bytes:
            batch = queued.batches[0]
            if not batch.is_closed and batch.since_s + self.rules.linger_s > now_s:
                break
            if gathered and gathered[0].can_move is not batch.can_move:
                break
            gathered.append(queued.batches.popleft())
            size_bytes += batch.size_bytes
            self.message_count -= len(batch.payloads)
            self.queued_bytes -= batch.size_bytes
            self.counts.queue_times.record(now_s - batch.since_s)
        return gathered

    def _due_s(self, queued: _PartitionQueue) -> float:
        """Return when there is something to take for a partition not in flight."""
        batch = queued.batches[0]
        return _NO_TIME_S if batch.is_closed else batch.since_s + self.rules.linger_s

    def due_s(self) -> float | None:
        """Return when `take` returns something; None: not before something is added."""
        return min(
            (self._due_s(one) for one in self._queues.values() if one.outgoing is None),
            default=None,
        )

    def take_back(self, outgoing: OutgoingSet, limit: int) -> None:
        """Queue again what a broker takes of a set that it refused as messages are above its limit.

        These are left in the set, with all messages of their calls. None may be, as what was too
        large can be a wrapper, or a batch of many records, which is split.
        """
        refused: list[Batch] = []
        kept: list[Batch] = []
        overhead: Callable[[Handle], int] = _no_overhead
        is_split = False
        if has_records := outgoing.partition.has_records:
            overhead, limit = overhead_of, limit - HEADER_BYTES
        for batch in outgoing.batches:
            large = batch.take_larger(limit, overhead)
            if large is not None:
                refused.append(large)
            if large is not batch:
                parts = batch.split(limit, overhead) if has_records else [batch]
                is_split |= len(parts) > 1
                kept += parts
        if not refused and not is_split and all(batch.is_again for batch in kept):
            return
        outgoing.batches = refused
        for batch in reversed(kept):
            batch.is_closed = batch.is_again = True
            self._queues[outgoing.queued_for].batches.appendleft(batch)
            self.message_count += len(batch.payloads)
            self.queued_bytes += batch.size_bytes

    def finish(self, outgoing: OutgoingSet) -> None:
        """Drop a set that was sent or given up; its batches are done."""
        for batch in outgoing.batches:
            batch.is_done = True
        queued = self._queues.get(outgoing.queued_for)
        if queued is None:
            return  # `take_all` has dropped it
        queued.outgoing = None
        if not queued.batches:
            del self._queues[outgoing.queued_for]

    def close_batches(self) -> list[Batch]:
        """Make all queued batches due at once; return them, and those in flight."""
        found: list[Batch] = []
        for queued in self._queues.values():
            if queued.outgoing is not None:
                found += queued.outgoing.batches
            for batch in queued.batches:
                batch.is_closed = True
                found.append(batch)
        return found

    def left(self) -> Counter[str]:
        """Return how many messages are queued or in flight, by topic."""
        left: Counter[str] = Counter()
        for partition, queued in list(self._queues.items()):
            in_flight = queued.outgoing.batches if queued.outgoing is not None else []
            left[partition.topic] += sum(len(one.payloads) for one in (*in_flight, *queued.batches))
        return left

    def take_all(self) -> list[OutgoingSet]:
        """Take all sets, due or not, to be given up; with nothing in flight."""
        taken = []
        for partition, queued in self._queues.items():
            if queued.outgoing is not None:
                taken.append(queued.outgoing)
            taken.append(OutgoingSet(partition, list(queued.batches), self.on_complete))
        self._queues.clear()
        self.message_count = self.queued_bytes = 0
        return taken


def _no_overhead(_: Handle) -> int:
    return 0
