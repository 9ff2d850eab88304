"""A broker behind a proxy that delays, breaks and cuts what passes."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import pylogctl
from broker.threads import start_once
from pylogctl.testing.brokers import Broker
from pylogctl.testing.loopback import LoopbackServer, shut_down

_CHUNK_BYTES = 1 << 16


class Faults(LoopbackServer):
    """A broker of its own, and a proxy before it that all clients use; a context manager.

    `address` is the proxy's, and the broker tells it to its clients as its own. Without a fault the
    proxy passes everything on.

    Args:
        settings: of the broker; see `pylogctl.testing.Broker`.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__("faults")
        self._delay_s = 0.0
        self._bytes_left: int | None = None  # of responses, until the connection is cut
        self.address: str = f"127.0.0.1:{self.port}"
        try:
            self.broker: Broker = Broker({**(settings or {}), "advertised.port": str(self.port)})
        except BaseException:
            self._listener.close()
            raise
        self._start(self._accept)

    def connect(self, *, timeout: float | None = 30.0) -> pylogctl.Client:
        """Return a client that reaches the broker through the proxy."""
        return pylogctl.connect(self.address, timeout=timeout)

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
        super().close()
        self.broker.close()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.broker.port))
        except OSError:  # the test has stopped the broker
            self._forget(client)
            return
        self._keep(server)
        requests = start_once(partial(self._pass_requests, client, server), name="faults")
        self._pass_responses(server, client)
        requests.join()
        self._forget(client, server)

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
        shut_down(client)
        shut_down(server)

    def _cut(self, data: bytes) -> int:
        """Return how much of a chunk may pass; all of it where the connection is not to be cut."""
        with self._lock:
            if self._bytes_left is None:
                return len(data)
            passed = min(self._bytes_left, len(data))
            self._bytes_left = None if passed < len(data) else self._bytes_left - passed
            return passed
