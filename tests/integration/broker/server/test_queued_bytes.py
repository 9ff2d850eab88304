"""The budget that large requests are received under: who has no share of it waits."""

from __future__ import annotations

import select
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError
from broker.protocol.codec import encode
from broker.protocol.requests import ProduceRequest, encode_request
from broker.server.broker import Broker
from broker.server.network.connection import ServerConnection
from broker.server.network.frame_receiver import LARGE_FRAME_BYTES
from broker.server.network.quotas import FrameRoom, QueuedBytes
from tests.doubles import FakeClock
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.network import network_parts
from tests.support.waiting import wait_until

LIMIT = 1_000_000
SET = encode([bytes(600_000)])
FRAME = encode_request(ProduceRequest("events", 0, SET))
"""Two of these do not fit into the budget together."""
PART = LARGE_FRAME_BYTES + 1000
"""So much of a frame must have arrived before it asks for room."""


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
    second.send_bytes(FRAME[:PART])
    await_waiting(broker, 1)

    first.send_bytes(FRAME[-1:])
    await_waiting(broker, 0)
    second.send_bytes(FRAME[PART:])

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


def test_connections_when_one_waits_for_the_budget_then_small_requests_of_others_go_on(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    connect(broker).send_bytes(FRAME[:PART])
    await_waiting(broker, 1)

    other = connect(broker)
    one = encode([bytes(LARGE_FRAME_BYTES // 2)])

    assert other.publish("others", one).error == 0
    assert other.fetch("others", 0) == (0, one)


def test_frame_when_it_fits_and_large_ones_wait_then_is_taken_before_them(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    connect(broker).send_bytes(FRAME[:PART])
    await_waiting(broker, 1)

    other = connect(broker)
    one = encode([bytes(200_000)])
    frame = encode_request(ProduceRequest("others", 0, one))
    other.send_bytes(frame[:PART])
    wait_until(lambda: taken_bytes(broker) >= len(FRAME) + len(frame), "room for the frame")
    other.send_bytes(frame[PART:])

    other.flush("others")
    assert other.fetch("others", 0, max_bytes=1 << 30) == (0, one)


def test_clients_when_they_wait_for_the_budget_then_hold_little_memory(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    count = 20
    for _ in range(count):
        peer = connect(broker)
        peer.socket.setblocking(False)
        sent = 0
        while sent < len(FRAME) - 1 and select.select([], [peer.socket], [], 0.05)[1]:
            sent += peer.socket.send(FRAME[sent:-1])
    await_waiting(broker, count)

    held = [
        len(one.receiver._tail)
        for processor in broker.server.processors
        for one in processor.connections
    ]
    # the first to wait may have been read before anybody knew that it would have to
    assert sorted(held)[-2] <= LARGE_FRAME_BYTES
    assert taken_bytes(broker) <= LIMIT


def test_frames_when_only_their_sizes_have_come_then_take_no_room_from_others(
    broker: Broker, connect: PeerFactory
) -> None:
    for _ in range(12):
        connect(broker).send_bytes(FRAME[:6])
    peer = connect(broker)

    peer.send_bytes(FRAME)
    peer.flush("events")

    assert peer.fetch("events", 0, max_bytes=1 << 30) == (0, SET)
    assert taken_bytes(broker) == 0


def test_frames_when_all_come_at_once_in_pieces_then_all_are_taken(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    """Together they are three times the budget; none may wait for another for ever."""
    broker = start_broker(max_queued_bytes=12 << 20, max_message_bytes=4 << 20)
    count = 9
    frame = encode_request(ProduceRequest("events", 0, encode([bytes(4 << 20)])))
    peers = [connect(broker) for _ in range(count)]
    threads = [threading.Thread(target=peer.send_bytes, args=(frame,)) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for peer in peers:
        peer.flush("events")
    assert peers[0].status()["bytes"] == count * len(encode([bytes(4 << 20)]))
    assert taken_bytes(broker) == 0


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
    monkeypatch.setattr("broker.server.network.processor._SWEEP_INTERVAL_S", 0.05)
    monkeypatch.setattr("broker.server.network.frame_receiver.STALL_S", 0.1)
    return start_broker(max_queued_bytes=LIMIT)


def test_client_when_it_stalls_while_others_wait_for_its_room_then_is_closed(
    sweeping_broker: Broker, connect: PeerFactory
) -> None:
    staller, second = fill_up(sweeping_broker, connect), connect(sweeping_broker)
    second.send_bytes(FRAME[:-1])

    assert staller.is_closed()
    second.send_bytes(FRAME[-1:])
    second.flush("events")
    assert second.fetch("events", 0, max_bytes=1 << 30) == (0, SET)


def test_client_when_it_trickles_while_others_wait_for_its_room_then_is_closed(
    sweeping_broker: Broker, connect: PeerFactory
) -> None:
    trickler, second = connect(sweeping_broker), connect(sweeping_broker)
    trickler.send_bytes(FRAME[: LARGE_FRAME_BYTES + 1])
    wait_until(lambda: taken_bytes(sweeping_broker) >= len(FRAME), "the first frame")
    second.send_bytes(FRAME[:-1])

    def ends_as_it_trickles() -> bool:
        try:
            trickler.send_bytes(b"\0")
        except OSError:
            return True
        return False

    wait_until(ends_as_it_trickles, "the end of the first client")
    second.send_bytes(FRAME[-1:])
    second.flush("events")
    assert second.fetch("events", 0, max_bytes=1 << 30) == (0, SET)


def test_connection_when_a_large_frame_comes_slowly_and_steadily_then_has_not_stalled() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    budget = QueuedBytes(LIMIT)
    clock = FakeClock()
    with ours, theirs:
        network = network_parts(clock, max_frame_bytes=1 << 24, queued_bytes=budget)
        connection = ServerConnection(ours, "peer", network, lambda one: None)

        def has_stalled(now_s: float) -> bool:
            reason = connection.reason_to_close(clock.monotonic_s() + now_s, max_idle_s=1e9)
            return "others need the room" in reason

        shared = bytearray(1 << 20)
        share = len(FRAME) // 19
        for step in range(19):
            theirs.sendall(FRAME[step * share : (step + 1) * share])
            connection.receive(shared)
            if not budget.waiting_count and budget.taken:
                budget.ask(FrameRoom(LIMIT, lambda: None), LIMIT)
            assert not has_stalled(step * 9.0)
        assert has_stalled(20 * 9.0)

        # what the broker does not receive is no fault of the client's
        connection.offload(None)
        assert not has_stalled(30 * 9.0)
        connection.work_done()
        assert not has_stalled(31 * 9.0)
        assert has_stalled(33 * 9.0)


def test_client_when_it_stalls_and_nobody_needs_its_room_then_may_go_on(
    sweeping_broker: Broker, connect: PeerFactory
) -> None:
    staller = fill_up(sweeping_broker, connect)
    (processor,) = sweeping_broker.server.processors
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
            peer.send_bytes(FRAME[:PART])
            wait_until(lambda: taken_bytes(broker) > 0, "the frame")
            waiting.send_bytes(FRAME[:PART])
            await_waiting(broker, 1)
        wait_until(lambda: taken_bytes(broker) == 0, "the end of the connections")
        await_waiting(broker, 0)


def test_broker_when_stopped_while_frames_wait_for_the_budget_then_stops(
    broker: Broker, connect: PeerFactory
) -> None:
    fill_up(broker, connect)
    waiting = connect(broker)
    waiting.send_bytes(FRAME[:PART])
    await_waiting(broker, 1)

    broker.stop()

    assert waiting.is_closed()
    assert taken_bytes(broker) == 0


def test_frame_when_there_is_no_memory_for_it_after_its_wait_then_costs_its_connection_only(
    broker: Broker, connect: PeerFactory, expects_bugs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = fill_up(broker, connect), connect(broker)
    second.send_bytes(FRAME[:PART])
    await_waiting(broker, 1)

    def fail(_receiver: object, _large: object, _start: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr("broker.server.network.frame_receiver.FrameReceiver._begin_large", fail)
    first.send_bytes(FRAME[-1:])

    assert second.is_closed()
    assert first.publish("events", encode([b"one"])).base_offset == len(SET)
    assert taken_bytes(broker) == 0


class Ask:
    """A frame that asks a budget for room, and notes whether it waits."""

    def __init__(self, budget: QueuedBytes, frame_bytes: int, size: int) -> None:
        self._budget = budget
        self.room = FrameRoom(frame_bytes, self.note_granted)
        self.is_waiting = False
        self.ask(size)

    def note_granted(self) -> None:
        self.is_waiting = False

    def ask(self, size: int) -> None:
        self.is_waiting = not self._budget.ask(self.room, size)


def test_queued_bytes_when_released_then_large_frames_are_granted_in_the_order_of_asking() -> None:
    budget = QueuedBytes(100)
    first = Ask(budget, 60, 60)
    second, third = Ask(budget, 40, 40), Ask(budget, 30, 30)
    assert (first.is_waiting, second.is_waiting, third.is_waiting) == (False, True, True)
    assert (budget.taken, budget.waiting_count) == (60, 2)

    budget.release(first.room)

    assert (second.is_waiting, third.is_waiting) == (False, False)
    assert (budget.taken, budget.waiting_count) == (70, 0)


def test_queued_bytes_when_one_waits_no_longer_then_those_behind_it_are_served() -> None:
    budget = QueuedBytes(100)
    Ask(budget, 40, 40)
    large, smaller = Ask(budget, 90, 90), Ask(budget, 30, 30)
    assert (budget.taken, budget.waiting_count) == (40, 2)

    budget.release(large.room)

    assert not smaller.is_waiting
    assert budget.taken == 70


def test_queued_bytes_when_a_large_frame_waits_then_small_ones_have_a_share() -> None:
    budget = QueuedBytes(100)
    first, large = Ask(budget, 60, 60), Ask(budget, 70, 10)
    small = [Ask(budget, 10, 1) for _ in range(3)]
    assert large.is_waiting
    assert [one.is_waiting for one in small] == [False, False, True]
    assert budget.taken == 80  # each small frame gets all its room at once

    budget.release(small[0].room)
    assert not small[2].is_waiting

    budget.release(first.room)
    assert not large.is_waiting


def test_queued_bytes_when_small_frames_have_it_all_then_a_large_one_comes_before_more() -> None:
    budget = QueuedBytes(100)
    small = [Ask(budget, 25, 25) for _ in range(4)]
    large = Ask(budget, 70, 70)
    assert (budget.taken, large.is_waiting) == (100, True)

    for one in small[:3]:
        assert large.is_waiting
        budget.release(one.room)
        small.append(Ask(budget, 25, 25))

    assert not large.is_waiting
    assert all(one.is_waiting for one in small[4:])


def test_queued_bytes_when_a_frame_needs_all_of_it_then_small_ones_do_not_overtake_it() -> None:
    budget = QueuedBytes(100)
    whole = Ask(budget, 100, 80)
    early = Ask(budget, 20, 20)
    assert not early.is_waiting
    whole.ask(20)
    late = Ask(budget, 5, 5)
    assert (whole.is_waiting, late.is_waiting) == (True, True)

    budget.release(early.room)

    assert (whole.is_waiting, late.is_waiting) == (False, True)


def test_queued_bytes_when_asked_piece_by_piece_then_takes_what_was_asked_for_only() -> None:
    budget = QueuedBytes(100)
    first = Ask(budget, 90, 1)
    assert budget.taken == 1
    first.ask(10)
    assert (budget.taken, first.room.missing_bytes) == (11, 79)


def test_queued_bytes_when_a_piece_would_keep_another_frame_from_the_rest_then_it_waits() -> None:
    budget = QueuedBytes(100)
    first = Ask(budget, 60, 10)
    second = Ask(budget, 40, 5)
    assert not second.is_waiting
    second.ask(11)  # of 75 that small frames do not have, 49 would be left; the first misses 50
    first.ask(50)
    assert (first.is_waiting, second.is_waiting) == (False, True)

    budget.release(first.room)

    assert (first.is_waiting, second.is_waiting) == (False, False)


@given(st.data())
def test_queued_bytes_when_frames_come_in_pieces_then_all_are_received_in_the_end(
    data: st.DataObject,
) -> None:
    """Whatever has been granted to whom: some frame can always go on."""
    budget = QueuedBytes(100)
    sizes = data.draw(st.lists(st.integers(1, 100), min_size=1, max_size=12))
    unfinished = [
        Ask(budget, size, data.draw(st.integers(1, size), label="first piece")) for size in sizes
    ]
    while unfinished:
        assert 0 <= budget.taken <= 100
        able = [one for one in unfinished if not one.is_waiting]
        assert able
        one = data.draw(st.sampled_from(able))
        if one.room.missing_bytes:
            one.ask(data.draw(st.integers(1, one.room.missing_bytes), label="piece"))
        else:
            budget.release(one.room)
            unfinished.remove(one)
    assert (budget.taken, budget.waiting_count) == (0, 0)


def test_queued_bytes_when_a_frame_is_larger_than_all_of_it_then_refuses() -> None:
    with pytest.raises(BrokerError, match=r"101 bytes is above queued\.max\.bytes=100"):
        QueuedBytes(100).check(101)
