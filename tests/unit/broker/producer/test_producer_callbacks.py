"""Hooks into an asynchronous producer, before a broker that does as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pytest

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.errors import (
    ConfigError,
    DeliveryFailedError,
    MessageDroppedError,
    MessageSizeTooLargeError,
    QueueFullError,
)
from broker.producer.callbacks import Event, ProducerCallbacks
from broker.producer.producer import Producer
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from tests.support.fake_broker import FakeBroker, Reports
from tests.support.waiting import wait_until
from tests.unit.broker.producer.test_async_producer import NEVER_S, make_producer

T = TopicPartition("t", 0, 0)
ProducerFactory = Callable[..., Producer]


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def open_producer(broker: FakeBroker, reports: Reports) -> Iterator[ProducerFactory]:
    """Make producers with callbacks, closed at the end."""
    made: list[Producer] = []

    def make(callbacks: ProducerCallbacks, **settings: object) -> Producer:
        made.append(
            make_producer(
                broker,
                on_delivery=reports,
                callbacks=callbacks,
                **({"linger_s": NEVER_S} | settings),  # type: ignore[arg-type]  # by name
            )
        )
        return made[-1]

    yield make
    for producer in made:
        with suppress(DeliveryFailedError):  # of messages a test has left in the queue
            producer.close(timeout_s=0)


def payloads(broker: FakeBroker, topic: str = "t") -> list[bytes]:
    return [payload for _, payload in broker.log(TopicPartition(topic, 0, 0))]


class Recorder(ProducerCallbacks):
    """Writes down what it is told, and changes nothing."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def before_enqueue(self, event: Event) -> Event:
        self.calls.append(f"before enqueue {event.message!r}")
        return event

    def after_enqueue(self, event: Event, *, is_queued: bool) -> None:
        self.calls.append(f"after enqueue {event.message!r} {is_queued}")

    def after_dequeue(self, event: Event | None) -> Iterable[Event]:
        self.calls.append("time limit" if event is None else f"after dequeue {event.message!r}")
        return super().after_dequeue(event)

    def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
        self.calls.append(f"before send {[event.message for event in events]}")
        return events

    def last_batch(self) -> Iterable[Event]:
        self.calls.append("last batch")
        return ()

    def close(self) -> None:
        self.calls.append("close")


def test_callbacks_when_a_batch_is_sent_then_called_at_each_stage_in_turn(
    open_producer: ProducerFactory, broker: FakeBroker
) -> None:
    callbacks = Recorder()
    producer = open_producer(callbacks)
    producer.send("t", [b"1", b"2"])
    producer.close()
    assert callbacks.calls == [
        "before enqueue b'1'",
        "before enqueue b'2'",
        "after enqueue b'1' True",
        "after enqueue b'2' True",
        "after dequeue b'1'",
        "after dequeue b'2'",
        "before send [b'1', b'2']",
        "last batch",
        "close",
    ]
    assert payloads(broker) == [b"1", b"2"]


def test_after_enqueue_when_there_is_no_room_then_told(open_producer: ProducerFactory) -> None:
    callbacks = Recorder()
    producer = open_producer(callbacks, capacity=1, enqueue_timeout_s=0)
    producer.send("t", [b"1"])
    with pytest.raises(QueueFullError):
        producer.send("t", [b"2"])
    assert callbacks.calls[-1] == "after enqueue b'2' False"


class Replacing(ProducerCallbacks):
    """Returns from `before_enqueue` what a function makes of an event."""

    def __init__(self, change: Callable[[Event], Event]) -> None:
        self._change = change

    def before_enqueue(self, event: Event) -> Event:
        return self._change(event)


