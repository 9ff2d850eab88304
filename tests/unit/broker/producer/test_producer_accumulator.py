from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from broker.errors import MessageSizeTooLargeError
from broker.producer.accumulator import Accumulator, OutgoingSet
from broker.producer.delivery import QueuedDelivery
from broker.producer.encoder import Packer
from broker.producer.settings import BatchRules, ProducerSettings
from broker.protocol.codec import Record
from broker.topic import NO_HOME, TopicPartition
from tests.doubles import FakeClock

A, B = TopicPartition("t", 0, 0), TopicPartition("t", 0, 1)
RECORDS = TopicPartition("t", NO_HOME, 0)


class Queue:
    """An accumulator with a clock, and short ways to use it."""

    def __init__(self, **rules: float) -> None:
        self.clock = FakeClock()
        self.accumulator = Accumulator(BatchRules(**rules))  # type: ignore[arg-type]  # by name

    def add(self, partition: TopicPartition, *payloads: bytes) -> bool:
        delivery = QueuedDelivery(partition, left_count=len(payloads), can_move=True)
        return self.accumulator.add(partition, payloads, delivery, self.clock.monotonic_s())

    def take(self) -> list[OutgoingSet]:
        return self.accumulator.take(self.clock.monotonic_s())

    def take_payloads(self) -> list[list[list[bytes]]]:
        """Return the payloads of each batch of each outgoing."""
        return [[batch.payloads for batch in outgoing.batches] for outgoing in self.take()]

    @property
    def wait_s(self) -> float | None:
        due_s = self.accumulator.due_s()
        return None if due_s is None else max(0.0, due_s - self.clock.monotonic_s())


def test_take_when_batch_is_not_full_then_nothing_until_it_is_old_enough() -> None:
    queue = Queue(batch_count=3, linger_s=5)
    queue.add(A, b"1")
    assert queue.take() == []
    assert queue.wait_s == 5
    queue.clock.advance(2)
    queue.add(A, b"2")
    assert queue.wait_s == 3
    queue.clock.advance(3)
    assert queue.take_payloads() == [[[b"1", b"2"]]]


def test_take_when_batch_is_full_by_count_then_at_once_and_alone() -> None:
    queue = Queue(batch_count=2, linger_s=5)
    queue.add(A, b"1", b"2", b"3")
    assert queue.wait_s == 0
    assert queue.take_payloads() == [[[b"1", b"2"]]]


def test_take_when_batches_are_full_then_one_parcel_has_them_all() -> None:
    queue = Queue(batch_count=2)
    queue.add(A, b"1", b"2", b"3", b"4")
    assert queue.take_payloads() == [[[b"1", b"2"], [b"3", b"4"]]]


def test_take_when_next_message_does_not_fit_then_batch_is_full_by_bytes() -> None:
    queue = Queue(batch_bytes=10)
    queue.add(A, b"123456")
    assert queue.take() == []
    queue.add(A, b"1234567")
    assert queue.take_payloads() == [[[b"123456"]]]


def test_take_when_message_is_larger_than_a_batch_then_has_one_to_itself() -> None:
    queue = Queue(batch_bytes=3)
    queue.add(A, b"1", b"12345", b"2")
    assert queue.take_payloads() == [[[b"1"], [b"12345"]]]


def test_take_when_partition_is_under_way_then_only_others() -> None:
    queue = Queue(batch_count=1)
    queue.add(A, b"1")
    (outgoing,) = queue.take()
    queue.add(A, b"2")
    queue.add(B, b"3")
    assert queue.take_payloads() == [[[b"3"]]]
    assert queue.wait_s is None
    queue.accumulator.finish(outgoing)
    assert queue.take_payloads() == [[[b"2"]]]


def test_take_when_some_messages_have_a_key_then_they_travel_without_the_others() -> None:
    queue = Queue(batch_count=10, linger_s=0)
    for number, key in enumerate([b"k", None, None, b"k"]):
        delivery = QueuedDelivery(A, key=key, left_count=1, can_move=key is None)
        queue.accumulator.add(A, [b"%d" % number], delivery, queue.clock.monotonic_s())
    taken = []
    while outgoing := next(iter(queue.take()), None):
        payloads = [payload for batch in outgoing.batches for payload in batch.payloads]
        taken.append((outgoing.can_move, payloads))
        queue.accumulator.finish(outgoing)
    assert taken == [(False, [b"0"]), (True, [b"1", b"2"]), (False, [b"3"])]


