"""Which day a message belongs to: that of the load, or one its payload names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from broker.errors import ConfigError

NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""Where messages go whose day cannot be told: Spark's and Hive's directory for null."""

_NAMES_YEAR = re.compile(r"(?:[^%]|%[^YyGcx])*%[YyGcx]")
_SECONDS_BELOW = 1e11  # as milliseconds that is 1973, as seconds 5138
_MILLISECONDS_BELOW = 1e14


@dataclass(frozen=True, slots=True)
class DateRule:
    """How the day of a message is told; all days are in UTC.

    At most one of `field` and `pattern` is given; without them every message has the `load_day`.

    Attributes:
        load_day: the day of the load, such as `2026-11-22`.
        field: where a JSON payload has its time, such as `meta.ts`; also of decoded Avro.
        pattern: a regular expression, searched for in the payload; its first group, or else all of
            the match, is the time.
        time_format: how the time is written, as for `datetime.strptime`, the year of the load
            being that of times that name none; None for ISO 8601, or a number of seconds,
            milliseconds or microseconds since 1970.
    """

    load_day: str
    field: str | None = None
    pattern: str | None = None
    time_format: str | None = None

    def __post_init__(self) -> None:
        if self.field is not None and self.pattern is not None:
            raise ConfigError("the date comes from a field or from a pattern, not from both")
        if self.time_format is not None and self.is_fixed:
            raise ConfigError("a time format needs a field or a pattern that has the time")
        try:
            re.compile((self.pattern or "").encode())
        except re.error as error:
            raise ConfigError(f"'{self.pattern}' is no regular expression: {error}") from error
        if self.time_format is not None:
            try:
                self._parsed(datetime.now(UTC).strftime(self.time_format), self.time_format)
            except ValueError as error:
                raise ConfigError(f"'{self.time_format}' is no time format: {error}") from error

    @property
    def is_fixed(self) -> bool:
        """Return whether all messages have the day of the load."""
        return self.field is None and self.pattern is None

    @property
    def text(self) -> str:
        """Return the rule in a few words; the day of the load is no part of it."""
        source = "load time"
        if self.field is not None:
            source = f"field {self.field}"
        elif self.pattern is not None:
            source = f"pattern {self.pattern}"
        return source if self.time_format is None else f"{source} as {self.time_format}"

    def day_of(self, payload: bytes, record: object = None) -> str:
        """Return the day of a message, `NO_DATE` if it cannot be told.

        Args:
            payload: of the message.
            record: the payload decoded, where that was done already.
        """
        if self.field is not None:
            found = _field_of(_json(payload) if record is None else record, self.field)
        elif self.pattern is not None:
            match = re.search(self.pattern.encode(), payload)
            found = match and match[1 if match.re.groups else 0].decode("utf-8", "replace")
        else:
            return self.load_day
        moment = self._moment(found)
        return NO_DATE if moment is None else moment.date().isoformat()

    def _moment(self, found: object) -> datetime | None:
        try:
            if isinstance(found, datetime):
                return _in_utc(found)
            if isinstance(found, date):
                return datetime.combine(found, time(), UTC)
            if isinstance(found, str) and self.time_format is not None:
                return _in_utc(self._parsed(found, self.time_format))
            if isinstance(found, str) and not found.replace(".", "", 1).isdecimal():
                return _in_utc(datetime.fromisoformat(found))
            if isinstance(found, str | int | float) and not isinstance(found, bool):
                return _since_1970(float(found))
        except (ValueError, OverflowError, OSError):
            return None
        return None

    def _parsed(self, text: str, time_format: str) -> datetime:
        if not _NAMES_YEAR.match(time_format):
            text, time_format = f"{self.load_day[:4]} {text}", f"%Y {time_format}"
        return datetime.strptime(text, time_format)  # noqa: DTZ007 - a zone may be missing


def _json(payload: bytes) -> object:
    try:
        return json.loads(payload)
    except ValueError:
        return None


def _field_of(record: object, path: str) -> Any:
    for name in path.strip(".").split("."):
        if not isinstance(record, Mapping):
            return None
        record = record.get(name)
    return record


def _in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is taken to be in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _since_1970(number: float) -> datetime:
    if number >= _MILLISECONDS_BELOW:
        number /= 1e6
    elif number >= _SECONDS_BELOW:
        number /= 1e3
    return datetime.fromtimestamp(number, UTC)
