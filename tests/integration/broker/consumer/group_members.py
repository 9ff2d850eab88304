"""Members of a group in this process, and what they have been given."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Whitelist
from broker.producer.producer import Producer
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.topic import TopicPartition
from tests.support.waiting import wait_until


class Member:
    """A member of a group, and the payloads that it has been given."""

    def __init__(
        self, zookeeper: str, topics: str, *, connect: Connect | None = None, **settings: object
    ) -> None:
        defaults: dict[str, object] = {
            "group": "g",
            "zookeeper": zookeeper,
            "offset_reset": "largest",
            "auto_commit_interval_ms": 50,
            "max_wait_ms": 50,
            "fetch_backoff_ms": 100,
            "zk_session_timeout_ms": 10_000,
        }
        config = ConsumerConfig(**(defaults | settings))  # type: ignore[arg-type]  # test settings by name
        self.connector = ConsumerConnector(config, connect=connect)
        (self._stream,) = self.connector.create_message_streams_by_filter(Whitelist(topics))
        assert self.connector.await_assignment(60)
        self.payloads: list[bytes] = []
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for message in self._stream:
                self.payloads.append(message[4])
        except Exception as error:  # noqa: BLE001  # handed to the test, which fails with it
            self.error = error

    def await_payloads(self, expected: Sequence[bytes]) -> None:
        """Wait until it has been given these, in this order, and nothing else."""
        wait_until(lambda: self.error or len(self.payloads) >= len(expected), "delivery")
        assert self.error is None
        assert self.payloads == list(expected)

    def leave(self) -> None:
        self.connector.shutdown()
        self._thread.join()


def connect(broker: Broker) -> Connection:
    return Connection(BrokerAddress(broker.config.broker_id, "127.0.0.1", broker.port))


def publish(broker: Broker, payloads: list[bytes], *, topic: str = "t", index: int = 0) -> None:
    address = BrokerAddress(broker.config.broker_id, "127.0.0.1", broker.port)
    cluster = StaticCluster([address], Connection)
    with Producer(cluster, Connection) as producer:
        partition = TopicPartition(topic, address.id, index)
        delivery = producer.send_set(partition, build_set(payloads, Codec.NONE))
    delivery.result()
    cluster.close()


def numbered(name: str, count: int) -> list[bytes]:
    return [f"{name}{number}".encode() for number in range(count)]
