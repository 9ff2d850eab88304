from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import pytest

from broker.client.cluster import Cluster, InSyncReplicas
from broker.client.read_replicas import ReadReplicas
from broker.errors import BrokerUnreachableError, ConfigError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

ONE = TopicPartition("t", 0, 0)
TOPICS = ["t"]


class KnownCluster(Cluster):
    """A cluster of brokers 0 to 2 in racks a, b and b, where broker 0 leads everything."""

    def __init__(self) -> None:
        self.live = [0, 1, 2]
        self.isr: dict[TopicPartition, tuple[int, ...]] = {
            TopicPartition("t", 0, index): (0, 1, 2) for index in range(30)
        }
        self.read_count = 0
        self.is_away = False

    def brokers(self) -> list[BrokerAddress]:
        return [BrokerAddress(one, "h", 9092) for one in self.live]

    def topics(self) -> list[str]:
        return TOPICS

    def partitions(self, topic: str) -> list[TopicPartition]:
        return sorted(self.isr)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return self.brokers()[0]

    def leader_id(self, partition: TopicPartition) -> int:
        return 0

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        self.read_count += 1
        if self.is_away:
            raise BrokerUnreachableError("away")
        return InSyncReplicas(self.isr, {0: "a", 1: "b", 2: "b"})


@pytest.fixture
def cluster() -> KnownCluster:
    return KnownCluster()


def chosen(cluster: KnownCluster, read_from: str) -> set[int]:
    replicas = ReadReplicas(cast(Cluster, cluster), read_from)
    replicas.refresh_if_due(TOPICS)
    return {replicas.broker_of(one) for one in cluster.isr}


def test_choice_when_from_the_leader_then_nothing_is_asked(cluster: KnownCluster) -> None:
    assert chosen(cluster, "leader") == {0}
    assert cluster.read_count == 0


def test_choice_when_from_any_then_partitions_spread_over_all_in_sync_replicas(
    cluster: KnownCluster,
) -> None:
    assert chosen(cluster, "any") == {0, 1, 2}


@pytest.mark.parametrize(("rack", "brokers"), [("a", {0}), ("b", {1, 2}), ("c", {0})])
def test_choice_when_from_a_rack_then_replicas_there_are_taken_and_else_the_leader(
    cluster: KnownCluster, rack: str, brokers: set[int]
) -> None:
    assert chosen(cluster, rack) == brokers


def test_choice_when_a_replica_is_out_of_sync_or_away_then_it_is_not_taken(
    cluster: KnownCluster,
) -> None:
    cluster.isr = dict.fromkeys(cluster.isr, (0, 1))
    assert chosen(cluster, "b") == {1}
    cluster.live = [0, 2]
    assert chosen(cluster, "b") == {0}


def test_replica_when_it_is_left_then_the_leader_is_read_until_the_next_refresh(
    cluster: KnownCluster,
) -> None:
    now_s = [0.0]
    replicas = ReadReplicas(cast(Cluster, cluster), "b", clock_s=lambda: now_s[0])
    replicas.refresh_if_due(TOPICS)
    replicas.leave([ONE])
    replicas.refresh_if_due(TOPICS)
    assert replicas.broker_of(ONE) == 0
    assert replicas.version == 1

    now_s[0] = 11.0
    replicas.refresh_if_due(TOPICS)
    assert replicas.broker_of(ONE) in {1, 2}
    assert replicas.version == 2


def test_choice_when_the_cluster_does_not_answer_then_it_stays(cluster: KnownCluster) -> None:
    now_s = [0.0]
    replicas = ReadReplicas(cast(Cluster, cluster), "b", clock_s=lambda: now_s[0])
    replicas.refresh_if_due(TOPICS)
    before = replicas.broker_of(ONE)
    cluster.is_away, now_s[0] = True, 11.0
    replicas.refresh_if_due(TOPICS)
    assert replicas.broker_of(ONE) == before
    assert replicas.version == 1


def test_choice_when_of_nothing_then_is_refused(cluster: KnownCluster) -> None:
    with pytest.raises(ConfigError):
        ReadReplicas(cast(Cluster, cluster), "")
