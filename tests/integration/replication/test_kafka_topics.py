"""Topics of Kafka's format on brokers that die: replicas are equal, batches are there once."""

from __future__ import annotations

import threading
from contextlib import closing, suppress

import pytest

from broker.client.connection import Connection
from broker.errors import BrokerError, error_for_code
from broker.log.format import BATCHES
from broker.protocol.client_requests import (
    Acks,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import NEW_BATCH, Record, decode_records, encode_batch, scan_batches
from broker.protocol.responses import decode_publish_response, decode_read_response
from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

RECORDS = 5
LEAST = 30  # batches before each death, and after the last one


def value_of(number: int) -> bytes:
    return b"%0200d" % number


class Producer(threading.Thread):
    """An idempotent producer of one partition, which sends a batch until it has a response."""

    def __init__(self, cluster: ReplicatedCluster, partition: TopicPartition) -> None:
        super().__init__()
        self.acknowledged = 0
        self.ends = threading.Event()
        self._cluster = cluster
        self._partition = partition
        self._id = 7 + partition.index

    def run(self) -> None:
        while not self.ends.is_set():
            with suppress(BrokerError):
                leader = self._cluster.leader(self._partition)
                if leader in self._cluster.brokers:
                    with closing(self._cluster.connect(leader, timeout_s=5)) as connection:
                        self._publish(connection)
            self.ends.wait(0.05)

    def _publish(self, connection: Connection) -> None:
        while not self.ends.is_set():
            first = RECORDS * self.acknowledged
            head = NEW_BATCH._replace(producer_id=self._id, producer_epoch=0, base_sequence=first)
            records = [Record(n, 1000, b"k", value_of(first + n)) for n in range(RECORDS)]
            sets = (PartitionSet(self._partition, encode_batch(records, head)),)
            body = connection.call(PublishRequest(Acks.COMMITTED, 4000, sets))
            (published,) = decode_publish_response(body)
            if published.error:
                raise error_for_code(published.error, published.text)
            assert published.base_offset == first
            self.acknowledged += 1

    def advance(self) -> None:
        """Wait until more batches are acknowledged."""
        least = self.acknowledged + LEAST
        wait_until(lambda: self.acknowledged >= least or not self.is_alive(), "more batches")
        assert self.is_alive()


def bytes_of(cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition) -> bytes:
    paths = sorted(cluster.directory_of(broker_id, partition).iterdir())
    found = [one for one in paths if BATCHES.base_offset_of(one.name) is not None]
    return b"".join(one.read_bytes() for one in found)


def await_equal(cluster: ReplicatedCluster, partition: TopicPartition) -> None:
    wait_until(
        lambda: len({bytes_of(cluster, id, partition) for id in range(3)}) == 1, "equal replicas"
    )


def test_kill_when_a_topic_is_of_kafka_then_replicas_are_equal_and_each_batch_is_there_once(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(log_format="kafka", log_file_size="20000")
    partitions = cluster.create_topic("events", 2, 3)
    assert [one.name for one in partitions] == ["0", "1"]
    producers = [Producer(cluster, one) for one in partitions]
    for producer in producers:
        producer.start()
    try:
        for partition, producer in zip(partitions, producers, strict=True):
            producer.advance()
            dead = cluster.kill_leader(partition)
            producer.advance()
            cluster.start(dead)
        cluster.await_full_isr(partitions)
        for producer in producers:
            producer.advance()
    finally:
        for producer in producers:
            producer.ends.set()
            producer.join()

    for partition, producer in zip(partitions, producers, strict=True):
        await_equal(cluster, partition)
        values: list[bytes | None] = []
        with closing(cluster.connect(cluster.await_leader(partition))) as connection:
            while len(values) < RECORDS * producer.acknowledged:
                position = PartitionPosition(partition, len(values), 1 << 20)
                body = connection.call(ReadRequest(5000, 1, 1 << 20, (position,)))
                (part,) = decode_read_response(body)
                assert part.error == 0
                values += [one.value for one in decode_records(part.message_set).records]
        assert values == list(map(value_of, range(len(values))))
        assert len(values) - RECORDS * producer.acknowledged in (0, RECORDS)


def test_damage_when_it_is_in_a_follower_of_a_kafka_topic_then_compare_names_it_and_it_is_mended(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(log_format="kafka", log_file_size="20000")
    (partition,) = cluster.create_topic("events", 1, 3)
    producer = Producer(cluster, partition)
    producer.start()
    for _ in range(3):
        producer.advance()
    producer.ends.set()
    producer.join()
    await_equal(cluster, partition)

    def compare() -> Result:
        return invoke("log", "compare", "events", "-Z", cluster.zookeeper, "--output", "jsonl")

    wait_until(lambda: '"same"' in compare().text, "the high watermark on all replicas")
    leader = cluster.leader(partition)
    bad = next(one for one in range(3) if one != leader)
    segments = sorted(cluster.directory_of(bad, partition).glob("*.log"))
    assert len(segments) > 2
    whole = segments[1].read_bytes()
    (_, second, *_) = scan_batches(whole).batches
    with segments[1].open("r+b") as file:
        file.seek(second.position + 70)
        file.write(bytes([whole[second.position + 70] ^ 1]))

    damaged = compare()
    assert damaged.status == ExitStatus.CORRUPT
    named = f"{partition} on broker {bad}: the message at offset {second.base_offset} is damaged"
    assert named in damaged.stderr
    wait_until(lambda: segments[1].read_bytes() == whole, "the copy of the segment")
    wait_until(lambda: compare().status == ExitStatus.OK, "equal replicas")
