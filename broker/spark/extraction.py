"""Text, key, time and number of events, extracted from payloads.

Python reads fields, groups and times, as elsewhere: Spark has other dialects and parsers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.functions import arrow_udf

from broker.errors import InvalidPatternError, QueryError
from broker.json_fields import read_json, value_at
from broker.json_fields import text_of as field_text
from broker.patterns import Pattern
from broker.spark.loading.dates import ANY_FORM, TimeFormat

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"


@dataclass(frozen=True, slots=True)
class EventFields:
    """Where the key, the time and a number of an event are in a payload.

    Attributes:
        key_field: field of a JSON object, nested ones separated by dots, such as `.user.id`.
        time_field: the same for the time.
        pattern: instead of fields: a regular expression with groups named `key`, `time` and
            `value`, searched for in the text.
        time_format: format of the time; a year is added so that the time is at most a day in the
            future, as times may lack their zone.
        value_field: field with a number, for sums and averages.
    """

    key_field: str | None = None
    time_field: str | None = None
    pattern: str | None = None
    time_format: TimeFormat = ANY_FORM
    value_field: str | None = None


def text_of(value: Column) -> Column:
    """Return payloads as text; bytes that are not UTF-8 become replacement characters."""
    return fn.make_valid_utf8(value.cast("string"))


def events(messages: DataFrame, fields: EventFields) -> DataFrame:
    """Return messages as events: the columns `key`, `time`, `text`, and `value` if it is named.

    A key, time or value is null if a message has none. A key or time that `fields` does not name is
    that of Kafka's records (columns `key` and `timestamp`), else null. A value is a finite number.
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
    of_record = set(messages.columns)
    key, made = fn.lit(None).cast("string"), fn.lit(None).cast("timestamp")
    if "key" in of_record:
        key = text_of(fn.col("key"))
    if "time" in found:
        made = any_time(found["time"], fields.time_format)
    elif "timestamp" in of_record:
        made = fn.col("timestamp")
    return messages.select(
        found.get("key", key).alias("key"),
        made.alias("time"),
        text.alias("text"),
        *([_finite(found["value"]).alias("value")] if "value" in found else []),
    )


def _finite(text: Column) -> Column:
    """Return text as a number, null if it is none: Spark would accept `12d`, as Java does."""
    number = fn.when(text.rlike(_NUMBER), text.try_cast("double"))
    return fn.when(fn.abs(number) < fn.lit(float("inf")), number)


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


def any_time(text: Column, form: TimeFormat = ANY_FORM) -> Column:
    """Parse times in a format; a year that they lack makes them at most a day in the future."""

    def parse(texts: pa.Array) -> pa.Array:
        latest = datetime.now(UTC) + timedelta(days=1)
        moments = (form.moment_of(one, latest) for one in texts.to_pylist())
        micros = [one and (one - _EPOCH) // timedelta(microseconds=1) for one in moments]
        return pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))

    made: Column = arrow_udf(parse, "timestamp")(text)  # type: ignore[call-overload]  # by its hints
    return made
