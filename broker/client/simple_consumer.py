"""0.7's simple consumer: stateless, offsets passed in, one broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.client.connection import (
    DEFAULT_CONNECT_TIMEOUT_S,
    DEFAULT_TIMEOUT_S,
    Connection,
)
from broker.errors import NO_ERROR, ProtocolError, error_for_code
from broker.protocol.codec import Fault, decode
from broker.protocol.message_set import raise_fault
from broker.protocol.primitives import Buffer
from broker.protocol.requests import (
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
)
from broker.protocol.responses import (
    BrokerAddress,
    decode_fetch_response,
    decode_multifetch_response,
    decode_offsets_response,
)

Message = tuple[int, int, bytes]
"""A message as (offset, next offset, payload); offsets are byte positions in the partition."""


class FetchedSet:
    """The message set of one fetch.

    Iterating gives (offset, next offset, payload) of each whole message. The next offset is where
    to fetch after it; inside a compressed set it stays at the set's start until the last message.

    Args:
        offset: what was fetched from.
        data: the bytes that came; a partial message at their end is left out.
    """

    def __init__(self, offset: int, data: Buffer) -> None:
        self.offset = offset
        self.data = data
        self._decoded = decode(data, offset)

    @property
    def next_offset(self) -> int:
        """Return the offset after the last whole message: where the next fetch starts."""
        return self.offset + self._decoded.valid_bytes

    def __iter__(self) -> Iterator[Message]:
        """Give the messages.

        Raises:
            InvalidMessageError: at a corrupt message, after the good ones before it.
            InvalidFetchSizeError: the first message is larger than the fetch.
        """
        yield from self._decoded.messages
        if self._decoded.fault is not Fault.PARTIAL or not self._decoded.valid_bytes:
            raise_fault(self._decoded.fault, self.next_offset)

    def __len__(self) -> int:
        return len(self._decoded.messages)


class SimpleConsumer:
    """Fetches from one broker at offsets that the caller keeps.

    A connection that turns out dead is made again once for each request.

    Args:
        host: where the broker listens.
        port: where the broker listens.
        timeout_s: how long an answer is waited for.
        connect_timeout_s: how long connecting is tried.
        receive_bytes: SO_RCVBUF; 0 leaves it to the system.

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
    ) -> None:
        self._connection = Connection(
            BrokerAddress(-1, host, port),
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            receive_bytes=receive_bytes,
        )

    def __enter__(self) -> SimpleConsumer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request connects again."""
        self._connection.close()

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int) -> FetchedSet:
        """Return messages from an offset on.

        Args:
            topic: the topic.
            partition: the partition's index on this broker.
            offset: a message boundary between the log start offset and the end.
            max_bytes: the most to return; at least the length of the largest message.

        Returns:
            A set that may be empty, when the end is reached.

        Raises:
            OffsetOutOfRangeError: the offset is before the start or past the end.
            WrongPartitionError: the broker has no such partition.
            UnknownServerError: the topic name is illegal.
            BrokerUnreachableError, RequestTimeoutError, ProtocolError: the connection failed.
        """
        request = FetchRequest(topic, partition, offset, max_bytes)
        code, data = decode_fetch_response(self._ask(request))
        return _fetched(request, code, data)

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[FetchedSet]:
        """Return the sets of several fetches, in their order.

        Raises:
            ServerError: one of them failed; the first failure is raised.
            BrokerUnreachableError, RequestTimeoutError, ProtocolError: the connection failed.
        """
        parts = decode_multifetch_response(self._ask(MultiFetchRequest(tuple(fetches))))
        if len(parts) != len(fetches):
            self._connection.close()
            raise ProtocolError(f"{len(parts)} parts came for {len(fetches)} fetches")
        return [
            _fetched(request, code, data)
            for request, (code, data) in zip(fetches, parts, strict=True)
        ]

    def get_offsets_before(
        self, topic: str, partition: int, time_ms: int, max_offsets: int
    ) -> list[int]:
        """Return offsets of segments written before a time, newest first.

        Args:
            topic: the topic.
            partition: the partition's index on this broker.
            time_ms: milliseconds since 1970, or `LATEST_TIME`, or `EARLIEST_TIME`.
            max_offsets: the most to return.

        Raises:
            BrokerUnreachableError: the connection failed; a broker also closes it on a topic or
                partition that cannot be.
            RequestTimeoutError, ProtocolError: the connection failed.
        """
        request = OffsetsRequest(topic, partition, time_ms, max_offsets)
        return decode_offsets_response(self._ask(request))

    def _ask(self, request: BaseRequest) -> memoryview:
        return self._connection.repeat_if_lost(lambda: self._connection.ask(request))


def _fetched(request: FetchRequest, code: int, data: memoryview) -> FetchedSet:
    if code != NO_ERROR:
        raise error_for_code(
            code,
            f"cannot fetch {request.topic} partition {request.index} at offset {request.offset}",
        )
    return FetchedSet(request.offset, data)
