from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.errors import (
    BrokerUnreachableError,
    InvalidMessageError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    ProtocolError,
    RequestTimedOutError,
    RequestTimeoutError,
    UnsupportedVersionError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.producer.delivery import Delivery
from broker.producer.partitioner import Partitioner, hash_partitioner, round_robin_partitioner
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import Acks
from broker.protocol.codec import decode, encode
from broker.protocol.compression import Codec
from broker.protocol.framing import encode_frame
from broker.protocol.primitives import INT16
from broker.protocol.requests import RequestType
from broker.protocol.responses import (
    HELLO,
    BrokerAddress,
    HelloResponse,
    Published,
    encode_extension_error,
    encode_extension_response,
    encode_publish_response,
)
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.integration.broker.factories import (
    BrokerFactory,
    ConnectionFactory,
    ServerFactory,
    address_of,
)
from tests.integration.broker.peers import Serve, Server, as_true_07_broker, stay_silent
from tests.integration.broker.server.peer import Peer
from tests.support.framing import FrameDecoder
from tests.support.waiting import wait_until

EVENTS = TopicPartition("events", 0, 0)
ONE = encode([b"one"])

ProducerFactory = Callable[..., Producer]


@pytest.fixture
def open_producer(open_connection: ConnectionFactory) -> Iterator[ProducerFactory]:
    """Make producers for brokers or stand-ins; closed at the end."""
    made: list[tuple[Producer, StaticCluster]] = []

    def make(
        *peers: Broker | Server,
        partitioner: Partitioner = hash_partitioner,
        acks: Acks = Acks.COMMITTED,
        codec: Codec = Codec.NONE,
        max_in_flight: int = 8,
        max_message_bytes: int = 1_000_000,
        retries: int = 3,
        timeout_s: float = 60.0,
    ) -> Producer:
        cluster = StaticCluster([address_of(one) for one in peers], open_connection)
        producer = Producer(
            cluster,
            open_connection,
            ProducerSettings(
                acks=acks,
                codec=codec,
                max_in_flight=max_in_flight,
                max_message_bytes=max_message_bytes,
                retries=retries,
                timeout_s=timeout_s,
            ),
            partitioner=partitioner,
        )
        made.append((producer, cluster))
        return producer

    yield make
    for producer, cluster in made:
        producer.close()
        cluster.close()


@pytest.fixture
def peer(running_broker: Broker) -> Iterator[Peer]:
    with Peer(running_broker.port) as connected:
        yield connected


def payloads_of(peer: Peer, topic: str = "events", index: int = 0) -> list[bytes]:
    """Return what can be read of a partition."""
    code, data = peer.fetch(topic, 0, max_bytes=1 << 28, index=index)
    assert code == 0
    return [payload for _, _, payload in decode(data, 0).messages]


def test_send_when_acknowledged_then_readable_at_the_offset_told(
    peer: Peer, running_broker: Broker, open_producer: ProducerFactory
) -> None:
    producer = open_producer(running_broker)
    first = producer.send("events", [b"one"])
    second = producer.send("events", [b"two", b"three"])
    producer.flush()
    assert (first.result(), second.result()) == (0, len(ONE))
    assert payloads_of(peer) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("acks", [Acks.NONE, Acks.WRITTEN, Acks.COMMITTED])
def test_wait_until_readable_when_over_then_all_is_readable_whatever_the_acks(
    acks: Acks, peer: Peer, running_broker: Broker, open_producer: ProducerFactory
) -> None:
    producer = open_producer(running_broker, acks=acks)
    for number in range(100):
        producer.send("events", [b"%d" % number])
    producer.wait_until_readable()
    assert payloads_of(peer) == [b"%d" % number for number in range(100)]


def test_send_when_acks_are_none_then_done_at_once_without_offset(
    running_broker: Broker, open_producer: ProducerFactory
) -> None:
    delivery = open_producer(running_broker, acks=Acks.NONE).send("events", [b"one"])
    assert (delivery.is_done, delivery.error, delivery.base_offset) == (True, None, -1)


def test_send_when_window_is_full_then_waits_for_the_oldest(
    running_broker: Broker, open_producer: ProducerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_flush = threading.Event()
    flush = Log.flush

    def flush_later(log: Log) -> None:
        may_flush.wait(60)
        flush(log)

    monkeypatch.setattr(Log, "flush", flush_later)
    producer = open_producer(running_broker, max_in_flight=3)

    sent: list[Delivery] = []

    def send_five() -> None:
        for _ in range(5):
            sent.append(producer.send("events", [b"one"]))
        producer.flush()

    sending = threading.Thread(target=send_five)
    sending.start()
    wait_until(lambda: len(sent) == 3, "three sets are sent")
    sending.join(0.1)
    assert len(sent) == 3
    may_flush.set()
    sending.join()
    assert running_broker.status()["bytes"] == 5 * len(ONE)


def test_send_when_one_set_is_refused_then_only_its_delivery_fails(
    peer: Peer, start_broker: BrokerFactory, running_broker: Broker, open_producer: ProducerFactory
) -> None:
    producer = open_producer(running_broker)
    deliveries = [
        producer.send_set(EVENTS, ONE),
        producer.send_set(EVENTS, ONE[:-1] + b"?"),
        producer.send_set(TopicPartition("events", 0, 5), ONE),
        producer.send_set(EVENTS, encode([b"x" * 1_000_001])),
        producer.send_set(EVENTS, ONE),
    ]
    producer.flush()
    assert [type(one.error) for one in deliveries] == [
        type(None),
        InvalidMessageError,
        WrongPartitionError,
        MessageSizeTooLargeError,
        type(None),
    ]
    with pytest.raises(WrongPartitionError, match="has no partition 5"):
        deliveries[2].result()
    assert payloads_of(peer) == [b"one", b"one"]


def test_send_when_broker_cannot_flush_in_time_then_delivery_says_so(
    running_broker: Broker, open_producer: ProducerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_flush = threading.Event()
    flush = Log.flush
    monkeypatch.setattr(Log, "flush", lambda log: may_flush.wait(60) and flush(log))
    producer = open_producer(running_broker, timeout_s=1.0, retries=0)
    delivery = producer.send("events", [b"one"])
    # the broker says so, or if that comes late, the producer
    with pytest.raises((RequestTimedOutError, RequestTimeoutError)):
        producer.flush()
    may_flush.set()
    assert isinstance(delivery.error, RequestTimedOutError | RequestTimeoutError)


def test_send_when_message_is_too_large_then_nothing_is_sent(
    peer: Peer, running_broker: Broker, open_producer: ProducerFactory
) -> None:
    producer = open_producer(running_broker, max_message_bytes=10)
    with pytest.raises(MessageSizeTooLargeError, match="a message has 11 bytes; the limit is 10"):
        producer.send("events", [b"fine", b"x" * 11])
    producer.flush()
    assert peer.status()["topics"] == 0


def test_send_when_topic_is_illegal_then_says_so(
    running_broker: Broker, open_producer: ProducerFactory
) -> None:
    with pytest.raises(InvalidTopicError):
        open_producer(running_broker).send("a/b", [b"one"])


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_send_when_codec_is_given_then_one_wrapper(
    codec: Codec, peer: Peer, running_broker: Broker, open_producer: ProducerFactory
) -> None:
    with open_producer(running_broker, codec=codec) as producer:
        producer.send("events", [b"same"] * 1000)
    assert payloads_of(peer) == [b"same"] * 1000
    assert running_broker.status()["bytes"] < 1000


def test_send_when_partitioner_is_given_then_partitions_follow_it(
    start_broker: BrokerFactory, open_producer: ProducerFactory
) -> None:
    broker = start_broker(num_partitions=3)
    with Peer(broker.port) as peer:
        peer.publish("events", b"")
    with open_producer(broker, partitioner=round_robin_partitioner()) as producer:
        deliveries = [producer.send("events", [b"one"]) for _ in range(6)]
    assert [one.partition.index for one in deliveries] == [0, 1, 2, 0, 1, 2]


def test_send_when_key_is_given_then_the_partition_of_its_hash(
    start_broker: BrokerFactory, open_producer: ProducerFactory
) -> None:
    broker = start_broker(num_partitions=7)
    with Peer(broker.port) as peer:
        peer.publish("events", b"")
    with open_producer(broker) as producer:
        delivery = producer.send("events", [b"one"], key=b"hello")
    assert delivery.partition.index == 99162322 % 7


def test_send_when_topic_is_new_then_partition_0_of_every_broker_comes_up(
    start_broker: BrokerFactory, open_producer: ProducerFactory, tmp_path: Path
) -> None:
    brokers = [start_broker(broker_id=n, data_dir=tmp_path / str(n)) for n in (1, 2)]
    with open_producer(*brokers, partitioner=round_robin_partitioner()) as producer:
        deliveries = [producer.send("events", [b"%d" % n]) for n in range(4)]
    assert [one.partition for one in deliveries] == [
        TopicPartition("events", home, 0) for home in (1, 2, 1, 2)
    ]
    for broker, expected in zip(brokers, ([b"0", b"2"], [b"1", b"3"]), strict=True):
        with Peer(broker.port) as peer:
            assert payloads_of(peer) == expected


def test_producer_when_its_block_fails_then_does_not_wait(
    running_broker: Broker, open_producer: ProducerFactory
) -> None:
    with pytest.raises(ZeroDivisionError), open_producer(running_broker) as producer:
        producer.send("events", [b"one"])
        raise ZeroDivisionError


def cutting_relay(port: int, cut_after: int) -> Serve:
    """Return what hands publishes on, but cuts its first connection instead of an answer.

    The broker has the sets then; the client cannot know.

    Args:
        port: of the broker.
        cut_after: how many publishes reach the broker over the first connection.
    """
    is_cut = threading.Event()

    def serve(sock: socket.socket) -> None:
        decoder = FrameDecoder()
        publish_count = 0
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            while data := sock.recv(1 << 16):
                decoder.receive_data(data)
                while (frame := decoder.next_frame()) is not None:
                    upstream.sendall(encode_frame(frame))
                    answer = upstream.recv(1 << 16)
                    publish_count += INT16.unpack_from(frame)[0] == RequestType.PUBLISH
                    if publish_count == cut_after and not is_cut.is_set():
                        is_cut.set()
                        return
                    sock.sendall(answer)

    return serve


def test_send_when_connection_is_lost_then_all_in_flight_is_sent_again_in_order(
    peer: Peer,
    running_broker: Broker,
    start_server: ServerFactory,
    open_producer: ProducerFactory,
) -> None:
    relay = start_server(cutting_relay(running_broker.port, cut_after=5))
    producer = open_producer(relay)
    deliveries = [producer.send("events", [b"%d" % number]) for number in range(20)]
    producer.flush()
    assert [one.error for one in deliveries] == [None] * 20
    found = payloads_of(peer)
    assert list(dict.fromkeys(found)) == [b"%d" % number for number in range(20)]
    offsets = [one.result() for one in deliveries]
    assert offsets == sorted(offsets)


def test_send_when_connection_is_reset_then_what_was_acknowledged_before_is_not_sent_again(
    start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    """A client notices the reset when it sends; the acknowledgement waits in its socket then."""
    taken: list[bytes] = []
    is_reset = threading.Event()
    hello = encode_extension_response(1, HELLO.encode(HelloResponse(0, "", "", 1, 1, {})))

    def serve(sock: socket.socket) -> None:
        sock.recv(1 << 16)
        sock.sendall(hello)
        decoder = FrameDecoder()
        while data := sock.recv(1 << 16):
            decoder.receive_data(data)
            while (frame := decoder.next_frame()) is not None:
                correlation_id = int.from_bytes(frame[4:8], "big")
                taken.append(frame[-len(ONE) :])
                if len(taken) == 2:  # this one is lost
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    sock.close()
                    is_reset.set()
                    return
                body = encode_publish_response([Published(EVENTS, 0, 0, "")])
                sock.sendall(encode_extension_response(correlation_id, body))

    server = start_server(serve)
    producer = open_producer(server, codec=Codec.NONE)
    deliveries = [producer.send_set(EVENTS, encode([payload])) for payload in (b"one", b"two")]
    assert is_reset.wait(60)
    deliveries.append(producer.send_set(EVENTS, encode([b"six"])))
    producer.flush()
    assert [one.error for one in deliveries] == [None] * 3
    assert [frame[-3:] for frame in taken] == [b"one", b"two", b"two", b"six"]


def test_send_when_retries_are_off_then_a_lost_connection_fails_all_in_flight(
    running_broker: Broker, start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    relay = start_server(cutting_relay(running_broker.port, cut_after=1))
    producer = open_producer(relay, retries=0)
    delivery = producer.send("events", [b"one"])
    with pytest.raises(BrokerUnreachableError):
        producer.flush()
    assert delivery.is_done
    with pytest.raises(BrokerUnreachableError):
        delivery.result()
    assert producer.send("events", [b"two"]).error is None
    producer.flush()


def test_send_when_broker_restarts_on_its_port_then_goes_on(
    start_broker: BrokerFactory, open_producer: ProducerFactory
) -> None:
    first = start_broker()
    producer = open_producer(first)
    producer.send("events", [b"one"])
    producer.flush()
    first.stop()
    second = start_broker(port=first.port)
    delivery = producer.send("events", [b"two"])
    producer.flush()
    assert delivery.result() == len(ONE)
    with Peer(second.port) as peer:
        assert payloads_of(peer) == [b"one", b"two"]


def test_send_when_broker_is_shutting_down_then_sent_again_to_the_next_one(
    start_broker: BrokerFactory, open_producer: ProducerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sets refused by a broker in its shutdown are not lost if it comes back in time."""
    first = start_broker()
    producer = open_producer(first, retries=10)
    producer.send("events", [b"one"])
    producer.flush()
    may_flush = threading.Event()
    flush_all = LogManager.flush_all

    def flush_later(logs: LogManager) -> None:
        may_flush.wait(60)
        flush_all(logs)

    monkeypatch.setattr(LogManager, "flush_all", flush_later)

    def restart() -> None:
        first.stop()
        start_broker(port=first.port)

    restarting = threading.Thread(target=restart)
    restarting.start()
    wait_until(lambda: first.shutdown.refuses_appends, "the refusal of appends")
    deliveries: list[Delivery] = []

    def send() -> None:  # a send behind a refused one may wait for the broker
        for number in range(5):
            deliveries.append(producer.send("events", [b"%d" % number]))

    sending = threading.Thread(target=send)
    sending.start()
    wait_until(lambda: deliveries, "the first message")
    may_flush.set()
    sending.join()
    producer.flush()
    restarting.join()
    assert [one.error for one in deliveries] == [None] * 5
    with Peer(first.port) as peer:
        assert payloads_of(peer) == [b"one", b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("acks", [Acks.WRITTEN, Acks.COMMITTED])
def test_send_when_broker_is_restarted_meanwhile_then_each_message_is_stored_once(
    start_broker: BrokerFactory, open_producer: ProducerFactory, acks: Acks
) -> None:
    first = start_broker()
    producer = open_producer(first, retries=10, acks=acks, max_in_flight=64)
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
    producer.wait_until_readable()
    with Peer(first.port) as peer:
        assert payloads_of(peer) == [b"%d" % number for number in range(count)]


def test_poll_when_acknowledged_then_deliveries_are_done_without_a_flush(
    running_broker: Broker, open_producer: ProducerFactory
) -> None:
    producer = open_producer(running_broker)
    deliveries = [producer.send("events", [b"one"]) for _ in range(3)]

    def are_done() -> bool:
        producer.poll()
        return all(one.is_done for one in deliveries)

    wait_until(are_done, "the acknowledgements")


def test_wait_until_readable_when_broker_was_stopped_then_what_it_acknowledged_is_safe(
    start_broker: BrokerFactory, open_producer: ProducerFactory, tmp_path: Path
) -> None:
    """A broker that stops flushes before it says that it has stopped."""
    broker = start_broker(flush_interval_ms=3_600_000, flush_interval_messages=1_000_000)
    with Peer(broker.port) as peer:
        peer.publish("events", ONE)
    producer = open_producer(broker, acks=Acks.WRITTEN, retries=0)
    producer.send("events", [b"one"])
    producer.flush()
    broker.stop()
    producer.wait_until_readable()
    (segment,) = (tmp_path / "data" / "events_0").glob("*.pylog")
    assert segment.read_bytes() == ONE * 2


def test_send_when_broker_stays_away_then_unreachable_and_in_flight_fails(
    running_broker: Broker, open_connection: ConnectionFactory
) -> None:
    def connect(address: BrokerAddress) -> Connection:
        return open_connection(address, connect_timeout_s=0.05)

    cluster = StaticCluster([address_of(running_broker)], connect)
    producer = Producer(cluster, connect, ProducerSettings(retries=1))
    producer.send("events", [b"one"])
    producer.flush()
    running_broker.stop()
    delivery = producer.send("events", [b"two"])
    with pytest.raises(BrokerUnreachableError, match="connection refused"):
        producer.flush()
    assert isinstance(delivery.error, BrokerUnreachableError)
    producer.close()
    cluster.close()


def answer_publishes(*answers: Callable[[int], bytes]) -> Serve:
    """Return what answers a hello on each connection, and publishes one after the other."""
    hello = HELLO.encode(HelloResponse(0, "", "", 1, 1, {}))
    left = iter(answers)

    def serve(sock: socket.socket) -> None:
        decoder = FrameDecoder()
        while data := sock.recv(1 << 16):
            decoder.receive_data(data)
            while (frame := decoder.next_frame()) is not None:
                correlation_id = int.from_bytes(frame[4:8], "big")
                match INT16.unpack_from(frame)[0]:
                    case RequestType.HELLO:
                        sock.sendall(encode_extension_response(correlation_id, hello))
                    case RequestType.PUBLISH:
                        answer = next(left, None)
                        if answer is None:
                            stay_silent(sock)
                            return
                        sock.sendall(answer(correlation_id))

    return serve


def good(correlation_id: int) -> bytes:
    body = encode_publish_response([Published(EVENTS, 0, 7, "")])
    return encode_extension_response(correlation_id, body)


def test_send_when_a_publish_is_refused_as_a_whole_then_its_delivery_alone_fails(
    start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    server = start_server(
        answer_publishes(
            lambda number: encode_extension_error(number, UnsupportedVersionError.code, "no"), good
        )
    )
    producer = open_producer(server)
    deliveries = [producer.send_set(EVENTS, ONE), producer.send_set(EVENTS, ONE)]
    producer.flush()
    assert isinstance(deliveries[0].error, UnsupportedVersionError)
    assert deliveries[1].result() == 7


def test_send_when_answers_are_out_of_step_then_all_in_flight_fails(
    start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    server = start_server(answer_publishes(lambda number: good(number + 50), good))
    producer = open_producer(server)
    ended: list[Delivery] = []
    with pytest.raises(ProtocolError, match="came where"):
        producer.send_set(EVENTS, ONE, ended.append)
        producer.flush()
    assert isinstance(ended[0].error, ProtocolError)
    again = producer.send_set(EVENTS, ONE)
    producer.flush()
    assert again.result() == 7


def test_send_when_broker_is_of_0_7_then_produced_and_barrier_waits_for_it(
    peer: Peer, old_broker: Server, open_producer: ProducerFactory
) -> None:
    producer = open_producer(old_broker)
    deliveries = [producer.send("events", [b"%d" % number]) for number in range(50)]
    assert all(one.is_done and one.error is None for one in deliveries)
    producer.wait_until_readable()
    assert payloads_of(peer) == [b"%d" % number for number in range(50)]


def test_wait_until_readable_when_broker_of_0_7_does_not_flush_then_tells_what_is_missing(
    start_broker: BrokerFactory, start_server: ServerFactory, open_producer: ProducerFactory
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000)
    server = start_server(as_true_07_broker(broker.port))
    producer = open_producer(server, timeout_s=0.2)
    producer.send("events", [b"one"])
    with pytest.raises(RequestTimedOutError, match=f"^{len(ONE)} bytes of events"):
        producer.wait_until_readable()
