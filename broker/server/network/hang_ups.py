"""Detects clients that leave while the broker does not read from their connections."""

from __future__ import annotations

import select
import sys

from broker.server.network.connection import ServerConnection

_TAKEN_AT_A_TIME = 64


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
