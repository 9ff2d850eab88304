"""The open connections of a processor: the events it waits for, and when it closes them."""

from __future__ import annotations

import logging
import math
import select
import selectors
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.server.network.connection import (
    HANDSHAKE_S,
    LingeringClient,
    Listener,
    NetworkParts,
    ServerConnection,
)
from broker.server.network.connection_state import ConnectionState
from broker.server.network.handshakes import SCARCE_S, Handshakes
from broker.server.requests.freed_memory import give_back_freed_memory
from broker.server.requests.purgatory import Purgatory, Response

if TYPE_CHECKING:
    from broker.server.network.tls_transport import TlsTransport

logger = logging.getLogger(__name__)

SCRATCH_BYTES = 1 << 16
UNUSED_S = 10.0
"""How long a client may take for its first request while few more connections are possible."""


_LAST_RESPONSES_S = 1.0
"""How long clients have to take their last responses and to close their half."""
_LAST_REQUEST_S = 0.2
"""A client that sends nothing for this long has nothing on its way to the broker."""
_DISCARD_BYTES = 1 << 16
_TAKEN_AT_A_TIME = 64  # connections whose clients have left


class HangUps:
    """Connections whose client has closed at least its half, by `EPOLLRDHUP`."""

    def __init__(self) -> None:
        self._watched: dict[int, ServerConnection] = {}
        # elsewhere than on Linux only a failed send shows that a client has left
        self._epoll = select.epoll() if sys.platform == "linux" else None

    @property
    def selectable(self) -> select.epoll | None:
        """Return what a selector finds readable when `take` would return any."""
        return self._epoll

    def update(self, connection: ServerConnection, *, is_watched: bool) -> None:
        """Start or stop watching a connection."""
        if self._epoll is None or is_watched == connection.is_watched:
            return
        descriptor = connection.sock.fileno()
        connection.is_watched = is_watched
        if is_watched:
            self._epoll.register(descriptor, select.EPOLLRDHUP)
            self._watched[descriptor] = connection
        else:
            self._epoll.unregister(descriptor)
            del self._watched[descriptor]

    def take(self) -> list[tuple[ServerConnection, bool]]:
        """Return some of the connections, and whether nothing can be sent to the client either."""
        if self._epoll is None:
            return []
        return [
            (self._watched[descriptor], bool(events & (select.EPOLLHUP | select.EPOLLERR)))
            for descriptor, events in self._epoll.poll(0, _TAKEN_AT_A_TIME)
        ]

    def close(self) -> None:
        """Stop watching."""
        if self._epoll is not None:
            self._epoll.close()


@dataclass(eq=False)
class Connections:
    """The connections of one processor, for use on its thread.

    `selector` has them and what else the processor waits for; where `hang_ups` is ready,
    `take_hang_ups` returns connections.
    """

    purgatory: Purgatory[ServerConnection]  # with the delayed responses of all
    network: NetworkParts
    # called, from any thread, when one has room for its frame
    on_granted: Callable[[ServerConnection], None]

    def __post_init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.open: set[ServerConnection] = set()
        self.lingering: list[LingeringClient] = []  # of closed ones, to be told of the end
        self._handshakes = Handshakes(self.network.clock)
        self._scratch = bytearray(SCRATCH_BYTES)  # of the TLS connections
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
        connection = ServerConnection(sock, address, self.network, self.on_granted, listener, tls)
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
        self.network.connection_count.leave(address)

    def update(self, connection: ServerConnection) -> None:
        """Wait for the events that a connection needs next; close it if it is finished."""
        if connection.tls is not None and connection.tls.is_open:
            self._end_handshake(connection)
        if connection.fault is not None and connection.is_finished:
            # A client that just left is not logged.
            if not isinstance(connection.fault, (EOFError, ConnectionError)):
                self.network.peer_log.warn(connection.peer, connection.fault)
            self.close(connection)
            return
        if connection.is_watched or connection.state is not ConnectionState.READING:
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
        # only now: the selector may refuse for want of memory
        connection.registered_events = events

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
        unused_s = now_s - UNUSED_S if self.network.connection_count.is_scarce else -math.inf
        for connection in list(self.open):
            if connection.is_deserted(now_s):
                self.close(connection)
            elif connection.is_unused_since(unused_s):
                reason = f"no request in {UNUSED_S:g}s, and few more connections are possible"
                self.network.peer_log.warn(connection.peer, reason)
                self.close(connection)
            elif reason := connection.reason_to_close(now_s, max_idle_s=self.network.max_idle_s):
                self.network.peer_log.warn(connection.peer, reason)
                self.close(connection)
        for waiting in self._handshakes.take_late(now_s - HANDSHAKE_S):
            reason = f"no TLS handshake in {HANDSHAKE_S:g}s"
            self.network.peer_log.warn(waiting.address, reason)
            self.refuse(waiting.sock, waiting.address)
        if self._has_closed or self.network.queued_bytes.has_been_emptied():
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
            self.purgatory.remove(delayed)
        self.network.connection_count.leave(connection.peer)
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
            self.network.peer_log.warn(connection.peer, reason)
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


def end_streams(connections: Iterable[ServerConnection], reason: str, clock: Clock) -> None:
    """Send all complete responses and end the streams; the caller closes the connections.

    Closing a socket with unread requests resets the connection, and a reset can destroy responses
    on their way. So a broker that stops ends its own stream first. Then it reads on, and drops what
    it reads, until the clients that get acknowledgements have closed their half or send nothing.
    Clients whose requests all got responses are told the `reason`, if there is one, as their
    protocol tells it. Connections whose client waits for the end of the broker are skipped.
    """
    give_up_s = clock.monotonic_s() + _LAST_RESPONSES_S
    due_s: dict[ServerConnection, float] = {}
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            if connection.responses.has_lingering:
                continue
            if reason and (last := connection.last_response(reason)) is not None:
                connection.responses.append(Response(last))
            selector.register(connection.sock, selectors.EVENT_WRITE, connection)
            due_s[connection] = give_up_s
        while due_s:
            now_s = clock.monotonic_s()
            for connection in [one for one, at_s in due_s.items() if at_s <= now_s]:
                selector.unregister(connection.sock)
                del due_s[connection]
            for key, events in selector.select(max(0.0, min(due_s.values(), default=0) - now_s)):
                connection = key.data
                if events & selectors.EVENT_READ:
                    is_open = _discard(connection)
                elif is_open := _send(connection):
                    if connection.has_unsent:
                        continue
                    selector.modify(connection.sock, selectors.EVENT_READ, connection)
                quiet_s = clock.monotonic_s() + _LAST_REQUEST_S
                due_s[connection] = min(give_up_s, quiet_s) if is_open else now_s


def _send(connection: ServerConnection) -> bool:
    """Send responses, and end the stream after the last; return whether to read on."""
    connection.send()
    if isinstance(connection.fault, OSError):
        return False
    if connection.has_unsent:
        return True
    if connection.tls is not None:
        connection.tls.end()
    try:
        connection.sock.shutdown(socket.SHUT_WR)
    except OSError:  # the client is gone
        return False
    # without acknowledgements, only the failure of its next requests tells the client
    return connection.awaits_acknowledgements


def _discard(connection: ServerConnection) -> bool:
    """Read and drop what a client sends; return whether it may send more."""
    try:
        return bool(connection.sock.recv(_DISCARD_BYTES))
    except BlockingIOError:
        return True
    except OSError:  # the client is gone
        return False
