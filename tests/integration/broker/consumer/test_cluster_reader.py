"""Reading partitions of one broker, and of several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.cluster_reader import ClusterReader
from broker.protocol.client_requests import ReadRequest
from broker.protocol.codec import decode, encode
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.requests import BaseRequest, MultiFetchRequest
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import MessagePosition, ReadRange, TopicPartition
from tests.integration.broker.consumer.group_members import Member, publish
from tests.integration.broker.factories import ServerFactory, address_of
from tests.integration.broker.peers import Server, as_slow_door_to

PARTITION = TopicPartition("t", 0, 0)
LARGE = b"x" * 900_000


class Counted(Connection):
    """A connection that counts the reads of all such connections."""

    read_count = 0

    def send_extension(self, request: ExtensionRequest) -> int:
        Counted.read_count += isinstance(request, ReadRequest)
        return super().send_extension(request)

    def send_request(self, request: BaseRequest) -> None:
        Counted.read_count += isinstance(request, MultiFetchRequest)
        super().send_request(request)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    monkeypatch.setattr(Counted, "read_count", 0)
    return Counted


def read_payloads(address: BrokerAddress, connect: Connect) -> list[bytes]:
    cluster = StaticCluster([address], Connection)
    payloads: list[bytes] = []
    start = ReadRange(MessagePosition(0))
    with ClusterReader(cluster, connect, {PARTITION: start}, fetch_bytes=5_000) as reader:
        for ready in reader.polls():
            for one in ready:
                messages, valid_bytes, _ = decode(one.data, one.offset)
                one.take(valid_bytes)
                payloads += [payload for _, _, payload in messages]
            if payloads[-1:] == [b"last"]:
                break
    cluster.close()
    return payloads


def test_reader_when_a_proxied_broker_takes_most_of_the_first_attempt_then_later_ones_are_longer(
    running_broker: Broker, start_server: ServerFactory
) -> None:
    publish(running_broker, [b"last"])
    door = start_server(as_slow_door_to(running_broker.port, delay_s=0.7))
    payloads = read_payloads(address_of(running_broker), lambda _: Connection(door.address))
    assert payloads == [b"last"]


def test_reader_when_a_message_is_far_larger_than_a_fetch_then_few_requests_get_it(
    running_broker: Broker, connect: Connect
) -> None:
    for payload in (b"first", LARGE, b"last"):
        publish(running_broker, [payload])

    found = read_payloads(BrokerAddress(0, "127.0.0.1", running_broker.port), connect)

    assert found == [b"first", LARGE, b"last"]
    assert Counted.read_count < 10


def test_reader_when_the_broker_is_a_07_one_then_few_requests_get_a_large_message_too(
    running_broker: Broker, old_broker: Server, connect: Connect
) -> None:
    for payload in (b"first", LARGE, b"last"):
        publish(running_broker, [payload])

    found = read_payloads(BrokerAddress(0, "127.0.0.1", old_broker.port), connect)

    assert found == [b"first", LARGE, b"last"]
    assert Counted.read_count < 10


@pytest.mark.zookeeper
def test_member_when_a_message_is_far_larger_than_a_fetch_then_few_requests_get_it(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    connect: Connect,
    join: Callable[..., Member],
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    member = join("t", connect=connect, fetch_bytes=5_000, max_wait_ms=20_000)

    publish(broker, [b"first", LARGE])

    member.await_payloads([b"first", LARGE])
    assert Counted.read_count < 40  # those before the length was seen fill the queue


@pytest.mark.parametrize("how", ["sought there", "led elsewhere"])
def test_reader_when_a_partition_is_at_its_end_then_it_is_not_fetched_again(
    how: str, start_broker: Callable[..., Broker]
) -> None:
    broker = start_broker(num_partitions=2)
    cluster = StaticCluster([BrokerAddress(0, "127.0.0.1", broker.port)], Connection)
    other, end = TopicPartition("t", 0, 1), len(encode([b"one"]))
    for one in (PARTITION, other):
        publish(broker, [b"one", b"two"], index=one.index)
    ranges = {
        PARTITION: ReadRange(MessagePosition(0), MessagePosition(end)),
        other: ReadRange(MessagePosition(0)),
    }
    with ClusterReader(cluster, Connection, ranges, max_wait_ms=20, fetcher_count=2) as reader:
        is_asked = False
        fetched: list[TopicPartition] = []
        for _, ready in zip(range(500), reader.polls(), strict=False):
            for part in ready:
                part.take_messages()
            fetched = [one for source in reader._sources for one in source.fetcher.partitions]
            if fetched == [other] and is_asked:
                break
            if fetched == [other]:
                is_asked = True
                if how == "sought there":
                    reader.seek(PARTITION, end)
                else:
                    reader._read_at_leader([PARTITION])
        assert fetched == [other]
    cluster.close()


def test_reader_when_left_while_several_brokers_are_polled_then_does_not_wait_for_them(
    start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    brokers = [start_broker(broker_id=one, data_dir=tmp_path / str(one)) for one in range(2)]
    for broker in brokers:
        publish(broker, [b"one"])
    addresses = [BrokerAddress(-1, "127.0.0.1", one.port) for one in brokers]
    cluster = StaticCluster(addresses, Connection)
    ranges = {TopicPartition("t", one, 0): ReadRange(MessagePosition(0)) for one in range(2)}

    def read_both() -> None:
        seen: set[int] = set()
        with ClusterReader(cluster, Connection, ranges, max_wait_ms=60_000) as reader:
            for ready in reader.polls():
                for one in ready:
                    one.take(len(one.data))
                    seen.add(one.partition.home)
                if len(seen) == len(brokers):
                    break

    thread = threading.Thread(target=read_both, daemon=True)
    thread.start()
    thread.join(60)

    assert not thread.is_alive()
    cluster.close()


class Silent(Connection):
    """A connection that seems to get no response."""

    def has_received(self, within_s: float = 0.0) -> bool:
        return False


class Unanswered(StaticCluster):
    """A cluster of which no broker says who leads, until `is_over`."""

    def __init__(self, addresses: list[BrokerAddress]) -> None:
        super().__init__(addresses, Connection)
        self.is_asked, self.is_over = threading.Event(), threading.Event()

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        self.is_asked.set()
        self.is_over.wait(60)
        return {}


def test_reader_when_left_while_a_fetcher_asks_who_leads_then_does_not_wait_for_the_answer(
    start_broker: Callable[..., Broker],
) -> None:
    broker = start_broker(num_partitions=2)
    ranges = {TopicPartition("t", 0, one): ReadRange(MessagePosition(0)) for one in range(2)}
    publish(broker, [b"one"])
    cluster = Unanswered([BrokerAddress(0, "127.0.0.1", broker.port)])
    with ClusterReader(cluster, Silent, ranges, max_wait_ms=20, fetcher_count=2) as reader:
        next(reader.polls())
        assert cluster.is_asked.wait(60)
        threads = [one.thread for one in reader._sources if one.thread is not None]
    assert any(one.is_alive() for one in threads)
    cluster.is_over.set()
    for one in threads:
        one.join(60)
        assert not one.is_alive()
    cluster.close()
