"""Callbacks run when an offset of a log advances."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from threading import Lock

logger = logging.getLogger(__name__)


class Listeners:
    """Callbacks run when an offset of a log advances, with no lock held."""

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[int, Counter[Callable[[], None]]] = {}
        """By the offset that an advance must reach for the callbacks to run."""

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Add a callback; see `Log.add_listener`."""
        with self._lock:
            self._counts.setdefault(from_offset, Counter())[callback] += 1

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Undo one `add_listener`; an unknown callback is ignored."""
        with self._lock:
            counts = self._counts.get(from_offset, Counter())
            if counts[callback] > 1:
                counts[callback] -= 1
            else:
                del counts[callback]
                if not counts:
                    self._counts.pop(from_offset, None)

    def notify(self, reached_offset: int | None = None) -> None:
        """Run the callbacks whose offset an advance reached; None for all, as nothing advanced."""
        with self._lock:
            callbacks = [
                callback
                for from_offset, counts in self._counts.items()
                if reached_offset is None or from_offset <= reached_offset
                for callback in counts
            ]
        for callback in callbacks:
            try:
                callback()
            except Exception:  # a failing listener must not keep the others from being called
                logger.exception("a listener of a log failed")
