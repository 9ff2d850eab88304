"""Rates, averages and maxima over a window, as 0.7's `SnapshotStats` keeps them."""

from __future__ import annotations

import threading
from typing import NamedTuple

from broker.clock import Clock


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


class WindowedStats:
    """Counts events and how long they took, in windows of `period_s` seconds, above 0.

    Unlike in 0.7, a window ends by the clock, also without events: the figures of a busy hour do
    not remain during the idle hour that follows.
    """

    def __init__(self, clock: Clock, period_s: float) -> None:
        self._clock = clock
        self._period_s = period_s
        self._lock = threading.Lock()
        self._started_s = clock.monotonic_s()
        self._count = 0
        self._total_s = self._max_s = 0.0
        self._last = Window(0, 0.0, 0.0, 0.0)
        self.count = 0  # events since the start
        self.total_s = 0.0  # which they took together

    def record(self, elapsed_s: float, count: int = 1) -> None:
        """Count `count` events that took `elapsed_s` together."""
        with self._lock:
            self._roll()
            self.count += count
            self.total_s += elapsed_s
            self._count += count
            self._total_s += elapsed_s
            if elapsed_s > self._max_s * count:
                self._max_s = elapsed_s / count

    def window(self) -> Window:
        """Return the last completed window, or the running one if it is the first."""
        with self._lock:
            self._roll()
            if self._last.length_s:
                return self._last
            length_s = self._clock.monotonic_s() - self._started_s
            return Window(self._count, self._total_s, self._max_s, length_s)

    def _roll(self) -> None:
        elapsed_s = self._clock.monotonic_s() - self._started_s
        if elapsed_s < self._period_s:
            return
        is_stale = elapsed_s >= 2 * self._period_s
        current = Window(self._count, self._total_s, self._max_s, self._period_s)
        self._last = Window(0, 0.0, 0.0, self._period_s) if is_stale else current
        self._count, self._total_s, self._max_s = 0, 0.0, 0.0
        self._started_s += elapsed_s // self._period_s * self._period_s
