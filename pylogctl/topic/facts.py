"""Facts about topics: partitions, offsets, segments, last append, number of messages.

Each broker is asked over one connection. After a broker failed to respond it is not asked again.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.client.list_offsets import Watermarks
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import naming_partition
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    RequestTimeoutError,
    StorageError,
)
from broker.protocol.codec import scan
from broker.protocol.extension_requests import StatusRequest
from broker.protocol.message_set import slice_messages
from broker.protocol.responses import BrokerAddress, decode_document
from broker.topic import MessagePosition, ReadRange, TopicPartition

_T = TypeVar("_T")
_NO_FACTS = (BrokerUnreachableError, RequestTimeoutError, StorageError)


class Ends(NamedTuple):
    """The first offset of a partition, and the offset after its last readable message."""

    start: int
    end: int


class TopicSummary(NamedTuple):
    """A topic with the ends of its partitions; `ends` is None if a broker did not respond."""

    topic: str
    partitions: Sequence[TopicPartition]
    ends: dict[TopicPartition, Ends] | None

    @property
    def size_bytes(self) -> int | None:
        """Return the number of readable bytes."""
        return None if self.ends is None else sum(e.end - e.start for e in self.ends.values())


class PartitionFacts(NamedTuple):
    """Facts about a partition; None where unknown, everywhere if its broker did not respond.

    `last_append_ms` is in milliseconds since 1970.
    """

    partition: TopicPartition
    leader: BrokerAddress
    ends: Ends | None = None
    segment_count: int | None = None
    last_append_ms: int | None = None


class TopicFacts:
    """Asks brokers for facts about topics; a context manager that closes its connections."""

    def __init__(self, cluster: Cluster, connect: Connect) -> None:
        self._cluster = cluster
        self._connect = connect
        self._closing = ExitStack()
        self.positions = self._closing.enter_context(BoundaryFinder(cluster, connect))
        self._failures: dict[int, BrokerError] = {}
        self._unreadable: dict[TopicPartition, StorageError] = {}
        self._segment_counts: dict[int, dict[TopicPartition, int] | None] = {}

    def __enter__(self) -> TopicFacts:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.close()

    @property
    def failures(self) -> list[BrokerError]:
        """Return an error for each broker that did not respond."""
        return list(self._failures.values())

    @property
    def unreadable(self) -> list[StorageError]:
        """Return an error for each partition whose log its broker cannot read."""
        return list(self._unreadable.values())

    def check_any_response(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise BrokerError if none of the partitions' brokers has responded."""
        homes = {partition.home for partition in partitions}
        if homes and homes <= set(self._failures):
            raise self._failures[min(homes)]

    def ends(self, partition: TopicPartition) -> Ends:
        """Return the first offset and the end of a partition.

        Raises:
            BrokerError: its broker does not respond, or did not respond earlier, or cannot read
                its log.
        """

        def ask() -> Ends:
            return Ends(self.positions.earliest(partition), self.positions.latest(partition))

        return self._ask(partition, ask)

    def summary(self, topic: str) -> TopicSummary:
        """Return the partitions of a topic and their ends."""
        partitions = self._cluster.partitions(topic)
        try:
            ends = {partition: self.ends(partition) for partition in partitions}
        except _NO_FACTS:
            return TopicSummary(topic, partitions, None)
        return TopicSummary(topic, partitions, ends)

    def describe(self, partition: TopicPartition, *, now_ms: int) -> PartitionFacts:
        """Return the facts about an existing partition.

        Args:
            now_ms: current time in milliseconds since 1970.

        Raises:
            BrokerUnreachableError: its broker is not registered any more.
        """
        leader = self._cluster.leader(partition)

        def ask() -> PartitionFacts:
            starts = self.positions.segment_starts(partition)
            return PartitionFacts(
                partition,
                leader,
                Ends(starts[0], starts[-1]),
                self._segment_count(partition, starts),
                self._last_append_ms(partition, starts, now_ms),
            )

        try:
            return self._ask(partition, ask)
        except _NO_FACTS:
            return PartitionFacts(partition, leader)

    def watermarks(self, partition: TopicPartition) -> Watermarks | None:
        """Return log start, high watermark and log end; None if the broker does not respond."""
        try:
            return self._ask(partition, lambda: self.positions.watermarks(partition))
        except _NO_FACTS:
            return None

    def count_messages(
        self, ends: Mapping[TopicPartition, Ends], advance: Callable[[int], None]
    ) -> int:
        """Return the number of messages between the ends, by reading all of them.

        Args:
            ends: offsets to count between, on message boundaries.
            advance: called with the number of bytes of each chunk that was read.

        Raises:
            CliError: a message is corrupt.
            BrokerError: a broker is unreachable for longer than retries last.
        """
        ranges = {
            partition: ReadRange(MessagePosition(start), MessagePosition(end))
            for partition, (start, end) in ends.items()
        }
        return sum(count_messages(self._cluster, self._connect, ranges, advance).values())

    def _ask(self, partition: TopicPartition, request: Callable[[], _T]) -> _T:
        """Ask the broker of a partition, unless it failed to respond earlier."""
        home = partition.home
        if home in self._failures:
            raise self._failures[home]
        try:
            return request()
        except (BrokerUnreachableError, RequestTimeoutError) as error:
            self._failures[home] = error
            raise
        except StorageError as error:
            self._unreadable[partition] = error
            raise

    def _segment_count(self, partition: TopicPartition, starts: Sequence[int]) -> int:
        """Return the number of segments.

        A 0.7 broker lists segment starts only, in which an empty last segment and the end of the
        log look the same; there an empty last segment is not counted.
        """
        home = partition.home
        if home not in self._segment_counts:
            connection = self._connect(self._cluster.leader(partition))
            try:
                self._segment_counts[home] = _segment_counts(connection, home)
            finally:
                connection.close()
        counts = self._segment_counts[home]
        return max(1, len(starts) - 1) if counts is None else counts.get(partition, 0)

    def _last_append_ms(
        self, partition: TopicPartition, starts: Sequence[int], now_ms: int
    ) -> int | None:
        """Return the modification time of the last segment file.

        No request returns it. An offsets request for a time returns the segments modified before
        it, so the time is found by bisection.
        """
        if starts[0] == starts[-1]:
            return None
        last_start = starts[-2]

        def is_written(time_ms: int) -> bool:
            found = self.positions.by_time(partition, time_ms, rounded_up=False)
            return found is not None and found >= last_start

        time_ms = bisect_left(range(now_ms), True, key=is_written)
        return time_ms if time_ms < now_ms else None


