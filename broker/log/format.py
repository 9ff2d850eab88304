"""The two formats of a log: Kafka 0.7's entries, and the record batches of later Kafka.

`ENTRIES` has one file for each segment, and offsets that count bytes. `BATCHES` has Kafka's segment
files with their indexes, and offsets that count records.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from broker.errors import InvalidMessageError
from broker.log import batch_index, batches, scan, side_files
from broker.log.segment import (
    CopiedEntries,
    FoundScan,
    LogFormat,
    PlacedSet,
    Segment,
    SegmentFile,
    TimedOffset,
)
from broker.protocol import codec
from broker.protocol.codec import Fault, RecordBatch, boundaries
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import parse_head
from broker.topic import FORMAT_07, FORMAT_KAFKA, NO_HOME, TopicPartition


class EntryFormat:
    """Kafka 0.7: entries one after the other in one file, and offsets that count bytes."""

    name = FORMAT_07
    counts_records = False
    _NAME = re.compile(r"([0-9]{20})\.pylog", re.ASCII)

    is_good = staticmethod(scan.has_good_entry)
    around = staticmethod(scan.boundaries_despite_damage)

    def segment_name(self, base_offset: int) -> str:
        """Return 20 digits and `.pylog`."""
        return f"{base_offset:020d}.pylog"  # Kafka 0.7 `Log.nameFromOffset`

    def base_offset_of(self, name: str) -> int | None:
        """Return the base offset in the name of a segment of this broker."""
        found = self._NAME.fullmatch(name)
        return int(found[1]) if found else None

    def files_of(self, segment: Path) -> tuple[Path, ...]:
        """Return the file itself."""
        return (segment,)

    def open_end(self, segment: Segment) -> int:
        """Return the offset as many bytes behind the base as the file has."""
        return segment.base_offset + segment.size

    def prepare(self, segments: Sequence[Segment]) -> None:
        """Do nothing: there is no index to load."""

    def time_ms(self, segment: Segment) -> int:
        """Return when the segment was last appended to: entries have no time."""
        return segment.modified_ms

    def copied(
        self, chunk: Buffer, partition: object, offset: int, found: FoundScan | None = None
    ) -> CopiedEntries:
        """Return the whole entries of a chunk; see `LogFormat.copied`."""
        if not isinstance(found, codec.Scan):
            found = codec.scan(chunk)
        valid = _whole_part(chunk, partition, offset + found.valid_bytes, found)
        return CopiedEntries(valid, found.entry_count, offset + len(valid))

    def place(self, message_set: Buffer, offset: int, leader_epoch: int) -> PlacedSet:
        """Return the set as it is: entries do not hold their offsets, and none is looked at."""
        return message_set, offset + len(message_set), ()

    def close(self, segment: Segment) -> None:
        """Do nothing: the index is in memory only, for readers."""

    def shorten(self, segment: Segment) -> None:
        """Do nothing: the index is that of an open file."""

    def position(self, segment: Segment, file: SegmentFile, offset: int) -> int:
        """Return the bytes between base and offset."""
        return offset - segment.base_offset

    def offset(self, segment: Segment, file: SegmentFile, position: int) -> int:
        """Return the offset so many bytes behind the base."""
        return segment.base_offset + position

    def start_of(self, file: SegmentFile, start: int, position: int) -> int:
        """Return the start of the entry that holds a position, by the lengths of those before."""
        while start < position:
            block = os.pread(file.fd, min(scan.BLOCK_BYTES, position - start), start)
            length = boundaries(block)[-1]
            if length == 0:
                header = scan.read_header(file.fd, start)
                if header is None or not start < header.end <= position:
                    return start
                length = header.end - start
            start += length
        return start

    def find(self, fd: int, position: int, end: int) -> int | None:
        """Return the position of the next good entry."""
        return scan.find_entry(fd, position, end)

    def find_time(
        self, segment: Segment, file: SegmentFile, time_ms: int, offset: int
    ) -> TimedOffset | None:
        """Return None: entries have no time."""
        return None

    def valid_end(self, segment: Segment, file: SegmentFile, position: int) -> int:
        """Return where the valid entries end; the position counts only if it is a boundary."""
        end = _scan_to_fault(file.fd, position, segment.size)
        if end > position or position in (0, segment.size):
            return end
        try:
            if scan.boundaries_around(file, position, segment.size)[0] == position:
                return end
        except scan.ChainBrokenError:
            pass
        return _scan_to_fault(file.fd, 0, segment.size)


def _scan_to_fault(fd: int, position: int, size: int) -> int:
    end = position
    for block in scan.scan_blocks(fd, position, size):
        end = block.end
    return end


def _whole_part(chunk: Buffer, partition: object, offset: int, found: FoundScan) -> memoryview:
    """Return the part of a chunk before its fault, which is at an offset; only a cut is allowed."""
    if found.fault not in (Fault.NONE, Fault.PARTIAL):
        raise InvalidMessageError(
            f"{partition}: what another replica has at offset {offset} came damaged: "
            f"{found.fault.name}"
        )
    return memoryview(chunk)[: found.valid_bytes]


class BatchFormat:
    """Kafka since 0.11: record batches, and offsets that count records."""

    name = FORMAT_KAFKA
    counts_records = True
    _NAME = re.compile(r"([0-9]{20})\.log", re.ASCII)

    find = staticmethod(batches.find_batch)
    position = staticmethod(batch_index.position_of)
    offset = staticmethod(batch_index.offset_of)
    start_of = staticmethod(batch_index.start_of)
    close = staticmethod(batch_index.close)
    shorten = staticmethod(batch_index.shorten)
    find_time = staticmethod(batch_index.find_time)

    def segment_name(self, base_offset: int) -> str:
        """Return 20 digits and `.log`."""
        return f"{base_offset:020d}.log"

    def base_offset_of(self, name: str) -> int | None:
        """Return the base offset in the name of a segment of any Kafka since 0.8."""
        found = self._NAME.fullmatch(name)
        return int(found[1]) if found else None

    def files_of(self, segment: Path) -> tuple[Path, ...]:
        """Return the segment's indexes and the snapshot of producers at its start, then itself."""
        return (*(segment.with_suffix(one) for one in side_files.SUFFIXES), segment)

    def open_end(self, segment: Segment) -> int:
        """Return the offset behind the last batch whose head is good."""
        return batch_index.find_end(segment)[0]

    def prepare(self, segments: Sequence[Segment]) -> None:
        """Close the gaps that compaction has left, and load the index of the last segment."""
        for segment, following in itertools.pairwise(segments):
            if segment.next_offset < following.base_offset and (
                batch_index.find_end(segment)[1] == segment.size
            ):
                segment.next_offset = following.base_offset
        if segments:
            last = segments[-1]
            last.index = batch_index.load(last)
            last.next_offset = last.index.end[0]

    def time_ms(self, segment: Segment) -> int:
        """Return the largest timestamp of the records; without one, when it was appended to."""
        timestamp = batch_index.largest_timestamp(segment)[0]
        return timestamp if timestamp >= 0 else segment.modified_ms

    def copied(
        self, chunk: Buffer, partition: object, offset: int, found: FoundScan | None = None
    ) -> CopiedEntries:
        """Return the whole batches of a chunk; see `LogFormat.copied`."""
        if not isinstance(found, codec.BatchScan):
            found = codec.scan_batches(chunk)
        end = offset
        for batch in found.batches:
            # the first one may hold the offset, where the leader has deleted the records before it
            if batch.base_offset < end and (batch.position or batch.next_offset <= offset):
                raise InvalidMessageError(
                    f"{partition}: another replica has sent a batch of offset {batch.base_offset}, "
                    f"where {end} is the next one"
                )
            end = batch.next_offset
        valid = _whole_part(chunk, partition, end, found)
        count = sum(one.record_count for one in found.batches)
        return CopiedEntries(valid, count, end, found.batches)

    def place(self, message_set: Buffer, offset: int, leader_epoch: int) -> PlacedSet:
        """Return the batches with their offsets and the leader epoch."""
        content, next_offset = codec.stamp_batches(message_set, offset, leader_epoch)
        return content, next_offset, self.heads(content)

    def heads(self, content: Buffer) -> list[RecordBatch]:
        """Return what the heads of whole batches tell."""
        heads, position, rest = [], 0, memoryview(content)
        while rest and (head := parse_head(rest, position)):
            heads.append(head)
            position += head.size
            rest = rest[head.size :]
        return heads

    def around(self, file: SegmentFile, position: int, end: int) -> tuple[int, int]:
        """Return the position itself: it is known to be a start."""
        return position, position

    def is_good(self, fd: int, position: int, end: int) -> bool:
        """Return whether a whole batch with a good CRC starts at a position."""
        return batches.good_head(fd, position, end) is not None

    def valid_end(self, segment: Segment, file: SegmentFile, position: int) -> int:
        """Return where the valid batches end: CRCs are good, and offsets rise."""
        least_offset = segment.base_offset
        for block in batches.scan_batch_blocks(file.fd, position, segment.size):
            for batch in block.scan.batches:
                relative = batch.last_offset - segment.base_offset
                if batch.base_offset < least_offset or relative > batch_index.MAX_RELATIVE:
                    return block.position + batch.position
                least_offset = batch.next_offset
            position = block.end
        return position


ENTRIES: LogFormat = EntryFormat()
BATCHES = BatchFormat()
segment_name = ENTRIES.segment_name


def format_of(partition: TopicPartition) -> LogFormat:
    """Return the format of a partition's log."""
    return BATCHES if partition.home == NO_HOME else ENTRIES
