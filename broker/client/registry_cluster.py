"""The brokers, topics and partitions of a cluster, as registered in ZooKeeper."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from broker import deadlines, errors
from broker.client.cluster import BRIEFLY_S, Cluster, Connect, InSyncReplicas
from broker.client.connection import Connection
from broker.client.controller_client import ask_any, cluster_metadata
from broker.cluster_state import PartitionState
from broker.ids import NO_LEADER
from broker.protocol.responses import BrokerAddress
from broker.topic import NO_HOME, TopicPartition

if TYPE_CHECKING:
    from broker.zk.registry import Registry
    from broker.zk.replicated_topics import ReplicatedTopics


class RegisteredCluster(Cluster):
    """The topics of a cluster and their leaders, as registered in ZooKeeper.

    `registry` must be started. A subclass knows the brokers, and the partitions of live ones. With
    `connect`, a broker is asked who leads what after a leader was lost: ZooKeeper has a node for
    each partition, and many clients ask at the same time.
    """

    def __init__(self, registry: Registry, connect: Connect | None = None) -> None:
        self.registry = registry
        self._connect = connect
        # leaders that are not the home brokers
        self._leaders: dict[TopicPartition, int] = {}

    @property
    def _replicated_topics(self) -> ReplicatedTopics:
        from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo, as the registry

        return ReplicatedTopics(self.registry.session)

    def topics(self) -> list[str]:
        """Return the topics, by name; read from ZooKeeper each time."""
        return self.registry.topics()

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic, also those without a leader now."""
        homes = partitions_at(topic, self.registry.homes_of([topic])[topic])
        found = self._replicated_topics.assignments([topic])
        return sorted({*homes, *(partition for one in found for partition in one.replicas)})

    def create(self, topic: str) -> None:
        """Have a topic created on all live brokers, by the first that responds."""
        # late: no other call needs the requests of operators
        from broker.protocol.extension_requests import CreateTopicRequest

        if brokers := self.brokers():
            with suppress(errors.UnsupportedVersionError):  # of 0.7
                ask_any(brokers, self._connect or Connection, CreateTopicRequest(topic))

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the brokers that have each topic and are not live."""
        # for a topic with replicas, the homes of partitions that have no leader
        names = list(topics)
        without_leader = self._replicated_topics.homes_without_leader(names)
        return self.registry.absent_homes(names) | without_leader

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition: a registered leader, else its home broker."""
        brokers = {one.id: one for one in self.brokers()}
        found = brokers.get(self.leader_id(partition))
        if found is None:
            self._read_led([partition.topic])
            found = brokers.get(self.leader_id(partition)) or brokers.get(partition.home)
        if found is None:
            home = f"is on broker {partition.home}, which is not in the registry"
            reason = home if partition.home != NO_HOME else "has no leader"
            raise errors.BrokerUnreachableError(f"{partition} {reason}")
        return found

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the last known leader of a partition."""
        return self._leaders.get(partition, partition.home)

    def address(self, broker_id: int) -> BrokerAddress:
        """Return the address of a broker."""
        for broker in self.brokers():
            if broker.id == broker_id:
                return broker
        raise errors.BrokerUnreachableError(f"broker {broker_id} is not in the registry")

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Request the leaders of the partitions of topics that have replicas again."""
        names = tuple(topics)
        with suppress(errors.BrokerError):
            try:
                return self._request_leaders(names)
            except errors.UnsupportedVersionError:  # of 0.7: each question costs them a connection
                self._connect = None
                raise
        return {one: state.leader for one, state in self._read_led(names).items()}

    def _request_leaders(self, topics: tuple[str, ...]) -> dict[TopicPartition, int]:
        """Request leaders from any broker that responds soon, as the one asked may be lost."""
        make = self._connect  # another thread may find out that it is of no use

        def connect(address: BrokerAddress) -> Connection:
            assert make is not None
            connection = make(address)
            connection.retries_refused = False
            connection.timeout_s = connection.connect_timeout_s = BRIEFLY_S
            return connection

        brokers = self.brokers() if make is not None else []
        metadata = cluster_metadata(random.sample(brokers, len(brokers)), connect, topics)
        found = {
            one.partition: one.leader
            for one in metadata.partitions
            if one.is_replicated and one.leader != NO_LEADER
        }
        for partition, leader in found.items():
            self.note_leader(partition, leader)
        return found

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        """Read the in-sync replicas of the partitions of topics, and note their leaders."""
        return InSyncReplicas(
            {partition: state.isr for partition, state in self._read_led(topics).items()},
            {one.id: one.rack for one in self._replicated_topics.brokers() if one.rack},
        )

    def has_replicas(self, partition: TopicPartition) -> bool:
        """Return whether another broker can become the leader of a partition."""
        found = self._replicated_topics.assignments([partition.topic])
        return any(len(one.replicas.get(partition, ())) > 1 for one in found)

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note a leader; with -1 (unknown), the home broker is to be asked again."""
        if broker_id in (NO_LEADER, partition.home):
            self._leaders.pop(partition, None)
        else:
            self._leaders[partition] = broker_id

    def _read_led(self, topics: Iterable[str]) -> dict[TopicPartition, PartitionState]:
        """Read the states of the partitions with replicas that have a leader, and note these."""
        led = self._replicated_topics.led_states(topics)
        for partition, state in led.items():
            self.note_leader(partition, state.leader)
        return led


class RegistryCluster(RegisteredCluster):
    """The cluster as registered in ZooKeeper; `registry` must be started.

    While ZooKeeper is away, brokers and leaders are the last known ones, without a wait; brokers
    also if a read of them takes longer than a second. The next one may take twice as long, up to
    four seconds, as ZooKeeper may be slow for good.

    Raises:
        RegistryUnreachableError: by methods that read ZooKeeper, if it did not respond in time.
        BrokerUnreachableError: by `leader` and `address`, if the broker is not registered.
    """

    def __init__(self, registry: Registry, connect: Connect | None = None) -> None:
        super().__init__(registry, connect)
        self._former_brokers: list[BrokerAddress] = []
        self._limit_s = BRIEFLY_S  # of a read of brokers, while former ones are known

    @property
    def _lacks_zookeeper(self) -> bool:
        return bool(self._former_brokers) and self.registry.session.state != "connected"

    def _read_led(self, topics: Iterable[str]) -> dict[TopicPartition, PartitionState]:
        return {} if self._lacks_zookeeper else super()._read_led(topics)

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        if not self._lacks_zookeeper:
            try:
                with deadlines.Limit(self._limit_s if self._former_brokers else None):
                    found = self.registry.brokers()
            except errors.RegistryUnreachableError:  # it hangs, and the session does not know yet
                if not self._former_brokers:
                    raise
                self._limit_s = min(2 * self._limit_s, 4 * BRIEFLY_S)
            else:
                self._former_brokers = [BrokerAddress(one.id, one.host, one.port) for one in found]
        return self._former_brokers

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index."""
        return self.partitions_of([topic])

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of several topics on live brokers, read in one go."""
        names = list(topics)
        found = [
            partition
            for topic, homes in self.registry.homes_of(names, live_only=True).items()
            for partition in partitions_at(topic, homes)
        ]
        led = self._read_led(names)
        return sorted({*found, *led}) if led else found


def partitions_at(topic: str, counts: Mapping[int, int]) -> list[TopicPartition]:
    """Return the partitions of a topic by home and index; `counts` are those of each home."""
    return [
        TopicPartition(topic, home, index)
        for home, count in sorted(counts.items())
        for index in range(count)
    ]
