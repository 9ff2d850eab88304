"""Digests of ranges of a log, by which copies of it are compared without sending them."""

from __future__ import annotations

import hashlib
import os

from broker.errors import LostOffsetsError, StorageError
from broker.log.log import Log
from broker.log.segment import reason_of
from broker.protocol.responses import LogDamage, LogDigest

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
