"""Commands given a registry under a chroot that nobody has made."""

from __future__ import annotations

import pytest

from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list"),
        ("topic", "offsets", "t"),
        ("broker", "list"),
        ("group", "list"),
        ("consume", "t"),
        ("mirror", "status"),
        ("user", "list"),
        ("user", "quota"),
        ("user", "password", "x", "--generate"),
        ("user", "remove", "x", "--yes"),
        ("zk", "ls"),
        ("zk", "tree"),
        ("zk", "get", "/x"),
        ("zk", "set", "/x", "1", "--yes"),
        ("zk", "rm", "/x"),
        ("zk", "export"),
    ],
    ids=" ".join,
)
def test_command_when_the_chroot_does_not_exist_then_says_so(
    zookeeper: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "--zookeeper", zookeeper)

    servers, _, chroot = zookeeper.partition("/")
    assert (result.status, result.stdout) == (ExitStatus.NOT_FOUND, b"")
    assert f"ZooKeeper at {servers} has no node '/{chroot}', so no cluster" in result.stderr


def test_doctor_when_the_chroot_does_not_exist_then_fails_and_says_so(
    zookeeper: str, invoke: Invoke
) -> None:
    result = invoke("doctor", "--zookeeper", zookeeper)

    chroot = zookeeper.partition("/")[2]
    assert result.status == ExitStatus.FAILED
    assert f"has no node '/{chroot}', so no cluster" in result.text
    assert "registry: a cluster's first broker makes it" in result.stderr


def test_consume_when_it_is_to_wait_for_a_topic_then_a_chroot_may_come_into_being(
    zookeeper: str, invoke: Invoke
) -> None:
    result = invoke("consume", "t", "--zookeeper", zookeeper, "--wait-for-topic=100ms")
    assert "no node" not in result.stderr
