"""Finding entries in a segment file: block scans, boundaries, and good entries behind damage.

Recovery, `Log` and the offline tools share these functions, and decide how to treat a fault. Memory
is bounded by one block, or by one entry if that is larger. An `end` is that of the file, unless
said otherwise.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from broker.errors import LogCorruptError
from broker.log.segment import SPACING_BYTES, FoundScan, SegmentFile
from broker.protocol import codec, message
from broker.protocol.checksum import crc32
from broker.protocol.codec import Fault, Scan, boundaries
from broker.protocol.primitives import Buffer

BLOCK_BYTES = 1 << 20
FIRST_BLOCK_BYTES = 4096
"""A walk or search starts with so many, and grows: behind each damage there is one, and the next
damage may be near."""
_MAX_RESUMPTIONS = 1000
_LARGE_WINDOW_BYTES = 32 << 20  # twice the largest entry that `codec.find_entry` finds


class BlockScan(FoundScan, Protocol):
    """A scan whose fault can be replaced."""

    def _replace(self, *, fault: Fault) -> Self: ...


S = TypeVar("S", bound=BlockScan)


class ScannedBlock(NamedTuple, Generic[S]):
    """A block that starts on an entry, and the scan of it.

    `data` ends with the last good entry and is only valid until the next block is requested. A
    fault is that of the file at `end`; an entry that continues in the next block is none.
    """

    position: int
    data: memoryview
    scan: S

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
) -> Iterator[ScannedBlock[Scan]]:
    """Scan a range of a file of 0.7's entries in blocks; see `walk_blocks`."""
    return walk_blocks(fd, start, end, block_bytes=block_bytes, scan=scan, judge_large=_judge_large)


def _judge_large(fd: int, block: memoryview, position: int, end: int) -> tuple[int, Fault]:
    size = message.entry_bytes(block)
    return size, fault_of_large(fd, position, size, end)


def walk_blocks(
    fd: int,
    start: int,
    end: int,
    *,
    block_bytes: int,
    scan: Callable[[Buffer], S],
    judge_large: Callable[[int, memoryview, int, int], tuple[int, Fault]],
) -> Iterator[ScannedBlock[S]]:
    """Scan a range of a file in blocks, up to its end or the first fault.

    Yields adjoining blocks, of which only the last one can have a fault.

    Args:
        fd: of the file.
        start: the start of an entry.
        end: the file's size at most.
        block_bytes: at most; at least 17 for entries and 61 for batches, so that a block has the
            fields that tell a size.
        scan: scans a block.
        judge_large: returns the size and the fault of an entry that is larger than the block it
            starts in, given the file, the block, its position, and `end`.
    """
    buffer = bytearray(min(FIRST_BLOCK_BYTES, block_bytes, max(0, end - start)))
    position = start
    while position < end:
        block = memoryview(buffer)[: end - position]
        block = block[: _read_into(fd, block, position)]
        found = scan(block)
        if found.fault is Fault.PARTIAL and len(block) == len(buffer) < end - position:
            if found.valid_bytes:
                found = found._replace(fault=Fault.NONE)
            else:
                size, fault = judge_large(fd, block, position, end)
                block = memoryview(b"" if fault else read_range(fd, position, size))
                found = found._replace(fault=fault) if fault else scan(block)
        yield ScannedBlock(position, block[: found.valid_bytes], found)
        if not found.valid_bytes or found.fault:
            return
        position += found.valid_bytes
        if len(buffer) < min(block_bytes, end - position):
            buffer = bytearray(min(4 * len(buffer), block_bytes))


def _read_into(fd: int, view: memoryview, position: int) -> int:
    """Fill a view from a file up to the file's end; return the number of bytes read."""
    size = 0
    while size < len(view):
        count = os.preadv(fd, [view[size:]], position + size)
        if not count:
            break
        size += count
    return size


def read_range(fd: int, position: int, size: int) -> bytearray:
    """Return a range of a file; less of it where the file ends earlier."""
    buffer = bytearray(size)
    del buffer[_read_into(fd, memoryview(buffer), position) :]
    return buffer


def fault_of_large(fd: int, position: int, size: int, end: int) -> Fault:
    """Validate an entry that is larger than a block: return `PARTIAL`, `CRC` or `NONE`.

    Called before it is read as a whole, with its CRC computed block by block: a damaged length must
    not make us allocate gigabytes. `size` is from its length field; its magic byte is good.
    """
    if size > end - position:
        return Fault.PARTIAL
    return Fault.NONE if has_good_entry(fd, position, end) else Fault.CRC


def crc_of_range(
    fd: int, start: int, end: int, *, crc_of: Callable[[Buffer, int], int] = crc32
) -> int:
    """Return the CRC of a range of a file, CRC-32 by default; less of it where the file ends."""
    crc = 0
    while start < end and (block := os.pread(fd, min(BLOCK_BYTES, end - start), start)):
        crc = crc_of(block, crc)
        start += len(block)
    return crc


