"""Events in time: counts per key in windows, and joins with other events or with a table.

    messages = stream_messages(spark, {"brokers": "localhost:9092", "subscribe": "web"})
    requests = events(messages, EventFields(key_field=".status", time_field=".time"))
    count_windows(requests, 60_000, watermark_ms=300_000).writeStream...

A stream needs a watermark: how far an event may be behind the newest one and still be counted.
Without it Spark would keep the state of every window. A stream emits each window once, when the
watermark has passed its end; later events of that window are not counted. A join of streams also
needs the maximum difference in time of two matching events.

Tables of events have the columns `key`, `time` and `text`, and optionally `value`. Arguments out of
range, and streams where a batch is needed or the reverse, are a `QueryError`.
"""

from __future__ import annotations

from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from broker.errors import QueryError

_OF_VALUES = {"sum": fn.sum, "average": fn.avg, "minimum": fn.min, "maximum": fn.max}
COLUMNS = ("start", "end", "key", "messages", *_OF_VALUES)
"""Columns of the counts; those after `messages` exist if events have a value."""


def count_windows(
    events: DataFrame,
    length_ms: int,
    *,
    slide_ms: int | None = None,
    watermark_ms: int | None = None,
) -> DataFrame:
    """Count the events of each key in windows of one length, aligned to 1970.

    Args:
        events: those without a time are left out.
        length_ms: length of a window, at least 1.
        slide_ms: distance between the starts of windows, 1 to `length_ms`, which is the default;
            with less, an event counts in several windows.
        watermark_ms: how late an event of a stream may be.
    """
    slide_ms = length_ms if slide_ms is None else slide_ms
    if not 0 < slide_ms <= length_ms:
        raise QueryError(
            f"a window of {length_ms} ms cannot slide by {slide_ms} ms: both are at least 1 ms, "
            "and the slide is no longer than the window"
        )
    window = fn.window("time", _interval(length_ms), _interval(slide_ms))
    return _counted(events, window, watermark_ms)


def count_sessions(events: DataFrame, gap_ms: int, *, watermark_ms: int | None = None) -> DataFrame:
    """Count the events of each key in sessions.

    A session ends when its key has had no event for `gap_ms`, at least 1.
    """
    if gap_ms < 1:
        raise QueryError(f"sessions cannot have a gap of {gap_ms} ms: it is at least 1 ms")
    return _counted(events, fn.session_window("time", _interval(gap_ms)), watermark_ms)


def count_late(
    events: DataFrame,
    watermark_ms: int,
    *,
    length_ms: int | None = None,
    slide_ms: int | None = None,
    gap_ms: int | None = None,
) -> int:
    """Return how many events of a batch are in a window or session that a watermark has closed.

    The watermark is in milliseconds since 1970. Windows are as for `count_windows`, sessions
    (`gap_ms` instead of `length_ms`) as for `count_sessions`.
    """
    micros = fn.unix_micros("time")
    if length_ms is None:
        assert gap_ms is not None
        end = micros + gap_ms * 1000
    else:
        slide = (slide_ms or length_ms) * 1000
        behind = micros - length_ms * 1000  # the first window that has the event starts after it
        end = behind - fn.pmod(behind, fn.lit(slide)) + slide + length_ms * 1000
    return events.where(end <= watermark_ms * 1000).count()


def _with_watermark(events: DataFrame, watermark_ms: int | None, column: str = "time") -> DataFrame:
    """Set the watermark of a stream; a batch is returned unchanged."""
    if not events.isStreaming:
        return events
    if watermark_ms is None or watermark_ms < 0:
        raise QueryError("a stream needs a watermark: how late its events may be")
    return events.withWatermark(column, _interval(watermark_ms))


def _counted(events: DataFrame, window: Column, watermark_ms: int | None) -> DataFrame:
    timed = _with_watermark(events.where(fn.col("time").isNotNull()), watermark_ms)
    made = [fn.count("*").alias("messages")]
    if "value" in timed.columns:
        made += [function("value").alias(name) for name, function in _OF_VALUES.items()]
    counts = timed.groupBy(window.alias("window"), "key").agg(*made)
    return counts.select(
        "window.start", "window.end", *(name for name in counts.columns if name in COLUMNS)
    )


def largest(counts: DataFrame, count: int, by: str = "messages") -> DataFrame:
    """Return the keys of each window with the most messages, or the largest of another column.

    Args:
        counts: of a batch, as `count_windows` returns them.
        count: number of keys of a window, at least 1; of equal ones the first by name are taken.
        by: a column with numbers; rows where it is null come last.
    """
    if counts.isStreaming:
        raise QueryError("a stream cannot be ranked: rank what it has written")
    if count < 1:
        raise QueryError(f"there are no {count} largest keys: the number is at least 1")
    if by not in counts.columns:
        raise QueryError(f"there is no column '{by}'; it has: {', '.join(counts.columns)}")
    order = (fn.col(by).desc_nulls_last(), fn.col("key"))
    rank = fn.row_number().over(Window.partitionBy("start", "end").orderBy(*order))
    ranked = counts.withColumn("_rank", rank).where(fn.col("_rank") <= count)
    return ranked.orderBy("start", "end", "_rank").drop("_rank")


def _interval(length_ms: int) -> str:
    return f"{length_ms} milliseconds"


How = Literal["inner", "left"]
"""Events of the left side without a match are dropped (`inner`), or kept with nulls (`left`)."""
_OF_EVENTS = ("key", "time", "text")


def join_topics(
    left: DataFrame,
    right: DataFrame,
    *,
    within_ms: int | None = None,
    watermark_ms: int | None = None,
    how: How = "inner",
) -> DataFrame:
    """Return pairs of events of the same key: `key`, `left_time`, `left`, `right_time`, `right`.

    Both sides are streams, or neither is. `within_ms` is the maximum difference in time of a pair,
    required for streams; `watermark_ms` says how late events of a stream may be.
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
    return _with_watermark(renamed, watermark_ms, f"{name}_time")


def join_table(
    events: DataFrame, table: DataFrame, column: str, *, how: How = "inner"
) -> DataFrame:
    """Return events with the rows of a table, a batch, for their keys.

    `column` of the table is compared, as text, with the key. Its other columns follow `key`, `time`
    and `text`, prefixed with `table_` if they have one of these names.
    """
    if table.isStreaming:
        raise QueryError("a table to join with is a batch")
    if column not in table.columns:
        raise QueryError(f"the table has no column '{column}'; it has: {', '.join(table.columns)}")
    names = [f"_table_{number}" for number in range(len(table.columns))]
    of_name = dict(zip(table.columns, names, strict=True))
    compared = fn.col(of_name.pop(column)).cast("string")
    joined = events.select(*_OF_EVENTS).join(table.toDF(*names), fn.col("key") == compared, how)
    others = (
        fn.col(unique).alias(f"table_{name}" if name.lower() in _OF_EVENTS else name)
        for name, unique in of_name.items()
    )
    return joined.select(*_OF_EVENTS, *others)
