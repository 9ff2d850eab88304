"""What a sender knows of what it sent, above all when a broker fails."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable

import pytest

from broker.errors import (
    AcknowledgedLossError,
    ArgumentError,
    BrokerError,
    BrokerStoppedError,
    BrokerUnreachableError,
    InvalidMessageError,
    StorageError,
)
from broker.producer.dispatcher import Moved, Waiting
from broker.producer.producer import Delivery
from broker.protocol.codec import decode, encode
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition
from broker.units import Pacer, Rate
from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.cli.process import StopRequest
from pylogctl.produce.broker_loss import FAIL, BrokerWaits, LossRule, parse_loss_rule
from pylogctl.produce.sender import Confirmed, MessageBatch, Sender
from tests.doubles import FakeClock

HERE, THERE = TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)
LOST = BrokerUnreachableError("lost broker 0")
STOPPED = BrokerStoppedError("broker 0 was stopped")


class Window:
    """A sink whose deliveries end when the test says so."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.flush_error: BrokerError | None = None
        self.flush_count = 0
        self.arrived: list[int] = []
        self.readable_error: BrokerError | None = None

    def message_limit(self, partition: TopicPartition) -> int:
        return 1 << 20

    def send_set(
        self,
        partition: TopicPartition,
        message_set: Buffer,
        on_complete: Callable[[Delivery], None] | None = None,
        *,
        can_move: bool = False,
    ) -> Delivery:
        delivery = Delivery(partition, message_set, None, on_complete, can_move=can_move)
        self.deliveries.append(delivery)
        return self.deliveries[-1]

    def complete(self, place: int, error: BrokerError | None = None) -> None:
        self.deliveries[place].complete(10 * place, error)

    def poll(self) -> None:
        for place in self.arrived:
            self.complete(place)
        self.arrived = []

    def flush(self) -> None:
        self.flush_count += 1
        if self.flush_error is not None:
            error, self.flush_error = self.flush_error, None
            raise error
        for place, delivery in enumerate(self.deliveries):
            if not delivery.is_done:
                self.complete(place)

    def wait_until_readable(self) -> None:
        assert self.readable_error is not None, "not asked for"
        raise self.readable_error


def batch(first: int, *payloads: bytes, partition: TopicPartition = HERE) -> MessageBatch:
    return MessageBatch(partition, encode(payloads), range(first, first + len(payloads)))


def make_sender(sink: Window, **settings: object) -> Sender:
    defaults: dict[str, object] = {"refused": _refuse}
    return Sender(sink, **(defaults | settings))  # type: ignore[arg-type]  # settings by name


def _refuse(refused: MessageBatch, error: BrokerError) -> None:
    raise error


def test_sender_when_acknowledged_counts_messages_and_bytes() -> None:
    sink = Window()
    confirmed: list[Confirmed] = []
    sender = make_sender(sink, observers=[confirmed.append])
    sender.send(batch(1, b"a", b"bc"))
    sender.send(batch(3, b"def"))
    assert sender.message_count == 0
    sender.flush()
    assert (sender.partitions, sender.payload_bytes) == ({HERE: 3}, 6)
    assert [(list(one.batch.numbers), one.base_offset) for one in confirmed] == [
        ([1, 2], 0),
        ([3], 10),
    ]


def test_sender_when_the_broker_is_lost_says_what_is_known() -> None:
    sink = Window()
    sender = make_sender(sink)
    for number in range(1, 5):
        sender.send(batch(number, b"x"))
    sink.complete(0)
    sink.complete(1)
    for place in (2, 3):
        sink.complete(place, LOST)
    sink.flush_error = LOST
    with pytest.raises(CliError) as caught:
        sender.flush()
    assert caught.value.status is ExitStatus.UNREACHABLE
    assert caught.value.message == (
        "lost broker 0; 2 messages confirmed, 2 sent and not confirmed, from message 3 on"
    )
    assert caught.value.details == {"confirmed": 2, "first_unconfirmed": 3}
    assert sender.has_failed


def test_sender_when_the_barrier_fails_then_says_what_is_confirmed() -> None:
    sink = Window()
    sink.readable_error = LOST
    sender = make_sender(sink)
    sender.send(batch(1, b"x", b"y"))
    sink.complete(0)
    sender.flush()
    with pytest.raises(CliError) as caught:
        sender.wait_until_readable()
    assert caught.value.status is ExitStatus.UNREACHABLE
    assert caught.value.message == (
        "lost broker 0; 2 messages confirmed, and not known to be readable yet"
    )


