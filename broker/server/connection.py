"""One client's connection: frames in, answers out, no meaning.

A connection belongs to one processor and is touched by its thread only.
"""

from __future__ import annotations

import os
import socket
from collections import deque

from broker.log.segment import FileSlice
from broker.protocol.framing import FrameSizeError, cut_frames
from broker.protocol.primitives import Buffer
from broker.server.answer import Answer, Parked
from broker.server.limits import QueuedBytes

MAX_ANSWERS_IN_MEMORY_BYTES = 8 << 20
MAX_QUEUED_ANSWERS = 4096
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_SENDFILE_MAX_BYTES = 1 << 20
"""One slice at a time, so that a fast reader of a large range does not starve the others."""


class Connection:
    """The state of one client's socket.

    Args:
        sock: connected and non-blocking.
        peer: the client's address, for messages.
        max_frame_bytes: the largest frame taken.
        queued_bytes: the budget, shared by all connections, that large frames are received under.
        now_s: monotonic time of its start.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        *,
        max_frame_bytes: int,
        queued_bytes: QueuedBytes,
        now_s: float,
    ) -> None:
        self.sock = sock
        self.peer = peer
        self.last_request_s = now_s
        self.parked: set[Parked] = set()
        self.lingers = False
        """Whether the socket outlives its processor, to tell a client when the broker is gone."""
        self.fault: Exception | None = None
        self._max_frame_bytes = max_frame_bytes
        self._queued_bytes = queued_bytes
        self._tail = b""
        self._large: bytearray | None = None
        self._large_filled = 0
        self._answers: deque[Answer] = deque()
        self._sent = 0

    def receive(self, shared: bytearray) -> list[memoryview]:
        """Read what the socket has and cut it into frames.

        Args:
            shared: the processor's buffer; frames are views on it, good until the next call.

        Returns:
            Every complete frame, without size fields. After an end of stream, a reset or a frame
            that is not taken, `fault` says which; the frames before it are returned all the same.
        """
        if self._large is not None:
            return self._receive_large(self._large)
        tail_bytes = len(self._tail)
        shared[:tail_bytes] = self._tail
        view = memoryview(shared)
        received = self._receive_into(view[tail_bytes:])
        if not received:
            return []
        return self._cut(view[: tail_bytes + received], len(shared))

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

    def _cut(self, data: memoryview, shared_bytes: int) -> list[memoryview]:
        try:
            cut = cut_frames(data, max_frame_bytes=self._max_frame_bytes)
        except FrameSizeError as error:
            self.fault = error
            return cut_frames(data[: error.position], max_frame_bytes=self._max_frame_bytes).frames
        rest = data[cut.consumed :]
        if cut.needed > shared_bytes:
            self._start_large(rest, cut.needed)
        else:
            self._tail = bytes(rest)
        return cut.frames

    def _start_large(self, rest: memoryview, needed: int) -> None:
        self._tail = b""
        if self._queued_bytes.take(needed):
            self._large = bytearray(needed)
            self._large[: len(rest)] = rest
            self._large_filled = len(rest)
        else:
            self.fault = BufferError(f"a frame of {needed} bytes exceeds queued.max.bytes")

    def _receive_large(self, large: bytearray) -> list[memoryview]:
        self._large_filled += self._receive_into(memoryview(large)[self._large_filled :])
        if self._large_filled < len(large):
            return []
        self._drop_large()
        return [memoryview(large)[4:]]

    def _drop_large(self) -> None:
        if self._large is not None:
            self._queued_bytes.give_back(len(self._large))
            self._large = None

    def queue(self, answer: Answer) -> None:
        """Put an answer, known or not, behind all earlier ones."""
        self._answers.append(answer)

    @property
    def is_backed_up(self) -> bool:
        """Return whether the client must take answers before more requests are read."""
        if len(self._answers) > MAX_QUEUED_ANSWERS:
            return True
        if len(self._answers) < 2:
            return False
        return sum(a.bytes_in_memory for a in self._answers) > MAX_ANSWERS_IN_MEMORY_BYTES

    @property
    def has_unsent(self) -> bool:
        """Return whether a known answer waits for room in the socket."""
        return bool(self._answers) and self._answers[0].parts is not None

    @property
    def is_waiting(self) -> bool:
        """Return whether any answer, known or not, is still owed."""
        return bool(self._answers)

    def send(self) -> int:
        """Send known answers, in order, as far as the socket takes them.

        Returns:
            How many bytes went out. `fault` is set if the client is gone.
        """
        total = 0
        try:
            while self._answers and (parts := self._answers[0].parts) is not None:
                while parts:
                    size = len(parts[0]) if not isinstance(parts[0], FileSlice) else parts[0].length
                    sent = self._send_part(parts[0], size - self._sent, is_last=len(parts) == 1)
                    total += sent
                    self._sent += sent
                    if self._sent < size:
                        continue
                    del parts[0]
                    self._sent = 0
                self._answers.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.fault = error
        return total

    def _send_part(self, part: Buffer | FileSlice, left: int, *, is_last: bool) -> int:
        if not left:
            return 0
        if not isinstance(part, FileSlice):
            flags = 0 if is_last else _MSG_MORE
            return self.sock.send(memoryview(part)[self._sent :], flags)
        start = part.position + self._sent
        sent = os.sendfile(self.sock.fileno(), part.file.fd, start, min(left, _SENDFILE_MAX_BYTES))
        if not sent:
            raise OSError(f"a segment file ends {left} bytes early")
        return sent

    def close(self) -> None:
        """Close the socket and give back what the connection holds."""
        for parked in self.parked:
            parked.forget()
        self.parked.clear()
        self._answers.clear()
        self._drop_large()
        self.sock.close()
