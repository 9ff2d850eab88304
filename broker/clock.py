"""The clock, an argument everywhere so that tests can control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of the time."""

    def time_ms(self) -> int:
        """Return milliseconds since 1970, UTC: comparable with file times and wire timestamps."""

    def monotonic_s(self) -> float:
        """Return seconds from an arbitrary start that never go back: for deadlines."""


class SystemClock:
    """The machine's own clocks."""

    def time_ms(self) -> int:
        """Return milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000

    # without a Python call of its own: each publish asks five times
    monotonic_s = staticmethod(time.monotonic)
