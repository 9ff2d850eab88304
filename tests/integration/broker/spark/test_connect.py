"""Spark Connect: reads and loads without the driver's JVM in the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.segments import WriteSegments
from tests.support.spark_session import REPOSITORY, SHORT_LIVED_JVM

pytest.importorskip("grpc", reason="Spark Connect is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_topics_when_read_and_loaded_through_connect_then_all_messages_are_there(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    payloads = [b"%04d" % number for number in range(100)]
    data = write_segments(payloads)
    damaged = tmp_path / "damaged" / "events_0" / f"{0:020d}.pylog"
    damaged.parent.mkdir(parents=True)
    (path,) = data.glob("events_0/*.pylog")
    damaged.write_bytes(path.read_bytes()[:-1] + b"x")
    words = [str(data), str(tmp_path / "damaged"), str(tmp_path / "lake")]

    job = subprocess.run(
        [sys.executable, "-m", "tests.integration.broker.spark.connect_job", *words],
        cwd=REPOSITORY,
        env=os.environ
        | SHORT_LIVED_JVM
        | {
            "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_TESTING": "1",  # the server gets a free port
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert job.returncode == 0, job.stderr
    count, loaded, progress, cause = json.loads(job.stdout.splitlines()[-1])
    assert (count, loaded, progress) == (90, 100, 1.0)
    assert cause.startswith("CorruptMessage: events[0-0]: the message at 1386 is invalid")
