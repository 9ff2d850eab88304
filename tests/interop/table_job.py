"""A program on the PySpark of a peer: what a table has, and two loads at the same time.

Called with an action, the name of a table, its format, and the settings of Spark as JSON; `race`
also takes the address of a broker.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from broker.errors import OutputConflictError
from broker.spark.load_table import TableLoadRequest, prepare_table_load, run_table_load
from broker.spark.options import parse_read_options
from broker.spark.session import SessionSettings, open_session
from broker.spark.tables import TableFormat, TableTarget, session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def show(spark: SparkSession, target: TableTarget) -> None:
    """Print the rows, as lines of JSON."""
    table = spark.table(target.identifier)
    if dict(table.dtypes).get("value") == "binary":
        table = table.withColumn("value", table["value"].cast("string"))
    for row in table.select(fn.to_json(fn.struct("*"))).collect():
        print(row[0])


def race(spark: SparkSession, target: TableTarget, brokers: str) -> None:
    """Run two loads that were planned at the same time, and one after them; print how they end."""
    options = parse_read_options({"brokers": brokers, "subscribe": "events"})
    request = TableLoadRequest(target, options)
    for _ in range(2):  # the first of a table, and one of a table with rows
        prepared = [prepare_table_load(spark, request) for _ in range(2)]
        for one in prepared:
            try:
                print(json.dumps(one.run().message_count))
            except OutputConflictError:
                print(json.dumps("conflict"))
        print(json.dumps(run_table_load(spark, request) is None))
        sys.stdout.flush()
        sys.stdin.readline()


def restored(spark: SparkSession, target: TableTarget, brokers: str) -> None:
    """Set a table back to its first load, and print how the next load ends."""
    if target.table_format == "delta":
        spark.sql(f"RESTORE TABLE {target.identifier} TO VERSION AS OF 1")
    else:
        first = spark.sql(
            f"SELECT snapshot_id FROM {target.identifier}.snapshots ORDER BY committed_at LIMIT 1"
        ).collect()[0][0]
        catalog, _, name = target.name.partition(".")
        spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{name}', {first})")
    options = parse_read_options({"brokers": brokers, "subscribe": "events"})
    try:
        made = run_table_load(spark, TableLoadRequest(target, options))
        print(json.dumps(made and made.message_count))
    except OutputConflictError as error:
        print(json.dumps(str(error)))


def main(action: str, name: str, table_format: TableFormat, conf: str, *arguments: str) -> None:
    """Run an action in a session."""
    target = TableTarget(name, table_format)
    settings = SessionSettings(
        master="local[2,4]",
        java_options="-XX:TieredStopAtLevel=1",
        conf={**session_conf(table_format), **json.loads(conf)},
    )
    with open_session(settings) as spark:
        if action == "show":
            show(spark, target)
        else:
            (race if action == "race" else restored)(spark, target, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
