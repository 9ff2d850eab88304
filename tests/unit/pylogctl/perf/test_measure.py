"""Counting, limits and threads of measurements."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylogctl.perf.measure import (
    Budget,
    Halt,
    Latencies,
    Tally,
    latencies_ms,
    run_threads,
)

DURATIONS = st.lists(st.floats(1e-6, 3000.0), min_size=1, max_size=50)


def _latencies(durations: list[float]) -> Latencies:
    latencies = Latencies()
    for seconds in durations:
        latencies.add(seconds)
    return latencies


@given(DURATIONS, st.sampled_from([1, 50, 95, 99.9, 100]))
def test_percentile_is_that_of_the_sorted_durations_within_one_percent(
    durations: list[float], percent: float
) -> None:
    exact = sorted(durations)[math.ceil(len(durations) * percent / 100) - 1]
    found = _latencies(durations).percentile_s(percent)
    assert found == pytest.approx(exact, rel=0.011)


@given(DURATIONS)
def test_the_longest_is_exact(durations: list[float]) -> None:
    assert _latencies(durations).percentile_s(100) == max(durations)


@given(DURATIONS, DURATIONS)
def test_sum_and_difference_undo_each_other(first: list[float], second: list[float]) -> None:
    earlier, later = _latencies(first), _latencies(second)
    both = earlier.plus(later)
    assert both.count == len(first) + len(second)
    assert both.since(earlier).percentile_s(50) == pytest.approx(later.percentile_s(50), rel=0.011)


@pytest.mark.parametrize("seconds", [0.0, -1e-9, 1e-9, 1e9])
def test_a_duration_out_of_range_is_counted_at_the_edge(seconds: float) -> None:
    assert _latencies([seconds]).count == 1


def test_latencies_without_any_are_unknown() -> None:
    assert set(latencies_ms(Latencies()).values()) == {None}


def test_latencies_are_reported_in_milliseconds() -> None:
    assert latencies_ms(_latencies([0.25]))["max_ms"] == 250


def test_counted_adds_up_what_threads_counted() -> None:
    tallies = [Tally(), Tally()]
    before = Tally.total(tallies)
    tallies[0].add(2, 20)
    tallies[1].add(3, 30)
    tallies[1].latencies.add(1.0)
    counted = Tally.total(tallies).since(before)
    assert (counted.message_count, counted.payload_bytes) == (5, 50)
    assert counted.latencies.count == 1


def test_budget_grants_no_more_than_is_left() -> None:
    budget = Budget(5)
    assert [budget.take(3), budget.take(3), budget.take(3)] == [3, 2, 0]
    assert budget.is_spent


def test_budget_without_limit_gives_everything() -> None:
    budget = Budget(None)
    assert budget.take(1000) == 1000
    assert not budget.is_spent


@pytest.fixture
def halt() -> Halt:
    return Halt(lambda: False)


def test_halt_says_stop_after_a_signal() -> None:
    assert Halt(lambda: True)()


def test_halt_says_stop_when_the_time_is_up(halt: Halt) -> None:
    assert not halt()
    halt.set_duration(0)
    assert halt()


def test_halt_when_it_is_time_to_stop_does_not_wait(halt: Halt) -> None:
    halt.fail()
    halt.wait(3600)


def test_run_threads_runs_all_of_them_and_looks_at_them(halt: Halt) -> None:
    done: list[int] = []
    ticks: list[int] = []
    work: list[Callable[[], None]] = [lambda: done.append(1), lambda: done.append(2)]
    run_threads(work, halt, lambda: ticks.append(1))
    assert sorted(done) == [1, 2]
    assert ticks


def test_run_threads_when_one_fails_stops_the_others_and_raises_its_error(halt: Halt) -> None:
    stopped = threading.Event()

    def wait() -> None:
        halt.wait(3600)
        stopped.set()

    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_threads([wait, fail], halt, lambda: None)
    assert stopped.is_set()
