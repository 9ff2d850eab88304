"""Loads on a real Spark, and the same on processes: tasks that fail, and a killed process."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from broker.errors import InvalidMessageError
from broker.server.broker import Broker
from broker.spark.compaction import compact
from broker.spark.jobs import TaskCounts, cause_of, watched_query
from broker.spark.load import LoadRequest, run_load
from broker.spark.loading.dates import DateRule
from broker.spark.loading.files import FileFormat
from broker.spark.loading.output import LoadOutput, Manifest
from broker.spark.local import LocalProcesses
from tests.integration.broker.spark.flaky import flaky_load_range
from tests.support.command_line import Process
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse
from tests.support.spark_session import REPOSITORY, publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def on(broker: Broker, **options: str) -> dict[str, str]:
    return {"brokers": f"127.0.0.1:{broker.port}", "subscribe": "events", **options}


def loaded(spark: SparkSession, output: Path) -> list[bytes]:
    rows = spark.read.parquet(str(output / "loads")).select("value").collect()
    return sorted(bytes(row.value) for row in rows)


def test_load_when_tasks_fail_then_has_each_message_once(
    spark: SparkSession,
    running_broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Attempts fail after they have written all their files."""
    publish(running_broker, "events", numbered(0, 1000))
    request = LoadRequest(tmp_path / "lake", parse(on(running_broker, maxBytesPerPartition="6000")))
    parts: list[float] = []
    monkeypatch.setattr("broker.spark.load.load_range", flaky_load_range)

    made = run_load(spark, request, parts.append)

    assert made and made.message_count == 1000
    assert loaded(spark, tmp_path / "lake") == numbered(0, 1000)
    assert parts == sorted(parts) and parts[-1] == 1.0
    table = spark.read.parquet(str(tmp_path / "lake" / "loads"))
    assert {"load", "topic", "date"} < set(table.columns)
    assert table.where("topic = 'events' and load = 1").count() == 1000


def test_load_when_a_task_fails_for_good_then_says_why_and_leaves_nothing(
    spark: SparkSession, write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments(numbered(0, 20))
    path = data / "events_0" / f"{0:020d}.pylog"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)

    with pytest.raises(Exception, match="CorruptMessage") as caught:
        run_load(spark, LoadRequest(tmp_path / "lake", parse({"path": str(data)})))

    cause = cause_of(caught.value)
    assert isinstance(cause, InvalidMessageError)
    assert str(cause).startswith("events[0-0]: ")
    assert LoadOutput(tmp_path / "lake").numbers() == []
    assert not (tmp_path / "lake" / "_staging").exists()


@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_load_when_on_spark_or_on_processes_then_files_and_manifests_are_equal(
    spark: SparkSession, write_segments: WriteSegments, tmp_path: Path, file_format: FileFormat
) -> None:
    lines = [b"2026-01-%02d %04d" % (1 + number % 3, number) for number in range(300)]
    data = write_segments(lines)
    write_segments(lines[:50], directory="others_0")
    path = data / "events_0" / f"{0:020d}.pylog"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    request = LoadRequest(
        tmp_path / "spark",
        parse({"path": str(data), "maxBytesPerPartition": "1000"}),
        file_format=file_format,
        dates=DateRule("2026-02-01", pattern=r"^\S+"),
        skips_corrupt=True,
    )

    on_spark = run_load(spark, request)
    with LocalProcesses(2) as processes:
        here = run_load(processes, replace(request, output=tmp_path / "here"))

    assert on_spark and here and here.message_count == 349
    same = replace(
        here, started_ms=on_spark.started_ms, finished_ms=on_spark.finished_ms, files=on_spark.files
    )
    assert same == on_spark
    assert contents(tmp_path / "here", here) == contents(tmp_path / "spark", on_spark)


def contents(output: Path, manifest: Manifest) -> list[tuple[str, int, Any]]:
    """The files of the first load, without the parts of names that differ between attempts."""
    found = []
    for one in manifest.files:
        path = output / "loads" / "load=0000000001" / one.path
        rows = pq.ParquetFile(path).read() if path.suffix == ".parquet" else path.read_bytes()
        found.append((one.path.rpartition("-")[0], one.message_count, rows))
    return sorted(found, key=lambda one: one[0])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["spark", "processes"])
def test_load_when_its_process_is_killed_then_the_next_one_has_each_message_once(
    spark: SparkSession, running_broker: Broker, tmp_path: Path, engine: str
) -> None:
    output = tmp_path / "lake"
    options = on(running_broker, maxBytesPerPartition="400")
    publish(running_broker, "events", numbered(0, 100))
    run_load(spark, LoadRequest(output, parse(options)))
    publish(running_broker, "events", numbered(100, 2000))
    job = [
        sys.executable,
        "-m",
        "tests.integration.broker.spark.load_job",
        engine,
        str(output),
        options["brokers"],
    ]
    environ = os.environ | {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    with Process(job, cwd=REPOSITORY, env=environ) as process:
        wait_until(
            lambda: len(list(output.glob("_staging/*/topic=events/*/*.parquet"))) > 5,
            "writing",
            deadline_s=180,
        )
        process.send_signal(signal.SIGKILL)

    assert loaded(spark, output) == numbered(0, 100)
    made = run_load(spark, LoadRequest(output, parse(options)))

    assert made and made.number == 2
    assert loaded(spark, output) == numbered(0, 2000)


def test_loads_when_read_as_documented_then_topics_of_digits_keep_their_names(
    spark: SparkSession, write_segments: WriteSegments, tmp_path: Path
) -> None:
    write_segments([b"007"], directory="007_0")
    data = write_segments([b"7"], directory="7_0")
    run_load(spark, LoadRequest(tmp_path / "lake", parse({"path": str(data)})))
    session = spark.newSession()

    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    table = session.read.parquet(str(tmp_path / "lake" / "loads"))

    rows = table.select("topic", "value").collect()
    assert sorted((row.topic, bytes(row.value)) for row in rows) == [("007", b"007"), ("7", b"7")]


def test_compact_when_read_by_spark_then_loads_have_their_numbers_and_rows(
    spark: SparkSession, write_segments: WriteSegments, tmp_path: Path
) -> None:
    output = tmp_path / "lake"
    size_bytes = 14
    for number in range(4):
        lines = numbered(number * 10, number * 10 + 10)
        data = write_segments(lines, start=number * 10 * size_bytes)
        run_load(spark, LoadRequest(output, parse({"path": str(data)})))
    parts: list[float] = []

    made = compact(spark, output, keep=1, on_progress=parts.append)

    assert made and made.number == 3
    assert parts[-1] == 1.0
    assert loaded(spark, output) == numbered(0, 40)
    table = spark.read.parquet(str(output / "loads"))
    counts = {row["load"]: row["count"] for row in table.groupBy("load").count().collect()}
    assert counts == {3: 30, 4: 10}


def test_query_when_watched_then_its_tasks_are_counted(spark: SparkSession) -> None:
    reports: list[TaskCounts] = []
    waiting = spark.range(0, 8, 1, 8).selectExpr("java_method('java.lang.Thread', 'sleep', 200L)")

    def is_counted() -> bool:  # on a busy machine a query can end before it is looked at
        with watched_query(spark, reports.append):
            waiting.collect()
        return any(one.done > 0 for one in reports)

    wait_until(is_counted, "a count of tasks")
    assert max(one.known for one in reports) == 8
    assert max(one.done for one in reports) <= 8
