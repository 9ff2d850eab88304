"""Lists offsets of partitions: log start, ends, segment starts, and message boundaries.

The broker that serves a partition responds. A broker that knows only 0.7's requests does not know
message boundaries; `broker.consumer.boundaries` finds them by reading.
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
        log_start: of the first message there is.
        high_watermark: after the last message that can be read.
        log_end: after the last message written; None for a 0.7 broker, which does not list it.
    """

    log_start: int
    high_watermark: int
    log_end: int | None


class OffsetLister:
    """Lists offsets; keeps a connection to each broker it has asked.

    Args:
        cluster: tells which broker serves a partition.
        connect: makes connections.
    """

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
        """Return where a partition's log starts, can be read up to, and ends, at one moment."""
        if not self.finds_boundaries(partition):
            return Watermarks(self.earliest(partition), self.latest(partition), None)
        found = self.query(partition, OffsetKind.LOG_END)
        return Watermarks(found.log_start_offset, found.high_watermark, found.offset)

    def finds_boundaries(self, partition: TopicPartition) -> bool:
        """Return whether the broker finds message boundaries itself; a 0.7 broker does not."""
        return self._connection(partition).hello() is not None

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return where segments start, oldest first, and the end of the log as the last item."""
        return self._offsets(partition, LATEST_TIME, _ALL_SEGMENTS)[::-1]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the start of a segment found by time.

        Args:
            partition: whose segments.
            time_ms: milliseconds since 1970.
            rounded_up: the first segment start after the last one not after the time, instead of
                that one.

        Returns:
            None when every segment was written later, or, rounded up, none starts later.
        """
        found = self._offsets(partition, time_ms, 1)
        if not rounded_up:
            return found[0] if found else None
        starts = self.segment_starts(partition)
        place = bisect_right(starts, found[0]) if found else 0
        return starts[place] if place < len(starts) else None

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        """Return where the next good message starts behind a corrupt one at an offset.

        Returns:
            None if the broker cannot tell, as 0.7 ones cannot.
        """
        if not self.finds_boundaries(partition):
            return None
        return self.query(partition, OffsetKind.BOUNDARY_AFTER, offset + 1).offset

    def query(self, partition: TopicPartition, kind: OffsetKind, argument: int = 0) -> ListedOffset:
        """Return what a broker with the extensions responds to a query for one offset."""
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
