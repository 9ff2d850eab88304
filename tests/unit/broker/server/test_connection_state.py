"""A connection is always in a state of the table, and waits for the events that fit it."""

from __future__ import annotations

import errno
import gc
import re
import select
import selectors
import socket
import struct
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from unittest.mock import Mock, patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.errors import ProtocolError
from broker.log.log import Log
from broker.protocol.framing import Frames, encode_frame
from broker.protocol.primitives import INT32
from broker.server.network import connection_state
from broker.server.network.connection import PLAIN, ServerConnection
from broker.server.network.connection_state import (
    TRANSITIONS,
    ConnectionEvent,
    ConnectionState,
    IllegalTransitionError,
    next_state,
)
from broker.server.network.connections import Connections
from broker.server.network.frame_receiver import LARGE_FRAME_BYTES
from broker.server.network.quotas import FrameRoom, QueuedBytes
from broker.server.network.response_queue import MAX_QUEUED_RESPONSES
from broker.server.requests.purgatory import DelayedResponse, Response
from tests.doubles import FakeClock
from tests.support.frames import frames_of
from tests.support.network import network_parts

BUDGET = 4 * LARGE_FRAME_BYTES
LARGE = encode_frame(bytes(LARGE_FRAME_BYTES + 1))


def test_docstring_when_read_then_its_table_is_the_code() -> None:
    row = re.compile(r"^    ([A-Z_]+) +([A-Z_]+) +([A-Z_]+)$", re.MULTILINE)
    documented = set(row.findall(connection_state.__doc__ or ""))
    assert documented == {
        (state.name, event.name, following.name)
        for state, transitions in TRANSITIONS.items()
        for event, following in transitions.items()
    }


def test_table_when_complete_then_every_state_can_close_and_nothing_leaves_closed() -> None:
    assert set(TRANSITIONS) == set(ConnectionState)
    assert {event for transitions in TRANSITIONS.values() for event in transitions} == set(
        ConnectionEvent
    )
    for state in set(ConnectionState) - {ConnectionState.CLOSED}:
        assert next_state(state, ConnectionEvent.CLOSE) is ConnectionState.CLOSED
    assert set(TRANSITIONS[ConnectionState.CLOSED].values()) == {ConnectionState.CLOSED}


@given(st.lists(st.sampled_from(ConnectionEvent)))
def test_next_state_when_events_are_random_then_never_leaves_the_table(
    events: list[ConnectionEvent],
) -> None:
    state = ConnectionState.READING
    for event in events:
        if event in TRANSITIONS[state]:
            state = next_state(state, event)
            assert state in TRANSITIONS
        else:
            with pytest.raises(IllegalTransitionError, match=f"{event.name} is not allowed"):
                next_state(state, event)


def new_connection(
    sock: socket.socket,
    budget: QueuedBytes,
    on_granted: Callable[[ServerConnection], None] = lambda connection: None,
) -> ServerConnection:
    network = network_parts(FakeClock(), max_frame_bytes=BUDGET, queued_bytes=budget)
    return ServerConnection(sock, "peer", network, on_granted)


class Listened:
    """Stands in for a log that nothing advances."""

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        pass

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        pass


