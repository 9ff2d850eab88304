"""The data source seen through Spark; what needs no JVM is in `test_reading` and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from broker.errors import ConfigError, InvalidMessageError, TopicNotFoundError
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.jobs import cause_of
from broker.spark.planner import plan_read
from broker.spark.source import read_messages
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


def test_table_when_read_from_a_broker_in_many_tasks_then_has_every_message_once(
    spark: SparkSession, running_broker: Broker
) -> None:
    publish(running_broker, "events", numbered(0, 2000))
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "subscribe": "events"}

    table = read_messages(spark, options | {"maxBytesPerPartition": "3000"}, columns=["value"])

    assert table.rdd.getNumPartitions() == 10
    assert sorted(bytes(row.value) for row in table.collect()) == numbered(0, 2000)


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


def test_column_when_of_another_type_then_is_refused(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    data = write_segments(numbered(0, 1))

    with pytest.raises(PySparkException) as caught:
        spark.read.format("pylog").schema("value string").load(str(data)).collect()

    assert str(cause_of(caught.value)) == (
        "column 'value' is binary, not string: cast it after reading"
    )