def test_finish_when_a_set_has_moved_then_its_partition_goes_on() -> None:
    queue = Queue(batch_count=1)
    queue.add(A, b"1")
    (outgoing,) = queue.take()
    outgoing.partition = B
    queue.add(A, b"2")
    queue.accumulator.finish(outgoing)
    assert queue.take_payloads() == [[[b"2"]]]


def test_take_when_a_request_is_full_then_partitions_take_turns() -> None:
    queue = Queue(batch_count=1, batch_bytes=16 << 20)
    queue.add(A, bytes(9 << 20))
    queue.add(B, b"1")
    (first,) = queue.take()
    assert first.partition == A
    queue.accumulator.finish(first)
    queue.add(A, bytes(9 << 20))
    assert [outgoing.partition for outgoing in queue.take()] == [B, A]


def test_take_when_a_partition_has_much_then_a_parcel_has_about_a_mebibyte() -> None:
    queue = Queue(batch_count=1)
    queue.add(A, *[bytes(400_000)] * 5)
    (outgoing,) = queue.take()
    assert len(outgoing.batches) == 3


def test_has_room_when_nothing_waits_then_for_any_number() -> None:
    queue = Queue(capacity=2)
    assert queue.accumulator.has_room(5, 0)
    queue.add(A, b"1")
    assert queue.accumulator.has_room(1, 0)
    assert not queue.accumulator.has_room(2, 0)


def test_has_room_when_messages_are_under_way_then_they_take_none() -> None:
    queue = Queue(capacity=1, batch_count=1)
    queue.add(A, b"1")
    assert not queue.accumulator.has_room(1, 0)
    queue.take()
    assert queue.accumulator.has_room(1, 0)


def test_add_when_sender_need_not_know_then_says_so() -> None:
    queue = Queue(batch_count=3)
    assert queue.add(A, b"1")
    assert not queue.add(A, b"2")
    assert queue.add(A, b"3")
    assert queue.add(A, b"4")


def test_close_batches_when_called_then_all_is_due_and_told() -> None:
    queue = Queue(batch_count=2)
    queue.add(A, b"1", b"2")
    (outgoing,) = queue.take()
    queue.add(A, b"3")
    queue.add(B, b"4")
    batches = queue.accumulator.close_batches()
    assert [batch.payloads for batch in batches] == [[b"1", b"2"], [b"3"], [b"4"]]
    queue.accumulator.finish(outgoing)
    assert queue.take_payloads() == [[[b"3"]], [[b"4"]]]


def test_take_all_when_some_is_in_flight_then_has_that_first() -> None:
    queue = Queue(batch_count=1)
    queue.add(A, b"1")
    (outgoing,) = queue.take()
    queue.add(A, b"2")
    found = [batch.payloads for one in queue.accumulator.take_all() for batch in one.batches]
    assert found == [[b"1"], [b"2"]]
    assert queue.accumulator.is_empty
    queue.accumulator.finish(outgoing)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([A, B]), st.integers(1, 5)),
        st.tuples(st.just("take"), st.just(None), st.just(0)),
        st.tuples(st.just("advance"), st.just(None), st.integers(1, 3)),
    ),
    max_size=60,
)


