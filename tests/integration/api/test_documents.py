"""The Python programs in the README and in docs/python.md run, and have the types they show."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import broker
import pylogctl
from pylogctl.testing import Broker, Cluster, memory_cluster

REPOSITORY = Path(__file__).parents[3]
NEEDS_ZOOKEEPER = ("client.group(", "localhost:2181")


def programs(name: str) -> list[str]:
    """Return the blocks of a page that use the library from Python."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", text, flags=re.MULTILINE)
    found = [textwrap.dedent(one).strip() + "\n" for one in blocks]
    return [one for one in found if re.match(r"(import|from) (pylogctl|broker\b(?!\.spark))", one)]


PROGRAMS = [one for page in ("README.md", "docs/python.md") for one in programs(page)]
IN_CLUSTER = [one for one in PROGRAMS if any(part in one for part in NEEDS_ZOOKEEPER)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of one broker."""
    with memory_cluster() as found:
        yield found


def test_programs_when_searched_then_are_found() -> None:
    assert (len(PROGRAMS), len(IN_CLUSTER)) == (12, 4)


@pytest.mark.parametrize("program", IN_CLUSTER)
def test_program_of_a_cluster_when_run_then_works(
    program: str,
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, other in (
        ('start="earliest"', 'start="earliest", idle=5'),  # it has to end
        ('zookeeper="localhost', 'consumer_timeout_ms=5000, zookeeper="localhost'),
        ("localhost:9092", cluster.address),
        ("localhost:2181", cluster.zookeeper),
    ):
        program = program.replace(text, other)
    with cluster.connect() as client:
        client.send("orders", "one")
    with contextlib.suppress(broker.ConsumerTimeoutError):
        exec(program, {})
    assert capsys.readouterr().out


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one not in IN_CLUSTER])
def test_program_when_run_as_it_stands_then_works(program: str, pylog_broker: Broker) -> None:
    names: dict[str, object] = {}
    with pylog_broker.connect() as client:
        client.send("orders", "one")
        address = program.replace("localhost:9092", pylog_broker.address)
        exec(address.replace('"localhost", 9092', f'"127.0.0.1", {pylog_broker.port}'), names)
        if "test_orders" in names:
            client.send("orders-of-a-test", "one")
            names["test_orders"](client, "orders-of-another-test")  # type: ignore[operator]


def test_programs_when_checked_by_mypy_then_have_no_errors(tmp_path: Path) -> None:
    for number, program in enumerate(PROGRAMS):
        (tmp_path / f"program_{number}.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "."],
        cwd=tmp_path,
        env={"MYPYPATH": str(REPOSITORY), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Success"), done.stdout


def test_table_of_other_clients_when_it_names_a_call_then_the_client_has_it() -> None:
    text = (REPOSITORY / "docs/python.md").read_text(encoding="utf-8")
    section = text.partition("## From kafka-python")[2].partition("\n## ")[0]
    ours = " ".join(re.findall(r"^\| (.*?) \| ", section, flags=re.MULTILINE))
    calls = set(re.findall(r"client\.(\w+)\(", ours))
    assert {"send", "read", "group"} <= calls
    assert [one for one in calls if not hasattr(pylogctl.Client, one)] == []
