"""Messages that were not delivered: somebody learns of it, once, whatever the program looks at."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.simple_consumer import SimpleConsumer
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    DeliveryFailedError,
    InvalidMessageError,
    MessageDroppedError,
    MessageSizeTooLargeError,
)
from broker.producer.callbacks import Event, ProducerCallbacks
from broker.producer.delivery import Delivery, Failures, Report
from broker.producer.producer import Producer
from broker.producer.settings import BatchRules, QueueRules
from broker.protocol.compression import Codec
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from broker.tools.audit import AuditCounter, AuditedProducer, Auditor
from broker.topic import TopicPartition
from tests.integration.broker.factories import BrokerFactory, address_of
from tests.support.fake_broker import Act, FakeBroker, FakeConnection, producer_with

T = TopicPartition("t", 0, 0)
ProducerFactory = Callable[..., Producer]


@pytest.fixture
def small_broker(start_broker: BrokerFactory) -> Broker:
    """A broker that refuses messages of more than ten bytes."""
    return start_broker(max_message_bytes=10)


@pytest.fixture
def windowed() -> Iterator[ProducerFactory]:
    """Make producers that are told by the broker, later, that a message is too large."""
    with ExitStack() as clusters:

        def make(broker: Broker, **settings: object) -> Producer:
            cluster = clusters.enter_context(
                closing(StaticCluster([address_of(broker)], Connection))
            )
            return producer_with(cluster, Connection, settings)

        yield make


def queued(broker: FakeBroker, **settings: object) -> Producer:
    """Make an asynchronous producer."""

    def connect(address: BrokerAddress) -> Connection:
        return FakeConnection(broker, address)  # type: ignore[return-value]  # all that is used

    rules = QueueRules(BatchRules(capacity=100, batch_count=1, linger_s=0.0))
    defaults: dict[str, object] = {"backoff_s": 0.0, "timeout_s": 10.0, "queueing": rules}
    return producer_with(broker, connect, defaults | settings)


def test_with_when_a_windowed_message_was_refused_then_raises_at_the_end(
    small_broker: Broker, windowed: ProducerFactory
) -> None:
    with (
        pytest.raises(DeliveryFailedError, match=r"^messages of 1 send were not delivered; ") as e,
        windowed(small_broker) as producer,
    ):
        producer.send("t", [b"x" * 11])
        producer.send("t", [b"fits"])

    assert isinstance(e.value.__cause__, MessageSizeTooLargeError)


def test_with_when_the_program_asked_then_does_not_raise_again(
    small_broker: Broker, windowed: ProducerFactory
) -> None:
    with windowed(small_broker) as producer:
        delivery = producer.send("t", [b"x" * 11])
        producer.flush()
        with pytest.raises(MessageSizeTooLargeError):
            delivery.result()


def test_with_when_some_failures_are_noticed_then_counts_the_others(
    small_broker: Broker, windowed: ProducerFactory
) -> None:
    with (
        pytest.raises(DeliveryFailedError, match="of 2 sends"),
        windowed(small_broker) as producer,
    ):
        deliveries = [producer.send("t", [b"x" * 11]) for _ in range(3)]
        producer.flush()
        assert isinstance(deliveries[0].error, MessageSizeTooLargeError)


def test_with_when_messages_were_reported_then_does_not_raise(
    small_broker: Broker, windowed: ProducerFactory
) -> None:
    told: list[Report] = []
    with windowed(small_broker, on_delivery=told.extend) as producer:
        producer.send("t", [b"x" * 11])

    assert [type(one.error) for one in told] == [MessageSizeTooLargeError]


def test_with_when_the_program_fails_then_its_error_stays_and_the_loss_is_logged(
    small_broker: Broker, windowed: ProducerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ZeroDivisionError), windowed(small_broker, max_in_flight=1) as producer:
        producer.send("t", [b"x" * 11])
        producer.send("t", [b"behind it"])
        raise ZeroDivisionError

    (record,) = (one for one in caplog.records if one.levelno >= logging.ERROR)
    assert record.getMessage().startswith("messages of 1 send were not delivered; ")


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_send_when_queued_with_one_too_large_then_that_one_fails_alone(
    small_broker: Broker, windowed: ProducerFactory, codec: Codec
) -> None:
    class Counts(ProducerCallbacks):
        def after_dequeue(self, event: Event | None) -> Iterable[Event]:
            if event is not None:
                seen.append(event.message)
            return super().after_dequeue(event)

    seen: list[bytes] = []
    told: list[Report] = []
    sent = [b"%d" % number for number in range(40)]
    sent[7] = b"x" * 11
    rules = QueueRules(BatchRules(batch_count=20, linger_s=3600.0))
    settings: dict[str, object] = {"queueing": rules, "codec": codec, "on_delivery": told.extend}
    with windowed(small_broker, callbacks=Counts(), **settings) as producer:
        deliveries = [producer.send("t", [one]) for one in sent]
        producer.flush()
        refused = [sent[place] for place, one in enumerate(deliveries) if one.has_failed]
    with SimpleConsumer("127.0.0.1", small_broker.port) as consumer:
        found = [payload for _, _, payload in consumer.fetch("t", 0, 0, 1 << 20)]
    assert refused == [sent[7]]
    assert found == [one for one in sent if one != sent[7]]
    assert seen == sent
    assert sorted(bytes(one.message) for one in told) == sorted(sent)
    assert [one.message for one in told if one.error is not None] == [sent[7]]


def test_send_when_queued_in_one_call_with_one_too_large_then_all_of_the_call_fail(
    small_broker: Broker, windowed: ProducerFactory
) -> None:
    rules = QueueRules(BatchRules(linger_s=3600.0), logs_failures=False)
    with windowed(small_broker, queueing=rules) as producer:
        good = producer.send("t", [b"1", b"2"])
        bad = producer.send("t", [b"3", b"x" * 11, b"4"])
        last = producer.send("t", [b"5"])
        producer.flush()
        assert isinstance(bad.error, MessageSizeTooLargeError)
    assert (good.base_offset, last.base_offset) == (0, 22)


def test_close_when_flush_has_raised_then_does_not_raise_again(
    start_broker: BrokerFactory, windowed: ProducerFactory
) -> None:
    broker = start_broker()
    producer = windowed(broker, retries=0)
    producer.send("t", [b"x"])
    producer.flush()
    broker.stop()

    with pytest.raises(BrokerUnreachableError):
        producer.send("t", [b"y"])
        producer.flush()
    producer.close()


def test_with_when_queued_messages_were_lost_then_raises_at_the_end() -> None:
    broker = FakeBroker([Act.REFUSE, Act.TAKE, Act.REFUSE])
    with pytest.raises(DeliveryFailedError, match="of 2 sends") as e, queued(broker) as producer:
        for number in range(5):
            producer.send("t", [b"%d" % number]).wait(timeout_s=60)

    assert isinstance(e.value.__cause__, InvalidMessageError)
    assert [payload for _, payload in broker.log(T)] == [b"1", b"3", b"4"]


def test_close_when_queued_messages_could_not_be_sent_in_time_then_raises_once() -> None:
    broker = FakeBroker()
    broker.is_away = True
    producer = queued(broker)
    producer.send("t", [b"a", b"b"])

    with pytest.raises(DeliveryFailedError, match="of 1 send "):
        producer.close(timeout_s=0.0)
    producer.close()


def test_with_when_queued_messages_were_asked_for_then_does_not_raise() -> None:
    with queued(FakeBroker([Act.REFUSE])) as producer, pytest.raises(InvalidMessageError):
        producer.send("t", [b"a"]).result(timeout_s=60)


def test_with_when_queued_messages_were_reported_then_does_not_raise() -> None:
    told: list[Report] = []
    with queued(FakeBroker([Act.REFUSE]), on_delivery=told.extend) as producer:
        producer.send("t", [b"a"])

    assert [type(one.error) for one in told] == [InvalidMessageError]


class DropsAll(ProducerCallbacks):
    """A filter that lets nothing through."""

    def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
        return ()


class Adds(ProducerCallbacks):
    """Sends another message with each, which nobody holds a delivery of."""

    def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
        return [*events, *(Event(one.topic, b"more") for one in events)]


def test_with_when_a_callback_drops_messages_then_that_is_no_loss() -> None:
    broker = FakeBroker()
    with queued(broker, callbacks=DropsAll()) as producer:
        delivery = producer.send("t", [b"a"])

    assert broker.log(T) == []
    assert isinstance(delivery.error, MessageDroppedError)


def test_with_when_a_message_of_a_callback_was_lost_then_raises() -> None:
    with (
        pytest.raises(DeliveryFailedError, match="of 1 send "),
        queued(FakeBroker([Act.REFUSE]), callbacks=Adds()) as producer,
        pytest.raises(InvalidMessageError),
    ):
        producer.send("t", [b"a"]).result(timeout_s=60)


def test_with_when_counting_for_an_audit_then_a_loss_is_not_taken_as_noticed(
    small_broker: Broker, windowed: ProducerFactory
) -> None:
    counter = AuditCounter("producer")
    with (
        pytest.raises(DeliveryFailedError),
        windowed(small_broker, max_message_bytes=1000) as producer,
        AuditedProducer(producer, Auditor(counter, producer, "audit")) as counting,
    ):
        counting.send("t", [b"x" * 11])

    assert counter.take(with_open=True) == []


steps = st.lists(
    st.tuples(st.sampled_from(["fail", "look", "take"]), st.integers(0, 3)), max_size=30
)


@given(steps)
def test_failures_when_looked_at_in_any_order_then_each_is_told_once(
    given_steps: list[tuple[str, int]],
) -> None:
    failures = Failures()
    deliveries = [Delivery(T, b"", failures) for _ in range(4)]
    unnoticed: set[int] = set()
    for action, number in given_steps:
        if action == "fail":
            deliveries[number].fail(BrokerError("no"))
            unnoticed.add(number)
        elif action == "look":
            assert deliveries[number].has_failed == (deliveries[number].error is not None)
            unnoticed.discard(number)
        else:
            error = failures.take()
            assert (0 if error is None else int(str(error).split()[2])) == len(unnoticed)
            unnoticed.clear()
