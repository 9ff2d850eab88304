"""Kafka's files beside the segments of a partition, read and validated one entry at a time.

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
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from broker.cluster_state import EpochStart
from broker.errors import LogCorruptError
from broker.files import opened
from broker.log.batches import scan_batch_blocks
from broker.log.scan import BLOCK_BYTES, crc_of_range, read_range
from broker.protocol import codec

_FLAGS = os.O_RDONLY | os.O_NONBLOCK  # the open of a FIFO would wait for a writer

INDEX_SUFFIX, TIME_INDEX_SUFFIX = ".index", ".timeindex"
ABORTED_SUFFIX, SNAPSHOT_SUFFIX = ".txnindex", ".snapshot"
INTERVAL_BYTES = 4096  # `index.interval.bytes` by default
EPOCHS_NAME = "leader-epoch-checkpoint"
METADATA_NAME = "partition.metadata"
_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX, SNAPSHOT_SUFFIX)

_INDEX_ENTRY = struct.Struct(">ii")
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
    return path.suffix in _SUFFIXES or path.name in (EPOCHS_NAME, METADATA_NAME)


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

    def entry_at(row: int) -> tuple[int, int]:
        data = os.pread(fd, _INDEX_ENTRY.size, row * _INDEX_ENTRY.size)
        relative, position = _INDEX_ENTRY.unpack(data.ljust(_INDEX_ENTRY.size, b"\0"))
        return (relative, position) if position > 0 else _BEHIND_LAST

    with opened(path, _FLAGS) as fd:
        rows = range(os.fstat(fd).st_size // _INDEX_ENTRY.size)
        row = bisect_right(rows, offset - base_offset, key=lambda row: entry_at(row)[0]) - 1
        if row < 0:
            return IndexEntry(0, base_offset, 0)
        relative, position = entry_at(row)
        return IndexEntry(row * _INDEX_ENTRY.size, base_offset + relative, position)


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


def indexes_of(
    path: Path, base_offset: int, end: int, *, interval_bytes: int = INTERVAL_BYTES
) -> tuple[bytes, bytes]:
    """Return the content for the `.index` and `.timeindex` of a segment, as brokers make them.

    Args:
        path: of the segment.
        base_offset: of the segment.
        end: of the range whose batches are indexed, up to the first damaged one.
        interval_bytes: of log at least between two entries.

    Raises:
        LogCorruptError: an offset does not fit the base offset.
    """
    index, time_index = bytearray(), bytearray()
    indexed_position = 0
    indexed = largest = (-1, 0)  # timestamp, and offset of the batch that has it
    with opened(path, os.O_RDONLY) as fd:
        for block in scan_batch_blocks(fd, 0, end):
            for batch in block.scan.batches:
                position = block.position + batch.position
                relative = batch.last_offset - base_offset
                if not 0 <= relative < 2**31:
                    raise LogCorruptError(
                        f"{path}: position {position}: offset {batch.last_offset} is out of reach "
                        f"of the segment's base offset {base_offset}"
                    )
                if batch.max_timestamp > largest[0]:
                    largest = (batch.max_timestamp, relative)
                if position - indexed_position > interval_bytes:
                    index += _INDEX_ENTRY.pack(relative, position)
                    indexed_position = position
                    if largest > indexed:
                        time_index += _TIME_INDEX_ENTRY.pack(*largest)
                        indexed = largest
    if largest > indexed:  # as at the close of a segment
        time_index += _TIME_INDEX_ENTRY.pack(*largest)
    return bytes(index), bytes(time_index)


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


def _text(path: Path) -> bytes:
    with opened(path, _FLAGS) as fd:
        text = read_range(fd, 0, min(os.fstat(fd).st_size, _MAX_TEXT_BYTES + 1))
    if len(text) > _MAX_TEXT_BYTES:
        expected = f"at most {_MAX_TEXT_BYTES} bytes of text"
        raise SideFileError(path, _MAX_TEXT_BYTES, expected, "more")
    return bytes(text)


def _quoted(text: bytes) -> str:
    return repr(text[:60].decode("latin-1"))
