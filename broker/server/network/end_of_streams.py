"""The end of a broker's connections: the last responses are sent, and clients see the end.

Closing a socket with unread requests resets the connection, and a reset can destroy responses on
their way. So a broker that stops ends its own stream first. Then it reads on, and drops what it
reads, until the clients that get acknowledgements have closed their half or send nothing any more.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterable

from broker.clock import Clock
from broker.server.network.connection import ServerConnection
from broker.server.requests.purgatory import Response

_LIMIT_S = 1.0
"""How long clients have to take their last responses and to close their half."""
_QUIET_S = 0.2
"""A client that sends nothing for this long has nothing on its way to the broker."""
_DISCARD_BYTES = 1 << 16


def end_streams(connections: Iterable[ServerConnection], reason: str, clock: Clock) -> None:
    """Send all complete responses and end the streams; the caller closes the connections.

    Clients whose requests all got responses are told the `reason`, if there is one, as their
    protocol tells it. Connections whose client waits for the end of the broker are skipped.
    """
    give_up_s = clock.monotonic_s() + _LIMIT_S
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
                quiet_s = clock.monotonic_s() + _QUIET_S
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
