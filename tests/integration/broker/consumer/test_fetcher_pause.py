from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from broker.client.connection import Connection
from broker.consumer.fetcher import Fetcher
from broker.errors import BrokerUnreachableError
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

ONE = TopicPartition("t", 0, 0)
TWO = TopicPartition("t", 0, 1)
MESSAGE_SET = encode([b"x" * 100] * 10)


@pytest.fixture
def broker(start_broker: Callable[..., Broker]) -> Broker:
    broker = start_broker(num_partitions=2)
    connection = Connection(BrokerAddress(0, "127.0.0.1", broker.port))
    sets = (PartitionSet(ONE, MESSAGE_SET), PartitionSet(TWO, MESSAGE_SET))
    connection.call(CreateTopicRequest(ONE.topic))
    connection.call(PublishRequest(Acks.COMMITTED, 10_000, sets))
    connection.close()
    return broker


@pytest.fixture
def fetcher(broker: Broker) -> Iterator[Fetcher]:
    connection = Connection(BrokerAddress(0, "127.0.0.1", broker.port))
    fetcher = Fetcher({ONE: 0, TWO: 0}, connection, fetch_bytes=100, max_wait_ms=20_000)
    yield fetcher
    fetcher.close()


def poll(fetcher: Fetcher) -> dict[TopicPartition, int]:
    return {piece.partition: piece.offset for piece in fetcher.poll() if len(piece.data)}


def test_pause_when_asked_for_already_then_that_still_comes_and_no_more(fetcher: Fetcher) -> None:
    assert poll(fetcher) == {ONE: 0, TWO: 0}

    fetcher.pause(ONE)

    assert poll(fetcher) == {ONE: 100, TWO: 100}
    assert poll(fetcher) == {TWO: 200}


def test_pause_when_all_are_paused_then_a_poll_gives_nothing_at_once(fetcher: Fetcher) -> None:
    fetcher.pause(ONE)
    fetcher.pause(TWO)

    assert fetcher.poll() == []


def test_resume_when_paused_before_then_goes_on_without_a_gap(fetcher: Fetcher) -> None:
    poll(fetcher)
    fetcher.pause(ONE)
    poll(fetcher)
    poll(fetcher)

    fetcher.resume(ONE)

    assert poll(fetcher) == {TWO: 300}  # asked for while it was paused
    assert poll(fetcher) == {ONE: 200, TWO: 400}


def test_interrupt_when_a_poll_waits_in_another_thread_then_it_fails_at_once(
    broker: Broker, fetcher: Fetcher
) -> None:
    fetcher.seek(ONE, len(MESSAGE_SET))
    fetcher.seek(TWO, len(MESSAGE_SET))
    errors: list[BrokerUnreachableError] = []

    def wait() -> None:
        try:
            while True:
                fetcher.poll()
        except BrokerUnreachableError as error:
            errors.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    while waiter.is_alive():
        fetcher.interrupt()
        waiter.join(0.01)

    assert "lost broker" in str(errors[0])
