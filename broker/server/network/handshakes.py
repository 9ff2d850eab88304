"""The TLS handshakes of a processor: how many are under way, and which clients wait for a place.

A client takes a place with its first byte: who only connects holds none. Places are bounded in
all, and for an address (/64 of IPv6). While clients wait for one, a handshake has less time, and
networks whose last handshake failed come after the others. Registered brokers, and clients of a
listener with a reserve, have places beyond the bounds.
"""

from __future__ import annotations

import logging
import math
import selectors
import socket
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from typing import NamedTuple

from broker.clock import Clock
from broker.endpoints import network_of
from broker.server.network.connection import Listener, ServerConnection
from broker.server.network.quotas import QUIET_S

logger = logging.getLogger(__name__)

MAX_HANDSHAKES = 256
"""One that is stopped half way holds 29 KiB."""
MAX_HANDSHAKES_PER_ADDRESS = 16
RESERVED_HANDSHAKES = 64
_MOST_HANDSHAKES = MAX_HANDSHAKES + RESERVED_HANDSHAKES
SCARCE_S = 2.0
"""How long a handshake may take while others wait for a place."""
_MAX_FAILED = 10_000
_RESERVED = "reserved"  # in place of a network


class WaitingClient(NamedTuple):
    """A client that was accepted, and has no place yet: what it has sent waits in the socket."""

    sock: socket.socket
    address: str
    listener: Listener
    since_s: float

    @property
    def network(self) -> str:
        """Return with whom it shares places."""
        return _RESERVED if self.listener.has_reserve else network_of(self.address)


class Handshakes:
    """Which connections shake hands, and which clients wait until they send, or for a place."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way: dict[ServerConnection, tuple[str, float]] = {}  # network, and since when
        self._by_network: Counter[str] = Counter()
        self._silent = selectors.DefaultSelector()
        self._waiting: dict[str, deque[WaitingClient]] = {}  # who has sent something, by network
        self._failed: OrderedDict[str, None] = OrderedDict()  # networks whose last one failed
        self._next_line_s = self._next_look_s = -math.inf

    @property
    def selectable(self) -> int:
        """Return the descriptor that is readable when `ready` has clients that were silent."""
        return self._silent.fileno()

    def wait(self, sock: socket.socket, address: str, listener: Listener) -> None:
        """Have a client wait until it sends something, and then for a place."""
        waiting = WaitingClient(sock, address, listener, self._clock.monotonic_s())
        self._silent.register(sock, selectors.EVENT_READ, waiting)

    def ready(self) -> Iterator[WaitingClient]:
        """Yield the clients that may begin; `begin` has to follow before the next."""
        for key, _ in self._silent.select(0):
            self._silent.unregister(key.fileobj)
            one: WaitingClient = key.data
            self._waiting.setdefault(one.network, deque()).append(one)
        while (next_network := self._next_network()) is not None:
            queue = self._waiting.pop(next_network)
            first = queue.popleft()
            if queue:
                self._waiting[next_network] = queue  # behind the other networks
            yield first

    def _next_network(self) -> str | None:
        """Return the network whose turn it is; None if no client may begin."""
        if _RESERVED in self._waiting and len(self._under_way) < _MOST_HANDSHAKES:
            return _RESERVED
        if self._is_full:
            if self._waiting and (now_s := self._clock.monotonic_s()) >= self._next_line_s:
                self._next_line_s = now_s + QUIET_S
                logger.warning(
                    "all %d places for TLS handshakes are taken, and more clients wait: who needs "
                    "longer than %g s for one is closed (not logged again for a minute)",
                    *(MAX_HANDSHAKES, SCARCE_S),
                )
            return None
        last = None
        for one in self._waiting:
            if self._by_network[one] < MAX_HANDSHAKES_PER_ADDRESS:
                if one not in self._failed:
                    return one
                last = last or one
        return last

    @property
    def _is_full(self) -> bool:
        """Return whether the places that are not reserved are taken."""
        taken = len(self._under_way)
        return taken >= _MOST_HANDSHAKES or taken - self._by_network[_RESERVED] >= MAX_HANDSHAKES

    def begin(self, connection: ServerConnection, waiting: WaitingClient) -> None:
        """Take a place until `end`."""
        self._under_way[connection] = waiting.network, self._clock.monotonic_s()
        self._by_network[waiting.network] += 1

    def end(self, connection: ServerConnection) -> bool:
        """Give up a connection's place; return whether it had one, so that others may begin."""
        network, _ = self._under_way.pop(connection, ("", 0.0))
        if not network:
            return False
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]
        self._failed.pop(network, None)
        if connection.tls is None or not connection.tls.is_open:
            self._failed[network] = None
            if len(self._failed) > _MAX_FAILED:
                self._failed.popitem(last=False)
        return True

    @property
    def due_s(self) -> float:
        """Return when to ask for `overdue` next; infinite while nobody waits for a place."""
        if not (self._waiting and self._under_way):
            return math.inf
        _, since_s = next(iter(self._under_way.values()))
        return max(since_s + SCARCE_S, self._next_look_s)

    def overdue(self) -> list[ServerConnection]:
        """Return the connections whose handshake takes long while others wait for their place.

        Those in reserved places end only for others that wait for one.
        """
        now_s = self._clock.monotonic_s()
        self._next_look_s = now_s + SCARCE_S / 4
        is_full = self._is_full
        return [
            connection
            for connection, (network, since_s) in self._under_way.items()
            if since_s <= now_s - SCARCE_S
            and (network in self._waiting or (is_full and network != _RESERVED))
        ]

    def take_late(self, oldest_s: float = math.inf) -> list[WaitingClient]:
        """Return the clients that have waited since then or before; they will not begin."""
        late = [one.data for one in self._silent.get_map().values() if one.data.since_s <= oldest_s]
        for one in late:
            self._silent.unregister(one.sock)
        for network, queue in list(self._waiting.items()):
            while queue and queue[0].since_s <= oldest_s:
                late.append(queue.popleft())
            if not queue:
                del self._waiting[network]
        return late

    def close(self) -> None:
        """Stop waiting, after `take_late`."""
        self._silent.close()
