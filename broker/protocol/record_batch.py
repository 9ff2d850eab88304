"""Kafka's record batches (message format 2) and its older formats 0 and 1, which are only read.

    | base offset int64 | size int32 | leader epoch int32 | magic int8 | crc uint32 | attributes
    int16 | last offset delta int32 | base timestamp int64 | max timestamp int64 | producer id int64
    | producer epoch int16 | base sequence int32 | record count int32 | records |

`size` counts the bytes that follow it. The CRC is CRC-32C, of all that follows it: base offset and
leader epoch are set without a new one. A message of formats 0 and 1 has its offset and size in the
same place, and its magic byte too:

    | offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | timestamp int64 | key
    | value |

Format 0 has no timestamp. The CRC is zlib's, of all that follows it. Key and value are an int32
size, -1 for null, and bytes.

Here are the results of the codec's functions for batches, and what both of its engines share.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.errors import InvalidMessageError
from broker.protocol.compression import (
    Codec,
    codec_of_batch,
    compress_batch,
    decompress_batch,
)
from broker.protocol.message import Fault
from broker.protocol.primitives import Buffer

MAGIC = 2
HEADER_BYTES = 61
MAGIC_AT = 16
CRC_AT = 17
CHECKED_FROM = 21  # what the CRC covers
OLD_CHECKED_FROM = 16  # the same of formats 0 and 1
LEAST_BYTES = 26  # of a message of format 0 with no key and value
NO_TIMESTAMP = -1
MAX_HEADERS = 1 << 20
"""Of the records of a batch: one may be two bytes, and takes a hundred times that in memory."""
HEADER_COST = 64
"""The bytes that each counts for in a limit of bytes."""
MAX_RECORDS_BYTES = 2**31 - 1  # so that the offsets in `RecordColumns` are int32

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CRC = struct.Struct(">I")
_OFFSET_AND_SIZE = struct.Struct(">qi")
_OLD_HEADER = struct.Struct(">IBB")
_SIZE_FROM = 12  # the bytes before it are not in the size
_MAX_SIZE = 2**31 - 1
CODEC_BITS = 0x07  # of the attributes
CONTROL = 1 << 5
_APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
DELETE_HORIZON = 1 << 6


class RecordBatch(NamedTuple):
    """A batch as its header tells, at a position of a buffer.

    Each message of formats 0 and 1 is a batch of its own: its offset is the base offset, also that
    of a wrapper, which is the offset of the wrapper's last message. The defaults are those of a
    batch to be encoded.
    """

    position: int = 0
    size: int = 0  # with the fields before and of the size
    magic: int = MAGIC
    base_offset: int = 0
    leader_epoch: int = -1
    crc: int = 0
    attributes: int = 0
    last_offset_delta: int = -1
    base_timestamp: int = NO_TIMESTAMP  # the delete horizon where there is one
    max_timestamp: int = NO_TIMESTAMP  # the time of every record with append time
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    record_count: int = 0  # -1 for a wrapper, whose header does not tell

    @property
    def end(self) -> int:
        """Return the position behind the batch."""
        return self.position + self.size

    @property
    def last_offset(self) -> int:
        """Return the last offset that the batch takes, of a record that may be compacted away."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Return the offset behind the batch."""
        return self.last_offset + 1

    @property
    def codec(self) -> Codec | None:
        """Return the codec of the records; None if the attributes name none."""
        return codec_of_batch(self.attributes)

    @property
    def has_append_time(self) -> bool:
        """Return whether the broker's clock gave the timestamps."""
        return self.magic > 0 and bool(self.attributes & _APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Return whether the records are part of a transaction."""
        return self.magic == MAGIC and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Return whether the records are marks of the broker, which no consumer gets."""
        return self.magic == MAGIC and bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Return whether the base timestamp tells when compaction may drop tombstones."""
        return self.magic == MAGIC and bool(self.attributes & DELETE_HORIZON)


def parse_head(data: Buffer, position: int) -> RecordBatch | None:
    """Return the batch whose first bytes these are, valid or not; None if it is cut off in them.

    Args:
        data: at least `HEADER_BYTES` of them, unless the file ends before.
        position: of the batch, for the result.
    """
    if len(data) <= MAGIC_AT:
        return None
    magic = data[MAGIC_AT]
    if magic >= MAGIC:
        if len(data) < HEADER_BYTES:
            return None
        offset, size, epoch, magic, *fields = _HEADER.unpack_from(data)
        found = (position, size + _SIZE_FROM, magic, offset, epoch, *fields)
        return tuple.__new__(RecordBatch, found)  # in half the time that the class takes
    offset, size = _OFFSET_AND_SIZE.unpack_from(data)
    size += _SIZE_FROM
    if len(data) < MAGIC_AT + 2:
        return None
    crc, _, attributes = _OLD_HEADER.unpack_from(data, _SIZE_FROM)
    old = RecordBatch(position, size, magic, offset, crc=crc, attributes=attributes)
    return old._replace(last_offset_delta=0)


class Record(NamedTuple):
    """One record; `timestamp` is in milliseconds since 1970, -1 in format 0, which has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class BatchScan(NamedTuple):
    """Result of `scan_batches`."""

    batches: list[RecordBatch]  # those before the first fault
    valid_bytes: int  # the position of the fault, or the end
    fault: Fault


class DecodedRecords(NamedTuple):
    """Result of `decode_records`: those of the batches before the first fault, or the limit."""

    records: list[Record]
    valid_bytes: int  # the end of the last batch taken: where to go on
    fault: Fault  # why the walk ended there; `NONE` also at the limit


class RecordColumns(NamedTuple):
    """Result of `decode_record_columns`: one row for each record, each column in its own buffer.

    As in `Columns`, numbers are in the byte order of the machine, and columns that were not
    requested are empty. A validity buffer has one bit a row, the lowest of a byte first, set where
    there is a value; where it is not, the value is null, and empty here.
    """

    record_count: int  # rows
    valid_bytes: int
    fault: Fault
    offsets: bytes  # int64
    timestamps: bytes  # int64, milliseconds
    key_offsets: bytes  # int32, one more than rows: where each key starts in `keys`
    keys: bytes
    key_validity: bytes
    value_offsets: bytes  # as those of keys
    values: bytes
    value_validity: bytes
    header_offsets: bytes  # int32, one more than rows: the first header of each record
    header_key_offsets: bytes  # int32, one more than headers
    header_keys: bytes  # as stored, which should be UTF-8
    header_value_offsets: bytes
    header_values: bytes
    header_value_validity: bytes


RECORD_COLUMN_NAMES = RecordColumns._fields[3:]
"""Those of the buffers of `RecordColumns`, in their order."""

NEW_BATCH = RecordBatch()

# returns the content of a batch or wrapper, given attributes, magic and data; None if it is broken
Opener = Callable[[int, int, Buffer], bytes | None]


def open_batch(attributes: int, magic: int, data: Buffer) -> bytes | None:
    """Return the decompressed records of a batch, or set of a wrapper; None if it is broken."""
    try:
        return unfold_batch(attributes, magic, data)
    except InvalidMessageError:
        return None


def unfold_batch(attributes: int, magic: int, data: Buffer) -> bytes:
    """Return what `open_batch` does; `InvalidMessageError` tells what is broken."""
    codec = codec_of_batch(attributes)
    if codec is None:
        raise InvalidMessageError(f"attributes {attributes:#x} name no codec")
    return decompress_batch(codec, data, magic=magic)


def encode_with(
    encode_records: Callable[[Sequence[Record], int, int], bytes],
    crc32c: Callable[[Buffer], int],
    records: Sequence[Record],
    batch: RecordBatch = NEW_BATCH,
) -> bytes:
    """Return a batch of format 2 of these records.

    Args:
        encode_records, crc32c: those of an engine.
        records: their offsets rise from the batch's base offset on, gaps allowed.
        batch: base offset, leader epoch, attributes (the codec among them) and producer fields; a
            last offset delta that is more than that of the last record; a base timestamp other than
            the first record's; the max timestamp if there is append time. The rest is computed.
            A batch that was decoded gives the same fields with its records again.

    Raises:
        ValueError: something does not fit the format, or the base offset.
    """
    codec = codec_of_batch(batch.attributes)
    if codec is None or batch.magic != MAGIC:
        raise ValueError("only format 2 with a known codec is written")
    if sum(len(record.headers) for record in records) > MAX_HEADERS:
        raise ValueError(f"the records of a batch have at most {MAX_HEADERS} headers")
    times = [record.timestamp for record in records]
    base_timestamp = batch.base_timestamp
    if base_timestamp == NO_TIMESTAMP and times:
        base_timestamp = times[0]
    max_timestamp = batch.max_timestamp
    if times and not batch.has_append_time:
        max_timestamp = max(times)
    last_offset_delta = batch.last_offset_delta
    if records:
        last_offset_delta = max(last_offset_delta, records[-1].offset - batch.base_offset)
    if last_offset_delta < 0:
        raise ValueError("a batch has a record, or takes at least one offset")
    content = encode_records(records, batch.base_offset, base_timestamp)
    data = compress_batch(codec, content) if codec else content
    size = HEADER_BYTES - _SIZE_FROM + len(data)
    if size > _MAX_SIZE:
        raise ValueError(f"a batch of {size} bytes is too large for the format")
    front = (batch.base_offset, size, batch.leader_epoch, MAGIC, 0, batch.attributes)
    times_and_producer = (base_timestamp, max_timestamp, *batch[10:13])
    try:
        header = _HEADER.pack(*front, last_offset_delta, *times_and_producer, len(records))
    except struct.error as error:
        raise ValueError(f"a field of the batch is out of range: {error}") from error
    encoded = bytearray(header + data)
    _CRC.pack_into(encoded, CRC_AT, crc32c(memoryview(encoded)[CHECKED_FROM:]))
    return bytes(encoded)
