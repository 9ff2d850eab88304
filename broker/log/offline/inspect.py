"""Offline tools: inspect, measure and recover segment files without a broker.

All functions work on paths. Only `recover` changes a file; it refuses to while a broker has the
data directory open. `verify` is a module of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from broker.clock import Clock, SystemClock
from broker.errors import InvalidMessageError, LogCorruptError
from broker.files import opened
from broker.log.data_directory import validate_not_in_use
from broker.log.offline.segments import base_offset_of, open_segment, segments_of
from broker.log.recovery import cut_file
from broker.log.scan import ScannedBlock, boundaries_around, fault_of_large, scan_blocks
from broker.log.segment import SegmentFile
from broker.patterns import PayloadTest
from broker.protocol.codec import Fault, Scan, boundaries, scan, unfold
from broker.protocol.compression import Codec
from broker.protocol.message import entry_bytes, payload_sizes
from broker.protocol.message_set import Entry, describe_fault, filter_entries, iter_entries
from broker.records import HIDDEN, UNTOLD, Bytes, ColumnKind, Count, Fit, Integer, Rank, Size, Text


class SegmentStat(NamedTuple):
    """Figures of one segment file, up to its end or its first damage."""

    file: Annotated[str, "segment file"]
    bytes: Annotated[Bytes, "size of the file, of an archive unpacked"]
    entries: Annotated[Integer, "outer entries", Rank(2)]
    messages: Annotated[Integer, "messages, unfolded"]
    min: Annotated[Bytes, "smallest payload", UNTOLD, Rank(3)]
    avg: Annotated[float | None, ColumnKind.BYTES, "mean payload", UNTOLD, Rank(3)]
    max: Annotated[Bytes, "largest payload", UNTOLD, Rank(3)]
    codecs: Annotated[dict[str, int], "entries by codec", Fit.WRAP, Rank(1)]
    ratio: Annotated[
        float | None, ColumnKind.NUMBER, "bytes of payload for a compressed byte", Rank(2)
    ]
    fault: Annotated[Text, "why the valid part ends", Fit.STATE]
    magics: Annotated[dict[int, int], "entries by version of the format", Fit.WRAP, HIDDEN]
    sizes: Annotated[
        dict[int, int], "messages by payload size, below each power of two", Fit.WRAP, HIDDEN
    ]
    payload_bytes: Annotated[Bytes, "bytes of all payloads", HIDDEN]
    valid_bytes: Annotated[Bytes, "size of the valid part", HIDDEN]


def segment_stat(path: Path) -> SegmentStat:
    """Measure a segment file."""
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    counts = _Counts()
    end, fault = 0, Fault.NONE
    for block in scan_blocks(file.fd, 0, size):
        counts.add(block)
        end, fault = block.end, block.scan.fault
    sizes = +counts.sizes  # without those that fell to 0
    message_count, wrapped_bytes = sizes.total(), counts.wrapped_bytes
    payload_bytes = sum(one * count for one, count in sizes.items())
    return SegmentStat(
        file=str(path),
        bytes=size,
        entries=counts.magics.total(),
        messages=message_count,
        min=min(sizes, default=None),
        avg=round(payload_bytes / message_count, 1) if message_count else None,
        max=max(sizes, default=None),
        codecs={codec.name.lower(): count for codec, count in (+counts.codecs).items()},
        ratio=round(counts.unwrapped_bytes / wrapped_bytes, 3) if wrapped_bytes else None,
        fault=_name_of(fault),
        magics=dict(counts.magics),
        sizes=_by_power_of_two(sizes),
        payload_bytes=payload_bytes,
        valid_bytes=end,
    )


def _name_of(fault: Fault) -> str | None:
    return fault.name.lower() if fault else None


class _Counts:
    """Running totals; memory grows only with the number of different message sizes."""

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        self.magics: Counter[int] = Counter()
        self.codecs: Counter[Codec] = Counter()
        self.wrapped_bytes = 0
        self.unwrapped_bytes = 0

    def add(self, block: ScannedBlock[Scan]) -> None:
        data = block.data
        starts = boundaries(data)
        magics, sizes = payload_sizes(data, starts)
        self.magics.update(magics)
        self.sizes.update(sizes)
        self.codecs[Codec.NONE] += len(magics) - len(block.scan.wrappers)
        for position in block.scan.wrappers:
            self._add_wrapper(data[position:])

    def _add_wrapper(self, data: memoryview) -> None:
        entry = next(iter_entries(data, 0))
        codec = entry.codec or Codec.NONE
        self.codecs[codec] += 1
        self.sizes[len(entry.payload)] -= 1
        try:
            sizes = [len(payload) for payload in unfold(codec, entry.payload)]
        except InvalidMessageError:
            return
        self.sizes.update(sizes)
        self.wrapped_bytes += len(entry.payload)
        self.unwrapped_bytes += sum(sizes)


def _by_power_of_two(sizes: Counter[int]) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for size, count in sizes.items():
        counts[1 << size.bit_length()] += count
    return dict(sorted(counts.items()))


_BLOCK_BYTES = 1 << 20


def iter_segment_entries(
    path: Path, start: int = 0, *, is_wanted: PayloadTest | None = None
) -> Iterator[Entry]:
    """Yield the entries of a segment file from an entry start on, also those with a bad CRC.

    The `offset` of an entry is its position in the file. With `is_wanted`, good entries without a
    payload for which it is true may be left out. Raises `LogCorruptError` if the bytes behind the
    last entry are not an entry.
    """
    file = open_segment(path)
    end = os.fstat(file.fd).st_size
    position = start
    while position < end:
        block = memoryview(os.pread(file.fd, min(_BLOCK_BYTES, end - position), position))
        spans, taken_bytes = _spans_of(block, is_wanted)
        block_start = position
        for first, last in spans:
            for entry in iter_entries(block[first:last], block_start + first):
                yield entry
                position = entry.next_offset
        position = max(position, block_start + taken_bytes)
        if position == block_start:
            entry = _large_entry(file, path, bytes(block), position, end)
            yield entry
            position = entry.next_offset


def _spans_of(
    block: memoryview, is_wanted: PayloadTest | None
) -> tuple[list[tuple[int, int]], int]:
    """Return the ranges of a block to look at, and how much of it is done with them."""
    if is_wanted is not None:
        found = filter_entries(block, is_wanted, len(block) + 1)
        if found.fault not in (Fault.SIZE, Fault.MAGIC):  # else it is looked at to its last entry
            return found.spans, found.end
    return [(0, len(block))], 0


def _large_entry(file: SegmentFile, path: Path, block: bytes, position: int, end: int) -> Entry:
    """Return an entry that is larger than the block it starts in, or raise its fault."""
    fault = scan(block).fault
    if fault is Fault.PARTIAL and len(block) == _BLOCK_BYTES < end - position:
        size = entry_bytes(block)
        fault = fault_of_large(file.fd, position, size, end)
        if not fault:
            return next(iter_entries(os.pread(file.fd, size, position), position))
    raise LogCorruptError(f"{path}: {describe_fault(fault, position)}")


def first_entry_at_or_after(path: Path, position: int) -> int:
    """Return the start of the first entry at or after a position of a segment file, or its end.

    Raises `LogCorruptError` if a length before the position is impossible.
    """
    file = open_segment(path)
    end = os.fstat(file.fd).st_size
    if position >= end:
        return end
    try:
        return boundaries_around(file, max(0, position), end)[1]
    except LogCorruptError as error:
        raise LogCorruptError(f"{path}: {error}") from error


class RecoveryPlan(NamedTuple):
    """A segment file that is, or would be, cut.

    A broker does not open a log with a gap before `later_segments` until they are moved away.
    """

    file: Annotated[str, "segment file"]
    bytes: Annotated[Size, "size of the file before", Rank(2)]
    cut_at: Annotated[Count, "position to cut at"]
    cut_bytes: Annotated[Size, "bytes that are cut"]
    fault: Annotated[Text, "what is wrong there", Fit.STATE]
    messages_kept: Annotated[Count, "valid entries before it", Rank(1)]
    later_segments: Annotated[
        list[str], "segments after the cut, to be moved away", Fit.WRAP, Rank(1)
    ]
    backup: Annotated[Text, "where the cut bytes went", Rank(2)] = None
    done: Annotated[bool, ColumnKind.BOOLEAN, "whether it was cut"] = False


def plan_recovery(path: Path) -> RecoveryPlan:
    """Find where a segment file must be cut to hold valid entries only."""
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    end, fault, count = 0, Fault.NONE, 0
    for block in scan_blocks(file.fd, 0, size):
        end, fault = block.end, block.scan.fault
        count += block.scan.entry_count
    base_offset = base_offset_of(path)
    later = []
    if fault and base_offset is not None:
        later = [one.name for one in segments_of(path.parent) if one.name > path.name]
    return RecoveryPlan(str(path), size, end, size - end, _name_of(fault), count, later)


def recover(path: Path, *, backup: bool = True, clock: Clock | None = None) -> RecoveryPlan:
    """Cut a segment file behind its last valid entry, unless a broker has the directory open.

    `backup` keeps the bytes cut off in a side file next to it, with the time of `clock` in its
    name. Raises `LogLockedError`, or `OSError`, also for a symbolic link.
    """
    validate_not_in_use(path.absolute().parent.parent)
    plan = plan_recovery(path)
    if not plan.cut_bytes:
        return plan._replace(done=True)
    if not backup:
        with opened(path, os.O_RDWR) as fd:
            os.ftruncate(fd, plan.cut_at)
        return plan._replace(done=True)
    side_file = cut_file(path, plan.cut_at, (clock or SystemClock()).time_ms())
    return plan._replace(backup=str(side_file), done=True)
