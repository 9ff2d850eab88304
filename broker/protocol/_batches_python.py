"""The part of the codec engine in plain Python that is about Kafka's record batches.

Documents each function for both engines, as `_codec_python` does, which has them too. A `buffer`
starts on a batch, and may end inside one.
"""

from __future__ import annotations

import functools
import struct
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any
from zlib import crc32

from broker.protocol import record_batch
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, codec_of_batch
from broker.protocol.message import Fault
from broker.protocol.primitives import INT32, INT64, Buffer
from broker.protocol.record_batch import (
    CHECKED_FROM,
    HEADER_BYTES,
    MAGIC_AT,
    MAX_RECORDS_BYTES,
    NO_TIMESTAMP,
    OLD_CHECKED_FROM,
    RECORD_COLUMN_NAMES,
    BatchScan,
    DecodedRecords,
    Opener,
    Record,
    RecordBatch,
    RecordColumns,
    open_batch,
)

_OFFSET_AND_SIZE = struct.Struct(">qi")
_OFFSET_AND_SIZE_BYTES = 12
_LEAST_SIZES = (14, 22, HEADER_BYTES - _OFFSET_AND_SIZE_BYTES)  # by magic
_AFTER_EPOCH = struct.Struct(">bIhiqqqhii")
_OLD_HEADER = struct.Struct(">IBb")
_OLD_KEY_AT = (18, 26)  # by magic
_LAST_OLD_CODEC = 3
_LEAST_RECORD_BYTES = 7
_LEAST_HEADER_BYTES = 2
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_MAX_INT32 = 2**31 - 1


class _BrokenError(ValueError):
    """The records of a batch do not parse."""


@functools.cache
def _crcmod_engine() -> Callable[[Buffer, int], int]:
    from crcmod import predefined  # late: few programs read batches with this engine

    engine: Callable[[Buffer, int], int] = predefined.mkPredefinedCrcFun("crc-32c")
    return engine


def crc32c(data: Buffer, crc: int = 0, /) -> int:
    """Return the CRC-32C of data that follows other data whose CRC is `crc`."""
    return _crcmod_engine()(data, crc)


def scan_batches(buffer: Buffer) -> BatchScan:
    """Validate sizes, magic bytes, CRCs, codecs, offsets and counts of the batches of any bytes."""
    view = memoryview(buffer)
    batches: list[RecordBatch] = []
    position = 0
    while position < len(view):
        found = _read_batch(view, position)
        if isinstance(found, Fault):
            return BatchScan(batches, position, found)
        batches.append(found)
        position = found.end
    return BatchScan(batches, position, Fault.NONE)


def verify_batches(buffer: Buffer, *, deep: bool = True, opener: Opener = open_batch) -> BatchScan:
    """Scan batches as `scan_batches`, and validate their records and max timestamps.

    Batches with a delete horizon, or the broker's time, may have another max timestamp. A wrapper
    has the count of its messages. Records are counted and not kept.

    Args:
        buffer: any bytes.
        deep: also open compressed batches.
        opener: opens them; what it raises ends the call.
    """
    view = memoryview(buffer)
    batches: list[RecordBatch] = []
    position = 0
    while position < len(view):
        batch = _read_batch(view, position)
        if not isinstance(batch, Fault) and (deep or not batch.codec):
            batch = _verify(view, batch, opener)
        if isinstance(batch, Fault):
            return BatchScan(batches, position, batch)
        batches.append(batch)
        position = batch.end
    return BatchScan(batches, position, Fault.NONE)


def _verify(view: memoryview, batch: RecordBatch, opener: Opener) -> RecordBatch | Fault:
    """Return a batch whose records are good, with their count; or its fault."""
    found = _open(view, batch, opener)
    if isinstance(found, Fault):
        return found
    count, largest = 0, _MIN_INT64
    try:
        for row in found[0]:
            count += 1
            largest = max(largest, row[1])
    except (_BrokenError, IndexError):
        return Fault.RECORDS
    has_others = batch.has_append_time or batch.has_delete_horizon
    if count and not has_others and largest != batch.max_timestamp:
        return Fault.TIMESTAMPS
    return batch._replace(record_count=count)


