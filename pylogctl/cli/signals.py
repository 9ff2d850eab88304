"""Handlers of signals: installed in this one place, as a signal ignored at the start stays ignored.

`nohup` and a shell's background jobs start a program with SIGHUP or SIGINT ignored, so that it and
its children survive a logout, or Ctrl-C on the terminal.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None


def install(handlers: Mapping[int, Handler]) -> dict[int, Handler]:
    """Install handlers by signal, but for ignored signals; return those that they replace."""
    return {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }


@contextmanager
def installed(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Install handlers for the duration of a block, as `install` does."""
    before = install(handlers)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
