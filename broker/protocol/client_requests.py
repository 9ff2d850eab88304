"""The requests with which clients find, write and read partitions.

They are apart from those of operators and brokers (`extension_requests`), so that a client starts
without these. Field tables: REQUESTS.md.

Most publishes are of one set. `SinglePublish` and `SinglePublishResponse` encode these faster: a
client's requests for one partition differ in correlation id and set only, the responses in
correlation id and offset; all other bytes are encoded once.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Annotated, NamedTuple, Self

from broker.errors import NO_ERROR, InvalidPatternError, ProtocolError
from broker.patterns import PayloadTest
from broker.protocol import layouts, requests
from broker.protocol.codec import publish_responses
from broker.protocol.layouts import ControlRequest, ExtensionRequest, Int32, Int64, ValidPartition
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import INT8, INT16, INT32, Buffer, Reader, encode_short_string
from broker.protocol.requests import decode_partition, encode_partition, read_item_count
from broker.protocol.responses import HELLO, LISTED_OFFSETS, LOG_DIGEST, SEGMENT_STARTS
from broker.topic import TopicPartition


class HelloRequest(ControlRequest):
    """Request a broker's identity and the requests it understands."""

    TYPE = requests.RequestType.HELLO
    RESPONSE = HELLO


@dataclass(frozen=True)
class MetadataRequest(ExtensionRequest):
    """Request the topics that a broker leads: those named, or all if `topics` is None."""

    TYPE = requests.RequestType.METADATA
    VERSION = 0

    topics: tuple[str, ...] | None

    def encode(self) -> bytes:
        """Return the body."""
        if self.topics is None:
            return INT32.pack(-1)
        return INT32.pack(len(self.topics)) + b"".join(map(encode_short_string, self.topics))

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """Read the body."""
        count = reader.int32()
        if count == -1:
            return cls(None)
        requests.check_item_count(count, reader, 2)
        return cls(tuple(reader.short_string() for _ in range(count)))


class ClusterMetadataRequest(MetadataRequest):
    """Request the topics and brokers of the whole cluster."""

    VERSION = 1


@dataclass(frozen=True)
class DigestLogRequest(ControlRequest):
    """Request the digest of a range of a log: of `length` bytes (0 or more) from `offset`.

    The broker asked leads or follows the partition, or it is one without replicas.
    """

    TYPE = requests.RequestType.DIGEST_LOG
    RESPONSE = LOG_DIGEST

    partition: ValidPartition
    offset: Int64
    length: Int32


class SchemaOperation(IntEnum):
    """What is asked of the registry of schemas; see `SchemasRequest`."""

    GET = 0
    SUBJECTS = 1
    VERSIONS = 2
    VERSION = 3
    REGISTER = 4
    FIND = 5
    CHECK = 6
    DELETE = 7
    COMPATIBILITY = 8
    SET_COMPATIBILITY = 9
    CONTRACT = 10
    SAME_IDS = 11


@dataclass(frozen=True)
class SchemasRequest(ControlRequest):
    """Ask the registry of schemas, or change it; any broker answers.

    `name` is a subject, or for `CONTRACT` a topic; `arguments` and the response are JSON.
    """

    TYPE = requests.RequestType.SCHEMAS
    RESPONSE = layouts.DATA

    operation: Annotated[
        SchemaOperation, layouts.enum(SchemaOperation, layouts.INT8, "operation on schemas")
    ]
    name: str
    arguments: bytes


_STAMP = struct.Struct(">qhi")
_NO_STAMP = (-1, -1, -1)

_WAIT_AND_BYTES = struct.Struct(">iii")


_OFFSET_AND_BYTES = struct.Struct(">qi")


class Acks(IntEnum):
    """When a publish is acknowledged."""

    NONE = 0
    WRITTEN = 1
    COMMITTED = -1
    AUTO = -2
    """Committed where the topic has replicas, else written."""


class PartitionSet(NamedTuple):
    """A message set for one partition; home -1 is the broker asked, index -1 any partition."""

    partition: TopicPartition
    message_set: Buffer
    stamp: ProducerStamp | None = None
    """Of an idempotent producer, for a set of 0.7's messages; sent by `StampedPublishRequest`."""


