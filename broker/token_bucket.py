"""How often something may happen: a burst at once, then so many times a second."""

from __future__ import annotations


class TokenBucket:
    """Tokens that come back with time; its caller guards it where several threads take some."""

    def __init__(self, rate: float, burst: float, now_s: float) -> None:
        self._rate = rate  # tokens a second
        self._burst = burst
        self._left = burst
        self._updated_s = now_s

    def take(self, now_s: float, count: int = 1) -> float:
        """Take tokens if one is there; return 0, or in how many seconds there will be one.

        More may be taken than there are: they are owed.
        """
        passed_s, self._updated_s = now_s - self._updated_s, now_s
        self._left = min(self._burst, self._left + passed_s * self._rate)
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= count
        return 0.0

    def give_back(self) -> None:
        """Give back a token that was taken."""
        self._left = min(self._burst, self._left + 1)

    @property
    def is_full(self) -> bool:
        """Return whether no token was taken, as far as is known since the last one."""
        return self._left >= self._burst
