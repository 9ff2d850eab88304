"""Brokers as the commands meet them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from broker import Broker
from broker.protocol.primitives import INT16, INT32
from broker.protocol.requests import FIRST_EXTENSION_TYPE
from tests.support.command_line import Result


def at(broker: Broker) -> str:
    """Where a broker listens, as an option's value."""
    return f"127.0.0.1:{broker.port}"


def record(result: Result) -> dict[str, Any]:
    """The only record of a result written with `--output json`."""
    (only,) = json.loads(result.text)["data"]
    found: dict[str, Any] = only
    return found


class Proxy:
    """Passes frames on to a server until one must not pass; then it hangs up.

    Args:
        port: the server's.
        passes: says of each frame of a client whether it may pass.
        is_final: do not only hang up on that client then, but on everybody, for good.
    """

    def __init__(
        self, port: int, passes: Callable[[bytes], bool], *, is_final: bool = False
    ) -> None:
        self._target = ("127.0.0.1", port)
        self._passes = passes
        self._is_final = is_final
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def address(self) -> str:
        """Where it listens, as an option's value."""
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Hang up on everybody."""
        _hang_up(self._listener, *self._sockets)
        for thread in list(self._threads):
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._sockets += [client, server]
            self._start(self._pass_on, client, server)
            self._start(self._give_back, server, client)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        try:
            with client.makefile("rb") as requests:
                while head := requests.read(INT32.size):
                    frame = requests.read(*INT32.unpack(head))
                    if not self._passes(frame):
                        if self._is_final:
                            _hang_up(self._listener, *self._sockets)
                        break
                    server.sendall(head + frame)
        except OSError:
            return
        finally:
            _hang_up(client, server)

    def _give_back(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            return
        finally:
            _hang_up(client)


def _hang_up(*sockets: socket.socket) -> None:
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


class BrokerOf07(Proxy):
    """Passes on 0.7's requests to a broker, and hangs up on any other, as a true 0.7 broker does.

    Args:
        broker: answers the requests.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker.port, is_of_07)


def is_of_07(frame: bytes) -> bool:
    """Return whether a 0.7 broker knows a request."""
    return int(INT16.unpack_from(frame)[0]) < FIRST_EXTENSION_TYPE
