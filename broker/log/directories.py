"""The data directories of one broker: which of them can be used, and which log is in which.

Each has its own lock, ids, marker and checkpoint (`data_directory`). What belongs to the broker or
to a topic is kept in every one of them, so that it outlives the loss of any. Of several, each also
records the directory of every partition: a partition in a directory that cannot be used must be
offline, not start again at offset 0 elsewhere. The files on disk come first: a log that is found is
served from where it is, whatever the record says. The record's format:

    pylogctl-partition-directories 1
    generation N
    directory NUMBER PATH                 (one line a directory; the path with links resolved)
    partition TOPIC PARTITION NUMBER      (one line a partition)
    deleted TOPIC NUMBER                  (a topic deleted while that directory could not be used)

The generation grows with every change, and whenever a directory fails. A directory with an older
one was away: what it alone knows counts only for the topics that it has logs of.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from broker.errors import ConfigError, LogCorruptError, LogLockedError, StorageError
from broker.files import write_atomically
from broker.leader_epochs import FIRST_INCARNATION
from broker.log.data_directory import (
    MOVED_FROM_NAME,
    PLACES_NAME,
    DataDirectory,
    UnusableDirectoryError,
    read_or_ignore,
)
from broker.log.format import BATCHES
from broker.log.side_files import METADATA_NAME
from broker.topic import NO_HOME, TopicPartition

_T = TypeVar("_T")
_FIRST_LINE = "pylogctl-partition-directories 1"

logger = logging.getLogger(__name__)


@dataclass
class Places:
    """The directory of each partition, by path, and the topics deleted while one was away."""

    generation: int = 0
    partitions: dict[TopicPartition, Path] = field(default_factory=dict)
    deleted: set[tuple[str, Path]] = field(default_factory=set)

    def encode(self) -> bytes:
        """Return the content of the record."""
        paths = sorted({*self.partitions.values(), *(path for _, path in self.deleted)})
        numbers = {path: number for number, path in enumerate(paths)}
        lines = [_FIRST_LINE, f"generation {self.generation}"]
        lines += [f"directory {number} {path}" for path, number in numbers.items()]
        lines += [
            f"partition {one.topic} {one.name} {numbers[path]}"
            for one, path in sorted(self.partitions.items())
        ]
        lines += [f"deleted {topic} {numbers[path]}" for topic, path in sorted(self.deleted)]
        return os.fsencode("\n".join((*lines, "")))

    @classmethod
    def read(cls, file: Path) -> Places:
        """Parse the record in a file; `ValueError` if it is damaged."""
        lines = os.fsdecode(file.read_bytes()).split("\n")
        if lines[0] != _FIRST_LINE or lines[-1] != "" or len(lines) < 3:
            raise ValueError("its first line or its end is wrong")
        found = cls(int(lines[1].removeprefix("generation ")))
        paths: dict[str, Path] = {}
        for line in lines[2:-1]:
            kind, _, rest = line.partition(" ")
            if kind == "directory":
                number, _, path = rest.partition(" ")
                paths[number] = Path(path)
                continue
            name, _, number = rest.rpartition(" ")
            if number not in paths:
                raise ValueError(f"'{line}' names an unknown directory")
            if kind == "partition":
                topic, _, one = name.rpartition(" ")
                found.partitions[TopicPartition.named(topic, one)] = paths[number]
            elif kind == "deleted":
                found.deleted.add((name, paths[number]))
            else:
                raise ValueError(f"'{line}' is unknown")
        return found


def _logs_of(directory: DataDirectory) -> dict[TopicPartition, Path]:
    """Return the directories of all logs; of Kafka's names, those that have its files."""
    found = directory.logs()
    for partition, path in list(found.items()):
        if partition.home == NO_HOME and not any(map(_is_of_batches, path.iterdir())):
            logger.warning("%s is not a log: ignored", path)
            del found[partition]
    return found


def _is_of_batches(path: Path) -> bool:
    return path.name == METADATA_NAME or BATCHES.base_offset_of(path.name) is not None


def was_moved(former: Path, now: Path) -> bool:
    """Return whether a log was moved from the directory `former` to `now`."""
    try:
        return (now / MOVED_FROM_NAME).read_text() == str(former.resolve())
    except FileNotFoundError:
        return False