@dataclass(frozen=True)
class PublishRequest(ExtensionRequest):
    """Append message sets and acknowledge them as `acks` says.

    An empty set with `Acks.COMMITTED` waits for all that was written to the partition before it.
    """

    TYPE = requests.RequestType.PUBLISH
    VERSION = 0

    acks: Acks
    timeout_ms: int
    sets: tuple[PartitionSet, ...]

    def encode(self) -> bytes:
        """Return the body."""
        return b"".join(self.encode_parts())

    def encode_parts(self) -> list[Buffer]:
        """Return the body in parts; the sets are not copied."""
        parts: list[Buffer] = [INT16.pack(self.acks), INT32.pack(self.timeout_ms)]
        parts.append(INT32.pack(len(self.sets)))
        for one in self.sets:
            parts += encode_partition(one.partition), *self._encode_stamp(one.stamp)
            parts += INT32.pack(len(one.message_set)), one.message_set
        return parts

    @staticmethod
    def _encode_stamp(stamp: ProducerStamp | None) -> tuple[bytes, ...]:
        return ()

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """Read the body."""
        acks = reader.int16()
        if acks not in tuple(Acks):
            raise ProtocolError(f"acks is {acks}; 0, 1, -1 and -2 are defined")
        timeout_ms = reader.int32()
        count = read_item_count(reader, 14)
        sets = []
        for _ in range(count):
            partition, stamp = decode_partition(reader), cls._decode_stamp(reader)
            sets.append(PartitionSet(partition, reader.data(reader.int32()), stamp))
        return cls(Acks(acks), timeout_ms, tuple(sets))

    @staticmethod
    def _decode_stamp(reader: Reader) -> ProducerStamp | None:
        return None


class StampedPublishRequest(PublishRequest):
    """Append message sets, each unless its stamp tells that the log has it already."""

    VERSION = 1

    @staticmethod
    def _encode_stamp(stamp: ProducerStamp | None) -> tuple[bytes, ...]:
        return (_STAMP.pack(*(_NO_STAMP if stamp is None else stamp[:3])),)

    @staticmethod
    def _decode_stamp(reader: Reader) -> ProducerStamp | None:
        """Return a stamp whose messages are not counted yet."""
        producer_id, epoch, sequence = reader.fields(_STAMP)
        if producer_id < 0:
            return None
        if min(epoch, sequence) < 0:
            raise ProtocolError(
                f"a stamp of producer {producer_id} has epoch {epoch} and sequence {sequence}: "
                "both must be 0 or more"
            )
        return ProducerStamp(producer_id, epoch, sequence, 0)


MAX_PATTERN_BYTES = 1024

_IGNORE_CASE = 1
_INVERT = 2


@dataclass(frozen=True, slots=True)
class PayloadFilter:
    """Selects messages by their payload.

    Args:
        pattern: see `broker.patterns`; in UTF-8, at most `MAX_PATTERN_BYTES` long. It may match
            anywhere in a payload; an empty one matches every payload.
        ignore_case: ignore the case of letters.
        invert: select the messages that the pattern does not match.
    """

    pattern: bytes
    ignore_case: bool = False
    invert: bool = False

    def compile(self) -> PayloadTest:
        """Return the test of payloads.

        Raises:
            InvalidPatternError: the pattern is too long, not UTF-8, or not a regular expression.
        """
        if len(self.pattern) > MAX_PATTERN_BYTES:
            raise InvalidPatternError(
                f"the pattern has {len(self.pattern)} bytes; the limit is {MAX_PATTERN_BYTES}"
            )
        try:
            text = self.pattern.decode()
        except UnicodeDecodeError as error:
            raise InvalidPatternError(f"the pattern '{self.text}' is not UTF-8") from error
        return PayloadTest(text, ignore_case=self.ignore_case, invert=self.invert)

    @property
    def text(self) -> str:
        """Return the pattern as text for error messages."""
        return self.pattern.decode("utf-8", "backslashreplace")

    def encode(self) -> bytes:
        """Return the wire form."""
        flags = _IGNORE_CASE * self.ignore_case | _INVERT * self.invert
        return INT8.pack(flags) + INT32.pack(len(self.pattern)) + self.pattern

    @classmethod
    def decode(cls, reader: Reader) -> PayloadFilter:
        """Read the wire form; the pattern is validated by `compile`.

        Raises:
            ProtocolError: an undefined flag is set, or the fields are cut off.
        """
        flags = reader.int8()
        if flags & ~(_IGNORE_CASE | _INVERT):
            raise ProtocolError(f"the flags of a filter are {flags}; 1 and 2 are defined")
        pattern = bytes(reader.data(reader.int32()))
        return cls(pattern, bool(flags & _IGNORE_CASE), bool(flags & _INVERT))


