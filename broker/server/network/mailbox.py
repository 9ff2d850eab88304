"""Calls that other threads leave to a thread that waits in a selector, and its wake-up."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress

_WAKE_UP_BYTES = 4096


class Mailbox:
    """The calls for one thread, which registers this with its selector to be woken for them."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._is_woken = self._is_closed = False

    def fileno(self) -> int:
        """Return the descriptor that is readable when the thread is woken."""
        return self._receiver.fileno()

    def post(self, call: Callable[[], object]) -> None:
        """Have the thread run a call soon; callable from any thread."""
        self._calls.append(call)
        self.wake()

    def wake(self) -> None:
        """End the thread's wait, this one or the next; callable from any thread."""
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self._sender.send(b"\0")
        except BlockingIOError:
            return  # enough wake-ups are in the socket already
        except OSError:
            if not self._is_closed:
                raise

    def take_wake_up(self) -> None:
        """Make the descriptor unreadable; `run` must follow."""
        with suppress(BlockingIOError):
            self._receiver.recv(_WAKE_UP_BYTES)

    def run(self) -> None:
        """Run the calls, in their order."""
        # before the calls are taken: a thread that posts one later wakes this one again
        self._is_woken = False
        while self._calls:
            self._calls.popleft()()

    def close(self) -> None:
        """Close the sockets; wake-ups have no effect any more."""
        self._is_closed = True
        self._receiver.close()
        self._sender.close()