def _read_batch(view: memoryview, position: int) -> RecordBatch | Fault:
    """Return the batch at a position, or its fault."""
    rest = len(view) - position
    if rest < _OFFSET_AND_SIZE_BYTES:
        return Fault.PARTIAL
    offset, size = _OFFSET_AND_SIZE.unpack_from(view, position)
    if size < _LEAST_SIZES[0]:
        return Fault.SIZE
    if rest <= MAGIC_AT:
        return Fault.PARTIAL
    magic = view[position + MAGIC_AT]
    if magic >= len(_LEAST_SIZES):
        return Fault.MAGIC
    if size < _LEAST_SIZES[magic]:
        return Fault.SIZE
    if size > rest - _OFFSET_AND_SIZE_BYTES:
        return Fault.PARTIAL
    size += _OFFSET_AND_SIZE_BYTES
    if magic < record_batch.MAGIC:
        return _read_old(view, position, size, magic, offset)
    (epoch,) = INT32.unpack_from(view, position + _OFFSET_AND_SIZE_BYTES)
    fields = _AFTER_EPOCH.unpack_from(view, position + MAGIC_AT)
    batch = RecordBatch(position, size, magic, offset, epoch, *fields[1:])
    if crc32c(view[position + CHECKED_FROM : batch.end]) != batch.crc:
        return Fault.CRC
    if batch.codec is None:
        return Fault.CODEC
    delta, count = batch.last_offset_delta, batch.record_count
    if not (0 <= offset < _MAX_INT64 - delta and 0 <= count <= delta + 1 and delta >= 0):
        return Fault.OFFSETS
    return batch


def _read_old(
    view: memoryview, position: int, size: int, magic: int, offset: int
) -> RecordBatch | Fault:
    """Return a whole message of format 0 or 1."""
    crc, _, attributes = _OLD_HEADER.unpack_from(view, position + _OFFSET_AND_SIZE_BYTES)
    if crc32(view[position + OLD_CHECKED_FROM : position + size]) != crc:
        return Fault.CRC
    codec = codec_of_batch(attributes)
    if codec is None or attributes & 7 > _LAST_OLD_CODEC:
        return Fault.CODEC
    if not 0 <= offset < _MAX_INT64:
        return Fault.OFFSETS
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = INT64.unpack_from(view, position + _OLD_KEY_AT[0])
    batch = RecordBatch(
        position,
        size,
        magic,
        offset,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        record_count=-1 if codec else 1,
    )
    return Fault.RECORDS if _key_and_value(view, batch) is None else batch


def _key_and_value(
    view: memoryview, batch: RecordBatch
) -> tuple[memoryview | None, memoryview | None] | None:
    """Return those of a message of format 0 or 1; None if they do not fill it exactly."""
    position = batch.position + _OLD_KEY_AT[batch.magic]
    fields: list[memoryview | None] = []
    for _ in range(2):
        if position + INT32.size > batch.end:
            return None
        (size,) = INT32.unpack_from(view, position)
        position += INT32.size
        if size < -1 or position + size > batch.end:
            return None
        fields.append(None if size < 0 else view[position : position + size])
        position += max(size, 0)
    return (fields[0], fields[1]) if position == batch.end else None


def stamp_batches(buffer: Buffer, base_offset: int, leader_epoch: int, /) -> tuple[bytes, int]:
    """Return whole batches of format 2 with offsets from a base on and this leader epoch.

    Also the offset behind them. `ValueError` if the buffer has anything else in it, which `scan`
    tells before; `OverflowError` if that offset exceeds 64 bits. No CRC is computed.
    """
    stamped = bytearray(buffer)
    position = 0
    while position < len(stamped):
        rest = len(stamped) - position
        size = -1
        if rest >= HEADER_BYTES and stamped[position + MAGIC_AT] == record_batch.MAGIC:
            size = _OFFSET_AND_SIZE.unpack_from(stamped, position)[1]
        if not _LEAST_SIZES[-1] <= size <= rest - _OFFSET_AND_SIZE_BYTES:
            raise ValueError("there is something else than whole record batches")
        delta = INT32.unpack_from(stamped, position + 23)[0]
        if delta < 0:
            raise ValueError("a record batch has no offsets")
        if not 0 <= base_offset < _MAX_INT64 - delta:
            raise OverflowError("the offset after the last record exceeds 64 bits")
        INT64.pack_into(stamped, position, base_offset)
        stamped[position + 12 : position + 16] = leader_epoch.to_bytes(4, "big", signed=True)
        base_offset += delta + 1
        position += _OFFSET_AND_SIZE_BYTES + size
    return bytes(stamped), base_offset


