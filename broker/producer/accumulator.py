"""Messages that wait to be sent to one broker: gathered in batches, handed out in parcels.

A batch is full by count or bytes, and due by age. A parcel is what one request brings to one
partition; while it is under way, or waits for another attempt, nothing else of its partition is
handed out: that keeps the order whatever fails. Pure: no threads, no locks, no sockets; the owner
calls one method at a time and tells the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from broker.errors import BrokerError
from broker.producer.delivery import QueuedDelivery
from broker.topic import TopicPartition

_PARCEL_BYTES = 1 << 20
_REQUEST_BYTES = 8 << 20
_NO_TIME_S = float("-inf")


@dataclass(frozen=True, slots=True)
class BatchRules:
    """When a batch is sent, and how much may wait.

    Args:
        capacity: messages that may wait for one broker (those under way do not count).
        batch_count: messages that make a batch full.
        batch_bytes: payload bytes that a batch may have; a larger message has one to itself.
        linger_s: how long a batch that is not full waits for more messages.
    """

    capacity: int = 10_000
    batch_count: int = 200
    batch_bytes: int = 1_000_000
    linger_s: float = 5.0


class Batch:
    """Messages that become one message set, and the deliveries they belong to, in order.

    `since_s` is when the first of them came. The owner says how long the message set is, whether
    it is one wrapper, and in the end that it is done.
    """

    __slots__ = (
        "deliveries",
        "is_closed",
        "is_done",
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
        self.is_done = False


class Parcel:
    """What one request brings to one partition: batches in order.

    `failures` counts the attempts to send it, `error` is why the last one failed; `message_set`
    is made by the owner, None before.
    """

    __slots__ = ("batches", "error", "failures", "message_set", "not_before_s", "partition")

    def __init__(self, partition: TopicPartition, batches: list[Batch]) -> None:
        self.partition = partition
        self.batches = batches
        self.failures = 0
        self.error: BrokerError | None = None
        self.message_set: bytes | None = None
        self.not_before_s = _NO_TIME_S


class _Line:
    """What waits for one partition: batches, behind the parcel that was handed out last."""

    __slots__ = ("batches", "is_under_way", "parcel")

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()
        self.parcel: Parcel | None = None
        self.is_under_way = False


class Accumulator:
    """The messages that wait for one broker.

    Args:
        rules: of batches.
    """

    def __init__(self, rules: BatchRules) -> None:
        self._rules = rules
        self._lines: dict[TopicPartition, _Line] = {}
        self.message_count = 0
        """Messages that were not handed out yet."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing waits and nothing is under way."""
        return not self._lines

    def has_room(self, message_count: int) -> bool:
        """Return whether so many messages may be added; any number, if none waits."""
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
            Whether that changes what `take` or `wait_s` say.
        """
        line = self._lines.get(partition)
        if line is None:
            line = self._lines[partition] = _Line()
        rules, batches = self._rules, line.batches
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

    def take(self, now_s: float) -> list[Parcel]:
        """Return what is to be sent now, at most one parcel of each partition.

        Each of them is under way until `finish` or `put_back`. Partitions take turns where not
        all fit into one request.
        """
        parcels: list[Parcel] = []
        size_bytes = 0
        for partition, line in list(self._lines.items()):
            if size_bytes >= _REQUEST_BYTES:
                break
            if line.is_under_way or self._due_s(line) > now_s:
                continue
            if line.parcel is None:
                line.parcel = Parcel(partition, self._gather(line, now_s))
            line.is_under_way = True
            parcels.append(line.parcel)
            size_bytes += sum(batch.size_bytes for batch in line.parcel.batches)
            self._lines[partition] = self._lines.pop(partition)
        return parcels

    def _gather(self, line: _Line, now_s: float) -> list[Batch]:
        gathered: list[Batch] = []
        size_bytes = 0
        while line.batches and size_bytes < _PARCEL_BYTES:
            batch = line.batches[0]
            if not batch.is_closed and batch.since_s + self._rules.linger_s > now_s:
                break
            gathered.append(line.batches.popleft())
            size_bytes += batch.size_bytes
            self.message_count -= len(batch.payloads)
        return gathered

    def _due_s(self, line: _Line) -> float:
        """Return from when on there is something to hand out for a partition not under way."""
        if line.parcel is not None:
            return line.parcel.not_before_s
        batch = line.batches[0]
        return _NO_TIME_S if batch.is_closed else batch.since_s + self._rules.linger_s

    def wait_s(self, now_s: float) -> float | None:
        """Return after how long `take` gives something; None: not before something is added."""
        due_s = min(
            (self._due_s(line) for line in self._lines.values() if not line.is_under_way),
            default=None,
        )
        return None if due_s is None else max(0.0, due_s - now_s)

    def finish(self, parcel: Parcel) -> None:
        """Let go of a parcel that was sent or given up."""
        line = self._lines.get(parcel.partition)
        if line is None:
            return  # `take_all` has let go of it
        line.parcel = None
        line.is_under_way = False
        if not line.batches:
            del self._lines[parcel.partition]

    def put_back(self, parcel: Parcel, not_before_s: float) -> None:
        """Take back a parcel that is to be sent again, before all others of its partition."""
        parcel.not_before_s = not_before_s
        self._lines[parcel.partition].is_under_way = False

    def retry_now(self) -> None:
        """Have parcels that were put back handed out at once."""
        for line in self._lines.values():
            if line.parcel is not None:
                line.parcel.not_before_s = _NO_TIME_S

    def close_batches(self) -> list[Batch]:
        """Have all that waits sent at once; return it, and what is under way."""
        found: list[Batch] = []
        for line in self._lines.values():
            if line.parcel is not None:
                found += line.parcel.batches
            for batch in line.batches:
                batch.is_closed = True
                found.append(batch)
        return found

    def take_all(self) -> list[Parcel]:
        """Hand out everything, due or not, to be given up; with nothing under way."""
        parcels = []
        for partition, line in self._lines.items():
            if line.parcel is not None:
                parcels.append(line.parcel)
            parcels.append(Parcel(partition, list(line.batches)))
        self._lines.clear()
        self.message_count = 0
        return parcels
