"""Writes the records of a `Document` in any output format, and long text through a pager.

A command declares its columns once; tables for people and formats for programs are written from the
same records.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

from broker.errors import BrokerError, did_you_mean
from broker.units import format_duration, format_rate, format_size, format_time
from pylogctl.cli.columns import UNKNOWN, Column, ColumnKind, Document, Fit, Row, by_column
from pylogctl.cli.environment import CliError, Environment, UsageError, terminal_width
from pylogctl.cli.escapes import one_line, printable

if TYPE_CHECKING:
    from pylogctl.cli.layout import Table

Record = Mapping[str, Any]
BLOCK_RECORDS = 1000
_ANY_WIDTH = 1 << 20


class _ColumnRow(Row):
    column: Annotated[str, "name"]
    kind: Annotated[str, "what it holds"]
    doc: Annotated[str, "meaning"]


def render(
    env: Environment,
    document: Document,
    rows: Iterable[Any],
    *,
    total: Any = None,
    is_part: bool = False,
) -> None:
    """Write rows, also records and mappings, in the format of `--output`, in blocks unless sorted.

    A missing field counts as unknown. `total` is a last row, in the formats for people only. With
    `is_part` more rows of the table come by further calls. A name in `--columns` or `--sort` that
    is no column is a UsageError.
    """
    if env.settings.columns == ("help",):
        rows = [_ColumnRow(c.name, c.kind.value, c.doc) for c in document.columns]
        document = Document(f"columns/{document.schema}", _ColumnRow, "no columns")
        total = None
    records: Iterable[Record] = map(by_column, rows)
    columns = chosen_columns(document, env.settings.columns)
    if env.settings.sort and env.settings.columns != ("help",):
        records = _sorted(records, document, env.settings.sort)
    if env.output in ("json", "jsonl"):
        # Programs get every column unless some are chosen.
        fields = columns if env.settings.columns else document.columns
        _write_json(env, document.schema, fields, records)
    elif env.output in ("csv", "tsv"):
        _write_separated(env, columns, records)
    else:
        if total is not None and env.output != "name":
            records = chain(records, (by_column(total),))
        if not _write_for_people(env, columns, records, is_part=is_part) and document.empty:
            env.note(document.empty)


def chosen_columns(document: Document, names: Sequence[str]) -> list[Column]:
    """Return the named columns in that order; without names, the columns that are shown."""
    if not names or names == ("help",):
        return [column for column in document.columns if column.shown]
    return [_column(document, name) for name in names]


def _column(document: Document, name: str) -> Column:
    known = {column.name: column for column in document.columns}
    wanted = name.strip().lower().replace("-", "_")
    if wanted not in known:
        raise UsageError(
            f"no column '{name}'{did_you_mean(wanted, known)}", f"columns: {', '.join(known)}"
        )
    return known[wanted]


def _sorted(records: Iterable[Record], document: Document, order: str) -> list[Record]:
    column = _column(document, order.removeprefix("-")).name
    everything = list(records)
    known = [record for record in everything if record.get(column) not in (None, UNKNOWN)]
    unknown = [record for record in everything if record.get(column) in (None, UNKNOWN)]
    known.sort(key=lambda record: record[column], reverse=order.startswith("-"))
    return known + unknown


def _write_json(
    env: Environment, schema: str, columns: Sequence[Column], records: Iterable[Record]
) -> None:
    encode = json_encoder(2 if env.streams.stdout_is_tty and env.output == "json" else None)
    objects = (
        encode({c.name: _json_value(record.get(c.name), c) for c in columns}) for record in records
    )
    if env.output == "jsonl":
        for text in objects:
            env.write(f"{text}\n".encode())
        return
    env.write(f'{{"schema":"pylogctl.{schema}","data":['.encode())
    try:
        for position, text in enumerate(objects):
            env.write(f"{',' if position else ''}{text}".encode())
    finally:
        # After a failure the output is still a valid document, with the records before it.
        env.write(b"]}\n")


_DECIMAL = re.compile(r'"\\udfff([^"]*)"')


def json_encoder(indent: int | None = None) -> Callable[[object], str]:
    """Return a function that encodes values as JSON, decimals as numbers with all their digits."""
    import json  # late: only for this format

    encode = json.JSONEncoder(
        indent=indent, separators=None if indent else (",", ":"), default=_marked_decimal
    ).encode

    def encoded(value: object) -> str:
        text = encode(value)
        return _DECIMAL.sub(r"\1", text) if "udfff" in text else text

    return encoded


def _marked_decimal(value: object) -> str:
    from decimal import Decimal  # late: few commands have one

    if not isinstance(value, Decimal):
        raise TypeError(f"{type(value).__name__} is not a value of JSON")
    return f"\udfff{value}"  # half of a character, with which no text begins


def _json_value(value: Any, column: Column) -> Any:
    if value is None or value is UNKNOWN:
        return None
    return format_time(value) if column.kind is ColumnKind.TIME else value


def _write_separated(
    env: Environment, columns: Sequence[Column], records: Iterable[Record]
) -> None:
    if not env.settings.no_header:
        env.write(_separated_line(env, [column.name for column in columns]))
    for record in records:
        values = [_plain_value(record.get(c.name), c) for c in columns]
        env.write(_separated_line(env, values))


def _separated_line(env: Environment, values: Sequence[str]) -> bytes:
    if env.streams.stdout_is_tty:
        values = [printable(value, keep="\t\n") for value in values]
    if env.output == "tsv":
        cells = [v.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for v in values]
        return ("\t".join(cells) + "\n").encode("utf-8", "surrogateescape")
    import csv  # late: only for this format

    line = io.StringIO(newline="")
    # The writer quotes the characters of its line end: a lone carriage return must be quoted too.
    csv.writer(line, lineterminator="\r\n").writerow(values)
    return (line.getvalue().removesuffix("\r\n") + "\n").encode("utf-8", "surrogateescape")


def _plain_value(value: Any, column: Column) -> str:
    """Return a value for csv and tsv: plain numbers, empty for unknown or none."""
    if value is None or value is UNKNOWN:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if column.kind is ColumnKind.TIME:
        return format_time(value)
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{key}:{'-' if one is None else one}" for key, one in value.items())
    return str(value)


_QUIET = ("ok", "up")  # words of an `ALARM` that stay as they are
_SCALED: dict[ColumnKind, Callable[[Any], str]] = {
    ColumnKind.BYTES: format_size,
    ColumnKind.BYTE_RATE: lambda value: f"{format_size(value)}/s",
    ColumnKind.RATE: format_rate,
    ColumnKind.SECONDS: format_duration,
    ColumnKind.TIME: lambda value: f"{format_time(value)[:-5]}Z",
}


def _text(env: Environment, value: Any, column: Column, *, scaled: bool) -> str:
    """Return a value for people: one line without control characters, `-` for none."""
    if value is UNKNOWN:
        return "?"
    if value is None or value in ([], (), {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.fit is Fit.ALARM and value not in _QUIET:
        return str(value).upper().replace(" ", "-")
    if scaled and (show := _SCALED.get(column.kind)):
        return show(value)
    if isinstance(value, dict):
        value = {key: "?" if one is None else one for key, one in value.items()}
    text = _plain_value(value, column)
    return printable(text) if env.streams.stdout_is_tty else one_line(text)


def _write_for_people(
    env: Environment, columns: Sequence[Column], records: Iterable[Record], *, is_part: bool
) -> bool:
    """Write rows in blocks, to bound the memory; return whether there were any."""
    header = not env.settings.no_header
    scaled = env.output == "table" and not env.settings.raw_numbers
    is_laid_out = env.output == "table" and env.streams.stdout_is_tty
    table = _terminal_table(env, columns) if is_laid_out else None
    is_whole = header and not is_part
    has_rows = False
    for block in _blocks(records):
        has_rows = True
        rows = [
            [_text(env, record.get(c.name), c, scaled=scaled) for c in columns] for record in block
        ]
        if env.output == "name":
            env.write_styled("\n".join(row[0] for row in rows))
        elif table is not None:
            are_all = is_whole and len(rows) < BLOCK_RECORDS
            env.write_styled("\n".join(table.add(rows, are_all=are_all)))
        else:
            env.write_styled(_tabulated(env, columns, rows, header=header))
        header = False
    if table is not None:
        env.flush()  # what stderr has comes below
        way = "--wide shows all, --columns chooses"
        if env.settings.properties:  # listed by commands that have no such options
            way = "--output tsv shows all"
        for line in table.notes(way):
            env.note(line)
    return has_rows


def _terminal_table(env: Environment, columns: Sequence[Column]) -> Table:
    from pylogctl.cli.layout import Table, Terminal  # late: only for terminals

    is_wide = env.settings.wide or bool(env.settings.columns)
    terminal = Terminal(
        _ANY_WIDTH if is_wide else terminal_width(env.environ),
        has_color=env.use_color(),
        has_unicode=env.unicode_output,
    )
    return Table(columns, terminal, is_wide, has_header=not env.settings.no_header)


def _blocks(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield lists of records; the records before a failure are yielded before it is raised."""
    block: list[Record] = []
    failure: Exception | None = None
    try:
        for record in records:
            block.append(record)
            if len(block) == BLOCK_RECORDS:
                yield block
                block = []
    except (CliError, BrokerError, OSError) as error:
        failure = error
    if block:
        yield block
    if failure is not None:
        raise failure


