"""A connection is always in a state of the table, and waits for the events that fit it."""

from __future__ import annotations

import gc
import re
import selectors
import socket
import weakref
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.errors import ProtocolError
from broker.log.log import Log
from broker.protocol.framing import encode_frame
from broker.protocol.primitives import INT32
from broker.server import connection_state
from broker.server.connection import LARGE_FRAME_BYTES, MAX_QUEUED_RESPONSES, Connection
from broker.server.connection_state import (
    TRANSITIONS,
    Event,
    IllegalTransitionError,
    State,
    next_state,
)
from broker.server.purgatory import DelayedResponse, Response
from broker.server.quotas import QueuedBytes, Reservation
from tests.doubles import FakeClock

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
    assert set(TRANSITIONS) == set(State)
    assert {event for transitions in TRANSITIONS.values() for event in transitions} == set(Event)
    for state in set(State) - {State.CLOSED}:
        assert next_state(state, Event.CLOSE) is State.CLOSED
    assert set(TRANSITIONS[State.CLOSED].values()) == {State.CLOSED}


@given(st.lists(st.sampled_from(Event)))
def test_next_state_when_events_are_random_then_never_leaves_the_table(events: list[Event]) -> None:
    state = State.READING
    for event in events:
        if event in TRANSITIONS[state]:
            state = next_state(state, event)
            assert state in TRANSITIONS
        else:
            with pytest.raises(IllegalTransitionError, match=f"{event.name} is not allowed"):
                next_state(state, event)


class Listened:
    """Stands in for a log that nothing advances."""

    def add_listener(self, callback: Callable[[], None]) -> None:
        pass

    def remove_listener(self, callback: Callable[[], None]) -> None:
        pass


