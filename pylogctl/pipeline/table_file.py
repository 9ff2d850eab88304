"""Tables in files of users: CSV, JSON or Parquet.

Of damaged text Spark makes other values, and fewer rows, without a word: it is checked before.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from broker.errors import QueryError
from pylogctl.pipeline.options import file_format
from pylogctl.pipeline.results import CSV

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READ_OPTIONS = {
    "csv": {**CSV, "header": "true", "multiLine": "true", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
}
_MAX_FIELD = 2**31 - 1
_NOT_UTF_8 = "is not UTF-8: convert the file, such as with iconv -f WINDOWS-1252 -t UTF-8"


def read_file(session: SparkSession, path: Path) -> DataFrame:
    """Return the table in a file, or in a directory of them, in the format of its suffix."""
    form = file_format(path)
    return session.read.format(form).options(**_READ_OPTIONS[form]).load(str(path))


def check_file(path: Path) -> None:
    """Raise a `QueryError` for the first line that is not UTF-8, a JSON object, or RFC 4180."""
    form = file_format(path)
    for file in _read_files(path) if path.is_dir() else [path]:
        if form == "csv":
            _check_csv(file)
        elif form == "json":
            _check_json(file)


def _read_files(directory: Path) -> list[Path]:
    """Return the files of a directory that Spark reads."""
    return [
        file
        for file in sorted(directory.rglob(f"*{directory.suffix}"))
        if file.is_file() and not any(one[0] in "._" for one in file.relative_to(directory).parts)
    ]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the numbers and texts of the lines."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                _refuse(path, number, f"byte 0x{line[error.start]:02x} {_NOT_UTF_8}")


def _check_json(path: Path) -> None:
    for number, line in _lines(path):
        try:
            is_object = not line.strip() or isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            _refuse(path, number, "is not a JSON object")


def _check_csv(path: Path) -> None:
    for _ in _lines(path):
        pass
    csv.field_size_limit(_MAX_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        number, width = 1, 0
        try:
            for row in rows:
                width = width or len(row)
                if row and len(row) != width:
                    _refuse(path, number, f"fields: {len(row)}, columns: {width}")
                number = rows.line_num + 1
        except csv.Error as error:
            _refuse(path, number, f"a quote is not closed, or not doubled ({error})")


def _refuse(path: Path, number: int, reason: str) -> NoReturn:
    raise QueryError(f"'{path}' line {number}: {reason}")
