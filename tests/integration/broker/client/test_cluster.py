from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConfigError,
    InvalidTopicError,
)
from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    ServerFactory,
    address_of,
)
from tests.integration.broker.peers import Server, answer_each, as_true_07_broker
from tests.integration.broker.server.peer import Peer

ClusterFactory = Callable[..., StaticCluster]


@pytest.fixture
def connect(open_connection: ConnectionFactory) -> Connect:
    """Make connections that give up soon, for brokers that are not there."""
    return partial(open_connection, connect_timeout_s=0.2)


@pytest.fixture
def open_cluster(connect: Connect) -> Iterator[ClusterFactory]:
    """Make static clusters of brokers or addresses; closed at the end."""
    clusters: list[StaticCluster] = []

    def make(*peers: Broker | Server | BrokerAddress) -> StaticCluster:
        addresses = [one if isinstance(one, BrokerAddress) else address_of(one) for one in peers]
        cluster = StaticCluster(addresses, connect)
        clusters.append(cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def two_brokers(start_broker: BrokerFactory, tmp_path: Path) -> tuple[Broker, Broker]:
    """Brokers 1 and 5; `events` has two partitions on the first and one on the second."""
    first = start_broker(broker_id=1, data_dir=tmp_path / "1", num_partitions=2)
    second = start_broker(broker_id=5, data_dir=tmp_path / "5")
    for broker in (first, second):
        with Peer(broker.port) as peer:
            peer.publish("events", encode([b"x"]))
    with Peer(second.port) as peer:
        peer.publish("audit", encode([b"x"]))
    return first, second


def test_brokers_when_asked_then_under_the_ids_they_give_themselves(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    first, second = two_brokers
    cluster = open_cluster(second, first)
    assert cluster.brokers() == [(1, "127.0.0.1", first.port), (5, "127.0.0.1", second.port)]


def test_topics_when_asked_then_of_all_brokers(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    assert open_cluster(*two_brokers).topics() == ["audit", "events"]


def test_partitions_when_asked_then_of_all_brokers_by_home_and_index(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    first, second = two_brokers
    assert open_cluster(second, first).partitions("events") == [
        TopicPartition("events", 1, 0),
        TopicPartition("events", 1, 1),
        TopicPartition("events", 5, 0),
    ]


def test_partitions_when_topic_is_unknown_then_none(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    assert open_cluster(*two_brokers).partitions("nothing") == []


def test_partitions_when_topic_is_illegal_then_says_so(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    with pytest.raises(InvalidTopicError):
        open_cluster(*two_brokers).partitions("a/b")


def test_partitions_when_topic_was_created_but_is_empty_then_all_of_them(
    running_broker: Broker, open_cluster: ClusterFactory, open_connection: ConnectionFactory
) -> None:
    open_connection(address_of(running_broker)).call(CreateTopicRequest("events", 3))
    assert len(open_cluster(running_broker).partitions("events")) == 3


def test_leader_when_asked_then_the_home_broker(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    leader = open_cluster(*two_brokers).leader(TopicPartition("events", 5, 0))
    assert leader == (5, "127.0.0.1", two_brokers[1].port)


def test_leader_when_home_is_not_listed_then_says_which_are(
    running_broker: Broker, open_cluster: ClusterFactory
) -> None:
    with pytest.raises(BrokerUnreachableError) as raised:
        open_cluster(running_broker).leader(TopicPartition("events", 9, 0))
    assert str(raised.value) == (
        f"events[9-0] is on broker 9, which is not among 127.0.0.1:{running_broker.port}"
    )


def test_leader_when_another_listed_broker_is_down_then_found_all_the_same(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    first, second = two_brokers
    cluster = open_cluster(second, first)
    assert cluster.leader(TopicPartition("events", 5, 0)).port == second.port
    first.stop()
    assert cluster.leader(TopicPartition("events", 5, 0)).port == second.port


def test_cluster_when_one_broker_is_down_then_uses_the_others_and_tells_once(
    two_brokers: tuple[Broker, Broker], connect: Connect
) -> None:
    first, second = two_brokers
    first.stop()
    told: list[BrokerError] = []
    addresses = [address_of(first), address_of(second)]
    cluster = StaticCluster(addresses, connect, on_absent=told.append, retry_after_s=0)
    with closing(cluster):
        assert cluster.brokers() == [(5, "127.0.0.1", second.port)]
        assert cluster.topics() == ["audit", "events"]
        assert cluster.partitions("events") == [TopicPartition("events", 5, 0)]
        assert cluster.leader(TopicPartition("events", 5, 0)).port == second.port
    (error,) = told
    assert f"127.0.0.1:{first.port}: connection refused" in str(error)


def test_cluster_when_a_broker_goes_down_then_it_is_left_out_until_it_is_back(
    two_brokers: tuple[Broker, Broker],
    connect: Connect,
    start_broker: BrokerFactory,
    tmp_path: Path,
) -> None:
    first, second = two_brokers
    told: list[BrokerError] = []
    addresses = [address_of(first), address_of(second)]
    cluster = StaticCluster(addresses, connect, on_absent=told.append, retry_after_s=0)
    with closing(cluster):
        assert [one.id for one in cluster.brokers()] == [1, 5]
        first.stop()
        assert [one.home for one in cluster.partitions("events")] == [5]
        assert [one.id for one in cluster.brokers()] == [5]
        port = address_of(first).port
        start_broker(broker_id=1, data_dir=tmp_path / "1", port=port, num_partitions=2)
        assert [one.home for one in cluster.partitions("events")] == [1, 1, 5]
        assert [one.id for one in cluster.brokers()] == [1, 5]
    assert len(told) == 1


def test_cluster_when_a_broker_did_not_answer_then_it_is_left_alone_for_a_while(
    two_brokers: tuple[Broker, Broker], connect: Connect
) -> None:
    first, second = two_brokers
    first.stop()
    addresses = [address_of(first), address_of(second)]
    with closing(StaticCluster(addresses, connect, retry_after_s=3600)) as cluster:
        cluster.topics()
        with socket.create_server(("127.0.0.1", address_of(first).port)) as listener:
            listener.setblocking(False)
            assert cluster.topics() == ["audit", "events"]
            with pytest.raises(BlockingIOError):
                listener.accept()


def test_cluster_when_a_broker_hangs_then_another_is_asked_and_does_not_wait_for_its_timeout(
    two_brokers: tuple[Broker, Broker],
    start_server: ServerFactory,
    open_connection: ConnectionFactory,
) -> None:
    hanging = start_server(answer_each(versions={ClusterMetadataRequest.TYPE: (0, 9)}))
    addresses = [address_of(hanging), address_of(two_brokers[1])]
    connect = partial(open_connection, timeout_s=3600.0)
    with closing(StaticCluster(addresses, connect, on_absent=lambda _: None)) as cluster:
        assert cluster.topics() == ["audit", "events"]


def test_cluster_when_a_broker_greets_and_then_takes_long_then_it_has_the_timeout(
    two_brokers: tuple[Broker, Broker],
    start_server: ServerFactory,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.client.static_cluster.FIRST_RESPONSE_S", 2.0)

    def respond_late(sock: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", two_brokers[1].port)) as upstream:
            for pause_s in (0.0, 2.5):
                upstream.sendall(sock.recv(1 << 16))
                response = upstream.recv(1 << 16)
                threading.Event().wait(pause_s)
                sock.sendall(response)

    with closing(StaticCluster([start_server(respond_late).address], connect)) as cluster:
        assert cluster.topics() == ["audit", "events"]


def test_cluster_when_all_are_down_then_names_each_and_tells_nothing_else(
    two_brokers: tuple[Broker, Broker], connect: Connect
) -> None:
    told: list[BrokerError] = []
    addresses = [address_of(broker) for broker in two_brokers]
    cluster = StaticCluster(addresses, connect, on_absent=told.append)
    with closing(cluster):
        assert len(cluster.brokers()) == 2
        for broker in two_brokers:
            broker.stop()
        with pytest.raises(BrokerUnreachableError, match=r"^no broker answers: ") as raised:
            cluster.partitions("events")
    assert all(f"127.0.0.1:{one.port}" in str(raised.value) for one in addresses)
    assert told == []


def test_cluster_when_all_were_away_then_asks_each_as_soon_as_it_is_needed(
    start_broker: BrokerFactory, connect: Connect, tmp_path: Path
) -> None:
    first = start_broker(broker_id=1, data_dir=tmp_path / "1")
    second = start_broker(broker_id=5, data_dir=tmp_path / "5")
    addresses = [address_of(first), address_of(second)]
    with closing(StaticCluster(addresses, connect, retry_after_s=3600)) as cluster:
        second.stop()
        assert [one.id for one in cluster.brokers()] == [1]
        first.stop()
        start_broker(broker_id=5, data_dir=tmp_path / "5", port=addresses[1].port)
        assert cluster.topics() == []
        assert [one.id for one in cluster.brokers()] == [5]


def test_leader_when_its_home_may_be_down_then_says_who_does_not_answer(
    two_brokers: tuple[Broker, Broker], open_cluster: ClusterFactory
) -> None:
    first, second = two_brokers
    first.stop()
    with pytest.raises(BrokerUnreachableError) as raised:
        open_cluster(second, first).leader(TopicPartition("events", 1, 0))
    assert str(raised.value) == (
        f"events[1-0] is on broker 1, which is not among 127.0.0.1:{second.port}; "
        f"there is no answer from 127.0.0.1:{first.port}"
    )


def test_brokers_when_two_have_one_id_then_refused_by_name(
    start_broker: BrokerFactory, open_cluster: ClusterFactory, tmp_path: Path
) -> None:
    first = start_broker(data_dir=tmp_path / "1")
    second = start_broker(data_dir=tmp_path / "2")
    with pytest.raises(ConfigError) as raised:
        open_cluster(first, second).brokers()
    assert str(raised.value) == (
        f"127.0.0.1:{first.port} and 127.0.0.1:{second.port} both are broker 0: "
        "the brokers of one cluster need different ids"
    )


def test_partitions_when_a_broker_is_listed_twice_then_counted_once(
    running_broker: Broker, open_cluster: ClusterFactory
) -> None:
    with Peer(running_broker.port) as peer:
        peer.publish("events", encode([b"x"]))
    cluster = open_cluster(running_broker, running_broker)
    assert cluster.partitions("events") == [TopicPartition("events", 0, 0)]


def test_partitions_when_connections_were_closed_as_idle_then_made_again(
    start_broker: BrokerFactory, open_cluster: ClusterFactory, start_server: ServerFactory
) -> None:
    broker = start_broker(num_partitions=2)
    with Peer(broker.port) as peer:
        peer.publish("events", encode([b"x"]))

    def relay(sock: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", broker.port)) as upstream:
            while frame := sock.recv(1 << 16):
                upstream.sendall(frame)
                sock.sendall(upstream.recv(1 << 16))

    server = start_server(relay)
    cluster = open_cluster(server)
    assert len(cluster.partitions("events")) == 2
    server.drop_connections()
    assert len(cluster.partitions("events")) == 2
    server.drop_connections()
    assert cluster.topics() == ["events"]


def test_brokers_when_of_0_7_then_the_listed_id_or_its_place(
    old_broker: Server, open_cluster: ClusterFactory
) -> None:
    address = address_of(old_broker)
    assert open_cluster(address).brokers() == [address._replace(id=0)]
    assert open_cluster(address._replace(id=8)).brokers() == [address._replace(id=8)]


def test_partitions_when_broker_is_of_0_7_then_found_by_trying(
    start_broker: BrokerFactory, start_server: ServerFactory, open_cluster: ClusterFactory
) -> None:
    broker = start_broker(topic_partition_counts={"events": 3})
    server = start_server(as_true_07_broker(broker.port))
    cluster = open_cluster(address_of(server)._replace(id=2))
    assert cluster.partitions("events") == [TopicPartition("events", 2, n) for n in range(3)]


def test_topics_when_broker_is_of_0_7_then_unknown(
    old_broker: Server, running_broker: Broker, open_cluster: ClusterFactory
) -> None:
    with Peer(running_broker.port) as peer:
        peer.publish("events", encode([b"x"]))
    assert open_cluster(old_broker).topics() == []


def test_connection_when_given_to_a_cluster_then_closed_with_it(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    made: list[Connection] = []

    def connect(address: BrokerAddress) -> Connection:
        made.append(open_connection(address))
        return made[-1]

    cluster = StaticCluster([address_of(running_broker)], connect)
    cluster.topics()
    cluster.close()
    assert [one.is_open for one in made] == [False]
