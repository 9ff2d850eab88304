"""The columns of what a command writes: the fields of its rows, each with its kind and meaning.

A field of a `Row` is `lag: Annotated[Bytes, "bytes not yet consumed"]`; its name is that of the
column. A field whose type is a row itself stands for the columns of that row, all of them hidden
if the field is noted as `HIDDEN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

from broker.records import HIDDEN as HIDDEN
from broker.records import RARE as RARE
from broker.records import UNTOLD as UNTOLD
from broker.records import ByteRate as ByteRate
from broker.records import Bytes as Bytes
from broker.records import ColumnKind as ColumnKind
from broker.records import Count as Count
from broker.records import Fit as Fit
from broker.records import Flag as Flag
from broker.records import Integer as Integer
from broker.records import Millis as Millis
from broker.records import Moment as Moment
from broker.records import Number as Number
from broker.records import Rank as Rank
from broker.records import Rate as Rate
from broker.records import Seconds as Seconds
from broker.records import Size as Size
from broker.records import Text as Text
from broker.records import Title as Title
from broker.records import fields_of, plain, values_of
from broker.times import epoch_ms


class _Unknown:
    """The type of `UNKNOWN`."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
"""A value that there is, but that nobody told; None is that there is none. Both are null in JSON,
and empty in CSV."""


def if_known(value: Any) -> Any:
    """Return a value, `UNKNOWN` for None."""
    return UNKNOWN if value is None else value


class Column(NamedTuple):
    """A field of the rows; without `shown` it is only in JSON, or where `--columns` names it."""

    name: str
    doc: str
    kind: ColumnKind = ColumnKind.TEXT
    shown: bool = True
    rank: int = 0  # of equal ones the last column is left out first
    noted_fit: Fit | None = None
    values: Any = None  # the type of its values; None for what the kind says
    is_told: bool = True  # whether None is that there is none, not that nobody told it
    title: str = ""  # instead of the name

    @property
    def fit(self) -> Fit:
        """What becomes of cells that are too wide; only text may change."""
        return self.noted_fit or (Fit.SHORTEN if self.kind is ColumnKind.TEXT else Fit.WHOLE)

    @property
    def heading(self) -> str:
        """The heading in tables: `LAG-BYTES` for `lag_bytes`, unless there is another."""
        return self.title or self.name.upper().replace("_", "-")


def known_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row with None for `UNKNOWN`, as JSON has it."""
    return {name: None if value is UNKNOWN else value for name, value in record.items()}


@dataclass_transform(frozen_default=True)
class Row:
    """What a command writes about one thing.

    The type checker takes it for a dataclass. It is none, as to make a class of those, or of named
    tuples, costs each start of a command 0.2 ms.
    """

    is_part: ClassVar = True  # a field of this type stands for its columns
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self._fields, values, strict=False), **named)

    @classmethod
    def of(cls, record: NamedTuple, **others: Any) -> Self:
        """Return the row that has the values of a record under the same names, and `others`."""
        return cls(**(record._asdict() | others))

    def by_column(self) -> dict[str, Any]:
        """Return the values by the names of their columns."""
        return values_of(self)


@cache
def columns_of(record: type) -> tuple[Column, ...]:
    """Return the columns of the noted fields of a record."""
    columns: list[Column] = []
    for name, kind, notes, _ in fields_of(record):
        texts = {type(note): note for note in notes if isinstance(note, str)}
        doc, title = texts.get(str), texts.get(Title, "")
        if doc is not None:
            kinds = [note for note in notes if isinstance(note, ColumnKind)]
            (rank,) = [note for note in notes if isinstance(note, Rank)] or (0,)
            (fit,) = [note for note in notes if isinstance(note, Fit)] or (None,)
            shown, told = HIDDEN not in notes, UNTOLD not in notes
            shape = (*kinds, ColumnKind.TEXT)[0]
            columns.append(Column(name, doc, shape, shown, rank, fit, kind, told, title))
    return tuple(columns)


def by_column(record: Any) -> Mapping[str, Any]:
    """Return the values of a row, or of another record, by the names of their columns."""
    if isinstance(record, Mapping):
        return record
    values = values_of(record)
    if isinstance(record, Row):
        return values
    kind: Any = type(record)
    return {one.name: _value(values[one.name], one) for one in columns_of(kind)}


def _value(value: Any, column: Column) -> Any:
    if value is None:
        return None if column.is_told else UNKNOWN
    return epoch_ms(value) if isinstance(value, datetime) else plain(value)


class Document(NamedTuple):
    """The columns of a command's rows; `empty` is the note that replaces an empty table."""

    schema: str
    layout: type | tuple[Column, ...]  # a class of records, or columns for rows that are mappings
    empty: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in their order."""
        return self.layout if isinstance(self.layout, tuple) else columns_of(self.layout)

    def also(self, *columns: Column) -> Document:
        """Return a document with more columns."""
        return self._replace(layout=(*self.columns, *columns))

    def showing(self, *names: str) -> Document:
        """Return a document that shows these columns, too."""
        return self._replace(
            layout=tuple(c._replace(shown=c.shown or c.name in names) for c in self.columns)
        )

    def without(self, *names: str) -> Document:
        """Return a document that lacks these columns, where another has them of the same rows."""
        return self._replace(layout=tuple(c for c in self.columns if c.name not in names))
