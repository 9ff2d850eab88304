"""The batch reader: plans the ranges of a read on the driver; each task reads one range.

Ranges that cannot match a query's filters on topic, partition and offset are dropped. Spark applies
all filters to the rows again, so it is safe to ignore the other filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from broker.spark.options import ReadOptions
from broker.spark.ranges import ALL_ROWS, RowFilter
from broker.spark.report import Report
from broker.spark.task_reader import read_task, task_settings


class BatchReader(DataSourceReader):
    """Reads the messages that exist when the read is planned; gives the columns of `schema`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._settings = task_settings(options, schema)
        self._rows = ALL_ROWS

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the read, on the driver."""
        from broker.spark.planner import plan_read  # late: executors do not plan

        plan = plan_read(self._options, self._rows)
        report = Report(self._options.report_path)
        for omission in plan.omissions:
            report.add(omission)
        return [InputPartition(task) for task in plan.tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the messages of one task, on an executor."""
        if partition.value is None:  # Spark passes this if the plan has no tasks
            return iter(())
        return read_task(partition.value, self._settings)


class FilteringReader(BatchReader):
    """Drops ranges without a message that passes the filters of a query.

    A separate class because Spark rejects a reader that has `pushFilters` while filter pushdown is
    disabled.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep the filters for planning, and return all of them for Spark to apply."""
        self._rows = rows_of(filters)
        return filters


def rows_of(filters: Iterable[Filter]) -> RowFilter:
    """Combine the filters on topic, partition and offset; those on other columns are ignored."""
    rows = ALL_ROWS
    for one in filters:
        rows = rows.both(_rows_of(one))
    return rows


def _rows_of(one: Filter) -> RowFilter:
    column = getattr(one, "attribute", ())
    if column == ("offset",):
        return _by_offset(one)
    match one:
        case EqualTo(value=str(value)) | EqualNullSafe(value=str(value)):
            names = frozenset({value})
        case In(value=values):
            names = frozenset(value for value in values if isinstance(value, str))
        case _:
            return ALL_ROWS
    if column == ("topic",):
        return RowFilter(topics=names)
    return RowFilter(names=names) if column == ("partition",) else ALL_ROWS


def _by_offset(one: Filter) -> RowFilter:
    match one:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            return RowFilter(start=value, end=value + 1)
        case In(value=values) if values and all(isinstance(value, int) for value in values):
            return RowFilter(start=min(values), end=max(values) + 1)
        case GreaterThan(value=int(value)):
            return RowFilter(start=value + 1)
        case GreaterThanOrEqual(value=int(value)):
            return RowFilter(start=value)
        case LessThan(value=int(value)):
            return RowFilter(end=value)
        case LessThanOrEqual(value=int(value)):
            return RowFilter(end=value + 1)
    return ALL_ROWS
