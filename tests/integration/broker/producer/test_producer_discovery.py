"""What a producer knows of a cluster by the watches it has set in a real ZooKeeper."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client.watched_cluster import WatchedCluster
from broker.errors import BrokerUnreachableError, InvalidTopicError
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.registry import Registry
from broker.zk.session import Session
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


class Changes:
    """Counts what a cluster tells."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.count = 0
        cluster.on_change = self._note

    def _note(self) -> None:
        self.count += 1


@pytest.fixture
def watched(zookeeper: str) -> Iterator[WatchedCluster]:
    cluster = WatchedCluster(Registry(zookeeper))
    cluster.start(60)
    yield cluster
    cluster.stop()


def register(session: Session, broker_id: int, port: int) -> None:
    session.create(paths.broker(broker_id), f"me-1:host:{port}".encode())


def ports(cluster: WatchedCluster) -> dict[int, int]:
    return {one.id: one.port for one in cluster.brokers()}


def test_brokers_when_they_come_and_go_then_known_without_asking(
    session: Session, watched: WatchedCluster
) -> None:
    assert watched.brokers() == []
    register(session, 10, 1010)
    wait_until(lambda: ports(watched) == {10: 1010}, "the first broker")
    register(session, 2, 1002)
    wait_until(lambda: ports(watched) == {2: 1002, 10: 1010}, "the second broker")
    assert [one.id for one in watched.brokers()] == [2, 10]
    session.delete(paths.broker(10))
    wait_until(lambda: ports(watched) == {2: 1002}, "the end of a broker")
    assert watched.leader(TopicPartition("t", 2, 0)) == BrokerAddress(2, "host", 1002)
    with pytest.raises(BrokerUnreachableError, match="broker 10, which is not in the registry"):
        watched.leader(TopicPartition("t", 10, 0))


def test_brokers_when_one_comes_back_elsewhere_at_once_then_the_address_is_the_new_one(
    session: Session, watched: WatchedCluster
) -> None:
    """Both events can merge into one for which the ids are what they were."""
    register(session, 0, 1000)
    wait_until(lambda: ports(watched) == {0: 1000}, "the broker")
    for port in range(1001, 1006):
        session.delete(paths.broker(0))
        register(session, 0, port)
    wait_until(lambda: ports(watched) == {0: 1005}, "the last address")


def test_brokers_when_a_registration_is_rewritten_then_known(
    session: Session, watched: WatchedCluster
) -> None:
    register(session, 0, 1000)
    wait_until(lambda: ports(watched) == {0: 1000}, "the broker")
    changes = Changes(watched)
    session.set(paths.broker(0), b"me-1:host:2000")
    # the first that is told may be the registration of before
    wait_until(lambda: changes.count and ports(watched) == {0: 2000}, "the change")


def test_brokers_when_a_registration_is_malformed_then_the_others_are_known(
    session: Session, watched: WatchedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    session.create(paths.broker(0), b"nonsense")
    register(session, 1, 1001)
    wait_until(lambda: ports(watched) == {1: 1001}, "the good broker")
    assert "broker 0 left out" in caplog.text


def test_partitions_when_topic_comes_into_being_then_known(
    session: Session, watched: WatchedCluster
) -> None:
    register(session, 0, 1000)
    wait_until(watched.brokers, "the broker")
    assert watched.partitions("t") == []
    changes = Changes(watched)
    session.create(paths.topic_broker("t", 0), b"2", ephemeral=True)
    wait_until(lambda: changes.count and watched.partitions("t"), "the topic")
    assert watched.partitions("t") == [TopicPartition("t", 0, 0), TopicPartition("t", 0, 1)]
    assert watched.topics() == ["t"]


def test_partitions_when_a_broker_gets_more_then_known(
    session: Session, watched: WatchedCluster
) -> None:
    register(session, 0, 1000)
    session.create(paths.topic_broker("t", 0), b"1")
    wait_until(watched.brokers, "the broker")
    assert len(watched.partitions("t")) == 1
    changes = Changes(watched)
    session.set(paths.topic_broker("t", 0), b"3")
    wait_until(lambda: changes.count and len(watched.partitions("t")) == 3, "the change")


def test_partitions_when_on_several_brokers_then_in_order_of_numbers_and_live_ones_only(
    session: Session, watched: WatchedCluster
) -> None:
    for broker_id in (10, 2):
        register(session, broker_id, 1000 + broker_id)
    for broker_id in (10, 2, 3):
        session.create(paths.topic_broker("t", broker_id), b"1")
    wait_until(lambda: len(watched.brokers()) == 2, "both brokers")
    assert [one.home for one in watched.partitions("t")] == [2, 10]


def test_partitions_when_there_can_be_no_such_topic_then_says_so(watched: WatchedCluster) -> None:
    with pytest.raises(InvalidTopicError):
        watched.partitions("a/b")


def test_cluster_when_zookeeper_is_away_then_what_was_known_stands_until_it_is_back(
    java: Java, tmp_path: Path
) -> None:
    port = port_of_its_own()
    server = EmbeddedZooKeeper(tmp_path, port=port, java=java, is_durable=False, tick_ms=200)
    server.start()
    registry = Registry(server.connect)
    watched = WatchedCluster(registry)
    try:
        with Session(server.connect) as session:
            session.create(paths.broker(0), b"me-1:host:1000", ephemeral=False)
        watched.start(60)
        registry.session._request_timeout_s = 0.5  # not that of its start
        server.stop()
        assert ports(watched) == {0: 1000}
        server = EmbeddedZooKeeper(tmp_path, port=port, java=java, is_durable=False, tick_ms=200)
        server.start()
        assert ports(watched) == {0: 1000}
        with Session(server.connect) as session:
            session.set(paths.broker(0), b"me-1:host:2000")
        wait_until(lambda: ports(watched) == {0: 2000}, "the change after the restart")
    finally:
        watched.stop()
        server.stop()


def test_producer_when_made_and_closed_then_leaves_no_threads(zookeeper: str) -> None:
    before = threading.active_count()
    config = ProducerConfig.from_properties({"zk.connect": zookeeper})
    producer = Producer.from_config(config)
    with pytest.raises(BrokerUnreachableError, match="no live broker to create topic 't' on"):
        producer.send("t", [b"one"])
    producer.close()
    wait_until(lambda: threading.active_count() <= before, "the end of its threads")
