"""A task of a load: writes a byte range to files, and accounts for every byte.

Runs on executors. A task that is run again reads the same bytes and writes files with other names;
the commit keeps the files of the attempt that succeeded.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from broker.errors import BrokerError, ConfigError, InvalidMessageError, LogCorruptError
from broker.spark.loading.avro import SchemaRegistry, to_json
from broker.spark.loading.dates import NO_DATE, DateRule, load_time
from broker.spark.loading.files import FileFormat, RangeFiles
from broker.spark.loading.output import LoadedFile, PartitionLoad
from broker.spark.options import Crc, ReadOptions
from broker.spark.reading.columns import HEADERS_TYPE, TaskSettings
from broker.spark.reading.decoding import PayloadReader
from broker.spark.reading.ranges import ByteRange, ReadTask, RecordFiles
from broker.spark.reading.report import Cause, Omission, OmissionReport, bounded
from broker.spark.reading.task_reader import ENVELOPE_TYPE, decode, read_chunks, read_task

_ROWS = pa.schema({
    "partition": pa.string(), "offset": pa.int64(), "next_offset": pa.int64(),
    "inner_index": pa.int32(), "crc": pa.int64(), "value": pa.binary(),
})  # fmt: skip

_RECORDS = pa.schema({
    "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", "UTC"),
    "timestampType": pa.int32(), "key": pa.binary(), "headers": HEADERS_TYPE, "value": pa.binary(),
})  # fmt: skip
"""The columns of Kafka's records."""

_OPENED = pa.schema([*list(_ROWS)[:-1], ("envelope", ENVELOPE_TYPE), _ROWS.field("value")])

# of a buffer: `pa.scalar` imports pandas, where that is installed
_ONE = pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(array("i", [1]))])[0]


_Decoded = tuple[int | None, Any]  # the id of its schema and a value; None twice for a null


@dataclass(frozen=True, slots=True)
class RowSettings:
    """How all tasks of a load make rows of messages."""

    dates: DateRule
    schemas: Path | None  # directory of Avro schemas; None to copy payloads unchanged
    avro_reader: int | None  # id of the schema that records are resolved to; None to write JSON
    decodes: bool  # by the schemas of brokers
    reader: int | None  # id of the schema that their values are resolved to
    read: TaskSettings  # with `crc` `skip`, undecodable messages are omitted, too


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadParameters:
    """The parameters that loads into files and into tables share.

    Attributes:
        group: name of the consumer of these loads; a directory or table belongs to one group.
        dates: determines the day of a message; default: the day of the load.
        schemas: directory with `<id>.avsc` for Avro payloads, which become JSON; None to copy
            payloads unchanged.
        avro_reader: id of the schema that all Avro records are resolved to; values then have its
            type instead of JSON (in files: `parquet` only).
        decodes: make JSON of payloads by the schemas that brokers have; not with `schemas`.
        reader: with `decodes`: id of the schema that values are resolved to.
        skips_corrupt: omit messages that are damaged or cannot be decoded, and record that.
        opens_envelopes: add a column `envelope`; payloads never include envelopes.
    """

    group: str = "load"
    dates: DateRule = field(default_factory=load_time)
    schemas: Path | None = None
    avro_reader: int | None = None
    decodes: bool = False
    reader: int | None = None
    skips_corrupt: bool = False
    opens_envelopes: bool = False

    @property
    def row_layout(self) -> dict[str, str]:
        """Return how a load stores messages, as its layout has it."""
        payload = "bytes" if self.schemas is None else "avro"
        if self.schemas is not None and self.avro_reader is not None:
            payload = f"avro of schema {self.avro_reader}"
        if self.decodes:
            payload = "decoded" if self.reader is None else f"decoded by schema {self.reader}"
        layout = {"group": self.group, "payload": payload, "date": self.dates.text}
        return layout | {"envelope": "column"} if self.opens_envelopes else layout

    def row_settings(self, options: ReadOptions, *, has_records: bool = False) -> RowSettings:
        """Return how the tasks of a load make rows of what is read with `options`.

        With `has_records` it is Kafka's records.
        """
        if has_records and self.opens_envelopes:
            raise ConfigError("Kafka's records have no envelopes, but a timestamp and headers")
        crc = Crc.SKIP if self.skips_corrupt else Crc.FAIL
        # without bounds, which tasks have no use for, and which may not be pickled
        read = replace(options.between({}, {}), crc=crc, report_path=None, decode=None)
        schemas = None if self.schemas is None else self.schemas.absolute()
        schema = _OPENED if self.opens_envelopes else _ROWS
        task = TaskSettings(_RECORDS if has_records else schema, read)
        return RowSettings(self.dates, schemas, self.avro_reader, self.decodes, self.reader, task)