def decode_records(
    buffer: Buffer, *, with_control: bool = False, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> DecodedRecords:
    """Return the records of batches up to the first fault, compressed ones unfolded.

    Header names that are no UTF-8 have U+FFFD in them, as Kafka's Java client reads them.

    Args:
        buffer: batches; a partial one at the end is not decoded.
        with_control: also return the records of control batches.
        max_bytes: the most bytes of batches without their headers, unfolded, and `HEADER_COST` for
            each header of a record; the walk ends before the batch that would exceed it, but takes
            at least one, of up to `MAX_DECOMPRESSED_BYTES` if it is compressed.
    """
    rows, position, fault = _walk(buffer, max_bytes, with_control=with_control)
    records = [
        Record(
            offset,
            timestamp,
            key,
            value,
            tuple((str(name, "utf-8", "replace"), content) for name, content in headers),
        )
        for offset, timestamp, key, value, headers in rows
    ]
    return DecodedRecords(records, position, fault)


_Row = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]


def _walk(buffer: Buffer, max_bytes: int, *, with_control: bool) -> tuple[list[_Row], int, Fault]:
    """Return the records, where the walk ended, and why."""
    if max_bytes < 0:
        raise ValueError("max_bytes is at least 0")
    left_bytes = min(max_bytes, MAX_RECORDS_BYTES)
    view = memoryview(buffer)
    rows: list[_Row] = []
    position = 0
    while position < len(view):
        batch = _read_batch(view, position)
        if isinstance(batch, Fault):
            return rows, position, batch
        found, size = _rows_of(view, batch)
        if isinstance(found, Fault):
            return rows, position, found
        if position and size > left_bytes:
            break
        left_bytes = max(left_bytes - size, 0)
        if with_control or not batch.is_control:
            rows += found
        position = batch.end
    return rows, position, Fault.NONE


def _rows_of(view: memoryview, batch: RecordBatch) -> tuple[list[_Row] | Fault, int]:
    """Return the records of a good batch, or their fault; and their bytes, unfolded."""
    found = _open(view, batch)
    if isinstance(found, Fault):
        return found, 0
    try:
        rows = list(found[0])
    except (_BrokenError, IndexError):
        return Fault.RECORDS, 0
    return rows, found[1] + record_batch.HEADER_COST * sum(len(row[4]) for row in rows)


def _open(
    view: memoryview, batch: RecordBatch, opener: Opener = open_batch
) -> tuple[Iterable[_Row], int] | Fault:
    """Return what parses the records of a good batch, and their bytes, unfolded; or its fault."""
    if batch.magic < record_batch.MAGIC:
        rows, size = _old_rows_of(view, batch, opener)
        return rows if isinstance(rows, Fault) else (rows, size)
    data = bytes(view[batch.position + HEADER_BYTES : batch.end])
    if batch.codec:
        opened = opener(batch.attributes, batch.magic, data)
        if opened is None:
            return Fault.COMPRESSED
        data = opened
    return _parse(data, batch), len(data)


def _old_rows_of(
    view: memoryview, batch: RecordBatch, opener: Opener
) -> tuple[list[_Row] | Fault, int]:
    key, value = _key_and_value(view, batch) or (None, None)
    if not batch.codec:
        return [_old_row(batch, key, value)], batch.size
    opened = None if value is None else opener(batch.attributes, batch.magic, value)
    if not opened:
        return Fault.COMPRESSED, 0
    inner_view = memoryview(opened)
    rows: list[_Row] = []
    position, last = 0, -1
    while position < len(opened):
        inner = _read_batch(inner_view, position)
        if isinstance(inner, Fault) or inner.magic != batch.magic:
            return Fault.COMPRESSED, 0
        if inner.codec or inner.base_offset <= last:
            return Fault.COMPRESSED, 0
        rows.append(_old_row(inner, *(_key_and_value(inner_view, inner) or (None, None))))
        last, position = inner.base_offset, inner.end
    base = batch.base_offset - last if batch.magic else 0  # relative in format 1
    if base < 0:
        return Fault.COMPRESSED, 0
    timestamp = batch.max_timestamp if batch.has_append_time else None
    return [
        (base + row[0], row[1] if timestamp is None else timestamp, *row[2:]) for row in rows
    ], len(opened)


def _old_row(batch: RecordBatch, key: memoryview | None, value: memoryview | None) -> _Row:
    return (
        batch.base_offset,
        batch.max_timestamp,
        None if key is None else bytes(key),
        None if value is None else bytes(value),
        [],
    )


