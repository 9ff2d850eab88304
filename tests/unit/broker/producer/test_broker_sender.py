"""A broker sender: how many bytes may be unacknowledged, and connections that have ended."""

from __future__ import annotations

from collections import deque

import pytest

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.counts import ProducerCounts
from broker.errors import ServerError
from broker.producer.broker_connection import BrokerConnection
from broker.producer.broker_sender import BrokerSender, PendingSet
from broker.producer.delivery import Delivery
from broker.producer.settings import ProducerSettings
from broker.protocol.client_requests import (
    Acks,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from tests.support.fake_broker import FakeBroker, FakeConnection, parts_with

T = TopicPartition("t", 0, 0)
SMALL = encode([b"x" * 90])


class PipelinedConnection(FakeConnection):
    """Takes several requests before the first response, and records the bytes in flight."""

    def __init__(self, broker: FakeBroker) -> None:
        super().__init__(broker, BrokerAddress(0, "fake", 1))
        self.requests: deque[PublishRequest] = deque()
        self.bytes_in_flight: list[int] = []

    def _take(self, request: PublishRequest) -> None:
        self.requests.append(request)
        self.bytes_in_flight.append(
            sum(len(one.message_set) for each in self.requests for one in each.sets)
        )

    def receive(self) -> bytes:
        return self._broker.publish(self.requests.popleft())


class Ends:
    """Completes sets as they are acknowledged."""

    def acknowledged(self, one: PendingSet, acks: Acks, base_offset: int, term: int) -> None:
        one.complete(base_offset, None)

    def refused(self, one: PendingSet, error: ServerError) -> None:
        raise error


def sender_to(
    connection: PipelinedConnection,
    *,
    max_in_flight_bytes: int | None = None,
    acks: Acks = Acks.COMMITTED,
) -> BrokerSender:
    def connect(address: BrokerAddress) -> Connection:
        return connection  # type: ignore[return-value]  # all that is used

    sender = _sender(connect, ProducerSettings(acks, max_in_flight=100))
    if max_in_flight_bytes is not None:
        sender.max_in_flight_bytes = max_in_flight_bytes
    return sender


def _sender(connect: Connect, settings: ProducerSettings) -> BrokerSender:
    connection = BrokerConnection(parts_with(FakeBroker(), connect, settings), 0)
    return BrokerSender(connection, Ends(), ProducerCounts())


def send(sender: BrokerSender, delivery: Delivery) -> None:
    while not sender.has_room(len(delivery.message_set)):
        sender.receive()
    sender.send((delivery,), Acks.COMMITTED)


def test_send_when_bytes_in_flight_reach_the_limit_then_waits_for_the_oldest_response() -> None:
    broker = FakeBroker()
    connection = PipelinedConnection(broker)
    sender = sender_to(connection, max_in_flight_bytes=3 * len(SMALL))
    deliveries = [Delivery(T, SMALL) for _ in range(6)]
    for delivery in deliveries:
        send(sender, delivery)

    assert connection.bytes_in_flight == [n * len(SMALL) for n in (1, 2, 3, 3, 3, 3)]
    assert [one.is_done for one in deliveries] == [True] * 3 + [False] * 3
    while not sender.is_idle:
        sender.receive()
    assert [one.result() for one in deliveries] == [n * len(SMALL) for n in range(6)]


def test_send_when_a_set_is_above_the_limit_then_it_is_alone_in_flight() -> None:
    connection = PipelinedConnection(FakeBroker())
    sender = sender_to(connection, max_in_flight_bytes=2 * len(SMALL))
    large = SMALL * 3
    for message_set in (SMALL, large, SMALL):
        send(sender, Delivery(T, message_set))

    assert connection.bytes_in_flight == [len(SMALL), len(large), len(SMALL)]


@pytest.mark.parametrize(("acks", "limit"), [(Acks.WRITTEN, 4 << 20), (Acks.COMMITTED, 16 << 20)])
def test_room_when_acknowledgements_wait_for_flushes_then_there_is_more_of_it(
    acks: Acks, limit: int
) -> None:
    sender = sender_to(PipelinedConnection(FakeBroker()), acks=acks)
    send(sender, Delivery(T, SMALL))

    assert sender.has_room(limit - len(SMALL))
    assert not sender.has_room(limit - len(SMALL) + 1)


def test_send_when_the_broker_has_ended_an_idle_connection_then_another_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.producer.broker_sender._IDLE_S", 0.0)
    broker = FakeBroker()
    opened: list[FakeConnection] = []

    def connect(address: BrokerAddress) -> Connection:
        opened.append(FakeConnection(broker, address))
        return opened[-1]  # type: ignore[return-value]  # all that is used

    sender = _sender(connect, ProducerSettings())
    for has_ended, count in ((False, 1), (False, 1), (True, 2)):
        if opened:
            monkeypatch.setattr(opened[-1], "has_received", lambda _: has_ended)  # noqa: B023
        send(sender, Delivery(T, SMALL))
        sender.receive()
        assert len(opened) == count
