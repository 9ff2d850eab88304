"""A server on loopback, which serves each connection in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from broker.closing import SelfClosing
from broker.threads import start_once

_HOST = "127.0.0.1"


class LoopbackServer(SelfClosing):
    """Listens on a free port; a subclass starts `_accept`, and says what `_serve` does.

    Args:
        name: of its threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()  # guards all state
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []  # the first one accepts
        self._listener = socket.create_server((_HOST, 0))
        self.port: int = self._listener.getsockname()[1]

    def drop(self) -> None:
        """Break all connections now; new ones are accepted."""
        with self._lock:
            dropped = list(self._sockets)
        for one in dropped:
            shut_down(one)

    def close(self) -> None:
        """Break all connections, and accept no other."""
        shut_down(self._listener)
        self._threads[0].join()  # it starts no other any more
        self.drop()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        self._threads.append(start_once(partial(run, *arguments), name=self._name))

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was shut down
            while True:
                client, _ = self._listener.accept()
                self._keep(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        """Serve a connection until it ends, then give it to `_forget`."""
        raise NotImplementedError

    def _keep(self, one: socket.socket) -> None:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._sockets.add(one)

    def _forget(self, *ended: socket.socket) -> None:
        with self._lock:
            self._sockets.difference_update(ended)
        for one in ended:
            one.close()


def shut_down(one: socket.socket) -> None:
    """End a connection in both directions, which its threads notice; or a listener."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
