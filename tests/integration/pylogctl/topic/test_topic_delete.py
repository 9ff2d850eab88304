"""`pylogctl topic delete` where a registry knows of the topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker import Broker
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry, node_of_topic
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.topic.test_topic import fill, rows
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def delete(zookeeper: str, invoke: Invoke) -> Callable[..., Result]:
    """Delete topic t, confirmed."""

    def run(*args: str) -> Result:
        return invoke("topic", "delete", "t", "-Z", zookeeper, "--yes", "--confirm", "t", *args)

    return run


def publish(broker: Broker, session: Session) -> None:
    fill(broker, "t", [b"x"])
    wait_until(lambda: session.exists(paths.topic_broker("t", 0)), "the registration of t")


def test_delete_with_data_removes_logs_and_node(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    delete: Callable[..., Result],
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, session)
    result = delete("--data", "--output", "json")
    assert rows(result) == [
        {"topic": "t", "broker": 0, "partitions": 1, "group": None, "action": "deleted"},
        {"topic": "t", "broker": None, "partitions": None, "group": None, "action": "deleted"},
    ]
    assert not session.exists(paths.topic("t"))
    assert broker.status()["topics"] == 0


def test_delete_without_data_when_a_live_broker_has_it_is_a_conflict(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    delete: Callable[..., Result],
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, session)
    result = delete()
    assert result.status == ExitStatus.CONFLICT
    assert "topic 't' is on broker 0, which would register it again" in result.stderr
    assert session.exists(paths.topic("t"))
    assert broker.status()["topics"] == 1


def test_delete_without_data_when_no_live_broker_has_it_removes_the_node(
    session: Session, delete: Callable[..., Result]
) -> None:
    session.create(paths.topic("t"))
    assert delete().status == ExitStatus.OK
    assert not session.exists(paths.topic("t"))


def test_delete_when_the_topic_has_settings_then_they_go_with_it(
    session: Session, delete: Callable[..., Result]
) -> None:
    session.create(paths.topic("t"))
    settings = SettingsRegistry(session)
    for topic in ("t", "u"):
        settings.change(node_of_topic(topic), lambda _: {"flush.ms": "1"})

    assert delete().status == ExitStatus.OK

    assert settings.topics() == ["u"]


def test_delete_when_brokers_keep_registering_it_gives_up_and_says_who(
    session: Session, delete: Callable[..., Result]
) -> None:
    session.create(paths.topic_broker("t", 7), b"1", ephemeral=True)
    result = delete("--timeout", "5s")
    assert result.status == ExitStatus.TIMEOUT
    assert "topic 't' is still registered by broker 7 after 5s" in result.stderr


@pytest.fixture
def stored(session: Session) -> list[str]:
    """Offsets of topic t that two groups have stored."""
    partition = TopicPartition("t", 0, 0)
    found = [paths.offset(group, partition) for group in ("g", "h")]
    for path in found:
        session.create(path, b"10")
    session.create(paths.offset("other", TopicPartition("u", 0, 0)), b"10")
    return found


def test_delete_when_groups_have_offsets_names_them_and_leaves_them(
    session: Session, stored: list[str], delete: Callable[..., Result]
) -> None:
    session.create(paths.topic("t"))
    result = delete()
    assert result.status == ExitStatus.OK
    assert "stored for group g, h; --group-offsets deletes them too" in result.stderr
    assert all(session.exists(path) for path in stored)


def test_delete_with_group_offsets_deletes_those_of_the_topic(
    session: Session, stored: list[str], delete: Callable[..., Result]
) -> None:
    session.create(paths.topic("t"))
    result = delete("--group-offsets", "--output", "json")
    assert [(row["group"], row["partitions"]) for row in rows(result)] == [
        (None, None),
        ("g", 1),
        ("h", 1),
    ]
    assert not any(session.exists(path) for path in stored)
    assert session.children(paths.offsets("other", "u")) == ["0-0"]
