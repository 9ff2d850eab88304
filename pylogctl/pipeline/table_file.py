"""Tables in files of users: CSV, JSON or Parquet.

Of damaged text Spark makes other values, and fewer rows, without a word: it is checked before.
"""

from __future__ import annotations

import csv
import gzip
import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from pyspark.sql import DataFrame, SparkSession

from broker.errors import QueryError
from pylogctl.pipeline.options import file_format
from pylogctl.pipeline.results import CSV

_READ_OPTIONS = {
    "csv": {**CSV, "header": "true", "multiLine": "true", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
}
_MAX_FIELD = 2**31 - 1
_CODE_PAGE = "WINDOWS-1252"  # of most spreadsheets
_UNCHECKED = {".bz2", ".deflate", ".lz4", ".snappy", ".zst"}


def read_file(session: SparkSession, path: Path) -> DataFrame:
    """Return the table in a file, or in a directory of them, in the format of its suffix."""
    form = file_format(path)
    return session.read.format(form).options(**_READ_OPTIONS[form]).load(str(path))


def check_file(path: Path) -> None:
    """Raise a `QueryError` for the first line that is not UTF-8, a JSON object, or RFC 4180."""
    form = file_format(path)
    if form == "parquet":
        return
    if path.is_file() and not path.stat().st_size:
        raise QueryError(f"'{path}' is empty")
    header: tuple[Path, list[str]] | None = None
    for file in _read_files(path) if path.is_dir() else [path]:
        if file.suffix in _UNCHECKED:
            continue
        if form == "json":
            _check_json(file)
            continue
        found = _check_csv(file)
        if found and header and found != header[1]:
            _refuse(file, 1, f"its columns are not those of '{header[0]}'")
        header = header or (found and (file, found)) or None


def _read_files(directory: Path) -> Iterator[Path]:
    """Yield the files of a directory that Spark reads."""
    for one in sorted(directory.iterdir()):
        if one.name[0] in "._":
            continue
        if one.is_file():
            yield one
        elif "=" in one.name:  # of a partition
            yield from _read_files(one)


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the numbers and texts of the lines."""
    with _open(path) as file:
        start = b""
        for number, line in enumerate(file, 1):
            start = start or line
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                if start.startswith(b"\x1f\x8b"):
                    _refuse(path, 1, "is compressed by gzip: name the file .gz, or use gunzip")
                encoding = _CODE_PAGE
                if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                    encoding = "UTF-16"
                _refuse(
                    path,
                    number,
                    f"byte 0x{line[error.start]:02x} is not UTF-8: convert the file, such as with "
                    f"iconv -f {encoding} -t UTF-8",
                )


def _check_json(path: Path) -> None:
    for number, line in _lines(path):
        try:
            is_object = not line.strip() or isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            _refuse(
                path, number, "is not a JSON object: one a line, as jq -c '.[]' makes of a list"
            )


def _check_csv(path: Path) -> list[str]:
    """Return the columns."""
    for _ in _lines(path):
        pass
    csv.field_size_limit(_MAX_FIELD)
    header: list[str] = []
    with TextIOWrapper(_open(path), encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        number = 1
        try:
            for row in rows:
                header = header or row
                if row and len(row) != len(header):
                    _refuse(path, number, f"fields: {len(row)}, columns: {len(header)}")
                number = rows.line_num + 1
        except csv.Error as error:
            _refuse(path, number, f"a quote is not closed, or not doubled ({error})")
    return header


def _refuse(path: Path, number: int, reason: str) -> NoReturn:
    raise QueryError(f"'{path}' line {number}: {reason}")
