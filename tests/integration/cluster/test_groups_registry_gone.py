"""What a member does while ZooKeeper is away for good."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker.client.connection import Connection
from broker.consumer.chunk import GroupMessage
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.errors import ConsumerTimeoutError, RegistryUnreachableError
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def own_zookeeper(java: Java, tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    server = EmbeddedZooKeeper(tmp_path / "zookeeper", java=java, is_durable=False, tick_ms=200)
    server.start()
    yield server
    server.stop()


def test_connector_when_zookeeper_goes_away_then_fails_clearly_and_shuts_down(
    start_broker: Callable[..., Broker], own_zookeeper: EmbeddedZooKeeper
) -> None:
    broker = start_broker(zookeeper=own_zookeeper.connect)
    partition = TopicPartition("t", 0, 0)
    connection = Connection(BrokerAddress(0, "127.0.0.1", broker.port))
    sets = (PartitionSet(partition, encode([b"a", b"b", b"c"])),)
    connection.call(CreateTopicRequest("t"))
    connection.call(PublishRequest(Acks.COMMITTED, 10_000, sets))
    connection.close()
    connector = ConsumerConnector(
        ConsumerConfig(
            zookeeper=own_zookeeper.connect,
            group="g",
            zk_session_timeout_ms=4000,
            zk_connection_timeout_ms=3000,
            consumer_timeout_ms=1000,
        )
    )
    (stream,) = connector.create_message_streams({"t": 1})["t"]
    first: list[GroupMessage] = []

    def is_given() -> bool:
        with suppress(ConsumerTimeoutError):
            first.append(next(stream))
        return bool(first)

    wait_until(is_given, "the first message")
    stream.finish(first[0])

    own_zookeeper.stop()

    with pytest.raises(RegistryUnreachableError):
        connector.commit_offsets()
    wait_until(lambda: not connector.is_certain, "the end of certainty")
    with pytest.raises(ConsumerTimeoutError):  # somebody else may own the partition by now
        next(stream)
    started_s = time.monotonic()
    with pytest.raises(RegistryUnreachableError):
        connector.shutdown()
    print(f"shut down without ZooKeeper in {time.monotonic() - started_s:.1f} s")
