"""The examples on real logs, held against plain Python."""

from __future__ import annotations

import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.server.broker import Broker
from tests.support.segments import WriteSegments
from tests.support.spark_session import REPOSITORY, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RunExample = Callable[..., list[list[str]]]


@pytest.fixture
def run_example(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunExample:
    """Run an example in the session that is there; returns the fields of its lines."""

    def run(name: str, **options: str) -> list[list[str]]:
        path = REPOSITORY / "examples" / f"{name}.py"
        arguments = [f"{key}={value}" for key, value in options.items()]
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")
        return [line.split("\t") for line in capsys.readouterr().out.splitlines()]

    return run


def lines_of(log: Path) -> list[bytes]:
    return log.read_bytes().removesuffix(b"\n").split(b"\n")


@pytest.mark.parametrize("name", ["OpenSSH", "Apache", "Zookeeper"])
def test_events_per_minute_when_counted_then_are_those_of_the_log(
    name: str, shared_data: Path, write_segments: WriteSegments, run_example: RunExample
) -> None:
    lines = lines_of(shared_data / "logs" / f"{name}_2k.log")
    data = write_segments(lines[:1200], lines[1200:], directory=f"{name}_0")
    found = [re.match(r"(.*?\d\d:\d\d):\d\d", line.decode()) for line in lines]
    wanted = Counter(one[1] for one in found if one)

    rows = run_example("spark_events_per_minute", path=str(data))

    assert [(minute, int(count)) for _, minute, count in rows] == list(wanted.items())
    assert {topic for topic, _, _ in rows} == {name}


def test_failed_logins_when_counted_then_top_sources_are_those_of_the_log(
    shared_data: Path, running_broker: Broker, run_example: RunExample
) -> None:
    lines = lines_of(shared_data / "logs" / "OpenSSH_2k.log")
    publish(running_broker, "ssh", lines)
    found = re.findall(
        rb"Failed password for (?:invalid user )?(\S*) from (\S+) port", b"\n".join(lines)
    )
    attempts = Counter(source.decode() for _, source in found)
    top = sorted(attempts.items(), key=lambda item: (-item[1], item[0]))[:10]

    rows = run_example(
        "spark_failed_logins", brokers=f"127.0.0.1:{running_broker.port}", subscribe="ssh"
    )

    assert [(source, int(count)) for source, count, _ in rows] == top
    users = {user for user, source in found if source.decode() == top[0][0]}
    assert int(rows[0][2]) == len(users)


def test_apache_errors_when_counted_then_are_all_of_the_log(
    shared_data: Path, write_segments: WriteSegments, run_example: RunExample
) -> None:
    lines = lines_of(shared_data / "logs" / "Apache_2k.log")
    data = write_segments(lines, directory="apache_0")

    rows = run_example("spark_apache_errors", path=str(data))

    assert sum(int(count) for _, count, _ in rows) == sum(b"] [error] " in line for line in lines)
    assert rows[0] == ["Sun Dec 04 04h", rows[0][1], "mod_jk child workerEnv in error state N"]
