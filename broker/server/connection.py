"""One client's connection: frames are received, responses sent; their content is not known here.

A connection belongs to one processor and is used on its thread only. `connection_state` has the
table of its states.
"""

from __future__ import annotations

import math
import os
import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from broker.clock import Clock
from broker.errors import BrokerError
from broker.log.segment import FileSlice
from broker.protocol.framing import SIZE_BYTES, FrameSizeError, cut_frames
from broker.protocol.primitives import Buffer
from broker.server.connection_state import Event, State, next_state
from broker.server.produce import RefusedPartitions
from broker.server.purgatory import DelayedResponse, Part, Response, Watched
from broker.server.quotas import FrameRoom, QueuedBytes

LARGE_FRAME_BYTES = 1 << 15
"""When so much of a larger frame has arrived, it gets a buffer of its own, under the budget.

Smaller starts are not counted: each connection may keep one.

While other connections wait for the budget, a connection holds no more than this without it.
"""
ROOM_STEP_BYTES = 1 << 20
"""How much room in the budget a large frame asks for at a time."""
MAX_FRAMES = 4096
"""The most frames that are cut, and handled, at a time."""
MAX_RESPONSES_IN_MEMORY_BYTES = 1 << 20
MAX_QUEUED_RESPONSES = 1024
MAX_WAITING_READS = 16
"""Reads of one connection that wait for messages: each is attempted whenever some arrive."""
STALL_S = 10.0
STALL_SHARE = 1 / 20
"""A large frame of which less than this share arrives in `STALL_S` has stalled."""
_FEW_BYTES = 16 << 10
_FEW_FRAMES = 32
"""Connections that send at most this much per read may be muted while a flush is pending."""
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_JOINED_BYTES = 1 << 16
_SEND_TURN_BYTES = 4 << 20
"""The most one connection sends in a turn: a fast reader must not starve the others."""
_LAST_RESPONSE_TIMEOUT_S = 5.0
_NOTHING = memoryview(b"")


class LingeringClient(NamedTuple):
    """The socket of a client that asked for the shutdown, after the end of its processor.

    `delayed` is the response to it, if that comes next on the socket, else None.
    """

    sock: socket.socket
    delayed: DelayedResponse | None

    def end(self) -> None:
        """Send the response, if possible, and close the socket."""
        with self.sock, suppress(OSError):  # the client may be gone
            if self.delayed is not None and self.delayed.attempt(is_last=True):
                self.sock.settimeout(_LAST_RESPONSE_TIMEOUT_S)
                self.sock.sendall(self.delayed.in_memory())


def _ignore() -> None:
    """Do nothing."""


_E = TypeVar("_E", bound=Exception)


