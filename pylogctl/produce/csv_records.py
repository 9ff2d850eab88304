"""One column of CSV input, as messages.

The first line names the columns. Text is never decoded for good: bytes that are no UTF-8 come out
as they went in.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

from pylogctl.cli.errors import UsageError, did_you_mean
from pylogctl.format.framing_reader import ChunkReader, Framed, Refuse, read_delimited, refuse_all

_MORE_COLUMNS_BYTES = 1 << 20
_BYTE_ORDER_MARK = "\ufeff"


def read_column(
    stream: ChunkReader, column: str, *, max_message_bytes: int, refuse: Refuse = refuse_all
) -> Iterator[Framed]:
    """Yield the fields of one column, record by record.

    Args:
        stream: RFC 4180 text; line ends may be LF or CRLF.
        column: its name in the first line.
        max_message_bytes: limit of a field.
        refuse: called for a record that is malformed or too short; the error names its line.

    Raises:
        UsageError: there is no such column.
    """
    limit = 2 * max_message_bytes + _MORE_COLUMNS_BYTES
    csv.field_size_limit(limit)
    lines = _Lines(stream, limit, refuse)
    rows = csv.reader(lines, strict=True)
    header = next(rows, None)
    if header is None:
        return
    place = _place_of(column, header)
    number = 0
    while True:
        lines.taken.clear()
        try:
            row = next(rows, None)
        except csv.Error as error:
            number += 1
            refuse(number, UsageError(f"line {rows.line_num}: {error}"))
            continue
        if row is None:
            return
        if not row:
            continue
        number += 1
        if place >= len(row):
            text = f"line {rows.line_num}: {len(row)} fields, none for column '{column}'"
            refuse(number, UsageError(text))
            continue
        raw = b"".join([line.raw for line in lines.taken])
        payload = row[place].encode("utf-8", "surrogateescape")
        yield Framed(number, lines.taken[0].position, raw, payload)


class _Lines:
    """Lines as the csv module wants them, and a memory of those it took."""

    def __init__(self, stream: ChunkReader, limit: int, refuse: Refuse) -> None:
        self._lines = read_delimited(stream, b"\n", limit, refuse)
        self.taken: list[Framed] = []

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.taken.append(line)
        return line.raw.decode("utf-8", "surrogateescape")


def _place_of(column: str, header: list[str]) -> int:
    names = [header[0].removeprefix(_BYTE_ORDER_MARK), *header[1:]] if header else []
    if column not in names:
        raise UsageError(
            f"no column '{column}' in line 1{did_you_mean(column, names)}",
            hints=[f"columns: {', '.join(names)}"],
        )
    return names.index(column)
