"""The batches of a segment file that Kafka wrote, their records, and where an offset is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log import batches
from broker.log.offline.segments import base_offset_of, open_segment
from broker.log.scan import read_range
from broker.log.side_files import INDEX_SUFFIX, find_indexed
from broker.protocol import codec, record_batch
from broker.protocol.codec import Fault, Record, RecordBatch
from broker.protocol.message_set import describe_fault

_MAX_DAMAGED_BYTES = 128 << 20
"""A damaged batch that claims more is not read: it could be the rest of a large file."""
MAX_OFFSET = 2**63 - 1


class StoredBatch(NamedTuple):
    """A batch of a segment file, good or damaged."""

    head: RecordBatch  # its position is that in the file
    data: bytes  # the whole batch
    fault: Fault


def iter_batches(
    path: Path, start: int = 0, end: int | None = None, *, deep: bool = True
) -> Iterator[StoredBatch]:
    """Yield the batches of a segment file from a batch start on, also damaged ones.

    Args:
        path: the file.
        start: where a batch starts.
        end: batches that start there or behind are left out; None for none.
        deep: also decode the records: without it a batch whose records do not unfold or parse has
            no fault, and `records_of` raises.

    Raises:
        LogCorruptError: the bytes behind the last batch are none, or those behind a damaged one.
    """
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    end = size if end is None else min(end, size)
    position = start
    while position < end:
        fault = Fault.NONE
        for block in batches.scan_batch_blocks(file.fd, position, size):
            for found in block.scan.batches:
                head = found._replace(position=block.position + found.position)
                if head.position >= end:
                    return
                yield _stored(head, bytes(block.data[found.position : found.end]), deep=deep)
            position, fault = block.end, block.scan.fault
        if not fault or position >= end:  # the file has become shorter
            return
        damaged = batches.read_head(file.fd, position)
        is_sized = damaged and batches.has_right_size(file.fd, damaged, size, fault)
        if not damaged or not is_sized or damaged.size > _MAX_DAMAGED_BYTES:
            raise LogCorruptError(f"{path}: {describe_fault(fault, position)}")
        yield StoredBatch(damaged, bytes(read_range(file.fd, position, damaged.size)), fault)
        position = damaged.end


def _stored(head: RecordBatch, data: bytes, *, deep: bool) -> StoredBatch:
    fault = codec.decode_records(data, with_control=True).fault if deep else Fault.NONE
    return StoredBatch(head, data, fault)


def records_of(batch: StoredBatch) -> list[Record]:
    """Return the records of a good batch, also of a control batch.

    Raises:
        InvalidMessageError: they do not unfold or parse.
    """
    decoded = codec.decode_records(batch.data, with_control=True)
    if decoded.fault:
        raise InvalidMessageError(describe_fault(decoded.fault, batch.head.position))
    return decoded.records


def first_offset_of(batch: StoredBatch) -> int:
    """Return the first offset of a good batch, of a wrapper that of its first message."""
    if batch.head.magic < record_batch.MAGIC and batch.head.codec:
        return records_of(batch)[0].offset
    return batch.head.base_offset


def position_of(path: Path, offset: int) -> int:
    """Return where the batch with an offset starts, else the first behind it or what is damaged.

    Reads heads alone, from where the index beside the file says, if that is a good batch.
    """
    if offset <= 0:
        return 0
    file = open_segment(path)
    position = _indexed_position(path, file.fd, offset)
    for head in _heads(file.fd, position):
        if head.next_offset > offset:
            return head.position
        position = head.end
    return position


def end_offset_of(path: Path) -> int | None:
    """Return the offset behind the last batch, as its head tells; None if there is none."""
    file = open_segment(path)
    end = None
    for head in _heads(file.fd, _indexed_position(path, file.fd, MAX_OFFSET)):
        end = head.next_offset
    return end


def offset_at(path: Path, position: int) -> int:
    """Return the offset from which on records are at a position in the file or behind it."""
    file = open_segment(path)
    offset = 0
    for head in _heads(file.fd, 0):
        if head.position >= position:
            break
        offset = head.next_offset
    return offset


def offset_by_time(path: Path, time_ms: int) -> int | None:
    """Return the offset of the first record of a time or later; None if there is none.

    Damaged batches are passed over, up to one that hides where the next one starts.
    """
    with suppress(LogCorruptError):
        for batch in iter_batches(path, deep=False):
            if batch.fault or batch.head.max_timestamp < time_ms:
                continue
            with suppress(InvalidMessageError):
                for record in records_of(batch):
                    if record.timestamp >= time_ms:
                        return record.offset
    return None


def _heads(fd: int, position: int) -> Iterator[RecordBatch]:
    return batches.walk_heads(fd, position, os.fstat(fd).st_size)


def _indexed_position(path: Path, fd: int, offset: int) -> int:
    """Return a position from which heads lead to an offset, by the index if that is right."""
    base = base_offset_of(path)
    if base is None:
        return 0
    try:
        entry = find_indexed(path.with_suffix(INDEX_SUFFIX), base, offset)
    except OSError:
        return 0
    head = batches.good_head(fd, entry.position, os.fstat(fd).st_size)
    return entry.position if head is not None and head.next_offset == entry.offset + 1 else 0
