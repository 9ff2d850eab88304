"""Kafka's segment files through Spark; what needs no JVM is in `test_record_logs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from broker.errors import ConfigError, InvalidMessageError
from broker.spark.jobs import cause_of
from broker.spark.source import read_messages
from tests.support.kafka_files import (
    batch,
    committed_digests,
    digest_of,
    records,
    write_log,
)
from tests.support.segments import WriteSegments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = """\
key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, \
timestampType int, headers array<struct<key:string,value:binary>>"""


def test_directories_of_kafka_when_loaded_then_have_the_records_that_it_wrote(
    spark: SparkSession, kafka_logs: Path
) -> None:
    table = spark.read.format("pylog").load(str(kafka_logs))

    assert ", ".join(f"{name} {kind}" for name, kind in table.dtypes) == COLUMNS
    assert table.schema == spark.read.schema(COLUMNS).json(spark.sparkContext.emptyRDD()).schema
    rows: dict[str, list[dict[str, object]]] = {}
    for row in table.collect():
        rows.setdefault(row.topic, []).append(row.asDict())
    wanted = committed_digests(kafka_logs)
    assert {topic: digest_of(rows[topic]) for topic in wanted} == wanted
    assert {topic: len(rows[topic]) for topic in ("v2-rolled", "v2-txn")} == {
        "v2-rolled": 300,
        "v2-txn": 40,
    }
    assert len(rows) == 18


def test_columns_when_some_are_read_then_only_these_are_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_log(tmp_path / "web-0", batch(records(0, 30)), batch(records(30, 50)))

    values = read_messages(spark, {"path": str(tmp_path)}, columns=["value"])
    table = spark.read.format("pylog").option("subscribe", "web").load(str(tmp_path))

    assert values.columns == ["value"]
    assert sorted(int(row.value) for row in values.collect()) == list(range(50))
    assert table.count() == 50
    with pytest.raises(ConfigError, match="there is no column 'crc'"):
        read_messages(spark, {"path": str(tmp_path)}, columns=["crc"])


def test_file_when_damaged_or_of_another_format_then_spark_says_which(
    spark: SparkSession, write_segments: WriteSegments, tmp_path: Path
) -> None:
    good = [batch(records(at, at + 5)) for at in (0, 5, 10)]
    path = write_log(tmp_path / "logs" / "web-0", good[0], good[1][:-1] + b"!", good[2])
    reader = spark.read.format("pylog")

    with pytest.raises(PySparkException) as failure:
        reader.load(str(tmp_path)).collect()
    kept = reader.option("crc", "skip").load(str(tmp_path))
    assert kept.count() == 10
    data = write_segments([b"old"])
    with pytest.raises(PySparkException) as mixed:
        reader.load(str(data))

    damage = cause_of(failure.value)
    assert isinstance(damage, InvalidMessageError)
    assert f"{path}, at offset 5: the message at {len(good[0])} is invalid" in str(damage)
    assert "messages of Kafka 0.7, with other columns" in str(cause_of(mixed.value))
