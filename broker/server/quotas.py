"""Limits that all connections share, and the log of why connections are closed."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable

from broker.clock import Clock
from broker.errors import BrokerError

logger = logging.getLogger(__name__)

QUIET_S = 60.0
_MAX_REMEMBERED_PEERS = 10_000


class Reservation:
    """A share of the bytes of `QueuedBytes`, granted or waiting.

    Args:
        size: bytes.
        on_granted: called, from any thread, when it is granted after a wait.
    """

    __slots__ = ("is_granted", "on_granted", "size")

    def __init__(self, size: int, on_granted: Callable[[], None]) -> None:
        self.size = size
        self.on_granted = on_granted
        self.is_granted = False


class QueuedBytes:
    """The budget for frames that are larger than a receive buffer.

    Granted in the order of asking, so that small frames do not keep a large one waiting.

    Args:
        limit: bytes in all.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._limit = self._left = limit
        self._waiting: deque[Reservation] = deque()

    @property
    def taken(self) -> int:
        """Return how many bytes are reserved."""
        return self._limit - self._left

    @property
    def waiting_count(self) -> int:
        """Return how many reservations wait for others to be released."""
        return len(self._waiting)

    def reserve(self, size: int, on_granted: Callable[[], None]) -> Reservation:
        """Reserve bytes, now or when it is this reservation's turn.

        Args:
            size: how many.
            on_granted: called, from any thread, if they are not granted at once but later.

        Raises:
            BrokerError: the size is above the limit.
        """
        if size > self._limit:
            raise BrokerError(f"a frame of {size} bytes is above queued.max.bytes={self._limit}")
        reservation = Reservation(size, on_granted)
        with self._lock:
            self._waiting.append(reservation)
            self._grant()
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Give back the bytes, or stop waiting for them."""
        with self._lock:
            if reservation.is_granted:
                self._left += reservation.size
            else:
                self._waiting.remove(reservation)
            granted = self._grant()
        for one in granted:
            one.on_granted()

    def _grant(self) -> list[Reservation]:
        granted = []
        while self._waiting and self._waiting[0].size <= self._left:
            first = self._waiting.popleft()
            self._left -= first.size
            first.is_granted = True
            granted.append(first)
        return granted


class ConnectionCount:
    """How many connections there are, in all and by address.

    Args:
        limit: connections in all.
        limit_per_address: connections from one address.
    """

    def __init__(self, limit: int, limit_per_address: int) -> None:
        self._lock = threading.Lock()
        self._limit = limit
        self._limit_per_address = limit_per_address
        self._by_address: Counter[str] = Counter()
        self.total = 0

    def enter(self, address: str) -> str | None:
        """Count a new connection, or return the name of the limit that forbids it."""
        with self._lock:
            if self.total >= self._limit:
                return "max.connections"
            if self._by_address[address] >= self._limit_per_address:
                return "max.connections.per.ip"
            self._by_address[address] += 1
            self.total += 1
            return None

    def leave(self, address: str) -> None:
        """Uncount a connection that `enter` let in."""
        with self._lock:
            self.total -= 1
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


class PeerLog:
    """Logs why connections are closed or refused, at most once a minute for one address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._silent_until_s: dict[str, float] = {}

    def warn(self, address: str, reason: object) -> None:
        """Log that the connection of a peer is closed or refused, and why."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            if self._silent_until_s.get(address, now_s) > now_s:
                return
            if len(self._silent_until_s) >= _MAX_REMEMBERED_PEERS:
                self._silent_until_s.clear()
            self._silent_until_s[address] = now_s + QUIET_S
        logger.warning(
            "closed a connection of %s: %s (further ones are not logged for a minute)",
            address,
            reason,
        )
