"""The budget that large requests are received under: who has no share of it waits."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress

import pytest

from broker.errors import BrokerError
from broker.protocol.codec import encode
from broker.protocol.requests import ProduceRequest, encode_request
from broker.server.broker import Broker
from broker.server.connection import LARGE_FRAME_BYTES, Connection
from broker.server.quotas import QueuedBytes
from tests.doubles import FakeClock
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame, publish_request
from tests.support.waiting import wait_until

LIMIT = 1_000_000
SET = encode([bytes(600_000)])
FRAME = encode_request(ProduceRequest("events", 0, SET))
"""Two of these do not fit into the budget together."""


@pytest.fixture
def broker(start_broker: BrokerFactory) -> Broker:
    return start_broker(max_queued_bytes=LIMIT)


def taken_bytes(broker: Broker) -> int:
    return int(broker.status()["queued_bytes"])


def await_waiting(broker: Broker, count: int) -> None:
    wait_until(
        lambda: broker.status()["waiting_for_queued_bytes"] == count, f"{count} that wait for room"
    )


def fill_up(broker: Broker, connect: PeerFactory) -> Peer:
    """Return a client that has sent all of a large frame but its last byte."""
    peer = connect(broker)
    peer.send_bytes(FRAME[:-1])
    wait_until(lambda: taken_bytes(broker) >= len(FRAME), "the first frame")
    return peer


def test_frame_when_others_hold_the_budget_then_waits_and_is_taken_after_them(
    broker: Broker, connect: PeerFactory
) -> None:
    first, second = fill_up(broker, connect), connect(broker)
    second.send_bytes(FRAME[:1000])
    await_waiting(broker, 1)

    first.send_bytes(FRAME[-1:])
    await_waiting(broker, 0)
    second.send_bytes(FRAME[1000:])

    second.flush("events")
    assert second.fetch("events", 0, max_bytes=1 << 30) == (0, 2 * SET)


def test_frame_when_the_holder_of_the_budget_leaves_then_is_taken(
    broker: Broker, connect: PeerFactory
) -> None:
    first, second = fill_up(broker, connect), connect(broker)
    second.send_bytes(FRAME[:-1])
    await_waiting(broker, 1)

    first.close()
    second.send_bytes(FRAME[-1:])

    second.flush("events")
    assert second.fetch("events", 0, max_bytes=1 << 30) == (0, SET)


def test_frame_when_it_begins_behind_one_that_waits_for_a_flush_then_gives_its_room_back(
    broker: Broker, connect: PeerFactory, held_flushes: threading.Event
) -> None:
    first, second = connect(broker), connect(broker)
    held_flushes.set()
    first.publish("events", encode([b"to the same log as before"]))
    held_flushes.clear()
    publish = publish_request("events", encode([b"small"]), timeout_ms=60_000)
    first.send_bytes(extension_frame(publish) + FRAME[:1000])
    wait_until(lambda: taken_bytes(broker), "the room of the first frame")
    second.send_bytes(FRAME[:1000])
    await_waiting(broker, 1)

    first.send_bytes(FRAME[1000:])
    await_waiting(broker, 0)

    assert not held_flushes.is_set()
    held_flushes.set()


def test_connections_when_one_waits_for_the_budget_then_small_requests_of_others_go_on(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    connect(broker).send_bytes(FRAME[:1000])
    await_waiting(broker, 1)

    other = connect(broker)
    one = encode([bytes(LARGE_FRAME_BYTES // 2)])

    assert other.publish("others", one).error == 0
    assert other.fetch("others", 0) == (0, one)


def test_clients_when_they_wait_for_the_budget_then_hold_little_memory(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    count = 20
    for _ in range(count):
        peer = connect(broker)
        peer.socket.setblocking(False)
        sent = 0
        while sent < len(FRAME) and select.select([], [peer.socket], [], 0.05)[1]:
            sent += peer.socket.send(FRAME[sent:])
    await_waiting(broker, count)

    held = [
        len(one._receiver._tail)
        for processor in broker._processors
        for one in processor._connections
    ]
    # the first to wait may have been read before anybody knew that it would have to
    assert sorted(held)[-2] <= LARGE_FRAME_BYTES
    assert taken_bytes(broker) <= LIMIT


def test_frame_when_larger_than_the_whole_budget_then_the_connection_is_closed(
    broker: Broker, connect: PeerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    peer = connect(broker)
    peer.send_bytes(encode_request(ProduceRequest("events", 0, bytes(LIMIT)))[:100])

    assert peer.is_closed()
    assert f"is above queued.max.bytes={LIMIT}" in caplog.text


@pytest.fixture
def sweeping_broker(monkeypatch: pytest.MonkeyPatch, start_broker: BrokerFactory) -> Broker:
    """A broker that closes connections soon after they stall."""
    monkeypatch.setattr("broker.server.processor._SWEEP_INTERVAL_S", 0.05)
    monkeypatch.setattr("broker.server.connection.STALL_S", 0.1)
    return start_broker(max_queued_bytes=LIMIT)


def test_client_when_it_stalls_while_others_wait_for_its_room_then_is_closed(
    sweeping_broker: Broker, connect: PeerFactory
) -> None:
    staller, second = fill_up(sweeping_broker, connect), connect(sweeping_broker)
    second.send_bytes(FRAME)

    assert staller.is_closed()
    second.flush("events")
    assert second.fetch("events", 0, max_bytes=1 << 30) == (0, SET)


def test_client_when_it_trickles_while_others_wait_for_its_room_then_is_closed(
    sweeping_broker: Broker, connect: PeerFactory
) -> None:
    trickler, second = connect(sweeping_broker), connect(sweeping_broker)
    trickler.send_bytes(FRAME[: LARGE_FRAME_BYTES + 1])
    wait_until(lambda: taken_bytes(sweeping_broker) >= len(FRAME), "the first frame")
    second.send_bytes(FRAME)

    def trickle() -> bool:
        with suppress(OSError):
            trickler.send_bytes(b"\0")
        return taken_bytes(sweeping_broker) == 0

    wait_until(trickle, "the second client being served")
    second.flush("events")
    assert second.fetch("events", 0, max_bytes=1 << 30) == (0, SET)


def test_connection_when_a_large_frame_comes_slowly_and_steadily_then_has_not_stalled() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    budget = QueuedBytes(LIMIT)
    clock = FakeClock()
    with ours, theirs:
        connection = Connection(
            ours,
            "peer",
            clock=clock,
            max_frame_bytes=1 << 24,
            queued_bytes=budget,
            on_granted=lambda one: None,
        )

        def has_stalled(now_s: float) -> bool:
            reason = connection.reason_to_close(clock.monotonic_s() + now_s, max_idle_s=1e9)
            return "others need the room" in reason

        shared = bytearray(1 << 20)
        share = len(FRAME) // 19
        for step in range(19):
            theirs.sendall(FRAME[step * share : (step + 1) * share])
            connection.receive(shared)
            if not budget.waiting_count and budget.taken:
                budget.reserve(LIMIT, lambda: None)
            assert not has_stalled(step * 29.0)
        assert has_stalled(20 * 29.0)

        # what the broker does not receive is no fault of the client's
        connection.offload([])
        assert not has_stalled(30 * 29.0)
        connection.work_done()
        assert not has_stalled(31 * 29.0)
        assert has_stalled(33 * 29.0)


def test_client_when_it_stalls_and_nobody_needs_its_room_then_may_go_on(
    sweeping_broker: Broker, connect: PeerFactory
) -> None:
    staller = fill_up(sweeping_broker, connect)
    (processor,) = sweeping_broker._processors
    stalled_s = processor._clock.monotonic_s() + 0.1
    wait_until(lambda: processor._next_sweep_s > stalled_s + 0.05, "a sweep after the stall")

    staller.send_bytes(FRAME[-1:])

    staller.flush("events")
    assert staller.fetch("events", 0, max_bytes=1 << 30) == (0, SET)


def test_budget_when_connections_leave_inside_frames_then_all_of_it_is_back(
    broker: Broker,
) -> None:
    for _ in range(5):
        with Peer(broker.port) as peer, Peer(broker.port) as waiting:
            peer.send_bytes(FRAME[:200_000])
            wait_until(lambda: taken_bytes(broker) > 0, "the frame")
            waiting.send_bytes(FRAME[:1000])
            await_waiting(broker, 1)
        wait_until(lambda: taken_bytes(broker) == 0, "the end of the connections")
        await_waiting(broker, 0)


def test_broker_when_stopped_while_frames_wait_for_the_budget_then_stops(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    waiting = connect(broker)
    waiting.send_bytes(FRAME[:1000])
    await_waiting(broker, 1)

    broker.stop()

    assert waiting.is_closed()
    assert taken_bytes(broker) == 0


def test_frame_when_there_is_no_memory_for_it_after_its_wait_then_costs_its_connection_only(
    broker: Broker, connect: PeerFactory, expects_bugs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = fill_up(broker, connect), connect(broker)
    second.send_bytes(FRAME[:1000])
    await_waiting(broker, 1)

    def fail(_receiver: object, _needed: int, _start: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr("broker.server.connection._FrameReceiver._allocate_large", fail)
    first.send_bytes(FRAME[-1:])

    assert second.is_closed()
    assert first.publish("events", encode([b"one"])).base_offset == len(SET)
    assert taken_bytes(broker) == 0


def test_queued_bytes_when_released_then_granted_in_the_order_of_asking() -> None:
    granted: list[str] = []
    budget = QueuedBytes(100)
    first = budget.reserve(60, lambda: granted.append("first"))
    large = budget.reserve(90, lambda: granted.append("large"))
    small = budget.reserve(10, lambda: granted.append("small"))
    assert (first.is_granted, large.is_granted, small.is_granted) == (True, False, False)
    assert (budget.taken, budget.waiting_count) == (60, 2)

    budget.release(first)

    assert (large.is_granted, small.is_granted) == (True, True)
    assert (budget.taken, budget.waiting_count) == (100, 0)
    assert granted == ["large", "small"]


def test_queued_bytes_when_one_waits_no_longer_then_those_behind_it_are_served() -> None:
    budget = QueuedBytes(100)
    budget.reserve(60, lambda: None)
    large = budget.reserve(90, lambda: None)
    small = budget.reserve(10, lambda: None)

    budget.release(large)

    assert small.is_granted
    assert budget.taken == 70


def test_queued_bytes_when_asked_for_more_than_there_are_then_refuses() -> None:
    with pytest.raises(BrokerError, match=r"101 bytes is above queued\.max\.bytes=100"):
        QueuedBytes(100).reserve(101, lambda: None)
