"""How much a fetch waits for, and how many threads fetch from a broker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.fetcher import Fetcher
from broker.protocol.codec import decode, encode
from broker.protocol.requests import ProduceRequest
from broker.server.broker import Broker
from broker.topic import MessagePosition, ReadRange, TopicPartition, share_of
from broker.zk.session import Session
from tests.integration.broker.consumer.group_members import Member
from tests.integration.broker.factories import BrokerFactory, ConnectionFactory, address_of
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

PARTITIONS = [TopicPartition("t", 0, index) for index in range(6)]
ONE = encode([b"one"])


def fill(broker: Broker) -> None:
    """Publish a message to each partition, its index."""
    peer = Peer(broker.port)
    for partition in PARTITIONS:
        peer.send(ProduceRequest("t", partition.index, encode([b"%d" % partition.index])))
    for partition in PARTITIONS:
        wait_until(partial(is_there, peer, partition), "the flush")
    peer.close()


def is_there(peer: Peer, partition: TopicPartition) -> bool:
    return peer.fetch("t", 0, index=partition.index)[1] != b""


def test_poll_when_more_bytes_are_wanted_then_waits_for_them(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    peer = Peer(running_broker.port)
    peer.publish("t", ONE)
    fetcher = Fetcher(
        {PARTITIONS[0]: 0},
        open_connection(address_of(running_broker)),
        max_wait_ms=20_000,
        min_bytes=2 * len(ONE),
    )
    polled: list[bytes] = []
    thread = threading.Thread(
        target=lambda: polled.extend(bytes(one.data) for one in fetcher.poll())
    )
    thread.start()
    status = running_broker.status
    wait_until(lambda: status()["connections"] == 2, "the fetcher's connection")

    peer.publish("t", ONE)
    thread.join(60)

    assert polled == [2 * ONE]
    fetcher.interrupt()
    peer.close()


def test_shares_when_computed_then_partitions_of_a_topic_are_spread() -> None:
    assert {share_of(one, 3) for one in PARTITIONS} == {0, 1, 2}
    assert {share_of(one, 1) for one in PARTITIONS} == {0}


def test_reader_when_several_fetchers_share_a_broker_then_all_partitions_are_read(
    start_broker: BrokerFactory,
) -> None:
    broker = start_broker(num_partitions=6)
    fill(broker)
    cluster = StaticCluster([broker.address()], Connection)
    ends = {
        one: ReadRange(MessagePosition(0), MessagePosition(len(encode([b"0"]))))
        for one in PARTITIONS
    }
    found = {}

    with ClusterReader(cluster, Connection, ends, fetcher_count=3) as reader:
        assert len(reader._sources) == 3
        for ready in reader.polls():
            for one in ready:
                messages, valid_bytes, _ = decode(one.data, one.offset)
                one.take(valid_bytes)
                found[one.partition] = [payload for _, _, payload in messages]
    cluster.close()

    assert found == {one: [b"%d" % one.index] for one in PARTITIONS}


def test_group_when_several_threads_fetch_from_a_broker_then_all_partitions_are_given(
    start_broker: BrokerFactory, zookeeper: str, join: Callable[..., Member], session: Session
) -> None:
    broker = start_broker(num_partitions=6, zookeeper=zookeeper)
    fill(broker)
    await_registered(session)

    member = join("t", num_fetchers=3, offset_reset="smallest")

    wait_until(lambda: member.error or len(member.payloads) == 6, "all messages")
    assert member.error is None
    assert sorted(member.payloads) == [b"%d" % one.index for one in PARTITIONS]
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("group-fetcher-0") == 3
