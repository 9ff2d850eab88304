"""Producers made from 0.7's properties, before real brokers and what looks like 0.7's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import chain, repeat

import pytest

from broker.client.cluster import Cluster, Connect
from broker.client.static_cluster import StaticCluster
from broker.errors import (
    BrokerUnreachableError,
    ConfigError,
    DeliveryFailedError,
    MessageSizeTooLargeError,
    PluginError,
    RegistryUnreachableError,
    RequestTimeoutError,
)
from broker.producer.broker_connection import BrokerConnection
from broker.producer.config import ProducerConfig
from broker.producer.delivery import Delivery
from broker.producer.dispatcher import Dispatcher
from broker.producer.encoder import json_encoder, text_encoder
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings, ReconnectRule
from broker.protocol.client_requests import Acks
from broker.protocol.codec import decode, encode
from broker.protocol.message_set import iter_entries
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.integration.broker.factories import BrokerFactory, ConnectionFactory, ServerFactory
from tests.integration.broker.peers import Server, as_true_07_broker, stay_silent
from tests.integration.broker.server.peer import Peer
from tests.support.fake_broker import FakeBroker, FakeConnection, Reports, parts_with

ProducerFactory = Callable[..., Producer]
MODES = ["sync", "async"]


def settings_of(peer: Broker | Server | None, **properties: object) -> ProducerConfig:
    """Return settings; underscores in names stand for dots."""
    texts = {name.replace("_", "."): str(value) for name, value in properties.items()}
    if peer is not None:
        texts["broker.list"] = f"127.0.0.1:{peer.port}"
    return ProducerConfig.from_properties(texts)


@pytest.fixture
def open_producer() -> Iterator[ProducerFactory]:
    """Make producers for one peer, closed at the end; properties by name."""
    made: list[Producer] = []
    parts = ("partitioner", "encoder", "callbacks", "on_delivery")

    def make(peer: Broker | Server, **settings: object) -> Producer:
        given = {name: settings.pop(name) for name in parts if name in settings}
        config = settings_of(peer, **settings)
        made.append(Producer.from_config(config, **given))  # type: ignore[arg-type]  # by name
        return made[-1]

    yield make
    for producer in made:
        with suppress(DeliveryFailedError):  # of messages a test has left in the queue
            producer.close(timeout_s=0)


@pytest.fixture
def peer(running_broker: Broker) -> Iterator[Peer]:
    with Peer(running_broker.port) as connected:
        yield connected


def stored(peer: Peer, topic: str = "events", index: int = 0) -> bytes:
    code, data = peer.fetch(topic, 0, max_bytes=1 << 28, index=index)
    assert code == 0
    return bytes(data)


def payloads_of(peer: Peer, topic: str = "events", index: int = 0) -> list[bytes]:
    return [payload for _, _, payload in decode(stored(peer, topic, index), 0).messages]


@pytest.mark.parametrize("mode", MODES)
def test_send_when_made_of_properties_then_delivered_and_reported(
    running_broker: Broker, peer: Peer, open_producer: ProducerFactory, mode: str
) -> None:
    reports = Reports()
    producer = open_producer(running_broker, producer_type=mode, on_delivery=reports)
    producer.send("events", [b"one", b"two"], key=b"k")
    producer.flush()
    assert payloads_of(peer) == [b"one", b"two"]
    assert [(one.offset, one.error, one.key) for one in reports.all] == [
        (0, None, b"k"),
        (13, None, b"k"),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_send_when_broker_is_restarted_meanwhile_then_each_message_is_stored_once(
    start_broker: BrokerFactory, open_producer: ProducerFactory, mode: str
) -> None:
    first = start_broker()
    producer = open_producer(
        first, producer_type=mode, num_retries="20", retry_backoff_ms="20", batch_size="10"
    )
    producer.send("events", [b"0"])
    producer.flush()

    def restart() -> None:
        first.stop()
        start_broker(port=first.port)

    restarting = threading.Thread(target=restart)
    restarting.start()
    count = 1
    while restarting.is_alive() or count < 1000:
        producer.send("events", [b"%d" % count])
        count += 1
    restarting.join()
    producer.flush()
    with Peer(first.port) as peer:
        assert payloads_of(peer) == [b"%d" % number for number in range(count)]


def test_send_when_synchronous_then_acknowledged_when_it_returns(
    running_broker: Broker, peer: Peer, open_producer: ProducerFactory
) -> None:
    producer = open_producer(running_broker)
    assert producer.send("events", [b"one"]).is_done
    assert payloads_of(peer) == [b"one"]


def test_send_when_synchronous_and_refused_then_raises(
    start_broker: BrokerFactory, open_producer: ProducerFactory
) -> None:
    reports = Reports()
    producer = open_producer(start_broker(max_message_bytes=10), on_delivery=reports)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send("events", [bytes(11)])
    assert isinstance(reports.all[0].error, MessageSizeTooLargeError)
    assert producer.send("events", [bytes(10)]).base_offset == 0


@pytest.mark.parametrize("mode", MODES)
def test_send_when_topics_are_to_be_compressed_then_only_those(
    running_broker: Broker, peer: Peer, open_producer: ProducerFactory, mode: str
) -> None:
    producer = open_producer(
        running_broker, producer_type=mode, compression_codec="snappy", compressed_topics="a, b"
    )
    for topic in ("a", "c"):
        producer.send(topic, [b"x" * 100] * 3)
    producer.flush()
    found = {t: [e.codec for e in iter_entries(stored(peer, t), 0)] for t in ("a", "c")}
    assert found == {"a": [2], "c": [0, 0, 0]}


@pytest.mark.parametrize("mode", MODES)
def test_send_when_compression_makes_it_too_large_then_goes_uncompressed(
    running_broker: Broker, peer: Peer, open_producer: ProducerFactory, mode: str
) -> None:
    producer = open_producer(
        running_broker, producer_type=mode, compression_codec="gzip", max_message_size=5
    )
    producer.send("events", [b"12345"])
    producer.flush()
    assert len(stored(peer)) == 15


@pytest.mark.parametrize("mode", MODES)
def test_send_when_encoder_is_given_then_makes_the_payloads(
    running_broker: Broker, peer: Peer, open_producer: ProducerFactory, mode: str
) -> None:
    producer = open_producer(running_broker, producer_type=mode, encoder=json_encoder)
    producer.send("events", [{"a": "ä"}, b"no".decode()])
    producer.flush()
    assert payloads_of(peer) == ['{"a":"ä"}'.encode(), b'"no"']


def test_text_encoder_when_given_text_then_utf8() -> None:
    assert text_encoder("ä") == b"\xc3\xa4"


@pytest.mark.parametrize("mode", MODES)
def test_send_when_partitioner_is_given_then_places_messages(
    start_broker: BrokerFactory, open_producer: ProducerFactory, mode: str
) -> None:
    broker = start_broker(num_partitions=3)
    producer = open_producer(broker, producer_type=mode, partitioner=lambda key, count: count - 1)
    for _ in range(2):  # for the topic's first message, too
        assert producer.send("events", [b"one"]).partition == TopicPartition("events", 0, 2)


@pytest.mark.parametrize("mode", MODES)
def test_send_when_partitioner_picks_no_partition_then_says_so(
    running_broker: Broker, open_producer: ProducerFactory, mode: str
) -> None:
    producer = open_producer(
        running_broker, producer_type=mode, partitioner=lambda key, count: count
    )
    with pytest.raises(PluginError, match=r"topic 'events': .* picks place 1 of the 1 partitions"):
        producer.send("events", [b"one"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_wait_until_readable_when_over_then_all_can_be_read(
    start_broker: BrokerFactory, open_producer: ProducerFactory, mode: str, acks: str
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000, flush_interval_messages=1_000_000)
    producer = open_producer(broker, producer_type=mode, request_required_acks=acks)
    producer.send("events", [b"one"])
    producer.wait_until_readable()
    with Peer(broker.port) as peer:
        assert payloads_of(peer) == [b"one"]


@pytest.mark.parametrize("mode", MODES)
def test_send_when_broker_is_of_0_7_then_handed_over_and_reported_without_offset(
    old_broker: Server, peer: Peer, open_producer: ProducerFactory, mode: str
) -> None:
    reports = Reports()
    producer = open_producer(
        old_broker, producer_type=mode, on_delivery=reports, reconnect_interval="2"
    )
    for number in range(5):
        producer.send("events", [b"%d" % number])
        producer.flush()
    producer.wait_until_readable()
    assert payloads_of(peer) == [b"%d" % number for number in range(5)]
    assert [(one.offset, one.error) for one in reports.all] == [(-1, None)] * 5


def test_send_when_broker_of_0_7_has_several_partitions_then_one_request_brings_all(
    start_broker: BrokerFactory, start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    broker = start_broker(num_partitions=2)
    old = start_server(as_true_07_broker(broker.port))
    producer = open_producer(
        old,
        producer_type="async",
        queue_time="3600000",
        partitioner=lambda key, count: int(key or b"0"),
    )
    producer.send("events", [b"one"], key=b"0")
    producer.send("events", [b"two"], key=b"1")
    producer.wait_until_readable()
    with Peer(broker.port) as peer:
        assert payloads_of(peer, index=0) == [b"one"]
        assert payloads_of(peer, index=1) == [b"two"]


@pytest.mark.parametrize("mode", MODES)
def test_send_when_reconnect_interval_is_reached_then_on_a_new_connection(
    running_broker: Broker,
    peer: Peer,
    start_server: ServerFactory,
    open_producer: ProducerFactory,
    mode: str,
) -> None:
    relay = start_server(relay_to(running_broker.port))
    producer = open_producer(relay, producer_type=mode, reconnect_interval="2")
    producer.partitions("events")
    before = relay.connection_count
    for number in range(6):
        producer.send("events", [b"%d" % number])
        producer.flush()
    assert relay.connection_count - before == 3
    assert payloads_of(peer) == [b"%d" % number for number in range(6)]


def test_send_when_reconnect_time_is_over_then_on_a_new_connection(
    running_broker: Broker, start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    relay = start_server(relay_to(running_broker.port))
    producer = open_producer(relay, reconnect_time_interval_ms="0")
    producer.partitions("events")
    before = relay.connection_count
    for _ in range(3):
        producer.send("events", [b"one"])
    assert relay.connection_count - before == 3


def relay_to(port: int) -> Callable[[socket.socket], None]:
    """Return what copies both ways between a client and a broker."""

    def serve(sock: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            back = threading.Thread(target=copy, args=(upstream, sock))
            back.start()
            copy(sock, upstream)
            back.join()

    return serve


def copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.mark.parametrize("mode", MODES)
def test_send_when_broker_never_answers_then_fails_within_the_socket_timeout(
    start_server: ServerFactory, open_producer: ProducerFactory, mode: str
) -> None:
    silent = start_server(stay_silent)
    producer = open_producer(silent, producer_type=mode, socket_timeout_ms="50", num_retries="0")
    with pytest.raises(RequestTimeoutError, match=r"did nothing for \d\S*s"):
        producer.send("events", [b"one"])


def test_close_when_broker_is_down_then_all_is_reported_within_the_timeout(
    start_broker: BrokerFactory, open_producer: ProducerFactory
) -> None:
    broker, reports = start_broker(), Reports()
    producer = open_producer(
        broker, producer_type="async", on_delivery=reports, queue_time="3600000"
    )
    producer.send("events", [b"one"]).wait(0)
    producer.flush()
    broker.stop()
    producer.send("events", [b"two", b"three"])
    producer.close(timeout_s=0.2)
    errors = reports.errors
    assert errors.pop(b"one") is None
    assert set(errors) == {b"two", b"three"}
    reasons = ("refused", "lost", "closed before")  # the last, if it has not come to an attempt
    assert all(any(one in str(error) for one in reasons) for error in errors.values())


@pytest.mark.parametrize(
    "properties", [{}, {"zk_connect": "127.0.0.1:1", "broker_list": "127.0.0.1:1"}]
)
def test_from_config_when_not_exactly_one_way_to_brokers_then_refused(
    properties: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match=r"either zk\.connect or broker\.list"):
        Producer.from_config(settings_of(None, **properties))


def test_from_config_when_a_broker_address_is_malformed_then_names_the_property() -> None:
    with pytest.raises(ConfigError, match=r"broker\.list: 'nonsense:port' is no broker address"):
        Producer.from_config(settings_of(None, broker_list="nonsense:port"))


def test_from_config_when_zookeeper_is_not_there_then_says_so_after_the_timeout() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    config = settings_of(None, zk_connect=f"127.0.0.1:{port}", zk_connectiontimeout_ms="100")
    threads = set(threading.enumerate())
    with pytest.raises(RegistryUnreachableError):
        Producer.from_config(config)
    left = set(threading.enumerate()) - threads
    assert not [one for one in left if one.name.startswith("producer")]


@pytest.fixture
def second_broker(start_broker: BrokerFactory, tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """A broker with id 1."""
    return start_broker(broker_id=1, data_dir=tmp_path_factory.mktemp("second"))


class OneBroker(Cluster):
    """Broker 0, wherever `find` says that it is."""

    def __init__(self, find: Callable[[], BrokerAddress]) -> None:
        self.find = find

    def brokers(self) -> list[BrokerAddress]:
        return [self.find()]

    def topics(self) -> list[str]:
        return []

    def partitions(self, topic: str) -> list[TopicPartition]:
        return []

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return self.find()

    def address(self, broker_id: int) -> BrokerAddress:
        return self.find()

    def leader_id(self, partition: TopicPartition) -> int:
        return 0


def make_topic(port: int, topic: str) -> None:
    with Peer(port) as peer:
        peer.make_topics([topic])


def dispatcher_to(find: Callable[[], BrokerAddress], connect: Connect) -> Dispatcher:
    settings = ProducerSettings(backoff_s=0.01, max_in_flight=4)
    return Dispatcher(parts_with(OneBroker(find), connect, settings))


def connection_to(
    find: Callable[[], BrokerAddress],
    connect: Connect,
    reconnect: ReconnectRule = ReconnectRule(),  # noqa: B008  # a value
) -> BrokerConnection:
    parts = parts_with(OneBroker(find), connect, ProducerSettings(reconnect=reconnect))
    return BrokerConnection(parts, 0)


def test_dispatcher_when_another_broker_has_the_address_then_looks_for_its_own(
    running_broker: Broker, second_broker: Broker, open_connection: ConnectionFactory
) -> None:
    """A port that a broker left can be given to another one before the registry says so."""
    ports = chain([second_broker.port], repeat(running_broker.port))
    make_topic(running_broker.port, "events")
    dispatcher = dispatcher_to(lambda: BrokerAddress(0, "127.0.0.1", next(ports)), open_connection)
    delivery = Delivery(TopicPartition("events", 0, 0), encode([b"one"]))
    dispatcher.send(delivery)
    dispatcher.flush()
    dispatcher.close()
    assert delivery.result() == 0
    with Peer(running_broker.port) as peer:
        assert payloads_of(peer) == [b"one"]


def test_dispatcher_when_broker_comes_back_at_another_address_then_follows_it(
    start_broker: BrokerFactory, open_connection: ConnectionFactory
) -> None:
    brokers = [start_broker()]
    make_topic(brokers[0].port, "events")
    dispatcher = dispatcher_to(
        lambda: BrokerAddress(0, "127.0.0.1", brokers[-1].port), open_connection
    )
    deliveries = [Delivery(TopicPartition("events", 0, 0), encode([b"%d" % n])) for n in range(4)]
    for delivery in deliveries[:2]:
        dispatcher.send(delivery)
    dispatcher.flush()
    brokers[0].stop()
    brokers.append(start_broker())
    for delivery in deliveries[2:]:
        dispatcher.send(delivery)
    dispatcher.flush()
    dispatcher.close()
    assert [delivery.result() for delivery in deliveries] == [0, 11, 22, 33]


def test_dispatcher_when_broker_is_nowhere_then_asks_until_it_is_found(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    asked: list[int] = []

    def find() -> BrokerAddress:
        asked.append(1)
        if len(asked) < 5:
            raise BrokerUnreachableError("nowhere")
        return BrokerAddress(0, "127.0.0.1", running_broker.port)

    make_topic(running_broker.port, "events")
    dispatcher = dispatcher_to(find, open_connection)
    delivery = Delivery(TopicPartition("events", 0, 0), encode([b"one"]))
    dispatcher.send(delivery)
    dispatcher.flush()
    dispatcher.close()
    assert delivery.result() == 0


def test_retry_now_when_broker_has_moved_then_a_request_to_its_old_address_fails() -> None:
    broker = FakeBroker()
    address = BrokerAddress(0, "fake", 1)
    connection = connection_to(
        lambda: address,
        lambda at: FakeConnection(broker, at),  # type: ignore[arg-type, return-value]  # as used
    )
    connection.retry_now()
    connection.open()
    connection.retry_now()
    assert not broker.is_interrupted
    address = address._replace(port=2)
    connection.retry_now()
    assert broker.is_interrupted


def test_broker_connection_when_never_opened_then_has_no_connection(
    open_connection: ConnectionFactory,
) -> None:
    connection = connection_to(lambda: BrokerAddress(0, "127.0.0.1", 1), open_connection)
    with pytest.raises(BrokerUnreachableError, match="no connection to broker 0"):
        _ = connection.current


def test_reconnect_rule_when_there_is_none_then_never_due(
    open_connection: ConnectionFactory,
) -> None:
    connection = connection_to(lambda: BrokerAddress(0, "127.0.0.1", 1), open_connection)
    connection.request_count += 1
    assert not connection.is_reconnect_due
    counted = connection_to(
        lambda: BrokerAddress(0, "127.0.0.1", 1), open_connection, ReconnectRule(requests=1)
    )
    counted.request_count += 1
    assert counted.is_reconnect_due
    counted.reconnect()
    assert not counted.is_reconnect_due


def test_static_cluster_when_flush_returns_then_reports_have_come(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    reports = Reports()
    cluster = StaticCluster([BrokerAddress(-1, "127.0.0.1", running_broker.port)], open_connection)
    with Producer(
        cluster, open_connection, ProducerSettings(acks=Acks.WRITTEN), on_delivery=reports
    ) as producer:
        producer.send("events", [b"one"])
        producer.flush()
        assert reports.offsets == [0]
    cluster.close()
