"""Callbacks run when an offset of a log advances."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

logger = logging.getLogger(__name__)


class Listeners:
    """Callbacks run when an offset of a log advances, with no lock held."""

    __slots__ = ("__weakref__", "_counts", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[int, dict[Callable[[], None], int]] = {}
        """By the offset that an advance must reach for the callbacks to run."""

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Add a callback; see `Log.add_listener`."""
        with self._lock:
            counts = self._counts.setdefault(from_offset, {})
            counts[callback] = counts.get(callback, 0) + 1

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Undo one `add_listener`; an unknown callback is ignored."""
        with self._lock:
            counts = self._counts.get(from_offset)
            if counts is None or callback not in counts:
                return
            counts[callback] -= 1
            if not counts[callback]:
                del counts[callback]
                if not counts:
                    del self._counts[from_offset]

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
