from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from broker.errors import (
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
    RegistryUnreachableError,
)
from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.registration import Registration
from broker.zk.registry import Registry
from broker.zk.session import Session, SessionState
from broker.zk.values import BrokerNode
from tests.support.ports import port_of_its_own
from tests.support.zookeeper import expire_session

pytestmark = pytest.mark.zookeeper

DEADLINE_S = 60
CREATOR = "10.1.2.3-1315436360737"


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, "time is up"
        time.sleep(0.01)


@pytest.fixture
def registry(zookeeper: str) -> Iterator[Registry]:
    started = Registry(zookeeper)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def other(zookeeper: str) -> Iterator[Registry]:
    """Return a second registry."""
    started = Registry(zookeeper)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def impatient(zookeeper: str) -> Iterator[Registry]:
    """Return a second registry, which does not wait long for the end of a former session."""
    started = Registry(zookeeper)
    started.own.wait_limit_s = 0.1
    started.start()
    yield started
    started.stop()


def test_register_broker_when_done_then_node_has_the_bytes_of_kafka_07(
    registry: Registry, session: Session
) -> None:
    registry.register_broker(3, "10.1.2.3", 9092, creator=CREATOR)

    value, stat = session.get("/brokers/ids/3")
    assert value == b"10.1.2.3-1315436360737:10.1.2.3:9092"
    assert stat.ephemeral_owner == registry.session.session_id


def test_register_topic_when_done_then_count_is_ephemeral_and_topic_is_not(
    registry: Registry, session: Session
) -> None:
    registry.register_broker(3, "h", 9092, creator=CREATOR)

    registry.register_topic("events", 4)
    registry.await_registered(60)

    value, stat = session.get("/brokers/topics/events/3")
    assert (value, stat.ephemeral_owner) == (b"4", registry.session.session_id)
    value, stat = session.get("/brokers/topics/events")
    assert (value, stat.ephemeral_owner) == (b"", 0)


def test_register_topic_when_asked_for_before_the_broker_then_follows_it(
    registry: Registry,
) -> None:
    registry.register_topic("events", 1)
    registry.register_broker(3, "h", 9092, creator=CREATOR)

    registry.await_registered(60)

    assert registry.topic_partitions("events") == {3: 1}


def test_register_topic_when_count_changes_then_node_follows(registry: Registry) -> None:
    registry.register_broker(3, "h", 9092, creator=CREATOR)
    registry.register_topic("events", 1)
    registry.await_registered(60)

    registry.register_topic("events", 8)
    registry.await_registered(60)

    assert registry.topic_partitions("events") == {3: 8}


def test_register_topic_when_there_are_many_then_all_stand(registry: Registry) -> None:
    registry.register_broker(3, "h", 9092, creator=CREATOR)
    for number in range(300):
        registry.register_topic(f"topic-{number:03}", 1)

    registry.await_registered(60)

    assert registry.topics() == [f"topic-{number:03}" for number in range(300)]


