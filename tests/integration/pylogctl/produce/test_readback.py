"""Reading back what was sent: damage is found, and what others wrote between does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker import Broker, Connection, Producer, StaticCluster
from broker.protocol.codec import encode
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from pylogctl.cli.environment import CliError, ExitStatus
from pylogctl.produce.readback import SentSets
from pylogctl.produce.sender import Confirmed, MessageBatch

T = TopicPartition("t", 0, 0)


@pytest.fixture
def cluster(running_broker: Broker) -> Iterator[StaticCluster]:
    cluster = StaticCluster([BrokerAddress(-1, "127.0.0.1", running_broker.port)], Connection)
    yield cluster
    cluster.close()


@pytest.fixture
def publish(cluster: StaticCluster) -> Iterator[Callable[..., Confirmed]]:
    """Publish payloads and return what a sender would know of them."""
    count = 0
    with Producer(cluster, Connection) as producer:

        def run(*payloads: bytes) -> Confirmed:
            nonlocal count
            message_set = encode(payloads)
            delivery = producer.send_set(T, message_set)
            producer.flush()
            numbers = range(count + 1, count + len(payloads) + 1)
            count += len(payloads)
            return Confirmed(MessageBatch(T, message_set, numbers), delivery.result(), message_set)

        yield run


def test_verify_when_everything_is_as_sent_is_content(
    cluster: StaticCluster, publish: Callable[..., Confirmed]
) -> None:
    sent = SentSets()
    sent.note(publish(b"a", b"b"))
    publish(b"somebody else's")
    sent.note(publish(b"c" * 900_000))
    sent.note(publish(b"d" * 900_000, b"e" * 900_000))
    sent.verify(cluster, Connection, timeout_s=60)


def test_verify_when_nothing_was_sent_is_content(cluster: StaticCluster) -> None:
    SentSets().verify(cluster, Connection, timeout_s=60)


def test_verify_when_something_else_lies_there_names_the_messages(
    cluster: StaticCluster, publish: Callable[..., Confirmed]
) -> None:
    sent = SentSets()
    sent.note(publish(b"a"))
    second = publish(b"b", b"c")
    sent.note(second._replace(message_set=encode([b"b", b"C"])))
    with pytest.raises(CliError) as caught:
        sent.verify(cluster, Connection, timeout_s=60)
    assert caught.value.status is ExitStatus.CORRUPT
    assert caught.value.message == (
        "t[0-0]: messages 2 to 3 read back at offset 11 differ from what was sent"
    )


def test_verify_when_a_stored_byte_is_damaged_names_the_messages(
    running_broker: Broker, cluster: StaticCluster, publish: Callable[..., Confirmed]
) -> None:
    sent = SentSets()
    sent.note(publish(b"a"))
    sent.note(publish(b"b"))
    (segment,) = (running_broker.config.data_dir / "t_0").glob("*.pylog")
    with segment.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"X")
    with pytest.raises(CliError, match=r"t\[0-0\]: message 2 read back at offset 11"):
        sent.verify(cluster, Connection, timeout_s=60)
