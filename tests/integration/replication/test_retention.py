"""Retention of one broker removes no messages that the retention of others keeps."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

import pytest

from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_describe import publish
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
LONG_AGO_S = 30 * 86_400
PAYLOADS = [b"%04d" % n for n in range(500)]


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ReplicatedCluster:
    return start_cluster(log_retention_check_interval_ms="100")


def filled(cluster: ReplicatedCluster) -> TopicPartition:
    (partition,) = cluster.create_topic("t", 1, 3)
    cluster.await_full_isr([partition])
    publish(cluster, partition, PAYLOADS)
    cluster.await_equal_logs(partition)
    return partition


def age(cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition) -> None:
    """Give the files of a log old times, as a restored disk has."""
    then_s = time.time() - LONG_AGO_S
    for file in cluster.directory_of(broker_id, partition).glob("*.pylog"):
        os.utime(file, (then_s, then_s))


def log_start(cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition) -> int:
    return cluster.log_bytes(broker_id, partition)[0]


def restart_aged(cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition) -> None:
    """Start a broker again that then removes all messages of a partition."""
    cluster.stop(broker_id)
    age(cluster, broker_id, partition)
    cluster.start(broker_id)
    wait_until(lambda: log_start(cluster, broker_id, partition) > 0, "retention")


def lead(cluster: ReplicatedCluster, invoke: Invoke, partition: TopicPartition) -> None:
    """Have the preferred replica lead."""

    def leads() -> bool:
        invoke("topic", "elect", "t", "-Z", cluster.zookeeper)
        state = cluster.state(partition)
        return state is not None and state.leader == state.replicas[0]

    wait_until(leads, "the election of the preferred replica")


def unhealthy(cluster: ReplicatedCluster, invoke: Invoke) -> list[str]:
    """Return what the check of retention finds."""
    result = invoke("cluster", "health", "-Z", cluster.zookeeper, "--output", "json")
    rows = {row["name"]: row for row in json.loads(result.text)["data"]}
    found: list[str] = rows["retention"]["found"]
    assert not found or result.status == ExitStatus.THRESHOLD
    return found


def test_followers_when_old_file_times_empty_the_leaders_log_then_keep_theirs_and_health_says_so(
    cluster: ReplicatedCluster, invoke: Invoke
) -> None:
    partition = filled(cluster)
    leader = cluster.leader(partition)
    others = [one for one in range(3) if one != leader]
    _, content = cluster.log_bytes(others[0], partition)
    restart_aged(cluster, leader, partition)
    cluster.await_full_isr([partition])
    lead(cluster, invoke, partition)
    assert cluster.leader(partition) == leader
    publish(cluster, partition, [b"next"])

    wait_until(lambda: len(unhealthy(cluster, invoke)) == 2, "the followers' word")
    cluster.await_full_isr([partition])
    cluster.await_equal_logs(partition)
    for one, text in zip(others, unhealthy(cluster, invoke), strict=True):
        start, kept = cluster.log_bytes(one, partition)
        assert (start, kept[: len(content)]) == (0, content)
        said = f"{partition}: its leader, broker {leader}, starts at offset {len(content)}"
        assert said in text
        assert said in cluster.output_of(one)

    cluster.stop(leader)
    result = invoke("consume", "t", "-o", "start", "-e", "-Z", cluster.zookeeper)
    assert result.text.split() == [*(one.decode() for one in PAYLOADS), "next"]


def test_follower_when_it_was_away_then_starts_where_the_leader_does_once_its_own_are_old(
    cluster: ReplicatedCluster, invoke: Invoke
) -> None:
    partition = filled(cluster)
    leader = cluster.leader(partition)
    away = next(one for one in range(3) if one != leader)
    cluster.stop(away)
    publish(cluster, partition, PAYLOADS)
    restart_aged(cluster, leader, partition)
    lead(cluster, invoke, partition)

    cluster.start(away)
    wait_until(lambda: len(unhealthy(cluster, invoke)) == 2, "two followers' word", deadline_s=60)
    assert log_start(cluster, away, partition) == 0
    state = cluster.state(partition)
    assert state is not None and away not in state.isr

    cluster.stop(away)
    age(cluster, away, partition)
    cluster.start(away)
    cluster.await_full_isr([partition])
    cluster.await_equal_logs(partition)
