"""Signals to a load as a process of its own: while Spark starts, and in the middle of tasks."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.spark.load import LoadRequest, run_load
from broker.spark.loading.output import LoadOutput
from tests.integration.pylogctl.pipeline.conftest import StartPipeline
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TOPIC_COUNT = 60
"""Each is a task: two run at a time."""
ENDLESS = b"a" * 100 + b"b"
"""The pattern never gets past it, so that no load ends before its signal comes."""
PATTERN = ("--date-regex", "(a+)+$")

Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """What the load has for temporary files."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    return directory


@pytest.fixture
def data(write_segments: WriteSegments) -> Path:
    """Logs to load, of one message each."""
    for number in range(TOPIC_COUNT - 1):
        write_segments([b"%02d" % number], directory=f"events{number}_0")
    return write_segments([ENDLESS], directory="events_0")


@pytest.fixture
def start_load(start_pipeline: StartPipeline, data: Path, tmp_path: Path, temporary: Path) -> Start:
    """Start a load."""
    words = ("load", "--path", str(data), "--to", str(tmp_path / "lake"), *PATTERN)
    return partial(start_pipeline, *words, temporary=temporary)


def processes_of(session: int) -> list[str]:
    """The processes of a session that run, as Linux describes them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, _, of_session, *_ = text.rpartition(")")[2].split()
        if int(of_session) == session and state != "Z":
            found.append(text)
    return found


def check_ended(job: subprocess.Popen[bytes], temporary: Path, status: int) -> None:
    """Check that a load ended with a status, and left nothing but that."""
    output, errors = job.communicate(timeout=240)
    assert (job.returncode, output) == (status, b"")
    if status != -signal.SIGKILL:  # a process that was just being started may complain of it
        assert errors == b""
    wait_until(lambda: not processes_of(job.pid), "the end of all its processes")
    left = [one.name for one in temporary.iterdir() if not one.name.startswith("hsperfdata")]
    assert left == []


def test_load_when_interrupted_then_shows_nothing_and_the_next_one_has_each_message_once(
    spark: SparkSession,
    data: Path,
    tmp_path: Path,
    temporary: Path,
    start_load: Start,
) -> None:
    output = tmp_path / "lake"
    job = start_load()
    wait_until(
        lambda: any(output.glob("_staging/*/topic=*/*/*.parquet")) or job.poll() is not None,
        "writing",
        deadline_s=270,
    )
    job.send_signal(signal.SIGINT)

    check_ended(job, temporary, 130)
    assert LoadOutput(output).numbers() == []
    assert not (output / "_staging").exists()

    made = run_load(spark, LoadRequest(output, parse({"path": str(data)})))
    assert made and made.message_count == TOPIC_COUNT
    rows = spark.read.parquet(str(output / "loads")).select("value").collect()
    expected = [*(b"%02d" % number for number in range(TOPIC_COUNT - 1)), ENDLESS]
    assert sorted(bytes(row.value) for row in rows) == expected


def test_load_when_interrupted_while_spark_starts_then_ends_and_leaves_nothing(
    tmp_path: Path, temporary: Path, start_load: Start
) -> None:
    job = start_load()
    wait_until(
        lambda: len(processes_of(job.pid)) > 1 or job.poll() is not None,
        "a JVM",
        deadline_s=120,
    )
    job.send_signal(signal.SIGTERM)

    check_ended(job, temporary, 143)
    assert LoadOutput(tmp_path / "lake").numbers() == []


LARGE = b"x" * (33 << 20)
"""Two are so much that a load uses processes."""


@pytest.mark.parametrize(
    ("signum", "is_of_terminal", "status"),
    [(signal.SIGTERM, False, 143), (signal.SIGINT, True, 130), (signal.SIGKILL, False, -9)],
)
def test_load_when_ended_by_a_signal_then_its_processes_end(
    write_segments: WriteSegments,
    start_pipeline: StartPipeline,
    tmp_path: Path,
    temporary: Path,
    signum: signal.Signals,
    is_of_terminal: bool,
    status: int,
) -> None:
    """A terminal sends the signal to the processes, too."""
    write_segments([LARGE, ENDLESS], directory="events_1")
    data = write_segments([LARGE, ENDLESS])
    output = tmp_path / "lake"
    words = ("load", "--path", str(data), "--to", str(output), *PATTERN)
    job = start_pipeline(*words, temporary=temporary, on_spark=False)
    wait_until(
        lambda: (
            sum("(python" in text for text in processes_of(job.pid)) == 4 or job.poll() is not None
        ),
        "the load, two processes and multiprocessing's own",
        deadline_s=120,
    )
    if is_of_terminal:
        os.killpg(job.pid, signum)
    else:
        job.send_signal(signum)

    check_ended(job, temporary, status)
    assert LoadOutput(output).numbers() == []
    assert (output / "_staging").exists() == (signum is signal.SIGKILL)