class DrivenConnection(RuleBasedStateMachine):
    """A connection under random events, driven as a processor drives it."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = QueuedBytes(BUDGET)
        self.taken: Reservation | None = None
        self.granted: list[Connection] = []
        ours, self.client = socket.socketpair()
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        self.client.setblocking(False)
        self.shared = bytearray(1 << 20)
        self.log: Log = Listened()  # type: ignore[assignment]  # stands in
        self.delayed: list[tuple[DelayedResponse, list[bool]]] = []
        self.connection = Connection(
            ours,
            "peer",
            clock=FakeClock(),
            max_frame_bytes=BUDGET,
            queued_bytes=self.budget,
            on_granted=self.granted.append,
        )

    def teardown(self) -> None:
        if self.state is not State.CLOSED:
            self.connection.close()
        self.client.close()

    @property
    def state(self) -> State:
        return self.connection.state

    def advance(self) -> None:
        """Send and handle what is held, as a processor does after every event."""
        self.connection.send()
        while frames := self.connection.take_held():
            self.handle(frames)
            self.connection.send()
        if self.connection.is_finished:
            self.connection.close()

    def handle(self, frames: list[memoryview]) -> None:
        """Handle frames whose first byte says what to do."""
        for number, frame in enumerate(frames, start=1):
            match bytes(frame[:1]):
                case b"o":
                    self.connection.offload(frames[number:])
                    return
                case b"y" if number < len(frames):
                    self.connection.yield_turn(frames[number:])
                    return
                case b"x":
                    self.connection.fail(ProtocolError("a bad request"))
                    return
                case b"d" | b"f" as kind:
                    self.delay(awaits_flush=kind == b"f")
                case b"l":
                    self.connection.queue(Response(bytes(1 << 20)))
                case b"m":
                    for _ in range(MAX_QUEUED_RESPONSES):
                        self.connection.queue(Response(b"r"))
                case _:
                    self.connection.queue(Response(b"response"))
            if self.connection.is_full:
                self.connection.hold(frames[number:])
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
        self.connection.delay(delayed)

    is_open = precondition(lambda self: self.state is not State.CLOSED)
    is_reading = precondition(lambda self: self.state is State.READING)

    @is_open
    @rule(kinds=st.text("oyxdflm...", min_size=1, max_size=6))
    def client_sends(self, kinds: str) -> None:
        for kind in kinds:
            self.send_bytes(encode_frame(kind.encode()))

    @is_open
    @rule(size=st.sampled_from([100, LARGE_FRAME_BYTES, len(LARGE)]))
    def client_sends_part_of_a_large_frame(self, size: int) -> None:
        self.send_bytes(LARGE[:size])

    @is_open
    @rule(size=st.sampled_from([0, -1, BUDGET + 1]))
    def client_sends_a_bad_size(self, size: int) -> None:
        self.send_bytes(INT32.pack(size))

    def send_bytes(self, data: bytes) -> None:
        try:
            self.client.send(data)
        except (BlockingIOError, BrokenPipeError):
            return

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
            self.taken = self.budget.reserve(BUDGET, lambda: None)

    @rule()
    def others_release_the_budget(self) -> None:
        if self.taken is not None:
            self.budget.release(self.taken)
            self.taken = None
            while self.granted:
                self.granted.pop()
                if self.state is not State.CLOSED:
                    self.connection.grant_buffer()
                    self.advance()

    @is_reading
    @rule()
    def socket_is_readable(self) -> None:
        frames = self.connection.receive(self.shared)
        if frames:
            self.handle(frames)
            self.connection.mute_behind_flush(frames, sum(map(len, frames)))
        self.advance()

    @is_open
    @rule()
    def socket_is_writable(self) -> None:
        self.advance()

    @precondition(lambda self: self.state is State.OFFLOADED)
    @rule()
    def worker_is_done(self) -> None:
        self.connection.work_done()
        self.connection.queue(Response(b"worked"))
        self.advance()

    @precondition(lambda self: self.state is State.YIELDED)
    @rule()
    def turn_comes(self) -> None:
        self.connection.begin_turn()
        self.advance()

    @precondition(lambda self: self.delayed and self.state is not State.CLOSED)
    @rule(is_first=st.booleans())
    def delayed_response_completes(self, is_first: bool) -> None:
        delayed, is_ready = self.delayed.pop(0 if is_first else -1)
        is_ready.append(True)
        assert self.connection.attempt(delayed, is_last=False)
        self.connection.unmute()
        self.advance()

    @is_open
    @rule()
    def processor_closes(self) -> None:
        self.connection.close()

    @invariant()
    def interest_fits_the_state(self) -> None:
        assert self.state in TRANSITIONS
        interest = self.connection.interest
        assert bool(interest & selectors.EVENT_READ) == (self.state is State.READING)
        if self.state is State.CLOSED:
            assert interest == 0

    @invariant()
    def nothing_waits_for_an_event_that_cannot_come(self) -> None:
        """While it does not read, something must still be able to change its state."""
        if self.state is State.READING:
            assert self.connection.fault is None
            assert not self.connection.is_full
        if self.state is State.BLOCKED:
            assert self.connection.interest or self.delayed
        if self.state is State.CLOSING:
            assert self.connection.interest or self.delayed

    @invariant()
    def budget_is_back_when_closed(self) -> None:
        if self.state is State.CLOSED and self.taken is None:
            assert self.budget.taken == 0


DrivenConnection.TestCase.settings = settings(
    max_examples=200, stateful_step_count=30, deadline=None
)
TestDrivenConnection = DrivenConnection.TestCase


@pytest.fixture
def no_garbage_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("is_granted", [True, False])
def test_connection_when_closed_inside_a_large_frame_then_freed_without_the_garbage_collector(
    is_granted: bool, no_garbage_collector: None
) -> None:
    budget = QueuedBytes(BUDGET)
    others = None if is_granted else budget.reserve(BUDGET, lambda: None)
    ours, client = socket.socketpair()
    with client:
        ours.setblocking(False)
        connection = Connection(
            ours,
            "peer",
            clock=FakeClock(),
            max_frame_bytes=BUDGET,
            queued_bytes=budget,
            on_granted=lambda one: None,
        )
        client.sendall(LARGE[:1000])
        connection.receive(bytearray(1 << 20))
        assert budget.taken == (len(LARGE) if is_granted else BUDGET)
        connection.close()
    if others is not None:
        budget.release(others)
    assert budget.taken == 0
    freed = weakref.ref(connection)
    del connection
    assert freed() is None
