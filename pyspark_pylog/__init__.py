"""Has Spark find the format `pylog` by itself, as it looks into all packages called `pyspark_*`."""

from broker.spark.source import PylogDataSource as DefaultSource

__all__ = ["DefaultSource"]
