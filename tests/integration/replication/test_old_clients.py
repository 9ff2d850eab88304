"""Clients of 0.7, who know the home of a partition only, and brokers that stop."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from broker.client.connection import Connection
from broker.errors import BrokerUnreachableError, UnknownServerError
from broker.log.replica_files import EPOCH_FILE_NAME
from broker.protocol.codec import decode, encode
from broker.protocol.extension_requests import ShutdownRequest
from broker.protocol.layouts import DATA
from broker.protocol.requests import LATEST_TIME, FetchRequest, OffsetsRequest, ProduceRequest
from broker.protocol.responses import decode_fetch_response, decode_offsets_response
from broker.topic import TopicPartition
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.open_only("0.7's clients cannot log in")]

StartCluster = Callable[..., ReplicatedCluster]


def payloads_at_home(connection: Connection, topic: str) -> list[bytes]:
    """Return what a consumer of 0.7 gets of partition 0 of the home it is connected to."""
    found: list[bytes] = []
    offset = 0
    while True:
        code, data = decode_fetch_response(connection.ask(FetchRequest(topic, 0, offset, 1 << 20)))
        assert code == 0
        if not data:
            return found
        found += [payload for _, _, payload in decode(data, 0).messages]
        offset += len(data)


def await_orders(cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition) -> None:
    """Wait until a broker knows that it leads a partition whose home it is."""

    def has_epoch() -> bool:
        return (cluster.directory_of(broker_id, partition) / EPOCH_FILE_NAME).exists()

    wait_until(has_epoch, "the orders of the controller")


def test_produce_of_07_when_another_broker_leads_then_all_of_it_is_in_order_on_every_replica(
    start_cluster: StartCluster,
) -> None:
    # 0.7's requests are lost while too few replicas are in sync: a paused follower stays in sync
    cluster = start_cluster(replica_lag_time_max_ms="60000")
    partition = cluster.create_topic("t", 1, 3, min_insync_replicas="2")[0]
    home = partition.home
    cluster.await_full_isr([partition])
    await_orders(cluster, home, partition)
    connection = cluster.connect(home)
    sent = [b"message %d" % number for number in range(300)]
    try:
        for one in sent[:100]:
            connection.send_request(ProduceRequest("t", 0, encode([one])))
        wait_until(lambda: payloads_at_home(connection, "t") == sent[:100], "the first messages")
    finally:
        connection.close()
    cluster.stop(home)
    leader = cluster.await_leader(partition, other_than=home)
    cluster.start(home)
    cluster.await_full_isr([partition])
    assert cluster.leader(partition) == leader
    connection = cluster.connect(home)
    try:
        for one in sent[100:]:
            connection.send_request(ProduceRequest("t", 0, encode([one])))
        wait_until(lambda: payloads_at_home(connection, "t") == sent, "the forwarded messages")
    finally:
        connection.close()
    cluster.await_equal_logs(partition)


def test_clients_of_07_when_their_home_has_no_replica_any_more_then_go_on_through_it(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    (partition,) = cluster.create_topic("t", 1, 1)
    home = partition.home
    await_orders(cluster, home, partition)
    connection = cluster.connect(home)
    before, after = encode([b"before"]), encode([b"after"])
    try:
        connection.send_request(ProduceRequest("t", 0, before))
        wait_until(lambda: payloads_at_home(connection, "t"), "the first message")
    finally:
        connection.close()
    other, third = (one for one in (0, 1, 2) if one != home)
    move(cluster, invoke, partition, other)
    connection = cluster.connect(home)
    try:
        wait_until(lambda: read_code(connection) == 0, "the news of that")  # else it may be lost
        connection.send_request(ProduceRequest("t", 0, after))
        wait_until(
            lambda: payloads_at_home(connection, "t") == [b"before", b"after"], "both messages"
        )
        end = len(before + after)
        offsets = connection.ask(OffsetsRequest("t", 0, LATEST_TIME, 10))
        assert decode_offsets_response(offsets) == [end, 0]
        by_time = ("topic", "offsets", "t", "-p", partition.name, "--at", "@2100-01-01")
        listed = invoke(*by_time, "-Z", cluster.zookeeper, "--output", "json")
        assert listed.status == 0, listed.stderr
        assert [one["start"] for one in json.loads(listed.text)["data"]] == [end]
        move(cluster, invoke, partition, third)
        wait_until(lambda: read_code(connection) == 0, "the news of that")
        assert payloads_at_home(connection, "t") == [b"before", b"after"]

        cluster.kill(third)
        wait_until(lambda: cluster.leader(partition) == -1, "the loss of the leader")
        wait_until(lambda: read_code(connection) == UnknownServerError.code, "the news of it")
        with pytest.raises(BrokerUnreachableError):  # it closes the connection
            connection.ask(OffsetsRequest("t", 0, LATEST_TIME, 1))
        cluster.start(third)
        wait_until(lambda: read_code(connection) == 0, "the return of the leader")
        assert payloads_at_home(connection, "t") == [b"before", b"after"]
    finally:
        connection.close()


def read_code(connection: Connection) -> int:
    """Return the error code of a fetch of the first message."""
    return decode_fetch_response(connection.ask(FetchRequest("t", 0, 0, 1 << 20)))[0]


def move(
    cluster: ReplicatedCluster, invoke: Invoke, partition: TopicPartition, broker_id: int
) -> None:
    """Move the only replica of a partition to a broker."""
    arguments = ("t", "--to", str(broker_id), "-Z", cluster.zookeeper)
    moved = invoke("topic", "reassign", "execute", *arguments)
    assert moved.status == 0, moved.stderr

    def has_moved() -> bool:
        state = cluster.state(partition)
        others = [one for one in cluster.brokers if one != broker_id]
        return (
            state is not None
            and state.replicas == (broker_id,)
            and state.leader == broker_id
            and not any(cluster.directory_of(one, partition).exists() for one in others)
        )

    wait_until(has_moved, f"the move to broker {broker_id}")


def test_shutdown_when_asked_for_then_its_report_says_where_each_leadership_went(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    partitions = cluster.create_topic("t", 3, 3)
    cluster.await_full_isr(partitions)
    led = next(one for one in partitions if cluster.leader(one) == 1)
    await_orders(cluster, 1, led)
    connection = cluster.connect(1, timeout_s=60)
    try:
        steps = json.loads(DATA.decode(connection.call(ShutdownRequest(force=True))))
    finally:
        connection.close()
    step = next(one for one in steps if one["step"] == "move leaderships")
    assert step["done"]
    assert f"{led}: led by broker {cluster.await_leader(led, other_than=1)}" in step["note"]
