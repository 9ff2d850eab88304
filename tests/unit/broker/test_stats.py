from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.stats import FLUSH_BOUNDS_S, SharedStats, Window, WindowedStats
from tests.doubles import FakeClock

PERIOD_S = 60.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stats(clock: FakeClock) -> WindowedStats:
    return WindowedStats(clock, PERIOD_S)


def test_window_when_nothing_happened_then_all_figures_are_zero(stats: WindowedStats) -> None:
    window = stats.window()

    assert window == Window(0, 0.0, 0.0, 0.0)
    assert window.per_second == 0.0


def test_window_when_the_first_one_runs_then_shows_what_there_is(
    stats: WindowedStats, clock: FakeClock
) -> None:
    stats.record(0.5)
    stats.record(1.5)
    clock.advance(10)

    assert stats.window() == Window(2, 2.0, 1.5, 10.0)


def test_window_when_complete_then_stays_while_the_next_one_runs(
    stats: WindowedStats, clock: FakeClock
) -> None:
    stats.record(1.0)
    clock.advance(PERIOD_S)
    stats.record(5.0)
    clock.advance(PERIOD_S / 2)

    assert stats.window() == Window(1, 1.0, 1.0, PERIOD_S)


def test_window_when_the_next_one_is_complete_then_is_replaced(
    stats: WindowedStats, clock: FakeClock
) -> None:
    stats.record(1.0)
    clock.advance(PERIOD_S)
    stats.record(5.0, count=2)
    clock.advance(PERIOD_S)

    assert stats.window() == Window(2, 5.0, 2.5, PERIOD_S)


def test_window_when_an_idle_one_follows_then_shows_nothing(
    stats: WindowedStats, clock: FakeClock
) -> None:
    stats.record(1.0)
    clock.advance(2 * PERIOD_S)

    assert stats.window() == Window(0, 0.0, 0.0, PERIOD_S)


def test_window_when_recorded_long_after_its_start_then_events_belong_to_the_current_one(
    stats: WindowedStats, clock: FakeClock
) -> None:
    clock.advance(2.5 * PERIOD_S)
    stats.record(1.0)
    clock.advance(0.5 * PERIOD_S)

    assert stats.window() == Window(1, 1.0, 1.0, PERIOD_S)


def test_maximum_when_events_are_counted_together_then_is_their_average(
    stats: WindowedStats,
) -> None:
    stats.record(0.25)
    stats.record(2.0, count=4)
    stats.record(0.6, count=4)

    assert stats.window().max_s == 0.5


def test_figures_when_window_is_complete_then_are_per_second() -> None:
    window = Window(event_count=30, total_s=3.0, max_s=1.0, length_s=60.0)

    assert window.per_second == 0.5


def test_totals_when_windows_pass_then_go_on(stats: WindowedStats, clock: FakeClock) -> None:
    for _ in range(3):
        stats.record(1.0, count=2)
        clock.advance(PERIOD_S)

    assert (stats.count, stats.total_s) == (6, 3.0)


@given(st.lists(st.lists(st.integers(1, 5), max_size=3), max_size=150))
def test_windows_when_read_at_each_of_their_ends_then_have_every_event_once(
    counts_of_second: list[list[int]],
) -> None:
    clock = FakeClock()
    stats = WindowedStats(clock, PERIOD_S)
    rest_of_window: list[list[int]] = [[]] * (-len(counts_of_second) % int(PERIOD_S))
    in_windows = 0

    for second, counts in enumerate(counts_of_second + rest_of_window, start=1):
        for count in counts:
            stats.record(0.0, count)
        clock.advance(1)
        if second % PERIOD_S == 0:
            in_windows += stats.window().event_count

    assert in_windows == stats.count == sum(map(sum, counts_of_second))


def test_buckets_when_events_are_recorded_then_have_them_by_inclusive_upper_ends(
    clock: FakeClock,
) -> None:
    stats = WindowedStats(clock, PERIOD_S, bounds_s=(0.5, 1.0))

    for elapsed_s, count in ((0.5, 1), (1.5, 2), (1.1, 1)):
        stats.record(elapsed_s, count)
    clock.advance(3 * PERIOD_S)

    assert stats.bucket_counts == [1, 2, 1]


def test_events_when_recorded_from_many_threads_then_none_is_lost(clock: FakeClock) -> None:
    stats = SharedStats(clock, PERIOD_S, FLUSH_BOUNDS_S)

    def record() -> None:
        for _ in range(1000):
            stats.record(0.0)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert stats.count == stats.window().event_count == 4000
