"""`pylogctl topic describe` of topics with replicas."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pylogctl
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from broker.protocol.codec import encode
from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]


def rows(result: Result) -> list[dict[str, Any]]:
    document = json.loads(result.text)
    assert document["schema"] == "pylogctl.topic.describe/2"
    found: list[dict[str, Any]] = document["data"]
    return found


def publish(cluster: ReplicatedCluster, partition: TopicPartition, payloads: list[bytes]) -> None:
    properties = cluster.client
    with Producer.from_config(ProducerConfig.from_properties(properties)) as producer:
        producer.send_set(partition, encode(payloads)).result()


def lead_nowhere(cluster: ReplicatedCluster, broker_id: int) -> None:
    """Have new connections to a broker end at once; those that are open stay."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cluster.network.open_door(broker_id, listener.getsockname()[1])


def test_describe_when_replicas_are_in_sync_then_shows_leader_and_lags(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(replica_lag_time_max_ms="60000")  # a paused follower stays in sync
    (partition,) = cluster.create_topic("t", 1, 3, min_insync_replicas="2")
    cluster.await_full_isr([partition])
    publish(cluster, partition, [b"x" * 90])
    state = cluster.state(partition)
    assert state is not None
    followers = [id for id in state.replicas if id != state.leader]
    broker = f"127.0.0.1:{cluster.network.door_to_broker(followers[0])}"

    def describe() -> dict[str, Any]:
        (row,) = rows(invoke("topic", "describe", "t", "-b", broker, "--output", "json"))
        return row

    wait_until(lambda: set(describe()["lags"].values()) == {0}, "the next fetches", deadline_s=60)
    row = describe()
    assert row.pop("last_append")
    assert row == {
        "topic": "t",
        "partition": partition.name,
        "leader": state.leader,
        "state": "ok",
        "address": f"127.0.0.1:{cluster.network.door_to_broker(state.leader)}",
        "leader_epoch": state.leader_epoch,
        "replicas": list(state.replicas),
        "in_sync": list(state.isr),
        "min_in_sync": 2,
        "lag": 0,
        "problem": "",
        "lags": {str(id): 0 for id in followers},
        "start": 0,
        "end": 100,
        "segments": 1,
        "size_bytes": 100,
        "stored_bytes": 100,
        "format": "0.7",
        "settings": {"min.insync.replicas": "2"},
    }

    table = invoke("topic", "describe", "t", "-Z", cluster.zookeeper)
    assert table.status == ExitStatus.OK
    assert "settings of topic 't': min.insync.replicas=2" in table.stderr
    heading, line = table.text.splitlines()
    assert len(heading) <= 80
    assert heading.split()[2:8] == ["LEADER", "REPLICAS", "IN-SYNC", "END", "FORMAT", "STATE"]
    assert line.split()[5:8] == ["100", "0.7", "ok"]


def test_describe_when_the_home_broker_is_gone_then_the_new_leader_tells(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    (partition,) = cluster.create_topic("t", 1, 3)
    cluster.await_full_isr([partition])
    cluster.kill_replaceable(partition.home, [partition])
    leader = cluster.await_leader(partition, other_than=partition.home)

    def describe() -> Result:
        return invoke("topic", "describe", "t", "-Z", cluster.zookeeper, "--output", "json")

    wait_until(lambda: describe().status == ExitStatus.OK, "the new leader's term", deadline_s=60)
    (row,) = rows(describe())
    assert (row["leader"], row["state"]) == (leader, "under-replicated")
    assert row["lags"][str(partition.home)] is None
    assert row["replicas"][0] == partition.home


@pytest.mark.open_only("its client does not log in")
def test_lag_when_a_home_broker_is_gone_then_new_leaders_tell_and_its_own_topics_are_unknown(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    (partition,) = cluster.create_topic("t", 1, 3)
    cluster.await_full_isr([partition])
    publish(cluster, partition, [b"x" * 90])
    with pylogctl.connect(zookeeper=cluster.zookeeper) as client:
        client.create_topic("plain", partitions_per_broker=1)
        with client.group("g", ["plain", "t"], start="earliest", idle=3) as group:
            read: list[pylogctl.Message] = []

            def has_read() -> bool:  # its idle time can be over before the message comes
                read.extend(group)
                return len(read) == 1

            wait_until(has_read, "the message")

    cluster.kill_replaceable(partition.home, [partition])

    result = invoke("group", "lag", "g", "-Z", cluster.zookeeper, "--output", "jsonl")
    found = {
        (row["topic"], row["partition"]): row["status"]
        for row in map(json.loads, result.text.splitlines())
    }
    homes = [f"{id}-0" for id in range(3)]
    expected = {("plain", home): "OK" for home in homes} | {("t", partition.name): "OK"}
    assert found == expected | {("plain", f"{partition.home}-0"): "UNKNOWN"}
    assert result.status == ExitStatus.PARTIAL


def test_describe_when_a_leader_does_not_respond_then_its_lags_are_unknown(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    first, second = cluster.create_topic("t", 2, 2)
    cluster.await_full_isr([first, second])
    lost, other = cluster.leader(first), cluster.leader(second)
    lead_nowhere(cluster, lost)

    result = invoke("topic", "describe", "t", "-Z", cluster.zookeeper, "--output", "json")

    assert result.status == ExitStatus.PARTIAL
    assert f"broker {lost}" in result.stderr
    by_leader = {row["leader"]: row for row in rows(result)}
    assert set(by_leader[lost]["lags"].values()) == {None}
    assert by_leader[lost]["size_bytes"] is None
    assert by_leader[other]["size_bytes"] == 0


def test_describe_when_there_is_no_leader_then_says_what_it_needs(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    (partition,) = cluster.create_topic("t", 1, 2)
    cluster.await_full_isr([partition])
    state = cluster.state(partition)
    assert state is not None
    last, other = state.leader, next(id for id in state.replicas if id != state.leader)
    (outside,) = {0, 1, 2} - set(state.replicas)
    cluster.kill(other)

    def has_isr(*expected: int) -> bool:
        found = cluster.state(partition)
        return found is not None and found.isr == expected

    wait_until(lambda: has_isr(last), "the loss of the follower", deadline_s=60)
    cluster.kill(last)
    wait_until(lambda: cluster.leader(partition) == -1, "the loss of the leader", deadline_s=60)
    broker = f"127.0.0.1:{cluster.network.door_to_broker(outside)}"

    def describe() -> Result:
        return invoke("topic", "describe", "t", "-b", broker, "--output", "json")

    wait_until(lambda: b'"leader":null' in describe().stdout, "the news at that broker")
    result = describe()
    assert result.status == ExitStatus.PARTIAL
    wanted = f"no leader until broker {last} is back"
    assert wanted in result.stderr
    (row,) = rows(result)
    assert (row["leader"], row["in_sync"], row["state"]) == (None, [last], "offline")
    assert row["lags"] == {str(id): None for id in state.replicas}


def test_describe_when_leaders_change_then_asks_until_the_next_term_has_begun(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    (partition,) = cluster.create_topic("t", 1, 2)
    cluster.await_full_isr([partition])
    is_over = threading.Event()
    moves: list[int] = []

    def move() -> None:
        while not is_over.is_set():
            preferred = 1 - cluster.leader(partition)
            target = [preferred, 1 - preferred]
            plan = {"data": [{"topic": "t", "partition": partition.name, "target": target}]}
            reassign = ("topic", "reassign", "execute", "--plan", "-", "-Z", cluster.zookeeper)
            assert invoke(*reassign, stdin=json.dumps(plan).encode()).status == ExitStatus.OK
            cluster.await_full_isr([partition])
            assert invoke("topic", "elect", "-Z", cluster.zookeeper).status == ExitStatus.OK
            moves.append(preferred)

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        try:
            results = []
            while len(moves) < 10 and not moving.done():
                results.append(invoke("topic", "describe", "t", "-Z", cluster.zookeeper))
        finally:
            is_over.set()
        moving.result()

    assert [one.stderr for one in results if one.status != ExitStatus.OK] == []
