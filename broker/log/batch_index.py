"""Which position an offset, or a time, has in a segment of record batches.

The index of a segment that is appended to is kept in memory, and written to Kafka's files when the
segment is closed. That of a closed segment is read from its files, by bisection. A row is a hint
until the head of the batch at its position confirms it: files that are lost, cut or wrong are
written anew from the heads of the batches.
"""

from __future__ import annotations

import itertools
import logging
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from broker.errors import LogCorruptError
from broker.files import opened, write_all
from broker.log import side_files
from broker.log.batches import find_batch, read_head
from broker.log.scan import read_range
from broker.log.segment import Segment, SegmentFile, TimedOffset
from broker.protocol import codec
from broker.protocol.record_batch import LEAST_BYTES, MAGIC, NO_TIMESTAMP, RecordBatch

logger = logging.getLogger(__name__)

_BLOCK_BYTES = 8 << 10
_LARGE_BLOCK_BYTES = 1 << 20
_MANY_HEADS = 64
"""In a block: the next one may be larger."""
_MOST_BEHIND_ROW = 128
"""Heads behind the last row of an index; with more of them rows are missing."""
_HEAD = struct.Struct(">qi4xb6xi")  # base offset, size, magic, last offset delta
_SIZE_FROM = 12
_MAX_INT64 = 2**63 - 1
_SUFFIXES = side_files.INDEX_SUFFIX, side_files.TIME_INDEX_SUFFIX
MAX_RELATIVE = 2**31 - 1
"""The largest offset, and position, that a row of an index can have."""


class BatchPlace(NamedTuple):
    """A batch in a segment file, as its head tells."""

    position: int
    base_offset: int  # of messages of formats 0 and 1 the last one
    last_offset: int
    end: int


def walk_places(fd: int, position: int, end: int, least_offset: int = 0) -> Iterator[BatchPlace]:
    """Yield the whole batches from a position on, up to one whose head cannot be right.

    Args:
        fd: of the segment file.
        position: where a batch starts.
        end: of the range, where a batch ends.
        least_offset: the lowest that the first batch can have.
    """
    block_bytes = _HEAD.size
    while position < end:
        block = os.pread(fd, min(block_bytes, end - position), position)
        if len(block) < _HEAD.size:
            block += bytes(_HEAD.size - len(block))  # a message of format 0 can be shorter
        at = count = 0
        while at + _HEAD.size <= len(block):
            offset, size, magic, delta = _HEAD.unpack_from(block, at)
            size += _SIZE_FROM
            if magic != MAGIC:
                delta = 0
            is_possible = size >= LEAST_BYTES and 0 <= magic <= MAGIC and delta >= 0
            if not is_possible or offset < least_offset or position + at + size > end:
                return
            least_offset = offset + delta + 1
            start, end_of_batch = position + at, position + at + size
            # in half the time that the class takes
            yield tuple.__new__(BatchPlace, (start, offset, offset + delta, end_of_batch))
            at += size
            count += 1
        position += at
        if count > _MANY_HEADS:
            block_bytes = _LARGE_BLOCK_BYTES
        elif at < count * _BLOCK_BYTES:  # else there is a batch in each block
            block_bytes = _BLOCK_BYTES


