"""Which ranges of one broker's partitions to request next, and the chunks in its responses.

A state machine without I/O, which `Fetcher` drives. Brokers serve any byte range of a partition, so
the next range can be requested while this one is decoded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass

from broker import errors
from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.patterns import PayloadTest
from broker.protocol import client_requests, responses
from broker.protocol.codec import Fault, scan_batches
from broker.protocol.fetch_sessions import ReaderSession
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.message_set import filter_entries
from broker.protocol.primitives import Buffer, Reader
from broker.protocol.record_batch import HEADER_BYTES, parse_head
from broker.protocol.requests import FetchRequest, MultiFetchRequest
from broker.topic import MessagePosition, TopicPartition

logger = logging.getLogger(__name__)

DEFAULT_FETCH_BYTES = 1 << 20
DEFAULT_MAX_WAIT_MS = 500
MAX_RESPONSE_BYTES = 64 << 20
_MANY = 16
"""Fewer partitions are named in each request: brokers keep a limited number of sessions."""
_MANY_RESPONSE_BYTES = 8 << 20
"""In sessions a request costs little, and responses that stay in the cache of a processor less."""
_NO_LIMIT = 1 << 62
# the session was evicted, or the broker is an older one since the connection was made again
_REFUSALS = (errors.UnknownFetchSessionError, errors.UnsupportedVersionError)
_EMPTY_FETCH_WAIT_S = 0.1
_PAUSED_MAX_WAIT_MS = 20


class _LocalFilter:
    """Filters the chunks of a broker that cannot filter."""

    def __init__(self, is_wanted: PayloadTest) -> None:
        self._is_wanted = is_wanted
        self._readers: dict[TopicPartition, PartitionReader] = {}

    def forget(self, partition: TopicPartition) -> None:
        """Drop the partial message of a partition, as its next chunk does not continue it."""
        self._readers.pop(partition, None)

    def apply(self, chunk: Chunk) -> Iterator[Chunk]:
        """Give the matching entries that a chunk, which follows the previous one, completes."""
        if chunk.partition.has_records:
            yield chunk  # whoever decodes the records filters them
            return
        reader = self._readers.get(chunk.partition)
        if reader is None:
            reader = PartitionReader(chunk.partition, MessagePosition(chunk.offset))
            self._readers[chunk.partition] = reader
        if chunk.skip_to is not None:
            self.forget(chunk.partition)
            yield chunk
            return
        start = chunk._replace(offset=reader.offset)
        if chunk.error != errors.NO_ERROR or not reader.add(chunk):
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


@dataclass(eq=False, repr=False)
class FetchSession:
    """The partitions of one broker: one request in flight, the next one after its response.

    Send `request` or, to a broker of 0.7, `request_07`; give the response to `take` or `take_07`;
    send the next request; then pass the chunks through `filtered`.

    Args:
        positions: the first offset of each partition.
        fetch_bytes: the most to request of one partition.
        max_response_bytes: the most to request of all partitions.
        max_wait_ms: how long the broker may delay a response of fewer than `min_bytes`, which is 1
            or more, of all partitions. A 0.7 broker does not wait.
        payload_filter: chooses messages; the broker applies it if it can. Wrappers are given whole
            if a message in them matches, corrupt entries always.
        takes_followers: the broker may be any in-sync replica. Then a filter is applied here.
    """

    positions: InitVar[Mapping[TopicPartition, int]]
    _: KW_ONLY
    fetch_bytes: int = DEFAULT_FETCH_BYTES
    max_response_bytes: int = MAX_RESPONSE_BYTES
    max_wait_ms: int = DEFAULT_MAX_WAIT_MS
    min_bytes: int = 1
    payload_filter: client_requests.PayloadFilter | None = None
    takes_followers: bool = False

    def __post_init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self._positions = dict(positions)
        self._local_filter = (
            None if self.payload_filter is None else _LocalFilter(self.payload_filter.compile())
        )
        self._broker_filters = False  # the request in flight
        self._paused: set[TopicPartition] = set()
        self._expected_ends: dict[TopicPartition, int] = {}  # of large messages being fetched
        self._requested: dict[TopicPartition, int] | None = None  # by the request in flight
        self._requested_bytes: dict[TopicPartition, int] = {}  # the most it may return
        self._changed = dict.fromkeys(self._positions)  # since the last request of the session
        self._sought: set[TopicPartition] = set()  # since then; the broker has to respond to these
        self._session: ReaderSession[client_requests.PartitionPosition] | None = ReaderSession()
        """What the broker knows; None if it has no room for sessions."""
        self._is_in_session = False  # the request in flight

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions being fetched."""
        return list(self._positions)

    @property
    def is_in_flight(self) -> bool:
        """Return whether a response is due."""
        return self._requested is not None

    @property
    def is_wanting(self) -> bool:
        """Return whether there is something to request."""
        return any(one not in self._paused for one in self._positions)

    @property
    def empty_wait_s(self) -> float:
        """Return how long to wait after a 0.7 broker, which responds at once, had no data."""
        return min(_EMPTY_FETCH_WAIT_S, self.max_wait_ms / 1000)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Fetch a partition from an offset on, whether or not it was being fetched."""
        self._positions[partition] = offset
        self._changed[partition] = None
        self._sought.add(partition)
        self._expected_ends.pop(partition, None)
        self._drop_partial(partition)

    def forget(self, partition: TopicPartition) -> None:
        """Stop fetching a partition."""
        self._positions.pop(partition, None)
        self._changed[partition] = None
        self._expected_ends.pop(partition, None)
        self._paused.discard(partition)
        self._drop_partial(partition)

    def expect(self, partition: TopicPartition, end: int) -> None:
        """Request a partition up to the end of a large message that has begun, in one request."""
        if partition in self._positions:
            self._expected_ends[partition] = end  # `_room` limits it to `max_response_bytes`
            self._changed[partition] = None

    def pause(self, partition: TopicPartition) -> None:
        """Stop requesting a partition until `resume`; a chunk already requested is still given."""
        self._paused.add(partition)
        self._changed[partition] = None

    def resume(self, partition: TopicPartition) -> None:
        """Request a paused partition again."""
        self._paused.discard(partition)
        self._changed[partition] = None

    def request(self, understands: Callable[[type[ExtensionRequest]], bool]) -> ExtensionRequest:
        """Return the next request; `understands` tells what the broker supports."""
        filters = self.payload_filter is not None and not self.takes_followers
        filters = filters and not any(one.has_records for one in self._positions)
        filters = filters and understands(client_requests.FilteredReadRequest)
        session = self._session
        is_wanted = session is not None and (session.told or len(self._positions) >= _MANY)
        if is_wanted and not filters and understands(client_requests.SessionReadRequest):
            return self._session_request()
        wanted, rooms = self._next()
        positions = tuple(
            client_requests.PartitionPosition(partition, offset, rooms[partition])
            for partition, offset in wanted.items()
        )
        takes_any = self.takes_followers and understands(client_requests.AnyReplicaReadRequest)
        kind = client_requests.AnyReplicaReadRequest if takes_any else client_requests.ReadRequest
        max_wait_ms = self._wait_ms(len(positions))
        read = kind(max_wait_ms, self.min_bytes, self.max_response_bytes, positions)
        self._broker_filters = self._is_in_session = False
        if not filters:
            return read
        assert self.payload_filter is not None
        self._broker_filters = True
        return client_requests.FilteredReadRequest(read, self.payload_filter)

    def _wait_ms(self, count: int) -> int:
        if count < len(self._positions):
            # the request of a resumed partition must not wait for data of the others
            return min(self.max_wait_ms, _PAUSED_MAX_WAIT_MS)
        return self.max_wait_ms

    def _session_request(self) -> client_requests.SessionReadRequest:
        """Return the next request of the session, which names the partitions that have changed."""
        session = self._session
        assert session is not None
        max_bytes = min(self.max_response_bytes, _MANY_RESPONSE_BYTES)
        for partition in self._changed:
            offset = self._positions.get(partition)
            if offset is None or partition in self._paused:
                session.forget(partition)
            else:
                room = self._room(partition, offset)
                max_bytes = max(max_bytes, room)
                position = client_requests.PartitionPosition(partition, offset, room)
                session.name(partition, position, is_again=partition in self._sought)
        self._changed.clear()
        self._sought.clear()
        positions, forgotten = session.take_changes()
        self._broker_filters, self._is_in_session = False, True
        self._requested = {}
        return client_requests.SessionReadRequest(
            client_requests.ReadRequest(
                self._wait_ms(len(session.told)), self.min_bytes, max_bytes, positions
            ),
            session.id,
            session.epoch,
            self.takes_followers,
            forgotten,
        )

    def request_07(self) -> MultiFetchRequest:
        """Return the next request to a broker of 0.7."""
        self._broker_filters = self._is_in_session = False
        wanted, rooms = self._next()
        return MultiFetchRequest(
            tuple(
                FetchRequest(partition.topic, partition.index, offset, rooms[partition])
                for partition, offset in wanted.items()
            )
        )

    def drop_request(self, error: errors.BrokerError) -> bool:
        """Forget the request in flight; return whether to send the next one at once.

        That is on the same connection, after a request in a session was refused; else the
        connection was lost.
        """
        is_refused = self.is_in_flight and self._is_in_session and isinstance(error, _REFUSALS)
        self._requested = None
        if is_refused:
            self._session = None
        elif self._session is not None:
            self._session.end()
            self._changed.update(dict.fromkeys(self._positions))
        return is_refused

    def take(self, body: Reader) -> list[Chunk]:
        """Take the response, and advance; return its chunks, without those from before a seek."""
        requested = self._taken()
        if self._broker_filters:
            filtered = responses.decode_filtered_read_response(body)
            chunks = [chunk for part in filtered for chunk in _filtered_chunks(part, requested)]
            return self._advance(chunks)
        session = self._session if self._is_in_session else None
        if session is not None:
            session.answered(body.int64())
        parts = responses.decode_read_response(body)
        if session is not None:
            told = session.told
            requested = {one: told[one].offset for one, *_ in parts if one in told}
        chunks = [
            Chunk(
                partition,
                _requested_offset(partition, requested),
                data,
                error,
                high_watermark,
                log_start_offset,
            )
            for partition, error, high_watermark, log_start_offset, data in parts
        ]
        return self._advance(
            [
                self._of_whole_batches(one) if len(one.data) and one.partition.has_records else one
                for one in chunks
            ]
        )

    def _of_whole_batches(self, chunk: Chunk) -> Chunk:
        """Return a chunk without the batch that is cut off, which is requested as a whole next.

        What is damaged is left in it, for an error of its reader.
        """
        partition, offset, data = chunk.partition, chunk.offset, memoryview(chunk.data)
        found = scan_batches(data)
        end = max(offset, found.batches[-1].next_offset) if found.batches else offset
        if found.fault is Fault.PARTIAL and found.valid_bytes:
            data = data[: found.valid_bytes]
        elif found.fault is Fault.PARTIAL:
            head = parse_head(data[:HEADER_BYTES], 0)
            expected_end = offset + (HEADER_BYTES if head is None else head.size)
            # else it is longer than the log, or than a response may be
            if self._expected_ends.get(partition, 0) < expected_end:
                self.expect(partition, expected_end)
                return chunk._replace(data=b"")
            end += 1
        elif found.fault:
            end += 1
        if end > offset:
            self._expected_ends.pop(partition, None)
        return chunk._replace(data=data, records_end=end)

    def take_07(self, frame: Buffer) -> list[Chunk]:
        """Take the response of a broker of 0.7, as `take` does; it has no empty chunks."""
        requested = self._taken()
        parts = responses.decode_multifetch_response(frame)
        chunks = []
        for (partition, offset), (code, data) in zip(requested.items(), parts, strict=True):
            is_short = 0 < len(data) < self._requested_bytes[partition]
            high_watermark = offset + len(data) if is_short else -1
            chunks.append(Chunk(partition, offset, data, code, high_watermark))
        return self._advance(chunks)

    def filtered(self, chunks: list[Chunk]) -> list[Chunk]:
        """Filter the chunks of a broker that cannot."""
        if self._local_filter is None or self._broker_filters:
            return chunks
        return [one for chunk in chunks for one in self._local_filter.apply(chunk)]

    def _drop_partial(self, partition: TopicPartition) -> None:
        if self._local_filter is not None:
            self._local_filter.forget(partition)

    def _next(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the offset, and the most bytes, to request of each partition."""
        wanted = {one: at for one, at in self._positions.items() if one not in self._paused}
        self._requested = wanted
        self._requested_bytes = {one: self._room(one, at) for one, at in wanted.items()}
        return wanted, self._requested_bytes

    def _room(self, partition: TopicPartition, offset: int) -> int:
        expected_bytes = self._expected_ends.get(partition, 0) - offset
        return max(self.fetch_bytes, min(expected_bytes, self.max_response_bytes))

    def _taken(self) -> dict[TopicPartition, int]:
        requested, self._requested = self._requested or {}, None
        return requested

    def _advance(self, chunks: list[Chunk]) -> list[Chunk]:
        """Advance the offsets, and drop chunks from before a seek."""
        current = []
        for chunk in map(_past_lost, chunks):
            partition, next_offset = chunk.partition, chunk.next_offset
            if self._positions.get(partition) != chunk.offset:
                continue
            if chunk.error != errors.NO_ERROR:
                del self._positions[partition]
                self._changed[partition] = None
                current.append(chunk)
            elif next_offset > chunk.offset:
                self._changed[partition] = None
                # move it to the end of the order: if the response was full before it reached the
                # last partitions, they come first in the next one
                del self._positions[partition]
                self._positions[partition] = next_offset
                current.append(chunk)
            elif chunk.high_watermark >= 0:
                current.append(chunk)
        return current


