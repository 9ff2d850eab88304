"""Reads partitions of one broker as streams of bytes, one request ahead.

Byte offsets make a partition a plain stream: the broker sends any range, so the next range is
asked for while this one is being worked on, and no message is too large for a request. Whoever
decodes keeps the partial message at the end of a piece until the next piece completes it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    BrokerUnreachableError,
    ProtocolError,
    RequestTimeoutError,
)
from broker.protocol.primitives import Buffer
from broker.protocol.requests import (
    FetchRequest,
    MultiFetchRequest,
    PartitionPosition,
    ReadRequest,
)
from broker.protocol.responses import ReadPart, decode_multifetch_response, decode_read_response
from broker.topic import TopicPartition

DEFAULT_FETCH_BYTES = 1 << 20
DEFAULT_MAX_WAIT_MS = 500
MAX_ANSWER_BYTES = 64 << 20
_RECONNECT_WAIT_S = 0.2
_EMPTY_FETCH_WAIT_S = 0.1
_PAUSED_MAX_WAIT_MS = 20


class Piece(NamedTuple):
    """What came of one partition: bytes from `offset` on, or an error code.

    After an error the partition is no longer read, until `seek` says from where to go on.
    `high_watermark` is -1 where the broker does not tell it, as 0.7 ones do not.
    """

    partition: TopicPartition
    offset: int
    data: Buffer
    error: int
    high_watermark: int
    log_start_offset: int


class Fetcher:
    """Reads some partitions of one broker, in turn and without gaps.

    Args:
        connection: to the broker; owned by the fetcher from now on.
        positions: where to start in each partition.
        fetch_bytes: the most to ask of one partition in one request.
        max_wait_ms: how long the broker may wait for new data before it answers.
        retry_s: how long a lost broker is tried again before that is an error.
        ends: where to stop in some partitions; none of their bytes from there on are asked for.
    """

    def __init__(
        self,
        connection: Connection,
        positions: Mapping[TopicPartition, int],
        *,
        fetch_bytes: int = DEFAULT_FETCH_BYTES,
        max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
        retry_s: float = 10.0,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._connection = connection
        self._positions = dict(positions)
        self._fetch_bytes = fetch_bytes
        self._max_wait_ms = max_wait_ms
        self._retry_s = retry_s
        self._ends = dict(ends or {})
        self._paused: set[TopicPartition] = set()
        self._asked: dict[TopicPartition, int] | None = None
        self._correlation_id = 0

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions being read."""
        return list(self._positions)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from an offset on, whether or not it was being read."""
        self._positions[partition] = offset

    def forget(self, partition: TopicPartition) -> None:
        """Read a partition no longer."""
        self._positions.pop(partition, None)
        self._paused.discard(partition)

    def pause(self, partition: TopicPartition) -> None:
        """Ask for no more of a partition for now; what was asked for before still comes.

        While a partition is paused the others are waited for shortly only, so that it need not
        wait for them once it is resumed.
        """
        self._paused.add(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Ask for a paused partition again."""
        self._paused.discard(partition)

    def interrupt(self) -> None:
        """Make a poll that waits in another thread fail at once."""
        self._connection.interrupt()

    def poll(self) -> list[Piece]:
        """Return what has come, waiting for it up to `max_wait_ms` or so.

        Returns:
            Pieces of partitions that have something new, or an error; from brokers that tell a
            high watermark also empty ones of those that have nothing new.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker could not be had back within
                `retry_s`.
            ProtocolError: it does not answer as a broker does.
        """
        if self._asked is None and not self._wanted():
            return []
        give_up_s = time.monotonic() + self._retry_s
        while True:
            try:
                pieces = self._receive()
            except (BrokerUnreachableError, RequestTimeoutError):
                self._asked = None
                self._connection.close()
                if time.monotonic() >= give_up_s:
                    raise
                time.sleep(_RECONNECT_WAIT_S)
                continue
            return self._advance(pieces)

    def _wanted(self) -> dict[TopicPartition, int]:
        return {
            one: at
            for one, at in self._positions.items()
            if one not in self._paused and self._room(one, at)
        }

    def _room(self, partition: TopicPartition, offset: int) -> int:
        """Return how much to ask of a partition at most, from an offset on."""
        end = self._ends.get(partition)
        return self._fetch_bytes if end is None else max(0, min(self._fetch_bytes, end - offset))

    def _receive(self) -> list[Piece]:
        """Return the pieces of the request under way, or of a new one."""
        if self._asked is None:
            self._ask()
        asked, self._asked = self._asked or {}, None
        if self._connection.hello() is None:
            return self._receive_07(asked)
        body = self._connection.receive_extension(self._correlation_id)
        return [_piece(part, asked) for part in decode_read_response(body)]

    def _receive_07(self, asked: dict[TopicPartition, int]) -> list[Piece]:
        parts = decode_multifetch_response(self._connection.receive())
        if not any(len(data) or code for code, data in parts):
            # a 0.7 broker cannot wait for us, so we wait for it
            time.sleep(min(_EMPTY_FETCH_WAIT_S, self._max_wait_ms / 1000))
        return [
            Piece(partition, offset, data, code, -1, -1)
            for (partition, offset), (code, data) in zip(asked.items(), parts, strict=True)
        ]

    def _ask(self) -> None:
        speaks_extensions = self._connection.hello() is not None
        self._asked = self._wanted()
        if speaks_extensions:
            positions = tuple(
                PartitionPosition(partition, offset, self._room(partition, offset))
                for partition, offset in self._asked.items()
            )
            max_wait_ms = self._max_wait_ms
            if len(positions) < len(self._positions):
                max_wait_ms = min(max_wait_ms, _PAUSED_MAX_WAIT_MS)
            self._correlation_id = self._connection.send_extension(
                ReadRequest(max_wait_ms, 1, MAX_ANSWER_BYTES, positions)
            )
        else:
            fetches = tuple(
                FetchRequest(
                    partition.topic, partition.index, offset, self._room(partition, offset)
                )
                for partition, offset in self._asked.items()
            )
            self._connection.send_request(MultiFetchRequest(fetches))

    def _advance(self, pieces: list[Piece]) -> list[Piece]:
        """Move the positions on, ask for what comes next, and leave out what is outdated."""
        current = []
        for piece in pieces:
            if self._positions.get(piece.partition) != piece.offset:
                continue
            if piece.error != NO_ERROR:
                del self._positions[piece.partition]
                current.append(piece)
            elif len(piece.data):
                # to the end of the line: where answers are full before all have had their turn,
                # the others are the first next time
                del self._positions[piece.partition]
                self._positions[piece.partition] = piece.offset + len(piece.data)
                current.append(piece)
            elif piece.high_watermark >= 0:
                current.append(piece)
        if self._wanted():
            self._ask_ahead()
        return current

    def _ask_ahead(self) -> None:
        try:
            self._ask()
        except (BrokerUnreachableError, RequestTimeoutError):
            # the next poll tries again and, if that is no use, says so
            self._asked = None
            self._connection.close()


def _piece(part: ReadPart, asked: Mapping[TopicPartition, int]) -> Piece:
    if part.partition not in asked:
        raise ProtocolError(f"an answer came for {part.partition}, which was not asked for")
    return Piece(
        part.partition,
        asked[part.partition],
        part.message_set,
        part.error,
        part.high_watermark,
        part.log_start_offset,
    )


class MessageStream:
    """The pieces of one partition put together again.

    Args:
        offset: where the first piece will start.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        """The offset of the first byte not taken yet: a message boundary."""
        self._rest: Buffer = b""

    def add(self, data: Buffer) -> memoryview:
        """Put a piece behind what is left, and return all of it."""
        self._rest = memoryview(b"".join((self._rest, data)) if len(self._rest) else data)
        return self._rest

    def take(self, valid_bytes: int) -> None:
        """Drop bytes from the front that have been decoded.

        Args:
            valid_bytes: the length of whole entries.
        """
        self.offset += valid_bytes
        self._rest = bytes(memoryview(self._rest)[valid_bytes:])
