"""Kafka's files beside the segments of a partition: each entry is validated when it is read.

    | file                      | entries                                                        |
    |---------------------------|----------------------------------------------------------------|
    | `.index`                  | relative offset int32, position int32 of a batch               |
    | `.timeindex`              | largest timestamp up to there int64, its relative offset int32 |
    | `.txnindex`               | an aborted transaction: version int16, then four int64         |
    | `.snapshot`               | version int16, CRC-32C, count int32; the producers             |
    | `leader-epoch-checkpoint` | text: version, count; lines of epoch and start offset          |
    | `partition.metadata`      | text: version and topic id                                     |

Relative offsets count from the segment's base offset. The two indexes of a segment that a broker
appends to are filled with zeros to their full size. Nothing is kept in memory but a block.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from broker.cluster_state import EpochStart
from broker.errors import LogCorruptError
from broker.files import opened, sync_directory, write_all, write_atomically
from broker.log.batches import scan_batch_blocks
from broker.log.scan import BLOCK_BYTES, crc_of_range, read_range
from broker.protocol import codec

_FLAGS = os.O_RDONLY | os.O_NONBLOCK  # the open of a FIFO would wait for a writer

INDEX_SUFFIX, TIME_INDEX_SUFFIX = ".index", ".timeindex"
ABORTED_SUFFIX, SNAPSHOT_SUFFIX = ".txnindex", ".snapshot"
INTERVAL_BYTES = 4096  # `index.interval.bytes` by default
EPOCHS_NAME = "leader-epoch-checkpoint"
METADATA_NAME = "partition.metadata"
SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX, SNAPSHOT_SUFFIX)

_INDEX_ENTRY = struct.Struct(">ii")
_BLOCK_ROWS = 512
NO_TIME = (-1, 0)
_BEHIND_LAST = (2**63, 0)  # the zeros at the end
_TIME_INDEX_ENTRY = struct.Struct(">qi")
_ABORTED_ENTRY = struct.Struct(">hqqqq")
ABORTED_ENTRY_BYTES = _ABORTED_ENTRY.size
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_CHECKED_FROM = 6
_PRODUCER = struct.Struct(">qhiqiqiq")
_MAX_TEXT_BYTES = 16 << 20  # half a million epochs
_METADATA = re.compile(rb"version: 0\r?\ntopic_id: ([\w-]{22})\s*", re.ASCII)


def is_side_file(path: Path) -> bool:
    """Return whether a path has the name of a file that Kafka keeps beside segments."""
    return path.suffix in SUFFIXES or path.name in (EPOCHS_NAME, METADATA_NAME)


class SideFileError(LogCorruptError):
    """A file beside a segment is damaged, or contradicts the segment."""

    def __init__(self, path: Path, position: int, expected: str, found: str) -> None:
        super().__init__(f"{path}: position {position}: expected {expected}, found {found}")
        self.path = path
        self.position = position
        self.expected = expected
        self.found = found


class IndexEntry(NamedTuple):
    """The place of a batch in a segment, at a position of an `.index` file.

    Since Kafka 1.1 the offset is the last one that was appended together with the batch, before
    that the first one.
    """

    at: int
    offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """The largest timestamp of a segment up to an offset, at a position of a `.timeindex` file."""

    at: int
    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """An aborted transaction whose mark is in the segment."""

    producer_id: int
    first_offset: int
    last_offset: int  # that of the mark
    last_stable_offset: int


class ProducerState(NamedTuple):
    """What a broker remembers of a producer, as of the offset in the name of a `.snapshot`."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int  # -1 if none is open


def read_index(path: Path, base_offset: int) -> Iterator[IndexEntry]:
    """Yield the entries of an `.index` file, whose offsets and positions rise."""
    last_offset, last_position = -1, -1
    for at, (offset, position) in _index_rows(path, _INDEX_ENTRY):
        if offset <= last_offset:
            raise SideFileError(path, at, f"a relative offset above {last_offset}", str(offset))
        if position <= last_position:
            raise SideFileError(path, at, f"a position above {last_position}", str(position))
        yield IndexEntry(at, base_offset + offset, position)
        last_offset, last_position = offset, position


