"""Who leads partitions with replicas, as clients read it from ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.client.registry_cluster import RegistryCluster
from broker.client.watched_cluster import WatchedCluster
from broker.cluster_state import PartitionState, TopicAssignment
from broker.errors import BrokerUnreachableError
from broker.producer.partitioner import TopicPartitions
from broker.producer.settings import ProducerSettings
from broker.topic import NO_HOME, TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from broker.zk.replicated_values import encode_assignment, encode_state
from broker.zk.session import Session
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

ON_LIVE, ON_GONE, WITHOUT_LEADER = (TopicPartition("t", 2, index) for index in range(3))
LEADERS = {ON_LIVE: 1, ON_GONE: 3, WITHOUT_LEADER: -1}


@pytest.fixture(params=["asked", "watched"])
def cluster(
    request: pytest.FixtureRequest, zookeeper: str, session: Session
) -> Iterator[RegistryCluster | WatchedCluster]:
    """Broker 1 is live, and the home broker of `t` is not."""
    session.create(paths.broker(1), b"me-1:host:1001")
    replicas = dict.fromkeys(LEADERS, (2, 1, 3))
    assignment = TopicAssignment("t", "id", replicas)
    session.create(paths.replicated_topic("t"), encode_assignment(assignment))
    for partition, leader in LEADERS.items():
        state = PartitionState(leader, 5, (1, 3), 1)
        session.create(paths.partition_state(partition), encode_state(state))
    registry = Registry(zookeeper)
    if request.param == "watched":
        watched = WatchedCluster(registry)
        watched.start(10)
        yield watched
        watched.stop()
    else:
        with registry:
            yield RegistryCluster(registry)


def test_partitions_when_their_home_is_gone_then_those_with_a_leader_are_there(
    cluster: RegistryCluster | WatchedCluster,
) -> None:
    assert cluster.partitions("t") == [ON_LIVE, ON_GONE]
    assert cluster.partitions("other") == []


def test_topic_partitions_when_one_has_no_leader_then_only_keys_count_it(
    cluster: RegistryCluster | WatchedCluster,
) -> None:
    partitions = TopicPartitions(
        cluster, ProducerSettings(), lambda key, count: int(key or count - 1)
    )
    assert partitions.partitions("t") == [ON_LIVE, ON_GONE, WITHOUT_LEADER]
    assert partitions.choose("t", b"2") == WITHOUT_LEADER
    assert partitions.choose("t", None) == ON_GONE


def test_leader_when_the_home_is_gone_then_the_one_of_the_state(
    cluster: RegistryCluster | WatchedCluster,
) -> None:
    assert cluster.leader(ON_LIVE) == (1, "host", 1001)
    assert cluster.leader_id(ON_LIVE) == 1
    for partition in (ON_GONE, WITHOUT_LEADER):
        with pytest.raises(BrokerUnreachableError, match="not in the registry"):
            cluster.leader(partition)


def test_topic_when_of_the_format_kafka_then_is_found_once_created_and_enlarged(
    cluster: RegistryCluster | WatchedCluster, session: Session
) -> None:
    first, second = (TopicPartition("new", NO_HOME, number) for number in range(2))
    assert (cluster.partitions("new"), cluster.assigned("new")) == ([], [])

    def make(partition: TopicPartition, leader: int) -> None:
        state = PartitionState(leader, 0, (1, 3), 1)
        session.create(paths.partition_state(partition), encode_state(state))

    make(first, 1)
    assignment = TopicAssignment("new", "id", {first: (1, 3)})
    session.set(paths.replicated_topic("new"), encode_assignment(assignment))
    wait_until(lambda: cluster.partitions("new") == [first], "the topic")
    assert cluster.leader(first).id == 1
    assert "new" in cluster.topics()

    make(second, -1)
    larger = assignment._replace(replicas={first: (1, 3), second: (3, 1)})
    session.set(paths.replicated_topic("new"), encode_assignment(larger))
    wait_until(lambda: cluster.assigned("new") == [first, second], "the second partition")
    assert cluster.partitions("new") == [first]
    with pytest.raises(BrokerUnreachableError, match=r"new\[1\] has no leader"):
        cluster.leader(second)
    assert cluster.absent_homes(["new"])["new"] == [1, 3]
