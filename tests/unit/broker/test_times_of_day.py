from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from broker.errors import ConfigError
from broker.times import parse_times_of_day, seconds_to_next


@pytest.fixture(autouse=True)
def central_europe() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


def hours_from(now: str, times: str) -> float:
    now_s = datetime.fromisoformat(now).timestamp()
    return seconds_to_next(parse_times_of_day(times), now_s) / 3600


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        ("2026-11-26 01:30", 0.5),
        ("2026-11-26 02:00", 12.5),  # the one that is now has been
        ("2026-11-26 23:00", 3.0),
        ("2026-12-31 20:00", 6.0),
    ],
)
def test_next_time_when_there_are_two_then_is_the_nearer_one(now: str, hours: float) -> None:
    assert hours_from(now, "14:30, 02:00") == hours


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        ("2026-03-28 12:00", 23.0),  # a night of 11 hours
        ("2026-10-24 12:00", 25.0),
    ],
)
def test_next_time_when_the_clocks_change_then_is_by_the_clock_on_the_wall(
    now: str, hours: float
) -> None:
    assert hours_from(now, "12:00") == hours


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_next_time_when_left_out_or_repeated_then_comes_once_on_that_day(day: str) -> None:
    now_s = datetime.fromisoformat(f"{day} 00:00").timestamp()
    end_s = datetime.fromisoformat(f"{day} 23:59").timestamp()
    count = 0
    while (now_s := now_s + seconds_to_next(parse_times_of_day("02:30"), now_s)) < end_s:
        count += 1
    assert count == 1


@pytest.mark.parametrize("text", ["24:00", "1:00", "12:60", "noon", "02:00;14:30", "-1:00"])
def test_times_when_malformed_then_the_error_names_the_part(text: str) -> None:
    with pytest.raises(ConfigError, match="is no time of day, from 00:00 to 23:59"):
        parse_times_of_day(f"02:00,{text}")
    assert parse_times_of_day("") == ()
