from __future__ import annotations

import select
import threading

from broker.protocol.client_requests import MetadataRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
)
from broker.protocol.requests import FetchRequest, encode_request
from broker.server.broker import Broker
from broker.server.network.response_queue import MAX_QUEUED_RESPONSES, MAX_RESPONSES_IN_MEMORY_BYTES
from broker.server.requests.pattern_filter import KEPT_BYTES
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, filtered_request
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
TOPIC = "t" * 240


def send_until_blocked(broker: Broker, peer: Peer, frame: bytes, *, at_most: int) -> int:
    """Send whole frames until the broker reads no more; return how many there were."""
    many = frame * (1 + (1 << 16) // len(frame))
    sent = 0
    read_bytes = -1
    peer.socket.setblocking(False)
    while sent < at_most * len(frame):
        if select.select([], [peer.socket], [], 0.3)[1]:
            sent += peer.socket.send(many[sent % len(frame) :])
        elif bytes_read(broker) == read_bytes:
            break
        else:  # the broker was only slow: it has read since the last time
            read_bytes = bytes_read(broker)
    peer.socket.setblocking(True)
    peer.socket.settimeout(60)
    rest = -sent % len(frame)
    if rest:
        threading.Thread(target=peer.socket.sendall, args=(frame[-rest:],)).start()
    return (sent + rest) // len(frame)


def bytes_read(broker: Broker) -> int:
    return int(broker.status()["metrics"]["SocketServerStats"]["TotalBytesRead"])


def test_client_when_it_takes_no_responses_then_its_requests_are_not_read_until_it_does(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(socket_receive_bytes=1 << 16, socket_send_bytes=1 << 16)
    peer = connect(broker, receive_bytes=1 << 16)
    peer.publish(TOPIC, ONE)
    frame = encode_request(FetchRequest(TOPIC, 0, 0, 100))
    count = send_until_blocked(broker, peer, frame, at_most=400_000)
    assert count < 400_000
    stuck_at = bytes_read(broker)
    other = connect(broker)
    assert other.fetch(TOPIC, 0) == (0, ONE)
    assert bytes_read(broker) - stuck_at < 2 * len(frame)
    for _ in range(count):
        assert peer.receive() == b"\0\0" + ONE
    assert not peer.has_answer()
    assert peer.fetch(TOPIC, 0) == (0, ONE)


def test_client_when_it_takes_no_responses_then_those_in_memory_are_few(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    """Each answer here is larger than its request by three orders of magnitude."""
    broker = start_broker(socket_send_bytes=1 << 16)
    peer = connect(broker, receive_bytes=1 << 16)
    for number in range(4):
        peer.call(CreateTopicRequest(f"topic-{number}", 1000))
    frame = extension_frame(MetadataRequest(None))
    peer.send_bytes(frame)
    answer_bytes = len(peer.receive())
    count = 150
    peer.send_bytes(frame * count)
    assert connect(broker).status()["topics"] == 4
    (processor,) = broker.server.processors
    in_memory = sum(one.responses.bytes_in_memory for one in processor.connections)
    assert in_memory < MAX_RESPONSES_IN_MEMORY_BYTES + 2 * answer_bytes
    for _ in range(count):
        peer.receive()


def test_client_when_it_takes_no_filtered_reads_then_those_in_memory_are_few(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(socket_send_bytes=1 << 16)
    peer = connect(broker, receive_bytes=1 << 16)
    peer.publish("events", encode([bytes(1000)]) * 1000)
    frame = extension_frame(filtered_request("events", 0, b"", max_bytes=KEPT_BYTES))
    peer.send_bytes(frame)
    answer_bytes = len(peer.receive())
    count = 20
    peer.send_bytes(frame * count)
    (processor,) = broker.server.processors
    (connection,) = processor.connections
    wait_until(lambda: connection.responses.has_unsent, "the first answer")
    # searches are done in order: this one is after all that were asked for before it
    assert connect(broker).read_filtered("events", 0, b"x").runs == ()
    assert connection.responses.bytes_in_memory < MAX_RESPONSES_IN_MEMORY_BYTES + 2 * answer_bytes
    for _ in range(count):  # a search that pauses in between finds the same in more runs
        assert len(peer.receive()) > 1000 * 1000


def test_client_when_more_responses_wait_than_allowed_then_all_come_in_the_end(
    running_broker: Broker, connect: PeerFactory
) -> None:
    peer = connect(running_broker)
    peer.publish("events", ONE)
    count = 3 * MAX_QUEUED_RESPONSES
    frame = encode_request(FetchRequest("events", 0, 0, 100))
    sending = threading.Thread(target=peer.send_bytes, args=(frame * count,))
    sending.start()
    for _ in range(count):
        assert peer.receive() == b"\0\0" + ONE
    sending.join()


def test_reader_when_it_stops_in_the_middle_of_a_large_response_then_others_are_served(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker()
    slow = connect(broker, receive_bytes=1 << 16)
    large = encode([bytes(100_000)]) * 90
    for _ in range(4):
        slow.publish("events", large)
    slow.send(FetchRequest("events", 0, 0, 1 << 30))
    assert slow.socket.recv(1000)
    other = connect(broker)
    for _ in range(100):
        assert other.fetch("events", 0, max_bytes=10) == (0, large[:10])
    assert len(other.fetch("events", 0, max_bytes=1 << 30)[1]) == 4 * len(large)


def test_reader_when_the_segment_is_removed_meanwhile_then_still_gets_all_of_it(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(segment_bytes=1000, retention_bytes=10)
    slow = connect(broker, receive_bytes=1 << 16)
    large = encode([bytes([n]) * 100_000 for n in range(100)])
    slow.publish("events", large)
    slow.publish("events", ONE)
    slow.send(FetchRequest("events", 0, 0, 1 << 30))
    head = slow.socket.recv(6)
    broker.logs.retention.apply()
    assert connect(broker).fetch("events", 0) == (1, b"")
    received = bytearray()
    while len(received) < len(large):
        received += slow.socket.recv(1 << 20)
    assert head == (2 + len(large)).to_bytes(4, "big") + b"\0\0"
    assert received == large
