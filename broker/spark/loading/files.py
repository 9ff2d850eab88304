"""The data files of loads: written by tasks, and joined where they are small.

A task writes a file for each topic and day, so partitions, tasks and loads each add files. Small
files of one topic and day are joined into files of a target size, in the order of their names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from broker.errors import LogCorruptError
from broker.spark.loading.output import LoadedFile
from broker.spark.reading.ranges import ByteRange, grouped

FileFormat = Literal["parquet", "json", "text"]

_SPECIAL = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_MAX_PENDING_BYTES = 32 << 20
_MAX_OPEN_FILES = 200
_ENCODINGS = {
    "offset": "DELTA_BINARY_PACKED",
    "next_offset": "DELTA_BINARY_PACKED",
    "inner_index": "DELTA_BINARY_PACKED",
    "crc": "PLAIN",
}
"""Encodings of Parquet columns whose values hardly repeat; others begin with a dictionary."""


class StoredFile(NamedTuple):
    """A data file, and the directory of the load that it belongs to."""

    directory: Path
    file: LoadedFile

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self.directory / self.file.path


def small_file_groups(
    files: Iterable[StoredFile], target_bytes: int
) -> list[tuple[StoredFile, ...]]:
    """Return groups of small files, each to be joined into one file of at most the target size.

    Files under half the target size are small. A group has two or more of one topic and day, in the
    order given.
    """
    by_folder: dict[str, list[StoredFile]] = {}
    for one in files:
        if one.file.size_bytes * 2 < target_bytes:
            by_folder.setdefault(one.file.path.rpartition("/")[0], []).append(one)
    return [
        tuple(group)
        for small in by_folder.values()
        for group in grouped(small, lambda one: one.file.size_bytes, target_bytes)
        if len(group) > 1
    ]


def join_files(group: Sequence[StoredFile], directory: Path) -> tuple[LoadedFile, ...]:
    """Join files of one format, topic and day into new files below `directory`, and sync those.

    The old files stay. Parquet files with other columns than the one before start another new file.
    """
    kind = _KIND_BY_SUFFIX[group[0].path.suffix]
    done = []
    for schema, run in groupby(group, lambda one: kind.schema_of(one.path)):
        sources = list(run)
        first = Path(sources[0].file.path)
        stem = f"{first.stem.rpartition('-')[0]}-{uuid.uuid4().hex[:12]}"
        path = directory / first.parent / f"{stem}{first.suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        file = kind(path, schema)
        try:
            file.join(map(_unchanged, sources))
            file.message_count = sum(one.file.message_count for one in sources)
        finally:
            file.close()
        done.append(file.synced(directory))
    return tuple(done)


def _unchanged(source: StoredFile) -> Path:
    """Return the path of a file that still has the SHA-256 of its manifest."""
    with source.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != source.file.sha256:
        raise LogCorruptError(
            f"{source.path} was changed since it was loaded: its SHA-256 is not that of the "
            "manifest; restore it, or load its messages again"
        )
    return source.path


def escape_name(name: str) -> str:
    """Escape a directory name as Spark 4 does (`ExternalCatalogUtils.escapePathName`)."""
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", name)


class RangeFiles:
    """The files of one task attempt, by topic and day; their names are unique to the attempt."""

    def __init__(self, directory: Path, source: ByteRange, file_format: FileFormat) -> None:
        self._directory = directory
        self._source = source
        self._kind = _KINDS[file_format]
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._pending_bytes = 0
        self._open: dict[str, _DataFile] = {}
        self._done: list[LoadedFile] = []

    def add(self, day: str, batch: pa.RecordBatch) -> None:
        """Buffer rows of one day; write all buffers when they exceed a limit."""
        self._pending.setdefault(day, []).append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= _MAX_PENDING_BYTES:
            self._write_pending()

    def finish(self) -> tuple[LoadedFile, ...]:
        """Write and sync all files, and return them."""
        self._write_pending()
        while self._open:
            self._finish_oldest()
        return tuple(self._done)

    def close(self) -> None:
        """Close the files of a failed attempt."""
        while self._open:
            self._open.popitem()[1].close()

    def _write_pending(self) -> None:
        for day, batches in self._pending.items():
            file, table = self._file_of(day, batches[0].schema), pa.Table.from_batches(batches)
            file.write(table)
            file.message_count += table.num_rows
        self._pending.clear()
        self._pending_bytes = 0

    def _file_of(self, day: str, schema: pa.Schema) -> _DataFile:
        if day not in self._open:
            if len(self._open) >= _MAX_OPEN_FILES:
                self._finish_oldest()
            partition, unique = self._source.partition, uuid.uuid4().hex[:12]
            folder = self._directory / f"topic={escape_name(partition.topic)}" / f"date={day}"
            folder.mkdir(parents=True, exist_ok=True)
            name = f"part-{partition.name}-{self._source.start:020d}-{unique}.{self._kind.suffix}"
            self._open[day] = self._kind(folder / name, schema)
        return self._open[day]

    def _finish_oldest(self) -> None:
        day = next(iter(self._open))
        file = self._open.pop(day)
        file.close()
        self._done.append(file.synced(self._directory))


class _DataFile(ABC):
    """A file of rows, in one of the formats."""

    suffix: str

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.message_count = 0  # counted by the caller

    def synced(self, directory: Path) -> LoadedFile:
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = self.path.relative_to(directory).as_posix()
        return LoadedFile(name, self.path.stat().st_size, self.message_count, digest)

    @staticmethod
    @abstractmethod
    def schema_of(path: Path) -> pa.Schema:
        """Return the columns of a file; None if files of any columns can be joined."""

    @abstractmethod
    def write(self, table: pa.Table) -> None: ...

    @abstractmethod
    def join(self, sources: Iterable[Path]) -> None:
        """Append the contents of other files of the same format and columns."""

    @abstractmethod
    def close(self) -> None: ...


class _ParquetFile(_DataFile):
    suffix = "parquet"

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        super().__init__(path, schema)
        leaves = _leaves(schema)
        others = [name for name in leaves if name not in _ENCODINGS]
        encodings = {name: one for name, one in _ENCODINGS.items() if name in leaves}
        self._writer = pq.ParquetWriter(
            path, schema, use_dictionary=others, column_encoding=encodings
        )

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    @staticmethod
    def schema_of(path: Path) -> pa.Schema:
        return pq.read_schema(path)

    def join(self, sources: Iterable[Path]) -> None:
        batches = chain.from_iterable(map(_batches, sources))
        # few large row groups
        for some in grouped(batches, lambda batch: batch.nbytes, _MAX_PENDING_BYTES):
            self.write(pa.Table.from_batches(some))

    def close(self) -> None:
        self._writer.close()


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches()


def _leaves(schema: pa.Schema) -> list[str]:
    """Return the paths of the columns that Parquet stores for a schema, such as `value.user.id`."""
    sink = pa.BufferOutputStream()
    pq.write_metadata(schema, sink)
    stored = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [stored.column(number).path for number in range(len(stored))]


class _LineFile(_DataFile):
    """A file of lines."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        super().__init__(path, schema)
        self._file = path.open("wb")

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._file.writelines(self._lines(batch))

    @staticmethod
    def schema_of(path: Path) -> pa.Schema:
        return None

    def join(self, sources: Iterable[Path]) -> None:
        for source in sources:
            with source.open("rb") as file:
                shutil.copyfileobj(file, self._file)

    def close(self) -> None:
        self._file.close()

    @abstractmethod
    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]: ...


class _TextFile(_LineFile):
    suffix = "txt"

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        for value in batch.column("value").cast(pa.binary()).to_pylist():
            yield value or b""
            yield b"\n"


class _JsonFile(_LineFile):
    suffix = "json"

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        has_records = pa.types.is_string(batch.schema.field("value").type)
        encode = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), default=datetime.isoformat
        ).encode
        for row in batch.to_pylist():
            value = row.pop("value")
            if "key" in row:
                row |= _text_or_base64("key", row.pop("key"))
                row["headers"] = [
                    {"key": one["key"], **_text_or_base64("value", one["value"])}
                    for one in row.pop("headers") or ()
                ]
            if has_records:
                text = "null" if value is None else value
                yield f'{encode(row)[:-1]},"value":{text}}}\n'.encode()
            else:
                yield f"{encode(row | _text_or_base64('value', value))}\n".encode()


def _text_or_base64(name: str, value: bytes | None) -> dict[str, Any]:
    try:
        return {name: None if value is None else value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value or b"").decode()}


_KINDS: dict[str, type[_DataFile]] = {"parquet": _ParquetFile, "json": _JsonFile, "text": _TextFile}
_KIND_BY_SUFFIX = {f".{kind.suffix}": kind for kind in _KINDS.values()}
