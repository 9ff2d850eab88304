"""The directory of loads: data and offsets become visible together, or not at all.

    OUT/loads/load=0000000007/   data, and _offsets.json     visible: committed
    OUT/_staging/                of the running load; of a dead one dropped by the next
    OUT/_retired/                loads taken back, to be loaded again; no reader uses them
    OUT/_lock                    locked while a load runs

A load is written into staging, synced, and then renamed: that is the commit. Names that begin with
`_` are skipped by Spark's readers, so `spark.read.parquet("OUT/loads")` is what is committed.
Renaming must be atomic: a local or network file system, no object store.

`_offsets.json` is the manifest of a load. The newest one has all the state there is: the offsets
of each partition, those included of which its load has nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from broker.errors import ConfigError, LogCorruptError, OutputConflictError
from broker.log.atomic_file import sync_directory, write_atomically
from broker.spark.options import Offsets, from_document, partition_of, to_document
from broker.topic import TopicPartition

MANIFEST_NAME = "_offsets.json"
_VERSION = 1


class ManifestError(OutputConflictError):
    """A load has no manifest, or none that this program has written."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Bytes of a partition that a load does not have, and why: lost, corrupt or undecodable."""

    cause: str
    start: int
    end: int
    text: str

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of the log it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """The part of a load that is of one partition.

    Attributes:
        partition: its partition.
        start: where it starts, a message boundary.
        end: where it ends, and the next load starts.
        message_count: rows.
        payload_bytes: of their payloads, as the log has them.
        crc_sum: sum of the CRC-32 of all payloads, to compare with a count of another kind.
        left_out: bytes between start and end, or before start, that are not in the load.
    """

    partition: TopicPartition
    start: int
    end: int
    message_count: int = 0
    payload_bytes: int = 0
    crc_sum: int = 0
    left_out: tuple[LeftOut, ...] = ()

    def plus(self, other: PartitionLoad) -> PartitionLoad:
        """Return this and the load of the range behind it as one."""
        return PartitionLoad(
            self.partition,
            self.start,
            other.end,
            self.message_count + other.message_count,
            self.payload_bytes + other.payload_bytes,
            self.crc_sum + other.crc_sum,
            (*self.left_out, *other.left_out),
        )


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of a load; `path` is relative to the load's directory."""

    path: str
    size_bytes: int
    message_count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a load.

    Attributes:
        number: loads of an output are numbered from 1.
        layout: group, format and other properties that all loads of an output have in common.
        started_ms: milliseconds since 1970.
        finished_ms: milliseconds since 1970.
        partitions: its partitions.
        offsets: where the next load starts, for every partition ever loaded.
        files: all data files.
    """

    number: int
    layout: Mapping[str, str]
    started_ms: int
    finished_ms: int
    partitions: tuple[PartitionLoad, ...]
    offsets: Offsets
    files: tuple[LoadedFile, ...]

    @property
    def message_count(self) -> int:
        """Return the rows of all partitions."""
        return sum(one.message_count for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Return the size of all files."""
        return sum(one.size_bytes for one in self.files)

    @property
    def left_out(self) -> list[tuple[TopicPartition, LeftOut]]:
        """Return the bytes left out, by partition."""
        return [(one.partition, gap) for one in self.partitions for gap in one.left_out]

    def to_json(self) -> str:
        """Return the text of `_offsets.json`."""
        document = {
            "version": _VERSION,
            "load": self.number,
            "layout": dict(self.layout),
            "started_ms": self.started_ms,
            "finished_ms": self.finished_ms,
            "message_count": self.message_count,
            "size_bytes": self.size_bytes,
            "partitions": [_partition_document(one) for one in self.partitions],
            "offsets": to_document(self.offsets),
            "files": [asdict(one) for one in self.files],
        }
        return json.dumps(document, indent=1) + "\n"


def _partition_document(one: PartitionLoad) -> dict[str, Any]:
    fields = asdict(one) | {"topic": one.partition.topic, "partition": one.partition.name}
    return {"topic": fields.pop("topic"), **fields}


def read_manifest(path: Path) -> Manifest:
    """Read a load's manifest.

    Raises:
        ManifestError: it is missing, or none that this program has written.
    """
    try:
        document = json.loads(path.read_text())
        if document["version"] != _VERSION:
            raise ManifestError(f"{path} has version {document['version']}; known: {_VERSION}")
        return _manifest_of(document)
    except FileNotFoundError as error:
        raise ManifestError(f"{path.parent} has no {path.name}: it is no load") from error
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ManifestError(f"{path} is no manifest of a load: {error!r}") from error


def _manifest_of(document: Mapping[str, Any]) -> Manifest:
    return Manifest(
        number=int(document["load"]),
        layout=dict(document["layout"]),
        started_ms=int(document["started_ms"]),
        finished_ms=int(document["finished_ms"]),
        partitions=tuple(_partition_load(one) for one in document["partitions"]),
        offsets=from_document(document["offsets"]),
        files=tuple(LoadedFile(**one) for one in document["files"]),
    )


def _partition_load(document: Mapping[str, Any]) -> PartitionLoad:
    fields = dict(document)
    partition = partition_of(fields.pop("topic"), fields.pop("partition"))
    left_out = tuple(LeftOut(**one) for one in fields.pop("left_out"))
    return PartitionLoad(partition, left_out=left_out, **fields)


