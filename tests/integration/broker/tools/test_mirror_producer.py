from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker import Broker, Connection, Producer, SimpleConsumer, StaticCluster, TopicPartition
from broker.errors import BrokerError, BrokerUnreachableError, InvalidMessageError
from broker.producer.settings import ProducerSettings
from broker.protocol.message_set import build_set
from broker.tools.mirror_producer import MirroredSet, MirrorProducer
from tests.integration.broker.factories import BrokerFactory, address_of
from tests.integration.broker.peers import Server

SOURCE = TopicPartition("a", 9, 0)
TARGET = TopicPartition("b", 0, 0)


class Target:
    """A mirror producer to a broker, and the acknowledged numbers in order."""

    def __init__(self, peer: Broker | Server) -> None:
        self.cluster = StaticCluster([address_of(peer)], self.connect)
        self.acknowledged: list[int] = []
        self.errors: list[BrokerError] = []
        self.goes_on: Callable[[], bool] = lambda: True
        producer = Producer(
            self.cluster, self.connect, ProducerSettings(max_in_flight=4, timeout_s=60)
        )
        self.producer = MirrorProducer(producer, on_wait=self.on_wait, max_in_flight=4)

    def connect(self, address: object) -> Connection:
        return Connection(address, timeout_s=60, connect_timeout_s=0.2)  # type: ignore[arg-type]  # as Connect has it

    def on_wait(self, error: BrokerError) -> bool:
        self.errors.append(error)
        return self.goes_on()

    def send(self, number: int) -> None:
        message_set = build_set([b"%d" % number])
        self.send_set(message_set, number)

    def send_set(self, message_set: bytes, number: int) -> None:
        self.producer.send(MirroredSet(SOURCE, TARGET, message_set, 1, 1, number, self.note))

    def note(self, mirrored: MirroredSet, base_offset: int) -> None:
        self.acknowledged.append(mirrored.next_offset)

    def close(self) -> None:
        self.producer.close()
        self.cluster.close()


@pytest.fixture
def target(running_broker: Broker) -> Iterator[Target]:
    one = Target(running_broker)
    yield one
    one.close()


def payloads(broker: Broker) -> list[bytes]:
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        found = consumer.fetch("b", 0, 0, 1 << 20)
        return [payload for _, _, payload in found]


def test_send_when_many_then_all_are_acknowledged_in_order(
    target: Target, running_broker: Broker
) -> None:
    for number in range(20):
        target.send(number)
    assert len(target.producer.pending) <= 5

    target.producer.flush()

    assert target.acknowledged == list(range(20))
    assert payloads(running_broker) == [b"%d" % n for n in range(20)]


def test_flush_when_the_broker_is_of_07_then_waits_until_all_can_be_read(
    old_broker: Server, running_broker: Broker
) -> None:
    target = Target(old_broker)
    for number in range(20):
        target.send(number)

    target.producer.flush()

    assert target.acknowledged == list(range(20))
    assert payloads(running_broker) == [b"%d" % n for n in range(20)]
    target.close()


def test_send_when_the_broker_restarts_then_goes_on_without_a_gap(
    start_broker: BrokerFactory,
) -> None:
    broker = start_broker()
    target = Target(broker)
    for number in range(3):
        target.send(number)
    target.producer.flush()
    broker.stop()
    restarted: list[Broker] = []

    def restart() -> bool:
        if not restarted:
            restarted.append(start_broker(port=broker.port))
        return True

    target.goes_on = restart
    for number in range(3, 6):
        target.send(number)
    target.producer.flush()

    assert target.acknowledged == list(range(6))
    assert list(dict.fromkeys(payloads(restarted[0]))) == [b"%d" % n for n in range(6)]
    assert target.producer.last_error == ""
    target.close()


def test_send_when_told_to_give_up_then_raises_and_acknowledges_nothing(
    start_broker: BrokerFactory,
) -> None:
    broker = start_broker()
    target = Target(broker)
    target.send(0)
    target.producer.flush()
    broker.stop()
    target.goes_on = lambda: False

    with pytest.raises(BrokerUnreachableError):
        target.send(1)
        target.producer.flush()

    assert target.acknowledged == [0]
    assert len(target.producer.pending) == 1
    target.close()


def test_send_when_the_set_is_damaged_then_is_not_tried_again(target: Target) -> None:
    damaged = bytearray(build_set([b"x" * 10]))
    damaged[-1] ^= 1

    with pytest.raises(InvalidMessageError, match=r"not take messages of a\[9-0\] before 77: "):
        target.send_set(bytes(damaged), 77)
        target.producer.flush()

    assert target.errors == []
