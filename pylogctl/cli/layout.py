"""Lays rows of text out for a terminal of some width.

Nothing that is read as one word is folded. Where a table is too wide, long names are shortened in
the middle, then columns are left out, those of the highest rank first, and a line below says which.
Columns of text with the same value in all rows stand in a line above the table, empty ones nowhere,
and a single row is shown as names and values.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from pylogctl.cli.columns import Column, ColumnKind, Fit

GAP = "  "
UNKNOWN = "?"
_EMPTY = frozenset(("-", ""))
_LEAST_SHORTENED = 12
_LEAST_WRAPPED = 20
_NO_MEASURES = frozenset((ColumnKind.TEXT, ColumnKind.TIME, ColumnKind.BOOLEAN))
_FEW_COLUMNS = 3  # a row of so many is read as it is

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_GREEN, _YELLOW, _RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
_COLORS = {
    **dict.fromkeys(("ok", "same", "active", "live", "running", "created", "done"), _GREEN),
    **dict.fromkeys(("lag", "warn", "idle", "no-offset", "empty", "stall", "none"), _YELLOW),
    **dict.fromkeys(
        (
            *("fail", "failed", "error", "down", "gone", "dead", "stop", "rewind", "void"),
            *("out-of-range", "misaligned", "not-a-number", "differ", "damaged", "offline"),
            *("crc", "size", "magic", "codec", "compressed", "partial", "gap", "overlap"),
        ),
        _RED,
    ),
}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What tables are laid out for."""

    width: int
    has_color: bool = False
    has_unicode: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table, chosen by its first rows, and those that it lacks.

    `common` has names and values of columns that are the same in all rows.
    """

    columns: Sequence[Column]
    kept: Sequence[int]  # places in `columns`
    common: Sequence[tuple[str, str]]
    left_out: Sequence[str]


def choose(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    terminal: Terminal,
    *,
    are_all: bool,
    is_wide: bool,
) -> Layout:
    """Choose the columns of a table; only if the rows `are_all` may equal ones leave it."""
    kept = list(range(len(columns)))
    common: list[tuple[str, str]] = []
    if is_wide or (are_all and len(rows) == 1 and len(columns) > _FEW_COLUMNS):
        return Layout(columns, kept, common, ())
    if are_all and len(rows) > 1:
        same = [place for place in kept[1:] if len({row[place] for row in rows}) == 1]
        is_tight = _least_width(columns, rows, kept) > terminal.width
        for place in same:
            value = rows[0][place]
            is_measure = columns[place].kind not in _NO_MEASURES
            if is_measure and not is_tight:
                continue  # above the table it would look like a total
            kept.remove(place)
            if value not in _EMPTY:
                common.append((columns[place].heading, value))
    left_out: list[str] = []
    while len(kept) > 1 and _least_width(columns, rows, kept) > terminal.width:
        last = max(kept[1:], key=lambda place: (columns[place].rank, place))
        kept.remove(last)
        left_out.append(columns[last].name)
    return Layout(columns, kept, common, left_out[::-1])


def _natural_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int]
) -> list[int]:
    return [
        max(cell_len(columns[place].heading), *(cell_len(row[place]) for row in rows))
        for place in kept
    ]


def _least(column: Column, width: int) -> int:
    """Return the least width of a column whose cells take `width` as they are."""
    least = {Fit.SHORTEN: _LEAST_SHORTENED, Fit.WRAP: _LEAST_WRAPPED}.get(column.fit, width)
    return min(width, max(least, cell_len(column.heading)))


def _least_width(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int]
) -> int:
    widths = _natural_widths(columns, rows, kept)
    least = [_least(columns[place], width) for place, width in zip(kept, widths, strict=True)]
    return sum(least) + len(GAP) * (len(kept) - 1)


def _fitted_widths(layout: Layout, rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the width of each column: those that may be narrower share what is missing."""
    columns = [layout.columns[place] for place in layout.kept]
    widths = _natural_widths(layout.columns, rows, layout.kept)
    least = [_least(column, one) for column, one in zip(columns, widths, strict=True)]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0:
        able = [place for place, one in enumerate(widths) if one > least[place]]
        if not able:
            break
        widest = max(able, key=lambda place: widths[place])
        widths[widest] -= 1
        excess -= 1
    return widths


