"""A secured ZooKeeper as users of commands and programs meet it: brokers, topics, groups."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import pylogctl
from broker.errors import ConfigError, RegistryAccessError
from broker.server.broker import Broker as Server
from broker.zk.java import Java
from broker.zk.security import ZooKeeperSecurity
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing.brokers import Broker
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def credential(tmp_path: Path) -> Path:
    file = tmp_path / "zk.secret"
    file.write_text("brokers:s3cret\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def undiscovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sessions find no embedded server, as if it were another user's."""
    monkeypatch.setattr("broker.zk.session.found_security", lambda hosts: ZooKeeperSecurity())


@pytest.fixture
def public(zookeeper: str) -> Iterator[Session]:
    with Session(zookeeper, security=ZooKeeperSecurity()) as started:
        yield started


def started_broker(zookeeper: str, credential: Path | None, *, sets_acl: bool = True) -> Broker:
    settings = {"zk.connect": zookeeper, "zookeeper.set.acl": str(sets_acl).lower()}
    if credential is not None:
        settings["zookeeper.credential.file"] = str(credential)
    return Broker(settings)


@pytest.mark.usefixtures("undiscovered")
def test_a_secured_cluster_serves_topics_groups_and_settings(
    invoke: Invoke, zookeeper: str, credential: Path, public: Session
) -> None:
    def run(*words: str, stdin: bytes = b"") -> str:
        options = ("-Z", zookeeper, "--zk-credential", str(credential))
        result = invoke(*words, *options, stdin=stdin)
        assert result.status == 0, result.stderr
        return result.stdout.decode()

    with started_broker(zookeeper, credential):
        run("topic", "create", "orders", "--partitions", "2", "--yes")
        run("topic", "create", "paid", "--replication-factor", "1", "--yes")
        run("produce", "orders", stdin=b"one\n")
        run("config", "set", "-t", "paid", "--absent", "retention.ms=3600000", "--yes")
        # a member needs no credential: it writes below /consumers
        member = invoke("consume", "orders", "--group", "g", "-o", "start",
                        "--max-messages", "1", "-Z", zookeeper)  # fmt: skip
        assert (member.status, member.stdout) == (0, b"one\n"), member.stderr
        assert "g" in run("group", "list")
        run("group", "delete", "g", "--yes", "--confirm", "g")
        for path in ("/controller", "/brokers/ids/0", "/brokers/topics/orders",
                     "/config/topics/paid", "/replicated/topics/paid"):  # fmt: skip
            with pytest.raises(RegistryAccessError):
                public.set(path, b"")
        with pytest.raises(RegistryAccessError):
            public.delete("/controller")
        for topic in ("orders", "paid"):
            run("topic", "delete", topic, "--data", "--yes", "--confirm", topic)


@pytest.mark.usefixtures("undiscovered")
def test_name_of_a_user_when_added_and_limited_then_stands_in_no_node_that_a_stranger_may_read(
    invoke: Invoke, zookeeper: str, credential: Path, public: Session
) -> None:
    options = ("-Z", zookeeper, "--zk-credential", str(credential))

    def texts(path: str) -> Iterator[str]:
        try:
            yield f"{path} {public.get(path)[0].decode()}"
            for name in public.children(path):
                yield from texts(f"{path.rstrip('/')}/{name}")
        except RegistryAccessError:
            yield f"{path} is closed"

    with started_broker(zookeeper, credential):
        for words in (("add", "alice", "--generate"), ("quota", "alice", "--bytes-in", "1MiB/s")):
            assert invoke("user", *words, *options).status == 0
        found = list(texts("/"))

    assert "/config/users is closed" in found
    assert [one for one in found if "alice" in one] == []


@pytest.mark.usefixtures("undiscovered")
def test_a_command_without_the_credential_names_the_node_and_the_option(
    invoke: Invoke, zookeeper: str, credential: Path
) -> None:
    with started_broker(zookeeper, credential):
        result = invoke("zk", "set", "/cluster/id", "mine", "--yes", "-Z", zookeeper)

    assert result.status == ExitStatus.REMOTE
    assert "node /cluster/id to a client without a credential" in result.stderr
    assert "--zk-credential FILE" in result.stderr


def test_a_library_client_uses_the_credential_of_its_file(zookeeper: str, credential: Path) -> None:
    with (
        started_broker(zookeeper, credential) as broker,
        pylogctl.connect(broker.address, zookeeper_credential=credential) as client,
    ):
        client.set_settings({"retention.ms": 3600000}, topic="orders", may_be_absent=True)
        client.create_topic("orders")

        assert client.settings(topic="orders")["retention.ms"].value == 3600000


def test_a_broker_that_sets_acls_without_a_credential_does_not_start(zookeeper: str) -> None:
    with pytest.raises(ConfigError, match="needs zookeeper"):
        started_broker(zookeeper, None)


