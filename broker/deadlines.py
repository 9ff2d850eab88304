"""The deadline of the call that a thread is in: each wait inside asks how much is left of it.

A call of the API sets it, and connections, locks and pauses below keep to it, so that the functions
in between need no argument for it. A new thread has none.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, Protocol, TypeVar

from broker.errors import RequestTimeoutError

_GRACE_S = 1.0
_T = TypeVar("_T")


class _Thread(threading.local):
    call: Limit | None = None  # the innermost one


_thread = _Thread()


class Limit:
    """Limits what a thread does in a block to some seconds (None: no limit), and to outer blocks'.

    A class for its speed: a producer enters it for each message.
    """

    __slots__ = ("_limit_until_s", "_outer", "has_changed", "started_s", "until_s")

    def __init__(self, seconds: float | None) -> None:
        self._outer = _thread.call
        # whether a request was sent that may have changed something
        self.has_changed = False
        self.started_s = time.monotonic()
        self._limit_until_s: float = math.inf if self._outer is None else self._outer.until_s
        self.until_s: float = self._limit_until_s
        if seconds is not None:
            self.until_s = min(self.started_s + seconds, self._limit_until_s)

    def __enter__(self) -> Limit:
        _thread.call = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        _thread.call = self._outer
        if self._outer is not None:
            self._outer.has_changed |= self.has_changed

    def set_limit(self, seconds: float) -> None:
        """Replace the seconds, which are counted from the start of the block."""
        self.until_s = min(self.started_s + seconds, self._limit_until_s)


def current() -> Limit | None:
    """Return the innermost block that this thread is in."""
    return _thread.call


def left_s(limit_s: float = math.inf) -> float:
    """Return the seconds until the deadline, from 0 on; at most `limit_s`."""
    call = _thread.call
    if call is None or call.until_s == math.inf:
        return limit_s
    return min(limit_s, max(0.0, call.until_s - time.monotonic()))


def wait_s(limit_s: float = math.inf) -> float:
    """Return how long a wait of `limit_s` may last; `RequestTimeoutError` if the call is over."""
    found = left_s(limit_s)
    if found <= 0 < limit_s:
        raise timed_out("the time limit of the call is over")
    return found


def join_s() -> float | None:
    """Return how long to wait for the end of a thread: at the deadline there is a grace."""
    call = _thread.call
    return None if call is None or call.until_s == math.inf else left_s() + _GRACE_S


def timed_out(text: str) -> RequestTimeoutError:
    """Return the error of a wait that took too long; it tells whether the call changed anything."""
    error = RequestTimeoutError(text)
    error.outcome = outcome()
    return error


def outcome() -> Literal["not_done", "unknown"]:
    """Return what is known of a call that ends here; "unknown" outside of one."""
    call = _thread.call
    if call is None:
        return "unknown"
    while call is not None:
        if call.has_changed:
            return "unknown"
        call = call._outer
    return "not_done"


def note_change() -> None:
    """Note that a request is sent which changes something: the call's outcome is unknown now."""
    if (call := _thread.call) is not None:
        call.has_changed = True


def sleep(seconds: float) -> None:
    """Wait; `RequestTimeoutError` if the deadline comes first."""
    allowed_s = wait_s(seconds)
    time.sleep(allowed_s)
    if allowed_s < seconds:
        wait_s()


def remaining(look: Callable[[], _T], give_up_s: float, pause_s: float = 0.05) -> _T:
    """Look until nothing remains, or the time is up; return what does (`give_up_s`: monotonic)."""
    while (found := look()) and time.monotonic() < give_up_s:
        time.sleep(pause_s)
    return found


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...


@contextmanager
def holding(lock: _Lock, peer: str) -> Iterator[None]:
    """Hold a lock during a request to `peer`; `RequestTimeoutError` at the deadline."""
    limit_s = wait_s()
    if not lock.acquire(timeout=-1 if limit_s == math.inf else limit_s):
        # of another thread: the client's own ones send requests, too
        raise timed_out(f"{peer} did not respond in time to an earlier request of this client")
    try:
        yield
    finally:
        lock.release()
