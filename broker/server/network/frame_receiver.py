"""Frames from a socket: received bytes are cut, and the start of an incomplete frame kept.

Small starts are copied; a large frame gets a buffer as far as the broker's budget grants it. Used
on one thread; the content of frames is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from broker.errors import BrokerError, ProtocolError
from broker.protocol.framing import SIZE_BYTES, Frames, FrameSizeError, cut_frames
from broker.protocol.primitives import Buffer
from broker.server.network.quotas import FrameRoom, QueuedBytes

LARGE_FRAME_BYTES = 1 << 15
"""A larger frame of which this much has arrived gets a buffer of its own, under the budget.

Smaller starts are not counted: each connection may keep one. While other connections wait for the
budget, a connection holds no more than this without it.
"""
ROOM_STEP_BYTES = 1 << 20  # of the budget, that a large frame asks for at a time
MAX_FRAMES = 4096  # cut, and handled, at a time
STALL_S = 10.0
STALL_SHARE = 1 / 20
"""A large frame of which less than this share arrives in `STALL_S` has stalled."""
_NOTHING = memoryview(b"")
_TLS_HANDSHAKE = b"\x16\x03"  # how a client's first record begins; a frame of 369 MB would, too
_IS_TLS = "it speaks TLS, and this listener is plain: give it a tls:// listener's port"


def _ignore() -> None:
    """Do nothing."""


_E = TypeVar("_E", bound=Exception)


def without_traceback(error: _E) -> _E:
    """Return an error that keeps nothing alive: a traceback refers to buffers and connections."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


class Transport(Protocol):
    """What bytes come from: a non-blocking socket, or what stands before it."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive bytes; 0 at the end of the stream."""


class _LargeFrame:
    """A frame with a buffer of its own, no larger than the room it was granted."""

    def __init__(self, room: FrameRoom) -> None:
        self.room = room
        self.buffer = bytearray()
        self.filled_bytes = 0
        self._progress: tuple[float, int] | None = None
        """When enough of it had arrived last, and how many bytes."""

    @property
    def free_bytes(self) -> int:
        """Return how much more may be received with the room it has."""
        return self.room.granted_bytes - self.filled_bytes

    @property
    def is_complete(self) -> bool:
        return self.filled_bytes == self.room.frame_bytes

    def begin(self, start: Buffer) -> None:
        """Put the start of the frame into the buffer, as there is room now."""
        self.filled_bytes = len(start)
        if self.room.missing_bytes:
            self.buffer += start  # it grows as the frame arrives
        else:
            self.buffer = bytearray(self.room.frame_bytes)  # received into without a copy
            self.buffer[: len(start)] = start

    def receive(self, receive_into: Callable[[memoryview], int], shared: memoryview) -> None:
        """Receive more of the frame, within its room; `receive_into` returns the bytes received."""
        if len(self.buffer) > self.filled_bytes:
            self.filled_bytes += receive_into(memoryview(self.buffer)[self.filled_bytes :])
        else:
            size = receive_into(shared[: self.free_bytes])
            self.buffer += shared[:size]
            self.filled_bytes += size

    def has_stalled(self, now_s: float, *, is_kept_waiting: bool) -> bool:
        """Return whether the frame arrives too slowly for its room; call it regularly."""
        needed = STALL_SHARE * self.room.frame_bytes
        progress = self._progress
        # `is_kept_waiting`: the broker does not receive, for a reason that is not the client's
        if progress is None or is_kept_waiting or self.filled_bytes - progress[1] >= needed:
            progress = self._progress = (now_s, self.filled_bytes)
        return now_s - progress[0] > STALL_S


