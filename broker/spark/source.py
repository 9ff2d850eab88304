"""The data source `pylog`: what Spark sees.

Imports as little as it can: Spark imports it in a new process for each `load`, and on the first
look-up of any format that is not its own.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from broker.errors import ConfigError
from broker.spark.options import parse_crc, parse_read_options, parse_write_options
from broker.spark.schema import check_schema, full_schema

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
        from broker.spark.batch import BatchReader, FilteringReader, settings_of

        options = parse_read_options(self.options, is_stream=False)
        check_schema(schema, options.crc)
        kind = FilteringReader if options.push_filters else BatchReader
        return kind(options, settings_of(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream, on the driver."""
        from broker.spark.batch import settings_of
        from broker.spark.stream import StreamReader

        options = parse_read_options(self.options, is_stream=True)
        check_schema(schema, options.crc)
        return StreamReader(options, settings_of(options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch, on the driver."""
        from broker.spark.writers import BatchWriter

        check_appends(overwrite)
        return BatchWriter(parse_write_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a stream, on the driver."""
        from broker.spark.writers import StreamWriter

        check_appends(overwrite)
        return StreamWriter(parse_write_options(self.options), schema)


def check_appends(overwrite: bool) -> None:
    """Refuse to overwrite: a log only grows.

    Raises:
        ConfigError: that was asked for.
    """
    if overwrite:
        raise ConfigError("a topic cannot be overwritten: use mode append")
