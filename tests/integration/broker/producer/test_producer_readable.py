"""What `wait_until_readable` promises: consumers can read what was sent, or an error says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker import Acks, Broker, Connection, Producer, SimpleConsumer, StaticCluster
from broker.errors import (
    NO_ERROR,
    BrokerUnreachableError,
    LogCorruptError,
    RequestTimedOutError,
)
from broker.producer.broker_connection import BrokerConnection
from broker.producer.broker_sender import BrokerSender, SendRules
from broker.producer.delivery import Delivery
from broker.protocol.codec import encode
from broker.protocol.extension_requests import PublishRequest, SinglePublishResponse
from broker.protocol.primitives import INT32, INT64, Buffer, Reader
from broker.protocol.requests import BaseRequest
from broker.protocol.responses import BrokerAddress, Published, encode_publish_response
from broker.topic import TopicPartition

T = TopicPartition("t", 0, 0)
SET = encode([b"abc"])
ADDRESS = BrokerAddress(0, "127.0.0.1", 1)


class Answering:
    """A broker that acknowledges at offset 0 and answers empty publishes as it is told.

    Args:
        answers: what becomes of empty publishes, in turn; an exception is raised.
        latest: what it says is readable.
    """

    def __init__(self, *answers: Published | Exception, latest: int = 0) -> None:
        self._answers = list(answers)
        self._latest = latest
        self.close_count = 0
        self.address = ADDRESS
        self.is_open = True
        self.retries_refused = False
        self.broker_id = 0
        self.client_id = "test"
        self._is_sent = False

    def hello(self) -> object:
        return self

    def next_correlation_id(self) -> int:
        return 1

    def send_parts(self, parts: list[Buffer]) -> None:
        self._is_sent = True

    def call(self, request: PublishRequest) -> Reader:
        assert request.acks is Acks.COMMITTED
        assert not len(request.sets[0].message_set)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reader(encode_publish_response([answer]))

    def send_request(self, request: BaseRequest) -> None:
        return None

    def receive(self) -> Buffer:
        if self._is_sent:
            self._is_sent = False
            return SinglePublishResponse(T).encode(1, 0, 0)[INT32.size :]
        return bytes(2) + INT32.pack(1) + INT64.pack(self._latest)

    def close(self) -> None:
        self.close_count += 1


def sent_over(connection: Answering) -> BrokerSender:
    """Return a broker sender over which one set was sent and acknowledged."""
    broker_connection = BrokerConnection(
        lambda: ADDRESS,
        lambda _: connection,  # type: ignore[arg-type, return-value]  # a stand-in with what is used
        broker_id=0,
    )
    rules = SendRules(acks=Acks.WRITTEN, retries=1, timeout_s=5)
    sender = BrokerSender(broker_connection, rules)
    sender.send((Delivery(T, SET),))
    sender.drain()
    return sender


def test_wait_until_readable_when_the_flush_is_late_tells_the_missing_bytes() -> None:
    late = Published(T, RequestTimedOutError.code, -1, "late")
    sender = sent_over(Answering(late, latest=len(SET) - 5))
    with pytest.raises(RequestTimedOutError, match=r"5 bytes of t\[0-0\] cannot be read yet, 5s"):
        sender.wait_until_readable()


def test_wait_until_readable_when_the_log_ends_before_what_was_acknowledged_says_it_is_lost() -> (
    None
):
    sender = sent_over(Answering(Published(T, NO_ERROR, 0, "")))
    with pytest.raises(LogCorruptError, match=r"t\[0-0\] ends at 0 and not at 13"):
        sender.wait_until_readable()


def test_wait_until_readable_when_the_connection_was_closed_meanwhile_asks_again() -> None:
    connection = Answering(BrokerUnreachableError("closed"), Published(T, NO_ERROR, len(SET), ""))
    sent_over(connection).wait_until_readable()
    assert connection.close_count == 1


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
    with Producer(cluster, Connection, acks=acks) as producer:
        producer.send_set(T, SET)
        producer.send_set(T, SET)
        producer.wait_until_readable()
        assert readable(broker, "t") == 2


def test_wait_until_readable_when_nothing_was_sent_to_a_new_topic_does_not_wait_for_it(
    cluster: StaticCluster,
) -> None:
    with Producer(cluster, Connection, timeout_s=60) as producer:
        assert producer.partitions("t") == [T]
        assert producer.is_new("t")
        producer.wait_until_readable()


def test_partitions_when_the_topic_exists_are_all_it_has(cluster: StaticCluster) -> None:
    with Producer(cluster, Connection) as first:
        first.send_set(T, SET)
    with Producer(cluster, Connection) as second:
        assert second.partitions("t") == [T, TopicPartition("t", 0, 1)]
        assert not second.is_new("t")