@pytest.mark.usefixtures("undiscovered")
def test_a_broker_without_the_credential_does_not_start_and_says_what_it_lacks(
    zookeeper: str, credential: Path
) -> None:
    with started_broker(zookeeper, credential), pytest.raises(RegistryAccessError) as caught:
        started_broker(zookeeper, None, sets_acl=False)

    assert "a client without a credential" in str(caught.value)


def test_credential_file_of_a_command_when_others_may_read_it_is_refused(
    invoke: Invoke, zookeeper: str, credential: Path
) -> None:
    credential.chmod(0o644)

    result = invoke("zk", "ls", "-Z", zookeeper, "--zk-credential", str(credential))

    assert result.status == ExitStatus.CONFIG
    assert "other users may read it (mode 0644)" in result.stderr


def access_of(session: Session, path: str) -> str:
    """Return what a session may do with a node: write, read, or nothing."""
    try:
        value, stat = session.get(path)
    except RegistryAccessError:
        return "nothing"
    try:
        session.set(path, value, version=stat.version)
    except RegistryAccessError:
        return "read"
    return "write"


CLOSED = {
    "/": "read",
    "/cluster/id": "read",
    "/controller": "read",
    "/brokers/ids/0": "read",
    "/brokers/topics/orders": "read",
    "/creation-ids/orders": "read",
    "/config/users/ann": "nothing",
    "/acls": "nothing",
    "/consumers/g/offsets/orders/0-0": "write",
    "/others": "write",
}


@pytest.mark.usefixtures("undiscovered")
def test_migration_closes_a_running_cluster_and_opens_it_again_also_if_interrupted(
    invoke: Invoke,
    zookeeper: str,
    credential: Path,
    public: Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(verb: str, *words: str) -> Result:
        return invoke("zk", verb, "-Z", zookeeper, "--zk-credential", str(credential), *words)

    def access() -> dict[str, str]:
        wait_until(lambda: public.exists("/controller"), "a controller")
        return {path: access_of(public, path) for path in CLOSED}

    opened = dict.fromkeys(CLOSED, "write")
    change = Session.set_acls

    def interrupted(self: Session, node_paths: Iterable[str], *, is_secured: bool) -> int:
        if "/cluster/id" in (chosen := list(node_paths)):
            raise KeyboardInterrupt
        return change(self, chosen, is_secured=is_secured)

    with started_broker(zookeeper, credential, sets_acl=False) as broker:
        with broker.connect() as client:
            client.create_topic("orders")
        public.create("/config/users/ann", b"secret")
        public.create("/acls", b"rules")
        public.create("/consumers/g/offsets/orders/0-0", b"17")
        public.create("/others", b"of another application")
        wait_until(lambda: public.exists("/creation-ids/orders"), "the topic's registration")
        early = run("secure", "--yes")
        assert early.status == ExitStatus.CONFLICT
        assert "zookeeper.set.acl=true and this zookeeper.credential.file: 0" in early.stderr
        assert access() == opened

    with started_broker(zookeeper, credential):
        assert run("secure", "--dry-run").status == 0
        assert access() == {**opened, "/": "read", "/controller": "read", "/brokers/ids/0": "read"}
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Session, "set_acls", interrupted)
            run("secure", "--yes")
        assert access()["/"] == "read"
        assert access()["/cluster/id"] == "write"
        result = run("secure", "--yes")
        assert (result.status, access()) == (0, CLOSED), result.stderr
        assert "nodes closed" in result.stderr
        assert "nothing to change" in run("secure").stderr
        with pytest.raises(RegistryAccessError):
            public.delete("/controller")
        with pytest.raises(RegistryAccessError):
            public.delete("/brokers/ids/0")
        assert run("open", "--yes").status == ExitStatus.CONFLICT

    with started_broker(zookeeper, credential, sets_acl=False):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Session, "set_acls", interrupted)
            run("open", "--yes")
        result = run("open", "--yes")
        assert (result.status, access()) == (0, opened), result.stderr

    with started_broker(zookeeper, None, sets_acl=False):
        assert access() == opened


