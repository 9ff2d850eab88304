"""Fetches partitions of one broker as a stream of bytes, one request ahead.

Byte offsets make a partition a plain stream: the broker sends any range, so the next range is
requested while this one is being decoded, and no message is too large for a request. A
`PartitionReader` joins the message at the end of a chunk with the rest of it in the next one.

What a broker cannot filter is filtered here: the same chunks come out as from one that can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from broker.client.connection import Connection
from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.errors import NO_ERROR, BrokerError, ProtocolError
from broker.protocol.extension_requests import FilteredReadRequest, PartitionPosition, ReadRequest
from broker.protocol.message_set import filter_entries
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.primitives import Buffer
from broker.protocol.requests import FetchRequest, MultiFetchRequest
from broker.protocol.responses import (
    FilteredPart,
    Run,
    decode_filtered_read_response,
    decode_multifetch_response,
    decode_read_response,
)
from broker.topic import MessagePosition, TopicPartition

DEFAULT_FETCH_BYTES = 1 << 20
DEFAULT_MAX_WAIT_MS = 500
MAX_ANSWER_BYTES = 64 << 20
_NO_LIMIT = 1 << 62
_RECONNECT_WAIT_S = 0.2
_EMPTY_FETCH_WAIT_S = 0.1
_PAUSED_MAX_WAIT_MS = 20


class _LocalFilter:
    """Leaves messages out of the chunks of a broker that cannot filter."""

    def __init__(self, is_wanted: Callable[[Buffer], object]) -> None:
        self._is_wanted = is_wanted
        self._readers: dict[TopicPartition, PartitionReader] = {}

    def forget(self, partition: TopicPartition) -> None:
        """Drop the partial message of a partition, as its next chunk does not continue it."""
        self._readers.pop(partition, None)

    def apply(self, chunk: Chunk) -> Iterator[Chunk]:
        """Give the wanted entries that a chunk completes, and skips for what is in between.

        Args:
            chunk: with all messages; it follows the one before it of its partition.
        """
        reader = self._readers.get(chunk.partition)
        if reader is None:
            reader = PartitionReader(chunk.partition, MessagePosition(chunk.offset))
            self._readers[chunk.partition] = reader
        start = chunk._replace(offset=reader.offset)
        if chunk.error != NO_ERROR or not reader.add(chunk):
            yield start._replace(data=b"")
            return
        data = reader.data
        found = filter_entries(data, self._is_wanted, _NO_LIMIT)
        runs = [Run(start.offset + first, data[first:last]) for first, last in found.spans]
        end = found.end
        if reader.is_truncated(end):
            # a corrupt length is not for a filter to hide
            runs.append(Run(start.offset + end, data[end:]))
            end = len(data)
        yield from start.filtered(runs, start.offset + end)
        reader.take(end)


class Fetcher:
    """Reads some partitions of one broker, in turn and without gaps.

    Args:
        connection: to the broker; owned by the fetcher from now on.
        positions: where to start in each partition.
        fetch_bytes: the most to ask of one partition in one request.
        max_wait_ms: how long the broker may wait for new data before it answers.
        retry_s: how long a lost broker is tried again before that is an error.
        ends: where to stop in some partitions; none of their bytes from there on are asked for.
            Not for use with a filter.
        payload_filter: leave out messages that it does not want. The broker does that, if it can;
            else it is done here, with the same result. Compressed sets come whole, and everything
            that is damaged.

    Raises:
        InvalidPatternError: the filter's pattern is none.
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
        payload_filter: PayloadFilter | None = None,
    ) -> None:
        self._connection = connection
        self._positions = dict(positions)
        self._fetch_bytes = fetch_bytes
        self._max_wait_ms = max_wait_ms
        self._retry_s = retry_s
        self._ends = dict(ends or {})
        self._filter = payload_filter
        self._local_filter = (
            None if payload_filter is None else _LocalFilter(payload_filter.compile())
        )
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
        self._drop_partial(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Read a partition no longer."""
        self._positions.pop(partition, None)
        self._paused.discard(partition)
        self._drop_partial(partition)

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

    def poll(self) -> list[Chunk]:
        """Return what has come, waiting for it up to `max_wait_ms` or so.

        Returns:
            Pieces of partitions that have something new, or an error; from brokers that tell a
            high watermark also empty ones of those that have nothing new. With a filter there may
            be several pieces of a partition, in order.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker could not be had back within
                `retry_s`.
            ProtocolError: it does not answer as a broker does.
            InvalidPatternError: the broker does not take the filter's pattern.
        """
        if self._asked is None and not self._wanted():
            return []
        give_up_s = time.monotonic() + self._retry_s
        while True:
            try:
                chunks = self._receive()
            except BrokerError as error:
                if not error.is_retriable:
                    raise
                self._asked = None
                self._connection.close()
                if time.monotonic() >= give_up_s:
                    raise
                time.sleep(_RECONNECT_WAIT_S)
                continue
            current = self._advance(chunks)
            if self._local_filter is None or self._asks_for_filtering():
                return current
            return [one for chunk in current for one in self._local_filter.apply(chunk)]

    def _asks_for_filtering(self) -> bool:
        return self._filter is not None and self._connection.understands(FilteredReadRequest)

    def _drop_partial(self, partition: TopicPartition) -> None:
        if self._local_filter is not None:
            self._local_filter.forget(partition)

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

    def _receive(self) -> list[Chunk]:
        """Return the chunks of the request under way, or of a new one."""
        if self._asked is None:
            self._ask()
        asked, self._asked = self._asked or {}, None
        if self._connection.hello() is None:
            return self._receive_07(asked)
        body = self._connection.receive_extension(self._correlation_id)
        if self._asks_for_filtering():
            parts = decode_filtered_read_response(body)
            return [chunk for part in parts for chunk in _filtered_chunks(part, asked)]
        return [
            Chunk(
                partition,
                _requested_offset(partition, asked),
                data,
                error,
                high_watermark,
                log_start_offset,
            )
            for partition, error, high_watermark, log_start_offset, data in decode_read_response(
                body
            )
        ]

    def _receive_07(self, asked: dict[TopicPartition, int]) -> list[Chunk]:
        parts = decode_multifetch_response(self._connection.receive())
        if not any(len(data) or code for code, data in parts):
            # a 0.7 broker does not wait for new messages, so the client does
            time.sleep(min(_EMPTY_FETCH_WAIT_S, self._max_wait_ms / 1000))
        chunks = []
        for (partition, offset), (code, data) in zip(asked.items(), parts, strict=True):
            is_short = 0 < len(data) < self._room(partition, offset)
            high_watermark = offset + len(data) if is_short else -1
            chunks.append(Chunk(partition, offset, data, code, high_watermark))
        return chunks

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
            read = ReadRequest(max_wait_ms, 1, MAX_ANSWER_BYTES, positions)
            self._correlation_id = self._connection.send_extension(self._filtered(read))
        else:
            fetches = tuple(
                FetchRequest(
                    partition.topic, partition.index, offset, self._room(partition, offset)
                )
                for partition, offset in self._asked.items()
            )
            self._connection.send_request(MultiFetchRequest(fetches))

    def _filtered(self, read: ReadRequest) -> ReadRequest | FilteredReadRequest:
        if self._filter is None or not self._asks_for_filtering():
            return read
        return FilteredReadRequest(read, self._filter)

    def _advance(self, chunks: list[Chunk]) -> list[Chunk]:
        """Move the offsets forward, request what comes next, and drop chunks from before a seek."""
        current = []
        for chunk in chunks:
            partition, next_offset = chunk.partition, chunk.next_offset
            if self._positions.get(partition) != chunk.offset:
                continue
            if chunk.error != NO_ERROR:
                del self._positions[partition]
                current.append(chunk)
            elif next_offset > chunk.offset:
                # To the end of the order: where responses are full before all partitions have had
                # their turn, the others come first next time.
                del self._positions[partition]
                self._positions[partition] = next_offset
                current.append(chunk)
            elif chunk.high_watermark >= 0:
                current.append(chunk)
        if self._wanted():
            self._ask_ahead()
        return current

    def _ask_ahead(self) -> None:
        try:
            self._ask()
        except BrokerError as error:
            if not error.is_retriable:
                raise
            # the next poll tries again and, if that is no use, says so
            self._asked = None
            self._connection.close()


def _filtered_chunks(part: FilteredPart, asked: Mapping[TopicPartition, int]) -> list[Chunk]:
    """Return what a broker's filter kept of a partition; an empty chunk if it made no progress."""
    offset = end = _requested_offset(part.partition, asked)
    for start, entries in part.runs:
        if start < end or not len(entries):
            raise ProtocolError(f"a response for {part.partition} goes back to {start}")
        end = start + len(entries)
    if part.next_offset < end:
        raise ProtocolError(f"a response for {part.partition} goes back to {part.next_offset}")
    empty = Chunk(
        part.partition,
        offset,
        high_watermark=part.high_watermark,
        log_start_offset=part.log_start_offset,
    )
    chunks = list(empty.filtered(part.runs, part.next_offset))
    if part.error != NO_ERROR:
        chunks.append(empty._replace(offset=part.next_offset, error=part.error, text=part.text))
    return chunks or [empty]


def _requested_offset(partition: TopicPartition, asked: Mapping[TopicPartition, int]) -> int:
    if partition not in asked:
        raise ProtocolError(f"a response came for {partition}, which was not requested")
    return asked[partition]
