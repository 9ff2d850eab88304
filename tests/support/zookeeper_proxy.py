"""A connection to ZooKeeper that breaks where a test wants it to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

_HEADER = struct.Struct(">iii")  # length, number of the request, type of request
GET_DATA, GET_CHILDREN, MULTI = 4, 8, 14  # types of requests; the last is a transaction


class ZooKeeperProxy:
    """Passes requests and answers on; can refuse or ignore sessions, and lose answers.

    Args:
        connect: the server's address, with a chroot.
    """

    def __init__(self, connect: str) -> None:
        address, slash, chroot = connect.partition("/")
        host, _, port = address.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connect = f"127.0.0.1:{self._listener.getsockname()[1]}{slash}{chroot}"
        self._left_to_refuse = self._left_to_ignore = 0
        self._left_to_lose = 0
        self._kind_to_lose = MULTI
        self.lost_count = 0
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def refuse_next_sessions(self, count: int) -> None:
        """Hang up on the next connections, as a server does that is about to start."""
        self._left_to_refuse = count

    def ignore_next_sessions(self, count: int) -> None:
        """Take the next connections and never answer, as a server can that has just started."""
        self._left_to_ignore = count

    def lose_next_answers(self, count: int = 1, kind: int = MULTI) -> None:
        """Break the connection in the place of the answer to the next requests of a kind."""
        self._kind_to_lose, self._left_to_lose = kind, count

    def close(self) -> None:
        """Break all connections, and end."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()

    def _start(self, run: Callable[..., None], *args: object) -> None:
        self._threads.append(threading.Thread(target=run, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._left_to_refuse:
                    self._left_to_refuse -= 1
                    client.close()
                    continue
                if self._left_to_ignore:
                    self._left_to_ignore -= 1
                    self._sockets.append(client)
                    continue
                server = socket.create_connection(self._server)
                self._sockets += (client, server)
                lost: set[int] = set()
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._start(self._pass_on, client, server, True, lost)
                self._start(self._pass_on, server, client, False, lost)

    def _pass_on(
        self, source: socket.socket, target: socket.socket, are_requests: bool, lost: set[int]
    ) -> None:
        with contextlib.suppress(OSError):
            for number, frame in enumerate(_frames(source)):
                _, request, kind = _HEADER.unpack(frame[: _HEADER.size].ljust(_HEADER.size, b"\0"))
                is_handshake = number == 0
                is_wanted = kind == self._kind_to_lose and self._left_to_lose
                if are_requests and not is_handshake and is_wanted:
                    self._left_to_lose -= 1
                    lost.add(request)
                if not are_requests and not is_handshake and request in lost:
                    self.lost_count += 1
                    break
                target.sendall(frame)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _frames(source: socket.socket) -> Iterator[bytes]:
    buffered = b""
    while chunk := source.recv(65536):
        buffered += chunk
        while len(buffered) >= 4:
            end = 4 + int.from_bytes(buffered[:4], "big")
            if len(buffered) < end:
                break
            yield buffered[:end]
            buffered = buffered[end:]
