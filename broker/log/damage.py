"""Comparing copies of a log by digests, finding damaged messages, and replacing their files."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from broker.errors import LostOffsetsError, OffsetOutOfRangeError, StorageError
from broker.files import reason_of
from broker.log.batch_index import walk_places
from broker.log.batches import read_head, scan_batch_blocks
from broker.log.compaction import SWAP_SUFFIX
from broker.log.format import BATCHES
from broker.log.log import Log
from broker.log.log_segments import segment_of
from broker.log.scan import read_range, scan_blocks
from broker.log.segment import FileSlice, Segment, write_error
from broker.log.side_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from broker.protocol import codec
from broker.protocol.codec import Fault
from broker.protocol.primitives import Buffer
from broker.protocol.responses import LogDamage, LogDigest

_COPY_BYTES = 1 << 20
_MENDED_SUFFIX = ".mended"


def find_damage(log: Log, offset: int, length: int) -> int | None:
    """Return the offset of the first damaged message that lies in a range, or partly; None if none.

    Of the range, more than `MAX_DIGEST_BYTES` is left out.
    """
    end = min(offset + min(length, MAX_DIGEST_BYTES), log.log_end_offset)
    if not log.log_start_offset <= offset < end:
        return None
    left_bytes = MAX_DIGEST_BYTES
    try:
        position = log.boundary_at_or_before(offset, to_log_end=True)
        end = log.boundary_at_or_after(end, to_log_end=True)
        while position < end and left_bytes > 0:
            # of batches all: where those of the range end is not known before
            most_bytes = sys.maxsize if log.format is BATCHES else end - position
            found = log.read(position, most_bytes, to_log_end=True)
            if found is None:
                break
            start, slice_end = found.position, found.position + found.length
            try:
                blocks = _scan(log, found.file.fd, (start, slice_end), position)
                for position, good_end, fault in blocks:
                    if fault and position < end:
                        return position
                    if position >= end or good_end - start >= left_bytes:
                        return None
            except OSError as error:
                text = f"cannot read {log.partition} at offset {position}: {reason_of(error)}"
                noted = found.source.note_unreadable(found, found.position)
                raise noted or StorageError(text) from error
            left_bytes -= found.length
    except OffsetOutOfRangeError:  # removed, or truncated, at this moment
        pass
    return None


def _scan(
    log: Log, fd: int, part: tuple[int, int], offset: int
) -> Iterator[tuple[int, int, Fault]]:
    """Scan a part of a file in blocks, which starts with the message at an offset.

    Yields for each block the offset and the position behind its good messages, and its fault.
    """
    if log.format is BATCHES:
        for block in scan_batch_blocks(fd, *part):
            if block.scan.batches:
                offset = block.scan.batches[-1].next_offset
            yield offset, block.end, block.scan.fault
    else:
        for entries in scan_blocks(fd, *part):
            yield offset + entries.end - part[0], entries.end, entries.scan.fault


def uncommitted_loss(log: Log, segment: Segment) -> int | None:
    """Return from where on a segment has lost messages that no other replica need have.

    Args:
        log: which may have a high watermark that is behind.
        segment: of the log, with messages that are damaged or cannot be read.

    Returns:
        An offset at or above the high watermark; None if all above that is in good order.
    """
    high_watermark = log.high_watermark
    if segment.unreadable is not None and high_watermark < segment.next_offset:
        lost_from = segment.base_offset
        with suppress(OSError):  # the batches before may not be readable either
            file = log.segments.open(segment)
            lost_from = log.format.offset(segment, file, segment.unreadable.start)
        return max(high_watermark, lost_from)
    if segment.damage is None or high_watermark >= segment.next_offset:
        return None
    start = max(high_watermark, segment.base_offset)
    # the damage that is noted may be neither the first nor the only one
    found = find_damage(log, start, segment.next_offset - start)
    if found is None:
        found = segment.damage.offset
        return found if found >= start else None
    return max(found, start)


def mend(log: Log, segment: Segment, read: Callable[[int, int], Buffer]) -> int | None:
    """Replace a segment's file by one with the messages that another replica has.

    Called for a follower while it copies nothing. `read` returns bytes of the other replica from an
    offset on, one at least, and at most as many as asked for. Returns None, or the offset of a
    message that came damaged: then nothing has changed.
    """
    path = segment.path.with_name(segment.path.name + _MENDED_SUFFIX)
    end, committed = segment.next_offset, min(segment.next_offset, log.high_watermark)
    try:
        with path.open("w+b") as file:
            position, most_bytes = segment.base_offset, _COPY_BYTES
            while position < committed:
                if log.format is BATCHES:
                    data = read(position, most_bytes)
                    found = codec.scan_batches(data)
                    own = [one for one in found.batches if one.base_offset < committed]
                    if not own and found.fault is Fault.PARTIAL and len(data) == most_bytes:
                        most_bytes *= 2
                    elif not own and found.fault:
                        return position
                    else:  # without any, compaction has left none
                        file.write(memoryview(data)[: own[-1].end if own else 0])
                        position = own[-1].next_offset if own else committed
                else:
                    data = read(position, min(_COPY_BYTES, committed - position))
                    file.write(data)
                    position += len(data)
            file.write(_own_bytes(log, committed, end))
            file.flush()
            os.fsync(file.fileno())
            for damaged, _, fault in _scan(
                log, file.fileno(), (0, file.tell()), segment.base_offset
            ):
                if fault:
                    return damaged
        if log.format is BATCHES and path.stat().st_size != segment.size:
            _replace_compacted(log, segment, path)
        else:
            log.replace_file(segment, path)
    except OSError as error:
        text = f"cannot mend {log.partition}: {path}: {reason_of(error)}"
        raise write_error(error)(text) from error
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return None


def _replace_compacted(log: Log, segment: Segment, path: Path) -> None:
    """Put a copy in a segment's place that has other batches: each replica compacts by itself."""
    if segment is log.segments.all[-1]:
        raise StorageError(
            f"cannot mend {log.partition}: {segment.path}: the other replica has compacted these "
            "records; delete the replica here, so that it is copied anew"
        )
    swap = segment.path.with_name(segment.path.name + SWAP_SUFFIX)
    path.replace(swap)
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):  # written anew from the batches
        segment.path.with_suffix(suffix).unlink(missing_ok=True)
    log.replace_segments([segment], swap)


