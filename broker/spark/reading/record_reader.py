"""The reader of Kafka's records in segment files: a task's parts of files in, Arrow batches out.

Runs on executors, as `task_reader` for messages of 0.7. The codec decodes record batches to
columns. Control records and those of aborted transactions are left out, as consumers that read
committed records see none of them.

A damaged batch is an `InvalidMessageError`, unless `crc` is `skip`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from broker import errors
from broker.log import batches
from broker.log.aborted import AbortedTransactions
from broker.log.offline.segments import archived_base_offset_of, open_segment
from broker.protocol import codec
from broker.protocol.codec import Fault, RecordBatch, RecordColumns
from broker.protocol.message_set import describe_fault
from broker.spark.options import Crc
from broker.spark.reading.columns import (
    HEADERS_TYPE,
    MAX_BATCH_BYTES,
    Repeated,
    TaskSettings,
    constant,
)
from broker.spark.reading.ranges import FilePart, ReadTask, RecordFiles
from broker.spark.reading.report import Cause, Omission, OmissionReport
from broker.topic import TopicPartition

_TIME_TYPE = pa.timestamp("us", "UTC")
_MAX_MS = (2**63 - 1) // 1000  # of a time in microseconds
_NO_TIME_TYPE = -1

_SOURCES = {
    "offset": ("offsets",),
    "timestamp": ("timestamps",),
    "key": ("key_validity", "key_offsets", "keys"),
    "value": ("value_validity", "value_offsets", "values"),
    "headers": (
        "header_offsets", "header_key_offsets", "header_keys", "header_value_offsets",
        "header_values", "header_value_validity",
    ),
}  # fmt: skip
"""Which of `RecordColumns` a column of the data source is made of."""


def read_records(
    task: ReadTask, settings: TaskSettings, report: OmissionReport
) -> Iterator[pa.RecordBatch]:
    """Read the records of a task; damage that is left out is added to the report."""
    assert isinstance(task.location, RecordFiles)
    reader = _RecordReader(task, task.location, settings, report)
    for part in task.location.parts:
        try:
            yield from reader.batches_of(part)
        except FileNotFoundError as error:
            raise errors.DataLossError(
                f"{task.range.partition}: {part.path} is gone since the read was planned"
            ) from error
        except OSError as error:
            raise errors.StorageError(f"cannot read {part.path}: {error.strerror}") from error


class _Run(NamedTuple):
    """Adjoining batches of a block, whose records have the same `timestampType`."""

    start: int
    end: int
    time_type: int


class _RecordReader:
    """Reads parts of files, one after the other.

    `_next` is the offset behind the last batch of the task, `_least` the same of the file.
    """

    def __init__(
        self, task: ReadTask, files: RecordFiles, settings: TaskSettings, report: OmissionReport
    ) -> None:
        self._partition = task.range.partition
        self._wanted = files.wanted
        self._next = task.range.start
        self._least = 0
        self._aborted = AbortedTransactions(files.aborted)
        self._skips = settings.options.crc is Crc.SKIP
        self._maker = RecordMaker(self._partition, settings.schema)
        self._report = report

    def batches_of(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Read one part of a file, from front to back."""
        file = open_segment(part.path)
        size = os.fstat(file.fd).st_size
        budget = batches.SearchBudget(size)
        position = part.start
        self._least = archived_base_offset_of(part.path) or 0
        while position < part.end:
            position, fault = yield from self._good_batches(file.fd, position, part)
            if not fault:
                return
            head = batches.read_head(file.fd, position)
            reason = describe_fault(fault, position)
            if fault is Fault.OFFSETS and head is not None:
                reason = (
                    f"the batch at {position} has {head.record_count} records with offsets "
                    f"{head.base_offset}..{head.last_offset}, and {self._least}.."
                    f"{part.end_offset - 1} are free between the batches and files around it"
                )
            text = f"{part.path}, at offset {self._next}: {reason}"
            if not self._skips:
                raise errors.InvalidMessageError(
                    f"{self._partition}: {text}; crc=skip leaves it out"
                )
            start = position
            position = batches.resume_behind(file.fd, position, size, fault, budget)
            position = min(part.end, position)
            head = batches.read_head(file.fd, position) if position < part.end else None
            behind = min(part.end_offset, self._wanted.end)
            resumed = max(self._next, behind if head is None else min(behind, head.base_offset))
            ends, omitted_bytes = (self._next, resumed), position - start
            text = f"{text}: left out up to position {position}"
            self._report.add(
                Omission(Cause.CORRUPT, self._partition, *ends, text, omitted_bytes=omitted_bytes)
            )
            self._next = resumed

    def _good_batches(
        self, fd: int, position: int, part: FilePart
    ) -> Generator[pa.RecordBatch, None, tuple[int, Fault]]:
        """Read valid batches up to the first damage; return its position and fault."""
        for block in batches.scan_batch_blocks(fd, position, part.end):
            position = block.end
            heads = self._rising(block.scan.batches, part.end_offset)
            for run in self._runs_of(heads):
                taken = run.start
                while taken < run.end:
                    found = codec.decode_record_columns(
                        block.data[taken : run.end],
                        max_bytes=MAX_BATCH_BYTES,
                        columns=self._maker.sources,
                    )
                    taken += found.valid_bytes
                    if found.record_count:
                        yield from self._wanted_rows(found, run.time_type)
                    if found.fault:
                        self._pass([one for one in heads if one.end <= taken])
                        return block.position + taken, found.fault
            self._pass(heads)
            if len(heads) < len(block.scan.batches):
                return block.position + block.scan.batches[len(heads)].position, Fault.OFFSETS
            if block.scan.fault:
                return position, block.scan.fault
        return position, Fault.PARTIAL if position < part.end else Fault.NONE

    def _rising(self, found: Sequence[RecordBatch], end_offset: int) -> Sequence[RecordBatch]:
        """Return the batches before the first whose offsets, which no CRC covers, do not rise."""
        least = self._least
        for number, head in enumerate(found):
            if not least <= head.base_offset < head.next_offset <= end_offset:
                return found[:number]
            least = head.next_offset
        return found

    def _pass(self, heads: Sequence[RecordBatch]) -> None:
        """Count batches as read."""
        if heads:
            self._least = heads[-1].next_offset
            self._next = max(self._next, self._least)

    def _runs_of(self, found: Sequence[RecordBatch]) -> Iterator[_Run]:
        for key, group in groupby(found, self._time_type_of):
            if key is not None:
                run = list(group)
                yield _Run(run[0].position, run[-1].end, key)

    def _time_type_of(self, head: RecordBatch) -> int | None:
        """Return the `timestampType` of a batch; None if its records are left out."""
        if head.is_control or head in self._aborted:
            return None
        return int(head.has_append_time) if head.magic else _NO_TIME_TYPE

    def _wanted_rows(self, columns: RecordColumns, time_type: int) -> Iterator[pa.RecordBatch]:
        made = self._maker.batch(columns, time_type)
        offsets = memoryview(columns.offsets).cast("q")
        start, end = self._wanted.start, self._wanted.end
        if offsets[0] < start or offsets[-1] >= end:
            made = made.filter(pa.array([start <= one < end for one in offsets], pa.bool_()))
        if made.num_rows:
            yield made


