"""The directory of loads: the data and offsets of a load become visible together.

    OUT/loads/load=0000000007/   data and _offsets.json of a committed load
    OUT/_staging/                data of the running load; the next load removes leftovers
    OUT/_retired/                loads that were loaded again; not read
    OUT/_lock                    locked while a load runs

A load is written into staging, synced, and committed by a rename. A compaction replaces several
loads by one: it makes another directory `loads` in staging and exchanges the two. Spark's readers
skip names that begin with `_`, so `spark.read.parquet("OUT/loads")` reads the committed loads.
Renaming must be atomic, as on local and network file systems, but not in object stores.

`_offsets.json` is the manifest of a load. The newest manifest is the whole state of the output: it
has the offsets of all partitions, also of those without data in its load.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from broker.errors import ConfigError, LogCorruptError, OutputConflictError
from broker.files import exchange, sync_directory, write_atomically
from broker.spark.options import Offsets, partition_of
from broker.spark.reading.ranges import CreationIds, Reached
from broker.spark.reading.report import Omission, bounded
from broker.topic import TopicPartition

MANIFEST_NAME = "_offsets.json"
_VERSION = 1


class ManifestError(OutputConflictError):
    """The manifest of a load is missing or invalid."""


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """The part of a load from one partition."""

    partition: TopicPartition
    start: int  # a message boundary
    end: int  # where the next load starts
    message_count: int = 0  # rows
    payload_bytes: int = 0  # as stored in the log
    crc_sum: int = 0  # of the CRC-32 of all payloads, for comparison with independent counts
    left_out: tuple[Omission, ...] = ()  # between start and end, or before start

    def plus(self, other: PartitionLoad) -> PartitionLoad:
        """Return the sum of this and `other`, the load of the next range."""
        return PartitionLoad(
            self.partition,
            self.start,
            other.end,
            self.message_count + other.message_count,
            self.payload_bytes + other.payload_bytes,
            self.crc_sum + other.crc_sum,
            tuple(bounded((*self.left_out, *other.left_out))),
        )


@dataclass(frozen=True, slots=True, order=True)
class LoadedFile:
    """A file of a load; `path` is relative to the load's directory."""

    path: str
    size_bytes: int
    message_count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a load; times are in milliseconds since 1970."""

    number: int  # from 1
    layout: Mapping[str, str]  # group, format and others, common to all loads of an output
    started_ms: int
    finished_ms: int
    partitions: tuple[PartitionLoad, ...]
    offsets: Offsets  # start of the next load, for every partition ever loaded
    files: tuple[LoadedFile, ...]
    creation_ids: CreationIds = field(default_factory=dict)  # of the topics in `offsets`, if known

    @property
    def message_count(self) -> int:
        """Return the number of rows of all partitions."""
        return sum(one.message_count for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Return the size of all files."""
        return sum(one.size_bytes for one in self.files)

    @property
    def left_out(self) -> list[Omission]:
        """Return the bytes left out."""
        return [gap for one in self.partitions for gap in one.left_out]

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
            **Reached(self.offsets, self.creation_ids).to_document(),
            "files": [asdict(one) for one in self.files],
        }
        return json.dumps(document, indent=1) + "\n"


def _partition_document(one: PartitionLoad) -> dict[str, Any]:
    left_out = [gap.to_document() for gap in one.left_out]
    topic, name = one.partition.topic, one.partition.name
    return {"topic": topic, **asdict(one), "partition": name, "left_out": left_out}


def read_manifest(path: Path) -> Manifest:
    """Read a load's manifest."""
    try:
        document = json.loads(path.read_text())
        if document["version"] != _VERSION:
            raise ManifestError(f"{path} has version {document['version']}; known: {_VERSION}")
        reached = Reached.from_document(document)
        return Manifest(
            number=int(document["load"]),
            layout=dict(document["layout"]),
            started_ms=int(document["started_ms"]),
            finished_ms=int(document["finished_ms"]),
            partitions=tuple(_partition_load(one) for one in document["partitions"]),
            offsets=reached.offsets,
            files=tuple(LoadedFile(**one) for one in document["files"]),
            creation_ids=reached.creation_ids,
        )
    except FileNotFoundError as error:
        raise ManifestError(f"{path.parent} has no {path.name}: it is not a load") from error
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ManifestError(f"{path} is not the manifest of a load: {error!r}") from error


def _partition_load(document: Mapping[str, Any]) -> PartitionLoad:
    fields = dict(document)
    partition = partition_of(fields.pop("topic"), fields.pop("partition"))
    left_out = tuple(Omission.from_document(gap, partition) for gap in fields.pop("left_out"))
    return PartitionLoad(partition, left_out=left_out, **fields)


def joined(parts: Iterable[PartitionLoad]) -> tuple[PartitionLoad, ...]:
    """Join the loads of adjacent ranges into one for each partition, without gap or overlap."""
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


def check_same_layout(
    output: str, there: Mapping[str, str], wanted: Mapping[str, str], advice: str
) -> None:
    """Validate that the loads of an output have the layout of the load to be added."""
    for name in [*wanted, *there]:
        if there.get(name) != wanted.get(name):
            raise OutputConflictError(
                f"{output} has loads with {name} '{there.get(name)}', not '{wanted.get(name)}'; "
                f"{advice}"
            )


_LOADS = "loads"
_STAGING = "_staging"
_RETIRED = "_retired"
_LOCK = "_lock"
_LOAD_NAME = re.compile(r"load=([0-9]{10,11})", re.ASCII)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


def _load_name(number: int, digits: int = 10) -> str:
    return f"load={number:0{digits}d}"


