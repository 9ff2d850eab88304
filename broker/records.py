"""Records: dataclasses and NamedTuples whose fields say what they mean, for tables, JSON and web.

A field, or the result of a property, is noted as `Annotated[Bytes, "readable bytes", Rank(1)]`. The
columns of commands and the documents of the web are made from these notes. A `TopicPartition` is
written as two fields, `topic` and `partition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from broker.topic import TopicPartition


class ColumnKind(Enum):
    """The kind of values in a column: how tables show them; other formats have the plain value."""

    TEXT = "text"
    INTEGER = "integer"
    BYTES = "bytes"
    SECONDS = "seconds"
    NUMBER = "number"
    RATE = "rate"
    BYTE_RATE = "byte_rate"
    TIME = "time"
    BOOLEAN = "boolean"


class Fit(Enum):
    """What becomes of a cell of text that is too wide for its column on a terminal."""

    SHORTEN = "shorten"
    """Its middle is left out: names, ids, owners."""
    WRAP = "wrap"
    """It continues on the next line: sentences and lists."""
    WHOLE = "whole"
    """The column is wide enough, or left out: addresses, offsets."""
    STATE = "state"
    """As `WHOLE`; a word, coloured by what it means."""
    ALARM = "alarm"
    """As `STATE`; in upper case unless it is ok or up, to be seen without colour."""


class Title(str):
    """Note on a field: the heading of its column, where the name of the field is too long."""


class Rank(int):
    """How early a column is left out where a table is too wide: the highest first.

    A column of a rank from `RARE` on is left out before names are shortened to little.
    """


RARE = Rank(3)

# Types of fields; a field of any other type is text. Counts and sizes are always known, the values
# of the other types may be unknown, or there is none.
Count = Annotated[int, ColumnKind.INTEGER]
Size = Annotated[int, ColumnKind.BYTES]
Text = str | None
Integer = Annotated[int | None, ColumnKind.INTEGER]
Bytes = Annotated[int | None, ColumnKind.BYTES]
Seconds = Annotated[float | None, ColumnKind.SECONDS]
Number = Annotated[float | None, ColumnKind.NUMBER]
Rate = Annotated[float | None, ColumnKind.RATE]  # of messages or requests, per second
ByteRate = Annotated[float | None, ColumnKind.BYTE_RATE]  # per second
Millis = Annotated[int | None, ColumnKind.TIME]  # since 1970
Moment = Annotated[datetime | None, ColumnKind.TIME]
Flag = Annotated[bool | None, ColumnKind.BOOLEAN]
HIDDEN = object()
"""Note on a field that is shown only in JSON, or where `--columns` names it."""
UNTOLD = object()
"""Note on a field whose None is a value that nobody told; elsewhere None is that there is none."""
_TOPIC = "name of the topic"
_PARTITION = "partition: home broker and index; a number in the format kafka"


class Field(NamedTuple):
    """A field of a record, or a property that is noted."""

    name: str
    kind: Any  # the type of its values
    notes: tuple[Any, ...]
    path: str  # of the attribute, with dots


@cache
def fields_of(record: type) -> tuple[Field, ...]:
    """Return the fields of a record, then its noted properties."""
    hints = get_type_hints(record, include_extras=True)
    names: Iterable[str] = getattr(record, "_fields", ())
    names = names or getattr(record, "__dataclass_fields__", ())
    found = [_field(name, hints[name]) for name in names]
    for name, one in vars(record).items():
        if isinstance(one, property):
            field = _field(name, get_type_hints(one.fget, include_extras=True).get("return"))
            found += [field] if field.notes else []
    return tuple(part for field in found for part in _parts(field))


def _field(name: str, hint: Any) -> Field:
    is_noted = hasattr(hint, "__metadata__")
    kind, *notes = get_args(hint) if is_noted else (hint,)
    return Field(name, kind, tuple(notes), name)


def _parts(field: Field) -> list[Field]:
    """Return the fields that stand for one: those of a record made of columns, or itself."""
    name, kind, notes, _ = field
    if kind is TopicPartition:
        hidden = tuple(one for one in notes if one is HIDDEN)
        return [
            Field("topic", str, (_TOPIC, *hidden), f"{name}.topic"),
            Field("partition", str, (_PARTITION, Fit.WHOLE, *hidden), f"{name}.name"),
        ]
    if getattr(kind, "is_part", False):
        return [
            one._replace(path=f"{name}.{one.path}", notes=one.notes + notes)
            for one in fields_of(kind)
        ]
    return [field]


@cache
def _reader(record: type) -> tuple[tuple[str, ...], attrgetter[Any]]:
    fields = fields_of(record)
    return tuple(one.name for one in fields), attrgetter(*(one.path for one in fields))


def values_of(record: object) -> dict[str, Any]:
    """Return the values of a record, as they are, by the names of its fields."""
    kind: Any = type(record)
    names, read = _reader(kind)
    return dict(zip(names, read(record) if len(names) > 1 else (read(record),), strict=True))


def plain(value: Any) -> Any:
    """Return a value as JSON has it; a record in it as an object, a partition as its text."""
    if isinstance(value, TopicPartition):
        return str(value)
    if hasattr(value, "_fields") or hasattr(value, "__dataclass_fields__"):
        return {name: plain(one) for name, one in values_of(value).items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    return value
