"""Lists offsets of partitions: log start, ends, segment starts, and message boundaries.

A broker that knows only 0.7's requests cannot find message boundaries;
`broker.consumer.boundaries` finds them by reading.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple, Self

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.errors import NO_ERROR, error_for_code
from broker.protocol.extension_requests import ListOffsetsRequest, OffsetKind, OffsetQuery
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME, OffsetsRequest
from broker.protocol.responses import (
    ListedOffset,
    decode_list_offsets_response,
    decode_offsets_response,
)
from broker.topic import TopicPartition

_ALL_SEGMENTS = 1 << 20


class Watermarks(NamedTuple):
    """The three offsets that bound a partition's log.

    Attributes:
        log_start: offset of the first message.
        high_watermark: offset after the last message that can be read.
        log_end: offset after the last message written; None for a 0.7 broker.
    """

    log_start: int
    high_watermark: int
    log_end: int | None


class OffsetLister:
    """Lists offsets; keeps a connection to each broker until it is closed."""

    def __init__(self, cluster: Cluster, connect: Connect) -> None:
        self._cluster = cluster
        self._connect = connect
        self._connections: dict[int, Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def earliest(self, partition: TopicPartition) -> int:
        """Return the log start offset."""
        return self._offsets(partition, EARLIEST_TIME, 1)[0]

    def latest(self, partition: TopicPartition) -> int:
        """Return the offset after the last message that can be read."""
        return self._offsets(partition, LATEST_TIME, 1)[0]

    def log_end(self, partition: TopicPartition) -> int:
        """Return the offset after the last message written; `latest` on a 0.7 broker."""
        if not self.finds_boundaries(partition):
            return self.latest(partition)
        return self.query(partition, OffsetKind.LOG_END).offset

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return the log start, high watermark and log end, all of the same moment."""
        if not self.finds_boundaries(partition):
            return Watermarks(self.earliest(partition), self.latest(partition), None)
        found = self.query(partition, OffsetKind.LOG_END)
        return Watermarks(found.log_start_offset, found.high_watermark, found.offset)

    def finds_boundaries(self, partition: TopicPartition) -> bool:
        """Return whether the broker can find message boundaries; a 0.7 broker cannot."""
        return self._connection(partition).hello() is not None

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return the start offsets of the segments, oldest first, and the end of the log."""
        return self._offsets(partition, LATEST_TIME, _ALL_SEGMENTS)[::-1]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the start offset of a segment by its time of writing.

        Args:
            partition: to list.
            time_ms: milliseconds since 1970.
            rounded_up: return the start of the segment after the last one written before the
                time, instead of the start of that one.

        Returns:
            None if every segment was written later, or, rounded up, none follows.
        """
        found = self._offsets(partition, time_ms, 1)
        if not rounded_up:
            return found[0] if found else None
        starts = self.segment_starts(partition)
        index = bisect_right(starts, found[0]) if found else 0
        return starts[index] if index < len(starts) else None

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the offset of the next good message behind a corrupt one; None on a 0.7 broker."""
        if not self.finds_boundaries(partition):
            return None
        return self.query(partition, OffsetKind.BOUNDARY_AFTER, offset + 1).offset

    def query(self, partition: TopicPartition, kind: OffsetKind, argument: int = 0) -> ListedOffset:
        """Send a query for one offset to a broker with the extensions; return its response."""
        request = ListOffsetsRequest((OffsetQuery(partition, kind, argument),))
        connection = self._connection(partition)
        body = connection.repeat_if_lost(lambda: connection.call(request))
        (found,) = decode_list_offsets_response(body)
        if found.error != NO_ERROR:
            raise error_for_code(found.error, f"no position {argument} in {partition}")
        return found

    def _offsets(self, partition: TopicPartition, time_ms: int, max_offsets: int) -> list[int]:
        connection = self._connection(partition)
        request = OffsetsRequest(partition.topic, partition.index, time_ms, max_offsets)
        response = connection.repeat_if_lost(lambda: connection.ask(request))
        return decode_offsets_response(response)

    def _connection(self, partition: TopicPartition) -> Connection:
        connection = self._connections.get(partition.home)
        if connection is None:
            connection = self._connect(self._cluster.leader(partition))
            self._connections[partition.home] = connection
        return connection
