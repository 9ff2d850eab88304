"""Commands given several brokers with `--broker`, one of which is down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from pylogctl.cli.errors import ExitStatus
from tests.support.command_line import Invoke


def at(*brokers: Broker) -> str:
    return ",".join(f"127.0.0.1:{broker.port}" for broker in brokers)


@pytest.fixture
def half_there(start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path) -> str:
    """The addresses of two brokers with a message each, the second of which is down."""
    first, second = (
        start_broker(broker_id=number, data_dir=tmp_path / str(number)) for number in (1, 2)
    )
    addresses = at(first, second)
    invoke("produce", "t", "-b", addresses, "--partitioner", "round-robin", stdin=b"a\nb\n")
    second.stop()
    return addresses


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list"),
        ("topic", "count", "t"),
        ("broker", "status"),
        ("broker", "list"),
        ("consume", "t", "--from-beginning", "-n", "1"),
        ("copy", "t", "t2"),
    ],
)
def test_command_when_a_broker_is_down_then_shows_what_there_is_and_ends_with_partial(
    half_there: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", half_there, "--timeout", "1s")

    absent = half_there.rpartition(",")[2]
    assert result.status == ExitStatus.PARTIAL
    assert f"error: cannot reach {absent}: connection refused" in result.stderr
    assert "; going on without it\n" in result.stderr
    assert result.stdout or command[0] == "copy"


@pytest.mark.parametrize("command", [("produce", "t"), ("broker", "status", "1")])
def test_command_when_it_can_do_without_the_broker_then_only_warns(
    half_there: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", half_there, "--timeout", "1s", stdin=b"c\n")

    assert result.status == ExitStatus.OK
    assert result.stderr.startswith("warning: cannot reach ")


@pytest.mark.parametrize(
    "command", [("topic", "delete", "t", "--data", "--yes"), ("topic", "create", "u")]
)
def test_command_when_it_would_change_some_brokers_only_then_refuses(
    half_there: str, invoke: Invoke, command: tuple[str, ...]
) -> None:
    result = invoke(*command, "-b", half_there, "--timeout", "1s", *_partitions(command))

    assert result.status == ExitStatus.UNREACHABLE
    up, _, _ = half_there.partition(",")
    assert invoke("topic", "list", "-b", up, "--output", "name").text == "t\n"


def _partitions(command: tuple[str, ...]) -> tuple[str, ...]:
    return ("--partitions", "2") if command[1] == "create" else ()
