"""The batch reader: plans a read on the driver; each Spark partition is some tasks of the plan.

No `pushFilters`: Spark keeps one plan for each data source object, so the filters that were pushed
last would apply to every reference to a table, in the same query and in later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from broker.spark.options import ReadOptions
from broker.spark.reading.columns import TaskSettings
from broker.spark.reading.report import report_omissions
from broker.spark.reading.task_reader import read_task
from broker.spark.runtime.workers import keep_imports
from broker.spark.schema import arrow_schema


class BatchReader(DataSourceReader):
    """Reads the messages that exist when the read is planned; returns the columns of `schema`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._settings = TaskSettings(arrow_schema(schema), options)

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the read, on the driver."""
        from broker.spark.reading.planner import (  # late: executors do not plan
            bundled_tasks,
            plan_read,
        )

        plan = plan_read(self._options)
        report_omissions(self._options.report_path, plan.omissions)
        keep_imports()
        return [InputPartition(tasks) for tasks in bundled_tasks(plan.tasks, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the messages of some tasks of the plan, on an executor."""
        if partition.value is None:  # Spark passes this if the plan has no tasks
            return iter(())
        return chain.from_iterable(read_task(task, self._settings) for task in partition.value)
