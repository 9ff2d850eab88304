"""The data source `pylog`: what Spark sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from broker.spark.options import ReadOptions, parse_crc, parse_read_options
from broker.spark.plans import plan_read
from broker.spark.ranges import ALL_ROWS
from broker.spark.reading import TaskSettings, read_task
from broker.spark.report import Report
from broker.spark.schema import arrow_schema, check_schema, full_schema

FORMAT = "pylog"
"""The name to give to `spark.read.format`."""


class PylogDataSource(DataSource):
    """Topics as tables: batch and stream, read and write.

    Register it with `spark.dataSource.register(PylogDataSource)`; the package `pyspark_pylog` has
    Spark find it by itself.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return all columns that a read with these options can give."""
        return full_schema(parse_crc(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch, on the driver."""
        options = parse_read_options(self.options, is_stream=False)
        check_schema(schema, options.crc)
        return BatchReader(options, schema)


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
        schema: the columns wanted.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._settings = settings_of(options, schema)
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
