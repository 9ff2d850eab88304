"""Requests: 0.7's five, byte for byte, and ours from type 64 up (field tables: REQUESTS.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple

from broker.errors import ProtocolError
from broker.protocol.framing import encode_frame
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.primitives import (
    INT8,
    INT16,
    INT32,
    INT64,
    Buffer,
    Reader,
    encode_short_string,
)
from broker.topic import TopicPartition

LATEST_TIME = -1
EARLIEST_TIME = -2
ANY_PARTITION = -1
"""The partition index of a produce that lets the broker choose."""


class RequestType(IntEnum):
    """The int16 that starts every request."""

    PRODUCE = 0
    FETCH = 1
    MULTIFETCH = 2
    MULTIPRODUCE = 3
    OFFSETS = 4
    HELLO = 64
    PUBLISH = 65
    READ = 66
    METADATA = 67
    LOOKUP = 68
    STATUS = 69
    SHUTDOWN = 70
    CREATE_TOPIC = 71
    DELETE_TOPIC = 72


FIRST_EXTENSION_TYPE = 64
MAX_ITEMS = 32767
"""Partitions or topics in one of our requests; 0.7's own multi-requests can name as many."""


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Append one message set; never answered."""

    TYPE: ClassVar[RequestType] = RequestType.PRODUCE

    topic: str
    index: int
    message_set: Buffer

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(
            (
                encode_short_string(self.topic),
                INT32.pack(self.index),
                INT32.pack(len(self.message_set)),
                self.message_set,
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> ProduceRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32(), reader.data(reader.int32()))


@dataclass(frozen=True, slots=True)
class MultiProduceRequest:
    """Append several message sets one after another; never answered, not atomic."""

    TYPE: ClassVar[RequestType] = RequestType.MULTIPRODUCE

    produces: tuple[ProduceRequest, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return INT16.pack(len(self.produces)) + b"".join(p.encode() for p in self.produces)

    @classmethod
    def decode(cls, reader: Reader) -> MultiProduceRequest:
        """Read the body."""
        count = reader.count(INT16, 10)
        return cls(tuple(ProduceRequest.decode(reader) for _ in range(count)))


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Read at most `max_bytes` of a partition from a byte offset."""

    TYPE: ClassVar[RequestType] = RequestType.FETCH

    topic: str
    index: int
    offset: int
    max_bytes: int

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(
            (
                encode_short_string(self.topic),
                INT32.pack(self.index),
                INT64.pack(self.offset),
                INT32.pack(self.max_bytes),
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> FetchRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32(), reader.int64(), reader.int32())


@dataclass(frozen=True, slots=True)
class MultiFetchRequest:
    """Several fetches answered together."""

    TYPE: ClassVar[RequestType] = RequestType.MULTIFETCH

    fetches: tuple[FetchRequest, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return INT16.pack(len(self.fetches)) + b"".join(f.encode() for f in self.fetches)

    @classmethod
    def decode(cls, reader: Reader) -> MultiFetchRequest:
        """Read the body."""
        count = reader.count(INT16, 18)
        return cls(tuple(FetchRequest.decode(reader) for _ in range(count)))


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    """Ask for segment starts before a time (milliseconds, or `LATEST_TIME`, `EARLIEST_TIME`)."""

    TYPE: ClassVar[RequestType] = RequestType.OFFSETS

    topic: str
    index: int
    time_ms: int
    max_offsets: int

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(
            (
                encode_short_string(self.topic),
                INT32.pack(self.index),
                INT64.pack(self.time_ms),
                INT32.pack(self.max_offsets),
            )
        )

    @classmethod
    def decode(cls, reader: Reader) -> OffsetsRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32(), reader.int64(), reader.int32())


class RequestHeader(NamedTuple):
    """What starts the body of every extension request."""

    version: int
    correlation_id: int
    client_id: str

    def encode(self) -> bytes:
        """Return the header's wire form."""
        return (
            INT16.pack(self.version)
            + INT32.pack(self.correlation_id)
            + encode_short_string(self.client_id)
        )

    @classmethod
    def decode(cls, reader: Reader) -> RequestHeader:
        """Read the header."""
        return cls(reader.int16(), reader.int32(), reader.short_string())


@dataclass(frozen=True, slots=True)
class HelloRequest:
    """Ask a broker who it is and what it understands."""

    TYPE: ClassVar[RequestType] = RequestType.HELLO
    VERSION: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Return the body."""
        return b""

    @classmethod
    def decode(cls, reader: Reader) -> HelloRequest:
        """Read the body, which is empty."""
        return cls()


class Acks(IntEnum):
    """When a publish is answered."""

    NONE = 0
    WRITTEN = 1
    COMMITTED = -1


class PartitionSet(NamedTuple):
    """A message set for one partition; its home may be -1, the broker asked, its index -1, any."""

    partition: TopicPartition
    message_set: Buffer


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """Append message sets and say when they are safe.

    An empty set with `Acks.COMMITTED` waits for all that was written to the partition before it.
    """

    TYPE: ClassVar[RequestType] = RequestType.PUBLISH
    VERSION: ClassVar[int] = 0

    acks: Acks
    timeout_ms: int
    sets: tuple[PartitionSet, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(self.encode_parts())

    def encode_parts(self) -> list[Buffer]:
        """Return the body in pieces, the sets among them as they are."""
        parts: list[Buffer] = [INT16.pack(self.acks), INT32.pack(self.timeout_ms)]
        parts.append(INT32.pack(len(self.sets)))
        for partition, message_set in self.sets:
            parts += (
                encode_partition(partition),
                INT32.pack(len(message_set)),
                message_set,
            )
        return parts

    @classmethod
    def decode(cls, reader: Reader) -> PublishRequest:
        """Read the body."""
        acks = reader.int16()
        if acks not in (0, 1, -1):
            raise ProtocolError(f"acks is {acks}; 0, 1 and -1 are defined")
        timeout_ms = reader.int32()
        count = _count(reader, 14)
        sets = tuple(
            PartitionSet(decode_partition(reader), reader.data(reader.int32()))
            for _ in range(count)
        )
        return cls(Acks(acks), timeout_ms, sets)


class PartitionPosition(NamedTuple):
    """Where to read a partition from, and at most how much."""

    partition: TopicPartition
    offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read many partitions; wait up to `max_wait_ms` until `min_bytes` are there."""

    TYPE: ClassVar[RequestType] = RequestType.READ
    VERSION: ClassVar[int] = 0

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    positions: tuple[PartitionPosition, ...]

    def encode(self) -> bytes:
        """Return the body."""
        parts = [INT32.pack(n) for n in (self.max_wait_ms, self.min_bytes, self.max_bytes)]
        parts.append(INT32.pack(len(self.positions)))
        for partition, offset, max_bytes in self.positions:
            parts += (
                encode_partition(partition),
                INT64.pack(offset),
                INT32.pack(max_bytes),
            )
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> ReadRequest:
        """Read the body."""
        max_wait_ms, min_bytes, max_bytes = reader.int32(), reader.int32(), reader.int32()
        count = _count(reader, 22)
        positions = tuple(
            PartitionPosition(decode_partition(reader), reader.int64(), reader.int32())
            for _ in range(count)
        )
        return cls(max_wait_ms, min_bytes, max_bytes, positions)


@dataclass(frozen=True, slots=True)
class FilteredReadRequest:
    """A read that is answered with the entries that hold a wanted message, and no others."""

    TYPE: ClassVar[RequestType] = RequestType.READ
    VERSION: ClassVar[int] = 1

    read: ReadRequest
    payload_filter: PayloadFilter

    def encode(self) -> bytes:
        """Return the body."""
        return self.read.encode() + self.payload_filter.encode()

    @classmethod
    def decode(cls, reader: Reader) -> FilteredReadRequest:
        """Read the body."""
        return cls(ReadRequest.decode(reader), PayloadFilter.decode(reader))


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Ask for a broker's topics: those named, or all where `topics` is None."""

    TYPE: ClassVar[RequestType] = RequestType.METADATA
    VERSION: ClassVar[int] = 0

    topics: tuple[str, ...] | None

    def encode(self) -> bytes:
        """Return the body."""
        if self.topics is None:
            return INT32.pack(-1)
        return INT32.pack(len(self.topics)) + b"".join(map(encode_short_string, self.topics))

    @classmethod
    def decode(cls, reader: Reader) -> MetadataRequest:
        """Read the body."""
        count = reader.int32()
        if count == -1:
            return cls(None)
        _check_count(count, reader, 2)
        return cls(tuple(reader.short_string() for _ in range(count)))


class Lookup(IntEnum):
    """What a lookup asks of a partition's log."""

    EARLIEST = 0
    LATEST = 1
    BEFORE_TIME = 2
    """The start of the last segment not written after the given time, in milliseconds."""
    BOUNDARY_BEFORE = 3
    """The message boundary at or before the given offset."""
    BOUNDARY_AFTER = 4
    """The message boundary at or after the given offset."""
    LOG_END = 5
    """The end of what is written, flushed or not."""


class PartitionLookup(NamedTuple):
    """One lookup; `argument` is a time or an offset, or 0."""

    partition: TopicPartition
    kind: Lookup
    argument: int


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """Ask for offsets of many partitions."""

    TYPE: ClassVar[RequestType] = RequestType.LOOKUP
    VERSION: ClassVar[int] = 0

    lookups: tuple[PartitionLookup, ...]

    def encode(self) -> bytes:
        """Return the body."""
        parts = [INT32.pack(len(self.lookups))]
        for partition, kind, argument in self.lookups:
            parts += (encode_partition(partition), INT8.pack(kind), INT64.pack(argument))
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> LookupRequest:
        """Read the body."""
        count = _count(reader, 19)
        lookups = []
        for _ in range(count):
            partition = decode_partition(reader)
            kind = reader.int8()
            if kind not in Lookup.__members__.values():
                raise ProtocolError(f"{kind} is no kind of lookup")
            lookups.append(PartitionLookup(partition, Lookup(kind), reader.int64()))
        return cls(tuple(lookups))


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """Ask for a broker's state and counters."""

    TYPE: ClassVar[RequestType] = RequestType.STATUS
    VERSION: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Return the body."""
        return b""

    @classmethod
    def decode(cls, reader: Reader) -> StatusRequest:
        """Read the body, which is empty."""
        return cls()


@dataclass(frozen=True, slots=True)
class ShutdownRequest:
    """Ask a broker to shut down; `force` skips the wait for clients to move on."""

    TYPE: ClassVar[RequestType] = RequestType.SHUTDOWN
    VERSION: ClassVar[int] = 0

    force: bool

    def encode(self) -> bytes:
        """Return the body."""
        return INT8.pack(self.force)

    @classmethod
    def decode(cls, reader: Reader) -> ShutdownRequest:
        """Read the body."""
        return cls(bool(reader.int8()))


@dataclass(frozen=True, slots=True)
class CreateTopicRequest:
    """Create a topic with a number of partitions on the broker asked."""

    TYPE: ClassVar[RequestType] = RequestType.CREATE_TOPIC
    VERSION: ClassVar[int] = 0

    topic: str
    partition_count: int

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic) + INT32.pack(self.partition_count)

    @classmethod
    def decode(cls, reader: Reader) -> CreateTopicRequest:
        """Read the body."""
        return cls(reader.short_string(), reader.int32())


@dataclass(frozen=True, slots=True)
class DeleteTopicRequest:
    """Delete a topic with all its logs on the broker asked."""

    TYPE: ClassVar[RequestType] = RequestType.DELETE_TOPIC
    VERSION: ClassVar[int] = 0

    topic: str

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic)

    @classmethod
    def decode(cls, reader: Reader) -> DeleteTopicRequest:
        """Read the body."""
        return cls(reader.short_string())


BaseRequest = (
    ProduceRequest | MultiProduceRequest | FetchRequest | MultiFetchRequest | OffsetsRequest
)
ExtensionRequest = (
    HelloRequest
    | PublishRequest
    | ReadRequest
    | FilteredReadRequest
    | MetadataRequest
    | LookupRequest
    | StatusRequest
    | ShutdownRequest
    | CreateTopicRequest
    | DeleteTopicRequest
)

BASE_REQUESTS: dict[int, type[BaseRequest]] = {
    RequestType.PRODUCE: ProduceRequest,
    RequestType.FETCH: FetchRequest,
    RequestType.MULTIFETCH: MultiFetchRequest,
    RequestType.MULTIPRODUCE: MultiProduceRequest,
    RequestType.OFFSETS: OffsetsRequest,
}
EXTENSION_REQUESTS: dict[tuple[int, int], type[ExtensionRequest]] = {
    (RequestType.HELLO, 0): HelloRequest,
    (RequestType.PUBLISH, 0): PublishRequest,
    (RequestType.READ, 0): ReadRequest,
    (RequestType.READ, 1): FilteredReadRequest,
    (RequestType.METADATA, 0): MetadataRequest,
    (RequestType.LOOKUP, 0): LookupRequest,
    (RequestType.STATUS, 0): StatusRequest,
    (RequestType.SHUTDOWN, 0): ShutdownRequest,
    (RequestType.CREATE_TOPIC, 0): CreateTopicRequest,
    (RequestType.DELETE_TOPIC, 0): DeleteTopicRequest,
}
"""By type and version."""


def _count(reader: Reader, item_bytes: int) -> int:
    """Read the length of an array of at most `MAX_ITEMS` items, of so many bytes each or more."""
    count = reader.int32()
    _check_count(count, reader, item_bytes)
    return count


def _check_count(count: int, reader: Reader, item_bytes: int) -> None:
    if count > MAX_ITEMS:
        raise ProtocolError(f"{count} items are too many for one request; the most is {MAX_ITEMS}")
    reader.check_count(count, item_bytes)


def encode_partition(partition: TopicPartition) -> bytes:
    """Return how extension requests and answers name a partition."""
    return (
        encode_short_string(partition.topic)
        + INT32.pack(partition.home)
        + INT32.pack(partition.index)
    )


def decode_partition(reader: Reader) -> TopicPartition:
    """Read a partition's topic, home and index."""
    return TopicPartition(reader.short_string(), reader.int32(), reader.int32())


def encode_request(request: BaseRequest) -> bytes:
    """Return the frame of one of 0.7's requests."""
    return encode_frame(INT16.pack(request.TYPE), request.encode())


def encode_extension_parts(request: ExtensionRequest, header: RequestHeader) -> list[Buffer]:
    """Return the frame of an extension request, in pieces: what is large in it is not copied."""
    body: list[Buffer]
    body = request.encode_parts() if isinstance(request, PublishRequest) else [request.encode()]
    parts: list[Buffer] = [INT16.pack(request.TYPE), header.encode(), *body]
    return [INT32.pack(sum(map(len, parts))), *parts]


def decode_request(frame: Buffer) -> BaseRequest:
    """Read one of 0.7's requests.

    Args:
        frame: without its size field; bytes behind the last field are ignored, as 0.7 does.

    Raises:
        ProtocolError: the type is none of the five, or the body is too short for its fields.
    """
    reader = Reader(frame)
    request_type = reader.int16()
    if request_type not in BASE_REQUESTS:
        raise ProtocolError(f"request type {request_type} is unknown")
    return BASE_REQUESTS[request_type].decode(reader)
