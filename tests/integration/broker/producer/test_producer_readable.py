"""What `wait_until_readable` promises: consumers can read what was sent, or an error says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from broker import Acks, Broker, Connection, Producer, SimpleConsumer, StaticCluster
from broker.errors import MessageSizeTooLargeError
from broker.producer.settings import ProducerSettings
from broker.protocol.codec import encode
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

T = TopicPartition("t", 0, 0)
SET = encode([b"abc"])
ADDRESS = BrokerAddress(0, "127.0.0.1", 1)


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    """A broker that flushes only when it is asked to."""
    return start_broker(
        num_partitions=2, flush_interval_ms=3_600_000, flush_interval_messages=1_000_000
    )


@pytest.fixture
def cluster(broker: Broker) -> Iterator[StaticCluster]:
    """The way to `broker`."""
    cluster = StaticCluster([BrokerAddress(-1, "127.0.0.1", broker.port)], Connection)
    yield cluster
    cluster.close()


def readable(broker: Broker, topic: str) -> int:
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        return len(consumer.fetch(topic, 0, 0, 1 << 20))


@pytest.mark.parametrize("acks", list(Acks))
def test_wait_until_readable_after_any_acknowledgement_makes_all_readable(
    broker: Broker, cluster: StaticCluster, acks: Acks
) -> None:
    with Producer(cluster, Connection, ProducerSettings(acks=acks)) as producer:
        producer.send_set(T, SET)
        producer.send_set(T, SET)
        producer.wait_until_readable()
        assert readable(broker, "t") == 2


def test_wait_until_readable_when_nothing_was_sent_to_a_new_topic_does_not_wait_for_it(
    cluster: StaticCluster,
) -> None:
    with Producer(cluster, Connection, ProducerSettings(timeout_s=60)) as producer:
        assert producer.partitions("t") == [T, TopicPartition("t", 0, 1)]
        producer.wait_until_readable()


def test_wait_until_readable_when_a_new_topics_only_message_was_refused_does_not_wait_for_it(
    start_broker: Callable[..., Broker],
) -> None:
    broker = start_broker(max_message_bytes=2)
    cluster = StaticCluster([BrokerAddress(-1, "127.0.0.1", broker.port)], Connection)
    with (
        closing(cluster),
        Producer(cluster, Connection, ProducerSettings(timeout_s=20)) as producer,
    ):
        assert producer.partitions("t") == [T]
        delivery = producer.send_set(T, SET)
        producer.wait_until_readable()
        assert isinstance(delivery.error, MessageSizeTooLargeError)
        assert delivery.error.limit == 2


def test_partitions_when_the_topic_exists_are_all_it_has(cluster: StaticCluster) -> None:
    with Producer(cluster, Connection) as first:
        first.send("t", [b"abc"])
    with Producer(cluster, Connection) as second:
        assert second.partitions("t") == [T, TopicPartition("t", 0, 1)]
        assert not second.is_new("t")
