"""A broker behind a proxy that delays, breaks and cuts what passes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial

import pylogctl
from broker.threads import start_once
from pylogctl.testing.brokers import Broker

_CHUNK_BYTES = 1 << 16


class Faults:
    """A broker of its own, and a proxy before it that all clients use; a context manager.

    `address` is the proxy's, and the broker tells it to its clients as its own. Without a fault the
    proxy passes everything on.

    Args:
        settings: of the broker; see `pylogctl.testing.Broker`.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._delay_s = 0.0
        self._bytes_left: int | None = None  # of responses, until the connection is cut
        self._lock = threading.Lock()  # guards the two attributes below
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        with ExitStack() as closing:
            self._listener = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
            self.port: int = self._listener.getsockname()[1]
            self.address: str = f"127.0.0.1:{self.port}"
            advertised = {"advertised.port": str(self.port)}
            self.broker: Broker = closing.enter_context(Broker({**(settings or {}), **advertised}))
            closing.callback(self._stop)
            self._start(self._accept)
            self._closing = closing.pop_all()

    def __enter__(self) -> Faults:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def connect(self, *, timeout: float | None = 30.0) -> pylogctl.Client:
        """Return a client that reaches the broker through the proxy."""
        return pylogctl.connect(self.address, timeout=timeout)

    def drop(self) -> None:
        """Break all connections now; new ones are passed on."""
        with self._lock:
            dropped = list(self._sockets)
        for one in dropped:
            _shut_down(one)

    def delay(self, seconds: float) -> None:
        """Hold back each chunk of a response for so long, from now on; 0 ends it."""
        self._delay_s = seconds

    def cut_after(self, byte_count: int) -> None:
        """Break the connection that carries the byte of responses after so many; once.

        With 0 the next request is carried out, and its response is lost.
        """
        with self._lock:
            self._bytes_left = byte_count

    def close(self) -> None:
        """Break all connections, and stop the broker."""
        self._closing.close()

    def _stop(self) -> None:
        _shut_down(self._listener)
        self._threads[0].join()  # it starts no other any more
        self.drop()
        for thread in self._threads:
            thread.join()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        self._threads.append(start_once(partial(run, *arguments), name="faults"))

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was shut down
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.broker.port))
                except OSError:  # the test has stopped the broker
                    client.close()
                    continue
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._sockets |= {client, server}
                self._start(self._serve, client, server)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        requests = start_once(partial(self._pass_requests, client, server), name="faults")
        self._pass_responses(server, client)
        requests.join()
        with self._lock:
            self._sockets -= {client, server}
        client.close()
        server.close()

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                server.sendall(data)
        with suppress(OSError):  # the broker sees the end, and responds to what it has
            server.shutdown(socket.SHUT_WR)

    def _pass_responses(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK_BYTES):
                time.sleep(self._delay_s)
                passed = self._cut(data)
                client.sendall(data[:passed])
                if passed < len(data):
                    break
        _shut_down(client)
        _shut_down(server)

    def _cut(self, data: bytes) -> int:
        """Return how much of a chunk may pass; all of it where the connection is not to be cut."""
        with self._lock:
            if self._bytes_left is None:
                return len(data)
            passed = min(self._bytes_left, len(data))
            self._bytes_left = None if passed < len(data) else self._bytes_left - passed
            return passed


def _shut_down(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
