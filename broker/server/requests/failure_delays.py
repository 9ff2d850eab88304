"""The wait after a failed login: longer for each failure of a user at an address.

It is answered after the wait, and no other login of that user from there is judged before: who
opens many connections tries no more passwords by that. A login of the user from there ends it. With
several failures of an address, logins of any users from there are judged one after the other as
well. Other addresses do not wait: else anybody could lock a user out.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from broker.clock import Clock
from broker.endpoints import network_of
from broker.threads import LoopThread, logged

FIRST_DELAY_S = 0.1
MAX_DELAY_S = 5.0
MAX_WAIT_S = 10.0
"""A login whose turn comes later than that is not judged."""
_MANY = 10
_ADDRESS_GAP_S = 0.1
"""Between two logins of an address with so many failures."""
_FORGOTTEN_S = 600.0
_MAX_REMEMBERED = 10_000
_ANY_USER = None


@dataclass(eq=False, slots=True)
class _Failures:
    count: int = 0
    last_s: float = 0.0
    next_s: float = 0.0  # when the next login is judged


class FailureDelays:
    """Tells when a login is judged and when its failure is answered.

    One thread waits for all; it starts with the first wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: OrderedDict[tuple[str, str | None], _Failures] = OrderedDict()
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()  # guards the fields above and below
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def take_turn(self, address: str, user: str, *, is_taken: bool = True) -> float:
        """Return in how many seconds a login is to be judged; above `MAX_WAIT_S` it has no turn.

        Unless `is_taken`, another one may still have that turn.
        """
        network = network_of(address)
        with self._changed:
            now_s = self._clock.monotonic_s()
            of_user = self._find(network, user, 1, now_s)
            of_address = self._find(network, _ANY_USER, _MANY, now_s)
            start_s = max([now_s, *(one.next_s for one in (of_user, of_address) if one)])
            if is_taken and start_s - now_s <= MAX_WAIT_S:
                if of_user is not None:
                    of_user.next_s = start_s + _delay_s(of_user.count)
                if of_address is not None:  # from its own base: others do not wait for a slow user
                    of_address.next_s = max(now_s, of_address.next_s) + _ADDRESS_GAP_S
            return start_s - now_s

    def _find(self, network: str, user: str | None, least: int, now_s: float) -> _Failures | None:
        found = self._failed.get((network, user))
        if found is None or found.count < least or now_s - found.last_s > _FORGOTTEN_S:
            return None
        return found

    def forget(self, address: str, user: str) -> None:
        """Forget the failures of a user at an address, from which it has logged in."""
        with self._changed:
            self._failed.pop((network_of(address), user), None)

    def after_failure(self, address: str, user: str, answer: Callable[[], object]) -> float:
        """Run `answer` after the delay of a user at an address; return that in seconds."""
        network = network_of(address)
        with self._changed:
            now_s = self._clock.monotonic_s()
            self._count(network, _ANY_USER, now_s)
            of_user = self._count(network, user, now_s)
            delay_s = _delay_s(of_user.count)
            of_user.next_s = max(of_user.next_s, now_s + delay_s)
            while len(self._failed) > _MAX_REMEMBERED:
                self._failed.popitem(last=False)
        self.run_later(delay_s, answer)
        return delay_s

    def _count(self, network: str, user: str | None, now_s: float) -> _Failures:
        found = self._failed.setdefault((network, user), _Failures())
        self._failed.move_to_end((network, user))
        found.count = 1 if now_s - found.last_s > _FORGOTTEN_S else found.count + 1
        found.last_s = now_s
        return found

    def run_later(self, wait_s: float, action: Callable[[], object]) -> None:
        """Run something after a wait, at the latest at the stop."""
        with self._changed:
            if self._schedule(wait_s, action):
                return
        action()

    def _schedule(self, wait_s: float, action: Callable[[], object]) -> bool:
        """Have the thread run something after a wait, with the lock; False after the stop."""
        if self._is_stopped:
            return False
        heapq.heappush(self._due, (self._clock.monotonic_s() + wait_s, next(self._numbers), action))
        if self._thread is None:
            self._thread = LoopThread(self._run, name="failure-delays")
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
            logged(answer)()

    def _wait_s(self) -> float | None:
        """Return how long to wait, 0 without an end; None if something is due."""
        if not self._due:
            return 0.0
        wait_s = self._due[0][0] - self._clock.monotonic_s()
        return wait_s if wait_s > 0 else None


def _delay_s(count: int) -> float:
    """Return the wait after so many failures."""
    return min(FIRST_DELAY_S * 2.0 ** min(count - 1, 10), MAX_DELAY_S)
