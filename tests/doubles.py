"""Stand-ins for time and for peers that cannot be had."""

from __future__ import annotations


class FakeClock:
    """A clock that only moves when told to.

    Args:
        time_ms: milliseconds since 1970 at the start.
    """

    def __init__(self, time_ms: int = 1_700_000_000_000) -> None:
        self._time_ms = time_ms
        self._monotonic_s = 1000.0

    def time_ms(self) -> int:
        return self._time_ms

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def jump(self, seconds: float) -> None:
        """Set the time, as an operator or a time server does; no time passes."""
        self._time_ms += round(seconds * 1000)

    def advance(self, seconds: float) -> None:
        self._monotonic_s += seconds
        self._time_ms += round(seconds * 1000)
