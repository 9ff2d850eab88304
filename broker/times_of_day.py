"""Times of day at which work is due, such as `02:00,14:30`, of the machine's time zone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

from broker.errors import ConfigError

_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


def parse_times_of_day(text: str) -> tuple[time, ...]:
    """Return the times of `HH:MM,..`, none of an empty text; raise `ConfigError` if it is wrong."""
    found = []
    for part in filter(None, text.split(",")):
        matched = _TIME.fullmatch(part.strip())
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
