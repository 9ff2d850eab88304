"""0.7's simple consumer: fetches from one broker at offsets given by the caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

from broker.client.connection import DEFAULT_CONNECT_TIMEOUT_S, DEFAULT_TIMEOUT_S, Connection
from broker.closing import SelfClosing
from broker.consumer.fetch_session import MAX_RESPONSE_BYTES
from broker.errors import NO_ERROR, ProtocolError, error_for_code
from broker.patterns import PayloadTest
from broker.protocol import responses
from broker.protocol.client_requests import (
    FilteredReadRequest,
    PartitionPosition,
    PayloadFilter,
    ReadRequest,
)
from broker.protocol.codec import Fault, decode
from broker.protocol.envelope import open_envelope
from broker.protocol.message import entry_end, has_length
from broker.protocol.message_set import filter_entries, raise_fault
from broker.protocol.primitives import Buffer
from broker.protocol.requests import BaseRequest, FetchRequest, MultiFetchRequest, OffsetsRequest
from broker.security.client_security import ClientSecurity
from broker.topic import TopicPartition

Message = tuple[int, int, bytes]  # offset, next offset, payload; offsets are byte positions


class FetchedSet:
    """The message set of one fetch.

    Iterating gives (offset, next offset, payload) of each whole message. The next offset is where
    to fetch after it; inside a wrapper it stays at the wrapper's start until the last message.

    Args:
        offset: of the fetch.
        data: the bytes fetched; a partial message at their end is left out.
    """

    def __init__(self, offset: int, data: Buffer) -> None:
        self.offset = offset
        self.data = data
        self._decoded = decode(data, offset)

    @property
    def next_offset(self) -> int:
        """Return the offset after the last whole message: where the next fetch starts."""
        return self.offset + self._decoded.valid_bytes

    @property
    def _is_cut(self) -> bool:
        return self._decoded.fault is Fault.PARTIAL and not self._decoded.valid_bytes

    def __iter__(self) -> Iterator[Message]:
        """Give the messages.

        Raises:
            InvalidMessageError: at a corrupt message, after the good ones before it.
            InvalidFetchSizeError: the first message is larger than the fetch, also when grown.
        """
        yield from self._decoded.messages
        if self._decoded.fault is not Fault.PARTIAL or self._is_cut:
            raise_fault(self._decoded.fault, self.next_offset)

    def __len__(self) -> int:
        return len(self._decoded.messages)


class FilteredSet:
    """The matching messages of one fetch with a filter.

    Iterating gives (offset, next offset, payload) of each.

    Args:
        offset: of the fetch.
        runs: entries with matching messages, and corrupt ones.
        next_offset: of the next fetch; no other message before it matches.
        is_wanted: whether a payload matches; wrappers also contain others.
    """

    def __init__(
        self, offset: int, runs: Sequence[responses.Run], next_offset: int, is_wanted: PayloadTest
    ) -> None:
        self.offset = offset
        self.next_offset = next_offset
        self._decoded: list[tuple[list[Message], int, Fault]] = []
        for run_offset, entries in runs:
            messages, valid_bytes, fault = decode(entries, run_offset)
            selected = is_wanted.select([open_envelope(stored)[1] for _, _, stored in messages])
            wanted = list(compress(messages, selected))
            self._decoded.append((wanted, run_offset + valid_bytes, fault))

    def __iter__(self) -> Iterator[Message]:
        """Give the messages; see `FetchedSet`."""
        for messages, end, fault in self._decoded:
            yield from messages
            raise_fault(fault, end)

    def __len__(self) -> int:
        return sum(len(messages) for messages, _, _ in self._decoded)


class SimpleConsumer(SelfClosing):
    """Fetches from one broker at offsets that the caller keeps.

    A lost connection is opened again once for each request. If that fails, methods raise
    `BrokerUnreachableError`, `RequestTimeoutError` or `ProtocolError`.

    Args:
        host: of the broker.
        port: of the broker.
        timeout_s: for each send and receive.
        connect_timeout_s: for all connection attempts and the waits between them.
        receive_bytes: SO_RCVBUF; 0 for the system's default.
        security: TLS, and the user that logs in.

    Source: Kafka 0.7 `SimpleConsumer`.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float = DEFAULT_CONNECT_TIMEOUT_S,
        receive_bytes: int = 0,
        security: ClientSecurity | None = None,
    ) -> None:
        self._connection = Connection(
            responses.BrokerAddress(-1, host, port),
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            receive_bytes=receive_bytes,
            security=security,
        )

    def close(self) -> None:
        """Close the connection; the next request connects again."""
        self._connection.close()

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int) -> FetchedSet:
        """Return messages from an offset on; an empty set at the end of the log.

        Args:
            topic: to read.
            partition: its index on this broker.
            offset: a message boundary from the log start to the end.
            max_bytes: to fetch. If the first message is longer, this is doubled until it holds that
                message, up to 64 MiB, and fetched again.

        Raises:
            OffsetOutOfRangeError: the offset is before the start or past the end.
            WrongPartitionError: the broker has no such partition.
            UnknownServerError: the topic name is not valid.

        Source: the design text of Kafka 0.7 (its code raises `InvalidFetchSizeError` at once).
        """
        while True:
            request = FetchRequest(topic, partition, offset, max_bytes)
            code, data = responses.decode_fetch_response(self._ask(request))
            fetched = _fetched(request, code, data)
            grown_bytes = _grown(fetched, max_bytes)
            if grown_bytes == max_bytes:
                return fetched
            max_bytes = grown_bytes

    def fetch_filtered(
        self, topic: str, partition: int, offset: int, max_bytes: int, payload_filter: PayloadFilter
    ) -> FilteredSet:
        """Return matching messages from an offset on, and the offset of the next fetch.

        The broker filters if it supports that, so that other messages do not cross the network;
        else they are filtered here.

        Args:
            topic: to read.
            partition: its index on this broker.
            offset: a message boundary from the log start to the end.
            max_bytes: the message that reaches it is the last one returned.
            payload_filter: chooses the messages to return.

        Returns:
            A set that may be empty; its `next_offset` equals `offset` only at the end of the log.

        Raises:
            InvalidPatternError: the pattern is not valid.
            UnknownTopicError: the broker has no such topic.
            OffsetOutOfRangeError, WrongPartitionError, StorageError: as for `fetch`.
        """
        is_wanted = payload_filter.compile()
        connection = self._connection
        if not connection.repeat_if_lost(lambda: connection.understands(FilteredReadRequest)):
            fetched = self.fetch(topic, partition, offset, max_bytes)
            return _selected(fetched, is_wanted)
        position = PartitionPosition(TopicPartition(topic, -1, partition), offset, max_bytes)
        request = FilteredReadRequest(ReadRequest(0, 0, max_bytes, (position,)), payload_filter)
        body = connection.repeat_if_lost(lambda: connection.call(request))
        (part,) = responses.decode_filtered_read_response(body)
        if part.error != NO_ERROR and not part.runs:
            raise error_for_code(part.error, part.text)
        return FilteredSet(offset, part.runs, part.next_offset, is_wanted)

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[FetchedSet]:
        """Return the sets of several fetches, in their order; their sizes do not grow.

        Raises:
            ServerError: a fetch failed; the first failure is raised.
        """
        parts = responses.decode_multifetch_response(self._ask(MultiFetchRequest(tuple(fetches))))
        if len(parts) != len(fetches):
            self._connection.close()
            raise ProtocolError(f"{len(parts)} parts in the response to {len(fetches)} fetches")
        return [
            _fetched(request, code, data)
            for request, (code, data) in zip(fetches, parts, strict=True)
        ]

    def get_offsets_before(
        self, topic: str, partition: int, time_ms: int, max_offsets: int
    ) -> list[int]:
        """Return offsets of segments written before a time, newest first.

        Args:
            topic: to list.
            partition: its index on this broker.
            time_ms: milliseconds since 1970, or `LATEST_TIME`, or `EARLIEST_TIME`.
            max_offsets: the most to return.

        Raises:
            BrokerUnreachableError: also if the topic or partition is not valid, as the broker then
                closes the connection.
        """
        request = OffsetsRequest(topic, partition, time_ms, max_offsets)
        return responses.decode_offsets_response(self._ask(request))

    def _ask(self, request: BaseRequest) -> memoryview:
        return self._connection.repeat_if_lost(lambda: self._connection.ask(request))


