"""Which of the oldest segments are past an age or a size: of a log, and of its archive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Aged(Protocol):
    """A segment, or a file of an archive."""

    @property
    def size(self) -> int:
        """Return its bytes."""

    @property
    def time_ms(self) -> int:
        """Return when its last message was appended, milliseconds since 1970."""


def expired_count(segments: Sequence[Aged], *, now_ms: int, retention_ms: int) -> int:
    """Return how many of the oldest segments had their last append too long ago."""
    count = 0
    for written_ms in written_times(segments, now_ms):
        # strictly older, as in Kafka 0.7 `LogManager.cleanupExpiredSegments`
        if now_ms - written_ms <= retention_ms:
            break
        count += 1
    return count


def written_times(segments: Sequence[Aged], now_ms: int) -> list[int]:
    """Return when segments had their last append, milliseconds since 1970."""
    # One that is dated in the future was written before the next one with a possible time: else
    # it would keep all segments behind it.
    times: list[int] = []
    next_ms: int | None = None
    for segment in reversed(segments):
        if segment.time_ms <= now_ms:
            next_ms = segment.time_ms
        times.append(segment.time_ms if next_ms is None else next_ms)
    return times[::-1]


def excess_count(segments: Sequence[Aged], *, retention_bytes: int) -> int:
    """Return how many of the oldest segments a log can lose and still keep `retention_bytes`."""
    excess = sum(segment.size for segment in segments) - retention_bytes
    if retention_bytes < 0:  # keeps all, as in Kafka 0.7 `LogManager.cleanupSegmentsToMaintainSize`
        return 0
    count = 0
    for segment in segments:
        if excess < segment.size:
            break
        excess -= segment.size
        count += 1
    return count
