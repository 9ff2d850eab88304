"""What jobs take out of payloads: text, the key and the time of an event.

Everything becomes a column of Spark's own functions, so no payload goes through Python again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from broker.errors import QueryError
from broker.spark.time_formats import TimeFormat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MILLISECONDS_FROM = 1e11
"""Numbers below are seconds since 1970, as `broker.tools.audit.json_time` has it."""
_POSSIBLE_MS = (-62_135_596_800_000, 253_402_300_799_000)
"""Years 1 to 9999; what is beyond is no time, as neither are infinity and NaN."""
_ZONE_AT_END = r"(?i)(z|utc|gmt|[+-][0-9]{2}:?[0-9]{2})$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


@dataclass(frozen=True, slots=True)
class EventFields:
    """Where the key and the time of an event are in a payload.

    Attributes:
        key_field: field of a JSON object, nested ones separated by dots, such as `.user.id`.
        time_field: the same for the time.
        pattern: instead: a regular expression with groups named `key` and `time`, looked for
            anywhere in the text.
        time_format: how the time is written.
        year: of times that name none; the present one if None.
    """

    key_field: str | None = None
    time_field: str | None = None
    pattern: str | None = None
    time_format: TimeFormat = field(default_factory=TimeFormat)
    year: int | None = None


def text_of(value: Column) -> Column:
    """Return payloads as text; bytes that are not UTF-8 become replacement characters."""
    return fn.make_valid_utf8(value.cast("string"))


def events(messages: DataFrame, fields: EventFields) -> DataFrame:
    """Return messages as events: the columns `key`, `time` and `text`.

    A key or time that a message does not have is null, as is one that nothing was said about.

    Args:
        messages: has a column `value`.
        fields: where key and time are.

    Raises:
        QueryError: a field or the pattern is malformed, or the pattern has no group that is used.
    """
    text = text_of(fn.col("value"))
    if fields.pattern is not None:
        if fields.key_field is not None or fields.time_field is not None:
            raise QueryError("fields of JSON and a pattern cannot be used together")
        key, time = _groups(text, fields.pattern)
    else:
        key = None if fields.key_field is None else json_field(text, fields.key_field)
        time = None if fields.time_field is None else json_field(text, fields.time_field)
    made = fn.lit(None).cast("timestamp") if time is None else _time(time, fields)
    return messages.select(
        (fn.lit(None).cast("string") if key is None else key).alias("key"),
        made.alias("time"),
        text.alias("text"),
    )


def json_field(text: Column, path: str) -> Column:
    """Return a field of JSON objects as text; null where there is none.

    Raises:
        QueryError: the path is malformed.
    """
    names = path.removeprefix(".").split(".")
    if not all(names) or any("'" in name for name in names):
        raise QueryError(f"no path of a JSON field: '{path}'; valid: .user.id")
    return fn.get_json_object(text, "$" + "".join(f"['{name}']" for name in names))


def _groups(text: Column, pattern: str) -> tuple[Column | None, Column | None]:
    """Return the groups of a regular expression; Python's and Java's spelling of names will do."""
    try:
        compiled = re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern))
    except re.error as error:
        raise QueryError(f"'{pattern}' is no regular expression: {error}") from error
    places = compiled.groupindex
    if not {"key", "time"} & places.keys():
        raise QueryError(f"no group named key or time in '{pattern}'; valid: (?P<key>[0-9]+)")
    in_java = fn.lit(pattern.replace("(?P<", "(?<"))

    def group(name: str) -> Column | None:
        if name not in places:
            return None
        found = fn.get(fn.regexp_extract_all(text, in_java, fn.lit(places[name])), fn.lit(0))
        return fn.nullif(found, fn.lit(""))

    return group("key"), group("time")


def _time(text: Column, fields: EventFields) -> Column:
    form = fields.time_format
    if form.pattern is None:
        return any_time(text, form.zone)
    text, pattern = fn.regexp_replace(fn.trim(text), r"\s+", " "), form.pattern
    if not form.has_zone:
        text, pattern = fn.concat(text, fn.lit(f" {form.zone}")), f"{pattern} VV"
    if not form.has_year:
        year = fields.year or datetime.now(UTC).year
        text, pattern = fn.concat(fn.lit(f"{year} "), text), f"yyyy {pattern}"
    return fn.try_to_timestamp(text, fn.lit(pattern))


def any_time(text: Column, zone: str = "UTC") -> Column:
    """Return times out of text: ISO 8601, or seconds or milliseconds since 1970; else null.

    Args:
        text: a column of text.
        zone: of times that name none.
    """
    number = text.try_cast("double")
    millis = fn.when(number < _MILLISECONDS_FROM, number * 1000).otherwise(number)
    whole = fn.when(text.rlike(_DATE), fn.concat(text, fn.lit("T00:00:00"))).otherwise(text)
    zoned = fn.when(whole.rlike(_ZONE_AT_END), whole).otherwise(
        fn.concat(whole, fn.lit(f" {zone}"))
    )
    is_possible = millis.between(*_POSSIBLE_MS)
    moment = fn.when(is_possible, fn.timestamp_millis(fn.round(millis).cast("bigint")))
    return fn.when(number.isNotNull(), moment).otherwise(zoned.try_cast("timestamp"))
