"""Fetch sessions: a reader names to a broker only what has changed since its last fetch.

The broker keeps each position that it was told, and takes a fetch of a session as one that names
them all (KIP-227). So both sides must have seen the same fetches: each has the next epoch of its
session. One that is lost, late or comes twice is refused and changes nothing; the reader then
begins another session, in which it names everything. Followers and consumers share a broker's room
for sessions, and consumers leave it first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from broker.errors import UnknownFetchSessionError
from broker.topic import MAX_CLUSTER_PARTITIONS, TopicPartition

_Position = TypeVar("_Position")
_Part = TypeVar("_Part")
_Session = TypeVar("_Session", bound="KeptSession[Any]")

NO_SESSION = 0
_MAX_SESSIONS = 1000
_MAX_PARTS = MAX_CLUSTER_PARTITIONS
"""In all sessions of a broker: some 120 MB."""


class ReaderSession(Generic[_Position]):
    """The reader's side of a session: which positions the broker knows."""

    def __init__(self) -> None:
        self.end()

    def end(self) -> None:
        """Begin another session with the next fetch: all positions have to be named again."""
        self.id = NO_SESSION
        self.epoch = 0
        self.told: dict[TopicPartition, _Position] = {}
        self._changed: dict[TopicPartition, _Position] = {}
        self._forgotten: dict[TopicPartition, None] = {}

    def name(
        self, partition: TopicPartition, position: _Position, *, is_again: bool = False
    ) -> None:
        """Tell a position with the next fetch, unless the broker knows it and need not respond."""
        if is_again or self.told.get(partition) != position:
            self.told[partition] = self._changed[partition] = position
            self._forgotten.pop(partition, None)

    def forget(self, partition: TopicPartition) -> None:
        """Tell with the next fetch that a partition is not fetched any more, if it was."""
        if self.told.pop(partition, None) is not None:
            self._changed.pop(partition, None)
            self._forgotten[partition] = None

    def take_changes(self) -> tuple[tuple[_Position, ...], tuple[TopicPartition, ...]]:
        """Return the positions to name in the next fetch, and the partitions to forget."""
        changes = tuple(self._changed.values()), tuple(self._forgotten)
        self._changed, self._forgotten = {}, {}
        return changes

    def answered(self, session_id: int) -> None:
        """Note the response to a fetch."""
        self.id = session_id
        self.epoch += 1


@dataclass(eq=False)
class KeptSession(Generic[_Part]):
    """The broker's side of a session: what it knows of each partition."""

    id: int
    owner: Hashable
    is_follower: bool = field(default=True, init=False)
    epoch: int = field(default=0, init=False)  # of the last fetch
    parts: dict[TopicPartition, _Part] = field(default_factory=dict, init=False)
    counted: int = field(default=0, init=False)  # of the parts, as those of all were counted

    def end(self) -> None:
        """Release what the session keeps; called by any thread."""
        self.parts.clear()


@dataclass(eq=False)
class FetchSessions(Generic[_Session]):
    """The sessions that a broker keeps, under a bound; with a lock, those of several threads."""

    make: Callable[[int, Hashable], _Session]
    new_id: Callable[[], int]  # returns a random number above `NO_SESSION`
    lock: AbstractContextManager[object] = field(default_factory=nullcontext)
    evicted_count: int = field(default=0, init=False)  # since the start
    # least recently used first
    _by_id: OrderedDict[int, _Session] = field(default_factory=OrderedDict, init=False)
    _part_count: int = field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._by_id)

    def begin(self, owner: Hashable, *, is_follower: bool = True) -> _Session:
        """Return a new session, for the first fetch of it."""
        with self.lock:
            session_id = self.new_id()
            while session_id in self._by_id:
                session_id = self.new_id()
            session = self._by_id[session_id] = self.make(session_id, owner)
            session.is_follower = is_follower
        return session

    def take(self, session_id: int, epoch: int, owner: Hashable) -> _Session:
        """Return a session for its next fetch; raise `UnknownFetchSessionError` for another one."""
        with self.lock:
            session = self._by_id.get(session_id)
            if session is None or session.owner != owner or session.epoch + 1 != epoch:
                raise UnknownFetchSessionError(
                    "this fetch does not continue a session that is kept here: name all positions"
                )
            session.epoch = epoch
            self._by_id.move_to_end(session_id)
        return session

    def fit(self, changed: _Session | None = None) -> None:
        """Evict sessions, those used least recently first, while there are too many positions.

        `changed` has another number of them than before.
        Those of followers go last, so that no number of consumers makes replication cost more.
        """
        evicted = []
        with self.lock:
            if changed is not None and self._by_id.get(changed.id) is changed:
                self._part_count += len(changed.parts) - changed.counted
                changed.counted = len(changed.parts)
            while self._part_count > _MAX_PARTS or len(self._by_id) > _MAX_SESSIONS:
                of_consumers = (one for one in self._by_id.values() if not one.is_follower)
                session = next(of_consumers, None) or next(iter(self._by_id.values()))
                self._drop(session)
                evicted.append(session)
            self.evicted_count += len(evicted)
        for session in evicted:
            session.end()

    def end(self, session: _Session) -> None:
        """End a session whose reader has left."""
        with self.lock:
            if session.id in self._by_id:
                self._drop(session)
        session.end()

    def _drop(self, session: _Session) -> None:
        del self._by_id[session.id]
        self._part_count -= session.counted
