"""Points in time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ArgumentError
from broker.positions import parse_time_ms

NOW_MS = 1_763_640_000_000  # 2025-11-20T12:00:00Z


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW_MS),
        ("-10m", NOW_MS - 600_000),
        ("2025-11-20T08:00Z", 1_763_625_600_000),
        ("2025-11-20T08:00:05.250Z", 1_763_625_605_250),
        ("2025-11-20T08:00+01:00", 1_763_622_000_000),
        ("2025-11-20T08:00", 1_763_605_800_000),
        ("2025-11-20", 1_763_577_000_000),
        ("today", 1_763_577_000_000),
        ("yesterday", 1_763_490_600_000),
        ("08:15", 1_763_606_700_000),
        ("1763625600", 1_763_625_600_000),
        ("1763625600250", 1_763_625_600_250),
        ("1763625600250999", 1_763_625_600_250),
    ],
)
def test_parse_time_given_a_valid_text_returns_utc_milliseconds(text: str, expected: int) -> None:
    assert parse_time_ms(text, now_ms=NOW_MS) == expected


def test_parse_time_given_a_plus_is_relative_to_the_base() -> None:
    assert parse_time_ms("+1h", now_ms=NOW_MS, base_ms=5) == 3_600_005


@pytest.mark.parametrize(
    "text", ["", "+1h", "176362560", "2025-13-01", "2025-11-20T25:00", "8:15", "24:00", "noon"]
)
def test_parse_time_given_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"not a (time|duration)"):
        parse_time_ms(text, now_ms=NOW_MS)


def test_parse_time_given_a_digit_count_that_fits_no_unit_says_which_do() -> None:
    with pytest.raises(ArgumentError, match="11 digits; 10 are seconds"):
        parse_time_ms("17636256000", now_ms=NOW_MS)


@given(st.text(alphabet="0123456789:-+TZ. nowmhd", max_size=30))
def test_parse_time_given_any_text_returns_or_raises_usage_error(text: str) -> None:
    try:
        parse_time_ms(text, now_ms=NOW_MS)
    except ArgumentError as error:
        assert error.hints
