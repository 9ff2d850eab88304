"""Message sets to Arrow batches: the one place that knows how the codec hands messages over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from broker.protocol import codec
from broker.protocol.codec import Columns, CrcCheck
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

MAX_BATCH_BYTES = 32 << 20
"""The most payload of one batch, or one compressed set: a few bytes can unfold to very many."""


def decode(buffer: Buffer, base_offset: int, *, checks_crc: bool) -> Columns:
    """Return the messages at the start of a message set as columns, compressed ones unfolded.

    Args:
        buffer: starts on an entry; a partial entry at its end is left alone.
        base_offset: the log offset of its first byte.
        checks_crc: whether to end at a CRC that is wrong.

    Returns:
        All of them, or as many as a batch may have: then there is no fault, and `valid_bytes` is
        less than the buffer has.
    """
    check = CrcCheck.STOP if checks_crc else CrcCheck.OFF
    return codec.decode_columns(
        buffer, base_offset, crc_check=check, max_value_bytes=MAX_BATCH_BYTES
    )


_ARRAYS: dict[str, Callable[[Columns], pa.Array]] = {
    "offset": lambda columns: _numbers(pa.int64(), columns, columns.offsets),
    "next_offset": lambda columns: _numbers(pa.int64(), columns, columns.next_offsets),
    "inner_index": lambda columns: _numbers(pa.int32(), columns, columns.inners),
    "crc": lambda columns: _numbers(pa.uint32(), columns, columns.crcs).cast(pa.int64()),
    "value": lambda columns: pa.Array.from_buffers(
        pa.binary(),
        columns.message_count,
        [None, pa.py_buffer(columns.value_offsets), pa.py_buffer(columns.values)],
    ),
}


def _numbers(kind: pa.DataType, columns: Columns, data: bytes) -> pa.Array:
    return pa.Array.from_buffers(kind, columns.message_count, [None, pa.py_buffer(data)])


@dataclass(frozen=True, slots=True)
class BatchMaker:
    """Makes Arrow batches of the messages of one partition.

    Attributes:
        partition: whose messages.
        schema: of the batches.
    """

    partition: TopicPartition
    schema: pa.Schema

    def batch(self, columns: Columns) -> pa.RecordBatch:
        """Return good messages as a batch."""
        names = [name for name in self.schema.names if name in _ARRAYS]
        arrays = {name: _ARRAYS[name](columns) for name in names}
        return self._batch(columns.message_count, arrays, is_good=True)

    def damaged(
        self, offset: int, next_offset: int, value: bytes | None, crc: int | None
    ) -> pa.RecordBatch:
        """Return a batch with the one row that stands for damage.

        Args:
            offset: where it starts.
            next_offset: where to read on.
            value: the payload as it is stored; None where nothing can be told from the rest.
            crc: the CRC as it is stored.
        """
        row: dict[str, object] = {"offset": offset, "next_offset": next_offset, "inner_index": 0}
        row |= {"value": value, "crc": crc}
        names = [field for field in self.schema if field.name in row]
        arrays = {field.name: pa.array([row[field.name]], field.type) for field in names}
        return self._batch(1, arrays, is_good=False)

    def _batch(self, count: int, arrays: dict[str, pa.Array], *, is_good: bool) -> pa.RecordBatch:
        constants = {
            "topic": self.partition.topic,
            "partition": self.partition.name,
            "crc_ok": is_good,
        }
        made = [
            pa.repeat(pa.scalar(constants[field.name], field.type), count)
            if field.name in constants
            else arrays[field.name]
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)
