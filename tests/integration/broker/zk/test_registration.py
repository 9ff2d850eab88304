"""A broker and its place in a real ZooKeeper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.errors import (
    LeaderNotAvailableError,
    RegistryConflictError,
    RegistryUnreachableError,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest
from broker.server.broker import Broker
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.registry import Registry
from broker.zk.session import Session
from tests.integration.broker.server.peer import Peer
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
BrokerFactory = Callable[..., Broker]


@pytest.fixture
def registry(zookeeper: str) -> Iterator[Registry]:
    """A second pair of eyes on the registry of a test."""
    made = Registry(zookeeper)
    made.start()
    yield made
    made.stop()


def test_start_when_there_is_a_registry_then_broker_and_its_topics_are_in_it(
    start_broker: BrokerFactory, zookeeper: str, registry: Registry
) -> None:
    first = start_broker(topic_partition_counts={"events": 3})
    with Peer(first.port) as peer:
        peer.publish("events", ONE)
    first.stop()
    second = start_broker(
        broker_id=0,
        hostname="logs.example",
        zookeeper=zookeeper,
        topic_partition_counts={"events": 3},
    )
    (info,) = registry.brokers()
    assert (info.id, info.host, info.port) == (0, "logs.example", second.port)
    assert registry.topic_partitions("events") == {0: 3}
    session = second.status()["session"]
    assert session["is_registered"] is True


def test_produce_when_topic_is_new_then_it_comes_into_the_registry(
    start_broker: BrokerFactory, zookeeper: str, registry: Registry
) -> None:
    broker = start_broker(zookeeper=zookeeper, num_partitions=2)
    with Peer(broker.port) as peer:
        peer.produce("events", ONE)
        peer.call(CreateTopicRequest("audit", 5))
    wait_until(lambda: registry.topic_partitions("events") == {0: 2}, "the first topic")
    wait_until(lambda: registry.topic_partitions("audit") == {0: 5}, "the second topic")


def test_stop_when_registered_then_neither_broker_nor_topics_stay(
    start_broker: BrokerFactory, zookeeper: str, registry: Registry
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    with Peer(broker.port) as peer:
        peer.publish("events", ONE)
    wait_until(lambda: registry.topic_partitions("events"), "the topic")
    broker.stop()
    assert registry.brokers() == []
    assert registry.topic_partitions("events") == {}


def test_start_when_another_broker_has_the_id_then_refused_by_name_and_nothing_left(
    start_broker: BrokerFactory, zookeeper: str, registry: Registry, tmp_path: Path
) -> None:
    first = start_broker(zookeeper=zookeeper)
    node = "/replicated/brokers/0"  # the controller trusts it once all its threads run
    wait_until(lambda: b'"is_clean": true' in registry.session.get(node)[0], "its first orders")
    threads = threading.active_count()
    second = Broker(BrokerConfig(port=0, data_dirs=(tmp_path / "other",), zookeeper=zookeeper))
    with pytest.raises(RegistryConflictError, match=f"127.0.0.1:{first.port}"):
        second.start()
    second.stop()
    wait_until(lambda: threading.active_count() <= threads, "the end of its threads")
    (info,) = registry.brokers()
    assert info.port == first.port
    start_broker(data_dir=tmp_path / "other", broker_id=0)


def test_start_when_the_registry_is_away_then_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    threads = threading.active_count()
    broker = Broker(
        BrokerConfig(
            port=0,
            data_dirs=(tmp_path / "data",),
            zookeeper="127.0.0.1:1",
            zk_connection_timeout_ms=300,
        )
    )
    with pytest.raises(RegistryUnreachableError, match=r"127.0.0.1:1"):
        broker.start()
    broker.stop()
    wait_until(lambda: threading.active_count() <= threads, "the end of its threads")


def test_start_when_the_connection_is_lost_for_long_then_registers_within_its_wait(
    start_broker: BrokerFactory,
    zookeeper: str,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create, losses_s = Session.create, [2.0]

    def lose_once(session: Session, path: str, value: bytes, *, ephemeral: bool = False) -> None:
        if ephemeral and losses_s:
            time.sleep(losses_s.pop())  # longer than it waits for the end of another session
            raise RegistryUnreachableError("the connection was lost")
        create(session, path, value, ephemeral=ephemeral)

    monkeypatch.setattr(Session, "create", lose_once)

    broker = start_broker(
        zookeeper=zookeeper, zk_session_timeout_ms=1000, zk_connection_timeout_ms=60_000
    )

    assert losses_s == []
    # another session may have begun since
    wait_until(lambda: [one.port for one in registry.brokers()] == [broker.port], "its node")


def test_broker_when_the_registry_is_lost_then_serves_on_and_is_back_in_it_later(
    start_broker: BrokerFactory, java: Java, tmp_path: Path
) -> None:
    port = port_of_its_own()
    server = EmbeddedZooKeeper(
        tmp_path / "zookeeper", port=port, java=java, is_durable=False, tick_ms=200
    )
    server.start()
    try:
        broker = start_broker(zookeeper=server.connect, zk_session_timeout_ms=1000)
        with Peer(broker.port) as peer:
            peer.publish("before", ONE)
            server.stop()
            assert peer.publish("before", ONE).error == 0
            with pytest.raises(LeaderNotAvailableError, match="cannot be created now, try again"):
                peer.call(CreateTopicRequest("during"))
            server = EmbeddedZooKeeper(
                tmp_path / "zookeeper", port=port, java=java, is_durable=False, tick_ms=200
            )
            server.start()

            def is_created() -> bool:
                with suppress(LeaderNotAvailableError):
                    peer.call(CreateTopicRequest("during"))
                    return True
                return False

            wait_until(is_created, "the topic")
            assert peer.publish("during", ONE).error == 0
        registry = Registry(server.connect)
        registry.start()
        wait_until(lambda: registry.topic_partitions("during") == {0: 1}, "the topic")
        wait_until(lambda: [one.port for one in registry.brokers()] == [broker.port], "its node")
        registry.stop()
        broker.stop()
    finally:
        server.stop()


def test_delete_topic_when_registered_then_leaves_the_registry_and_can_come_back(
    start_broker: BrokerFactory, zookeeper: str, registry: Registry
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    with Peer(broker.port) as peer:
        peer.publish("events", ONE)
        peer.publish("audit", ONE)
        wait_until(lambda: len(registry.topics()) == 2, "both topics")
        wait_until(lambda: registry.topic_partitions("events") == {0: 1}, "the topic")
        peer.call(DeleteTopicRequest("events"))
        wait_until(lambda: registry.topic_partitions("events") == {}, "the deregistration")
        assert registry.topic_partitions("audit") == {0: 1}
        peer.publish("events", ONE)
        wait_until(lambda: registry.topic_partitions("events") == {0: 1}, "the topic's return")


def test_start_when_the_directory_has_files_of_an_earlier_run_then_none_is_taken_for_foreign(
    start_broker: BrokerFactory, zookeeper: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = start_broker(zookeeper=zookeeper)
    with Peer(first.port) as peer:
        peer.publish("events", ONE)
    wait_until(lambda: first.changes.read(0).lines, "lines of its election in a state-change file")
    first.stop()

    second = start_broker(zookeeper=zookeeper)

    assert list(second.config.data_dirs[0].glob("state-changes-*"))
    assert "is not a log" not in caplog.text
