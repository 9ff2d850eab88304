"""Our requests about what is in partitions: publish, read, lookup (field tables: REQUESTS.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple

from broker.errors import ProtocolError
from broker.protocol.payload_filter import PayloadFilter
from broker.protocol.primitives import INT8, INT16, INT32, INT64, Buffer, Reader
from broker.protocol.request_fields import (
    RequestType,
    decode_partition,
    encode_partition,
    read_item_count,
)
from broker.topic import TopicPartition

_WAIT_AND_BYTES = struct.Struct(">iii")
_OFFSET_AND_BYTES = struct.Struct(">qi")


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
        count = read_item_count(reader, 14)
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
        parts = [_WAIT_AND_BYTES.pack(self.max_wait_ms, self.min_bytes, self.max_bytes)]
        parts.append(INT32.pack(len(self.positions)))
        for partition, offset, max_bytes in self.positions:
            parts += (encode_partition(partition), _OFFSET_AND_BYTES.pack(offset, max_bytes))
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> ReadRequest:
        """Read the body."""
        max_wait_ms, min_bytes, max_bytes = reader.fields(_WAIT_AND_BYTES)
        count = read_item_count(reader, 22)
        positions = tuple(
            PartitionPosition(decode_partition(reader), *reader.fields(_OFFSET_AND_BYTES))
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
        count = read_item_count(reader, 19)
        lookups = []
        for _ in range(count):
            partition = decode_partition(reader)
            kind = reader.int8()
            if kind not in Lookup.__members__.values():
                raise ProtocolError(f"{kind} is no kind of lookup")
            lookups.append(PartitionLookup(partition, Lookup(kind), reader.int64()))
        return cls(tuple(lookups))
