"""`pylogctl zk`, against a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import ConfigError
from broker.zk.java import find_java
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import (
    REPOSITORY,
    Invoke,
    Process,
    Spawn,
    process_environment,
    without_waits,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

NODES = {
    "/brokers/ids/0": b"box-17:127.0.0.1:9092",
    "/brokers/topics/orders/0": b"2",
    "/binary": b"\x00\xff\n",
    "/json": b'{"a":[1,2]}',
}


JAVA = {name: text for name, text in os.environ.items() if name == "JAVA_HOME"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server started by `pylogctl zk start`, with some nodes in it."""
    try:
        find_java()
    except ConfigError as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("zk")
    with Process(
        [sys.executable, "-m", "pylogctl", "zk", "start", "--port", "0", "--data", str(directory),
         "--output", "jsonl"],
        cwd=REPOSITORY,
        env=process_environment(directory, JAVA),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline() or b"{}")
        assert ready, process.stderr.read() if process.stderr else ""
        assert ready["pid"] == process.pid
        with Session(ready["zookeeper"]) as session:
            for path, value in NODES.items():
                session.create(path, value)
        yield ready["zookeeper"]
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, without_waits(stderr)) == (0, "")


def test_ls_lists_children(invoke: Invoke, server: str) -> None:
    assert invoke("zk", "ls", "/brokers", "-Z", server).text == "NAME\nids\ntopics\n"


def test_ls_recursive_lists_paths(invoke: Invoke, server: str) -> None:
    result = invoke("zk", "ls", "-R", "/brokers", "--output", "name", "-Z", server)
    assert result.text.splitlines() == [
        "/brokers/ids",
        "/brokers/ids/0",
        "/brokers/topics",
        "/brokers/topics/orders",
        "/brokers/topics/orders/0",
    ]


def test_ls_long_shows_sizes(invoke: Invoke, server: str) -> None:
    text = invoke("zk", "ls", "-l", "/", "--columns", "name,bytes", "-Z", server).text
    assert "binary" in text
    assert text.splitlines()[1].split() == ["binary", "3"]


def test_ls_of_a_leaf_is_an_empty_listing(invoke: Invoke, server: str) -> None:
    result = invoke("zk", "ls", "/json", "-Z", server)
    assert (result.status, result.stdout, result.stderr) == (0, b"", "no children\n")


def test_tree_draws_and_decodes(invoke: Invoke, server: str) -> None:
    assert invoke("zk", "tree", "/brokers", "--data", "-Z", server).text.splitlines() == [
        "/brokers",
        "├── ids",
        "│   └── 0  127.0.0.1:9092 (creator box-17)",
        "└── topics",
        "    └── orders",
        "        └── 0  2 partitions",
    ]


def test_tree_respects_depth_and_raw(invoke: Invoke, server: str) -> None:
    text = invoke("zk", "tree", "/brokers/ids", "--raw", "-Z", server).text
    assert "└── 0  box-17:127.0.0.1:9092" in text
    assert invoke("zk", "tree", "/brokers", "--depth", "0", "-Z", server).text == "/brokers\n"


def test_tree_for_programs_is_a_document(invoke: Invoke, server: str) -> None:
    text = invoke("zk", "tree", "/brokers/ids", "--output", "jsonl", "-Z", server).text
    records = [json.loads(line) for line in text.splitlines()]
    assert [(r["path"], r["depth"]) for r in records] == [
        ("/brokers/ids", 0),
        ("/brokers/ids/0", 1),
    ]


def test_get_writes_exact_bytes(invoke: Invoke, server: str) -> None:
    assert invoke("zk", "get", "/binary", "-Z", server).stdout == b"\x00\xff\n"


def test_get_on_a_terminal_adds_a_newline_unless_raw(invoke: Invoke, server: str) -> None:
    assert invoke("zk", "get", "/json", "-Z", server, tty=True).stdout == b'{"a":[1,2]}\n'
    assert invoke("zk", "get", "/json", "--raw", "-Z", server, tty=True).stdout == b'{"a":[1,2]}'


@pytest.fixture
def hostile(server: str) -> Iterator[str]:
    """A node whose name and value clear a terminal."""
    path = "/evil/a\u202eb"
    with Session(server) as session:
        session.create(path, b"v\x1b[2J\n\xff")
        yield path
        session.delete(path)
        session.delete("/evil")


def test_get_on_a_terminal_escapes_control_characters_unless_raw(
    invoke: Invoke, server: str, hostile: str
) -> None:
    arguments = ("zk", "get", hostile, "-Z", server)
    assert invoke(*arguments, tty=True).stdout == b"v\\x1b[2J\n\\xff\n"
    assert invoke(*arguments, "--raw", tty=True).stdout == b"v\x1b[2J\n\xff"
    assert invoke(*arguments).stdout == b"v\x1b[2J\n\xff"