class PartitionPosition(NamedTuple):
    """The offset to read a partition from, and the most bytes to return."""

    partition: TopicPartition
    offset: int
    max_bytes: int


@dataclass(frozen=True)
class ReadRequest(ExtensionRequest):
    """Read many partitions; wait up to `max_wait_ms` until `min_bytes` are there."""

    TYPE = requests.RequestType.READ
    VERSION = 0

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    positions: tuple[PartitionPosition, ...]

    def encode(self) -> bytes:
        """Return the body."""
        parts = [_WAIT_AND_BYTES.pack(self.max_wait_ms, self.min_bytes, self.max_bytes)]
        parts.append(INT32.pack(len(self.positions)))
        for partition, offset, max_bytes in self.positions:
            parts += encode_partition(partition), _OFFSET_AND_BYTES.pack(offset, max_bytes)
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> Self:
        """Read the body."""
        max_wait_ms, min_bytes, max_bytes = reader.fields(_WAIT_AND_BYTES)
        count = read_item_count(reader, 22)
        positions = tuple(
            PartitionPosition(decode_partition(reader), *reader.fields(_OFFSET_AND_BYTES))
            for _ in range(count)
        )
        return cls(max_wait_ms, min_bytes, max_bytes, positions)


class AnyReplicaReadRequest(ReadRequest):
    """A read that an in-sync follower may serve, too."""

    VERSION = 3


def position_count(body: Buffer) -> int:
    """Return how many positions the body of a read has, without decoding them; 0 if cut off."""
    if len(body) < _WAIT_AND_BYTES.size + INT32.size:
        return 0
    count: int = INT32.unpack_from(body, _WAIT_AND_BYTES.size)[0]
    return count


READ = layouts.Layout(ReadRequest.encode, ReadRequest.decode, _WAIT_AND_BYTES.size + INT32.size)
PAYLOAD_FILTER = layouts.Layout(PayloadFilter.encode, PayloadFilter.decode, INT8.size + INT32.size)


@dataclass(frozen=True)
class FilteredReadRequest(ControlRequest):
    """A read of the entries that hold a wanted message, and no others."""

    TYPE = requests.RequestType.READ
    VERSION = 1

    read: Annotated[ReadRequest, READ]
    payload_filter: Annotated[PayloadFilter, PAYLOAD_FILTER]


@dataclass(frozen=True)
class SessionReadRequest(ControlRequest):
    """A read that names what has changed since the one before it in its session."""

    TYPE = requests.RequestType.READ
    VERSION = 5

    read: Annotated[ReadRequest, READ]  # its positions: new or changed ones
    session_id: Int64  # 0: another one begins
    session_epoch: Int64  # counts the reads of the session, from 0
    takes_followers: bool  # as `AnyReplicaReadRequest`
    forgotten: tuple[TopicPartition, ...]  # are not read any more


class OffsetKind(IntEnum):
    """The kind of a requested offset."""

    EARLIEST = 0
    LATEST = 1
    BEFORE_TIME = 2  # start of the last segment not written after the given time (ms)
    BOUNDARY_BEFORE = 3  # message boundary at or before the given offset
    BOUNDARY_AFTER = 4  # message boundary at or after the given offset
    LOG_END = 5  # end of all written messages, flushed or not
    TERM_END = 6  # end of the messages written in the given term; -1 if the log has none


