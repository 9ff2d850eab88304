"""A processor: one thread that owns connections, reads their requests and writes the answers.

No handler blocks it. What must wait is parked and comes back through the wake-up descriptor.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial

from broker.clock import Clock
from broker.errors import BrokerError, ProtocolError
from broker.server.connection import Connection
from broker.server.handlers import Close, Deferred, Outcome, RequestHandlers, TurnOver
from broker.server.metrics import ProcessorMetrics
from broker.server.purgatory import Answer, Parked
from broker.server.quotas import PeerLog, QueuedBytes
from broker.server.shutdown import Lingering

logger = logging.getLogger(__name__)

RECEIVE_BYTES = 1 << 20
_FEW_BYTES = 16 << 10
_FEW_FRAMES = 32
"""What a read brings at most of a client whose throughput does not need every moment."""
_SIGNALS = 4096
_SWEEP_INTERVAL_S = 5.0
_STALL_S = 30.0
_STALL_SHARE = 1 / 20
"""A large frame of which less than this share comes in so long keeps no others from the room."""


class Processor:
    """Serves the connections it is given.

    Args:
        name: of the thread.
        clock: for deadlines and idle connections.
        metrics: where bytes and bad frames are counted.
        peer_log: tells of bad peers.
        queued_bytes: the budget for large frames.
        worker: where requests are handled that take too long.
        max_frame_bytes: the largest frame taken.
        max_idle_s: a connection without a whole request for so long is closed.
        on_close: called with the address of each connection that is gone.
    """

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
        self._peer_log = peer_log
        self._queued_bytes = queued_bytes
        self._worker = worker
        self._max_frame_bytes = max_frame_bytes
        self._max_idle_s = max_idle_s
        self._on_close = on_close
        self._handlers: RequestHandlers | None = None
        self._worker_handlers: RequestHandlers | None = None
        self._shared = bytearray(RECEIVE_BYTES)
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._connections: set[Connection] = set()
        self._arrived: deque[tuple[socket.socket, str]] = deque()
        self._woken: deque[Parked] = deque()
        self._resumable: deque[Connection] = deque()
        self._next_in_turn: deque[Connection] = deque()
        self._finished: deque[tuple[Connection, Future[list[Outcome]]]] = deque()
        self._is_signalled = False
        self._connection_of: dict[Parked, Connection] = {}
        self._deadlines: list[tuple[float, int, Parked]] = []
        self._order = itertools.count()
        self._next_sweep_s = clock.monotonic_s() + _SWEEP_INTERVAL_S
        self._is_stopping = False
        self._lingering: list[Lingering] = []
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, handlers: RequestHandlers, worker_handlers: RequestHandlers) -> None:
        """Start the thread.

        Args:
            handlers: where requests go.
            worker_handlers: where those go that it defers, in a thread of the worker.
        """
        self._handlers = handlers
        self._worker_handlers = worker_handlers
        self._thread.start()

    def stop(self) -> list[Lingering]:
        """Answer what is parked, close all connections and join the thread.

        Returns:
            The clients that wait for the broker's end; the caller ends them.
        """
        self._is_stopping = True
        self._signal()
        if self._thread.ident is not None:
            self._thread.join()
        self._refuse_arrived()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()
        return self._lingering

    def adopt(self, sock: socket.socket, address: str) -> None:
        """Take over a new connection; callable from any thread."""
        self._arrived.append((sock, address))
        if self._thread.is_alive():
            self._signal()
        else:  # by a bug, that was told of: better no connection than one that nobody serves
            self._refuse_arrived()

    def wake(self, parked: Parked) -> None:
        """Attempt a parked request again soon; callable from any thread."""
        self._woken.append(parked)
        if threading.current_thread() is not self._thread:  # else it looks before it waits
            self._signal_once()

    def _resume_soon(self, connection: Connection) -> None:
        """Go on receiving what waited for the budget; callable from any thread."""
        self._resumable.append(connection)
        self._signal_once()

    def active_since(self, since_s: float) -> int:
        """Return how many connections had a request or took an answer since a monotonic time.

        Those that wait for the broker's end are left out. Callable from any thread.
        """
        return sum(c.last_active_s >= since_s and not c.lingers for c in self._connections.copy())

    def _signal_once(self) -> None:
        if not self._is_signalled:
            self._is_signalled = True
            self._signal()

    def _signal(self) -> None:
        try:
            self._wake_sender.send(b"\0")
        except BlockingIOError:
            return  # the pipe is full of wake-ups already
        except OSError:
            if not self._is_stopping:
                raise

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
        except Exception:
            logger.exception("%s ended by a bug; its connections are closed", self._thread.name)
        finally:
            self._close_all()
            self._refuse_arrived()

    def _turn(self) -> None:
        for key, events in self._selector.select(self._seconds_to_next()):
            connection: Connection | None = key.data
            if connection is None:
                self._drain_signals()
                continue
            if events & selectors.EVENT_READ:
                self._serve(connection, self._read)
            if events & selectors.EVENT_WRITE and connection in self._connections:
                self._serve(connection, self._write)
        self._take_arrived()
        # before the look at what has come: who comes later then signals again
        self._is_signalled = False
        self._attempt_woken()
        self._resume_paused()
        self._take_finished()
        self._take_turns()
        self._expire()

    def _drain_signals(self) -> None:
        with suppress(BlockingIOError):
            self._wake_receiver.recv(_SIGNALS)

    def _seconds_to_next(self) -> float:
        if self._next_in_turn or self._woken:
            return 0.0
        due_s = self._next_sweep_s
        if self._deadlines:
            due_s = min(due_s, self._deadlines[0][0])
        return max(0.0, due_s - self._clock.monotonic_s())

    def _refuse_arrived(self) -> None:
        with suppress(IndexError):  # none is left, or another thread was faster
            while True:
                sock, address = self._arrived.popleft()
                sock.close()
                self._on_close(address)

    def _take_arrived(self) -> None:
        while self._arrived:
            sock, address = self._arrived.popleft()
            connection = Connection(
                sock,
                address,
                max_frame_bytes=self._max_frame_bytes,
                queued_bytes=self._queued_bytes,
                on_room=self._resume_soon,
                now_s=self._clock.monotonic_s(),
            )
            self._connections.add(connection)
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _serve(self, connection: Connection, action: Callable[[Connection], None]) -> None:
        try:
            action(connection)
        except Exception:  # a bug costs one connection, not the processor
            logger.exception("a request of %s failed by a bug", connection.peer)
            self._close(connection)

    def _read(self, connection: Connection) -> None:
        frames = connection.receive(self._shared)
        self.metrics.bad_frames += isinstance(connection.fault, ProtocolError)
        if frames:
            connection.last_active_s = self._clock.monotonic_s()
            size = sum(map(len, frames)) + 4 * len(frames)
            self.metrics.bytes_read += size
            self._handle(connection, frames)
            if size <= _FEW_BYTES and len(frames) <= _FEW_FRAMES:
                self._cork(connection)
        self._write(connection)

    def _cork(self, connection: Connection) -> None:
        """Let requests gather behind a publish that waits for a flush, of a client that sends few.

        None of them could be answered before it, or be part of that flush. Taken one by one as
        they come each would cost a turn, an append and a wake-up of its own. Clients that publish
        to several logs are left alone, as those can be flushed side by side. A large frame that
        has begun is received all the same: others may wait for its room.
        """
        if connection.has_begun_large or len(connection.parked) > _FEW_FRAMES:
            return
        waiting = [parked for parked in connection.parked if parked.awaits_flush]
        logs = {log for parked in waiting for log in parked.logs}
        if len(logs) == 1 and logs == connection.flushed_logs:
            connection.cork(waiting[-1])
        if waiting:
            connection.flushed_logs = logs

    def _handle(self, connection: Connection, frames: list[memoryview]) -> None:
        assert self._handlers is not None
        for handled_count, outcome in self._handlers.handle(frames):
            self._take_outcome(connection, outcome)
            if connection.is_deferred or connection.is_turn_over or connection.is_backed_up:
                connection.hold(frames[handled_count:])
                break
        if not connection.is_deferred:
            connection.settle()

    def _take_outcome(self, connection: Connection, outcome: Outcome) -> None:
        match outcome:
            case Close(reason, is_bad_frame):
                connection.fault = reason
                connection.take_held()  # what follows a request that a worker refused
                self.metrics.bad_frames += is_bad_frame
            case Answer():
                connection.queue(outcome)
            case Parked():
                self._park(connection, outcome)
            case Deferred(frames):
                self._defer(connection, frames)
            case TurnOver():
                connection.is_turn_over = True
                self._next_in_turn.append(connection)

    def _defer(self, connection: Connection, frames: list[memoryview]) -> None:
        """Have a worker handle requests; the connection waits, and the others go on."""
        assert self._worker_handlers is not None
        handlers = self._worker_handlers
        kept = [memoryview(bytes(one)) if one.obj is self._shared else one for one in frames]
        connection.is_deferred = True
        future = self._worker.submit(lambda: [outcome for _, outcome in handlers.handle(kept)])
        future.add_done_callback(lambda done: self._finish_soon(connection, done))

    def _finish_soon(self, connection: Connection, done: Future[list[Outcome]]) -> None:
        """Take what a worker has done; callable from any thread."""
        self._finished.append((connection, done))
        self._signal_once()

    def _take_turns(self) -> None:
        """Go on with connections whose turn was over; the others were served meanwhile."""
        for _ in range(len(self._next_in_turn)):
            connection = self._next_in_turn.popleft()
            connection.is_turn_over = False
            if connection in self._connections:
                self._serve(connection, self._write)

    def _take_finished(self) -> None:
        while self._finished:
            connection, done = self._finished.popleft()
            if connection in self._connections:
                self._serve(connection, partial(self._finish, done))
            else:
                connection.settle()

    def _finish(self, done: Future[list[Outcome]], connection: Connection) -> None:
        connection.is_deferred = False
        connection.settle()
        connection.last_active_s = self._clock.monotonic_s()
        for outcome in done.result():
            self._take_outcome(connection, outcome)
        self._write(connection)

    def _park(self, connection: Connection, parked: Parked) -> None:
        connection.lingers |= parked.lingers
        if not parked.attempt(is_last=False):
            connection.parked.add(parked)
            self._connection_of[parked] = connection
            self._watch_deadline(parked)
            self._forget_answered()
            parked.watch(self)
            # what it waits for may have come between the attempt and the watch
            if parked.attempt(is_last=False):
                self._unpark(connection, parked)
        connection.queue(parked.answer)

    def _watch_deadline(self, parked: Parked) -> None:
        heapq.heappush(self._deadlines, (parked.deadline_s, next(self._order), parked))

    def _unpark(self, connection: Connection, parked: Parked) -> None:
        del self._connection_of[parked]
        connection.parked.discard(parked)

    def _attempt_all(self, waiting: Iterable[Parked], *, is_last: bool) -> None:
        """Attempt parked requests, then send what became known, once for each connection.

        What gathered behind them is taken at once, not a turn later, but after all have answers.
        """
        to_write: set[Connection] = set()
        for parked in waiting:
            connection = self._connection_of.get(parked)
            if connection is not None:
                self._serve(connection, partial(self._attempt, parked, is_last))
                to_write.add(connection)
        to_write &= self._connections
        uncorked = {one for one in to_write if one.uncork()}
        for connection in to_write - uncorked:
            self._serve(connection, self._write)
        for connection in uncorked:
            self._serve(connection, self._send)
        for connection in uncorked & self._connections:
            self._serve(connection, self._go_on)

    def _attempt(self, parked: Parked, is_last: bool, connection: Connection) -> None:
        expected_bytes = parked.answer.bytes_in_memory
        if parked.attempt(is_last=is_last):
            self._unpark(connection, parked)
            connection.learn(parked.answer, expected_bytes)

    def _go_on(self, connection: Connection) -> None:
        if connection.may_receive:
            self._read(connection)
        else:
            self._write(connection)

    def _attempt_woken(self) -> None:
        if self._woken:
            woken = {self._woken.popleft() for _ in range(len(self._woken))}
            self._attempt_all(woken, is_last=False)

    def _resume_paused(self) -> None:
        while self._resumable:
            connection = self._resumable.popleft()
            if connection in self._connections:
                connection.last_active_s = self._clock.monotonic_s()
                self._serve(connection, self._resume)

    def _resume(self, connection: Connection) -> None:
        connection.resume()
        self._write(connection)

    def _expire(self) -> None:
        now_s = self._clock.monotonic_s()
        due = []
        while self._deadlines and self._deadlines[0][0] <= now_s:
            due.append(heapq.heappop(self._deadlines)[2])
        if due:
            self._attempt_all(due, is_last=True)
        for parked in due:
            if parked in self._connection_of:  # it has put its deadline off
                self._watch_deadline(parked)
        if now_s >= self._next_sweep_s:
            self._next_sweep_s = now_s + _SWEEP_INTERVAL_S
            self._close_idle(now_s)

    def _forget_answered(self) -> None:
        """Drop deadlines of requests that were answered before they were due, now and then."""
        if len(self._deadlines) > 2 * len(self._connection_of) + 64:
            self._deadlines = [one for one in self._deadlines if one[2] in self._connection_of]
            heapq.heapify(self._deadlines)

    def _close_idle(self, now_s: float) -> None:
        for connection in list(self._connections):
            if reason := self._idleness(connection, now_s):
                self._peer_log.warn(connection.peer, reason)
                self._close(connection)

    def _idleness(self, connection: Connection, now_s: float) -> str:
        """Return why a connection should be closed for doing nothing, empty if it should not."""
        is_stalled = connection.has_stalled(now_s, window_s=_STALL_S, min_share=_STALL_SHARE)
        if is_stalled and self._queued_bytes.waiting_count:
            return f"too little of a large request came in {_STALL_S:g}s, and others need the room"
        if connection.parked or connection.is_paused or connection.is_deferred:
            return ""
        is_idle = connection.last_active_s < now_s - self._max_idle_s
        return "no whole request for connections.max.idle.ms" if is_idle else ""

    def _write(self, connection: Connection) -> None:
        self._send(connection)
        while connection.may_go_on:
            self._handle(connection, connection.take_held())
            self._send(connection)
        if connection.fault is not None and not _is_owed_answers(connection):
            self._drop(connection, connection.fault)
            return
        events = selectors.EVENT_READ if connection.may_receive else 0
        if connection.has_unsent:
            events |= selectors.EVENT_WRITE
        self._watch(connection, events)

    def _send(self, connection: Connection) -> None:
        sent = connection.send()
        if sent:
            self.metrics.bytes_written += sent
            connection.last_active_s = self._clock.monotonic_s()

    def _watch(self, connection: Connection, events: int) -> None:
        known = self._selector.get_map().get(connection.sock)
        if known is None:
            if events:
                self._selector.register(connection.sock, events, connection)
        elif not events:
            self._selector.unregister(connection.sock)
        elif known.events != events:
            self._selector.modify(connection.sock, events, connection)

    def _drop(self, connection: Connection, fault: Exception) -> None:
        """Close a connection for a reason, and tell of it unless the client simply left."""
        if not isinstance(fault, (EOFError, ConnectionError)):
            self._peer_log.warn(connection.peer, fault)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        for parked in connection.parked:
            self._connection_of.pop(parked, None)
        if self._selector.get_map().get(connection.sock) is not None:
            self._selector.unregister(connection.sock)
        if connection.lingers and connection.fault is None:
            self._lingering.append(Lingering(connection.sock.dup(), connection.next_parked))
        connection.close()
        self._on_close(connection.peer)

    def _close_all(self) -> None:
        waiting = [parked for parked in self._connection_of if not parked.lingers]
        self._attempt_all(waiting, is_last=True)
        for connection in list(self._connections):
            self._close(connection)


def _is_owed_answers(connection: Connection) -> bool:
    """Return whether a connection that takes no more requests has answers to come.

    A client whose request was refused gets the answers to all before it. One that closed its
    half gets those that are known; what it might wait for with the other half shut is moot.
    """
    if isinstance(connection.fault, BrokerError):
        return connection.is_waiting or connection.has_held or connection.is_deferred
    return isinstance(connection.fault, EOFError) and connection.has_unsent
