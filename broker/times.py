"""Points in time: how people and programs write them, and when work is due.

One grammar for all: `parse_moment` reads what logs and tools write, ISO 8601 above all, and
`moment_of` the value of a field; `parse_time_ms` reads what is typed, which may be relative.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache

from broker.errors import ArgumentError, ConfigError
from broker.units import parse_duration_ms

WORDS = ("now", "today", "yesterday")
HINT = "valid times: now, -10m, 2026-11-20, 2026-11-20T08:00, 08:15, today, 1763625600 (seconds)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LEAST = 10**8
"""Seconds until March 1973: what is less is a number, or a year."""
_BELOW_AND_MICROSECONDS = ((11, 6), (14, 3), (17, 0), (20, -3))
"""Numbers below a power of ten are in a unit of microseconds, also one: s, ms, us, ns."""


# expressions are compiled where they are used: commands import this at each start
@cache
def _expressions() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    clock = r"(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?"
    zone = r"(?: ?(Z|z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?: UTC)?)?"  # the latter as Go has it
    day = r"(\d{4})(?:([-/]?)(\d\d)\2(\d\d)|-(\d{3})|-?W(\d\d)(?:-?([1-7]))?)"
    named = r"(?:[A-Z][a-z]{2}, )?(\d\d?)[/ -]([A-Z][a-z]{2})[/ -](\d{4})"
    flags = re.ASCII
    return (
        re.compile(f"{day}(?:[Tt ]{clock}{zone})?", flags),
        re.compile(f"{named}[: ]{clock}{zone}", flags),  # of web servers and of mail
        re.compile(r"\d+(?:\.\d*)?(?:[eE]\+?\d{1,3})?", flags),
    )


def moment(time_ms: int | None) -> datetime | None:
    """Return the point in time of milliseconds since 1970; None for None."""
    return None if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC)


def parse_moment(text: str, zone: tzinfo | None = UTC) -> datetime:
    """Return a point in time, to microseconds.

    Args:
        text: in ISO 8601, extended or basic (`2026-11-20T08:00:05.25+05:30`, `20261120T080005Z`,
            `2026-W47-5`), with a space for the `T` or slashes in the date; as web servers and mail
            write it (`20/Nov/2026:08:00:05 +0000`); or seconds, milliseconds, microseconds or
            nanoseconds since 1970: from 10**8, and below 10**11, 10**14, 10**17 and 10**20. 8
            digits are a day, 14 a day and a time.
        zone: of texts that name none; None is the machine's.

    Raises:
        ValueError: it is none of these, or there is no such day or hour.
    """
    try:
        return _parsed(text, zone)
    except OverflowError as error:  # the day after the last one
        raise ValueError(str(error)) from error


def _parsed(text: str, zone: tzinfo | None) -> datetime:
    if _is_common(text):
        with suppress(ValueError):  # what is none fails below, with the reason
            return _in(datetime.fromisoformat(text), zone)
    iso, named, since_1970 = _expressions()
    if len(text) == 14 and text.isdecimal():
        text = f"{text[:8]}T{text[8:]}"
    if (match := iso.fullmatch(text)) is not None:
        year, _, *day = match.groups()[:7]
        return _at(_day(int(year), *day), match.groups()[7:], zone)
    if since_1970.fullmatch(text) is not None:
        return _since_1970(text)
    if (match := named.fullmatch(text)) is not None and match[2] in _MONTHS:
        on = date(int(match[3]), _MONTHS.index(match[2]) + 1, int(match[1]))
        return _at(on, match.groups()[3:], zone)
    raise ValueError("it is in no form of a time")


def _is_common(text: str) -> bool:
    """Return whether it may be `2026-11-20T08:00:05`, with a point and digits, and a `Z`.

    What else Python takes for a time is not one here: `08:00:05:4096`, or seconds in a zone.
    """
    after = text[19:].removesuffix("Z")
    is_fraction = after[:1] == "." and after[1:].isdecimal()
    return text[4:17:3] in ("--T::", "-- ::") and (not after or is_fraction)


def _in(moment: datetime, zone: tzinfo | None) -> datetime:
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


def _day(year: int, *parts: str | None) -> date:
    month, day, day_of_year, week, weekday = parts
    if month is not None and day is not None:
        return date(year, int(month), int(day))
    if week is not None:
        return date.fromisocalendar(year, int(week), int(weekday or 1))
    found = date(year, 1, 1) + timedelta(days=int(day_of_year or 0) - 1)
    if found.year != year:
        raise ValueError(f"{year} has no day {day_of_year}")
    return found


def _at(day: date, clock: Sequence[str | None], zone: tzinfo | None) -> datetime:
    hour, minute, second, fraction, named_zone = clock
    is_end_of_day = (hour, int(minute or 0), int(second or 0)) == ("24", 0, 0)
    if is_end_of_day:
        day, hour = day + timedelta(days=1), "0"
    micros = int((fraction or "")[:6].ljust(6, "0"))
    at = time(int(hour or 0), int(minute or 0), int(second or 0), micros)
    return _in(datetime.combine(day, at, _zone(named_zone) if named_zone else None), zone)


def _zone(text: str) -> tzinfo:
    if text[0] not in "+-":
        return UTC
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"{text} is no distance from UTC")
    distance = timedelta(hours=hours, minutes=minutes)
    return timezone(-distance if text[0] == "-" else distance)


def _since_1970(text: str) -> datetime:
    from decimal import Decimal  # late: commands import this module at each start

    number = Decimal(text)
    if number < _LEAST:
        raise ValueError("so small a number is no time since 1970")
    for digits, unit in _BELOW_AND_MICROSECONDS:
        if number < 10**digits:
            return _EPOCH + timedelta(microseconds=int(number.scaleb(unit)))
    raise ValueError("no unit makes that number a time since 1970")


def moment_of(value: object, zone: tzinfo | None = UTC) -> datetime | None:
    """Return the time that a field of a message has, None for what is no time; see `parse_moment`.

    A day is its begin in `zone`.
    """
    try:
        if isinstance(value, datetime):
            return _in(value, zone)
        if isinstance(value, date):
            return _in(datetime.combine(value, time()), zone)
        if isinstance(value, str):
            return parse_moment(value.strip(), zone)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return parse_moment(f"{value:f}" if isinstance(value, float) else str(value), zone)
    except (ValueError, OverflowError):
        return None
    return None


def epoch_ms(moment: datetime) -> int:
    """Return a time with a zone in milliseconds since 1970."""
    return (moment - _EPOCH) // _MILLISECOND


def parse_time_ms(text: str, *, now_ms: int, base_ms: int | None = None) -> int:
    """Return a time that was typed, in milliseconds since 1970, UTC.

    `text` is `now`, `-10m`, `today`, `yesterday`, `08:15`, or what `parse_moment` reads; local time
    without a zone. `base_ms` is the base of `+1h`, None where that is not allowed.
    """
    try:
        return _parse(text, now_ms, base_ms)
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"not a time: '{text}' ({error})", hints=[HINT]) from error


def _parse(text: str, now_ms: int, base_ms: int | None) -> int:
    if text == "now":
        return now_ms
    if text.startswith("-"):
        return now_ms - parse_duration_ms(text[1:])
    if text.startswith("+") and base_ms is not None:
        return base_ms + parse_duration_ms(text[1:])
    if text in ("today", "yesterday"):
        day = _local_day(now_ms) - timedelta(days=text == "yesterday")
        return epoch_ms(datetime.combine(day, time()).astimezone())
    if text[2:3] == ":":
        text = f"{_local_day(now_ms).isoformat()}T{text}"
    return epoch_ms(parse_moment(text, None))


def _local_day(now_ms: int) -> date:
    return datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().date()


_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


def parse_times_of_day(text: str) -> tuple[time, ...]:
    """Return the times of `HH:MM,..`, none of an empty text; raise `ConfigError` if it is wrong."""
    found = []
    for part in filter(None, text.split(",")):
        matched = _TIME_OF_DAY.fullmatch(part.strip())
        if matched is None:
            raise ConfigError(f"'{part.strip()}' is no time of day, from 00:00 to 23:59")
        found.append(time(int(matched[1]), int(matched[2])))
    return tuple(found)


def seconds_to_next(times: Iterable[time], now_s: float) -> float:
    """Return the seconds from a time, in seconds since 1970, to the next one of `times`.

    A time that the change to summer time leaves out comes an hour later on that day; one that the
    change back repeats comes once.
    """
    today = datetime.fromtimestamp(now_s, UTC).astimezone().date()
    return min(
        due_s - now_s
        for day in (today, today + timedelta(days=1))
        for one in times
        if (due_s := datetime.combine(day, one).timestamp()) > now_s
    )
