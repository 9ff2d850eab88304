"""Lays rows of text out for a terminal of some width.

Nothing that is read as one word is folded. Where a table is too wide, long names are shortened in
the middle, then columns are left out, those of the highest rank first, and a line below says which.
Columns of text with the same value in all rows stand in a line above the table, where two columns
remain; empty ones nowhere. A single row is shown as names and values.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from rich.cells import cell_len

from pylogctl.cli.columns import RARE, Column, ColumnKind, Fit

GAP = "  "
_UNKNOWN = "?"
_EMPTY = frozenset(("-", ""))
_LEAST_SHORTENED = 12
_READABLE = 24  # names are wider than that as long as there are columns of `RARE`
_MOST_DISTINCT = 32  # up to which width names are longer to be told apart
_FEW = 4  # characters at one end of a name
_LEAST_WRAPPED = 20
_NO_MEASURES = frozenset((ColumnKind.TEXT, ColumnKind.TIME, ColumnKind.BOOLEAN))
_FEW_COLUMNS = 3  # a row of so many is read as it is
_FEWEST_COLUMNS = 2  # a column alone does not tell what its rows are about

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_GREEN, _YELLOW, _RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
_COLORS = {
    **dict.fromkeys(
        (
            *("ok", "same", "active", "live", "running", "running (0.7)", "connected"),
            *("created", "deleted", "done", "elected", "begun", "better"),
        ),
        _GREEN,
    ),
    **dict.fromkeys(
        (
            *("lag", "warn", "idle", "no-offset", "empty", "stall", "none", "unknown"),
            *("starting", "stopping", "suspended", "late", "surplus", "duplicated", "open"),
            *("create", "delete", "removed", "throttled", "full", "archive", "scheduled"),
        ),
        _YELLOW,
    ),
    **dict.fromkeys(
        (
            *("fail", "failed", "error", "down", "gone", "dead", "stop", "rewind", "void"),
            *("out-of-range", "misaligned", "not-a-number", "differ", "damaged", "offline"),
            *("crc", "size", "magic", "codec", "compressed", "partial", "gap", "overlap"),
            *("missing", "lost", "refused", "worse", "unreadable", "corrupt", "closed"),
            *("no-owner", "dead-owner", "stale-owner", "bad-member", "stray-node"),
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
    gap: str = GAP  # between columns


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table, chosen by its first rows, and those that it lacks.

    `common` has columns that are the same in all rows, with their values.
    """

    columns: Sequence[Column]
    kept: Sequence[int]  # places in `columns`
    common: Sequence[tuple[Column, str]]
    left_out: Sequence[str]
    gap: str = GAP


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
    least_width = partial(_least_width, columns, rows, gap=terminal.gap)
    common: list[tuple[Column, str]] = []
    if is_wide or (are_all and len(rows) == 1 and len(columns) > _FEW_COLUMNS):
        return Layout(columns, kept, common, (), terminal.gap)
    if are_all and len(rows) > 1:
        same = {place for place in kept if len({row[place] for row in rows}) == 1}
        kept = [one for one in kept if one not in same or rows[0][one] not in _EMPTY] or [0]
        above = [one for one in kept if one in same and columns[one].kind in _NO_MEASURES]
        if same.issuperset(kept):
            same, above = set(), []  # rows that are all the same are still rows
        elif len(kept) - len(above) < _FEWEST_COLUMNS:
            above = above[1:]
        kept = [one for one in kept if one not in above]
        # A measure above the table would look like a total: it goes there only to make room.
        measures = [
            one for one in kept[1:] if one in same and columns[one].kind not in _NO_MEASURES
        ]
        measures.sort(key=lambda place: (columns[place].rank, place))
        while measures and len(kept) > _FEWEST_COLUMNS:
            if least_width(kept, _READABLE) <= terminal.width:
                break
            above.append(measures.pop())
            kept.remove(above[-1])
        common = [(columns[place], rows[0][place]) for place in sorted(above)]
    left_out: list[int] = []
    while len(kept) > 1:
        last = max(kept[1:], key=lambda place: (columns[place].rank, place))
        if least_width(kept, _shortest(columns[last])) <= terminal.width:
            break
        kept.remove(last)
        left_out.append(last)
    for place in left_out[::-1]:  # a narrow column may fit where a wide one did not
        wider = sorted((*kept, place))
        if least_width(wider, _shortest(columns[place])) <= terminal.width:
            kept = wider
    names = [columns[one].name for one in left_out[::-1] if one not in kept]
    return Layout(columns, kept, common, names, terminal.gap)


