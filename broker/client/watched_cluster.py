"""Cluster metadata in memory, kept up to date by watches in ZooKeeper.

Notices brokers that register, leave or move (their values are compared, KAFKA-474), new topics, and
partitions added to a topic (KAFKA-1075). While ZooKeeper is unreachable, the last known metadata
stays in use.
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
"""The subject of a read of the brokers; all other subjects are topic names."""
_RETRY_S = 1.0


class WatchedCluster:
    """The cluster as registered in ZooKeeper, for any number of threads.

    The first call for a topic reads it from ZooKeeper and sets watches; later calls use memory.

    Args:
        registry: not started; this object starts and stops it.

    Attributes:
        on_change: called after each change, in a thread of this object; must not block.
    """

    def __init__(self, registry: Registry) -> None:
        self.on_change: Callable[[], None] | None = None
        self._registry = registry
        # replaced, never changed in place, as are the values of _counts: readers need no lock
        self._brokers: dict[int, BrokerAddress] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._armed: set[str] = set()  # watches that have not fired yet
        self._reading = threading.Lock()
        self._dirty: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer-discovery", daemon=True)

    def start(self, timeout_s: float) -> None:
        """Connect to ZooKeeper, read the brokers, and start the thread that follows changes.

        Raises:
            RegistryUnreachableError: ZooKeeper did not respond in time.
        """
        self._registry.start(timeout_s)
        try:
            self._read(_BROKERS)
        except BaseException:
            self._registry.stop()
            raise
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the ZooKeeper session."""
        self._is_stopped.set()
        self._dirty.put(None)
        self._registry.stop()  # makes a read that blocks the thread fail
        if self._thread.is_alive():
            self._thread.join()

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        return [address for _, address in sorted(self._brokers.items())]

    def topics(self) -> list[str]:
        """Return the topics, by name; read from ZooKeeper each time.

        Raises:
            RegistryUnreachableError: ZooKeeper did not respond in time.
        """
        return sorted(self._registry.topics())

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index.

        Raises:
            InvalidTopicError: the name is not valid.
            RegistryUnreachableError: ZooKeeper did not respond to the first read of the topic.
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
            BrokerUnreachableError: the broker is not registered now.
        """
        address = self._brokers.get(partition.home)
        if address is None:
            raise BrokerUnreachableError(
                f"{partition} is on broker {partition.home}, which is not in the registry"
            )
        return address

    def _run(self) -> None:
        """Read changed subjects again, until stopped."""
        while (subjects := self._next_subjects()) is not None:
            if self._read_all(subjects) and self.on_change is not None:
                self.on_change()

    def _next_subjects(self) -> set[str] | None:
        """Wait for changes; return all changed subjects, None at the end."""
        subjects: set[str] = set()
        while not subjects or not self._dirty.empty():
            subject = self._dirty.get()
            if subject is None:
                return None
            subjects.add(subject)
        return subjects

    def _read_all(self, subjects: set[str]) -> bool:
        """Read several subjects again; return whether one of them has changed."""
        has_changed = False
        for subject in subjects:
            try:
                has_changed = self._read(subject) or has_changed
            except CoordinationError as error:
                self._dirty.put(subject)
                if not self._is_stopped.wait(_RETRY_S):
                    logger.warning("cluster metadata may be stale: %s", error)
        return has_changed

    def _read(self, subject: str) -> bool:
        """Read the brokers or a topic, and watch them; return whether they have changed."""
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
        """Return the numeric children of a node, none if it does not exist yet; watch them."""
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
        """Return a node's value, None if it was deleted meanwhile; watch it."""
        try:
            with self._watch("node", path, subject) as watch:
                return self._registry.session.get(path, watch=watch)[0]
        except RegistryNodeNotFoundError:
            return None

    @contextmanager
    def _watch(self, kind: str, path: str, subject: str) -> Iterator[Callable[[], None] | None]:
        """Give a watch for a read; None if one is armed already, so that they do not add up."""
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
        """Queue a subject to be read again; runs in the session's thread and must not block."""
        self._armed.discard(name)
        self._dirty.put(subject)
