"""How often events happened and how long they took: since the start, and in windows.

Windows are those of 0.7's `SnapshotStats`; the buckets are Prometheus' histograms.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from broker.clock import Clock

REQUEST_BOUNDS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Inclusive upper ends of buckets; times above the last one are in one more bucket."""
FLUSH_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
ELECTION_BOUNDS_S = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    *(30.0, 60.0),
)


class Window(NamedTuple):
    """The figures of one window; times in seconds."""

    event_count: int
    total_s: float
    max_s: float
    length_s: float

    @property
    def per_second(self) -> float:
        """Return events per second."""
        return self.event_count / self.length_s if self.length_s else 0.0


class _Running:
    """The window that events are counted in."""

    __slots__ = ("count", "max_s", "started_s", "total_s")

    def __init__(self, started_s: float) -> None:
        self.started_s = started_s
        self.count = 0
        self.total_s = self.max_s = 0.0


class Histogram:
    """Counts the events of one thread since the start by how long they took.

    Only its thread records, so that counting takes no lock; any thread reads.
    """

    def __init__(self, bounds_s: tuple[float, ...] = REQUEST_BOUNDS_S) -> None:
        self.bounds_s: tuple[float, ...] = bounds_s
        self.bucket_counts: list[int] = [0] * (len(bounds_s) + 1)
        self.total_s: float = 0.0  # which the events took together

    @property
    def count(self) -> int:
        """Return how many events there were."""
        return sum(self.bucket_counts)

    def record(self, elapsed_s: float, count: int = 1) -> None:
        """Count `count` events that took `elapsed_s` together."""
        self.bucket_counts[bisect_left(self.bounds_s, elapsed_s / count)] += count
        self.total_s += elapsed_s

    def add(self, other: Histogram) -> None:
        """Count the events of another one, with the same bounds, as well."""
        self.bucket_counts = bucket_counts([self, other])
        self.total_s += other.total_s


def bucket_counts(stats: Iterable[Histogram]) -> list[int]:
    """Return how many events several threads counted in each bucket."""
    return [sum(each) for each in zip(*(list(one.bucket_counts) for one in stats), strict=True)]


class WindowedStats(Histogram):
    """Has the events of windows of `period_s` seconds, above 0, besides.

    Unlike in 0.7, a window ends by the clock, also without events: the figures of a busy hour do
    not remain during the idle hour that follows.
    """

    def __init__(
        self, clock: Clock, period_s: float, bounds_s: tuple[float, ...] = REQUEST_BOUNDS_S
    ) -> None:
        super().__init__(bounds_s)
        self._clock = clock
        self._period_s = period_s
        self._running = _Running(clock.monotonic_s())
        self._last = Window(0, 0.0, 0.0, 0.0)

    def record(self, elapsed_s: float, count: int = 1) -> None:
        """Count `count` events that took `elapsed_s` together."""
        running = self._running
        now_s = self._clock.monotonic_s()
        if now_s - running.started_s >= self._period_s:
            self._last = self._at(running, now_s)
            periods = (now_s - running.started_s) // self._period_s
            running = self._running = _Running(running.started_s + periods * self._period_s)
        each_s = elapsed_s / count
        # as in `Histogram.record`, which would be a call more on the path of a publish
        self.bucket_counts[bisect_left(self.bounds_s, each_s)] += count
        self.total_s += elapsed_s
        running.count += count
        running.total_s += elapsed_s
        if each_s > running.max_s:
            running.max_s = each_s

    def window(self) -> Window:
        """Return the last completed window, or the running one if it is the first."""
        running = self._running  # read before the last one, which is set before this is replaced
        last = self._last
        now_s = self._clock.monotonic_s()
        if now_s - running.started_s < self._period_s and last.length_s:
            return last
        return self._at(running, now_s)

    def _at(self, running: _Running, now_s: float) -> Window:
        """Return the last completed window at a time if this one was running until then."""
        elapsed_s = now_s - running.started_s
        if elapsed_s >= 2 * self._period_s:
            return Window(0, 0.0, 0.0, self._period_s)
        length_s = min(elapsed_s, self._period_s)
        return Window(running.count, running.total_s, running.max_s, length_s)


class SharedHistogram(Histogram):
    """Counts the events of several threads."""

    def __init__(self, bounds_s: tuple[float, ...] = REQUEST_BOUNDS_S) -> None:
        super().__init__(bounds_s)
        self._lock = threading.Lock()

    def record(self, elapsed_s: float, count: int = 1) -> None:
        """Count `count` events that took `elapsed_s` together."""
        with self._lock:
            super().record(elapsed_s, count)


class SharedStats(WindowedStats):
    """Counts the events of several threads."""

    def __init__(self, clock: Clock, period_s: float, bounds_s: tuple[float, ...]) -> None:
        super().__init__(clock, period_s, bounds_s)
        self._lock = threading.Lock()

    def record(self, elapsed_s: float, count: int = 1) -> None:
        """Count `count` events that took `elapsed_s` together."""
        with self._lock:
            super().record(elapsed_s, count)
