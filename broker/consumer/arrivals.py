"""Partitions that a reader without an end comes to read later: new ones, and those that return."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass

from broker import deadlines
from broker.client.cluster import BRIEFLY_S, Cluster, Connect
from broker.client.selection import named, unreadable_text
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import UNANSWERED, BrokerError
from broker.positions import Mark, OffsetRange, resolve
from broker.topic import ReadRange, TopicPartition

_LOOK_S, _SELDOM_S = 2.0, 10.0
_MOST = 0.02
"""The share of a reader's time that looks may take, as it reads nothing meanwhile."""


@dataclass(eq=False, repr=False)
class Arrivals:
    """Finds the partitions that a reader is to read besides those that it reads.

    Args:
        cluster: for the thread that calls `look`.
        connect: makes connections.
        find: returns the partitions to be read that have a leader now.
        known: those that were to be read at the start; later ones are read from their beginning.
        waiting: those of them that could not be read.
        range_of: what to read of one that was waiting at the start.
        tell: called with a sentence when partitions cannot be read, and when they can again.
    """

    cluster: Cluster
    connect: Connect
    _: KW_ONLY
    find: Callable[[], Iterable[TopicPartition]]
    known: InitVar[Iterable[TopicPartition]]
    waiting: InitVar[Iterable[TopicPartition]]
    range_of: Callable[[TopicPartition, BoundaryFinder], ReadRange]
    tell: Callable[[str], object]

    def __post_init__(
        self, known: Iterable[TopicPartition], waiting: Iterable[TopicPartition]
    ) -> None:
        self._known = set(known)
        self._waiting = set(waiting)
        self._lost: set[TopicPartition] = set()  # those of `_waiting` that were read before
        self._untold: dict[str, list[TopicPartition]] = {}  # lost ones by cause
        self._look_at_s = time.monotonic() + _LOOK_S

    @property
    def are_due(self) -> bool:
        """Return whether it is time for the next look."""
        return time.monotonic() >= self._look_at_s

    def wait_for(self, partitions: Iterable[TopicPartition], cause: object) -> None:
        """Give partitions again once they can be read, which were being read."""
        lost = list(partitions)
        self._waiting.update(lost)
        self._lost.update(lost)
        self._untold.setdefault(str(cause), []).extend(lost)

    def look(self) -> dict[TopicPartition, ReadRange | None]:
        """Return what to read of which partitions from now on; None to go on where reading was."""
        started_s = time.monotonic()
        found: dict[TopicPartition, ReadRange | None] = {}
        with suppress(*UNANSWERED), deadlines.Limit(BRIEFLY_S):
            while self._untold:
                cause = next(iter(self._untold))
                text = unreadable_text(self.cluster, cause, self._untold[cause])
                del self._untold[cause]
                self.tell(f"{text}; waiting for it")
            led = self.find()
            self._resolve([p for p in led if p not in self._known or p in self._waiting], found)
        if back := found.keys() & self._waiting:
            self.tell(f"{named(back)} can be read again")
        self._known |= found.keys()
        self._waiting -= found.keys()
        self._lost -= found.keys()
        now_s = time.monotonic()
        self._look_at_s = now_s + min(max(_LOOK_S, (now_s - started_s) / _MOST), _SELDOM_S)
        return found

    def _resolve(
        self, partitions: Iterable[TopicPartition], found: dict[TopicPartition, ReadRange | None]
    ) -> None:
        """Add the partitions whose brokers respond."""
        silent: set[int] = set()
        with BoundaryFinder(self.cluster, self.connect) as finder:
            for one in partitions:
                leader = self.cluster.leader_id(one)
                if leader in silent:
                    continue
                try:
                    if one in self._lost:
                        finder.latest(one)  # its broker responds, and leads it
                        found[one] = None
                    elif one in self._waiting:
                        found[one] = self.range_of(one, finder)
                    else:
                        found[one] = resolve(OffsetRange(Mark.EARLIEST, None), one, finder)
                except BrokerError as error:
                    if not error.is_retriable:
                        raise
                    silent.add(leader)