class TaskResult(NamedTuple):
    """The range a task has loaded, and the files it has written."""

    part: PartitionLoad
    files: tuple[LoadedFile, ...]


def load_range(
    task: ReadTask, directory: Path, file_format: FileFormat, settings: RowSettings
) -> TaskResult:
    """Write the messages of a range into files of a directory that all executors share."""
    files = RangeFiles(directory, task.range, file_format)
    rows = RangeRows(task, settings)
    try:
        for day, batch in rows:
            files.add(day, batch)
        done = files.finish()
    finally:
        files.close()
    return TaskResult(rows.part, done)


class RangeRows:
    """The messages of a range as rows by their day, with an account of every byte.

    Iterate once, to the end; then `part` has the account. A byte that is neither loaded nor
    reported as omitted is a `LogCorruptError`. The columns are those of `_ROWS` or `_OPENED`, or of
    `_RECORDS`, whose offsets have gaps, so that only the reader can tell that none is missing.
    """

    def __init__(self, task: ReadTask, settings: RowSettings) -> None:
        self._task = task
        self._source = task.range
        self._settings = settings
        self._dates = settings.dates
        self._registry: SchemaRegistry | PayloadReader | None = None
        if settings.decodes:
            self._registry = PayloadReader(settings.read.options, settings.reader)
        elif settings.schemas is not None:
            self._registry = SchemaRegistry(settings.schemas, settings.avro_reader)
        self.part = PartitionLoad(self._source.partition, self._source.start, self._source.end)
        self._undecodable = OmissionReport(None)

    def __iter__(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        chain = Chain(self._source)
        report = OmissionReport(None)
        has_records = isinstance(self._task.location, RecordFiles)
        for batch in read_task(self._task, self._settings.read, report):
            if not has_records:
                chain.add(batch)
            yield from self._convert(batch)
        if not has_records:
            chain.finish(report.omissions, self._has_no_message)
        left_out = bounded((*report.omissions, *self._undecodable.omissions))
        self.part = replace(self.part, left_out=tuple(left_out))

    def _has_no_message(self, gap: ByteRange) -> bool:
        """Return whether bytes are valid without having a message: wrappers can be empty."""
        fetch_bytes = self._settings.read.options.fetch_bytes
        chunks = read_chunks(self._task.location, gap, fetch_bytes)
        found = decode(b"".join(chunk.data for chunk in chunks), gap.start, checks_crc=True)
        return found.message_count == 0 and found.valid_bytes == gap.size_bytes

    def _convert(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Count a batch, and return its rows by their day."""
        records = None
        if self._registry is not None:
            batch, records = self._decodable(batch, self._registry)
        value = batch.column("value")
        payload_bytes = pc.sum(pc.binary_length(value)).as_py() or 0
        self.part = replace(
            self.part,
            message_count=self.part.message_count + batch.num_rows,
            payload_bytes=self.part.payload_bytes + payload_bytes,
            crc_sum=self.part.crc_sum + _crc_sum(batch),
        )
        rows = batch
        if self._registry is not None and records is not None:
            rows = _with_records(batch, records, self._registry.value_type)
        if self._dates.is_fixed:
            return iter([(self._dates.load_day, rows)])
        decoded = [None] * batch.num_rows if records is None else [one for _, one in records]
        days = (
            NO_DATE if payload is None else self._dates.day_of(payload, record)
            for payload, record in zip(value.to_pylist(), decoded, strict=True)
        )
        return _by_day(rows, list(days))

    def _decodable(
        self, batch: pa.RecordBatch, registry: SchemaRegistry | PayloadReader
    ) -> tuple[pa.RecordBatch, list[_Decoded]]:
        """Return the rows whose payload is null or can be decoded, and their records."""
        records: list[_Decoded] = []
        is_good: list[bool] = []
        for number, payload in enumerate(batch.column("value").to_pylist()):
            try:
                records.append((None, None) if payload is None else registry.decode(payload))
                is_good.append(True)
            except (InvalidMessageError, ConfigError) as error:
                self._refuse(batch.slice(number, 1).to_pylist()[0], error)
                is_good.append(False)
        if len(records) < batch.num_rows:
            batch = batch.filter(pa.array(is_good))
        return batch, records

    def _refuse(self, row: Mapping[str, Any], error: BrokerError) -> None:
        """Record an undecodable message as omitted; fail unless corrupt ones are skipped."""
        if self._settings.read.options.crc is not Crc.SKIP:
            where = f"{self._source.partition}: the message at {row['offset']}"
            raise type(error)(f"{where}: {error}") from error
        start = row["offset"]
        end = row.get("next_offset", start + 1)
        text = f"the message at {start} is left out: {error}"
        self._undecodable.add(Omission(Cause.UNDECODABLE, self._source.partition, start, end, text))


def _crc_sum(batch: pa.RecordBatch) -> int:
    if "crc" not in batch.schema.names:
        return 0
    return pc.sum(batch.column("crc")).as_py() or 0


def _with_records(
    batch: pa.RecordBatch, records: Sequence[_Decoded], value_type: pa.DataType | None
) -> pa.RecordBatch:
    """Return rows with decoded records, typed or as JSON, in place of payloads."""
    if value_type is None:
        texts = (None if number is None else to_json(one) for number, one in records)
        value = pa.array(texts, pa.string())
    else:
        value = pa.array([one for _, one in records], value_type)
    schema_id = pa.array([one for one, _ in records], pa.int32())
    columns = [*batch.columns[:-1], schema_id, value]
    return pa.RecordBatch.from_arrays(columns, [*batch.schema.names[:-1], "schema_id", "value"])


def _by_day(batch: pa.RecordBatch, days: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    different = dict.fromkeys(days)
    if len(different) == 1:
        yield days[0], batch
        return
    column = pa.array(days, pa.string())
    for day in different:
        yield day, batch.filter(pc.equal(column, day))


class Chain:
    """Validates by the offsets of rows that every byte of a range was read or omitted."""

    def __init__(self, source: ByteRange) -> None:
        self._source = source
        self._position = source.start
        self._gaps: list[tuple[int, int]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Follow the rows of a batch, in their order."""
        if not batch.num_rows:
            return
        offset, following = batch.column("offset"), batch.column("next_offset")
        inner = batch.column("inner_index")
        here, before = slice(1, None), slice(0, batch.num_rows - 1)
        is_next = pc.equal(offset[here], following[before])
        # messages of a wrapper share its offset
        is_inner = pc.and_(
            pc.equal(offset[here], offset[before]),
            pc.equal(inner[here], pc.add(inner[before], _ONE)),
        )
        self._jump(self._position, offset[0].as_py())
        for row in pc.indices_nonzero(pc.invert(pc.or_(is_next, is_inner))).to_pylist():
            self._jump(following[row].as_py(), offset[row + 1].as_py())
        self._position = following[-1].as_py()

    def finish(
        self, omitted: Iterable[Omission], has_no_message: Callable[[ByteRange], bool]
    ) -> None:
        """Validate that the range was read to its end; a gap is an omission or has no message."""
        self._jump(self._position, self._source.end)
        missing = _without_neighbours((one.start, one.end) for one in omitted)
        for start, end in self._gaps:
            gap = ByteRange(self._source.partition, start, end)
            if (start, end) not in missing and not has_no_message(gap):
                raise LogCorruptError(
                    f"{self._source}: there are no messages from {start} to {end}, "
                    "and no omission was reported"
                )

    def _jump(self, reached: int, offset: int) -> None:
        if offset < reached:
            raise LogCorruptError(
                f"{self._source}: a row ends at {reached}, and the next one starts at {offset}"
            )
        if offset > reached:
            self._gaps.append((reached, offset))


def _without_neighbours(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Join adjacent spans."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return set(joined)
