"""Comparing copies of a log by digests, finding damaged messages, and replacing their files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress

from broker.errors import LostOffsetsError, OffsetOutOfRangeError, StorageError
from broker.files import reason_of
from broker.log.log import Log
from broker.log.scan import scan_blocks
from broker.log.segment import Segment, write_error
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
    try:
        position = log.boundary_at_or_before(offset, to_log_end=True)
        end = log.boundary_at_or_after(end, to_log_end=True)
        while position < end:
            found = log.read(position, end - position, to_log_end=True)
            if found is None:
                break
            try:
                for block in scan_blocks(
                    found.file.fd, found.position, found.position + found.length
                ):
                    if block.scan.fault:
                        return position + block.end - found.position
            except OSError as error:
                text = f"cannot read {log.partition} at offset {position}: {reason_of(error)}"
                noted = found.source.note_unreadable(found, found.position)
                raise noted or StorageError(text) from error
            position += found.length
    except OffsetOutOfRangeError:  # removed, or truncated, at this moment
        pass
    return None


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
        return max(high_watermark, segment.offset_of(segment.unreadable.start))
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
            position = segment.base_offset
            while position < committed:
                data = read(position, min(_COPY_BYTES, committed - position))
                file.write(data)
                position += len(data)
            file.write(_own_bytes(log, committed, end))
            file.flush()
            os.fsync(file.fileno())
            for block in scan_blocks(file.fileno(), 0, segment.position_of(end)):
                if block.scan.fault:
                    return segment.offset_of(block.end)
        log.replace_file(segment, path)
    except OSError as error:
        text = f"cannot mend {log.partition}: {path}: {reason_of(error)}"
        raise write_error(error)(text) from error
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return None


def _own_bytes(log: Log, offset: int, end: int) -> bytes:
    """Return a log's own bytes above its high watermark, as other replicas may have others."""
    found = log.read(offset, end - offset, to_log_end=True) if offset < end else None
    return b"" if found is None else os.pread(found.file.fd, found.length, found.position)


MAX_DIGEST_BYTES = 8 << 20
"""Of one request; more takes several."""
_BLOCK_BYTES = 1 << 20


def digest_of(log: Log, offset: int, length: int) -> LogDigest:
    """Return the digest of the bytes of a log from an offset on, below its high watermark.

    The range need not start at a message; more than `MAX_DIGEST_BYTES` is left out. Damage is not
    looked for: see `find_damage`. Raises `ServerError` if the bytes are removed at this moment.
    """
    start, end = log.log_start_offset, log.high_watermark
    digest = hashlib.sha256()
    position, segment = offset, -1
    left_bytes = min(length, MAX_DIGEST_BYTES, end - offset) if offset >= start else 0
    while left_bytes > 0:
        try:
            found = log.read(position, min(left_bytes, _BLOCK_BYTES))
        except LostOffsetsError as error:
            lost_bytes = min(left_bytes, error.next_offset - position)
            position, left_bytes = position + lost_bytes, left_bytes - lost_bytes
            continue
        if found is None:
            break
        if segment < 0:
            segment = log.format.base_offset_of(found.file.path.name) or 0
        try:
            data = os.pread(found.file.fd, found.length, found.position)
        except OSError as error:
            text = f"cannot read {log.partition} at offset {position}: {reason_of(error)}"
            noted = found.source.note_unreadable(found, found.position)
            raise noted or StorageError(text) from error
        if not data:
            raise StorageError(f"{found.file.path} ends before offset {position}")
        digest.update(data)
        position += len(data)
        left_bytes -= len(data)
    length = position - offset
    return LogDigest(start, end, segment, length, LogDamage(), digest.digest())
