"""Work that is done again and again on a thread of its own.

Owns the thread and its end; knows nothing of the work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

logger = logging.getLogger(__name__)


class PeriodicTask:
    """Calls something at intervals until stopped.

    Args:
        name: the thread's name.
        work: what to call; its exceptions are logged, and the next call comes all the same.
        first_delay_s: seconds before the first call.
        interval_s: seconds between the end of a call and the next one.
    """

    def __init__(
        self, name: str, work: Callable[[], None], *, first_delay_s: float, interval_s: float
    ) -> None:
        self._work = work
        self._first_delay_s = first_delay_s
        self._interval_s = interval_s
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; once only."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the call that may be running, and join the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        delay_s = self._first_delay_s
        while not self._stopping.wait(delay_s):
            try:
                self._work()
            except Exception:  # the next round may well succeed
                logger.exception("%s failed", self._thread.name)
            delay_s = self._interval_s
