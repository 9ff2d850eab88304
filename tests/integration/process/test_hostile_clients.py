"""What clients that send nonsense, or die, cost a broker in a process of its own."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from broker.protocol.client_requests import (
    HelloRequest,
    MetadataRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
)
from broker.protocol.primitives import INT32
from broker.protocol.requests import ProduceRequest, encode_request
from broker.protocol.responses import MetadataResponse
from broker.server.network.frame_receiver import LARGE_FRAME_BYTES
from tests.integration.broker.server.peer import Peer, extension_frame, read_request
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory
from tests.support.waiting import wait_until

MB = 1 << 20
SLACK_BYTES = 16 * MB
"""How much the memory of a broker may vary for other reasons."""


@pytest.fixture
def broker(start_process: ProcessFactory) -> BrokerProcess:
    """A broker that has served before, so that what it needs once is there."""
    process = start_process()
    with process.peer() as peer:
        peer.publish("events", encode([bytes(900_000)]))
        peer.status()
    return process


def resident_bytes(broker: BrokerProcess) -> int:
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the system does not tell VmRSS")


def connection_count(broker: BrokerProcess) -> int:
    """Return how many connections the broker has, without the one that asks."""
    with broker.peer() as peer:
        return int(peer.status()["connections"]) - 1


def await_memory(broker: BrokerProcess, before: int) -> None:
    wait_until(lambda: resident_bytes(broker) - before < SLACK_BYTES, "the memory being given back")


def reset(peer: Peer) -> None:
    """Close a connection as the death of its machine does."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def test_broker_when_sizes_are_announced_and_nothing_comes_then_its_memory_stays(
    broker: BrokerProcess,
) -> None:
    before = resident_bytes(broker)
    peers = [broker.peer() for _ in range(40)]
    for peer in peers:
        peer.send_bytes(INT32.pack(100_000_000))
    wait_until(lambda: connection_count(broker) == 40, "the connections")
    assert resident_bytes(broker) - before < SLACK_BYTES
    for peer in peers:
        peer.close()


def test_broker_when_clients_are_reset_inside_a_publish_then_its_memory_is_back(
    broker: BrokerProcess,
) -> None:
    before = resident_bytes(broker)
    frame = encode_request(ProduceRequest("events", 0, encode([bytes(850_000)])))
    peers = [broker.peer() for _ in range(200)]
    for peer in peers:
        peer.send_bytes(frame[:500_000])
    wait_until(lambda: resident_bytes(broker) - before > 4 * SLACK_BYTES, "the requests")
    for peer in peers:
        reset(peer)
    wait_until(lambda: connection_count(broker) == 0, "their end")
    await_memory(broker, before)


def test_broker_when_many_requests_of_some_kilobytes_stay_unfinished_then_they_share_the_budget(
    start_process: ProcessFactory,
) -> None:
    limit, count = 8 * MB, 400
    broker = start_process("-X", f"queued.max.bytes={limit}")
    with broker.peer() as peer:
        peer.publish("events", encode([bytes(900_000)]))
        before = resident_bytes(broker)
        frame = encode_request(ProduceRequest("events", 0, encode([bytes(240_000)])))
        peers = [broker.peer() for _ in range(count)]
        for one in peers:
            one.socket.setblocking(False)
            with suppress(BlockingIOError):
                one.send_bytes(frame[:-1])
        fitting = limit // len(frame)
        wait_until(
            lambda: int(peer.status()["waiting_for_queued_bytes"]) == count - fitting,
            "those that do not fit waiting",
        )
        held_bytes = limit + count * LARGE_FRAME_BYTES
        assert resident_bytes(broker) - before < held_bytes + SLACK_BYTES
        for one in peers:
            one.close()


def test_broker_when_a_large_topic_is_named_many_times_then_answers_once_with_little_memory(
    broker: BrokerProcess,
) -> None:
    with broker.peer() as peer:
        peer.call(CreateTopicRequest("large", 10_000))
        before = resident_bytes(broker)
        body = peer.call(MetadataRequest(("large",) * 100))
        (topic,) = MetadataResponse.decode(body).topics
    assert len(topic.partitions) == 10_000
    assert resident_bytes(broker) - before < SLACK_BYTES


def test_broker_when_clients_leave_behind_a_read_that_waits_then_all_of_them_are_forgotten(
    broker: BrokerProcess,
) -> None:
    before = resident_bytes(broker)
    end = len(encode([bytes(900_000)]))
    requests = extension_frame(read_request("events", end, max_wait_ms=2**31 - 1))
    requests += extension_frame(HelloRequest()) * 4200
    for _ in range(30):
        with broker.peer() as peer:
            peer.send_bytes(requests)
    wait_until(lambda: connection_count(broker) == 0, "the end of the connections")
    await_memory(broker, before)
