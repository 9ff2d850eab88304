"""The wait after a failed AUTHENTICATE: longer for each failure of an address.

It is answered after the wait, and no other attempt from there begins before: else who guesses
passwords would leave and come back instead of waiting for the answer.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable

from broker.clock import Clock
from broker.endpoints import network_of

FIRST_DELAY_S = 0.1
MAX_DELAY_S = 5.0
_FORGOTTEN_S = 600.0
_MAX_ADDRESSES = 10_000


class FailureDelays:
    """Runs what goes on after a wait; by address, never by user, who would be locked out.

    One thread waits for all; it starts with the first failure.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, tuple[float, int]] = OrderedDict()  # last, and how often
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()  # guards the fields above and below
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def before_attempt(self, address: str, begin: Callable[[], object]) -> float:
        """Run `begin` when the last failure of an address is over; return the wait in s."""
        with self._changed:
            last_s, count = self._failed.get(network_of(address), (0.0, 0))
            wait_s = last_s + _delay_s(count) - self._clock.monotonic_s()
            if count and wait_s > 0 and self._schedule(wait_s, begin):
                return wait_s
        begin()
        return 0.0

    def after_failure(self, address: str, answer: Callable[[], object]) -> float:
        """Run `answer` after the delay of an address, at the latest at the stop; return it in s."""
        network = network_of(address)
        with self._changed:
            now_s = self._clock.monotonic_s()
            last_s, count = self._failed.pop(network, (now_s, 0))
            count = 1 if now_s - last_s > _FORGOTTEN_S else count + 1
            self._failed[network] = (now_s, count)
            if len(self._failed) > _MAX_ADDRESSES:
                self._failed.popitem(last=False)
            if self._schedule(_delay_s(count), answer):
                return _delay_s(count)
        answer()
        return 0.0

    def _schedule(self, wait_s: float, action: Callable[[], object]) -> bool:
        """Have the thread run something after a wait, with the lock; False after the stop."""
        if self._is_stopped:
            return False
        heapq.heappush(self._due, (self._clock.monotonic_s() + wait_s, next(self._numbers), action))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="failure-delays", daemon=True)
            self._thread.start()
        self._changed.notify()
        return True

    def stop(self) -> None:
        """Run everything that waits, now."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_stopped and (wait_s := self._wait_s()) is not None:
                    self._changed.wait(wait_s or None)
                if not self._due:
                    return
                _, _, answer = heapq.heappop(self._due)
            answer()

    def _wait_s(self) -> float | None:
        """Return how long to wait, 0 without an end; None if something is due."""
        if not self._due:
            return 0.0
        wait_s = self._due[0][0] - self._clock.monotonic_s()
        return wait_s if wait_s > 0 else None


def _delay_s(count: int) -> float:
    """Return the wait after so many failures."""
    return min(FIRST_DELAY_S * 2.0 ** min(count - 1, 10), MAX_DELAY_S)