def _parse(data: bytes, batch: RecordBatch) -> Iterator[_Row]:
    """Yield the records of a batch; `IndexError` or `_BrokenError` if they do not fill it."""
    if batch.record_count > len(data) // _LEAST_RECORD_BYTES:
        raise _BrokenError
    position, last, headers_left = 0, -1, record_batch.MAX_HEADERS
    fixed = batch.max_timestamp if batch.has_append_time else None
    for _ in range(batch.record_count):
        size, position = _varint(data, position)
        end = position + size
        timestamp, position = _varint(data, position + 1, 64)  # the attributes have no use
        timestamp += batch.base_timestamp
        delta, position = _varint(data, position)
        key, position = _field(data, position)
        value, position = _field(data, position)
        count, position = _varint(data, position)
        if not 0 <= count <= min(headers_left, (len(data) - position) // _LEAST_HEADER_BYTES):
            raise _BrokenError
        headers_left -= count
        headers = []
        for _ in range(count):
            name, position = _field(data, position)
            content, position = _field(data, position)
            if name is None:
                raise _BrokenError
            headers.append((name, content))
        is_good = position == end and last < delta <= batch.last_offset_delta
        if not is_good or not _MIN_INT64 <= timestamp <= _MAX_INT64:
            raise _BrokenError
        last = delta
        time = timestamp if fixed is None else fixed
        yield batch.base_offset + delta, time, key, value, headers
    if position != len(data):
        raise _BrokenError


def _varint(data: bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """Return a number of up to so many bits, and the position behind it."""
    byte = data[position]
    position += 1
    value, shift = byte & 127, 7
    while byte > 127:
        if shift >= bits:
            raise _BrokenError
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
    if value >> bits:
        raise _BrokenError
    return value >> 1 ^ -(value & 1), position


def _field(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Return bytes that have their size before them, None for -1, and the position behind."""
    size, position = _varint(data, position)
    if size == -1:
        return None, position
    end = position + size
    if size < 0 or end > len(data):
        raise _BrokenError
    return data[position:end], end


def decode_record_columns(
    buffer: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    columns: Collection[str] = RECORD_COLUMN_NAMES,
) -> RecordColumns:
    """Return the records of batches as columns for Arrow, those of control batches left out.

    Args:
        buffer: batches; a partial one at the end is not decoded.
        max_bytes: as for `decode_records`.
        columns: names of those to make; the others are empty.
    """
    rows, position, fault = _walk(buffer, max_bytes, with_control=False)
    headers = list(chain.from_iterable(row[4] for row in rows))
    made = (
        array("q", [row[0] for row in rows]).tobytes(),
        array("q", [row[1] for row in rows]).tobytes(),
        *_column([row[2] for row in rows]),
        *_column([row[3] for row in rows]),
        _ends([len(row[4]) for row in rows]),
        *_column([name for name, _ in headers])[:2],
        *_column([content for _, content in headers]),
    )
    wanted: dict[str, Any] = {
        name: data if name in columns else b""
        for name, data in zip(RECORD_COLUMN_NAMES, made, strict=True)
    }
    return RecordColumns(len(rows), position, fault, **wanted)


def _column(values: Sequence[bytes | None]) -> tuple[bytes, bytes, bytes]:
    """Return offsets, bytes and validity of values."""
    validity = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        if value is not None:
            validity[row >> 3] |= 1 << (row & 7)
    present = [value or b"" for value in values]
    return _ends(list(map(len, present))), b"".join(present), bytes(validity)


def _ends(sizes: list[int]) -> bytes:
    return array("i", accumulate(sizes, initial=0)).tobytes()


def encode_records(records: Sequence[Record], base_offset: int, base_timestamp: int, /) -> bytes:
    """Return the records of a batch, uncompressed and without its header.

    `ValueError` if their offsets do not rise, do not fit the base, or a part is too large.
    """
    parts: list[bytes] = []
    last = -1
    for offset, timestamp, key, value, headers in records:
        delta = offset - base_offset
        if not last < delta <= _MAX_INT32:
            raise ValueError("the offsets of records rise from the base offset on")
        last = delta
        time_delta = timestamp - base_timestamp
        if not _MIN_INT64 <= time_delta <= _MAX_INT64:
            raise ValueError("the timestamps of records are too far from the base timestamp")
        body = [b"\0", _encode_varint(time_delta), _encode_varint(delta)]
        body += (*_encode_field(key), *_encode_field(value), _encode_varint(len(headers)))
        for name, content in headers:
            body += (*_encode_field(name.encode()), *_encode_field(content))
        size = sum(map(len, body))
        if size > _MAX_INT32:
            raise ValueError("a record is too large for the format")
        parts += (_encode_varint(size), *body)
    return b"".join(parts)


def _encode_field(data: bytes | None) -> tuple[bytes, bytes]:
    return (b"\x01", b"") if data is None else (_encode_varint(len(data)), data)


def _encode_varint(number: int) -> bytes:
    value = number << 1 ^ number >> 63
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


encode_batch = partial(record_batch.encode_with, encode_records, crc32c)  # see there
