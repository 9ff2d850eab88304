from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

from broker.errors import ConfigError, CoordinationError, LogLockedError
from broker.zk.embedded import EmbeddedZooKeeper, is_locked
from broker.zk.java import Java
from broker.zk.session import Session, SessionState

DEADLINE_S = 60

# Starts a server on the directory given, says where, and waits to be killed.
PARENT = """
import sys, time
from pathlib import Path
from broker.zk.embedded import EmbeddedZooKeeper
server = EmbeddedZooKeeper(Path(sys.argv[1]))
server.start()
print(server.connect, flush=True)
time.sleep(600)
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, "time is up"
        time.sleep(0.01)


@pytest.mark.zookeeper
def test_server_when_restarted_then_still_has_the_data(tmp_path: Path, java: Java) -> None:
    server = EmbeddedZooKeeper(tmp_path / "zookeeper", java=java)
    with server, Session(server.connect) as session:
        session.create("/kept", b"value")

    with server, Session(server.connect) as session:
        assert session.get("/kept")[0] == b"value"


@pytest.mark.zookeeper
def test_server_when_running_then_its_directory_tells_where(
    zookeeper_server: EmbeddedZooKeeper, zookeeper_dir: Path
) -> None:
    assert EmbeddedZooKeeper.running(zookeeper_dir) == zookeeper_server.connect


@pytest.mark.zookeeper
def test_start_when_directory_has_a_running_server_then_refuses(
    zookeeper_server: EmbeddedZooKeeper, zookeeper_dir: Path, java: Java
) -> None:
    second = EmbeddedZooKeeper(zookeeper_dir, java=java)

    with pytest.raises(LogLockedError, match=f"of process {os.getpid()} already runs on"):
        second.start()

    assert EmbeddedZooKeeper.running(zookeeper_dir) == zookeeper_server.connect


@pytest.mark.zookeeper
def test_start_when_port_is_in_use_then_error_names_it(
    tmp_path: Path, zookeeper_server: EmbeddedZooKeeper, java: Java
) -> None:
    port = int(zookeeper_server.connect.rpartition(":")[2])
    server = EmbeddedZooKeeper(tmp_path, port=port, java=java)

    with pytest.raises(CoordinationError, match=f"127.0.0.1:{port}: the port is in use"):
        server.start()

    assert EmbeddedZooKeeper.running(tmp_path) is None


@pytest.mark.zookeeper
def test_start_when_port_is_taken_behind_the_probe_then_error_shows_the_log(
    tmp_path: Path, java: Java
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = ProbeSkippingZooKeeper(tmp_path, port=taken.getsockname()[1], java=java)

        with pytest.raises(CoordinationError, match="Address already in use"):
            server.start()


class ProbeSkippingZooKeeper(EmbeddedZooKeeper):
    """Behaves as if the port had been taken just after it was found free."""

    def _pick_port(self) -> int:
        return self.port


@pytest.mark.zookeeper
def test_server_when_parent_is_killed_then_ends_and_can_be_started_again(
    tmp_path: Path, java: Java
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        connect = parent.stdout.readline().strip()
        assert EmbeddedZooKeeper.running(tmp_path) == connect
        with Session(connect) as session:
            session.create("/kept", b"value")

        parent.kill()

    with EmbeddedZooKeeper(tmp_path, java=java) as server, Session(server.connect) as session:
        assert session.get("/kept")[0] == b"value"


@pytest.mark.zookeeper
def test_server_when_it_dies_then_is_logged_and_no_longer_running(
    tmp_path: Path, java: Java, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedZooKeeper(tmp_path, java=java) as server:
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        wait_until(lambda: server.pid is None and bool(caplog.messages))

        assert EmbeddedZooKeeper.running(tmp_path) is None
    assert f"embedded ZooKeeper at {server.connect} ended with status -9" in caplog.text


@pytest.mark.zookeeper
def test_server_when_strangers_send_large_and_unfinished_requests_then_serves_others(
    tmp_path: Path, java: Java
) -> None:
    opening = struct.pack(">iqiqi", 0, 0, 30_000, 0, 16) + bytes(17)
    with ExitStack() as closing:
        server = closing.enter_context(EmbeddedZooKeeper(tmp_path, java=java, is_durable=False))
        pid, port = server.pid, int(server.connect.rpartition(":")[2])
        session = closing.enter_context(Session(server.connect))
        session.create("/consumers/g")
        for number in range(150):
            held = closing.enter_context(socket.socket())
            held.bind((f"127.0.0.{2 + number // 50}", 0))  # with 60 connections of each address
            held.connect(("127.0.0.1", port))
            held.sendall(struct.pack(">i", len(opening)) + opening)
            assert held.recv(100)
            held.sendall(struct.pack(">i", 256_000) + bytes(255_000))
        for _ in range(400):
            session.set("/consumers/g", bytes(250_000))
        with pytest.raises(CoordinationError):  # its connection is closed
            session.set("/consumers/g", bytes(300_000))

        wait_until(lambda: session.state is SessionState.CONNECTED)
        assert len(session.get("/consumers/g")[0]) == 250_000
        assert server.pid == pid


@pytest.mark.zookeeper
def test_server_when_started_again_after_large_requests_then_has_all_nodes(
    tmp_path: Path, java: Java
) -> None:
    value = b"x" * 100_000
    with (
        EmbeddedZooKeeper(tmp_path, java=java, is_durable=False) as server,
        Session(server.connect) as session,
    ):
        for number in range(12):  # many at once, which the server writes to its log together
            nodes = {f"/large/{number}-{one}": value for one in range(50)}
            session.create_many(nodes, ephemeral=False)
    with (
        EmbeddedZooKeeper(tmp_path, java=java, is_durable=False) as server,
        Session(server.connect) as session,
    ):
        assert len(session.children("/large")) == 600


@pytest.mark.zookeeper
def test_server_when_its_nodes_fill_the_memory_then_it_starts_again_with_more(
    tmp_path: Path, java: Java
) -> None:
    small = 32
    server = EmbeddedZooKeeper(
        tmp_path, java=java, is_durable=False, is_kept_up=True, heap_mb=small
    )
    with server, Session(server.connect, session_timeout_ms=30_000) as session:
        pid = server.pid
        names = (f"/consumers/{number}{'x' * 200_000}" for number in range(1000))
        made = 0
        with pytest.raises(CoordinationError):
            while some := dict.fromkeys(islice(names, 20), b""):
                session.create_many(some, ephemeral=False)
                made += len(some)

        wait_until(lambda: server.pid not in (None, pid) and bool(server.running(tmp_path)))
        wait_until(lambda: session.state is SessionState.CONNECTED)
        assert len(session.children("/consumers")) >= made
    with EmbeddedZooKeeper(tmp_path, java=java, is_durable=False, heap_mb=small) as again:
        assert again.pid is not None


@pytest.mark.zookeeper
def test_server_when_kept_up_and_it_dies_then_serves_again_with_its_sessions_and_data(
    tmp_path: Path, java: Java, caplog: pytest.LogCaptureFixture
) -> None:
    server = EmbeddedZooKeeper(tmp_path, java=java, is_kept_up=True)
    with server, Session(server.connect, session_timeout_ms=30_000) as session:
        connect, pid = server.connect, server.pid
        session.create("/here", b"value", ephemeral=True)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        wait_until(lambda: "is up again" in caplog.text)

        assert server.pid not in (None, pid)
        assert EmbeddedZooKeeper.running(tmp_path) == server.connect == connect
        assert session.get("/here")[0] == b"value"
    assert EmbeddedZooKeeper.running(tmp_path) is None


@pytest.mark.zookeeper
def test_server_when_stopped_while_it_is_started_again_then_none_is_left(
    tmp_path: Path, java: Java, caplog: pytest.LogCaptureFixture
) -> None:
    server = EmbeddedZooKeeper(tmp_path, java=java, is_kept_up=True)
    server.start()
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.pid not in (None, pid))

    server.stop()

    assert server.pid is None
    assert not is_locked(tmp_path)


@pytest.mark.zookeeper
def test_server_when_used_then_terminal_stays_silent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], java: Java
) -> None:
    with EmbeddedZooKeeper(tmp_path, java=java) as server, Session(server.connect) as session:
        session.create("/a")

    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "zookeeper.log").exists()


def test_start_when_java_fails_then_error_shows_the_end_of_its_log(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\necho one\necho the cause >&2\nexit 3\n")
    broken.chmod(0o755)
    server = EmbeddedZooKeeper(tmp_path / "data", java=Java(broken, "17", "PATH"))

    with pytest.raises(CoordinationError, match=r"ended with status 3; .*\n") as caught:
        server.start()

    assert str(caught.value).endswith("one\nthe cause")


def test_start_when_there_is_no_java_then_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing() -> Java:
        raise ConfigError("no Java")

    monkeypatch.setattr("broker.zk.embedded.find_java", find_nothing)

    with pytest.raises(ConfigError, match="no Java"):
        EmbeddedZooKeeper(tmp_path / "data").start()

    assert not (tmp_path / "data").exists()


def test_running_when_directory_is_missing_then_none(tmp_path: Path) -> None:
    assert EmbeddedZooKeeper.running(tmp_path / "missing") is None


def test_running_when_only_a_stale_note_is_there_then_none(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1\n")
    (tmp_path / "server.json").write_text(json.dumps({"host": "127.0.0.1", "port": 1, "pid": 1}))

    assert EmbeddedZooKeeper.running(tmp_path) is None


@pytest.mark.zookeeper
def test_stop_when_called_before_start_and_twice_after_it_then_ends_the_server_once(
    tmp_path: Path, java: Java
) -> None:
    server = EmbeddedZooKeeper(tmp_path, java=java, is_durable=False)
    server.stop()
    server.start()
    assert EmbeddedZooKeeper.running(tmp_path) == server.connect

    server.stop()
    server.stop()

    assert EmbeddedZooKeeper.running(tmp_path) is None
    assert not is_locked(tmp_path)
