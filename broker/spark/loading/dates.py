"""The time of a message in a format, and its day in a load: from a field, a pattern or the load."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from broker.errors import ConfigError, InvalidPatternError, QueryError
from broker.json_fields import field_path, read_json, value_at
from broker.patterns import Pattern
from broker.times import moment_of

NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""The day of messages without a date: the directory name for null in Spark and Hive."""
AUTO = "auto"
"""Any form that `parse_moment` of `broker.times` reads."""

_YEARS_BACK = 9  # February 29 is up to eight years back
_NAMES_YEAR = re.compile(r"(?:[^%]|%[^YyGcx])*%[YyGcx]")
_DIRECTIVE = re.compile("%(.)", re.DOTALL)
_SHORTHANDS = {
    "T": "%H:%M:%S", "F": "%Y-%m-%d", "R": "%H:%M", "D": "%m/%d/%y", "e": "%d", "h": "%b",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How the times of messages are read; a `QueryError` for an unknown format or zone.

    Attributes:
        text: `auto`, or directives of `datetime.strptime`, also `%T`, `%F`, `%R`, `%D`, `%e` and
            `%h`, such as `%d/%b/%Y:%H:%M:%S %z`. Numbers may lack leading zeros, and several
            spaces count as one, as in `Dec  4` of system logs.
        zone: that of times without one, such as `Europe/Paris`.
        year: year of times without one; None for the newest in which they are not in the future.
    """

    text: str = AUTO
    zone: str = "UTC"
    year: int | None = None

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise QueryError(
                f"unknown time zone '{self.zone}'; valid: UTC, Europe/Paris"
            ) from error
        if self.text == AUTO:
            return
        form, _ = _expanded(self.text)
        try:
            if not _DIRECTIVE.search(self.text.replace("%%", "")):
                raise ValueError("it has no directive")
            if "%Z" in form.replace("%%", ""):  # strptime drops the zone that it reads
                raise ValueError("%Z names no offset: use %z, or give a time zone")
            datetime.strptime(datetime.now(UTC).strftime(form), form)  # noqa: DTZ007 - not used
        except ValueError as error:
            why = str(error).partition(" in format ")[0]  # which may have a year added
            raise QueryError(
                f"'{self.text}' is not a time format: {why}; valid: auto, %Y-%m-%d %H:%M:%S"
            ) from error

    @property
    def has_year(self) -> bool:
        """Return whether times in this format have a year."""
        return self.text == AUTO or _expanded(self.text)[1]

    def moment_of(self, value: object, latest: datetime) -> datetime | None:
        """Return the time in a field or text, None if it has none; an added year is by `latest`."""
        zone = ZoneInfo(self.zone)
        if self.text == AUTO or not isinstance(value, str):
            return moment_of(value, zone)
        form, has_year = _expanded(self.text)
        years = [self.year or 0]
        if self.year is None and not has_year:
            years = list(range(latest.year, latest.year - _YEARS_BACK, -1))
        for year in years:
            text = value.strip() if has_year else f"{year:04d} {value.strip()}"
            try:
                found = datetime.strptime(text, form)  # noqa: DTZ007 - a zone may be missing
            except ValueError:
                continue  # such as February 29 of another year
            found = found if found.tzinfo else found.replace(tzinfo=zone)
            if len(years) == 1 or found <= latest:
                return found
        return None


ANY_FORM = TimeFormat()


@lru_cache
def _expanded(text: str) -> tuple[str, bool]:
    """Return a format for `strptime`, preceded by a year if it has none, and whether it has one."""
    form = _DIRECTIVE.sub(lambda one: _SHORTHANDS.get(one[1], one[0]), text.strip())
    has_year = _NAMES_YEAR.match(form) is not None
    return form if has_year else f"%Y {form}", has_year


@dataclass(frozen=True, slots=True)
class DateRule:
    """How the day (in UTC) of a message is determined: from a field, from a pattern, or fixed.

    Attributes:
        load_day: day of the load, such as `2026-11-22`; of all messages without field and pattern.
        field: field of JSON or Avro payloads with the time, such as `meta.ts`.
        pattern: regular expression searched for in the payload; its first group, or the whole
            match if it has none, is the time.
        time_format: format of the time; an added year is the newest in which the day is at most the
            day after the load.
    """

    load_day: str
    field: str | None = None
    pattern: str | None = None
    time_format: TimeFormat = ANY_FORM

    def __post_init__(self) -> None:
        if self.field is not None and self.pattern is not None:
            raise ConfigError("the date comes from a field or from a pattern, not from both")
        if self.time_format.text != AUTO and self.is_fixed:
            raise ConfigError("a time format needs a field or a pattern that has the time")
        if self.time_format.year is not None and self.time_format.has_year:
            raise ConfigError("a year needs a time format without one")
        try:
            Pattern(self.pattern or "")
        except InvalidPatternError as error:
            raise ConfigError(str(error)) from error

    @property
    def is_fixed(self) -> bool:
        """Return whether all messages have the day of the load."""
        return self.field is None and self.pattern is None

    @property
    def text(self) -> str:
        """Return the rule as text, without the day of the load."""
        source = "load time"
        if self.field is not None:
            source = f"field {self.field}"
        elif self.pattern is not None:
            source = f"pattern {self.pattern}"
        return source if self.time_format.text == AUTO else f"{source} as {self.time_format.text}"

    def day_of(self, payload: bytes, record: object = None) -> str:
        """Return the day of a message, or `NO_DATE`; `record` is the payload decoded from Avro."""
        if self.field is not None:
            found = value_at(
                read_json(payload) if record is None else record, field_path(self.field)
            )
        elif self.pattern is not None:
            pattern = _compiled(self.pattern)
            match = pattern.search(payload.decode("utf-8", "replace"))
            # None if the group did not take part
            found = match and match[1 if pattern.group_count else 0]
        else:
            return self.load_day
        moment = self.time_format.moment_of(found, _end_of_next_day(self.load_day))
        try:
            return NO_DATE if moment is None else moment.astimezone(UTC).date().isoformat()
        except OverflowError:
            return NO_DATE


_compiled = lru_cache(Pattern)


@lru_cache
def _end_of_next_day(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T23:59:59.999999Z") + timedelta(days=1)


def load_time() -> DateRule:
    """Return the rule that gives all messages the present day."""
    return DateRule(datetime.now(UTC).date().isoformat())
