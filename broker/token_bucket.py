"""How often something may happen: a burst at once, then so many times a second."""

from __future__ import annotations

import math


class TokenBucket:
    """Tokens that come back with time; its caller guards it where several threads take some."""

    def __init__(self, rate: float, burst: float, now_s: float) -> None:
        self._rate = rate  # tokens a second
        self._burst = burst
        self._left = burst
        self._updated_s = now_s

    def take(self, now_s: float) -> float:
        """Take a token if one is there; return 0, or in how many seconds there will be one."""
        self._refill(now_s)
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0

    def spend(self, now_s: float, count: float = 1, longest_s: float = math.inf) -> float:
        """Take tokens, there or not; return in how many seconds none is owed any more.

        No more are owed than come back in `longest_s`.
        """
        self._refill(now_s)
        self._left = max(self._left - count, -self._rate * longest_s)
        return max(0.0, -self._left / self._rate)

    def _refill(self, now_s: float) -> None:
        passed_s, self._updated_s = now_s - self._updated_s, now_s
        self._left = min(self._burst, self._left + passed_s * self._rate)

    def give_back(self) -> None:
        """Give back a token that was taken."""
        self._left = min(self._burst, self._left + 1)

    @property
    def is_full(self) -> bool:
        """Return whether no token was taken, as far as is known since the last one."""
        return self._left >= self._burst
