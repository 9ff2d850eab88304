from __future__ import annotations

import logging
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.errors import InvalidRequestError
from broker.protocol.client_requests import (
    ClusterMetadataRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.cluster_requests import ReassignRequest, RestorePartitionsRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import MAX_CONTROLLER_REQUEST_BYTES
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32
from broker.protocol.replica_requests import ChangeIsrRequest
from broker.protocol.requests import FetchRequest, ProduceRequest, encode_request
from broker.server.broker import Broker
from broker.server.network import connections, processor, quotas
from broker.server.network.quotas import ConnectionCount, PeerLog
from broker.server.network.response_queue import MAX_WAITING_READS
from tests.doubles import FakeClock
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import (
    Peer,
    extension_frame,
    partition,
    publish_request,
    read_request,
)
from tests.support.broker_proof import give_key, prove_to
from tests.support.waiting import wait_until

ONE = encode([b"one message"])


def connection_count(broker: Broker) -> int:
    return int(broker.status()["connections"])


def bad_frames(broker: Broker) -> int:
    return int(broker.status()["metrics"]["SocketServerStats"]["BadFrames"])


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030100a5010000a10303"),
    "size 0": INT32.pack(0),
    "size -1": INT32.pack(-1),
    "least size": INT32.pack(-(2**31)),
    "largest size": INT32.pack(2**31 - 1),
    "one above the limit": INT32.pack(104_857_601),
    "no room for the type": INT32.pack(1) + b"\0",
    "lone type": INT32.pack(2) + b"\0\0",
    "extension without header": INT32.pack(2) + b"\0\x40",
    "extension with half a header": INT32.pack(8) + b"\0\x40" + bytes(6),
    "extension of null client": INT32.pack(10) + b"\0\x40" + bytes(6) + b"\xff\xff",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_connection_when_garbage_comes_then_closed_and_counted(
    data: bytes, running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.send_bytes(data)
    assert peer.is_closed()
    assert bad_frames(running_broker) == 1


def test_connection_when_garbage_comes_on_another_then_goes_on(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    noise = random.Random(7)
    for _ in range(30):
        other = connect(running_broker)
        other.send_bytes(noise.randbytes(noise.randrange(1, 200)))
        other.socket.shutdown(socket.SHUT_WR)
        while other.socket.recv(4096):
            pass
        other.close()
    assert peer.fetch("events", 0) == (0, ONE)


def test_broker_when_frames_are_damaged_at_random_then_serves_on(
    running_broker: Broker, connect: PeerFactory
) -> None:
    """Flip bytes of good requests; whatever they turn into, nothing may break but themselves."""
    noise = random.Random(11)
    good = [
        encode_request(ProduceRequest("events", 0, ONE)),
        encode_request(FetchRequest("events", 0, 0, 1000)),
        extension_frame(publish_request("events", ONE)),
    ]
    for _ in range(300):
        frame = bytearray(noise.choice(good))
        for _ in range(noise.randrange(1, 4)):
            frame[noise.randrange(4, len(frame))] = noise.randrange(256)
        with Peer(running_broker.port) as peer:
            peer.send_bytes(frame)
            peer.socket.shutdown(socket.SHUT_WR)
            try:
                while peer.socket.recv(4096):
                    pass
            except ConnectionResetError:
                continue
    peer = connect(running_broker)
    peer.publish("healthy", ONE)
    assert peer.fetch("healthy", 0) == (0, ONE)


def test_connection_when_frame_has_the_largest_size_then_taken(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    request = ProduceRequest("events", 0, encode([bytes(300_000)]))
    size = len(encode_request(request)) - 4
    peer = connect(start_broker(max_request_bytes=size))
    peer.send(request)
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, request.message_set)


def test_connection_when_frame_is_one_byte_too_large_then_closed(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    request = ProduceRequest("events", 0, encode([bytes(300_000)]))
    size = len(encode_request(request)) - 4
    broker = start_broker(max_request_bytes=size - 1)
    peer = connect(broker)
    peer.send_bytes(encode_request(request)[:100])
    assert peer.is_closed()
    assert bad_frames(broker) == 1


@pytest.mark.parametrize(
    "asked", [ReassignRequest(()), ChangeIsrRequest(7, 1, ()), RestorePartitionsRequest(())]
)
def test_request_to_the_controller_when_longer_than_any_needed_then_refused_without_being_decoded(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path, asked: ExtensionRequest
) -> None:
    frame = extension_frame(asked)[INT32.size : -INT32.size]
    garbage = b"\xff" * (MAX_CONTROLLER_REQUEST_BYTES + 1)  # what is decoded ends the connection
    broker = start_broker(data_dir=give_key(tmp_path))
    peer = connect(broker)
    prove_to(broker, peer.call, 7)
    peer.send_bytes(INT32.pack(len(frame) + len(garbage)) + frame + garbage)
    with pytest.raises(InvalidRequestError, match="too long"):
        peer.receive_extension()
    peer.publish("events", ONE)


@pytest.mark.parametrize(
    "payload_bytes", [200_000, 262_100, 262_200, 999_000, 1_100_000, 3_000_000]
)
def test_produce_when_frame_is_larger_than_a_receive_buffer_then_taken(
    payload_bytes: int, start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    peer = connect(start_broker(max_message_bytes=10_000_000))
    sets = [encode([bytes([n]) * payload_bytes]) for n in range(3)]
    peer.send(*[ProduceRequest("events", 0, one) for one in sets])
    peer.flush("events")
    assert peer.fetch("events", 0, max_bytes=1 << 30) == (0, b"".join(sets))


def test_connection_when_a_frame_drips_in_then_others_are_served_meanwhile(
    running_broker: Broker, connect: PeerFactory
) -> None:
    slow, fast = connect(running_broker), connect(running_broker)
    frame = encode_request(ProduceRequest("events", 0, ONE))
    for place in range(len(frame)):
        slow.send_bytes(frame[place : place + 1])
        fast.publish("others", ONE)
    slow.flush("events")
    assert slow.fetch("events", 0) == (0, ONE)


def test_connection_when_it_ends_inside_a_frame_then_nothing_is_appended(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.publish("events", b"")
    for cut in (1, 3, 4, 5, 20):
        with Peer(running_broker.port) as other:
            other.send_bytes(encode_request(ProduceRequest("events", 0, ONE))[:-cut])
    wait_until(lambda: connection_count(running_broker) == 1, "the end of the others")
    peer.flush("events")
    assert peer.fetch("events", 0) == (0, b"")
    assert bad_frames(running_broker) == 0


def test_connection_when_reset_by_client_then_forgotten_without_a_word(
    running_broker: Broker, connect: PeerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    wait_until(lambda: connection_count(running_broker) == 0, "the end of the connection")
    assert "closed a connection" not in caplog.text


@pytest.mark.parametrize("read_count", [1, MAX_WAITING_READS + 1])
def test_connection_when_its_client_leaves_with_parked_reads_then_closed_without_a_sweep(
    read_count: int,
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With so many that wait the broker does not read from the socket, where it would be told."""
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 3600)
    broker = start_broker()
    peer = connect(broker)
    peer.publish("events", ONE)
    parked = read_request("events", len(ONE), max_wait_ms=600_000)
    peer.send_bytes(extension_frame(parked) * read_count)
    wait_until(lambda: waiting_count(broker) == read_count, "the reads")
    peer.close()
    wait_until(lambda: connection_count(broker) == 0, "the end of the connection")
    assert waiting_count(broker) == 0


def test_connections_when_there_are_too_many_then_refused_until_one_leaves(
    start_broker: BrokerFactory, connect: PeerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start_broker(max_connections=3)
    peers = [connect(broker) for _ in range(3)]
    for peer in peers:
        peer.status()
    assert connect(broker).is_closed()
    assert "max.connections is reached" in caplog.text
    peers[0].close()
    wait_until(lambda: connection_count(broker) == 2, "the end of the connection")
    assert connect(broker).status()["connections"] == 3


def test_connections_when_too_many_come_from_one_address_then_others_still_may(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quotas, "is_loopback", lambda _: False)
    broker = start_broker(max_connections_per_ip=2)
    for _ in range(2):
        connect(broker).status()
    assert connect(broker).is_closed()
    assert "max.connections.per.ip is reached" in caplog.text
    assert connect(broker, address="127.0.0.2").status()["connections"] == 3


def test_connections_when_there_are_too_many_then_those_of_registered_brokers_have_a_reserve(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str
) -> None:
    broker = start_broker(zookeeper=zookeeper, max_connections=20)
    assert broker.address().host == "127.0.0.1"
    wait_until(lambda: "127.0.0.1" in broker.server.broker_hosts, "its address being known")

    def is_refused() -> bool:
        try:
            connect(broker, address="127.0.0.2").status()
        except (ConnectionError, EOFError):
            return True
        return False

    wait_until(is_refused, "the last place being taken")  # the broker may have some itself
    counts = [connect(broker).status()["connections"] for _ in range(5)]
    assert counts[-1] > 20


def test_connections_when_few_more_are_possible_then_those_without_a_request_end(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(connections, "UNUSED_S", 0.2)
    monkeypatch.setattr(processor, "_SWEEP_INTERVAL_S", 0.05)
    broker = start_broker(max_connections=4)
    broker.server.processors[0]._next_sweep_s = 0.0
    used = connect(broker)
    used.status()
    silent = [connect(broker) for _ in range(3)]
    assert silent[0].is_closed()
    assert "no request in 0.2s, and few more connections are possible" in caplog.text
    assert used.status()["connections"] <= 3
    assert connect(broker).status()


def test_connections_when_there_are_too_many_then_brokers_still_reach_a_listener_of_their_own(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(
        max_connections=2,
        listeners="INTERNAL=plain://127.0.0.1:0",
        inter_broker_listener="INTERNAL",
    )
    for _ in range(2):
        connect(broker).status()
    assert connect(broker).is_closed()
    with Peer(broker.endpoints()[1].port) as of_a_broker:
        assert of_a_broker.status()["connections"] == 3


def test_connections_when_too_many_come_in_a_second_then_wait_and_all_are_served(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(max_connection_rate=10)
    began_s = time.monotonic()
    peers = [connect(broker) for _ in range(20)]
    for peer in peers:
        peer.status()
    assert time.monotonic() - began_s > 0.8  # at most ten were saved up


def test_creation_rate_when_taken_faster_than_allowed_then_says_how_long_to_wait() -> None:
    clock = FakeClock()
    count = ConnectionCount(BrokerConfig(), clock)
    assert count.pause_s() == 0
    count.set_limits(BrokerConfig(max_connection_rate=4))
    clock.advance(60)
    assert [count.pause_s() for _ in range(5)] == [0, 0, 0, 0.25, 0.5]
    clock.advance(0.5)
    assert count.pause_s() == pytest.approx(0.25)
    count.set_limits(BrokerConfig(max_connection_rate=4, max_connections=9))  # no new burst
    assert count.pause_s() == pytest.approx(0.5)


def test_connections_when_many_come_and_go_then_the_count_is_right(
    running_broker: Broker,
) -> None:
    for number in range(100):
        with Peer(running_broker.port) as peer:
            if number % 3 == 0:
                peer.send_bytes(b"\xff" * 8)
            if number % 3 == 1:
                peer.publish("events", ONE)
    wait_until(lambda: connection_count(running_broker) == 0, "the end of all connections")


def waiting_count(broker: Broker) -> int:
    return sum(len(processor.purgatory) for processor in broker.server.processors)


def close_idle_from_now_on(broker: Broker, after_s: float) -> None:
    """Change connections.max.idle.ms, once what must not take so long is done."""
    broker.server.network.max_idle_s = after_s


def test_connection_when_idle_too_long_then_closed(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 0.05)
    broker = start_broker()
    peer = connect(broker)
    peer.publish("events", ONE)
    close_idle_from_now_on(broker, 0.1)
    assert peer.is_closed()


def test_connection_when_it_only_drips_then_closed_as_idle(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 0.05)
    broker = start_broker()
    peer = connect(broker)
    peer.send_bytes(INT32.pack(1000))
    close_idle_from_now_on(broker, 0.1)

    def is_refused() -> bool:
        try:
            peer.send_bytes(b"\0")
        except ConnectionError:
            return True
        return False

    wait_until(is_refused, "the end of the connection")


def test_connection_when_a_read_is_parked_then_not_idle(
    start_broker: BrokerFactory, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 0.02)
    broker = start_broker()
    peer = connect(broker)
    peer.publish("events", ONE)
    peer.send_extension(read_request("events", len(ONE), max_wait_ms=600_000))
    with Peer(broker.port) as other:
        other.status()  # answered in the turn that parks the read, or a later one
        close_idle_from_now_on(broker, 0.05)
        assert other.is_closed()  # a sweep has found it idle
    assert not peer.has_answer(0.1)  # nor closed, by several sweeps


def test_peer_log_when_a_peer_repeats_itself_then_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    peers = PeerLog(clock)
    with caplog.at_level(logging.WARNING):
        peers.warn("10.0.0.1", "first")
        peers.warn("10.0.0.1", "second")
        peers.warn("10.0.0.2", "of another")
        clock.advance(59.9)
        peers.warn("10.0.0.1", "third")
        clock.advance(0.2)
        peers.warn("10.0.0.1", "fourth")
    told = [line.rpartition(": ")[2].split(" (")[0] for line in caplog.messages]
    assert told == ["first", "of another", "fourth"]


def test_peer_log_when_peers_are_many_then_a_hundred_are_told_and_how_many_were_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    peers = PeerLog(clock)
    with caplog.at_level(logging.WARNING):
        for number in range(150):
            peers.warn(f"peer-{number}", "x")
        assert len(caplog.messages) == 100
        clock.advance(1.0)
        peers.warn("peer-150", "x")
    assert caplog.messages[100:] == [
        "closed a connection of peer-150: x (further ones are not logged for a minute, as 50 of "
        "other addresses before it)"
    ]


def test_peer_log_when_peers_are_many_then_memory_stays_bounded() -> None:
    peers = PeerLog(FakeClock())
    for number in range(25_000):
        peers.warn(f"peer-{number}", "x")
    assert len(peers._silent_until_s) <= 10_000


def test_connection_count_when_address_left_then_not_remembered() -> None:
    count = ConnectionCount(BrokerConfig(max_connections=2, max_connections_per_ip=1), FakeClock())
    assert count.enter("a") is None
    assert count.enter("a") == "max.connections.per.ip"
    assert count.enter("b") is None
    assert count.enter("c") == "max.connections"
    count.leave("a")
    assert count.enter("c") is None
    assert count.total == 2


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_connection_count_when_clients_are_on_this_machine_then_only_the_sum_is_limited(
    address: str,
) -> None:
    count = ConnectionCount(BrokerConfig(max_connections=3, max_connections_per_ip=1), FakeClock())
    assert [count.enter(address) for _ in range(4)] == [None, None, None, "max.connections"]


@pytest.mark.parametrize("kind", [MetadataRequest, ClusterMetadataRequest])
def test_offsets_when_metadata_of_very_many_topics_is_asked_for_then_do_not_wait_for_it(
    kind: Callable[[tuple[str, ...]], ExtensionRequest],
    start_broker: BrokerFactory,
    connect: PeerFactory,
) -> None:
    broker = start_broker()
    slow, other = connect(broker), connect(broker)
    assert other.publish("orders", b"").error == 0
    may_go_on = threading.Event()
    try:
        broker.server.listers.submit(may_go_on.wait, 60)
        slow.send_extension(kind(tuple(f"invented-{number}" for number in range(1000))))
        query = OffsetQuery(partition("orders"), OffsetKind.LATEST, 0)
        other.call(ListOffsetsRequest((query,)))
        assert not slow.has_answer()
    finally:
        may_go_on.set()
    slow.receive_extension()