def _selected(fetched: FetchedSet, is_wanted: PayloadTest) -> FilteredSet:
    """Filter a fetched set; the next fetch repeats a message that is incomplete here."""
    view = memoryview(fetched.data)
    found = filter_entries(view, is_wanted, max(len(view), 1))
    spans = found.spans if found.end or not len(view) else [(0, len(view))]
    runs = [responses.Run(fetched.offset + start, view[start:end]) for start, end in spans]
    return FilteredSet(fetched.offset, runs, fetched.offset + found.end, is_wanted)


def _grown(fetched: FetchedSet, max_bytes: int) -> int:
    """Return `max_bytes`, doubled until it holds the first message if only the fetch cuts that."""
    data = memoryview(fetched.data)
    if not fetched._is_cut or len(data) < max_bytes:
        return max_bytes
    needed_bytes, grown_bytes = entry_end(data, 0) if has_length(data) else len(data) + 1, max_bytes
    while grown_bytes < needed_bytes:
        grown_bytes *= 2
    return max_bytes if needed_bytes > MAX_RESPONSE_BYTES else min(grown_bytes, MAX_RESPONSE_BYTES)


def _fetched(request: FetchRequest, code: int, data: memoryview) -> FetchedSet:
    if code != NO_ERROR:
        raise error_for_code(
            code,
            f"cannot fetch {request.topic} partition {request.index} at offset {request.offset}",
        )
    return FetchedSet(request.offset, data)
