"""Clients of a partition whose leader moves from one broker to another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from broker.client.cluster import locked
from broker.client.connection import Connection
from broker.client.list_offsets import OffsetLister
from broker.client.static_cluster import StaticCluster
from broker.consumer.cluster_reader import ClusterReader
from broker.errors import (
    BrokerError,
    NotEnoughReplicasError,
    NotLeaderError,
    OffsetNotAvailableError,
)
from broker.producer.dispatcher import Waiting
from broker.producer.producer import Delivery, Producer
from broker.producer.settings import BatchRules, ProducerSettings, QueueRules
from broker.protocol.codec import decode, encode
from broker.topic import MessagePosition, ReadRange
from tests.integration.broker.replicas import PARTITION, Replicas
from tests.support.waiting import wait_until

COUNT = 100


@pytest.fixture(params=[True, False], ids=["hint", "no-hint"])
def replicas(request: pytest.FixtureRequest) -> Iterator[Replicas]:
    """Led by broker 0 at first."""
    replicas = Replicas()
    replicas.gives_hint = request.param
    yield replicas
    replicas.stop()


@pytest.fixture
def cluster(replicas: Replicas) -> Iterator[StaticCluster]:
    """Found at one of the brokers."""
    with closing(StaticCluster(replicas.addresses[1:], Connection)) as cluster:
        yield cluster


def payloads(replicas: Replicas) -> list[int]:
    return [int(payload) for _, _, payload in decode(replicas.log, 0).messages]


def test_producer_when_replicas_are_in_sync_again_then_goes_on_with_a_new_connection(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    errors: list[BrokerError] = []

    def on_wait(waiting: Waiting) -> bool:
        errors.append(waiting.error)
        replicas.lacks_replicas = len(errors) < 3
        return True

    with Producer(
        cluster, Connection, ProducerSettings(max_in_flight=1, backoff_s=0.01)
    ) as producer:
        producer.watch(on_wait)
        producer.send("t", [b"1"])
        producer.flush()
        replicas.lacks_replicas = True
        producer.send("t", [b"2"])
        producer.send("t", [b"3"])
    assert all(isinstance(one, NotEnoughReplicasError) for one in errors)
    assert payloads(replicas) == [1, 2, 3]


@pytest.mark.parametrize("is_queued", [False, True])
def test_producer_when_the_leader_moves_then_all_goes_to_the_new_one_in_order(
    replicas: Replicas, cluster: StaticCluster, is_queued: bool
) -> None:
    rules = QueueRules(BatchRules(batch_count=1, linger_s=0.0)) if is_queued else None
    shared = locked(cluster)
    with Producer(
        shared, Connection, ProducerSettings(max_in_flight=8, queueing=rules, backoff_s=0.01)
    ) as producer:
        deliveries: list[Delivery] = []
        for number in range(COUNT):
            if number in (30, 60):
                assert not is_queued or deliveries[number - 10].wait(60)
                replicas.leader = 1 - replicas.leader
            deliveries.append(producer.send("t", [b"%d" % number], key=b"k"))
        producer.flush()
        offsets = [one.result() for one in deliveries]

    assert payloads(replicas) == list(range(COUNT))
    assert offsets == sorted(set(offsets))
    assert replicas.refused_count


def test_producer_when_no_broker_leads_then_fails_after_its_retries(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    with Producer(
        cluster, Connection, ProducerSettings(backoff_s=0.001, retries=3, waits=True)
    ) as producer:
        producer.send("t", [b"0"], key=b"k")
        replicas.leader = -1
        with pytest.raises(NotLeaderError):
            producer.send("t", [b"1"], key=b"k")
        replicas.leader = 1
        producer.send("t", [b"2"], key=b"k")

    assert payloads(replicas) == [0, 2]
    assert replicas.refused_count == 5  # the last message goes to the home broker first


def test_lister_when_the_leader_moves_then_asks_the_new_one(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    replicas.log = encode([b"one"])
    with OffsetLister(cluster, Connection) as offsets:
        assert offsets.latest(PARTITION) == len(replicas.log)
        replicas.leader = 1
        assert offsets.latest(PARTITION) == len(replicas.log)
        replicas.leader = 0
        assert offsets.latest(PARTITION) == len(replicas.log)


def test_lister_when_the_new_leader_does_not_know_what_is_committed_then_waits_until_it_does(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    replicas.log = encode([b"one"])
    replicas.knows_committed = False

    def learn() -> None:
        wait_until(lambda: replicas.unavailable_count > 2, "refusals")
        replicas.knows_committed = True

    learning = threading.Thread(target=learn)
    learning.start()
    with OffsetLister(cluster, Connection, latest_wait_s=60) as offsets:
        assert offsets.latest(PARTITION) == len(replicas.log)
    learning.join()


def test_lister_when_the_leader_never_knows_what_is_committed_then_fails_once_for_all_partitions(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    replicas.knows_committed = False
    with OffsetLister(cluster, Connection, latest_wait_s=2.5) as offsets:
        with pytest.raises(OffsetNotAvailableError, match="its new leader does not know"):
            offsets.latest(PARTITION)
        before = replicas.unavailable_count
        assert before > 1
        with pytest.raises(OffsetNotAvailableError):
            offsets.watermarks(PARTITION)
        assert replicas.unavailable_count == before + 1


def test_reader_when_the_leader_moves_then_reads_on_where_it_was(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    found: list[int] = []
    message = encode([b"0"])
    replicas.log = b"".join(encode([b"%d" % number]) for number in range(10))
    end = MessagePosition(len(message) * 30)
    ranges = {PARTITION: ReadRange(MessagePosition(0), end)}
    with ClusterReader(cluster, Connection, ranges, fetch_bytes=len(message) + 3) as reader:
        for ready in reader.polls():
            for one in ready:
                messages, valid_bytes, _ = decode(one.data, one.offset)
                one.take(valid_bytes)
                found += [int(payload) for _, _, payload in messages]
            if len(found) in (5, 12):
                replicas.leader = 1 - replicas.leader
            if len(found) in (10, 20):
                more = range(len(found), len(found) + 10)
                replicas.log += b"".join(encode([b"%d" % (number % 10)]) for number in more)

    assert found == [*range(10)] * 3


def test_reader_when_the_leader_of_an_idle_partition_moves_again_later_then_follows(
    replicas: Replicas, cluster: StaticCluster
) -> None:
    leader_wait_s = 1.0
    ranges = {PARTITION: ReadRange(MessagePosition(0), None)}
    with ClusterReader(cluster, Connection, ranges, leader_wait_s=leader_wait_s) as reader:
        polls = reader.polls()
        replicas.leader = 1
        moved_s = time.monotonic()
        while time.monotonic() < moved_s + 2 * leader_wait_s:
            assert next(polls) == []
        replicas.leader = 0
        replicas.log = encode([b"1"])
        (found,) = next(ready for ready in polls if ready)

        assert bytes(found.data) == replicas.log
