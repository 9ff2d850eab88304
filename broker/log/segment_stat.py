"""What a segment file holds, in figures.

Owns the counting; looks at one block at a time and changes nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from broker.errors import InvalidMessageError
from broker.log.segment import SegmentFile
from broker.log.walk import ScannedBlock, scan_blocks
from broker.protocol.codec import (
    ENTRY_OVERHEAD_BYTES,
    LENGTH_BYTES,
    Fault,
    boundaries,
    unfold,
)
from broker.protocol.compression import Codec
from broker.protocol.message_set import iter_entries


@dataclass(frozen=True, slots=True)
class SegmentStat:
    """Figures of one segment file, up to its end or its first damage.

    Attributes:
        path: the file.
        size_bytes: its size.
        valid_bytes: how far it is good.
        fault: what ended the good part, `NONE` for the end of the file.
        entry_count: outer entries.
        message_count: messages, those inside wrappers counted singly.
        payload_bytes: of all messages, decompressed.
        min_payload_bytes: the smallest message's; 0 without messages.
        max_payload_bytes: the largest message's.
        payload_size_counts: messages by size class: those under each power of two and not under
            the one before it.
        magic_counts: entries by magic byte.
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
    min_payload_bytes: int
    max_payload_bytes: int
    payload_size_counts: Mapping[int, int]
    magic_counts: Mapping[int, int]
    codec_counts: Mapping[str, int]
    wrapped_bytes: int
    unwrapped_bytes: int

    @property
    def average_payload_bytes(self) -> float:
        """Return the mean message size; 0 without messages."""
        return self.payload_bytes / self.message_count if self.message_count else 0.0

    @property
    def compression_ratio(self) -> float | None:
        """Return how many bytes of payload a compressed byte stands for; None without any."""
        return self.unwrapped_bytes / self.wrapped_bytes if self.wrapped_bytes else None


def segment_stat(path: Path) -> SegmentStat:
    """Measure a segment file.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
    """
    file = SegmentFile(path)
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
        min_payload_bytes=min(sizes, default=0),
        max_payload_bytes=max(sizes, default=0),
        payload_size_counts=_by_power_of_two(sizes),
        magic_counts=counts.magics,
        codec_counts={codec.name.lower(): count for codec, count in (+counts.codecs).items()},
        wrapped_bytes=counts.wrapped_bytes,
        unwrapped_bytes=counts.unwrapped_bytes,
    )


class _Counts:
    """Running totals; memory grows with the number of different message sizes only."""

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        self.magics: Counter[int] = Counter()
        self.codecs: Counter[Codec] = Counter()
        self.wrapped_bytes = 0
        self.unwrapped_bytes = 0

    def add(self, block: ScannedBlock) -> None:
        data = block.data
        starts = boundaries(data)
        magics = [data[start + LENGTH_BYTES] for start in starts[:-1]]
        self.magics.update(magics)
        # Magic 0 has no attributes, so one byte less before the payload.
        header_bytes = ENTRY_OVERHEAD_BYTES - 1
        self.sizes.update(
            end - start - header_bytes - magic
            for (start, end), magic in zip(pairwise(starts), magics, strict=True)
        )
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
