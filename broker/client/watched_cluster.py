"""Cluster metadata in memory, kept up to date by watches in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.client.cluster import Connect
from broker.client.registry_cluster import RegisteredCluster, partitions_at
from broker.errors import RegistryUnreachableError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition, validate_topic_name
from broker.zk import paths
from broker.zk.registry import Registry, RegistryChange, WatchedRegistry
from broker.zk.watched_reads import WatchedReads


class _Replicated(NamedTuple):
    """The partitions of a topic that have replicas: those with a leader, and all of them."""

    led: list[TopicPartition]
    assigned: list[TopicPartition]


class WatchedCluster(RegisteredCluster):
    """The cluster as registered in ZooKeeper, for several threads.

    The first call for a topic reads it from ZooKeeper and sets watches; later calls use memory.

    Args:
        registry: not started; this object starts and stops it.
    """

    def __init__(self, registry: Registry, connect: Connect | None = None) -> None:
        super().__init__(registry, connect)
        # called after each change, in the thread of `_watched`; must not block
        self.on_change: Callable[[], None] | None = None
        self._replicated: dict[str, _Replicated] = {}
        self._former_replicated: dict[str, _Replicated] = {}  # while ZooKeeper is away
        self._topic_nodes = WatchedReads(registry.session, lambda _path: self._forget())
        self._watched = WatchedRegistry(
            registry,
            name="producer-discovery",
            on_change=self._note_change,
            reads_endpoints=registry.speaks_tls,
        )

    def start(self, timeout_s: float) -> None:
        """Connect to ZooKeeper, read the brokers, and start the thread that follows changes."""
        self.registry.start(timeout_s)
        try:
            self._watched.read_brokers()
        except BaseException:
            self.registry.stop()
            raise
        self._watched.start()

    def stop(self) -> None:
        """End the thread and the ZooKeeper session."""
        self._watched.stop()
        self.registry.stop()  # makes a read that blocks the thread fail
        self._watched.join()

    def _note_change(self, change: RegistryChange) -> None:
        self._forget()

    def _forget(self) -> None:
        self._replicated = {}
        if self.on_change is not None:
            self.on_change()

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        found = [one for _, one in sorted(self._watched.brokers().items())]
        if self.registry.speaks_tls:
            found = [one.at_tls() for one in found]
        return [BrokerAddress(one.id, one.host, one.port) for one in found]

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index."""
        validate_topic_name(topic)
        counts, live = self._watched.counts(topic), self._watched.brokers()
        found = partitions_at(topic, {home: counts[home] for home in counts if home in live})
        led = self._find_replicated(topic).led
        return sorted({*found, *led}) if led else found

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic, also those without a leader now."""
        homes = partitions_at(topic, self._watched.counts(topic))
        return sorted({*homes, *self._find_replicated(topic).assigned})

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Request the leaders of the partitions of topics that have replicas again."""
        names = list(topics)
        for topic in names:
            self._replicated.pop(topic, None)
        return super().find_leaders(names)

    def _find_replicated(self, topic: str) -> _Replicated:
        """Return the partitions with replicas, read after each change of brokers or the topic."""
        found = self._replicated.get(topic)
        if found is None:
            try:
                self._topic_nodes.values([paths.replicated_topic(topic)])  # watched from now on
                led = list(self._read_led([topic]))
                read = self._replicated_topics.assignments([topic])
                assigned = sorted(partition for one in read for partition in one.replicas)
                found = _Replicated(led, assigned)
            except RegistryUnreachableError:
                if topic not in self._former_replicated:
                    raise
                found = self._former_replicated[topic]
            self._former_replicated[topic] = found
            if found.assigned or self._watched.counts(topic):  # else it may be about to be created
                self._replicated[topic] = found
        return found
