"""The day of a message in a load: from a field or a pattern in its payload, or that of the load."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from broker.errors import ConfigError, InvalidPatternError
from broker.json_fields import field_path, read_json, value_at
from broker.patterns import Pattern
from broker.times import moment_of

NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""The day of messages without a date: the directory name for null in Spark and Hive."""

_YEARS_BACK = 9  # February 29 is up to eight years back
_NAMES_YEAR = re.compile(r"(?:[^%]|%[^YyGcx])*%[YyGcx]")


@dataclass(frozen=True, slots=True)
class DateRule:
    """How the day (in UTC) of a message is determined: from a field, from a pattern, or fixed.

    Attributes:
        load_day: day of the load, such as `2026-11-22`; of all messages without field and pattern.
        field: field of JSON or Avro payloads with the time, such as `meta.ts`.
        pattern: regular expression searched for in the payload; its first group, or the whole
            match if it has none, is the time.
        time_format: directives of `datetime.strptime`; None for what `parse_moment` of
            `broker.times` reads.
        year: year of times without one; None for the newest in which the day is at most the day
            after the load.
    """

    load_day: str
    field: str | None = None
    pattern: str | None = None
    time_format: str | None = None
    year: int | None = None

    def __post_init__(self) -> None:
        if self.field is not None and self.pattern is not None:
            raise ConfigError("the date comes from a field or from a pattern, not from both")
        if self.time_format is not None and self.is_fixed:
            raise ConfigError("a time format needs a field or a pattern that has the time")
        if self.year is not None and (
            self.time_format is None or _NAMES_YEAR.match(self.time_format)
        ):
            raise ConfigError("a year needs a time format without one")
        try:
            Pattern(self.pattern or "")
        except InvalidPatternError as error:
            raise ConfigError(str(error)) from error
        if self.time_format is not None:
            try:
                self._parsed(datetime.now(UTC).strftime(self.time_format), self.time_format)
            except ValueError as error:
                raise ConfigError(f"'{self.time_format}' is not a time format: {error}") from error

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
        return source if self.time_format is None else f"{source} as {self.time_format}"

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
        moment = self._moment(found)
        return NO_DATE if moment is None else moment.date().isoformat()

    def _moment(self, found: object) -> datetime | None:
        try:
            if isinstance(found, str) and self.time_format is not None:
                return _in_utc(self._parsed(found, self.time_format))
            moment = moment_of(found)
            return None if moment is None else _in_utc(moment)
        except (ValueError, OverflowError):
            return None

    def _parsed(self, text: str, time_format: str) -> datetime:
        if _NAMES_YEAR.match(time_format):
            return datetime.strptime(text, time_format)  # noqa: DTZ007 - a zone may be missing
        if self.year is not None:
            return _parsed_in_year(text, time_format, self.year)
        limit = date.fromisoformat(self.load_day) + timedelta(days=1)
        for year in range(limit.year, limit.year - _YEARS_BACK, -1):
            try:
                found = _parsed_in_year(text, time_format, year)
            except ValueError:
                continue  # February 29 of another year
            if found.date() <= limit:
                return found
        raise ValueError(f"'{text}' is not '{time_format}'")


_compiled = lru_cache(Pattern)


def _parsed_in_year(text: str, time_format: str, year: int) -> datetime:
    return datetime.strptime(f"{year} {text}", f"%Y {time_format}")  # noqa: DTZ007 - as above


def _in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC, which is also the default zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def load_time() -> DateRule:
    """Return the rule that gives all messages the present day."""
    return DateRule(datetime.now(UTC).date().isoformat())
