"""What tasks leave out, told by commands."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from broker.spark.plans import ReadPlan
from broker.spark.report import Cause, Omission, Report
from broker.topic import TopicPartition
from pylogctl.cli.context import Environment
from pylogctl.pipeline.reading import Reading, reporting
from pylogctl.pipeline.spark import SparkChoice
from tests.unit.pylogctl.cli.test_failures import env as env
from tests.unit.pylogctl.cli.test_failures import stderr as stderr

PARTITION = TopicPartition("events", 0, 0)


def reading(**options: str) -> Reading:
    return Reading({"paths": "[]", **options}, ReadPlan((), (), ()))


def test_omissions_when_a_signal_ends_the_command_then_are_told_once(
    env: Environment, stderr: io.StringIO
) -> None:
    damage = Omission(Cause.CORRUPT, PARTITION, 14, 28, "the message at 14 is invalid")

    with pytest.raises(KeyboardInterrupt), reporting(env, [reading()], SparkChoice()) as (given,):
        directory = Path(given.options["reportPath"])
        for _ in range(2):  # a task that is tried again
            Report(directory).add(damage)
        raise KeyboardInterrupt

    assert stderr.getvalue().count("(corrupt, 14 bytes from 14)") == 1
    assert not directory.exists()


def test_omissions_when_spark_runs_elsewhere_then_says_where_they_are_told(
    env: Environment, stderr: io.StringIO
) -> None:
    cluster = SparkChoice(master="spark://somewhere:7077")

    with reporting(env, [reading(crc="skip")], cluster) as (given,):
        assert "reportPath" not in given.options

    assert "logs of Spark's executors" in stderr.getvalue()
