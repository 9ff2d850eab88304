"""What a client may meet at the other end besides one of our brokers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from broker.protocol.framing import encode_frame
from broker.protocol.primitives import INT16
from broker.protocol.requests import FIRST_EXTENSION_TYPE
from broker.protocol.responses import HELLO, BrokerAddress, HelloResponse, encode_extension_response
from tests.support.framing import FrameDecoder
from tests.support.ports import port_of_its_own

Serve = Callable[[socket.socket], object]


class Server:
    """Listens on a free port and serves each connection on a thread of its own.

    Args:
        serve: gets each connection; it is closed when this returns.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.port = port_of_its_own()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.connection_count = 0
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="server")
        self._acceptor.start()

    @property
    def address(self) -> BrokerAddress:
        return BrokerAddress(-1, "127.0.0.1", self.port)

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self.drop_connections()
        for thread in self._threads:
            thread.join()

    def drop_connections(self) -> None:
        """Close every connection, as a broker that goes down does."""
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connection_count += 1
                self._open.append(sock)
            thread = threading.Thread(target=self._run, args=(sock,), name="server-connection")
            self._threads.append(thread)
            thread.start()

    def _run(self, sock: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                self._serve(sock)
        finally:
            with self._lock:
                self._open.remove(sock)
                sock.close()


def say(data: bytes) -> Serve:
    """Return what answers the first bytes that come with these, and then nothing more."""

    def serve(sock: socket.socket) -> None:
        sock.recv(1)
        sock.sendall(data)
        stay_silent(sock)

    return serve


def answer_each(*answers: bytes, versions: dict[int, tuple[int, int]] | None = None) -> Serve:
    """Return what answers a hello, and then each request with the next of these frames.

    Args:
        answers: to the requests with correlation ids from 2 on.
        versions: of the requests that it says it understands.
    """
    response = HelloResponse(0, "", "", 1, 1, versions or {})
    hello = encode_extension_response(1, HELLO.encode(response))

    def serve(sock: socket.socket) -> None:
        for answer in (hello, *answers):
            sock.recv(1 << 16)
            sock.sendall(answer)
        stay_silent(sock)

    return serve


def stay_silent(sock: socket.socket) -> None:
    """Take everything and answer nothing."""
    while sock.recv(1 << 16):
        pass


def hang_up(sock: socket.socket) -> None:
    """Close as soon as the first bytes come."""
    sock.recv(1)


def answer_as_kafka(sock: socket.socket) -> None:
    """Answer `ApiVersions` as Kafka does since 0.10, and close at the requests of others."""
    frame = sock.recv(1 << 16)
    if frame[4:8] == b"\0\x12\0\0":
        sock.sendall(encode_frame(frame[8:12] + b"\0\0" + b"\0\0\0\x01" + b"\0\x12\0\0\0\x04"))
        stay_silent(sock)


def as_true_07_broker(port: int) -> Serve:
    """Return what hands 0.7's requests on to one of our brokers and closes on all others.

    Args:
        port: of the broker.
    """

    def serve(sock: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            answers = threading.Thread(target=_copy, args=(upstream, sock))
            answers.start()
            try:
                _hand_on(sock, upstream)
            finally:
                with contextlib.suppress(OSError):
                    upstream.shutdown(socket.SHUT_RDWR)
                answers.join()

    return serve


def as_late_door_to(port: int, *, closed_count: int) -> Serve:
    """Return what ends so many connections, and hands all that others say to one of our brokers."""
    closed = iter(range(closed_count))

    def serve(sock: socket.socket) -> None:
        if next(closed, None) is not None:
            sock.recv(1 << 16)
            return
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            answers = threading.Thread(target=_copy, args=(upstream, sock))
            answers.start()
            _copy(sock, upstream)
            answers.join()

    return serve


def as_slow_door_to(port: int, *, delay_s: float) -> Serve:
    """Return what hands bytes on to one of our brokers, the first ones late, unless a half ends."""

    def serve(sock: socket.socket) -> None:
        first = sock.recv(1 << 16)
        sock.settimeout(delay_s)
        try:
            sock.recv(1)
            return  # the client has closed its half, so that this proxy ends both
        except TimeoutError:
            sock.settimeout(None)
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            upstream.sendall(first)
            answers = threading.Thread(target=_copy, args=(upstream, sock))
            answers.start()
            _copy(sock, upstream)
            answers.join()

    return serve


def _hand_on(sock: socket.socket, upstream: socket.socket) -> None:
    decoder = FrameDecoder()
    while data := sock.recv(1 << 16):
        decoder.receive_data(data)
        while (frame := decoder.next_frame()) is not None:
            if INT16.unpack_from(frame)[0] >= FIRST_EXTENSION_TYPE:
                return
            upstream.sendall(encode_frame(frame))


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