def _past_lost(chunk: Chunk) -> Chunk:
    """Return a chunk that skips the messages that the broker has lost, if that is its error."""
    if chunk.error != errors.LostOffsetsError.code:
        return chunk
    logger.warning(
        "%s: its broker has lost the messages from offset %d to %d; going on behind them",
        *(chunk.partition, chunk.offset, chunk.high_watermark),
    )
    return chunk._replace(error=errors.NO_ERROR, skip_to=chunk.high_watermark, high_watermark=-1)


def _filtered_chunks(
    part: responses.FilteredPart, requested: Mapping[TopicPartition, int]
) -> list[Chunk]:
    """Return the entries a broker's filter kept; an empty chunk if it made no progress."""
    offset = end = _requested_offset(part.partition, requested)
    for start, entries in part.runs:
        if start < end or not len(entries):
            raise errors.ProtocolError(f"a response for {part.partition} goes back to {start}")
        end = start + len(entries)
    if part.next_offset < end:
        raise errors.ProtocolError(
            f"a response for {part.partition} goes back to {part.next_offset}"
        )
    empty = Chunk(
        part.partition,
        offset,
        high_watermark=part.high_watermark,
        log_start_offset=part.log_start_offset,
    )
    chunks = list(empty.filtered(part.runs, part.next_offset))
    if part.error != errors.NO_ERROR:
        chunks.append(empty._replace(offset=part.next_offset, error=part.error, text=part.text))
    return chunks or [empty]


def _requested_offset(partition: TopicPartition, requested: Mapping[TopicPartition, int]) -> int:
    if partition not in requested:
        raise errors.ProtocolError(f"a response came for {partition}, which was not requested")
    return requested[partition]