def test_sender_when_one_broker_is_lost_still_hears_the_other() -> None:
    sink = Window()
    sender = make_sender(sink)
    sender.send(batch(1, b"x"))
    sender.send(batch(2, b"y", partition=THERE))
    sink.complete(0, LOST)
    sink.flush_error = LOST
    with pytest.raises(CliError, match="1 message confirmed, 1 sent and not"):
        sender.flush()
    assert sender.partitions == {THERE: 1}


def sent_payloads(sink: Window, partition: TopicPartition) -> list[bytes]:
    """Return what was acknowledged in a partition, in order."""
    return [
        payload
        for one in sink.deliveries
        if one.partition == partition and one.is_done and one.error is None
        for _, _, payload in decode(one.message_set, 0).messages
    ]


def test_sender_when_a_batch_has_moved_then_later_ones_follow_it() -> None:
    sink = Window()
    sender = make_sender(sink, can_move=True)
    sender.send(batch(1, b"1"))
    sender.note_move(Moved(HERE, THERE, sink.deliveries, STOPPED))
    sink.deliveries[0].partition = THERE
    sender.send(batch(2, b"2"))
    sender.note_move(Moved(THERE, HERE, sink.deliveries[1:], STOPPED))
    sink.deliveries[1].partition = HERE
    sender.send(batch(3, b"3"))
    sender.flush()
    assert sent_payloads(sink, THERE) == [b"1"]
    assert sent_payloads(sink, HERE) == [b"2", b"3"]
    assert sender.partitions == {HERE: 2, THERE: 1}
    assert all(one.can_move for one in sink.deliveries)


def test_sender_when_messages_are_lost_then_says_what_is_confirmed() -> None:
    sink = Window()
    sink.readable_error = AcknowledgedLossError("messages before offset 7 are gone")
    sender = make_sender(sink)
    sender.send(batch(1, b"x", b"y"))
    sender.flush()
    with pytest.raises(CliError) as caught:
        sender.wait_until_readable()
    assert caught.value.status is ExitStatus.UNREACHABLE
    assert caught.value.message == (
        "messages before offset 7 are gone; 2 messages confirmed, and not all readable"
    )


def wait_of(seconds: float, *partitions: TopicPartition, limit_s: float = 120) -> Waiting:
    return Waiting(partitions or (HERE,), LOST, seconds, limit_s)


def test_waits_when_they_last_then_are_told_once_each_with_their_limit() -> None:
    said: list[str] = []
    waits = BrokerWaits(StopRequest(), said.append)
    for seconds in (0.0, 2.9, 3.1, 7.0, 60.0):
        assert waits.on_wait(wait_of(seconds))
    assert said == ["lost broker 0; waiting up to 2m00s for the leader of t[0-0]"]
    for seconds in (0.1, 4.0, 5.0):
        assert waits.on_wait(wait_of(seconds, THERE, HERE, limit_s=math.inf))
    assert said[1:] == ["lost broker 0; waiting for the leader of t[1-0] and 1 more"]


def test_waits_when_a_signal_came_then_end() -> None:
    stop = StopRequest()
    waits = BrokerWaits(stop, print)
    stop.note(signal.SIGTERM)
    assert not waits.on_wait(wait_of(0.0))


def test_moves_when_a_broker_is_lost_then_are_told_once_with_what_can_be_twice() -> None:
    said: list[str] = []
    waits = BrokerWaits(StopRequest(), said.append)
    sets = [Delivery(HERE, encode([b"1", b"2"])), Delivery(HERE, encode([b"3"]))]
    for _ in range(2):
        waits.on_move(Moved(HERE, THERE, sets, LOST))
    waits.on_move(Moved(THERE, HERE, sets[1:], STOPPED))
    assert said == [
        "lost broker 0; going on with t[1-0]; 3 messages that it has not confirmed can be stored "
        "twice",
        "broker 0 was stopped; going on with t[0-0], and what it has confirmed can be read when it "
        "is back",
    ]


def test_poll_when_acknowledgements_have_come_then_takes_those_alone() -> None:
    sink = Window()
    sender = make_sender(sink)
    for number in (1, 2):
        sender.send(batch(number, b"x"))
    sink.arrived = [0]
    sender.poll()
    assert (sender.message_count, sink.flush_count) == (1, 0)


