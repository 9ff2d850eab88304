"""Offsets found by time, and message boundaries found around a position.

Pure questions on a snapshot of a log's segments; the log hands in what is visible.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence

from broker.errors import LogCorruptError
from broker.log.scan import find_entry, has_good_crc
from broker.log.segment import SPACING_BYTES, Segment, SegmentFile
from broker.protocol.codec import LENGTH_BYTES, MAGIC0_HEADER_BYTES, boundaries

LATEST_TIME = -1
EARLIEST_TIME = -2


def offsets_before(
    segments: Sequence[Segment], visible_end: int, *, now_ms: int, time_ms: int, max_offsets: int
) -> list[int]:
    """Return segment starts, and the visible end, written at or before a time.

    Args:
        segments: the log's segments, oldest first.
        visible_end: the high watermark.
        now_ms: the time of answering; the visible end counts as written then.
        time_ms: -1 for the latest offsets, -2 for the earliest, else milliseconds since 1970.
        max_offsets: how many offsets to return at most.

    Returns:
        Offsets, the largest first. The resolution is one segment.

    Source: Kafka 0.7 `Log.getOffsetsBefore`.
    """
    visible = [segment for segment in segments if segment.base_offset <= visible_end]
    candidates = [(segment.base_offset, segment.modified_ms) for segment in visible]
    if visible_end > visible[-1].base_offset:
        candidates.append((visible_end, now_ms))
    if time_ms == LATEST_TIME:
        count = len(candidates)
    elif time_ms == EARLIEST_TIME:
        count = 1
    else:
        count = len(candidates)
        while count and candidates[count - 1][1] > time_ms:
            count -= 1
    newest_first = [offset for offset, _ in reversed(candidates[:count])]
    return newest_first[: max(0, max_offsets)]


class ChainBrokenError(LogCorruptError):
    """An entry has a length that cannot be, so where the next one starts is not known.

    Args:
        position: where in the file the entry starts.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"the message at position {position} has an impossible length")
        self.position = position


def boundaries_around(
    file: SegmentFile, target: int, end: int, *, start: int | None = None
) -> tuple[int, int]:
    """Return the entry starts at or before, and at or after, a position of a segment file.

    Walks from the nearest boundary the file's index knows, and teaches it what it passes.

    Args:
        file: the open segment file.
        target: a position in it, from 0 to below `end`.
        end: a boundary: the segment's size, or its visible part.
        start: a boundary to walk from instead, at most `target`.

    Returns:
        Two positions, equal when the target is itself a boundary.

    Raises:
        ChainBrokenError: the chain of lengths breaks before the target.
        OSError: the file cannot be read.
    """
    position = file.boundaries.floor(target) if start is None else start
    while True:
        block = os.pread(file.fd, min(SPACING_BYTES, end - position), position)
        starts = boundaries(block)
        if len(starts) == 1:
            starts.append(_entry_length(block, position, end))
        if position + starts[-1] > target:
            return _neighbours(starts, target - position, position)
        position += starts[-1]
        if position == target:
            return target, target
        file.boundaries.insert(position)


def boundaries_despite_damage(file: SegmentFile, target: int, end: int) -> tuple[int, int]:
    """Return the same where entries may be damaged, so that readers can go on behind them.

    A damaged entry reaches up to the next good one. Lengths alone are not trusted: an entry that
    the target lies inside of is checked, and so is the one behind it.

    Args:
        file: the open segment file.
        target: a position in it, from 0 to below `end`.
        end: a boundary: the segment's size, or its visible part.

    Raises:
        OSError: the file cannot be read.
    """
    start = None
    while True:
        try:
            before, after = boundaries_around(file, target, end, start=start)
        except ChainBrokenError as error:
            before = error.position
        else:
            if after in (target, end) or any(
                has_good_crc(file.fd, at, end) for at in (before, after)
            ):
                return before, after
        start = find_entry(file.fd, before + 1, end) or end
        if start > target:
            return before, start


def _entry_length(block: bytes, position: int, end: int) -> int:
    """Return the length of an entry that is larger than the block it starts in."""
    length = int.from_bytes(block[:LENGTH_BYTES], "big", signed=True)
    if length < MAGIC0_HEADER_BYTES or position + LENGTH_BYTES + length > end:
        raise ChainBrokenError(position)
    return LENGTH_BYTES + length


def _neighbours(starts: list[int], target: int, position: int) -> tuple[int, int]:
    at = bisect_left(starts, target)
    before = at if starts[at] == target else at - 1
    return position + starts[before], position + starts[at]
