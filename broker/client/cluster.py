"""The brokers, topics and partitions of a cluster, whether ZooKeeper or brokers tell of them.

A cluster knows which broker leads a partition: its home broker, unless a broker says otherwise. A
client tells it what it learns on the way: that a broker refuses as it does not lead, or that a
broker answers at the address of another, as behind a load balancer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from broker.client.connection import Connection
from broker.client.read_replicas import InSyncReplicas
from broker.cluster_state import NO_LEADER
from broker.errors import BrokerUnreachableError, TopicNotFoundError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

Connect = Callable[[BrokerAddress], Connection]
"""Makes a connection to a broker, with the timeouts and buffer sizes of its owner."""


class Cluster(Protocol):
    """The metadata of a cluster that clients need; a cluster that stays as it is may inherit."""

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""

    def topics(self) -> list[str]:
        """Return the topics, by name."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic with replicas, also those that no broker leads now.

        Raises:
            BrokerUnreachableError, RegistryUnreachableError: there is no answer.
        """
        return []

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the brokers that have each topic and are not live, as far as they are known.

        Returns:
            By topic; one without any entry is not known to be on a broker that is away.

        Raises:
            BrokerUnreachableError, RegistryUnreachableError: there is no answer.
        """
        return {}

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition.

        Raises:
            BrokerUnreachableError: the broker is unknown or not live.
        """

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the broker that leads a partition as far as is known, without asking."""
        return partition.home

    def address(self, broker_id: int) -> BrokerAddress:
        """Return the address of a broker.

        Raises:
            BrokerUnreachableError: the broker is unknown or not live.
        """
        for broker in self.brokers():
            if broker.id == broker_id:
                return broker
        raise BrokerUnreachableError(f"there is no live broker {broker_id}")

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Ask anew who leads the partitions of topics, as a broker called the leader is lost.

        Returns:
            The ids of the leaders that are known; a partition can be missing if it has no replicas
            or no leader.

        Raises:
            BrokerUnreachableError, RegistryUnreachableError: there is no answer.
        """
        return {}

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        """Ask for the in-sync replicas of the partitions of topics, as far as they have replicas.

        Raises:
            BrokerUnreachableError, RegistryUnreachableError: there is no answer.
        """
        return InSyncReplicas({}, {})

    def has_replicas(self, partition: TopicPartition) -> bool:
        """Return whether another broker can come to lead a partition.

        Raises:
            BrokerUnreachableError, RegistryUnreachableError: there is no answer.
        """
        return False

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note that the broker called the leader until now is not.

        Args:
            partition: which one.
            broker_id: of the leader, as the broker says; -1 if it does not know.
        """
        return

    def note_answer(self, address: BrokerAddress, broker_id: int) -> None:
        """Note that another broker than expected answers at an address.

        Args:
            address: with the id of the broker that was expected there.
            broker_id: of the one that answers; -1 if none does.
        """
        return


class LockedCluster:
    """A cluster for several threads: a lock serializes the calls."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        with self._lock:
            return self._cluster.brokers()

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        with self._lock:
            return self._cluster.topics()

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""
        with self._lock:
            return self._cluster.partitions(topic)

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic with replicas, also those that no broker leads now."""
        with self._lock:
            return self._cluster.assigned(topic)

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the brokers that have each topic and are not live."""
        with self._lock:
            return self._cluster.absent_homes(topics)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition."""
        with self._lock:
            return self._cluster.leader(partition)

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the broker that leads a partition as far as is known."""
        with self._lock:
            return self._cluster.leader_id(partition)

    def address(self, broker_id: int) -> BrokerAddress:
        """Return the address of a broker."""
        with self._lock:
            return self._cluster.address(broker_id)

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Ask anew who leads the partitions of topics."""
        with self._lock:
            return self._cluster.find_leaders(topics)

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        """Ask for the in-sync replicas of the partitions of topics."""
        with self._lock:
            return self._cluster.in_sync_replicas(topics)

    def has_replicas(self, partition: TopicPartition) -> bool:
        """Return whether another broker can come to lead a partition."""
        with self._lock:
            return self._cluster.has_replicas(partition)

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note that the broker called the leader until now is not."""
        with self._lock:
            self._cluster.note_leader(partition, broker_id)

    def note_answer(self, address: BrokerAddress, broker_id: int) -> None:
        """Note that another broker than expected answers at an address."""
        with self._lock:
            self._cluster.note_answer(address, broker_id)


class LearnedLeaders:
    """Which broker leads each partition: its home broker, unless another is known to."""

    def __init__(self) -> None:
        self._leaders: dict[TopicPartition, int] = {}

    def of(self, partition: TopicPartition) -> int:
        """Return the id of the leader."""
        return self._leaders.get(partition, partition.home)

    def note(self, partition: TopicPartition, broker_id: int) -> None:
        """Note a leader; -1 if that is unknown, and the home broker is to be asked again."""
        if broker_id in (NO_LEADER, partition.home):
            self._leaders.pop(partition, None)
        else:
            self._leaders[partition] = broker_id


def absence_of(cluster: Cluster, topic: str) -> str:
    """Return which brokers are away that have a topic without any live one, for an error.

    Returns:
        Empty if the topic does not exist, or nobody knows of brokers that are away.
    """
    absent = cluster.absent_homes([topic]).get(topic)
    if absent is None and topic in cluster.topics():
        return f"topic '{topic}' is registered, but no live broker has it"
    if not absent:
        return ""
    which = f"broker{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
    return f"topic '{topic}' is on {which}, which {'is' if len(absent) == 1 else 'are'} away"


def with_assigned(
    cluster: Cluster, topic: str, partitions: list[TopicPartition]
) -> list[TopicPartition]:
    """Return the partitions that a topic has now and those that wait for a leader, in order.

    So a key, or a place among the partitions, means the same one whichever brokers are away.
    """
    return sorted({*partitions, *cluster.assigned(topic)})


def find_partitions(cluster: Cluster, topic: str) -> list[TopicPartition]:
    """Return a topic's partitions.

    Raises:
        TopicNotFoundError: there is no such topic.
        BrokerUnreachableError: it is registered, and no live broker has it.
    """
    partitions = cluster.partitions(topic)
    if not partitions and (absence := absence_of(cluster, topic)):
        raise BrokerUnreachableError(absence)
    if not partitions:
        raise TopicNotFoundError(f"topic '{topic}' not found")
    return partitions
