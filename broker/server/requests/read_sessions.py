"""Reads in sessions (`protocol/fetch_sessions.py`): only what may have news is looked at.

A session watches the log of each of its partitions, so that a read costs what has moved since the
one before it, however many partitions the session has.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from threading import Lock
from typing import Any, Protocol, TypeVar

from broker.errors import UnknownFetchSessionError
from broker.log.log_parts import Listeners
from broker.protocol.fetch_sessions import NO_SESSION, FetchSessions, KeptSession
from broker.server.requests.client import ConnectedClient
from broker.server.requests.purgatory import Watched
from broker.topic import TopicPartition


class _Position(Protocol):
    @property
    def partition(self) -> TopicPartition: ...


_P = TypeVar("_P", bound=_Position)
_Part = TypeVar("_Part", bound="SessionPart")


class SessionPart:
    """One partition of a session, which watches its log."""

    __slots__ = ("_session", "_silent", "_waking", "is_noted", "partition")

    def __init__(self, partition: TopicPartition, session: ReadSession[Any] | None = None) -> None:
        self.partition = partition
        self.is_noted = False  # and a read woken, since the session looked at what has moved
        self._session = session
        self._waking: Watched | None = None
        self._silent: Watched | None = None

    def watch(self, waking: Watched | None = None, silent: Watched | None = None) -> bool:
        """Have the part read when one of these advances, and no other; the first wakes a read.

        Return whether it is another one than before.
        """
        is_new = waking is not self._waking
        if is_new:
            _swap(self._waking, waking, self._note_news)
            self._waking = waking
        if silent is not self._silent:
            _swap(self._silent, silent, self._note_move)
            self._silent = silent
        return is_new

    def _note_news(self) -> None:
        if self.is_noted:  # appends pay for each session that watches, also while none waits
            return
        self.is_noted = True
        self._note_move()
        assert self._session is not None
        self._session.listeners.notify()

    def _note_move(self) -> None:
        assert self._session is not None
        self._session.moved.add(self)


def _swap(former: Watched | None, now: Watched | None, callback: Callable[[], None]) -> None:
    if former is not None:
        former.remove_listener(callback)
    if now is not None:
        now.add_listener(callback)


class ReadSession(KeptSession[_Part]):
    """A session of reads; its lock is held while it is used, as others may evict it."""

    def __init__(self, session_id: int, owner: Hashable) -> None:
        super().__init__(session_id, owner)
        self.lock = Lock()
        self.due: dict[_Part, None] = {}
        """The parts of which there may be news, in the order in which they are read."""
        self.moved: set[SessionPart] = set()  # those whose log has, noted by any thread
        self.listeners = Listeners()  # of what wakes a read
        self.is_ended = False
        self.scanned_s = -math.inf
        self.basis: object = None
        """What the decisions of the last scan followed from; see `Rights.basis`."""

    def count_with(self, positions: Iterable[_P], forgotten: Iterable[TopicPartition]) -> int:
        """Return how many positions there are after a change."""
        named = {one.partition for one in positions}
        gone = {one for one in forgotten if one in self.parts and one not in named}
        return len(self.parts) + sum(one not in self.parts for one in named) - len(gone)

    def change(
        self,
        positions: Iterable[_P],
        forgotten: Iterable[TopicPartition],
        make: Callable[[_P, ReadSession[_Part]], _Part],
    ) -> list[_Part]:
        """Take over what a request changes; return the parts that it names."""
        if self.is_ended:  # by another thread, since it was taken for this request
            raise UnknownFetchSessionError("this session has ended: name all positions")
        for partition in forgotten:
            self._remove(partition)
        named = {}
        for position in positions:
            self._remove(position.partition)
            named[position.partition] = make(position, self)
        self.parts.update(named)
        if named:
            self.listeners.notify()  # of an earlier request, which waits
        return list(named.values())

    def _remove(self, partition: TopicPartition) -> None:
        part = self.parts.pop(partition, None)
        if part is not None:
            part.watch()
            self.due.pop(part, None)

    def take_moved(self) -> None:
        """Have the parts read whose log has moved."""
        while self.moved:
            moved = self.moved.pop()
            moved.is_noted = False  # before its log is looked at: no later advance is missed
            part = self.parts.get(moved.partition)
            if part is not None and part is moved:
                self.due[part] = None

    def end(self) -> None:
        """Stop watching logs; a read that waits is answered, as it gets no more news."""
        with self.lock:
            self.is_ended = True
            for part in self.parts.values():
                part.watch()
            self.due.clear()
            super().end()
        self.listeners.notify()


def new_fetch_sessions() -> FetchSessions[ReadSession[Any]]:
    """Return the sessions of a broker."""
    return FetchSessions(ReadSession, lambda: random.getrandbits(63) or 1, Lock())


def session_of(
    sessions: FetchSessions[ReadSession[Any]],
    session_id: int,
    session_epoch: int,
    client: ConnectedClient,
    *reader: Hashable,
    is_follower: bool = False,
) -> ReadSession[Any]:
    """Return the session that a read begins or goes on with: one of its own connection."""
    owner = client, *reader
    if session_id != NO_SESSION:
        return sessions.take(session_id, session_epoch, owner)
    client.on_close()  # one is enough
    session = sessions.begin(owner, is_follower=is_follower)
    client.on_close = partial(sessions.end, session)
    return session
