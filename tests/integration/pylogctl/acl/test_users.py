"""Rules bind users who log in with a password, whatever command they use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Result

pytestmark = pytest.mark.zookeeper


USERS = ("root", "alice", "mallory")


@pytest.fixture
def as_user(
    start_broker: Callable[..., Broker], zookeeper: str, invoke: Invoke, tmp_path: Path
) -> Callable[..., Result]:
    """Run a command as a user, against a broker that judges by rules."""
    broker = start_broker(zookeeper=zookeeper, enforces_rules=True, super_users="User:root")
    for name in USERS:
        password = tmp_path / name
        password.write_text(f"the password of {name}")
        password.chmod(0o600)
        added = invoke("user", "add", name, "--password-file", str(password), "-Z", zookeeper)
        assert added.status == ExitStatus.OK, added.stderr

    def run(name: str, *words: str) -> Result:
        where = [f"127.0.0.1:{broker.port}" if one == "HERE" else one for one in words]
        if "HERE" not in words:
            where += ["-Z", zookeeper]
        return invoke(*where, "--user", name, "--password-file", str(tmp_path / name))

    return run


def test_users_when_rules_are_on_then_each_may_do_what_is_allowed_to_it(
    as_user: Callable[..., Result], tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_text("hello\n")
    words = ("acl", "add", "User:alice", "write,create", "topic:orders")
    assert as_user("root", *words).status == ExitStatus.OK

    produce = ("produce", "orders", str(lines))
    consume = ("consume", "orders", "--from-beginning", "-e")
    assert as_user("alice", *produce).status == ExitStatus.OK
    refused = as_user("alice", *consume)
    assert refused.status == ExitStatus.NOT_ALLOWED
    assert "this user may not read topic 'orders'" in refused.stderr
    assert as_user("root", "acl", "add", "User:alice", "read", "topic:orders").status == 0
    assert as_user("alice", *consume).stdout == b"hello\n"

    assert "down" not in as_user("alice", "broker", "status", "0").stdout.decode()
    for command in (("broker", "status", "0"), ("topic", "describe", "orders")):
        refused = as_user("alice", *command)
        assert refused.status == ExitStatus.NOT_ALLOWED
        assert "User:alice may not describe cluster" in refused.stderr
    health = as_user("alice", "cluster", "health")
    assert health.status == ExitStatus.NOT_ALLOWED
    assert "not allowed to see: storage, retention, access, lost by ZooKeeper" in health.stderr
    assert b" fail " not in health.stdout
    assert as_user("root", "cluster", "health").status == ExitStatus.OK
    delete = ("topic", "delete", "orders", "--data", "--yes", "--confirm", "orders")
    refused = as_user("alice", *delete, "-b", "HERE")
    assert refused.status == ExitStatus.NOT_ALLOWED
    assert "User:alice may not delete topic:orders" in refused.stderr
    assert as_user("mallory", *produce).status == ExitStatus.NOT_FOUND
    assert as_user("root", "acl", "remove", "1", "2").status == ExitStatus.OK
    refused = as_user("alice", *produce)
    assert refused.status == ExitStatus.NOT_ALLOWED
    assert "User:alice may not write topic:orders" in refused.stderr
