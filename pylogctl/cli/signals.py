"""Signals in commands that run until they are told to stop.

A short command is simply interrupted: `pylogctl.__main__` turns SIGINT and SIGTERM into exceptions.
A stream or service instead asks a `StopRequest` between its steps, so that what it has begun is
finished. Knows nothing of what is stopped.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pylogctl.cli.errors import ExitStatus

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Whether a signal asked to stop; the first one is noted, a second SIGINT ends at once."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._signum = 0

    @property
    def is_set(self) -> bool:
        """Say whether to stop."""
        return self._signum != 0

    @property
    def status(self) -> ExitStatus:
        """Return the exit status of a command that was interrupted; OK if it was not."""
        if not self._signum:
            return ExitStatus.OK
        return ExitStatus.SIGINT if self._signum == signal.SIGINT else ExitStatus.SIGTERM

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a signal.

        Args:
            timeout_s: how long; None for ever.

        Returns:
            Whether one came.
        """
        return self._event.wait(timeout_s)

    def note(self, signum: int, frame: FrameType | None = None) -> None:
        """Note a signal; runs as its handler in the main thread."""
        if self._signum and signum == signal.SIGINT:
            os._exit(ExitStatus.SIGINT)
        self._signum = signum
        self._event.set()


@contextmanager
def graceful_stop() -> Iterator[StopRequest]:
    """Have SIGINT, SIGTERM and SIGHUP noted instead of raised, for the duration of a block."""
    request = StopRequest()
    before = {signum: signal.signal(signum, request.note) for signum in _SIGNALS}
    try:
        yield request
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
