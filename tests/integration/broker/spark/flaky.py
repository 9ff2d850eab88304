"""Data sources that fail or stall on purpose; importable by Spark's workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from broker.spark.loading.task import TaskResult, load_range
from broker.spark.options import parse_read_options, parse_write_options
from broker.spark.reading.batch_reader import BatchReader
from broker.spark.reading.ranges import ReadTask
from broker.spark.reading.stream_reader import StreamReader
from broker.spark.source import PylogDataSource
from broker.spark.writer import BatchWriter

FAILED_ATTEMPTS = 2
STALL_S = 60.0
STALL_OFFSET = 14_000


class InjectedError(Exception):
    """A failure that a test wants."""


def fail_after(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Give some batches and fail, in all but the last attempts of a task."""
    context = TaskContext.get()
    assert context is not None
    for place, batch in enumerate(batches):
        if place == count and context.attemptNumber() < FAILED_ATTEMPTS:
            raise InjectedError(f"attempt {context.attemptNumber()} of {context.partitionId()}")
        yield batch


class FlakySource(PylogDataSource):
    """Fails after some batches, reading and writing."""

    @classmethod
    def name(cls) -> str:
        return "flaky"

    def reader(self, schema: StructType) -> DataSourceReader:
        return FlakyReader(parse_read_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return FlakyWriter(parse_write_options(self.options), schema)


class FlakyReader(BatchReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return fail_after(super().read(partition), 2)


class FlakyWriter(BatchWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return super().write(fail_after(iterator, 1))


class StallingSource(PylogDataSource):
    """Stalls inside a task for as long as the file `stall` is in the report's directory."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StallingReader(parse_read_options(self.options, is_stream=True), schema)


class StallingReader(StreamReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        directory = self._settings.options.report_path
        assert directory is not None
        return stall(super().read(partition), directory)


def stall(batches: Iterator[pa.RecordBatch], directory: Path) -> Iterator[pa.RecordBatch]:
    """Give one batch; then, if asked to, say so and wait to be killed."""
    for place, batch in enumerate(batches):
        if place == 1 and (directory / "stall").exists():
            (directory / "stalled").touch()
            time.sleep(STALL_S)
        yield batch


def stalling_load_range(task: ReadTask, **settings: Any) -> TaskResult:
    """Load a range of the first half of the log; behind it, wait to be killed."""
    if task.range.start >= STALL_OFFSET:
        time.sleep(STALL_S)
        raise InjectedError("nobody has killed the load")
    return load_range(task, **settings)


def flaky_load_range(task: ReadTask, **settings: Any) -> TaskResult:
    """Load a range, and fail after that in all but the last attempts."""
    context = TaskContext.get()
    assert context is not None
    result = load_range(task, **settings)
    if context.attemptNumber() < FAILED_ATTEMPTS:
        raise InjectedError(f"attempt {context.attemptNumber()} of {context.partitionId()}")
    return result
