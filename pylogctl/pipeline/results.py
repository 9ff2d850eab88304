"""Output of pipeline jobs to standard output, a file or a topic, for batches and streams.

Tasks write the parts of a file in parallel; the parts are joined and renamed into place. Rows on
 standard output are rendered as records in any output format.
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
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
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

from broker.spark.jobs import cause_of
from broker.spark.options import WriteOptions
from broker.spark.source import FORMAT
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.render import Column, Document, Kind, Record, render
from pylogctl.pipeline.options import StreamChoice, TargetChoice, file_format
from pylogctl.pipeline.reading import cluster_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
_POLL_S = 0.2
_NESTED = (ArrayType, MapType, StructType)
_SENT = ("value", "key")


def _document_of(table: DataFrame, name: str, empty: str) -> Document:
    """Return the columns of a table as a document; `empty` is printed if there are no rows."""
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
    """Convert rows to records: times in UTC, binary values in base64.

    Nested values stay nested in JSON, and become JSON text elsewhere.
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
    """Return a function that converts values of a Spark type to JSON values."""
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
    """Format a time in UTC; Spark returns naive local times."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    spec = "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return f"{utc.isoformat(timespec=spec if utc.microsecond else 'seconds')}Z"


def _number(value: Any) -> Any:
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def write_result(
    env: Environment, table: DataFrame, target: TargetChoice, name: str, *, at_once: bool = False
) -> None:
    """Write the rows of a table to their target.

    Args:
        env: has the output format, and the address of the cluster.
        table: the rows of a batch.
        target: validated options.
        name: name of the document on standard output.
        at_once: collect all rows in one job before writing any.

    Raises:
        UsageError: two columns have the same name.
        BrokerError: rows cannot be sent.
        OSError: the file cannot be written.
    """
    document = _document_of(table, name, "no rows")
    if target.into is not None:
        _write_file(table, target.into)
    elif target.to_topic is not None:
        options = WriteOptions(cluster_of(env), target.to_topic).to_options()
        _to_send(table).write.format(FORMAT).options(**options).mode("append").save()
    else:
        rows = table.collect() if at_once else table.toLocalIterator(prefetchPartitions=True)
        is_json = env.output in ("json", "jsonl")
        render(env, document, records_of(table.schema, rows, is_json=is_json))


def _to_send(table: DataFrame) -> DataFrame:
    """Return messages to send: the columns `value` and `key` if present, else each row as JSON."""
    from pyspark.sql import functions as fn

    if "value" in table.columns:
        return table.select(*(name for name in _SENT if name in table.columns))
    return table.select(fn.to_json(fn.struct(*table.columns)).alias("value"))


def _for_files(table: DataFrame, form: str) -> DataFrame:
    """Convert columns for a file format: binary values are base64 in CSV."""
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
        _for_files(table, form).write.format(form).mode("append").save(str(folder / "parts"))
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


class _Printer:
    """Writes micro-batches to standard output, the header once."""

    def __init__(self, env: Environment, table: DataFrame, name: str) -> None:
        self._env = replace(env, settings=replace(env.settings, output=env.output))
        self._document = _document_of(table, name, "")
        self.failure: Exception | None = None

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        if not rows:
            return
        is_json = self._env.output == "jsonl"
        try:
            records = records_of(batch.schema, rows, is_json=is_json)
            render(self._env, self._document, records)
            self._env.flush()
        except Exception as error:
            self.failure = error  # Spark's exception has only the text of it
            raise
        settings = replace(self._env.settings, header=False)
        self._env = replace(self._env, settings=settings)


def run_stream(
    env: Environment, table: DataFrame, target: TargetChoice, choice: StreamChoice, name: str
) -> None:
    """Run a streaming query until it ends or the process is asked to stop by a signal.

    An interrupted micro-batch is run again when the query is restarted: its rows can be duplicated
    on standard output and in topics, but not in files.

    Raises:
        BrokerError: the query failed.
    """
    printer = _Printer(env, table, name)
    writer = _writer(env, table, target, printer).option(
        "checkpointLocation", str(choice.checkpoint)
    )
    if choice.exit_at_end:
        writer = writer.trigger(availableNow=True)
    with graceful_stop() as stop:
        query = writer.start()
        try:
            try:
                while query.isActive and not stop.is_set:
                    stop.wait(_POLL_S)
                if not stop.is_set:
                    _raise_failure(query, printer)
            finally:
                query.stop()
        except (Py4JError, ConnectionError):
            if not stop.is_set:  # else the signal may have ended the JVM, too
                raise


def _writer(
    env: Environment, table: DataFrame, target: TargetChoice, printer: _Printer
) -> DataStreamWriter:
    if target.into is not None:
        form = file_format(target.into)
        options = {"path": str(target.into)} | ({"header": "true"} if form == "csv" else {})
        return _for_files(table, form).writeStream.format(form).options(**options)
    if target.to_topic is not None:
        options = WriteOptions(cluster_of(env), target.to_topic).to_options()
        return _to_send(table).writeStream.format(FORMAT).options(**options)
    function: Any = printer
    return table.writeStream.foreachBatch(function)


def _raise_failure(query: StreamingQuery, printer: _Printer) -> None:
    if printer.failure is not None:
        raise printer.failure
    failure = query.exception()
    if failure is not None:
        raise cause_of(failure) from failure
