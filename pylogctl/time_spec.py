"""Points in time as a user writes them, for offsets by time.

Pure text to milliseconds; the present moment is an argument.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from pylogctl.errors import UsageError
from pylogctl.units import parse_duration_ms

WORDS = ("now", "today", "yesterday")
HINT = "valid times: now, -10m, 2026-11-20, 2026-11-20T08:00, 08:15, today, 1763625600 (seconds)"
_DIGITS_PER_UNIT_MS = {10: 1000.0, 13: 1.0, 16: 0.001}
_CLOCK = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?"
                     r"(Z|[+-]\d{2}:\d{2})?")  # fmt: skip


def parse_time_ms(text: str, *, now_ms: int, base_ms: int | None = None) -> int:
    """Return a point in time in milliseconds since 1970, UTC.

    A date or clock time without a zone is local time.

    Args:
        text: `now`, `-10m`, `2026-11-20`, `2026-11-20T08:00:05.250Z`, `today`, `yesterday`,
            `08:15`, or seconds (10 digits), milliseconds (13) or microseconds (16) since 1970.
        now_ms: the present moment.
        base_ms: what `+1h` is relative to; None where it is not allowed.

    Raises:
        UsageError: the text is anything else.
    """
    try:
        moment_ms = _parse(text, now_ms, base_ms)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"not a time: '{text}' ({error})", hints=[HINT]) from error
    if moment_ms is None:
        raise UsageError(f"not a time: '{text}'", hints=[HINT])
    return moment_ms


def _parse(text: str, now_ms: int, base_ms: int | None) -> int | None:
    if text == "now":
        return now_ms
    if text.isascii() and text.isdigit():
        return _parse_digits(text)
    if text.startswith("-"):
        return now_ms - parse_duration_ms(text[1:])
    if text.startswith("+"):
        return None if base_ms is None else base_ms + parse_duration_ms(text[1:])
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().date()
    if text in ("today", "yesterday"):
        return _local_ms(today - timedelta(days=text == "yesterday"), time())
    if match := _CLOCK.fullmatch(text):
        return _local_ms(today, _clock_time(*match.groups()))
    return _parse_moment(text)


def _parse_digits(text: str) -> int:
    factor = _DIGITS_PER_UNIT_MS.get(len(text))
    if factor is None:
        raise ValueError(
            f"{len(text)} digits; 10 are seconds, 13 milliseconds, 16 microseconds since 1970"
        )
    return int(int(text) * factor)


def _parse_moment(text: str) -> int | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    day, clock, zone = match.groups()
    clock_match = _CLOCK.fullmatch(clock or "00:00")
    if clock_match is None:
        return None
    at = _clock_time(*clock_match.groups())
    if zone is None:
        return _local_ms(date.fromisoformat(day), at)
    moment = datetime.combine(date.fromisoformat(day), at)
    offset = datetime.fromisoformat(f"2000-01-01T00:00{'+00:00' if zone == 'Z' else zone}")
    return _epoch_ms(moment.replace(tzinfo=offset.tzinfo))


def _clock_time(hour: str, minute: str, second: str | None, fraction: str | None) -> time:
    return time(int(hour), int(minute), int(second or 0), int((fraction or "").ljust(6, "0")))


def _local_ms(day: date, at: time) -> int:
    return _epoch_ms(datetime.combine(day, at).astimezone())


def _epoch_ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
