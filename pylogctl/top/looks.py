"""Asks brokers and ZooKeeper for what `pylogctl top` shows, each look in a thread of its own.

A broker has one connection, and is asked again only after its answer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple

from broker import errors
from broker.admin.groups import list_groups, read_group
from broker.client.connection import Connection
from broker.closing import SelfClosing
from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.extension_requests import StatusParts, StatusRequest
from broker.protocol.layouts import DATA
from broker.protocol.responses import BrokerAddress, ClusterMetadataResponse
from broker.security.client_security import ClientSecurity
from broker.threads import start_once
from broker.zk.registry import Registry
from pylogctl.top.state import BrokerAnswer, GroupsAnswer

_GROUPS_EVERY_S = 5.0


class Wish(NamedTuple):
    """What brokers are asked for."""

    parts: StatusParts
    topic: str  # empty: all
    metadata_of: frozenset[int]  # brokers to ask for metadata, too
    timeout_s: float


_Answer = BrokerAnswer | GroupsAnswer


@dataclass(eq=False)
class _Source:
    """A broker, or ZooKeeper, which answers one wish at a time."""

    name: str
    answer: Callable[[Wish], _Answer]
    connection: Connection | None = None  # to a broker
    is_busy: bool = False
    is_stopped: bool = False

    def stop(self) -> None:
        """Take no more answers; a thread that waits for one ends."""
        self.is_stopped = True
        if self.connection is not None:
            (self.connection.interrupt if self.is_busy else self.connection.close)()


@dataclass(eq=False)
class Looks(SelfClosing):
    """Asks in threads; a context manager. `fileno` can be read when there are answers.

    Attributes:
        brokers: that are asked first; `follow` adds those that come.
        registry: started, for groups; None without ZooKeeper.
    """

    brokers: InitVar[Iterable[BrokerAddress]]
    registry: InitVar[Registry | None]
    security: ClientSecurity | None = None
    _answers: SimpleQueue[tuple[_Source, _Answer]] = field(default_factory=SimpleQueue)
    _brokers: dict[int, tuple[BrokerAddress, _Source]] = field(default_factory=dict)
    _groups_s: float = -_GROUPS_EVERY_S

    def __post_init__(self, brokers: Iterable[BrokerAddress], registry: Registry | None) -> None:
        self._wake_reader, self.wake_writer = os.pipe()
        """The ends of `fileno`; signals write to the second."""
        for one in (self._wake_reader, self.wake_writer):
            os.set_blocking(one, False)
        self._groups: _Source | None = None
        if registry is not None:
            self._groups = _Source("top-groups", partial(_read_groups, registry))
        self.follow(brokers)

    def close(self) -> None:
        """Take no more answers."""
        for source in self._sources():
            source.stop()
        # the pipe stays until the process ends: a thread that still waits for a broker writes to it

    def fileno(self) -> int:
        """Return a descriptor that can be read once something was put in."""
        return self._wake_reader

    def follow(self, brokers: Iterable[BrokerAddress]) -> None:
        """Ask these brokers from now on, at these addresses."""
        for address in brokers:
            known, source = self._brokers.get(address.id, (None, None))
            if known == address:
                continue
            if source is not None:
                source.stop()
            connection = Connection(address, retries_refused=False, security=self.security)
            answer = partial(_ask_broker, connection, address)
            source = _Source(f"top-broker-{address.id}", answer, connection)
            self._brokers[address.id] = address, source

    @property
    def broker_ids(self) -> list[int]:
        """The brokers that are asked."""
        return list(self._brokers)

    def ask(self, wish: Wish) -> None:
        """Ask all who are not busy with the last look."""
        for id, (_, source) in self._brokers.items():
            self._ask(source, wish._replace(metadata_of=wish.metadata_of & {id}))
        groups, now_s = self._groups, time.monotonic()
        if groups is not None and now_s - self._groups_s >= _GROUPS_EVERY_S and not groups.is_busy:
            self._groups_s = now_s
            self._ask(groups, wish)

    def _ask(self, source: _Source, wish: Wish) -> None:
        if not source.is_busy:
            source.is_busy = True
            start_once(partial(self._put_answer, source, wish), name=source.name)

    def _put_answer(self, source: _Source, wish: Wish) -> None:
        answer = source.answer(wish)
        if source.is_stopped:
            if source.connection is not None:
                source.connection.close()
            return
        self._answers.put((source, answer))
        with suppress(BlockingIOError):  # it can be read, if the pipe is full
            os.write(self.wake_writer, b"\0")

    def _sources(self) -> list[_Source]:
        sources = [source for _, source in self._brokers.values()]
        return sources if self._groups is None else [*sources, self._groups]

    @property
    def is_complete(self) -> bool:
        """Whether all have answered, and the answers were taken."""
        return not any(one.is_busy for one in self._sources())

    def answers(self) -> list[_Answer]:
        """Return the answers that have come since the last call, without waiting."""
        with suppress(BlockingIOError):
            while os.read(self._wake_reader, 4096):
                pass
        found = []
        while not self._answers.empty():
            source, answer = self._answers.get()
            source.is_busy = False
            found.append(answer)
        return found


def _ask_broker(connection: Connection, address: BrokerAddress, wish: Wish) -> BrokerAnswer:
    connection.timeout_s = connection.connect_timeout_s = wish.timeout_s
    asked_s = time.monotonic()
    answer = BrokerAnswer(address.id, address.text, asked_s, asked_s, wish.parts, wish.topic)
    try:
        if connection.hello() is None:
            return answer._replace(time_s=time.monotonic())
        request = StatusRequest(wish.parts, wish.topic)
        body = connection.repeat_if_lost(lambda: connection.call(request))
        document = json.loads(DATA.decode(body))
        answer = answer._replace(time_s=time.monotonic(), document=document)
        if wish.metadata_of and connection.understands(ClusterMetadataRequest):
            found = connection.call(ClusterMetadataRequest(None))
            answer = answer._replace(metadata=ClusterMetadataResponse.decode(found))
    except errors.BrokerError as error:
        connection.close()
        return answer._replace(document=None, error=str(error))
    return answer


def _read_groups(registry: Registry, _: Wish) -> GroupsAnswer:
    session = registry.session
    try:
        topics = registry.topics()
        found = [read_group(session, one, all_topics=topics) for one in list_groups(session)]
    except errors.BrokerError as error:
        return GroupsAnswer(time.monotonic(), None, str(error))
    return GroupsAnswer(time.monotonic(), tuple(found))
