"""Streams and failing tasks in Spark, against a real broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from broker.errors import BrokerUnreachableError, ConfigError
from broker.protocol.message_set import build_set
from broker.server.broker import Broker
from broker.spark.jobs import cause_of
from broker.spark.source import stream_messages
from tests.integration.broker.spark.flaky import FlakySource
from tests.support.spark_rows import read, values
from tests.support.spark_session import REPOSITORY, publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SIZE = len(build_set([b"0000"]))


StartJob = Callable[[], "subprocess.Popen[bytes]"]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def on(broker: Broker, **options: str) -> dict[str, str]:
    where = {"brokers": f"127.0.0.1:{broker.port}", "subscribe": "events"}
    return {**where, "startingOffsets": "earliest", **options}


def parquet_values(spark: SparkSession, path: Path) -> list[bytes]:
    return sorted(bytes(row.value) for row in spark.read.parquet(str(path)).collect())


def run_available(spark: SparkSession, options: dict[str, str], directory: Path) -> StreamingQuery:
    """Run a query into parquet files until all that is there is read."""
    query = (
        stream_messages(spark, options)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(directory / "output"))
    )
    assert query.awaitTermination(240)
    return query


def test_stream_when_run_again_then_goes_on_behind_the_checkpoint(
    spark: SparkSession, running_broker: Broker, tmp_path: Path
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    options = on(running_broker, maxBytesPerTrigger=str(40 * SIZE))

    first = run_available(spark, options, tmp_path)
    publish(running_broker, "events", numbered(100, 150))
    second = run_available(spark, options, tmp_path)

    assert [one.numInputRows for one in first.recentProgress if one.numInputRows] == [40, 40, 20]
    assert [one.numInputRows for one in second.recentProgress if one.numInputRows] == [40, 10]
    assert parquet_values(spark, tmp_path / "output") == numbered(0, 150)


def test_stream_when_a_broker_is_gone_then_the_cause_is_ours(
    spark: SparkSession, start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    broker = start_broker()
    publish(broker, "events", numbered(0, 10))
    broker.stop()

    with pytest.raises(PySparkException) as caught:
        run_available(spark, on(broker, connectTimeoutMs="100", timeoutMs="5000"), tmp_path)

    assert isinstance(cause_of(caught.value), BrokerUnreachableError)


def test_broker_when_gone_on_an_executor_then_the_cause_names_the_range(
    spark: SparkSession, start_broker: Callable[..., Broker]
) -> None:
    broker = start_broker()
    publish(broker, "events", numbered(0, 100))
    spark.dataSource.register(FlakySource)
    options = on(broker, connectTimeoutMs="100", timeoutMs="5000", fetchSize="100")
    table = spark.read.format("flaky").options(**options).load()
    rows = table.rdd  # planned, not run
    broker.stop()

    with pytest.raises(Exception, match="events") as caught:
        rows.count()

    cause = cause_of(caught.value)
    assert isinstance(cause, BrokerUnreachableError)
    assert f"events[0-0] 0..{100 * SIZE}: stopped at offset 0: cannot reach" in str(cause)


def test_tasks_when_they_fail_on_the_way_then_files_have_every_message_once(
    spark: SparkSession, running_broker: Broker, tmp_path: Path
) -> None:
    publish(running_broker, "events", numbered(0, 2000))
    spark.dataSource.register(FlakySource)
    options = on(running_broker, fetchSize="1000", maxBytesPerPartition="7000")

    table = spark.read.format("flaky").options(**options).load()
    table.write.parquet(str(tmp_path / "output"))

    assert parquet_values(spark, tmp_path / "output") == numbered(0, 2000)


def test_table_when_written_to_a_topic_then_can_be_read_back(
    spark: SparkSession, running_broker: Broker
) -> None:
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "topic": "events"}
    table = spark.range(1000).selectExpr("cast(id as string) as value", "cast(id as string) as key")

    table.write.format("pylog").options(**options).mode("append").save()

    rows = read(brokers=options["brokers"], subscribe="events")
    assert sorted(map(int, values(rows))) == list(range(1000))


def test_table_when_to_overwrite_a_topic_then_is_refused(spark: SparkSession) -> None:
    table = spark.range(1).selectExpr("cast(id as string) as value")

    with pytest.raises(PySparkException) as caught:
        table.write.format("pylog").option("brokers", "h:1").option("topic", "t").mode(
            "overwrite"
        ).save()

    assert repr(cause_of(caught.value)) == repr(
        ConfigError("a topic cannot be overwritten: use mode append")
    )


def test_writing_tasks_when_they_fail_on_the_way_then_nothing_is_lost(
    spark: SparkSession, running_broker: Broker
) -> None:
    spark.dataSource.register(FlakySource)
    table = spark.range(0, 40_000, 1, 2).selectExpr("cast(id as string) as value")
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "topic": "events"}

    table.write.format("flaky").options(**options).mode("append").save()

    found = values(read(brokers=options["brokers"], subscribe="events"))
    assert {int(value) for value in found} == set(range(40_000))
    assert len(found) >= 40_000  # at least once: attempts that failed have sent some


def test_writing_tasks_when_they_fail_and_are_staged_then_every_row_comes_once(
    spark: SparkSession, running_broker: Broker, tmp_path: Path
) -> None:
    spark.dataSource.register(FlakySource)
    table = spark.range(0, 40_000, 1, 2).selectExpr("cast(id as string) as value")
    where = {"brokers": f"127.0.0.1:{running_broker.port}", "topic": "events"}
    staging = tmp_path / "staging"

    table.write.format("flaky").options(**where, stagingPath=str(staging)).mode("append").save()

    found = values(read(brokers=where["brokers"], subscribe="events"))
    assert sorted(map(int, found)) == list(range(40_000))
    assert list(staging.iterdir()) == []


@pytest.mark.parametrize("is_staged", [False, True])
def test_stream_when_written_to_a_topic_then_has_all_messages(
    spark: SparkSession, running_broker: Broker, tmp_path: Path, is_staged: bool
) -> None:
    publish(running_broker, "events", numbered(0, 100))
    staging = {"stagingPath": str(tmp_path / "staging")} if is_staged else {}
    options = {"brokers": f"127.0.0.1:{running_broker.port}", "topic": "copies"}
    query = (
        stream_messages(spark, on(running_broker), columns=["value"])
        .writeStream.format("pylog")
        .options(**options, **staging)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )

    assert query.awaitTermination(240)
    assert sorted(values(read(brokers=options["brokers"], subscribe="copies"))) == numbered(0, 100)


@pytest.fixture
def start_job(running_broker: Broker, tmp_path: Path) -> Iterator[StartJob]:
    """Start the query of `stream_job` in a process group of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        script = "tests.integration.broker.spark.stream_job"
        job = subprocess.Popen(
            [sys.executable, "-m", script, str(running_broker.port), str(tmp_path)],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
            start_new_session=True,
        )
        started.append(job)
        return job

    yield start
    for job in started:
        if job.poll() is None:
            kill(job)


def kill(job: subprocess.Popen[bytes]) -> None:
    """Kill driver and JVM at once."""
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def test_query_when_killed_inside_and_between_batches_then_files_have_every_message_once(
    spark: SparkSession, running_broker: Broker, tmp_path: Path, start_job: StartJob
) -> None:
    report = tmp_path / "report"
    report.mkdir()
    offsets, commits = tmp_path / "checkpoint" / "offsets", tmp_path / "checkpoint" / "commits"

    def batches(log: Path) -> int:
        return len([file for file in log.glob("*") if file.name.isdecimal()])

    (report / "stall").touch()
    publish(running_broker, "events", numbered(0, 2000))
    job = start_job()
    wait_until((report / "stalled").exists, "a task that stalls", deadline_s=270)
    kill(job)
    assert batches(offsets) > batches(commits)

    (report / "stall").unlink()
    job = start_job()
    wait_until(lambda: batches(commits) == 2, "two batches", deadline_s=270)
    kill(job)
    assert batches(offsets) == batches(commits)

    publish(running_broker, "events", numbered(2000, 3000))
    run_available(spark, on(running_broker), tmp_path)
    assert parquet_values(spark, tmp_path / "output") == numbered(0, 3000)
