"""0.7's five requests, byte for byte, and the types, header and partitions all requests share."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import ClassVar, NamedTuple, get_args

from broker.errors import ProtocolError
from broker.protocol.framing import encode_frame
from broker.protocol.primitives import INT16, Buffer, Reader, encode_short_string
from broker.topic import MAX_TOPIC_NAME_LENGTH, TopicPartition, validate_topic_name


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
    LIST_OFFSETS = 68
    STATUS = 69
    SHUTDOWN = 70
    CREATE_TOPIC = 71
    DELETE_TOPIC = 72
    PUSH_STATES = 73
    CHANGE_ISR = 74
    CONTROLLED_SHUTDOWN = 75
    ADD_PARTITIONS = 76
    ELECT_LEADERS = 77
    REASSIGN = 78
    LIST_REASSIGNMENTS = 79
    MOVE_LOG = 80
    READ_CHANGES = 81
    DIGEST_LOG = 82
    REPLICATE_TOPIC = 83
    LIST_UNKNOWN_REPLICAS = 84
    RESTORE_PARTITIONS = 85
    AUTHENTICATE = 86
    PROBE_BROKER = 87
    SCHEMAS = 88


READING_TYPES = frozenset(
    {
        *(RequestType.FETCH, RequestType.MULTIFETCH, RequestType.OFFSETS, RequestType.HELLO),
        *(RequestType.READ, RequestType.METADATA, RequestType.LIST_OFFSETS, RequestType.STATUS),
        *(RequestType.LIST_REASSIGNMENTS, RequestType.READ_CHANGES, RequestType.DIGEST_LOG),
        *(RequestType.LIST_UNKNOWN_REPLICAS, RequestType.AUTHENTICATE, RequestType.PROBE_BROKER),
    }
)
"""Requests that change nothing."""

_VERSION_AND_ID = struct.Struct(">hi")
_HOME_AND_INDEX = struct.Struct(">ii")
_INDEX_AND_SIZE = struct.Struct(">ii")
_FETCH_NUMBERS = struct.Struct(">iqi")  # also of an offsets request
FIRST_EXTENSION_TYPE = 64
# partitions or topics in one of our requests, as many as 0.7's multi-requests can name
MAX_ITEMS = 32767


class RequestHeader(NamedTuple):
    """The header that starts the body of every extension request."""

    version: int
    correlation_id: int
    client_id: str

    def encode(self) -> bytes:
        """Return the header's wire form."""
        numbers = _VERSION_AND_ID.pack(self.version, self.correlation_id)
        return numbers + encode_short_string(self.client_id)

    @classmethod
    def decode(cls, reader: Reader) -> RequestHeader:
        """Read the header."""
        version, correlation_id = reader.fields(_VERSION_AND_ID)
        return cls(version, correlation_id, reader.short_string())


def read_item_count(reader: Reader, item_bytes: int) -> int:
    """Read the length of an array of at most `MAX_ITEMS` items of at least `item_bytes` each."""
    count = reader.int32()
    check_item_count(count, reader, item_bytes)
    return count


def check_item_count(count: int, reader: Reader, item_bytes: int) -> None:
    """Validate the length of an array of items of at least `item_bytes` each."""
    # before the items are read
    if count > MAX_ITEMS:
        raise ProtocolError(f"{count} items are too many for one request; the most is {MAX_ITEMS}")
    reader.check_count(count, item_bytes)


def encode_partition(partition: TopicPartition) -> bytes:
    """Return the wire form of a partition in extension requests and responses."""
    if len(partition.topic) > MAX_TOPIC_NAME_LENGTH:
        # no topic has this name, and a client could fill the cache with such names
        return _encode_partition(partition)
    return _encode_or_recall(partition)


def _encode_partition(partition: TopicPartition) -> bytes:
    numbers = _HOME_AND_INDEX.pack(partition.home, partition.index)
    return encode_short_string(partition.topic) + numbers


_encode_or_recall = lru_cache(maxsize=4096)(_encode_partition)


