"""What the registry remembers of topics whose logs are gone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from broker.admin.cluster import FAIL, OK, UNKNOWN, WARN, losses_check
from broker.client.connection import Connection
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from broker.zk.session import Session
from tests.integration.broker.factories import BrokerFactory
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

PARTITION = TopicPartition("t", 0, 1)


def connect_to(address: BrokerAddress) -> Connection:
    return Connection(address, timeout_s=60)


@pytest.fixture
def registry(zookeeper: str) -> Iterator[Registry]:
    with Registry(zookeeper) as started:
        yield started


def test_losses_when_a_disk_is_replaced_then_health_says_what_was_there(
    start_broker: BrokerFactory,
    zookeeper: str,
    session: Session,
    registry: Registry,
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"

    def start() -> Broker:
        return start_broker(broker_id=0, data_dir=data, zookeeper=zookeeper)

    def create(broker: Broker, count: int) -> None:
        with closing(connect_to(BrokerAddress(0, "127.0.0.1", broker.port))) as connection:
            connection.call(CreateTopicRequest("t", count))
        await_registered(session)

    def check() -> tuple[str, tuple[str, ...]]:
        return losses_check(registry, connect_to)[1:]

    broker = start()
    create(broker, 2)
    node = paths.offset("g", PARTITION)
    session.create(node, b"0")
    assert check() == (OK, ())
    session.set(node, b"109")
    end = f"{PARTITION}: ends at 0, group 'g' read to 109: 109 B gone, or more"
    assert check() == (FAIL, (end,))

    broker.stop()
    shutil.rmtree(data)
    start()
    former = f"{PARTITION}: group 'g' read to 109 of a former topic"
    wait_until(lambda: check() == (WARN, (former,)), "the topic, made again")
    session.delete(node)
    session.create(paths.offset("g", TopicPartition("t", 0, 2)), b"7")
    assert check() == (FAIL, ("t[0-2]: gone, group 'g' read to 7",))


def test_losses_when_there_is_no_zookeeper_then_they_are_unknown() -> None:
    assert losses_check(None, connect_to).result == UNKNOWN
