"""Who wants to know when the high watermark of a log moves.

Owns the list of callbacks of one log; calls them without holding any lock.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from threading import Lock

logger = logging.getLogger(__name__)


class Waiters:
    """The callbacks of one log."""

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Callable[[], None]] = Counter()

    def add(self, callback: Callable[[], None]) -> None:
        """Call something at each notice from now on.

        Args:
            callback: must be quick. Added twice, it is called once a notice, until removed twice.
        """
        with self._lock:
            self._counts[callback] += 1

    def remove(self, callback: Callable[[], None]) -> None:
        """Take back one `add`; a callback that is not there is ignored.

        Args:
            callback: what was added.
        """
        with self._lock:
            if self._counts[callback] <= 1:
                del self._counts[callback]
            else:
                self._counts[callback] -= 1

    def notify(self) -> None:
        """Call every callback, on the calling thread."""
        with self._lock:
            callbacks = list(self._counts)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # one waiter's bug must not leave the others asleep
                logger.exception("a waiter failed")
