"""The brokers and topics of the registry in memory, kept up to date by watches.

Notices brokers that register, leave or move (their values are compared, KAFKA-474), new topics, and
partitions added to a topic (KAFKA-1075). While ZooKeeper is unreachable, the last known state stays
in use.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection
from typing import NamedTuple

from broker.errors import CoordinationError
from broker.threads import StoppableThread
from broker.zk import paths
from broker.zk.registry import Registry
from broker.zk.replicated_values import decode_endpoints
from broker.zk.values import BrokerInfo, broker_ids, decode_brokers, decode_homes, decode_number
from broker.zk.watched_reads import WatchedReads

logger = logging.getLogger(__name__)

_BROKERS = ""
"""The subject of a read of the brokers; other subjects are topic names."""
_TOPICS = "/"
"""The subject of a read of the list of topics."""
_RETRY_S = 1.0


class RegistryChange(NamedTuple):
    """A change of the registry: the live brokers by id, None if they are the same, and counts.

    `counts` are of each topic that has changed: how many partitions each broker has, live or not.
    """

    brokers: dict[int, BrokerInfo] | None
    counts: dict[str, dict[int, int]]


class WatchedRegistry(StoppableThread):
    """The brokers and topics of the registry as last read, for any number of threads.

    Args:
        registry: started before `start` is called.
        name: of the thread that reads changes.
        on_change: called after the first read and after each change, in that thread.
        follows_all: read and watch every topic from the start; else those that `counts` is asked
            for.
        reads_endpoints: read those of brokers, too.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        name: str,
        on_change: Callable[[RegistryChange], None],
        follows_all: bool = False,
        reads_endpoints: bool = False,
    ) -> None:
        super().__init__(name)
        self._watched = WatchedReads(
            registry.session, lambda path: self._dirty.put(_subject_of(path))
        )
        self._on_change = on_change
        self._follows_all = follows_all
        self._reads_endpoints = reads_endpoints
        # replaced, never changed in place, as are the values of _counts: readers need no lock
        self._brokers: dict[int, BrokerInfo] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._home_zxids: dict[str, int] = {}  # the changes that recorded the homes of topics
        self._reading = threading.Lock()
        self._dirty: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Start the thread that reads brokers and topics, and then their changes."""
        self._dirty.put(_BROKERS)
        if self._follows_all:
            self._dirty.put(_TOPICS)
        super().start()

    def stop(self) -> None:
        """Ask the thread to stop. A read under way ends with the registry's session."""
        super().stop()
        self._dirty.put(None)

    def brokers(self) -> dict[int, BrokerInfo]:
        """Return the live brokers, by id."""
        return self._brokers

    def read_brokers(self) -> None:
        """Read the brokers in the caller's thread, and watch them."""
        self._read({_BROKERS})

    def counts(self, topic: str) -> dict[int, int]:
        """Return how many partitions of a topic each broker has, live or not.

        The topic is followed from now on.
        """
        counts = self._counts.get(topic)
        if counts is None:
            self._read({topic})
            counts = self._counts[topic]
        return counts

    def _loop(self) -> None:
        """Read changed subjects again, until stopped."""
        is_first, is_told = True, False
        while (subjects := self._next_subjects()) is not None:
            try:
                change = self._read(subjects)
            except Exception as error:
                for subject in subjects:
                    self._dirty.put(subject)
                if not isinstance(error, CoordinationError):
                    raise  # a bug, after which the loop starts again
                if not (self._stopping.wait(_RETRY_S) or is_told):
                    is_told = True
                    logger.warning("cluster metadata may be stale: %s", error)
                continue
            is_told = False
            if change is not None or is_first:
                self._on_change(change or RegistryChange(None, {}))
            is_first = False

    def _next_subjects(self) -> set[str] | None:
        """Wait for changes; return all changed subjects, None at the end."""
        subjects: set[str] = set()
        while not subjects or not self._dirty.empty():
            subject = self._dirty.get()
            if subject is None:
                return None
            subjects.add(subject)
        return subjects

    def _read(self, subjects: set[str]) -> RegistryChange | None:
        """Read subjects and watch them; return the changes, None if there are none."""
        with self._reading:
            topics = subjects - {_BROKERS, _TOPICS}
            if _TOPICS in subjects:
                listed = self._watched.children([paths.TOPICS])[paths.TOPICS]
                topics |= set(listed) - self._counts.keys()
            found, zxids = self._read_counts(topics)
            # also those deleted and created again as they were, since they were read
            counts = {
                name: one
                for name, one in found.items()
                if one != self._counts.get(name) or zxids.get(name) != self._home_zxids.get(name)
            }
            # after the topics: a broker that leaves takes its counts with it
            brokers = self._read_brokers() if _BROKERS in subjects else self._brokers
            has_new_brokers = brokers != self._brokers
            self._brokers = brokers
            self._counts.update(counts)
            self._home_zxids.update(zxids)
        if not counts and not has_new_brokers:
            return None
        return RegistryChange(brokers if has_new_brokers else None, counts)

    def _read_brokers(self) -> dict[int, BrokerInfo]:
        names = self._watched.children([paths.BROKER_IDS])[paths.BROKER_IDS]
        ids = broker_ids(names)
        brokers = decode_brokers(self._watched.values([paths.broker(one) for one in ids]))
        if not self._reads_endpoints:
            return brokers
        nodes = {paths.replicated_broker(one): one for one in brokers}
        found = self._watched.values(nodes)
        # registered a moment later; a broker of 0.7 has none
        late = [path for path in nodes if path not in found and self._watched.exists(path)]
        for path, (value, _) in {**found, **self._watched.values(late)}.items():
            try:
                endpoints = decode_endpoints(nodes[path], value)
            except CoordinationError as error:
                logger.warning("the endpoints of broker %d are left out: %s", nodes[path], error)
            else:
                brokers[nodes[path]] = brokers[nodes[path]]._replace(endpoints=endpoints)
        return brokers

    def _read_counts(
        self, topics: Collection[str]
    ) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
        """Return the partitions of topics by broker, and the changes that recorded their homes."""
        parents = {paths.topic(topic): topic for topic in topics}
        children = self._watched.children(parents)
        counts, zxids = self._read_homes(topics)
        nodes = {
            paths.topic_broker(parents[path], broker_id): (parents[path], broker_id)
            for path, names in children.items()
            for broker_id in broker_ids(names)
        }
        for path, (value, _) in self._watched.values(nodes).items():
            topic, broker_id = nodes[path]
            try:
                counts[topic][broker_id] = decode_number(value, f"value of {path}")
            except CoordinationError as error:
                logger.warning("broker %d left out for topic %s: %s", broker_id, topic, error)
        return counts, zxids

    def _read_homes(
        self, topics: Collection[str]
    ) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
        nodes = {paths.creation_ids(topic): topic for topic in topics}
        homes: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        zxids: dict[str, int] = {}
        for path, (value, stat) in self._watched.values(nodes).items():
            zxids[nodes[path]] = stat.mzxid
            try:
                homes[nodes[path]] = decode_homes(path, value)
            except CoordinationError as error:
                logger.warning("only live brokers are known of topic %s: %s", nodes[path], error)
        return homes, zxids


def _subject_of(path: str) -> str:
    """Return the subject that a node belongs to."""
    if path.startswith((paths.BROKER_IDS, paths.REPLICATED_BROKERS)):
        return _BROKERS
    above = paths.CREATION_IDS if path.startswith(paths.CREATION_IDS) else paths.TOPICS
    return path.removeprefix(above).strip("/").partition("/")[0] or _TOPICS
