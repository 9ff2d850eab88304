"""Threads that no exception ends unseen.

A loop that fails is logged and starts again. One that fails again and again raises its exception:
`threading.excepthook` decides what that means for the process; a service of `pylogctl` ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

logger = logging.getLogger(__name__)

MAX_FAILURES = 20
WITHIN_S = 60.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class LoopThread(threading.Thread):
    """A daemon thread whose loop is called again after an exception, which is logged.

    Its `MAX_FAILURES`th failure within `WITHIN_S` is raised, after a call of `at_failure`.
    """

    def __init__(
        self,
        loop: Callable[[], object],
        *,
        name: str,
        at_failure: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._guarded_loop = loop
        self._at_failure = at_failure

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread's end; returns at once if it was never started."""
        if self.is_alive():
            super().join(timeout)

    def run(self) -> None:
        """Call the loop until it returns."""
        failed_s: deque[float] = deque(maxlen=MAX_FAILURES)
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                self._guarded_loop()
                return
            except Exception:
                now_s = time.monotonic()
                if not failed_s or now_s - failed_s[-1] > WITHIN_S:
                    pause_s = _FIRST_PAUSE_S
                failed_s.append(now_s)
                if len(failed_s) == MAX_FAILURES and now_s - failed_s[0] < WITHIN_S:
                    self._at_failure()
                    raise
                logger.exception("thread %s failed, and goes on", self.name)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


class StoppableThread(LoopThread):
    """A thread whose `_loop` ends soon after `stop`."""

    def __init__(self, name: str) -> None:
        super().__init__(self._loop, name=name)
        self._stopping = threading.Event()

    def _loop(self) -> None:
        """Work until `_stopping` is set."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask the thread to stop."""
        self._stopping.set()


def logged(action: Callable[[], object]) -> Callable[[], None]:
    """Return a call of an action that logs its exceptions: for jobs that nobody waits for."""
    return partial(_call_logged, action)


def _call_logged(action: Callable[[], object]) -> None:
    try:
        action()
    except Exception:  # a bug must not end the thread, nor go unseen
        logger.exception("%s failed", threading.current_thread().name)


def start_once(action: Callable[[], object], *, name: str) -> threading.Thread:
    """Call an action once in a daemon thread of its own, which is returned; a failure is logged."""
    thread = threading.Thread(target=_call_logged, args=(action,), name=name, daemon=True)
    thread.start()
    return thread
