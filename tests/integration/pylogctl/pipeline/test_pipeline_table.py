"""Tables as outputs, where the packages of Iceberg and Delta are missing; else see `interop`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.server.broker import Broker
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke
from tests.support.spark_session import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("table_format", "coordinates"),
    [
        ("iceberg", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),
        ("delta", "io.delta:delta-spark_4.2_2.13:4.4.0"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("load", "events"),
        ("sql", "SELECT offset FROM events", "-t", "events"),
        ("window", "events", "--size", "1m", "--time-field", ".ts"),
        (
            "window", "events", "--size", "1m", "--time-field", ".ts", "--stream", "--watermark",
            "1m", "--checkpoint", "checkpoint",
        ),
        ("join", "events", "other", "--key-field", ".k"),
    ],
)  # fmt: skip
def test_command_when_the_package_of_a_table_is_missing_then_says_how_to_get_it(
    spark: SparkSession,
    running_broker: Broker,
    invoke: Invoke,
    command: tuple[str, ...],
    table_format: str,
    coordinates: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for topic in ("events", "other"):
        publish(running_broker, topic, [b'{"k": 1, "ts": "2026-11-22"}'])
    at = ("--broker", f"127.0.0.1:{running_broker.port}")

    result = invoke("pipeline", *command, *at, "--into-table", f"{table_format}:lake.events")

    assert result.status == ExitStatus.USAGE
    assert f"--spark-conf spark.jars.packages={coordinates}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--into-table", "lake.events"), "does not begin with the format of the table"),
        (("--into-table", "delta:"), "does not begin with the format of the table"),
        (("--to", "lake", "--into-table", "delta:a.b"), "either --to DIR"),
        ((), "either --to DIR"),
        (("--into-table", "iceberg:/data/events"), "is a path"),
        (("--into-table", "delta:a.b", "--format", "json"), "--format and"),
        (("--into-table", "delta:a.b", "--local"), "cannot be used with --local"),
    ],
)
def test_load_when_options_of_a_table_do_not_fit_then_is_refused_before_spark_starts(
    invoke: Invoke, options: tuple[str, ...], expected: str
) -> None:
    result = invoke("pipeline", "load", "events", "--broker", "127.0.0.1:1", *options)

    assert result.status == ExitStatus.USAGE
    assert expected in result.stderr


def test_sql_when_it_has_two_targets_then_is_refused(invoke: Invoke) -> None:
    into = ("--into-table", "delta:a.b", "--to-topic", "other")

    result = invoke("pipeline", "sql", "SELECT 1", "-t", "events", *into)

    assert result.status == ExitStatus.USAGE
    assert "cannot be used together" in result.stderr
