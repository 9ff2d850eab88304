"""Threads that run until they are stopped."""

from __future__ import annotations

import threading


class StoppableThread(threading.Thread):
    """A daemon thread whose `run` ends soon after `stop`; `join` also if it was never started."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ask the thread to stop."""
        self._stopping.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread's end."""
        if self.is_alive():
            super().join(timeout)
