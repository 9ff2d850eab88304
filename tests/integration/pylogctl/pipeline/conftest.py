"""The Spark session and the logs that the tests of the jobs use, for the commands on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.segments import write_segments as write_segments
from tests.support.spark_session import FEW_ROWS, REPOSITORY, SETTINGS
from tests.support.spark_session import spark as spark

StartPipeline = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_pipeline() -> Iterator[StartPipeline]:
    """Start pipeline commands, each in a session of processes of its own; killed at the end."""
    started: list[subprocess.Popen[bytes]] = []
    conf = FEW_ROWS | {"spark.driver.extraJavaOptions": SETTINGS.java_options}
    spark_words = ["--master", "local[2,4]"]
    spark_words += [f"--spark-conf={name}={value}" for name, value in conf.items()]

    def start(*words: str, temporary: Path, on_spark: bool = True) -> subprocess.Popen[bytes]:
        more = spark_words if on_spark else ["--local"]
        job = subprocess.Popen(
            [sys.executable, "-m", "pylogctl", "pipeline", *words, "--quiet", *more],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(job)
        return job

    yield start
    for job in started:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
