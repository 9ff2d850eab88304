"""The throttle of changes of replicas, on a cluster of processes with a real ZooKeeper."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.load import LoggedProducer
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_describe import publish
from tests.integration.replication.test_metrics import metrics
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

MIB = 1 << 20


def fill(cluster: ReplicatedCluster, partition: TopicPartition, mib: int) -> None:
    """Publish some MiB to a partition."""
    for _ in range(mib):
        publish(cluster, partition, [bytes(32 << 10)] * 32)


def copied_bytes(cluster: ReplicatedCluster, broker_id: int) -> int:
    """How much a broker has fetched for replicas that are being added."""
    found: int = metrics(cluster, broker_id)["ReplicaFetcherManager"]["ReassignmentBytesFetched"]
    return found


def throttles(cluster: ReplicatedCluster) -> set[int]:
    """The throttles that brokers know."""
    return {
        metrics(cluster, one)["ReplicaFetcherManager"]["ReassignmentThrottle"]
        for one in cluster.brokers
    }


def reassign(invoke: Invoke, cluster: ReplicatedCluster, *args: str) -> list[dict[str, Any]]:
    """Run `topic reassign`, and return its records."""
    result = invoke("topic", "reassign", *args, "-Z", cluster.zookeeper, "--output", "json")
    assert result.status == ExitStatus.OK, result.stderr
    found: list[dict[str, Any]] = json.loads(result.text)["data"]
    return found


def test_throttle_when_copy_may_not_go_on_then_in_sync_partitions_of_the_connection_do(
    start_cluster: Callable[..., ReplicatedCluster], invoke: Invoke
) -> None:
    # a broker that is paused for a moment stays in sync
    cluster = start_cluster(2, replica_lag_time_max_ms="60000")
    in_sync = cluster.create_topic("synced", 4, 2, min_insync_replicas="2")
    (moved, *_) = cluster.create_topic("moved", 2, 1)
    leader = cluster.await_leader(moved)
    added = 1 - leader
    shared = next(one for one in in_sync if cluster.leader(one) == leader)
    cluster.await_full_isr(in_sync)
    fill(cluster, moved, 2)

    # after the first piece of 16 KiB or a message, nothing is due for hours
    reassign(invoke, cluster, "execute", "moved", "--replication-factor", "2", "--throttle", "1B/s")
    wait_until(lambda: copied_bytes(cluster, added) > 0, "the first piece")
    producer = LoggedProducer(cluster, [shared], "p")
    wait_until(lambda: producer.acknowledged_count >= 300, "messages, acknowledged by both")
    producer.stop()

    assert producer.errors == {}
    assert 0 < copied_bytes(cluster, added) < MIB
    state = cluster.state(moved)
    assert state is not None
    assert (state.isr, set(state.replicas)) == ((leader,), {0, 1})
    assert throttles(cluster) == {1}
    (row,) = [one for one in reassign(invoke, cluster, "status") if one["partition"] == moved.name]
    assert (row["missing"], row["throttle_bytes_per_s"]) == ([added], 1)
    assert 0 <= row["percent"] < 60
    assert MIB < row["left_bytes"] < 3 * MIB

    # raised while it runs, it ends; and with the last change the throttle does
    reassign(invoke, cluster, "throttle", "--throttle", "100MB/s")
    cluster.await_full_isr([moved])
    wait_until(lambda: throttles(cluster) == {0}, "the end of the throttle")
    wait_until(lambda: reassign(invoke, cluster, "status") == [], "the end of the change")
    assert cluster.session.exists("/admin/reassign_partitions") is None
    assert copied_bytes(cluster, added) > 2 * MIB
    cluster.await_equal_logs(moved)


def test_throttle_when_replicas_are_copied_then_it_takes_as_long_as_the_rate_says(
    start_cluster: Callable[..., ReplicatedCluster], invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    partitions = cluster.create_topic("moved", 2, 1)
    for partition in partitions:
        cluster.await_leader(partition)
        fill(cluster, partition, 1)
    rate = 400_000
    piece = rate // 4

    began_s = time.monotonic()
    reassign(
        *(invoke, cluster, "execute", "--replication-factor", "2"),
        *("--throttle", f"{rate}B/s"),
    )
    cluster.await_full_isr(partitions)
    took_s = time.monotonic() - began_s

    # each broker copies one MiB; a piece may be granted at once, and one before it is due
    assert took_s >= (MIB - 2 * piece) / rate
    for partition in partitions:
        cluster.await_equal_logs(partition)


def test_throttle_when_the_controller_dies_then_the_next_one_keeps_it(
    start_cluster: Callable[..., ReplicatedCluster], invoke: Invoke
) -> None:
    cluster = start_cluster(3)
    controller = 0
    wait_until(lambda: cluster.controller() >= 0, "a controller")
    controller = cluster.controller()
    others = sorted(cluster.brokers.keys() - {controller})
    partitions = cluster.create_topic("moved", 3, 1)
    moved = next(one for one in partitions if cluster.await_leader(one) == others[0])
    fill(cluster, moved, 1)
    plan = {"data": [{"topic": "moved", "partition": moved.name, "target": [others[1]]}]}
    result = invoke(
        *("topic", "reassign", "execute", "--plan", "-", "--throttle", "1B/s"),
        *("-Z", cluster.zookeeper),
        stdin=json.dumps(plan).encode(),
    )
    assert result.status == ExitStatus.OK, result.stderr
    wait_until(lambda: copied_bytes(cluster, others[1]) > 0, "the first piece")

    cluster.kill(controller)
    wait_until(lambda: cluster.controller() in others, "the next controller")

    wait_until(lambda: throttles(cluster) == {1}, "the throttle of the next controller")
    (row,) = reassign(invoke, cluster, "status")
    assert (row["missing"], row["throttle_bytes_per_s"]) == ([others[1]], 1)
    reassign(invoke, cluster, "throttle", "--throttle", "none")
    wait_until(lambda: cluster.leader(moved) == others[1], "the move")
    wait_until(lambda: throttles(cluster) == {0}, "the end of the throttle")
