"""What a task of a load does: a range of bytes in, files out, and an account of every byte.

Runs on executors. A task that is tried again reads the same bytes and writes other files; those of
the attempt that succeeds count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from broker.errors import BrokerError, ConfigError, InvalidMessageError, LogCorruptError
from broker.spark.avro import AvroRecord, SchemaRegistry, to_json
from broker.spark.dates import DateRule
from broker.spark.decode import decode
from broker.spark.load_files import FileFormat, RangeFiles
from broker.spark.manifest import LeftOut, LoadedFile, PartitionLoad
from broker.spark.options import Crc
from broker.spark.plans import ReadTask
from broker.spark.ranges import ByteRange
from broker.spark.reading import TaskSettings, read_task
from broker.spark.report import Omission, Report
from broker.spark.sources import read_bytes

_ROWS = pa.schema(
    [
        ("partition", pa.string()),
        ("offset", pa.int64()),
        ("next_offset", pa.int64()),
        ("inner_index", pa.int32()),
        ("crc", pa.int64()),
        ("value", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """What is the same for all tasks of a load.

    Attributes:
        directory: where the load is written; all executors must see it.
        file_format: kind of files.
        dates: tells the day of a message.
        schemas: directory of the schemas of Avro payloads; None for payloads that stay as they are.
        avro_reader: schema that gives Avro values their type; None to have them as JSON.
        skips_corrupt: leave damaged and undecodable messages out instead of failing.
        fail_on_data_loss: fail if a part of the range is gone since it was planned.
        fetch_bytes: how much to ask for at a time.
    """

    directory: Path
    file_format: FileFormat
    dates: DateRule
    schemas: Path | None
    avro_reader: int | None
    skips_corrupt: bool
    fail_on_data_loss: bool
    fetch_bytes: int


class TaskResult(NamedTuple):
    """What a task has written."""

    part: PartitionLoad
    files: tuple[LoadedFile, ...]


def load_range(task: ReadTask, settings: LoadSettings) -> TaskResult:
    """Write the messages of a range into files.

    Args:
        task: what to read, and where.
        settings: of the load.

    Raises:
        InvalidMessageError: a message is corrupt or cannot be decoded, and is not to be left out.
        LogCorruptError: there is a byte of the range that is neither loaded nor known to be left
            out.
        DataLossError: a part of the range is gone.
        BrokerError: the broker fails.
        OSError: a file cannot be read or written.
    """
    files = RangeFiles(settings.directory, task.range, settings.file_format)
    rows = _Rows(task.range, settings)
    chain = Chain(task.range)
    report = Report(None)
    try:
        for batch in read_task(task, _reading(settings), report):
            chain.add(batch)
            rows.write(batch, files)
        done = files.finish()
    finally:
        files.close()
    omitted = [left_out_of(omission) for omission in report.omissions]
    chain.check(omitted, lambda gap: _has_no_message(gap, task, settings))
    left_out = tuple(sorted([*omitted, *rows.undecodable], key=lambda one: one.start))
    part = PartitionLoad(
        task.range.partition,
        task.range.start,
        task.range.end,
        rows.message_count,
        rows.payload_bytes,
        rows.crc_sum,
        left_out,
    )
    return TaskResult(part, done)


def _reading(settings: LoadSettings) -> TaskSettings:
    return TaskSettings(
        schema=_ROWS,
        crc=Crc.SKIP if settings.skips_corrupt else Crc.FAIL,
        fail_on_data_loss=settings.fail_on_data_loss,
        fetch_bytes=settings.fetch_bytes,
        report_path=None,
    )


def left_out_of(omission: Omission) -> LeftOut:
    """Return what the account of a load says of an omission."""
    return LeftOut(omission.cause.value, omission.start, omission.end, omission.text)


def _has_no_message(gap: ByteRange, task: ReadTask, settings: LoadSettings) -> bool:
    """Return whether bytes are valid and hold nothing: compressed sets can be empty."""
    data = b"".join(data.data for data in read_bytes(task.place, gap, settings.fetch_bytes))
    found = decode(data, gap.start, checks_crc=True)
    return found.message_count == 0 and found.valid_bytes == gap.size_bytes


class _Rows:
    """Turns messages into rows of files, and counts them."""

    def __init__(self, source: ByteRange, settings: LoadSettings) -> None:
        self._source = source
        self._dates = settings.dates
        self._skips_corrupt = settings.skips_corrupt
        self._decode: Callable[[bytes], AvroRecord] | None = None
        self._value_type: pa.DataType | None = None
        if settings.schemas is not None:
            registry = SchemaRegistry(settings.schemas, settings.avro_reader)
            self._decode, self._value_type = registry.decode, registry.value_type
        self.message_count = 0
        self.payload_bytes = 0
        self.crc_sum = 0
        self.undecodable: list[LeftOut] = []

    def write(self, batch: pa.RecordBatch, files: RangeFiles) -> None:
        """Hand a batch on to the files, and count it."""
        records = None
        if self._decode is not None:
            batch, records = self._decodable(batch, self._decode)
        value = batch.column("value")
        self.message_count += batch.num_rows
        self.payload_bytes += pc.sum(pc.binary_length(value)).as_py() or 0
        self.crc_sum += pc.sum(batch.column("crc")).as_py() or 0
        days = self._days(value, records)
        rows = batch if records is None else self._with_records(batch, records)
        for day, part in _by_day(rows, days):
            files.add(day, part)

    def _decodable(
        self, batch: pa.RecordBatch, decode: Callable[[bytes], AvroRecord]
    ) -> tuple[pa.RecordBatch, list[AvroRecord]]:
        """Return the rows whose payload can be decoded, and what is in it."""
        records: list[AvroRecord] = []
        is_good: list[bool] = []
        for place, payload in enumerate(batch.column("value").to_pylist()):
            try:
                records.append(decode(payload))
                is_good.append(True)
            except (InvalidMessageError, ConfigError) as error:
                self._refuse(batch.slice(place, 1).to_pylist()[0], error)
                is_good.append(False)
        if len(records) < batch.num_rows:
            batch = batch.filter(pa.array(is_good))
        return batch, records

    def _refuse(self, row: Mapping[str, Any], error: BrokerError) -> None:
        """Note a message that cannot be decoded, or fail over it."""
        if not self._skips_corrupt:
            where = f"{self._source.partition}: the message at {row['offset']}"
            raise type(error)(f"{where}: {error}") from error
        left_out = LeftOut("undecodable", row["offset"], row["next_offset"], str(error))
        self.undecodable.append(left_out)

    def _with_records(self, batch: pa.RecordBatch, records: Sequence[AvroRecord]) -> pa.RecordBatch:
        """Return rows with decoded records, typed or as JSON, in place of payloads."""
        if self._value_type is None:
            value = pa.array([to_json(one.value) for one in records], pa.string())
        else:
            value = pa.array([one.value for one in records], self._value_type)
        schema_id = pa.array([one.schema_id for one in records], pa.int32())
        columns = [*batch.columns[:-1], schema_id, value]
        return pa.RecordBatch.from_arrays(columns, [*_ROWS.names[:-1], "schema_id", "value"])

    def _days(self, value: pa.Array, records: Sequence[AvroRecord] | None) -> list[str]:
        dates = self._dates
        if dates.is_fixed:
            return [dates.load_day] * len(value)
        if records is None:
            return [dates.day_of(payload) for payload in value.to_pylist()]
        pairs = zip(value.to_pylist(), records, strict=True)
        return [dates.day_of(payload, record.value) for payload, record in pairs]


def _by_day(batch: pa.RecordBatch, days: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    different = dict.fromkeys(days)
    if len(different) == 1:
        yield days[0], batch
        return
    column = pa.array(days, pa.string())
    for day in different:
        yield day, batch.filter(pc.equal(column, day))


class Chain:
    """Follows offsets from row to row: every byte of a range belongs to a message, or is told of.

    Args:
        source: the range.
    """

    def __init__(self, source: ByteRange) -> None:
        self._source = source
        self._position = source.start
        self._gaps: list[tuple[int, int]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Follow the rows of a batch, in their order.

        Raises:
            LogCorruptError: a row starts before the one before it ends.
        """
        if not batch.num_rows:
            return
        offset, following = batch.column("offset"), batch.column("next_offset")
        inner = batch.column("inner_index")
        here, before = slice(1, None), slice(0, batch.num_rows - 1)
        is_next = pc.equal(offset[here], following[before])
        # messages compressed together share the offset of their set
        is_inner = pc.and_(
            pc.equal(offset[here], offset[before]),
            pc.equal(inner[here], pc.add(inner[before], pa.scalar(1, pa.int32()))),
        )
        self._jump(self._position, offset[0].as_py())
        for place in pc.indices_nonzero(pc.invert(pc.or_(is_next, is_inner))).to_pylist():
            self._jump(following[place].as_py(), offset[place + 1].as_py())
        self._position = following[-1].as_py()

    def check(
        self, omitted: Iterable[LeftOut], has_no_message: Callable[[ByteRange], bool]
    ) -> None:
        """Check that the range was read to its end, and that all gaps have a reason.

        Args:
            omitted: what was reported to be left out.
            has_no_message: looks at bytes that gave no row.

        Raises:
            LogCorruptError: that is not so.
        """
        self._jump(self._position, self._source.end)
        missing = _without_neighbours((one.start, one.end) for one in omitted)
        for start, end in self._gaps:
            gap = ByteRange(self._source.partition, start, end)
            if (start, end) not in missing and not has_no_message(gap):
                raise LogCorruptError(
                    f"{self._source}: there are no messages from {start} to {end}, "
                    "and nothing says why"
                )

    def _jump(self, reached: int, offset: int) -> None:
        if offset < reached:
            raise LogCorruptError(
                f"{self._source}: a row ends at {reached}, and the next one starts at {offset}"
            )
        if offset > reached:
            self._gaps.append((reached, offset))


def _without_neighbours(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return spans, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return set(joined)
