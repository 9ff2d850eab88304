from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.consumer.chunk import Chunk
from broker.consumer.committer import AssignedPartition
from broker.consumer.membership import Lease
from broker.consumer.stream import ConsumerStream
from broker.errors import RetryStoreError
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.tools.retry import (
    InPlace,
    RetryingHandler,
    RetryMessage,
    RetryOutcome,
    RetryPolicy,
    RetryStore,
)
from broker.topic import MessagePosition, TopicPartition
from tests.doubles import FakeClock

PARTITION = TopicPartition("t", 0, 0)


class Work:
    """An application that fails as often as it is told to, for each payload."""

    def __init__(self, **failures: int) -> None:
        self.failures = failures
        self.tried: list[bytes] = []

    def __call__(self, message: RetryMessage) -> None:
        self.tried.append(message.payload)
        name = message.payload.decode()
        if self.failures.get(name, 0):
            self.failures[name] -= 1
            raise ValueError(f"no {name} today")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RetryStore]:
    with RetryStore(tmp_path) as store:
        yield store


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def waits() -> list[float]:
    return []


def make(
    work: Work,
    store: RetryStore,
    clock: FakeClock,
    waits: list[float],
    *,
    max_attempts: int | None = None,
) -> RetryingHandler:
    def pause(seconds: float) -> bool:
        waits.append(seconds)
        return False

    policy = RetryPolicy(max_attempts=max_attempts)
    return RetryingHandler(work, store, InPlace(2, 100), policy, clock, pause)


def message(payload: bytes, offset: int = 0) -> RetryMessage:
    return RetryMessage(PARTITION, offset, offset + 11, 0, payload)


def test_handle_when_a_try_in_place_succeeds_then_parks_nothing(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    work = Work(a=2)

    assert make(work, store, clock, waits).handle(message(b"a")) is RetryOutcome.DONE

    assert (work.tried, waits, len(store)) == ([b"a"] * 3, [0.1, 0.2], 0)


def test_handle_when_all_tries_in_place_fail_then_parks_the_message(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=9), store, clock, waits)

    assert handler.handle(message(b"a")) is RetryOutcome.SCHEDULED

    (entry,) = store.entries()
    assert (entry.attempts, entry.last_error) == (3, "no a today")
    assert entry.next_attempt_ms == clock.time_ms() + 1000


def test_handle_when_told_to_stop_while_waiting_then_parks_at_once(
    store: RetryStore, clock: FakeClock
) -> None:
    work = Work(a=9)
    handler = RetryingHandler(work, store, clock=clock, pause=lambda _seconds: True)

    assert handler.handle(message(b"a")) is RetryOutcome.SCHEDULED

    assert work.tried == [b"a"]


def test_handle_when_tried_as_often_as_allowed_then_is_dead_at_once(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=9), store, clock, waits, max_attempts=2)

    assert handler.handle(message(b"a")) is RetryOutcome.DEAD

    (entry,) = store.entries()
    assert (entry.attempts, entry.is_dead) == (2, True)


def test_handle_when_the_store_fails_then_raises_as_the_message_is_not_finished(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=9), store, clock, waits)
    store.close()
    with pytest.raises(RetryStoreError):
        handler.handle(message(b"a"))


def test_retry_due_when_the_time_has_not_come_then_tries_nothing(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=3), store, clock, waits)
    handler.handle(message(b"a"))

    assert handler.retry_due() == 0
    clock.advance(1)
    assert handler.retry_due() == 1
    assert len(store) == 0


def test_retry_due_when_it_fails_again_and_again_then_waits_longer_each_time(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=9), store, clock, waits)
    handler.handle(message(b"a"))
    found = []
    for wait_s in (1, 2, 4):
        clock.advance(wait_s)
        handler.retry_due()
        (entry,) = store.entries()
        assert entry.next_attempt_ms is not None
        found.append(entry.next_attempt_ms - clock.time_ms())

    assert found == [2000, 4000, 8000]


def test_retry_due_when_tried_as_often_as_allowed_then_keeps_it_as_dead(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=9), store, clock, waits, max_attempts=4)
    handler.handle(message(b"a"))
    clock.advance(1)
    handler.retry_due()
    clock.advance(1e6)

    assert handler.retry_due() == 0
    assert [one.is_dead for one in store.entries()] == [True]
    assert (handler.tally.scheduled, handler.tally.dead) == (1, 1)


def test_drain_when_all_are_given_then_tries_dead_ones_too(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    handler = make(Work(a=2, b=9), store, clock, waits, max_attempts=2)
    handler.handle(message(b"a", 0))
    handler.handle(message(b"b", 11))

    assert handler.drain(store.entries()) == 1

    assert [one.message.payload for one in store.entries()] == [b"b"]


def test_run_when_a_message_fails_then_later_ones_go_on_and_it_is_finished(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    stream, owned = stream_of(build_set([b"a", b"b", b"c"], Codec.NONE))
    work = Work(b=9)
    handler = make(work, store, clock, waits)
    handler.attempt = ending(stream, work, b"c")

    handler.run(stream)

    assert work.tried == [b"a", b"b", b"b", b"b", b"c"]
    assert [one.message for one in store.entries()] == [RetryMessage(PARTITION, 11, 22, 0, b"b")]
    assert owned.finished == 33


def test_run_when_messages_are_of_a_compressed_set_does_not_take_equal_ones_for_one(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    stream, _ = stream_of(build_set([b"a", b"a", b"z"], Codec.GZIP))
    work = Work(a=99)
    handler = make(work, store, clock, waits)
    handler.attempt = ending(stream, work, b"z")

    handler.run(stream)

    assert [one.message.inner for one in store.entries()] == [0, 1]


def test_run_when_nothing_comes_then_tries_parked_messages(
    store: RetryStore, clock: FakeClock, waits: list[float]
) -> None:
    store.add(message(b"z", 500), attempts=1, next_attempt_ms=0, error="why")
    stream, _ = stream_of(b"", timeout_s=0.01)
    handler = make(Work(), store, clock, waits)
    handler.attempt = ending(stream, Work(), b"z")

    handler.run(stream)

    assert len(store) == 0


def stream_of(data: bytes, *, timeout_s: float = 60) -> tuple[ConsumerStream, AssignedPartition]:
    """A stream that some bytes have arrived in."""
    lease = Lease()
    lease.until_s = float("inf")
    stream = ConsumerStream(
        "s",
        lease,
        max_chunks=4,
        timeout_s=timeout_s,
        on_room=lambda: None,
        on_restart=lambda _partition, _offset: None,
        next_good_message=lambda _partition, _offset: None,
    )
    owned = AssignedPartition(
        PARTITION, MessagePosition(0), thread_id="thread", committed=MessagePosition(0)
    )
    stream.assign(owned)
    stream.put(owned, Chunk(owned.partition, 0, data))
    return stream, owned


def ending(stream: ConsumerStream, work: Work, last: bytes) -> Work:
    """The same work, but the stream ends with a payload."""

    class Ending(Work):
        def __call__(self, message: RetryMessage) -> None:
            work(message)
            if message.payload == last:
                stream.end()

    return Ending()