def table_lines(
    layout: Layout, rows: Sequence[Sequence[str]], terminal: Terminal, *, header: bool
) -> Iterator[str]:
    """Yield the lines of a table; what its layout leaves out is told by `notes`."""
    columns = [layout.columns[place] for place in layout.kept]
    widths = _fitted_widths(layout, rows, terminal.width)
    if header:
        yield from _common_lines(layout, terminal.width)
        headings = _line([_aligned(c.heading, w, c) for c, w in zip(columns, widths, strict=True)])
        yield f"{_BOLD}{headings}{_RESET}" if terminal.has_color else headings
        rule = "─" if terminal.has_unicode else "-"
        yield _line([rule * width for width in widths])
    for row in rows:
        parts = [
            _fit(row[place], column, width, terminal)
            for place, column, width in zip(layout.kept, columns, widths, strict=True)
        ]
        for number in range(max(map(len, parts))):
            cells = [part[number] if number < len(part) else "" for part in parts]
            yield _line(
                [
                    _colored(_aligned(cell, width, column), cell, column, terminal)
                    for cell, width, column in zip(cells, widths, columns, strict=True)
                ]
            )


def _common_lines(layout: Layout, width: int) -> Iterator[str]:
    line = ""
    for name, value in layout.common:
        longer = f"{line}{GAP}{name} {value}" if line else f"{name} {value}"
        if line and cell_len(longer) > width:
            yield line
            longer = f"{name} {value}"
        line = longer
    if line:
        yield line


def _line(cells: Sequence[str]) -> str:
    return GAP.join(cells).rstrip()


def is_record(layout: Layout, rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are shown as names and values, as there is one and it has many columns."""
    return len(rows) == 1 and len(layout.columns) > _FEW_COLUMNS


def record_lines(
    columns: Sequence[Column], row: Sequence[str], terminal: Terminal
) -> Iterator[str]:
    """Yield the values of one row, each behind the name of its column."""
    width = max(cell_len(column.heading) for column in columns)
    for column, value in zip(columns, row, strict=True):
        if value in _EMPTY:
            continue
        name = _padded(column.heading, width)
        shown = f"{_BOLD}{name}{_RESET}" if terminal.has_color else name
        room = max(_LEAST_WRAPPED, terminal.width - width - len(GAP))
        first, *rest = textwrap.wrap(value, room) if column.fit is Fit.WRAP else [value]
        yield f"{shown}{GAP}{_colored(first, value, column, terminal)}"
        yield from (" " * width + GAP + line for line in rest)


def notes(layout: Layout) -> Iterator[str]:
    """Yield a line on the columns that are left out, if there are any."""
    if layout.left_out:
        names = ",".join(layout.left_out)
        yield f"not shown: {names}; --wide shows all, --columns chooses"


def _fit(text: str, column: Column, width: int, terminal: Terminal) -> list[str]:
    """Return the lines of a cell."""
    if cell_len(text) <= width:
        return [text]
    if column.fit is Fit.WRAP:
        return textwrap.wrap(text, width)
    if column.fit is Fit.SHORTEN:
        return [_shortened(text, width, "…" if terminal.has_unicode else "..")]
    return [text]


def _shortened(text: str, width: int, mark: str) -> str:
    """Return the start and the end of a text; in both, names that are alike can differ."""
    room = width - len(mark)
    start, end = text[: (room + 1) // 2], text[len(text) - room // 2 :]
    while cell_len(start) > (room + 1) // 2:
        start = start[:-1]
    while cell_len(end) > room // 2:
        end = end[1:]
    return start + mark + end


def _aligned(text: str, width: int, column: Column) -> str:
    if column.kind in _NO_MEASURES:
        return _padded(text, width)
    return " " * (width - cell_len(text)) + text


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _colored(shown: str, value: str, column: Column, terminal: Terminal) -> str:
    if not terminal.has_color:
        return shown
    color = _COLORS.get(value.lower()) if column.fit is Fit.STATE else None
    if value == UNKNOWN:
        color = _DIM
    return f"{color}{shown}{_RESET}" if color else shown
