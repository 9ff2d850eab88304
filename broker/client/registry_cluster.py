"""The brokers, topics and partitions of a cluster, as registered in ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.client.cluster import LearnedLeaders
from broker.client.read_replicas import InSyncReplicas
from broker.errors import BrokerUnreachableError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from broker.zk.registry import Registry


class RegisteredLeaders:
    """The leaders of partitions, as registered in ZooKeeper; `registry` must be started."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._leaders = LearnedLeaders()

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the last known leader of a partition."""
        return self._leaders.of(partition)

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic with replicas, also those without a leader now."""
        from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo, as the registry

        return ReplicatedTopics(self._registry.session).assigned(topic)

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the brokers that have each topic and are not live."""
        # for a topic with replicas, the homes of partitions that have no leader
        from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo, as the registry

        names = list(topics)
        replicated = ReplicatedTopics(self._registry.session)
        return self._registry.absent_homes(names) | replicated.homes_without_leader(names)

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Read the leaders of the partitions of topics that have replicas again."""
        return read_leaders(self._registry, topics, self._leaders)

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        """Read the in-sync replicas of the partitions of topics, and note their leaders."""
        return read_in_sync(self._registry, topics, self._leaders)

    def has_replicas(self, partition: TopicPartition) -> bool:
        """Return whether another broker can become the leader of a partition."""
        return read_has_replicas(self._registry, partition)

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note that the supposed leader of a partition is not; `broker_id` is the one it named."""
        self._leaders.note(partition, broker_id)

    def note_answer(self, address: BrokerAddress, broker_id: int) -> None:
        """Do nothing: the address in the registry is that of the broker."""


class RegistryCluster(RegisteredLeaders):
    """The cluster as registered in ZooKeeper; `registry` must be started.

    While ZooKeeper is away, brokers and leaders are the last known ones, without a wait.

    Raises:
        RegistryUnreachableError: by methods that read ZooKeeper, if it did not respond in time.
        BrokerUnreachableError: by `leader` and `address`, if the broker is not registered.
    """

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._former_brokers: list[BrokerAddress] = []

    @property
    def _lacks_zookeeper(self) -> bool:
        return bool(self._former_brokers) and self._registry.session.state != "connected"

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Read the leaders of the partitions of topics that have replicas again."""
        return {} if self._lacks_zookeeper else super().find_leaders(topics)

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        if not self._lacks_zookeeper:
            found = self._registry.brokers()
            self._former_brokers = [BrokerAddress(one.id, one.host, one.port) for one in found]
        return self._former_brokers

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        return sorted(self._registry.topics())

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index."""
        return self.partitions_of([topic])

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of several topics on live brokers, read in one go."""
        names = list(topics)
        found = [
            TopicPartition(topic, home, index)
            for topic, counts in self._registry.partitions_of(names).items()
            for home, count in sorted(counts.items())
            for index in range(count)
        ]
        return with_replicated(found, self._registry, names, self._leaders)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition."""
        brokers = {one.id: one for one in self.brokers()}
        return leader_among(brokers, partition, self._leaders, self._registry)

    def address(self, broker_id: int) -> BrokerAddress:
        """Return the address of a broker."""
        for broker in self.brokers():
            if broker.id == broker_id:
                return broker
        raise BrokerUnreachableError(f"broker {broker_id} is not in the registry")


def leader_among(
    brokers: Mapping[int, BrokerAddress],
    partition: TopicPartition,
    leaders: LearnedLeaders,
    registry: Registry,
) -> BrokerAddress:
    """Return the broker, among those registered, that leads a partition; else its home broker."""
    # if the leader in `leaders` is not registered, they are read again
    found = brokers.get(leaders.of(partition))
    if found is None:
        read_leaders(registry, [partition.topic], leaders)
        found = brokers.get(leaders.of(partition)) or brokers.get(partition.home)
    if found is None:
        raise BrokerUnreachableError(
            f"{partition} is on broker {partition.home}, which is not in the registry"
        )
    return found


def with_replicated(
    found: list[TopicPartition], registry: Registry, topics: Iterable[str], leaders: LearnedLeaders
) -> list[TopicPartition]:
    """Add the partitions that brokers other than the home lead to `found`, those of live homes.

    Sorted by topic, home and index; `leaders` learns the leaders.
    """
    led = read_leaders(registry, topics, leaders)
    return sorted({*found, *led}) if led else found


def read_leaders(
    registry: Registry, topics: Iterable[str], leaders: LearnedLeaders
) -> dict[TopicPartition, int]:
    """Return the leaders of the partitions with replicas that have one; `leaders` learns them."""
    from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo, as the registry

    led = ReplicatedTopics(registry.session).leaders(topics)
    for partition, leader in led.items():
        leaders.note(partition, leader)
    return led


def read_in_sync(
    registry: Registry, topics: Iterable[str], leaders: LearnedLeaders
) -> InSyncReplicas:
    """Return the in-sync replicas of partitions with a leader; `leaders` learns the leaders."""
    from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo, as the registry

    replicated = ReplicatedTopics(registry.session)
    states = replicated.led_states(topics)
    for partition, state in states.items():
        leaders.note(partition, state.leader)
    return InSyncReplicas(
        {partition: state.isr for partition, state in states.items()},
        {one.id: one.rack for one in replicated.brokers() if one.rack},
    )


def read_has_replicas(registry: Registry, partition: TopicPartition) -> bool:
    """Return whether a partition has more than one replica."""
    from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo, as the registry

    return len(ReplicatedTopics(registry.session).replicas(partition)) > 1