def test_before_enqueue_when_it_replaces_an_event_then_that_is_sent(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    callbacks = Replacing(lambda event: Event("other", event.message.upper(), b"key"))
    producer = open_producer(callbacks)
    producer.send("t", [b"a"])
    producer.flush()
    assert payloads(broker, "other") == [b"A"]
    assert [(one.topic, one.key, one.message) for one in reports.all] == [("other", b"key", b"A")]


def test_before_enqueue_when_one_call_gets_several_topics_then_refused(
    open_producer: ProducerFactory,
) -> None:
    producer = open_producer(Replacing(lambda event: event._replace(topic=event.message.decode())))
    with pytest.raises(ConfigError, match="different topics or keys"):
        producer.send("t", [b"a", b"b"])


def test_before_enqueue_when_what_it_returns_is_too_large_then_refused(
    open_producer: ProducerFactory,
) -> None:
    callbacks = Replacing(lambda event: event._replace(message=bytes(100)))
    producer = open_producer(callbacks, max_message_bytes=99)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send("t", [b"a"])


class Dequeuing(ProducerCallbacks):
    """Returns from `after_dequeue` what a function makes of an event."""

    def __init__(self, change: Callable[[Event], Iterable[Event]]) -> None:
        self._change = change

    def after_dequeue(self, event: Event | None) -> Iterable[Event]:
        return () if event is None else self._change(event)


def test_after_dequeue_when_it_makes_several_of_one_then_all_are_sent_and_reported(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    callbacks = Dequeuing(lambda event: [event, event._replace(message=b"copy")])
    producer = open_producer(callbacks)
    delivery = producer.send("t", [b"1"])
    producer.flush()
    assert payloads(broker) == [b"1", b"copy"]
    assert [one.offset for one in reports.all] == [0, 11]
    assert delivery.result() == 0


def test_after_dequeue_when_it_changes_the_topic_then_goes_there(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    callbacks = Dequeuing(lambda event: [event._replace(topic="other")])
    producer = open_producer(callbacks)
    delivery = producer.send("t", [b"1"])
    producer.close()
    assert payloads(broker) == []
    assert payloads(broker, "other") == [b"1"]
    assert delivery.result() == 0
    assert [one.topic for one in reports.all] == ["other"]


def test_after_dequeue_when_it_keeps_a_message_then_reported_as_dropped_in_the_end(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    callbacks = Dequeuing(lambda event: [event] if event.message != b"bad" else [])
    producer = open_producer(callbacks)
    delivery = producer.send("t", [b"good", b"bad"])
    producer.flush()
    assert not delivery.is_done
    producer.close()
    assert payloads(broker) == [b"good"]
    with pytest.raises(MessageDroppedError, match=r"a callback kept a message to t\[0-0\]"):
        delivery.result()
    assert [one.message for one in reports.all] == [b"good", b"bad"]


class Holding(ProducerCallbacks):
    """Keeps all messages, and returns them at the time limit or the end."""

    def __init__(self, *, until_close: bool) -> None:
        self._until_close = until_close
        self._kept: list[Event] = []
        self._passed: set[bytes] = set()

    def after_dequeue(self, event: Event | None) -> Iterable[Event]:
        if event is not None and event.message in self._passed:
            return (event,)
        if event is not None:
            self._kept.append(event)
        elif not self._until_close:
            return self._release()
        return ()

    def last_batch(self) -> Iterable[Event]:
        return self._release()

    def _release(self) -> list[Event]:
        kept, self._kept = self._kept, []
        self._passed.update(event.message for event in kept)
        return kept


def test_last_batch_when_it_returns_what_was_kept_then_sent_and_reported_once(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    producer = open_producer(Holding(until_close=True))
    delivery = producer.send("t", [b"1", b"2"])
    producer.flush()
    assert not broker.publish_count
    producer.close()
    assert payloads(broker) == [b"1", b"2"]
    assert [one.error for one in reports.all] == [None, None]
    assert delivery.result() == 0


def test_after_dequeue_when_the_time_limit_passes_then_what_it_returns_is_sent(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    producer = open_producer(Holding(until_close=False), linger_s=0.01)
    delivery = producer.send("t", [b"1"])
    assert delivery.wait(60)
    producer.flush()
    assert payloads(broker) == [b"1"]
    assert len(reports.all) == 1


def test_before_send_when_it_makes_one_of_many_then_the_others_are_reported_in_the_end(
    open_producer: ProducerFactory, broker: FakeBroker, reports: Reports
) -> None:
    class Joining(ProducerCallbacks):
        def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
            yield Event("t", b",".join(event.message for event in events))

    producer = open_producer(Joining())
    producer.send("t", [b"1", b"2"])
    producer.close()
    assert payloads(broker) == [b"1,2"]
    assert reports.all[0].message == b"1,2"
    assert {bytes(one.message) for one in reports.all[1:]} == {b"1", b"2"}
    assert len(reports.all) == 3


@pytest.mark.parametrize("stage", ["after_dequeue", "before_send"])
def test_callbacks_when_one_raises_then_its_batch_is_reported_and_later_ones_go_on(
    open_producer: ProducerFactory,
    broker: FakeBroker,
    reports: Reports,
    caplog: pytest.LogCaptureFixture,
    stage: str,
) -> None:
    class Failing(ProducerCallbacks):
        def after_dequeue(self, event: Event | None) -> Iterable[Event]:
            if stage == "after_dequeue" and event is not None and event.message == b"bad":
                raise ValueError("in the callback")
            return super().after_dequeue(event)

        def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
            if stage == "before_send" and events[-1].message == b"bad":
                raise ValueError("in the callback")
            return events

    producer = open_producer(Failing())
    producer.send("t", [b"1", b"bad"])
    producer.flush()
    producer.send("t", [b"2"])
    producer.flush()
    assert payloads(broker) == [b"2"]
    assert isinstance(reports.errors[b"1"], MessageDroppedError)
    assert isinstance(reports.errors[b"bad"], MessageDroppedError)
    assert reports.errors[b"2"] is None
    assert "in the callback" in caplog.text


def test_callbacks_when_the_end_raises_then_logged_and_closed(
    open_producer: ProducerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(ProducerCallbacks):
        def last_batch(self) -> Iterable[Event]:
            raise ValueError("in the last batch")

        def close(self) -> None:
            raise ValueError("in the close")

    producer = open_producer(Failing())
    delivery = producer.send("t", [b"1"])
    producer.close()
    assert delivery.result() == 0
    assert "in the last batch" in caplog.text
    assert "in the close" in caplog.text


def test_producer_when_synchronous_with_callbacks_then_refused() -> None:
    cluster = StaticCluster([BrokerAddress(-1, "127.0.0.1", 1)], Connection)
    with pytest.raises(ConfigError, match="callbacks are for asynchronous producers"):
        Producer(cluster, Connection, callbacks=ProducerCallbacks())


def test_time_limit_when_nothing_comes_then_told_again_and_again(
    open_producer: ProducerFactory,
) -> None:
    callbacks = Recorder()
    producer = open_producer(callbacks, linger_s=0.0)
    producer.send("t", [b"1"])
    wait_until(lambda: callbacks.calls.count("time limit") >= 2, "the time limit")
