"""Counts of events per key in windows of time: tumbling, sliding, and sessions.

    messages = stream_messages(spark, {"brokers": "localhost:9092", "subscribe": "web"})
    requests = events(messages, EventFields(key_field=".status", time_field=".time"))
    count_windows(requests, 60_000, watermark_ms=300_000).writeStream...

A stream needs a watermark: how far behind the newest time an event may come and still be counted.
Without one Spark would keep every window for ever. A stream gives each window once, when the
watermark has passed its end; later events of that window are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def with_watermark(events: DataFrame, watermark_ms: int | None, column: str = "time") -> DataFrame:
    """Return a stream that knows how late its events may be; a batch as it is.

    Args:
        events: has a column with times.
        watermark_ms: how late, from 0.
        column: the one with times.

    Raises:
        QueryError: a stream has no watermark.
    """
    if not events.isStreaming:
        return events
    if watermark_ms is None or watermark_ms < 0:
        raise QueryError("a stream needs a watermark: how late its events may come")
    return events.withWatermark(column, _interval(watermark_ms))


def _counted(events: DataFrame, window: Column, watermark_ms: int | None) -> DataFrame:
    timed = with_watermark(events.where(fn.col("time").isNotNull()), watermark_ms)
    counts = timed.groupBy(window.alias("window"), "key").agg(fn.count("*").alias("messages"))
    return counts.select("window.start", "window.end", "key", "messages")


def _interval(length_ms: int) -> str:
    return f"{length_ms} milliseconds"
