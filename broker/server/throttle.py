"""The throttle of changes of replicas: how fast a broker copies to replicas that are being added.

It limits what a follower asks for, so that nothing is sent that would have to wait anywhere. All
fetchers of a broker share it. Replicas in sync never meet it.
"""

from __future__ import annotations

from threading import Lock

NO_THROTTLE = 0
_PIECES_PER_SECOND = 4
_LEAST_PIECE_BYTES = 16 << 10
"""Asked for at least, however low the rate: less would cost a request for almost every message."""


class Throttle:
    """Grants bytes at a rate; can be called from several threads.

    A fetch reserves what it asks for, and settles what came. What is granted may be more than is
    due, as a message cannot be fetched in parts: the next grant waits for it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._bytes_per_s = NO_THROTTLE
        self._balance = 0.0  # below 0: granted before it was due
        self._balanced_s = 0.0  # when that was so

    @property
    def bytes_per_s(self) -> int:
        """Return the rate, `NO_THROTTLE` if there is no limit."""
        return self._bytes_per_s

    def set(self, bytes_per_s: int, now_s: float) -> None:
        """Change the rate; from a higher one no more than one grant has to be waited for.

        Args:
            bytes_per_s: above 0, anything else is `NO_THROTTLE`.
            now_s: the time, of a monotonic clock, as everywhere here.
        """
        bytes_per_s = max(NO_THROTTLE, bytes_per_s)
        with self._lock:
            if bytes_per_s != self._bytes_per_s:
                self._accrue(now_s)
                self._bytes_per_s = bytes_per_s
                self._balance = min(0.0, max(self._balance, -float(self._piece_bytes)))

    def reserve(self, wanted_bytes: int, least_bytes: int, now_s: float) -> int:
        """Return how much may be asked for now, 0 if that is nothing yet.

        Args:
            wanted_bytes: the most that is of use.
            least_bytes: with less than this nothing can be copied, as a message is so large.
            now_s: the time.
        """
        with self._lock:
            if self._bytes_per_s == NO_THROTTLE:
                return wanted_bytes
            self._accrue(now_s)
            if self._balance <= -1.0:  # part of a byte is no reason to wait
                return 0
            granted = max(least_bytes, min(wanted_bytes, self._piece_bytes))
            self._balance -= granted
            return granted

    def settle(self, reserved_bytes: int, received_bytes: int) -> None:
        """Give back what was reserved and has not come."""
        with self._lock:
            if self._bytes_per_s != NO_THROTTLE:
                self._balance += reserved_bytes - received_bytes

    def due_s(self, now_s: float) -> float:
        """Return when something can be reserved again."""
        with self._lock:
            if self._bytes_per_s == NO_THROTTLE:
                return now_s
            self._accrue(now_s)
            return now_s + max(0.0, -self._balance / self._bytes_per_s)

    @property
    def _piece_bytes(self) -> int:
        return max(_LEAST_PIECE_BYTES, self._bytes_per_s // _PIECES_PER_SECOND)

    def _accrue(self, now_s: float) -> None:
        """Add what has become due; what was not asked for in time is not saved up."""
        due = self._balance + (now_s - self._balanced_s) * self._bytes_per_s
        self._balance = min(due, self._bytes_per_s / _PIECES_PER_SECOND)
        self._balanced_s = max(now_s, self._balanced_s)
