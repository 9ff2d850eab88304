"""Limits that all connections share, and the log of why connections are closed."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable

from broker.clock import Clock
from broker.errors import BrokerError

logger = logging.getLogger(__name__)

SMALL_FRAME_BYTES = 1 << 20
"""Frames up to this size, or up to their share of the budget, have all their room at once."""
SMALL_FRAMES_SHARE = 1 / 4
"""How much of the budget small frames may have while large ones have or want some."""
QUIET_S = 60.0
_MAX_REMEMBERED_PEERS = 10_000


class FrameRoom:
    """The room that one frame has in `QueuedBytes`.

    Args:
        frame_bytes: the length of the whole frame.
        on_granted: called, from any thread, when room is granted after a wait.
    """

    __slots__ = ("asked_bytes", "frame_bytes", "granted_bytes", "on_granted")

    def __init__(self, frame_bytes: int, on_granted: Callable[[], None]) -> None:
        self.frame_bytes = frame_bytes
        self.on_granted = on_granted
        self.granted_bytes = 0
        self.asked_bytes = 0
        """What it waits for."""

    @property
    def missing_bytes(self) -> int:
        """Return how much more the frame needs to be received whole."""
        return self.frame_bytes - self.granted_bytes


class QueuedBytes:
    """The budget for the bytes of frames that arrive in several pieces.

    A large frame asks for room piece by piece, so a size field alone takes none. The one that had
    room first is given all it asks for. Any other is given a piece only if after that each large
    frame that has room could still be received whole, without the share of the small ones. So they
    cannot keep each other waiting: when the first has left, there is enough for the next. Those
    that wait are served in the order of asking.

    A small frame is given all its room at once: it waits for nothing after that, so it keeps others
    waiting only until it has arrived. It does not queue behind large frames, which may arrive
    slowly: it may have a share that only a frame larger than all the rest takes from. When no large
    frame has or wants room, small ones may have all of it.

    Args:
        limit: bytes in all.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._limit = self._left = limit
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
        return self._limit - self._left

    @property
    def waiting_count(self) -> int:
        """Return how many frames wait for room."""
        return len(self._waiting) + len(self._small_waiting)

    def has_been_emptied(self) -> bool:
        """Return whether all room is given back that was granted since this last was true."""
        with self._lock:
            is_emptied = self._has_been_used and not self.taken
            if is_emptied:
                self._has_been_used = False
            return is_emptied

    def check(self, frame_bytes: int) -> None:
        """Check that a frame can ever have the room it needs.

        Raises:
            BrokerError: it is larger than the limit.
        """
        if frame_bytes > self._limit:
            raise BrokerError(
                f"a frame of {frame_bytes} bytes is above queued.max.bytes={self._limit}"
            )

    def ask(self, room: FrameRoom, size: int) -> bool:
        """Ask for more room for a frame that does not wait for any.

        Args:
            room: the frame's.
            size: bytes; at most what the frame misses. A small frame is given all that it misses.

        Returns:
            Whether it is granted now; if not, `on_granted` is called when it is.
        """
        with self._lock:
            is_small = self._is_small(room)
            room.asked_bytes = room.missing_bytes if is_small else size
            (self._small_waiting if is_small else self._waiting).append(room)
            self._grant()  # only this can be: nothing was given back
            return not room.asked_bytes

    def release(self, room: FrameRoom) -> None:
        """Give back the room of a frame, and stop waiting for more."""
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
        """Grant what can be granted; return whose wait that ends."""
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
        """Return the frame that is given what it asks for next, if any can be."""
        first_holder = next(iter(self._holders), None)
        if first_holder is not None and first_holder.asked_bytes:
            # If there is not enough left, small frames have it, and none comes before this.
            return first_holder if first_holder.asked_bytes <= self._left else None
        if self._small_waiting and self._has_room_for_small(self._small_waiting[0]):
            return self._small_waiting[0]
        if self._waiting and self._is_safe(self._waiting[0]):
            return self._waiting[0]
        return None

    def _has_room_for_small(self, room: FrameRoom) -> bool:
        has_large = self._holders or self._waiting
        share = self._small_share if has_large else self._limit
        return room.asked_bytes <= min(self._left, share - self._small_taken)

    def _is_safe(self, room: FrameRoom) -> bool:
        """Return whether each frame could be received whole if one were given what it asks for."""
        if room.asked_bytes > self._left:
            return False
        if not self._holders:
            return True
        large_taken = self.taken - self._small_taken
        left = self._limit - self._small_share - large_taken - room.asked_bytes
        if left < room.missing_bytes - room.asked_bytes:
            return False
        return all(left >= one.missing_bytes for one in self._holders if one is not room)


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

    def set_limits(self, limit: int, limit_per_address: int) -> None:
        """Change the limits; connections that are open stay."""
        with self._lock:
            self._limit, self._limit_per_address = limit, limit_per_address

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
