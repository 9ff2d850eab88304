"""Where topics are: brokers and partitions, from a registry or from a static list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from broker.client.connection import Connection, addresses_text
from broker.errors import (
    BrokerUnreachableError,
    ConfigError,
    TopicNotFoundError,
    WrongPartitionError,
)
from broker.protocol.requests import FetchRequest, MetadataRequest
from broker.protocol.responses import BrokerAddress, MetadataResponse, decode_fetch_response
from broker.topic import TopicPartition, check_topic_name

if TYPE_CHECKING:
    from broker.zk.registry import Registry

Connect = Callable[[BrokerAddress], Connection]
"""Makes a connection to a broker, with the timeouts and sizes its owner wants."""

_MAX_PROBED_PARTITIONS = 1024


class Cluster(Protocol):
    """What a client needs to know of brokers and topics."""

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""

    def topics(self) -> list[str]:
        """Return the topics, by name."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition.

        Raises:
            BrokerUnreachableError: it is not there.
        """


class RegistryCluster:
    """The cluster as ZooKeeper has it.

    Args:
        registry: started.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        return [BrokerAddress(one.id, one.host, one.port) for one in self._registry.brokers()]

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        return sorted(self._registry.topics())

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index."""
        return [
            TopicPartition(topic, home, index)
            for home, count in sorted(self._registry.topic_partitions(topic).items())
            for index in range(count)
        ]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the partition's home broker."""
        for broker in self.brokers():
            if broker.id == partition.home:
                return broker
        raise BrokerUnreachableError(
            f"{partition} is on broker {partition.home}, which is not in the registry"
        )


class StaticCluster:
    """The cluster as the listed brokers tell it, with no registry.

    Args:
        addresses: at least one broker; one that is listed twice counts once.
        connect: makes the connections they are asked over; these are kept until `close`.
    """

    def __init__(self, addresses: Sequence[BrokerAddress], connect: Connect) -> None:
        self._connections = [connect(address) for address in dict.fromkeys(addresses)]
        self._addresses: dict[int, BrokerAddress] = {}

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            connection.close()

    def brokers(self) -> list[BrokerAddress]:
        """Return the listed brokers under the ids they give themselves.

        A 0.7 broker cannot say its id: the one in the list is taken, or else its place there.

        Raises:
            BrokerUnreachableError: one of them cannot be reached.
            ConfigError: two of them have the same id.
        """
        for place, connection in enumerate(self._connections):
            if connection.address in self._addresses.values():
                continue
            broker_id = self._id_of(connection, place)
            if broker_id in self._addresses:
                both = [self._addresses[broker_id], connection.address]
                raise ConfigError(
                    f"{addresses_text(both, ' and ')} both are broker {broker_id}: "
                    "the brokers of one cluster need different ids"
                )
            self._addresses[broker_id] = connection.address
        return [
            address._replace(id=broker_id) for broker_id, address in sorted(self._addresses.items())
        ]

    def _id_of(self, connection: Connection, place: int) -> int:
        hello = connection.hello()
        if hello is not None:
            return hello.broker_id
        return connection.address.id if connection.address.id >= 0 else place

    def topics(self) -> list[str]:
        """Return the topics of all listed brokers; those of 0.7 brokers cannot be known."""
        found: set[str] = set()
        for connection in self._connections:
            if connection.hello() is not None:
                response = _metadata(connection, MetadataRequest(None))
                found.update(topic.topic for topic in response.topics)
        return sorted(found)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions on all listed brokers, by home and index."""
        check_topic_name(topic)
        found: list[TopicPartition] = []
        for place, connection in enumerate(self._connections):
            if connection.hello() is None:
                found += _probe_partitions(connection, topic, self._id_of(connection, place))
            else:
                response = _metadata(connection, MetadataRequest((topic,)))
                found += [one.partition for one in response.topics[0].partitions]
        return sorted(found)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the listed broker that is the partition's home."""
        known = self._addresses.get(partition.home)
        if known is not None:
            return known._replace(id=partition.home)
        for broker in self.brokers():
            if broker.id == partition.home:
                return broker
        raise BrokerUnreachableError(
            f"{partition} is on broker {partition.home}, which is not among "
            f"{addresses_text([c.address for c in self._connections])}"
        )


def _metadata(connection: Connection, request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse.decode(connection.repeat_if_lost(lambda: connection.call(request)))


def _probe_partitions(connection: Connection, topic: str, home: int) -> list[TopicPartition]:
    """Count a 0.7 broker's partitions of a topic: the first one it calls wrong ends them."""
    found: list[TopicPartition] = []
    for index in range(_MAX_PROBED_PARTITIONS):
        request = FetchRequest(topic, index, 0, 0)
        answer = connection.repeat_if_lost(partial(connection.ask, request))
        if decode_fetch_response(answer)[0] == WrongPartitionError.code:
            break
        found.append(TopicPartition(topic, home, index))
    return found


def find_partitions(cluster: Cluster, topic: str) -> list[TopicPartition]:
    """Return a topic's partitions.

    Raises:
        TopicNotFoundError: no live broker has the topic.
    """
    partitions = cluster.partitions(topic)
    if not partitions:
        raise TopicNotFoundError(f"topic '{topic}' not found")
    return partitions
