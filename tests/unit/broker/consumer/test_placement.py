"""Which broker serves a partition, since when it fails, and when to try again."""

from __future__ import annotations

from broker.consumer.placement import Placement
from broker.topic import TopicPartition

PARTITION = TopicPartition("t", 1, 0)


def test_fail_when_repeated_then_waits_grow_up_to_the_longest_and_the_start_stays() -> None:
    placement: Placement[int] = Placement(longest_wait_s=0.05)
    waits_s = [placement.fail(PARTITION, 10.0 + n) for n in range(12)]
    assert waits_s[0] == 0
    assert 0.01 <= waits_s[1] <= 0.02
    assert waits_s[-1] == 0.05
    assert placement.retry_at_s(PARTITION) == 21.05
    assert placement.failing_since_s(PARTITION, 30.0) == 10.0


def test_fail_when_the_attempt_began_before_then_it_fails_since_then() -> None:
    placement: Placement[int] = Placement()
    placement.fail(7, 10.0, since_s=8.0)
    placement.fail(7, 12.0, since_s=11.0)
    assert placement.failing_since_s(7, 12.0) == 8.0


def test_attempt_when_it_begins_then_no_retry_is_due_and_failures_still_count() -> None:
    placement: Placement[int] = Placement()
    placement.fail(PARTITION, 1.0)
    placement.attempt(PARTITION)
    placement.attempt(7)  # has not failed
    assert placement.retry_at_s(PARTITION) is None
    assert placement.retry_at_s(7) is None
    assert placement.fail(PARTITION, 2.0) > 0


def test_recover_when_it_failed_then_is_as_new() -> None:
    placement: Placement[int] = Placement()
    placement.fail(PARTITION, 1.0)
    assert placement.recover(PARTITION)
    assert not placement.recover(PARTITION)
    assert placement.failing_since_s(PARTITION, 5.0) == 5.0
    assert placement.fail(PARTITION, 5.0) == 0


def test_server_when_it_fails_then_its_partitions_do_not() -> None:
    placement: Placement[int] = Placement()
    placement.server_of[PARTITION] = 7
    placement.fail(7, 1.0)
    assert placement.retry_at_s(PARTITION) is None
    assert placement.server_of == {PARTITION: 7}
