"""First messages of topics where the settings forbid them to make one, or ask for replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.client.controller_client import cluster_metadata
from broker.errors import (
    NO_ERROR,
    ConfigError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    UnknownTopicError,
)
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest, HomeCount
from broker.protocol.requests import LATEST_TIME
from broker.protocol.responses import PartitionMetadata, Published, decode_publish_response
from broker.server.broker import Broker
from broker.topic import FORMAT_KAFKA, TopicPartition
from broker.zk.settings import SettingsRegistry, node_of_topic
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    PeerFactory,
    address_of,
)
from tests.support.waiting import wait_until

MESSAGES = encode([b"one", b"two"])


def start_cluster(
    start_broker: BrokerFactory, zookeeper: str, directory: Path, *, size: int
) -> list[Broker]:
    """Start brokers that give new topics two replicas, and two partitions at each home."""
    brokers = [
        start_broker(
            broker_id=broker_id,
            data_dir=directory / str(broker_id),
            zookeeper=zookeeper,
            num_partitions=2,
            default_replication_factor=2,
        )
        for broker_id in range(size)
    ]
    # else the controller may not know of the last one yet, and give it no partitions
    wait_until(
        lambda: all(one.replicas.has_full_orders for one in brokers), "orders to all brokers"
    )
    return brokers


def publish(connect: PeerFactory, broker: Broker, partition: TopicPartition) -> Published:
    """Publish on a connection of its own: a refusal holds for all later sets of one."""
    request = PublishRequest(Acks.COMMITTED, 30_000, (PartitionSet(partition, MESSAGES),))
    peer = connect(broker)
    (published,) = decode_publish_response(peer.call(request))
    peer.close()
    return published


def partitions_of(
    broker: Broker, open_connection: ConnectionFactory, topic: str
) -> dict[str, PartitionMetadata]:
    """Return what a broker tells of the partitions of a topic, by name, once it knows replicas.

    That is a little later than its first append.
    """
    found: dict[str, PartitionMetadata] = {}

    def has_replicas() -> bool:
        metadata = cluster_metadata([address_of(broker)], open_connection, (topic,))
        found.update((one.partition.name, one) for t in metadata.topics for one in t.partitions)
        return bool(found) and all(one.is_replicated for one in found.values())

    wait_until(has_replicas, "metadata of the replicas")
    return found


@pytest.mark.zookeeper
def test_first_message_when_default_replication_factor_is_two_then_its_partition_has_two_replicas(
    start_broker: BrokerFactory,
    open_connection: ConnectionFactory,
    connect: PeerFactory,
    zookeeper: str,
    tmp_path: Path,
) -> None:
    brokers = start_cluster(start_broker, zookeeper, tmp_path, size=3)
    assert brokers[2].membership.registry is not None
    settings = SettingsRegistry(brokers[2].membership.registry.session)
    settings.change(node_of_topic("t"), lambda _: {"flush.ms": "50"})
    wait_until(lambda: brokers[2].membership.settings_of("t"), "the broker to hear of the settings")
    peer = connect(brokers[2])
    peer.call(CreateTopicRequest("t"))
    peer.close()
    assert publish(connect, brokers[2], TopicPartition("t", 2, 1)).error == NO_ERROR

    found = partitions_of(brokers[2], open_connection, "t")
    assert sorted(found) == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    assert all(len(one.replicas) == 2 for one in found.values())
    assert found["2-1"].replicas[0] == 2
    assert settings.read(node_of_topic("t")) == {"flush.ms": "50"}


@pytest.mark.zookeeper
def test_first_produce_of_0_7_when_default_replication_factor_is_two_then_nothing_is_lost(
    start_broker: BrokerFactory,
    open_connection: ConnectionFactory,
    connect: PeerFactory,
    zookeeper: str,
    tmp_path: Path,
) -> None:
    brokers = start_cluster(start_broker, zookeeper, tmp_path, size=2)
    peer = connect(brokers[1])

    for _ in range(3):
        peer.produce("t", MESSAGES)

    wait_until(
        lambda: peer.offsets("t", LATEST_TIME)[0] == 3 * len(MESSAGES), "all sets to be stored"
    )
    assert peer.fetch("t", 0) == (NO_ERROR, MESSAGES * 3)
    assert len(partitions_of(brokers[1], open_connection, "t")["1-0"].replicas) == 2


@pytest.mark.zookeeper
def test_first_message_when_live_brokers_are_too_few_then_it_is_refused_by_name(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, tmp_path: Path
) -> None:
    (broker,) = start_cluster(start_broker, zookeeper, tmp_path, size=1)

    with pytest.raises(
        InvalidReplicationFactorError,
        match="topic 't' cannot have 2 replicas of a partition: 1 brokers are live",
    ):
        connect(broker).call(CreateTopicRequest("t"))


def test_first_message_when_auto_create_is_off_then_it_is_refused_and_makes_no_topic(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    broker = start_broker(data_dir=tmp_path / "data", auto_create_topics=False)
    peer = connect(broker)

    with pytest.raises(UnknownTopicError, match="topic create"):
        peer.call(CreateTopicRequest("t"))
    assert peer.publish("t", MESSAGES).error == UnknownTopicError.code
    peer.produce("t", MESSAGES)
    assert peer.is_closed()
    assert broker.status()["topics"] == 0


def test_start_when_default_replication_factor_is_two_without_zookeeper_then_it_is_refused(
    start_broker: BrokerFactory, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"default\.replication\.factor=2 needs zk\.connect"):
        start_broker(data_dir=tmp_path / "data", default_replication_factor=2)


@pytest.mark.zookeeper
def test_create_topic_when_of_kafka_in_a_cluster_then_the_controller_makes_it(
    start_broker: BrokerFactory,
    open_connection: ConnectionFactory,
    connect: PeerFactory,
    zookeeper: str,
    tmp_path: Path,
) -> None:
    brokers = start_cluster(start_broker, zookeeper, tmp_path, size=2)
    peer = connect(brokers[0])
    with pytest.raises(InvalidRequestError, match="has no partitions at chosen brokers"):
        peer.call(CreateTopicRequest("t", 0, (HomeCount(0, 1), HomeCount(1, 1)), FORMAT_KAFKA))
    peer.call(CreateTopicRequest("t", 3, (), FORMAT_KAFKA))
    peer.call(CreateTopicRequest("by-message", 0, (), FORMAT_KAFKA))

    found = partitions_of(brokers[1], open_connection, "t")
    assert sorted(found) == ["0", "1", "2"]
    assert all(len(one.replicas) == 2 for one in found.values())
    assert sorted(partitions_of(brokers[0], open_connection, "by-message")) == ["0", "1"]
    assert [one.logs.topics.names() for one in brokers] == [[], []]


@pytest.mark.zookeeper
def test_start_when_a_topic_of_kafka_was_made_without_zookeeper_then_it_is_served_but_not_told(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    zookeeper: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(data_dir=tmp_path / "0")
    connect(broker).call(CreateTopicRequest("t", 2, (), FORMAT_KAFKA))
    broker.logs.creation.get_or_create("t", 1)
    broker.stop()
    broker = start_broker(data_dir=tmp_path / "0", zookeeper=zookeeper)

    assert "topic 't' is not registered: this broker made it without ZooKeeper" in caplog.text
    assert broker.membership.registry is not None
    assert broker.membership.registry.topics() == []
    assert broker.logs.table.get("t", 1) is not None
