"""Values for completion: from a registry, from the cache, and never an error."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pylogctl.cli import complete

NODES = {
    "/brokers/topics": ["orders", "orders-dlq", "syslog"],
    "/brokers/ids": ["0"],
    "/app/brokers/topics": ["inside"],
}
NOBODY = "127.0.0.1:1"
VALUES = {"/brokers/ids/0": b"box-1:127.0.0.1:9092"}


class FakeZooKeeper:
    """Responds to the connect request, getChildren and getData as ZooKeeper does."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, name="fake zookeeper")
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                self._answer_all(connection, stream)

    def _answer_all(self, connection: socket.socket, stream: object) -> None:
        read = stream.read  # type: ignore[attr-defined]  # a binary file
        read(struct.unpack(">i", read(4))[0])
        self._send(connection, struct.pack(">iiqi16s?", 0, 4000, 1, 16, b"", False))
        while head := read(4):
            body = read(struct.unpack(">i", head)[0])
            xid, kind, length = struct.unpack_from(">iii", body)
            path = body[12 : 12 + length].decode()
            self.requests.append(path)
            self._send(connection, self._reply(xid, kind, path))

    def _reply(self, xid: int, kind: int, path: str) -> bytes:
        if kind == 8 and path in NODES:
            names = b"".join(struct.pack(">i", len(n)) + n.encode() for n in NODES[path])
            return struct.pack(">iqii", xid, 1, 0, len(NODES[path])) + names
        if kind == 4 and path in VALUES:
            value = VALUES[path]
            return struct.pack(">iqii", xid, 1, 0, len(value)) + value
        return struct.pack(">iqi", xid, 1, -101)

    def _send(self, connection: socket.socket, body: bytes) -> None:
        connection.sendall(struct.pack(">i", len(body)) + body)


@pytest.fixture
def zookeeper() -> Iterator[FakeZooKeeper]:
    server = FakeZooKeeper()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pylogctl"


COMMANDS = {
    "topic": ["consume"],
    "broker": ["broker", "stop"],
    "zk-path": ["zk", "ls"],
    "nonsense": ["nonsense"],
}


def _offered(
    capfd: pytest.CaptureFixture[str], kind: str = "", prefix: str = "", *connection: str
) -> list[str]:
    complete.complete(["zsh", *COMMANDS[kind], *connection, prefix] if kind else [])
    captured = capfd.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def test_topics_that_start_with_the_prefix_are_offered(
    zookeeper: FakeZooKeeper, capfd: pytest.CaptureFixture[str]
) -> None:
    found = _offered(capfd, "topic", "ord", "-Z", zookeeper.address)
    assert found == ["orders\t", "orders-dlq\t"]


def test_brokers_are_offered_with_their_address(
    zookeeper: FakeZooKeeper, capfd: pytest.CaptureFixture[str]
) -> None:
    found = _offered(capfd, "broker", "", "--zookeeper", zookeeper.address)
    assert found == ["0\tbox-1:127.0.0.1:9092"]


def test_chroot_is_honoured(zookeeper: FakeZooKeeper, capfd: pytest.CaptureFixture[str]) -> None:
    assert _offered(capfd, "topic", "", "-Z", f"{zookeeper.address}/app") == ["inside\t"]


def test_registry_paths_are_completed_below_the_last_slash(
    zookeeper: FakeZooKeeper, capfd: pytest.CaptureFixture[str]
) -> None:
    found = _offered(capfd, "zk-path", "/brokers/topics/s", "-Z", zookeeper.address)
    assert found == ["/brokers/topics/syslog\t"]


def test_fresh_values_come_from_the_cache(
    zookeeper: FakeZooKeeper, capfd: pytest.CaptureFixture[str]
) -> None:
    _offered(capfd, "topic", "", "-Z", zookeeper.address)
    asked = len(zookeeper.requests)
    assert _offered(capfd, "topic", "sys", "-Z", zookeeper.address) == ["syslog\t"]
    assert len(zookeeper.requests) == asked


def _set_age(cache: Path, seconds: float) -> None:
    for path in cache.iterdir():
        stamp = path.stat().st_mtime - seconds
        os.utime(path, (stamp, stamp))


def test_stale_values_are_served_while_the_registry_is_away(
    zookeeper: FakeZooKeeper, capfd: pytest.CaptureFixture[str], cache: Path
) -> None:
    _offered(capfd, "topic", "", "-Z", zookeeper.address)
    _set_age(cache, complete.FRESH_S + 5)
    away = NOBODY
    (path,) = cache.iterdir()
    path.rename(complete.cache_file(f"topic {away} "))
    assert _offered(capfd, "topic", "sys", "-Z", away) == ["syslog\t"]
    _set_age(cache, complete.STALE_S)
    assert _offered(capfd, "topic", "sys", "-Z", away) == []


@pytest.mark.parametrize(
    "args",
    [[], ["topic"], ["nonsense", ""], ["topic", "", "-Z"], ["topic", "", "-Z", "x:y"],
     ["topic", "", "-Z", NOBODY]],
)  # fmt: skip
def test_anything_wrong_is_no_answer(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setenv("PYLOGCTL_ZOOKEEPER", NOBODY)  # one may run at the default address
    assert _offered(capfd, *args) == []


def test_registry_that_does_not_answer_is_given_up_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert _offered(capfd, "topic", "", "-Z", address) == []
