"""A clock that a test sets forward."""

from __future__ import annotations

import time


class Clock:
    """The machine's clock, and what `advance` has added to it; for `Broker(clock=..)`."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def advance(self, *, hours: float = 0.0, minutes: float = 0.0, seconds: float = 0.0) -> None:
        """Set the clock forward, as if so much time had passed."""
        by_s = 3600 * hours + 60 * minutes + seconds
        if by_s < 0:
            raise ValueError(f"a clock does not go back: {by_s:g} s")
        self._ahead_s += by_s

    def time_ms(self) -> int:
        """Return milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000 + round(1000 * self._ahead_s)

    def monotonic_s(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        return time.monotonic() + self._ahead_s