def joined(parts: Iterable[PartitionLoad]) -> tuple[PartitionLoad, ...]:
    """Join the loads of ranges that follow each other to one for each partition.

    Raises:
        LogCorruptError: there is a gap or overlap; the load must not be committed.
    """
    whole: dict[TopicPartition, PartitionLoad] = {}
    for part in sorted(parts, key=lambda one: (one.partition, one.start)):
        before = whole.get(part.partition)
        if before is not None and before.end != part.start:
            raise LogCorruptError(
                f"{part.partition}: a range ends at {before.end}, and the next one starts at "
                f"{part.start}"
            )
        whole[part.partition] = part if before is None else before.plus(part)
    return tuple(whole.values())


_LOADS = "loads"
_STAGING = "_staging"
_RETIRED = "_retired"
_LOCK = "_lock"
_LOAD_NAME = re.compile(r"load=([0-9]{10})", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


class LoadOutput:
    """An output directory.

    Args:
        path: the directory; made by the first load.

    Raises:
        ConfigError: it is an address of another kind, such as `s3://..`.
        OutputConflictError: it has files other than loads.
    """

    def __init__(self, path: Path | str) -> None:
        if _SCHEME.match(str(path)):
            raise ConfigError(
                f"'{path}' is no directory: loads are committed by renaming a directory, "
                "which takes a file system"
            )
        self.path = Path(path).absolute()
        self._check_content()

    def _check_content(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise OutputConflictError(f"{self.path} is a file; name a directory")
        known = {_LOADS, _STAGING, _RETIRED, _LOCK}
        others = sorted(one.name for one in self.path.iterdir() if one.name not in known)
        if others:
            raise OutputConflictError(
                f"{self.path} has '{others[0]}', which no load has put there; "
                "name an empty directory, or one of earlier loads"
            )

    @property
    def loads_path(self) -> Path:
        """Return the directory to hand to readers."""
        return self.path / _LOADS

    @property
    def staging_path(self) -> Path:
        """Return the directory whose subdirectories are loads that are not committed."""
        return self.path / _STAGING

    def load_path(self, number: int) -> Path:
        """Return the directory of a committed load."""
        return self.loads_path / f"load={number:010d}"

    def numbers(self) -> list[int]:
        """Return the numbers of the committed loads, oldest first."""
        if not self.loads_path.is_dir():
            return []
        found = (_LOAD_NAME.fullmatch(one.name) for one in self.loads_path.iterdir())
        return sorted(int(one[1]) for one in found if one)

    def manifest(self, number: int) -> Manifest:
        """Return the manifest of a committed load.

        Raises:
            ManifestError: it is missing, or none of ours.
        """
        return read_manifest(self.load_path(number) / MANIFEST_NAME)

    def last(self) -> Manifest | None:
        """Return the newest load's manifest, None if there is no load."""
        numbers = self.numbers()
        return self.manifest(numbers[-1]) if numbers else None

    def check_layout(self, layout: Mapping[str, str]) -> None:
        """Validate that the loads here have the layout of the load to be added.

        Raises:
            OutputConflictError: they have not; the text says what differs.
        """
        last = self.last()
        if last is None:
            return
        for name in [*layout, *last.layout]:
            there, wanted = last.layout.get(name), layout.get(name)
            if there != wanted:
                raise OutputConflictError(
                    f"{self.path} has loads with {name} '{there}', not '{wanted}'; "
                    "name another directory"
                )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the output for as long as the block lasts; remove staging before and after.

        Raises:
            OutputConflictError: another load runs.
            OSError: the directory cannot be made or written.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutputConflictError(
                    f"another load into {self.path} is running; try again when it is done"
                ) from error
            if self.staging_path.exists():
                shutil.rmtree(self.staging_path)
            try:
                yield
            finally:
                shutil.rmtree(self.staging_path, ignore_errors=True)  # the next load tries again

    def stage(self) -> Path:
        """Make an empty directory for a load to write into; the lock must be held."""
        path = self.staging_path / uuid.uuid4().hex
        path.mkdir(parents=True)
        return path

    def commit(self, staged: Path, manifest: Manifest, retiring: Sequence[int] = ()) -> Path:
        """Make a load visible, data and offsets at once; the lock must be held.

        Args:
            staged: where it was written; its files are synced already.
            manifest: of the load; files it does not name are removed.
            retiring: loads to take back first.

        Returns:
            Where the load is now.

        Raises:
            OutputConflictError: there is a load of this number.
            OSError: the file system fails; then nothing is visible.
        """
        _remove_unnamed(staged, {one.path for one in manifest.files})
        write_atomically(staged / MANIFEST_NAME, manifest.to_json().encode())
        for directory, _, _ in os.walk(staged, topdown=False):
            sync_directory(Path(directory))
        self.loads_path.mkdir(exist_ok=True)
        sync_directory(self.path)
        self._retire(retiring)
        target = self.load_path(manifest.number)
        try:
            staged.rename(target)
        except OSError as error:
            if target.exists():
                raise OutputConflictError(f"{target} exists already") from error
            raise
        sync_directory(self.loads_path)
        return target

    def _retire(self, numbers: Sequence[int]) -> None:
        """Take loads back, the newest first: a process that dies meanwhile leaves a prefix."""
        retired = self.path / _RETIRED
        for number in sorted(numbers, reverse=True):
            retired.mkdir(exist_ok=True)
            path = self.load_path(number)
            path.rename(retired / f"{path.name}-{uuid.uuid4().hex[:8]}")
            sync_directory(self.loads_path)


def _remove_unnamed(staged: Path, named: set[str]) -> None:
    """Remove the files of attempts of tasks that did not succeed."""
    for directory, _, names in os.walk(staged, topdown=False):
        for name in names:
            path = Path(directory, name)
            if path.relative_to(staged).as_posix() not in named:
                path.unlink()
        if Path(directory) != staged and not any(Path(directory).iterdir()):
            Path(directory).rmdir()
