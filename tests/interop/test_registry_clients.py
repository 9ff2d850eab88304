"""Clients of other makes that find brokers, and share work, through ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.broker_process import BrokerProcess
from broker.client.registry_cluster import RegistryCluster
from broker.consumer.simple_consumer import SimpleConsumer
from broker.producer.partitioner import hash_partitioner
from broker.zk.embedded import EmbeddedZooKeeper
from tests.integration.cluster.group_harness import Cluster, Load
from tests.interop.peers import PeerProcess, find_peer, numbers_of, require_peers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

require_peers()

LINES = ["one", "two", "three", "four", "five"]
MAX_BYTES = 1 << 20


def messages(cluster: Cluster, topic: str) -> dict[str, list[str]]:
    """Return what each partition of a topic has, by the partition's name."""
    found: dict[str, list[str]] = {}
    brokers = RegistryCluster(cluster.registry)
    for partition in brokers.partitions(topic):
        leader = brokers.leader(partition)
        with SimpleConsumer(leader.host, leader.port) as consumer:
            fetched = consumer.fetch(topic, partition.index, 0, MAX_BYTES)
            found[partition.name] = [payload.decode() for _, _, payload in fetched]
    return found


def payloads(cluster: Cluster, topic: str) -> list[str]:
    return [one for found in messages(cluster, topic).values() for one in found]


@pytest.mark.parametrize("peer", ["jafka", "samsa", "brod"])
def test_registry_when_a_producer_of_another_make_finds_brokers_then_all_it_sends_is_there(
    cluster: Cluster, topic: str, peer: str
) -> None:
    find_peer(peer).run("produce-zk", cluster.zookeeper, topic, lines=LINES)

    wait_until(lambda: len(payloads(cluster, topic)) == len(LINES), "the flush of what was sent")
    assert sorted(payloads(cluster, topic)) == sorted(LINES)


def test_registry_when_jafka_sends_with_keys_then_they_go_where_ours_go(
    cluster: Cluster, topic: str
) -> None:
    jafka = find_peer("jafka")
    Load(cluster, topic).produce(1)  # from now on all know all partitions
    keys = ["customer-7", "a", "\u00e9t\u00e9", "polygenelubricants", "key-2026"]

    jafka.run("produce-zk", cluster.zookeeper, topic, lines=[f"{key}\tof {key}" for key in keys])

    names = [one.name for one in RegistryCluster(cluster.registry).partitions(topic)]
    expected = {key: names[hash_partitioner(key.encode(), len(names))] for key in keys}
    wait_until(lambda: len(payloads(cluster, topic)) == 8 + len(keys), "the flush")
    places = {one: name for name, found in messages(cluster, topic).items() for one in found}
    assert {key: places[f"of {key}"] for key in keys} == expected


@pytest.fixture
def broker_at_root(zookeeper_server: EmbeddedZooKeeper, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker registered without a chroot: franz knows none."""
    settings = {"zk.connect": zookeeper_server.connect, "log.default.flush.interval.ms": "20"}
    process = BrokerProcess(tmp_path, **settings)
    yield process
    process.stop()


def test_registry_when_franz_finds_brokers_then_all_it_sends_is_there(
    broker_at_root: BrokerProcess, zookeeper_server: EmbeddedZooKeeper, topic: str
) -> None:
    find_peer("franz").run("produce-zk", zookeeper_server.connect, topic, lines=LINES)

    with SimpleConsumer("127.0.0.1", broker_at_root.port) as consumer:
        wait_until(lambda: consumer.fetch(topic, 0, 0, MAX_BYTES), "the flush")
        fetched = consumer.fetch(topic, 0, 0, MAX_BYTES)
        assert [payload.decode() for _, _, payload in fetched] == LINES


@pytest.fixture
def running(work_dir: Path) -> Iterator[list[PeerProcess]]:
    """Peers that a test starts; ended with it."""
    started: list[PeerProcess] = []
    yield started
    for one in started:
        one.kill()


def test_group_when_samsa_has_left_then_ours_goes_on_where_it_has_committed(
    cluster: Cluster, topic: str, work_dir: Path, running: list[PeerProcess]
) -> None:
    samsa = find_peer("samsa")
    load = Load(cluster, topic)
    load.produce(20)
    running.append(samsa.start(work_dir / "s.txt", "join", cluster.zookeeper, topic, topic))
    wait_until(lambda: len(running[0].lines()) == 160, "samsa's reading of everything")
    running[0].leave()

    load.produce(5)
    ours = cluster.join(topic, f"{topic}:1")
    wait_until(lambda: len(ours.delivered()) >= 40, "our reading of the rest")
    ours.leave()

    assert {one.number for one in ours.delivered()} == set(range(20, 25))
    assert len(ours.delivered()) == 40


def test_group_when_ours_has_left_then_samsa_goes_on_where_it_has_committed(
    cluster: Cluster, topic: str, work_dir: Path, running: list[PeerProcess]
) -> None:
    samsa = find_peer("samsa")
    load = Load(cluster, topic)
    load.produce(20)
    ours = cluster.join(topic, f"{topic}:1")
    cluster.await_delivery(load)
    ours.leave()

    load.produce(5)
    running.append(samsa.start(work_dir / "s.txt", "join", cluster.zookeeper, topic, topic))
    wait_until(lambda: len(running[0].lines()) >= 40, "samsa's reading of the rest")
    running[0].leave()

    found = numbers_of(running[0].lines())
    assert set(found) == set(load.counts())
    assert all(numbers == list(range(20, 25)) for numbers in found.values())


def produce_by_brod(cluster: Cluster, topic: str, numbers: range) -> None:
    """Send numbered messages to every partition; brod reads nothing but those of 0.6."""
    brod = find_peer("brod")
    for partition in cluster.partitions(topic):
        port = cluster.brokers[partition.home].port
        lines = [f"{partition.name}:{number}" for number in numbers]
        brod.run("produce", "127.0.0.1", port, topic, partition.index, lines=lines)


def test_group_when_brod_shares_it_with_ours_then_each_reads_its_half_by_the_same_split(
    cluster: Cluster, topic: str, work_dir: Path, running: list[PeerProcess]
) -> None:
    produce_by_brod(cluster, topic, range(10))
    brod = find_peer("brod").start(work_dir / "b.txt", "join", cluster.zookeeper, topic, topic)
    running.append(brod)
    wait_until(lambda: len(brod.lines()) == 80, "brod's reading of everything")
    ours = cluster.join(topic, f"{topic}:1")
    wait_until(lambda: len(cluster.owners(topic, topic)) == 4, "our claim of our half")
    our_half = set(cluster.owners(topic, topic))
    produce_by_brod(cluster, topic, range(10, 15))

    def is_complete() -> bool:
        return len(brod.lines()) == 100 and len(ours.delivered()) >= 20

    wait_until(is_complete, "reading of the rest by both")
    theirs = numbers_of(brod.lines()[80:])
    assert {one.partition for one in ours.delivered()} == our_half
    assert set(theirs) == set(numbers_of(brod.lines()[:80])) - our_half
    assert {one.number for one in ours.delivered()} == set(range(10, 15))

    brod.kill()
    cluster.settle(topic, topic, 1, "kill -9 of brod")
    produce_by_brod(cluster, topic, range(15, 16))
    wait_until(lambda: len({one[1] for one in ours.delivered()}) == 8, "our reading of all")
    ours.leave()
