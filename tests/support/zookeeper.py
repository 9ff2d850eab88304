"""A real ZooKeeper, started once for all tests that ask for it; each test gets its own chroot."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java, find_java
from broker.zk.session import Session
from tests.support.waiting import wait_until

_48_BITS = (1 << 48) - 1
_CLOSE_SESSION = -11  # the type of the request
_OPENED = struct.Struct(">iiiq")  # length, version, timeout, session, of the first answer


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def zookeeper_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zookeeper")


@pytest.fixture(scope="session")
def zookeeper_server(java: Java, zookeeper_dir: Path) -> Iterator[EmbeddedZooKeeper]:
    # Sessions last 2 to 20 ticks: 1 s where a test waits for their end, and those that nothing
    # is to end outlive a pause of the machine.
    with EmbeddedZooKeeper(zookeeper_dir, java=java, is_durable=False, tick_ms=500) as server:
        yield server


@pytest.fixture
def zookeeper(zookeeper_server: EmbeddedZooKeeper) -> str:
    """Return a connect string with a chroot that does not exist yet."""
    return f"{zookeeper_server.connect}/{uuid.uuid4().hex}"


@pytest.fixture
def session(zookeeper: str) -> Iterator[Session]:
    """Return a second pair of eyes on what the test does."""
    with Session(zookeeper) as started:
        yield started


def await_registered(session: Session, topic: str = "t", broker_id: int = 0) -> None:
    """Wait until a broker has registered a topic, which it does after the first publish to it."""
    path = paths.topic_broker(topic, broker_id)
    wait_until(lambda: session.exists(path), f"the registration of {topic} by broker {broker_id}")


def expire_session(session: Session) -> None:
    """End a session on the server, as if its client had been silent for too long."""
    _close_session(session.connect, *session._client.client_id)


def expire_session_of(session: Session, path: str) -> None:
    """End the session of another process, which has a node, likewise; no effect without the node.

    Args:
        session: to the same ZooKeeper.
        path: of an ephemeral node.
    """
    if stat := session.exists(path):
        _close_session(session.connect, stat.ephemeral_owner, _password_of(stat.ephemeral_owner))


def _close_session(connect: str, session_id: int, password: bytes) -> None:
    """Take a session over and close it.

    Both are asked for in one write: its client, which has lost the connection by the first, is back
    in a tenth of a second, and would take it over in turn. That it is closed must be said.
    """
    opening = struct.pack(">iqiqi", 0, 0, 10_000, session_id, len(password)) + password + b"\0"
    closing = struct.pack(">ii", 1, _CLOSE_SESSION)
    frames = b"".join(struct.pack(">i", len(one)) + one for one in (opening, closing))
    hosts = itertools.cycle(connect.partition("/")[0].split(","))

    def is_closed() -> bool:
        host, _, port = next(hosts).rpartition(":")
        answers = b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, int(port)), timeout=60) as sock,
        ):
            sock.sendall(frames)
            while answer := sock.recv(4096):
                answers += answer
        if len(answers) < _OPENED.size:
            return False
        size, *_, found = _OPENED.unpack_from(answers)
        # there is no such session any more, or the second answer has come
        return bool(found == 0 or len(answers) > 4 + size)

    wait_until(is_closed, f"the end of session {session_id:#x}")


def _password_of(session_id: int) -> bytes:
    """Return the password of a session: what `Random` of Java gives, from a seed that all know."""
    state = (session_id ^ 0xB3415C00 ^ 0x5DEECE66D) & _48_BITS
    password = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & _48_BITS
        password += struct.pack("<I", state >> 16)
    return password
