"""Pipeline commands on segment files of Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from broker.protocol.codec import Record
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke
from tests.support.kafka_files import batch, records, write_log
from tests.support.segments import WriteSegments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLICKS = [
    Record(0, 1_000, b"ada", b'{"page": "/"}', (("trace", b"1"),)),
    Record(1, 59_000, b"bob", b'{"page": "/a"}'),
    Record(2, 61_000, b"ada", None),
]


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    """A data directory of Kafka's with one topic."""
    write_log(tmp_path / "kafka data" / "shop.clicks-eu-0", batch(CLICKS))
    return tmp_path / "kafka data"


def test_load_when_of_kafka_files_then_keeps_all_of_a_record_once(
    clicks: Path, tmp_path: Path, invoke: Invoke
) -> None:
    command = ("pipeline", "load", "--path", str(clicks), "--to", str(tmp_path / "lake"), "--local")

    plan = invoke(*command, "--dry-run", "--output", "csv", "--columns", "topic,partition,end")
    first = invoke(*command, "--output", "csv", "--columns", "topic,partition,start,end,messages")
    more = [Record(one, 1, b"k", b"v") for one in (3, 4)]
    path = clicks / "shop.clicks-eu-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes() + batch(more))
    second = invoke(*command, "--output", "csv", "--columns", "start,end,messages")

    assert plan.text == "topic,partition,end\nshop.clicks-eu,0,3\n"
    assert first.text == "topic,partition,start,end,messages\nshop.clicks-eu,0,0,3,3\n"
    assert second.text == "start,end,messages\n3,5,2\n"
    (loaded,) = (tmp_path / "lake/loads/load=0000000001/topic=shop.clicks-eu").glob("*/*.parquet")
    rows = pq.ParquetFile(loaded).read().to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (one.offset, one.key, one.value) for one in CLICKS
    ]
    assert [row["timestamp"].timestamp() for row in rows] == [1, 59, 61]
    assert rows[0]["headers"] == [{"key": "trace", "value": b"1"}]


def test_load_when_json_then_keys_and_headers_are_text(
    clicks: Path, tmp_path: Path, invoke: Invoke
) -> None:
    lake = tmp_path / "lake"

    invoke("pipeline", "load", "--path", str(clicks), "--to", str(lake), "--format", "json",
           "--local")  # fmt: skip

    (loaded,) = lake.glob("loads/*/*/*/*.json")
    first, _, last = loaded.read_text().splitlines()
    assert '"key":"ada","headers":[{"key":"trace","value":"1"}],"value":"{' in first
    assert '"headers":[],"value":null}' in last


def test_load_when_its_output_has_messages_of_the_other_format_then_is_refused(
    clicks: Path, tmp_path: Path, write_segments: WriteSegments, invoke: Invoke
) -> None:
    into = ("--to", str(tmp_path / "lake"), "--local")
    invoke("pipeline", "load", "--path", str(write_segments([b"old"])), *into)

    result = invoke("pipeline", "load", "--path", str(clicks), *into)

    assert result.status == ExitStatus.CONFLICT
    assert "name another output" in result.stderr


def test_load_when_a_batch_is_damaged_then_fails_or_skips_it(
    tmp_path: Path, invoke: Invoke
) -> None:
    good = [batch(records(at, at + 5)) for at in (0, 5)]
    write_log(tmp_path / "web-0", good[0][:-1] + b"!", good[1])
    command = ("pipeline", "load", "--path", str(tmp_path / "web-0"), "--local", "--output", "csv")

    failed = invoke(*command, "--to", str(tmp_path / "a"))
    skipped = invoke(
        *command, "--to", str(tmp_path / "b"), "--corrupt", "skip",
        "--columns", "messages,left_out_bytes",
    )  # fmt: skip

    assert failed.status == ExitStatus.CORRUPT
    assert "--corrupt skip" in failed.stderr
    assert skipped.text == f"messages,left_out_bytes\n5,{len(good[0])}\n"


@pytest.mark.spark
def test_sql_and_window_when_of_kafka_files_then_use_key_and_time_of_records(
    spark: SparkSession, clicks: Path, invoke: Invoke
) -> None:
    path = ("--path", str(clicks), "--output", "csv")
    query = (
        "SELECT partition, offset, timestamp, headers[0].key AS header, page, text "
        "FROM `shop.clicks-eu` ORDER BY offset"
    )

    rows = invoke("pipeline", "sql", query, *path, "--json-payloads")
    windows = invoke("pipeline", "window", *path, "--size", "1m")

    assert rows.stderr == ""
    assert rows.text == (
        "partition,offset,timestamp,header,page,text\n"
        '0,0,1970-01-01T00:00:01Z,trace,/,"{""page"": ""/""}"\n'
        '0,1,1970-01-01T00:00:59Z,,/a,"{""page"": ""/a""}"\n'
        "0,2,1970-01-01T00:01:01Z,,,\n"
    )
    assert rows.stderr == ""
    assert windows.text == (
        "start,end,key,messages\n"
        "1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,ada,1\n"
        "1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,bob,1\n"
        "1970-01-01T00:01:00Z,1970-01-01T00:02:00Z,ada,1\n"
    )
