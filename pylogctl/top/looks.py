"""Asks brokers and ZooKeeper for what `pylogctl top` shows: each in its thread, one at a time.

A broker has one connection, and is asked again only after its answer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import NamedTuple

from broker import errors
from broker.admin.groups import list_groups, read_group
from broker.client.connection import Connection
from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.extension_requests import StatusParts, StatusRequest
from broker.protocol.layouts import DATA
from broker.protocol.responses import BrokerAddress, ClusterMetadataResponse
from broker.security.client_security import ClientSecurity
from broker.threads import StoppableThread
from broker.zk.registry import Registry
from pylogctl.top.state import BrokerAnswer, GroupsAnswer

_GROUPS_EVERY_S = 5.0


class Wish(NamedTuple):
    """What brokers are asked for."""

    parts: StatusParts
    topic: str  # empty: all
    metadata_of: frozenset[int]  # brokers to ask for metadata, too
    timeout_s: float


class Looks:
    """The threads that ask; a context manager. `fileno` can be read when there are answers.

    Args:
        brokers: that are asked first; `follow` adds those that come.
        registry: started, for groups; None without ZooKeeper.
    """

    def __init__(
        self,
        brokers: Iterable[BrokerAddress],
        registry: Registry | None,
        security: ClientSecurity | None = None,
    ) -> None:
        self.security = security
        self._answers: SimpleQueue[BrokerAnswer | GroupsAnswer] = SimpleQueue()
        self._wake_reader, self._wake_writer = os.pipe()
        for one in (self._wake_reader, self._wake_writer):
            os.set_blocking(one, False)
        self._askers: dict[int, _Asker] = {}
        self._groups = None if registry is None else _GroupReader(registry, self)
        self._groups_s = -_GROUPS_EVERY_S
        self.follow(brokers)

    def __enter__(self) -> Looks:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for asker in self._askers.values():
            asker.stop()
        if self._groups is not None:
            self._groups.stop()
        # the pipe stays until the process ends: a thread that still waits for a broker writes to it

    def fileno(self) -> int:
        """Return a descriptor that can be read once something was put in."""
        return self._wake_reader

    def wake(self) -> None:
        """Make `fileno` readable."""
        with suppress(BlockingIOError):  # it is, if the pipe is full
            os.write(self._wake_writer, b"\0")

    @property
    def wake_writer(self) -> int:
        """The other end of `fileno`, for signals."""
        return self._wake_writer

    def put(self, answer: BrokerAnswer | GroupsAnswer) -> None:
        """Take an answer of a thread."""
        self._answers.put(answer)
        self.wake()

    def follow(self, brokers: Iterable[BrokerAddress]) -> None:
        """Ask these brokers from now on, at these addresses."""
        for address in brokers:
            known = self._askers.get(address.id)
            if known is None or known.address != address:
                if known is not None:
                    known.stop()
                self._askers[address.id] = _Asker(address, self)

    @property
    def broker_ids(self) -> list[int]:
        """The brokers that are asked."""
        return list(self._askers)

    def ask(self, wish: Wish) -> None:
        """Ask all who are not busy with the last look."""
        for id, asker in self._askers.items():
            if not asker.is_busy:
                asker.ask(wish._replace(metadata_of=wish.metadata_of & {id}))
        groups, now_s = self._groups, time.monotonic()
        is_due = now_s - self._groups_s >= _GROUPS_EVERY_S
        if groups is not None and is_due and not groups.is_busy:
            self._groups_s = now_s
            groups.ask(wish)

    @property
    def is_complete(self) -> bool:
        """Whether all have answered, and the answers were taken."""
        busy = [*self._askers.values(), *([self._groups] if self._groups else ())]
        return not any(one.is_busy for one in busy)

    def answers(self) -> list[BrokerAnswer | GroupsAnswer]:
        """Return the answers that have come since the last call, without waiting."""
        with suppress(BlockingIOError):
            while os.read(self._wake_reader, 4096):
                pass
        found = []
        while not self._answers.empty():
            answer = self._answers.get()
            found.append(answer)
            if isinstance(answer, BrokerAnswer):
                self._askers[answer.broker].is_busy = False
            elif self._groups is not None:
                self._groups.is_busy = False
        return found


class _Worker(StoppableThread):
    """Answers one wish after another in a thread."""

    def __init__(self, name: str, looks: Looks) -> None:
        super().__init__(name)
        self.is_busy = False
        self._looks = looks
        self._orders: SimpleQueue[Wish | None] = SimpleQueue()
        self.start()

    def ask(self, wish: Wish) -> None:
        """Answer in the background."""
        self.is_busy = True
        self._orders.put(wish)

    def stop(self) -> None:
        """End the thread."""
        super().stop()
        self._orders.put(None)

    def _loop(self) -> None:
        """Answer each order, until there is none."""
        while (wish := self._orders.get()) is not None:
            answer = self._answer(wish)
            if not self._stopping.is_set():
                self._looks.put(answer)

    def _answer(self, wish: Wish) -> BrokerAnswer | GroupsAnswer:
        raise NotImplementedError


class _Asker(_Worker):
    """Asks one broker."""

    def __init__(self, address: BrokerAddress, looks: Looks) -> None:
        self.address = address
        self._connection = Connection(address, retries_refused=False, security=looks.security)
        super().__init__(f"top-broker-{address.id}", looks)

    def stop(self) -> None:
        """End the thread, also while it waits for the broker."""
        super().stop()
        self._connection.interrupt()

    def _loop(self) -> None:
        super()._loop()
        self._connection.close()

    def _answer(self, wish: Wish) -> BrokerAnswer:
        connection, address = self._connection, self.address
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


class _GroupReader(_Worker):
    """Reads all groups from ZooKeeper."""

    def __init__(self, registry: Registry, looks: Looks) -> None:
        self._registry = registry
        super().__init__("top-groups", looks)

    def _answer(self, wish: Wish) -> GroupsAnswer:
        session, registry = self._registry.session, self._registry
        try:
            topics = registry.topics()
            found = [read_group(session, one, all_topics=topics) for one in list_groups(session)]
        except errors.BrokerError as error:
            return GroupsAnswer(time.monotonic(), None, str(error))
        return GroupsAnswer(time.monotonic(), tuple(found))
