"""What all requests have in common: their types, and the fields that ours share."""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from broker.errors import ProtocolError
from broker.protocol.primitives import INT16, INT32, Reader, encode_short_string
from broker.topic import MAX_TOPIC_NAME_LENGTH, TopicPartition


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


_VERSION_AND_ID = struct.Struct(">hi")
_HOME_AND_INDEX = struct.Struct(">ii")
FIRST_EXTENSION_TYPE = 64
MAX_ITEMS = 32767
"""Partitions or topics in one of our requests; 0.7's own multi-requests can name as many."""


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
        version, correlation_id = reader.fields(_VERSION_AND_ID)
        return cls(version, correlation_id, reader.short_string())


def read_item_count(reader: Reader, item_bytes: int) -> int:
    """Read the length of an array of at most `MAX_ITEMS` items, of so many bytes each or more."""
    count = reader.int32()
    check_item_count(count, reader, item_bytes)
    return count


def check_item_count(count: int, reader: Reader, item_bytes: int) -> None:
    """Check that an array may have so many items, of so many bytes each or more.

    Raises:
        ProtocolError: those are too many for one request, or for what is left of it.
    """
    if count > MAX_ITEMS:
        raise ProtocolError(f"{count} items are too many for one request; the most is {MAX_ITEMS}")
    reader.check_count(count, item_bytes)


def encode_partition(partition: TopicPartition) -> bytes:
    """Return how extension requests and answers name a partition."""
    if len(partition.topic) > MAX_TOPIC_NAME_LENGTH:
        # no topic has this name: whoever asks for many such must not fill the memory with them
        return _encode_partition(partition)
    return _encode_or_recall(partition)


def _encode_partition(partition: TopicPartition) -> bytes:
    return (
        encode_short_string(partition.topic)
        + INT32.pack(partition.home)
        + INT32.pack(partition.index)
    )


_encode_or_recall = lru_cache(maxsize=4096)(_encode_partition)


def decode_partition(reader: Reader) -> TopicPartition:
    """Read a partition's topic, home and index."""
    topic = reader.short_string()
    home, index = reader.fields(_HOME_AND_INDEX)
    return TopicPartition(topic, home, index)
