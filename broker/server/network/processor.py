"""A processor: one thread that owns connections, reads their requests and writes the responses.

No handler blocks it. A delayed response is in its purgatory, and a request that takes too long is
offloaded to a worker; other threads wake the processor through a socket.

Connections share its time by work, not by requests: the one for which it has worked least is served
first, and after each `SLICE_S` it looks again which that is. The measure is that of start-time fair
queueing: a connection's turn starts where its last one ended, or where the turn of the connection
served last started, if that is later; so no connection saves up time by being idle. Each turn moves
that start on by its share, so that connections that work alike are served in the same order again.
"""

from __future__ import annotations

import heapq
import logging
import math
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from operator import attrgetter
from typing import Any

from broker.errors import ProtocolError
from broker.protocol.framing import Frames
from broker.server.network.connection import (
    PLAIN,
    LingeringClient,
    Listener,
    NetworkParts,
    ServerConnection,
)
from broker.server.network.connections import Connections, end_streams
from broker.server.network.mailbox import Mailbox
from broker.server.network.principal_quotas import PrincipalUse
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.outcomes import (
    CloseConnection,
    Handlers,
    Offload,
    Outcome,
    Work,
    YieldTurn,
)
from broker.server.requests.purgatory import DelayedResponse, Purgatory, Response
from broker.server.requests.validation import RECEIVE_BYTES
from broker.threads import LoopThread

logger = logging.getLogger(__name__)

SLICE_S = 0.01
"""How long some connections are served before checking whether others should come first."""
_SLICE_OF_READY_S = 25e-6
"""The same for each connection that is ready: to check takes a microsecond for each."""
_SHORT_TURN_S = 5e-4
"""Shorter turns count alike: what differs is how often the thread was interrupted."""
_CROWD = 8
"""If more connections are ready, the time in which the thread waits for a core does not count.

A connection would wait as long behind each of the others.
"""
_MOST_SLICES = 5
"""As many times its length a slice takes at most if the thread waits for a core in it.

To look at all connections again needs a core as well.
"""
_SWEEP_INTERVAL_S = 5.0
_GATHER_S = 5e-5
"""How long requests without responses gather while a client sends them one by one.

To wake this thread for each would take the client longer than the thread takes to handle it. The
system adds its slack, which is as much again.
"""
_AT_ONCE_S = 2e-5
"""Requests that come within this time after a turn come one by one without a pause."""
_ALONE_S = 0.01
"""They gather only if no turn served anything else for this time: nobody waits for the thread."""


