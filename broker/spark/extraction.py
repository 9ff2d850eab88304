"""Text, key, time and number of events, extracted from payloads.

Python reads fields, groups and times, as elsewhere: Spark has other dialects and parsers. What is
in a format of `strptime` is left to Spark's parser, which gets it translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.pandas.functions import arrow_udf

from broker.errors import InvalidPatternError, QueryError
from broker.json_fields import read_json, value_at
from broker.json_fields import text_of as field_text
from broker.patterns import Pattern
from broker.times import moment_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


AUTO = "auto"
"""Any form that `parse_moment` of `broker.times` reads."""

_DIRECTIVES = {
    "Y": "yyyy", "y": "yy", "m": "MM", "d": "dd", "e": "dd", "j": "DDD", "b": "MMM", "h": "MMM",
    "B": "MMMM", "H": "HH", "I": "hh", "M": "mm", "S": "ss", "f": "SSSSSS", "p": "a",
    "z": "[XXX][XX][X]",
}  # fmt: skip
_SHORTHANDS = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "R": "%H:%M", "D": "%m/%d/%y"}
_ONE_DIGIT_TOO = frozenset("mdeHIMS")
_TOKEN = re.compile(r"%(.)|([^%]+)|(%)", re.DOTALL)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """Format of times in messages."""

    pattern: str | None = None  # for Spark's parser; None for `AUTO`
    has_zone: bool = False
    has_year: bool = True
    has_century: bool = True  # the year has four digits
    zone: str = "UTC"  # of times without one


def parse_time_format(text: str = AUTO, zone: str = "UTC") -> TimeFormat:
    """Parse `auto`, or directives of `strptime`, such as `%d/%b/%Y:%H:%M:%S %z`.

    Numbers may lack leading zeros, and several spaces count as one, as in `Dec  4` of system logs.
    `zone` is that of times without one, such as `Europe/Paris`.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise QueryError(f"unknown time zone '{zone}'; valid: UTC, Europe/Paris") from error
    if text == AUTO:
        return TimeFormat(zone=zone)
    expanded = re.sub("%([TFRD])", lambda found: _SHORTHANDS[found[1]], text)
    tokens = list(_TOKEN.finditer(expanded))
    letters = {found[1] for found in tokens if found[1]}
    if not letters & set(_DIRECTIVES):
        raise QueryError(f"'{text}' is not a time format; valid: auto, %Y-%m-%d %H:%M:%S")
    pattern = "".join(_translated(tokens, number, text) for number in range(len(tokens)))
    return TimeFormat(
        pattern, "z" in letters, not letters.isdisjoint("Yy"), "y" not in letters, zone
    )


def _translated(tokens: list[re.Match[str]], number: int, whole: str) -> str:
    letter, literal, _ = tokens[number].groups()
    if literal is not None:
        return _quoted(_SPACES.sub(" ", literal))
    if letter == "%":
        return _quoted("%")
    if letter in ("a", "A"):
        raise QueryError(
            f"a time format cannot have %{letter}: leave the weekday out of what is parsed "
            f"('{whole}')"
        )
    if letter not in _DIRECTIVES:
        valid = " ".join(f"%{one}" for one in (*_DIRECTIVES, *_SHORTHANDS))
        raise QueryError(f"unknown '%{letter or ''}' in the time format '{whole}'; valid: {valid}")
    made = _DIRECTIVES[letter]
    is_alone = not any(
        0 <= beside < len(tokens) and tokens[beside][1] not in (None, "%")
        for beside in (number - 1, number + 1)
    )
    return made[:1] if letter in _ONE_DIGIT_TOO and is_alone else made


def _quoted(literal: str) -> str:
    return re.sub("[A-Za-z\\[\\]{}#']+", lambda found: _quote(found[0]), literal)


