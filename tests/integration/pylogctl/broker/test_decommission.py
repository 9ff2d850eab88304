"""`pylogctl broker decommission`, with three brokers and a ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartOne = Callable[[int], Broker]


@pytest.fixture
def start(start_broker: Callable[..., Broker], zookeeper: str, tmp_path: Path) -> StartOne:
    """Start a broker with the data it had."""
    return lambda broker_id: start_broker(
        broker_id=broker_id,
        data_dir=tmp_path / str(broker_id),
        zookeeper=zookeeper,
        zk_session_timeout_ms=30_000,
    )


@pytest.fixture
def brokers(start: StartOne) -> list[Broker]:
    return [start(broker_id) for broker_id in range(3)]


@pytest.fixture
def run(brokers: list[Broker], zookeeper: str, invoke: Invoke) -> Invoke:
    def run(*args: str, stdin: bytes = b"") -> Result:
        result: Result = invoke(*args, "-Z", zookeeper, "--timeout", "120s", stdin=stdin)
        return result

    return run


def create(run: Invoke, topic: str, partition_count: int, factor: int) -> None:
    count = str(partition_count)
    factor_options = ("--replication-factor", str(factor))
    result = run("topic", "create", topic, "--partitions", count, *factor_options)
    assert result.status == ExitStatus.OK, result.stderr


def assigned(session: Session, topic: str) -> set[int]:
    """The brokers that have replicas of a topic."""
    found: dict[str, Any] = json.loads(session.get(f"/replicated/topics/{topic}")[0])
    return {one for replicas in found["partitions"].values() for one in replicas}


def test_decommission_when_broker_is_live_then_others_get_its_replicas(
    run: Invoke, session: Session
) -> None:
    create(run, "t", 3, 2)
    create(run, "single", 3, 1)

    dry = run("broker", "decommission", "2", "--dry-run")
    assert (dry.status, assigned(session, "t")) == (ExitStatus.OK, {0, 1, 2})
    result = run("broker", "decommission", "2", "--yes")

    assert result.status == ExitStatus.OK, result.stderr
    assert "pylogctl broker stop 2" in result.stderr
    assert assigned(session, "t") == {0, 1}
    assert 2 not in assigned(session, "single")
    again = run("broker", "decommission", "2", "--yes", "--output", "json")
    assert (again.status, json.loads(again.text)["data"]) == (ExitStatus.OK, [])


def test_decommission_when_broker_is_dead_then_others_copy_and_it_deletes_its_logs_later(
    run: Invoke, session: Session, brokers: list[Broker], start: StartOne, tmp_path: Path
) -> None:
    create(run, "t", 3, 2)
    brokers[2].stop()

    def has_replicas() -> bool:
        return bool([*(tmp_path / "2").glob("t_*"), *(tmp_path / "2").glob("replicas/*/t_*")])

    result = run("broker", "decommission", "2", "--yes")

    assert result.status == ExitStatus.OK, result.stderr
    assert assigned(session, "t") == {0, 1}
    assert has_replicas()
    start(2)
    wait_until(lambda: not has_replicas(), "the deletion of its logs", deadline_s=60)


def test_decommission_when_topics_are_created_meanwhile_then_the_broker_gets_none_of_them(
    run: Invoke, session: Session
) -> None:
    create(run, "t", 3, 1)
    lines = (b"x" * 999 + b"\n") * 200
    assert run("produce", "t", "-p", "2-0", stdin=lines).status == ExitStatus.OK
    begun = run("topic", "reassign", "execute", "--to", "0,1", "--throttle", "1B/s")
    assert begun.status == ExitStatus.OK, begun.stderr

    create(run, "new", 8, 2)
    few = run("topic", "create", "few", "--partitions", "1", "--replication-factor", "3")

    assert assigned(session, "new") == {0, 1}
    assert few.status != ExitStatus.OK
    assert "2 brokers are live besides [2], from which all replicas are being" in few.stderr
    assert run("topic", "reassign", "throttle", "--throttle", "none").status == ExitStatus.OK
    result = run("broker", "decommission", "2", "--yes")  # waits for what is under way
    assert result.status == ExitStatus.OK, result.stderr
    assert assigned(session, "t") == {0, 1}
    assert session.exists("/admin/reassign_partitions") is None


@pytest.mark.parametrize(
    ("broker_id", "status", "reason"),
    [
        ("2", ExitStatus.CONFLICT, "broker 2 cannot be taken away: 3 replicas of a partition need"),
        ("9", ExitStatus.NOT_FOUND, "broker 9 not found"),
    ],
)
def test_decommission_when_it_makes_no_sense_then_refused_and_nothing_changed(
    run: Invoke, session: Session, broker_id: str, status: ExitStatus, reason: str
) -> None:
    create(run, "t", 1, 3)

    result = run("broker", "decommission", broker_id, "--yes")

    assert (result.status, reason in result.stderr) == (status, True)
    assert assigned(session, "t") == {0, 1, 2}
    assert session.exists("/admin/reassign_partitions") is None


def test_decommission_when_not_confirmed_then_nothing_changed(
    run: Invoke, session: Session
) -> None:
    create(run, "t", 3, 2)

    assert run("broker", "decommission", "2").status == ExitStatus.DECLINED

    assert assigned(session, "t") == {0, 1, 2}


def test_decommission_when_a_topic_has_no_replicas_then_it_is_named(run: Invoke) -> None:
    assert run("topic", "create", "plain", "--partitions", "2", "-b", "2").status == ExitStatus.OK

    result = run("broker", "decommission", "2", "--yes")

    assert result.status == ExitStatus.PARTIAL
    assert "topic 'plain' has 2 partitions without replicas on broker 2" in result.stderr
