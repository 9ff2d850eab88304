"""Where things are in a partition: ends, segment starts by time, message boundaries.

Asks the broker that serves the partition. A broker that knows only 0.7's requests cannot look up
message boundaries, so they are found by reading from the start of the segment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator
from contextlib import closing
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.consumer.chunk import MessageStream
from broker.consumer.fetcher import Fetcher
from broker.errors import (
    NO_ERROR,
    InvalidMessageError,
    OffsetOutOfRangeError,
    error_for_code,
)
from broker.protocol.codec import Fault, boundaries, scan, unfold
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import Lookup, LookupRequest, PartitionLookup
from broker.protocol.message_set import Entry, describe_fault, iter_entries
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME, OffsetsRequest
from broker.protocol.responses import (
    LookedUp,
    decode_lookup_response,
    decode_offsets_response,
)
from broker.topic import TopicPartition

_ALL_SEGMENTS = 1 << 20
_WALK_BYTES = 1 << 20
_ENTRY_BYTES = 1 << 16


class Watermarks(NamedTuple):
    """The three offsets that bound a partition's log.

    Attributes:
        log_start: of the first message there is.
        high_watermark: after the last message that can be read.
        log_end: after the last message written; None for a broker of 0.7, which does not tell.
    """

    log_start: int
    high_watermark: int
    log_end: int | None


class Positions:
    """Looks up positions in partitions; keeps a connection to each broker it asked.

    Args:
        cluster: tells which broker serves a partition.
        connect: makes connections.
    """

    def __init__(self, cluster: Cluster, connect: Connect) -> None:
        self._cluster = cluster
        self._connect = connect
        self._connections: dict[int, Connection] = {}

    def __enter__(self) -> Positions:
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
        """Return the offset after the last message written; a 0.7 broker tells only `latest`."""
        if self._connection(partition).hello() is None:
            return self.latest(partition)
        return self._lookup(partition, Lookup.LOG_END, 0)

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return where a partition's log starts, can be read up to, and ends, at one moment."""
        if self._connection(partition).hello() is None:
            return Watermarks(self.earliest(partition), self.latest(partition), None)
        found = self._looked_up(partition, Lookup.LOG_END, 0)
        return Watermarks(found.log_start_offset, found.high_watermark, found.offset)

    def has_lookup(self, partition: TopicPartition) -> bool:
        """Return whether the broker finds message boundaries itself; a 0.7 broker does not."""
        return self._connection(partition).hello() is not None

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return where segments start, oldest first, and the end of the log as the last item."""
        return self._offsets(partition, LATEST_TIME, _ALL_SEGMENTS)[::-1]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the start of a segment found by time.

        Args:
            partition: where to look.
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

    def boundary_before(
        self, partition: TopicPartition, position: int, *, known: int | None = None
    ) -> int:
        """Return the message boundary at or before a position.

        Args:
            partition: where to look.
            position: any position in what can be read.
            known: a boundary at or before it, from where to read if the broker cannot look up;
                the start of the segment if None.

        Raises:
            OffsetOutOfRangeError: the position is outside what can be read.
        """
        if self._connection(partition).hello() is not None:
            return self._lookup(partition, Lookup.BOUNDARY_BEFORE, position)
        return self._walk_to(partition, position, known)[0]

    def boundary_after(
        self, partition: TopicPartition, position: int, *, known: int | None = None
    ) -> int:
        """Return the message boundary at or after a position.

        Args:
            partition: where to look.
            position: any position in what can be read.
            known: a boundary at or before it, from where to read if the broker cannot look up;
                the start of the segment if None.

        Raises:
            OffsetOutOfRangeError: the position is outside what can be read.
        """
        if self._connection(partition).hello() is not None:
            return self._lookup(partition, Lookup.BOUNDARY_AFTER, position)
        return self._walk_to(partition, position, known)[1]

    def behind_damage(self, partition: TopicPartition, offset: int) -> int | None:
        """Return where the next good message starts behind a damaged one.

        Args:
            partition: where it is.
            offset: where the damaged one starts.

        Returns:
            None if the broker cannot tell, as 0.7 ones cannot.
        """
        if not self.has_lookup(partition):
            return None
        return self.boundary_after(partition, offset + 1)

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> list[tuple[int, int]]:
        """Return start offset and number of messages of each entry in a range.

        Args:
            partition: where to look.
            start: a message boundary.
            end: where to stop; an entry that starts before it counts.

        Raises:
            InvalidMessageError: a message in the range is corrupt.
        """
        counts: list[tuple[int, int]] = []
        for offset, view in self._read(partition, start, end):
            for entry in iter_entries(view, offset):
                if entry.offset >= end:
                    break
                codec = entry.codec or Codec.NONE
                counts.append((entry.offset, len(unfold(codec, entry.payload)) if codec else 1))
        return counts

    def entry_at(self, partition: TopicPartition, offset: int) -> Entry:
        """Return the entry, a message or a compressed set, that starts at a message boundary.

        Args:
            partition: where to look.
            offset: a boundary before the end of what can be read.

        Raises:
            InvalidMessageError: it is corrupt, or no entry starts there.
            OffsetOutOfRangeError: there is nothing to be read there any more.
        """
        with closing(self._read(partition, offset, offset + 1, fetch_bytes=_ENTRY_BYTES)) as found:
            _, view = next(found)
            return next(iter_entries(view, offset))

    def _walk_to(
        self, partition: TopicPartition, position: int, known: int | None
    ) -> tuple[int, int]:
        """Return the boundaries around a position, reading from one before it."""
        starts = self.segment_starts(partition)
        if not starts[0] <= position <= starts[-1]:
            raise OffsetOutOfRangeError(
                f"{position} is not within {starts[0]}..{starts[-1]} of {partition}"
            )
        before = starts[bisect_right(starts, position) - 1] if known is None else known
        for offset, view in self._read(partition, before, starts[-1]):
            if before == position:
                break
            for boundary in boundaries(view):
                if offset + boundary >= position:
                    after = offset + boundary
                    return (after if after == position else before), after
                before = offset + boundary
        return before, before

    def _read(
        self, partition: TopicPartition, start: int, end: int, *, fetch_bytes: int = _WALK_BYTES
    ) -> Generator[tuple[int, memoryview], None, None]:
        """Give offset and bytes of stretches of whole entries, from `start` until past `end`.

        `end` lies before the end of what can be read, or there.
        """
        connection = self._connect(self._cluster.leader(partition))
        fetcher = Fetcher(connection, {partition: start}, fetch_bytes=fetch_bytes, max_wait_ms=0)
        stream = MessageStream(start)
        try:
            while stream.offset < end:
                pieces = fetcher.poll()
                if not any(len(piece.data) or piece.error for piece in pieces):
                    raise InvalidMessageError(
                        f"the message at {stream.offset} of {partition} is longer than all there is"
                    )
                for piece in pieces:
                    if piece.error != NO_ERROR:
                        raise piece.failure()
                    view = stream.add(piece.data)
                    found = scan(view)
                    if found.valid_bytes:
                        yield stream.offset, view[: found.valid_bytes]
                        stream.take(found.valid_bytes)
                    if found.fault not in (Fault.NONE, Fault.PARTIAL) and stream.offset < end:
                        damage = describe_fault(found.fault, stream.offset)
                        raise InvalidMessageError(f"{partition}: {damage}")
        finally:
            fetcher.close()

    def _lookup(self, partition: TopicPartition, kind: Lookup, argument: int) -> int:
        return self._looked_up(partition, kind, argument).offset

    def _looked_up(self, partition: TopicPartition, kind: Lookup, argument: int) -> LookedUp:
        request = LookupRequest((PartitionLookup(partition, kind, argument),))
        connection = self._connection(partition)
        body = connection.repeat_if_lost(lambda: connection.call(request))
        (found,) = decode_lookup_response(body)
        if found.error != NO_ERROR:
            raise error_for_code(found.error, f"no position {argument} in {partition}")
        return found

    def _offsets(self, partition: TopicPartition, time_ms: int, max_offsets: int) -> list[int]:
        connection = self._connection(partition)
        request = OffsetsRequest(partition.topic, partition.index, time_ms, max_offsets)
        answer = connection.repeat_if_lost(lambda: connection.ask(request))
        return decode_offsets_response(answer)

    def _connection(self, partition: TopicPartition) -> Connection:
        connection = self._connections.get(partition.home)
        if connection is None:
            connection = self._connect(self._cluster.leader(partition))
            self._connections[partition.home] = connection
        return connection
