from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from broker.errors import (
    ConfigError,
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
    RegistryUnreachableError,
)
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.session import Session, SessionState
from tests.support.waiting import wait_until
from tests.support.zookeeper_proxy import GET_CHILDREN, GET_DATA, ZooKeeperProxy

WATCH_DEADLINE_S = 60


@pytest.fixture
def dead_port() -> Iterator[int]:
    """Return a port that refuses connections for as long as the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_start_when_nothing_listens_then_error_names_servers_and_time(dead_port: int) -> None:
    session = Session(f"127.0.0.1:{dead_port}/x")

    with pytest.raises(RegistryUnreachableError) as caught:
        session.start(timeout_s=0.2)

    assert str(caught.value) == f"cannot reach ZooKeeper at 127.0.0.1:{dead_port} within 0.2s"


def test_start_when_a_server_accepts_and_is_silent_then_its_handshake_is_broken_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        session = Session(f"127.0.0.1:{port}", session_timeout_ms=3600_000)

        with pytest.raises(RegistryUnreachableError):
            session.start(timeout_s=0.2)  # its end stops the session


@pytest.mark.zookeeper
def test_start_when_a_server_refuses_the_first_session_then_it_is_not_said_to_have_lost_history(
    zookeeper: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = ZooKeeperProxy(zookeeper)
    try:
        proxy.refuse_next_sessions(1)
        refused = Session(proxy.connect)
        refused._handshakes.session_timeout_s = 0.0  # refusals are long at once
        with refused:
            pass
    finally:
        proxy.close()

    assert "less history" not in caplog.text


@pytest.mark.zookeeper
def test_reads_of_many_nodes_when_the_connection_is_lost_then_are_repeated(zookeeper: str) -> None:
    proxy = ZooKeeperProxy(zookeeper)
    nodes = {f"/a/{number}": b"%d" % number for number in range(5)}
    try:
        with Session(proxy.connect) as session:
            session.create_many({"/a": b"", **nodes})
            proxy.lose_next_answers(kind=GET_DATA)
            found = session.get_many(nodes)
            proxy.lose_next_answers(kind=GET_CHILDREN)
            children = session.children_many(["/a"])
    finally:
        proxy.close()

    assert proxy.lost_count == 2
    assert {path: value for path, (value, _) in found.items()} == nodes
    assert children == {"/a": ["0", "1", "2", "3", "4"]}


@pytest.mark.zookeeper
def test_read_when_a_starting_server_takes_a_connection_and_is_silent_then_another_is_made(
    zookeeper: str,
) -> None:
    proxy = ZooKeeperProxy(zookeeper)
    try:
        with Session(proxy.connect, session_timeout_ms=30_000) as session:
            session.create("/a", b"here")
            session_id = session.session_id
            proxy.ignore_next_sessions(1)
            proxy.lose_next_answers(kind=GET_DATA)
            found, _ = session.get("/a")
            assert session.session_id == session_id
    finally:
        proxy.close()

    assert found == b"here"


def test_session_when_connect_string_malformed_then_config_error() -> None:
    with pytest.raises(ConfigError, match="invalid ZooKeeper address"):
        Session("host:port")


def test_stop_when_never_started_then_does_nothing() -> None:
    session = Session("127.0.0.1:2181")

    session.stop()

    assert session.state is SessionState.LOST


@pytest.mark.zookeeper
def test_create_when_chroot_and_parents_missing_then_creates_them(
    zookeeper: str, session: Session
) -> None:
    with Session(f"{zookeeper}/deeper/still") as below:
        below.create("/a/b", b"value")

    assert session.get("/deeper/still/a/b")[0] == b"value"


@pytest.mark.zookeeper
def test_reads_when_chroot_missing_then_do_not_create_it(session: Session) -> None:
    with pytest.raises(RegistryNodeNotFoundError, match="no node / "):
        session.children("/")

    assert session.exists("/") is None


@pytest.mark.zookeeper
def test_get_when_node_exists_then_gives_value_and_stat(session: Session) -> None:
    session.create("/a/child")
    session.set("/a", b"12345")

    value, stat = session.get("/a")

    assert value == b"12345"
    assert (stat.version, stat.data_length, stat.children_count) == (1, 5, 1)
    assert stat.ephemeral_owner == 0
    assert stat.mtime_ms >= stat.ctime_ms > 0
    assert session.exists("/a") == stat


@pytest.mark.zookeeper
def test_create_when_ephemeral_then_owner_is_the_session(session: Session) -> None:
    session.create("/a", ephemeral=True)

    assert session.get("/a")[1].ephemeral_owner == session.session_id


@pytest.mark.zookeeper
def test_stop_when_session_has_ephemeral_nodes_then_they_go(
    zookeeper: str, session: Session
) -> None:
    with Session(zookeeper) as other:
        other.create("/a/b", ephemeral=True)

    assert session.children("/a") == []


@pytest.mark.zookeeper
def test_create_when_node_exists_then_conflict(session: Session) -> None:
    session.create("/a")

    with pytest.raises(RegistryConflictError, match="node /a exists already"):
        session.create("/a")


@pytest.mark.zookeeper
def test_create_when_parent_is_ephemeral_then_coordination_error(session: Session) -> None:
    session.create("/a", ephemeral=True)

    with pytest.raises(CoordinationError, match="the parent of node /a/b is ephemeral"):
        session.create("/a/b")


@pytest.mark.zookeeper
def test_create_many_when_some_exist_then_creates_the_others_and_names_those(
    session: Session,
) -> None:
    session.create("/a/1", b"old")

    existing = session.create_many({"/a/1": b"new", "/a/2": b"two", "/b/3": b"three"})

    assert existing == ["/a/1"]
    assert session.get("/a/1")[0] == b"old"
    assert session.get("/b/3")[0] == b"three"


@pytest.mark.zookeeper
def test_set_when_version_is_another_then_conflict(session: Session) -> None:
    session.create("/a")

    with pytest.raises(RegistryConflictError, match="changed by another client"):
        session.set("/a", b"x", version=7)


@pytest.mark.zookeeper
@pytest.mark.parametrize("name", ["get", "children", "delete"])
def test_request_when_node_missing_then_not_found_error_names_it(
    session: Session, name: str
) -> None:
    with pytest.raises(RegistryNodeNotFoundError, match="no node /gone in ZooKeeper"):
        getattr(session, name)("/gone")


@pytest.mark.zookeeper
def test_delete_when_node_has_children_then_coordination_error(session: Session) -> None:
    session.create("/a/b")

    with pytest.raises(CoordinationError, match="node /a has children"):
        session.delete("/a")


@pytest.mark.zookeeper
def test_replace_ephemeral_when_version_matches_then_this_session_owns_the_node(
    zookeeper: str, session: Session
) -> None:
    with Session(zookeeper) as other:
        other.create("/a", b"old", ephemeral=True)
        session.replace_ephemeral("/a", b"new", version=0)

        value, stat = other.get("/a")

    assert (value, stat.ephemeral_owner) == (b"new", session.session_id)


@pytest.mark.zookeeper
def test_replace_ephemeral_when_version_differs_then_conflict_and_old_node_stays(
    session: Session,
) -> None:
    session.create("/a", b"old")

    with pytest.raises(RegistryConflictError, match="changed by another client"):
        session.replace_ephemeral("/a", b"new", version=3)

    assert session.get("/a")[0] == b"old"


@pytest.mark.zookeeper
def test_walk_when_depth_is_limited_then_stops_there(session: Session) -> None:
    for path in ("/a/x/deep", "/a/y", "/b"):
        session.create(path)

    assert list(session.walk("/")) == [
        (0, "/"),
        (1, "/a"),
        (2, "/a/x"),
        (3, "/a/x/deep"),
        (2, "/a/y"),
        (1, "/b"),
    ]
    assert list(session.walk("/a", max_depth=1)) == [(0, "/a"), (1, "/a/x"), (1, "/a/y")]


@pytest.mark.zookeeper
def test_request_when_session_stopped_then_unreachable(zookeeper: str) -> None:
    session = Session(zookeeper)
    session.start()
    session.stop()

    with pytest.raises(RegistryUnreachableError):
        session.children("/")


@pytest.mark.zookeeper
def test_prepare_stop_when_zookeeper_is_away_then_requests_wait_no_more(
    java: Java, tmp_path: Path
) -> None:
    with EmbeddedZooKeeper(tmp_path, java=java, is_durable=False) as server:
        session = Session(server.connect, request_timeout_s=3600)
        session.start()
    wait_until(lambda: session.state is not SessionState.CONNECTED, "the end of the connection")
    with ThreadPoolExecutor(1) as threads:
        request = threads.submit(session.children, "/")

        assert not session.prepare_stop(0.1)

        with pytest.raises(RegistryUnreachableError):
            request.result(60)
    with pytest.raises(RegistryUnreachableError):
        session.set("/a", b"x")
    session.stop()


@pytest.mark.zookeeper
def test_watch_when_child_is_created_then_is_called_once(session: Session) -> None:
    session.create("/a")
    called = threading.Event()
    session.children("/a", watch=called.set)

    session.create("/a/b")

    assert called.wait(WATCH_DEADLINE_S)


@pytest.mark.zookeeper
def test_watch_when_missing_node_is_created_then_is_called(session: Session) -> None:
    called = threading.Event()
    session.exists("/a", watch=called.set)

    session.create("/a")

    assert called.wait(WATCH_DEADLINE_S)


def test_get_many_when_some_are_missing_then_gives_the_others(session: Session) -> None:
    session.create("/a/1", b"one")
    session.create("/a/2", b"two")

    found = session.get_many(["/a/1", "/a/2", "/a/3"])

    assert {path: value for path, (value, _) in found.items()} == {"/a/1": b"one", "/a/2": b"two"}


def test_get_many_when_watched_then_each_that_exists_is_called_for_its_change(
    session: Session,
) -> None:
    session.create("/a/1", b"one")
    session.create("/a/2", b"two")
    called = {path: threading.Event() for path in ("/a/1", "/a/2", "/a/3")}

    session.get_many(called, watch=lambda path: called[path].set)
    session.set("/a/2", b"new")
    session.create("/a/3", b"three")

    assert called["/a/2"].wait(WATCH_DEADLINE_S)
    session.set("/a/1", b"new")
    assert called["/a/1"].wait(WATCH_DEADLINE_S)
    assert not called["/a/3"].is_set()


def test_children_many_when_some_are_missing_then_gives_and_watches_the_others(
    session: Session,
) -> None:
    session.create("/a/1/y")
    session.create("/a/1/x")
    session.create("/a/2")
    called = {path: threading.Event() for path in ("/a/1", "/a/2", "/a/3")}

    found = session.children_many(called, watch=lambda path: called[path].set)
    session.create("/a/2/z")

    assert found == {"/a/1": ["x", "y"], "/a/2": []}
    assert called["/a/2"].wait(WATCH_DEADLINE_S)
    assert not called["/a/1"].is_set()


def test_set_many_when_a_version_differs_then_sets_only_the_others(session: Session) -> None:
    session.create("/a/1", b"one")
    session.create("/a/2", b"two")

    versions = session.set_many({"/a/1": (b"x", 0), "/a/2": (b"y", 7), "/a/3": (b"z", 0)})

    assert versions == {"/a/1": 1}
    assert session.get("/a/1")[0] == b"x"
    assert session.get("/a/2")[0] == b"two"


def test_create_many_when_persistent_then_no_session_owns_the_nodes(session: Session) -> None:
    assert session.create_many({"/a/1": b"one", "/a/2": b""}, ephemeral=False) == []

    assert session.get("/a/1")[1].ephemeral_owner == 0


def test_session_timeout_when_server_clamps_it_then_is_what_the_server_grants(
    zookeeper: str,
) -> None:
    with Session(zookeeper, session_timeout_ms=60_000) as patient:
        assert patient.session_timeout_s == 10.0  # 20 of the server's ticks


@pytest.mark.parametrize("answer", [b"", b"<html>bad request</html>"])
def test_start_when_another_server_listens_then_says_so_in_a_second(answer: bytes) -> None:
    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        session = Session(f"127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(RegistryUnreachableError, match="what listens there is no ZooKeeper"):
            session.start(60, retries_refused=False)
        server.shutdown(socket.SHUT_RDWR)