@pytest.mark.parametrize("command", [["tree", "--data"], ["tree", "--raw"], ["ls"], ["ls", "-l"]])
def test_names_on_a_terminal_are_escaped(
    invoke: Invoke, server: str, hostile: str, command: list[str]
) -> None:
    arguments = ("zk", command[0], "/evil", *command[1:], "-Z", server, "--color", "never")
    text = invoke(*arguments, tty=True).text
    assert "a\\u202eb" in text
    assert "\x1b" not in text
    assert "a\u202eb" in invoke(*arguments).text


def test_get_decodes_when_asked(invoke: Invoke, server: str) -> None:
    assert invoke("zk", "get", "/binary", "--hex", "-Z", server).stdout == b"00ff0a"
    parsed = invoke("zk", "get", "/json", "--json", "-Z", server).text
    assert parsed == '{\n  "a": [\n    1,\n    2\n  ]\n}'


def test_get_of_json_that_is_none_is_a_usage_error(invoke: Invoke, server: str) -> None:
    assert invoke("zk", "get", "/binary", "--json", "-Z", server).status == ExitStatus.USAGE


def test_get_with_stat_shows_value_and_facts(invoke: Invoke, server: str) -> None:
    header, row = invoke("zk", "get", "/json", "-s", "-Z", server).text.splitlines()
    assert {"VALUE", "VERSION", "BYTES", "OWNER", "CREATED", "MZXID"} <= {*header.split()}
    assert row.startswith('/json  {"a":[1,2]}')


def test_get_as_a_document_has_what_is_known(invoke: Invoke, server: str) -> None:
    text = invoke("zk", "get", "/json", "--output", "jsonl", "-Z", server).text
    record = json.loads(text)
    assert (record["bytes"], record["ephemeral"], record["owner"]) == (11, False, None)
    assert record["czxid"] == record["mzxid"]


@pytest.mark.parametrize("command", ["ls", "tree", "get"])
def test_missing_node_is_not_found(invoke: Invoke, server: str, command: str) -> None:
    result = invoke("zk", command, "/nope", "-Z", server)
    assert result.status == ExitStatus.NOT_FOUND
    assert "no node /nope" in result.stderr


@pytest.mark.parametrize("command", ["ls", "tree", "get"])
def test_registry_that_is_away_is_unreachable(invoke: Invoke, command: str) -> None:
    result = invoke("zk", command, "/", "-Z", "127.0.0.1:1", "--timeout", "300ms")
    assert result.status == ExitStatus.UNREACHABLE
    assert "cannot reach ZooKeeper at 127.0.0.1:1: connection refused" in result.stderr


def test_malformed_path_is_a_usage_error(invoke: Invoke) -> None:
    assert invoke("zk", "ls", "brokers").status == ExitStatus.USAGE


def test_malformed_address_is_a_configuration_error(invoke: Invoke) -> None:
    assert invoke("zk", "ls", "-Z", "host:port").status == ExitStatus.CONFIG


def test_start_on_a_directory_in_use_is_a_conflict(
    run_process: Invoke, spawn: Spawn, server: str, tmp_path: Path
) -> None:
    with spawn("zk", "start", "--port", "0", "--data", str(tmp_path)) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith(b"READY zookeeper=127.0.0.1:")
        result = run_process("zk", "start", "--port", "0", "--data", str(tmp_path))
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    assert first.returncode == 0
    assert result.status == ExitStatus.CONFLICT
    assert "already runs on" in result.stderr


@pytest.mark.parametrize("words", [("zk", "start"), ("broker", "start", "--zookeeper-port", "0")])
def test_server_when_it_is_killed_then_the_command_starts_it_again(
    spawn: Spawn, server: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    options = ("--port", "0", "--data", str(tmp_path), "--output", "jsonl")
    with spawn(*words, *options, env=JAVA) as command:
        assert command.stdout is not None
        address = json.loads(command.stdout.readline())["zookeeper"]
        note = next(tmp_path.rglob("server.json"))
        with Session(address, session_timeout_ms=30_000) as session:
            session.create("/consumers/g", b"here")
            killed = json.loads(note.read_text())["pid"]
            os.kill(killed, signal.SIGKILL)

            wait_until(
                lambda: note.exists() and json.loads(note.read_text())["pid"] != killed, "another"
            )
            assert session.get("/consumers/g")[0] == b"here"
        command.send_signal(signal.SIGTERM)
        _, stderr = command.communicate(timeout=60)
    assert command.returncode == 0
    assert b"ended with status -9" in stderr
