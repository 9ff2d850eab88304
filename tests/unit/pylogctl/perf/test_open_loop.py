"""Sending at a fixed rate, without a broker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError
from broker.producer.config import ProducerConfig
from broker.producer.delivery import Delivery
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from pylogctl.perf.open_loop import STAMP, LoopPlan, Schedule, TopicLeaders, send_on_schedule
from pylogctl.perf.produce import SizeRange

RATES = st.floats(0.01, 1e6)
PARTITION = TopicPartition("t", 0, 0)


def make_plan(*, rate: float = 1000.0, count: int = 100) -> LoopPlan:
    leaders = TopicLeaders({PARTITION: BrokerAddress(0, "127.0.0.1", 1)})
    return LoopPlan(leaders, 7, rate, count, SizeRange(20, 30), ProducerConfig(), 1.0, 1.0)


class StallingProducer:
    """Takes messages at once, but for one call; time only moves when somebody waits."""

    def __init__(self, *, stall_at: int = -1, stall_s: float = 0.0) -> None:
        self.now_ns = 1_000_000_000
        self.sent: list[tuple[int, list[bytes]]] = []
        self.error: BrokerError | None = None
        self._stall_at, self._stall_s = stall_at, stall_s

    def send(self, topic: str, payloads: list[bytes]) -> Delivery:
        self.sent.append((self.now_ns, payloads))
        if len(self.sent) == self._stall_at:
            self.sleep(self._stall_s)
        delivery = Delivery(PARTITION, b"")
        if self.error is not None:
            delivery.fail(self.error)
            delivery.is_done = True
        return delivery

    def flush(self) -> None:
        pass

    def sleep(self, seconds: float) -> None:
        self.now_ns += max(1, int(seconds * 1e9))

    @property
    def stamps(self) -> list[tuple[int, int, int]]:
        return [STAMP.unpack_from(one) for _, payloads in self.sent for one in payloads]


def run(
    plan: LoopPlan, producer: StallingProducer, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[int, float]:
    sent = send_on_schedule(
        plan,
        producer,  # type: ignore[arg-type]  # a stand-in
        is_stopped=is_stopped,
        monotonic_ns=lambda: producer.now_ns,
        sleep=producer.sleep,
    )
    return sent.message_count, sent.late_s


@given(st.integers(0, 10**12), RATES, st.integers(0, 10**6))
def test_a_message_is_due_at_its_time_and_not_before(
    first_ns: int, rate: float, number: int
) -> None:
    schedule = Schedule(first_ns, rate)
    due_ns = schedule.due_ns(number)
    assert schedule.due_by(due_ns) > number
    assert schedule.due_by(due_ns - 1) <= number


def test_nothing_is_due_before_the_first() -> None:
    assert Schedule(100, 1000.0).due_by(99) == 0


@given(RATES, st.integers(1, 300))
def test_every_message_is_sent_once_in_order_and_never_early(rate: float, count: int) -> None:
    producer = StallingProducer()
    assert run(make_plan(rate=rate, count=count), producer)[0] == count
    assert [number for _, number, _ in producer.stamps] == list(range(count))
    for now_ns, payloads in producer.sent:
        assert all(STAMP.unpack_from(one)[2] <= now_ns for one in payloads)
    assert all(20 <= len(one) <= 30 for _, payloads in producer.sent for one in payloads)


def test_a_stall_delays_no_message_due_meanwhile_on_paper() -> None:
    producer = StallingProducer(stall_at=10, stall_s=0.05)
    count, late_s = run(make_plan(rate=1000.0, count=100), producer)
    assert count == 100
    dues = [due_ns for _, _, due_ns in producer.stamps]
    assert {later - earlier for earlier, later in pairwise(dues)} == {1_000_000}
    assert late_s == pytest.approx(0.05, abs=0.0011)
    assert max(len(payloads) for _, payloads in producer.sent) >= 49


def test_when_stopped_it_says_how_many_were_sent() -> None:
    producer = StallingProducer()
    count, _ = run(make_plan(), producer, lambda: len(producer.sent) >= 5)
    assert count == len(producer.stamps) < 100


def test_a_batch_that_is_refused_ends_it() -> None:
    producer = StallingProducer()
    producer.error = BrokerError("no")
    with pytest.raises(BrokerError, match="no"):
        run(make_plan(), producer)
