"""The command blocks of the README run in a shell as they stand, against brokers of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from broker.zk.session import Session
from pylogctl.testing import memory_cluster
from pylogctl.testing.zookeeper import MemoryZooKeeper
from tests.support.command_line import REPOSITORY
from tests.support.command_line import clean_environment as clean_environment
from tests.support.ports import port_of_its_own
from tests.support.zookeeper import await_registered

NOT_RUN = {
    "pip install .": "installs from an index",
    "pip install '.[spark]'": "installs from an index",
    "make quickstart": "installs from an index; the script that it runs is run below",
    "journalctl": "follows a journal, for ever",
    "pylogctl mirror run": "other hosts, for ever",
    "pylogctl pipeline sql": "starts Spark three times; the tests of pipelines do that",
    "pylogctl pipeline audit": "starts Spark; the tests of pipelines do that",
    "lines = (spark": "starts Spark; the tests of the data source do that",
    "import pylogctl": "is Python; tests/integration/api/test_documents.py runs it",
}
"""The beginnings of blocks that are not run here, and why."""

_DEADLINE_S = 200


def _blocks() -> list[str]:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"(?:^(?: {4}.*)?\n)+", text, flags=re.MULTILINE)
    return [textwrap.dedent(one).strip() + "\n" for one in found if one.strip()]


def _is_run(block: str) -> bool:
    return not block.startswith(tuple(NOT_RUN))


BLOCKS = [one for one in _blocks() if _is_run(one)]


class Shell:
    """A shell in a directory of its own, with the files and programs that the README speaks of.

    A broker listens at `port` unless its command line names another port.
    """

    def __init__(self, home: Path, zookeeper: str) -> None:
        self.directory = home
        self.port = port_of_its_own()
        self.environment = {
            "HOME": str(home),
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            "PYLOGCTL_ZOOKEEPER": zookeeper,
            "PYTHONPATH": str(REPOSITORY),
        }
        python = shlex.quote(sys.executable)
        self._program(
            "pylogctl",
            f'[ "$1 $2" != "broker start" ] || export PYLOGCTL_X=port={self.port}\n'
            f'exec {python} -m pylogctl "$@"',
        )
        # Its first call and three retries fail, so that `retry` has something to do.
        self._program("bill", 'echo >> bills; [ "$(wc -l < bills)" -gt 4 ]')
        lines = [f"GET /login 50{number} 17" for number in range(10)]
        (home / "access.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (home / "framed.bin").write_bytes(b"\0\0\0\2\0\n\0\0\0\1x")
        clicks = [json.dumps({"ts": 1_790_000_000_000 + number}) for number in range(10)]
        (home / "clicks.jsonl").write_text("\n".join(clicks) + "\n", encoding="utf-8")
        order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
        (home / "order.avsc").write_text(json.dumps(order), encoding="utf-8")
        (home / "orders.jsonl").write_text('{"id": 1}\n{"id": 2}\n', encoding="utf-8")

    def _program(self, name: str, text: str) -> None:
        path = self.directory / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, script: str, deadline_s: float = _DEADLINE_S) -> str:
        """Run commands until one fails; return what they write. What they leave is killed."""
        written = self.directory / "written"
        with written.open("wb") as file:
            shell = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = shell.wait(deadline_s)
            finally:
                text = written.read_text(encoding="utf-8", errors="replace")
                with suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
                for pid in re.findall(r" pid=(\d+)", text):  # brokers that left the terminal
                    with suppress(FileNotFoundError, ProcessLookupError):
                        if Path(f"/proc/{pid}/cwd").readlink() == self.directory:
                            os.kill(int(pid), signal.SIGKILL)
        assert status == 0, f"status {status}: {text}"
        return text


@contextmanager
def _zookeeper(block: str) -> Iterator[str]:
    """A ZooKeeper; with a broker, and messages in the topics that a block only reads.

    A block that starts brokers gets none.
    """
    if "broker start" in block:
        with MemoryZooKeeper() as alone:
            yield alone.connect
        return
    with (
        memory_cluster() as cluster,
        cluster.connect() as client,
        Session(cluster.zookeeper) as session,
    ):
        for topic in ("orders", "payments", "web"):
            if f"produce {topic}" not in block:
                home = client.send(topic, "one").partition.home
                await_registered(session, topic, home)
        yield cluster.zookeeper


def test_list_of_blocks_that_are_not_run_when_each_begins_one_then_is_exact() -> None:
    blocks = _blocks()
    assert [start for start in NOT_RUN if not any(one.startswith(start) for one in blocks)] == []


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.partition("\n")[0])
def test_block_of_the_readme_when_run_then_works(block: str, tmp_path: Path) -> None:
    with _zookeeper(block) as zookeeper:
        if "zk start" in block:  # of its own, at the default ports
            zookeeper = f"localhost:{port_of_its_own()}"
            block = block.replace("2181", zookeeper.partition(":")[2])
            block = block.replace("9092", str(port_of_its_own()))
        written = Shell(tmp_path, zookeeper).run(block)
    assert "dry-run" in block or not re.search(r"\b0 messages", written), written


def test_quickstart_when_run_then_verifies_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").touch()  # hides PySpark, which `make quickstart` does not install
    shell = Shell(tmp_path, zookeeper="")
    shell.environment["PYTHONPATH"] = f"{tmp_path}:{REPOSITORY}"
    written = shell.run(str(REPOSITORY / "examples/quickstart.sh"))
    assert "--no-zookeeper" in written
    assert "All of it worked." in written
