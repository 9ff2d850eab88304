"""The audit in Spark: counts of producers, and counts of messages in topics and in loads.

Executors count; only the counts by window are collected, for `broker.tools.audit` to compare.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from broker.spark.extraction import any_time, json_fields, text_of
from broker.tools.audit import ENVELOPE_TIME, VERSION, AuditWindow, Count

_EVENT = (
    "v INT, id STRING, seq BIGINT, tier STRING, topic STRING, start_ms BIGINT, end_ms BIGINT, "
    "count BIGINT, bytes BIGINT"
)
_ROW = ("partition", "offset", "inner_index")  # unique within a topic


class Events(NamedTuple):
    """Counts by window and tier, and the number of invalid messages in the audit topic."""

    tallied: dict[AuditWindow, dict[str, Count]]
    problem_count: int


class WindowCounts(NamedTuple):
    """Counts of messages by window."""

    counts: dict[AuditWindow, Count]  # messages, each once, and the bytes of all rows
    repeated: dict[AuditWindow, int]  # rows beyond those
    timeless_count: int  # rows without a time, and so without a window


def tally_events(messages: DataFrame) -> Events:
    """Add up the events of an audit topic by window and tier, each event once."""
    event = fn.from_json(text_of(fn.col("value")), _EVENT)
    parsed = messages.select(event.alias("event")).select("event.*")
    is_event = fn.coalesce(
        (fn.col("v") == VERSION)
        & (fn.col("start_ms") < fn.col("end_ms"))
        & (fn.col("count") >= 0)
        & (fn.col("bytes") >= 0)
        & fn.concat("id", "tier", "topic", fn.col("seq").cast("string")).isNotNull(),
        fn.lit(False),
    )
    sums = (
        parsed.where(is_event)
        .dropDuplicates(["id", "seq"])
        .groupBy("topic", "start_ms", "end_ms", "tier")
        .agg(fn.sum("count"), fn.sum("bytes"))
    )
    tallied: dict[AuditWindow, dict[str, Count]] = {}
    for topic, start_ms, end_ms, tier, message_count, payload_bytes in sums.collect():
        tiers = tallied.setdefault(AuditWindow(topic, start_ms, end_ms), {})
        tiers[tier] = Count(message_count, payload_bytes)
    return Events(tallied, parsed.where(~is_event).count())


def with_payload(loaded: DataFrame) -> DataFrame:
    """Return rows of a load in which typed Avro values are converted to JSON."""
    is_typed = isinstance(loaded.schema["value"].dataType, StructType)
    return loaded.withColumn("value", fn.to_json("value")) if is_typed else loaded


def count_messages(
    messages: DataFrame, windows: Collection[AuditWindow], *, time_field: str | None = None
) -> WindowCounts:
    """Count messages in windows that tiers reported; those of a topic have the same length.

    Args:
        messages: rows of topics or of a load: `topic`, `partition`, `offset`, `inner_index` and
            `value`. Those of topics without a window, or before the first one, are left out.
        windows: the reported ones.
        time_field: field of JSON payloads with their time, or `envelope` for that of the column
            `envelope`; without one each topic has one window.
    """
    first = {one.topic: one for one in sorted(windows, reverse=True)}
    rows = [(one.topic, one.start_ms, one.end_ms - one.start_ms) for one in first.values()]
    schema = "topic STRING, first_ms BIGINT, length_ms BIGINT"
    known = messages.sparkSession.createDataFrame(rows, schema)
    timed = messages.join(fn.broadcast(known), "topic").withColumn("start_ms", _start(time_field))
    in_time = fn.col("start_ms").isNull() | (fn.col("start_ms") >= fn.col("first_ms"))
    sums = (
        timed.where(in_time)
        .groupBy("topic", "start_ms", "length_ms")
        .agg(
            fn.count("*"),
            fn.count_distinct(*(fn.col(name) for name in _ROW)),
            fn.sum(fn.length("value")),
        )
    )
    found = WindowCounts({}, {}, 0)
    for topic, start_ms, length_ms, row_count, message_count, size_bytes in sums.collect():
        if start_ms is None:
            found = found._replace(timeless_count=found.timeless_count + row_count)
            continue
        window = AuditWindow(topic, start_ms, start_ms + length_ms)
        found.counts[window] = Count(message_count, size_bytes)
        found.repeated[window] = row_count - message_count
    return found


def _start(time_field: str | None) -> Column:
    """Return the start of the window of a message; null for one without a time."""
    if time_field is None:
        return fn.col("first_ms")
    if time_field == ENVELOPE_TIME:
        time = fn.col("envelope.timestamp")
    else:
        time = any_time(json_fields(text_of(fn.col("value")), {"time": time_field})["time"])
    time_ms = fn.unix_millis(time)
    return time_ms - fn.pmod(time_ms, fn.col("length_ms"))
