"""The acceptor: one thread that accepts connections and distributes them over the processors."""

from __future__ import annotations

import errno
import itertools
import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from broker.errors import AddressInUseError
from broker.server.network.broker_hosts import BrokerHosts
from broker.server.network.connection import Listener, NetworkParts
from broker.server.network.mailbox import Mailbox
from broker.server.network.processor import Processor
from broker.threads import LoopThread

if TYPE_CHECKING:
    from broker.security.tls import ServerTls

logger = logging.getLogger(__name__)

_BACKLOG = 4096
"""Thousands of clients come back at once after a failover; one that finds no room waits a second.

The system cuts it to its own limit.
"""
_MAX_PORT = 65535
_PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)
_LOOK_S = 10.0  # between two looks at the files of certificates
_PAUSE_S = 0.1
"""Wait before the next attempt when the system is short of descriptors or memory."""


def listen(host: str, port: int, *, receive_bytes: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free one."""
    if not 0 <= port <= _MAX_PORT:
        raise AddressInUseError(f"cannot listen on {host}:{port}: ports end at {_MAX_PORT}")
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        reason = str(error.strerror).lower()
        raise AddressInUseError(f"cannot listen on {host}:{port}: {reason}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_bytes:  # 0 leaves SO_RCVBUF to the system
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        other = "port, 0 for a free one" if error.errno in _PORT_ERRORS else "host"
        reason = str(error.strerror).lower()
        raise AddressInUseError(
            f"cannot listen on {host}:{port}: {reason}; choose another --{other}"
        ) from error
    listener.setblocking(False)
    return listener


@dataclass(eq=False, kw_only=True)
class Acceptor:
    """Accepts connections and gives them to the processors in turn; `stop` closes the sockets.

    `listeners` has the listening sockets, and what each is. The certificates of TLS are looked at
    here from time to time, as that may take a while.
    """

    listeners: Mapping[socket.socket, Listener]
    processors: list[Processor]
    network: NetworkParts
    broker_hosts: BrokerHosts
    send_bytes: int  # SO_SNDBUF; 0 leaves it to the system
    make_room: Callable[[], None]  # closes other files when descriptors run out

    def __post_init__(self) -> None:
        self._tls = next(filter(None, (one.tls for one in self.listeners.values())), None)
        self._next_look_s = 0.0
        self._next_processor = itertools.cycle(self.processors)
        self._resumed_s: dict[socket.socket, float] = {}
        """When listeners accept again whose clients were too many a second."""
        self._selector = selectors.DefaultSelector()
        self._stopped = threading.Event()
        self._is_short = self._is_logged = False
        self._mailbox = Mailbox()
        self._selector.register(self._mailbox, selectors.EVENT_READ)
        for listener, kind in self.listeners.items():
            self._selector.register(listener, selectors.EVENT_READ, kind)
        self._thread = LoopThread(self._run, name="acceptor")

    def start(self) -> None:
        """Start accepting."""
        self._thread.start()

    def stop(self) -> None:
        """Stop accepting, close the listener and join the thread; a second call does nothing."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._mailbox.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._selector.close()
        for listener in self.listeners:
            listener.close()
        self._mailbox.close()

    def _run(self) -> None:
        selector = self._selector
        while not self._stopped.is_set():
            for key, _ in selector.select(self._seconds_to_next()):
                if key.data is not None and not self._stopped.is_set():
                    self._accept_all(cast(socket.socket, key.fileobj), key.data)
            for listener, resumed_s in list(self._resumed_s.items()):
                if resumed_s <= time.monotonic():
                    del self._resumed_s[listener]
                    selector.register(listener, selectors.EVENT_READ, self.listeners[listener])
            if self._tls is not None:
                self._look_at_certificates(self._tls)

    def _seconds_to_next(self) -> float | None:
        if self._resumed_s:
            return max(0.0, min(self._resumed_s.values()) - time.monotonic())
        return None if self._tls is None else _LOOK_S

    def reload_certificates(self) -> None:
        """Have the certificates looked at now; callable from any thread."""
        self._next_look_s = 0.0
        self._mailbox.wake()

    def _look_at_certificates(self, tls: ServerTls) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + _LOOK_S
            try:
                tls.reload()
            except Exception:  # a bug must not end the acceptor
                logger.exception("the certificates could not be looked at")

    def _accept_all(self, listener: socket.socket, kind: Listener) -> None:
        while True:
            try:
                sock, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                is_descriptors = error.errno in (errno.EMFILE, errno.ENFILE)
                if is_descriptors and not self._is_short:
                    self._is_short = True
                    self.make_room()
                    continue
                self._pause(error)
                return
            self._is_short = self._is_logged = False
            self._admit(sock, str(address[0]), kind)
            if not kind.has_reserve and (wait_s := self.network.connection_count.pause_s()):
                self._selector.unregister(listener)  # the system keeps the next ones waiting
                self._resumed_s[listener] = time.monotonic() + wait_s
                return

    def _pause(self, error: OSError) -> None:
        """Wait while the system is short of descriptors or memory; log it once."""
        if not self._is_logged:
            self._is_logged = True
            hint = "; raise the limit on open files (ulimit -n)" if self._is_short else ""
            logger.error("cannot accept connections: %s%s", error.strerror, hint)
        self._stopped.wait(_PAUSE_S)

    def _admit(self, sock: socket.socket, address: str, kind: Listener) -> None:
        is_broker = address in self.broker_hosts
        kind = kind._replace(has_reserve=kind.has_reserve or is_broker)
        count = self.network.connection_count
        exceeded = count.enter(address, has_reserve=kind.has_reserve, is_broker=is_broker)
        if exceeded:
            self.network.peer_log.warn(address, f"{exceeded} is reached")
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.send_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_bytes)
        except OSError as error:  # on some systems, if the client is already gone
            count.leave(address)
            self.network.peer_log.warn(address, error)
            sock.close()
            return
        next(self._next_processor).add_connection(sock, address, kind)
