"""A load balancer of layer 4: passes each connection on to a server of its choice."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Sequence


class Balancer:
    """Leads connections to servers in turn; closed servers are left out.

    Args:
        ports: of the servers, on this machine.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = list(ports)
        self._turn = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.count = 0
        """Connections that were passed on."""
        self._start(self._accept)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def lead_to(self, *ports: int) -> None:
        """Lead later connections to these servers."""
        self._ports = list(ports)

    def stop(self) -> None:
        """Hang up on everybody."""
        _hang_up(self._listener, *self._sockets)
        for thread in list(self._threads):
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _start(self, *work: object) -> None:
        target, *arguments = work
        thread = threading.Thread(target=target, args=arguments, name="balancer", daemon=True)  # type: ignore[arg-type]  # a method
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._connect()
            if server is None:
                client.close()
                continue
            self.count += 1
            self._sockets += [client, server]
            self._start(_pass_on, client, server)
            self._start(_pass_on, server, client)

    def _connect(self) -> socket.socket | None:
        ports = list(self._ports)
        for _ in ports:
            port = ports[next(self._turn) % len(ports)]
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                continue
        return None


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    finally:
        _hang_up(source, target)


def _hang_up(*sockets: socket.socket) -> None:
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
