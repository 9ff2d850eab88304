"""The order in which changes of several brokers are shown while they come."""

from __future__ import annotations

from broker.admin.changes import Ordering
from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import TopicPartition

PARTITION = TopicPartition("t", 0, 0)
DECIDED = LoggedChange(ChangeKind.DECIDED, 1000, 0, 1, PARTITION, 3, 1, (1, 2), 7)
LEADS = LoggedChange(ChangeKind.LEADS, 990, 1, 1, PARTITION, 3, 1, (1, 2), 7)
LATER = LoggedChange(ChangeKind.LEADS, 5000, 2, 1, TopicPartition("t", 0, 1), 1, 2, (2,), 1)


def test_ordering_when_a_decision_is_read_a_round_after_its_effect_then_comes_first() -> None:
    order = Ordering()

    assert order.take([LEADS]) == []
    assert order.take([DECIDED]) == [DECIDED, LEADS]
    assert order.take([]) == []


def test_ordering_when_nothing_else_comes_then_a_change_is_held_for_one_round() -> None:
    order = Ordering()

    assert order.take([DECIDED]) == []
    assert order.take([LATER]) == [DECIDED]
    assert order.take([]) == [LATER]


def test_ordering_when_it_ends_then_what_is_held_is_not_lost() -> None:
    order = Ordering()
    order.take([LATER, DECIDED])

    assert order.take_rest() == [DECIDED, LATER]
    assert order.take_rest() == []


def test_ordering_when_a_broker_was_away_then_its_changes_come_late() -> None:
    order = Ordering()
    order.take([LATER])
    order.take([])

    assert order.take([LEADS]) == []
    assert order.take([]) == [LEADS]
