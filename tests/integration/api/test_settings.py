"""Settings of topics and brokers through the Python API, at brokers with a ZooKeeper."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pylogctl
from broker import Broker as Server
from broker.zk.session import Session
from pylogctl import Client, SettingChange
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(2) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.connect() as connected:
        yield connected


@pytest.fixture
def topic(client: Client) -> str:
    name = f"orders-{next(_numbers)}"
    client.create_topic(name)
    return name


def test_settings_of_a_topic_when_set_then_are_in_effect_until_they_are_unset(
    client: Client, topic: str
) -> None:
    before = client.settings(topic=topic)
    assert (before["flush.ms"].value, before["flush.ms"].origin) == (100, "default")
    assert before["flush.before.read"].value is True

    changed = client.set_settings(
        {"flush.ms": 7, "log.retention.hours": "1", "flush.before.read": False}, topic=topic
    )

    assert changed == [
        SettingChange("flush.ms", None, 7),
        SettingChange("retention.ms", None, 3_600_000),
        SettingChange("flush.before.read", None, False),
    ]
    after = client.settings(topic=topic)
    assert after["flush.ms"] == pylogctl.Setting(7, "topic", 100, {})
    assert after["retention.ms"].value == 3_600_000
    assert after["flush.before.read"].value is False
    assert client.set_settings({"flush.ms": 7}, topic=topic) == []  # once more changes nothing

    assert client.unset_settings(["flush.ms"], topic=topic) == [SettingChange("flush.ms", 7, None)]
    assert client.settings(topic=topic)["flush.ms"] == before["flush.ms"]
    assert len(client.unset_settings(None, topic=topic)) == 2
    assert client.settings(topic=topic) == before
    assert client.unset_settings(None, topic=topic) == []


def test_settings_of_a_broker_when_set_then_only_that_one_has_them(client: Client) -> None:
    changed = client.set_settings({"log.segment.bytes": 99, "max.connections": 77}, broker=1)

    assert changed == [
        SettingChange("log.file.size", None, 99),
        SettingChange("max.connections", None, 77),
    ]
    found = client.settings(broker=1)
    assert found["log.file.size"] == pylogctl.Setting(99, "broker", 1 << 30, {})
    assert (found["brokerid"].value, found["brokerid"].origin) == (1, "start")
    assert found["host"].value == "127.0.0.1"
    assert client.settings(broker=0)["log.file.size"].origin == "default"
    # what brokers differ in shows at their topics
    client.create_topic("differing")
    assert client.settings(topic="differing")["segment.bytes"].elsewhere == {1: 99}

    client.unset_settings(None, broker=1)

    assert client.settings(broker=1)["max.connections"].origin == "default"


def test_settings_when_only_planned_then_nothing_changes(client: Client, topic: str) -> None:
    planned = client.set_settings({"flush.ms": 7}, topic=topic, plan=True)

    assert planned == [SettingChange("flush.ms", None, 7)]
    assert client.settings(topic=topic)["flush.ms"].origin == "default"

    client.set_settings({"flush.ms": 8}, topic=topic)
    assert client.unset_settings(["flush.ms"], topic=topic, plan=True) == [
        SettingChange("flush.ms", 8, None)
    ]
    assert client.unset_settings(None, topic=topic, plan=True) == [
        SettingChange("flush.ms", 8, None)
    ]
    assert client.settings(topic=topic)["flush.ms"].value == 8


def test_set_when_the_topic_or_broker_is_not_there_then_says_so_unless_it_may_be(
    client: Client,
) -> None:
    for call in (
        lambda: client.settings(topic="nowhere"),
        lambda: client.set_settings({"flush.ms": 7}, topic="nowhere"),
    ):
        with pytest.raises(pylogctl.UnknownTopic, match="topic 'nowhere' not found"):
            call()
    with pytest.raises(pylogctl.UnknownBroker, match="broker '7' not found"):
        client.settings(broker=7)
    with pytest.raises(pylogctl.UnknownBroker, match="broker '7' not found"):
        client.set_settings({"max.connections": 7}, broker=7)

    assert client.set_settings({"max.connections": 7}, broker=7, may_be_absent=True) != []
    client.set_settings({"partition.count": 3}, topic="later", may_be_absent=True)
    client.send("later", "hello")
    wait_until(lambda: "later" in [one.name for one in client.topics()], "the new topic")
    assert client.settings(topic="later")["partition.count"].value == 3


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"flush.m": 1}, "no setting of topics 'flush.m'; did you mean 'flush.ms'"),
        ({"flush.ms": 0}, "flush.ms is 0; it must be at least 1"),
        ({"flush.ms": "often"}, "flush.ms is 'often'; it must be a whole number"),
        ({"flush.before.read": 1}, "it must be true or false"),
        ({"port": 1}, "'port' is a setting of brokers"),
        (
            {"flush.ms": 1, "topic.flush.intervals.ms": 2},
            "'flush.ms' and 'topic.flush.intervals.ms' set the same",
        ),
    ],
)
def test_set_when_a_value_is_malformed_then_says_how_and_sets_none(
    client: Client, topic: str, values: dict[str, int | str], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        client.set_settings({**values, "segment.bytes": 999}, topic=topic)

    assert isinstance(caught.value, pylogctl.Error)
    assert client.settings(topic=topic)["segment.bytes"].origin == "default"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda one: one.settings(), "give one: topic= or broker="),
        (lambda one: one.settings(topic="t", broker=0), "give one: topic= or broker="),
        (lambda one: one.settings(topic=b"t"), "give the topic as str"),
        (lambda one: one.settings(broker="0"), "give the broker as its id, an int"),
        (lambda one: one.set_settings("flush.ms=1", topic="t"), "give settings as a mapping"),
        (lambda one: one.set_settings({1: 1}, topic="t"), "give the name of a setting as str"),
        (lambda one: one.set_settings({"flush.ms": 1.5}, topic="t"), "flush.ms as an int, a bool"),
        (lambda one: one.set_settings({"flush.ms": None}, topic="t"), "flush.ms as an int, a bool"),
        (lambda one: one.unset_settings("flush.ms", topic="t"), "give names as a list of str"),
        (lambda one: one.unset_settings([1], topic="t"), "give the name of a setting as str"),
        (lambda one: one.unset_settings(["flush.ms"]), "give one: topic= or broker="),
    ],
)
def test_call_when_given_a_wrong_type_then_says_what_to_pass(
    client: Client, call: Callable[[Client], object], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        call(client)


def test_call_when_the_client_is_closed_then_says_so(cluster: Cluster) -> None:
    client = cluster.connect()
    client.close()

    for call in (
        lambda: client.settings(topic="t"),
        lambda: client.set_settings({"flush.ms": 1}, topic="t"),
        lambda: client.unset_settings(None, topic="t"),
    ):
        with pytest.raises(pylogctl.Closed):
            call()


def test_call_when_the_brokers_have_no_zookeeper_then_settings_are_shown_and_none_is_set(
    pylog: Client, pylog_topic: str
) -> None:
    pylog.create_topic(pylog_topic)
    assert pylog.settings(topic=pylog_topic)["flush.ms"].value == 100
    assert pylog.settings(broker=0)["port"].origin == "start"

    with pytest.raises(pylogctl.NoZooKeeper):
        pylog.set_settings({"flush.ms": 1}, topic=pylog_topic)
    with pytest.raises(pylogctl.NoZooKeeper):
        pylog.unset_settings(["flush.ms"], topic=pylog_topic)


@pytest.fixture
def start(
    start_broker: Callable[..., Server], zookeeper: str, tmp_path: Path
) -> Callable[[int], Server]:
    return lambda broker_id: start_broker(
        broker_id=broker_id,
        data_dir=tmp_path / str(broker_id),
        zookeeper=zookeeper,
        zk_session_timeout_ms=30_000,
    )


def test_set_when_a_broker_does_not_apply_it_then_says_which_and_it_is_set(
    start: Callable[[int], Server], zookeeper: str, session: Session
) -> None:
    servers = [start(one) for one in range(2)]
    with pylogctl.connect(zookeeper=zookeeper) as client:
        client.create_topic("t")
        assert servers[1].membership.settings is not None
        servers[1].membership.settings.stop()

        with pytest.raises(pylogctl.Partial, match="1 brokers have not applied that") as caught:
            client.set_settings({"flush.ms": 7}, topic="t", timeout=3)

        assert caught.value.done == (SettingChange("flush.ms", None, 7),)
        assert list(caught.value.failed) == ["broker 1"]
        assert isinstance(caught.value.failed["broker 1"], pylogctl.TimedOut)
        assert b'"flush.ms"' in session.get("/config/topics/t")[0]
        assert client.settings(topic="t")["flush.ms"].elsewhere == {1: 100}


def test_set_when_the_node_is_damaged_then_is_refused_until_all_is_unset(
    start: Callable[[int], Server], zookeeper: str, session: Session
) -> None:
    start(0)
    with pylogctl.connect(zookeeper=zookeeper) as client:
        client.create_topic("t")
        client.set_settings({"flush.ms": 7}, topic="t")
        session.set("/config/topics/t", b'{"version":1,"config":{"flush.m":"1"}}')
        with pytest.raises(pylogctl.Conflict, match="settings that are not valid"):
            client.set_settings({"flush.ms": 8}, topic="t")
        session.set("/config/topics/t", b"{")
        with pytest.raises(pylogctl.Error, match="node /config/topics/t is not"):
            client.set_settings({"flush.ms": 8}, topic="t")

        assert client.unset_settings(None, topic="t") == []

        assert client.set_settings({"flush.ms": 8}, topic="t") == [
            SettingChange("flush.ms", None, 8)
        ]


def test_settings_when_a_broker_is_dead_then_tells_those_of_the_others_as_partial(
    start: Callable[[int], Server], zookeeper: str
) -> None:
    servers = [start(one) for one in range(2)]
    addresses = ",".join(f"127.0.0.1:{one.port}" for one in servers)
    with pylogctl.connect(addresses) as client:
        client.create_topic("t")
        client._connect = _without(client._connect, servers[1].port)

        with pytest.raises(pylogctl.Partial, match="such as broker 1") as caught:
            client.settings(topic="t")
        (found,) = caught.value.done
        assert found["flush.ms"].value == 100
        assert isinstance(caught.value.failed["broker 1"], pylogctl.Unreachable)
        with pytest.raises(pylogctl.Unreachable):
            client.settings(broker=1)


def _without(connect: Callable[..., object], port: int):  # type: ignore[no-untyped-def]  # as `connect` is
    """Return what makes connections, none of which gets to a port."""
    return lambda address: connect(address._replace(port=1) if address.port == port else address)
