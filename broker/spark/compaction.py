"""Compaction: replaces many small loads of an output by one with fewer, larger files.

    compact(spark, Path("/data/lake"))

The new load has the number of the newest one it replaces, and the rows, ranges and counts of all of
them. Readers see either the old loads or the new one: see `loading.output`. A query that has listed
the old files and not read them yet fails, as they are gone; it never has rows twice. A compaction
that fails replaces nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from broker.errors import ConfigError
from broker.spark.jobs import OnProgress, TaskEngine
from broker.spark.load import joined_files
from broker.spark.loading.files import StoredFile, small_file_groups
from broker.spark.loading.output import LoadOutput, Manifest, PartitionLoad
from broker.topic import TopicPartition

FILE_BYTES = 128 << 20
"""Default of the target size of files."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A planned compaction of an output.

    Attributes:
        replaced: the loads to replace, oldest first.
        groups: groups of files, each to be joined into one.
    """

    output: LoadOutput
    replaced: tuple[Manifest, ...]
    groups: tuple[tuple[StoredFile, ...], ...]

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to join."""
        return not self.groups

    @property
    def size_bytes(self) -> int:
        """Return the size of the files to join."""
        return sum(one.file.size_bytes for group in self.groups for one in group)

    def run(self, engine: TaskEngine, on_progress: OnProgress | None = None) -> Manifest:
        """Join the planned files, and replace the loads by one; the output must be locked."""
        self.output.check_exchange()
        staged = self.output.stage()
        paths = {
            file: self.output.load_path(one.number) / file.path
            for one in self.replaced
            for file in one.files
        }
        files = joined_files(engine, self.groups, staged, paths, on_progress)
        for file in files:
            if file in paths:  # it was not joined
                target = staged / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(paths[file], target)
        manifest = replace(
            self.replaced[-1],
            started_ms=self.replaced[0].started_ms,
            partitions=_in_one(self.replaced),
            files=tuple(files),
        )
        self.output.replace([one.number for one in self.replaced], staged, manifest)
        return manifest


def compact(
    engine: TaskEngine,
    path: Path,
    *,
    file_bytes: int = FILE_BYTES,
    keep: int = 0,
    on_progress: OnProgress | None = None,
) -> Manifest | None:
    """Join the small files of an output; return the new load's manifest, None if there are none.

    Args:
        engine: any session of Spark, or processes of this machine.
        path: directory of the loads.
        file_bytes: target size of files; those under half of it are joined.
        keep: number of the newest loads to leave as they are. Joined loads can only be loaded
            again together.
        on_progress: called with the completed fraction.
    """
    with prepare_compaction(path, file_bytes=file_bytes, keep=keep) as prepared:
        return None if prepared.is_empty else prepared.run(engine, on_progress)


def plan_compaction(
    output: LoadOutput, *, file_bytes: int = FILE_BYTES, keep: int = 0
) -> Compaction:
    """Plan a compaction without running it."""
    if file_bytes < 1 or keep < 0:
        raise ConfigError("the target size of files is at least 1, and the loads to keep 0")
    if not output.loads_path.is_dir():
        raise FileNotFoundError(2, "there are no loads", str(output.path))
    numbers = output.numbers()
    manifests = [output.manifest(number) for number in numbers[: max(0, len(numbers) - keep)]]
    stored = [
        StoredFile(output.load_path(one.number), file)
        for one in manifests
        for file in sorted(one.files)
    ]
    groups = small_file_groups(stored, file_bytes)
    joined = {one.directory for group in groups for one in group}
    with_joined = [at for at, one in enumerate(manifests) if output.load_path(one.number) in joined]
    # loads without small files stay as they are, except those between others
    replaced = manifests[with_joined[0] : with_joined[-1] + 1] if with_joined else []
    return Compaction(output, tuple(replaced), tuple(groups))


@contextmanager
def prepare_compaction(
    path: Path, *, file_bytes: int = FILE_BYTES, keep: int = 0
) -> Iterator[Compaction]:
    """Plan a compaction, with its output locked until the block ends; needs no Spark."""
    output = LoadOutput(path)
    plan_compaction(output, file_bytes=file_bytes, keep=keep)  # before anything is created
    with output.locked():
        yield plan_compaction(output, file_bytes=file_bytes, keep=keep)


def _in_one(manifests: Sequence[Manifest]) -> tuple[PartitionLoad, ...]:
    """Join the ranges of loads; a log that was created again has more than one."""
    found: dict[TopicPartition, list[PartitionLoad]] = {}
    for manifest in manifests:
        for part in manifest.partitions:
            parts = found.setdefault(part.partition, [])
            if parts and parts[-1].end == part.start:
                parts[-1] = parts[-1].plus(part)
            else:
                parts.append(part)
    return tuple(part for partition in sorted(found) for part in found[partition])
