"""Topics as DataFrames, in a line each; for jobs and notebooks.

Everything here can be had with `spark.read.format("pylog")` and options, too. What these functions
add is column pruning, which Spark does not tell a Python data source of, and a plan that stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from broker.errors import ConfigError
from broker.spark.offsets import to_assignment, to_json
from broker.spark.options import parse_crc, parse_read_options
from broker.spark.plans import ReadPlan, plan_read
from broker.spark.schema import full_schema
from broker.spark.session import register
from broker.spark.source import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"
_BOUNDS = ("Offsets", "Timestamp", "OffsetsByTimestamp")


def read_messages(
    spark: SparkSession, options: Mapping[str, str], *, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return messages of topics, or of segment files, as a table.

    Args:
        spark: any session.
        options: of the data source, such as `{"brokers": "localhost:9092", "subscribe": "web"}`
            or `{"path": "/var/lib/pylog"}`. Unless they say otherwise, there are as many tasks
            as the session has cores, and filters on topic, partition and offset are pushed down
            where the session allows that.
        columns: the ones to read, all if None; reading fewer is faster.

    Raises:
        ConfigError: an option or a column is unknown.
    """
    register(spark)
    defaults = {"minPartitions": str(spark.sparkContext.defaultParallelism)}
    if spark.conf.get(_PUSHDOWN_CONF, "false") == "true":
        defaults["pushFilters"] = "true"
    given = {name.lower() for name in options}
    added = {name: value for name, value in defaults.items() if name.lower() not in given}
    reader = spark.read.format(FORMAT).options(**added, **options)
    if columns is not None:
        reader = reader.schema(schema_of(columns, options))
    return reader.load()


def stream_messages(
    spark: SparkSession, options: Mapping[str, str], *, columns: Sequence[str] | None = None
) -> DataFrame:
    """Return messages of topics as a stream.

    Args:
        spark: any session.
        options: of the data source, such as `{"zk": "localhost:2181", "subscribe": "web"}`.
        columns: the ones to read, all if None.

    Raises:
        ConfigError: an option or a column is unknown.
    """
    register(spark)
    reader = spark.readStream.format(FORMAT).options(**options)
    if columns is not None:
        reader = reader.schema(schema_of(columns, options))
    return reader.load()


def schema_of(columns: Sequence[str], options: Mapping[str, str]) -> StructType:
    """Return the schema of some columns, in the order given.

    Raises:
        ConfigError: there is no such column.
    """
    known = {one.name: one for one in full_schema(parse_crc(options))}
    fields: list[StructField] = []
    for name in columns:
        if name not in known:
            raise ConfigError(f"there is no column '{name}'; valid: {', '.join(known)}")
        fields.append(known[name])
    return StructType(fields)


def plan_messages(options: Mapping[str, str]) -> ReadPlan:
    """Return what a batch read with these options would read now: ranges, tasks, omissions.

    Args:
        options: as for `read_messages`.

    Raises:
        ConfigError: an option is unknown or malformed.
        BrokerError: what is asked for is not there, or cannot be reached.
    """
    return plan_read(parse_read_options(options, is_stream=False))


def frozen(options: Mapping[str, str], plan: ReadPlan) -> dict[str, str]:
    """Return options that read exactly what was planned, however often and whenever.

    Without this each action on a DataFrame asks anew where topics end.

    Args:
        options: as for `read_messages`.
        plan: made with them by `plan_messages`.
    """
    replaced = {f"{side}{kind}" for side in ("starting", "ending") for kind in _BOUNDS}
    replaced |= {"subscribe", "subscribePattern", "assign"}
    lowered = {name.lower() for name in replaced}
    return {
        **{name: value for name, value in options.items() if name.lower() not in lowered},
        "assign": to_assignment(one.partition for one in plan.ranges),
        "startingOffsets": to_json({one.partition: one.start for one in plan.ranges}),
        "endingOffsets": to_json({one.partition: one.end for one in plan.ranges}),
    }