def test_register_broker_when_the_session_expires_meanwhile_then_registered_in_the_next_one(
    zookeeper: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Session(zookeeper)
    own.start()
    registration = Registration(own, session_timeout_ms=30_000, on_change=lambda _: None)
    first_session = own.session_id
    create_many = own.create_many

    def create_many_of_an_expired_session(nodes: Mapping[str, bytes], **options: Any) -> Any:
        if "/replicated/brokers/3" not in nodes:
            return create_many(nodes, **options)
        monkeypatch.setattr(own, "create_many", create_many)
        expire_session(own)
        wait_until(lambda: own.session_id not in (None, first_session))
        raise RegistryUnreachableError("the session expired")

    monkeypatch.setattr(own, "create_many", create_many_of_an_expired_session)
    registration.register_broker(3, "h", 9092, creator=CREATOR)

    for path in ("/brokers/ids/3", "/replicated/brokers/3"):
        assert session.get(path)[1].ephemeral_owner == own.session_id
    own.stop()


def test_register_broker_when_repeated_then_is_no_conflict(registry: Registry) -> None:
    registry.register_broker(3, "h", 9092, creator=CREATOR)

    registry.register_broker(3, "h", 9093, creator=CREATOR)

    assert registry.broker(3).port == 9093


def test_register_broker_when_id_is_anothers_then_conflict_names_the_holder(
    impatient: Registry, other: Registry
) -> None:
    other.register_broker(3, "first", 9092, creator="first-17")

    with pytest.raises(RegistryConflictError) as caught:
        impatient.register_broker(3, "second", 9092, creator="second-18")

    assert str(caught.value) == (
        "broker id 3 is already registered by first:9092 (creator first-17)"
    )
    assert not impatient.status.is_registered


def test_register_broker_when_same_broker_restarts_then_replaces_its_old_node(
    registry: Registry, other: Registry, session: Session
) -> None:
    other.register_broker(3, "h", 9092, creator=CREATOR)
    other.register_topic("events", 2)
    other.await_registered(60)
    other.own.close()  # a run that has ended does not register again; its session lives on

    registry.register_broker(3, "h", 9092, creator=CREATOR)
    registry.register_topic("events", 2)
    registry.await_registered(60)
    other.stop()

    assert session.get("/brokers/ids/3")[1].ephemeral_owner == registry.session.session_id
    assert session.get("/brokers/topics/events/3")[1].ephemeral_owner == registry.session.session_id


@pytest.mark.parametrize("former_host", ["h", "replaced"])
def test_register_broker_when_the_disk_is_empty_then_waits_for_the_old_session(
    registry: Registry, other: Registry, former_host: str
) -> None:
    other.register_broker(3, former_host, 9092, creator="former-17")
    stopper = threading.Timer(0.3, other.stop)
    stopper.start()

    registry.register_broker(3, "h", 9092, creator=CREATOR)
    stopper.join()

    assert registry.broker(3).creator == CREATOR


def test_register_broker_when_creator_is_the_same_but_holder_stays_then_conflict(
    registry: Registry, impatient: Registry
) -> None:
    registry.register_broker(3, "original", 9092, creator=CREATOR)

    with pytest.raises(RegistryConflictError, match="already registered by original:9092"):
        impatient.register_broker(3, "copy", 9092, creator=CREATOR)


def test_register_broker_when_holder_is_unreadable_then_coordination_error(
    registry: Registry, session: Session
) -> None:
    session.create("/brokers/ids/3", b"nonsense", ephemeral=True)

    with pytest.raises(CoordinationError, match="registration of broker 3 is malformed"):
        registry.register_broker(3, "h", 9092, creator=CREATOR)


def test_stop_when_waiting_for_an_old_session_then_ends_the_wait(
    registry: Registry, zookeeper: str
) -> None:
    registry.register_broker(3, "h", 9092, creator="former-17")
    waiting = Registry(zookeeper, session_timeout_ms=8000)
    waiting.start()
    failures: list[CoordinationError] = []

    def register() -> None:
        try:
            waiting.register_broker(3, "h", 9092, creator=CREATOR)
        except CoordinationError as error:
            failures.append(error)

    thread = threading.Thread(target=register)
    thread.start()
    waiting.stop()
    thread.join(DEADLINE_S)

    assert [type(error) for error in failures] == [RegistryUnreachableError]


def expire_and_await_next_session(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "broker.zk.registry")
    expire_session(registry.session)
    wait_until(lambda: "connected to ZooKeeper" in caplog.text)


def test_deregister_when_registered_then_nodes_go_and_do_not_come_back(
    registry: Registry, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    registry.register_broker(3, "h", 9092, creator=CREATOR)
    registry.register_topic("events", 2)
    registry.await_registered(60)
    was_registered = registry.status.is_registered
    registry.deregister_broker()

    assert was_registered
    assert not registry.status.is_registered
    assert session.children("/brokers/ids") == []
    assert session.children("/brokers/topics/events") == []

    expire_and_await_next_session(registry, caplog)
    assert session.children("/brokers/ids") == []


def test_deregister_when_a_registration_is_under_way_then_topics_are_not_recorded_as_deleted(
    zookeeper: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Session(zookeeper)
    own.start()
    registration = Registration(own, session_timeout_ms=6000, on_change=lambda _: None)
    registration.register_broker(3, "h", 9092, creator=CREATOR)
    registration.register_topic("events", 1, creation_id="first", is_new=True)
    registration.synchronize()
    registration.mark_clean()
    deregistering = threading.Thread(target=registration.deregister_broker)
    has_begun = threading.Event()
    set_node, state = own.set, Session.state

    def set_while_deregistering(*node: Any) -> Any:
        has_begun.clear()
        deregistering.start()
        assert has_begun.wait(DEADLINE_S)
        return set_node(*node)

    def note_state(one: Session) -> SessionState:
        has_begun.set()
        seen: SessionState = state.__get__(one)
        return seen

    monkeypatch.setattr(own, "set", set_while_deregistering)
    monkeypatch.setattr(Session, "state", property(note_state))
    registration.synchronize()
    deregistering.join(DEADLINE_S)
    own.stop()

    assert session.children("/brokers/topics/events") == []
    assert session.get(paths.creation_id("events", 3))[0] == b"first"


def test_deregister_when_nothing_is_registered_then_does_nothing(registry: Registry) -> None:
    registry.deregister_broker()

    assert registry.brokers() == []


def test_session_when_expired_then_broker_and_topics_are_registered_again(
    registry: Registry, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    registry.register_broker(3, "h", 9092, creator=CREATOR)
    registry.register_topic("events", 2)
    registry.await_registered(60)
    former = registry.session.session_id

    expire_and_await_next_session(registry, caplog)

    assert registry.expiration_count == 1
    assert registry.session.session_id != former
    assert session.get("/brokers/ids/3")[1].ephemeral_owner == registry.session.session_id
    assert session.get("/brokers/topics/events/3")[1].ephemeral_owner == registry.session.session_id


def test_session_when_expired_and_id_taken_then_tries_on_until_it_is_free(
    impatient: Registry, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    impatient.register_broker(3, "h", 9092, creator=CREATOR)
    # in one step, as a broker takes back a node that is gone
    session.replace_ephemeral("/brokers/ids/3", b"thief-1:elsewhere:1", version=0)

    expire_session(impatient.session)
    # there may be another error first, if the session ends during an attempt
    wait_until(
        lambda: (
            "already registered by elsewhere:1" in str(impatient.status.error)
            and impatient.expiration_count == 1
        )
    )
    assert not impatient.status.is_registered
    session.delete("/brokers/ids/3")
    wait_until(lambda: impatient.status.is_registered and impatient.status.error is None)

    assert impatient.broker(3).host == "h"
    told = [m for m in caplog.messages if "not registered" in m]
    assert told == [message for message, _ in groupby(told)], "told at each attempt"
    assert any("elsewhere:1" in message for message in told)


def test_zookeeper_when_restarted_under_a_registry_then_it_recovers(
    tmp_path: Path, java: Java, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "broker.zk.registry")
    port = port_of_its_own()
    with EmbeddedZooKeeper(tmp_path, port=port, java=java) as server:
        registry = Registry(f"{server.connect}/cluster", request_timeout_s=0.5)
        registry.start()
        registry.register_broker(3, "h", 9092, creator=CREATOR)

        server.stop()
        wait_until(lambda: registry.status.state is SessionState.SUSPENDED)
        registry.register_topic("events", 2)
        with pytest.raises(RegistryUnreachableError, match="no answer from ZooKeeper"):
            registry.brokers()
        with pytest.raises(RegistryUnreachableError, match="is not complete after"):
            registry.await_registered(timeout_s=0.01)

        with EmbeddedZooKeeper(tmp_path, port=port, java=java):
            registry.await_registered(DEADLINE_S)
            registry.session._request_timeout_s = DEADLINE_S

            assert registry.brokers() == [BrokerNode(3, "h", 9092, CREATOR)]
            assert registry.topic_partitions("events") == {3: 2}
            registry.stop()
    lost = [m for m in caplog.messages if m.endswith(" lost")]
    assert len(lost) == 1


def test_stop_when_zookeeper_is_away_then_ends_without_waiting(tmp_path: Path, java: Java) -> None:
    with EmbeddedZooKeeper(tmp_path, java=java) as server:
        registry = Registry(server.connect)
        registry.start()
        registry.register_broker(3, "h", 9092, creator=CREATOR)
        server.stop()
        wait_until(lambda: registry.state is not SessionState.CONNECTED)

        with pytest.raises(RegistryUnreachableError, match="vanishes with its session"):
            registry.deregister_broker()
        registry.stop()

    assert registry.status.session_id is None


def test_status_when_connected_then_has_the_session_id_in_hex(registry: Registry) -> None:
    status = registry.status

    assert status.state is SessionState.CONNECTED
    assert status.session_id == f"{registry.session.session_id:#x}"


def test_brokers_when_several_are_live_then_come_by_number(
    registry: Registry, session: Session
) -> None:
    for broker_id in (10, 9, 2):
        session.create(f"/brokers/ids/{broker_id}", b"h-1:host:%d" % (9000 + broker_id))

    assert [info.id for info in registry.brokers()] == [2, 9, 10]


def test_brokers_when_one_is_malformed_then_others_are_returned(
    registry: Registry, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    session.create("/brokers/ids/1", b"nonsense")
    session.create("/brokers/ids/2", b"h-1:host:9092")

    assert registry.brokers() == [BrokerNode(2, "host", 9092, "h-1")]
    assert "broker 1 left out" in caplog.text


def test_brokers_when_chroot_is_missing_then_there_are_none(registry: Registry) -> None:
    assert registry.brokers() == []
    assert registry.topics() == []
    assert registry.topic_partitions("events") == {}


def test_broker_when_not_registered_then_not_found_error(registry: Registry) -> None:
    with pytest.raises(RegistryNodeNotFoundError, match="no broker 3 is registered"):
        registry.broker(3)


def test_topic_partitions_when_a_broker_is_not_live_then_leaves_it_out(
    registry: Registry, session: Session
) -> None:
    session.create("/brokers/ids/1", b"h-1:host:9092")
    session.create("/brokers/topics/events/1", b"4")
    session.create("/brokers/topics/events/2", b"8")

    assert registry.topic_partitions("events") == {1: 4}


def test_partitions_of_when_topics_are_many_then_each_has_those_on_live_brokers(
    registry: Registry, session: Session
) -> None:
    session.create("/brokers/ids/1", b"h-1:host:9092")
    for node, count in (("a/1", b"2"), ("a/7", b"9"), ("b/1", b"3")):
        session.create(f"/brokers/topics/{node}", count)

    assert registry.partitions_of(["a", "b", "none"]) == {"a": {1: 2}, "b": {1: 3}, "none": {}}