def _quote(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


_YEARS_BACK = 9  # February 29 is up to eight years back
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_CENTURY_TURNS = 2069


@dataclass(frozen=True, slots=True)
class EventFields:
    """Where the key, the time and a number of an event are in a payload.

    Attributes:
        key_field: field of a JSON object, nested ones separated by dots, such as `.user.id`.
        time_field: the same for the time.
        pattern: instead of fields: a regular expression with groups named `key`, `time` and
            `value`, searched for in the text.
        time_format: format of the time.
        year: year of times without one; None for the newest in which the time is at most a day in
            the future, as times may lack their zone.
        value_field: field with a number, for sums and averages.
    """

    key_field: str | None = None
    time_field: str | None = None
    pattern: str | None = None
    time_format: TimeFormat = field(default_factory=TimeFormat)
    year: int | None = None
    value_field: str | None = None


def text_of(value: Column) -> Column:
    """Return payloads as text; bytes that are not UTF-8 become replacement characters."""
    return fn.make_valid_utf8(value.cast("string"))


def events(messages: DataFrame, fields: EventFields) -> DataFrame:
    """Return messages as events: the columns `key`, `time`, `text`, and `value` if it is named.

    A key, time or value is null if a message has none, a key or time also if `fields` does not name
    it. A value is a finite number.
    """
    text = text_of(fn.col("value"))
    named = {"key": fields.key_field, "time": fields.time_field, "value": fields.value_field}
    paths = {name: path for name, path in named.items() if path is not None}
    if fields.pattern is None:
        found = json_fields(text, paths)
    elif paths:
        raise QueryError("JSON fields and a pattern cannot be used together")
    else:
        found = _groups(text, fields.pattern)
    made = _time(found["time"], fields) if "time" in found else fn.lit(None).cast("timestamp")
    return messages.select(
        found.get("key", fn.lit(None).cast("string")).alias("key"),
        made.alias("time"),
        text.alias("text"),
        *([_finite(found["value"]).alias("value")] if "value" in found else []),
    )


def _finite(text: Column) -> Column:
    number = _number(text)
    return fn.when(fn.abs(number) < fn.lit(float("inf")), number)


def _number(text: Column) -> Column:
    """Return text as a number, null if it is none: Spark would accept `12d`, as Java does."""
    return fn.when(text.rlike(_NUMBER), text.try_cast("double"))


def json_fields(text: Column, paths: Mapping[str, str]) -> dict[str, Column]:
    """Return fields of JSON objects as text, by name; null if a message lacks one."""
    keys = {name: _keys(path) for name, path in paths.items()}

    def extract(texts: pa.Array) -> Sequence[Sequence[str | None]]:
        documents = [None if one is None else read_json(one) for one in texts.to_pylist()]
        return [
            [_storable(field_text(value_at(one, path))) for one in documents]
            for path in keys.values()
        ]

    return _extracted(text, list(keys), extract)


def _keys(path: str) -> list[str]:
    names = path.removeprefix(".").split(".")
    if not all(names):
        raise QueryError(f"'{path}' is not the path of a JSON field; valid: .user.id")
    return names


def _storable(text: str | None) -> str | None:
    """Return a text whose lone halves of surrogate pairs, as JSON can name them, are replaced."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


def _extracted(
    text: Column, names: list[str], extract: Callable[[pa.Array], Sequence[Sequence[str | None]]]
) -> dict[str, Column]:
    """Return what a function finds in texts, by name, as columns: a list of texts for each name."""

    def in_python(texts: pa.Array) -> pa.Array:
        columns = [pa.array(one, pa.string()) for one in extract(texts)]
        return pa.StructArray.from_arrays(columns, names)

    # in Python, as Spark's own functions have the dialect of Java, and parsers of their own
    fields = ", ".join(f"{name} string" for name in names)
    found = arrow_udf(in_python, f"struct<{fields}>")(text)  # type: ignore[call-overload]  # by its hints
    return {name: found[name] for name in names}


def _groups(text: Column, pattern: str) -> dict[str, Column]:
    """Return the groups of a regular expression that events use."""
    try:
        compiled = Pattern(pattern)
    except InvalidPatternError as error:
        raise QueryError(str(error)) from error
    numbers = compiled.group_numbers
    if not {"key", "time"} & numbers.keys():
        raise QueryError(f"no group named key or time in '{pattern}'; valid: (?P<key>[0-9]+)")
    names: list[str] = [name for name in ("key", "time", "value") if name in numbers]

    def extract(texts: pa.Array) -> Sequence[Sequence[str | None]]:
        found = [None if one is None else compiled.search(one) for one in texts.to_pylist()]
        return [[None if one is None else one[name] or None for one in found] for name in names]

    return _extracted(text, names, extract)


def _time(text: Column, fields: EventFields) -> Column:
    form = fields.time_format
    if form.pattern is None:
        return any_time(text, form.zone)
    text, pattern = fn.regexp_replace(fn.trim(text), r"\s+", " "), form.pattern
    if not form.has_zone:
        text, pattern = fn.concat(text, fn.lit(f" {form.zone}")), f"{pattern} VV"
    if form.has_year:
        found = fn.try_to_timestamp(text, fn.lit(pattern))
        return found if form.has_century else _in_century(found, form)

    def in_year(year: Column) -> Column:
        dated = fn.concat(year.cast("string"), fn.lit(" "), text)
        return fn.try_to_timestamp(dated, fn.lit(f"yyyy {pattern}"))

    if fields.year is not None:
        return in_year(fn.lit(fields.year))
    limit = fn.current_timestamp() + fn.expr("interval 1 day")
    candidates = [in_year(fn.year(limit) - back) for back in range(_YEARS_BACK)]
    return fn.coalesce(*(fn.when(one <= limit, one) for one in candidates))


def _in_century(time: Column, form: TimeFormat) -> Column:
    """Keep years 00 to 68, and move 2069 to 2099 to 1969 to 1999, as `strptime` and POSIX do."""
    local = time if form.has_zone else fn.from_utc_timestamp(time, form.zone)
    former = local - fn.expr("interval 100 years")
    if not form.has_zone:
        former = fn.to_utc_timestamp(former, form.zone)
    return fn.when(fn.year(local) < _CENTURY_TURNS, time).otherwise(former)


def any_time(text: Column, zone: str = "UTC") -> Column:
    """Parse times as `parse_moment` of `broker.times` does, in `zone` if they have none."""

    def parse(texts: pa.Array) -> pa.Array:
        of_zone = ZoneInfo(zone)
        moments = (None if one is None else moment_of(one, of_zone) for one in texts.to_pylist())
        micros = [one and (one - _EPOCH) // timedelta(microseconds=1) for one in moments]
        return pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))

    made: Column = arrow_udf(parse, "timestamp")(text)  # type: ignore[call-overload]  # by its hints
    return made