class OffsetQuery(NamedTuple):
    """A query for one offset; `argument` is a time, an offset or a term, or 0."""

    partition: TopicPartition
    kind: Annotated[OffsetKind, layouts.enum(OffsetKind, layouts.INT8, "kind of offset")]
    argument: Int64


@dataclass(frozen=True)
class ListOffsetsRequest(ControlRequest):
    """List offsets of many partitions."""

    TYPE = requests.RequestType.LIST_OFFSETS
    RESPONSE = LISTED_OFFSETS

    queries: tuple[OffsetQuery, ...]


@dataclass(frozen=True)
class ListSegmentsRequest(ControlRequest):
    """0.7's offsets request for a partition of any home."""

    TYPE = requests.RequestType.LIST_OFFSETS
    VERSION = 1
    RESPONSE = SEGMENT_STARTS

    partition: ValidPartition
    time_ms: Int64  # since 1970, `LATEST_TIME` or `EARLIEST_TIME`
    max_offsets: Int32


class SinglePublish:
    """Encodes a client's publishes of one set for one partition."""

    __slots__ = ("_layout", "_middle")

    def __init__(
        self, client_id: str, acks: Acks, timeout_ms: int, partition: TopicPartition
    ) -> None:
        self._middle = b"".join(
            (
                encode_short_string(client_id),
                INT16.pack(acks),
                INT32.pack(timeout_ms),
                INT32.pack(1),
                encode_partition(partition),
            )
        )
        self._layout = struct.Struct(f">ihhi{len(self._middle)}si")

    def encode_parts(self, correlation_id: int, message_set: Buffer) -> list[Buffer]:
        """Return the frame of a request in parts; the set is not copied."""
        set_bytes = len(message_set)
        head = self._layout.pack(
            self._layout.size - INT32.size + set_bytes,
            PublishRequest.TYPE,
            PublishRequest.VERSION,
            correlation_id,
            self._middle,
            set_bytes,
        )
        return [head, message_set]


class SinglePublishResponse:
    """Encodes and decodes responses to successful publishes of one set for one partition."""

    # `partition` is as the broker names it

    __slots__ = ("_layout", "_middle", "_size")

    def __init__(self, partition: TopicPartition) -> None:
        self._middle = INT32.pack(1) + encode_partition(partition) + INT16.pack(NO_ERROR)
        self._layout = struct.Struct(f">hi{len(self._middle)}sqqh")
        self._size = INT32.pack(self._layout.size)

    def encode(self, ids: bytes, sizes: bytes, base_offset: int, term: int) -> bytes:
        """Return the frames of responses to sets that were appended one behind the other.

        Correlation ids and sizes of the sets are int32, as `codec.single_appends` returns them.
        """
        template = self._size + self._layout.pack(NO_ERROR, 0, self._middle, 0, term, 0)
        return publish_responses(template, ids, sizes, base_offset)

    def decode(self, frame: Buffer, correlation_id: int) -> tuple[int, int] | None:
        """Return base offset and term of the set; None if the general decoder must read it."""
        if len(frame) != self._layout.size:
            return None
        error, found_id, middle, base_offset, term, text_bytes = self._layout.unpack(frame)
        is_good = error == NO_ERROR and text_bytes == 0 and middle == self._middle
        return (base_offset, term) if is_good and found_id == correlation_id else None


@lru_cache(maxsize=4096)
def single_publish_response(partition: TopicPartition) -> SinglePublishResponse:
    """Return the encoder of responses for a partition; cached."""
    return SinglePublishResponse(partition)


MAX_DATA_BYTES = 4096
"""The longest message of a mechanism."""


class Authenticated(NamedTuple):
    """The broker's answer to one step; `principal` is empty before the last one."""

    is_done: bool
    lifetime_ms: layouts.Int64
    principal: str
    data: bytes


AUTHENTICATED = layouts.record(Authenticated)


@dataclass(frozen=True)
class AuthenticateRequest(ControlRequest):
    """Send the next message of a mechanism's exchange; step 0 opens one."""

    TYPE = requests.RequestType.AUTHENTICATE
    RESPONSE = AUTHENTICATED

    mechanism: str
    step: layouts.Int8
    data: bytes
