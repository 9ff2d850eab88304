"""Loads into tables of Iceberg and Delta: each message once, offsets and data in one commit.

    request = TableLoadRequest(TableTarget("lake.logs.web", "iceberg"), options)
    run_table_load(spark, request)

The commit of a load has its number, layout and the end offsets of all partitions as a note (see
`tables`); the next load starts at the offsets of the newest note. A load that is killed has
committed all or nothing. Of two loads at the same time one is committed, and the other fails.

A table that has rows, and no note, is refused, unless the start of the read is given: notes go with
the commits, of which a table drops the oldest ones.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, DataType, StringType, StructType

from broker.clock import Clock, SystemClock
from broker.errors import ConfigError, OutputConflictError
from broker.spark import tables
from broker.spark.jobs import is_remote
from broker.spark.loading.avro import SchemaRegistry
from broker.spark.loading.dates import NO_DATE
from broker.spark.loading.output import Manifest, PartitionLoad, check_same_layout
from broker.spark.loading.plan import LoadPlan, plan_next
from broker.spark.loading.task import LoadParameters, RangeRows, RowSettings
from broker.spark.options import ReadOptions
from broker.spark.reading.ranges import ByteRange, Reached, ReadTask
from broker.spark.schema import RECORD_TYPES, TYPES

_VERSION = 1
_PARTITIONED_BY = "topic, date"
_COLUMNS: Mapping[str, str | DataType] = {
    "load": "long", "topic": "string", "partition": "string", "date": "date", "offset": "long",
    "next_offset": "long", "inner_index": "integer", "crc": "long",
}  # fmt: skip
_RECORD_COLUMNS: Mapping[str, str | DataType] = {
    "load": "long", "topic": "string", "partition": "integer", "date": "date", "offset": "long",
    "timestamp": "timestamp", "timestampType": "integer", "key": "binary",
    "headers": RECORD_TYPES["headers"],
}  # fmt: skip
_ADVICE = "name another table"


@dataclass(frozen=True, slots=True)
class TableLoadRequest(LoadParameters):
    """The parameters of a load into a table, with those of `LoadParameters`.

    Attributes:
        target: the table; made with partitions by topic and date if it does not exist.
        options: options of the read; their start applies to partitions that were never loaded.
        has_start: whether the start of the read was chosen for this load.
    """

    target: tables.TableTarget
    options: ReadOptions
    has_start: bool = False


def run_table_load(spark: SparkSession, request: TableLoadRequest) -> Manifest | None:
    """Load messages that the table does not have yet; return None if there are none.

    A load that fails commits nothing. The manifest names no files.
    """
    prepared = prepare_table_load(spark, request)
    return None if prepared.plan.is_empty else prepared.run()


def prepare_table_load(
    spark: SparkSession, request: TableLoadRequest, *, clock: Clock | None = None
) -> PreparedTableLoad:
    """Plan a load."""
    if is_remote(spark):
        raise ConfigError("a session of Spark Connect cannot load into a table")
    if request.avro_reader is not None and request.schemas is None:
        raise ConfigError("avro_reader needs schemas")
    _schema_of(request)  # reads the schemas of Avro
    tables.check_table(spark, request.target)
    state = _state_of(spark, request)
    plan = plan_next(request.options, state.number + 1, state.reached)
    again = [one.partition for one in plan.read.ranges if one.partition in plan.known]
    if request.has_start and again:
        raise OutputConflictError(
            f"{request.target.name} has {again[0]} up to {plan.known[again[0]]}, and goes on from "
            "there: rows are not taken back; to load again, set the table back by its own means, "
            "or load into another one"
        )
    return PreparedTableLoad(spark, request, state.base, plan, clock or SystemClock())


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a table: the number and the end offsets of its last load."""

    number: int
    reached: Reached
    base: str | None


def _state_of(spark: SparkSession, request: TableLoadRequest) -> _State:
    target = request.target
    if not tables.table_exists(spark, target):
        return _State(0, Reached({}, {}), None)
    commits = tables.read_commits(spark, target)
    note = None if commits.last_note is None else _read_note(commits.last_note, target)
    if note is not None and not commits.is_restored:
        check_same_layout(target.name, note["layout"], request.row_layout, _ADVICE)
        return _State(int(note["load"]), Reached.from_document(note), commits.base)
    number = 0 if note is None else int(note["load"])
    rows = spark.table(target.identifier)
    if not request.has_start and not rows.isEmpty():
        raise OutputConflictError(
            f"{target.name} has rows, and none of the commits that it keeps has the offsets that "
            "they end at; give them with --from, from SELECT topic, partition, max(next_offset) "
            f"FROM {target.identifier} GROUP BY topic, partition"
        )
    last = rows.agg({"load": "max"}).collect()[0][0] or 0
    return _State(max(number, last), Reached({}, {}), commits.base)


