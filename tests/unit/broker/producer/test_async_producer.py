"""A producer with queues and threads, before a broker that does as it is told."""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.client.connection import Connection
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConfigError,
    DeliveryFailedError,
    InvalidMessageError,
    MessageSizeTooLargeError,
    ProducerClosedError,
    QueueFullError,
    RequestTimeoutError,
)
from broker.producer.delivery import OnDelivery, Report
from broker.producer.partitioner import round_robin_partitioner
from broker.producer.producer import Producer
from broker.producer.settings import BatchRules, QueueRules
from broker.protocol.client_requests import Acks
from broker.protocol.compression import Codec
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from tests.support.fake_broker import Act, FakeBroker, FakeConnection, Reports, producer_with
from tests.support.waiting import wait_until

NEVER_S = 3600.0
T = TopicPartition("t", 0, 0)


def make_producer(
    broker: FakeBroker,
    *,
    on_delivery: OnDelivery | None = None,
    linger_s: float = 0.0,
    capacity: int = 1000,
    batch_count: int = 200,
    enqueue_timeout_s: float | None = None,
    **settings: object,
) -> Producer:
    def connect(address: BrokerAddress) -> Connection:
        return FakeConnection(broker, address)  # type: ignore[return-value]  # all that is used

    defaults: dict[str, object] = {
        "partitioner": round_robin_partitioner(),
        "backoff_s": 0.0,
        "timeout_s": 10.0,
    }
    queueing = QueueRules(
        BatchRules(capacity=capacity, batch_count=batch_count, linger_s=linger_s),
        enqueue_timeout_s=enqueue_timeout_s,
    )
    named = {"queueing": queueing, "on_delivery": on_delivery}
    return producer_with(broker, connect, defaults | named | settings)


ProducerFactory = Callable[..., Producer]


@pytest.fixture
def open_producer() -> Iterator[ProducerFactory]:
    """Make asynchronous producers, closed at the end."""
    made: list[Producer] = []

    def make(broker: FakeBroker, **settings: object) -> Producer:
        made.append(make_producer(broker, **settings))  # type: ignore[arg-type]  # by name
        return made[-1]

    yield make
    for producer in made:
        with suppress(DeliveryFailedError):  # of messages a test has left in the queue
            producer.close(timeout_s=0)


def test_send_when_queued_then_delivered_and_told_where(open_producer: ProducerFactory) -> None:
    broker, reports = FakeBroker(), Reports()
    producer = open_producer(broker, on_delivery=reports)
    first = producer.send("t", [b"one", b"two"], key=b"k")
    second = producer.send("t", [b"three"])
    assert first.result(60) == 0
    assert second.result(60) == 26
    producer.flush()
    assert reports.all == [
        Report(T, 0, None, b"k", b"one"),
        Report(T, 13, None, b"k", b"two"),
        Report(T, 26, None, None, b"three"),
    ]
    assert reports.all[0].topic == "t"
    assert broker.log(T) == [(0, b"one"), (13, b"two"), (26, b"three")]


def test_send_when_messages_are_compressed_then_they_share_the_offset_of_their_batch(
    open_producer: ProducerFactory,
) -> None:
    broker, reports = FakeBroker(), Reports()
    producer = open_producer(
        broker, on_delivery=reports, codec=Codec.GZIP, batch_count=2, linger_s=NEVER_S
    )
    producer.send("t", [b"1" * 50, b"2" * 50, b"3" * 50, b"4" * 50])
    producer.flush()
    (written,) = broker.sets[T]
    first_bytes = int.from_bytes(written[:4], "big") + 4
    assert reports.offsets == [0, 0, first_bytes, first_bytes]
    assert [payload for _, payload in broker.log(T)] == [b"1" * 50, b"2" * 50, b"3" * 50, b"4" * 50]


