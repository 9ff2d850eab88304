"""The task reader: a range of bytes in, Arrow batches out.

Runs on executors. The same range gives the same rows in each attempt. Bytes come from a broker or
from segment files, in chunks that end anywhere; the codec decodes message sets to columns, so that
no message goes through Python. After damage, the rest of the range is read from a temporary file,
as the search for the next message goes back and forth.

Damage is an `InvalidMessageError`, unless `crc` is `mark` or `skip`. Bytes deleted since the read
was planned are a `DataLossError`.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Collection, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from broker import errors
from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.log.offline.segments import is_archive, open_segment
from broker.log.scan import find_entry, looks_like_entry, read_header
from broker.log.segment import SegmentFile
from broker.protocol import codec
from broker.protocol.codec import Columns, CrcCheck, Fault
from broker.protocol.envelope import MAGIC, Envelope, open_envelope
from broker.protocol.message import COLUMN_NAMES, entry_bytes, has_length
from broker.protocol.message_set import describe_fault
from broker.protocol.primitives import Buffer
from broker.spark.options import Crc
from broker.spark.reading import loss
from broker.spark.reading.columns import MAX_BATCH_BYTES, Repeated, TaskSettings
from broker.spark.reading.fetching import fetch_chunks, log_start
from broker.spark.reading.ranges import (
    ByteRange,
    LeaderAddress,
    Location,
    LogFile,
    ReadTask,
    RecordFiles,
)
from broker.spark.reading.report import Cause, Omission, OmissionReport
from broker.spark.runtime.workers import keep_imports
from broker.topic import MessagePosition, TopicPartition

_Batches = Generator[pa.RecordBatch, None, Fault]
"""Yields batches; returns why it ended: `NONE` at the end of the range."""


def read_task(
    task: ReadTask, settings: TaskSettings, report: OmissionReport | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the messages of a range; omissions go to `report`, by default to `report_path`."""
    keep_imports()
    report = report or OmissionReport(settings.options.report_path)
    try:
        if isinstance(task.location, RecordFiles):
            from broker.spark.reading.record_reader import read_records  # late: few reads need it

            yield from read_records(task, settings, report)
        elif settings.options.decode is None or "value" not in settings.schema.names:
            yield from _TaskReader(task, settings, report).batches()
        else:
            yield from _decoded_batches(task, settings, report)
    finally:
        report.write()


def _decoded_batches(
    task: ReadTask, settings: TaskSettings, report: OmissionReport
) -> Iterator[pa.RecordBatch]:
    from broker.spark.reading import decoding  # late: few reads decode

    options, schema = settings.options, settings.schema
    more = [name for name in decoding.PLACES if name not in schema.names]
    wide = pa.schema([*schema, *(pa.field(name, pa.int64(), nullable=False) for name in more)])
    reader = decoding.PayloadReader(options, options.reader_schema)
    for batch in _TaskReader(task, replace(settings, schema=wide), report).batches():
        rows = decoding.decoded(batch, reader, task.range.partition, options.crc, report)
        yield rows.select(schema.names)


