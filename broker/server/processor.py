"""A processor: one thread that owns connections, reads their requests and writes the responses.

No handler blocks it. A delayed response is in its purgatory, and a request that takes too long is
offloaded to a worker; other threads wake the processor through a socket.

Connections share its time by work, not by requests: the one for which it has worked least is served
first, and after each `SLICE_S` it looks again which that is. The measure is that of start-time fair
queueing: a connection's turn starts where its last one ended, or where the turn of the connection
served last started, if that is later; so no connection saves up time by being idle.
"""

from __future__ import annotations

import logging
import math
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from operator import attrgetter

from broker.clock import Clock
from broker.errors import ProtocolError
from broker.protocol.append_request import PUBLISH_TYPE
from broker.server.connection import LingeringClient, ServerConnection
from broker.server.end_of_streams import end_streams
from broker.server.frame_receiver import RECEIVE_BYTES
from broker.server.freed_memory import give_back_freed_memory
from broker.server.handlers import CloseConnection, Offload, Outcome, RequestHandlers, YieldTurn
from broker.server.hang_ups import HangUps
from broker.server.metrics import ProcessorMetrics
from broker.server.purgatory import DelayCounts, DelayedResponse, Purgatory, Response
from broker.server.quotas import PeerLog, QueuedBytes

logger = logging.getLogger(__name__)

SLICE_S = 0.01
"""How long some connections are served before checking whether others should come first."""
_WAKE_UP_BYTES = 4096
_SWEEP_INTERVAL_S = 5.0


