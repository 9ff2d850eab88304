"""A segment file scanned from front to back in large blocks.

Owns the block reading that recovery and the offline tools share: memory stays at one block, or
at one entry where an entry is larger. Decides nothing about what a fault means.

Finding the next message behind damage that broke the chain of lengths.

Owns the guesses about what looks like an entry. Reads a window of a file at a time; reports
nothing.
"""

from __future__ import annotations

import os
import re
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


_WINDOW_BYTES = 4 << 20

# A length from 5 to 2^24-1 before a magic byte of 0 or 1. Lengths beyond are left out: every zero
# byte of text would otherwise be looked at, and the next smaller entry is found all the same.
_CANDIDATE = re.compile(
    rb"(?=\x00(?:[^\x00]..|\x00[^\x00].|\x00\x00[\x05-\xff])[\x00\x01])", re.DOTALL
)
_CANDIDATE_BYTES = LENGTH_BYTES + 1


class EntryHeader(NamedTuple):
    """The fields of an entry that need no trust; `crc` is the stored one."""

    length: int
    magic: int
    attributes: int
    crc: int
    payload_position: int
    end: int


def read_header(fd: int, position: int) -> EntryHeader | None:
    """Return the header at a position, whatever it holds; None if the file ends inside it.

    Args:
        fd: the file, open for reading.
        position: where an entry may start.
    """
    data = os.pread(fd, ENTRY_OVERHEAD_BYTES, position)
    if len(data) < LENGTH_BYTES + MAGIC0_HEADER_BYTES:
        return None
    (length,) = INT32.unpack_from(data)
    magic = data[LENGTH_BYTES]
    header_bytes = LENGTH_BYTES + MAGIC0_HEADER_BYTES + bool(magic)
    return EntryHeader(
        length=length,
        magic=magic,
        attributes=data[LENGTH_BYTES + 1] if magic else 0,
        crc=int.from_bytes(data[:header_bytes][-CRC_BYTES:], "big"),
        payload_position=position + header_bytes,
        end=position + LENGTH_BYTES + length,
    )


def looks_like_entry(fd: int, position: int, end: int) -> bool:
    """Return whether an entry may start here, judging by two headers and no CRC.

    Args:
        fd: the file.
        position: where the entry would start.
        end: the end of the file; a tail too short for a header passes.
    """
    if position > end:
        return False
    header = read_header(fd, position)
    if header is None:
        return True
    if not _is_sane(header) or header.end > end:
        return False
    following = read_header(fd, header.end)
    return following is None or _is_sane(following)


def find_entry(fd: int, position: int, end: int, *, search_end: int | None = None) -> int | None:
    """Return where the next whole entry with a good CRC starts.

    Args:
        fd: the file.
        position: where to start looking.
        end: the end of the file.
        search_end: where to stop looking; the end of the file if None.

    Returns:
        A position, or None when there is none up to the end.
    """
    while position < (end if search_end is None else search_end):
        window = os.pread(fd, min(_WINDOW_BYTES, end - position), position)
        for found in _CANDIDATE.finditer(window):
            candidate = position + found.start()
            if _is_good_entry(fd, candidate, end):
                return candidate
        if len(window) < _WINDOW_BYTES:
            return None
        position += len(window) - _CANDIDATE_BYTES + 1
    return None


def _is_good_entry(fd: int, position: int, end: int) -> bool:
    if not looks_like_entry(fd, position, end):
        return False
    header = read_header(fd, position)
    if header is None or header.end == header.payload_position:
        # Without a payload there is no CRC to tell an entry from a few stray zero bytes.
        return False
    return has_good_crc(fd, position, end)


def has_good_crc(fd: int, position: int, end: int) -> bool:
    """Return whether a whole entry starts here, judging by its header and CRC.

    Args:
        fd: the file.
        position: where the entry would start.
        end: the end of the file.
    """
    header = read_header(fd, position)
    if header is None or not _is_sane(header) or header.end > end:
        return False
    return crc_of_range(fd, header.payload_position, header.end) == header.crc


def _is_sane(header: EntryHeader) -> bool:
    return header.magic <= 1 and header.length >= MAGIC0_HEADER_BYTES + header.magic