class DrivenConnection(RuleBasedStateMachine):
    """A connection under random events, driven as a processor drives it."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = QueuedBytes(BUDGET)
        self.taken: FrameRoom | None = None
        self.granted: list[ServerConnection] = []
        ours, self.client = socket.socketpair()
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        self.client.setblocking(False)
        self.shared = bytearray(1 << 20)
        self.log: Log = Listened()  # type: ignore[assignment]  # stands in
        self.delayed: list[tuple[DelayedResponse, list[bool]]] = []
        self.sent_count = self.handled_count = 0
        self.is_cut_up = False
        """Whether frames may be taken for parts of a large one."""
        self.max_frames = pytest.MonkeyPatch()
        self.max_frames.setattr("broker.server.network.frame_receiver.MAX_FRAMES", 3)
        self.connection = new_connection(ours, self.budget, self.granted.append)

    def teardown(self) -> None:
        if self.state is not ConnectionState.CLOSED:
            self.connection.close()
        self.client.close()
        self.max_frames.undo()

    @property
    def state(self) -> ConnectionState:
        return self.connection.state

    def advance(self) -> None:
        """Send and leave what is held to a later turn, as a processor does after every event."""
        self.connection.send()
        if self.connection.may_take_held:
            self.connection.yield_turn()
        if self.connection.is_finished:
            self.connection.close()

    def handle(self, frames: Frames) -> None:
        """Handle frames whose first byte says what to do; none is lost, and all are in order."""
        assert len(frames) <= 3
        for number, frame in enumerate(frames, start=1):
            if not self.is_cut_up:
                assert int(bytes(frame[1:])) == self.handled_count
                self.handled_count += 1
            match bytes(frame[:1]):
                case b"o":
                    self.connection.offload(frames.since(number))
                    return
                case b"y" if number < len(frames):
                    self.connection.yield_turn(frames.since(number))
                    return
                case b"x":
                    self.connection.fail(ProtocolError("a bad request"))
                    return
                case b"d" | b"f" as kind:
                    self.delay(awaits_flush=kind == b"f")
                case b"l":
                    self.connection.responses.append(Response(bytes(1 << 20)))
                case b"m":
                    for _ in range(MAX_QUEUED_RESPONSES):
                        self.connection.responses.append(Response(b"r"))
                case _:
                    self.connection.responses.append(Response(b"response"))
            if self.connection.responses.is_full:
                self.connection.receiver.hold(frames.since(number))
                return

    def delay(self, *, awaits_flush: bool) -> None:
        is_ready: list[bool] = []
        delayed = DelayedResponse(
            lambda is_last: [b"late"] if is_ready else None,
            1e9,
            [self.log] if awaits_flush else [],
            awaits_flush=awaits_flush,
        )
        self.delayed.append((delayed, is_ready))
        self.connection.responses.delay(delayed)

    is_open = precondition(lambda self: self.state is not ConnectionState.CLOSED)
    is_reading = precondition(lambda self: self.state is ConnectionState.READING)

    @is_open
    @rule(kinds=st.text("oyxdflm...", min_size=1, max_size=6))
    def client_sends(self, kinds: str) -> None:
        for kind in kinds:
            if self.send_bytes(encode_frame(b"%s%d" % (kind.encode(), self.sent_count))):
                self.sent_count += 1

    @is_open
    @rule(size=st.sampled_from([100, LARGE_FRAME_BYTES, len(LARGE)]))
    def client_sends_part_of_a_large_frame(self, size: int) -> None:
        self.send_bytes(LARGE[:size])
        self.is_cut_up = True

    @is_open
    @rule(size=st.sampled_from([0, -1, BUDGET + 1]))
    def client_sends_a_bad_size(self, size: int) -> None:
        self.send_bytes(INT32.pack(size))

    def send_bytes(self, data: bytes) -> bool:
        try:
            return bool(self.client.send(data))
        except (BlockingIOError, BrokenPipeError):
            return False

    @is_open
    @rule()
    def client_shuts_its_half(self) -> None:
        self.client.shutdown(socket.SHUT_WR)

    @rule()
    def client_takes_responses(self) -> None:
        try:
            while self.client.recv(1 << 20):
                pass
        except (BlockingIOError, ConnectionResetError):
            return

    @rule()
    def others_take_the_budget(self) -> None:
        if self.taken is None:
            self.taken = FrameRoom(BUDGET, lambda: None)
            self.budget.ask(self.taken, BUDGET)

    @rule()
    def others_release_the_budget(self) -> None:
        if self.taken is not None:
            self.budget.release(self.taken)
            self.taken = None
            while self.granted:
                self.granted.pop()
                if self.state is not ConnectionState.CLOSED:
                    self.connection.grant_buffer()
                    self.advance()

    @is_reading
    @rule()
    def socket_is_readable(self) -> None:
        frames = self.connection.receive(self.shared)
        if frames is not None:
            self.handle(frames)
            self.connection.mute_behind_flush(frames)
        self.advance()

    @is_open
    @rule()
    def socket_is_writable(self) -> None:
        self.advance()

    @precondition(lambda self: self.state is ConnectionState.OFFLOADED)
    @rule()
    def worker_is_done(self) -> None:
        self.connection.work_done()
        self.connection.responses.append(Response(b"worked"))
        self.advance()

    @precondition(lambda self: self.state is ConnectionState.YIELDED)
    @rule()
    def turn_comes(self) -> None:
        if (frames := self.connection.take_held()) is not None:
            self.handle(frames)
        self.advance()

    @precondition(lambda self: self.delayed and self.state is not ConnectionState.CLOSED)
    @rule(is_first=st.booleans())
    def delayed_response_completes(self, is_first: bool) -> None:
        delayed, is_ready = self.delayed.pop(0 if is_first else -1)
        is_ready.append(True)
        assert self.connection.responses.attempt(delayed, is_last=False)
        self.connection.unmute()
        self.advance()

    @is_open
    @rule(until_s=st.sampled_from([0.0, 2000.0]))
    def quota_is_exceeded_or_paid_for(self, until_s: float) -> None:
        self.connection.throttle(until_s)
        self.advance()

    @is_open
    @rule()
    def processor_closes(self) -> None:
        self.connection.close()

    @invariant()
    def interest_fits_the_state(self) -> None:
        assert self.state in TRANSITIONS
        interest = self.connection.interest
        assert bool(interest & selectors.EVENT_READ) == (self.state is ConnectionState.READING)
        if self.state is ConnectionState.CLOSED:
            assert interest == 0

    @invariant()
    def nothing_waits_for_an_event_that_cannot_come(self) -> None:
        """While it does not read, something must still be able to change its state."""
        if self.state is ConnectionState.READING:
            assert self.connection.fault is None
            assert not self.connection.responses.is_full
        if self.state is ConnectionState.BLOCKED:
            assert self.connection.interest or self.delayed
        if self.state is ConnectionState.THROTTLED:
            assert self.connection.throttled_until_s
        if self.state is ConnectionState.CLOSING:
            assert self.connection.interest or self.delayed

    @invariant()
    def budget_is_back_when_closed(self) -> None:
        if self.state is ConnectionState.CLOSED and self.taken is None:
            assert self.budget.taken == 0


DrivenConnection.TestCase.settings = settings(
    max_examples=200, stateful_step_count=30, deadline=None
)
TestDrivenConnection = DrivenConnection.TestCase


def connected() -> tuple[socket.socket, socket.socket]:
    """Return the broker's end of a connection over TCP, which can be reset, and the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    ours.setblocking(False)
    return ours, client


