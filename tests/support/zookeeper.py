"""A real ZooKeeper, started once for all tests that ask for it; each test gets its own chroot."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java, find_java
from broker.zk.session import Session
from tests.support.waiting import wait_until


@pytest.fixture(scope="session")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="session")
def zookeeper_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zookeeper")


@pytest.fixture(scope="session")
def zookeeper_server(java: Java, zookeeper_dir: Path) -> Iterator[EmbeddedZooKeeper]:
    # Sessions last 2 to 20 ticks: 1 s where a test waits for their end, and those that nothing
    # is to end outlive a pause of the machine.
    with EmbeddedZooKeeper(zookeeper_dir, java=java, is_durable=False, tick_ms=500) as server:
        yield server


@pytest.fixture
def zookeeper(zookeeper_server: EmbeddedZooKeeper) -> str:
    """Return a connect string with a chroot that does not exist yet."""
    return f"{zookeeper_server.connect}/{uuid.uuid4().hex}"


@pytest.fixture
def session(zookeeper: str) -> Iterator[Session]:
    """Return a second pair of eyes on what the test does."""
    with Session(zookeeper) as started:
        yield started


def await_registered(session: Session, topic: str = "t", broker_id: int = 0) -> None:
    """Wait until a broker has registered a topic, which it does after the first publish to it."""
    path = paths.topic_broker(topic, broker_id)
    wait_until(lambda: session.exists(path), f"the registration of {topic} by broker {broker_id}")


def expire_session(session: Session) -> None:
    """End a session on the server, as if its client had been silent for too long."""
    client = KazooClient(session.connect.partition("/")[0], client_id=session._client.client_id)
    client.start()
    client.stop()
    client.close()
