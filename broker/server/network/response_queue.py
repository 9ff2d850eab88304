"""Responses to a socket, in the order of their requests: bytes, and slices of files by sendfile."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from broker.log.segment import FileSlice
from broker.protocol.primitives import Buffer
from broker.server.requests.purgatory import (
    DelayedResponse,
    DelayKind,
    Part,
    RequestGroup,
    Response,
)

if TYPE_CHECKING:
    from broker.server.network.tls_transport import TlsTransport

    Transport: TypeAlias = socket.socket | TlsTransport

MAX_WAITING_READS = 16
"""Delayed reads of one connection: each is attempted whenever messages arrive."""
MAX_RESPONSES_IN_MEMORY_BYTES = 1 << 20
MAX_QUEUED_RESPONSES = 1024
_READS = (DelayKind.READ, DelayKind.FOLLOWER_READ)
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_JOINED_BYTES = 1 << 16
_SEND_TURN_BYTES = 4 << 20
"""The most one connection sends in a turn: a fast reader must not starve the others."""


class ResponseQueue:
    """The responses of a connection, in the order of their requests."""

    def __init__(self) -> None:
        self.bytes_in_memory = 0
        self.sent_bytes = 0  # in all, since the start
        self.delayed: dict[DelayedResponse, None] = {}  # those not complete yet, in their order
        self.late: list[tuple[RequestGroup, float]] = []
        """The responses sent since it was emptied that found no room at first: seconds it took."""
        self._full_since_s = 0.0  # by `time.perf_counter`; 0 while the socket has room
        self.has_lingering = False  # whether one was for the end of the broker
        self._waiting_read_count = 0
        self._responses: deque[Response] = deque()
        self._part = 0
        self._part_sent = 0

    def __len__(self) -> int:
        return len(self._responses)

    def append(self, response: Response) -> None:
        """Queue a complete response."""
        self._responses.append(response)
        self.bytes_in_memory += response.bytes_in_memory

    def delay(self, delayed: DelayedResponse) -> None:
        """Queue a delayed response."""
        self.has_lingering |= delayed.lingers
        self.delayed[delayed] = None
        self._waiting_read_count += not delayed.awaits_flush
        self.append(delayed)

    def attempt(self, delayed: DelayedResponse, *, is_last: bool) -> bool:
        """Try to complete a delayed response; return whether it is complete."""
        expected_bytes = delayed.bytes_in_memory
        if not delayed.attempt(is_last=is_last):
            return False
        del self.delayed[delayed]
        self._waiting_read_count -= not delayed.awaits_flush
        self.bytes_in_memory += delayed.bytes_in_memory - expected_bytes
        return True

    def clear(self) -> None:
        """Drop all responses."""
        self._responses.clear()
        self.delayed.clear()

    @property
    def delayed_reads(self) -> list[DelayedResponse]:
        """Return the reads that wait for messages."""
        return [one for one in self.delayed if one.kind in _READS]

    @property
    def awaited(self) -> DelayedResponse | None:
        """Return the response that is sent next, if it is not complete."""
        first = self._responses[0] if self._responses else None
        return first if isinstance(first, DelayedResponse) and first.parts is None else None

    @property
    def has_unsent(self) -> bool:
        """Return whether a complete response waits for room in the socket."""
        return bool(self._responses) and self._responses[0].parts is not None

    @property
    def is_full(self) -> bool:
        """Return whether responses must be completed and taken before more requests are handled."""
        count = len(self._responses)
        if count > MAX_QUEUED_RESPONSES or self._waiting_read_count > MAX_WAITING_READS:
            return True
        return count > 1 and self.bytes_in_memory > MAX_RESPONSES_IN_MEMORY_BYTES

    def send(self, transport: Transport) -> None:
        """Send complete responses in order, until the socket is full or the turn is used up."""
        end_bytes = self.sent_bytes + _SEND_TURN_BYTES
        try:
            while self._responses and self.sent_bytes < end_bytes:
                if len(self._responses) > 1 and not self._part and not self._part_sent:
                    self._join_small()
                parts = self._responses[0].parts
                if parts is None:
                    return
                self._send_next(transport, parts)
        except BlockingIOError:
            self._full_since_s = self._full_since_s or time.perf_counter()
        except InterruptedError:
            return

    def _join_small(self) -> None:
        """Join the small responses at the front, so that one call sends them all."""
        joined: list[Buffer] = []
        size = 0
        group = self._responses[0].group  # they seldom differ
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
            together = Response(b"".join(joined))
            together.group = group
            self._responses.appendleft(together)

    def _send_next(self, transport: Transport, parts: list[Part]) -> None:
        """Send as much of the next part as the socket takes."""
        part = parts[self._part]
        is_last = self._part == len(parts) - 1
        if isinstance(part, FileSlice):
            size = part.length
            left = size - self._part_sent
            start = part.position + self._part_sent
            sent = _send_from_file(transport, part, start, min(left, _SEND_TURN_BYTES))
        else:
            size = len(part)
            unsent = memoryview(part)[self._part_sent :]
            sent = transport.send(unsent, 0 if is_last else _MSG_MORE) if unsent else 0
        self.sent_bytes += sent
        self._part_sent += sent
        if self._part_sent < size:
            return
        self._part_sent = 0
        self._part += 1
        if is_last:
            response = self._responses.popleft()
            self.bytes_in_memory -= response.bytes_in_memory
            self._part = 0
            if self._full_since_s:
                self.late.append((response.group, time.perf_counter() - self._full_since_s))
                self._full_since_s = 0.0


def _send_from_file(transport: Transport, part: FileSlice, start: int, size: int) -> int:
    """Send bytes of a segment file; return how many the socket took."""
    try:
        if isinstance(transport, socket.socket):
            sent = os.sendfile(transport.fileno(), part.file.fd, start, size)
        else:
            sent = transport.send_file(part.file.fd, start, size)
    except (BlockingIOError, InterruptedError, ConnectionError):
        raise
    except OSError as error:
        # The file cannot be read: the log refuses reads from there on. This response was announced
        # with its size and can only be broken off.
        unreadable = part.source.note_unreadable(part, start)
        raise OSError(str(unreadable or error)) from error
    if size and not sent:
        raise OSError(str(part.source.note_unreadable(part, start)))
    return sent
