"""Tables of Spark as documents: their columns, and rows as values that any output format takes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pylogctl.errors import UsageError
from pylogctl.render import Column, Document, Kind, Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_NESTED = (ArrayType, MapType, StructType)


def document_of(table: DataFrame, name: str, empty: str) -> Document:
    """Return the columns of a table as those of a document.

    Args:
        table: any.
        name: of the document.
        empty: what is said if there are no rows.

    Raises:
        UsageError: two columns have the same name.
    """
    names = [field.name for field in table.schema]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UsageError(f"two columns are called '{twice[0]}'", hints=["give one a name with AS"])
    columns = (
        Column(field.name, field.dataType.simpleString(), _kind(field.dataType))
        for field in table.schema
    )
    return Document(name, tuple(columns), empty)


def records_of(schema: StructType, rows: Iterable[Row], *, is_json: bool) -> Iterator[Record]:
    """Give rows as records.

    Times are in UTC, binary values in base64; what is nested stays so in JSON, and is JSON text
    elsewhere.

    Args:
        schema: of the rows.
        rows: as Spark gives them.
        is_json: whether they become JSON.
    """
    names = [field.name for field in schema]
    converters = [_for_output(field.dataType, is_json) for field in schema]
    for row in rows:
        yield {
            name: None if value is None else convert(value)
            for name, convert, value in zip(names, converters, row, strict=True)
        }


def _kind(kind: DataType) -> Kind:
    if isinstance(kind, IntegralType):
        return Kind.INTEGER
    if isinstance(kind, FractionalType):
        return Kind.NUMBER
    return Kind.BOOLEAN if isinstance(kind, BooleanType) else Kind.TEXT


def _for_output(kind: DataType, is_json: bool) -> Callable[[Any], Any]:
    convert = _converter(kind)
    if is_json or not isinstance(kind, _NESTED):
        return convert
    return lambda value: json.dumps(convert(value), separators=(",", ":"))


def _converter(kind: DataType) -> Callable[[Any], Any]:
    """Return what makes a value of a type one that JSON has."""
    match kind:
        case StringType() | IntegralType() | BooleanType():
            return lambda value: value
        case BinaryType():
            return lambda value: base64.b64encode(value).decode()
        case TimestampType():
            return _utc_text
        case DateType() | TimestampNTZType():
            return lambda value: value.isoformat()
        case FractionalType():
            return _number
        case ArrayType(elementType=inner):
            each = _optional(inner)
            return lambda values: [each(value) for value in values]
        case MapType(keyType=key_type, valueType=inner):
            name, each = _optional(key_type), _optional(inner)
            return lambda values: {str(name(key)): each(value) for key, value in values.items()}
        case StructType():
            fields = [(field.name, _optional(field.dataType)) for field in kind]
            return lambda row: {
                name: each(value) for (name, each), value in zip(fields, row, strict=True)
            }
    return str


def _optional(kind: DataType) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _utc_text(moment: datetime) -> str:
    """Return a time in UTC; Spark gives it in local time without saying so."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    spec = "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return f"{utc.isoformat(timespec=spec if utc.microsecond else 'seconds')}Z"


def _number(value: Any) -> Any:
    return value if isinstance(value, float) and math.isfinite(value) else str(value)
