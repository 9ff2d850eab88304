"""`pylogctl user quota` against a real ZooKeeper, and a broker that applies what it sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker import Broker
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

Quota = Callable[..., Result]


@pytest.fixture
def quota(zookeeper: str, invoke: Invoke) -> Quota:
    """Run `pylogctl user quota`."""
    return lambda *args: invoke("user", "quota", *args, "-Z", zookeeper)


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.status == ExitStatus.OK, result.stderr
    found: list[dict[str, Any]] = json.loads(result.text)["data"]
    return found


def test_quota_when_set_lifted_and_removed_then_shown_and_keys_of_passwords_stay(
    quota: Quota, session: Session
) -> None:
    session.create("/config/users/alice", b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x"}}')

    result = quota("alice", "--bytes-in", "10MiB/s", "--work", "50")

    assert (result.status, result.text) == (ExitStatus.OK, "")
    assert result.stderr == (
        "quotas of 'alice' on each broker: 10485760 bytes/s in, default bytes/s out, 50 % work, "
        "default connections\n"
    )
    assert quota("<default>", "--bytes-out", "1kB").status == ExitStatus.OK
    lifted = quota("alice", "--work", "none", "--bytes-in", "default", "--connections", "9")
    assert lifted.status == ExitStatus.OK
    assert rows(quota("--output", "json")) == [
        {
            "user": "<default>",
            "bytes_in": None,
            "bytes_out": 1000,
            "work": None,
            "connections": None,
        },
        {"user": "alice", "bytes_in": None, "bytes_out": None, "work": 0, "connections": 9},
    ]
    kept = json.loads(session.get("/config/users/alice")[0])["config"]
    assert kept == {"SCRAM-SHA-256": "salt=x", "request_percentage": "0", "connections": "9"}
    assert "salt" not in quota("alice").text


def test_quota_when_a_dry_run_then_changes_nothing(quota: Quota, session: Session) -> None:
    result = quota("bob", "--work", "5", "--dry-run")
    assert "nothing changed" in result.stderr
    assert session.exists("/config/users/bob") is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--work", "5"], "USER is missing"),
        (["bob", "--work", "half"], "--work is 'half'"),
        (["bob", "--bytes-in", "0"], "--bytes-in is '0'"),
        (["bob", "--connections", "1MB"], "--connections is '1MB'"),
        (["bob", "--bytes-out", "-5"], "--bytes-out is '-5'"),
    ],
)
def test_quota_when_an_argument_is_wrong_then_named(
    quota: Quota, arguments: list[str], words: str
) -> None:
    result = quota(*arguments)
    assert result.status == ExitStatus.USAGE
    assert words in result.stderr


def test_quota_when_a_client_exceeds_it_then_the_status_of_its_broker_names_the_user(
    quota: Quota, start_broker: Callable[..., Broker], invoke: Invoke, zookeeper: str
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    assert quota("ANONYMOUS", "--bytes-in", "1kB/s").status == ExitStatus.OK

    names: list[str] = []

    def is_throttled() -> bool:
        sent = invoke("produce", "t", "-b", f"127.0.0.1:{broker.port}", stdin=b"x" * 3000)
        assert sent.status == ExitStatus.OK, sent.stderr
        names.extend(one["principal"] for one in broker.status()["throttled"])
        return bool(names)

    wait_until(is_throttled, "the quota")
    assert set(names) == {"User:ANONYMOUS"}
