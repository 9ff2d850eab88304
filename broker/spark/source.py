"""The data source `pylog` as Spark sees it, and topics as DataFrames in a line each.

    messages = read_messages(spark, {"brokers": "localhost:9092", "subscribe": "web"})

`spark.read.format("pylog")` with the same options reads the same. The functions here add column
pruning, which Spark does not tell a Python data source of, and take typed options, too.

Imports as little as it can: Spark imports this module in a new process for each `load`, and on the
first look-up of any format that is not its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructField, StructType

from broker.errors import ConfigError
from broker.spark.options import ReadOptions, parse_crc, parse_read_options, parse_write_options
from broker.spark.schema import check_schema, full_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "pylog"
"""The name to give to `spark.read.format`."""
_PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"


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
        from broker.spark.batch_reader import BatchReader, FilteringReader

        options = parse_read_options(self.options)
        check_schema(schema, options.crc)
        return (FilteringReader if options.push_filters else BatchReader)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream, on the driver."""
        from broker.spark.stream_reader import StreamReader

        options = parse_read_options(self.options, is_stream=True)
        check_schema(schema, options.crc)
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch, on the driver."""
        from broker.spark.writer import BatchWriter

        _refuse_overwrite(overwrite)
        return BatchWriter(parse_write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a stream, on the driver."""
        from broker.spark.writer import StreamWriter

        _refuse_overwrite(overwrite)
        return StreamWriter(parse_write_options(self.options), schema)


def _refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise ConfigError("a topic cannot be overwritten: use mode append")


def register(spark: SparkSession) -> None:
    """Make the data source `pylog` known to a session."""
    spark.dataSource.register(PylogDataSource)


def read_messages(
    spark: SparkSession,
    options: ReadOptions | Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return messages of topics, or of segment files, as a table.

    Each action on the table plans anew, so that it has the messages there are at that moment;
    `ReadOptions.between` has it read the same ranges each time.

    Args:
        spark: any session.
        options: of the data source, such as `{"brokers": "localhost:9092", "subscribe": "web"}`
            or `{"path": "/var/lib/pylog"}`. Unless they say otherwise, there are as many tasks
            as the session has cores, and filters on topic, partition and offset are pushed down
            where the session allows that.
        columns: the ones to read, all if None; reading fewer is faster.

    Raises:
        ConfigError: a column is unknown.
    """
    register(spark)
    defaults = {"minPartitions": str(spark.sparkContext.defaultParallelism)}
    if spark.conf.get(_PUSHDOWN_CONF, "false") == "true":
        defaults["pushFilters"] = "true"
    texts = _texts(options)
    given = {name.lower() for name in texts}
    added = {name: value for name, value in defaults.items() if name.lower() not in given}
    reader = spark.read.format(FORMAT).options(**added, **texts)
    if columns is not None:
        reader = reader.schema(_schema_of(columns, texts))
    return reader.load()


def stream_messages(
    spark: SparkSession,
    options: ReadOptions | Mapping[str, str],
    *,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return messages of topics as a stream.

    Args:
        spark: any session.
        options: of the data source, such as `{"zk": "localhost:2181", "subscribe": "web"}`.
        columns: the ones to read, all if None.

    Raises:
        ConfigError: a column is unknown.
    """
    register(spark)
    texts = _texts(options)
    reader = spark.readStream.format(FORMAT).options(**texts)
    if columns is not None:
        reader = reader.schema(_schema_of(columns, texts))
    return reader.load()


def _texts(options: ReadOptions | Mapping[str, str]) -> Mapping[str, str]:
    return options.to_options() if isinstance(options, ReadOptions) else options


def _schema_of(columns: Sequence[str], options: Mapping[str, str]) -> StructType:
    """Return the schema of some columns, in the order given."""
    known = {one.name: one for one in full_schema(parse_crc(options))}
    fields: list[StructField] = []
    for name in columns:
        if name not in known:
            raise ConfigError(f"there is no column '{name}'; valid: {', '.join(known)}")
        fields.append(known[name])
    return StructType(fields)
