"""Kafka's record batches and messages of its old formats, put together from `struct` alone.

What is inside may be anything: a header that lies, records that do not parse. The CRC is right.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

from crcmod import predefined
from hypothesis import strategies as st

from broker.protocol.compression import BATCH_CODECS, compress_batch
from broker.protocol.record_batch import NEW_BATCH, Record, RecordBatch

_crc32c = predefined.mkPredefinedCrcFun("crc-32c")


def batch_bytes(content: bytes, batch: RecordBatch = NEW_BATCH) -> bytes:
    """Return a batch of format 2 with this content as it is and the fields as they are."""
    checked = struct.pack(
        ">hiqqqhii",
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    )
    checked += content
    front = struct.pack(">qii", batch.base_offset, 9 + len(checked), batch.leader_epoch)
    return front + struct.pack(">BI", 2, _crc32c(checked)) + checked


def varint(number: int) -> bytes:
    """Return a number of at most 64 bits as records have it."""
    value, parts = number << 1 ^ number >> 63, []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def old_bytes(
    magic: int,
    offset: int,
    value: bytes | None,
    key: bytes | None = None,
    attributes: int = 0,
    timestamp: int = -1,
) -> bytes:
    """Return one message of format 0 or 1."""
    checked = struct.pack(">Bb", magic, attributes)
    checked += struct.pack(">q", timestamp) if magic else b""
    for field in (key, value):
        checked += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, 4 + len(checked), crc32(checked)) + checked


def wrapper(magic: int, offset: int, codec: int, messages: bytes, timestamp: int = -1) -> bytes:
    """Return a compressed message of format 0 or 1; `codec` also has other bits of attributes."""
    value = compress_batch(BATCH_CODECS[codec & 7], messages)
    return old_bytes(magic, offset, value, attributes=codec, timestamp=timestamp)


BYTES = st.binary(max_size=20) | st.binary(max_size=3).map(lambda one: one * 50)
_FIELDS = st.none() | BYTES
_TIMES = st.integers(-(2**61), 2**61) | st.integers(0, 2**41)
_HEADERS = st.lists(st.tuples(st.text(max_size=8), _FIELDS), max_size=3).map(tuple)
_NUMBERS = st.integers(-1, 2**31 - 1)

RECORDS = st.lists(st.tuples(st.integers(1, 300), _TIMES, _FIELDS, _FIELDS, _HEADERS), max_size=12)
"""Records with the distance of each offset from the one before in place of the offset."""


def records_from(base_offset: int, found: list[tuple[Any, ...]]) -> list[Record]:
    """Return the records of `RECORDS` with offsets from a base on."""
    records, offset = [], base_offset - 1
    for distance, *rest in found:
        offset += distance
        records.append(Record(offset, *rest))
    return records


FIELDS = st.builds(
    NEW_BATCH._replace,
    base_offset=st.integers(0, 2**62),
    leader_epoch=_NUMBERS,
    attributes=st.integers(0, 4) | st.sampled_from((0x10, 0x21, 0x30, 0x44)),
    last_offset_delta=st.integers(0, 20),
    base_timestamp=_TIMES,
    max_timestamp=_TIMES,
    producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=_NUMBERS,
)
"""Headers that can be encoded with records."""
