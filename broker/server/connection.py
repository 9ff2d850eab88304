"""One client's connection: frames in, answers out, no meaning.

A connection belongs to one processor and is touched by its thread only.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from broker.errors import BrokerError
from broker.log.log import Log
from broker.log.segment import FileSlice
from broker.protocol.framing import FrameSizeError, cut_frames, encode_frame
from broker.protocol.primitives import Buffer
from broker.server.purgatory import Answer, Parked, Part
from broker.server.quotas import QueuedBytes, Reservation

LARGE_FRAME_BYTES = 1 << 18
"""A frame that is larger gets a buffer of its own, under the budget, when it is incomplete.

While others wait for the budget, a connection holds no more than this without it.
"""
MAX_ANSWERS_IN_MEMORY_BYTES = 1 << 20
MAX_QUEUED_ANSWERS = 4096
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_JOINED_BYTES = 1 << 16
_SEND_TURN_BYTES = 4 << 20
"""What one connection may send in a turn: a fast reader must not starve the others."""


class Connection:
    """The state of one client's socket.

    Args:
        sock: connected and non-blocking.
        peer: the client's address, for messages.
        max_frame_bytes: the largest frame taken.
        queued_bytes: the budget, shared by all connections, that large frames are received under.
        on_room: called, from any thread, when `resume` can go on after a wait for the budget.
        now_s: monotonic time of its start.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        *,
        max_frame_bytes: int,
        queued_bytes: QueuedBytes,
        on_room: Callable[[Connection], None],
        now_s: float,
    ) -> None:
        self.sock = sock
        self.peer = peer
        self.last_active_s = now_s
        """When a whole request came last, or the client last took bytes of an answer."""
        self.parked: set[Parked] = set()
        self.lingers = False
        """Whether the socket outlives its processor, to tell a client when the broker is gone."""
        self.fault: Exception | None = None
        self._max_frame_bytes = max_frame_bytes
        self._queued_bytes = queued_bytes
        self._on_room = on_room
        self._tail = b""
        self.is_deferred = False
        """Whether a worker handles what was received last; what follows must wait."""
        self.is_turn_over = False
        """Whether others have to be served before what is held."""
        self._corked_by: Answer | None = None
        self.flushed_logs: set[Log] = set()
        """The logs that publishes of this client waited for last."""
        self._reservation: Reservation | None = None
        self._handled: Reservation | None = None
        self._large: bytearray | None = None
        self._large_filled = 0
        self._mark: tuple[float, int] | None = None
        """When the large frame came on well last, and how much of it was there then."""
        self._held: list[memoryview] = []
        self._answers: deque[Answer] = deque()
        self._bytes_in_memory = 0
        self._place = 0
        self._sent = 0

    def receive(self, shared: bytearray) -> list[memoryview]:
        """Read what the socket has and cut it into frames.

        Args:
            shared: the processor's buffer; small frames are views on it, good until the next call.

        Returns:
            Every complete frame, without size fields; `settle` says that they are handled. After
            an end of stream, a reset or a frame that is not taken, `fault` says which; the frames
            before it are returned all the same.
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
        return self._cut(view[: tail_bytes + received])

    def _receive_into(self, room: memoryview) -> int:
        try:
            received = self.sock.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.fault = error
            return 0
        if not received:
            self.fault = EOFError("the client closed the connection")
        return received

    def _cut(self, data: memoryview) -> list[memoryview]:
        try:
            cut = cut_frames(data, max_frame_bytes=self._max_frame_bytes)
        except FrameSizeError as error:
            self.fault = error
            return cut_frames(data[: error.position], max_frame_bytes=self._max_frame_bytes).frames
        rest = data[cut.consumed :]
        if cut.needed > LARGE_FRAME_BYTES:
            self._start_large(rest, cut.needed)
        else:
            self._tail = bytes(rest)
        return cut.frames

    def _start_large(self, rest: memoryview, needed: int) -> None:
        self._tail = b""
        try:
            self._reservation = self._queued_bytes.reserve(needed, partial(self._on_room, self))
        except BrokerError as error:
            self.fault = error
            return
        if self._reservation.is_granted:
            self._fill_large(needed, rest)
        else:
            self._tail = bytes(rest)

    def _fill_large(self, needed: int, start: Buffer) -> None:
        self._large = bytearray(needed)
        self._large[: len(start)] = start
        self._large_filled = len(start)
        self._mark = None

    @property
    def has_begun_large(self) -> bool:
        """Return whether a large frame has come in part, and holds room or waits for it."""
        return self._reservation is not None

    @property
    def is_paused(self) -> bool:
        """Return whether a large frame waits for the budget; nothing must be received meanwhile."""
        return self._reservation is not None and self._large is None

    def has_stalled(self, now_s: float, *, window_s: float, min_share: float) -> bool:
        """Return whether a large frame comes too slowly for the room it holds; asked regularly.

        Args:
            now_s: monotonic time.
            window_s: the time in which some of it has to come. What the broker does not receive
                counts for nothing, unless it is the client that does not take its answers.
            min_share: how much that is, between 0 and 1 for all of it.
        """
        if self._large is None:
            return False
        is_kept_waiting = self.is_deferred or (self.is_busy and not self.has_unsent)
        needed = min_share * len(self._large)
        if self._mark is None or is_kept_waiting or self._large_filled - self._mark[1] >= needed:
            self._mark = (now_s, self._large_filled)
        return now_s - self._mark[0] > window_s

    def resume(self) -> None:
        """Go on with a large frame that waited for the budget, if there is room for it now."""
        if self._reservation is not None and self._reservation.is_granted and self._large is None:
            self._fill_large(self._reservation.size, self._tail)
            self._tail = b""

    def _receive_large(self, large: bytearray) -> list[memoryview]:
        self._large_filled += self._receive_into(memoryview(large)[self._large_filled :])
        if self._large_filled < len(large):
            return []
        self._large = None
        self._handled, self._reservation = self._reservation, None
        return [memoryview(large)[4:]]

    def settle(self) -> None:
        """Give back the room of a large frame that has been handled."""
        handled, self._handled = self._handled, None
        if handled is not None:
            self._queued_bytes.release(handled)

    def hold(self, frames: Sequence[memoryview]) -> None:
        """Keep a copy of requests that must wait until the client has taken answers."""
        copy = memoryview(b"".join(map(encode_frame, frames)))
        self._held = cut_frames(copy, max_frame_bytes=self._max_frame_bytes).frames

    @property
    def has_held(self) -> bool:
        """Return whether requests are held."""
        return bool(self._held)

    def take_held(self) -> list[memoryview]:
        """Return the held requests, which are held no longer."""
        held, self._held = self._held, []
        return held

    def queue(self, answer: Answer) -> None:
        """Put an answer, known or not, behind all earlier ones."""
        self._answers.append(answer)
        self._bytes_in_memory += answer.bytes_in_memory

    def learn(self, answer: Answer, expected_bytes: int) -> None:
        """Take note that an answer was completed after it was queued with other expectations."""
        self._bytes_in_memory += answer.bytes_in_memory - expected_bytes

    @property
    def may_go_on(self) -> bool:
        """Return whether held requests can be handled now."""
        is_waiting = self.is_deferred or self.is_turn_over or self.has_unsent or self.is_backed_up
        return self.has_held and not is_waiting

    def cork(self, parked: Parked) -> None:
        """Receive nothing more until a parked request is answered."""
        self._corked_by = parked.answer

    @property
    def is_corked(self) -> bool:
        """Return whether what comes next is left to gather in the socket for now."""
        return self._corked_by is not None and self._corked_by.parts is None

    def uncork(self) -> bool:
        """Receive again if the request is answered; return whether that is news."""
        if self._corked_by is None or self.is_corked:
            return False
        self._corked_by = None
        return True

    @property
    def is_busy(self) -> bool:
        """Return whether requests that came must be handled before more are received."""
        return self.is_deferred or self.has_held or self.is_backed_up

    @property
    def may_receive(self) -> bool:
        """Return whether more can be received now."""
        is_full = self.is_busy or self.is_paused or self.is_corked
        return self.fault is None and not is_full

    @property
    def is_backed_up(self) -> bool:
        """Return whether the client must take answers before more requests are handled."""
        count = len(self._answers)
        is_large = self._bytes_in_memory > MAX_ANSWERS_IN_MEMORY_BYTES
        return count > MAX_QUEUED_ANSWERS or (is_large and count > 1)

    @property
    def next_parked(self) -> Parked | None:
        """Return the parked request whose answer is the next to be sent, if that is so."""
        return next((one for one in self.parked if one.answer is self._answers[0]), None)

    @property
    def has_unsent(self) -> bool:
        """Return whether a known answer waits for room in the socket."""
        return bool(self._answers) and self._answers[0].parts is not None

    @property
    def is_waiting(self) -> bool:
        """Return whether any answer, known or not, is still owed."""
        return bool(self._answers)

    def send(self) -> int:
        """Send known answers, in order, as far as the socket takes them, but not for ever.

        Returns:
            How many bytes went out. `fault` is set if the client is gone.
        """
        total = 0
        try:
            while self._answers and total < _SEND_TURN_BYTES:
                self._join_small()
                parts = self._answers[0].parts
                if parts is None:
                    break
                total += self._send_next(parts)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.fault = error
        return total

    def _join_small(self) -> None:
        """Make one of the small answers at the front, so that one call sends them all."""
        if self._place or self._sent or len(self._answers) < 2:
            return
        parts: list[Buffer] = []
        size = 0
        while self._answers and size < _JOINED_BYTES and (small := _small(self._answers[0])):
            parts += small
            size += self._answers.popleft().bytes_in_memory
        if parts:
            self._answers.appendleft(Answer(b"".join(parts)))

    def _send_next(self, parts: list[Part]) -> int:
        """Send what the socket takes at once of the part whose turn it is."""
        part = parts[self._place]
        size = part.length if isinstance(part, FileSlice) else len(part)
        is_last = self._place == len(parts) - 1
        sent = self._send_part(part, size - self._sent, is_last=is_last)
        self._sent += sent
        if self._sent == size:
            self._sent = 0
            self._place += 1
            if is_last:
                self._bytes_in_memory -= self._answers.popleft().bytes_in_memory
                self._place = 0
        return sent

    def _send_part(self, part: Part, left: int, *, is_last: bool) -> int:
        if not left:
            return 0
        if not isinstance(part, FileSlice):
            flags = 0 if is_last else _MSG_MORE
            return self.sock.send(memoryview(part)[self._sent :], flags)
        start = part.position + self._sent
        sent = os.sendfile(self.sock.fileno(), part.file.fd, start, min(left, _SEND_TURN_BYTES))
        if not sent:
            raise OSError(f"a segment file ends {left} bytes early")
        return sent

    def close(self) -> None:
        """Close the socket and give back what the connection holds.

        The room of a frame that a worker still has is given back by `settle`.
        """
        for parked in self.parked:
            parked.forget()
        self.parked.clear()
        self._answers.clear()
        self._held.clear()
        if not self.is_deferred:  # else a worker still has the frame
            self.settle()
        if self._reservation is not None:
            self._queued_bytes.release(self._reservation)
        self.sock.close()


def _small(answer: Answer) -> list[Buffer]:
    """Return the parts of an answer that is known, small and in memory; else nothing."""
    if answer.parts is None or answer.bytes_in_memory > _JOINED_BYTES:
        return []
    parts = [part for part in answer.parts if not isinstance(part, FileSlice)]
    return parts if len(parts) == len(answer.parts) else []