def _read_note(text: str, target: tables.TableTarget) -> Mapping[str, Any]:
    note: Mapping[str, Any] = json.loads(text)
    if note["version"] != _VERSION:
        raise OutputConflictError(
            f"{target.name} has loads of another version of pylogctl; {_ADVICE}"
        )
    return note


@dataclass(frozen=True, slots=True)
class PreparedTableLoad:
    """A planned load, which may run once."""

    spark: SparkSession
    request: TableLoadRequest
    base: str | None
    plan: LoadPlan
    clock: Clock

    def run(self) -> Manifest:
        """Load the planned ranges in one commit."""
        request = self.request
        started_ms = self.clock.time_ms()
        parts = self.spark.sparkContext.accumulator({}, _Parts())
        note_id = uuid.uuid4().hex
        note = {
            "version": _VERSION,
            "load": self.plan.number,
            "id": note_id,
            "layout": request.row_layout,
            "started_ms": started_ms,
            **Reached(self.plan.offsets(), self.plan.creation_ids).to_document(),
        }
        tasks, has_records = self.plan.read.tasks, self.plan.read.has_records
        schema = _schema_of(request, has_records=has_records)
        tables.make_table(self.spark, request.target, schema, _PARTITIONED_BY)
        settings = request.row_settings(request.options, has_records=has_records)
        make = partial(
            _make_rows, tasks=tasks, settings=settings, load=self.plan.number, parts=parts
        )
        rows = self.spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(make, schema)
        tables.append_once(rows, request.target, self.plan.number, json.dumps(note), self.base)
        self._check_committed(note_id)
        times_ms = started_ms, self.clock.time_ms()
        return self.plan.manifest(request.row_layout, times_ms, list(parts.value.values()))

    def _check_committed(self, note_id: str) -> None:
        """Validate that the newest load is this one: Delta ignores a load whose number it has."""
        target = self.request.target
        last = tables.read_commits(self.spark, target).last_note
        if last is None or _read_note(last, target)["id"] != note_id:
            raise OutputConflictError(
                f"load {self.plan.number} into {target.name} was not committed: another one with "
                "this number was; run it again"
            )


class _Parts(AccumulatorParam[dict[ByteRange, PartitionLoad]]):
    """The accounts of tasks, by range: those of a task that ran twice are equal."""

    def zero(self, value: dict[ByteRange, PartitionLoad]) -> dict[ByteRange, PartitionLoad]:
        return {}

    def addInPlace(  # noqa: N802 - Spark's name
        self, value1: dict[ByteRange, PartitionLoad], value2: dict[ByteRange, PartitionLoad]
    ) -> dict[ByteRange, PartitionLoad]:
        return {**value1, **value2}


def _schema_of(request: TableLoadRequest, *, has_records: bool = False) -> StructType:
    schema = StructType()
    for name, kind in (_RECORD_COLUMNS if has_records else _COLUMNS).items():
        schema.add(name, kind)
    if request.opens_envelopes:
        schema.add("envelope", TYPES["envelope"])
    if request.schemas is not None or request.decodes:
        schema.add("schema_id", "integer")
    return schema.add("value", _value_type(request))


def _value_type(request: TableLoadRequest) -> DataType:
    if request.decodes:
        return StringType()
    if request.schemas is None:
        return BinaryType()
    registry = SchemaRegistry(request.schemas, request.avro_reader)
    if registry.value_type is None:
        return StringType()
    from pyspark.sql.pandas.types import from_arrow_type  # late: it takes pandas

    return from_arrow_type(_in_microseconds(registry.value_type))


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return a type with times in microseconds, the only unit that Spark has."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, _in_microseconds(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(_in_microseconds(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), _in_microseconds(kind.item_type))
    return kind


def _make_rows(
    batches: Iterable[pa.RecordBatch],
    *,
    tasks: Sequence[ReadTask],
    settings: RowSettings,
    load: int,
    parts: Accumulator[dict[ByteRange, PartitionLoad]],
) -> Iterator[pa.RecordBatch]:
    """Read the ranges of tasks, whose numbers are the input, on an executor."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            source = tasks[number].range
            rows = RangeRows(tasks[number], settings)
            for day, found in rows:
                yield _with_constants(found, load, source.partition.topic, day)
            parts.add({source: rows.part})


def _with_constants(rows: pa.RecordBatch, load: int, topic: str, day: str) -> pa.RecordBatch:
    count = rows.num_rows
    moment = None if day == NO_DATE else date.fromisoformat(day)
    columns = {
        "load": pa.repeat(pa.scalar(load, pa.int64()), count),
        "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
        "partition": rows.column("partition"),
        "date": pa.repeat(pa.scalar(moment, pa.date32()), count),
    }
    columns |= {name: rows.column(name) for name in rows.schema.names if name not in columns}
    columns["value"] = columns["value"].cast(_in_microseconds(columns["value"].type))
    return pa.RecordBatch.from_pydict(columns)
