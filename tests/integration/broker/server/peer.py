"""A client that speaks in frames, for tests of what a broker makes of them."""

from __future__ import annotations

import json
import select
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from broker.errors import ServerError
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import (
    Acks,
    FilteredReadRequest,
    PartitionPosition,
    PartitionSet,
    PayloadFilter,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest, StatusRequest
from broker.protocol.layouts import DATA, ExtensionRequest
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import (
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    ProduceRequest,
    RequestHeader,
    encode_request,
)
from broker.protocol.responses import (
    FilteredPart,
    Published,
    ReadPart,
    decode_extension_response,
    decode_fetch_response,
    decode_filtered_read_response,
    decode_multifetch_response,
    decode_offsets_response,
    decode_publish_response,
    decode_read_response,
)
from broker.topic import TopicPartition

ANSWER_TIMEOUT_S = 60.0


def partition(topic: str, index: int = 0, home: int = -1) -> TopicPartition:
    """Name a partition of the broker asked."""
    return TopicPartition(topic, home, index)


def extension_frame(request: ExtensionRequest, correlation_id: int = 1) -> bytes:
    """Return the frame of one of our own requests."""
    return b"".join(
        encode_extension_parts(request, RequestHeader(request.VERSION, correlation_id, "test"))
    )


def publish_request(
    topic: str, message_set: Buffer, *, acks: Acks = Acks.COMMITTED, timeout_ms: int = 50_000
) -> PublishRequest:
    """Return a publish of one set to partition 0."""
    return PublishRequest(acks, timeout_ms, (PartitionSet(partition(topic), message_set),))


def read_request(
    topic: str, offset: int, *, max_wait_ms: int = 0, min_bytes: int = 1, max_bytes: int = 1 << 20
) -> ReadRequest:
    """Return a read of partition 0."""
    return ReadRequest(
        max_wait_ms,
        min_bytes,
        max_bytes,
        (PartitionPosition(partition(topic), offset, max_bytes),),
    )


def filtered_request(
    topic: str,
    offset: int,
    pattern: bytes | PayloadFilter,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
) -> FilteredReadRequest:
    """Return a read of partition 0 with a filter."""
    read = read_request(
        topic, offset, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes
    )
    return FilteredReadRequest(
        read, pattern if isinstance(pattern, PayloadFilter) else PayloadFilter(pattern)
    )


class Peer:
    """A plain connection to a broker on this machine.

    Args:
        port: where the broker listens.
        receive_bytes: SO_RCVBUF, for a client that is slow to take answers; 0 leaves it be.
        address: the address to come from.
        tls: the context to speak TLS with, to `localhost`.
    """

    def __init__(
        self,
        port: int,
        *,
        receive_bytes: int = 0,
        address: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._made: set[str] = set()
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(ANSWER_TIMEOUT_S)
        self.socket.bind((address, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, *requests: BaseRequest) -> None:
        """Send 0.7 requests in one write."""
        self.send_bytes(b"".join(map(encode_request, requests)))

    def send_extension(self, request: ExtensionRequest, correlation_id: int = 1) -> None:
        self.send_bytes(extension_frame(request, correlation_id))

    def send_bytes(self, data: Buffer) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """Return the next answer without its size field."""
        return self._receive_exactly(INT32.unpack(self._receive_exactly(4))[0])

    def _receive_exactly(self, size: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < size:
            chunk = self.socket.recv(size - len(chunks))
            if not chunk:
                raise EOFError(f"closed after {len(chunks)} of {size} bytes")
            chunks += chunk
        return bytes(chunks)

    def is_closed(self) -> bool:
        """Return whether the broker closes the connection without a further byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Return whether a byte of an answer (or the end) is there or comes in time."""
        return bool(select.select([self.socket], [], [], within_s)[0])

    def produce(self, topic: str, message_set: Buffer, index: int = 0) -> None:
        self.send(ProduceRequest(topic, index, message_set))

    def fetch(
        self, topic: str, offset: int, *, max_bytes: int = 1 << 20, index: int = 0
    ) -> tuple[int, bytes]:
        """Return error code and bytes."""
        self.send(FetchRequest(topic, index, offset, max_bytes))
        return self.receive_fetched()

    def receive_fetched(self) -> tuple[int, bytes]:
        """Return error code and bytes of a fetch's answer."""
        code, data = decode_fetch_response(self.receive())
        return code, bytes(data)

    def multifetch(self, *fetches: FetchRequest) -> list[tuple[int, bytes]]:
        self.send(MultiFetchRequest(fetches))
        return [(code, bytes(data)) for code, data in decode_multifetch_response(self.receive())]

    def offsets(self, topic: str, time_ms: int, max_offsets: int = 10, index: int = 0) -> list[int]:
        self.send(OffsetsRequest(topic, index, time_ms, max_offsets))
        return decode_offsets_response(self.receive())

    def call(self, request: ExtensionRequest, correlation_id: int = 1) -> Reader:
        """Send one of our own requests and return the body of its answer.

        The topics of a publish are created first, as by our producers; to publish to a topic that
        does not exist, send the request.
        """
        if isinstance(request, PublishRequest):
            self.make_topics(one.partition.topic for one in request.sets)
        if isinstance(request, CreateTopicRequest):
            self._made.add(request.topic)
        if isinstance(request, DeleteTopicRequest):
            self._made.discard(request.topic)
        self.send_extension(request, correlation_id)
        return self.receive_extension(correlation_id)

    def make_topics(self, topics: Iterable[str]) -> None:
        """Have topics created that were not made on this connection; the broker may refuse."""
        for topic in set(topics) - self._made:
            self.send_extension(CreateTopicRequest(topic))
            with suppress(ServerError):
                self.receive_extension()
            self._made.add(topic)

    def receive_extension(self, correlation_id: int = 1) -> Reader:
        found, body = decode_extension_response(self.receive())
        assert found == correlation_id
        return body

    def publish(
        self,
        topic: str,
        message_set: Buffer,
        *,
        acks: Acks = Acks.COMMITTED,
        timeout_ms: int = 50_000,
    ) -> Published:
        """Publish one set to partition 0, by default until it can be read."""
        request = publish_request(topic, message_set, acks=acks, timeout_ms=timeout_ms)
        (published,) = decode_publish_response(self.call(request))
        return published

    def flush(self, topic: str) -> None:
        """Wait until all that was written to partition 0 of a topic can be read."""
        assert self.publish(topic, b"").error == 0

    def read(
        self,
        topic: str,
        offset: int,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
    ) -> ReadPart:
        """Read partition 0 of a topic."""
        request = read_request(
            topic, offset, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes
        )
        (part,) = decode_read_response(self.call(request))
        return part

    def read_filtered(
        self,
        topic: str,
        offset: int,
        pattern: bytes | PayloadFilter,
        *,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
    ) -> FilteredPart:
        """Read what a pattern matches in partition 0 of a topic."""
        request = filtered_request(
            topic, offset, pattern, max_wait_ms=max_wait_ms, max_bytes=max_bytes
        )
        (part,) = decode_filtered_read_response(self.call(request))
        return part

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(DATA.decode(self.call(StatusRequest())))
        return document