def find_indexed(path: Path, base_offset: int, offset: int) -> IndexEntry:
    """Return the last entry of an `.index` file up to an offset, found by bisection; 0s if none.

    What is before and behind the entry is not validated, so it is a hint.
    """
    at, row = _find(path, _INDEX_ENTRY, offset - base_offset)
    relative, position = _INDEX_ENTRY.unpack(row)
    return IndexEntry(at, base_offset + relative, position)


def rows_from(path: Path, base_offset: int, offset: int) -> IndexRows:
    """Return rows of an `.index` file from that of `find_indexed` on: for the next offsets, too."""
    rows = IndexRows(base_offset)
    rows.take(_find(path, _INDEX_ENTRY, offset - base_offset, _BLOCK_ROWS)[1])
    return rows


def find_timed(path: Path, base_offset: int, time_ms: int) -> TimeIndexEntry:
    """Return the last entry of a `.timeindex` file up to a time, as `find_indexed` does."""
    at, row = _find(path, _TIME_INDEX_ENTRY, time_ms)
    timestamp, relative = _TIME_INDEX_ENTRY.unpack(row)
    return TimeIndexEntry(at, timestamp, base_offset + relative)


def _find(path: Path, layout: struct.Struct, limit: int, count: int = 1) -> tuple[int, bytes]:
    """Return the place of the last row whose first field is at most a limit, and rows from it on.

    `count` is how many at most; a row of zeros is all if there is none.
    """

    def rows_at(row: int, count: int) -> bytes:
        return os.pread(fd, count * layout.size, row * layout.size).ljust(layout.size, b"\0")

    def row_at(row: int) -> tuple[int, int]:
        first, second = layout.unpack(rows_at(row, 1))
        return (first, second) if second >= 0 and (first or second) else _BEHIND_LAST

    with opened(path, _FLAGS) as fd:
        rows = range(os.fstat(fd).st_size // layout.size)
        row = bisect_right(rows, limit, key=lambda row: row_at(row)[0]) - 1
        return (row * layout.size, rows_at(row, count)) if row >= 0 else (0, bytes(layout.size))


def read_time_index(path: Path, base_offset: int) -> Iterator[TimeIndexEntry]:
    """Yield the entries of a `.timeindex` file, whose timestamps and offsets rise."""
    last_timestamp, last_offset = -1, -1
    for at, (timestamp, offset) in _index_rows(path, _TIME_INDEX_ENTRY):
        if timestamp <= last_timestamp:
            raise SideFileError(path, at, f"a timestamp above {last_timestamp}", str(timestamp))
        if offset < max(last_offset, 0):
            raise SideFileError(path, at, f"a relative offset from {last_offset} on", str(offset))
        yield TimeIndexEntry(at, timestamp, base_offset + offset)
        last_timestamp, last_offset = timestamp, offset


def _index_rows(path: Path, layout: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield positions and fields of the entries before the zeros at the end."""
    with opened(path, _FLAGS) as fd:
        end = size = os.fstat(fd).st_size
        used = bytearray()
        while end and not used:
            start = max(0, end - BLOCK_BYTES)
            used = read_range(fd, start, end - start).rstrip(b"\0")
            end = start + len(used)
        whole = -(-end // layout.size) * layout.size  # the last entry may end with zeros
        yield from _rows(path, fd, layout, 0, min(whole, size))


def _rows(
    path: Path, fd: int, layout: struct.Struct, start: int, end: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield positions and fields of the entries in a range of a file."""
    block_bytes = BLOCK_BYTES // layout.size * layout.size
    while start < end:
        block = read_range(fd, start, min(block_bytes, end - start))
        usable = len(block) // layout.size * layout.size
        for fields in layout.iter_unpack(memoryview(block)[:usable]):
            yield start, fields
            start += layout.size
        if usable < len(block) or not block:
            raise SideFileError(
                path, start, f"an entry of {layout.size} bytes", f"{len(block) - usable} bytes"
            )


class IndexRows:
    """The content for the `.index` and `.timeindex` of one segment, as brokers make them.

    Args:
        base_offset: of the segment.
        interval_bytes: of log at least between two rows.
    """

    def __init__(self, base_offset: int, *, interval_bytes: int = INTERVAL_BYTES) -> None:
        # as arrays, in which bisection is fast
        self._offsets, self._positions = array("i"), array("i")
        self._times = bytearray()
        self.largest = NO_TIME
        """The largest timestamp, and the offset of the first batch that has it."""
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._indexed_position = 0
        self._indexed = NO_TIME

    def add(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """Add a batch behind all others, with a row if it is far enough from the last one."""
        if max_timestamp > self.largest[0]:
            self.largest = (max_timestamp, last_offset)
        relative = last_offset - self._base_offset
        is_far = position - self._indexed_position > self._interval_bytes
        if is_far and relative < 2**31 and position < 2**31:
            self._positions.append(position)
            self._offsets.append(relative)  # second: a reader takes a row by this one
            self._indexed_position = position
            self.finish()

    def finish(self) -> None:
        """Add the row of the largest timestamp, as at the close of a segment."""
        timestamp, offset = self.largest
        if timestamp > self._indexed[0]:
            self._times.extend(_TIME_INDEX_ENTRY.pack(timestamp, offset - self._base_offset))
            self._indexed = self.largest

    @property
    def last(self) -> tuple[int, int] | None:
        """Return the last offset and the position of the last row, None without any."""
        if not self._offsets:
            return None
        return self._base_offset + self._offsets[-1], self._positions[-1]

    @property
    def contents(self) -> tuple[bytes, bytes]:
        """Return the content of both files."""
        rows = array("i", bytes(_INDEX_ENTRY.size * len(self._offsets)))
        rows[::2], rows[1::2] = self._offsets, self._positions
        if sys.byteorder == "little":
            rows.byteswap()
        return rows.tobytes(), bytes(self._times)

    def take(self, content: bytes) -> None:
        """Add rows as an `.index` file has them, up to the zeros at its end."""
        rows = array("i", content[: len(content) // _INDEX_ENTRY.size * _INDEX_ENTRY.size])
        if sys.byteorder == "little":
            rows.byteswap()
        positions = rows[1::2]
        count = len(positions)
        while count and not positions[count - 1]:
            count -= 1
        self._positions.extend(positions[:count])
        self._offsets.extend(rows[::2][:count])

    def are_around(self, offset: int) -> bool:
        """Return whether an offset is between the first row and the last one."""
        offsets = self._offsets
        return len(offsets) > 1 and offsets[0] <= offset - self._base_offset < offsets[-1]

    def floor(self, offset: int) -> tuple[int, int]:
        """Return offset and position of the last row up to an offset, position 0 without any."""
        at = bisect_right(self._offsets, offset - self._base_offset) - 1
        return (self._base_offset + self._offsets[at], self._positions[at]) if at >= 0 else (0, 0)

    def floor_of_time(self, time_ms: int) -> int:
        """Return the offset of the last row below a time, the base offset without any."""
        rows, size = self._times, _TIME_INDEX_ENTRY.size
        at = bisect_left(
            range(len(rows) // size),
            time_ms,
            key=lambda row: _TIME_INDEX_ENTRY.unpack_from(rows, row * size)[0],
        )
        relative = _TIME_INDEX_ENTRY.unpack_from(rows, (at - 1) * size)[1] if at else 0
        return self._base_offset + int(relative)

    def read(self, segment: Path) -> None:
        """Take the rows of the files beside a segment; raises as `read_index`, or an `OSError`."""
        for entry in read_index(segment.with_suffix(INDEX_SUFFIX), self._base_offset):
            self._positions.append(entry.position)
            self._offsets.append(entry.offset - self._base_offset)
            self._indexed_position = entry.position
        for one in read_time_index(segment.with_suffix(TIME_INDEX_SUFFIX), self._base_offset):
            row = one.timestamp, one.offset - self._base_offset
            self._times.extend(_TIME_INDEX_ENTRY.pack(*row))
            self.largest = self._indexed = one.timestamp, one.offset


def indexes_of(
    path: Path, base_offset: int, end: int, *, interval_bytes: int = INTERVAL_BYTES
) -> tuple[bytes, bytes]:
    """Return the content for the `.index` and `.timeindex` of a segment, as brokers make them.

    Args:
        path: of the segment.
        base_offset: of the segment.
        end: of the range whose batches are indexed, up to the first damaged one.
        interval_bytes: of log at least between two rows.

    Raises:
        LogCorruptError: an offset does not fit the base offset.
    """
    rows = IndexRows(base_offset, interval_bytes=interval_bytes)
    with opened(path, os.O_RDONLY) as fd:
        for block in scan_batch_blocks(fd, 0, end):
            for batch in block.scan.batches:
                position = block.position + batch.position
                if not 0 <= batch.last_offset - base_offset < 2**31:
                    raise LogCorruptError(
                        f"{path}: position {position}: offset {batch.last_offset} is out of reach "
                        f"of the segment's base offset {base_offset}"
                    )
                rows.add(position, batch.last_offset, batch.max_timestamp)
    rows.finish()
    return rows.contents


def read_aborted(path: Path) -> Iterator[AbortedTransaction]:
    """Yield the entries of a `.txnindex` file, whose last offsets rise."""
    with opened(path, _FLAGS) as fd:
        end, last = os.fstat(fd).st_size, -1
        for at, (version, *fields) in _rows(path, fd, _ABORTED_ENTRY, 0, end):
            if version:
                raise SideFileError(path, at, "version 0", f"version {version}")
            one = AbortedTransaction(*fields)
            if one.last_offset <= last:
                raise SideFileError(path, at, f"a last offset above {last}", str(one.last_offset))
            if not 0 <= one.first_offset <= one.last_offset:
                found = f"{one.first_offset} to {one.last_offset}"
                raise SideFileError(path, at, "first and last offset of a transaction", found)
            yield one
            last = one.last_offset


def append_aborted(path: Path, one: AbortedTransaction) -> None:
    """Add a transaction to a `.txnindex` file, on the disk at the return.

    What the log loses in a crash is taken out again by `mend_aborted`; what a snapshot behind the
    transaction hides is never looked for again, so that this must not be lost.
    """
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
        is_new = not os.fstat(fd).st_size
        write_all(fd, _ABORTED_ENTRY.pack(0, *one))
        os.fsync(fd)
    if is_new:
        sync_directory(path.parent)


def mend_aborted(path: Path, offset: int, found: Iterable[AbortedTransaction]) -> None:
    """Make a `.txnindex` file have those that end from an offset on as they were found.

    The earlier ones stay as they are, up to a damaged one; no file is written that is right.
    """
    content, kept_bytes = b"", 0
    with suppress(FileNotFoundError, SideFileError):
        with opened(path, _FLAGS) as fd:
            content = bytes(read_range(fd, 0, os.fstat(fd).st_size))
        for one in read_aborted(path):
            if one.last_offset >= offset:
                break
            kept_bytes += _ABORTED_ENTRY.size
    right = content[:kept_bytes] + b"".join(_ABORTED_ENTRY.pack(0, *one) for one in found)
    if right != content:
        write_atomically(path, right)


def read_snapshot(path: Path) -> Iterator[ProducerState]:
    """Yield the producers of a `.snapshot` file, after its CRC has been validated."""
    with opened(path, _FLAGS) as fd:
        end = os.fstat(fd).st_size
        head = read_range(fd, 0, _SNAPSHOT_HEAD.size)
        if len(head) < _SNAPSHOT_HEAD.size:
            raise SideFileError(path, 0, f"at least {_SNAPSHOT_HEAD.size} bytes", f"{end} bytes")
        version, crc, count = _SNAPSHOT_HEAD.unpack(head)
        if version != 1:
            raise SideFileError(path, 0, "version 1", f"version {version}")
        found = crc_of_range(fd, _SNAPSHOT_CHECKED_FROM, end, crc_of=codec.crc32c)
        if found != crc:
            raise SideFileError(path, 2, f"CRC {crc:08x}", f"{found:08x}")
        if end - _SNAPSHOT_HEAD.size != count * _PRODUCER.size:
            position = _SNAPSHOT_CHECKED_FROM
            raise SideFileError(path, position, f"{count} producers", f"a file of {end} bytes")
        for _, fields in _rows(path, fd, _PRODUCER, _SNAPSHOT_HEAD.size, end):
            yield ProducerState(*fields)


def write_snapshot(path: Path, producers: Iterable[ProducerState]) -> None:
    """Write a `.snapshot` file; one that a crash leaves half written is known by its CRC."""
    entries = [_PRODUCER.pack(*one) for one in producers]
    content = bytearray(_SNAPSHOT_HEAD.pack(1, 0, len(entries)) + b"".join(entries))
    crc = codec.crc32c(memoryview(content)[_SNAPSHOT_CHECKED_FROM:])
    _SNAPSHOT_HEAD.pack_into(content, 0, 1, crc, len(entries))
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW) as fd:
        write_all(fd, bytes(content))


def read_epochs(path: Path) -> list[EpochStart]:
    """Return the leader epochs of a `leader-epoch-checkpoint`, which rise with their offsets."""
    lines = _text(path).splitlines(keepends=True)
    epochs: list[EpochStart] = []
    position = 0
    for number, line in enumerate(lines):
        fields = line.split()
        is_good = all(re.fullmatch(rb"[0-9]{1,19}", field) for field in fields)
        if not is_good or len(fields) != (1 if number < 2 else 2):
            expected = ("version 0", "the count of epochs", "an epoch and an offset")[
                min(number, 2)
            ]
            raise SideFileError(path, position, expected, _quoted(line))
        if not number and int(fields[0]):
            raise SideFileError(path, position, "version 0", f"version {int(fields[0])}")
        if number >= 2:
            one = EpochStart(*map(int, fields))
            if epochs and not (
                one.epoch > epochs[-1].epoch and one.start_offset >= epochs[-1].start_offset
            ):
                last = f"{epochs[-1].epoch} {epochs[-1].start_offset}"
                raise SideFileError(path, position, f"numbers above {last}", _quoted(line))
            epochs.append(one)
        position += len(line)
    if len(lines) < 2 or int(lines[1]) != len(epochs):
        count = int(lines[1]) if len(lines) > 1 else "a version and a count of"
        raise SideFileError(path, position, f"{count} epochs", f"{len(epochs)}")
    return epochs


def read_topic_id(path: Path) -> UUID:
    """Return the topic id of a `partition.metadata` file."""
    text = _text(path)
    found = _METADATA.fullmatch(text)
    try:
        topic_id = UUID(bytes=base64.urlsafe_b64decode(found[1] + b"==")) if found else None
    except (binascii.Error, ValueError):
        topic_id = None
    if not topic_id or not topic_id.int:
        expected = "version: 0 and a topic_id: of 22 characters"
        raise SideFileError(path, 0, expected, _quoted(text))
    return topic_id


def write_topic_id(directory: Path, topic_id: UUID) -> None:
    """Write the `partition.metadata` of a log, not durably: the broker has the id on record."""
    text = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    (directory / METADATA_NAME).write_text(f"version: 0\ntopic_id: {text}\n")


def _text(path: Path) -> bytes:
    with opened(path, _FLAGS) as fd:
        text = read_range(fd, 0, min(os.fstat(fd).st_size, _MAX_TEXT_BYTES + 1))
    if len(text) > _MAX_TEXT_BYTES:
        expected = f"at most {_MAX_TEXT_BYTES} bytes of text"
        raise SideFileError(path, _MAX_TEXT_BYTES, expected, "more")
    return bytes(text)


def _quoted(text: bytes) -> str:
    return repr(text[:60].decode("latin-1"))
