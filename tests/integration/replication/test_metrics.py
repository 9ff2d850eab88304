"""Metrics of replication, as STATUS has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.client_requests import MetadataRequest
from broker.protocol.extension_requests import (
    StatusRequest,
)
from broker.protocol.layouts import DATA
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_describe import publish
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

PAGE = Path(__file__).parents[3] / "docs/operations/metrics.md"


def metrics(cluster: ReplicatedCluster, broker_id: int) -> dict[str, dict[str, Any]]:
    connection = cluster.connect(broker_id)
    try:
        document = json.loads(DATA.decode(connection.call(StatusRequest())))
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


def _page() -> tuple[dict[str, set[str]], set[str]]:
    """The attributes of each object that the page of metrics has, and what it names for Kafka's."""
    text = PAGE.read_text(encoding="utf-8")
    ours, _, kafka = text.partition("## By Kafka's names")
    described: dict[str, set[str]] = {}
    for section in ours.split("\n### ")[1:]:
        title, _, body = section.partition("\n")
        rows = [line.split("|")[1] for line in body.splitlines() if line.startswith("| `")]
        names = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        described |= dict.fromkeys(re.findall(r"`([^`]+)`", title), names)
    return described, set(re.findall(r"`([A-Z]\w+)`", kafka))


def _kind(name: str) -> str:
    """Return the object that the page describes for one that is named after a topic or broker."""
    if name.startswith("logs."):
        return "logs.TOPIC[HOME-INDEX]" if name.endswith("]") else "logs.TOPIC-INDEX"
    named_after = {
        "BrokerInfo": "ID.VERSION",
        "BrokerTopicStat": "TOPIC",
        "ControllerChannelManager": "BROKER",
        "LogDirectory": "DIRECTORY",
        "LogRetention": "TOPIC",
        "NetworkProcessor": "PROCESSOR",
        "RequestErrors": "REQUEST.ERROR",
        "RequestMetrics": "REQUEST",
        "RequestTimes": "REQUEST",
    }
    kind = name.partition(".")[0]
    return f"{kind}.{named_after[kind]}" if kind in named_after else name


def test_page_of_metrics_when_compared_with_a_controller_then_names_what_there_is(
    start_cluster: Callable[..., ReplicatedCluster],
) -> None:
    cluster = start_cluster(2)
    partitions = cluster.create_topic("t", 2, 2)
    cluster.await_full_isr(partitions)
    for partition in partitions:
        publish(cluster, partition, [b"x" * 90])
    connection = cluster.connect(0)
    connection.call(MetadataRequest(("mistyped",)))  # an error
    connection.close()

    def shown() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for broker_id in range(2):
            for name, attributes in metrics(cluster, broker_id).items():
                found.setdefault(_kind(name), set()).update(attributes)
        return found

    described, for_kafka = _page()
    wait_until(lambda: shown().keys() == described.keys(), "all objects", deadline_s=60)
    assert shown() == described
    known = described.keys() | {name for names in described.values() for name in names}
    assert for_kafka <= known


def test_election_metrics_when_a_leader_is_gone_then_the_controller_has_its_time(
    start_cluster: Callable[..., ReplicatedCluster],
) -> None:
    cluster = start_cluster(3)
    partitions = cluster.create_topic("t", 3, 3)
    cluster.await_full_isr(partitions)

    gone = next(one for one in range(3) if one != cluster.controller())
    (partition,) = (one for one in partitions if cluster.leader(one) == gone)
    cluster.kill_replaceable(gone, partitions)
    cluster.await_leader(partition, other_than=gone)
    left = [one for one in range(3) if one != gone]

    def is_counted() -> bool:
        shown = [metrics(cluster, one) for one in left]
        offices = [one["KafkaController"] for one in shown]
        pushes = [
            one["NumPushes"]
            for broker in shown
            for name, one in broker.items()
            if name.startswith("ControllerChannelManager.")
        ]
        return bool(
            sum(one["LeaderElections"] for one in offices) >= 1
            and sum(one["NumElections"] for one in offices) >= 1
            and sum(one["TotalElectionMs"] for one in offices) > 0
            and pushes
            and min(pushes) >= 1
        )

    wait_until(is_counted, "the election in the metrics", deadline_s=60)
