"""Commands that read a topic whose broker is away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import pylogctl
from broker import Broker
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.topic.test_topic import fill
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "describe", "live"),
        ("consume", "live", "-e"),
        ("consume", "live", "-e", "--group", "g"),
    ],
)
def test_command_when_the_broker_of_a_topic_is_away_says_which_one(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    command: tuple[str, ...],
) -> None:
    broker = start_broker(zookeeper=zookeeper, broker_id=7)
    fill(broker, "live", [b"x"])
    wait_until(lambda: session.exists(paths.topic_broker("live", 7)), "the registration")
    broker.stop()

    result = invoke(*command, "-Z", zookeeper)

    assert result.status == ExitStatus.UNREACHABLE
    assert "topic 'live' is on broker 7, which is away" in result.stderr
    assert "similar name" not in result.stderr


def test_list_and_describe_when_one_of_two_home_brokers_is_away_then_mark_its_partitions(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    tmp_path: Path,
) -> None:
    here, away = (
        start_broker(zookeeper=zookeeper, broker_id=id, data_dir=tmp_path / str(id))
        for id in (0, 7)
    )
    for broker in (here, away):
        fill(broker, "live", [b"x"])
    wait_until(lambda: len(session.children_if_any(paths.topic("live"))) == 2, "the registration")
    assert invoke("topic", "list", "-Z", zookeeper).status == ExitStatus.OK
    away.stop()

    for where in ("-Z", zookeeper), ("-b", f"127.0.0.1:{here.port}"):
        listed = invoke("topic", "list", *where, "--output", "json")
        assert listed.status == ExitStatus.PARTIAL, where
        assert "no leader until broker 7 is back" in listed.stderr
        (row,) = json.loads(listed.text)["data"]
        assert {name: row[name] for name in ("partitions", "replicas", "offline", "state")} == {
            "partitions": 2,
            "replicas": None,
            "offline": 1,
            "state": "offline",
        }
        assert (row["brokers"], row["size_bytes"]) == ([0, 7], None)
        described = invoke("topic", "describe", "live", *where)
        assert described.status == ExitStatus.PARTIAL, where
        assert "OFFLINE" in described.text.splitlines()[2]
        assert [line.split()[1:5] for line in described.text.splitlines()[1:]] == [
            ["0-0", "0", "0", "0"],
            ["7-0", "-", "7", "7"],
        ]
        assert "  offline 1  " in invoke("top", "--batch", "1", *where).text.splitlines()[1]
    with pylogctl.connect(f"127.0.0.1:{here.port}") as client:
        (info,) = client.topics()
        assert (info.partitions, info.offline, info.state) == (2, 1, "offline")
        assert [one.state for one in client.describe("live")] == ["ok", "offline"]


def test_command_when_a_topic_was_deleted_and_its_broker_is_away_does_not_find_it(
    start_broker: Callable[..., Broker], zookeeper: str, session: Session, invoke: Invoke
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    fill(broker, "gone", [b"x"])
    wait_until(lambda: session.exists(paths.topic_broker("gone", 0)), "the registration")
    options = ("-Z", zookeeper, "--yes", "--confirm", "gone")
    assert invoke("topic", "delete", "gone", "--data", *options).status == ExitStatus.OK
    broker.stop()

    result = invoke("topic", "describe", "gone", "-Z", zookeeper)

    assert result.status == ExitStatus.NOT_FOUND
