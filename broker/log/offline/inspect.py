"""Offline tools: inspect and measure segment files without a broker.

All functions work on paths, and change nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from operator import sub
from pathlib import Path
from typing import Annotated, NamedTuple

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log.batches import scan_batch_blocks
from broker.log.offline.segments import (
    has_batches,
    open_segment,
)
from broker.log.scan import ScannedBlock, boundaries_around, fault_of_large, scan_blocks
from broker.log.segment import SegmentFile
from broker.patterns import PayloadTest
from broker.protocol.codec import (
    BatchScan,
    Fault,
    Scan,
    boundaries,
    decode_record_columns,
    scan,
    unfold,
)
from broker.protocol.compression import Codec
from broker.protocol.message import entry_bytes, payload_sizes
from broker.protocol.message_set import Entry, describe_fault, filter_entries, iter_entries
from broker.records import (
    HIDDEN,
    UNTOLD,
    Bytes,
    ColumnKind,
    Fit,
    Integer,
    Millis,
    Rank,
    Text,
)
from broker.units import END_MS


class SegmentStat(NamedTuple):
    """Figures of one segment file, up to its end or its first damage."""

    file: Annotated[str, "segment file"]
    bytes: Annotated[Bytes, "size of the file, of an archive unpacked"]
    entries: Annotated[Integer, "outer entries, or batches of Kafka", Rank(2)]
    messages: Annotated[Integer, "messages, unfolded; no marks of transactions"]
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
    first_offset: Annotated[Integer, "offset of the first record of Kafka", HIDDEN] = None
    last_offset: Annotated[Integer, "offset of the last one", HIDDEN] = None
    first_time: Annotated[Millis, "earliest timestamp", HIDDEN] = None
    last_time: Annotated[Millis, "latest timestamp", HIDDEN] = None


def segment_stat(path: Path) -> SegmentStat:
    """Measure a segment file."""
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    counts = _Counts()
    end, fault = 0, Fault.NONE
    if has_batches(path):
        for batches in scan_batch_blocks(file.fd, 0, size):
            counts.add_batches(batches)
            end, fault = batches.end, batches.scan.fault
    else:
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
        fault=_name_of(counts.fault or fault),
        magics=dict(counts.magics),
        sizes=_by_power_of_two(sizes),
        payload_bytes=payload_bytes,
        valid_bytes=end,
        first_offset=min(counts.offsets, default=None),
        last_offset=max(counts.offsets, default=None),
        first_time=min(counts.times, default=None),
        last_time=max(counts.times, default=None),
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
        self.offsets: set[int] = set()  # the first and the last
        self.times: set[int] = set()  # the least and the most
        self.fault = Fault.NONE  # of the first batch whose records cannot be read

    def add_batches(self, block: ScannedBlock[BatchScan]) -> None:
        for head in block.scan.batches:
            self.magics[head.magic] += 1
            self.codecs[head.codec or Codec.NONE] += 1
            found = decode_record_columns(
                block.data[head.position : head.end],
                columns=("offsets", "timestamps", "value_offsets"),
            )
            self.fault = self.fault or found.fault
            ends = memoryview(found.value_offsets).cast("i")
            self.sizes.update(map(sub, ends[1:], ends))
            if head.codec and found.record_count:
                self.wrapped_bytes += head.size
                self.unwrapped_bytes += ends[-1]
            self._add_range(self.offsets, found.offsets)
            self._add_range(self.times, found.timestamps, below=END_MS)

    def _add_range(self, known: set[int], column: bytes, *, below: int = 2**63) -> None:
        """Widen a range by the values of a column, of which negative ones are none."""
        values = memoryview(column).cast("q")
        for end in (min, max):
            known.add(end((one for one in values if 0 <= one < below), default=-1))
        known.discard(-1)
        known &= {min(known, default=0), max(known, default=0)}

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
