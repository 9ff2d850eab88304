"""The codec engine in C, with the functions that `_codec_python` documents.

`_codec` calls `_open` to decompress a wrapper, and decodes its content too.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from broker.protocol import _codec, message, record_batch
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES
from broker.protocol.message import Fault
from broker.protocol.primitives import Buffer
from broker.protocol.read_message import Message as Message
from broker.protocol.read_message import adopt, maker
from broker.topic import TopicPartition

if not TYPE_CHECKING:
    Message = _codec.Message
    adopt(Message)
make_message = maker(Message)

boundaries, find_entry = _codec.boundaries, _codec.find_entry
scan, encode = _codec.scan, _codec.encode
single_appends, publish_responses = _codec.single_appends, _codec.publish_responses

crc32c, scan_batches, stamp_batches = _codec.crc32c, _codec.scan_batches, _codec.stamp_batches
encode_records = _codec.encode_records


def encode_delimited(
    buffer: Buffer,
    delimiter: bytes,
    *,
    max_payload_bytes: int,
    batch_count: int,
    batch_bytes: int | None = None,
) -> message.EncodedText:
    """Encode each line of delimited text as a message."""
    most_bytes = sys.maxsize if batch_bytes is None else batch_bytes
    return _codec.encode_delimited(buffer, delimiter, max_payload_bytes, batch_count, most_bytes)


def decode(buffer: Buffer, base_offset: int) -> message.Decoded:
    """Return the messages of a message set."""
    return _codec.decode(buffer, base_offset, _open)


def decode_messages(
    buffer: Buffer, base_offset: int, topic: str, partition: TopicPartition
) -> tuple[list[Message], int, Fault]:
    """Return what `decode` does, as messages of a partition."""
    return _codec.decode_messages(buffer, base_offset, topic, partition, _open, make_message)


def decode_delimited(buffer: Buffer, delimiter: bytes, limit: int = -1) -> message.DecodedText:
    """Write the payloads of a message set as delimited text."""
    return _codec.decode_delimited(buffer, delimiter, limit, _open)


def decode_columns(
    buffer: Buffer,
    base_offset: int,
    *,
    crc_check: message.CrcCheck = message.CrcCheck.STOP,
    max_value_bytes: int = message.MAX_VALUE_BYTES,
    columns: Collection[str] = message.COLUMN_NAMES,
) -> message.Columns:
    """Return the messages of a message set as columns for Arrow."""
    wanted = sum(1 << place for place, name in enumerate(message.COLUMN_NAMES) if name in columns)
    return _codec.decode_columns(buffer, base_offset, crc_check, max_value_bytes, wanted, _open)


def decode_records(
    buffer: Buffer, *, with_control: bool = False, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> record_batch.DecodedRecords:
    """Return the records of batches."""
    return _codec.decode_records(buffer, with_control, max_bytes, record_batch.open_batch)


def decode_record_columns(
    buffer: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    columns: Collection[str] = record_batch.RECORD_COLUMN_NAMES,
) -> record_batch.RecordColumns:
    """Return the records of batches as columns for Arrow."""
    names = record_batch.RECORD_COLUMN_NAMES
    wanted = sum(1 << place for place, name in enumerate(names) if name in columns)
    return _codec.decode_record_columns(buffer, max_bytes, wanted, record_batch.open_batch)


def verify_batches(
    buffer: Buffer, *, deep: bool = True, opener: record_batch.Opener = record_batch.open_batch
) -> record_batch.BatchScan:
    """Scan batches, and validate their records."""
    return _codec.verify_batches(buffer, opener if deep else None)


def count_delimiters(text: Buffer, delimiter: bytes) -> int:
    """Count the occurrences of a delimiter in a text."""
    if len(delimiter) == 1:
        return _codec.count_byte(text, delimiter[0])
    return bytes(text).count(delimiter)


unfold = partial(message.unfold_with, _codec.payloads)
count_unfolded = partial(message.count_with, scan)
_open = message.opener(_codec.payloads)
encode_batch = partial(record_batch.encode_with, encode_records, crc32c)
