"""Threads that wait for disks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from broker.threads import logged

_COUNT = 16
BACKGROUND_COUNT = 8
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class DiskThreads:
    """Create or flush many logs side by side: a file system syncs many files in one go."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_COUNT, thread_name_prefix="replica-disk")
        self._background = ThreadPoolExecutor(
            BACKGROUND_COUNT, thread_name_prefix="replica-disk-background"
        )

    def run(self, action: Callable[[_Item], _Result], items: list[_Item]) -> list[_Result]:
        """Call a function with each item; once all calls have ended, raise the first error."""
        if len(items) == 1:
            return [action(items[0])]
        futures = [self._threads.submit(action, one) for one in items]
        wait(futures)
        return [one.result() for one in futures]

    def start(self, action: Callable[[], object]) -> None:
        """Call a function soon, on a thread that `run` does not need; nothing waits for it."""
        self._background.submit(logged(action))

    def stop(self) -> None:
        """End the threads."""
        self._background.shutdown()
        self._threads.shutdown()
