"""Windows without Spark: what is in each, when it closes, and what is counted instead."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import pylogctl
from pylogctl import windows

BASE = datetime(2026, 1, 2, 3, tzinfo=UTC)
PARTITION = pylogctl.TopicPartition("t", 0, 0)


def message(key: str, second: float | None) -> pylogctl.Message:
    text = key if second is None else f"{key} {second}"
    return pylogctl.Message("t", PARTITION, 0, 13, text.encode())


def time_of(message: pylogctl.Message) -> datetime | None:
    _, _, second = message.text().partition(" ")
    return BASE + timedelta(seconds=float(second)) if second else None


def key_of(message: pylogctl.Message) -> str:
    return message.text()[0]


HOW: Any = {"time": time_of, "key": key_of}
Shown = tuple[float, float, object, int]


def shown(closed: Iterable[windows.Window]) -> list[Shown]:
    """Return start and end in seconds since the base, key, and how many messages."""
    return [
        ((one.start - BASE).total_seconds(), (one.end - BASE).total_seconds(), one.key, len(one[3]))
        for one in closed
    ]


def test_tumbling_when_a_message_is_at_an_end_then_is_in_the_next_and_closes_the_former() -> None:
    minutes = windows.tumbling(60, **HOW)
    assert minutes.add(message("a", 0)) == minutes.add(message("b", 59.999)) == []
    assert shown(minutes.add(message("a", 60))) == [(0, 60, "a", 1), (0, 60, "b", 1)]
    assert minutes.open_count == 1
    assert shown(minutes.close()) == [(60, 120, "a", 1)]
    assert (minutes.open_count, minutes.close()) == (0, [])


def test_sliding_when_late_for_one_window_then_is_in_the_others_and_counts_as_late_once() -> None:
    sliding = windows.sliding(60, 30, **HOW)
    assert sliding.add(message("a", 0)) == []
    assert shown(sliding.add(message("a", 35))) == [(-30, 30, "a", 1)]
    assert sliding.add(message("a", 20)) == []
    assert sliding.late_count == 1
    assert shown(sliding.close()) == [(0, 60, "a", 3), (30, 90, "a", 1)]


def test_sessions_when_a_message_is_between_two_then_they_become_one() -> None:
    sessions = windows.sessions(10, lateness=60, **HOW)
    for second in (0, 18, 40, 9):
        assert sessions.add(message("a", second)) == []
    assert sessions.open_count == 2
    closed = sessions.close()
    assert shown(closed) == [(0, 28, "a", 3), (40, 50, "a", 1)]
    assert [one.text() for one in closed[0].messages] == ["a 0", "a 18", "a 9"]


def test_sessions_when_they_grow_then_close_by_their_last_end() -> None:
    sessions = windows.sessions(10, **HOW)
    for second in (0, 9, 18, 27):
        assert sessions.add(message("a", second)) == []
    assert shown(sessions.add(message("b", 37))) == [(0, 37, "a", 4)]
    assert sessions.add(message("a", 26.9)) == []
    assert sessions.late_count == 1


def test_message_when_late_or_without_a_time_then_is_counted_and_in_no_window() -> None:
    minutes = windows.tumbling(60, lateness=5, **HOW)
    minutes.add(message("a", 64.9))
    minutes.add(message("a", 59))  # not late yet
    assert shown(minutes.add(message("a", 65))) == [(0, 60, "a", 1)]
    minutes.add(message("a", 59))
    minutes.add(message("a", None))
    minutes.add(message("a", 8e10))  # after the year 4000: all that follows is late
    minutes.add(message("a", 66))
    assert (minutes.late_count, minutes.timeless_count) == (2, 1)
    ends = windows.tumbling(60, time=lambda _: datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert (ends.add(message("a", 0)), ends.close(), ends.timeless_count) == ([], [], 1)


def test_windows_when_nothing_is_said_then_times_are_those_of_messages_of_which_0_7_has_none() -> (
    None
):
    minutes = windows.tumbling(60)
    assert list(minutes.add_all([message("a", 0)])) == []
    assert minutes.timeless_count == 1


def test_windows_when_times_have_other_zones_then_are_in_utc() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    days = windows.tumbling(86_400, time=lambda _: datetime(2026, 1, 2, 1, tzinfo=zone))
    (day,) = days.add_all([message("a", 0)])
    assert (day.start, day.key) == (datetime(2026, 1, 1, tzinfo=UTC), None)


@pytest.mark.parametrize("seed", range(20))
def test_windows_when_messages_are_disordered_within_the_lateness_then_are_as_if_in_order(
    seed: int,
) -> None:
    dice = random.Random(seed)
    seconds = [round(dice.uniform(-100, 300), 1) for _ in range(100)]
    disordered = sorted(seconds, key=lambda second: second + dice.uniform(0, 30))

    def counted(order: list[float], lateness: float) -> list[list[Shown]]:
        made = [
            windows.tumbling(7, lateness=lateness, **HOW),
            windows.sliding(60, 25, lateness=lateness, **HOW),
            windows.sessions(3, lateness=lateness, **HOW),
        ]
        found = [shown(one.add_all(message("ab"[int(s) % 2], s) for s in order)) for one in made]
        assert [one.late_count for one in made] == [0] * 3
        return [sorted(one, key=str) for one in found]

    assert counted(disordered, 30) == counted(sorted(seconds), 0)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: windows.tumbling(0), pylogctl.Error, "size is at least 0.001, not 0"),
        (lambda: windows.sliding(60, 61), pylogctl.Error, "slide is at most the size, 60, not 61"),
        (lambda: windows.sessions(float("nan")), pylogctl.Error, "gap is at least 0.001"),
        (lambda: windows.sessions(float("inf")), pylogctl.Error, "gap is at most 1e"),
        (lambda: windows.tumbling(60, lateness=-1), pylogctl.Error, "lateness is at least 0"),
        (lambda: windows.tumbling("60"), TypeError, "give size as a number, not str"),  # type: ignore[arg-type]
        (lambda: windows.tumbling(60, key="k"), TypeError, "give key as a function"),  # type: ignore[arg-type]
        (
            lambda: windows.tumbling(60, time=lambda _: datetime(2026, 1, 1)).add(message("a", 0)),  # noqa: DTZ001  # the mistake
            TypeError,
            "a datetime with a zone",
        ),
    ],
)
def test_windows_when_an_argument_is_wrong_then_says_what_to_pass(
    make: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make()
