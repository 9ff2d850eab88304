"""What tasks leave out, told by commands."""

from __future__ import annotations

import io

import pytest

from broker.spark.options import Crc, ReadOptions, Where
from broker.spark.reading.planner import ReadPlan
from broker.spark.reading.report import Cause, Omission, report_omissions
from broker.topic import TopicPartition
from pylogctl.cli.environment import Environment
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.reading import PlannedReading, reporting, warn_of_omissions
from tests.unit.pylogctl.cli.test_failures import env as env
from tests.unit.pylogctl.cli.test_failures import stderr as stderr

PARTITION = TopicPartition("events", 0, 0)


def reading(crc: Crc = Crc.FAIL) -> PlannedReading:
    return PlannedReading(ReadOptions(Where(), crc=crc), ReadPlan((), (), ()))


def test_omissions_when_a_signal_ends_the_command_then_are_told_once(
    env: Environment, stderr: io.StringIO
) -> None:
    damage = Omission(Cause.CORRUPT, PARTITION, 14, 28, "the message at 14 is invalid")

    with pytest.raises(KeyboardInterrupt), reporting(env, [reading()], SparkChoice()) as (given,):
        directory = given.options.report_path
        assert directory is not None
        for _ in range(2):  # a task that is tried again
            report_omissions(directory, [damage])
        raise KeyboardInterrupt

    assert stderr.getvalue().count("(corrupt, 14 bytes from 14)") == 1
    assert directory is not None and not directory.exists()


def test_omissions_when_many_then_some_are_told_and_the_others_counted(
    env: Environment, stderr: io.StringIO
) -> None:
    found = [
        Omission(Cause.CORRUPT, PARTITION, start, start + 14, f"the message at {start}")
        for start in (0, 14, *range(100, 100_000, 100))
    ]

    warn_of_omissions(env, found)

    lines = stderr.getvalue().splitlines()
    assert len(lines) == 21
    assert lines[0] == (
        "warning: events[0-0]: the message at 0, and 1 more up to 28 (corrupt, 28 bytes from 0)"
    )
    assert lines[-1] == f"warning: 980 more omissions, {980 * 14} bytes"


def test_omissions_when_spark_runs_elsewhere_then_says_where_they_are_told(
    env: Environment, stderr: io.StringIO
) -> None:
    cluster = SparkChoice(master="spark://somewhere:7077")

    with reporting(env, [reading(Crc.SKIP)], cluster) as (given,):
        assert given.options.report_path is None

    assert "logs of Spark's executors" in stderr.getvalue()
