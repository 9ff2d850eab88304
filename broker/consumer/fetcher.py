"""Fetches partitions of one broker, one request ahead.

Brokers serve any byte range of a partition. So the next range is requested while this one is
decoded, and a message may be larger than a request: `PartitionReader` joins its parts.

For brokers that cannot filter, messages are filtered here, with the same chunks as result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from broker.client.connection import Connection
from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.errors import NO_ERROR, BrokerError, ProtocolError
from broker.protocol import responses
from broker.protocol.extension_requests import (
    AnyReplicaReadRequest,
    FilteredReadRequest,
    PartitionPosition,
    ReadRequest,
)
from broker.protocol.message_set import filter_entries
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.primitives import Buffer
from broker.protocol.requests import FetchRequest, MultiFetchRequest
from broker.topic import MessagePosition, TopicPartition

DEFAULT_FETCH_BYTES = 1 << 20
DEFAULT_MAX_WAIT_MS = 500
_MAX_RESPONSE_BYTES = 64 << 20
_NO_LIMIT = 1 << 62
_RECONNECT_WAIT_S = 0.2
_EMPTY_FETCH_WAIT_S = 0.1
_PAUSED_MAX_WAIT_MS = 20


class _LocalFilter:
    """Filters the chunks of a broker that cannot filter."""

    def __init__(self, is_wanted: Callable[[Buffer], object]) -> None:
        self._is_wanted = is_wanted
        self._readers: dict[TopicPartition, PartitionReader] = {}

    def forget(self, partition: TopicPartition) -> None:
        """Drop the partial message of a partition, as its next chunk does not continue it."""
        self._readers.pop(partition, None)

    def apply(self, chunk: Chunk) -> Iterator[Chunk]:
        """Give the matching entries that a chunk, which follows the previous one, completes."""
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
        runs = [
            responses.Run(start.offset + first, data[first:last]) for first, last in found.spans
        ]
        end = found.end
        if reader.ends_beyond_log(end):
            # a corrupt length must reach the reader
            runs.append(responses.Run(start.offset + end, data[end:]))
            end = len(data)
        yield from start.filtered(runs, start.offset + end)
        reader.take(end)


class Fetcher:
    """Fetches partitions of one broker, in turn and without gaps.

    Args:
        connection: to the broker; `close` closes it.
        positions: the first offset of each partition.
        fetch_bytes: the most to request of one partition.
        max_response_bytes: the most to request of all partitions.
        max_wait_ms: how long the broker may delay a response of fewer than `min_bytes`, which is 1
            or more, of all partitions. A 0.7 broker does not wait.
        retry_s: how long to try to reach a lost broker again before raising an error.
        payload_filter: chooses messages; the broker applies it if it can. Wrappers are given whole
            if a message in them matches, corrupt entries always.
        takes_followers: the broker may be any in-sync replica. Then a filter is applied here.
    """

    def __init__(
        self,
        connection: Connection,
        positions: Mapping[TopicPartition, int],
        *,
        fetch_bytes: int = DEFAULT_FETCH_BYTES,
        max_response_bytes: int = _MAX_RESPONSE_BYTES,
        max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
        min_bytes: int = 1,
        retry_s: float = 10.0,
        payload_filter: PayloadFilter | None = None,
        takes_followers: bool = False,
    ) -> None:
        self._connection = connection
        self._positions = dict(positions)
        self._fetch_bytes = fetch_bytes
        self._max_response_bytes = max_response_bytes
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._retry_s = retry_s
        self._filter = payload_filter
        self._takes_followers = takes_followers
        self._local_filter = (
            None if payload_filter is None else _LocalFilter(payload_filter.compile())
        )
        self._paused: set[TopicPartition] = set()
        self._expected_ends: dict[TopicPartition, int] = {}  # of large messages being fetched
        self._requested: dict[TopicPartition, int] | None = None  # by the request in flight
        self._requested_bytes: dict[TopicPartition, int] = {}  # the most it may return
        self._correlation_id = 0
        self._is_interrupted = False

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions being fetched."""
        return list(self._positions)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Fetch a partition from an offset on, whether or not it was being fetched."""
        self._positions[partition] = offset
        self._expected_ends.pop(partition, None)
        self._drop_partial(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Stop fetching a partition."""
        self._positions.pop(partition, None)
        self._expected_ends.pop(partition, None)
        self._paused.discard(partition)
        self._drop_partial(partition)

    def expect(self, partition: TopicPartition, end: int) -> None:
        """Request a partition up to the end of a large message that has begun, in one request."""
        if partition in self._positions:
            self._expected_ends[partition] = end  # `_room` limits it to `max_response_bytes`

    def pause(self, partition: TopicPartition) -> None:
        """Stop requesting a partition until `resume`; a chunk already requested is still given."""
        self._paused.add(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Request a paused partition again."""
        self._paused.discard(partition)

    def interrupt(self) -> None:
        """Make a poll that blocks in another thread, and all later ones, fail at once."""
        self._is_interrupted = True
        self._connection.interrupt()

    def poll(self) -> list[Chunk]:
        """Return new chunks; wait for them up to about `max_wait_ms`.

        A chunk without data or an error has the high watermark of a partition without new data; a
        0.7 broker sends none. With a filter there may be several chunks of a partition, in order.
        """
        if self._requested is None and not self._wanted():
            return []
        give_up_s = time.monotonic() + self._retry_s
        while True:
            try:
                chunks = self._receive()
            except BrokerError as error:
                if not error.is_retriable:
                    raise
                self._requested = None
                self._connection.close()
                self._connection.retries_refused = False  # the attempts are made here
                if self._is_interrupted or time.monotonic() >= give_up_s:
                    raise
                time.sleep(_RECONNECT_WAIT_S)
                continue
            current = self._advance(chunks)
            if self._local_filter is None or self._asks_for_filtering():
                return current
            return [one for chunk in current for one in self._local_filter.apply(chunk)]

    def _asks_for_filtering(self) -> bool:
        if self._filter is None or self._takes_followers:
            return False
        return self._connection.understands(FilteredReadRequest)

    def _drop_partial(self, partition: TopicPartition) -> None:
        if self._local_filter is not None:
            self._local_filter.forget(partition)

    def _wanted(self) -> dict[TopicPartition, int]:
        return {one: at for one, at in self._positions.items() if one not in self._paused}

    def _room(self, partition: TopicPartition, offset: int) -> int:
        expected_bytes = self._expected_ends.get(partition, 0) - offset
        return max(self._fetch_bytes, min(expected_bytes, self._max_response_bytes))

    def _receive(self) -> list[Chunk]:
        if self._requested is None:
            self._ask()
        requested, self._requested = self._requested or {}, None
        if self._connection.hello() is None:
            return self._receive_07(requested)
        body = self._connection.receive_extension(self._correlation_id)
        if self._asks_for_filtering():
            parts = responses.decode_filtered_read_response(body)
            return [chunk for part in parts for chunk in _filtered_chunks(part, requested)]
        found = responses.decode_read_response(body)
        return [
            Chunk(
                partition,
                _requested_offset(partition, requested),
                data,
                error,
                high_watermark,
                log_start_offset,
            )
            for partition, error, high_watermark, log_start_offset, data in found
        ]

    def _receive_07(self, requested: dict[TopicPartition, int]) -> list[Chunk]:
        parts = responses.decode_multifetch_response(self._connection.receive())
        if not any(len(data) or code for code, data in parts):
            # a 0.7 broker responds at once, without waiting for new messages
            time.sleep(min(_EMPTY_FETCH_WAIT_S, self._max_wait_ms / 1000))
        chunks = []
        for (partition, offset), (code, data) in zip(requested.items(), parts, strict=True):
            is_short = 0 < len(data) < self._requested_bytes[partition]
            high_watermark = offset + len(data) if is_short else -1
            chunks.append(Chunk(partition, offset, data, code, high_watermark))
        return chunks

    def _ask(self) -> None:
        speaks_extensions = self._connection.hello() is not None
        self._requested = wanted = self._wanted()
        rooms = self._requested_bytes = {one: self._room(one, at) for one, at in wanted.items()}
        if speaks_extensions:
            positions = tuple(
                PartitionPosition(partition, offset, rooms[partition])
                for partition, offset in wanted.items()
            )
            max_wait_ms = self._max_wait_ms
            if len(positions) < len(self._positions):
                # the request of a resumed partition must not wait for data of the others
                max_wait_ms = min(max_wait_ms, _PAUSED_MAX_WAIT_MS)
            takes_any = self._takes_followers and self._connection.understands(
                AnyReplicaReadRequest
            )
            kind = AnyReplicaReadRequest if takes_any else ReadRequest
            read = kind(max_wait_ms, self._min_bytes, self._max_response_bytes, positions)
            self._correlation_id = self._connection.send_extension(self._filtered(read))
        else:
            fetches = tuple(
                FetchRequest(partition.topic, partition.index, offset, rooms[partition])
                for partition, offset in wanted.items()
            )
            self._connection.send_request(MultiFetchRequest(fetches))

    def _filtered(self, read: ReadRequest) -> ReadRequest | FilteredReadRequest:
        if self._filter is None or not self._asks_for_filtering():
            return read
        return FilteredReadRequest(read, self._filter)

    def _advance(self, chunks: list[Chunk]) -> list[Chunk]:
        """Advance the offsets, send the next request, and drop chunks from before a seek."""
        current = []
        for chunk in chunks:
            partition, next_offset = chunk.partition, chunk.next_offset
            if self._positions.get(partition) != chunk.offset:
                continue
            if chunk.error != NO_ERROR:
                del self._positions[partition]
                current.append(chunk)
            elif next_offset > chunk.offset:
                # move it to the end of the order: if the response was full before it reached the
                # last partitions, they come first in the next one
                del self._positions[partition]
                self._positions[partition] = next_offset
                current.append(chunk)
            elif chunk.high_watermark >= 0:
                current.append(chunk)
        if self._wanted():
            try:
                self._ask()
            except BrokerError as error:
                if not error.is_retriable:
                    raise
                # the next poll retries, and raises the error if that fails too
                self._requested = None
                self._connection.close()
        return current


def _filtered_chunks(
    part: responses.FilteredPart, requested: Mapping[TopicPartition, int]
) -> list[Chunk]:
    """Return the entries a broker's filter kept; an empty chunk if it made no progress."""
    offset = end = _requested_offset(part.partition, requested)
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


def _requested_offset(partition: TopicPartition, requested: Mapping[TopicPartition, int]) -> int:
    if partition not in requested:
        raise ProtocolError(f"a response came for {partition}, which was not requested")
    return requested[partition]
