"""How long a failed login waits, and those that come after it, by address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.server.requests.failure_delays import MAX_WAIT_S, FailureDelays
from tests.doubles import FakeClock


def nothing() -> None:
    """Stand for what goes on after a wait."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def delays(clock: FakeClock) -> Iterator[FailureDelays]:
    made = FailureDelays(clock)
    yield made
    made.stop()


def fail(
    delays: FailureDelays, address: str = "10.0.0.1", user: str = "alice", times: int = 1
) -> list[float]:
    return [delays.after_failure(address, user, nothing) for _ in range(times)]


def test_failures_of_a_user_at_an_address_are_each_answered_later_and_others_at_once(
    delays: FailureDelays, clock: FakeClock
) -> None:
    waits = fail(delays, times=1000)

    assert waits[:8] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    assert set(waits[8:]) == {5.0}
    assert fail(delays, "10.0.0.2") == pytest.approx([0.1])
    assert fail(delays, user="bob") == pytest.approx([0.1])
    assert delays.take_turn("10.0.0.3", "alice") == 0.0
    clock.advance(601)
    assert fail(delays) == pytest.approx([0.1])


def test_logins_when_the_user_has_failed_there_then_are_judged_one_after_the_other(
    delays: FailureDelays, clock: FakeClock
) -> None:
    fail(delays, times=5)  # 1.6 s

    waits = [delays.take_turn("10.0.0.1", "alice") for _ in range(2000)]

    assert waits[:6] == pytest.approx([1.6, 3.2, 4.8, 6.4, 8.0, 9.6])
    assert min(waits[6:]) > MAX_WAIT_S  # which have no turn
    assert delays.take_turn("10.0.0.2", "alice") == 0.0
    assert delays.take_turn("10.0.0.1", "bob") == 0.0
    clock.advance(601)
    assert delays.take_turn("10.0.0.1", "alice") == 0.0


def test_logins_when_an_address_has_failed_as_many_users_then_ten_a_second_are_judged(
    delays: FailureDelays,
) -> None:
    for number in range(10):
        fail(delays, user=f"user-{number}")

    waits = [delays.take_turn("10.0.0.1", f"other-{number}") for number in range(200)]

    assert waits[:3] == pytest.approx([0.0, 0.1, 0.2])
    assert sum(wait_s <= MAX_WAIT_S for wait_s in waits) in (100, 101)
    assert delays.take_turn("10.0.0.2", "other-1") == 0.0


def test_logins_when_one_user_is_slow_then_others_of_a_failed_address_have_turns(
    delays: FailureDelays,
) -> None:
    fail(delays, times=20)  # 5 s
    waits = [delays.take_turn("10.0.0.1", "alice") for _ in range(2)]
    assert waits == pytest.approx([5.0, 10.0])
    assert delays.take_turn("10.0.0.1", "bob") == pytest.approx(0.2)


def test_failures_when_the_user_logs_in_from_there_then_forgotten(delays: FailureDelays) -> None:
    fail(delays, times=3)
    delays.forget("10.0.0.1", "alice")
    assert {delays.take_turn("10.0.0.1", "alice") for _ in range(1000)} == {0.0}


def test_failures_of_an_ipv6_network_count_together(delays: FailureDelays) -> None:
    fail(delays, "2001:db8::1")
    assert fail(delays, "2001:db8::ffff") == pytest.approx([0.2])
    assert fail(delays, "2001:db8:1::1") == pytest.approx([0.1])
    assert fail(delays, "fe80::1%eth0") == pytest.approx([0.1])


def test_addresses_when_there_are_very_many_then_the_oldest_are_forgotten(
    delays: FailureDelays,
) -> None:
    for number in range(10_001):
        fail(delays, f"10.0.{number >> 8}.{number & 255}")
    assert fail(delays, "10.0.0.0") == pytest.approx([0.1])
    assert fail(delays, "10.0.39.16") == pytest.approx([0.2])


def test_stop_when_answers_wait_then_runs_them(clock: FakeClock) -> None:
    delays = FailureDelays(clock)
    answered: list[int] = []
    delays.after_failure("10.0.0.1", "alice", lambda: answered.append(1))
    delays.run_later(0.2, lambda: answered.append(2))
    assert not answered
    delays.stop()
    assert answered == [1, 2]
    delays.after_failure("10.0.0.1", "alice", lambda: answered.append(3))
    assert answered == [1, 2, 3]
