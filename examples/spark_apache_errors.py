"""Kinds of errors in Apache's error log by hour, with Spark SQL.

    python examples/spark_apache_errors.py brokers=localhost:9092 subscribe=apache
    python examples/spark_apache_errors.py path=/var/lib/pylog/apache_0

Arguments are options of the data source. The kind of an error is its message with
numbers and addresses replaced. Cells are marked for editors that know them.
"""

# %% Where to read
import sys

from broker.spark.session import open_session
from broker.spark.source import read_messages

options = dict(argument.split("=", 1) for argument in sys.argv[1:])

ERRORS = r"""
SELECT hour, kind, count(*) AS errors
FROM (
  SELECT
    regexp_extract(line, '^\\[(\\w+ \\w+ \\d+ \\d+):', 1) AS hour,
    regexp_replace(
      regexp_extract(line, '^\\[[^]]*\\] \\[error\\] (.*?)\\s*$', 1), '[0-9][0-9.]*', 'N'
    ) AS kind,
    offset
  FROM (SELECT CAST(value AS STRING) AS line, offset FROM messages)
)
WHERE kind <> ''
GROUP BY hour, kind
ORDER BY min(offset), kind
"""

with open_session() as spark:
    # %% The topic as a table
    messages = read_messages(spark, options, columns=["value", "offset"])
    messages.createOrReplaceTempView("messages")

    # %% The result
    for row in spark.sql(ERRORS).collect():
        print(f"{row.hour}h\t{row.errors}\t{row.kind}")