class Processor:
    """Serves the connections it is given."""

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        metrics: ProcessorMetrics,
        peer_log: PeerLog,
        queued_bytes: QueuedBytes,
        worker: Executor,
        max_frame_bytes: int,
        max_idle_s: float,
        on_close: Callable[[str], None],
    ) -> None:
        self.metrics = metrics
        self._clock = clock
        self._peer_log = peer_log  # why connections are closed
        self._queued_bytes = queued_bytes  # the budget for large frames
        self._worker = worker  # for requests that take too long
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_s = max_idle_s  # without a whole request
        self._on_close = on_close  # called with the address of each closed connection
        self._handlers: RequestHandlers | None = None
        self._worker_handlers: RequestHandlers | None = None
        self._shared = bytearray(RECEIVE_BYTES)
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._hang_ups = HangUps()
        if self._hang_ups.selectable is not None:
            self._selector.register(self._hang_ups.selectable, selectors.EVENT_READ)
        self._is_woken = False
        self._connections: set[ServerConnection] = set()
        self._purgatory: Purgatory[ServerConnection] = Purgatory()
        # Other threads append to these; the processor takes from them once each turn.
        self._accepted: deque[tuple[socket.socket, str]] = deque()
        self._granted: deque[ServerConnection] = deque()
        self._work_done: deque[tuple[ServerConnection, Future[list[Outcome]]]] = deque()
        self._yielded: list[ServerConnection] = []
        self._turn_start_s = 0.0
        """Of the connection served last, by the measure of `ServerConnection.turn_end_s`."""
        self._turn_listeners: deque[threading.Event] = deque()  # set when a turn is over
        self._next_sweep_s = clock.monotonic_s() + _SWEEP_INTERVAL_S
        self._has_closed = False  # whether connections were closed since the last sweep
        self._is_stopping = False
        self._last_response: bytes | None = None
        self._lingering: list[LingeringClient] = []
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, handlers: RequestHandlers, worker_handlers: RequestHandlers) -> None:
        """Start the thread; `worker_handlers` handle offloaded requests on a worker's thread."""
        self._handlers = handlers
        self._worker_handlers = worker_handlers
        self._thread.start()

    # For the broker's status; from any thread.

    @property
    def waiting(self) -> list[DelayedResponse]:
        """Return the responses that wait, for data or for a commit."""
        return self._purgatory.all()

    @property
    def delay_counts(self) -> list[DelayCounts]:
        """Return the counts of delayed responses, by `DelayKind`."""
        return self._purgatory.counts

    @property
    def deadline_count(self) -> int:
        """Return how many deadlines are kept, also those of completed responses."""
        return self._purgatory.deadline_count

    @property
    def held_count(self) -> int:
        """Return how many connections have requests that wait for their turn."""
        return sum(one.has_held for one in self._connections.copy())

    @property
    def unsent_count(self) -> int:
        """Return how many connections have responses that their client has not taken yet."""
        return sum(one.has_unsent for one in self._connections.copy())

    def set_max_idle(self, max_idle_s: float) -> None:
        """Change how long a connection may be without a whole request, from any thread."""
        self._max_idle_s = max_idle_s

    def finish_turn(self) -> None:
        """Return once the turn under way is over; callable from any other thread."""
        is_over = threading.Event()
        self._turn_listeners.append(is_over)
        self._send_wake_up()
        while self._thread.is_alive() and not is_over.wait(_SWEEP_INTERVAL_S):
            continue

    def begin_stop(self, last_response: bytes | None = None) -> None:
        """Have the thread respond to the received requests, end its streams, and close."""
        if not self._is_stopping:
            self._last_response = last_response
            self._is_stopping = True
            self._send_wake_up()

    def stop(self) -> list[LingeringClient]:
        """Join the thread, after `begin_stop` if needed; the caller ends the returned clients."""
        self.begin_stop()
        if self._thread.ident is not None:
            self._thread.join()
        self._refuse_accepted()
        self._selector.close()
        self._hang_ups.close()
        self._wake_receiver.close()
        self._wake_sender.close()
        return self._lingering

    def add_connection(self, sock: socket.socket, address: str) -> None:
        """Serve a new connection; callable from any thread."""
        self._accepted.append((sock, address))
        if self._thread.is_alive():
            self._send_wake_up()
        else:  # it ended by a bug, which was logged: the connection would never be served
            self._refuse_accepted()

    def wake(self, delayed: DelayedResponse) -> None:
        """Attempt a delayed response again soon; callable from any thread."""
        self._purgatory.note_woken(delayed)
        if threading.current_thread() is not self._thread:  # which takes it before it waits
            self._wake_up()

    def unanswered_since(self, since_s: float) -> int:
        """Return how many clients sent requests without a response since then; any thread."""
        return sum(one.was_unanswered_since(since_s) for one in self._connections.copy())

    def _wake_up(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._send_wake_up()

    def _send_wake_up(self) -> None:
        try:
            self._wake_sender.send(b"\0")
        except BlockingIOError:
            return  # enough wake-ups are in the socket already
        except OSError:
            if not self._is_stopping:
                raise

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
                self._tell_turn_listeners()
        except Exception:  # a bug ends this thread only
            logger.exception("%s ended by a bug; its connections are closed", self._thread.name)
        finally:
            self._take_work_done()
            waiting = [one for one in self._purgatory.all() if not one.lingers]
            self._attempt_all(waiting, is_last=True, slice_s=math.inf)
            self._take_yielded(is_last=True)
            if self._is_stopping:
                end_streams(self._connections, self._last_response, self._clock)
            for connection in list(self._connections):
                self._close(connection)
            self._refuse_accepted()
            self._tell_turn_listeners()

    def _tell_turn_listeners(self) -> None:
        while self._turn_listeners:
            self._turn_listeners.popleft().set()

    def _turn(self) -> None:
        ready = self._selector.select(self._seconds_to_next())
        if len(ready) > 1:
            ready.sort(key=_turn_end_of)
        end_s = time.perf_counter() + SLICE_S
        for key, events in ready:
            connection: ServerConnection | None = key.data
            if key.fileobj is self._wake_receiver:
                with suppress(BlockingIOError):
                    self._wake_receiver.recv(_WAKE_UP_BYTES)
                continue
            if connection is None:
                self._take_hang_ups()
                continue
            if connection not in self._connections:
                continue
            if events & selectors.EVENT_READ:
                self._serve(connection, self._read)
            if events & selectors.EVENT_WRITE and connection in self._connections:
                self._serve(connection, self._advance)
            if time.perf_counter() >= end_s:
                break  # the selector returns the others again
        self._take_accepted()
        # Before the queues are emptied: a thread that appends later wakes the processor again.
        self._is_woken = False
        if self._purgatory.has_woken:
            for delayed in self._attempt_all(self._purgatory.take_woken(), is_last=False):
                self._purgatory.note_woken(delayed)
        self._take_granted()
        self._take_work_done()
        self._take_yielded()
        self._expire()

    def _seconds_to_next(self) -> float:
        if self._yielded or self._purgatory.has_woken:
            return 0.0
        due_s = self._next_sweep_s
        deadline_s = self._purgatory.next_deadline_s
        if deadline_s is not None:
            due_s = min(due_s, deadline_s)
        return max(0.0, due_s - self._clock.monotonic_s())

    def _refuse_accepted(self) -> None:
        with suppress(IndexError):  # none is left, or another thread was faster
            while True:
                sock, address = self._accepted.popleft()
                sock.close()
                self._on_close(address)

    def _take_accepted(self) -> None:
        while self._accepted:
            sock, address = self._accepted.popleft()
            connection = ServerConnection(
                sock,
                address,
                clock=self._clock,
                max_frame_bytes=self._max_frame_bytes,
                queued_bytes=self._queued_bytes,
                on_granted=self._note_granted,
            )
            self._connections.add(connection)
            self._selector.register(sock, connection.interest, connection)

    def _serve(
        self, connection: ServerConnection, action: Callable[[ServerConnection], None]
    ) -> None:
        began_s = time.perf_counter()
        try:
            action(connection)
        except Exception:  # a bug costs one connection, not the processor
            logger.exception("a request of %s failed by a bug", connection.peer)
            self._close(connection)
        self._turn_start_s = max(self._turn_start_s, connection.turn_end_s)
        connection.turn_end_s = self._turn_start_s + time.perf_counter() - began_s

    def _read(self, connection: ServerConnection) -> None:
        frames = connection.receive(self._shared)
        self.metrics.bad_frames += isinstance(connection.fault, ProtocolError)
        self.metrics.bytes_read += connection.received_bytes
        if frames:
            self._handle(connection, frames)
            connection.mute_behind_flush(frames)
        self._advance(connection)

    def _handle(self, connection: ServerConnection, frames: list[memoryview]) -> None:
        assert self._handlers is not None
        if not connection.has_published:
            connection.has_published = frames[-1][:2] == PUBLISH_TYPE
        is_answered = False
        for handled_count, outcome in self._handlers.handle(frames, connection.refused):
            is_answered = True
            match outcome:
                case Offload():
                    connection.offload(frames[handled_count:])
                    self._offload(connection, outcome.frames)
                    return
                case Future():
                    connection.offload(frames[handled_count:], outcome)
                    outcome.add_done_callback(partial(self._note_work_done, connection))
                    return
                case YieldTurn():
                    connection.yield_turn(frames[handled_count:])
                    self._yielded.append(connection)
                    return
            self._take_outcome(connection, outcome)
            if connection.is_full:
                connection.hold(frames[handled_count:])
                return
        if not is_answered:
            connection.note_unanswered()

    def _take_outcome(self, connection: ServerConnection, outcome: Outcome) -> None:
        match outcome:
            case DelayedResponse():
                if self._purgatory.add(outcome, connection, self.wake):
                    connection.delay(outcome)
                else:
                    connection.queue(outcome)
            case Response():
                connection.queue(outcome)
            case CloseConnection(reason, is_bad_frame):
                connection.fail(reason)
                self.metrics.bad_frames += is_bad_frame

    def _offload(self, connection: ServerConnection, frames: list[memoryview]) -> None:
        assert self._worker_handlers is not None
        handlers = self._worker_handlers
        kept = [memoryview(bytes(one)) if one.obj is self._shared else one for one in frames]
        future = self._worker.submit(
            lambda: [outcome for _, outcome in handlers.handle(kept, connection.refused)]
        )
        future.add_done_callback(partial(self._note_work_done, connection))

    def _note_work_done(self, connection: ServerConnection, done: Future[list[Outcome]]) -> None:
        """Have the outcomes taken soon; called from the worker's thread."""
        self._work_done.append((connection, done))
        self._wake_up()

    def _take_work_done(self) -> None:
        while self._work_done:
            connection, done = self._work_done.popleft()
            connection.work_done()
            if connection in self._connections:
                self._serve(connection, partial(self._take_outcomes, done))

    def _take_outcomes(self, done: Future[list[Outcome]], connection: ServerConnection) -> None:
        outcomes: list[Outcome]
        error = done.exception()
        if isinstance(error, ProtocolError):
            outcomes = [CloseConnection(error, is_bad_frame=True)]
        else:
            outcomes = done.result()
        for outcome in outcomes:
            self._take_outcome(connection, outcome)
        if not outcomes:
            connection.note_unanswered()
        self._advance(connection)

    def _take_yielded(self, *, is_last: bool = False) -> None:
        """Handle held frames of earlier turns, least served first; with `is_last`, all of them."""
        if not self._yielded:
            return
        yielded, self._yielded = self._yielded, []
        yielded.sort(key=attrgetter("turn_end_s"))
        end_s = time.perf_counter() + SLICE_S
        for number, connection in enumerate(yielded, start=1):
            if connection in self._connections:
                connection.begin_turn()
                self._serve(connection, self._handle_held)
            if time.perf_counter() >= end_s and not is_last:
                self._yielded += yielded[number:]
                break

    def _handle_held(self, connection: ServerConnection) -> None:
        frames = connection.take_held()
        self.metrics.bad_frames += bool(frames) and isinstance(connection.fault, ProtocolError)
        if frames:
            self._handle(connection, frames)
        self._advance(connection)

    def _note_granted(self, connection: ServerConnection) -> None:
        """Have the large frame that waited for the budget received soon; from any thread."""
        self._granted.append(connection)
        self._wake_up()

    def _take_granted(self) -> None:
        while self._granted:
            connection = self._granted.popleft()
            if connection in self._connections:
                self._serve(connection, self._grant_buffer)

    def _grant_buffer(self, connection: ServerConnection) -> None:
        connection.grant_buffer()
        self._advance(connection)

    def _attempt_all(
        self, delayed: Iterable[DelayedResponse], *, is_last: bool, slice_s: float = SLICE_S
    ) -> list[DelayedResponse]:
        """Attempt delayed responses, then send those complete, once for each connection.

        Publishes come before the reads that they wake, of which there may be thousands. Requests
        that gathered while a connection was muted are read at once, not a turn later, but after all
        responses are sent. Those not attempted within `slice_s` are returned, for the next turn.
        With `is_last`, their deadline has passed or the broker stops.
        """
        owned: dict[ServerConnection, list[DelayedResponse]] = {}
        for one in delayed:
            if (owner := self._purgatory.owner_of(one)) is not None:
                owned.setdefault(owner, []).append(one)
        connections = list(owned)
        if len(connections) > 1:
            connections.sort(key=lambda one: _rank(one, owned[one]))
        unmuted: list[ServerConnection] = []
        left: list[DelayedResponse] = []
        end_s = time.perf_counter() + slice_s
        for number, connection in enumerate(connections, start=1):
            self._serve(connection, partial(self._attempt_those, owned[connection], is_last))
            if connection in self._connections:
                if connection.unmute():
                    unmuted.append(connection)
                    self._serve(connection, self._send)
                else:
                    self._serve(connection, self._advance)
            if time.perf_counter() >= end_s:
                left = [one for owner in connections[number:] for one in owned[owner]]
                break
        end_s = time.perf_counter() + slice_s
        for connection in unmuted:
            if connection in self._connections:
                may_read = connection.may_receive and time.perf_counter() < end_s
                self._serve(connection, self._read if may_read else self._advance)
        return left

    def _attempt_those(
        self, delayed: list[DelayedResponse], is_last: bool, connection: ServerConnection
    ) -> None:
        for one in delayed:
            self._attempt(one, is_last, connection)

    def _attempt(
        self, delayed: DelayedResponse, is_last: bool, connection: ServerConnection
    ) -> None:
        if connection.attempt(delayed, is_last=is_last):
            self._purgatory.remove(delayed)

    def _expire(self) -> None:
        now_s = self._clock.monotonic_s()
        due = self._purgatory.take_due(now_s)
        if due:
            self._attempt_all(due, is_last=True)
        for delayed in due:
            if self._purgatory.owner_of(delayed) is not None:  # put off, or left to the next turn
                self._purgatory.watch_deadline(delayed)
            elif delayed.parts is not None:
                self._purgatory.counts[delayed.kind].expired += 1
        if now_s >= self._next_sweep_s:
            self._next_sweep_s = now_s + _SWEEP_INTERVAL_S
            for connection in list(self._connections):
                if connection.is_deserted(now_s):
                    self._close(connection)
                elif reason := connection.reason_to_close(now_s, max_idle_s=self._max_idle_s):
                    self._peer_log.warn(connection.peer, reason)
                    self._close(connection)
            if self._has_closed or self._queued_bytes.has_been_emptied():
                self._has_closed = False
                give_back_freed_memory()

    def _take_hang_ups(self) -> None:
        for connection, is_gone in self._hang_ups.take():
            if is_gone:
                self._close(connection)
            else:
                connection.note_half_closed()
                self._serve(connection, self._advance)

    def _advance(self, connection: ServerConnection) -> None:
        """Send, leave held requests to the next turn, and wait for more."""
        for delayed in connection.overdue_reads:
            self._attempt(delayed, is_last=True, connection=connection)
        self._send(connection)
        if connection.may_take_held:
            connection.yield_turn()
            self._yielded.append(connection)
        if connection.is_finished:
            # A client that just left is not logged.
            if not isinstance(connection.fault, (EOFError, ConnectionError)):
                self._peer_log.warn(connection.peer, connection.fault)
            self._close(connection)
            return
        self._hang_ups.update(connection, is_watched=connection.could_be_deserted)
        events = connection.interest
        known = self._selector.get_map().get(connection.sock)
        if known is None:
            if events:
                self._selector.register(connection.sock, events, connection)
        elif not events:
            self._selector.unregister(connection.sock)
        elif known.events != events:
            self._selector.modify(connection.sock, events, connection)

    def _send(self, connection: ServerConnection) -> None:
        self.metrics.bytes_written += connection.send()

    def _close(self, connection: ServerConnection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._has_closed = True
        self._hang_ups.update(connection, is_watched=False)
        if self._selector.get_map().get(connection.sock) is not None:
            self._selector.unregister(connection.sock)
        if (client := connection.linger()) is not None:
            self._lingering.append(client)
        for delayed in connection.close():
            self._purgatory.remove(delayed)
        self._on_close(connection.peer)


def _turn_end_of(ready: tuple[selectors.SelectorKey, int]) -> float:
    connection: ServerConnection | None = ready[0].data
    return 0.0 if connection is None else connection.turn_end_s


def _rank(connection: ServerConnection, woken: list[DelayedResponse]) -> tuple[bool, float]:
    return not any(one.awaits_flush for one in woken), connection.turn_end_s