def test_send_when_only_some_topics_are_compressed_then_others_are_not(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker()
    producer = open_producer(broker, codec=Codec.GZIP, compressed_topics=["small"])
    for topic in ("t", "small"):
        producer.send(topic, [b"x" * 500])
    producer.flush()
    sizes = {one.topic: len(sets[0]) for one, sets in broker.sets.items()}
    assert sizes["small"] < 100
    assert sizes["t"] == 510


def test_send_when_nothing_is_given_then_done_at_once(open_producer: ProducerFactory) -> None:
    producer = open_producer(FakeBroker())
    assert producer.send("t", []).result(0) == -1


def test_send_when_message_is_too_large_then_nothing_is_queued(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker()
    producer = open_producer(broker, max_message_bytes=3)
    with pytest.raises(MessageSizeTooLargeError, match="has 4 bytes; the limit is 3"):
        producer.send("t", [b"ok", b"long"])
    producer.flush()
    assert broker.publish_count == 0


def test_send_when_message_is_no_bytes_then_says_so_to_the_caller(
    open_producer: ProducerFactory,
) -> None:
    producer = open_producer(FakeBroker())
    with pytest.raises(TypeError, match="a message is str, not bytes"):
        producer.send("t", ["text"])


def test_send_when_buffer_changes_afterwards_then_what_was_given_is_sent(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker()
    producer = open_producer(broker, linger_s=NEVER_S)
    message = bytearray(b"first")
    producer.send("t", [message])
    message[:] = b"later"
    producer.flush()
    assert broker.log(T) == [(0, b"first")]


def test_send_when_batch_is_not_full_then_waits_for_flush(open_producer: ProducerFactory) -> None:
    broker = FakeBroker()
    producer = open_producer(broker, linger_s=NEVER_S, batch_count=3)
    last = producer.send("t", [b"1", b"2"])
    assert not last.wait(0)
    with pytest.raises(RequestTimeoutError, match=r"t\[0-0\] is not delivered after 0s"):
        last.result(0)
    assert broker.publish_count == 0
    producer.flush()
    assert last.is_done


def test_send_when_batch_is_full_then_goes_without_flush(open_producer: ProducerFactory) -> None:
    producer = open_producer(FakeBroker(), linger_s=NEVER_S, batch_count=2)
    assert producer.send("t", [b"1", b"2"]).wait(60)


def test_send_when_batch_is_old_then_goes_without_flush(open_producer: ProducerFactory) -> None:
    producer = open_producer(FakeBroker(), linger_s=0.05)
    assert producer.send("t", [b"1"]).wait(60)


def test_send_when_acks_are_none_then_reported_without_offset(
    open_producer: ProducerFactory,
) -> None:
    broker, reports = FakeBroker(), Reports()
    producer = open_producer(broker, on_delivery=reports, acks=Acks.NONE)
    producer.send("t", [b"1"])
    producer.flush()
    assert reports.all == [Report(T, -1, None, None, b"1")]
    assert broker.log(T) == [(0, b"1")]


def test_send_when_broker_refuses_a_set_then_its_messages_fail_and_later_ones_go_on(
    open_producer: ProducerFactory,
) -> None:
    broker, reports = FakeBroker([Act.REFUSE]), Reports()
    producer = open_producer(broker, on_delivery=reports)
    bad = producer.send("t", [b"bad"])
    producer.flush()
    producer.send("t", [b"good"])
    producer.flush()
    with pytest.raises(InvalidMessageError, match="refused"):
        bad.result()
    assert isinstance(reports.errors[b"bad"], InvalidMessageError)
    assert reports.errors[b"good"] is None
    assert broker.publish_count == 2


def test_send_when_broker_fails_for_a_while_then_sent_again_before_what_came_later(
    open_producer: ProducerFactory,
) -> None:
    acts = [Act.LOSE, Act.SHUT_DOWN, Act.LOSE_ANSWER]
    broker, reports = FakeBroker(acts), Reports()
    producer = open_producer(broker, on_delivery=reports)
    for number in range(5):
        producer.send("t", [b"%d" % number])
    producer.flush()
    assert [one.error for one in reports.all] == [None] * 5
    found = [payload for _, payload in broker.log(T)]
    assert list(dict.fromkeys(found)) == [b"%d" % number for number in range(5)]


def test_send_when_retries_are_spent_then_reported_with_the_last_error(
    open_producer: ProducerFactory,
) -> None:
    broker, reports = FakeBroker([Act.SHUT_DOWN, Act.LOSE]), Reports()
    producer = open_producer(broker, on_delivery=reports, retries=1)
    producer.send("t", [b"1"])
    producer.flush()
    (report,) = reports.all
    assert report.offset == -1
    assert isinstance(report.error, BrokerUnreachableError)


def test_send_when_sender_fails_in_a_way_nobody_thought_of_then_reported_and_goes_on(
    open_producer: ProducerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    broker, reports = FakeBroker([Act.BURST]), Reports()
    producer = open_producer(broker, on_delivery=reports)
    producer.send("t", [b"1"])
    producer.flush()
    assert str(reports.errors[b"1"]).startswith("failure while sending")
    assert producer.send("t", [b"2"]).result(60) == 0
    assert "nobody thought of this" in caplog.text


def test_send_when_report_raises_then_logged_and_goes_on(
    open_producer: ProducerFactory, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(reports: Sequence[Report]) -> None:
        raise ValueError("in the report")

    producer = open_producer(FakeBroker(), on_delivery=fail)
    producer.send("t", [b"1"])
    producer.flush()
    assert producer.send("t", [b"2"]).result(60) == 11
    assert "in the report" in caplog.text


def test_send_when_queue_is_full_and_may_not_wait_then_says_so_and_queues_nothing(
    open_producer: ProducerFactory,
) -> None:
    broker, reports = FakeBroker(), Reports()
    producer = open_producer(
        broker, on_delivery=reports, capacity=2, enqueue_timeout_s=0, linger_s=NEVER_S
    )
    producer.send("t", [b"1"])
    with pytest.raises(QueueFullError, match="1 messages wait for broker 0: there is no room for"):
        producer.send("t", [b"2", b"3"])
    producer.send("t", [b"4"])
    producer.flush()
    assert [one.message for one in reports.all] == [b"1", b"4"]


def test_send_when_queue_stays_full_then_says_so_after_the_timeout(
    open_producer: ProducerFactory,
) -> None:
    producer = open_producer(FakeBroker(), capacity=1, enqueue_timeout_s=0.05, linger_s=NEVER_S)
    producer.send("t", [b"1"])
    with pytest.raises(QueueFullError):
        producer.send("t", [b"2"])


def test_send_when_call_has_more_than_the_queue_then_waits_until_it_is_empty(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker()
    producer = open_producer(broker, capacity=2, enqueue_timeout_s=0)
    assert producer.send("t", [b"%d" % number for number in range(10)]).wait(60)
    assert len(broker.log(T)) == 10


def test_send_when_queue_is_full_then_waits_for_room_in_line(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker()
    broker.may_answer.clear()
    producer = open_producer(broker, capacity=1)
    producer.send("t", [b"under way"])
    assert broker.is_asked.wait(60)
    producer.send("t", [b"queued"])
    threads = [threading.Thread(target=producer.send, args=("t", [b"waiting"])) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert all(thread.is_alive() for thread in threads)
    assert broker.publish_count == 0
    broker.may_answer.set()
    for thread in threads:
        thread.join(60)
    producer.flush()
    assert [payload for _, payload in broker.log(T)] == [b"under way", b"queued"] + 3 * [b"waiting"]


def test_send_when_from_several_threads_then_each_keeps_its_order(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker([Act.LOSE_ANSWER, Act.TAKE, Act.LOSE])
    producer = open_producer(broker, capacity=50, batch_count=7, linger_s=0.01)

    def send(name: int) -> None:
        for number in range(300):
            producer.send("t", [b"%d:%d" % (name, number)])

    threads = [threading.Thread(target=send, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush()
    found: dict[bytes, list[int]] = defaultdict(list)
    for payload in dict.fromkeys(payload for _, payload in broker.log(T)):
        name, _, number = payload.partition(b":")
        found[name].append(int(number))
    assert found == {b"%d" % name: list(range(300)) for name in range(3)}


def test_send_when_in_a_report_then_never_waits(open_producer: ProducerFactory) -> None:
    broker = FakeBroker()
    failures: list[BrokerError] = []

    def send_more(reports: Sequence[Report]) -> None:
        if reports[0].message != b"first":
            return
        producer.send("t", [b"fits"])
        for forbidden in (
            lambda: producer.send("t", [b"one too many"]),
            producer.flush,
            producer.close,
        ):
            with pytest.raises(BrokerError) as caught:
                forbidden()
            failures.append(caught.value)

    producer = open_producer(broker, capacity=1, on_delivery=send_more)
    producer.send("t", [b"first"])
    producer.flush()
    producer.flush()
    assert isinstance(failures[0], QueueFullError)
    assert "flush cannot be called in a report" in str(failures[1])
    assert "close cannot be called in a report" in str(failures[2])
    assert [payload for _, payload in broker.log(T)] == [b"first", b"fits"]


def test_send_set_when_asynchronous_then_refused(open_producer: ProducerFactory) -> None:
    with pytest.raises(ConfigError, match="ready message sets"):
        open_producer(FakeBroker()).send_set(T, b"")


def test_flush_when_broker_does_not_answer_then_says_so_after_the_timeout(
    open_producer: ProducerFactory,
) -> None:
    broker = FakeBroker()
    broker.may_answer.clear()
    producer = open_producer(broker)
    producer.send("t", [b"1"])
    with pytest.raises(RequestTimeoutError, match=r"not delivered after 0\.05s"):
        producer.flush(timeout_s=0.05)
    broker.may_answer.set()
    producer.flush(timeout_s=60)


def test_close_when_messages_are_queued_then_sent_and_reported_before_it_returns() -> None:
    broker, reports = FakeBroker([Act.LOSE]), Reports()
    threads = set(threading.enumerate())
    producer = make_producer(broker, on_delivery=reports, linger_s=NEVER_S, batch_count=2)
    producer.send("t", [b"1", b"2", b"3"])
    producer.close()
    producer.close()
    assert reports.errors == {b"1": None, b"2": None, b"3": None}
    assert len(reports.all) == 3
    assert set(threading.enumerate()) <= threads


def test_close_when_broker_is_away_then_reports_errors_within_the_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    broker, reports = FakeBroker(), Reports()
    broker.is_away = True
    producer = make_producer(broker, on_delivery=reports, batch_count=1)
    delivery = producer.send("t", [b"1", b"2"])
    producer.send("t", [b"3"])
    producer.close(timeout_s=0.1)
    assert Counter(bytes(one.message) for one in reports.all) == {b"1": 1, b"2": 1, b"3": 1}
    assert all(isinstance(one.error, BrokerUnreachableError) for one in reports.all)
    with pytest.raises(BrokerUnreachableError):
        delivery.result()


def test_close_when_broker_does_not_answer_then_reports_errors_within_the_timeout() -> None:
    broker, reports = FakeBroker(), Reports()
    broker.may_answer.clear()
    producer = make_producer(broker, on_delivery=reports)
    producer.send("t", [b"1"])
    assert broker.is_asked.wait(60)
    producer.close(timeout_s=0.05)
    (report,) = reports.all
    assert isinstance(report.error, ProducerClosedError)


def test_close_when_a_message_waits_for_another_attempt_then_says_why_it_failed() -> None:
    broker, reports = FakeBroker([Act.LOSE] * 2), Reports()
    producer = make_producer(broker, on_delivery=reports, backoff_s=NEVER_S)
    producer.send("t", [b"1"])
    wait_until(lambda: broker.publish_count == 2, "the attempts without a wait")
    producer.close(timeout_s=1.0)  # time enough to see how the attempt ended
    assert "lost" in str(reports.all[0].error)


def test_send_when_producer_is_closed_then_refused() -> None:
    producer = make_producer(FakeBroker())
    producer.send("t", [b"1"])
    producer.close()
    with pytest.raises(ProducerClosedError):
        producer.send("t", [b"2"])


def test_send_when_no_lane_was_opened_before_the_close_then_refused() -> None:
    producer = make_producer(FakeBroker())
    producer.close()
    with pytest.raises(ProducerClosedError):
        producer.send("t", [b"2"])


def test_send_when_producer_is_closed_while_it_waits_for_room_then_told() -> None:
    broker = FakeBroker()
    broker.may_answer.clear()
    producer = make_producer(broker, capacity=1)
    producer.send("t", [b"1"])
    assert broker.is_asked.wait(60)
    producer.send("t", [b"2"])
    errors: list[BrokerError] = []

    def send() -> None:
        with pytest.raises(ProducerClosedError) as caught:
            producer.send("t", [b"3"])
        errors.append(caught.value)

    waiting = threading.Thread(target=send)
    waiting.start()
    with pytest.raises(DeliveryFailedError):
        producer.close(timeout_s=0.05)
    waiting.join(60)
    assert len(errors) == 1


ACTS = st.lists(
    st.sampled_from([Act.TAKE, Act.LOSE, Act.LOSE_ANSWER, Act.SHUT_DOWN, Act.REFUSE, Act.BURST]),
    max_size=12,
)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@settings(max_examples=60)
@given(
    acts=ACTS,
    calls=st.lists(st.integers(0, 4), max_size=20),
    batch_count=st.integers(1, 4),
    retries=st.integers(0, 2),
    closes_in_time=st.booleans(),
)
def test_messages_when_anything_fails_then_each_gets_one_report_that_is_true(
    codec: Codec,
    acts: list[Act],
    calls: list[int],
    batch_count: int,
    retries: int,
    closes_in_time: bool,
) -> None:
    logging.disable()
    broker, reports = FakeBroker(acts, partition_count=2), Reports()
    producer = make_producer(
        broker, on_delivery=reports, batch_count=batch_count, retries=retries, codec=codec
    )
    deliveries, sent, number = [], [], 0
    for count in calls:
        messages = [b"%d" % one for one in range(number, number + count)]
        number += count
        sent += messages
        deliveries.append(producer.send("t", messages))
    producer.close(timeout_s=60 if closes_in_time else 0)
    logging.disable(logging.NOTSET)

    assert Counter(bytes(one.message) for one in reports.all) == Counter(sent)
    assert all(delivery.is_done for delivery in deliveries)
    for partition in broker.partitions("t"):
        log = broker.log(partition)
        mine = [one for one in reports.all if one.partition == partition]
        acknowledged = [one for one in mine if one.error is None]
        assert {(one.offset, one.message) for one in acknowledged} <= set(log)
        first_times = list(dict.fromkeys(payload for _, payload in log))
        assert first_times == sorted(first_times, key=int)
        told = [int(bytes(one.message)) for one in mine]
        assert told == sorted(told)
