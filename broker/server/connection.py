"""One client's connection: frames are received, responses sent; their content is not known here.

A connection belongs to one processor and is used on its thread only. `connection_state` has the
table of its states.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import BrokerError
from broker.log.log import Log
from broker.log.segment import FileSlice
from broker.protocol.framing import FrameSizeError, cut_frames, encode_frame
from broker.protocol.primitives import Buffer
from broker.server.connection_state import Event, State, next_state
from broker.server.purgatory import DelayedResponse, Part, Response
from broker.server.quotas import QueuedBytes, Reservation

LARGE_FRAME_BYTES = 1 << 18
"""A larger frame that is incomplete gets a buffer of its own, under the budget.

While other connections wait for the budget, a connection holds no more than this without it.
"""
MAX_RESPONSES_IN_MEMORY_BYTES = 1 << 20
MAX_QUEUED_RESPONSES = 4096
STALL_S = 30.0
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
        self._reservation: Reservation | None = None
        self._handled: Reservation | None = None
        """The reservation of a complete large frame, until that is handled."""
        self._large: bytearray | None = None
        self._large_filled = 0
        self._progress: tuple[float, int] | None = None
        """When enough of the large frame had arrived last, and how much it was then."""

    def receive(self, shared: bytearray) -> list[memoryview]:
        """Read from the socket once; return every complete frame, without size fields.

        After an end of stream, an error of the socket or a bad frame size, `fault` is set; the
        frames before it are returned all the same.
        """
        if self._large is not None:
            return self._receive_large(self._large)
        tail_bytes = len(self._tail)
        shared[:tail_bytes] = self._tail
        view = memoryview(shared)
        end = LARGE_FRAME_BYTES if self._queued_bytes.waiting_count else len(shared)
        received = self._receive_into(view[tail_bytes:end])
        if not received:
            return []
        view = view[: tail_bytes + received]
        try:
            frames, consumed, needed = cut_frames(view, max_frame_bytes=self._max_frame_bytes)
        except FrameSizeError as error:
            self.fault = error
            return cut_frames(view[: error.position], max_frame_bytes=self._max_frame_bytes)[0]
        if needed > LARGE_FRAME_BYTES:
            self._begin_large(view[consumed:], needed)
        else:
            self._tail = bytes(view[consumed:])
        return frames

    def _receive_into(self, buffer: memoryview) -> int:
        try:
            received = self._sock.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.fault = error
            return 0
        if not received:
            self.fault = EOFError("the client closed the connection")
        return received

    def _begin_large(self, start: memoryview, needed: int) -> None:
        self._tail = b""
        try:
            self._reservation = self._queued_bytes.reserve(needed, self._on_granted)
        except BrokerError as error:
            self.fault = error
            return
        if self._reservation.is_granted:
            self._allocate_large(needed, start)
        else:
            self._tail = bytes(start)

    def _allocate_large(self, needed: int, start: Buffer) -> None:
        self._large = bytearray(needed)
        self._large[: len(start)] = start
        self._large_filled = len(start)
        self._progress = None

    def _receive_large(self, large: bytearray) -> list[memoryview]:
        self._large_filled += self._receive_into(memoryview(large)[self._large_filled :])
        if self._large_filled < len(large):
            return []
        self._large = None
        self._handled, self._reservation = self._reservation, None
        return [memoryview(large)[4:]]

    @property
    def has_begun_large(self) -> bool:
        """Return whether part of a large frame has arrived; it has a buffer or waits for one."""
        return self._reservation is not None

    @property
    def is_awaiting_buffer(self) -> bool:
        """Return whether a large frame waits for the budget."""
        return self._reservation is not None and self._large is None

    def resume(self) -> None:
        """Allocate the buffer of a large frame if the budget has been granted."""
        if self._reservation is not None and self._reservation.is_granted and self._large is None:
            self._allocate_large(self._reservation.size, self._tail)
            self._tail = b""

    def release_handled(self) -> None:
        """Give back the budget of a large frame that has been handled."""
        handled, self._handled = self._handled, None
        if handled is not None:
            self._queued_bytes.release(handled)

    def has_stalled(self, now_s: float, *, is_kept_waiting: bool) -> bool:
        """Return whether a large frame arrives too slowly for the buffer it holds.

        Args:
            now_s: monotonic time; asked regularly.
            is_kept_waiting: the broker does not receive, for a reason that is not the client's.
        """
        if self._large is None:
            return False
        needed = STALL_SHARE * len(self._large)
        progress = self._progress
        if progress is None or is_kept_waiting or self._large_filled - progress[1] >= needed:
            progress = self._progress = (now_s, self._large_filled)
        return now_s - progress[0] > STALL_S

    def close(self) -> None:
        """Drop what has arrived, and give back the budget of an incomplete large frame."""
        reservation, self._reservation = self._reservation, None
        self._large, self._tail = None, b""
        if reservation is not None:
            self._queued_bytes.release(reservation)
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
            sent = os.sendfile(sock.fileno(), part.file.fd, start, min(left, _SEND_TURN_BYTES))
            if left and not sent:
                raise OSError(f"a segment file ends {left} bytes early")
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


class Connection:
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
        on_granted: Callable[[Connection], None],
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
        self._held: list[memoryview] = []
        """Copies of frames that were received and are not handled yet."""
        self.fault: Exception | None = None
        """Why no more requests are received."""
        self._muted_by: Response | None = None
        self._flushed_logs: set[Log] = set()
        """The logs whose flush this client waited for last."""
        self._lingers = False
        self._last_active_s = clock.monotonic_s()

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
        responses = self._responses
        is_blocked = responses.is_full or (self._held and responses.has_unsent)
        if self._state is State.BLOCKED and not is_blocked:
            self._take(Event.UNBLOCK)
        elif self._state is State.MUTED and not self._is_flush_pending:
            self._take(Event.UNMUTE)
        if self._state is not State.READING:
            return
        if is_blocked:
            self._take(Event.BLOCK)
        elif self._held:
            return  # for the processor to handle now
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
            Every complete frame, without size fields. `fault` is set after an end of stream, an
            error or a bad frame size; the frames before it are returned all the same.
        """
        frames = self._receiver.receive(shared)
        if frames:
            self._last_active_s = self._clock.monotonic_s()
        if self._receiver.fault is not None:
            self.fault = self._receiver.fault
        return frames

    def fail(self, reason: Exception) -> None:
        """Handle and receive no more requests; responses to those before it are still sent."""
        self.fault = reason
        self._held = []

    def hold(self, frames: Sequence[memoryview]) -> None:
        """Keep a copy of frames that cannot be handled yet."""
        copy = memoryview(b"".join(map(encode_frame, frames)))
        self._held, _, _ = cut_frames(copy, max_frame_bytes=len(copy))

    def offload(self, frames: Sequence[memoryview]) -> None:
        """Note that a worker handles a request; hold the frames behind it."""
        self._take(Event.OFFLOAD)
        self.hold(frames)

    def work_done(self) -> None:
        """Note that the worker is done; also after the connection is closed."""
        self._take(Event.WORK_DONE)
        self._receiver.release_handled()
        self._last_active_s = self._clock.monotonic_s()

    def yield_turn(self, frames: Sequence[memoryview]) -> None:
        """Leave the frames to the next turn."""
        self._take(Event.YIELD)
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

    def mute_behind_flush(self, frames: Sequence[memoryview], size: int) -> None:
        """Receive nothing until a pending flush is complete, if the client sends little.

        Its next requests could neither have a response before the flush nor be part of it. Handled
        as they arrive, each would cost a turn, an append and a wake-up. Clients that publish to
        several logs are not muted, as those logs are flushed side by side; nor is one that has
        begun a large frame, as others may wait for the budget that holds.

        Args:
            frames: what was received last.
            size: of those, in bytes.
        """
        is_much = size > _FEW_BYTES or max(len(frames), len(self._delayed)) > _FEW_FRAMES
        if is_much or not self._delayed or self._receiver.has_begun_large:
            return
        pending = [one for one in self._delayed if one.awaits_flush]
        if not pending:
            return
        logs = {log for one in pending for log in one.logs}
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
        """Return the held frames if they can be handled now; they are held no longer."""
        self._update()
        if self._state is not State.READING:
            return []
        held, self._held = self._held, []
        return held

    @property
    def may_receive(self) -> bool:
        """Return whether more can be received now."""
        self._update()
        return self._state is State.READING and not self._held

    @property
    def is_full(self) -> bool:
        """Return whether the client must take responses before more requests are handled."""
        return self._responses.is_full

    def queue(self, response: Response) -> None:
        """Put a response behind all earlier ones."""
        self._responses.append(response)

    def delay(self, delayed: DelayedResponse) -> None:
        """Put a response that is not complete behind all earlier ones."""
        self._lingers |= delayed.lingers
        self._delayed[delayed] = None
        self._responses.append(delayed)

    def attempt(self, delayed: DelayedResponse, *, is_last: bool) -> bool:
        """Try to complete a delayed response; return whether it is complete."""
        expected_bytes = delayed.bytes_in_memory
        if not delayed.attempt(is_last=is_last):
            return False
        del self._delayed[delayed]
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
            self.fault = error
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
            return not (self._responses or self._held or self._state is State.OFFLOADED)
        return not (isinstance(self.fault, EOFError) and self._responses.has_unsent)

    def was_active_since(self, since_s: float) -> bool:
        """Return whether the client sent a request or took a response since a monotonic time.

        One that waits for the end of the broker was not. Callable from any thread.
        """
        return self._last_active_s >= since_s and not self._lingers

    def reason_to_close(self, now_s: float, *, max_idle_s: float) -> str:
        """Return why the connection should be closed for inactivity; empty if it should not."""
        is_kept_waiting = self._state is State.OFFLOADED or (
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
            one.forget()
        self._delayed.clear()
        self._responses.clear()
        self._held = []
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