def without_traceback(error: _E) -> _E:
    """Return an error that keeps nothing alive: a traceback refers to buffers and connections."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


class _LargeFrame:
    """A frame with a buffer of its own, which has the room it was granted and no more.

    With room for all of it the buffer is made at once, and received into without a copy. Else it
    grows as the frame arrives.

    Args:
        room: its room in the budget.
    """

    def __init__(self, room: FrameRoom) -> None:
        self.room = room
        self.buffer = bytearray()
        self.filled_bytes = 0
        self._progress: tuple[float, int] | None = None
        """When enough of it had arrived last, and how much that was."""

    @property
    def free_bytes(self) -> int:
        """Return how much more may be received with the room it has."""
        return self.room.granted_bytes - self.filled_bytes

    @property
    def is_complete(self) -> bool:
        """Return whether all of it has arrived."""
        return self.filled_bytes == self.room.frame_bytes

    def begin(self, start: Buffer) -> None:
        """Put the start of the frame into the buffer, as there is room now."""
        self.filled_bytes = len(start)
        if self.room.missing_bytes:
            self.buffer += start
        else:
            self.buffer = bytearray(self.room.frame_bytes)
            self.buffer[: len(start)] = start

    def receive(self, receive_into: Callable[[memoryview], int], shared: memoryview) -> None:
        """Receive more of the frame, within its room.

        Args:
            receive_into: fills the start of a buffer, and returns how many bytes that are.
            shared: is received into where the frame's own buffer is too short.
        """
        if len(self.buffer) > self.filled_bytes:
            self.filled_bytes += receive_into(memoryview(self.buffer)[self.filled_bytes :])
        else:
            size = receive_into(shared[: self.free_bytes])
            self.buffer += shared[:size]
            self.filled_bytes += size

    def has_stalled(self, now_s: float, *, is_kept_waiting: bool) -> bool:
        """Return whether it arrives too slowly for the room it holds.

        Args:
            now_s: monotonic time; asked regularly.
            is_kept_waiting: the broker does not receive, for a reason that is not the client's.
        """
        needed = STALL_SHARE * self.room.frame_bytes
        progress = self._progress
        if progress is None or is_kept_waiting or self.filled_bytes - progress[1] >= needed:
            progress = self._progress = (now_s, self.filled_bytes)
        return now_s - progress[0] > STALL_S


class _FrameReceiver:
    """Cuts what a socket receives into frames, and keeps the start of an incomplete one.

    Args:
        sock: connected and non-blocking.
        max_frame_bytes: the largest frame allowed.
        queued_bytes: the budget for large frames.
        on_granted: called, from any thread, when `resume` can continue after a wait for it.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        max_frame_bytes: int,
        queued_bytes: QueuedBytes,
        on_granted: Callable[[], None],
    ) -> None:
        self.fault: Exception | None = None
        self._sock = sock
        self._max_frame_bytes = max_frame_bytes
        self._queued_bytes = queued_bytes
        self._on_granted = on_granted
        self._tail = b""
        self._last_cut = _NOTHING
        """What frames were cut from last, and frames behind them that were not cut yet."""
        self._held = _NOTHING
        """A copy of whole frames to be handled, and if it was cut in between, of the tail."""
        self.received_bytes = 0
        """By the last call of `receive`."""
        self._large: _LargeFrame | None = None
        self._handled: FrameRoom | None = None
        """The room of a complete large frame, until that is handled."""

    def receive(self, shared: bytearray) -> list[memoryview]:
        """Read from the socket once; return complete frames, at most `MAX_FRAMES`, the rest held.

        After an end of stream, an error of the socket or a bad frame size, `fault` is set; the
        frames before it are returned all the same.
        """
        if self._large is not None:
            return self._receive_large(self._large, memoryview(shared))
        tail_bytes = len(self._tail)
        shared[:tail_bytes] = self._tail
        view = memoryview(shared)
        end = LARGE_FRAME_BYTES if self._queued_bytes.waiting_count else len(shared)
        received = self._receive_into(view[tail_bytes:end])
        if not received:
            return []
        self._tail = b""
        frames = self._cut(view[: tail_bytes + received])
        if self._held:
            self._held = memoryview(bytes(self._held))
        return frames

    def _cut(self, view: memoryview) -> list[memoryview]:
        """Return the first frames of a view, and keep what is behind them."""
        try:
            frames, consumed, needed = cut_frames(
                view, max_frame_bytes=self._max_frame_bytes, max_count=MAX_FRAMES
            )
        except FrameSizeError as error:
            self.fault = without_traceback(error)
            self._last_cut = view[: error.position]
            return cut_frames(self._last_cut, max_frame_bytes=self._max_frame_bytes)[0]
        if len(frames) == MAX_FRAMES:
            self._last_cut = view
            self._held = view[consumed:]
        else:
            self._last_cut = view[:consumed]
            if consumed < len(view):  # else there may be a tail from before
                self._keep(view[consumed:], needed)
        return frames

    @property
    def has_held(self) -> bool:
        """Return whether there are frames to be handled without another read of the socket."""
        return bool(self._held)

    def hold(self, frames: Sequence[memoryview]) -> None:
        """Keep the last of the frames that were returned last: they cannot be handled yet."""
        held_bytes = len(self._held) + sum(map(len, frames)) + SIZE_BYTES * len(frames)
        held = self._last_cut[len(self._last_cut) - held_bytes :]
        self._held = held if self._owns(held) else memoryview(bytes(held))

    def _owns(self, view: memoryview) -> bool:
        """Return whether a view is of memory that no other connection uses."""
        return not view or isinstance(view.obj, bytes)

    def take_held(self) -> list[memoryview]:
        """Return the first of the held frames, at most `MAX_FRAMES`; they are held no longer."""
        held, self._held = self._held, _NOTHING
        return self._cut(held)

    def drop_held(self) -> None:
        """Drop the held frames: none will be handled."""
        self._held = _NOTHING

    def _receive_into(self, buffer: memoryview) -> int:
        self.received_bytes = 0
        try:
            received = self._sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.fault = without_traceback(error)
            return 0
        if not received:
            self.fault = EOFError("the client closed the connection")
        self.received_bytes = received
        return received

    def _keep(self, start: memoryview, needed: int) -> None:
        """Keep the start of a frame; `needed` is its length, 0 if that is unknown."""
        if needed > LARGE_FRAME_BYTES:
            try:
                self._queued_bytes.check(needed)
            except BrokerError as error:
                self.fault = without_traceback(error)
                return
            if len(start) >= LARGE_FRAME_BYTES:
                self._large = _LargeFrame(FrameRoom(needed, self._on_granted))
                if self._ask_for_room(self._large, len(start)):
                    self._begin_large(self._large, start)
                    return
        self._tail = bytes(start)

    def _ask_for_room(self, large: _LargeFrame, start_bytes: int = 0) -> bool:
        """Ask for the next piece of room; return whether it is granted already."""
        room = large.room
        wanted_bytes = start_bytes + ROOM_STEP_BYTES
        return self._queued_bytes.ask(room, min(wanted_bytes, room.missing_bytes))

    def _begin_large(self, large: _LargeFrame, start: Buffer) -> None:
        large.begin(start)
        self._tail = b""

    def _receive_large(self, large: _LargeFrame, shared: memoryview) -> list[memoryview]:
        large.receive(self._receive_into, shared)
        if large.is_complete:
            self._large = None
            self._handled = large.room
            return [memoryview(large.buffer)[SIZE_BYTES:]]
        if not large.free_bytes:
            self._ask_for_room(large)
        return []

    @property
    def has_begun_large(self) -> bool:
        """Return whether part of a large frame has arrived; it has a buffer or waits for one."""
        return self._large is not None

    @property
    def is_awaiting_buffer(self) -> bool:
        """Return whether a large frame waits for room in the budget."""
        return self._large is not None and bool(self._large.room.asked_bytes)

    def resume(self) -> None:
        """Continue with a large frame that was granted room after a wait."""
        if self._large is not None and not self._large.room.asked_bytes and self._tail:
            self._begin_large(self._large, self._tail)

    def release_handled(self) -> None:
        """Give back what the frames that have been handled took."""
        self._last_cut = _NOTHING
        handled, self._handled = self._handled, None
        if handled is not None:
            self._queued_bytes.release(handled)

    def has_stalled(self, now_s: float, *, is_kept_waiting: bool) -> bool:
        """Return whether a large frame arrives too slowly for the room it holds."""
        large = self._large
        if large is None or not large.filled_bytes:
            return False
        return large.has_stalled(now_s, is_kept_waiting=is_kept_waiting)

    def close(self) -> None:
        """Drop what has arrived, and give back the budget of an incomplete large frame."""
        large, self._large = self._large, None
        self._tail = b""
        self._last_cut = self._held = _NOTHING
        if large is not None:
            self._queued_bytes.release(large.room)
        # It refers to the connection, which refers to this: the garbage collector may come late.
        self._on_granted = _ignore