def _own_bytes(log: Log, offset: int, end: int) -> bytes:
    """Return a log's own bytes above its high watermark, as other replicas may have others."""
    found = log.read(offset, sys.maxsize, to_log_end=True) if offset < end else None
    return b"" if found is None else os.pread(found.file.fd, found.length, found.position)


MAX_DIGEST_BYTES = 8 << 20
"""Of one request; more takes several."""
_BLOCK_BYTES = 1 << 20


def digest_of(log: Log, offset: int, length: int) -> LogDigest:
    """Return the digest of the bytes of a log from an offset on, below its high watermark.

    The range need not start at a message, but whole batches count. More than `MAX_DIGEST_BYTES` is
    left out. Damage is not looked for: see `find_damage`. Raises `ServerError` if the bytes are
    removed at this moment.
    """
    start, end = log.log_start_offset, min(offset + length, log.high_watermark)
    digest = hashlib.sha256()
    position, segment = offset, -1
    left_bytes = MAX_DIGEST_BYTES
    while start <= position < end and left_bytes > 0:
        try:
            found = log.read(position, sys.maxsize)
        except LostOffsetsError as error:
            position = min(end, error.next_offset)
            continue
        if found is None:
            break
        if segment < 0:
            segment = log.format.base_offset_of(found.file.path.name) or 0
        try:
            most_bytes = min(left_bytes, _BLOCK_BYTES)
            size, following = _part_of(log, found, position, end, most_bytes)
            data = read_range(found.file.fd, found.position, size)
        except OSError as error:
            text = f"cannot read {log.partition} at offset {position}: {reason_of(error)}"
            noted = found.source.note_unreadable(found, found.position)
            raise noted or StorageError(text) from error
        if len(data) < size:
            raise StorageError(f"{found.file.path} ends before offset {following}")
        digest.update(data)
        position = following
        left_bytes -= size
    length = min(position - offset, 2**31 - 1)
    return LogDigest(start, log.high_watermark, segment, length, LogDamage(), digest.digest())


def _part_of(log: Log, found: FileSlice, offset: int, end: int, most_bytes: int) -> tuple[int, int]:
    """Return the size of the next bytes of a slice to digest, and the offset behind them."""
    if log.format is not BATCHES:
        size = min(most_bytes, found.length, end - offset)
        return size, offset + size
    start, slice_end = found.position, found.position + found.length
    size, following = 0, offset
    for place in walk_places(found.file.fd, start, slice_end):
        if size and (place.base_offset >= end or place.end - start > most_bytes):
            break
        size, following = place.end - start, place.last_offset + 1
    if not size:  # the head is damaged: up to the next good one
        position = log.format.find(found.file.fd, start + 1, slice_end)
        head = None if position is None else read_head(found.file.fd, position)
        if position is None or head is None:
            segment = segment_of(log.segments.all, offset)
            return found.length, min(segment.next_offset, log.high_watermark)
        return position - start, head.base_offset
    return size, following
