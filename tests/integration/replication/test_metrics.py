"""Metrics of replication, as STATUS has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker.protocol.extension_requests import StatusRequest
from broker.protocol.responses import decode_document
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_describe import publish
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


def metrics(cluster: ReplicatedCluster, broker_id: int) -> dict[str, dict[str, Any]]:
    connection = cluster.connect(broker_id)
    try:
        document = json.loads(decode_document(connection.call(StatusRequest())))
    finally:
        connection.close()
    found: dict[str, dict[str, Any]] = document["metrics"]
    return found


def test_metrics_when_a_follower_leaves_and_returns_then_both_are_counted(
    start_cluster: Callable[..., ReplicatedCluster],
) -> None:
    cluster = start_cluster(2)
    (partition,) = cluster.create_topic("t", 1, 2)
    cluster.await_full_isr([partition])
    leader = cluster.leader(partition)
    follower = 1 - leader
    publish(cluster, partition, [b"x" * 90])

    def has_copied() -> bool:
        return bool(metrics(cluster, follower)["ReplicaFetcherManager"]["BytesFetched"] >= 100)

    wait_until(has_copied, "the copy of the message", deadline_s=60)
    found = metrics(cluster, follower)
    assert found["ReplicaFetcherManager"]["FetcherCount"] == 1
    assert found["KafkaServer"]["BrokerState"] in (3, 4)
    assert f"logs.{partition}" in found  # away from home, by its whole name

    def has_waiting_read() -> bool:
        return bool(metrics(cluster, leader)["Purgatory"]["Waiting"] >= 1)

    wait_until(has_waiting_read, "the follower's next fetch", deadline_s=60)
    before = metrics(cluster, leader)["ReplicaManager"]
    cluster.freeze(follower)

    def has_left() -> bool:
        state = cluster.state(partition)
        return state is not None and state.isr == (leader,)

    wait_until(has_left, "the follower's leaving", deadline_s=60)
    cluster.thaw(follower)
    cluster.await_full_isr([partition])

    def has_counted() -> bool:
        now = metrics(cluster, leader)["ReplicaManager"]
        return bool(now["IsrExpands"] > before["IsrExpands"])

    wait_until(has_counted, "the count of its return", deadline_s=60)