def _shortest(column: Column) -> int:
    """Return to how many characters names are shortened before a column is left out."""
    return _READABLE if column.rank >= RARE else _LEAST_SHORTENED


def _natural_widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int]
) -> list[int]:
    return [
        max(cell_len(columns[place].heading), *(cell_len(row[place]) for row in rows))
        for place in kept
    ]


def _least(column: Column, width: int, shortened: int = _LEAST_SHORTENED) -> int:
    """Return the least width of a column whose cells take `width` as they are."""
    least = {Fit.SHORTEN: shortened, Fit.WRAP: _LEAST_WRAPPED}.get(column.fit, width)
    return min(width, max(least, cell_len(column.heading)))


def _least_width(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    kept: Sequence[int],
    shortened: int,
    *,
    gap: str,
) -> int:
    widths = _natural_widths(columns, rows, kept)
    least = [
        _least(columns[place], width, shortened) for place, width in zip(kept, widths, strict=True)
    ]
    if kept[0] == 0 and columns[0].fit is Fit.SHORTEN and least[0] < widths[0]:
        least[0] = min(widths[0], max(least[0], _distinct_width([row[0] for row in rows])))
    return sum(least) + len(gap) * (len(kept) - 1)


def fitted_widths(
    layout: Layout, rows: Sequence[Sequence[str]], width: int, *, before: Sequence[int] = ()
) -> list[int]:
    """Return the width of each column: those that may be narrower share what is missing.

    `before` are the widths of the rows above, if there are any.
    """
    columns = [layout.columns[place] for place in layout.kept]
    widths = _natural_widths(layout.columns, rows, layout.kept)
    widths = [max(one, least) for one, least in zip_longest(widths, before, fillvalue=0)]
    least = [_least(column, one) for column, one in zip(columns, widths, strict=True)]
    if layout.kept[0] == 0 and columns[0].fit is Fit.SHORTEN and least[0] < widths[0]:
        least[0] = min(widths[0], max(least[0], _distinct_width([row[0] for row in rows])))
    excess = sum(widths) + len(layout.gap) * (len(widths) - 1) - width
    while excess > 0:
        able = [place for place, one in enumerate(widths) if one > least[place]]
        if not able:
            break
        widest = max(able, key=lambda place: widths[place])
        widths[widest] -= 1
        excess -= 1
    return widths


def table_lines(
    layout: Layout,
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    terminal: Terminal,
    *,
    header: bool,
) -> Iterator[str]:
    """Yield the lines of a table; what its layout leaves out is told by `notes`."""
    columns = [layout.columns[place] for place in layout.kept]
    if header:
        yield from _common_lines(layout, terminal)
        headings = _line(
            [_aligned(c.heading, w, c) for c, w in zip(columns, widths, strict=True)], layout.gap
        )
        yield f"{_BOLD}{headings}{_RESET}" if terminal.has_color else headings
        rule = "─" if terminal.has_unicode else "-"
        yield _line([rule * width for width in widths], layout.gap)
    heads = [
        _head([row[place] for row in rows], width)
        for place, width in zip(layout.kept, widths, strict=True)
    ]
    for row in rows:
        parts = [
            _fit(row[place], column, width, terminal, head)
            for place, column, width, head in zip(layout.kept, columns, widths, heads, strict=True)
        ]
        for number in range(max(map(len, parts))):
            cells = [part[number] if number < len(part) else "" for part in parts]
            yield _line(
                [
                    _colored(_aligned(cell, width, column), cell, column, terminal)
                    for cell, width, column in zip(cells, widths, columns, strict=True)
                ],
                layout.gap,
            )


