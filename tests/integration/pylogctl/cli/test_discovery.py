"""A command that names no address finds the broker of this machine where no ZooKeeper listens."""

from __future__ import annotations

import pytest

from pylogctl import testing
from pylogctl.cli import environment
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke
from tests.support.ports import port_of_its_own


@pytest.fixture
def free_address() -> str:
    """An address on which nothing listens."""
    return f"127.0.0.1:{port_of_its_own()}"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, pylog_broker: testing.Broker, free_address: str) -> None:
    """The broker of the session at the default port, and no ZooKeeper."""
    monkeypatch.setattr(environment, "DEFAULT_BROKER", pylog_broker.address)
    monkeypatch.setattr(environment, "DEFAULT_ZOOKEEPER", free_address)


@pytest.mark.usefixtures("here")
def test_commands_without_an_address_when_only_a_broker_listens_then_use_it(
    invoke: Invoke, pylog_topic: str
) -> None:
    assert invoke("produce", pylog_topic, stdin=b"one\ntwo\n").status == 0
    assert invoke("consume", pylog_topic, "--from-beginning", "-e").text == "one\ntwo\n"
    assert pylog_topic in invoke("topic", "list").text


@pytest.mark.usefixtures("here")
def test_command_with_an_address_when_a_broker_listens_then_uses_what_is_given(
    invoke: Invoke, pylog_topic: str, free_address: str
) -> None:
    result = invoke("topic", "list", "-b", free_address, "--timeout", "1")
    assert result.status == ExitStatus.UNREACHABLE
    assert free_address in result.stderr


@pytest.mark.usefixtures("here")
def test_group_without_a_zookeeper_when_a_broker_was_found_then_names_what_is_missing(
    invoke: Invoke, pylog_broker: testing.Broker
) -> None:
    result = invoke("consume", "--group", "g")
    assert result.status == ExitStatus.USAGE
    given = f"there are only brokers by address ({pylog_broker.address})"
    assert f"--group needs a ZooKeeper (-Z); {given}" in result.stderr


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", ["group list", "zk ls /", "config list --topic t"])
def test_command_of_zookeeper_when_the_broker_here_has_none_then_says_so(
    invoke: Invoke, command: str
) -> None:
    result = invoke(*command.split())
    assert result.status == ExitStatus.UNREACHABLE
    assert "runs without ZooKeeper" in result.stderr
