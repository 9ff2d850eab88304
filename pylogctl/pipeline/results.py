"""Where results of pipeline commands go: standard output, a file, or a topic.

A file is written by all tasks in parallel, joined, and put in place as a whole.

Tables of Spark as documents: their columns, and rows as values that any output format takes.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from broker.spark.source import FORMAT
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import Column, Document, Kind, Record, render
from pylogctl.pipeline.input import cluster_options
from pylogctl.pipeline.target_options import TargetChoice, file_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


_NESTED = (ArrayType, MapType, StructType)


def document_of(table: DataFrame, name: str, empty: str) -> Document:
    """Return the columns of a table as those of a document.

    Args:
        table: any.
        name: of the document.
        empty: what is said if there are no rows.

    Raises:
        UsageError: two columns have the same name.
    """
    names = [field.name for field in table.schema]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UsageError(f"two columns are called '{twice[0]}'", hints=["give one a name with AS"])
    columns = (
        Column(field.name, field.dataType.simpleString(), _kind(field.dataType))
        for field in table.schema
    )
    return Document(name, tuple(columns), empty)


def records_of(schema: StructType, rows: Iterable[Row], *, is_json: bool) -> Iterator[Record]:
    """Give rows as records.

    Times are in UTC, binary values in base64; what is nested stays so in JSON, and is JSON text
    elsewhere.

    Args:
        schema: of the rows.
        rows: as Spark gives them.
        is_json: whether they become JSON.
    """
    names = [field.name for field in schema]
    converters = [_for_output(field.dataType, is_json) for field in schema]
    for row in rows:
        yield {
            name: None if value is None else convert(value)
            for name, convert, value in zip(names, converters, row, strict=True)
        }


def _kind(kind: DataType) -> Kind:
    if isinstance(kind, IntegralType):
        return Kind.INTEGER
    if isinstance(kind, FractionalType):
        return Kind.NUMBER
    return Kind.BOOLEAN if isinstance(kind, BooleanType) else Kind.TEXT


def _for_output(kind: DataType, is_json: bool) -> Callable[[Any], Any]:
    convert = _converter(kind)
    if is_json or not isinstance(kind, _NESTED):
        return convert
    return lambda value: json.dumps(convert(value), separators=(",", ":"))


def _converter(kind: DataType) -> Callable[[Any], Any]:
    """Return what makes a value of a type one that JSON has."""
    match kind:
        case StringType() | IntegralType() | BooleanType():
            return lambda value: value
        case BinaryType():
            return lambda value: base64.b64encode(value).decode()
        case TimestampType():
            return _utc_text
        case DateType() | TimestampNTZType():
            return lambda value: value.isoformat()
        case FractionalType():
            return _number
        case ArrayType(elementType=inner):
            each = _optional(inner)
            return lambda values: [each(value) for value in values]
        case MapType(keyType=key_type, valueType=inner):
            name, each = _optional(key_type), _optional(inner)
            return lambda values: {str(name(key)): each(value) for key, value in values.items()}
        case StructType():
            fields = [(field.name, _optional(field.dataType)) for field in kind]
            return lambda row: {
                name: each(value) for (name, each), value in zip(fields, row, strict=True)
            }
    return str


def _optional(kind: DataType) -> Callable[[Any], Any]:
    convert = _converter(kind)
    return lambda value: None if value is None else convert(value)


def _utc_text(moment: datetime) -> str:
    """Return a time in UTC; Spark gives it in local time without saying so."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    spec = "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return f"{utc.isoformat(timespec=spec if utc.microsecond else 'seconds')}Z"


def _number(value: Any) -> Any:
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


_SENT = ("value", "key")


def write_result(
    env: Environment, table: DataFrame, target: TargetChoice, name: str, *, at_once: bool = False
) -> None:
    """Write the rows of a table to where they are wanted.

    Args:
        env: says how standard output is written, and where the cluster is.
        table: a batch.
        target: checked already.
        name: of the document on standard output.
        at_once: have all rows before any is written, in one job.

    Raises:
        UsageError: two columns have the same name.
        BrokerError: rows cannot be sent.
        OSError: the file cannot be written.
    """
    document = document_of(table, name, "no rows")
    if target.into is not None:
        _write_file(table, target.into)
    elif target.to_topic is not None:
        options = {**cluster_options(env), "topic": target.to_topic}
        to_send(table).write.format(FORMAT).options(**options).mode("append").save()
    else:
        rows = table.collect() if at_once else table.toLocalIterator(prefetchPartitions=True)
        is_json = env.output in ("json", "jsonl")
        render(env, document, records_of(table.schema, rows, is_json=is_json))


def to_send(table: DataFrame) -> DataFrame:
    """Return rows as messages: the column `value` (and `key`) as it is, else each row as JSON."""
    from pyspark.sql import functions as fn

    if "value" in table.columns:
        return table.select(*(name for name in _SENT if name in table.columns))
    return table.select(fn.to_json(fn.struct(*table.columns)).alias("value"))


def for_files(table: DataFrame, form: str) -> DataFrame:
    """Return a table as a format can have it: in CSV binary values are base64."""
    from pyspark.sql import functions as fn

    if form != "csv":
        return table
    kinds = dict(table.dtypes)
    return table.select(
        *(
            fn.base64(table[name]).alias(name) if kinds[name] == "binary" else table[name]
            for name in table.columns
        )
    )


def _write_file(table: DataFrame, path: Path) -> None:
    form = file_format(path)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        for_files(table, form).write.format(form).mode("append").save(str(folder / "parts"))
        parts = sorted((folder / "parts").glob("part-*"))
        whole = folder / "whole"
        if form == "parquet":
            _join_parquet(parts, whole)
        else:
            header = _csv_line(table.columns) if form == "csv" else b""
            _join_bytes(parts, whole, header)
        whole.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