def read_header(fd: int, position: int) -> message.EntryHeader | None:
    """Return the header at a position, valid or not; None if the file ends inside it."""
    return message.parse_header(os.pread(fd, message.ENTRY_OVERHEAD_BYTES, position), position)


def looks_like_entry(fd: int, position: int, end: int) -> bool:
    """Return whether an entry may start at a position, judging by two headers and no CRC."""
    if position > end:
        return False
    header = read_header(fd, position)
    if header is None:  # a length that is damaged can also lead near the end
        return position == end
    if not header.is_plausible or header.end > end:
        return False
    following = read_header(fd, header.end)
    return following is None or following.is_plausible


def find_entry(fd: int, position: int, end: int, *, search_end: int | None = None) -> int | None:
    """Return the position of the next whole entry with a good CRC, None if there is none."""
    stop = end if search_end is None else min(search_end, end)
    window_bytes = BLOCK_BYTES
    while position < stop:
        size = min(window_bytes, end - position)
        window = read_range(fd, position, size)
        if len(window) < size:  # the file has become shorter
            end = position + len(window)
            stop = min(stop, end)
        at, is_good = codec.find_entry(window, stop - position, end - position)
        if is_good:
            return position + at
        position += at
        # entries that reach beyond the window end the search in it: then most of them must fit
        window_bytes = _LARGE_WINDOW_BYTES if at < len(window) // 2 else BLOCK_BYTES
    return None


def has_good_entry(fd: int, position: int, end: int) -> bool:
    """Return whether a whole entry starts at a position, judging by its header and CRC."""
    header = read_header(fd, position)
    if header is None or not header.is_plausible or header.end > end:
        return False
    return crc_of_range(fd, header.payload_position, header.end) == header.crc


class ChainBrokenError(LogCorruptError):
    """The entry at `position` has an impossible length, so the start of the next is unknown."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the message at position {position} has an impossible length")
        self.position = position


def boundaries_around(
    file: SegmentFile, target: int, end: int, *, start: int | None = None
) -> tuple[int, int]:
    """Return the entry starts at or before, and at or after, a position of a segment file.

    They are equal if the target is a boundary. Walks from the boundary `start`, or else from the
    nearest one in the file's index, and adds the boundaries it passes. The target is below `end`: a
    boundary, the segment's size or the end of its visible part. Raises `ChainBrokenError` if a
    length before the target is impossible.
    """
    position = file.boundaries.floor(target) if start is None else start
    while True:
        block = os.pread(file.fd, min(SPACING_BYTES, end - position), position)
        starts = boundaries(block)
        if len(starts) == 1:  # the entry is larger than the block
            size = message.entry_bytes(block) if len(block) >= message.MIN_ENTRY_BYTES else 0
            if size < message.MIN_ENTRY_BYTES or position + size > end:
                raise ChainBrokenError(position)
            starts.append(size)
        if position + starts[-1] > target:
            at = bisect_left(starts, target - position)
            before = at if starts[at] == target - position else at - 1
            return position + starts[before], position + starts[at]
        position += starts[-1]
        if position == target:
            return target, target
        file.boundaries.insert(position)


def boundaries_despite_damage(file: SegmentFile, target: int, end: int) -> tuple[int, int]:
    """Return the boundaries around a position of a segment file that may be damaged.

    A damaged entry extends up to the next good one, where readers resume, also those that come from
    the front. Lengths alone are not trusted: the CRC of the entry around the target, or of the one
    behind it, must be good, or both must look like entries, as they do if only payloads are
    damaged. Target and end as for `boundaries_around`.
    """
    start = None
    while True:
        try:
            before, after = boundaries_around(file, target, end, start=start)
        except ChainBrokenError as error:
            before = reached_from = error.position
        else:
            reached_from = before
            around = (before, after)
            if after == end or any(has_good_entry(file.fd, at, end) for at in around):
                return around
            if all(looks_like_entry(file.fd, at, end) for at in around):
                return around
            if after == target:
                former = _entry_before(file, target, end, start)
                if former is None or has_good_entry(file.fd, former, end):
                    return around
                reached_from = former
        start = _resumed(file, reached_from + 1, end)
        if start > target:
            return before, start


def _resumed(file: SegmentFile, position: int, end: int) -> int:
    """Return where the next good entry starts, or the end; each span is searched once."""
    known = file.resumptions
    if (found := known.get((position, end))) is None:
        found = find_entry(file.fd, position, end) or end
        if len(known) >= _MAX_RESUMPTIONS:
            known.clear()
        known[position, end] = found
    return found


def _entry_before(file: SegmentFile, position: int, end: int, start: int | None) -> int | None:
    """Return the start of the entry that ends at a position, by the chain of lengths.

    The chain starts at `start`, or else at the nearest boundary in the index; None at its start.
    """
    if position == (start or 0):
        return None
    try:
        return boundaries_around(file, position - 1, end, start=start)[0]
    except ChainBrokenError as error:
        return error.position
