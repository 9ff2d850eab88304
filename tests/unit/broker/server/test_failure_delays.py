"""How long a failed login waits, and those that come after it, by address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.server.requests.failure_delays import FailureDelays
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


def test_failures_of_an_address_are_each_answered_later_and_others_at_once(
    delays: FailureDelays, clock: FakeClock
) -> None:
    waits = [delays.after_failure("10.0.0.1", nothing) for _ in range(1000)]

    assert waits[:8] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    assert set(waits[8:]) == {5.0}
    assert delays.after_failure("10.0.0.2", nothing) == pytest.approx(0.1)
    assert delays.before_attempt("10.0.0.3", nothing) == 0.0
    clock.advance(601)
    assert delays.after_failure("10.0.0.1", nothing) == pytest.approx(0.1)


def test_attempt_when_the_address_has_failed_then_waits_until_that_is_over(
    delays: FailureDelays, clock: FakeClock
) -> None:
    delays.after_failure("10.0.0.1", nothing)
    delays.after_failure("10.0.0.1", nothing)
    begun: list[str] = []
    clock.advance(0.05)

    assert delays.before_attempt("10.0.0.1", lambda: begun.append("late")) == pytest.approx(0.15)
    assert delays.before_attempt("10.0.0.2", lambda: begun.append("other")) == 0.0
    assert begun == ["other"]
    clock.advance(0.16)
    assert delays.before_attempt("10.0.0.1", nothing) == 0.0


def test_failures_of_an_ipv6_network_count_together(delays: FailureDelays) -> None:
    delays.after_failure("2001:db8::1", nothing)
    assert delays.after_failure("2001:db8::ffff", nothing) == pytest.approx(0.2)
    assert delays.after_failure("2001:db8:1::1", nothing) == pytest.approx(0.1)
    assert delays.after_failure("fe80::1%eth0", nothing) == pytest.approx(0.1)


def test_addresses_when_there_are_very_many_then_the_oldest_are_forgotten(
    delays: FailureDelays,
) -> None:
    for number in range(10_001):
        delays.after_failure(f"10.0.{number >> 8}.{number & 255}", nothing)
    assert delays.after_failure("10.0.0.0", nothing) == pytest.approx(0.1)
    assert delays.after_failure("10.0.39.16", nothing) == pytest.approx(0.2)


def test_stop_when_answers_wait_then_runs_them(clock: FakeClock) -> None:
    delays = FailureDelays(clock)
    answered: list[int] = []
    delays.after_failure("10.0.0.1", lambda: answered.append(1))
    delays.before_attempt("10.0.0.1", lambda: answered.append(2))
    assert not answered
    delays.stop()
    assert answered == [1, 2]
    assert delays.after_failure("10.0.0.1", lambda: answered.append(3)) == 0.0
    assert answered == [1, 2, 3]
