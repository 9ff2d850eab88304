"""Limits that all connections share, and the log of why connections are closed."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.endpoints import is_loopback, network_of
from broker.errors import BrokerError
from broker.token_bucket import TokenBucket

logger = logging.getLogger(__name__)

SMALL_FRAME_BYTES = 1 << 20
"""Frames up to this size, or up to their share of the budget, have all their room at once."""
SMALL_FRAMES_SHARE = 1 / 4
"""Share of the budget for small frames while large ones have or want some."""
QUIET_S = 60.0
_MAX_REMEMBERED_PEERS = 10_000
_MAX_LINES = 100


@dataclass(eq=False, slots=True)
class FrameRoom:
    """The room that one frame has in `QueuedBytes`."""

    frame_bytes: int
    on_granted: Callable[[], None]  # called, from any thread, after a wait
    granted_bytes: int = 0
    asked_bytes: int = 0  # it waits for these

    @property
    def missing_bytes(self) -> int:
        """Return how much more the frame needs to be received whole."""
        return self.frame_bytes - self.granted_bytes


class QueuedBytes:
    """The budget, in bytes, for frames that arrive in several reads.

    A large frame asks for room step by step, so a size field alone takes none. The frame that had
    room first is given all it asks for. Any other is given a step only if after that each large
    frame that has room could still be received whole, without the share of the small ones. So they
    cannot deadlock: when the first is complete, there is enough for the next. Those that wait are
    served in the order of asking.

    A small frame is given all its room at once: it waits for nothing after that, so it keeps others
    waiting only until it has arrived. It does not queue behind large frames, which may arrive
    slowly: it may have a share that only a frame larger than all the rest takes from. When no large
    frame has or wants room, small ones may have all of it.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self.limit = self._left = limit
        self._small_share = int(limit * SMALL_FRAMES_SHARE)
        self._small_taken = 0
        self._holders: dict[FrameRoom, None] = {}
        """Large frames that have room, in the order in which they got the first of it."""
        self._waiting: deque[FrameRoom] = deque()
        self._small_waiting: deque[FrameRoom] = deque()
        self._has_been_used = False

    @property
    def taken(self) -> int:
        """Return how many bytes are granted."""
        return self.limit - self._left

    @property
    def waiting_count(self) -> int:
        """Return how many frames wait for room."""
        return len(self._waiting) + len(self._small_waiting)

    def has_been_emptied(self) -> bool:
        """Return whether all room has been released since this last returned True."""
        with self._lock:
            is_emptied = self._has_been_used and not self.taken
            if is_emptied:
                self._has_been_used = False
            return is_emptied

    def check(self, frame_bytes: int) -> None:
        """Raise if a frame is larger than the whole budget."""
        if frame_bytes > self.limit:
            raise BrokerError(
                f"a frame of {frame_bytes} bytes is above queued.max.bytes={self.limit}"
            )

    def ask(self, room: FrameRoom, size: int) -> bool:
        """Ask for `size` more bytes, at most the missing ones; a small frame gets all it misses.

        Return whether they are granted now; if not, `on_granted` is called when they are.
        """
        with self._lock:
            is_small = self._is_small(room)
            room.asked_bytes = room.missing_bytes if is_small else size
            (self._small_waiting if is_small else self._waiting).append(room)
            self._grant()  # grants to this frame at most: nothing was released
            return not room.asked_bytes

    def release(self, room: FrameRoom) -> None:
        """Release the room of a frame, and stop waiting for more."""
        with self._lock:
            is_small = self._is_small(room)
            self._left += room.granted_bytes
            if is_small:
                self._small_taken -= room.granted_bytes
            room.granted_bytes = 0
            self._holders.pop(room, None)
            if room.asked_bytes:
                room.asked_bytes = 0
                (self._small_waiting if is_small else self._waiting).remove(room)
            granted = self._grant()
        for one in granted:
            one.on_granted()

    def _is_small(self, room: FrameRoom) -> bool:
        return room.frame_bytes <= min(SMALL_FRAME_BYTES, self._small_share)

    def _grant(self) -> list[FrameRoom]:
        """Grant as much as possible; return the frames whose wait that ends."""
        granted = []
        while (one := self._next()) is not None:
            self._left -= one.asked_bytes
            one.granted_bytes += one.asked_bytes
            if self._is_small(one):
                self._small_waiting.popleft()
                self._small_taken += one.asked_bytes
            else:
                self._waiting.remove(one)
                self._holders[one] = None
            one.asked_bytes = 0
            self._has_been_used = True
            granted.append(one)
        return granted

    def _next(self) -> FrameRoom | None:
        """Return the next frame that can be given the bytes it asks for."""
        first_holder = next(iter(self._holders), None)
        if first_holder is not None and first_holder.asked_bytes:
            # If too little is left, small frames have it, and no frame may overtake this one.
            return first_holder if first_holder.asked_bytes <= self._left else None
        if self._small_waiting and self._has_room_for_small(self._small_waiting[0]):
            return self._small_waiting[0]
        if self._waiting and self._is_safe(self._waiting[0]):
            return self._waiting[0]
        return None

    def _has_room_for_small(self, room: FrameRoom) -> bool:
        has_large = self._holders or self._waiting
        share = self._small_share if has_large else self.limit
        return room.asked_bytes <= min(self._left, share - self._small_taken)

    def _is_safe(self, room: FrameRoom) -> bool:
        """Return whether each frame could still be received whole if this request is granted."""
        if room.asked_bytes > self._left:
            return False
        if not self._holders:
            return True
        large_taken = self.taken - self._small_taken
        left = self.limit - self._small_share - large_taken - room.asked_bytes
        if left < room.missing_bytes - room.asked_bytes:
            return False
        return all(left >= one.missing_bytes for one in self._holders if one is not room)


