"""The data files of a load: rows of one range, in a directory for each topic and day.

Each file has a name no other attempt of any task will use; whoever commits keeps the files that
successful attempts name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from broker.spark.manifest import LoadedFile
from broker.spark.ranges import ByteRange

FileFormat = Literal["parquet", "json", "text"]

_SPECIAL = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_MAX_PENDING_BYTES = 32 << 20
_MAX_OPEN_FILES = 200


def escape_name(name: str) -> str:
    """Return a partition value as Spark writes it in the name of a directory.

    Source: Spark 4 `ExternalCatalogUtils.escapePathName`.
    """
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", name)


class RangeFiles:
    """The files that one attempt of one task writes.

    Args:
        directory: of the load, not committed yet.
        source: the range that is loaded.
        file_format: kind of files.
    """

    def __init__(self, directory: Path, source: ByteRange, file_format: FileFormat) -> None:
        self._directory = directory
        self._source = source
        self._kind = _KINDS[file_format]
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._pending_bytes = 0
        self._open: dict[str, _DataFile] = {}
        self._done: list[LoadedFile] = []

    def add(self, day: str, batch: pa.RecordBatch) -> None:
        """Write rows of one day, at once or later."""
        self._pending.setdefault(day, []).append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= _MAX_PENDING_BYTES:
            self._write_pending()

    def finish(self) -> tuple[LoadedFile, ...]:
        """Write and sync everything.

        Returns:
            The files, with what they have.

        Raises:
            OSError: a file cannot be written.
        """
        self._write_pending()
        while self._open:
            self._finish_oldest()
        return tuple(self._done)

    def close(self) -> None:
        """Let go of files that were not finished."""
        while self._open:
            self._open.popitem()[1].close()

    def _write_pending(self) -> None:
        for day, batches in self._pending.items():
            self._file_of(day, batches[0].schema).write(pa.Table.from_batches(batches))
        self._pending.clear()
        self._pending_bytes = 0

    def _file_of(self, day: str, schema: pa.Schema) -> _DataFile:
        if day not in self._open:
            if len(self._open) >= _MAX_OPEN_FILES:
                self._finish_oldest()
            self._open[day] = self._kind(self._new_path(day), schema)
        return self._open[day]

    def _new_path(self, day: str) -> Path:
        partition = self._source.partition
        folder = self._directory / f"topic={escape_name(partition.topic)}" / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        unique = uuid.uuid4().hex[:12]
        name = f"part-{partition.name}-{self._source.start:020d}-{unique}"
        return folder / f"{name}.{self._kind.suffix}"

    def _finish_oldest(self) -> None:
        day = next(iter(self._open))
        file = self._open.pop(day)
        file.close()
        self._done.append(file.synced(self._directory))


class _DataFile(ABC):
    """A file that rows are added to."""

    suffix: str

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.message_count = 0
        self._start(schema)

    def write(self, table: pa.Table) -> None:
        self._write(table)
        self.message_count += table.num_rows

    def synced(self, directory: Path) -> LoadedFile:
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = self.path.relative_to(directory).as_posix()
        return LoadedFile(name, self.path.stat().st_size, self.message_count, digest)

    @abstractmethod
    def _start(self, schema: pa.Schema) -> None: ...

    @abstractmethod
    def _write(self, table: pa.Table) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class _ParquetFile(_DataFile):
    suffix = "parquet"

    def _start(self, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(self.path, schema)

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class _LineFile(_DataFile):
    """A file of lines."""

    def _start(self, schema: pa.Schema) -> None:
        self._file = self.path.open("wb")

    def _write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._file.writelines(self._lines(batch))

    def close(self) -> None:
        self._file.close()

    @abstractmethod
    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]: ...


class _TextFile(_LineFile):
    suffix = "txt"

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        for value in batch.column("value").cast(pa.binary()).to_pylist():
            yield value
            yield b"\n"


class _JsonFile(_LineFile):
    suffix = "json"

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        has_records = pa.types.is_string(batch.schema.field("value").type)
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        for row in batch.to_pylist():
            value = row.pop("value")
            if has_records:
                yield f'{encode(row)[:-1]},"value":{value}}}\n'.encode()
            else:
                yield f"{encode(row | _text_or_base64(value))}\n".encode()


def _text_or_base64(value: bytes) -> dict[str, Any]:
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"value_base64": base64.b64encode(value).decode()}


_KINDS: dict[str, type[_DataFile]] = {
    "parquet": _ParquetFile,
    "json": _JsonFile,
    "text": _TextFile,
}
