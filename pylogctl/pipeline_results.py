"""Where results of pipeline commands go: standard output, a file, or a topic.

A file is written by all tasks in parallel, joined, and put in place as a whole.
"""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from broker.spark.source import FORMAT
from pylogctl.context import Environment
from pylogctl.pipeline_input import cluster_options
from pylogctl.render import render
from pylogctl.table_records import document_of, records_of
from pylogctl.target_options import TargetChoice, file_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