def _common_lines(layout: Layout, terminal: Terminal) -> Iterator[str]:
    line, width = "", 0
    for column, value in layout.common:
        name = f"{column.heading} "
        first, *rest = _fit(value, column, terminal.width - len(name), terminal)
        taken = len(name) + cell_len(first)
        part = name + _colored(first, value, column, terminal)
        if line and width + len(GAP) + taken <= terminal.width and not rest:
            line, width = line + GAP + part, width + len(GAP) + taken
            continue
        if line:
            yield line
        line, width = part, taken
        for more in rest:
            yield line
            line, width = " " * len(name) + more, terminal.width
    if line:
        yield line


def _line(cells: Sequence[str], gap: str) -> str:
    return gap.join(cells).rstrip()


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
        first, *rest = _fit(value, column, room, terminal)
        yield f"{shown}{GAP}{_colored(first, value, column, terminal)}"
        yield from (" " * width + GAP + line for line in rest)


def notes(layout: Layout, terminal: Terminal, way: str) -> Iterator[str]:
    """Yield which columns are left out, if there are any, and the way to see them."""
    if layout.left_out:
        names = ", ".join(layout.left_out)
        text = f"not shown: {names}; {way}"
        yield from _wrapped(text, terminal.width, "…")


def _fit(
    text: str, column: Column, width: int, terminal: Terminal, head: int | None = None
) -> list[str]:
    """Return the lines of a cell; of a name that is shortened, `head` characters are its start."""
    if cell_len(text) <= width:
        return [text]
    mark = "…" if terminal.has_unicode else ".."
    if column.fit is Fit.WRAP:
        return _wrapped(text, width, mark)
    if column.fit is Fit.SHORTEN:
        return [_shortened(text, width, mark, head)]
    return [text]


class _Wrapper(textwrap.TextWrapper):
    """Folds text at blanks and after commas and bars, so that the ids of lists remain whole."""

    wordsep_simple_re = re.compile(r"(\s+|(?<=[,|])(?=\S))")


def _wrapped(text: str, width: int, mark: str) -> list[str]:
    """Fold text; a word that is too long is shortened, as it is read as one."""
    if cell_len(text) > len(text):
        width //= 2  # some characters take two cells
    wrapper = _Wrapper(width, break_on_hyphens=False, break_long_words=False)
    return [_shortened(line, width, mark) for line in wrapper.wrap(text)] or [""]


def _head(names: Sequence[str], width: int) -> int | None:
    """Return how much of the start of names to keep so that they can be told apart."""
    room = width - 1
    heads = ((room + 1) // 2, room - _FEW, _FEW)
    if all(len(name) <= width for name in names):
        return None
    return max(heads, key=lambda head: _distinct(names, room, head))


def _distinct(names: Sequence[str], room: int, head: int) -> int:
    return len({(name[:head], name[len(name) - room + head :]) for name in names})


def _distinct_width(names: Sequence[str]) -> int:
    """Return the least width to which names can be shortened so that they can be told apart."""
    distinct = len(set(names))
    for width in range(_LEAST_SHORTENED, _MOST_DISTINCT):
        if _distinct(names, width - 1, _head(names, width) or 0) == distinct:
            return width
    return _MOST_DISTINCT


def _shortened(text: str, width: int, mark: str, head: int | None = None) -> str:
    """Return the start and the end of a text that is too long."""
    if cell_len(text) <= width:
        return text
    room = width - len(mark)
    head = (room + 1) // 2 if head is None else min(head, room)
    start, end = text[:head], text[len(text) - (room - head) :]
    while cell_len(start) > head:
        start = start[:-1]
    while cell_len(end) > room - head:
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
    color = _COLORS.get(value.lower()) if column.fit in (Fit.STATE, Fit.ALARM) else None
    if value == _UNKNOWN:
        color = _DIM
    return f"{color}{shown}{_RESET}" if color else shown
