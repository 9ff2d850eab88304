"""Sending at no more than a given rate.

Knows amounts and time, not what is sent.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.clock import Clock
from pylogctl.cli.units import Rate

_BURSTS_PER_SECOND = 20


class Pacer:
    """Holds a sender back to a rate.

    Args:
        rate: of messages, or of bytes of payload.
        clock: tells the time.
        wait: waits for so many seconds, or less if there is a reason to stop.
    """

    def __init__(self, rate: Rate, clock: Clock, wait: Callable[[float], object]) -> None:
        self._rate = rate
        self._clock = clock
        self._wait = wait
        self._next_s = clock.monotonic_s()

    @property
    def burst(self) -> int:
        """Return how many messages, or bytes, may go at once so that the flow stays even."""
        return max(1, int(self._rate.per_second / _BURSTS_PER_SECOND))

    def wait_for(self, message_count: int, payload_bytes: int) -> None:
        """Wait until so much more may be sent."""
        now_s = self._clock.monotonic_s()
        if self._next_s > now_s:
            self._wait(self._next_s - now_s)
        amount = payload_bytes if self._rate.in_bytes else message_count
        self._next_s = max(self._next_s, now_s) + amount / self._rate.per_second
