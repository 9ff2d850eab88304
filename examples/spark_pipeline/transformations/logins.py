r"""A declarative pipeline: a topic as a table that grows, and a view made of it.

    pip install 'pylogctl[spark]' 'pyspark[pipelines]'
    cd examples/spark_pipeline
    spark-pipelines run --conf spark.sql.catalogImplementation=hive \
        --conf spark.sql.warehouse.dir=/tmp/pylog-pipeline/tables

Each run adds the messages since the last one. `spark-pipeline.yml` names brokers, topic and the
directory of the state. The tables are recorded in a catalog, here in `metastore_db`.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
options = {name: spark.conf.get(f"pylog.{name}") for name in ("brokers", "subscribe")}


@dp.table
def ssh_lines() -> DataFrame:
    """All lines of the topic, each once."""
    stream = spark.readStream.format("pylog").options(**options, startingOffsets="earliest")
    return stream.load().select("offset", f.col("value").cast("string").alias("line"))


@dp.materialized_view
def failed_logins() -> DataFrame:
    """Failed logins by source."""
    source = f.regexp_extract("line", r"Failed password for .* from (\S+) port", 1)
    lines = spark.read.table("ssh_lines")
    return lines.groupBy(source.alias("source")).count().where("source <> ''")