def _tabulated(
    env: Environment, columns: Sequence[Column], rows: list[list[str]], *, header: bool
) -> str:
    import tabulate

    # The default pads every number by two columns.
    tabulate.MIN_PADDING = 0
    formats = {"table": "simple" if header else "plain", "markdown": "github"}
    text = tabulate.tabulate(
        rows,
        headers=[column.heading for column in columns] if header else (),
        tablefmt=formats.get(env.output, "plain"),
        # The cells are text: tabulate would rewrite '1e5' and '007' as numbers.
        disable_numparse=True,
        missingval="-",
        colalign=["right" if _is_number(column) else "left" for column in columns],
        preserve_whitespace=True,
        maxcolwidths=None,
    )
    lines = [line.rstrip() for line in text.split("\n")]
    if header and env.use_color() and env.output in ("plain", "table"):
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    # Without a header tabulate still writes the rule below it, at the top.
    return "\n".join(lines[1:] if env.output == "markdown" and not header else lines)


def _is_number(column: Column) -> bool:
    return column.kind not in (ColumnKind.TEXT, ColumnKind.TIME, ColumnKind.BOOLEAN)


_DEFAULT_PAGER = "less -FRX"


def _pager_command(env: Environment) -> list[str]:
    """Return the command line of the pager, empty for none."""
    import shlex  # late, as the next: only for long text on a terminal
    import shutil

    if not env.streams.stdout_is_tty or env.settings.no_pager:
        return []
    text = env.environ.get("PYLOGCTL_PAGER") or env.environ.get("PAGER") or _DEFAULT_PAGER
    words = shlex.split(text)
    return words if words and shutil.which(words[0]) else []


@contextmanager
def paged(env: Environment) -> Iterator[Environment]:
    """Give an environment whose output goes through a pager; without a terminal, `env` itself."""
    command = _pager_command(env)
    if not command:
        yield env
        return
    import subprocess

    env.flush()
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        stdin = cast(BinaryIO, process.stdin)
        paged_env = env.changed(streams=env.streams._replace(stdout=stdin))
        with suppress(BrokenPipeError):  # the user left the pager: skip the rest of the block
            yield paged_env
            stdin.close()
