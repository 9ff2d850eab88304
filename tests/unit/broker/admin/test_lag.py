"""Lag, status over a window, rate, ETA and age."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.groups import StoredOffset
from broker.admin.lag import (
    MEANINGS,
    LagSample,
    LagStatus,
    ObservedPartition,
    age_s,
    consume_rate,
    eta_s,
    window_status,
    within_window,
    worst,
)
from broker.admin.topics import Ends
from broker.topic import TopicPartition

NUMBERS = st.integers(0, 1 << 40)


def history(*points: tuple[int, int], committed_ms: int | None = None) -> list[LagSample]:
    """One sample a second of offset and end; committed at each, or all at `committed_ms`."""
    return [
        LagSample(
            second * 1000, offset, end, second * 1000 if committed_ms is None else committed_ms
        )
        for second, (offset, end) in enumerate(points)
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[LagSample]:
    count = draw(st.integers(1, 8))
    times = sorted(draw(st.lists(NUMBERS, min_size=count, max_size=count, unique=True)))
    ends = sorted(draw(st.lists(NUMBERS, min_size=count, max_size=count)))
    offsets = [draw(st.integers(0, end)) for end in ends]
    commits = [draw(st.integers(0, time_ms)) for time_ms in times]
    return [LagSample(*one) for one in zip(times, offsets, ends, commits, strict=True)]


@pytest.mark.parametrize(
    ("samples", "status"),
    [
        (history((10, 10)), LagStatus.OK),
        (history((0, 10)), LagStatus.LAG),
        (history((0, 10), (0, 20), committed_ms=-5000), LagStatus.STOP),
        (history((10, 10), (10, 20), committed_ms=-5000), LagStatus.OK),
        (history((5, 10), (3, 10)), LagStatus.REWIND),
        (history((5, 10), (3, 10), (6, 12)), LagStatus.OK),
        (history((10, 10), (3, 10)), LagStatus.REWIND),
        (history((10, 10), (15, 20)), LagStatus.OK),
        (history((5, 10), (5, 20)), LagStatus.STALL),
        (history((5, 10), (6, 20)), LagStatus.WARN),
        (history((5, 10), (6, 11)), LagStatus.WARN),
        (history((0, 10), (5, 11), (6, 20)), LagStatus.OK),
    ],
)
def test_window_status_follows_the_rules(samples: list[LagSample], status: LagStatus) -> None:
    assert window_status(samples) is status


def test_window_status_when_the_lag_is_allowed_is_ok() -> None:
    samples = history((0, 10), (0, 10), committed_ms=-5000)
    assert window_status(samples, allowed_lag=10) is LagStatus.OK
    assert window_status(samples, allowed_lag=9) is LagStatus.STOP


def test_window_status_when_little_of_the_window_is_seen_does_not_judge() -> None:
    samples = history((5, 10), (5, 20))
    assert window_status(samples, window_ms=2000) is LagStatus.STALL
    assert window_status(samples, window_ms=2001) is LagStatus.LAG


def test_partition_status_when_little_of_the_window_is_seen_does_not_judge() -> None:
    stored, samples = StoredOffset(5, "5", 0, 0), tuple(history((5, 10), (5, 20)))
    lag = ObservedPartition(TopicPartition("t", 0, 0), None, stored, True, Ends(0, 20), samples)
    assert lag.status() is LagStatus.STALL
    assert replace(lag, window_ms=60_000).status() is LagStatus.LAG


@given(samples=histories(), allowed=NUMBERS)
def test_window_status_is_ok_exactly_by_now_or_by_history(
    samples: list[LagSample], allowed: int
) -> None:
    status = window_status(samples, allowed_lag=allowed)
    if samples[-1].lag_bytes <= allowed:
        assert status is LagStatus.OK
    if status is LagStatus.REWIND:
        assert samples[-1].offset < max(one.offset for one in samples)
    if status in (LagStatus.STOP, LagStatus.STALL, LagStatus.WARN):
        assert all(one.lag_bytes > allowed for one in samples)


@given(samples=histories(), allowed=NUMBERS, more=NUMBERS)
def test_window_status_with_more_allowance_never_leaves_ok_for_a_lag(
    samples: list[LagSample], allowed: int, more: int
) -> None:
    if samples[-1].lag_bytes <= allowed:
        assert window_status(samples, allowed_lag=allowed + more) is LagStatus.OK


@given(samples=histories(), shift=NUMBERS)
def test_window_status_does_not_depend_on_when_or_where_it_is(
    samples: list[LagSample], shift: int
) -> None:
    moved = [LagSample(*(number + shift for number in one)) for one in samples]
    assert window_status(moved) is window_status(samples)


@given(samples=histories(), window_ms=NUMBERS)
def test_within_window_keeps_samples_that_cover_it(
    samples: list[LagSample], window_ms: int
) -> None:
    kept = within_window(samples, window_ms)
    assert list(kept) == samples[len(samples) - len(kept) :]
    if samples[-1].time_ms - samples[0].time_ms >= window_ms:
        assert kept[-1].time_ms - kept[0].time_ms >= window_ms
    assert all(kept[-1].time_ms - one.time_ms < window_ms for one in kept[1:-1])


def test_within_window_of_nothing_keeps_the_last_sample() -> None:
    samples = history((1, 1), (2, 2))
    assert within_window(samples, 0) == samples[1:]


@given(st.lists(st.sampled_from(LagStatus)))
def test_worst_is_one_of_them_and_order_does_not_matter(statuses: list[LagStatus]) -> None:
    found = worst(statuses)
    assert found in (statuses or [LagStatus.UNKNOWN])
    assert found is worst(reversed(statuses))


def test_worst_knows_that_a_stopped_consumer_is_worse_than_a_slow_one() -> None:
    assert worst([LagStatus.WARN, LagStatus.STOP, LagStatus.STALL, LagStatus.OK]) is LagStatus.STOP


def test_every_status_has_a_meaning() -> None:
    assert set(MEANINGS) == set(LagStatus)


def test_consume_rate_is_bytes_a_second() -> None:
    assert consume_rate(history((0, 100), (10, 100), (40, 100))) == 20
    assert consume_rate(history((0, 100))) is None


@given(histories())
def test_eta_is_unknown_unless_the_rate_is_above_zero(samples: list[LagSample]) -> None:
    rate = consume_rate(samples)
    lag = samples[-1].lag_bytes
    found = eta_s(lag, rate)
    if lag and (rate is None or rate <= 0):
        assert found is None
    else:
        assert found is not None
        assert found >= 0


def test_age_is_the_time_since_the_end_passed_the_offset() -> None:
    assert age_s(history((0, 10), (10, 20), (15, 30))) == 1.5
    assert age_s(history((0, 10), (10, 10), (10, 30))) == 1.0


def test_age_without_lag_is_zero_and_before_the_history_unknown() -> None:
    assert age_s(history((0, 10), (10, 10))) == 0
    assert age_s(history((0, 10), (5, 20))) is None
    assert age_s([]) is None


@given(histories())
def test_age_lies_within_the_history(samples: list[LagSample]) -> None:
    age = age_s(samples)
    if age is not None:
        assert 0 <= age * 1000 <= samples[-1].time_ms - samples[0].time_ms + 1