class BatchIndex:
    """The index of one segment in memory, added to while the segment is appended to."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._rows = side_files.IndexRows(base_offset)
        self.floor = self._rows.floor
        self.floor_of_time = self._rows.floor_of_time
        self.first_timestamp = NO_TIMESTAMP
        """The largest one of the first batch."""
        self.is_from_files = False
        """Whether there are rows that nothing has confirmed."""
        self.end = (base_offset, 0)
        """The offset behind the last batch, and its position; replaced in one step."""

    @property
    def largest(self) -> tuple[int, int]:
        """Return the largest timestamp, and the last offset of the first batch that has it."""
        return self._rows.largest

    @property
    def last_row(self) -> tuple[int, int] | None:
        """Return the last offset and the position of the last row, None without any."""
        return self._rows.last

    def needs_roll(self, heads: Sequence[RecordBatch], age_ms: int, roll_ms: int) -> bool:
        """Return whether the records are too much younger, or their offsets too far away."""
        if self.end[1] > MAX_RELATIVE:
            return True
        youngest = NO_TIMESTAMP
        for one in heads:
            if one.base_offset + one.last_offset_delta - self._base_offset > MAX_RELATIVE:
                return True
            if one.max_timestamp > youngest:
                youngest = one.max_timestamp
        if self.first_timestamp >= 0 and youngest >= 0:
            return youngest - self.first_timestamp > roll_ms
        return age_ms > roll_ms

    def add(self, batch: RecordBatch, position: int = 0) -> None:
        """Add a batch that was appended behind all others, at its position behind the given one."""
        position += batch.position
        last_offset = batch.base_offset + batch.last_offset_delta
        if not position:
            self.first_timestamp = batch.max_timestamp
        self._rows.add(position, last_offset, batch.max_timestamp)
        self.end = (last_offset + 1, position + batch.size)

    def read(self, segment: Path) -> None:
        """Take the rows of the files beside a segment; `LogCorruptError`, `OSError` without."""
        self.is_from_files = True
        self._rows.read(segment)

    def write(self, segment: Path) -> None:
        """Write the files beside a segment, which is complete; an `OSError` if it is refused."""
        self._rows.finish()
        for suffix, content in zip(_SUFFIXES, self._rows.contents, strict=True):
            # neither durable nor in one step: rows that a crash leaves are no more than hints
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with opened(segment.with_suffix(suffix), flags) as fd:
                write_all(fd, memoryview(content))


def position_of(segment: Segment, file: SegmentFile, offset: int) -> int:
    """Return where the batch with an offset starts, or else the first one behind it.

    Where the batch is damaged, that is its start; behind the last one it is the segment's size.
    """
    if offset <= segment.base_offset:
        return 0
    index = segment.index
    if index is None:
        if offset >= segment.next_offset:
            return segment.size
        size = segment.size
    else:
        next_offset, size = index.end
        if offset >= next_offset:
            return size
    position = _floor(segment, file, offset)
    least_offset = segment.base_offset
    count = 0
    while True:
        for place in walk_places(file.fd, position, size, least_offset):
            if place.last_offset >= offset:
                return place.position
            position, least_offset = place.end, place.last_offset + 1
            count += 1
            if count > _MOST_BEHIND_ROW and segment.index is None:
                count = -size  # once
                rebuild(segment, file)
        following = find_batch(file.fd, position + 1, size) if position < size else None
        if following is None:
            return position
        head = read_head(file.fd, following)
        if head is None or offset < head.base_offset:
            return position
        position, least_offset = following, head.base_offset


def offset_of(segment: Segment, file: SegmentFile, position: int) -> int:
    """Return the offset behind the batches before a position, as far as the file can be read."""
    offset = segment.base_offset
    with suppress(OSError):
        for place in walk_places(file.fd, 0, segment.size, offset):
            if place.end > position:
                break
            offset = place.last_offset + 1
    return offset


def start_of(file: SegmentFile, start: int, position: int) -> int:
    """Return the start of the batch that holds a position, walking from the start of another."""
    for place in walk_places(file.fd, start, os.fstat(file.fd).st_size):
        if place.end > position:
            return place.position
        start = place.end
    return start


def find_end(segment: Segment) -> tuple[int, int]:
    """Return the offset behind the last batch of a segment that was found, and its position.

    Where the file ends inside a batch, or the last one's head is damaged, that is before it.
    """
    end = segment.base_offset, 0
    if not segment.size:
        return end
    file = segment.open()
    position = _floor(segment, file, segment.base_offset + MAX_RELATIVE)
    for place in walk_places(file.fd, position, segment.size, segment.base_offset):
        end = place.last_offset + 1, place.end
    return end


def _floor(segment: Segment, file: SegmentFile, offset: int) -> int:
    """Return the position of a batch at or before the one with an offset, by the index."""
    index = segment.index
    if index is not None:
        row = index.floor(offset)
        if not index.is_from_files:
            return row[1]
    else:
        rows = file.rows
        if rows is None or not rows.are_around(offset):
            path = segment.path.with_suffix(side_files.INDEX_SUFFIX)
            try:
                rows = file.rows = side_files.rows_from(path, segment.base_offset, offset)
            except OSError:  # it is missing, or the process has no descriptor left
                return 0
        row = rows.floor(offset)
    last_offset, position = row
    if position <= 0:  # there is none, or it is damaged
        return 0
    for place in walk_places(file.fd, position, segment.size):
        return position if last_offset in place[1:3] else 0
    return 0


def load(segment: Segment) -> BatchIndex:
    """Return the index of a segment that will be appended to, from its files or its batches."""
    index, end = BatchIndex(segment.base_offset), (segment.base_offset, 0)
    if not segment.size:
        return index
    file = segment.open()
    try:
        index.read(segment.path)
    except (OSError, LogCorruptError):
        return _index_of(segment, file)
    row = index.last_row or end
    (largest, timed_offset), is_timed = index.largest, False
    position = min(row[1], index.floor(timed_offset)[1])  # rows of times can be missing, too
    places = walk_places(file.fd, position, segment.size, segment.base_offset)
    for place in itertools.islice(places, _MOST_BEHIND_ROW):
        head = read_head(file.fd, place.position)
        if head is None or head.max_timestamp > largest:
            break
        if place.base_offset <= timed_offset <= place.last_offset:
            is_timed = head.max_timestamp == largest
        if place.position == row[1] and row[1] and place.last_offset != row[0]:
            break
        end = (place.last_offset + 1, place.end)
    if end[1] != segment.size or not is_timed:
        return _index_of(segment, file)
    index.end = end
    if (first := read_head(file.fd, 0)) is not None:
        index.first_timestamp = first.max_timestamp
    return index


def _heads_from(segment: Segment, file: SegmentFile, position: int) -> Iterator[RecordBatch]:
    for place in walk_places(file.fd, position, segment.size, segment.base_offset):
        head = read_head(file.fd, place.position)
        if head is None:
            break
        yield head


def _index_of(segment: Segment, file: SegmentFile) -> BatchIndex:
    """Return the index that the heads of a segment's batches tell."""
    index = BatchIndex(segment.base_offset)
    for head in _heads_from(segment, file, 0):
        index.add(head)
    return index


