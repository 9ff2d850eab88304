"""A segment file scanned from front to back in large blocks.

Owns the block reading that recovery and the offline tools share: memory stays at one block, or
at one entry where an entry is larger. Decides nothing about what a fault means.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from broker.protocol import codec
from broker.protocol.checksum import crc32
from broker.protocol.codec import (
    ENTRY_OVERHEAD_BYTES,
    LENGTH_BYTES,
    MAGIC0_HEADER_BYTES,
    Fault,
    Scan,
)
from broker.protocol.primitives import INT32, Buffer

BLOCK_BYTES = 1 << 20
CRC_BYTES = 4


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
    fd: int,
    start: int,
    end: int,
    *,
    block_bytes: int = BLOCK_BYTES,
    scan: Callable[[Buffer], Scan] = codec.scan,
) -> Iterator[ScannedBlock]:
    """Scan a range of a file, until its end or the first fault.

    Args:
        fd: the file, open for reading.
        start: an entry start.
        end: where to stop, at most the file's size.
        block_bytes: how much to read at a time, at least 16.
        scan: what checks a block.

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
                size = _entry_bytes(block)
                fault = fault_of_large(fd, position, size, end)
                block = memoryview(b"" if fault else _read(fd, position, size))
                found = Scan(0, 0, fault, [], 0) if fault else scan(block)
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


def fault_of_large(fd: int, position: int, size: int, end: int) -> Fault:
    """Check an entry that is larger than a block before it is read as a whole.

    Its CRC is taken piece by piece: a damaged length must not make us ask for gigabytes.

    Args:
        fd: the file, open for reading.
        position: where the entry starts; its magic byte is known to be good.
        size: its size, from its length field.
        end: the end of the file.

    Returns:
        `PARTIAL`, `CRC` or `NONE`.
    """
    if size > end - position:
        return Fault.PARTIAL
    header = os.pread(fd, ENTRY_OVERHEAD_BYTES, position)
    header_bytes = LENGTH_BYTES + MAGIC0_HEADER_BYTES + header[LENGTH_BYTES]
    stored = int.from_bytes(header[:header_bytes][-CRC_BYTES:], "big")
    found = crc_of_range(fd, position + header_bytes, position + size)
    return Fault.NONE if found == stored else Fault.CRC


def crc_of_range(fd: int, start: int, end: int) -> int:
    """Return the CRC-32 of a range of a file, as far as the file reaches.

    Args:
        fd: the file, open for reading.
        start: the first position.
        end: the position after the last.
    """
    crc = 0
    while start < end and (piece := os.pread(fd, min(BLOCK_BYTES, end - start), start)):
        crc = crc32(piece, crc)
        start += len(piece)
    return crc


def _read(fd: int, position: int, size: int) -> bytearray:
    buffer = bytearray(size)
    del buffer[_read_into(fd, memoryview(buffer), position) :]
    return buffer