@given(steps=STEPS, batch_count=st.integers(1, 4), batch_bytes=st.integers(1, 6))
def test_messages_when_anything_happens_then_each_comes_out_once_and_in_order(
    steps: list[tuple[str, object, int]], batch_count: int, batch_bytes: int
) -> None:
    queue = Queue(batch_count=batch_count, batch_bytes=batch_bytes, linger_s=2)
    added: dict[TopicPartition, list[bytes]] = defaultdict(list)
    sent: dict[TopicPartition, list[bytes]] = defaultdict(list)

    def take() -> None:
        for outgoing in queue.take():
            for batch in outgoing.batches:
                assert 0 < len(batch.payloads) <= batch_count
                assert batch.size_bytes <= batch_bytes or len(batch.payloads) == 1
                sent[outgoing.partition] += batch.payloads
            queue.accumulator.finish(outgoing)

    number = 0
    for what, which, count in steps:
        if what == "add":
            assert isinstance(which, TopicPartition)
            payloads = [b"%d" % one for one in range(number, number + count)]
            number += count
            queue.add(which, *payloads)
            added[which] += payloads
        elif what == "take":
            take()
        else:
            queue.clock.advance(count)
        waiting = sum(map(len, added.values())) - sum(map(len, sent.values()))
        assert queue.accumulator.message_count <= waiting
    while (wait_s := queue.wait_s) is not None:
        queue.clock.advance(wait_s)
        take()
    assert sent == added
    assert queue.accumulator.is_empty
    assert queue.accumulator.message_count == 0


def record_queue(limit: int = 1 << 20) -> Accumulator:
    rules = BatchRules(100, batch_bytes=1 << 20, linger_s=0.0)
    return Accumulator(rules, max_record_batch_bytes=limit)


def add_records(queue: Accumulator, *sizes: int, key: bytes = b"k") -> list[QueuedDelivery]:
    made = []
    for size in sizes:
        record = Record(0, 1, key, b"")
        made.append(QueuedDelivery(RECORDS, left_count=1, record=record))
        queue.add(RECORDS, [bytes(size)], made[-1], 0.0)
    return made


def sizes_of(outgoing: OutgoingSet) -> list[list[int]]:
    return [[len(one) for one in batch.payloads] for batch in outgoing.batches]


def test_take_when_the_topic_has_records_then_one_batch_a_set_below_the_limit() -> None:
    queue = record_queue(limit=1000)
    add_records(queue, *[300] * 5)
    packer, taken = Packer(ProducerSettings()), []
    while found := queue.take(1.0):
        (outgoing,) = found
        outgoing.encode(packer)
        assert len(outgoing.message_set) <= 1000
        taken += sizes_of(outgoing)
        queue.finish(outgoing)
    assert taken == [[300, 300], [300, 300], [300]]


def test_add_when_keys_and_headers_are_long_then_they_count_as_well() -> None:
    queue = record_queue(limit=1000)
    add_records(queue, 10, 10, 10, key=bytes(400))
    (outgoing,) = queue.take(1.0)
    assert sizes_of(outgoing) == [[10, 10]]


def test_take_back_when_a_batch_of_records_is_too_large_then_it_is_split() -> None:
    queue = record_queue()
    deliveries = add_records(queue, 300, 300, 900, 300, 300)
    flushed = queue.close_batches()
    (outgoing,) = queue.take(1.0)
    outgoing.encode(Packer(ProducerSettings()))
    queue.take_back(outgoing, 800)
    assert sizes_of(outgoing) == [[900]]
    outgoing.complete_batches(-1, MessageSizeTooLargeError("above 800"), None, logs=False)
    queue.finish(outgoing)
    offset = 0
    while found := queue.take(1.0):
        (outgoing,) = found
        assert sizes_of(outgoing) == [[300, 300]]
        outgoing.encode(Packer(ProducerSettings()))
        outgoing.complete_batches(offset, None, None, logs=False)
        offset += outgoing.offset_span
        queue.finish(outgoing)
    assert [one.base_offset for one in deliveries] == [0, 1, -1, 2, 3]
    assert all(one.is_done for one in flushed)
    assert queue.is_empty


def test_take_back_when_a_record_is_refused_again_then_it_fails() -> None:
    queue = record_queue()
    add_records(queue, 300)
    (outgoing,) = queue.take(1.0)
    queue.take_back(outgoing, 800)
    outgoing.complete_batches(-1, None, None, logs=False)
    queue.finish(outgoing)
    (outgoing,) = queue.take(1.0)
    queue.take_back(outgoing, 800)
    assert sizes_of(outgoing) == [[300]]
    queue.finish(outgoing)
    assert queue.is_empty