@dataclass(eq=False)
class FrameReceiver:
    """Cuts the bytes from a transport into frames; keeps the start of a partial one."""

    transport: Transport
    max_frame_bytes: int
    queued_bytes: QueuedBytes
    on_granted: Callable[[], None]  # called, from any thread, when `resume` can continue
    check_start: Callable[[memoryview, int], None] = lambda start, size: None
    """Raises `BrokerError` if a large frame that starts so may not be received."""

    def __post_init__(self) -> None:
        self.fault: Exception | None = None
        self._tail = b""
        self._last_cut = _NOTHING
        """The bytes that frames were cut from last, and frames after them that were not cut yet."""
        self.held = _NOTHING
        """Whole frames to be handled without another read of the socket.

        A copy; and if it was cut in between, of the tail as well.
        """
        self.received_bytes = 0  # by the last call of `receive`
        self._large: _LargeFrame | None = None
        self._handled: FrameRoom | None = None  # of a complete large frame, until that is handled

    def receive(self, shared: bytearray) -> Frames | None:
        """Read from the socket once; return at most `MAX_FRAMES` whole frames, hold the rest.

        None if there are none. After an end of stream, a socket error or a bad frame size, `fault`
        is set; the frames before it are returned all the same.
        """
        if self._large is not None:
            return self._receive_large(self._large, memoryview(shared))
        tail_bytes = len(self._tail)
        shared[:tail_bytes] = self._tail
        view = memoryview(shared)
        end = LARGE_FRAME_BYTES if self.queued_bytes.waiting_count else len(shared)
        received = self._receive_into(view[tail_bytes:end])
        if not received:
            return None
        self._tail = b""
        frames = self._cut(view[: tail_bytes + received])
        if self.held:
            self.held = memoryview(bytes(self.held))
        return frames

    def _cut(self, view: memoryview) -> Frames | None:
        """Return the first frames of a view, if any, and keep the bytes after them."""
        try:
            frames, needed = cut_frames(
                view, max_frame_bytes=self.max_frame_bytes, max_count=MAX_FRAMES
            )
        except FrameSizeError as error:
            is_tls = bytes(view[error.position :][:2]) == _TLS_HANDSHAKE
            self.fault = without_traceback(ProtocolError(_IS_TLS) if is_tls else error)
            self._last_cut = view[: error.position]
            frames, needed = cut_frames(self._last_cut, max_frame_bytes=self.max_frame_bytes)
            return frames if error.position else None
        consumed = frames.bounds[-1]
        if len(frames.bounds) > MAX_FRAMES:
            self._last_cut = view
            self.held = view[consumed:]
        else:
            self._last_cut = view[:consumed]
            if consumed < len(view):  # else there may be a tail from before
                self._keep(view[consumed:], needed)
        return frames if consumed else None

    def hold(self, frames: Frames) -> None:
        """Keep the last of the frames that were returned last: they cannot be handled yet."""
        held = self._last_cut[frames.bounds[0] :]
        self.held = held if self._owns(held) else memoryview(bytes(held))

    def _owns(self, view: memoryview) -> bool:
        """Return whether no other connection uses a view's memory."""
        return not view or isinstance(view.obj, bytes)

    def take_held(self) -> Frames | None:
        """Return the first of the held frames, at most `MAX_FRAMES`; they are held no longer."""
        held, self.held = self.held, _NOTHING
        return self._cut(held)

    def drop_held(self) -> None:
        """Drop the held frames: none will be handled."""
        self.held = _NOTHING

    def _receive_into(self, buffer: memoryview) -> int:
        self.received_bytes = 0
        try:
            received = self.transport.recv_into(buffer)
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
                self.check_start(start[SIZE_BYTES:], needed - SIZE_BYTES)
                self.queued_bytes.check(needed)
            except BrokerError as error:
                self.fault = without_traceback(error)
                return
            if len(start) >= LARGE_FRAME_BYTES:
                self._large = _LargeFrame(FrameRoom(needed, self.on_granted))
                if self._ask_for_room(self._large, len(start)):
                    self._begin_large(self._large, start)
                    return
        self._tail = bytes(start)

    def _ask_for_room(self, large: _LargeFrame, start_bytes: int = 0) -> bool:
        """Ask for the next step of room; return whether it is granted already."""
        room = large.room
        wanted_bytes = start_bytes + ROOM_STEP_BYTES
        return self.queued_bytes.ask(room, min(wanted_bytes, room.missing_bytes))

    def _begin_large(self, large: _LargeFrame, start: Buffer) -> None:
        large.begin(start)
        self._tail = b""

    def _receive_large(self, large: _LargeFrame, shared: memoryview) -> Frames | None:
        large.receive(self._receive_into, shared)
        if large.is_complete:
            self._large = None
            self._handled = large.room
            self._last_cut = memoryview(large.buffer)
            return Frames(self._last_cut, [0, len(large.buffer)])
        if not large.free_bytes:
            self._ask_for_room(large)
        return None

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
        """Release the memory and budget of the frames that have been handled."""
        self._last_cut = _NOTHING
        handled, self._handled = self._handled, None
        if handled is not None:
            self.queued_bytes.release(handled)

    def has_stalled(self, now_s: float, *, is_kept_waiting: bool) -> bool:
        """Return whether a large frame arrives too slowly for the room it holds."""
        large = self._large
        if large is None or not large.filled_bytes:
            return False
        return large.has_stalled(now_s, is_kept_waiting=is_kept_waiting)

    def close(self) -> None:
        """Drop the received bytes, and release the budget of an incomplete large frame."""
        large, self._large = self._large, None
        self._tail = b""
        self._last_cut = self.held = _NOTHING
        if large is not None:
            self.queued_bytes.release(large.room)
        # It refers to the connection, which refers to this: the collector may free that cycle late.
        self.on_granted = _ignore
