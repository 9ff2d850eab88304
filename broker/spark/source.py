"""The data source `pylog`, and functions that return topics as DataFrames.

    messages = read_messages(spark, {"brokers": "localhost:9092", "subscribe": "web"})

`spark.read.format("pylog")` with the same options is equivalent. The functions here also prune
columns, which Spark does not do for a Python data source, and accept typed options.

Imports are kept few: Spark imports this module in a new process for each `load`, and when it first
resolves any format that is not its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import datasource
from pyspark.sql.types import StructType

from broker.errors import ConfigError
from broker.spark.jobs import is_remote
from broker.spark.options import (
    ReadOptions,
    names_files,
    parse_crc,
    parse_read_options,
    parse_write_options,
)
from broker.spark.runtime.workers import keep_imports
from broker.spark.schema import check_names, check_schema, full_schema, known_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

FORMAT = "pylog"
"""Argument of `spark.read.format`."""


class PylogDataSource(datasource.DataSource):
    """Topics as tables: batch and stream, read and write.

    Register it with `spark.dataSource.register(PylogDataSource)`. Spark discovers it by itself if
    the package `pyspark_pylog` is installed.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        keep_imports()

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of a read with these options."""
        return full_schema(parse_crc(self.options), has_records=_has_records(self.options))

    def reader(self, schema: StructType) -> datasource.DataSourceReader:
        """Return the reader of a batch, on the driver."""
        from broker.spark.reading.batch_reader import BatchReader

        options = parse_read_options(self.options)
        check_schema(schema, options.crc, has_records=_has_records(self.options))
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> datasource.DataSourceStreamReader:
        """Return the reader of a stream, on the driver."""
        try:
            from broker.spark.reading.stream_reader import StreamReader
        except ModuleNotFoundError as error:
            if error.name != "pyspark.sql.streaming.datasource":
                raise
            raise ConfigError("streams of topics need PySpark 4.2 or later") from error
        options = parse_read_options(self.options, is_stream=True)
        check_schema(schema, options.crc)
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> datasource.DataSourceWriter:
        """Return the writer of a batch, on the driver."""
        from broker.spark.writer import BatchWriter

        _refuse_overwrite(overwrite)
        return BatchWriter(parse_write_options(self.options), schema)

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> datasource.DataSourceStreamWriter:
        """Return the writer of a stream, on the driver."""
        from broker.spark.writer import StreamWriter

        _refuse_overwrite(overwrite)
        return StreamWriter(parse_write_options(self.options), schema)


def _has_records(options: Mapping[str, str]) -> bool:
    """Return whether a read is of segment files with Kafka's record batches."""
    if not names_files(options):
        return False
    from broker.spark.reading.planner import reads_records

    return reads_records(parse_read_options(options))


def _refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise ConfigError("a topic cannot be overwritten: use mode append")


def register(spark: SparkSession) -> None:
    """Register the data source `pylog` with a session."""
    spark.dataSource.register(PylogDataSource)


def read_messages(
    spark: SparkSession,
    options: ReadOptions | Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return messages of topics, or of segment files, as a table.

    The first action on the table plans the read, and later actions read the same ranges: unlike for
    its Kafka source, Spark keeps the plan of a Python data source. Call this function again to read
    new messages, too. `ReadOptions.between` fixes the ranges beforehand.

    Args:
        spark: any session.
        options: such as `{"brokers": "localhost:9092", "subscribe": "web"}` or
            `{"path": "/var/lib/pylog"}`. By default there are at least as many tasks as the
            session has cores; Spark Connect does not tell their number.
        columns: columns to read; all but `envelope` if None. Fewer columns are faster.

    Raises:
        ConfigError: a column is unknown.
    """
    register(spark)
    texts = dict(_texts(options))
    if "minpartitions" not in {name.lower() for name in texts} and not is_remote(spark):
        texts["minPartitions"] = str(spark.sparkContext.defaultParallelism)
    return _loaded(spark.read, texts, columns)


def stream_messages(
    spark: SparkSession,
    options: ReadOptions | Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return messages of topics as a stream; the arguments are those of `read_messages`."""
    register(spark)
    return _loaded(spark.readStream, _texts(options), columns)


def _texts(options: ReadOptions | Mapping[str, str]) -> Mapping[str, str]:
    return options.to_options() if isinstance(options, ReadOptions) else options


def _loaded(
    reader: DataFrameReader | DataStreamReader,
    options: Mapping[str, str],
    columns: Sequence[str] | None,
) -> DataFrame:
    """Return a table with some columns, in the order given."""
    if columns is not None:
        known = known_columns(parse_crc(options), has_records=_has_records(options))
        check_names(columns, known)
        reader = reader.schema(StructType([known[name] for name in columns]))
    return reader.format(FORMAT).options(**options).load()
