"""A streaming count as a process of its own: killed, started again, and stopped by a signal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from broker.server.broker import Broker
from tests.integration.pylogctl.pipeline.conftest import StartPipeline
from tests.support.ports import port_of_its_own
from tests.support.spark_session import publish
from tests.support.waiting import wait_until

BASE_MS = 1_700_000_040_000
MINUTES = 20

Start = Callable[..., "subprocess.Popen[bytes]"]


def minute(number: int) -> list[bytes]:
    """Ten events of one minute, of two users."""
    return [
        json.dumps({"user": "ab"[at % 2], "ts": BASE_MS + number * 60_000 + at * 1000}).encode()
        for at in range(10)
    ]


@pytest.fixture
def start_count(start_pipeline: StartPipeline, running_broker: Broker, tmp_path: Path) -> Start:
    """Start a streaming count."""
    words = [
        "window", "events", "--broker", f"127.0.0.1:{running_broker.port}", "--size", "1m",
        "--key-field", "user", "--time-field", "ts", "--stream", "--watermark", "1m",
        "--checkpoint", str(tmp_path / "checkpoint"), "--into", str(tmp_path / "counts.parquet"),
    ]  # fmt: skip
    return partial(start_pipeline, *words, temporary=tmp_path)


@pytest.mark.spark
@pytest.mark.timeout(600)  # two programs with a JVM each
def test_count_when_killed_and_started_again_then_each_window_is_there_once(
    running_broker: Broker, tmp_path: Path, start_count: Start
) -> None:
    commits, counts = tmp_path / "checkpoint" / "commits", tmp_path / "counts.parquet"
    # the last window waits for the watermark
    expected = [
        (BASE_MS + number * 60_000, key, 5) for number in range(MINUTES - 2) for key in "ab"
    ]

    def found() -> list[tuple[int, str, int]]:
        # without Spark, which would compete with the job for the cores
        rows = [row for batch in counts.glob("batch-*") for row in pq.read_table(batch).to_pylist()]
        return sorted(
            (round(row["start"].timestamp() * 1000), row["key"], row["messages"]) for row in rows
        )

    for number in range(MINUTES // 2):
        publish(running_broker, "events", minute(number))
    job = start_count()
    wait_until(lambda: any(commits.glob("[0-9]*")), "a batch", deadline_s=270)
    publish(running_broker, "events", minute(MINUTES // 2))
    os.killpg(job.pid, signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL

    for number in range(MINUTES // 2 + 1, MINUTES):
        publish(running_broker, "events", minute(number))
    port = port_of_its_own()
    job = start_count("--metrics-port", str(port))
    # in how many batches the windows come depends on which one the kill ended
    wait_until(lambda: len(found()) >= len(expected), "the last windows", deadline_s=270)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    os.killpg(job.pid, signal.SIGINT)
    output, errors = job.communicate(timeout=120)

    assert (job.returncode, output, errors) == (0, b"", b"")
    assert found() == expected
    figures = dict(
        re.findall(r'^pylogctl_stream_(\w+)\{query="window"\} (\S+)$', text, re.MULTILINE)
    )
    assert float(figures["messages_total"]) >= 10 * (MINUTES // 2 - 1)
    assert float(figures["late_messages_total"]) == 0
    assert float(figures["batch_seconds_count"]) >= 1
    assert float(figures["batch_seconds_sum"]) > 0
