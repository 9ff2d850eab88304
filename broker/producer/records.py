"""Records of a producer for topics of format `kafka`: their sizes, and their sequence numbers.

A broker finds batches that are sent again by their producer id and sequence, which counts the
records of a partition. It remembers the last five batches of a producer id.
"""

from __future__ import annotations

import random
import struct
from typing import Protocol

from broker.errors import MessageSizeTooLargeError
from broker.protocol.codec import Record, crc32c
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import CHECKED_FROM, CRC_AT, HEADER_BYTES
from broker.topic import TopicPartition

MAX_IN_FLIGHT = 5
"""Batches of a partition without a response: as many as a broker remembers."""
_LEAST_ID = 1 << 62  # brokers give smaller ones
_SEQUENCES = 1 << 31  # the number after the last is 0
_NUMBERS_AT = 43
_NUMBERS = struct.Struct(">qhi")  # producer id, producer epoch, base sequence
_CRC = struct.Struct(">I")
# at most: length, attributes, deltas, and the lengths of key, value and headers
_RECORD_BYTES = 5 + 1 + 10 + 5 + 5 + 5 + 5
_HEADER_BYTES = 5 + 5


class Queued(Protocol):
    """What a producer keeps of a message besides its payload."""

    @property
    def key(self) -> bytes | None:
        """Return the key."""

    @property
    def record(self) -> Record | None:
        """Return the rest of what is stored; None: only the key, and when it is sent."""


def record_of(queued: Queued, number: int, payload: bytes, now_ms: int) -> Record:
    """Return the record of a message, the one of this number in its batch."""
    given = queued.record
    if given is None:
        return Record(number, now_ms, queued.key, payload)
    value = None if given.value is None else payload
    return Record(number, given.timestamp, given.key, value, given.headers)


def overhead_of(queued: Queued) -> int:
    """Return the most bytes that a record has besides its value."""
    record = queued.record
    if record is None:
        return _RECORD_BYTES + len(queued.key or b"")
    size = _RECORD_BYTES + len(record.key or b"")
    for name, value in record.headers:
        size += _HEADER_BYTES + len(name.encode()) + len(value or b"")
    return size


def validate_record(queued: Queued, payload: bytes, limit: int) -> None:
    """Raise `MessageSizeTooLargeError` if a batch with nothing but a record is above a limit."""
    size = HEADER_BYTES + overhead_of(queued) + len(payload)
    if size > limit:
        raise MessageSizeTooLargeError(
            f"a record has up to {size} bytes with its key and headers; the limit is {limit}"
        )


class Sequences:
    """The producer id and next sequence of each partition; one partition is used by one thread."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, tuple[int, int]] = {}

    def take(self, partition: TopicPartition, count: int) -> tuple[int, int]:
        """Return producer id and base sequence of the next batch, which has so many records."""
        found = self._next.get(partition)
        producer_id, sequence = found or (random.randrange(_LEAST_ID, 2 * _LEAST_ID), 0)
        self._next[partition] = producer_id, (sequence + count) % _SEQUENCES
        return producer_id, sequence

    def renew(self, partition: TopicPartition) -> None:
        """Begin with another producer id, as the broker misses batches of the present one."""
        self._next.pop(partition, None)


def numbered(batch: Buffer, producer_id: int, base_sequence: int) -> bytes:
    """Return a batch with the numbers of its producer."""
    data = bytearray(batch)
    _NUMBERS.pack_into(data, _NUMBERS_AT, producer_id, 0, base_sequence)
    _CRC.pack_into(data, CRC_AT, crc32c(memoryview(data)[CHECKED_FROM:]))
    return bytes(data)
