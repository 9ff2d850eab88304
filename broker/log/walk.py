"""A segment file scanned from front to back in large blocks.

Owns the block reading that recovery and the offline tools share: memory stays at one block, or
at one entry where an entry is larger. Decides nothing about what a fault means.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, LENGTH_BYTES, Fault, Scan, scan
from broker.protocol.primitives import INT32

BLOCK_BYTES = 1 << 20


class ScannedBlock(NamedTuple):
    """A block that starts on an entry, and what `codec.scan` found in it.

    `data` ends with the last good entry and is only good until the next block is asked for. A
    fault is that of the file at `end`; an entry that merely reaches into the next block is none.
    """

    position: int
    data: memoryview
    scan: Scan

    @property
    def end(self) -> int:
        """Return the position after the last good entry."""
        return self.position + self.scan.valid_bytes


def scan_blocks(
    fd: int, start: int, end: int, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[ScannedBlock]:
    """Scan a range of a file, until its end or the first fault.

    Args:
        fd: the file, open for reading.
        start: an entry start.
        end: where to stop, at most the file's size.
        block_bytes: how much to read at a time, at least 16.

    Returns:
        Blocks without a gap between them. Only the last one can have a fault.

    Raises:
        OSError: the file cannot be read.
    """
    buffer = bytearray(min(block_bytes, max(0, end - start)))
    position = start
    while position < end:
        block = memoryview(buffer)[: end - position]
        block = block[: _read_into(fd, block, position)]
        found = scan(block)
        if found.fault is Fault.PARTIAL and len(block) == len(buffer) < end - position:
            if found.valid_bytes:
                found = found._replace(fault=Fault.NONE)
            else:
                found, block = _scan_large(fd, position, _entry_bytes(block), end)
        yield ScannedBlock(position, block[: found.valid_bytes], found)
        if not found.valid_bytes or found.fault:
            return
        position += found.valid_bytes


def _read_into(fd: int, view: memoryview, position: int) -> int:
    """Fill a view from a file as far as the file reaches; return how many bytes came."""
    size = 0
    while size < len(view):
        count = os.preadv(fd, [view[size:]], position + size)
        if not count:
            break
        size += count
    return size


def _entry_bytes(block: memoryview) -> int:
    """Return the size of the entry at the start of a block that is too small for it."""
    return LENGTH_BYTES + int(INT32.unpack_from(block)[0])


def _scan_large(fd: int, position: int, size: int, end: int) -> tuple[Scan, memoryview]:
    """Scan one entry that is larger than a block.

    Its CRC is checked piece by piece first: a damaged length must not make us ask for gigabytes.
    """
    fault = Fault.NONE
    if size > end - position:
        fault = Fault.PARTIAL
    elif not _has_good_crc(fd, position, size):
        fault = Fault.CRC
    if fault:
        return Scan(0, 0, fault, [], 0), memoryview(b"")
    block = memoryview(bytearray(size))
    block = block[: _read_into(fd, block, position)]
    return scan(block), block


def _has_good_crc(fd: int, position: int, size: int) -> bool:
    end = position + size
    header = os.pread(fd, ENTRY_OVERHEAD_BYTES, position)
    position += ENTRY_OVERHEAD_BYTES if header[LENGTH_BYTES] else ENTRY_OVERHEAD_BYTES - 1
    stored = int.from_bytes(header[: position - end + size][-4:], "big")
    crc = 0
    while position < end and (piece := os.pread(fd, min(BLOCK_BYTES, end - position), position)):
        crc = zlib.crc32(piece, crc)
        position += len(piece)
    return position == end and crc == stored