class _TaskReader:
    """Reads one range, from front to back; `_position` is where the next message starts."""

    def __init__(self, task: ReadTask, settings: TaskSettings, report: OmissionReport) -> None:
        self._range = task.range
        assert not isinstance(task.location, RecordFiles)
        self._location = task.location
        self._options = settings.options
        self._maker = BatchMaker(task.range.partition, settings.schema)
        self._report = report
        self._position = task.range.start

    def batches(self) -> Iterator[pa.RecordBatch]:
        fault = yield from self._good_batches_despite_loss()
        if not fault:
            return
        if self._options.crc in (Crc.FAIL, Crc.OFF):
            raise errors.InvalidMessageError(
                f"{self._range.partition}: {describe_fault(fault, self._position)}; "
                "crc=skip leaves it out, crc=mark shows it"
            )
        with tempfile.NamedTemporaryFile(prefix="pylog-damage-") as file:
            rest = self._rest()
            for chunk in read_chunks(self._location, rest, self._options.fetch_bytes):
                file.write(chunk.data)
            file.flush()
            copy = LogFile(Path(file.name), rest.start, rest.end)
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            while fault:
                damage = _damage_at(copy, self._position, fault)
                self._position = damage.end
                yield from self._rows_of(damage)
                fault = yield from self._batches_of(view[self._position - rest.start :])

    def _rest(self) -> ByteRange:
        return replace(self._range, start=self._position)

    def _good_batches_despite_loss(self) -> _Batches:
        while True:
            try:
                return (yield from self._good_batches(self._location))
            except errors.DataLossError as error:
                if self._options.fail_on_data_loss or not self._skip_lost(error.next_offset):
                    raise

    def _skip_lost(self, next_offset: int) -> bool:
        """Advance to the next offset, or the log start offset; return False if it is not ahead."""
        if not isinstance(self._location, LeaderAddress):
            return False
        rest = self._rest()
        first = max(next_offset, log_start(self._location, rest.partition))
        if first <= rest.start:
            return False
        self._position = min(first, rest.end)
        self._report.add(loss.deleted_before_read(rest.partition, rest.start, self._position))
        return True

    def _good_batches(self, location: Location) -> _Batches:
        """Read valid messages from the position up to the first damage."""
        if not isinstance(location, LeaderAddress):
            assert not isinstance(location, RecordFiles)
            return (yield from self._good_batches_of_files(location))
        reader = PartitionReader(self._range.partition, MessagePosition(self._position))
        for chunk in read_chunks(location, self._rest(), self._options.fetch_bytes):
            reader.add(chunk)
            fault = yield from self._batches_of(reader.data)
            reader.take(self._position - reader.offset)
            if fault and not self._is_cut(fault, reader.data):
                return fault
        return Fault.PARTIAL if len(reader.data) else Fault.NONE

    def _good_batches_of_files(self, files: tuple[LogFile, ...]) -> _Batches:
        """Read valid messages from files, each from a message's start: no chunks are joined."""
        source = _Files(files, self._range)
        size = self._options.fetch_bytes
        # one for all chunks: to be given new memory for each takes longer than their CRCs
        buffer = memoryview(bytearray(size))
        while self._position < self._range.end:
            if len(buffer) < size:
                buffer = memoryview(bytearray(size))
            start = self._position
            data = buffer[: source.read_into(buffer[:size], start)]
            fault = yield from self._batches_of(data)
            rest = data[self._position - start :]
            if fault and not self._is_cut(fault, rest):
                return fault
            size = self._options.fetch_bytes
            if self._position == start:  # a message larger than `size`
                if start + len(data) == self._range.end:
                    return Fault.PARTIAL
                size = max(2 * len(data), entry_bytes(rest) if has_length(rest) else 0)
        return Fault.NONE

    def _batches_of(self, view: memoryview) -> _Batches:
        """Decode the whole messages at the position, and advance the position past them."""
        checks_crc = self._options.crc is not Crc.OFF
        taken = 0
        while True:
            found = decode(
                view[taken:], self._position, checks_crc=checks_crc, columns=self._maker.sources
            )
            taken += found.valid_bytes
            self._position += found.valid_bytes
            if found.message_count:
                yield self._maker.batch(found)
            if found.fault or taken == len(view):
                return found.fault

    def _is_cut(self, fault: Fault, rest: Buffer) -> bool:
        """Return whether a fault may only be a message that continues in the next chunk."""
        if fault is not Fault.PARTIAL:
            return False
        return not has_length(rest) or self._position + entry_bytes(rest) <= self._range.end

    def _rows_of(self, damage: _Damage) -> Iterator[pa.RecordBatch]:
        if self._options.crc is Crc.MARK:
            yield self._maker.damaged(damage)
            return
        text = f"{describe_fault(damage.fault, damage.start)}: left out up to {damage.end}"
        partition = self._range.partition
        self._report.add(Omission(Cause.CORRUPT, partition, damage.start, damage.end, text))


