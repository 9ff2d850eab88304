"""A cluster that is known without asking: kept up to date by watches in the registry.

Notices brokers that come, go or move (their values are compared, KAFKA-474), topics that come into
being, and partitions that are added to a topic (KAFKA-1075). While the registry is away, what was
known last stands.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from broker.errors import (
    BrokerUnreachableError,
    CoordinationError,
    RegistryNodeNotFoundError,
)
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition, validate_topic_name
from broker.zk import paths
from broker.zk.registry import Registry
from broker.zk.values import decode_broker, decode_number

logger = logging.getLogger(__name__)

_BROKERS = ""
"""Stands for the brokers where else a topic's name would stand: no topic is called so."""
_RETRY_S = 1.0


class WatchedCluster:
    """The cluster as ZooKeeper has it, for any number of threads.

    A topic is watched from its first use on, which reads ZooKeeper; all else is answered from
    memory.

    Args:
        registry: not started; owned by this from now on.

    Attributes:
        on_change: called after each change, in a thread of this object; must be quick.
    """

    def __init__(self, registry: Registry) -> None:
        self.on_change: Callable[[], None] | None = None
        self._registry = registry
        self._brokers: dict[int, BrokerAddress] = {}  # rebound, never changed
        self._counts: dict[str, dict[int, int]] = {}  # its values are rebound, never changed
        self._armed: set[str] = set()  # watches that have not fired yet
        self._reading = threading.Lock()
        self._dirty: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer-discovery", daemon=True)

    def start(self, timeout_s: float) -> None:
        """Connect to the registry, read the brokers, and keep all up to date from now on.

        Args:
            timeout_s: how long to try to connect.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        self._registry.start(timeout_s)
        try:
            self._read(_BROKERS)
        except BaseException:
            self._registry.stop()
            raise
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the session with the registry."""
        self._is_stopped.set()
        self._dirty.put(None)
        self._registry.stop()  # ends a read that the thread waits for
        if self._thread.is_alive():
            self._thread.join()

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        return [address for _, address in sorted(self._brokers.items())]

    def topics(self) -> list[str]:
        """Return the topics, by name; asks the registry.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        return sorted(self._registry.topics())

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index.

        Raises:
            InvalidTopicError: there can be no such topic.
            RegistryUnreachableError: it is asked for the first time, and no answer came in time.
        """
        counts = self._counts.get(topic)
        if counts is None:
            validate_topic_name(topic)
            self._read(topic)
            counts = self._counts[topic]
        live = self._brokers
        return [
            TopicPartition(topic, home, index)
            for home, count in sorted(counts.items())
            if home in live
            for index in range(count)
        ]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the partition's home broker.

        Raises:
            BrokerUnreachableError: it is not in the registry now.
        """
        address = self._brokers.get(partition.home)
        if address is None:
            raise BrokerUnreachableError(
                f"{partition} is on broker {partition.home}, which is not in the registry"
            )
        return address

    def _run(self) -> None:
        """Read again what has changed, until stopped."""
        while (subjects := self._next_subjects()) is not None:
            if self._read_all(subjects) and self.on_change is not None:
                self.on_change()

    def _next_subjects(self) -> set[str] | None:
        """Wait until something is to be read again; return all that is, None at the end."""
        subjects: set[str] = set()
        while not subjects or not self._dirty.empty():
            subject = self._dirty.get()
            if subject is None:
                return None
            subjects.add(subject)
        return subjects

    def _read_all(self, subjects: set[str]) -> bool:
        """Read several things again; return whether there is news."""
        has_changed = False
        for subject in subjects:
            try:
                has_changed = self._read(subject) or has_changed
            except CoordinationError as error:
                self._dirty.put(subject)
                if not self._is_stopped.wait(_RETRY_S):
                    logger.warning("what is known of the cluster may be old: %s", error)
        return has_changed

    def _read(self, subject: str) -> bool:
        """Read the brokers or a topic, with watches; return whether that is news."""
        with self._reading:
            if subject == _BROKERS:
                brokers = self._read_brokers()
                has_changed = brokers != self._brokers
                self._brokers = brokers
            else:
                counts = self._read_counts(subject)
                has_changed = counts != self._counts.get(subject)
                self._counts[subject] = counts
        return has_changed

    def _read_brokers(self) -> dict[int, BrokerAddress]:
        brokers = {}
        for broker_id in self._children(paths.BROKER_IDS, _BROKERS):
            value = self._value(paths.broker(broker_id), _BROKERS)
            try:
                if value is not None:
                    info = decode_broker(broker_id, value)
                    brokers[broker_id] = BrokerAddress(info.id, info.host, info.port)
            except CoordinationError as error:
                logger.warning("broker %d left out: %s", broker_id, error)
        return brokers

    def _read_counts(self, topic: str) -> dict[int, int]:
        counts = {}
        for broker_id in self._children(paths.topic(topic), topic):
            path = paths.topic_broker(topic, broker_id)
            value = self._value(path, topic)
            try:
                if value is not None:
                    counts[broker_id] = decode_number(value, f"value of {path}")
            except CoordinationError as error:
                logger.warning("broker %d left out for topic %s: %s", broker_id, topic, error)
        return counts

    def _children(self, path: str, subject: str) -> list[int]:
        """Return the numbers below a node, none if it does not exist yet; watch for more."""
        while True:
            try:
                with self._watch("children", path, subject) as watch:
                    names = self._registry.session.children(path, watch=watch)
                return [int(name) for name in names if name.isascii() and name.isdigit()]
            except RegistryNodeNotFoundError:
                with self._watch("node", path, subject) as watch:
                    if self._registry.session.exists(path, watch=watch) is None:
                        return []

    def _value(self, path: str, subject: str) -> bytes | None:
        """Return a node's value, None if it went away meanwhile; watch it."""
        try:
            with self._watch("node", path, subject) as watch:
                return self._registry.session.get(path, watch=watch)[0]
        except RegistryNodeNotFoundError:
            return None

    @contextmanager
    def _watch(self, kind: str, path: str, subject: str) -> Iterator[Callable[[], None] | None]:
        """Give a watch for a read, None if there is one already: they would add up."""
        name = f"{kind} {path}"
        if name in self._armed:
            yield None
            return
        self._armed.add(name)
        try:
            yield partial(self._fired, name, subject)
        except CoordinationError:
            self._armed.discard(name)  # a read that fails sets no watch
            raise

    def _fired(self, name: str, subject: str) -> None:
        """Have something read again; in the registry's thread, where nothing may wait."""
        self._armed.discard(name)
        self._dirty.put(subject)
