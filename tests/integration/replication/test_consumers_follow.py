"""Consumers that read on when the leader of a partition dies."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import islice, pairwise
from typing import Any

import pytest

import pylogctl
from broker.client.cluster import Cluster
from broker.client.list_offsets import OffsetLister
from broker.client.registry_cluster import RegistryCluster
from broker.client.static_cluster import StaticCluster
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.errors import NO_ERROR, BrokerUnreachableError, ConsumerTimeoutError
from broker.log.replica_files import EPOCH_FILE_NAME
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.message_set import iter_messages
from broker.protocol.responses import BrokerAddress, decode_publish_response
from broker.topic import MessagePosition, ReadRange, TopicPartition
from tests.integration.replication.history import Outcome
from tests.integration.replication.load import LoadThread, LoggedProducer
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
OpenCluster = Callable[[ReplicatedCluster], AbstractContextManager[Cluster]]


def addresses_of(cluster: ReplicatedCluster) -> list[BrokerAddress]:
    door = cluster.network.door_to_broker
    return [BrokerAddress(-1, "127.0.0.1", door(one)) for one in sorted(cluster.brokers)]


@contextmanager
def registry_cluster(cluster: ReplicatedCluster) -> Iterator[Cluster]:
    registry = cluster.open_registry()
    try:
        yield RegistryCluster(registry)
    finally:
        registry.stop()


@contextmanager
def listed_cluster(cluster: ReplicatedCluster) -> Iterator[Cluster]:
    listed = StaticCluster(addresses_of(cluster), cluster.connection)
    try:
        yield listed
    finally:
        listed.close()


class Reading:
    """What a `ClusterReader` in a thread has read of partitions from their start."""

    def __init__(self, reader: ClusterReader) -> None:
        self.messages: list[tuple[TopicPartition, int, str]] = []
        self._polls = reader.polls()
        self._thread = LoadThread("reader", self._step)

    def _step(self) -> None:
        for reader in next(self._polls):
            at = reader.offset
            for message in iter_messages(reader.data, at):
                payload = bytes(message.payload).decode()
                self.messages.append((reader.partition, message.offset, payload))
                at = message.next_offset
            reader.take(at - reader.offset)

    def stop(self) -> None:
        self._thread.stop()

    def payloads(self) -> list[str]:
        assert self._thread.failure is None, self._thread.failure
        return [payload for _, _, payload in list(self.messages)]


def create_topic(cluster: ReplicatedCluster, partition_count: int) -> list[TopicPartition]:
    """Create a topic, and wait until its leaders know that they lead."""
    partitions = cluster.create_topic("t", partition_count, 3, min_insync_replicas="2")
    await_orders(cluster, partitions)
    return partitions


def await_orders(cluster: ReplicatedCluster, partitions: list[TopicPartition]) -> None:
    """Wait until the leaders of new partitions know that they lead, with all replicas in sync."""
    cluster.await_full_isr(partitions)

    def leads(partition: TopicPartition) -> bool:
        directory = cluster.directory_of(cluster.leader(partition), partition)
        return (directory / EPOCH_FILE_NAME).exists()

    wait_until(lambda: all(map(leads, partitions)), "the orders of the controller")


def acknowledged(producer: LoggedProducer) -> set[str]:
    return {one.payload for one in list(producer.sent) if one.outcome is Outcome.ACKNOWLEDGED}


def kill_leader_under_load(
    cluster: ReplicatedCluster,
    partitions: list[TopicPartition],
    producer: LoggedProducer,
    payloads: Callable[[], list[str]],
) -> None:
    """Kill the leader of the first partition; wait until all that is acknowledged is read."""
    wait_until(lambda: len(payloads()) > 20, "the first messages")
    leader = cluster.kill_leader(partitions[0])
    cluster.await_leader(partitions[0], other_than=leader)
    before = producer.acknowledged_count
    wait_until(lambda: producer.acknowledged_count > before + 30, "progress")
    producer.stop()
    wait_until(
        lambda: acknowledged(producer) <= set(payloads()),
        "all messages read",
    )


@pytest.mark.parametrize(
    ("open_cluster", "partition_count"), [(registry_cluster, 3), (listed_cluster, 1)]
)
def test_reader_when_a_leader_is_killed_then_reads_on_each_message_once_in_order(
    start_cluster: StartCluster,
    open_cluster: OpenCluster,
    partition_count: int,
) -> None:
    cluster = start_cluster()
    partitions = create_topic(cluster, partition_count)
    producer = LoggedProducer(cluster, partitions, "p")
    ranges = dict.fromkeys(partitions, ReadRange(MessagePosition(0), None))
    with (
        open_cluster(cluster) as found,
        ClusterReader(found, cluster.connection, ranges, leader_wait_s=60) as cluster_reader,
    ):
        reading = Reading(cluster_reader)
        kill_leader_under_load(cluster, partitions, producer, reading.payloads)
        reading.stop()

    assert max(Counter(reading.payloads()).values()) == 1
    for partition in partitions:
        offsets = [offset for one, offset, _ in reading.messages if one == partition]
        assert all(a < b for a, b in pairwise(offsets))


def test_clients_of_programs_when_a_leader_hangs_then_send_and_read_at_the_next(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    (partition,) = create_topic(cluster, 1)
    addresses = [f"127.0.0.1:{one.port}" for one in addresses_of(cluster)]
    names = {"tls_ca": "ssl.ca.location", "user": "sasl.username", "password": "sasl.password"}
    properties = cluster.access.client
    access: dict[str, Any] = {one: properties.get(name) for one, name in names.items()}
    connect = partial(pylogctl.connect, addresses, timeout=120, **access)
    aconnect = partial(pylogctl.aconnect, addresses, timeout=120, **access)
    expected = {"before", "in flight", "unconnected", "unconnected thread"}
    has_begun = threading.Event()

    def read_all(client: pylogctl.Client) -> set[str]:
        with client.read("t", start="earliest", stop=None) as reader:
            first = next(reader).text()
            has_begun.set()
            return {first, *(message.text() for message in islice(reader, len(expected) - 1))}

    async def main(in_thread: pylogctl.Client, reading: pylogctl.Client) -> None:
        async with aconnect() as client, aconnect() as unconnected:
            await client.send("t", "before")
            thread = asyncio.create_task(asyncio.to_thread(read_all, reading))
            reader = client.read("t", start="earliest", stop=None)
            found = {(await anext(reader)).text()}
            await asyncio.to_thread(has_begun.wait, 60)  # its first request has been answered
            cluster.freeze(cluster.leader(partition))
            async with asyncio.timeout(60):  # half of what they would await a response for
                await asyncio.gather(
                    client.send("t", "in flight"),
                    unconnected.send("t", "unconnected"),
                    asyncio.to_thread(in_thread.send, "t", "unconnected thread"),
                )
                while found != expected:
                    found.add((await anext(reader)).text())
                assert await thread == expected

    async def closing() -> None:  # at once, so that no thread waits longer than the test
        with connect() as in_thread, connect() as reading:
            await main(in_thread, reading)

    patient = partial(cluster.connection, timeout_s=120)
    with (
        listed_cluster(cluster) as found,
        ClusterReader(found, patient, {partition: ReadRange(MessagePosition(0), None)}) as reader,
    ):
        of_command = Reading(reader)
        asyncio.run(closing())
        wait_until(lambda: set(of_command.payloads()) == expected, "all messages read")
        of_command.stop()


@pytest.mark.parametrize("by", ["-Z", "-b"])
def test_consume_when_a_broker_is_stopped_then_reads_all_partitions_of_a_replicated_topic(
    start_cluster: StartCluster, invoke: Invoke, by: str
) -> None:
    cluster = start_cluster()
    partitions = create_topic(cluster, 6)
    producer = LoggedProducer(cluster, partitions, "p")
    wait_until(lambda: producer.acknowledged_count > 30, "messages")
    producer.stop()
    listed = ",".join(f"{one.host}:{one.port}" for one in addresses_of(cluster))
    cluster.await_full_isr(partitions)
    stopped = cluster.await_leader(partitions[0])
    cluster.stop(stopped)
    for partition in partitions:
        cluster.await_leader(partition, other_than=stopped)

    where = cluster.zookeeper if by == "-Z" else listed
    words = ("consume", "t", by, where, "-o", "start", "-e", "-X", "leader.wait.max.ms=60000")
    result = invoke(*words)
    assert result.status == 0, result.stderr
    assert set(result.text.split()) == acknowledged(producer)
    assert "6 partitions" in result.stderr


def test_consume_when_a_new_leader_does_not_know_what_is_committed_then_waits_and_reads_to_the_end(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    # the frozen follower is in sync for a while: it keeps the new leader's high watermark back
    cluster = start_cluster(replica_lag_time_max_ms="5000", zk_sessiontimeout_ms="30000")
    partitions = cluster.create_topic("t", 3, 3)  # the last replica of each is another broker
    await_orders(cluster, partitions)
    orders = {one: state.replicas for one in partitions if (state := cluster.state(one))}
    partition = next(one for one in partitions if orders[one][-1] != cluster.controller())
    leader, follower, frozen = orders[partition]
    cluster.freeze(frozen)
    message_set = encode([b"%d" % number for number in range(100)])
    connection = cluster.connect(leader)
    request = PublishRequest(Acks.WRITTEN, 30_000, (PartitionSet(partition, message_set),))
    (published,) = decode_publish_response(connection.call(request))
    assert published.error == NO_ERROR, published
    connection.close()
    wait_until(
        lambda: cluster.log_bytes(follower, partition)[1] == message_set, "the follower's copy"
    )
    cluster.stop(leader)

    broker = f"127.0.0.1:{cluster.network.door_to_broker(follower)}"
    words = ("consume", "t", "-p", partition.name, "-b", broker, "-o", "start", "-e")
    result = invoke(*words, "-X", "leader.wait.max.ms=60000")
    assert result.status == 0, result.stderr
    assert result.text.split() == [str(number) for number in range(100)]
    words = ("topic", "offsets", "t", "-p", partition.name, "-b", broker, "--output", "jsonl")
    assert json.loads(invoke(*words).text)["end"] == len(message_set)


@pytest.mark.parametrize("open_cluster", [registry_cluster, listed_cluster])
def test_offsets_when_a_leader_is_killed_then_are_listed_by_the_next(
    start_cluster: StartCluster, open_cluster: OpenCluster
) -> None:
    cluster = start_cluster()
    (partition,) = create_topic(cluster, 1)
    with open_cluster(cluster) as found, OffsetLister(found, cluster.connection) as offsets:
        assert offsets.latest(partition) == 0
        leader = cluster.kill_leader(partition)
        cluster.await_leader(partition, other_than=leader)

        def is_listed() -> bool:
            try:
                return offsets.latest(partition) == 0
            except BrokerUnreachableError:  # no broker that is left knows of the new leader yet
                return False

        wait_until(is_listed, "the offset at the new leader")


def test_group_when_a_leader_that_is_not_the_home_is_killed_then_reads_on(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    (partition,) = create_topic(cluster, 1)
    home = partition.home
    cluster.stop(home)
    leader = cluster.await_leader(partition, other_than=home)
    cluster.start(home)
    cluster.await_full_isr([partition])
    assert cluster.leader(partition) == leader
    producer = LoggedProducer(cluster, [partition], "p")
    payloads: list[str] = []
    config = ConsumerConfig(
        group="g",
        zookeeper=cluster.zookeeper,
        consumer_timeout_ms=100,
        leader_wait_ms=60_000,
        zk_session_timeout_ms=10_000,
    )
    with ConsumerConnector(cluster.access.secured(config)) as member:
        (stream,) = member.create_message_streams({"t": 1})["t"]

        def read() -> None:
            with suppress(ConsumerTimeoutError):
                _, _, _, _, payload = next(stream)
                payloads.append(bytes(payload).decode())

        reading = LoadThread("member", read)
        kill_leader_under_load(cluster, [partition], producer, lambda: payloads)
        reading.stop()

    assert max(Counter(payloads).values()) == 1


@pytest.mark.parametrize("by", ["-Z", "-b"])
def test_consume_to_the_end_when_a_leader_has_just_been_killed_then_waits_for_the_next(
    start_cluster: StartCluster, invoke: Invoke, by: str
) -> None:
    cluster = start_cluster()
    partitions = create_topic(cluster, 3)
    producer = LoggedProducer(cluster, partitions, "p")
    wait_until(lambda: producer.acknowledged_count > 30, "messages", deadline_s=60)
    producer.stop()
    listed = ",".join(f"{one.host}:{one.port}" for one in addresses_of(cluster))
    where = cluster.zookeeper if by == "-Z" else listed
    words = ("consume", "t", by, where, "-o", "start", "-e", "-X", "leader.wait.max.ms=60000")

    leader = cluster.await_leader(partitions[0])
    cluster.kill_replaceable(leader, partitions, session_lives_on=True)
    first = invoke(*words)
    assert first.status == 0, first.stderr

    def has_all() -> bool:
        found = invoke(*words)
        assert found.status == 0, found.stderr
        return set(found.text.split()) == acknowledged(producer)

    # a new leader knows a little later only that the last messages are committed
    wait_until(has_all, "a read of all messages", deadline_s=60)