def receive(connection: ServerConnection) -> Frames | None:
    """Have a connection receive once there is something."""
    assert select.select([connection.sock], [], [], 20)[0]
    return connection.receive(bytearray(1 << 20))


def begin_large(connection: ServerConnection, client: socket.socket) -> None:
    """Have a connection receive all of a large frame but its last byte."""
    client.sendall(LARGE[:-1])
    while not connection.receiver.has_begun_large:
        receive(connection)


def test_connection_when_it_has_begun_a_large_frame_then_is_not_muted_behind_a_flush() -> None:
    """Others may wait for the room it holds, so it goes on."""
    log: Log = Listened()  # type: ignore[assignment]  # stands in
    ours, client = connected()
    connection = new_connection(ours, QueuedBytes(BUDGET))
    with client, ours:
        for number in range(2):
            if number:
                begin_large(connection, client)
            connection.responses.delay(
                DelayedResponse(lambda is_last: None, 1e9, [log], awaits_flush=True)
            )
            connection.mute_behind_flush(frames_of([b"publish"]))
        assert connection.may_receive
        assert connection.state is ConnectionState.READING


def test_connection_when_throttled_inside_a_large_frame_then_receives_all_of_it_first() -> None:
    ours, client = connected()
    connection = new_connection(ours, QueuedBytes(BUDGET))
    with client, ours:
        begin_large(connection, client)
        connection.throttle(2000.0)
        states = [connection.state]
        client.sendall(LARGE[-1:])
        assert receive(connection)
        for until_s in (2000.0, 0.0):
            connection.throttle(until_s)
            states.append(connection.state)
        assert states == [
            ConnectionState.READING,
            ConnectionState.THROTTLED,
            ConnectionState.READING,
        ]


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_frames_when_a_worker_hands_the_request_before_them_on_then_are_still_held() -> None:
    ours, client = connected()
    with client, ours:
        client.sendall(encode_frame(b"first") + encode_frame(b"second"))
        connection = new_connection(ours, QueuedBytes(BUDGET))
        frames = receive(connection)
        assert frames is not None
        connection.offload(frames.since(1))
        connection.work_done()
        connection.offload(None, Future())
        connection.work_done()
        connection.yield_turn()
        assert list(connection.take_held() or ()) == [b"second"]