def read_chunks(location: Location, whole: ByteRange, fetch_bytes: int) -> Iterator[Chunk]:
    """Read the chunks of a range, in order; none is empty."""
    if isinstance(location, LeaderAddress):
        return fetch_chunks(location, whole, fetch_bytes)
    assert not isinstance(location, RecordFiles)
    return _read_files(location, whole, fetch_bytes)


def _read_files(files: tuple[LogFile, ...], whole: ByteRange, fetch_bytes: int) -> Iterator[Chunk]:
    source = _Files(files, whole)
    offset = whole.start
    while offset < whole.end:
        buffer = memoryview(bytearray(fetch_bytes))
        data = buffer[: source.read_into(buffer, offset)]
        yield Chunk(whole.partition, offset, data)
        offset += len(data)


class _Files:
    """The bytes of a range in segment files."""

    def __init__(self, files: tuple[LogFile, ...], whole: ByteRange) -> None:
        self._files = files
        self._whole = whole
        self._open: tuple[LogFile, SegmentFile] | None = None  # the file that was read last

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill a buffer from an offset, at most up to the end of the range; return its bytes."""
        size, done = min(len(buffer), self._whole.end - offset), 0
        while done < size:
            done += self._read_one(buffer[done:size], offset + done)
        return size

    def _read_one(self, buffer: memoryview, offset: int) -> int:
        one = next(file for file in self._files if offset < file.end_offset)
        try:
            if self._open is None or self._open[0] is not one:
                self._open = one, _opened(one)
            part = buffer[: one.end_offset - offset]
            count = os.preadv(self._open[1].fd, [part], offset - one.base_offset)
        except FileNotFoundError as error:
            raise errors.DataLossError(
                f"{self._whole.partition}: {one.path} is gone since the read was planned"
            ) from error
        except OSError as error:
            raise errors.StorageError(f"cannot read {one.path}: {error.strerror}") from error
        if not count:
            raise errors.LogCorruptError(
                f"{one.path} ends at offset {offset} of {self._whole.partition}; "
                f"it had {one.end_offset} when the read was planned"
            )
        return count


def _opened(one: LogFile) -> SegmentFile:
    file = open_segment(one.path)
    planned, found = one.end_offset - one.base_offset, os.fstat(file.fd).st_size
    if is_archive(one.path) and found != planned:
        raise errors.LogCorruptError(
            f"{one.path} unpacks to {found} bytes, but its last four bytes state {planned}; "
            "unpack it to read it"
        )
    return file


class _Damage(NamedTuple):
    """Bytes that are not a valid message, from `start` up to the next one that may be valid."""

    fault: Fault
    start: int
    end: int
    payload: bytes | None  # None, like `crc`, if the length of the message is not credible
    crc: int | None  # as stored


def _damage_at(copy: LogFile, offset: int, fault: Fault) -> _Damage:
    """Return the damage that starts at an offset of `copy`, the rest of a range as a file."""
    file = SegmentFile(copy.path)  # owns the descriptor
    fd = file.fd
    position, size = offset - copy.base_offset, copy.end_offset - copy.base_offset
    header = read_header(fd, position)
    is_chained = (
        header is not None
        and header.end <= size
        and (
            fault is Fault.COMPRESSED
            or (fault in (Fault.CRC, Fault.CODEC) and looks_like_entry(fd, header.end, size))
        )
    )
    if header is None or not is_chained:
        resumed = find_entry(fd, position + 1, size) or size
        return _Damage(fault, offset, copy.base_offset + resumed, None, None)
    payload = os.pread(fd, header.end - header.payload_position, header.payload_position)
    return _Damage(fault, offset, copy.base_offset + header.end, payload, header.crc)


def decode(
    buffer: Buffer, base_offset: int, *, checks_crc: bool, columns: Collection[str] = COLUMN_NAMES
) -> Columns:
    """Return the messages at the start of a message set as columns, compressed ones unfolded.

    `buffer` starts with an entry, at `base_offset`; a partial entry at its end is not decoded. If
    there are more messages than a batch may have, there is no fault, and `valid_bytes` is less than
    the size of the buffer.
    """
    return codec.decode_columns(
        buffer,
        base_offset,
        crc_check=CrcCheck.STOP if checks_crc else CrcCheck.OFF,
        max_value_bytes=MAX_BATCH_BYTES,
        columns=columns,
    )


_SOURCES = {
    "offset": (pa.int64(), ("offsets",)),
    "next_offset": (pa.int64(), ("next_offsets",)),
    "inner_index": (pa.int32(), ("inners",)),
    "crc": (pa.uint32(), ("crcs",)),
    "value": (pa.binary(), ("value_offsets", "values")),
}
"""Which of `Columns` a column of the data source is made of, and the type that they have."""
_VALUE = pa.field("value", pa.binary())
ENVELOPE_TYPE = pa.struct([
    ("timestamp", pa.timestamp("us", "UTC")), ("host", pa.string()), ("producer", pa.string()),
    ("sequence", pa.int64()),
])  # fmt: skip


def _fields(envelope: Envelope) -> dict[str, object]:
    """Return an envelope as the column has it."""
    time_us, host, producer, sequence = envelope
    named = {"host": host, "producer": f"{producer:08x}", "sequence": sequence}
    return {"timestamp": time_us, **named}


def _array(columns: Columns, field: pa.Field) -> pa.Array:
    kind, names = _SOURCES[field.name]
    buffers = [None, *(pa.py_buffer(getattr(columns, name)) for name in names)]
    made = pa.Array.from_buffers(kind, columns.message_count, buffers)
    return made if kind == field.type else made.cast(field.type)


class BatchMaker:
    """Makes Arrow batches of the messages of one partition."""

    def __init__(self, partition: TopicPartition, schema: pa.Schema) -> None:
        self.schema = schema
        needed = {"value" if name == "envelope" else name for name in schema.names}
        stored = [name for name in _SOURCES if name in needed]
        self.sources = [one for name in stored for one in _SOURCES[name][1]]
        self._names = {"topic": Repeated(partition.topic), "partition": Repeated(partition.name)}

    def batch(self, columns: Columns) -> pa.RecordBatch:
        """Return valid messages as a batch."""
        fields = [field for field in self.schema if field.name in _SOURCES]
        arrays = {field.name: _array(columns, field) for field in fields}
        if MAGIC in columns.values:
            arrays |= self._opened(_array(columns, _VALUE).to_pylist())
        return self._batch(columns.message_count, arrays, is_good=True)

    def _opened(self, stored: list[bytes]) -> dict[str, pa.Array]:
        """Return the columns of messages some of which may have an envelope."""
        envelopes, values = zip(*map(open_envelope, stored), strict=True)
        arrays = {"value": pa.array(values, pa.binary())}
        if "envelope" in self.schema.names:
            found = [None if one is None else _fields(one) for one in envelopes]
            arrays["envelope"] = pa.array(found, ENVELOPE_TYPE)
        return arrays

    def damaged(self, damage: _Damage) -> pa.RecordBatch:
        """Return a batch with the one row that stands for damage."""
        row: dict[str, object] = {
            "offset": damage.start,
            "next_offset": damage.end,
            "inner_index": 0,
            "value": damage.payload,
            "crc": damage.crc,
        }
        names = [field for field in self.schema if field.name in row]
        arrays = {field.name: pa.array([row[field.name]], field.type) for field in names}
        return self._batch(1, arrays, is_good=False)

    def _batch(self, count: int, arrays: dict[str, pa.Array], *, is_good: bool) -> pa.RecordBatch:
        for field in self.schema:
            if field.name in self._names:
                arrays[field.name] = self._names[field.name].column(count)
            elif field.name == "crc_ok":
                arrays[field.name] = pa.repeat(pa.scalar(is_good), count)
            elif field.name not in arrays:  # there is no envelope
                arrays[field.name] = pa.nulls(count, field.type)
        made = [arrays[name] for name in self.schema.names]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)
