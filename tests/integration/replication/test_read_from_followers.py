"""Consumers that read from followers, and go back to the leader where these fail."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest

from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.errors import (
    NO_ERROR,
    ConsumerTimeoutError,
    NotLeaderError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
)
from broker.protocol.client_requests import (
    AnyReplicaReadRequest,
    PartitionPosition,
    ReadRequest,
)
from broker.protocol.extension_requests import (
    StatusRequest,
)
from broker.protocol.layouts import DATA
from broker.protocol.responses import ReadPart, decode_read_response
from broker.topic import MessagePosition, ReadRange, TopicPartition
from tests.integration.replication.load import LoadThread, LoggedProducer
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_consumers_follow import (
    OpenCluster,
    Reading,
    acknowledged,
    addresses_of,
    create_topic,
    listed_cluster,
    registry_cluster,
)
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

StartCluster = Callable[..., ReplicatedCluster]
RACKS = ("r0", "r1", "r2")


def read(
    cluster: ReplicatedCluster,
    broker_id: int,
    partition: TopicPartition,
    offset: int,
    *,
    kind: type[ReadRequest] = AnyReplicaReadRequest,
    max_wait_ms: int = 0,
) -> ReadPart:
    connection = cluster.connect(broker_id)
    try:
        position = PartitionPosition(partition, offset, 1 << 20)
        (part,) = decode_read_response(connection.call(kind(max_wait_ms, 1, 1 << 20, (position,))))
        return part
    finally:
        connection.close()


def bytes_out(cluster: ReplicatedCluster, broker_id: int) -> int:
    """Return how much of the topic a broker has sent to consumers."""
    connection = cluster.connect(broker_id)
    try:
        document = json.loads(DATA.decode(connection.call(StatusRequest())))
    finally:
        connection.close()
    return int(document["metrics"].get("BrokerTopicStat.t", {}).get("BytesOut", 0))


def fill(cluster: ReplicatedCluster, partitions: list[TopicPartition], count: int) -> set[str]:
    producer = LoggedProducer(cluster, partitions, "p")
    wait_until(lambda: producer.acknowledged_count >= count, "messages", deadline_s=60)
    producer.stop()
    return acknowledged(producer)


def a_follower(cluster: ReplicatedCluster, partition: TopicPartition) -> int:
    return next(one for one in (0, 1, 2) if one != cluster.leader(partition))


def test_follower_when_it_is_in_sync_then_serves_what_is_committed(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    (partition,) = create_topic(cluster, 1)
    fill(cluster, [partition], 20)

    def at_leader(offset: int) -> ReadPart:
        return read(cluster, cluster.leader(partition), partition, offset)

    def at_follower(offset: int, *, kind: type[ReadRequest] = AnyReplicaReadRequest) -> ReadPart:
        follower = a_follower(cluster, partition)
        return read(cluster, follower, partition, offset, kind=kind, max_wait_ms=50)

    # waits, as a cluster that is paused for seconds changes its leader, or a follower refuses
    wait_until(
        lambda: b"" != bytes(at_leader(0).message_set) == bytes(at_follower(0).message_set),
        "the high watermark at the follower",
        deadline_s=60,
    )
    end = len(at_leader(0).message_set)
    wait_until(
        lambda: at_follower(end)[1:3] == (NO_ERROR, end), "an empty read at the end", deadline_s=60
    )
    # not yet there is not gone
    wait_until(
        lambda: at_follower(end + 100).error == OffsetNotAvailableError.code,
        "the refusal of what the follower does not have yet",
        deadline_s=60,
    )
    wait_until(
        lambda: at_leader(end + 100).error == OffsetOutOfRangeError.code,
        "the refusal of what nobody has",
        deadline_s=60,
    )
    wait_until(
        lambda: (
            at_follower(0, kind=ReadRequest)[1:3]
            == (NotLeaderError.code, cluster.leader(partition))
        ),
        "the refusal of an ordinary read",
        deadline_s=60,
    )


def test_follower_when_it_is_cut_off_then_refuses_reads_until_it_is_in_sync_again(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    (partition,) = create_topic(cluster, 1)
    fill(cluster, [partition], 5)
    cut_off = -1

    def error() -> int:
        return read(cluster, cut_off, partition, 0).error

    def has_refused() -> bool:
        nonlocal cut_off
        if cut_off in (-1, cluster.leader(partition)):  # a pause of the machine made it leader
            cluster.network.heal()
            cut_off = a_follower(cluster, partition)
            wait_until(lambda: error() == NO_ERROR, "a read of the follower", deadline_s=60)
            for other in {0, 1, 2} - {cut_off}:
                cluster.network.cut(cut_off, other)
        return error() == NotLeaderError.code

    wait_until(has_refused, "the refusal of the follower", deadline_s=60)

    cluster.network.heal()
    cluster.await_full_isr([partition])
    wait_until(lambda: error() == NO_ERROR, "a read of the follower", deadline_s=60)


@pytest.mark.parametrize(
    ("open_cluster", "lost"), [(registry_cluster, "leader"), (listed_cluster, "follower")]
)
def test_reader_when_its_replica_or_the_leader_is_killed_then_reads_on_each_message_once(
    start_cluster: StartCluster, open_cluster: OpenCluster, lost: str
) -> None:
    cluster = start_cluster(racks=RACKS)
    (partition,) = create_topic(cluster, 1)
    leader, follower = cluster.leader(partition), a_follower(cluster, partition)
    producer = LoggedProducer(cluster, [partition], "p")
    ranges = {partition: ReadRange(MessagePosition(0), None)}
    with (
        open_cluster(cluster) as found,
        ClusterReader(
            found, cluster.connection, ranges, read_from=RACKS[follower], leader_wait_s=60
        ) as cluster_reader,
    ):
        reading = Reading(cluster_reader)
        wait_until(lambda: len(reading.payloads()) > 20, "the first messages", deadline_s=60)
        wait_until(lambda: bytes_out(cluster, follower) > 0, "reads of it", deadline_s=60)
        cluster.kill_replaceable(follower if lost == "follower" else leader, [partition])
        if lost == "leader":
            cluster.await_leader(partition, other_than=leader)
        before = producer.acknowledged_count
        wait_until(lambda: producer.acknowledged_count > before + 30, "progress", deadline_s=60)
        producer.stop()
        wait_until(
            lambda: acknowledged(producer) <= set(reading.payloads()), "all read", deadline_s=60
        )
        reading.stop()

    assert max(Counter(reading.payloads()).values()) == 1
    assert all(a < b for a, b in pairwise(offset for _, offset, _ in reading.messages))


def test_reader_when_its_replica_comes_back_then_goes_back_to_it(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(racks=RACKS)
    partitions = create_topic(cluster, 2)
    follower = a_follower(cluster, partitions[0])
    producer = LoggedProducer(cluster, partitions, "p")
    ranges = dict.fromkeys(partitions, ReadRange(MessagePosition(0), None))
    with (
        registry_cluster(cluster) as found,
        ClusterReader(
            found, cluster.connection, ranges, read_from=RACKS[follower], leader_wait_s=60
        ) as cluster_reader,
    ):
        reading = Reading(cluster_reader)
        wait_until(lambda: len(reading.payloads()) > 20, "the first messages", deadline_s=60)
        cluster.kill_replaceable(follower, partitions)
        before = len(reading.payloads())
        wait_until(lambda: len(reading.payloads()) > before + 20, "the others", deadline_s=60)
        cluster.start(follower)
        cluster.await_full_isr(partitions)
        wait_until(lambda: bytes_out(cluster, follower) > 0, "reads of the replica", deadline_s=90)
        producer.stop()
        wait_until(
            lambda: acknowledged(producer) <= set(reading.payloads()), "all read", deadline_s=60
        )
        reading.stop()

    assert max(Counter(reading.payloads()).values()) == 1


@pytest.mark.parametrize("read_from", ["any", "rack"])
def test_group_when_the_replica_it_reads_is_killed_then_reads_on_at_the_leader(
    start_cluster: StartCluster, read_from: str
) -> None:
    cluster = start_cluster(racks=RACKS)
    partitions = create_topic(cluster, 4)
    follower = a_follower(cluster, partitions[0])
    producer = LoggedProducer(cluster, partitions, "p")
    payloads: list[str] = []
    config = ConsumerConfig(
        group="g",
        zookeeper=cluster.zookeeper,
        consumer_timeout_ms=100,
        leader_wait_ms=60_000,
        read_from="any" if read_from == "any" else RACKS[follower],
    )
    with ConsumerConnector(cluster.access.secured(config)) as member:
        (stream,) = member.create_message_streams({"t": 1})["t"]

        def take() -> None:
            with suppress(ConsumerTimeoutError):
                _, _, _, _, payload = next(stream)
                payloads.append(bytes(payload).decode())

        reading = LoadThread("member", take)
        wait_until(lambda: len(payloads) > 20, "the first messages", deadline_s=60)
        if read_from == "rack":
            wait_until(lambda: bytes_out(cluster, follower) > 0, "reads of it", deadline_s=60)
        cluster.kill_replaceable(follower, partitions)
        before = producer.acknowledged_count
        wait_until(lambda: producer.acknowledged_count > before + 30, "progress", deadline_s=60)
        producer.stop()
        wait_until(lambda: acknowledged(producer) <= set(payloads), "all read", deadline_s=60)
        reading.stop()

    assert set(payloads) >= acknowledged(producer)


@pytest.mark.parametrize("by", ["-Z", "-b"])
def test_consume_when_from_a_rack_then_the_replica_there_sends_it(
    start_cluster: StartCluster, invoke: Invoke, by: str
) -> None:
    cluster = start_cluster(racks=RACKS)
    partitions = create_topic(cluster, 3)
    wanted = fill(cluster, partitions, 30)
    listed = ",".join(f"{one.host}:{one.port}" for one in addresses_of(cluster))
    where = cluster.zookeeper if by == "-Z" else listed

    def come_from_there() -> bool:
        before = {one: bytes_out(cluster, one) for one in (0, 1, 2)}
        found = invoke("consume", "t", by, where, "-o", "start", "-e", "-X", "read.from=r1")
        assert found.status == 0, found.stderr
        assert set(found.text.split()) == wanted
        grown = [one for one in (0, 1, 2) if bytes_out(cluster, one) > before[one]]
        return grown == [1]

    # the broker that is asked may not know yet that all replicas are in sync
    wait_until(come_from_there, "a read of the replica in the rack alone", deadline_s=60)
    elsewhere = invoke("consume", "t", by, where, "-o", "start", "-e", "-X", "read.from=nowhere")
    assert set(elsewhere.text.split()) == wanted
