"""The rate at which bytes are granted, in a time of the test's own."""

from __future__ import annotations

from broker.server.cluster.throttle import NO_THROTTLE, Throttle

KIB = 1 << 10
MIB = 1 << 20


def throttle(bytes_per_s: int) -> Throttle:
    made = Throttle()
    made.set(bytes_per_s, 0.0)
    return made


def copied(one: Throttle, start_s: float, end_s: float, *, wanted: int = MIB) -> int:
    """How much is copied by a fetch after the other, where each takes no time."""
    total, now_s = 0, start_s
    while now_s < end_s:
        granted = one.reserve(wanted, 0, now_s)
        one.settle(granted, granted)
        total += granted
        now_s = max(now_s + 0.001, one.due_s(now_s)) if not granted else now_s
    return total


def test_reserve_when_there_is_no_throttle_then_all_is_granted_at_once() -> None:
    one = Throttle()

    assert [one.reserve(MIB, 0, 0.0) for _ in range(3)] == [MIB] * 3
    assert one.due_s(7.0) == 7.0


def test_reserve_when_throttled_then_no_more_is_copied_than_the_rate_and_one_piece() -> None:
    for rate in (20 * KIB, MIB, 50 * MIB):
        total = copied(throttle(rate), 0.0, 20.0)

        assert 0.97 * 20 * rate <= total <= 20 * rate + 2 * max(16 * KIB, rate // 4)


def test_reserve_when_nothing_was_copied_for_long_then_little_is_saved_up() -> None:
    one = throttle(MIB)
    copied(one, 0.0, 1.0)

    assert copied(one, 1000.0, 1001.0) <= 1.75 * MIB


def test_reserve_when_a_message_is_larger_than_a_piece_then_it_is_granted_and_waited_for() -> None:
    one = throttle(MIB)

    assert one.reserve(8 * MIB, 8 * MIB, 0.0) == 8 * MIB
    assert one.reserve(MIB, 0, 7.9) == 0
    assert one.due_s(7.9) == 8.0
    assert one.reserve(MIB, 0, 8.0) > 0


def test_settle_when_less_came_than_was_reserved_then_the_rest_is_granted_again() -> None:
    one = throttle(MIB)
    granted = one.reserve(MIB, 0, 0.0)
    assert one.reserve(MIB, 0, 0.0) == 0

    one.settle(granted, 0)

    assert one.reserve(MIB, 0, 0.0) == granted


def test_set_when_raised_lowered_and_lifted_then_the_next_grant_follows_it() -> None:
    one = throttle(100 * MIB)
    one.reserve(64 * MIB, 64 * MIB, 0.0)

    one.set(16 * KIB, 0.0)
    assert one.reserve(MIB, 0, 0.9) == 0
    assert one.due_s(0.9) == 1.0  # one piece of 16 KiB, not 64 MiB

    one.set(MIB, 0.9)
    assert one.due_s(0.9) < 0.91

    one.set(NO_THROTTLE, 0.9)
    assert one.reserve(5 * MIB, 0, 0.9) == 5 * MIB
    assert one.bytes_per_s == NO_THROTTLE


def test_set_when_the_rate_is_the_same_then_what_is_owed_stays_owed() -> None:
    one = throttle(MIB)
    one.reserve(4 * MIB, 4 * MIB, 0.0)

    one.set(MIB, 1.0)

    assert one.due_s(1.0) == 4.0
