"""The fixtures that users' tests have, each used in a run of pytest as a user has it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAMS = {
    "topic": """
        def test_it(pylog, pylog_topic, pylog_address):
            pylog.send(pylog_topic, "x")
            assert [m.text() for m in pylog.read(pylog_topic)] == ["x"]
            assert pylog_address.startswith("127.0.0.1:")
        """,
    "session": """
        seen = []

        @pytest.mark.parametrize("text", ["a/b c", "x" * 300])
        def test_it(pylog, pylog_topic, pylog_broker, text):
            assert len(pylog_topic) <= 100
            pylog.send(pylog_topic, text)
            seen.append((pylog_broker, pylog_topic))
            assert {broker for broker, _ in seen} == {pylog_broker}
            assert len({topic for _, topic in seen}) == len(seen)
        """,
    "partitions": """
        @pytest.mark.pylog_topic(partitions=3)
        def test_three(pylog, pylog_topic):
            assert len(pylog.describe(pylog_topic)) == 3

        @pytest.mark.pylog_topic()
        def test_one(pylog_topic, pylog):
            pylog.send("other", "x")
            assert list(pylog.read(pylog_topic)) == []
            assert {one.name for one in pylog.topics()} == {pylog_topic, "other"}

        def test_name(pylog, pylog_topic):
            with pytest.raises(LookupError):
                pylog.describe(pylog_topic)

        def test_none(pylog):
            assert pylog.topics() == []
        """,
    "env": """
        import os, subprocess, sys

        def test_it(pylog_env, pylog, pylog_topic):
            pylog.send(pylog_topic, "x")
            command = [sys.executable, "-m", "pylogctl", "topic", "list"]
            assert pylog_topic in subprocess.check_output(command, text=True)

        def test_without_it():
            assert "PYLOGCTL_BROKER" not in os.environ
        """,
    "own": """
        def test_it(pylog_own_broker, pylog_clock):
            broker = pylog_own_broker({"log.retention.hours": "1"}, clock=pylog_clock)
            other = pylog_own_broker()
            with broker.connect() as client:
                client.send("orders", "one")
                broker.kill()
                broker.restart()
                assert len(list(client.read("orders"))) == 1
                pylog_clock.advance(hours=2)
                broker.apply_retention()
                assert list(client.read("orders")) == []
            assert other.port != broker.port
        """,
    "faults": """
        def test_it(pylog_faults):
            with pylog_faults.connect() as client:
                client.send("orders", "one")
                pylog_faults.drop()
                client.send("orders", "two")
        """,
    "group": """
        def test_it(pylog_group):
            pylog_group.send("orders", "one")
            with pylog_group.group("g", "orders", start="earliest", idle=5) as group:
                assert next(group).text() == "one"

        def test_again(pylog_group):
            assert pylog_group.groups() == []
        """,
    "cluster": """
        def test_it(pylog_cluster):
            with pylog_cluster.connect() as client:
                client.send("orders", "one")
                group = client.group("g", "orders", start="earliest", idle=5)
                assert next(group).text() == "one"

        def test_again(pylog_cluster):
            assert len(pylog_cluster.brokers) == 3
        """,
}


def run(directory: Path, name: str, *options: str, **environ: str) -> str:
    """Run a program's tests in a pytest of their own, and return what it prints."""
    program = "import pytest\n" + textwrap.dedent(PROGRAMS[name])
    (directory / f"test_{name}.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "-rs"]
    done = subprocess.run(
        [*command, *options],
        cwd=directory,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "name",
    [
        *(one for one in PROGRAMS if one != "cluster"),
        pytest.param("cluster", marks=pytest.mark.zookeeper),
    ],
)
def test_fixture_when_a_user_runs_pytest_then_works_and_warns_of_nothing(
    tmp_path: Path, name: str
) -> None:
    shown = run(tmp_path, name)
    assert " passed" in shown, shown
    assert not {"failed", "error", "skipped"} & set(shown.split()), shown


def test_session_when_run_by_several_workers_then_each_has_a_broker(tmp_path: Path) -> None:
    assert "2 passed" in run(tmp_path, "session", "-n", "2")


def test_cluster_when_there_is_no_java_then_its_tests_are_skipped(tmp_path: Path) -> None:
    no_pyspark = tmp_path / "path" / "pyspark"
    no_pyspark.mkdir(parents=True)
    (no_pyspark / "__init__.py").write_text("")
    shown = run(tmp_path, "cluster", PYTHONPATH=str(no_pyspark.parent))
    assert "2 skipped" in shown
    assert "jar" in shown


def test_plug_in_when_switched_off_then_the_brokers_can_be_used_without_it(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "from pylogctl.testing import Broker\n"
        "def test_it():\n"
        "    with Broker() as broker, broker.connect() as client:\n"
        "        client.send('orders', 'one')\n"
    )
    assert "1 passed, 1 error" in run(tmp_path, "topic", "-p", "no:pylogctl")