class DirectoryState(NamedTuple):
    """A data directory with its number of logs and free bytes; `failure`: why it is not in use."""

    path: Path
    log_count: int
    free_bytes: int | None
    failure: StorageError | None


class DataDirectories:
    """The data directories of this process's broker."""

    def __init__(self, paths: Sequence[Path], broker_id: int) -> None:
        self._broker_id = broker_id
        self.incarnation = FIRST_INCARNATION
        """Of the broker, another one after each unclean stop or loss of messages."""
        self.all = tuple(DataDirectory(path, broker_id) for path in paths)
        self.are_new = False
        """Whether no broker had carried out orders of a controller with them before this start."""
        self.online: tuple[DataDirectory, ...] = ()
        """Those in use, in the order of the settings."""
        self.place_of: dict[TopicPartition, DataDirectory] = {}
        """The directory of each partition that has a log, also of one that is offline."""
        self._log_counts: Counter[DataDirectory] = Counter()
        self._resolved: dict[DataDirectory, Path] = {}
        self._known = Places()
        self._generations: dict[DataDirectory, int] = {}
        self._is_recorded = len(paths) > 1
        self._recorded: Places | None = None

    def lock(self) -> None:
        """Lock every directory that can be used; the others get a `failure`, which is logged.

        Raises `LogLockedError` if one is in use by or of another broker, or they are of several
        clusters; `UnusableDirectoryError` if none can be used; `ConfigError` if one is given twice,
        or its ids are damaged.
        """
        self._resolved = {one: one.path.resolve() for one in self.all}
        self._validate_distinct()
        try:
            new = [one for one in self.all if not self._lock_known(one)]
            self._read_places()
            for directory in new:
                self._lock_new(directory)
            self.online = tuple(one for one in self.all if one.failure is None)
            if not self.online:
                failures = "; ".join(str(one.failure) for one in self.all)
                raise UnusableDirectoryError(failures)
            self._validate_cluster()
            self.are_new = not any(one.had_orders for one in self.online)
        except BaseException:
            self.unlock()
            raise

    def unlock(self) -> None:
        """Release all locks that are held."""
        for directory in self.all:
            directory.unlock()

    def _validate_distinct(self) -> None:
        known: dict[object, DataDirectory] = {}
        for directory, resolved in self._resolved.items():
            names: list[object] = [resolved]
            try:
                status = resolved.stat()
            except OSError:
                pass  # one that does not exist yet, or cannot be used
            else:
                names.append((status.st_dev, status.st_ino))
            for name in names:
                other = known.setdefault(name, directory)
                if other is not directory:
                    raise ConfigError(
                        f"log.dirs names one directory twice: {other.path} and {directory.path}; "
                        "name it once"
                    )
        for directory, resolved in self._resolved.items():
            for outer, above in self._resolved.items():
                if above in resolved.parents:
                    raise ConfigError(
                        f"log.dirs names {directory.path}, which is inside {outer.path}; "
                        "a data directory cannot contain another"
                    )

    def _lock_known(self, directory: DataDirectory) -> bool:
        """Lock a directory that a broker has used; leave a new one alone and return False."""
        try:
            if not directory.has_owner():
                return False
            directory.lock()
        except UnusableDirectoryError as error:
            self._leave_out(directory, error)
        return True

    def _lock_new(self, directory: DataDirectory) -> None:
        path = self._resolved[directory]
        count = sum(place == path for place in self._known.partitions.values())
        try:
            if count:
                raise UnusableDirectoryError(
                    f"data directory {directory.path} had {count} partitions, and is empty or gone "
                    "now: mount its disk and start the broker again; to give its messages up, "
                    "start it once without this directory in log.dirs"
                )
            directory.lock()
        except UnusableDirectoryError as error:
            self._leave_out(directory, error)

    def _leave_out(self, directory: DataDirectory, error: Exception) -> None:
        directory.failure = StorageError(str(error))
        if len(self.all) > 1:
            logger.error("%s", error)

    def _validate_cluster(self) -> None:
        owners = {one.cluster_id: one for one in self.online if one.cluster_id is not None}
        if len(owners) > 1:
            (first, one), (second, other), *_ = owners.items()
            raise LogLockedError(
                f"data directory {one.path} belongs to cluster {first}, and {other.path} to "
                f"cluster {second}: they cannot be of one broker"
            )

    def _read_places(self) -> None:
        """Read the record of the highest generation: its directory was never away."""
        for directory in self.all:
            if directory.failure is not None:
                continue
            found = read_or_ignore(directory.path / PLACES_NAME, Places.read, None)
            if found is None:
                continue
            self._is_recorded = True
            self._generations[directory] = found.generation
            if found.generation > self._known.generation:
                self._known = found

    def for_each(self, action: Callable[[DataDirectory], _T]) -> dict[DataDirectory, _T]:
        """Call a function for every directory in use, each on a thread of its own if several.

        A directory where it fails with an `OSError` is taken offline, if there is another one.
        """
        if len(self.online) == 1:
            return {self.online[0]: action(self.online[0])}
        results = {}
        with ThreadPoolExecutor(len(self.online), "data-directory") as pool:
            started = {one: pool.submit(action, one) for one in self.online}
        for directory, future in started.items():
            try:
                results[directory] = future.result()
            except OSError as error:
                if len(self.online) == 1:
                    raise
                reason = f"cannot use data directory {directory.path}: {error}"
                logger.error("%s", reason)
                self.take_offline(directory, StorageError(reason))
        return results

    def was_away(self, directory: DataDirectory) -> bool:
        """Return whether other directories have a later record than this one."""
        return self._generations.get(directory, 0) < self._known.generation

    def deleted_topics(self, directory: DataDirectory) -> set[str]:
        """Return the topics that were deleted while a directory was away."""
        away = self._resolved[directory]
        return {topic for topic, path in self._known.deleted if path == away}

    def lost_partitions(self) -> dict[TopicPartition, DataDirectory]:
        """Return the partitions that are on record as in a directory that cannot be used.

        Those in a directory that the settings no longer name are given up, with a warning.
        """
        directories = {path: one for one, path in self._resolved.items()}
        lost = {}
        given_up: Counter[Path] = Counter()
        for partition, path in self._known.partitions.items():
            if partition in self.place_of:
                continue
            directory = directories.get(path)
            if directory is None:
                given_up[path] += 1
            elif directory.failure is not None:
                lost[partition] = directory
        for path, count in given_up.items():
            logger.warning(
                "log.dirs no longer names %s: the %d partitions there are taken as deleted, and "
                "new ones start at offset 0",
                *(path, count),
            )
        return lost

    def find_logs(
        self,
    ) -> tuple[dict[DataDirectory, dict[TopicPartition, Path]], dict[DataDirectory, list[Path]]]:
        """Find the directories of all logs, and note which data directory each is in.

        Returns the logs by data directory, and the former directories of logs that were moved.
        Raises `LogCorruptError` if a partition is in two directories.
        """
        found = self.for_each(_logs_of)
        left_behind: dict[DataDirectory, list[Path]] = {one: [] for one in found}
        for directory, logs in found.items():
            for partition, path in logs.items():
                other_directory = self.place_of.get(partition)
                if other_directory is None:
                    self.add(partition, directory)
                    continue
                other = found[other_directory][partition]
                if was_moved(other, path):
                    self.add(partition, directory)
                    left_behind[other_directory].append(other)
                elif was_moved(path, other):
                    left_behind[directory].append(path)
                else:
                    raise LogCorruptError(
                        f"{partition} is in two data directories, {other} and {path}: move the "
                        "wrong one away, and start the broker again"
                    )
        chosen = {
            one: {key: path for key, path in logs.items() if self.place_of[key] is one}
            for one, logs in found.items()
        }
        return chosen, left_behind

    def note_formers_removed(self, logs: Iterable[Path]) -> None:
        """Remove the notes of the former directories of logs, once these are gone."""
        if len(self.all) == 1:
            return
        present = {self._resolved[one] for one in self.online}
        for path in logs:
            note = path / MOVED_FROM_NAME
            try:
                former = Path(note.read_text())
                if present.intersection(former.parents) and not former.exists():
                    note.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.warning("cannot remove %s: %s", note, error)

    def add(self, partition: TopicPartition, directory: DataDirectory) -> None:
        """Note the directory of a partition that is new or was moved."""
        former = self.place_of.get(partition)
        if former is not None:
            self._log_counts[former] -= 1
        self.place_of[partition] = directory
        self._log_counts[directory] += 1

    def remove(self, partition: TopicPartition) -> DataDirectory | None:
        """Note that a partition is deleted, and return its directory."""
        directory = self.place_of.pop(partition, None)
        if directory is not None:
            self._log_counts[directory] -= 1
        return directory

    def own_topics(self, directory: DataDirectory) -> set[str]:
        """Return the topics that have a partition of this broker, or without home, there."""
        return {
            partition.topic
            for partition, place in list(self.place_of.items())
            if place is directory and partition.home in (self._broker_id, NO_HOME)
        }

    def remove_topic(self, topic: str) -> None:
        """Note that a topic is deleted here, also for directories that cannot be used now."""
        homes = (self._broker_id, NO_HOME)
        own = [one for one in self.place_of if one.topic == topic and one.home in homes]
        for partition in own:
            directory = self.remove(partition)
            if directory is not None and directory.failure is not None:
                self._known.deleted.add((topic, self._resolved[directory]))

    def choose(self) -> DataDirectory:
        """Return the directory for a new log: that with the fewest, the first of equal ones."""
        if not self.online:
            raise StorageError("no data directory can be used")
        return min(self.online, key=self._log_counts.__getitem__)

    def first_path(self) -> Path:
        """Return the first data directory in use; the first of all if none is."""
        return (self.online or self.all)[0].path

    def states(self) -> list[DirectoryState]:
        """Return the state of each directory, in the order of the settings."""
        return [
            DirectoryState(
                one.path.absolute(),
                self._log_counts[one],
                one.space.free_bytes if one.space and one.failure is None else None,
                one.failure,
            )
            for one in self.all
        ]

    def find(self, path: Path) -> DataDirectory | None:
        """Return the directory of a path, which may be spelled in another way."""
        resolved = path.resolve()
        return next((one for one in self.all if self._resolved[one] == resolved), None)

    def take_offline(self, directory: DataDirectory, failure: StorageError) -> None:
        """Stop using a directory."""
        directory.failure = failure
        self.online = tuple(one for one in self.online if one is not directory)
        self._recorded = None  # write a new generation, which shows that the directory was away

    def write_places(self) -> None:
        """Write the record, if it has changed, to every directory; `OSError` if one refuses it."""
        if not self._is_recorded:
            return
        partitions = {key: self._resolved[one] for key, one in list(self.place_of.items())}
        present = {self._resolved[one] for one in self.online}
        deleted = {(topic, path) for topic, path in self._known.deleted if path not in present}
        if self._recorded is not None and (partitions, deleted) == (
            self._recorded.partitions,
            self._recorded.deleted,
        ):
            return
        self._known.generation += 1
        record = Places(self._known.generation, partitions, deleted)
        content = record.encode()
        self._recorded = None
        failures: list[OSError] = []
        for directory in self.online:
            try:
                write_atomically(directory.path / PLACES_NAME, content)
            except OSError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        self._recorded = record

    def begin_incarnation(self, *, is_another: bool) -> None:
        """Store the incarnation; another one after an unclean stop or lost messages."""
        incarnation = max(one.incarnation for one in self.online) + is_another
        is_stored = False
        for directory in self.online:
            try:
                directory.write_incarnation(incarnation)
                is_stored = True
            except OSError as error:  # a full disk: the number in another directory counts
                logger.warning("cannot write to %s: %s", directory.path, error)
        if not is_stored:  # a number that no later start gives out again
            incarnation = secrets.randbelow(1 << 30) + (1 << 30)
        self.incarnation = FIRST_INCARNATION + incarnation

    def join_cluster(self, cluster_id: str) -> None:
        """Note the cluster of all directories for good; `LogLockedError` if they are of another."""
        for directory in self.online:
            directory.join_cluster(cluster_id)

    def cluster_id(self) -> str | None:
        """Return the cluster of the directories, None if they never had one."""
        return next(filter(None, (one.cluster_id for one in self.online)), None)

    def creator_token(self, proposed: str) -> str:
        """Return the token of this broker, the same in all directories: `proposed` at first."""
        tokens: list[str] = []
        for directory in sorted(self.online, key=lambda one: not one.has_creator()):
            tokens.append(directory.creator_token(tokens[0] if tokens else proposed))
        return tokens[0]
