"""Registers the format `pylog`: Spark imports all packages called `pyspark_*`."""

from broker.spark.source import PylogDataSource as DefaultSource

__all__ = ["DefaultSource"]