@pytest.mark.usefixtures("undiscovered")
def test_nodes_when_they_are_open_then_the_broker_and_health_name_them_until_they_are_closed(
    invoke: Invoke,
    zookeeper: str,
    credential: Path,
    public: Session,
    start_broker: Callable[..., Server],
) -> None:
    where = ("-Z", zookeeper, "--zk-credential", str(credential))
    start_broker(zookeeper=zookeeper, zk_credential_file=credential).stop()
    public.create("/config/users/ann", b'{"version":1,"config":{}}')
    broker = start_broker(zookeeper=zookeeper, zk_credential_file=credential, zk_set_acl=True)

    def health() -> tuple[int, list[str]]:
        result = invoke("cluster", "health", *where, "--output", "json")
        rows = {row["name"]: row["found"] for row in json.loads(result.text)["data"]}
        return result.status, rows["access"]

    wait_until(lambda: broker.status()["security"]["open_nodes"], "its look")
    status, found = health()
    assert status == ExitStatus.THRESHOLD
    assert any(one.startswith("node /config/users/ann: world:anyone may read") for one in found)
    assert not any(one.startswith(("node /:", "node /consumers")) for one in found)
    doctor = invoke("doctor", *where, "--output", "json")
    assert (doctor.status, "pylogctl zk secure" in doctor.text) == (ExitStatus.FAILED, True)
    assert "pylogctl_zookeeper_open_nodes 0" not in broker.exposition()

    assert invoke("zk", "secure", *where, "--yes").status == 0
    wait_until(lambda: health() == (0, []), "its next look")


@pytest.mark.usefixtures("undiscovered")
def test_migration_without_a_credential_or_with_a_wrong_one_changes_nothing(
    invoke: Invoke, zookeeper: str, credential: Path, public: Session
) -> None:
    with started_broker(zookeeper, credential):
        without = invoke("zk", "secure", "-Z", zookeeper, "--yes")
        credential.write_text("brokers:other\n")
        wrong = invoke(
            *("zk", "open", "-Z", zookeeper, "--yes", "--zk-credential", str(credential))
        )
        assert access_of(public, "/brokers/ids/0") == "read"

    assert without.status == ExitStatus.USAGE
    assert "--zk-credential FILE" in without.stderr
    assert wrong.status == ExitStatus.CONFLICT


@pytest.mark.usefixtures("undiscovered")
def test_credential_is_replaced_by_another_one_broker_at_a_time(
    invoke: Invoke, zookeeper: str, credential: Path
) -> None:
    def run(*words: str) -> Result:
        result = invoke(*words, "-Z", zookeeper, "--zk-credential", str(credential), "--yes")
        assert result.status == 0, result.stderr
        return result

    old, new = "brokers:s3cret\n", "later:n3w\n"
    credential.write_text(old)
    with started_broker(zookeeper, credential):
        run("topic", "create", "before")
    for step in (old + new, new + old):
        credential.write_text(step)
        with started_broker(zookeeper, credential):
            run("topic", "create", "between", "--if-not-exists")
    with started_broker(zookeeper, credential):
        assert "nodes closed" in run("zk", "secure").stderr
        credential.write_text(new)
        assert "nothing to change" in run("zk", "secure").stderr
    with started_broker(zookeeper, credential):
        run("topic", "create", "after")
    credential.write_text(old)
    with pytest.raises(RegistryAccessError):
        started_broker(zookeeper, credential)


def test_an_embedded_zookeeper_is_closed_and_its_users_commands_find_the_credential(
    spawn: Spawn, run_process: Invoke, tmp_path: Path, java: Java
) -> None:
    data = tmp_path / "data"
    options = ("--port", "0", "--zookeeper-port", "0", "--output", "json")
    environ = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    process = spawn("broker", "start", "--data", str(data), *options, env=environ)
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["zookeeper"]

    def run(*words: str, stdin: bytes = b"") -> Result:
        return run_process(*words, "-Z", address, stdin=stdin)

    assert run("produce", "orders", stdin=b"one\n").status == 0
    found = run(*("consume", "orders", "--group", "g", "-o", "start", "--max-messages", "1"))
    assert found.stdout == b"one\n", found.stderr
    changed = run("config", "set", "-t", "orders", "--absent", "retention.ms=3600000", "--yes")
    assert changed.status == 0, changed.stderr
    with spawn(
        *("broker", "start", "--id", "1", "--port", "0", "-Z", address),
        *("--data", str(tmp_path / "other")),
    ) as second:  # another broker of this user
        assert second.stdout is not None
        assert second.stdout.readline().startswith(b"READY broker=1")
        with Session(address, security=ZooKeeperSecurity()) as stranger:
            for path in ("/controller", "/brokers/ids/1", "/config/topics/orders"):
                with pytest.raises(RegistryAccessError):
                    stranger.set(path, b"")
                with pytest.raises(RegistryAccessError):
                    stranger.delete(path)
            with pytest.raises(RegistryAccessError):
                stranger.create("/acls")
            stranger.create("/consumers/of-kafka-07/ids/c", b"{}", ephemeral=True)
        second.terminate()
        second.communicate(timeout=60)
    for file, mode in ((data / "zookeeper", 0o700), (data / "zookeeper" / "zk.secret", 0o600)):
        assert stat.S_IMODE(file.stat().st_mode) == mode
