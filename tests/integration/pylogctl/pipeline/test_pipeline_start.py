"""What pipeline commands say while Spark starts; Spark itself is not started here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from broker.spark.session import SessionSettings
from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.pipeline.options import SparkChoice
from pylogctl.pipeline.spark import open_spark
from tests.support.waiting import wait_until

pytest.importorskip("pyspark")


@pytest.mark.parametrize("tty", [False, True])
def test_command_when_spark_takes_long_to_start_then_says_so_again_and_again(
    monkeypatch: pytest.MonkeyPatch, tty: bool
) -> None:
    stderr = io.StringIO()
    env = Environment(Streams(None, io.BytesIO(), stderr, stderr_is_tty=tty), {}, SharedOptions())

    @contextmanager
    def open_slowly(_: SessionSettings) -> Iterator[SimpleNamespace]:
        wait_until(lambda: stderr.getvalue().count("\n") > 1, "two lines")
        yield SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=None))

    monkeypatch.setattr("pylogctl.pipeline.spark.LINE_EVERY_S", 0.01)
    monkeypatch.setattr("broker.spark.session.open_session", open_slowly)

    with open_spark(env, SparkChoice()):
        pass

    assert all(
        line.startswith("waiting for Spark to start") for line in stderr.getvalue().splitlines()
    )
