"""What brokers and members do when ZooKeeper comes back with less history, or loses nodes."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.server.broker import Broker
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.registry import Registry
from broker.zk.session import Session
from tests.integration.broker.consumer.group_members import (
    Member,
    numbered,
    publish,
)
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

SESSION_TIMEOUT_MS = 3000


class Ensemble:
    """A ZooKeeper of the test's own, on one port, whose data can be lost."""

    def __init__(self, directory: Path, java: Java) -> None:
        self.directory = directory
        self._java = java
        self._server = self._start(port_of_its_own())
        self.connect = self._server.connect

    def _start(self, port: int) -> EmbeddedZooKeeper:
        server = EmbeddedZooKeeper(
            self.directory, java=self._java, is_durable=False, tick_ms=200, port=port
        )
        server.start()
        return server

    def come_back(self, change_data: Callable[[], object]) -> None:
        """Stop, change what is stored, and start again."""
        self._server.stop()
        change_data()
        self._server = self._start(int(self.connect.rpartition(":")[2]))

    def stop(self) -> None:
        self._server.stop()


@pytest.fixture
def ensemble(java: Java, tmp_path: Path, request: pytest.FixtureRequest) -> Ensemble:
    started = Ensemble(tmp_path / "zookeeper", java)
    request.addfinalizer(started.stop)
    return started


@pytest.fixture
def backup(ensemble: Ensemble, tmp_path: Path) -> Callable[[], None]:
    """Copy what is stored now; the returned function restores it."""
    kept = tmp_path / "backup"
    ensemble.come_back(lambda: shutil.copytree(ensemble.directory, kept))

    def restore() -> None:
        shutil.rmtree(ensemble.directory)
        shutil.copytree(kept, ensemble.directory)

    return restore


def is_registered(broker: Broker) -> bool:
    session = broker.status()["session"]
    return bool(session["state"] == "connected" and session["is_registered"])


@pytest.mark.parametrize("is_restored", [False, True])
def test_broker_when_zookeeper_has_less_history_then_it_is_registered_again(
    ensemble: Ensemble,
    backup: Callable[[], None],
    start_broker: Callable[..., Broker],
    caplog: pytest.LogCaptureFixture,
    is_restored: bool,
) -> None:
    broker = start_broker(
        zookeeper=ensemble.connect, zk_session_timeout_ms=SESSION_TIMEOUT_MS, num_partitions=2
    )
    publish(broker, numbered("m", 10))
    with Session(ensemble.connect) as session:
        await_registered(session)
        for number in range(50):  # more changes than there will be after the loss
            session.create(f"/some/{number}")

    ensemble.come_back(backup if is_restored else lambda: shutil.rmtree(ensemble.directory))

    with Registry(ensemble.connect) as registry:
        wait_until(
            lambda: registry.topic_partitions("t") == {0: 2} and is_registered(broker),
            "the registration",
        )
    assert "has come back with less history" in caplog.text


def test_member_when_zookeeper_has_lost_its_data_then_it_reads_on_where_it_was(
    ensemble: Ensemble, start_broker: Callable[..., Broker], join: Callable[..., Member]
) -> None:
    broker = start_broker(zookeeper=ensemble.connect, zk_session_timeout_ms=SESSION_TIMEOUT_MS)
    member = join(
        zookeeper=ensemble.connect,
        zk_session_timeout_ms=SESSION_TIMEOUT_MS,
    )
    publish(broker, numbered("before", 100))
    member.await_payloads(numbered("before", 100))
    with Session(ensemble.connect) as session:
        offset = paths.offset("g", TopicPartition("t", 0, 0))
        end = str(sum(len(one) + 10 for one in numbered("before", 100))).encode()
        wait_until(lambda: session.exists(offset) and session.get(offset)[0] == end, "the commit")
        for number in range(50):
            session.create(f"/some/{number}")

    def lose_data() -> None:
        shutil.rmtree(ensemble.directory)
        wait_until(lambda: not member.connector.is_certain, "the end of the lease")
        publish(broker, numbered("after", 100))

    ensemble.come_back(lose_data)

    member.await_payloads(numbered("before", 100) + numbered("after", 100))


def test_broker_when_its_nodes_are_deleted_then_it_registers_them_again_and_says_so(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, numbered("m", 10))
    await_registered(session)
    caplog.set_level(logging.WARNING)

    chroot = "/" + session.connect.partition("/")[2]
    deletion = session._client.transaction()
    for _, path in sorted(session.walk("/brokers"), reverse=True):
        deletion.delete(chroot + path)
    assert set(deletion.commit()) == {True}

    wait_until(lambda: session.exists(paths.broker(0)), "the registration of the broker")
    await_registered(session)
    wait_until(lambda: is_registered(broker), "a status that says so")
    missing = (paths.broker(0), paths.topic_broker("t", 0))
    wait_until(lambda: all(path in caplog.text for path in missing), "their names in the log")
    lines = [r.getMessage() for r in caplog.records if "were missing in ZooKeeper" in r.msg]
    named = [path for line in lines for path in line.partition(": ")[2].split(", ")]
    assert sorted(named) == sorted(set(named)), "a node was registered twice"
    assert session.get(paths.topic_broker("t", 0))[0] == b"1"


def test_group_when_a_broker_was_registered_again_then_its_offsets_stay_valid(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    join: Callable[..., Member],
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, numbered("m", 10))
    await_registered(session)
    session.create(paths.offset("g", TopicPartition("t", 0, 0)), b"0")
    session.delete(paths.creation_id("t", 0))
    broker.stop()
    start_broker(zookeeper=zookeeper)
    await_registered(session)

    join("t").await_payloads(numbered("m", 10))
