from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import Broker, BrokerError, Connection, Producer, SimpleConsumer, StaticCluster
from broker.errors import BrokerUnreachableError, InvalidMessageError
from broker.producer.delivery import Delivery
from broker.protocol.primitives import Buffer
from broker.tools.audit import (
    AuditCounter,
    AuditedProducer,
    AuditEvent,
    Auditor,
    audited,
    json_time,
)
from broker.topic import TopicPartition
from tests.doubles import FakeClock
from tests.integration.broker.factories import address_of

MINUTE_MS = 60_000
START_MS = 1_700_000_040_000  # on a minute

texts = st.text(max_size=10)
numbers = st.integers(0, (1 << 63) - 1)
events = st.builds(
    AuditEvent,
    texts,
    numbers,
    texts,
    texts,
    texts,
    st.integers(0, 1000),
    st.integers(1001, 2000),
    numbers,
    numbers,
)


class Sent:
    """A producer that only remembers, and acknowledges at once unless told to fail."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.error: BrokerError | None = None
        self.send_count = 0

    def send(self, topic: str, messages: Iterable[Buffer], key: bytes | None = None) -> Delivery:
        self.send_count += 1
        delivery = Delivery(TopicPartition(topic, 0, 0), b"")
        delivery.is_done = True
        if self.error is not None:
            delivery.fail(self.error)
        else:
            self.messages += [(topic, bytes(message)) for message in messages]
        return delivery

    def flush(self) -> None:
        return

    def events(self, topic: str = "audit") -> list[AuditEvent]:
        return [AuditEvent.decode(payload) for one, payload in self.messages if one == topic]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START_MS)


@pytest.fixture
def counter(clock: FakeClock) -> AuditCounter:
    return AuditCounter("producer", window_ms=MINUTE_MS, host="web1", clock=clock)


@given(events)
def test_event_when_encoded_then_decodes_to_itself(event: AuditEvent) -> None:
    assert AuditEvent.decode(event.encode()) == event


def test_event_when_encoded_then_has_the_documented_fields() -> None:
    event = AuditEvent("web1-ab", 3, "web1", "producer", "t", 0, 600_000, 7, 70)

    assert event.encode() == (
        b'{"v":1,"id":"web1-ab","seq":3,"host":"web1","tier":"producer","topic":"t",'
        b'"start_ms":0,"end_ms":600000,"count":7,"bytes":70}'
    )


@given(st.binary(max_size=40))
def test_event_when_bytes_are_anything_then_raises_only_invalid_message(data: bytes) -> None:
    with pytest.raises(InvalidMessageError):
        AuditEvent.decode(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [("v", 2), ("v", None), ("count", -1), ("count", 1.5), ("count", True), ("topic", 7),
     ("end_ms", 0), ("seq", "3")],
)  # fmt: skip
def test_event_when_a_field_is_wrong_then_is_refused(name: str, value: object) -> None:
    fields = json.loads(AuditEvent("a", 0, "h", "t", "t", 0, 1, 1, 1).encode()) | {name: value}

    with pytest.raises(InvalidMessageError):
        AuditEvent.decode(json.dumps(fields).encode())


def test_counter_when_windows_end_then_gives_each_once(
    counter: AuditCounter, clock: FakeClock
) -> None:
    counter.note("b", 1, 10)
    counter.note("a", 2, 5)
    clock.advance(59)
    counter.note("a", 1, 1)
    assert counter.take() == []

    clock.advance(1)
    counter.note("a", 9, 9)
    taken = counter.take()

    assert [(e.topic, e.start_ms, e.end_ms, e.message_count, e.payload_bytes) for e in taken] == [
        ("a", START_MS, START_MS + MINUTE_MS, 3, 6),
        ("b", START_MS, START_MS + MINUTE_MS, 1, 10),
    ]
    assert [e.sequence for e in [*taken, *counter.take(with_open=True)]] == [0, 1, 2]
    assert counter.take(with_open=True) == []


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 10**7), st.booleans())))
def test_counter_when_taken_at_any_time_then_every_message_counts_once(
    steps: list[tuple[str, int, bool]],
) -> None:
    counter = AuditCounter("t", window_ms=1000, clock=FakeClock())
    taken: list[AuditEvent] = []
    for topic, time_ms, takes in steps:
        counter.note(topic, 1, 3, time_ms)
        if takes:
            taken += counter.take()
    taken += counter.take(with_open=True)

    assert sum(event.message_count for event in taken) == len(steps)
    assert sum(event.payload_bytes for event in taken) == 3 * len(steps)
    assert all(event.start_ms % 1000 == 0 for event in taken)


def test_counter_when_used_by_threads_then_loses_nothing(counter: AuditCounter) -> None:
    def count() -> None:
        for _ in range(1000):
            counter.note("t", 1, 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [event.message_count for event in counter.take(with_open=True)] == [4000]


def test_publish_when_the_producer_fails_then_the_same_events_go_later(
    counter: AuditCounter, clock: FakeClock
) -> None:
    sent = Sent()
    auditor = Auditor(counter, sent, "audit")
    counter.note("t", 5, 50)
    clock.advance(60)
    sent.error = BrokerUnreachableError("gone")
    with pytest.raises(BrokerUnreachableError):
        auditor.publish()
    sent.error = None

    assert auditor.publish() == 1
    assert auditor.publish() == 0
    assert [(one.sequence, one.message_count) for one in sent.events()] == [(0, 5)]


def test_publish_when_there_are_thousands_of_windows_then_sends_them_in_pieces(
    counter: AuditCounter,
) -> None:
    sent = Sent()
    for minute in range(2500):
        counter.note("t", 1, 1, minute * MINUTE_MS)

    assert Auditor(counter, sent, "audit").publish() == 2500

    assert [one.start_ms for one in sent.events()] == [n * MINUTE_MS for n in range(2500)]
    assert sent.send_count == 3


def test_audited_producer_when_messages_fail_then_they_are_not_counted(
    counter: AuditCounter,
) -> None:
    sent = Sent()
    with AuditedProducer(sent, Auditor(counter, sent, "audit")) as producer:
        producer.send("t", [b"12", b"345"])
        sent.error = BrokerUnreachableError("gone")
        producer.send("t", [b"lost"])
        sent.error = None

    assert [(one.message_count, one.payload_bytes) for one in sent.events()] == [(2, 5)]


def test_audited_producer_when_messages_tell_their_time_then_counts_by_it(
    counter: AuditCounter,
) -> None:
    sent = Sent()
    producer = AuditedProducer(sent, Auditor(counter, sent, "audit"), time_of=json_time(".meta.ts"))
    producer.send("t", [b'{"meta":{"ts":946684860}}', b'{"meta":{"ts":"1970-01-01T00:02:30Z"}}'])
    producer.send("t", [b'{"meta":{"ts":1700000040000}}', b"no time", b'{"meta":{"ts":"soon"}}'])
    producer.close()

    found = {one.start_ms: one.message_count for one in sent.events()}
    assert found == {946_684_860_000: 1, 120_000: 1, START_MS: 1}
    assert counter.timeless_count == 2


def test_audited_producer_when_a_broker_acknowledges_then_publishes_beside_the_messages(
    running_broker: Broker, counter: AuditCounter
) -> None:
    cluster = StaticCluster([address_of(running_broker)], Connection)
    with (
        Producer(cluster, Connection) as producer,
        AuditedProducer(producer, Auditor(counter, producer, "audit")) as counting,
    ):
        for number in range(100):
            counting.send("t", [b"%d" % number])
    cluster.close()

    with SimpleConsumer("127.0.0.1", running_broker.port) as consumer:
        (message,) = list(consumer.fetch("audit", 0, 0, 1 << 20))
    event = AuditEvent.decode(message[2])
    assert (event.topic, event.message_count, event.payload_bytes) == ("t", 100, 190)


def test_audited_messages_when_consumed_then_count_once_they_are_finished(
    clock: FakeClock,
) -> None:
    sent = Sent()
    counter = AuditCounter("consumer", window_ms=MINUTE_MS, clock=clock)
    auditor = Auditor(counter, sent, "audit")
    partition = TopicPartition("t", 0, 0)
    messages = [("t", partition, n, n + 1, b"x" * n) for n in range(5)]

    given_messages: Iterator[object] = audited(messages, auditor)
    assert [next(given_messages) for _ in range(4)] == messages[:4]
    clock.advance(61)
    assert next(given_messages) == messages[4]

    assert [one.message_count for one in sent.events()] == [3]


@pytest.mark.parametrize(
    ("payload", "time_ms"),
    [
        (b'{"ts":1700000040.5}', 1700000040500),
        (b'{"ts":1700000040123}', 1700000040123),
        (b'{"ts":"2023-11-14T22:14:00.123"}', 1700000040123),
        (b'{"ts":"2023-11-14T23:14:00+01:00"}', 1700000040000),
        (b'{"ts":null}', None),
        (b'{"ts":"soon"}', None),
        (b'{"ts":1e999}', None),
        (b"[1]", None),
        (b"\xff", None),
    ],
)
def test_json_time_when_read_then_is_milliseconds_or_none(
    payload: bytes, time_ms: int | None
) -> None:
    time_of: Callable[[Buffer], int | None] = json_time("ts")

    assert time_of(payload) == time_ms
