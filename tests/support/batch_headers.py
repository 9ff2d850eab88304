"""Record batches whose headers claim something else."""

from __future__ import annotations

import struct

from broker.protocol.codec import crc32c


def with_header(batch: bytes, at: int, layout: str, value: int) -> bytes:
    """Return a batch with another number in its header, and a CRC that is right again."""
    changed = bytearray(batch)
    struct.pack_into(f">{layout}", changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)
