"""Offline tools: inspect, measure and recover segment files without a broker.

All functions work on paths. Only `recover` changes a file; it refuses to while a broker has the
data directory open. `verify` is a module of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from broker.clock import Clock, SystemClock
from broker.errors import InvalidMessageError, LogCorruptError
from broker.files import open_file
from broker.log.data_directory import validate_not_in_use
from broker.log.offline.segments import base_offset_of, open_segment, segments_of
from broker.log.recovery import cut_file
from broker.log.scan import ScannedBlock, boundaries_around, fault_of_large, scan_blocks
from broker.log.segment import SegmentFile
from broker.patterns import PayloadTest
from broker.protocol.codec import Fault, boundaries, scan, unfold
from broker.protocol.compression import Codec
from broker.protocol.message import entry_bytes, payload_sizes
from broker.protocol.message_set import Entry, describe_fault, filter_entries, iter_entries


@dataclass(frozen=True, slots=True)
class SegmentStat:
    """Figures of one segment file, up to its end or its first damage.

    Attributes:
        fault: at the end of the good part; `NONE` at the end of the file.
        entry_count: outer entries.
        message_count: those inside wrappers counted singly.
        payload_bytes: of all messages, decompressed.
        min_payload_bytes: None without messages, as the largest and the mean.
        payload_size_counts: messages by size class: those under each power of two and not under the
            one before it.
        codec_counts: entries by the name of their codec.
        wrapped_bytes: payloads of the wrappers, as stored.
        unwrapped_bytes: payloads of the messages inside them.
    """

    path: Path
    size_bytes: int
    valid_bytes: int
    fault: Fault
    entry_count: int
    message_count: int
    payload_bytes: int
    min_payload_bytes: int | None
    max_payload_bytes: int | None
    payload_size_counts: Mapping[int, int]
    magic_counts: Mapping[int, int]
    codec_counts: Mapping[str, int]
    wrapped_bytes: int
    unwrapped_bytes: int

    @property
    def average_payload_bytes(self) -> float | None:
        """Return the mean message size."""
        return self.payload_bytes / self.message_count if self.message_count else None

    @property
    def compression_ratio(self) -> float | None:
        """Return the ratio of unwrapped to wrapped bytes; None without wrappers."""
        return self.unwrapped_bytes / self.wrapped_bytes if self.wrapped_bytes else None


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
    return SegmentStat(
        path=path,
        size_bytes=size,
        valid_bytes=end,
        fault=fault,
        entry_count=counts.magics.total(),
        message_count=sizes.total(),
        payload_bytes=sum(one * count for one, count in sizes.items()),
        min_payload_bytes=min(sizes, default=None),
        max_payload_bytes=max(sizes, default=None),
        payload_size_counts=_by_power_of_two(sizes),
        magic_counts=counts.magics,
        codec_counts={codec.name.lower(): count for codec, count in (+counts.codecs).items()},
        wrapped_bytes=counts.wrapped_bytes,
        unwrapped_bytes=counts.unwrapped_bytes,
    )


class _Counts:
    """Running totals; memory grows only with the number of different message sizes."""

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        self.magics: Counter[int] = Counter()
        self.codecs: Counter[Codec] = Counter()
        self.wrapped_bytes = 0
        self.unwrapped_bytes = 0

    def add(self, block: ScannedBlock) -> None:
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


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The truncation of one segment file, planned or done.

    Attributes:
        size_bytes: before the truncation.
        valid_end: the end of the good part.
        fault: at that end, `NONE` without one.
        entry_count: good entries.
        later_segments: segments of the same log behind the cut; a broker does not open a log with
            such a gap until they are moved away.
        side_file: holds the bytes cut off; None if they were not kept, or not cut yet.
    """

    path: Path
    size_bytes: int
    valid_end: int
    fault: Fault
    entry_count: int
    later_segments: tuple[Path, ...]
    side_file: Path | None = None

    @property
    def cut_bytes(self) -> int:
        """Return how many bytes are cut off."""
        return self.size_bytes - self.valid_end


def plan_recovery(path: Path) -> RecoveryPlan:
    """Find where a segment file must be cut to hold valid entries only."""
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    end, fault, count = 0, Fault.NONE, 0
    for block in scan_blocks(file.fd, 0, size):
        end, fault = block.end, block.scan.fault
        count += block.scan.entry_count
    base_offset = base_offset_of(path)
    later: tuple[Path, ...] = ()
    if fault and base_offset is not None:
        later = tuple(one for one in segments_of(path.parent) if one.name > path.name)
    return RecoveryPlan(path, size, end, fault, count, later)


def recover(path: Path, *, backup: bool = True, clock: Clock | None = None) -> RecoveryPlan:
    """Cut a segment file behind its last valid entry, unless a broker has the directory open.

    `backup` keeps the bytes cut off in a side file next to it, with the time of `clock` in its
    name. Raises `LogLockedError`, or `OSError`, also for a symbolic link.
    """
    validate_not_in_use(path.absolute().parent.parent)
    plan = plan_recovery(path)
    if not plan.cut_bytes:
        return plan
    if not backup:
        fd = open_file(path, os.O_RDWR)
        try:
            os.ftruncate(fd, plan.valid_end)
        finally:
            os.close(fd)
        return plan
    side_file = cut_file(path, plan.valid_end, (clock or SystemClock()).time_ms())
    return replace(plan, side_file=side_file)
