"""Receives the response to a replica fetch piece by piece, in one buffer.

The processor's caches hold such a piece while it is checked and written, and the leader sends on
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.client.connection import Connection
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import ReplicaParts, ReplicaPiece

_PIECE_BYTES = 1 << 20


class ArrivingParts:
    """The responses to the fetches of one thread; the buffer grows with the largest message."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_PIECE_BYTES))

    def open(self, connection: Connection, correlation_id: int) -> tuple[Reader, int]:
        """Return the start of a response's body, and how many bytes are still to come.

        Errors are those of `Connection.receive_extension`.
        """
        size = connection.receive_size()
        start = self._buffer[:size]
        connection.receive_into(start)
        return connection.open_extension(start, correlation_id), size - len(start)

    def receive(
        self, connection: Connection, start: Reader, left_bytes: int
    ) -> Iterator[list[ReplicaPiece]]:
        """Yield the pieces of a body as they arrive, views on the buffer until the next ones do."""
        parts = ReplicaParts(start)
        body = start.rest
        while True:
            pieces, taken_bytes = parts.take(body, is_end=not left_bytes)
            yield pieces
            if not left_bytes:
                return
            rest = body[taken_bytes:]
            buffer = self._buffer
            if len(rest) > len(buffer) // 2:
                self._buffer = memoryview(bytearray(2 * len(buffer)))
            self._buffer[: len(rest)] = rest
            body = self._buffer[: len(rest) + left_bytes]
            connection.receive_into(body[len(rest) :])
            left_bytes -= len(body) - len(rest)
