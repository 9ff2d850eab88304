"""What is known of topics: their partitions, ends, segments, age and number of messages.

Asks brokers, each over one connection, and a broker that does not answer only once. Knows no
command and writes nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.consumer.list_offsets import Positions, Watermarks
from broker.errors import BrokerError, BrokerUnreachableError, RequestTimeoutError
from broker.protocol.extension_requests import StatusRequest
from broker.protocol.responses import BrokerAddress, decode_document
from broker.topic import TopicPartition
from pylogctl.cli.offset_resolution import Point, ResolvedRange
from pylogctl.consume.reading import count_messages

Answer = TypeVar("Answer")


class Ends(NamedTuple):
    """Where a partition starts, and the offset after the last message that can be read."""

    start: int
    end: int


class TopicSummary(NamedTuple):
    """A topic as a whole; `ends` are those of its partitions, None if a broker did not answer."""

    topic: str
    partitions: Sequence[TopicPartition]
    ends: dict[TopicPartition, Ends] | None

    @property
    def size_bytes(self) -> int | None:
        """Return how many bytes can be read."""
        return None if self.ends is None else sum(e.end - e.start for e in self.ends.values())


class PartitionFacts(NamedTuple):
    """A partition; what is unknown is None, all of it if its broker did not answer.

    `last_append_ms` is in milliseconds since 1970.
    """

    partition: TopicPartition
    leader: BrokerAddress
    ends: Ends | None = None
    segment_count: int | None = None
    last_append_ms: int | None = None


class TopicFacts:
    """Finds out about topics; ends with its block.

    Args:
        cluster: what exists.
        connect: makes connections to brokers.
    """

    def __init__(self, cluster: Cluster, connect: Connect) -> None:
        self._cluster = cluster
        self._connect = connect
        self._closing = ExitStack()
        self.positions = self._closing.enter_context(Positions(cluster, connect))
        """Looks up positions, over connections that end with the block as well."""
        self._failures: dict[int, BrokerError] = {}
        self._segment_counts: dict[int, dict[TopicPartition, int] | None] = {}

    def __enter__(self) -> TopicFacts:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.close()

    @property
    def failures(self) -> list[BrokerError]:
        """Return why brokers did not answer, one error for each broker."""
        return list(self._failures.values())

    def check_any_answer(self, partitions: Iterable[TopicPartition]) -> None:
        """Check that at least one broker of some partitions has answered so far.

        Raises:
            BrokerError: why one of them has not, if none has.
        """
        homes = {partition.home for partition in partitions}
        if homes and homes <= set(self._failures):
            raise self._failures[min(homes)]

    def ends(self, partition: TopicPartition) -> Ends:
        """Return where a partition starts and ends.

        Raises:
            BrokerError: its broker does not answer, or did not when it was asked before.
        """

        def ask() -> Ends:
            return Ends(self.positions.earliest(partition), self.positions.latest(partition))

        return self._ask(partition.home, ask)

    def summary(self, topic: str) -> TopicSummary:
        """Return a topic as a whole; a broker that does not answer is noted in `failures`."""
        partitions = self._cluster.partitions(topic)
        try:
            ends = {partition: self.ends(partition) for partition in partitions}
        except (BrokerUnreachableError, RequestTimeoutError):
            return TopicSummary(topic, partitions, None)
        return TopicSummary(topic, partitions, ends)

    def describe(self, partition: TopicPartition, *, now_ms: int) -> PartitionFacts:
        """Return all that is known of a partition; a broker that does not answer is noted.

        Args:
            partition: it exists.
            now_ms: the present moment, milliseconds since 1970.

        Raises:
            BrokerUnreachableError: its broker is not in the registry any more.
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
            return self._ask(partition.home, ask)
        except (BrokerUnreachableError, RequestTimeoutError):
            return PartitionFacts(partition, leader)

    def watermarks(self, partition: TopicPartition) -> Watermarks | None:
        """Return what bounds a partition's log; None if its broker does not answer, as noted."""
        try:
            return self._ask(partition.home, lambda: self.positions.watermarks(partition))
        except (BrokerUnreachableError, RequestTimeoutError):
            return None

    def count_messages(
        self, ends: Mapping[TopicPartition, Ends], advance: Callable[[int], None]
    ) -> int:
        """Return how many messages partitions have between their ends, by reading all of them.

        Args:
            ends: what to read.
            advance: called with the number of bytes read, again and again.

        Raises:
            CliError: a message is corrupt.
            BrokerError: a broker is gone for good.
        """
        ranges = {
            partition: ResolvedRange(Point(start), Point(end), ())
            for partition, (start, end) in ends.items()
        }
        return sum(count_messages(self._cluster, self._connect, ranges, advance).values())

    def _ask(self, home: int, question: Callable[[], Answer]) -> Answer:
        """Ask a broker, unless it has failed to answer before."""
        if home in self._failures:
            raise self._failures[home]
        try:
            return question()
        except (BrokerUnreachableError, RequestTimeoutError) as error:
            self._failures[home] = error
            raise

    def _segment_count(self, partition: TopicPartition, starts: Sequence[int]) -> int:
        """Return the number of segments, as the broker says or, for 0.7 ones, from their starts.

        A 0.7 broker's answer does not tell an empty last segment from the end of the log, so
        there it is not counted.
        """
        if partition.home not in self._segment_counts:
            self._segment_counts[partition.home] = self._ask_segment_counts(partition)
        counts = self._segment_counts[partition.home]
        return max(1, len(starts) - 1) if counts is None else counts.get(partition, 0)

    def _ask_segment_counts(self, partition: TopicPartition) -> dict[TopicPartition, int] | None:
        connection = self._connect(self._cluster.leader(partition))
        try:
            return _segment_counts(connection, partition.home)
        finally:
            connection.close()

    def _last_append_ms(
        self, partition: TopicPartition, starts: Sequence[int], now_ms: int
    ) -> int | None:
        """Return when the last segment was written to: the first time whose look-up finds it."""
        if starts[0] == starts[-1]:
            return None
        last_start = starts[-2]

        def is_written(time_ms: int) -> bool:
            found = self.positions.by_time(partition, time_ms, rounded_up=False)
            return found is not None and found >= last_start

        time_ms = bisect_left(range(now_ms), True, key=is_written)
        return time_ms if time_ms < now_ms else None


def _segment_counts(connection: Connection, home: int) -> dict[TopicPartition, int] | None:
    """Return the segment counts a broker tells with its status; None for a 0.7 broker."""
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
    """Return the brokers that know only 0.7's requests, which cannot tell their topics.

    Raises:
        BrokerError: a broker does not answer.
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
