"""Joins of events: of two topics, or of a topic with a table.

Streams are joined within bounds: how late an event may come, and how far apart in time two events
may be that belong together. Without both Spark would keep every event for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as fn

from broker.errors import QueryError
from broker.spark.windows import with_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

How = Literal["inner", "left"]
"""Whether events of the left side without a partner are left out, or given with nulls."""
_OF_EVENTS = ("key", "time", "text")


def join_topics(
    left: DataFrame,
    right: DataFrame,
    *,
    within_ms: int | None = None,
    watermark_ms: int | None = None,
    how: How = "inner",
) -> DataFrame:
    """Return pairs of events of the same key.

    Args:
        left: has the columns `key`, `time` and `text`.
        right: has them, too; a stream if `left` is one.
        within_ms: how far apart in time the two may be, from 0; a batch may do without.
        watermark_ms: how late events of a stream may be.
        how: what becomes of events of `left` that no other belongs to.

    Returns:
        The columns `key`, `left_time`, `left`, `right_time`, `right`.

    Raises:
        QueryError: streams without a bound, a bound below 0, or a stream and a batch.
    """
    if left.isStreaming != right.isStreaming:
        raise QueryError("a stream of a topic is joined with a stream, or with a table")
    if left.isStreaming and within_ms is None:
        raise QueryError("a join of streams needs a time bound: how far apart events may be")
    if within_ms is not None and within_ms < 0:
        raise QueryError(f"events cannot be within {within_ms} ms of each other")
    ours = _side(left, "left", watermark_ms)
    theirs = _side(right, "right", watermark_ms)
    condition = fn.col("left_key") == fn.col("right_key")
    if within_ms is not None:
        distance = fn.expr(f"interval {within_ms} milliseconds")
        condition &= fn.col("right_time") >= fn.col("left_time") - distance
        condition &= fn.col("right_time") <= fn.col("left_time") + distance
    joined = ours.join(theirs, condition, how)
    return joined.select(
        fn.col("left_key").alias("key"), "left_time", "left", "right_time", "right"
    )


def _side(events: DataFrame, name: str, watermark_ms: int | None) -> DataFrame:
    renamed = events.select(
        fn.col("key").alias(f"{name}_key"),
        fn.col("time").alias(f"{name}_time"),
        fn.col("text").alias(name),
    )
    return with_watermark(renamed, watermark_ms, f"{name}_time")


def join_table(
    events: DataFrame, table: DataFrame, column: str, *, how: How = "inner"
) -> DataFrame:
    """Return events with the rows of a table that belong to their keys.

    Args:
        events: of a batch or a stream; has the columns `key`, `time` and `text`.
        table: a batch.
        column: of the table, compared with the key as text.
        how: what becomes of events that no row belongs to.

    Returns:
        `key`, `time`, `text`, and the other columns of the table; those of the same name as one
        of these three with `table_` before it.

    Raises:
        QueryError: the table has no such column, or is a stream.
    """
    if table.isStreaming:
        raise QueryError("a table to join with is a batch")
    if column not in table.columns:
        raise QueryError(f"the table has no column '{column}'; it has: {', '.join(table.columns)}")
    named = {
        name: f"table_{name}" if name in _OF_EVENTS else name
        for name in table.columns
        if name != column
    }
    rows = table.select(
        table[column].cast("string").alias("table_column"),
        *(table[name].alias(new) for name, new in named.items()),
    )
    joined = events.join(rows, fn.col("key") == fn.col("table_column"), how)
    return joined.select(*_OF_EVENTS, *(joined[new] for new in named.values()))
