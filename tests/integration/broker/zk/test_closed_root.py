"""What a stranger can do to a secured cluster at the root of a ZooKeeper of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, ANYONE_ID_UNSAFE, Id, make_digest_acl

from broker.admin.cluster import access_problems_of
from broker.admin.registry_nodes import change_acls
from broker.admin.rules import add_rules
from broker.errors import RegistryAccessError
from broker.security.principal import ANONYMOUS, Principal
from broker.security.rules import Operation, Rule, StoredRules, parse_pattern
from broker.server.broker import Broker
from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.registry import Registry
from broker.zk.security import ZooKeeperCredential, ZooKeeperSecurity
from broker.zk.session import Session
from tests.support.waiting import wait_until

OWN = ZooKeeperCredential("brokers", "s3cret")
SECURED = ZooKeeperSecurity(OWN, sets_acls=True)
STRANGER = ZooKeeperCredential("stranger", "mine")
OTHERS_ALL = make_digest_acl(STRANGER.user, STRANGER.password, all=True)

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def root(tmp_path: Path, java: Java) -> Iterator[str]:
    """Return the address of a ZooKeeper that nobody has used."""
    with EmbeddedZooKeeper(tmp_path / "zookeeper", java=java, is_durable=False) as server:
        yield server.connect


@pytest.fixture
def stranger(root: str) -> Iterator[KazooClient]:
    client = KazooClient(root, auth_data=[("digest", f"{STRANGER.user}:{STRANGER.password}")])
    client.start()
    yield client
    client.stop()
    client.close()


def join(connect: str) -> None:
    """Start as a broker does, before it registers."""
    with Registry(connect, security=SECURED) as registry:
        registry.join_cluster("one")
        registry.session.create_many({paths.RULES: b"rules"}, ephemeral=False)


@pytest.mark.parametrize("chroot", ["", "/a/kafka"])
def test_nodes_at_the_top_when_a_broker_has_started_then_a_stranger_can_neither_delete_nor_add_them(
    root: str, stranger: KazooClient, chroot: str
) -> None:
    stranger.ensure_path(chroot or "/")
    join(root + chroot)

    for path in (paths.RULES, paths.CONSUMERS, "/cluster/id"):
        with pytest.raises(NoAuthError):
            stranger.delete(chroot + path, recursive=True)
    with pytest.raises(NoAuthError):
        stranger.create(f"{chroot}/controller")
    if chroot:  # its parent is open, but what has children cannot be deleted
        with pytest.raises(NoAuthError):
            stranger.delete("/a", recursive=True)
    stranger.create(f"{chroot}/consumers/of-kafka-07/ids/c", makepath=True)


def test_trees_of_consumers_when_a_broker_has_started_then_a_stranger_cannot_take_them_from_others(
    root: str, stranger: KazooClient
) -> None:
    join(root)

    for path in paths.OPEN_TREES:
        with pytest.raises(NoAuthError):
            stranger.set_acls(path, [OTHERS_ALL])


@pytest.mark.parametrize("others", [ANYONE_ID_UNSAFE, Id("ip", "0.0.0.0/0")])
def test_broker_when_a_stranger_has_the_root_then_does_not_start_and_says_what_to_do(
    root: str, stranger: KazooClient, others: Id
) -> None:
    all_but_admin = ACL(15, others)
    stranger.set_acls("/", [OTHERS_ALL, all_but_admin])

    with pytest.raises(RegistryAccessError) as caught:
        join(root)

    assert f"{others.scheme}:{others.id} may write, create, delete" in str(caught.value)
    assert "add a path to zk.connect" in caught.value.hints[0]
    join(f"{root}/kafka")


def test_broker_when_nodes_were_there_before_the_cluster_then_does_not_trust_them(
    root: str, stranger: KazooClient
) -> None:
    stranger.create(paths.user("admin"), b"a password that I know", makepath=True)

    with pytest.raises(RegistryAccessError) as caught:
        join(root)

    assert "node /config/users/admin: world:anyone may read, write" in str(caught.value)
    assert "pylogctl zk secure" in caught.value.hints[0]


def test_nodes_when_a_command_makes_them_after_secure_and_before_the_first_broker_then_are_closed(
    root: str,
) -> None:
    with Session(root, security=ZooKeeperSecurity(OWN)) as session:
        change_acls(session, is_secured=True)
    with Session(root, security=ZooKeeperSecurity(OWN)) as session:
        session.create(paths.user("admin"), b'{"version":1,"config":{}}')
        assert session.excess_rights(paths.OWN_NODES) == {}
    join(root)


def test_rules_when_a_stranger_makes_them_again_then_no_broker_judges_by_them(
    root: str, stranger: KazooClient, tmp_path: Path, start_broker: Callable[..., Broker]
) -> None:
    secret = tmp_path / "zk.secret"
    secret.touch(0o600)
    secret.write_text(f"{OWN.user}:{OWN.password}\n")
    settings = {
        "zookeeper": root,
        "zk_credential_file": secret,
        "zk_set_acl": True,
        "enforces_rules": True,
        "super_users": "User:root",
    }
    broker = start_broker(**settings)

    def rules() -> dict[str, Any]:
        found: dict[str, Any] = broker.status()["rules"]
        return found

    resource = parse_pattern("topic:*")[0]
    own = Rule(Principal("User", "alice"), Operation.READ, resource)
    others = StoredRules().adding([Rule(ANONYMOUS, Operation.ALL, resource)] * 2)
    with Session(root, security=SECURED) as session:
        add_rules(session, [own], is_dry_run=False)
        wait_until(lambda: rules()["count"] == 1, "the rule")
        session.set_acls(["/"], is_secured=False)  # by mistake, with the credential

        change = stranger.transaction()
        change.delete(paths.RULES)
        change.create(paths.RULES, others.encode())
        assert None not in change.commit()

        wait_until(lambda: rules()["problem"], "the alarm")
        assert (rules()["count"], rules()["vanished_count"]) == (1, 1)
        assert "node /acls was made by others: world:anyone may" in rules()["problem"]
        assert list(access_problems_of(broker.status())) == [
            f"the last good rules stay in effect: {rules()['problem']}"
        ]
        later = start_broker(broker_id=1, data_dir=tmp_path / "later", **settings).status()["rules"]
        assert (later["count"], later["problem"]) == (0, rules()["problem"])
        session.delete(paths.RULES)
        wait_until(lambda: not rules()["problem"], "the rules, which are written again")
        assert (rules()["count"], session.excess_rights([paths.RULES])) == (1, {})
