"""Joins of topics with topics and tables, in a batch and in streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.errors import QueryError
from broker.server.broker import Broker
from broker.spark.events import join_table, join_topics
from broker.spark.extraction import EventFields, events
from broker.spark.source import read_messages, stream_messages
from tests.support.segments import WriteSegments
from tests.support.spark_session import publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BASE_MS = 1_700_000_040_000
FIELDS = EventFields(key_field="id", time_field="ts")


def payload(key: str | None, second: float) -> bytes:
    return json.dumps({"id": key, "ts": BASE_MS + round(second * 1000)}).encode()


def pairs(table: DataFrame) -> list[tuple[object, ...]]:
    rows = table.selectExpr("key", "unix_millis(left_time)", "unix_millis(right_time)").collect()
    made = [(r[0], *((ms - BASE_MS) // 1000 if ms else None for ms in r[1:])) for r in rows]
    return sorted(made, key=str)


@pytest.fixture
def sides(spark: SparkSession, write_segments: WriteSegments) -> tuple[DataFrame, DataFrame]:
    """Two topics as events."""
    write_segments([payload("a", 0), payload("b", 5), payload(None, 6)], directory="orders_0")
    data = write_segments(
        [payload("a", 3), payload("a", 90), payload("c", 5), payload(None, 6)], directory="paid_0"
    )

    def side(topic: str) -> DataFrame:
        options = {"path": str(data), "subscribe": topic}
        return events(read_messages(spark, options, columns=["value"]), FIELDS)

    return side("orders"), side("paid")


def test_topics_when_joined_then_pairs_have_the_same_key(
    sides: tuple[DataFrame, DataFrame],
) -> None:
    joined = join_topics(*sides)

    assert joined.columns == ["key", "left_time", "left", "right_time", "right"]
    assert pairs(joined) == [("a", 0, 3), ("a", 0, 90)]
    assert joined.first()["left"] == payload("a", 0).decode()  # type: ignore[index]  # there are some


def test_topics_when_joined_within_a_time_then_later_ones_are_left_out(
    sides: tuple[DataFrame, DataFrame],
) -> None:
    assert pairs(join_topics(*sides, within_ms=3000)) == [("a", 0, 3)]
    assert pairs(join_topics(*sides, within_ms=2999, how="left")) == [
        ("a", 0, None), ("b", 5, None), (None, 6, None),
    ]  # fmt: skip


def test_table_when_joined_then_its_columns_follow_the_event(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    table = spark.createDataFrame(
        [("a", "Ada", 1), ("c", "Cy", 2)], "code string, name string, time int"
    )

    inner = join_table(sides[0], table, "code")
    left = join_table(sides[0], table, "code", how="left")

    assert inner.columns == ["key", "time", "text", "name", "table_time"]
    assert [(row.key, row.name, row.table_time) for row in inner.collect()] == [("a", "Ada", 1)]
    assert left.count() == 3


def test_table_when_its_columns_have_hard_names_then_is_joined(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    table = spark.createDataFrame(
        [("a", "x", 1, 2)], "`user.id` string, Text string, `a.b` int, b int"
    )

    joined = join_table(sides[0], table, "user.id")

    assert joined.columns == ["key", "time", "text", "table_Text", "a.b", "b"]
    assert [(row.key, *row[3:]) for row in joined.collect()] == [("a", "x", 1, 2)]


def test_table_when_it_lacks_the_column_then_says_which_there_are(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    with pytest.raises(QueryError, match="no column 'id'; it has: code"):
        join_table(sides[0], spark.createDataFrame([("a",)], "code string"), "id")


def streams(spark: SparkSession, broker: Broker) -> tuple[DataFrame, DataFrame]:
    def side(topic: str) -> DataFrame:
        where = {"brokers": f"127.0.0.1:{broker.port}", "subscribe": topic}
        options = where | {"startingOffsets": "earliest"}
        return events(stream_messages(spark, options, columns=["value"]), FIELDS)

    return side("orders"), side("paid")


def test_streams_when_joined_within_bounds_then_pairs_come_and_unpaired_after_the_watermark(
    spark: SparkSession, running_broker: Broker, tmp_path: Path
) -> None:
    publish(running_broker, "orders", [payload("a", 0), payload("b", 5), payload("c", 500)])
    publish(running_broker, "paid", [payload("a", 3), payload("a", 90), payload("x", 500)])
    left, right = streams(spark, running_broker)

    query = (
        join_topics(left, right, within_ms=10_000, watermark_ms=20_000, how="left")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "output"))
    )
    assert query.awaitTermination(240)

    found = pairs(spark.read.parquet(str(tmp_path / "output")))
    assert found == [("a", 0, 3), ("b", 5, None)]


def test_streams_when_without_bounds_then_are_refused(
    spark: SparkSession, running_broker: Broker, sides: tuple[DataFrame, DataFrame]
) -> None:
    publish(running_broker, "orders", [payload("a", 0)])
    publish(running_broker, "paid", [payload("a", 0)])
    left, right = streams(spark, running_broker)

    with pytest.raises(QueryError, match="needs a time bound"):
        join_topics(left, right, watermark_ms=1000)
    with pytest.raises(QueryError, match="needs a watermark"):
        join_topics(left, right, within_ms=1000)
    with pytest.raises(QueryError, match="joined with a stream, or with a table"):
        join_topics(left, sides[1], within_ms=1000, watermark_ms=1000)
    with pytest.raises(QueryError, match="within -1 ms"):
        join_topics(*sides, within_ms=-1)
    with pytest.raises(QueryError, match="is a batch"):
        join_table(sides[0], right, "key")