class RecordMaker:
    """Makes Arrow batches of the records of one partition."""

    def __init__(self, partition: TopicPartition, schema: pa.Schema) -> None:
        self._schema = schema
        self._topic = Repeated(partition.topic)
        self._index = partition.index
        needed = {"offset", *schema.names}
        self.sources = [one for name in _SOURCES if name in needed for one in _SOURCES[name]]

    def batch(self, columns: RecordColumns, time_type: int) -> pa.RecordBatch:
        """Return records as a batch."""
        arrays = [self._array(name, columns, time_type) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, columns: RecordColumns, time_type: int) -> pa.Array:
        count = columns.record_count
        match name:
            case "topic":
                return self._topic.column(count)
            case "partition":
                return constant(self._index, count)
            case "timestampType":
                return constant(time_type, count)
            case "timestamp":
                return _times(columns, time_type)
            case "headers":
                return _headers(columns)
        kind = pa.int64() if name == "offset" else pa.binary()
        found = [getattr(columns, one) for one in _SOURCES[name]]
        buffers = (
            [None, *map(pa.py_buffer, found)] if name == "offset" else map(pa.py_buffer, found)
        )
        return pa.Array.from_buffers(kind, count, list(buffers))


def _times(columns: RecordColumns, time_type: int) -> pa.Array:
    """Return times; null in format 0, which has none, and where Spark has no such time."""
    count = columns.record_count
    if time_type == _NO_TIME_TYPE:
        return pa.nulls(count, _TIME_TYPE)
    stored = [None, pa.py_buffer(columns.timestamps)]
    milliseconds = pa.Array.from_buffers(pa.timestamp("ms", "UTC"), count, stored)
    try:
        return milliseconds.cast(_TIME_TYPE)
    except pa.ArrowInvalid:
        times = memoryview(columns.timestamps).cast("q")
        known = (one * 1000 if abs(one) <= _MAX_MS else None for one in times)
        return pa.array(known, pa.int64()).cast(_TIME_TYPE)


def _headers(columns: RecordColumns) -> pa.Array:
    """Return headers, null where there are none, as Spark's Kafka source has them."""
    count = len(columns.header_key_offsets) // 4 - 1
    stored = [None, pa.py_buffer(columns.header_key_offsets), pa.py_buffer(columns.header_keys)]
    if columns.header_keys.isascii():
        keys = pa.Array.from_buffers(pa.string(), count, stored)
    else:  # may be no UTF-8
        names = pa.Array.from_buffers(pa.binary(), count, stored).to_pylist()
        keys = pa.array([str(one, "utf-8", "replace") for one in names], pa.string())
    parts = columns.header_value_validity, columns.header_value_offsets, columns.header_values
    values = pa.Array.from_buffers(pa.binary(), count, list(map(pa.py_buffer, parts)))
    pairs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    rows, offsets = columns.record_count, pa.py_buffer(columns.header_offsets)
    lists = pa.Array.from_buffers(HEADERS_TYPE, rows, [None, offsets], children=[pairs])
    has_some = pc.list_value_length(lists).cast(pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [has_some, offsets], children=[pairs])
