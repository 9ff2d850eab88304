"""Credentials and ACLs on a real ZooKeeper: what clients without the credential may do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.errors import ConfigError, RegistryAccessError, RegistryConflictError
from broker.zk import paths
from broker.zk.nodes import CreateNode
from broker.zk.paths import OPEN_TREES, Protection, protection_of
from broker.zk.registry import Registry
from broker.zk.security import ZooKeeperCredential, ZooKeeperSecurity, read_credential
from broker.zk.session import Session

OWN = ZooKeeperCredential("brokers", "s3:cret")
PUBLIC = ZooKeeperSecurity()

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def secured(zookeeper: str) -> Iterator[Session]:
    """Return a session that gives nodes the ACLs of their paths, in a chroot that it makes."""
    with Session(zookeeper, security=ZooKeeperSecurity(OWN, sets_acls=True)) as started:
        yield started


@pytest.fixture
def public(zookeeper: str) -> Iterator[Session]:
    """Return a session without a credential."""
    with Session(zookeeper, security=PUBLIC) as started:
        yield started


def test_each_path_of_the_registry_has_its_protection() -> None:
    named = [
        value
        for name, value in vars(paths).items()
        if name.isupper() and isinstance(value, str) and value.startswith("/")
    ]

    shared = {one for one in named if protection_of(one) is Protection.SHARED}

    assert shared == set(OPEN_TREES)
    assert shared < set(named) <= set(paths.OWN_NODES) | {paths.RULES}
    assert Protection.OPEN not in map(protection_of, named)
    assert protection_of("/consumers/g") is Protection.OPEN
    assert protection_of("/") is Protection.READABLE
    assert protection_of("/config/users/ann") is Protection.SECRET
    assert protection_of("/config/users-of-old") is Protection.READABLE
    assert protection_of("/schemas/ids/1") is Protection.READABLE
    assert protection_of("/brokersets") is Protection.OPEN


def test_sessions_that_prove_two_credentials_may_use_the_nodes_of_each_other(
    zookeeper: str, secured: Session
) -> None:
    new = ZooKeeperCredential("later", "n3w")
    both = (
        ZooKeeperSecurity(replace(OWN, others=(new,)), sets_acls=True),
        ZooKeeperSecurity(replace(new, others=(OWN,))),
    )
    secured.create(paths.CLUSTER_ID, b"id")
    with Session(zookeeper, security=both[0]) as old, Session(zookeeper, security=both[1]) as late:
        assert late.sets_acls  # the cluster is closed, by the other one
        old.create("/config/users/ann", b"of old")
        late.create("/acls", b"of late")
        late.set("/config/users/ann", b"by late")
        old.set("/acls", b"by old")
        with pytest.raises(RegistryAccessError):
            secured.get("/acls")


def test_secret_nodes_when_a_client_has_no_credential_then_it_can_neither_read_nor_write_them(
    secured: Session, public: Session
) -> None:
    for path in ("/cluster/keys", "/config/users/ann", "/acls"):
        secured.create(path, b"secret")
        with pytest.raises(RegistryAccessError):
            public.get(path)
        with pytest.raises(RegistryAccessError):
            public.set(path, b"mine")
        with pytest.raises(RegistryAccessError):
            public.create(f"{path}/more")
    with pytest.raises(RegistryAccessError):
        public.children("/config/users")


def test_brokers_nodes_when_a_client_has_no_credential_then_it_can_read_them_only(
    secured: Session, public: Session
) -> None:
    secured.create("/controller", b"1", ephemeral=True)
    secured.create_many({"/brokers/ids/1": b"one"})
    secured.create("/config/changes", b"")
    secured.transact([CreateNode("/config/changes/c", b"topic", is_sequential=True)])
    (change,) = public.children("/config/changes")

    assert public.get("/controller")[0] == b"1"
    assert public.get("/brokers/ids/1")[0] == b"one"
    for path in ("/controller", "/brokers/ids/1", f"/config/changes/{change}"):
        with pytest.raises(RegistryAccessError):
            public.set(path, b"2")
        with pytest.raises(RegistryAccessError):
            public.delete(path)


def test_consumers_when_the_chroot_is_closed_then_a_client_of_07_can_still_join_a_group(
    zookeeper: str, public: Session
) -> None:
    with Registry(zookeeper, security=ZooKeeperSecurity(OWN, sets_acls=True)) as registry:
        registry.join_cluster("one")

        public.create("/consumers/g/ids/c", b"{}", ephemeral=True)
        public.create("/mirrors/g/errors/t/0-0")

        assert registry.session.children("/consumers/g/ids") == ["c"]
        registry.session.set("/mirrors/g/errors/t/0-0", b"x")
        with pytest.raises(RegistryAccessError):
            public.create("/others")


def test_no_right_when_there_is_no_credential_then_the_error_names_the_node_and_what_to_give(
    secured: Session, public: Session
) -> None:
    secured.create("/acls", b"")

    with pytest.raises(RegistryAccessError) as caught:
        public.get("/acls")

    assert "node /acls" in str(caught.value)
    assert "a client without a credential" in str(caught.value)
    assert "--zk-credential FILE" in caught.value.hints[0]


def test_no_right_when_the_password_is_wrong_then_the_error_names_the_user_and_no_password(
    secured: Session, zookeeper: str
) -> None:
    secured.create("/acls", b"")
    other = ZooKeeperSecurity(ZooKeeperCredential("brokers", "wrong-one"))

    with (
        Session(zookeeper, security=other) as session,
        pytest.raises(RegistryAccessError) as caught,
    ):
        session.set("/acls", b"mine")

    assert "the credential of user 'brokers'" in str(caught.value)
    assert "wrong-one" not in f"{caught.value} {caught.value.hints} {other!r}"


def test_a_command_when_the_cluster_is_secured_then_its_new_nodes_are_too(
    zookeeper: str, secured: Session, public: Session
) -> None:
    with Session(zookeeper, security=ZooKeeperSecurity(OWN)) as early:
        early.create("/config/topics/early")
        secured.create(paths.CLUSTER_ID, b"one")
        with Session(zookeeper, security=ZooKeeperSecurity(OWN)) as later:
            later.create("/config/topics/later")

    public.set("/config/topics/early", b"open")
    with pytest.raises(RegistryAccessError):
        public.set("/config/topics/later", b"closed")


def test_a_session_when_it_connects_again_then_it_proves_itself_again(
    zookeeper: str, secured: Session
) -> None:
    secured.create("/acls", b"1")
    secured._client._connection._socket.shutdown(2)

    assert secured.get("/acls")[0] == b"1"
    with pytest.raises(RegistryConflictError):
        secured.create("/acls", b"2")


@pytest.mark.parametrize("text", ["", "user", "user:", ":password", "a:b\nc\n"])
def test_credential_file_when_it_has_no_such_line_then_it_is_refused_without_its_text(
    tmp_path: Path, text: str
) -> None:
    file = _written(tmp_path / "zk.secret", text)

    with pytest.raises(ConfigError) as caught:
        read_credential(file)

    assert str(caught.value) == f"{file} must have lines user:password, ZooKeeper's credentials"


def test_credential_file_when_others_may_read_it_then_it_is_refused(tmp_path: Path) -> None:
    file = _written(tmp_path / "zk.secret", "user:pass:word\n")
    assert read_credential(file) == ZooKeeperCredential("user", "pass:word")
    file.chmod(0o644)

    with pytest.raises(ConfigError) as caught:
        read_credential(file)

    assert str(caught.value) == f"{file} has a credential, and other users may read it (mode 0644)"
    assert caught.value.hints == (f"try: chmod 600 {file}",)


def test_credential_file_when_it_is_missing_then_the_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none: No such file"):
        read_credential(tmp_path / "none")


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o600)
    return file
