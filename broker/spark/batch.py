"""The batch of topics: what there is at the moment of planning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from broker.spark.filters import rows_of
from broker.spark.options import ReadOptions
from broker.spark.plans import plan_read
from broker.spark.ranges import ALL_ROWS
from broker.spark.reading import TaskSettings, read_task
from broker.spark.report import Report
from broker.spark.schema import arrow_schema


def settings_of(options: ReadOptions, schema: StructType) -> TaskSettings:
    """Return what the tasks of a read need to know."""
    return TaskSettings(
        schema=arrow_schema(schema),
        crc=options.crc,
        fail_on_data_loss=options.fail_on_data_loss,
        fetch_bytes=options.fetch_bytes,
        report_path=options.report_path,
    )


class BatchReader(DataSourceReader):
    """Reads what there is at the moment of planning.

    Args:
        options: of the read.
        settings: of its tasks.
    """

    def __init__(self, options: ReadOptions, settings: TaskSettings) -> None:
        self._options = options
        self._settings = settings
        self._rows = ALL_ROWS

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges to read, on the driver."""
        plan = plan_read(self._options, self._rows)
        report = Report(self._options.report_path)
        for omission in plan.omissions:
            report.add(omission)
        return [InputPartition(task) for task in plan.tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the messages of one range, on an executor."""
        if partition.value is None:  # Spark's stand-in for no range at all
            return iter(())
        return read_task(partition.value, self._settings)


class FilteringReader(BatchReader):
    """Leaves out ranges that no message of can pass the filters of a query.

    A class of its own: Spark refuses to read with one that can do this, unless it is told to.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take note of the filters, on the driver, and give all of them back to Spark to apply."""
        self._rows = rows_of(filters)
        return filters
