"""Producers while a broker is killed and comes back at another address, with the same data."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from broker.producer.config import ProducerConfig
from broker.producer.delivery import Report
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.producer import Producer
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.cluster.group_harness import Cluster
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session_of

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

VICTIM = 0
KEY = b"any"
"""Messages with a key wait for their broker; those without one go to another."""


def settings_of(cluster: Cluster, **properties: str) -> ProducerConfig:
    """Return settings that try again soon."""
    defaults = {
        **cluster.client,
        "retry.backoff.ms": "20",
    }
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return ProducerConfig.from_properties(defaults | given)


def log_of(cluster: Cluster, partition: TopicPartition) -> list[tuple[int, bytes]]:
    """Return offset and payload of all messages of a partition."""
    found: list[tuple[int, bytes]] = []
    address = BrokerAddress(partition.home, "127.0.0.1", cluster.brokers[partition.home].port)
    with cluster.consumer(address) as consumer:
        fetched = consumer.fetch(partition.topic, partition.index, 0, 1 << 20)
        while len(fetched):
            found += [(offset, payload) for offset, _, payload in fetched]
            fetched = consumer.fetch(partition.topic, partition.index, fetched.next_offset, 1 << 20)
    return found


def restart(cluster: Cluster) -> None:
    """Kill a broker, and start it again on whichever port is free."""
    former = cluster.brokers[VICTIM].port
    cluster.brokers[VICTIM].kill()
    cluster.start_broker(VICTIM)
    assert cluster.brokers[VICTIM].port != former


def check_log(
    cluster: Cluster, topic: str, acknowledged: dict[TopicPartition, dict[int, bytes]]
) -> int:
    """Check that all that was acknowledged is where it was said to be, and in order.

    Returns:
        How many messages are there more than once.
    """
    duplicate_count = 0
    for partition in cluster.partitions(topic):
        log = log_of(cluster, partition)
        assert acknowledged.get(partition, {}).items() <= dict(log).items()
        numbers = [int(payload) for _, payload in log]
        first_times = list(dict.fromkeys(numbers))
        assert first_times == sorted(first_times)
        duplicate_count += len(numbers) - len(first_times)
    return duplicate_count


class Told:
    """What an asynchronous producer has reported."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.acknowledged: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        self.errors: list[Report] = []

    def __call__(self, reports: Sequence[Report]) -> None:
        for one in reports:
            self.counts[int(bytes(one.message))] += 1
            if one.error is None:
                self.acknowledged[one.partition][one.offset] = bytes(one.message)
            else:
                self.errors.append(one)


def has_told(told: Told, count: int) -> bool:
    return told.counts.total() >= count


@pytest.mark.parametrize("acks", ["1", "-1"])
def test_asynchronous_producer_when_broker_is_killed_and_moves_then_all_arrives_in_order(
    cluster: Cluster, topic: str, acks: str
) -> None:
    told = Told()
    config = settings_of(
        cluster,
        producer_type="async",
        request_required_acks=acks,
        queue_time="20",
        queue_size="500",
        batch_size="20",
    )
    producer = Producer.from_config(config, partitioner=round_robin_partitioner(), on_delivery=told)
    is_over = threading.Event()
    sent = itertools.count()

    def send() -> None:
        while not is_over.is_set():
            producer.send(topic, [b"%d" % next(sent)], key=KEY)
            is_over.wait(0.0005)

    sender = threading.Thread(target=send, name="sends")
    sender.start()
    try:
        wait_until(lambda: len(told.acknowledged) > 4, "messages to both brokers")
        for _ in range(2):
            restart(cluster)
            enough = told.counts.total() + 1000
            wait_until(partial(has_told, told, enough), "messages after the restart")
    finally:
        is_over.set()
        sender.join()
        producer.wait_until_readable()
        producer.close(timeout_s=60)

    assert told.errors == []
    assert told.counts == Counter(range(next(sent)))
    duplicates = check_log(cluster, topic, told.acknowledged)
    print(f"{duplicates} of {len(told.counts)} messages written twice")


@pytest.mark.both_ways
def test_synchronous_producer_when_broker_is_killed_and_moves_then_send_waits_for_it(
    cluster: Cluster, topic: str
) -> None:
    acknowledged: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
    with Producer.from_config(
        settings_of(cluster), partitioner=round_robin_partitioner()
    ) as producer:
        assert len({one.home for one in producer.partitions(topic)}) == len(cluster.brokers)

        def send(first: int, count: int) -> None:
            for number in range(first, first + count):
                delivery = producer.send(topic, [b"%d" % number], key=KEY)
                acknowledged[delivery.partition][delivery.base_offset] = b"%d" % number

        send(0, 20)
        restarting = threading.Thread(target=restart, args=(cluster,))
        restarting.start()
        send(20, 200)
        restarting.join()
        send(220, 20)
    assert sum(map(len, acknowledged.values())) == 240
    check_log(cluster, topic, acknowledged)


def test_producer_when_broker_stays_away_then_all_is_reported_and_others_go_on(
    cluster: Cluster, topic: str
) -> None:
    told = Told()
    config = settings_of(
        cluster,
        producer_type="async",
        queue_time="10",
        num_retries="1",
        connect_timeout_ms="100",
    )
    producer = Producer.from_config(config, partitioner=round_robin_partitioner(), on_delivery=told)
    for number in range(100):
        producer.send(topic, [b"%d" % number])
    producer.flush()
    assert told.errors == []
    cluster.brokers[VICTIM].kill()
    try:
        for number in range(100, 200):
            producer.send(topic, [b"%d" % number], key=KEY)
        producer.flush(timeout_s=60)
        producer.close()
    finally:
        cluster.start_broker(VICTIM)
    assert told.counts == Counter(range(200))
    # none at all if the registry has dropped the broker before anything was sent to it
    assert {one.partition.home for one in told.errors} <= {VICTIM}
    check_log(cluster, topic, told.acknowledged)


def test_producer_when_all_brokers_are_away_then_messages_wait_for_them(
    zookeeper: str, session: Session, tmp_path: Path, topic: str, *, is_closed: bool
) -> None:
    alone = Cluster(zookeeper, tmp_path, broker_count=1, partition_count=2, is_closed=is_closed)
    told = Told()
    config = settings_of(alone, producer_type="async", queue_time="10")
    try:
        with Producer.from_config(config, on_delivery=told) as producer:
            producer.send(topic, [b"0"]).result(60)
            alone.brokers[VICTIM].kill()
            expire_session_of(session, paths.broker(VICTIM))
            wait_until(
                lambda: not session.children(paths.BROKER_IDS), "the end of the broker's session"
            )
            deliveries = [producer.send(topic, [b"%d" % number]) for number in range(1, 10)]
            assert not deliveries[0].wait(0)
            alone.start_broker(VICTIM)
            assert all(delivery.wait(60) for delivery in deliveries)
        assert told.errors == []
        check_log(alone, topic, told.acknowledged)
    finally:
        alone.stop()
