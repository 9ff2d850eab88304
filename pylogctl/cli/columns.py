"""The columns of what a command writes: the fields of its rows, each with its kind and meaning.

A field of a `Row` is `lag: Annotated[Bytes, "bytes not yet consumed"]`; its name is that of the
column. A field whose type is a row itself stands for the columns of that row, all of them hidden
if the field is noted as `HIDDEN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    dataclass_transform,
    get_args,
    get_type_hints,
)


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


class Rank(int):
    """How early a column is left out where a table is too wide: the highest first.

    A column of a rank from `RARE` on is left out before names are shortened to little.
    """


RARE = Rank(3)


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
Flag = Annotated[bool | None, ColumnKind.BOOLEAN]
HIDDEN = object()
"""Note on a field that is shown only in JSON, or where `--columns` names it."""


class Column(NamedTuple):
    """A field of the rows; without `shown` it is only in JSON, or where `--columns` names it."""

    name: str
    doc: str
    kind: ColumnKind = ColumnKind.TEXT
    shown: bool = True
    rank: int = 0  # of equal ones the last column is left out first
    noted_fit: Fit | None = None
    values: Any = None  # the type of its values; None for what the kind says

    @property
    def fit(self) -> Fit:
        """What becomes of cells that are too wide; only text may change."""
        return self.noted_fit or (Fit.SHORTEN if self.kind is ColumnKind.TEXT else Fit.WHOLE)

    @property
    def heading(self) -> str:
        """The heading in tables: `LAG-BYTES` for `lag_bytes`."""
        return self.name.upper().replace("_", "-")


def known_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row with None for `UNKNOWN`, as JSON has it."""
    return {name: None if value is UNKNOWN else value for name, value in record.items()}


@dataclass_transform(frozen_default=True)
class Row:
    """What a command writes about one thing.

    The type checker takes it for a dataclass. It is none, as to make a class of those, or of named
    tuples, costs each start of a command 0.2 ms.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(zip(self._fields, values, strict=False), **named)

    def by_column(self) -> dict[str, Any]:
        """Return the values by the names of their columns."""
        values: dict[str, Any] = {}
        for name in self._fields:
            value = getattr(self, name)
            if isinstance(value, Row):
                values.update(value.by_column())
            else:
                values[name] = value
        return values

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """Return the columns."""
        columns: list[Column] = []
        hints = get_type_hints(cls, include_extras=True)
        for name in cls._fields:
            kind, *notes = get_args(hints[name]) or (hints[name],)
            shown = HIDDEN not in notes
            if isinstance(kind, type) and issubclass(kind, Row):
                columns += (one._replace(shown=one.shown and shown) for one in kind.columns())
            else:
                doc = next(note for note in notes if isinstance(note, str))
                kinds = [note for note in notes if isinstance(note, ColumnKind)]
                (rank,) = [note for note in notes if isinstance(note, Rank)] or (0,)
                (fit,) = [note for note in notes if isinstance(note, Fit)] or (None,)
                columns.append(
                    Column(name, doc, (*kinds, ColumnKind.TEXT)[0], shown, rank, fit, kind)
                )
        return tuple(columns)


class Document(NamedTuple):
    """The columns of a command's rows; `empty` is the note that replaces an empty table."""

    schema: str
    layout: type[Row] | tuple[Column, ...]  # a class of rows, or columns for rows that are mappings
    empty: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in their order."""
        return self.layout if isinstance(self.layout, tuple) else self.layout.columns()

    def showing(self, *names: str) -> Document:
        """Return a document that shows these columns, too."""
        return self._replace(
            layout=tuple(c._replace(shown=c.shown or c.name in names) for c in self.columns)
        )

    def without(self, *names: str) -> Document:
        """Return a document that lacks these columns, where another has them of the same rows."""
        return self._replace(layout=tuple(c for c in self.columns if c.name not in names))
