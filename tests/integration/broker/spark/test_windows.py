"""Counts in windows, in a batch and in streams, against a real broker."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pylogctl
from broker.errors import QueryError
from broker.server.broker import Broker
from broker.spark.events import count_sessions, count_windows, largest
from broker.spark.extraction import EventFields, events
from broker.spark.loading.dates import TimeFormat
from broker.spark.source import read_messages, stream_messages
from broker.times import epoch_ms
from pylogctl import windows
from tests.support.segments import WriteSegments
from tests.support.spark_session import publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BASE_MS = 1_700_000_040_000  # at the start of a minute
BY_USER = EventFields(key_field=".user", time_field=".ts")
Counts = list[tuple[int, int, str | None, int]]


def event(user: str, second: float) -> bytes:
    return json.dumps({"user": user, "ts": BASE_MS + round(second * 1000)}).encode()


def at(*payloads: tuple[str, float]) -> list[bytes]:
    return [event(*one) for one in payloads]


def seconds(table: DataFrame) -> Counts:
    """Return start and end in seconds since the base, key and count, in order."""
    rows = table.selectExpr("unix_millis(start)", "unix_millis(end)", "key", "messages").collect()
    made = [((a - BASE_MS) // 1000, (b - BASE_MS) // 1000, key, n) for a, b, key, n in rows]
    return sorted(made, key=lambda row: (row[0], row[2] or ""))


def batch(spark: SparkSession, data: Path, fields: EventFields = BY_USER) -> DataFrame:
    return events(read_messages(spark, {"path": str(data)}, columns=["value"]), fields)


def test_tumbling_windows_when_counted_then_each_event_is_in_one(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(
        at(("a", 0), ("b", 1), ("a", 59.9), ("a", 60)), [b"no json", event("b", 61)]
    )

    assert seconds(count_windows(batch(spark, data), 60_000)) == [
        (0, 60, "a", 2), (0, 60, "b", 1), (60, 120, "a", 1), (60, 120, "b", 1),
    ]  # fmt: skip


def test_sliding_windows_when_counted_then_events_are_in_each_that_covers_them(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(at(("a", 0), ("a", 35)))

    assert seconds(count_windows(batch(spark, data), 60_000, slide_ms=30_000)) == [
        (-30, 30, "a", 1), (0, 60, "a", 2), (30, 90, "a", 1),
    ]  # fmt: skip


def test_sessions_when_counted_then_end_where_a_key_is_quiet(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(at(("a", 0), ("b", 9), ("a", 9), ("a", 18), ("a", 40)))

    assert seconds(count_sessions(batch(spark, data), 10_000)) == [
        (0, 28, "a", 3), (9, 19, "b", 1), (40, 50, "a", 1),
    ]  # fmt: skip


def priced(user: str, second: float, price: object) -> bytes:
    return json.dumps(json.loads(event(user, second)) | {"price": price}).encode()


def test_windows_when_events_have_a_value_then_have_its_sum_and_average(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(
        [priced("a", 0, 3), priced("a", 1, "4.5"), priced("a", 2, None), priced("a", 3, "NaN")],
        [priced("b", 4, "1e999"), priced("b", 61, -2), priced("c", 62, 10)],
    )
    fields = replace(BY_USER, value_field=".price")

    counts = count_windows(batch(spark, data, fields), 60_000).orderBy("start", "key").collect()

    assert [tuple(row)[2:] for row in counts] == [
        ("a", 4, 7.5, 3.75, 3.0, 4.5), ("b", 1, None, None, None, None),
        ("b", 1, -2.0, -2.0, -2.0, -2.0), ("c", 1, 10.0, 10.0, 10.0, 10.0),
    ]  # fmt: skip


def test_windows_when_only_the_largest_are_wanted_then_each_has_its_own(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(
        [priced("a", 0, 3), priced("a", 1, 1), priced("b", 2, 9), priced("c", 3, None)],
        [priced("c", 60, 1), priced("b", 61, 2)],
    )
    counts = count_windows(batch(spark, data, replace(BY_USER, value_field=".price")), 60_000)

    assert [row.key for row in largest(counts, 1).collect()] == ["a", "b"]
    assert [row.key for row in largest(counts, 2, "sum").collect()] == ["b", "a", "b", "c"]
    with pytest.raises(QueryError, match="there is no column 'price'"):
        largest(counts, 1, "price")


@pytest.mark.parametrize(("length_ms", "slide_ms"), [(0, None), (1000, 0), (1000, 1001)])
def test_windows_when_impossible_then_are_refused(
    spark: SparkSession, write_segments: WriteSegments, length_ms: int, slide_ms: int | None
) -> None:
    table = batch(spark, write_segments([b"x"]))

    with pytest.raises(QueryError, match=f"a window of {length_ms} ms cannot slide by"):
        count_windows(table, length_ms, slide_ms=slide_ms)


def test_stream_when_without_watermark_then_is_refused(
    spark: SparkSession, running_broker: Broker
) -> None:
    publish(running_broker, "events", at(("a", 0)))
    stream = events(stream_messages(spark, on(running_broker)), BY_USER)

    with pytest.raises(QueryError, match="a stream needs a watermark"):
        count_windows(stream, 60_000)
    with pytest.raises(QueryError, match="a stream needs a watermark"):
        count_sessions(stream, 60_000)


def on(broker: Broker) -> dict[str, str]:
    where = {"brokers": f"127.0.0.1:{broker.port}", "subscribe": "events"}
    return where | {"startingOffsets": "earliest"}


def run_available(spark: SparkSession, broker: Broker, directory: Path) -> None:
    stream = events(stream_messages(spark, on(broker), columns=["value"]), BY_USER)
    query = (
        count_sessions(stream, 10_000, watermark_ms=5_000)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(directory / "output"))
    )
    assert query.awaitTermination(240)


def test_stream_when_the_watermark_passes_then_sessions_come_once_and_late_events_do_not_count(
    spark: SparkSession, running_broker: Broker, tmp_path: Path
) -> None:
    publish(running_broker, "events", at(("a", 0), ("a", 5), ("b", 8), ("a", 100)))
    run_available(spark, running_broker, tmp_path)
    publish(running_broker, "events", at(("a", 1), ("b", 150)))  # the first is too late
    run_available(spark, running_broker, tmp_path)

    found = seconds(spark.read.parquet(str(tmp_path / "output")))

    assert found == [(0, 15, "a", 2), (8, 18, "b", 1), (100, 110, "a", 1)]
    sessions = windows.sessions(10, **IN_PYTHON | {"lateness": 5})
    with pylogctl.connect(f"127.0.0.1:{running_broker.port}") as client:
        assert in_seconds(chain(*map(sessions.add, client.read("events")))) == found
    assert (sessions.late_count, sessions.open_count) == (1, 1)


def test_windows_without_spark_when_compared_then_are_the_same(
    spark: SparkSession, running_broker: Broker
) -> None:
    dice = random.Random(7)
    # a gap's length apart and a millisecond more, at ends of windows, before 1970, in disorder
    sent = at(*(("x", one) for one in (0, 10, 20.001, 60, 69.999, 79.999)))
    sent += at(*((dice.choice("abc"), round(dice.uniform(0, 1000), 3)) for _ in range(200)))
    sent += [b'{"user":"y","ts":"1969-12-31T23:59:%dZ"}' % second for second in (11, 53)]
    dice.shuffle(sent)
    publish(running_broker, "events", [*sent, b"no json"])
    with pylogctl.connect(f"127.0.0.1:{running_broker.port}") as client:
        messages = list(client.read("events"))

    table = events(read_messages(spark, on(running_broker), columns=["value"]), BY_USER).cache()
    for counted, made in (
        (count_windows(table, 60_000), windows.tumbling(60, **IN_PYTHON)),
        (count_windows(table, 60_000, slide_ms=25_000), windows.sliding(60, 25, **IN_PYTHON)),
        (count_sessions(table, 10_000), windows.sessions(10, **IN_PYTHON)),
    ):
        found = in_seconds(made.add_all(messages))
        assert found == seconds(counted)
        assert sum(one[3] for one in found) >= len(sent)
        assert (made.late_count, made.timeless_count) == (0, 1)


def time_of(message: pylogctl.Message) -> datetime | None:
    if not message.value.startswith(b"{"):
        return None
    ts = message.json()["ts"]
    return EPOCH + timedelta(milliseconds=ts) if isinstance(ts, int) else datetime.fromisoformat(ts)


def user_of(message: pylogctl.Message) -> str:
    return str(message.json()["user"])


IN_PYTHON: Any = {"key": user_of, "time": time_of, "lateness": 1e10}


def in_seconds(closed: Iterable[windows.Window]) -> Counts:
    """Return what `seconds` does."""
    made = []
    for one in closed:
        start, end = ((epoch_ms(time) - BASE_MS) // 1000 for time in (one.start, one.end))
        made.append((start, end, str(one.key), len(one.messages)))
    return sorted(made, key=lambda row: (row[0], row[2]))


def lines_of(shared_data: Path, name: str) -> list[bytes]:
    path = shared_data / "logs" / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    return path.read_bytes().splitlines()


def test_apache_log_when_counted_per_minute_then_errors_are_as_counted_by_hand(
    spark: SparkSession, write_segments: WriteSegments, shared_data: Path
) -> None:
    lines = lines_of(shared_data, "Apache_2k.log")
    fields = EventFields(
        pattern=r"^\[\w+ (?P<time>\w+ \d+ [\d:]+ \d+)\] \[(?P<key>\w+)\]",
        time_format=TimeFormat("%b %d %H:%M:%S %Y"),
    )
    expected: Counter[tuple[datetime, str]] = Counter()
    for line in lines:
        time, level = line.decode()[5:25], line.decode()[28:].partition("]")[0]
        moment = datetime.strptime(f"{time} +0000", "%b %d %H:%M:%S %Y %z")
        expected[moment.replace(second=0), level] += 1

    counts = count_windows(batch(spark, write_segments(lines), fields), 60_000)

    rows = counts.selectExpr("unix_millis(start)", "key", "messages").collect()
    assert {(datetime.fromtimestamp(ms / 1000, UTC), key): n for ms, key, n in rows} == expected
    assert sum(n for (_, level), n in expected.items() if level == "error") == 595


def test_ssh_log_when_failed_logins_are_counted_then_the_top_sources_are_found(
    spark: SparkSession, write_segments: WriteSegments, shared_data: Path
) -> None:
    lines = lines_of(shared_data, "OpenSSH_2k.log")
    fields = EventFields(
        pattern=r"^(?P<time>\w+ +\d+ [\d:]+) .*: Failed password .* from (?P<key>[\d.]+)",
        time_format=TimeFormat("%b %d %H:%M:%S", year=2016),
    )
    expected = Counter(
        line.rpartition(b" from ")[2].split()[0].decode()
        for line in lines
        if b": Failed password " in line
    )

    counts = count_windows(batch(spark, write_segments(lines), fields), 86_400_000)

    rows = counts.orderBy("messages", ascending=False).collect()
    assert {row.key: row.messages for row in rows} == expected
    assert (rows[0].key, rows[0].messages) == expected.most_common(1)[0]
