"""`pylogctl acl`, against real brokers and a real ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker import Broker
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Result

pytestmark = pytest.mark.zookeeper

Acl = Callable[..., Result]
SEES_CLUSTER = ("User:ANONYMOUS", "describe", "cluster")
"""The commands of these tests prove no identity, and ask brokers for their status."""


@pytest.fixture
def acl(zookeeper: str, invoke: Invoke) -> Acl:
    """Run a command of `pylogctl acl`."""
    return lambda *args: invoke("acl", *args, "-Z", zookeeper)


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str, acl: Acl) -> Broker:
    found = start_broker(zookeeper=zookeeper, enforces_rules=True, super_users="User:root")
    assert acl("add", *SEES_CLUSTER).status == ExitStatus.OK
    return found


def rows(result: Result, *columns: str) -> list[tuple[Any, ...]]:
    records = json.loads(result.stdout)["data"]
    return [tuple(record[column] for column in columns) for record in records]


def test_add_and_remove_when_brokers_run_then_they_judge_by_it_when_the_command_ends(
    broker: Broker, acl: Acl
) -> None:
    result = acl("add", "User:alice", "read,write", "topic:web-*", "--output", "json")

    assert result.status == ExitStatus.OK
    assert rows(result, "id", "effect", "principal", "operation", "resource", "host") == [
        (2, "allow", "User:alice", "read", "topic:web-*", "*"),
        (3, "allow", "User:alice", "write", "topic:web-*", "*"),
    ]
    assert broker.status()["rules"]["count"] == 3
    again = acl("add", "User:alice", "read", "topic:web-*", "--output", "json")
    assert rows(again, "id") == []

    assert acl("remove", "2", "--dry-run").status == ExitStatus.OK
    assert broker.status()["rules"]["count"] == 3
    assert rows(acl("remove", "2", "--output", "json"), "id") == [(2,)]
    assert broker.status()["rules"]["count"] == 2
    assert rows(acl("list", "User:alice", "--output", "json"), "id") == [(3,)]
    result = acl("remove", "3", "9")
    assert (result.status, "there is no rule 9" in result.stderr) == (ExitStatus.NOT_FOUND, True)
    assert broker.status()["rules"]["count"] == 2


def test_check_when_rules_match_then_the_one_that_decides_comes_first(
    broker: Broker, acl: Acl
) -> None:
    acl("add", "User:alice", "all", "topic:orders")
    acl("add", "User:*", "write", "topic:ord*", "--deny")
    acl("add", "User:bob", "read", "topic:orders", "--host", "::ffff:10.0.0.1")

    allowed = acl("check", "User:alice", "read", "topic:orders", "--output", "json")
    assert allowed.status == ExitStatus.OK
    assert rows(allowed, "allowed", "role", "id") == [(True, "decides", 2)]
    assert "User:alice may read topic:orders: rule 2 (version 3 of the rules)" in allowed.stderr

    denied = acl("check", "User:alice", "write", "topic:orders", "--output", "json")
    assert denied.status == ExitStatus.NOT_ALLOWED
    assert rows(denied, "allowed", "role", "id") == [(False, "decides", 3), (False, "lost", 2)]

    near = acl("check", "User:bob", "read", "topic:orders", "--output", "json")
    assert near.status == ExitStatus.NOT_ALLOWED
    assert rows(near, "role", "id") == [
        ("default", None),
        ("misses: user", 2),
        ("misses: host", 4),
    ]
    at_host = acl("check", "User:bob", "read", "topic:orders", "--host", "10.0.0.1")
    assert at_host.status == ExitStatus.OK

    root = acl("check", "User:root", "alter", "cluster", "--output", "json")
    assert rows(root, "allowed", "role", "id") == [(True, "super user", None)]


def test_commands_when_rules_are_off_then_their_first_line_says_so(
    start_broker: Callable[..., Broker], zookeeper: str, acl: Acl
) -> None:
    start_broker(zookeeper=zookeeper)
    for words in (
        ("add", "User:alice", "read", "topic:orders"),
        ("list",),
        ("check", "User:alice", "read", "topic:orders"),
    ):
        first = acl(*words).stderr.splitlines()[0]
        assert first.startswith("warning: rules are off on broker 0: acl.enable is false")


def test_commands_when_the_node_is_malformed_then_name_it(
    broker: Broker, acl: Acl, session: Session
) -> None:
    session.set(paths.RULES, b"nothing")
    result = acl("add", "User:alice", "read", "topic:orders")
    assert result.status == ExitStatus.REMOTE
    assert "the rules in node /acls are malformed" in result.stderr
    assert session.get(paths.RULES)[0] == b"nothing"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("add", "alice", "read", "topic:orders"), "'alice' is no user"),
        (("add", "User:alice", "peek", "topic:orders"), "'peek' is no operation"),
        (("add", "User:alice", "read", "orders"), "'orders' is no resource"),
        (("add", "User:alice", "read", "topic:a*b"), "* stands at the end only"),
        (("add", "User:alice", "read", "cluster"), "nobody can read the cluster"),
        (("add", "User:alice", "read", "topic:a", "--host", "here"), "'here' is no IP address"),
        (("check", "User:alice", "read,write", "topic:a"), "one operation at a time"),
        (("check", "User:alice", "read", "topic:a*"), "one user and one resource"),
    ],
)
def test_words_that_are_none_of_a_rule_are_refused(
    acl: Acl, words: tuple[str, ...], text: str
) -> None:
    result = acl(*words)
    assert result.status == ExitStatus.USAGE
    assert text in result.stderr