def rebuild(segment: Segment, file: SegmentFile) -> None:
    """Write the files of a closed segment's index anew, from the heads of its batches."""
    logger.warning("%s: the index is written anew", segment.path)
    segment.index = _index_of(segment, file)
    close(segment)
    file.rows = None


def shorten(segment: Segment) -> None:
    """Write the index of a segment that was cut anew, from the heads that are left."""
    segment.index = _index_of(segment, segment.open())
    close(segment)


def close(segment: Segment) -> None:
    """Write the files of an index that is complete; it stays in memory if the disk refuses."""
    index = segment.index
    if index is None or segment.is_removed:  # else another segment has files of these names
        return
    try:
        index.write(segment.path)
    except OSError as error:
        logger.warning("%s: the index is kept in memory only: %s", segment.path, error)
    else:
        segment.index = None


def largest_timestamp(segment: Segment) -> tuple[int, int]:
    """Return the largest timestamp of a segment's records, and an offset up to which it is reached.

    The timestamp is -1 if no record has one.
    """
    if (index := segment.index) is not None:
        return index.largest
    if segment.largest is None:
        try:
            segment.largest = _read_largest(segment)
        except OSError:  # asked again the next time
            return side_files.NO_TIME
    return segment.largest


def _read_largest(segment: Segment) -> tuple[int, int]:
    """Return what the last row of the time index tells, if the heads from its batch on confirm it.

    Where rows are missing, retention would remove the segment too early.
    """
    path = segment.path.with_suffix(side_files.TIME_INDEX_SUFFIX)
    file = segment.open()
    with suppress(FileNotFoundError):
        row = side_files.find_timed(path, segment.base_offset, _MAX_INT64)
        position = position_of(segment, file, row.offset)
        head = read_head(file.fd, position)
        if head is not None and head.max_timestamp == row.timestamp and row.timestamp:
            heads = _heads_from(segment, file, position)
            youngest = max(heads, key=attrgetter("max_timestamp"))
            return youngest.max_timestamp, youngest.last_offset
    return _index_of(segment, file).largest


def find_time(segment: Segment, file: SegmentFile, time_ms: int, offset: int) -> TimedOffset | None:
    """Return the first record of a segment from an offset and a time on, None without one."""
    largest, _ = largest_timestamp(segment)
    if largest < time_ms:
        return None
    start = max(offset, _offset_before(segment, file, time_ms))
    position = position_of(segment, file, start)
    for place in walk_places(file.fd, position, segment.size):
        head = read_head(file.fd, place.position)
        if head is None or head.max_timestamp < time_ms:
            continue
        data = read_range(file.fd, place.position, head.size)
        for record in codec.decode_records(data).records:
            if record.timestamp >= time_ms and record.offset >= offset:
                return TimedOffset(record.timestamp, record.offset)
    return None


def _offset_before(segment: Segment, file: SegmentFile, time_ms: int) -> int:
    """Return an offset up to which the batches of a segment are of before a time, by the index."""
    if (index := segment.index) is not None:
        return index.floor_of_time(time_ms)
    path = segment.path.with_suffix(side_files.TIME_INDEX_SUFFIX)
    with suppress(OSError):
        row = side_files.find_timed(path, segment.base_offset, time_ms - 1)
        head = read_head(file.fd, position_of(segment, file, row.offset))
        if head is not None and head.max_timestamp == row.timestamp:
            return row.offset
    return segment.base_offset
