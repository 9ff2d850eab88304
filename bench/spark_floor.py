"""A data source for Spark that decodes nothing: the least that any such source in Python takes.

Each of its tasks makes one batch of rows and gives it again and again, so that what remains is
Spark's: to run the tasks, to send batches to the JVM, and to make rows of them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.workload import payloads
from broker.protocol import codec
from broker.spark.reading.task_reader import BatchMaker
from broker.spark.runtime.workers import keep_imports
from broker.spark.schema import arrow_schema
from broker.topic import TopicPartition

FORMAT = "pylog_floor"
BATCH_MESSAGES = 5000
_REPEATS = BATCH_MESSAGES // len(payloads())


class FloorDataSource(DataSource):
    """Rows as those of a topic, all from one batch of a megabyte; needs a schema.

    Its options are the number of `tasks`, and of `batches` of each.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        return _FloorReader(schema, self.options)


class _FloorReader(DataSourceReader):
    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._schema = schema
        self._batches, self._tasks = int(options["batches"]), int(options["tasks"])

    def partitions(self) -> Sequence[InputPartition]:
        keep_imports()
        return [InputPartition(index) for index in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        keep_imports()
        columns = codec.decode_columns(codec.encode(payloads() * _REPEATS), 0)
        maker = BatchMaker(TopicPartition("lines", 0, partition.value), arrow_schema(self._schema))
        batch = maker.batch(columns)
        for _ in range(self._batches):
            yield batch
