"""Producers when a broker of their cluster is killed, or answers where another was."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from broker.producer.config import ProducerConfig
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.producer import Producer
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.cluster.group_harness import Cluster
from tests.integration.cluster.test_producer_failover import Told, log_of
from tests.support.balancer import Balancer
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session_of

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

TOPIC = "events"
BEFORE, AFTER = 200, 250
"""Messages before and after a broker is killed."""
MODES = ["sync", "async"]


@pytest.fixture
def two_brokers(zookeeper: str, tmp_path: Path, *, is_closed: bool) -> Iterator[Cluster]:
    """Brokers 0 and 1, with a partition of `events` on each."""
    cluster = Cluster(zookeeper, tmp_path, partition_count=1, is_closed=is_closed)
    for broker in cluster.brokers.values():
        with Producer.from_config(
            ProducerConfig.from_properties(
                {**cluster.access.client, "broker.list": f"127.0.0.1:{broker.port}"}
            )
        ) as producer:
            for partition in producer.partitions(TOPIC):
                producer.send_set(TopicPartition(TOPIC, partition.home, 0), b"").result()
    # brokers register a topic after they have made it; one found alone would get all messages
    with Session(zookeeper) as session:
        registered = partial(session.children_if_any, paths.topic(TOPIC))
        wait_until(lambda: len(registered()) == 2, "both brokers to register the topic")
    yield cluster
    cluster.stop()


@pytest.fixture
def balancer(two_brokers: Cluster) -> Iterator[Balancer]:
    """Leads to both brokers in turn."""
    balancer = Balancer([one.port for one in two_brokers.brokers.values()])
    yield balancer
    balancer.stop()


def open_producer(cluster: Cluster, told: Told | None, mode: str, **properties: str) -> Producer:
    defaults = {**cluster.access.client, "producer.type": mode, "queue.time": "10"}
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Producer.from_config(
        ProducerConfig.from_properties(defaults | given),
        partitioner=round_robin_partitioner(),
        on_delivery=told,
    )


def places(cluster: Cluster, mode: str) -> dict[str, str]:
    """How a producer finds the cluster."""
    if mode == "registry":
        return cluster.client
    ports = [one.port for one in cluster.brokers.values()]
    listed = ports[:1] if mode == "one of them" else ports
    return {
        "broker.list": ",".join(f"127.0.0.1:{port}" for port in listed),
        **cluster.access.client,
    }


def see_both(producer: Producer) -> bool:
    return len(producer.partitions(TOPIC)) == 2


def check_logs(cluster: Cluster, told: Told) -> int:
    """Check that all that was acknowledged is in the logs; return how much is there twice."""
    stored: Counter[int] = Counter()
    for partition in (TopicPartition(TOPIC, home, 0) for home in cluster.brokers):
        log = log_of(cluster, partition)
        assert told.acknowledged.get(partition, {}).items() <= dict(log).items()
        stored.update(int(payload) for _, payload in log)
    return sum(count - 1 for count in stored.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("found_by", ["registry", "list", "one of them"])
def test_messages_without_key_when_a_broker_is_killed_then_all_go_to_the_other(
    two_brokers: Cluster, session: Session, found_by: str, mode: str
) -> None:
    told = Told()
    numbers = itertools.count()
    producer = open_producer(two_brokers, told, mode, **places(two_brokers, found_by))
    victim = 1 if found_by == "one of them" else 0
    with producer:
        wait_until(lambda: see_both(producer), "both brokers")
        for _ in range(BEFORE):
            producer.send(TOPIC, [b"%d" % next(numbers)])
        wait_until(lambda: len(told.acknowledged) == 2, "messages to both brokers")
        two_brokers.brokers[victim].kill()
        if found_by != "registry":  # else its session lives on for a while
            expire_session_of(session, paths.broker(victim))
        for _ in range(AFTER):
            producer.send(TOPIC, [b"%d" % next(numbers)])
        producer.flush()

    assert told.errors == []
    assert told.counts == Counter(range(BEFORE + AFTER))
    two_brokers.start_broker(victim)
    duplicates = check_logs(two_brokers, told)
    print(f"{duplicates} of {len(told.counts)} messages stored twice")


@pytest.mark.parametrize("mode", MODES)
def test_producer_when_a_balancer_leads_to_another_broker_then_goes_on(
    two_brokers: Cluster, balancer: Balancer, session: Session, mode: str
) -> None:
    told = Told()
    numbers = itertools.count()
    first, second = (two_brokers.brokers[home].port for home in (1, 0))
    balancer.lead_to(first)
    with open_producer(
        two_brokers, told, mode, broker_list=f"127.0.0.1:{balancer.port}"
    ) as producer:
        wait_until(lambda: see_both(producer), "both brokers")
        for _ in range(BEFORE):
            producer.send(TOPIC, [b"%d" % next(numbers)])
        balancer.lead_to(second)
        two_brokers.brokers[1].kill()
        expire_session_of(session, paths.broker(1))
        for _ in range(AFTER):
            producer.send(TOPIC, [b"%d" % next(numbers)])

    assert told.errors == []
    assert told.counts == Counter(range(BEFORE + AFTER))
    two_brokers.start_broker(1)
    check_logs(two_brokers, told)


@pytest.mark.parametrize("mode", MODES)
def test_producer_when_a_balancer_leads_to_all_in_turn_then_each_gets_its_messages(
    two_brokers: Cluster, balancer: Balancer, mode: str
) -> None:
    told = Told()
    with open_producer(
        two_brokers, told, mode, broker_list=f"127.0.0.1:{balancer.port}", reconnect_interval="7"
    ) as producer:
        wait_until(lambda: see_both(producer), "both brokers")
        for number in range(100):
            producer.send(TOPIC, [b"%d" % number], key=b"%d" % number)

    assert told.errors == []
    assert check_logs(two_brokers, told) == 0
    assert {one.home for one in told.acknowledged} == {0, 1}


def test_messages_with_key_when_their_broker_is_killed_and_comes_back_then_wait_for_it(
    two_brokers: Cluster,
) -> None:
    told = Told()
    with open_producer(two_brokers, told, "async", **places(two_brokers, "registry")) as producer:
        wait_until(lambda: see_both(producer), "both brokers")
        two_brokers.brokers[0].kill()
        for number in range(50):
            producer.send(TOPIC, [b"%d" % number], key=b"%d" % number)
        two_brokers.start_broker(0)
        producer.flush()

    assert told.errors == []
    assert told.counts == Counter(range(50))
    assert check_logs(two_brokers, told) == 0


def test_producer_when_a_topic_gets_partitions_on_another_broker_then_sees_them(
    two_brokers: Cluster,
) -> None:
    with open_producer(two_brokers, None, "sync", **places(two_brokers, "one of them")) as producer:
        homes = {producer.send("late", [b"x"]).partition.home}
        port = two_brokers.brokers[1].port
        with open_producer(two_brokers, None, "sync", broker_list=f"127.0.0.1:{port}") as other:
            other.send_set(TopicPartition("late", 1, 0), b"").result()

        def is_seen() -> bool:
            homes.add(producer.send("late", [b"x"]).partition.home)
            return homes == {0, 1}

        wait_until(is_seen, "a partition that appeared later")
