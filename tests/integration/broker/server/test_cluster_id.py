"""The id of a cluster, in ZooKeeper and in the data directories of its brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.config import load_file
from broker.errors import LogLockedError
from broker.server.broker import Broker
from broker.zk.session import Session
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session

StartBroker = Callable[..., Broker]


def cluster_id_of(session: Session) -> str:
    found: str = json.loads(session.get("/cluster/id")[0])["id"]
    return found


def test_start_when_a_cluster_is_new_then_its_id_is_in_the_registry_and_both_directories(
    start_broker: StartBroker, zookeeper: str, session: Session, tmp_path: Path
) -> None:
    for number in range(2):
        start_broker(broker_id=number, data_dir=tmp_path / str(number), zookeeper=zookeeper)
    for number in range(2):
        expected = {
            "version": "0",
            "broker.id": str(number),
            "cluster.id": cluster_id_of(session),
            "incarnation": "1",
        }
        found = load_file(tmp_path / str(number) / "meta.properties")
        found.pop("had.orders", None)  # once a controller has sent some
        assert found == expected


def test_start_when_the_directory_is_of_another_cluster_then_refused_and_registered_nowhere(
    start_broker: StartBroker, zookeeper: str, session: Session
) -> None:
    start_broker(zookeeper=zookeeper).stop()
    other = f"{zookeeper}-other"
    with Session(other) as others:
        others.create("/cluster/id", b'{"version":"1","id":"another"}')
        with pytest.raises(LogLockedError, match=r"belongs to cluster .*, not to cluster another"):
            start_broker(zookeeper=other)
        assert others.exists("/brokers/ids/0") is None
    start_broker(zookeeper=zookeeper)


def test_start_when_the_registry_lost_the_id_then_it_is_the_one_of_the_directory(
    start_broker: StartBroker, zookeeper: str, session: Session
) -> None:
    start_broker(zookeeper=zookeeper).stop()
    cluster_id = cluster_id_of(session)
    session.delete("/cluster/id")
    start_broker(zookeeper=zookeeper)
    assert cluster_id_of(session) == cluster_id


def test_start_when_there_is_no_registry_then_no_cluster_is_noted_and_a_known_one_stays(
    start_broker: StartBroker, zookeeper: str, tmp_path: Path
) -> None:
    meta = tmp_path / "data" / "meta.properties"
    start_broker().stop()
    assert "cluster.id" not in load_file(meta)
    start_broker(zookeeper=zookeeper).stop()
    joined = load_file(meta)
    assert "cluster.id" in joined
    start_broker().stop()
    assert load_file(meta) == joined


def test_session_when_expired_and_the_registry_lost_the_id_then_it_is_there_again(
    start_broker: StartBroker, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    cluster_id = cluster_id_of(session)
    session.delete("/cluster/id")
    assert broker.membership.registry is not None
    expire_session(broker.membership.registry.session)
    wait_until(lambda: session.exists("/cluster/id") is not None, "the id")
    assert cluster_id_of(session) == cluster_id


def test_session_when_expired_and_the_registry_is_of_another_cluster_then_not_registered(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    session.set("/cluster/id", b'{"version":"1","id":"another"}')
    assert broker.membership.registry is not None
    expire_session(broker.membership.registry.session)
    wait_until(lambda: "ZooKeeper is now of cluster another" in caplog.text, "the refusal")
    assert session.exists("/brokers/ids/0") is None
