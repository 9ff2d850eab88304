"""The most frequent sources of failed logins in a topic of OpenSSH's log lines, with Spark.

    python examples/spark_failed_logins.py brokers=localhost:9092 subscribe=ssh
    python examples/spark_failed_logins.py path=/var/lib/pylog/ssh_0

Arguments are options of the data source. Cells are marked for editors that know them.
"""

# %% Where to read, and how many sources to name
import sys

from pyspark.sql import functions as f

from broker.spark.session import open_session
from broker.spark.source import read_messages

TOP = 10
FAILED = r"Failed password for (?:invalid user )?(\S*) from (\S+) port"
options = dict(argument.split("=", 1) for argument in sys.argv[1:])

with open_session() as spark:
    # %% Failed logins: user and source
    lines = read_messages(spark, options, columns=["value"])
    failed = lines.select(
        f.regexp_extract(f.col("value").cast("string"), FAILED, 1).alias("user"),
        f.regexp_extract(f.col("value").cast("string"), FAILED, 2).alias("source"),
    ).where("source <> ''")

    # %% Sources with the most attempts, and their number of user names
    sources = (
        failed.groupBy("source")
        .agg(f.count("*").alias("attempts"), f.count_distinct("user").alias("users"))
        .orderBy(f.desc("attempts"), "source")
        .limit(TOP)
    )

    # %% The result
    for row in sources.collect():
        print(f"{row.source}\t{row.attempts}\t{row.users}")
