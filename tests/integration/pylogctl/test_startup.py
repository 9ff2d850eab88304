"""What a command may not import, so that it starts fast.

No times are asserted: a busy machine must not fail a test. The modules are what costs the time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker import Broker
from broker.protocol.codec import encode
from pylogctl.cli.app import Pylogctl
from tests.integration.broker.server.peer import Peer
from tests.support.command_line import REPOSITORY, process_environment

HEAVY = {"rich", "tabulate", "kazoo", "asyncio", "pydantic", "tomllib"}
OF_BROKERS = {
    "broker.config",
    "broker.protocol.cluster_requests",
    "broker.protocol.extension_requests",
    "broker.protocol.replica_requests",
}
NETWORK = {
    "kazoo",
    "ssl",
    "broker.client",
    "broker.consumer",
    "broker.producer",
    "broker.server",
    "broker.tools",
    "broker.zk.session",
}


def _imported(home: Path, *args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pylogctl", *args],
        cwd=REPOSITORY,
        env=process_environment(home, {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.pylog"
    path.write_bytes(encode([b"x"]))
    return path


def test_producer_when_its_brokers_are_listed_then_does_not_import_kazoo() -> None:
    code = (
        "import sys;"
        "from broker.producer.config import ProducerConfig;"
        "from broker.producer.producer import Producer;"
        "config = ProducerConfig.from_properties({'broker.list': '0:127.0.0.1:9'});"
        "Producer.from_config(config).close();"
        "sys.exit('kazoo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, timeout=60)


@pytest.mark.parametrize("name", ["pylogctl.broker.service", "broker.aio.client"])
def test_module_when_imported_alone_then_needs_neither_kazoo_nor_the_package(name: str) -> None:
    code = f"import sys, {name}; sys.exit('kazoo' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, timeout=60)


def test_version_does_not_import_typer(tmp_path: Path) -> None:
    assert not _imported(tmp_path, "--version") & (HEAVY | {"typer", "json", "pathlib.Path"})


@pytest.mark.parametrize(
    "before", ["pylogctl consume -Z 127.0.0.1:1 ", "pylogctl topic ", "pylogctl log -"]
)
def test_tab_imports_nothing_heavy(tmp_path: Path, before: str) -> None:
    assert not _imported(tmp_path, "__complete", "bash", "", before) & HEAVY


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        *([name, "--help"] for name in Pylogctl.entries),
        ["zk", "ls", "--help"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_help_and_errors_import_nothing_heavy(tmp_path: Path, args: list[str]) -> None:
    works = {"broker.admin", "multiprocessing"}
    assert not _imported(tmp_path, *args) & (HEAVY | NETWORK | works)


def test_root_help_imports_no_command(tmp_path: Path) -> None:
    imported = _imported(tmp_path, "--help")
    assert not {name for name in imported if name.startswith("pylogctl.") and "command" in name}


@pytest.mark.parametrize("command", ["dump", "verify", "stat", "recover"])
def test_log_commands_import_no_network(tmp_path: Path, segment: Path, command: str) -> None:
    imported = _imported(tmp_path, "log", command, str(segment), "--output", "jsonl")
    assert not imported & (NETWORK | HEAVY | {"multiprocessing"})


def test_consume_with_a_broker_given_imports_neither_registry_nor_tables(tmp_path: Path) -> None:
    args = ["consume", "t", "-b", "127.0.0.1:1", "--timeout", "100ms"]
    others = {"broker.producer.config", "broker.cluster_state", "pylogctl.cli.render"}
    assert not _imported(tmp_path, *args) & (HEAVY | OF_BROKERS | others)


def test_produce_with_a_broker_given_imports_neither_registry_nor_tables(
    tmp_path: Path, running_broker: Broker
) -> None:
    (tmp_path / "input").write_bytes(b"a\n")
    with Peer(running_broker.port) as peer:
        peer.make_topics(["t"])  # to create one takes the requests of operators
    args = ["produce", "t", "-b", f"127.0.0.1:{running_broker.port}", str(tmp_path / "input")]
    imported = _imported(tmp_path, *args)
    assert "broker.producer.producer" in imported
    assert not imported & (HEAVY | OF_BROKERS | {"csv", "broker.consumer.config"})
