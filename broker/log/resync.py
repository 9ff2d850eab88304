"""Finding the next message behind damage that broke the chain of lengths.

Owns the guesses about what looks like an entry. Reads a window of a file at a time; reports
nothing.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from broker.log.walk import CRC_BYTES, crc_of_range
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, LENGTH_BYTES, MAGIC0_HEADER_BYTES
from broker.protocol.primitives import INT32

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
