"""The data source seen through Spark; what needs no JVM is in `test_reading` and others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from broker.errors import ConfigError, InvalidMessageError, TopicNotFoundError
from broker.log.archiving import archive_segment
from broker.protocol.envelope import Envelope
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.jobs import cause_of
from broker.spark.reading.planner import plan_read
from broker.spark.source import read_messages
from broker.topic import TopicPartition
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse
from tests.support.spark_session import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SIZE = len(build_set([b"0000"]))


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def test_table_when_read_from_files_then_has_all_columns_and_rows(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(numbered(0, 500), numbered(500, 1000))

    table = spark.read.format("pylog").option("maxBytesPerPartition", 2000).load(str(data))

    assert table.columns == [
        "topic",
        "partition",
        "offset",
        "next_offset",
        "inner_index",
        "value",
        "crc",
    ]
    assert [bytes(row.value) for row in table.orderBy("offset").collect()] == numbered(0, 1000)


def test_table_when_segments_are_archived_then_has_their_rows_and_a_task_for_each(
    spark: SparkSession, write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments(numbered(0, 500), numbered(500, 1000), numbered(1000, 1100))
    first, second, _ = sorted((data / "events_0").iterdir())
    for path in (first, second):
        archive_segment(tmp_path / "archive", TopicPartition("events", 0, 0), path)
        path.unlink()
    paths = json.dumps([str(data), str(tmp_path / "archive")])

    table = read_messages(spark, {"paths": paths, "maxBytesPerPartition": "2000"})

    assert table.rdd.getNumPartitions() == 3
    rows = table.orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == numbered(0, 1100)
    assert {(row.topic, row.partition) for row in rows} == {("events", "0-0")}


def test_table_when_read_from_a_broker_in_many_tasks_then_has_every_message_once(
    spark: SparkSession, running_broker: Broker
) -> None:
    publish(running_broker, "events", numbered(0, 2000))
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "events"}

    table = read_messages(spark, options | {"maxBytesPerPartition": "3000"}, columns=["value"])

    assert table.rdd.getNumPartitions() == 10
    assert sorted(bytes(row.value) for row in table.collect()) == numbered(0, 2000)


def test_table_when_its_partitions_are_small_then_as_many_tasks_as_wanted_read_all(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    parts = [(f"events_{index}", numbered(100 * index, 100 * index + 100)) for index in range(9)]
    (data,) = {write_segments(payloads, directory=name) for name, payloads in parts}
    options = {"path": str(data)}

    joined = read_messages(spark, options | {"minPartitions": "3"}, columns=["value"])
    apart = spark.read.format("pylog").load(str(data))

    assert joined.rdd.getNumPartitions() == 3
    assert apart.rdd.getNumPartitions() == 9
    assert [bytes(row.value) for row in joined.collect()] == numbered(0, 900)


@pytest.mark.parametrize("crc", ["fail", "mark"])
def test_table_when_damage_is_marked_then_only_its_row_lacks_a_value(
    spark: SparkSession, write_segments: WriteSegments, crc: str
) -> None:
    data = write_segments(numbered(0, 5))
    if crc == "mark":
        with (data / "events_0" / f"{0:020d}.pylog").open("r+b") as file:
            file.seek(2 * SIZE)
            file.write(b"\xff\xff\xff\xff")  # a length that cannot be

    table = spark.read.format("pylog").option("crc", crc).load(str(data))

    assert table.where("topic = 'events' AND partition = '0-0'").count() == 5
    missing = table.where("value IS NULL AND crc IS NULL")
    assert [row.offset for row in missing.collect()] == ([2 * SIZE] if crc == "mark" else [])
    nullable = {field.name for field in table.schema if field.nullable}
    assert nullable == ({"value", "crc"} if crc == "mark" else set())


def test_columns_when_chosen_then_come_alone_and_in_that_order(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(numbered(0, 3))

    table = read_messages(spark, {"path": str(data)}, columns=["value", "offset"])

    assert [(bytes(row[0]), row[1]) for row in table.orderBy("offset").collect()] == [
        (b"0000", 0),
        (b"0001", SIZE),
        (b"0002", 2 * SIZE),
    ]


def test_table_when_there_is_nothing_then_is_empty(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    assert read_messages(spark, {"path": str(write_segments([]))}).count() == 0


@pytest.mark.parametrize("pushdown", ["false", "true"])
def test_table_when_filtered_once_then_later_actions_have_all_rows(
    spark: SparkSession, running_broker: Broker, pushdown: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    publish(running_broker, "events", numbered(0, 100))
    table = read_messages(
        spark, {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "events"}
    )

    try:
        some = table.where(f"offset < {10 * SIZE}").count()

        assert (some, table.count()) == (10, 100)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_table_when_messages_are_added_after_its_first_action_then_only_a_new_one_has_them(
    spark: SparkSession, running_broker: Broker
) -> None:
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "events"}
    publish(running_broker, "events", numbered(0, 100))
    table = read_messages(spark, options)
    first = table.count()
    publish(running_broker, "events", numbered(100, 150))

    assert (first, table.count(), read_messages(spark, options).count()) == (100, 100, 150)


def test_read_when_between_planned_offsets_then_later_messages_stay_out(
    spark: SparkSession, running_broker: Broker
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "events"}
    read = parse(options)
    plan = plan_read(read)
    starts = {one.partition: one.start for one in plan.ranges}
    ends = {one.partition: one.end for one in plan.ranges}
    table = read_messages(spark, read.between(starts, ends))
    publish(running_broker, "events", numbered(100, 200))

    assert table.count() == table.count() == 100
    assert read_messages(spark, options).count() == 200


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"path": "/nowhere"}, ConfigError, "no such file or directory: /nowhere"),
        ({"path": "/", "colour": "red"}, ConfigError, "unknown option 'colour'"),
    ],
)
def test_planning_when_it_fails_then_the_cause_is_ours(
    spark: SparkSession, options: dict[str, str], kind: type[Exception], message: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        read_messages(spark, options).collect()

    cause = cause_of(caught.value)
    assert type(cause) is kind
    assert str(cause).startswith(message)


def test_topic_when_unknown_then_the_cause_is_ours(
    spark: SparkSession, running_broker: Broker
) -> None:
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "nowhere"}

    with pytest.raises(PySparkException) as caught:
        read_messages(spark, options).collect()

    assert repr(cause_of(caught.value)) == repr(TopicNotFoundError("topic 'nowhere' not found"))


def test_task_when_it_meets_damage_then_the_cause_names_the_place(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(numbered(0, 10))
    (file,) = data.rglob("*.pylog")
    file.write_bytes(file.read_bytes().replace(b"0007", b"9997"))

    with pytest.raises(PySparkException) as caught:
        read_messages(spark, {"path": str(data)}).collect()

    cause = cause_of(caught.value)
    assert isinstance(cause, InvalidMessageError)
    assert str(cause).startswith(f"events[0-0]: the message at {7 * SIZE} is invalid: ")


@pytest.mark.parametrize("name", ["key", "timestamp"])
def test_column_when_of_spark_s_kafka_source_only_then_says_why_there_is_none(
    spark: SparkSession, write_segments: WriteSegments, name: str
) -> None:
    data = write_segments(numbered(0, 1))
    sentence = (
        f"there is no column '{name}'; messages of Kafka 0.7 have no key, timestamp or headers"
    )

    with pytest.raises(ConfigError, match=sentence):
        read_messages(spark, {"path": str(data)}, columns=[name])
    with pytest.raises(PySparkException) as caught:
        spark.read.format("pylog").schema(f"{name} string").load(str(data)).collect()

    assert str(cause_of(caught.value)).startswith(sentence)


def test_column_when_of_another_type_then_is_refused(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(numbered(0, 1))

    with pytest.raises(PySparkException) as caught:
        spark.read.format("pylog").schema("value string").load(str(data)).collect()

    assert str(cause_of(caught.value)) == (
        "column 'value' is binary, not string: cast it after reading"
    )


def test_table_when_messages_have_envelopes_then_values_are_without_and_a_column_has_them(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    envelope = Envelope(1_763_625_600_250_001, "web1", 15, 7)
    data = write_segments([b"plain", envelope.wrap(b"wrapped")])

    messages = read_messages(spark, {"path": str(data)}, columns=["value", "envelope"])
    fields = messages.selectExpr("value", "envelope.*", "unix_micros(envelope.timestamp) AS us")

    plain, wrapped = (row.asDict() for row in fields.orderBy("value").collect())
    assert (bytes(plain["value"]), plain["host"], plain["us"]) == (b"plain", None, None)
    assert (bytes(wrapped["value"]), wrapped["us"]) == (b"wrapped", envelope.time_us)
    assert (wrapped["host"], wrapped["producer"], wrapped["sequence"]) == ("web1", "0000000f", 7)
    only = read_messages(spark, {"path": str(data)}, columns=["envelope"]).collect()
    assert [row.envelope is not None for row in only] == [False, True]
