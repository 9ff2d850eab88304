"""Points in time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ArgumentError, ConfigError
from broker.positions import Absolute, ByTime, parse_range
from broker.spark.loading.dates import DateRule
from broker.spark.options import parse_read_options
from broker.times import epoch_ms, moment_of, parse_time_ms
from broker.tools.audit import json_time
from tests.support.time_examples import NO_TIMES, TIMES, ZONELESS_TIMES

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
    "text", ["", "+1h", "2025-13-01", "2025-11-20T25:00", "8:15", "24:01", "noon"]
)
def test_parse_time_given_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"not a (time|duration)"):
        parse_time_ms(text, now_ms=NOW_MS)


def utc_ms(text: str) -> int:
    return epoch_ms(datetime.fromisoformat(text).replace(tzinfo=UTC))


def read_offset(text: str) -> int | None:
    try:
        found = parse_range(f"@{text}", now_ms=NOW_MS)
    except ArgumentError:
        return None
    assert isinstance(found.start, ByTime)
    assert found.end is None
    return found.start.time_ms


def read_audited(text: str) -> int | None:
    return json_time(".meta.ts")(json.dumps({"meta": {"ts": text}}).encode())


def read_audited_number(text: str) -> int | None:
    try:
        json.loads(text)
    except ValueError:
        return read_audited(text)
    return json_time("ts")(b'{"ts": 1, "ts": %b}' % text.encode())


def read_starting_timestamp(text: str) -> int | None:
    try:
        found = parse_read_options(
            {"brokers": "h:9092", "subscribe": "web", "startingTimestamp": text}
        )
    except ConfigError:
        return None
    again = parse_read_options({"brokers": "h:9092", **found.to_options()})
    assert again.starting == found.starting
    return found.starting.default


MESSAGES = {"audits": read_audited, "numbers": read_audited_number}
TYPED = {"offsets": read_offset}
OPTIONS = {"startingTimestamp": read_starting_timestamp}
READERS = {**MESSAGES, **TYPED, **OPTIONS}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_time_that_a_tool_writes_when_read_anywhere_then_is_the_same(
    name: str, text: str, expected: str
) -> None:
    assert READERS[name](text) == utc_ms(expected)


@pytest.mark.parametrize("name", [*MESSAGES, *OPTIONS])
@pytest.mark.parametrize(("text", "expected"), ZONELESS_TIMES.items())
def test_time_without_a_zone_when_read_from_data_then_is_in_utc(
    name: str, text: str, expected: str
) -> None:
    assert READERS[name](text) == utc_ms(expected)


@pytest.mark.parametrize(("text", "expected"), ZONELESS_TIMES.items())
def test_time_without_a_zone_when_typed_then_is_local(text: str, expected: str) -> None:
    assert read_offset(text) == utc_ms(expected) - 19_800_000  # Asia/Kolkata


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_when_read_anywhere_then_is_none(name: str, text: str) -> None:
    if name == "offsets" and text in ("-1", "2026-11-20T08:00:05:409"):
        pytest.skip("it is a duration, or a range, there")
    assert READERS[name](text) is None


@pytest.mark.parametrize(("text", "expected"), [*TIMES.items(), *ZONELESS_TIMES.items()])
def test_day_of_a_load_when_a_tool_writes_the_time_then_is_its_day(
    text: str, expected: str
) -> None:
    rule = DateRule("2026-11-28", field="ts")
    assert rule.day_of(json.dumps({"ts": text}).encode()) == expected[:10]


def test_moment_when_the_value_has_a_type_then_is_taken() -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    midnight = datetime(2026, 11, 20, tzinfo=kolkata)
    assert moment_of(date(2026, 11, 20), kolkata) == midnight
    assert moment_of(datetime(2026, 11, 20), kolkata) == midnight  # noqa: DTZ001 - has none
    assert moment_of(1795161605.25) == datetime(2026, 11, 20, 8, 0, 5, 250_000, UTC)
    assert moment_of(True) is None
    assert moment_of(None) is None
    assert moment_of(float("inf")) is None


@pytest.mark.parametrize(
    "text",
    [
        "@2026-11-20T08:00:60",
        "@2026-11-20:12",
        "@2026-11-20T08:61:00",
        "@08:60",
        "@2026-11-20T08:60",
    ],
)
def test_range_when_its_time_is_none_then_no_end_is_made_of_the_rest(text: str) -> None:
    with pytest.raises(ArgumentError, match=f"not a time: '{text[1:]}'"):
        parse_range(text, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("@2026-11-20T08:00Z:4096", "2026-11-20T08:00:00Z", 4096),
        ("@2026-11-20T08:00:05:4096", "2026-11-20T08:00:05", 4096),
        ("@2026-11-20T08:00:05.5:409", "2026-11-20T08:00:05.500", 409),
        ("@08:00:05:123456", "08:00:05", 123456),
        ("@1795161605:96", "1795161605", 96),
    ],
)
def test_range_when_an_offset_follows_a_time_then_is_the_end(
    text: str, start: str, end: int
) -> None:
    found = parse_range(text, now_ms=NOW_MS)
    assert found.start == ByTime(parse_time_ms(start, now_ms=NOW_MS))
    assert found.end == Absolute(end, nearest=False)


@given(st.text(alphabet="0123456789:-+TZ. nowmhd", max_size=30))
def test_parse_time_given_any_text_returns_or_raises_usage_error(text: str) -> None:
    try:
        parse_time_ms(text, now_ms=NOW_MS)
    except ArgumentError as error:
        assert error.hints
