"""Output of pipeline jobs to standard output, a file, a table or a topic.

Tasks write the parts of a file in parallel; the parts are joined and renamed into place. Rows on
standard output are rendered as records in any output format.
"""

from __future__ import annotations

import base64
import csv
import io
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, types
from pyspark.sql import functions as fn

from broker.errors import QueryError
from broker.files import sync_directory
from broker.spark.options import WriteOptions
from broker.spark.queries import quoted
from broker.spark.runtime.temporary import temporary_directory
from broker.spark.source import FORMAT
from broker.spark.tables import append_rows
from pylogctl.cli.columns import Column, ColumnKind, Document
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.render import Record, json_encoder, render
from pylogctl.pipeline.options import TargetChoice, file_format
from pylogctl.pipeline.reading import cluster_of, connection_of
from pylogctl.pipeline.spark import query_progress

_FIRST_MICROS = -62_135_596_800_000_000  # the year 1
_LAST_MICROS = 253_402_300_799_999_999  # the end of 9999
_CYCLE_MICROS = 146_097 * 86_400_000_000  # 400 years
_NESTED = (types.ArrayType, types.MapType, types.StructType)
_SENT = ("value", "key")
# as in RFC 4180, so that other readers see the same values; Spark would trim, and escape by "\"
CSV = {"escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
_LOCAL_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_TIMES = {  # by default Spark omits microseconds
    "timestampFormat": f"{_LOCAL_TIME}XXX",
    "timestampNTZFormat": _LOCAL_TIME,
}
_FILE_OPTIONS = {"csv": CSV | _TIMES, "json": _TIMES, "parquet": {}}


def document_of(table: DataFrame, name: str, empty: str) -> Document:
    """Return the columns of a table as a document; `empty` is printed if there are no rows."""
    names = [field.name for field in table.schema]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UsageError(f"two columns are called '{twice[0]}'", "give one a name with AS")
    columns = (
        Column(field.name, field.dataType.simpleString(), _kind(field.dataType))
        for field in table.schema
    )
    return Document(name, tuple(columns), empty)


def records_of(schema: types.StructType, rows: Iterable[Row], *, is_json: bool) -> Iterator[Record]:
    """Convert rows of `printable` to records: times in UTC, binary values in base64.

    Nested values stay nested in JSON, and become JSON text elsewhere.
    """
    names = [field.name for field in schema]
    converters = [_for_output(field.dataType, is_json) for field in schema]
    for row in rows:
        yield {
            name: None if value is None else convert(value)
            for name, convert, value in zip(names, converters, row, strict=True)
        }


def _kind(kind: types.DataType) -> ColumnKind:
    if isinstance(kind, types.IntegralType):
        return ColumnKind.INTEGER
    if isinstance(kind, types.FractionalType):
        return ColumnKind.NUMBER
    return ColumnKind.BOOLEAN if isinstance(kind, types.BooleanType) else ColumnKind.TEXT


def _for_output(kind: types.DataType, is_json: bool) -> Callable[[Any], Any]:
    convert = _converter(kind)
    if is_json or not isinstance(kind, _NESTED):
        return convert
    encode = json_encoder()
    return lambda value: encode(convert(value))


def _converter(kind: types.DataType) -> Callable[[Any], Any]:
    match kind:
        case types.StringType() | types.IntegralType() | types.BooleanType() | types.DecimalType():
            return lambda value: value
        case types.BinaryType():
            return lambda value: base64.b64encode(value).decode()
        case types.TimestampType():
            return _utc_text
        case types.DateType() | types.TimestampNTZType():
            return lambda value: value.isoformat()
        case types.FractionalType():
            return _number
        case types.ArrayType(elementType=inner):
            each = _optional(inner)
            return lambda values: [each(value) for value in values]
        case types.MapType(keyType=key_type, valueType=inner):
            name, each = _optional(key_type), _optional(inner)
            return lambda values: {str(name(key)): each(value) for key, value in values.items()}
        case types.StructType():
            fields = [(field.name, _optional(field.dataType)) for field in kind]
            return lambda row: {
                name: each(value) for (name, each), value in zip(fields, row, strict=True)
            }
    return str


def _optional(kind: types.DataType) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _utc_text(moment: datetime | int) -> str:
    """Format a time in UTC: a naive local one, as Spark returns it, or microseconds since 1970."""
    if isinstance(moment, datetime):
        utc, shift = moment.astimezone(UTC).replace(tzinfo=None), 0
    else:
        utc, shift = _in_calendar(moment)
    spec = "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    text = utc.isoformat(timespec=spec if utc.microsecond else "seconds")
    if shift:  # ISO 8601 has years of other than four digits with a sign
        text = f"{utc.year + shift:+05d}{text[4:]}"
    return f"{text}Z"


def _in_calendar(micros: int) -> tuple[datetime, int]:
    """Return a time in UTC in a year that Python has, and by how many years it is shifted."""
    shift, rest = 0, micros
    if not _FIRST_MICROS <= micros <= _LAST_MICROS:  # the calendar repeats after 400 years
        cycles, rest = divmod(micros - _FIRST_MICROS, _CYCLE_MICROS)
        shift, rest = 400 * cycles, rest + _FIRST_MICROS
    return datetime(1970, 1, 1) + timedelta(microseconds=rest), shift  # noqa: DTZ001 - in UTC


def _number(value: float) -> float | str:
    """Return a number; if JSON has none for it the text that Spark writes into files."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else str(value).replace("inf", "Infinity")


def write_result(
    env: Environment,
    table: DataFrame,
    target: TargetChoice,
    name: str,
    *,
    order: Sequence[str] | None = None,
) -> None:
    """Write the rows of a batch to their target.

    On standard output the document is called `name`; with `order`, all rows are collected in one
    job and sorted by these columns, else they are written as they are computed.
    """
    document = document_of(table, name, "no rows")
    rows: Iterable[Row] | None = None
    with query_progress(env, table.sparkSession):
        if target.into is not None:
            write_file(table, target.into)
        elif (wanted := target.target()) is not None:
            append_rows(table, wanted)
        elif target.to_topic is not None:
            send_rows(env, table, target.to_topic)
        else:  # until the first row is printed
            rows = _started(table) if order is None else collected(table)
            if order:  # null first
                rows = sorted(
                    rows, key=lambda row: [(row[name] is not None, row[name]) for name in order]
                )
    if rows is not None:
        is_json = env.output in ("json", "jsonl")
        render(env, document, records_of(table.schema, rows, is_json=is_json))


def _started(table: DataFrame) -> Iterator[Row]:
    """Return the rows of a table, of which the first has been computed."""

    def in_python() -> Iterator[Row]:
        with _python_times():
            yield from printable(table).toLocalIterator(prefetchPartitions=True)

    rows = in_python()
    return chain(list(islice(rows, 1)), rows)


def collected(table: DataFrame) -> list[Row]:
    """Return the rows of a table for printing; see `printable`."""
    with _python_times():
        return printable(table).collect()


def printable(table: DataFrame) -> DataFrame:
    """Return a table with times as microseconds since 1970, as Python has only years 1 to 9999.

    A window can end later, such as that of December 31, 9999. Nested times are not converted.
    """
    kinds = [field.dataType for field in table.schema]
    if not any(isinstance(kind, types.TimestampType) for kind in kinds):
        return table
    names = [f"c{number}" for number in range(len(kinds))]
    columns = (
        fn.unix_micros(name) if isinstance(kind, types.TimestampType) else fn.col(name)
        for name, kind in zip(names, kinds, strict=True)
    )
    return table.toDF(*names).select(*columns).toDF(*table.columns)


@contextmanager
def _python_times() -> Iterator[None]:
    try:
        yield
    except PySparkException:
        raise
    except (ValueError, OverflowError) as error:
        raise QueryError(
            f"a time cannot be printed, as its year is not one of 1 to 9999 ({error}): cast it to "
            "STRING, or write it with --into"
        ) from error


def send_rows(env: Environment, table: DataFrame, topic: str) -> None:
    """Send the rows of a batch to a topic of the cluster that the options name."""
    options = write_options(env, topic)
    to_send(table).write.format(FORMAT).options(**options).mode("append").save()


def write_options(env: Environment, topic: str) -> dict[str, str]:
    """Return the options of the data source that send rows to a topic."""
    return WriteOptions(cluster_of(env), topic, connection=connection_of(env)).to_options()


def to_send(table: DataFrame) -> DataFrame:
    """Return messages to send: the columns `value` and `key` if present, else each row as JSON."""
    if "value" in table.columns:
        return table.select(*(name for name in _SENT if name in table.columns))
    fields = (quoted(name) for name in table.columns)
    return table.select(fn.to_json(fn.struct(*fields), _TIMES).alias("value"))


def _for_files(table: DataFrame, form: str) -> DataFrame:
    """Convert columns for a file format: binary values are base64 in CSV.

    Columns of CSV are renamed, as a name with a dot would mean a field of a column; the header is
    not written by Spark. A null in an only column is empty text: Spark would omit the row, whose
    line is empty.
    """
    if form != "csv":
        return table
    names = [f"c{number}" for number in range(len(table.columns))]
    kinds = [field.dataType for field in table.schema]
    columns = [
        fn.translate(fn.base64(name), "\r\n", "")
        if isinstance(kind, types.BinaryType)
        else fn.col(name)
        for name, kind in zip(names, kinds, strict=True)
    ]
    if len(columns) == 1 and not isinstance(kinds[0], _NESTED):
        columns = [fn.coalesce(_as_text(columns[0], kinds[0]), fn.lit(""))]
    return table.toDF(*names).select(columns)


def _as_text(column: SparkColumn, kind: types.DataType) -> SparkColumn:
    """Return a column as the text that Spark writes into files."""
    if isinstance(kind, types.TimestampType):
        return fn.date_format(column, _TIMES["timestampFormat"])
    if isinstance(kind, types.TimestampNTZType):
        return fn.date_format(column, _LOCAL_TIME)
    return column.cast("string")


def write_file(table: DataFrame, path: Path, *, keeps_empty: bool = True) -> None:
    """Write the rows of a batch to a file, which is visible once it is whole and on disk.

    A file that exists is replaced; without `keeps_empty` no file is written for no rows.
    """
    form = file_format(path)
    with temporary_directory(f".{path.name}.", path.parent) as folder:
        rows = _for_files(table, form)
        try:
            rows.write.format(form).options(**_FILE_OPTIONS[form]).save(str(folder / "parts"))
        except AnalysisException as error:
            if form != "csv" or error.getCondition() != "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE":
                raise
            found = error.getMessageParameters() or {}
            names = dict(zip(map(quoted, rows.columns), table.columns, strict=True))
            kind = found["columnType"].strip('"')
            raise QueryError(
                f"CSV has no values of the type {kind} of the column "
                f"'{names[found['columnName']]}': convert it, such as with to_json"
            ) from error
        parts = sorted((folder / "parts").glob("part-*"))
        if not keeps_empty and _are_empty(parts, form):
            return
        whole = folder / "whole"
        if form == "parquet":
            _join_parquet(parts, whole)
        else:
            header = _csv_line(table.columns) if form == "csv" else b""
            _join_bytes(parts, whole, header)
        with whole.open("rb") as file:
            os.fsync(file.fileno())
        whole.replace(path)
    sync_directory(path.parent)


def _are_empty(parts: list[Path], form: str) -> bool:
    if form != "parquet":
        return not any(part.stat().st_size for part in parts)
    from pyarrow import parquet

    return not any(parquet.read_metadata(part).num_rows for part in parts)


def _csv_line(names: list[str]) -> bytes:
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def _join_bytes(parts: list[Path], whole: Path, header: bytes) -> None:
    with whole.open("xb") as output:
        output.write(header)
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, output)


def _join_parquet(parts: list[Path], whole: Path) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(whole, parquet.read_schema(parts[0])) as writer:
        for part in parts:
            for batch in parquet.ParquetFile(part).iter_batches():
                writer.write_batch(batch)
