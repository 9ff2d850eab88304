"""Events in time: counts per key in windows, and joins with other events or with a table.

    messages = stream_messages(spark, {"brokers": "localhost:9092", "subscribe": "web"})
    requests = events(messages, EventFields(key_field=".status", time_field=".time"))
    count_windows(requests, 60_000, watermark_ms=300_000).writeStream...

A stream needs a watermark: how far behind the newest time an event may come and still be counted.
Without one Spark would keep every window for ever. A stream gives each window once, when the
watermark has passed its end; later events of that window are not counted. Streams are joined
within a bound, too: how far apart in time two events may be that belong together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as fn

from broker.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


COLUMNS = ("start", "end", "key", "messages")
"""What the functions here give."""


def count_windows(
    events: DataFrame,
    length_ms: int,
    *,
    slide_ms: int | None = None,
    watermark_ms: int | None = None,
) -> DataFrame:
    """Return how many events there are of each key in windows of one length, aligned to 1970.

    Args:
        events: has the columns `key` and `time`; those without a time are left out.
        length_ms: of a window, at least 1.
        slide_ms: how far each window starts behind the one before, at most `length_ms`, which it
            is by default; with less, an event counts in several windows.
        watermark_ms: how late an event of a stream may be.

    Raises:
        QueryError: a length is not possible, or a stream has no watermark.
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
    """Return how many events there are of each key in sessions.

    Args:
        events: has the columns `key` and `time`; those without a time are left out.
        gap_ms: a session ends when its key has no event for so long, at least 1.
        watermark_ms: how late an event of a stream may be.

    Raises:
        QueryError: the gap is not possible, or a stream has no watermark.
    """
    if gap_ms < 1:
        raise QueryError(f"sessions cannot have a gap of {gap_ms} ms: it is at least 1 ms")
    return _counted(events, fn.session_window("time", _interval(gap_ms)), watermark_ms)


def _with_watermark(events: DataFrame, watermark_ms: int | None, column: str = "time") -> DataFrame:
    """Return a stream with a watermark on a column of times; a batch as it is.

    Raises:
        QueryError: a stream has no watermark.
    """
    if not events.isStreaming:
        return events
    if watermark_ms is None or watermark_ms < 0:
        raise QueryError("a stream needs a watermark: how late its events may come")
    return events.withWatermark(column, _interval(watermark_ms))


def _counted(events: DataFrame, window: Column, watermark_ms: int | None) -> DataFrame:
    timed = _with_watermark(events.where(fn.col("time").isNotNull()), watermark_ms)
    counts = timed.groupBy(window.alias("window"), "key").agg(fn.count("*").alias("messages"))
    return counts.select("window.start", "window.end", "key", "messages")


def _interval(length_ms: int) -> str:
    return f"{length_ms} milliseconds"


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
        how: `inner` leaves out events of `left` without a partner; `left` keeps them.

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
    return _with_watermark(renamed, watermark_ms, f"{name}_time")


def join_table(
    events: DataFrame, table: DataFrame, column: str, *, how: How = "inner"
) -> DataFrame:
    """Return events with the rows of a table that belong to their keys.

    Args:
        events: of a batch or a stream; has the columns `key`, `time` and `text`.
        table: a batch.
        column: of the table, compared with the key as text.
        how: `inner` leaves out events without a row; `left` keeps them.

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
