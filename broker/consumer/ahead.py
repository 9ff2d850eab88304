"""Commits offsets before the messages in front of them are handed out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from broker.consumer.committer import AssignedPartition

MAX_BATCH = 1000
_BATCH_S = 0.01


class AheadCommits(threading.local):
    """Commits as many messages at once as were handled in 10 ms, at least one and at most 1,000.

    So many can be lost for each thread that handles messages, if the process is killed.

    Args:
        commit: commits an offset of a partition; returns False if the partition is lost.
    """

    def __init__(self, commit: Callable[[AssignedPartition, int], bool]) -> None:
        self._commit = commit
        self._count = 0  # of the last batch of this thread
        self._since_s = 0.0

    def commit(self, assigned: AssignedPartition, bounds: Iterable[tuple[int, int]]) -> int:
        """Commit the next messages of a partition, given by offset and next offset.

        A wrapper is committed as a whole, and nothing behind it: its end is the committed offset
        while its messages are handed out, as most stores cannot go back to one of them.

        Returns:
            How many messages may be handed out; 0 if the partition is lost.
        """
        handling_s = max(time.monotonic() - self._since_s, 1e-6)
        wanted = min(MAX_BATCH, 2 * self._count, int(self._count * _BATCH_S / handling_s))
        count, end, is_inside = 0, -1, False
        for count, (offset, next_offset) in enumerate(bounds, 1):
            end, was_inside, is_inside = next_offset, is_inside, next_offset == offset
            if not is_inside and (was_inside or count >= wanted):
                break
        self._count = count if count and self._commit(assigned, end) else 0
        self._since_s = time.monotonic()
        return self._count