def decode_partition(reader: Reader) -> TopicPartition:
    """Read a partition's topic, home and index."""
    topic = reader.short_string()
    home, index = reader.fields(_HOME_AND_INDEX)
    return TopicPartition(topic, home, index)


def decode_valid_topic(reader: Reader) -> str:
    """Read a topic's name; `InvalidTopicError`, before it is used as a key, if it is invalid."""
    topic = reader.short_string()
    validate_topic_name(topic)
    return topic


def decode_valid_partition(reader: Reader) -> TopicPartition:
    """Read a partition with a valid topic; see `decode_valid_topic`."""
    return TopicPartition(decode_valid_topic(reader), *reader.fields(_HOME_AND_INDEX))


LATEST_TIME = -1
EARLIEST_TIME = -2
ANY_PARTITION = -1  # the partition index of a produce that lets the broker choose


@dataclass(frozen=True)
class ProduceRequest:
    """Append one message set; has no response."""

    TYPE: ClassVar[RequestType] = RequestType.PRODUCE

    topic: str
    index: int
    message_set: Buffer

    def encode(self) -> bytes:
        """Return the body."""
        numbers = _INDEX_AND_SIZE.pack(self.index, len(self.message_set))
        return b"".join((encode_short_string(self.topic), numbers, self.message_set))

    @classmethod
    def decode(cls, reader: Reader) -> ProduceRequest:
        """Read the body."""
        topic, (index, size) = reader.short_string(), reader.fields(_INDEX_AND_SIZE)
        return cls(topic, index, reader.data(size))


@dataclass(frozen=True)
class MultiProduceRequest:
    """Append several message sets one after another; has no response, is not atomic."""

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


@dataclass(frozen=True)
class FetchRequest:
    """Read at most `max_bytes` of a partition from a byte offset."""

    TYPE: ClassVar[RequestType] = RequestType.FETCH

    topic: str
    index: int
    offset: int
    max_bytes: int

    def encode(self) -> bytes:
        """Return the body."""
        numbers = _FETCH_NUMBERS.pack(self.index, self.offset, self.max_bytes)
        return encode_short_string(self.topic) + numbers

    @classmethod
    def decode(cls, reader: Reader) -> FetchRequest:
        """Read the body."""
        return cls(reader.short_string(), *reader.fields(_FETCH_NUMBERS))


@dataclass(frozen=True)
class MultiFetchRequest:
    """Several fetches with one response."""

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


@dataclass(frozen=True)
class OffsetsRequest:
    """Request segment starts before a time (milliseconds, or `LATEST_TIME`, `EARLIEST_TIME`)."""

    TYPE: ClassVar[RequestType] = RequestType.OFFSETS

    topic: str
    index: int
    time_ms: int
    max_offsets: int

    def encode(self) -> bytes:
        """Return the body."""
        numbers = _FETCH_NUMBERS.pack(self.index, self.time_ms, self.max_offsets)
        return encode_short_string(self.topic) + numbers

    @classmethod
    def decode(cls, reader: Reader) -> OffsetsRequest:
        """Read the body."""
        return cls(reader.short_string(), *reader.fields(_FETCH_NUMBERS))


BaseRequest = (
    ProduceRequest | MultiProduceRequest | FetchRequest | MultiFetchRequest | OffsetsRequest
)
BASE_REQUESTS: dict[int, type[BaseRequest]] = {one.TYPE: one for one in get_args(BaseRequest)}


def encode_request(request: BaseRequest) -> bytes:
    """Return the frame of one of 0.7's requests."""
    return encode_frame(INT16.pack(request.TYPE), request.encode())


def decode_request(frame: Buffer) -> BaseRequest:
    """Read one of 0.7's requests from a frame without its size field."""
    # bytes behind the last field are ignored, as 0.7 does
    reader = Reader(frame)
    request_type = reader.int16()
    if request_type not in BASE_REQUESTS:
        raise ProtocolError(f"request type {request_type} is unknown")
    return BASE_REQUESTS[request_type].decode(reader)
