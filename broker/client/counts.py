"""What clients count: plain numbers, which cost little and are added up when a scrape comes.

Each thread, or each lock, has an object of its own that only it writes, so that counting takes no
lock; any thread reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Protocol, Self, TypeVar

from broker.stats import ELECTION_BOUNDS_S, Histogram
from broker.topic import TopicPartition

BATCH_BOUNDS_BYTES: tuple[float, ...] = tuple(4**power for power in range(4, 13))  # 256 B to 16 MiB


@dataclass(eq=False, slots=True)
class TopicCounts:
    """What happened to the messages of one topic."""

    messages: int = 0
    size_bytes: int = 0
    errors: int = 0
    retries: int = 0


def _add(total: Any, other: Any) -> None:
    """Add the fields of an object to those of another one of its class."""
    for name in (one.name for one in fields(total)):
        value = getattr(other, name)
        if isinstance(value, Histogram):
            getattr(total, name).add(value)
        elif isinstance(value, dict):
            for topic, counts in list(value.items()):
                _add(total.of(topic), counts)
        else:
            setattr(total, name, getattr(total, name) + value)


@dataclass(eq=False)
class _Counts:
    """The counts of one thread."""

    topics: dict[str, TopicCounts] = field(default_factory=dict)

    def of(self, topic: str) -> TopicCounts:
        """Return the counts of a topic."""
        found = self.topics.get(topic)
        if found is None:
            found = self.topics[topic] = TopicCounts()
        return found

    def add(self, other: Self) -> None:
        """Add the counts of another thread."""
        _add(self, other)

    def end(self) -> None:
        """Forget what is so only while the thread works."""


class Queue(Protocol):
    """Messages that are not sent yet."""

    message_count: int


@dataclass(eq=False)
class ProducerCounts(_Counts):
    """What a thread counts that sends messages."""

    queue_times: Histogram = field(default_factory=Histogram)  # of batches
    request_times: Histogram = field(default_factory=Histogram)
    set_bytes: Histogram = field(default_factory=lambda: Histogram(BATCH_BOUNDS_BYTES))
    in_flight: int = 0  # requests
    queues: list[Queue] = field(default_factory=list)

    @property
    def queued_messages(self) -> int:
        """Return how many messages wait to be sent."""
        return sum(one.message_count for one in list(self.queues))

    def end(self) -> None:
        """Forget what is queued and in flight."""
        self.in_flight, self.queues = 0, []


@dataclass(eq=False)
class ConsumerCounts(_Counts):
    """What a thread counts that reads messages, or does the work of a group's member."""

    fetch_times: Histogram = field(default_factory=Histogram)
    commit_times: Histogram = field(default_factory=Histogram)
    rebalance_times: Histogram = field(default_factory=lambda: Histogram(ELECTION_BOUNDS_S))
    commits: int = 0
    failed_commits: int = 0
    rebalances: int = 0
    failed_rebalances: int = 0


C = TypeVar("C", bound=_Counts)


class Ledger(Generic[C]):
    """The counts of several threads; those of threads that have ended stay in the total."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._ended = make()
        self._open: list[C] = []

    def open(self) -> C:
        """Return counts for a thread."""
        counts = self._make()
        with self._lock:
            self._open.append(counts)
        return counts

    def end(self, counts: C) -> None:
        """Keep the sum of what a thread has counted, which counts no more; again does nothing."""
        with self._lock:
            if counts in self._open:
                self._open.remove(counts)
                counts.end()
                self._ended.add(counts)

    def total(self) -> C:
        """Return the sum of all counts."""
        total = self._make()
        with self._lock:
            for one in (self._ended, *self._open):
                total.add(one)
        return total


class ReadPlace(Protocol):
    """A partition that is being read."""

    partition: TopicPartition
    log_end: int
    """After the last message that can be read, by the last response; -1 if unknown."""
    counts: TopicCounts
    """Of the thread that takes messages out."""

    @property
    def read_up_to(self) -> int:
        """Return the offset after the last message that the program has finished; -1 for none."""


class ConsumerLedger(Ledger[ConsumerCounts]):
    """The counts of the members of a group in this client, or of its readers without a group."""

    def __init__(self, group: str = "") -> None:
        super().__init__(ConsumerCounts)
        self.group: str = group
        # each gives the partitions of a reader; taken out when it ends
        self.places: list[Callable[[], Collection[ReadPlace]]] = []

    def show(self, places: Mapping[TopicPartition, ReadPlace]) -> ConsumerCounts:
        """Show the partitions of a reader until `hide`; return the counts of its thread."""
        counts = self.open()
        for partition, place in places.items():
            place.counts = counts.of(partition.topic)
        self.places.append(places.values)
        return counts

    def hide(self, places: Mapping[TopicPartition, ReadPlace], counts: ConsumerCounts) -> None:
        """Show the partitions of a reader no more, which has ended; again does nothing."""
        self.end(counts)
        with suppress(ValueError):
            self.places.remove(places.values)


class MetricsRegistry(Protocol):
    """A `CollectorRegistry` of prometheus_client, which is not imported to name its type."""

    def register(self, collector: Any) -> None:
        """Add a collector."""

    def unregister(self, collector: Any) -> None:
        """Remove a collector."""


class ClientCounts:
    """What the producers, readers and groups of one client count."""

    def __init__(self) -> None:
        self.producers: Ledger[ProducerCounts] = Ledger(ProducerCounts)
        self._lock = threading.Lock()
        self._consumers: dict[str, ConsumerLedger] = {}
        self.leave_registries: list[Callable[[], None]] = []

    def consumers(self, group: str = "") -> ConsumerLedger:
        """Return the counts of the members of a group, or of readers without one."""
        with self._lock:
            found = self._consumers.get(group)
            if found is None:
                found = self._consumers[group] = ConsumerLedger(group)
            return found

    def all_consumers(self) -> list[ConsumerLedger]:
        """Return the counts of all groups, and of readers without one."""
        with self._lock:
            return list(self._consumers.values())

    def end(self) -> None:
        """Take the counts out of all registries."""
        while self.leave_registries:
            self.leave_registries.pop()()