def _segment_counts(connection: Connection, home: int) -> dict[TopicPartition, int] | None:
    """Return the segment counts in a broker's status; None for a 0.7 broker."""
    if connection.hello() is None:
        return None
    status: dict[str, Any] = json.loads(decode_document(connection.call(StatusRequest())))
    counts = {}
    for name, attributes in status["metrics"].items():
        log, _, index = name.removeprefix("logs.").rpartition("-")
        if name.startswith("logs.") and index.isdecimal():
            counts[TopicPartition(log, home, int(index))] = int(attributes["NumberOfSegments"])
    return counts


def brokers_of_07(cluster: Cluster, connect: Connect) -> list[BrokerAddress]:
    """Return the brokers that know only 0.7's requests and so cannot list their topics.

    Raises:
        BrokerError: a broker does not respond.
    """
    found = []
    for broker in cluster.brokers():
        connection = connect(broker)
        try:
            if connection.hello() is None:
                found.append(broker)
        finally:
            connection.close()
    return found


def count_messages(
    cluster: Cluster,
    connect: Connect,
    ranges: Mapping[TopicPartition, ReadRange],
    advance: Callable[[int], None],
) -> dict[TopicPartition, int]:
    """Return the number of messages in some ranges, by reading all of them.

    Messages inside compressed sets are counted one by one.

    Args:
        cluster: tells which broker has which partition.
        connect: makes connections.
        ranges: each with an end.
        advance: called with the number of bytes of each chunk that was read.

    Raises:
        InvalidMessageError: a message is corrupt.
        BrokerError: a broker is unreachable for longer than retries last.
    """
    counts = dict.fromkeys(ranges, 0)
    with ClusterReader(cluster, connect, ranges) as cluster_reader:
        for readers in cluster_reader.polls():
            for reader in readers:
                data = reader.data
                found = scan(data)
                with naming_partition(reader.partition):
                    wanted = slice_messages(
                        data, found, reader.offset, skip=reader.inner, end=reader.end
                    )
                counts[reader.partition] += wanted.message_count
                reader.take_valid(found.valid_bytes, found.fault)
                advance(found.valid_bytes)
    return counts
