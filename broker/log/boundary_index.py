"""Where some of a segment's entries start, so that a search need not walk the whole file.

Owns a sorted, sparse list of positions in one file; never reads the file itself.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from threading import Lock

SPACING_BYTES = 1 << 20


class BoundaryIndex:
    """Known entry starts of one segment file, about one for each MiB, the first being 0.

    Eight bytes for each MiB of log; an index lives and dies with its open file, so memory is
    bounded by the number of open files.
    """

    __slots__ = ("_lock", "_positions")

    def __init__(self) -> None:
        self._lock = Lock()
        self._positions = array("q", [0])

    def append(self, position: int) -> None:
        """Note an entry start that lies behind all known ones, unless it is too close to the last.

        Args:
            position: where in the file an entry starts.
        """
        if position - self._positions[-1] >= SPACING_BYTES:
            self.insert(position)

    def insert(self, position: int) -> None:
        """Note an entry start anywhere, unless a known one is too close.

        Args:
            position: where in the file an entry starts.
        """
        with self._lock:
            positions = self._positions
            at = bisect_left(positions, position)
            if position - positions[at - 1] < SPACING_BYTES:
                return
            if at < len(positions) and positions[at] - position < SPACING_BYTES:
                return
            positions.insert(at, position)

    def floor(self, position: int) -> int:
        """Return the last known entry start at or before a position.

        Args:
            position: a position in the file, 0 or more.
        """
        with self._lock:
            return self._positions[bisect_right(self._positions, position) - 1]

    def __len__(self) -> int:
        return len(self._positions)
