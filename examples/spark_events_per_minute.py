"""Events per minute in topics of log lines, with Spark.

    python examples/spark_events_per_minute.py brokers=localhost:9092 subscribe=ssh,web
    python examples/spark_events_per_minute.py path=/var/lib/pylog

Arguments are options of the data source. The key is the start of a line, up to the minute:
`Dec 10 06:55`, `[Sun Dec 04 04:47`, `2015-07-29 17:41`. Cells are marked for editors that know
them.
"""

# %% Where to read
import sys

from pyspark.sql import functions as f

from broker.spark.session import open_session
from broker.spark.source import read_messages

options = dict(argument.split("=", 1) for argument in sys.argv[1:])

with open_session() as spark:
    # %% Lines of all topics; only the columns that are needed
    lines = read_messages(spark, options, columns=["topic", "offset", "value"]).select(
        "topic", "offset", f.col("value").cast("string").alias("line")
    )

    # %% Events of each minute, in the order of the topic
    minutes = (
        lines.withColumn("minute", f.regexp_extract("line", r"^(.*?\d\d:\d\d):\d\d", 1))
        .where("minute <> ''")
        .groupBy("topic", "minute")
        .agg(f.count("*").alias("events"), f.min("offset").alias("first"))
        .orderBy("topic", "first")
    )

    # %% The result
    for row in minutes.toLocalIterator():
        print(f"{row.topic}\t{row.minute}\t{row.events}")
