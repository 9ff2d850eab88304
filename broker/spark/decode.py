"""Message sets to Arrow columns: the one place that knows how the codec hands messages over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from broker.protocol import codec
from broker.protocol.checksum import crc32
from broker.protocol.codec import Fault
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class Columns(NamedTuple):
    """Messages as columns, up to the first fault.

    `row_count` is the length of each, `arrays` has the columns that were asked for, `valid_bytes`
    is how far the outer entries were good.
    """

    row_count: int
    arrays: dict[str, pa.Array]
    valid_bytes: int
    fault: Fault


def decode_columns(buffer: Buffer, base_offset: int, names: Iterable[str]) -> Columns:
    """Return the messages of a message set as Arrow arrays, compressed ones unfolded.

    Args:
        buffer: starts on an entry; a partial entry at its end is left alone.
        base_offset: the log offset of its first byte.
        names: which of the columns offset, next_offset, inner_index, value and crc to make.
    """
    found = codec.decode(buffer, base_offset)
    offsets, next_offsets, payloads = list(zip(*found.messages, strict=True)) or ((), (), ())
    make = {
        "offset": lambda: pa.array(offsets, pa.int64()),
        "next_offset": lambda: pa.array(next_offsets, pa.int64()),
        "inner_index": lambda: pa.array(_inner_indexes(offsets), pa.int32()),
        "value": lambda: pa.array(payloads, pa.binary()),
        "crc": lambda: pa.array(map(crc32, payloads), pa.int64()),
    }
    arrays = {name: make[name]() for name in names if name in make}
    return Columns(len(offsets), arrays, found.valid_bytes, found.fault)


def _inner_indexes(offsets: Sequence[int]) -> list[int]:
    """Number the messages that share an offset, those of one wrapper, from 0."""
    if len(set(offsets)) == len(offsets):
        return [0] * len(offsets)
    indexes = [0]
    for earlier, later in pairwise(offsets):
        indexes.append(indexes[-1] + 1 if earlier == later else 0)
    return indexes[: len(offsets)]


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
        return self._batch(columns.row_count, columns.arrays, is_good=True)

    def single(
        self, offset: int, next_offset: int, value: bytes | None, crc: int | None, *, is_good: bool
    ) -> pa.RecordBatch:
        """Return a batch with the one row that stands for a message the codec refuses.

        Args:
            offset: where it starts.
            next_offset: where to read on.
            value: the payload as it is stored; None where nothing can be told from the rest.
            crc: the CRC as it is stored.
            is_good: whether it passes for a valid message.
        """
        row: dict[str, object] = {"offset": offset, "next_offset": next_offset, "inner_index": 0}
        row |= {"value": value, "crc": crc}
        names = [field for field in self.schema if field.name in row]
        arrays = {field.name: pa.array([row[field.name]], field.type) for field in names}
        return self._batch(1, arrays, is_good=is_good)

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
