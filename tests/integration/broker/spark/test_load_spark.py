"""Loads on a real Spark: tasks that fail, and a process that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.errors import InvalidMessageError
from broker.server.broker import Broker
from broker.spark.jobs import cause_of
from broker.spark.load import LoadRequest, run_load
from broker.spark.load_output import LoadOutput
from tests.integration.broker.spark.flaky import flaky_load_range
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

    with pytest.raises(Exception, match="InvalidMessageError") as caught:
        run_load(spark, LoadRequest(tmp_path / "lake", parse({"path": str(data)})))

    cause = cause_of(caught.value)
    assert isinstance(cause, InvalidMessageError)
    assert str(cause).startswith("events[0-0]: ")
    assert LoadOutput(tmp_path / "lake").numbers() == []
    assert not (tmp_path / "lake" / "_staging").exists()


@pytest.mark.timeout(240)
def test_load_when_its_process_is_killed_then_the_next_one_has_each_message_once(
    spark: SparkSession, running_broker: Broker, tmp_path: Path
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
        str(output),
        options["brokers"],
    ]
    environ = os.environ | {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(job, cwd=REPOSITORY, env=environ) as process:
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
