"""The throttle of reassignments: how fast a broker copies to replicas that are being added.

It limits how much a follower asks for, so that no data is sent and then delayed. All fetchers of a
broker share it. Fetches of in-sync replicas are not limited.

Times are seconds of a monotonic clock.
"""

from __future__ import annotations

from threading import Lock

NO_THROTTLE = 0
_PIECES_PER_SECOND = 4
_LEAST_PIECE_BYTES = 16 << 10
"""Least request, however low the rate: less would cost a request for almost every message."""


class Throttle:
    """Grants bytes at a rate; can be called from several threads.

    A fetch reserves the bytes it asks for, and settles those received. More may be granted than is
    due, as a message cannot be fetched in parts: the next grant waits for it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._bytes_per_s = NO_THROTTLE
        self._balance = 0.0  # below 0: granted before it was due
        self._balanced_s = 0.0  # when `_balance` was computed

    @property
    def bytes_per_s(self) -> int:
        """Return the rate, `NO_THROTTLE` if there is no limit."""
        return self._bytes_per_s

    def set(self, bytes_per_s: int, now_s: float) -> None:
        """Change the rate; 0 or less means no limit."""
        bytes_per_s = max(NO_THROTTLE, bytes_per_s)
        with self._lock:
            if bytes_per_s != self._bytes_per_s:
                self._accrue(now_s)
                self._bytes_per_s = bytes_per_s
                # after a higher rate, at most one grant has to be waited for
                self._balance = min(0.0, max(self._balance, -float(self._piece_bytes)))

    def reserve(self, wanted_bytes: int, least_bytes: int, now_s: float) -> int:
        """Return how much may be asked for now, 0 if nothing is due yet."""
        with self._lock:
            if self._bytes_per_s == NO_THROTTLE:
                return wanted_bytes
            self._accrue(now_s)
            if self._balance <= -1.0:  # less than a byte is not waited for
                return 0
            # with less than `least_bytes` nothing can be copied, as a message is so large
            granted = max(least_bytes, min(wanted_bytes, self._piece_bytes))
            self._balance -= granted
            return granted

    def settle(self, reserved_bytes: int, received_bytes: int) -> None:
        """Give back reserved bytes that were not received."""
        with self._lock:
            if self._bytes_per_s != NO_THROTTLE:
                self._balance += reserved_bytes - received_bytes

    def due_s(self, now_s: float) -> float:
        """Return when bytes can be reserved again."""
        with self._lock:
            if self._bytes_per_s == NO_THROTTLE:
                return now_s
            self._accrue(now_s)
            return now_s + max(0.0, -self._balance / self._bytes_per_s)

    @property
    def _piece_bytes(self) -> int:
        return max(_LEAST_PIECE_BYTES, self._bytes_per_s // _PIECES_PER_SECOND)

    def _accrue(self, now_s: float) -> None:
        """Add the bytes that have become due; those not asked for in time are not saved up."""
        due = self._balance + (now_s - self._balanced_s) * self._bytes_per_s
        self._balance = min(due, self._bytes_per_s / _PIECES_PER_SECOND)
        self._balanced_s = max(now_s, self._balanced_s)