class _ResponseQueue:
    """The responses of a connection, in the order of their requests."""

    def __init__(self) -> None:
        self.bytes_in_memory = 0
        self.sent_bytes = 0
        """In all, since the start."""
        self._responses: deque[Response] = deque()
        self._part = 0
        self._part_sent = 0

    def __len__(self) -> int:
        return len(self._responses)

    def append(self, response: Response) -> None:
        """Queue a response, complete or delayed."""
        self._responses.append(response)
        self.bytes_in_memory += response.bytes_in_memory

    def adjust(self, more_bytes: int) -> None:
        """Adjust the bytes in memory once the real size of a queued response is known."""
        self.bytes_in_memory += more_bytes

    def clear(self) -> None:
        """Drop all responses."""
        self._responses.clear()

    @property
    def first(self) -> Response | None:
        """Return the response that is sent next."""
        return self._responses[0] if self._responses else None

    @property
    def has_unsent(self) -> bool:
        """Return whether a complete response waits for room in the socket."""
        return bool(self._responses) and self._responses[0].parts is not None

    @property
    def is_full(self) -> bool:
        """Return whether the client must take responses before more requests are handled."""
        count = len(self._responses)
        if count > MAX_QUEUED_RESPONSES:
            return True
        return count > 1 and self.bytes_in_memory > MAX_RESPONSES_IN_MEMORY_BYTES

    def send(self, sock: socket.socket) -> None:
        """Send complete responses, in order, as far as the socket takes them, up to a limit.

        Raises:
            OSError: the client is gone.
        """
        end_bytes = self.sent_bytes + _SEND_TURN_BYTES
        try:
            while self._responses and self.sent_bytes < end_bytes:
                if len(self._responses) > 1 and not self._part and not self._part_sent:
                    self._join_small()
                parts = self._responses[0].parts
                if parts is None:
                    return
                self._send_next(sock, parts)
        except (BlockingIOError, InterruptedError):
            return

    def _join_small(self) -> None:
        """Join the small responses at the front, so that one call sends them all."""
        joined: list[Buffer] = []
        size = 0
        while self._responses and size < _JOINED_BYTES:
            response = self._responses[0]
            if response.parts is None or response.bytes_in_memory > _JOINED_BYTES:
                break
            parts = [part for part in response.parts if not isinstance(part, FileSlice)]
            if len(parts) != len(response.parts):
                break
            joined += parts
            size += response.bytes_in_memory
            self._responses.popleft()
        if joined:
            self._responses.appendleft(Response(b"".join(joined)))

    def _send_next(self, sock: socket.socket, parts: list[Part]) -> None:
        """Send what the socket takes of the next part."""
        part = parts[self._part]
        is_last = self._part == len(parts) - 1
        if isinstance(part, FileSlice):
            size = part.length
            left = size - self._part_sent
            start = part.position + self._part_sent
            sent = _send_from_file(sock, part, start, min(left, _SEND_TURN_BYTES))
        else:
            size = len(part)
            unsent = memoryview(part)[self._part_sent :]
            sent = sock.send(unsent, 0 if is_last else _MSG_MORE) if unsent else 0
        self.sent_bytes += sent
        self._part_sent += sent
        if self._part_sent < size:
            return
        self._part_sent = 0
        self._part += 1
        if is_last:
            self.bytes_in_memory -= self._responses.popleft().bytes_in_memory
            self._part = 0


