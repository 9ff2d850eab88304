"""The acceptor: one thread that takes connections and deals them out to processors."""

from __future__ import annotations

import errno
import itertools
import logging
import selectors
import socket
import threading

from broker.errors import BrokerError
from broker.server.limits import ConnectionCount, PeerLog
from broker.server.processor import Processor

logger = logging.getLogger(__name__)

_BACKLOG = 512
_OUT_OF_DESCRIPTORS_PAUSE_S = 0.1


class AddressInUseError(BrokerError):
    """The address to listen on is not to be had."""


def listen(host: str, port: int, *, receive_bytes: int) -> socket.socket:
    """Return a listening socket.

    Args:
        host: an address or name of this machine.
        port: 0 picks a free one.
        receive_bytes: SO_RCVBUF of accepted sockets; 0 leaves it to the system.

    Raises:
        AddressInUseError: somebody else listens there, or the address is not of this machine.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise AddressInUseError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_bytes:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressInUseError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port"
        ) from error
    listener.setblocking(False)
    return listener


class Acceptor:
    """Accepts connections and gives them to the processors in turn.

    Args:
        listener: a listening, non-blocking socket; closed by `stop`.
        processors: who serves the connections.
        count: the limits on connections.
        peer_log: tells of refused peers.
        send_bytes: SO_SNDBUF of accepted sockets; 0 leaves it to the system.
    """

    def __init__(
        self,
        listener: socket.socket,
        processors: list[Processor],
        *,
        count: ConnectionCount,
        peer_log: PeerLog,
        send_bytes: int,
    ) -> None:
        self._listener = listener
        self._processors = itertools.cycle(processors)
        self._count = count
        self._peer_log = peer_log
        self._send_bytes = send_bytes
        self._stopped = threading.Event()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="acceptor", daemon=True)

    def start(self) -> None:
        """Start accepting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop accepting, close the listener and join the thread."""
        self._stopped.set()
        self._wake_sender.send(b"\0")
        if self._thread.ident is not None:
            self._thread.join()
        for sock in (self._listener, self._wake_receiver, self._wake_sender):
            sock.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake_receiver, selectors.EVENT_READ)
            while not self._stopped.is_set():
                selector.select()
                if not self._stopped.is_set():
                    self._accept_all()

    def _accept_all(self) -> None:
        while True:
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
                logger.error("cannot accept: %s; raise the limit on open files", error.strerror)
                self._stopped.wait(_OUT_OF_DESCRIPTORS_PAUSE_S)
                return
            self._admit(sock, str(address[0]))

    def _admit(self, sock: socket.socket, address: str) -> None:
        exceeded = self._count.enter(address)
        if exceeded:
            self._peer_log.warn(address, f"{exceeded} is reached")
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._send_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_bytes)
        next(self._processors).adopt(sock, address)
