"""How far a group is behind, and what its recent history says about it: pure functions.

One partition is judged over a window of samples; the worst status of its partitions is that of a
group. Nothing here asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

MIN_SAMPLES = 2


class Status(StrEnum):
    """How a partition of a group does, from best to worst."""

    OK = "OK"
    IDLE = "IDLE"  # a member that has no partition
    NO_OFFSET = "NO-OFFSET"
    LAG = "LAG"
    WARN = "WARN"
    STALL = "STALL"
    REWIND = "REWIND"
    STOP = "STOP"
    UNKNOWN = "UNKNOWN"
    GONE = "GONE"
    MISALIGNED = "MISALIGNED"
    OUT_OF_RANGE = "OUT-OF-RANGE"
    NOT_A_NUMBER = "NOT-A-NUMBER"


MEANINGS: dict[Status, str] = {
    Status.OK: "the lag is within the allowance, or was so at some point of the window, or shrinks",
    Status.IDLE: "a member that owns no partition",
    Status.NO_OFFSET: "nothing was ever committed",
    Status.LAG: "behind; without a window there is no more to say",
    Status.WARN: "consumes, but the lag never shrinks",
    Status.STALL: "commits, but the offset does not move",
    Status.REWIND: "the offset went back and has not caught up again",
    Status.STOP: "no commit for longer than the window, and not at the end",
    Status.UNKNOWN: "its broker does not answer",
    Status.GONE: "the partition is not there, or its broker is not",
    Status.MISALIGNED: "the committed offset lies inside a message (looked for with --count)",
    Status.OUT_OF_RANGE: "the committed offset is before the first or after the last message",
    Status.NOT_A_NUMBER: "the committed offset is no number",
}
_BADNESS = {status: place for place, status in enumerate(Status)}


class Sample(NamedTuple):
    """What was seen of a partition at one moment; times are milliseconds since 1970.

    `offset` is the committed one and `commit_ms` when it was; `end` is the offset after the last
    message that can be read.
    """

    time_ms: int
    offset: int
    end: int
    commit_ms: int

    @property
    def lag_bytes(self) -> int:
        """Return the bytes that are still to be read, never less than none."""
        return max(0, self.end - self.offset)


def window_status(samples: Sequence[Sample], *, allowed_lag: int = 0, window_ms: int = 0) -> Status:
    """Return how a partition does over a window.

    Args:
        samples: at least one, oldest first.
        allowed_lag: bytes of lag that do not count.
        window_ms: the window wanted; nothing is judged before half of it has been seen.
    """
    last = samples[-1]
    if last.lag_bytes <= allowed_lag:
        return Status.OK
    covered_ms = last.time_ms - samples[0].time_ms
    if len(samples) < MIN_SAMPLES or 2 * covered_ms < window_ms:
        return Status.LAG
    was_at_end = any(one.lag_bytes <= allowed_lag for one in samples)
    if last.time_ms - last.commit_ms > covered_ms and not was_at_end:
        return Status.STOP
    if last.offset < max(one.offset for one in samples):
        return Status.REWIND
    if was_at_end:
        return Status.OK
    if all(one.offset == last.offset for one in samples):
        return Status.STALL
    if all(after.lag_bytes >= before.lag_bytes for before, after in pairwise(samples)):
        return Status.WARN
    return Status.OK


def within_window(samples: Sequence[Sample], window_ms: int) -> Sequence[Sample]:
    """Return the last samples: those of the window, and the one that stood at its start.

    Args:
        samples: at least one, oldest first.
        window_ms: 0 for the last one only.
    """
    start_ms = samples[-1].time_ms - window_ms
    first = max((place for place, one in enumerate(samples) if one.time_ms <= start_ms), default=0)
    return samples[first:]


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst of some statuses; OK if there are none."""
    return max(statuses, key=_BADNESS.__getitem__, default=Status.OK)


def consume_rate(samples: Sequence[Sample]) -> float | None:
    """Return the bytes a second by which the committed offset moved over the window.

    Args:
        samples: oldest first.

    Returns:
        None with fewer than two samples; below zero if the offset went back.
    """
    if len(samples) < MIN_SAMPLES or samples[-1].time_ms <= samples[0].time_ms:
        return None
    elapsed_s = (samples[-1].time_ms - samples[0].time_ms) / 1000
    return (samples[-1].offset - samples[0].offset) / elapsed_s


def eta_s(lag_bytes: int, rate: float | None) -> float | None:
    """Return after how many seconds a lag is gone at a rate, if nothing new comes.

    Returns:
        None if that is not known, or never.
    """
    if lag_bytes == 0:
        return 0.0
    return lag_bytes / rate if rate is not None and rate > 0 else None


def age_s(samples: Sequence[Sample]) -> float | None:
    """Return for how long the log's end has been past the committed offset.

    This is the age in seconds of the oldest message that is not consumed, as far as the samples
    tell: the time since the end had the value of the committed offset, on a straight line between
    two samples.

    Args:
        samples: oldest first.

    Returns:
        0 without lag, None if the end was past the offset in all samples.
    """
    if not samples:
        return None
    last = samples[-1]
    if last.lag_bytes == 0:
        return 0.0
    for before, after in reversed(list(pairwise(samples))):
        if before.end <= last.offset < after.end:
            share = (last.offset - before.end) / (after.end - before.end)
            then_ms = before.time_ms + share * (after.time_ms - before.time_ms)
            return (last.time_ms - then_ms) / 1000
    return None