@pytest.mark.parametrize(
    ("text", "chosen_by", "rule"),
    [
        (None, "", LossRule(moves=True, wait_s=120)),
        (None, "--key", LossRule(moves=False, wait_s=120)),
        ("move", "", LossRule(moves=True, wait_s=120)),
        ("move:1m", "", LossRule(moves=True, wait_s=60)),
        ("wait", "", LossRule(moves=False, wait_s=math.inf)),
        ("wait:500ms", "--partition", LossRule(moves=False, wait_s=0.5)),
        ("fail", "--key", FAIL),
    ],
)
def test_loss_rule_when_parsed_then_moves_only_what_the_producer_may_place(
    text: str | None, chosen_by: str, rule: LossRule
) -> None:
    assert parse_loss_rule(text, choice_of_partition=chosen_by, wait_s=120) == rule


@pytest.mark.parametrize(
    ("text", "chosen_by", "reason"),
    [
        ("stay", "", "none of move, wait and fail"),
        ("fail:1m", "", "none of move, wait and fail"),
        ("wait:soon", "", "soon"),
        ("move", "--key", "cannot be used with --key"),
    ],
)
def test_loss_rule_when_invalid_then_refused(text: str, chosen_by: str, reason: str) -> None:
    with pytest.raises((ArgumentError, UsageError), match=reason):
        parse_loss_rule(text, choice_of_partition=chosen_by, wait_s=120)


def test_sender_when_the_disk_is_full_ends_with_a_remote_error() -> None:
    sink = Window()
    sender = make_sender(sink)
    sender.send(batch(1, b"x"))
    sink.complete(0, StorageError("disk full"))
    with pytest.raises(
        CliError, match="disk full; 1 message confirmed, 1 sent and not confirmed, from message 1"
    ) as caught:
        sender.send(batch(2, b"y"))
    assert caught.value.status is ExitStatus.REMOTE


def test_sender_when_a_set_is_refused_tells_and_goes_on() -> None:
    refused: list[MessageBatch] = []
    sink = Window()
    sender = make_sender(sink, refused=lambda one, error: refused.append(one))
    sender.send(batch(1, b"x"))
    sender.send(batch(2, b"y"))
    sink.complete(0, InvalidMessageError("bad"))
    sender.flush()
    assert [list(one.numbers) for one in refused] == [[1]]
    assert sender.message_count == 1


def test_sender_when_synchronous_waits_after_each_batch() -> None:
    sink = Window()
    sender = make_sender(sink, sync=True)
    sender.send(batch(1, b"x"))
    sender.send(batch(2, b"y"))
    assert (sink.flush_count, sender.message_count) == (2, 2)


def test_sender_when_nothing_is_in_flight_does_not_wait() -> None:
    sink = Window()
    make_sender(sink).flush()
    assert sink.flush_count == 0


def test_sender_when_run_dry_counts_all_the_same() -> None:
    sender = Sender(None, refused=_refuse)
    sender.send(batch(1, b"x", b"y"))
    sender.flush()
    assert sender.partitions == {HERE: 2}


@pytest.mark.parametrize(
    ("rate", "amounts", "waits"),
    [
        (Rate(10, in_bytes=False), [(1, 0), (1, 0), (5, 0), (1, 0)], [0.1, 0.1, 0.5]),
        (Rate(100, in_bytes=True), [(1, 50), (1, 10)], [0.5]),
    ],
)
def test_pacer_when_asked_for_more_waits_so_long_that_the_rate_holds(
    rate: Rate, amounts: list[tuple[int, int]], waits: list[float]
) -> None:
    clock = FakeClock()
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        clock.advance(seconds)

    pacer = Pacer(rate, clock, wait)
    for messages, size in amounts:
        pacer.wait_for(messages, size)
    assert waited == pytest.approx(waits)


def test_pacer_after_a_pause_does_not_catch_up() -> None:
    clock = FakeClock()
    waited: list[float] = []
    pacer = Pacer(Rate(1, in_bytes=False), clock, waited.append)
    pacer.wait_for(1, 0)
    clock.advance(100)
    pacer.wait_for(1, 0)
    pacer.wait_for(1, 0)
    assert waited == pytest.approx([1.0])


@pytest.mark.parametrize(("rate", "burst"), [(1, 1), (5000, 250)])
def test_pacer_lets_a_twentieth_of_a_second_go_at_once(rate: int, burst: int) -> None:
    assert Rate(rate, in_bytes=False).burst == burst