class Processor:
    """Serves the connections it is given."""

    def __init__(self, name: str, metrics: ProcessorMetrics, network: NetworkParts) -> None:
        self.metrics = metrics
        self.purgatory: Purgatory[ServerConnection] = Purgatory()
        self._clock = clock = network.clock
        self._network = network
        self._handlers: Handlers | None = None
        self._worker_handlers: Handlers | None = None
        self._shared = bytearray(RECEIVE_BYTES)
        self._mailbox = Mailbox()
        self._connections = Connections(
            self.purgatory,
            network,
            lambda one: self._mailbox.post(partial(self._serve, one, self._grant_buffer)),
        )
        self._open = self._connections.open
        self._selector = self._connections.selector
        self._selector.register(self._mailbox, selectors.EVENT_READ)
        self._yielded: list[ServerConnection] = []
        self._throttled: list[tuple[float, float, int, ServerConnection]] = []
        """A heap: until and since when connections are throttled."""
        self._turn_began_s = time.perf_counter()
        self._turn_start_s = 0.0
        """Of the connection served last, by the measure of `ServerConnection.turn_end_s`."""
        self._crowd_count = 1  # connections to be served
        self._time_s = time.perf_counter  # measures work
        self._next_sweep_s = clock.monotonic_s() + _SWEEP_INTERVAL_S
        self._is_stopping = self._has_ended = self._may_gather = False
        self._served_others_s = -math.inf  # when a turn had more than requests without responses
        self._stop_reason = ""  # for the clients
        self._thread = LoopThread(self._run, name=name, at_failure=self._end)

    def start(self, handlers: Handlers, worker_handlers: Handlers) -> None:
        """Start the thread; `worker_handlers` handle offloaded requests on a worker's thread."""
        self._handlers = handlers
        self._worker_handlers = worker_handlers
        self._thread.start()

    @property
    def connections(self) -> set[ServerConnection]:
        """Return the open connections; callable from any thread."""
        return self._open.copy()

    def finish_turn(self) -> None:
        """Return once the requests being handled now are; callable from any other thread."""
        is_over = threading.Event()
        self._mailbox.post(is_over.set)
        while self._thread.is_alive() and not is_over.wait(_SWEEP_INTERVAL_S):
            continue

    def begin_stop(self, reason: str = "") -> None:
        """Have the thread respond to the received requests, end its streams, and close.

        The clients are told the reason if all their acknowledged messages are flushed; else there
        is none.
        """
        if not self._is_stopping:
            self._stop_reason = reason
            self._is_stopping = True
            self._mailbox.wake()

    def stop(self) -> list[LingeringClient]:
        """Join the thread, after `begin_stop` if needed; the caller ends the returned clients."""
        self.begin_stop()
        if self._thread.ident is not None:
            self._thread.join()
        self._mailbox.run()
        self._connections.end()
        self._mailbox.close()
        return self._connections.lingering

    def add_connection(self, sock: socket.socket, address: str, listener: Listener = PLAIN) -> None:
        """Serve a new connection; callable from any thread."""
        self._mailbox.post(partial(self._accept, sock, address, listener))
        if not self._thread.is_alive():
            self._mailbox.run()

    def _accept(self, sock: socket.socket, address: str, listener: Listener) -> None:
        if not self._has_ended and self._thread.is_alive():
            self._connections.add(sock, address, listener)
        else:
            self._connections.refuse(sock, address)

    def wake(self, delayed: DelayedResponse) -> None:
        """Attempt a delayed response again soon; callable from any thread."""
        self.purgatory.note_woken(delayed)
        if threading.current_thread() is not self._thread:  # which takes it before it waits
            self._mailbox.wake()

    def _run(self) -> None:
        self._mailbox.run()  # its wake-up may have been taken by a turn that failed
        while not self._is_stopping:
            self._turn()
        if not self._has_ended:  # else its end has failed
            self._end()

    def _end(self) -> None:
        self._has_ended = True
        try:
            self._mailbox.run()
            self._connections.refuse_waiting()  # else they had the places of those that end
            waiting = [one for one in self.purgatory.all() if not one.lingers]
            self._attempt_all(waiting, is_last=True, slice_s=math.inf)
            self._resume_throttled(math.inf)
            self._take_yielded(is_last=True)
            if self._is_stopping:
                end_streams(self._open, self._stop_reason, self._clock)
        finally:
            for connection in self.connections:
                self._connections.close(connection)
        self._mailbox.run()

    def _turn(self) -> None:
        wait_s = self._seconds_to_next()
        ended_s = time.perf_counter()
        if self._may_gather and wait_s > _GATHER_S:
            time.sleep(_GATHER_S)
            wait_s -= _GATHER_S
        gathered_s = time.perf_counter()
        ready = self._selector.select(wait_s)
        began_s = time.perf_counter()
        self.metrics.busy_s += ended_s - self._turn_began_s
        self.metrics.idle_s += began_s - ended_s
        self._turn_began_s = began_s
        if len(ready) > 1:
            ready.sort(key=_turn_end_of)
        self._note_crowd(len(ready))
        slice_s = max(SLICE_S, _SLICE_OF_READY_S * len(ready))
        work_end_s, end_s = self._time_s() + slice_s, began_s + _MOST_SLICES * slice_s
        for key, events in ready:
            connection: ServerConnection | None = key.data
            if key.fileobj is self._mailbox:
                self._mailbox.take_wake_up()
            elif connection is None:
                for one in self._connections.take_hang_ups():
                    self._serve(one, self._advance)
                self._connections.begin_handshakes()
            else:
                if events & selectors.EVENT_READ:
                    self._serve(connection, self._read)
                if events & selectors.EVENT_WRITE:
                    self._serve(connection, self._advance)
            if self._time_s() >= work_end_s or time.perf_counter() >= end_s:
                break  # the selector returns the others again
        if not ready or not all(
            key.data is not None and key.data.has_sent_little_unanswered for key, _ in ready
        ):
            self._served_others_s = began_s
        is_alone = began_s - self._served_others_s > _ALONE_S
        self._may_gather = is_alone and began_s - gathered_s < _AT_ONCE_S
        self._mailbox.run()
        if self.purgatory.woken:
            for delayed in self._attempt_all(self.purgatory.take_woken(), is_last=False):
                self.purgatory.note_woken(delayed)
        if self._yielded:
            self._take_yielded()
        self._expire()

    def _note_crowd(self, count: int) -> None:
        """Note how many connections are to be served now."""
        self._crowd_count = max(1, count)
        self._time_s = time.thread_time if count > _CROWD else time.perf_counter

    def _seconds_to_next(self) -> float:
        if self._yielded or self.purgatory.woken:
            return 0.0
        due_s = min(self._next_sweep_s, self._connections.handshakes_due_s)
        deadline_s = self.purgatory.next_deadline_s
        if deadline_s is not None:
            due_s = min(due_s, deadline_s)
        if self._throttled:
            due_s = min(due_s, self._throttled[0][0])
        return max(0.0, due_s - self._clock.monotonic_s())

    def _serve(
        self, connection: ServerConnection, action: Callable[[ServerConnection], None]
    ) -> None:
        """Run an action for a connection, unless it is closed, and measure the time it takes."""
        if connection not in self._open:
            return
        metrics = self.metrics
        read_bytes, written_bytes = metrics.bytes_read, metrics.bytes_written
        began_s = self._time_s()
        try:
            action(connection)
        except Exception:  # a bug costs one connection, not the processor
            logger.exception("a request of %s failed by a bug", connection.peer)
            self._connections.close(connection)
        self._turn_start_s = max(self._turn_start_s, connection.turn_end_s)
        worked_s = self._time_s() - began_s
        counted_s = max(worked_s, _SHORT_TURN_S)
        connection.turn_end_s = self._turn_start_s + counted_s
        self._turn_start_s += counted_s / self._crowd_count
        if self._network.quotas.is_limiting and connection in self._open:
            received_bytes = metrics.bytes_read - read_bytes
            sent_bytes = metrics.bytes_written - written_bytes
            self._charge(connection, PrincipalUse(received_bytes, sent_bytes, worked_s))

    def _charge(self, connection: ServerConnection, use: PrincipalUse) -> None:
        """Throttle a connection if its principal has used too much; its responses are sent."""
        client = connection.client
        use = use._replace(worked_s=use.worked_s + client.worked_s)
        client.worked_s = 0.0
        until_s = self._network.quotas.charge(client.authentication.identity, use)
        now_s = self._clock.monotonic_s()
        if until_s <= now_s or self._is_stopping:
            return
        if not connection.throttled_until_s:
            heapq.heappush(self._throttled, (until_s, now_s, id(connection), connection))
        connection.throttle(until_s)
        self._connections.update(connection)

    def _resume_throttled(self, now_s: float) -> None:
        """Have connections go on that have waited long enough."""
        while self._throttled and self._throttled[0][0] <= now_s:
            _, since_s, _, connection = heapq.heappop(self._throttled)
            until_s = connection.throttled_until_s
            if until_s > now_s and connection in self._open:  # it used more meanwhile
                heapq.heappush(self._throttled, (until_s, since_s, id(connection), connection))
                continue
            self.metrics.throttled_s += self._clock.monotonic_s() - since_s
            if connection in self._open:
                connection.throttle(0.0)
                self._serve(connection, self._advance)

    def _read(self, connection: ServerConnection) -> None:
        frames = connection.receive(self._shared)
        self.metrics.bad_frames += isinstance(connection.fault, ProtocolError)
        self.metrics.bytes_read += connection.receiver.received_bytes
        if frames is not None:
            connection.arrived_s = self._turn_began_s
            self._handle(connection, frames)
            if connection.responses.delayed:
                connection.mute_behind_flush(frames)
        self._advance(connection)

    def _handle(self, connection: ServerConnection, frames: Frames) -> None:
        assert self._handlers is not None
        is_answered = False
        for handled_count, outcome in self._handlers.handle(
            frames, connection.client, connection.arrived_s
        ):
            is_answered = True
            match outcome:
                case Offload():
                    connection.offload(frames.since(handled_count))
                    self._offload(connection, outcome.frames)
                    return
                case Work():
                    connection.offload(frames.since(handled_count), outcome.future)
                    finish = partial(self._handlers.finish, outcome)
                    self._await_work(connection, outcome.future, finish)
                    return
                case YieldTurn():
                    connection.yield_turn(frames.since(handled_count))
                    self._yielded.append(connection)
                    return
            self._take_outcome(connection, outcome)
            if connection.responses.is_full:
                connection.receiver.hold(frames.since(handled_count))
                return
        if not is_answered:
            connection.note_unanswered()

    def _take_outcome(self, connection: ServerConnection, outcome: Outcome) -> None:
        match outcome:
            case DelayedResponse():
                if self.purgatory.add(outcome, connection, self.wake):
                    connection.responses.delay(outcome)
                else:
                    connection.responses.append(outcome)
                    self._note_total(outcome, time.perf_counter())
            case Response():
                connection.responses.append(outcome)
            case CloseConnection(reason, is_bad_frame):
                connection.fail(reason)
                self.metrics.bad_frames += is_bad_frame

    def _offload(self, connection: ServerConnection, frames: Frames) -> None:
        assert self._worker_handlers is not None
        kept = frames.copy() if frames.view.obj is self._shared else frames
        self.metrics.offloaded_count += 1
        future = self._network.worker.submit(
            self._worker_handlers.handle_all, kept, connection.client, connection.arrived_s
        )
        self._await_work(connection, future, future.result)

    def _await_work(
        self,
        connection: ServerConnection,
        work: Future[Any],
        outcomes_of: Callable[[], Sequence[Outcome]],
    ) -> None:
        """Have the outcomes taken when a worker is done."""
        work.add_done_callback(
            lambda _: self._mailbox.post(partial(self._take_work_done, connection, outcomes_of))
        )

    def _take_work_done(
        self, connection: ServerConnection, outcomes_of: Callable[[], Sequence[Outcome]]
    ) -> None:
        connection.work_done()
        self._serve(connection, partial(self._take_outcomes, outcomes_of))

    def _take_outcomes(
        self, outcomes_of: Callable[[], Sequence[Outcome]], connection: ServerConnection
    ) -> None:
        outcomes = outcomes_of()
        for outcome in outcomes:
            if isinstance(outcome, Work):  # validated by a worker, and now forwarded to a leader
                assert self._handlers is not None
                connection.offload(None, outcome.future)
                finish = partial(self._handlers.finish, outcome)
                self._await_work(connection, outcome.future, finish)
                return
            self._take_outcome(connection, outcome)
        if not outcomes:
            connection.note_unanswered()
        self._advance(connection)

    def _take_yielded(self, *, is_last: bool = False) -> None:
        """Handle held frames of earlier turns, least served first; with `is_last`, all of them."""
        yielded, self._yielded = self._yielded, []
        yielded.sort(key=attrgetter("turn_end_s"))
        self._note_crowd(len(yielded))
        end_s = time.perf_counter() + SLICE_S
        for number, connection in enumerate(yielded, start=1):
            self._serve(connection, self._handle_held)
            if time.perf_counter() >= end_s and not is_last:
                self._yielded += yielded[number:]
                break

    def _handle_held(self, connection: ServerConnection) -> None:
        frames = connection.take_held()
        if frames is not None:
            self.metrics.bad_frames += isinstance(connection.fault, ProtocolError)
            self._handle(connection, frames)
        elif connection.tls is not None and connection.may_take_held:
            self._read(connection)
            return
        self._advance(connection)

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
            if (owner := self.purgatory.owner_of(one)) is not None:
                owned.setdefault(owner, []).append(one)
        connections = list(owned)
        if len(connections) > 1:
            connections.sort(key=lambda one: _rank(one, owned[one]))
        unmuted: list[ServerConnection] = []
        left: list[DelayedResponse] = []
        end_s = time.perf_counter() + slice_s
        for number, connection in enumerate(connections, start=1):
            self._serve(connection, partial(self._attempt, owned[connection], is_last))
            if connection in self._open and connection.unmute():
                unmuted.append(connection)
                self._serve(connection, self._send)
            else:
                self._serve(connection, self._advance)
            if time.perf_counter() >= end_s:
                left = [one for owner in connections[number:] for one in owned[owner]]
                break
        end_s = time.perf_counter() + slice_s
        for connection in unmuted:
            if connection in self._open:
                may_read = connection.may_receive and time.perf_counter() < end_s
                self._serve(connection, self._read if may_read else self._advance)
        return left

    def _attempt(
        self, delayed: Iterable[DelayedResponse], is_last: bool, connection: ServerConnection
    ) -> None:
        for one in delayed:
            if connection.responses.attempt(one, is_last=is_last):
                self._note_total(one, self.purgatory.remove(one))

    def _expire(self) -> None:
        now_s = self._clock.monotonic_s()
        if self._throttled:
            self._resume_throttled(now_s)
        due = self.purgatory.take_due(now_s)
        if due:
            self._attempt_all(due, is_last=True)
            self.purgatory.note_expired(due)
        if now_s >= self._connections.handshakes_due_s:
            self._connections.hurry_handshakes()
        if now_s >= self._next_sweep_s:
            self._next_sweep_s = now_s + _SWEEP_INTERVAL_S
            self._connections.sweep(now_s)
            self.metrics.forget_topics()

    def _advance(self, connection: ServerConnection) -> None:
        """Send, leave held requests to the next turn, and wait for more."""
        if connection.half_closed_s is not None:
            # It may have left altogether, which only a response can show: the socket is reset then.
            self._attempt(connection.responses.delayed_reads, True, connection)
        self._send(connection)
        if connection.may_take_held:
            connection.yield_turn()
            self._yielded.append(connection)
        self._connections.update(connection)

    def _send(self, connection: ServerConnection) -> None:
        self.metrics.bytes_written += connection.send()
        if connection.responses.late:
            for group, elapsed_s in connection.responses.late:
                self.metrics.times[group].send.record(elapsed_s)
            connection.responses.late.clear()

    def _note_total(self, delayed: DelayedResponse, now_s: float) -> None:
        self.metrics.times[delayed.group].total.record(now_s - delayed.arrived_s)


def _turn_end_of(ready: tuple[selectors.SelectorKey, int]) -> float:
    connection: ServerConnection | None = ready[0].data
    return 0.0 if connection is None else connection.turn_end_s


def _rank(connection: ServerConnection, woken: list[DelayedResponse]) -> tuple[bool, float]:
    return not any(one.awaits_flush for one in woken), connection.turn_end_s