def test_frames_when_a_large_one_came_after_them_then_are_not_held_behind_it() -> None:
    ours, client = connected()
    connection = new_connection(ours, QueuedBytes(BUDGET))
    receiver, shared = connection.receiver, bytearray(1 << 20)
    arriving = [encode_frame(b"small" * 20) * 2000 + LARGE[:-1], LARGE[-1:]]

    def recv_into(view: memoryview) -> int:
        data = arriving.pop(0)
        view[: len(data)] = data
        return len(data)

    with client, ours, patch.object(receiver, "transport", Mock(recv_into=recv_into)):
        assert len(receiver.receive(shared) or ()) == 2000
        large = receiver.receive(shared)
        assert large is not None
        assert large.bounds == [0, len(LARGE)]
        receiver.hold(large.since(1))
        assert not receiver.held


@pytest.mark.usefixtures("expects_bugs")
def test_connection_when_the_selector_has_no_room_for_it_then_is_closed_all_the_same() -> None:
    connections = Connections(Mock(), network_parts(FakeClock()), Mock())
    ours, client = connected()
    with client, closing(connections.selector):
        no_room = OSError(errno.ENOSPC, "no room")
        with patch.object(connections.selector, "register", side_effect=no_room):
            connections.add(ours, "peer", PLAIN)
        assert ours.fileno() == -1
        assert not connections.open


@pytest.mark.parametrize("is_granted", [True, False])
@pytest.mark.parametrize("ending", ["idle", "end", "reset", "bad frame", "refused"])
def test_connection_when_closed_inside_a_large_frame_then_freed_without_the_garbage_collector(
    ending: str, is_granted: bool, no_garbage_collector: None
) -> None:
    budget = QueuedBytes(BUDGET)
    others = FrameRoom(BUDGET, lambda: None)
    if not is_granted:
        budget.ask(others, BUDGET)
    ours, client = connected()
    with client:
        connection = new_connection(ours, budget)
        frames = None
        if ending == "bad frame":
            client.sendall(encode_frame(b"good") + INT32.pack(-1))
            frames = receive(connection)
        else:
            begin_large(connection, client)
            assert budget.waiting_count == (not is_granted)
        if ending == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if ending in ("end", "reset"):
            client.close()
            while is_granted and connection.fault is None:
                receive(connection)
        if ending == "refused":
            try:
                raise ProtocolError("a bad request")
            except ProtocolError as error:
                connection.fail(error)
        connection.close()
        del frames
    budget.release(others)
    assert budget.taken == 0
    freed = weakref.ref(connection.receiver)
    del connection
    assert freed() is None