_SCARCE_SHARE = 3 / 4
RESERVED_CONNECTIONS = 100
"""Beyond `max.connections`, for listeners that have a reserve."""


class ConnectionCount:
    """How many connections there are, in all and by address (/64 of IPv6), with limits."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._per_s = 0.0
        self._rate: TokenBucket | None = None
        self.set_limits(config)
        self._by_network: Counter[str] = Counter()
        self.total = 0
        self.accepted = 0  # since the start
        self.refused: Counter[str] = Counter()  # by the name of the limit

    @property
    def is_scarce(self) -> bool:
        """Return whether few more connections are possible."""
        return self.total > self._limit * _SCARCE_SHARE

    def set_limits(self, config: BrokerConfig) -> None:
        """Change the limits; connections that are open stay."""
        rate = config.max_connection_rate
        with self._lock:
            self._limit = config.max_connections
            self._limit_per_address = config.max_connections_per_ip
            if rate != self._per_s:
                # each connection pays for the one before it, so that one less is saved up
                now_s = self._clock.monotonic_s()
                self._rate = TokenBucket(rate, rate - 1, now_s) if rate else None
                self._per_s = rate

    def pause_s(self) -> float:
        """Return how long to wait after a new connection before the next is accepted."""
        with self._lock:
            return 0.0 if self._rate is None else self._rate.spend(self._clock.monotonic_s())

    def enter(
        self, address: str, *, has_reserve: bool = False, is_broker: bool = False
    ) -> str | None:
        """Count a new connection, or return the name of the limit that forbids it.

        `is_broker`: it comes from the address of a registered broker, of which there may be many,
        as of this machine.
        """
        network = network_of(address)
        is_limited = not (is_broker or is_loopback(address) or is_loopback(network))
        with self._lock:
            if self.total >= self._limit + RESERVED_CONNECTIONS * has_reserve:
                exceeded = "max.connections"
            elif is_limited and self._by_network[network] >= self._limit_per_address:
                exceeded = "max.connections.per.ip"
            else:
                self.accepted += 1
                self._by_network[network] += 1
                self.total += 1
                return None
            self.refused[exceeded] += 1
            return exceeded

    def leave(self, address: str) -> None:
        """Uncount a connection that `enter` let in."""
        network = network_of(address)
        with self._lock:
            self.total -= 1
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]


class PeerLog:
    """Logs why connections are closed or refused: once a minute for an address, 100 in all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._silent_until_s: dict[str, float] = {}
        self._lines = TokenBucket(_MAX_LINES / QUIET_S, _MAX_LINES, clock.monotonic_s())
        self._unlogged_count = 0

    def warn(self, address: str, reason: object) -> None:
        """Log that the connection of a peer is closed or refused, and why."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            if self._silent_until_s.get(address, now_s) > now_s:
                return
            if self._lines.take(now_s):
                self._unlogged_count += 1
                return
            if len(self._silent_until_s) >= _MAX_REMEMBERED_PEERS:
                self._silent_until_s.clear()
            self._silent_until_s[address] = now_s + QUIET_S
            others, self._unlogged_count = self._unlogged_count, 0
        logger.warning(
            "closed a connection of %s: %s (further ones are not logged for a minute%s)",
            address,
            reason,
            f", as {others} of other addresses before it" if others else "",
        )
