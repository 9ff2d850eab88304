"""Finds message boundaries and counts messages; for brokers that cannot, by reading their log."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Generator
from contextlib import closing

from broker.client.list_offsets import DEFAULT_LEADER_WAIT_S, OffsetLister
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.errors import InvalidMessageError, OffsetOutOfRangeError, RequestTimeoutError
from broker.protocol.client_requests import OffsetKind
from broker.protocol.codec import (
    Record,
    RecordBatch,
    boundaries,
    count_unfolded,
    scan,
    scan_batches,
)
from broker.protocol.message_set import Entry, iter_entries
from broker.topic import MessagePosition, ReadRange, TopicPartition

_WALK_BYTES = 1 << 20
_ENTRY_BYTES = 1 << 16
_MAX_WAIT_MS = 100


class BoundaryFinder(OffsetLister):
    """Lists offsets, and finds the message boundaries between them."""

    def boundary_before(
        self, partition: TopicPartition, position: int, *, known: int | None = None
    ) -> int:
        """Return the message boundary at or before a position from log start to high watermark."""
        # `known`, a boundary at or before it, is where reading from a 0.7 broker starts; without
        # it, at the start of the segment
        if partition.has_records:
            return position
        if self.finds_boundaries(partition):
            return self.query(partition, OffsetKind.BOUNDARY_BEFORE, position).offset
        return self._boundaries_around(partition, position, known)[0]

    def boundary_after(
        self, partition: TopicPartition, position: int, *, known: int | None = None
    ) -> int:
        """Return the message boundary at or after a position; see `boundary_before`."""
        if partition.has_records:
            return position
        if self.finds_boundaries(partition):
            return self.query(partition, OffsetKind.BOUNDARY_AFTER, position).offset
        return self._boundaries_around(partition, position, known)[1]

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> list[tuple[int, int]]:
        """Return start offset and number of messages of the entries that start in a range.

        Each offset of a topic of format `kafka` counts as a record.
        """
        if partition.has_records:
            return [(offset, 1) for offset in range(start, end)]
        counts: list[tuple[int, int]] = []
        for offset, view in self._read(partition, start, end):
            for entry in iter_entries(view, offset):
                if entry.offset >= end:
                    break
                count = count_unfolded(entry.codec, entry.payload)[0] if entry.codec else 1
                counts.append((entry.offset, count))
        return counts

    def entry_at(self, partition: TopicPartition, offset: int) -> Entry:
        """Return the entry that starts at a boundary below the high watermark."""
        with closing(self._read(partition, offset, offset + 1, fetch_bytes=_ENTRY_BYTES)) as found:
            _, view = next(found)
            return next(iter_entries(view, offset))

    def record_at(
        self, partition: TopicPartition, offset: int, end: int
    ) -> tuple[Record, RecordBatch] | None:
        """Return the first record from an offset on, and the head of its batch.

        None if no record before `end` is left. The topic is of the format kafka.
        """
        until = ReadRange(MessagePosition(offset), MessagePosition(end))
        with ClusterReader(
            self.cluster,
            self.connect,
            {partition: until},
            fetch_bytes=_ENTRY_BYTES,
            max_wait_ms=_MAX_WAIT_MS,
        ) as cluster_reader:
            give_up_s = time.monotonic() + DEFAULT_LEADER_WAIT_S
            for ready in cluster_reader.polls():
                for reader in ready:
                    heads = scan_batches(reader.batches).batches
                    if records := reader.take_records():
                        first = records[0]
                        return first, next(one for one in heads if first.offset < one.next_offset)
                if time.monotonic() >= give_up_s:
                    raise RequestTimeoutError(f"nothing of {partition} from {offset} on was read")
        return None

    def _boundaries_around(
        self, partition: TopicPartition, position: int, known: int | None
    ) -> tuple[int, int]:
        """Return the boundaries before and after a position, reading from one before it."""
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
        """Give offset and bytes of whole entries, from `start` until past `end`."""
        # `end` is at most the high watermark; with an end inside an entry, the reader gives the
        # whole last entry that starts before it
        until = ReadRange(MessagePosition(start), MessagePosition(end - 1, 1))
        reader: PartitionReader | None = None
        with ClusterReader(
            self.cluster,
            self.connect,
            {partition: until},
            fetch_bytes=fetch_bytes,
            max_wait_ms=_MAX_WAIT_MS,
        ) as cluster_reader:
            give_up_s = time.monotonic() + DEFAULT_LEADER_WAIT_S
            for ready in cluster_reader.polls():
                if not ready:
                    # Of a broker of ours `reader` knows by itself a message that is too long. A
                    # lost one is waited for, as is a new leader that does not know yet what is
                    # committed.
                    if not cluster_reader.is_at_end_of_07 and time.monotonic() < give_up_s:
                        continue
                    at = start if reader is None else reader.offset
                    raise InvalidMessageError(
                        f"the message at {at} of {partition} is longer than the rest of the log"
                    )
                (reader,) = ready
                offset, view = reader.offset, reader.data
                found = scan(view)
                reader.take(found.valid_bytes)
                if found.valid_bytes:
                    yield offset, view[: found.valid_bytes]
                if reader.offset < end:
                    reader.take_valid(0, found.fault)
                give_up_s = time.monotonic() + DEFAULT_LEADER_WAIT_S
