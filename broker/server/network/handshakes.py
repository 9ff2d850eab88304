"""The TLS handshakes under way at a processor: bounded, in all and for an address."""

from __future__ import annotations

import socket
from collections import Counter, deque
from typing import NamedTuple

from broker.server.network.connection import Listener, ServerConnection

MAX_HANDSHAKES = 256
"""One that is stopped half way holds 29 KiB."""
MAX_HANDSHAKES_PER_ADDRESS = 16


class Waiting(NamedTuple):
    """A client that was accepted, and has no place yet: what it has sent waits in the socket."""

    sock: socket.socket
    address: str
    listener: Listener


class Handshakes:
    """Which connections shake hands, and which clients wait until some of these have done it."""

    def __init__(self) -> None:
        self._under_way: set[ServerConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._waiting: dict[str, deque[Waiting]] = {}

    def has_place(self, address: str) -> bool:
        """Return whether a client of an address may begin."""
        is_below = len(self._under_way) < MAX_HANDSHAKES
        return is_below and self._by_address[address] < MAX_HANDSHAKES_PER_ADDRESS

    def begin(self, connection: ServerConnection) -> None:
        """Take a place until `end`."""
        self._under_way.add(connection)
        self._by_address[connection.peer] += 1

    def wait(self, waiting: Waiting) -> None:
        """Have a client wait for a place."""
        self._waiting.setdefault(waiting.address, deque()).append(waiting)

    def end(self, connection: ServerConnection) -> Waiting | None:
        """Give up a connection's place, if it has one; return the client that may begin now."""
        if connection not in self._under_way:
            return None
        self._under_way.discard(connection)
        self._by_address[connection.peer] -= 1
        if not self._by_address[connection.peer]:
            del self._by_address[connection.peer]
        address = next(filter(self.has_place, self._waiting), None)
        if address is None:
            return None
        queue = self._waiting.pop(address)
        first = queue.popleft()
        if queue:
            self._waiting[address] = queue  # behind the other addresses
        return first

    def take_waiting(self) -> list[Waiting]:
        """Return all clients that wait; none will begin."""
        waiting, self._waiting = self._waiting, {}
        return [one for queue in waiting.values() for one in queue]