class LoadOutput:
    """An output directory, created by the first load; it has no files but those of loads.

    Readers use `loads_path`; loads that are not committed are below `staging_path`.
    """

    def __init__(self, path: Path | str) -> None:
        if _SCHEME.match(str(path)):
            raise ConfigError(
                f"'{path}' is not a directory: loads are committed by renaming a directory, "
                "which needs a file system"
            )
        self.path = Path(path).absolute()
        self.loads_path = self.path / _LOADS
        self.staging_path = self.path / _STAGING
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise OutputConflictError(f"{self.path} is a file; name a directory")
        known = {_LOADS, _STAGING, _RETIRED, _LOCK}
        others = sorted(one.name for one in self.path.iterdir() if one.name not in known)
        if others:
            raise OutputConflictError(
                f"{self.path} has '{others[0]}', which is not of a load; "
                "name an empty directory, or one of earlier loads"
            )

    def load_path(self, number: int) -> Path:
        """Return the directory of a load, committed or to be."""
        return self.loads_path / self._names().get(number, _load_name(number))

    def numbers(self) -> list[int]:
        """Return the numbers of the committed loads, oldest first."""
        return sorted(self._names())

    def _names(self) -> dict[int, str]:
        """Return the names of the directories of loads, by number."""
        if not self.loads_path.is_dir():
            return {}
        found = (_LOAD_NAME.fullmatch(one.name) for one in self.loads_path.iterdir())
        return {int(one[1]): one[0] for one in found if one}

    def manifest(self, number: int) -> Manifest:
        """Return the manifest of a committed load."""
        return read_manifest(self.load_path(number) / MANIFEST_NAME)

    def last(self) -> Manifest | None:
        """Return the newest load's manifest, None if there is no load."""
        numbers = self.numbers()
        return self.manifest(numbers[-1]) if numbers else None

    def check_layout(self, layout: Mapping[str, str]) -> None:
        """Validate that the loads here have the layout of the load to be added."""
        last = self.last()
        if last is not None:
            check_same_layout(str(self.path), last.layout, layout, "name another directory")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the output until the block ends; remove staging before and after it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutputConflictError(
                    f"another load into {self.path} is running, or a compaction; "
                    "try again when it is done"
                ) from error
            if self.staging_path.exists():
                shutil.rmtree(self.staging_path)
            try:
                yield
            finally:
                shutil.rmtree(self.staging_path, ignore_errors=True)  # the next load tries again

    def stage(self) -> Path:
        """Create an empty staging directory for a load; the lock must be held."""
        path = self.staging_path / uuid.uuid4().hex
        path.mkdir(parents=True)
        return path

    def commit(self, staged: Path, manifest: Manifest, retiring: Sequence[int] = ()) -> Path:
        """Make a load visible by a rename, and return its directory; the lock must be held.

        Files of `staged` are synced already; those that the manifest does not name are removed. The
        loads of `retiring` are retired first.
        """
        _finish(staged, manifest)
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

    def check_exchange(self) -> None:
        """Validate that directories can be exchanged here; the lock must be held."""
        first, second = self.stage(), self.stage()
        try:
            exchange(first, second)
        except OSError as error:
            raise OutputConflictError(
                f"the file system of {self.path} cannot exchange two directories in one step "
                f"({error.strerror}): a compaction could be seen half done; run it on a machine "
                "where that file system is local"
            ) from error
        first.rmdir()
        second.rmdir()

    def replace(self, numbers: Sequence[int], staged: Path, manifest: Manifest) -> Path:
        """Replace loads by one, in one step, and return its directory; the lock must be held.

        The manifest has the number of the newest load to replace; for `staged` see `commit`. The
        replaced loads are removed; the files of all others are linked, not copied.
        """
        _finish(staged, manifest)
        names = self._names()
        loads = self.stage()
        for number, name in names.items():
            if number not in numbers:
                shutil.copytree(self.loads_path / name, loads / name, copy_function=os.link)
                _sync_directories(loads / name)
        # a reader that has listed the old directory must not find the new data under an old name
        name = _load_name(manifest.number)
        if name in names.values():
            name = _load_name(manifest.number, digits=11)
        staged.rename(loads / name)
        sync_directory(loads)
        exchange(loads, self.loads_path)
        sync_directory(self.staging_path)
        sync_directory(self.path)
        return self.loads_path / name

    def _retire(self, numbers: Sequence[int]) -> None:
        # newest first: if this process dies, the oldest loads remain, without a gap
        retired = self.path / _RETIRED
        for number in sorted(numbers, reverse=True):
            retired.mkdir(exist_ok=True)
            path = self.load_path(number)
            path.rename(retired / f"{path.name}-{uuid.uuid4().hex[:8]}")
            sync_directory(self.loads_path)


def _finish(staged: Path, manifest: Manifest) -> None:
    """Write the manifest of a staged load, and sync the load."""
    _remove_unnamed(staged, {one.path for one in manifest.files})
    write_atomically(staged / MANIFEST_NAME, manifest.to_json().encode())
    _sync_directories(staged)


def _sync_directories(top: Path) -> None:
    for directory, _, _ in os.walk(top, topdown=False):
        sync_directory(Path(directory))


def _remove_unnamed(staged: Path, named: set[str]) -> None:
    """Remove the files of failed task attempts."""
    for directory, _, names in os.walk(staged, topdown=False):
        for name in names:
            path = Path(directory, name)
            if path.relative_to(staged).as_posix() not in named:
                path.unlink()
        if Path(directory) != staged and not any(Path(directory).iterdir()):
            Path(directory).rmdir()
