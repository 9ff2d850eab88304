"""A cluster that is known from ZooKeeper: while ZooKeeper is away, and after a leader was lost."""

from __future__ import annotations

import time
from typing import cast

import pytest

from broker import deadlines
from broker.client.cluster import Connect
from broker.client.registry_cluster import RegistryCluster
from broker.errors import NO_ERROR, BrokerUnreachableError, RegistryUnreachableError
from broker.protocol.primitives import Reader
from broker.protocol.responses import (
    BrokerAddress,
    PartitionMetadata,
    encode_cluster_metadata_header,
    encode_cluster_partition,
    encode_cluster_topic_header,
)
from broker.topic import FORMAT_07, TopicPartition
from broker.zk.registry import Registry
from broker.zk.session import SessionState

PARTITION = TopicPartition("t", 0, 0)


class Away:
    """A registry with broker 0 and others, which fails once it is away."""

    def __init__(self, *others: int) -> None:
        self.ids = (0, *others)
        self.session = self
        self.hangs = False
        self.takes_s = 0.0
        self.waited_for_s = 0.0
        self.state = SessionState.CONNECTED

    def brokers(self) -> list[BrokerAddress]:
        if self.state is not SessionState.CONNECTED or self.hangs:
            self.waited_for_s = deadlines.left_s()
            raise RegistryUnreachableError("it is away")
        if (left_s := deadlines.left_s()) < self.takes_s:
            time.sleep(left_s)
            raise RegistryUnreachableError("it is slow")
        return [BrokerAddress(one, "here", 1) for one in self.ids]


class Asked:
    """A connection to a broker: broker 0 is lost, the others say that broker 2 leads."""

    def __init__(self, address: BrokerAddress) -> None:
        self.address = address

    def understands(self, _kind: type) -> bool:
        if self.address.id == 0:
            raise BrokerUnreachableError("lost")
        return True

    def call(self, _request: object) -> Reader:
        led = PartitionMetadata(PARTITION, NO_ERROR, 2, (0, 1, 2), (1, 2), 7)
        return Reader(
            encode_cluster_metadata_header("zk", self.address.id, 1, [], {}, 1)
            + encode_cluster_topic_header("t", NO_ERROR, FORMAT_07, {}, 1)
            + encode_cluster_partition(led)
        )

    def close(self) -> None:
        return


def test_brokers_when_zookeeper_is_away_then_are_where_they_were() -> None:
    registry = Away()
    cluster = RegistryCluster(cast(Registry, registry))
    registry.state = SessionState.SUSPENDED
    with pytest.raises(RegistryUnreachableError):
        cluster.brokers()
    registry.state = SessionState.CONNECTED
    assert cluster.address(0).host == "here"
    registry.state = SessionState.LOST
    assert cluster.address(0).host == "here"
    assert cluster.leader(TopicPartition("t", 0, 0)).id == 0
    assert cluster.find_leaders(["t"]) == {}
    with pytest.raises(BrokerUnreachableError):
        cluster.address(1)


def test_leaders_when_one_is_lost_then_another_broker_is_asked_with_or_without_zookeeper() -> None:
    registry = Away(1, 2)
    cluster = RegistryCluster(cast(Registry, registry), cast(Connect, Asked))
    for _ in range(10):  # brokers are asked in any order
        cluster.note_leader(PARTITION, -1)
        assert cluster.find_leaders(["t"]) == {PARTITION: 2}
        assert cluster.leader(PARTITION).id == 2
        registry.state = SessionState.SUSPENDED


def test_leaders_when_zookeeper_hangs_then_are_asked_for_at_brokers_known_before() -> None:
    registry = Away(1, 2)
    cluster = RegistryCluster(cast(Registry, registry), cast(Connect, Asked))
    cluster.brokers()
    registry.hangs = True
    assert cluster.find_leaders(["t"]) == {PARTITION: 2}
    assert registry.waited_for_s <= 1


def test_brokers_when_zookeeper_is_always_slow_then_are_known_after_some_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.client.registry_cluster.BRIEFLY_S", 0.1)
    registry = Away()
    cluster = RegistryCluster(cast(Registry, registry))
    cluster.brokers()
    registry.ids, registry.takes_s = (0, 1), 0.15
    assert len(cluster.brokers()) == 1
    assert any(len(cluster.brokers()) == 2 for _ in range(100))


def test_leaders_when_all_brokers_are_of_07_then_are_asked_for_once() -> None:
    class Old(Asked):
        name = "a broker"

        def understands(self, _kind: type) -> bool:
            asked.append(self.address.id)
            return False

    asked: list[int] = []
    registry = Away(1)
    cluster = RegistryCluster(cast(Registry, registry), cast(Connect, Old))
    cluster.brokers()
    registry.state = SessionState.SUSPENDED
    for _ in range(2):
        assert cluster.find_leaders(["t"]) == {}
    assert sorted(asked) == [0, 1]
