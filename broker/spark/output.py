"""The directory that loads go to: data and offsets become visible together, or not at all.

    OUT/loads/load=0000000007/   data, and _offsets.json     visible: committed
    OUT/_staging/                of the load that runs; of a dead one dropped by the next
    OUT/_retired/                loads taken back, to be loaded again; nobody reads them
    OUT/_lock                    held while a load runs

A load is written into staging, synced, and then renamed: that is the commit. Names that begin with
`_` are skipped by Spark's readers, so `spark.read.parquet("OUT/loads")` is what is committed.
Renaming must be atomic: a local or network file system, no object store.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from broker.errors import ConfigError, OutputConflictError
from broker.log.atomic_file import sync_directory, write_atomically
from broker.spark.manifest import MANIFEST_NAME, Manifest, read_manifest

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
        OutputConflictError: it holds something else than loads.
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
        """Return where a committed load lies."""
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
        """Check that the loads here are of the kind that is to be added.

        Raises:
            OutputConflictError: they are not; the text says what differs.
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
        """Keep other loads away for as long as the block lasts; drop what it, or a dead one, left.

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
                shutil.rmtree(self.staging_path, ignore_errors=True)  # else the next load does it

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
        """Take loads back, the newest first: what is left is whole whenever that ends."""
        retired = self.path / _RETIRED
        for number in sorted(numbers, reverse=True):
            retired.mkdir(exist_ok=True)
            path = self.load_path(number)
            path.rename(retired / f"{path.name}-{uuid.uuid4().hex[:8]}")
            sync_directory(self.loads_path)


def _remove_unnamed(staged: Path, named: set[str]) -> None:
    """Remove what attempts of tasks wrote that were not the ones to succeed."""
    for directory, _, names in os.walk(staged, topdown=False):
        for name in names:
            path = Path(directory, name)
            if path.relative_to(staged).as_posix() not in named:
                path.unlink()
        if Path(directory) != staged and not any(Path(directory).iterdir()):
            Path(directory).rmdir()
