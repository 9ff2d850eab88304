"""The open connections of a processor: the events it waits for, and when it closes them."""

from __future__ import annotations

import logging
import math
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.server.network.connection import (
    HANDSHAKE_S,
    LingeringClient,
    Listener,
    ServerConnection,
)
from broker.server.network.connection_state import State
from broker.server.network.handshakes import SCARCE_S, Handshakes
from broker.server.network.hang_ups import HangUps
from broker.server.network.quotas import PeerLog, QueuedBytes
from broker.server.requests.client import Client
from broker.server.requests.freed_memory import give_back_freed_memory
from broker.server.requests.purgatory import Purgatory

if TYPE_CHECKING:
    from broker.server.network.tls_transport import TlsTransport

logger = logging.getLogger(__name__)

SCRATCH_BYTES = 1 << 16
UNUSED_S = 10.0
"""How long a client may take for its first request while few more connections are possible."""


class Connections:
    """The connections of one processor, for use on its thread.

    `selector` has them and what else the processor waits for; where `hang_ups` is ready,
    `take_hang_ups` returns connections.
    """

    def __init__(
        self,
        purgatory: Purgatory[ServerConnection],
        *,
        clock: Clock,
        peer_log: PeerLog,
        queued_bytes: QueuedBytes,
        max_frame_bytes: int,
        max_idle_s: float,
        on_granted: Callable[[ServerConnection], None],
        on_close: Callable[[str], None],
        is_scarce: Callable[[], bool] = lambda: False,
        make_client: Callable[..., Client] = Client,
    ) -> None:
        self.selector = selectors.DefaultSelector()
        self.open: set[ServerConnection] = set()
        self.lingering: list[LingeringClient] = []  # of closed ones, to be told of the end
        self.max_idle_s = max_idle_s  # how long one may be without a whole request
        self._purgatory = purgatory  # with the delayed responses of all
        self._clock = clock
        self._peer_log = peer_log  # why connections are closed
        self._queued_bytes = queued_bytes  # the budget for large frames
        self._max_frame_bytes = max_frame_bytes
        self._on_granted = on_granted  # called, from any thread, when one has room for its frame
        self._is_scarce = is_scarce  # returns whether few more connections are possible
        self._on_close = on_close  # called with the address of each closed connection
        self._handshakes = Handshakes(clock)
        self._scratch = bytearray(SCRATCH_BYTES)  # of the TLS connections
        self._make_client = make_client
        self._has_closed = False  # since the last sweep
        self._hang_ups = HangUps()
        if self._hang_ups.selectable is not None:
            self.selector.register(self._hang_ups.selectable, selectors.EVENT_READ)
        self.selector.register(self._handshakes.selectable, selectors.EVENT_READ)

    def add(self, sock: socket.socket, address: str, listener: Listener) -> None:
        """Begin to serve a client; one that is to speak TLS, once it sends something."""
        with self._refused_on_error(sock, address):
            if listener.tls is None:
                self._open(sock, address, listener.name, None)
            else:
                self._handshakes.wait(sock, address, listener)

    def begin_handshakes(self) -> None:
        """Begin the handshakes of clients that have sent something and have a place."""
        for one in self._handshakes.ready():
            from broker.server.network.tls_transport import TlsTransport  # late: ssl

            assert one.listener.tls is not None
            name = one.listener.name
            with self._refused_on_error(one.sock, one.address):
                tls = TlsTransport(one.sock, one.listener.tls, listener=name, scratch=self._scratch)
                self._handshakes.begin(self._open(one.sock, one.address, name, tls), one)

    @contextmanager
    def _refused_on_error(self, sock: socket.socket, address: str) -> Iterator[None]:
        """Refuse a client whose start fails: a bug costs one connection, not the processor."""
        try:
            yield
        except Exception:
            logger.exception("a connection of %s failed by a bug", address)
            if sock.fileno() >= 0:  # else it is closed already
                self.refuse(sock, address)

    def _open(
        self, sock: socket.socket, address: str, listener: str, tls: TlsTransport | None
    ) -> ServerConnection:
        connection = ServerConnection(
            sock,
            address,
            clock=self._clock,
            max_frame_bytes=self._max_frame_bytes,
            queued_bytes=self._queued_bytes,
            on_granted=self._on_granted,
            listener=listener,
            tls=tls,
            make_client=self._make_client,
        )
        self.open.add(connection)
        try:
            self._register(connection, connection.interest)
        except Exception:
            self.close(connection)
            raise
        return connection

    def refuse(self, sock: socket.socket, address: str) -> None:
        """Close the socket of a client that will not be served."""
        sock.close()
        self._on_close(address)

    def update(self, connection: ServerConnection) -> None:
        """Wait for the events that a connection needs next; close it if it is finished."""
        if connection.tls is not None and connection.tls.is_open:
            self._end_handshake(connection)
        if connection.fault is not None and connection.is_finished:
            # A client that just left is not logged.
            if not isinstance(connection.fault, (EOFError, ConnectionError)):
                self._peer_log.warn(connection.peer, connection.fault)
            self.close(connection)
            return
        if connection.is_watched or connection.state is not State.READING:
            self._hang_ups.update(connection, is_watched=connection.could_be_deserted)
        events = connection.interest
        if events != connection.registered_events:
            self._register(connection, events)

    def _register(self, connection: ServerConnection, events: int) -> None:
        """Have the selector wait for these events, 0 for none."""
        known, connection.registered_events = connection.registered_events, 0
        if not known:
            self.selector.register(connection.sock, events, connection)
        elif not events:
            self.selector.unregister(connection.sock)
        else:
            self.selector.modify(connection.sock, events, connection)
        connection.registered_events = (
            events  # only now: the selector may refuse for want of memory
        )

    def take_hang_ups(self) -> list[ServerConnection]:
        """Close connections whose clients have left; return those that can still be sent to."""
        half_closed = []
        for connection, is_gone in self._hang_ups.take():
            if is_gone:
                self.close(connection)
            else:
                connection.note_half_closed()
                half_closed.append(connection)
        return half_closed

    def sweep(self, now_s: float) -> None:
        """Close connections that are idle, stalled or deserted; call it every few seconds."""
        unused_s = now_s - UNUSED_S if self._is_scarce() else -math.inf
        for connection in list(self.open):
            if connection.is_deserted(now_s):
                self.close(connection)
            elif connection.is_unused_since(unused_s):
                reason = f"no request in {UNUSED_S:g}s, and few more connections are possible"
                self._peer_log.warn(connection.peer, reason)
                self.close(connection)
            elif reason := connection.reason_to_close(now_s, max_idle_s=self.max_idle_s):
                self._peer_log.warn(connection.peer, reason)
                self.close(connection)
        for waiting in self._handshakes.take_late(now_s - HANDSHAKE_S):
            reason = f"no TLS handshake in {HANDSHAKE_S:g}s"
            self._peer_log.warn(waiting.address, reason)
            self.refuse(waiting.sock, waiting.address)
        if self._has_closed or self._queued_bytes.has_been_emptied():
            self._has_closed = False
            give_back_freed_memory()

    def close(self, connection: ServerConnection) -> None:
        """Close a connection, unless it is closed."""
        if connection not in self.open:
            return
        self.open.discard(connection)
        self._has_closed = True
        self._hang_ups.update(connection, is_watched=False)
        if connection.registered_events:
            self._register(connection, 0)
        if (client := connection.linger()) is not None:
            self.lingering.append(client)
        is_tls = connection.tls is not None
        for delayed in connection.close():
            self._purgatory.remove(delayed)
        self._on_close(connection.peer)
        if is_tls:
            self._end_handshake(connection)

    def _end_handshake(self, connection: ServerConnection) -> None:
        if self._handshakes.end(connection):
            self.begin_handshakes()

    @property
    def handshakes_due_s(self) -> float:
        """Return when `hurry_handshakes` is to be called next."""
        return self._handshakes.due_s

    def hurry_handshakes(self) -> None:
        """Close the clients whose handshakes take long while others wait for their places."""
        for connection in self._handshakes.overdue():
            reason = f"its TLS handshake took more than {SCARCE_S:g}s, and others need its place"
            self._peer_log.warn(connection.peer, reason)
            self.close(connection)

    def refuse_waiting(self) -> None:
        """Close the clients that have not begun their handshakes."""
        for waiting in self._handshakes.take_late():
            self.refuse(waiting.sock, waiting.address)

    def end(self) -> None:
        """Close the selector, after all connections."""
        self.refuse_waiting()
        self._handshakes.close()
        self.selector.close()
        self._hang_ups.close()