def _send_from_file(sock: socket.socket, part: FileSlice, start: int, size: int) -> int:
    """Send bytes of a segment file; return how many the socket took.

    Raises:
        OSError: the socket takes none now, the client is gone, or the file cannot be read. Its
            log knows of the latter then, and reads from there on are refused: this response was
            announced with its size and can only be broken off.
    """
    try:
        sent = os.sendfile(sock.fileno(), part.file.fd, start, size)
    except (BlockingIOError, InterruptedError, ConnectionError):
        raise
    except OSError as error:
        unreadable = part.source.note_unreadable(part, start)
        raise OSError(str(unreadable or error)) from error
    if size and not sent:
        raise OSError(str(part.source.note_unreadable(part, start)))
    return sent


class ServerConnection:
    """The state of one client's socket.

    Args:
        sock: connected and non-blocking.
        peer: the client's address, for messages.
        clock: for idle connections.
        max_frame_bytes: the largest frame allowed.
        queued_bytes: the budget, shared by all connections, that large frames are received under.
        on_granted: called, from any thread, when `grant_buffer` can continue after a wait.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        *,
        clock: Clock,
        max_frame_bytes: int,
        queued_bytes: QueuedBytes,
        on_granted: Callable[[ServerConnection], None],
    ) -> None:
        self.sock = sock
        self.peer = peer
        self._clock = clock
        self._state = State.READING
        self._queued_bytes = queued_bytes
        self._receiver = _FrameReceiver(
            sock,
            max_frame_bytes=max_frame_bytes,
            queued_bytes=queued_bytes,
            on_granted=partial(on_granted, self),
        )
        self._responses = _ResponseQueue()
        self._delayed: dict[DelayedResponse, None] = {}
        self._waiting_read_count = 0
        self.received_bytes = 0
        """By the last call of `receive`."""
        self._work: Future[Any] | None = None
        """What a worker does for a response, and nothing but that."""
        self.turn_end_s = 0.0
        """The processor's measure of the work done for this connection."""
        self.fault: Exception | None = None
        """Why no more requests are received."""
        self.refused: RefusedPartitions = {}
        self._muted_by: Response | None = None
        self._flushed_logs: set[Watched] = set()
        """The logs whose flush this client waited for last."""
        self._lingers = False
        self._last_active_s = clock.monotonic_s()
        self._last_unanswered_s = -math.inf
        self.has_published = False
        """Whether a message set came by our own request, which can be acknowledged."""

    @property
    def state(self) -> State:
        """Return what the connection waits for."""
        return self._state

    @property
    def interest(self) -> int:
        """Return the selector events to wait for; 0 for none."""
        events = selectors.EVENT_READ if self._state is State.READING else 0
        return events | selectors.EVENT_WRITE if self._responses.has_unsent else events

    def _take(self, event: Event) -> None:
        self._state = next_state(self._state, event)

    def _update(self) -> None:
        """Move to the state for what the connection has to wait for now."""
        if self._state is not State.OFFLOADED:
            self._receiver.release_handled()
        has_held = self._receiver.has_held
        is_blocked = self.is_full or (has_held and self._responses.has_unsent)
        if self._state is State.BLOCKED and not is_blocked:
            self._take(Event.UNBLOCK)
        elif self._state is State.MUTED and not self._is_flush_pending:
            self._take(Event.UNMUTE)
        if self._state is not State.READING:
            return
        if is_blocked:
            self._take(Event.BLOCK)
        elif has_held:
            return  # for the processor to handle in the next turn
        elif self.fault is not None:
            self._take(Event.END)
        elif self._receiver.is_awaiting_buffer:
            self._take(Event.AWAIT_BUFFER)
        elif self._is_flush_pending:
            self._take(Event.MUTE)

    def receive(self, shared: bytearray) -> list[memoryview]:
        """Read what the socket has and cut it into frames.

        Args:
            shared: the processor's buffer; small frames are views on it, valid until the next
                call with it.

        Returns:
            Complete frames, without size fields; if there are very many, the others are held.
            `fault` is set after an end of stream, an error or a bad frame size; the frames before
            it are returned all the same.
        """
        frames = self._receiver.receive(shared)
        self.received_bytes = self._receiver.received_bytes
        if frames:
            self._last_active_s = self._clock.monotonic_s()
        if self._receiver.fault is not None:
            self.fault = self._receiver.fault
        return frames

    def fail(self, reason: Exception) -> None:
        """Handle and receive no more requests; responses to those before it are still sent."""
        self.fault = without_traceback(reason)
        self._receiver.drop_held()

    def hold(self, frames: Sequence[memoryview]) -> None:
        """Keep the last of the frames that were received or taken last, to be handled later."""
        self._receiver.hold(frames)

    def offload(self, frames: Sequence[memoryview], work: Future[Any] | None = None) -> None:
        """Note that a worker handles a request; hold the frames behind it.

        Args:
            frames: those behind it.
            work: what the worker does, if it is of no use once the client has left.
        """
        self._take(Event.OFFLOAD)
        self._work = work
        self.hold(frames)

    def work_done(self) -> None:
        """Note that the worker is done; also after the connection is closed."""
        self._take(Event.WORK_DONE)
        self._work = None
        self._receiver.release_handled()
        self._last_active_s = self._clock.monotonic_s()

    def yield_turn(self, frames: Sequence[memoryview] = ()) -> None:
        """Leave frames, and those that are held already, to the next turn."""
        self._take(Event.YIELD)
        if frames:
            self.hold(frames)

    def begin_turn(self) -> None:
        """Handle what `yield_turn` left."""
        self._take(Event.NEXT_TURN)

    def grant_buffer(self) -> None:
        """Continue with a large frame that waited for the budget."""
        self._receiver.resume()
        if self._state is State.WAITING_FOR_BUFFER and not self._receiver.is_awaiting_buffer:
            self._take(Event.BUFFER_GRANTED)
        self._last_active_s = self._clock.monotonic_s()

    def mute_behind_flush(self, frames: Sequence[memoryview]) -> None:
        """Receive nothing until a pending flush is complete, if the client sends little.

        Its next requests could neither have a response before the flush nor be part of it. Handled
        as they arrive, each would cost a turn, an append and a wake-up. Clients that publish to
        several logs are not muted, as those logs are flushed side by side; nor is one that has
        begun a large frame, as others may wait for the budget that holds.

        Args:
            frames: what was received last.
        """
        is_much = (
            self.received_bytes > _FEW_BYTES or max(len(frames), len(self._delayed)) > _FEW_FRAMES
        )
        if is_much or not self._delayed or self._receiver.has_begun_large:
            return
        pending = [one for one in self._delayed if one.awaits_flush]
        if not pending:
            return
        logs: set[Watched] = {log for one in pending for log in one.logs}
        if len(logs) == 1 and logs == self._flushed_logs:
            self._muted_by = pending[-1]
        self._flushed_logs = logs

    @property
    def _is_flush_pending(self) -> bool:
        return self._muted_by is not None and self._muted_by.parts is None

    def unmute(self) -> bool:
        """Receive again if the awaited flush is complete; return True if it was muted."""
        if self._muted_by is None or self._is_flush_pending:
            return False
        self._muted_by = None
        if self._state is State.MUTED:
            self._take(Event.UNMUTE)
        return True

    def take_held(self) -> list[memoryview]:
        """Return the first held frames if they can be handled now; they are held no longer."""
        if not self.may_take_held:
            return []
        frames = self._receiver.take_held()
        if self._receiver.fault is not None:
            self.fault = self._receiver.fault
        return frames

    @property
    def may_take_held(self) -> bool:
        """Return whether there are held frames that can be handled now."""
        self._update()
        return self._state is State.READING and self._receiver.has_held

    @property
    def may_receive(self) -> bool:
        """Return whether more can be received now."""
        self._update()
        return self._state is State.READING and not self._receiver.has_held

    @property
    def is_full(self) -> bool:
        """Return whether responses must be completed and taken before more requests are handled."""
        return self._responses.is_full or self._waiting_read_count > MAX_WAITING_READS

    def queue(self, response: Response) -> None:
        """Put a response behind all earlier ones."""
        self._responses.append(response)

    def delay(self, delayed: DelayedResponse) -> None:
        """Put a response that is not complete behind all earlier ones."""
        self._lingers |= delayed.lingers
        self._delayed[delayed] = None
        self._waiting_read_count += not delayed.awaits_flush
        self._responses.append(delayed)

    def attempt(self, delayed: DelayedResponse, *, is_last: bool) -> bool:
        """Try to complete a delayed response; return whether it is complete."""
        expected_bytes = delayed.bytes_in_memory
        if not delayed.attempt(is_last=is_last):
            return False
        del self._delayed[delayed]
        self._waiting_read_count -= not delayed.awaits_flush
        self._responses.adjust(delayed.bytes_in_memory - expected_bytes)
        return True

    def send(self) -> int:
        """Send complete responses; return how many bytes went out.

        `fault` is set if the client is gone.
        """
        before = self._responses.sent_bytes
        try:
            self._responses.send(self.sock)
        except OSError as error:
            self.fault = without_traceback(error)
        sent = self._responses.sent_bytes - before
        if sent:
            self._last_active_s = self._clock.monotonic_s()
        return sent

    @property
    def is_finished(self) -> bool:
        """Return whether no more requests are received and no response is owed.

        A client whose request was refused gets the responses to all before it. One that closed
        its half gets those that are complete: what else it asked for, it does not wait for.
        """
        if self.fault is None:
            return False
        if isinstance(self.fault, BrokerError):
            has_held = self._receiver.has_held
            return not (self._responses or has_held or self._state is State.OFFLOADED)
        return not (isinstance(self.fault, EOFError) and self._responses.has_unsent)

    def note_unanswered(self) -> None:
        """Note that the requests received last get no response, so that the client cannot know."""
        self._last_unanswered_s = self._last_active_s

    def was_unanswered_since(self, since_s: float) -> bool:
        """Return whether requests without a response came since a monotonic time; any thread."""
        return self._last_unanswered_s >= since_s

    @property
    def awaits_acknowledgements(self) -> bool:
        """Return whether the client publishes, and every request of it gets a response."""
        return self.has_published and self._last_unanswered_s == -math.inf

    @property
    def has_unsent(self) -> bool:
        """Return whether a complete response waits for room in the socket."""
        return self._responses.has_unsent

    @property
    def lingers(self) -> bool:
        """Return whether the client waits for the end of the broker."""
        return self._lingers

    @property
    def could_be_deserted(self) -> bool:
        """Return whether the broker does not read, and owes nothing but responses.

        The processor then looks whether the client has left: a read would not tell. Requests that
        the client has sent behind those without a response are lost, as REQUESTS.md says.
        """
        if self._state is State.OFFLOADED:
            return self._work is not None
        first = self._responses.first
        return (
            self._state in (State.BLOCKED, State.YIELDED, State.CLOSING)
            and isinstance(first, DelayedResponse)
            and first.parts is None
            and not first.awaits_flush
            and not self._lingers
        )

    def reason_to_close(self, now_s: float, *, max_idle_s: float) -> str:
        """Return why the connection should be closed for inactivity; empty if it should not."""
        is_kept_waiting = self._state in (State.OFFLOADED, State.WAITING_FOR_BUFFER) or (
            self._state in (State.BLOCKED, State.YIELDED) and not self._responses.has_unsent
        )
        has_stalled = self._receiver.has_stalled(now_s, is_kept_waiting=is_kept_waiting)
        if has_stalled and self._queued_bytes.waiting_count:
            return f"too little of a large request came in {STALL_S:g}s, and others need the room"
        is_waited_for = self._delayed or self._receiver.is_awaiting_buffer
        if is_waited_for or self._state is State.OFFLOADED:
            return ""
        is_idle = self._last_active_s < now_s - max_idle_s
        return "no whole request for connections.max.idle.ms" if is_idle else ""

    def close(self) -> list[DelayedResponse]:
        """Close the socket, give back what the connection holds, return what was delayed.

        The budget of a frame that a worker still has is given back by `work_done`.
        """
        if self._state is not State.OFFLOADED:
            self._receiver.release_handled()
        self._take(Event.CLOSE)
        delayed = list(self._delayed)
        for one in delayed:
            if not one.lingers:  # which is completed after this
                one.forget()
        self._delayed.clear()
        self._responses.clear()
        self._muted_by = None
        if self._work is not None:
            self._work.cancel()
        self._receiver.close()
        self.sock.close()
        return delayed

    def linger(self) -> LingeringClient | None:
        """Return the client if it waits for the end of the broker, before `close`."""
        if not self._lingers or self.fault is not None:
            return None
        first = self._responses.first
        delayed = first if isinstance(first, DelayedResponse) and first.parts is None else None
        return LingeringClient(self.sock.dup(), delayed)
