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
from dataclasses import dataclass, field
from itertools import zip_longest

from rich.cells import cell_len

from pylogctl.cli.columns import RARE, Column, ColumnKind, Fit

Rows = Sequence[Sequence[str]]

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
_WORDS = {
    _GREEN: "ok same active live running connected created deleted done elected begun better",
    _YELLOW: "lag warn idle no-offset empty stall none unknown starting stopping suspended late "
    "surplus duplicated open create delete removed throttled full archive scheduled",
    _RED: "fail failed error down gone dead stop rewind void out-of-range misaligned not-a-number "
    "differ damaged offline crc size magic codec compressed partial gap overlap missing lost "
    "refused worse unreadable corrupt closed no-owner dead-owner stale-owner bad-member stray-node",
}
_COLORS = {word: color for color, words in _WORDS.items() for word in words.split()}
_COLORS["running (0.7)"] = _GREEN


@dataclass(frozen=True, slots=True)
class Terminal:
    """What tables are laid out for."""

    width: int
    has_color: bool = False
    has_unicode: bool = True
    gap: str = GAP  # between columns


@dataclass(slots=True)
class Table:
    """A table on a terminal, whose first rows decide on its columns.

    Attributes:
        columns: those that are wanted; all are shown if it `is_wide`.
        kept: the places in `columns` of those that are shown.
        common: columns that are the same in all rows, with their values.
        left_out: the names of columns for which there is no room.
    """

    columns: Sequence[Column]
    terminal: Terminal
    is_wide: bool = False
    has_header: bool = True
    kept: list[int] = field(init=False)
    common: list[tuple[Column, str]] = field(default_factory=list, init=False)
    left_out: list[str] = field(default_factory=list, init=False)
    _widths: list[int] = field(default_factory=list, init=False)  # of `kept`, for the rows so far

    def __post_init__(self) -> None:
        self.kept = list(range(len(self.columns)))

    def add(self, rows: Rows, *, are_all: bool) -> Iterator[str]:
        """Yield the lines of further rows; a row that is all, and has many columns, as a record."""
        is_first = not self._widths
        if is_first and are_all and not self.is_wide and self.is_record(rows):
            yield from self._record_lines(rows[0])
            return
        if is_first and not self.is_wide:
            self.choose(rows, are_all=are_all)
        self.fit(rows)
        yield from self.lines(rows, header=is_first and self.has_header)

    def is_record(self, rows: Rows) -> bool:
        """Whether rows are shown as names and values, as there is one and it has many columns."""
        return len(rows) == 1 and len(self.columns) > _FEW_COLUMNS

    def choose(self, rows: Rows, *, are_all: bool) -> None:
        """Choose the columns by the first rows; only if they `are_all` may equal ones leave it."""
        columns, width, kept = self.columns, self.terminal.width, self.kept
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
                if self._least_width(rows, kept, _READABLE) <= width:
                    break
                above.append(measures.pop())
                kept.remove(above[-1])
            self.common = [(columns[place], rows[0][place]) for place in sorted(above)]
        left_out: list[int] = []
        while len(kept) > 1:
            last = max(kept[1:], key=lambda place: (columns[place].rank, place))
            if self._least_width(rows, kept, _shortest(columns[last])) <= width:
                break
            kept.remove(last)
            left_out.append(last)
        for place in left_out[::-1]:  # a narrow column may fit where a wide one did not
            wider = sorted((*kept, place))
            if self._least_width(rows, wider, _shortest(columns[place])) <= width:
                kept = wider
        self.kept = kept
        self.left_out = [columns[one].name for one in left_out[::-1] if one not in kept]

    def _least_width(self, rows: Rows, kept: Sequence[int], shortened: int) -> int:
        least = self._least_widths(rows, kept, self._natural_widths(rows, kept), shortened)
        return sum(least) + len(self.terminal.gap) * (len(kept) - 1)

    def _natural_widths(self, rows: Rows, kept: Sequence[int]) -> list[int]:
        return [
            max(cell_len(self.columns[place].heading), *(cell_len(row[place]) for row in rows))
            for place in kept
        ]

    def _least_widths(
        self, rows: Rows, kept: Sequence[int], widths: Sequence[int], shortened: int
    ) -> list[int]:
        """Return the least width of each column whose cells take `widths` as they are."""
        found = []
        for place, width in zip(kept, widths, strict=True):
            column = self.columns[place]
            least = {Fit.SHORTEN: shortened, Fit.WRAP: _LEAST_WRAPPED}.get(column.fit, width)
            found.append(min(width, max(least, cell_len(column.heading))))
        if kept[0] == 0 and self.columns[0].fit is Fit.SHORTEN and found[0] < widths[0]:
            found[0] = min(widths[0], max(found[0], _distinct_width([row[0] for row in rows])))
        return found

    def fit(self, rows: Rows) -> None:
        """Set the width of each column: those that may be narrower share what is missing."""
        widths = self._natural_widths(rows, self.kept)
        widths = [max(one, least) for one, least in zip_longest(widths, self._widths, fillvalue=0)]
        least = self._least_widths(rows, self.kept, widths, _LEAST_SHORTENED)
        excess = sum(widths) + len(self.terminal.gap) * (len(widths) - 1) - self.terminal.width
        while excess > 0:
            able = [place for place, one in enumerate(widths) if one > least[place]]
            if not able:
                break
            widths[max(able, key=lambda place: widths[place])] -= 1
            excess -= 1
        self._widths = widths

    def lines(self, rows: Rows, *, header: bool) -> Iterator[str]:
        """Yield the lines of a table; what it leaves out is told by `notes`."""
        terminal, gap = self.terminal, self.terminal.gap
        layout = [(place, self.columns[place]) for place in self.kept]
        sized = list(zip(layout, self._widths, strict=True))
        if header:
            yield from self._common_lines()
            headings = _line([_aligned(c.heading, width, c) for (_, c), width in sized], gap)
            yield f"{_BOLD}{headings}{_RESET}" if terminal.has_color else headings
            rule = "─" if terminal.has_unicode else "-"
            yield _line([rule * width for width in self._widths], gap)
        heads = [_head([row[place] for row in rows], width) for (place, _), width in sized]
        for row in rows:
            parts = [
                _fit(row[place], column, width, terminal, head)
                for ((place, column), width), head in zip(sized, heads, strict=True)
            ]
            for number in range(max(map(len, parts))):
                cells = [part[number] if number < len(part) else "" for part in parts]
                yield _line(
                    [
                        _colored(_aligned(cell, width, column), cell, column, terminal)
                        for cell, ((_, column), width) in zip(cells, sized, strict=True)
                    ],
                    gap,
                )

    def _common_lines(self) -> Iterator[str]:
        line, width, terminal = "", 0, self.terminal
        for column, value in self.common:
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

    def _record_lines(self, row: Sequence[str]) -> Iterator[str]:
        """Yield the values of one row, each behind the name of its column."""
        terminal = self.terminal
        width = max(cell_len(column.heading) for column in self.columns)
        for column, value in zip(self.columns, row, strict=True):
            if value in _EMPTY:
                continue
            name = _padded(column.heading, width)
            shown = f"{_BOLD}{name}{_RESET}" if terminal.has_color else name
            room = max(_LEAST_WRAPPED, terminal.width - width - len(GAP))
            first, *rest = _fit(value, column, room, terminal)
            yield f"{shown}{GAP}{_colored(first, value, column, terminal)}"
            yield from (" " * width + GAP + line for line in rest)

    def notes(self, way: str) -> list[str]:
        """Return which columns are left out, if there are any, and the way to see them."""
        if not self.left_out:
            return []
        return _wrapped(f"not shown: {', '.join(self.left_out)}; {way}", self.terminal.width, "…")


def _shortest(column: Column) -> int:
    """Return to how many characters names are shortened before a column is left out."""
    return _READABLE if column.rank >= RARE else _LEAST_SHORTENED


def _line(cells: Sequence[str], gap: str) -> str:
    return gap.join(cells).rstrip()


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
