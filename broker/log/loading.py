"""Loading all logs of a broker at its start, recovered where they were not closed cleanly."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.errors import LogCorruptError, StorageError
from broker.log.creation import LogCreation, refuse_until_ordered
from broker.log.data_directory import (
    NOTHING_FLUSHED,
    UNKNOWN,
    DataDirectory,
    RecoveryPoint,
    read_recovery_points,
)
from broker.log.log import Log
from broker.log.recovery import (
    Recovery,
    holes,
    is_whole,
    list_segments,
    recover,
    restore_end,
)
from broker.log.replica_files import EpochFile, read_creation_id, read_epochs, read_record
from broker.log.segment import Segment
from broker.log.table import LogTable
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a start found."""

    was_clean: bool = False
    """Whether there was the marker of a clean shutdown: all that was flushed is there."""
    was_recovered: bool = False
    """Whether there are logs that had not been closed cleanly."""
    recovery_s: float = 0.0
    """The time it took to recover and load the logs; 0 if all had been closed cleanly."""
    recoveries: Sequence[Recovery] = ()
    """The truncations by recovery."""


@dataclass(slots=True)
class _Contents:
    """The contents of one data directory, or of several."""

    was_recovered: bool = False
    logs: list[Log] = field(default_factory=list)
    failures: list[tuple[TopicPartition, RecoveryPoint, Exception]] = field(default_factory=list)
    """The logs that could not be opened."""
    recoveries: list[Recovery] = field(default_factory=list)
    gone: set[TopicPartition] = field(default_factory=set)
    """Partitions with a recovery point and no log."""
    kept_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The ends of logs that have lost messages, or may have."""

    def add(self, other: _Contents) -> None:
        self.was_recovered |= other.was_recovered
        self.logs += other.logs
        self.failures += other.failures
        self.recoveries += other.recoveries
        self.gone |= other.gone
        self.kept_ends |= other.kept_ends


@dataclass(frozen=True, slots=True)
class Loader:
    """Fills the table of logs, and what is known of topics, from the data directories."""

    creation: LogCreation

    @property
    def table(self) -> LogTable:
        """Return the table that is filled."""
        return self.creation.table

    def load(self) -> Loaded:
        """Open all logs; those that cannot be used are offline then."""
        directories, clock = self.table.directories, self.creation.parts.clock
        found = self._find_logs()
        was_clean = all(one.failure is None and one.is_clean() for one in directories.all)
        started_s = clock.monotonic_s()
        contents = _Contents()
        for one in directories.for_each(lambda one: self._load_directory(one, found[one])).values():
            contents.add(one)
        recovery_s = clock.monotonic_s() - started_s if contents.was_recovered else 0.0
        for log in contents.logs:
            self.table.add(log)
        for partition, point, reason in contents.failures:
            self._leave_offline(partition, point, reason)
        for partition in sorted(contents.gone - directories.place_of.keys()):
            logger.warning(
                "the log of %s is gone; it is taken as deleted, and a new one starts at offset 0",
                partition,
            )
        self.leave_directories_offline()
        self.table.topics.creation_ids.load(set(self.table.topics.names()))
        is_another = not was_clean or bool(contents.kept_ends)
        directories.begin_incarnation(is_another=is_another)
        for log in contents.logs:
            start = log.log_end_offset if is_another else log.log_start_offset
            self._begin_incarnation(log, contents.kept_ends.get(log.partition, start))
        # a replica that has lost messages must not lead as one that has all
        was_clean = was_clean and not any(
            log.is_replicated and log.partition in contents.kept_ends for log in contents.logs
        )
        return Loaded(was_clean, contents.was_recovered, recovery_s, contents.recoveries)

    def _find_logs(self) -> dict[DataDirectory, dict[TopicPartition, Path]]:
        """Finish the deletions and moves of the last run; return the directories of all logs."""
        directories, deletions = self.table.directories, self.creation.deletions
        directories.for_each(deletions.finish_in)
        deleted = deletions.unfinished()
        if deleted:
            directories.for_each(lambda one: deletions.move_topics_aside(one, deleted))
        found, left_behind = directories.find_logs()
        for directory, paths in left_behind.items():
            if paths:
                deletions.move_aside(directory, paths)
        for logs in found.values():
            directories.note_formers_removed(logs.values())
        self.table.topics.load()
        if deleted:
            deletions.forget(deleted)
        self.creation.high_watermarks.load()
        return found

    def _begin_incarnation(self, log: Log, start_offset: int) -> None:
        if log.partition.home == self.table.home:
            log.incarnations.begin(
                self.table.directories.incarnation,
                start_offset,
                log_start_offset=log.log_start_offset,
                creation=self.table.topics.creation_key(log.partition.topic),
            )

    def leave_directories_offline(self) -> None:
        """Leave the partitions in directories that cannot be used offline."""
        directories = self.table.directories
        for partition, directory in directories.lost_partitions().items():
            directories.add(partition, directory)
        for directory in directories.all:
            if directory.failure is not None:
                self.table.lose(directory, directory.failure)

    def _leave_offline(
        self, partition: TopicPartition, point: RecoveryPoint, reason: Exception
    ) -> None:
        if partition.home != self.table.home:
            logger.error("the replica of %s is not used: %s", partition, reason)
            return
        error = StorageError(
            f"{partition} is offline: {reason}; mend it and start the broker again, "
            "or delete the topic"
        )
        logger.error("%s", error)
        self.table.leave_offline(partition, point, error)

    def _load_directory(
        self, directory: DataDirectory, logs: Mapping[TopicPartition, Path]
    ) -> _Contents:
        """Open the logs in a data directory, recovered if it was not closed cleanly."""
        is_clean = directory.is_clean()
        points = {
            parent: read_recovery_points(parent)
            for parent in {directory.path, *(path.parent for path in logs.values())}
        }
        home = self.table.home
        known = {TopicPartition(topic, home, n) for topic, n in points[directory.path] or ()}
        contents = _Contents(was_recovered=not is_clean and bool(logs), gone=known - logs.keys())
        for partition, path in sorted(logs.items()):
            of_parent = points[path.parent]
            # A log not in the checkpoint was created after it: nothing of it is flushed.
            point = (
                UNKNOWN
                if of_parent is None
                else of_parent.get((partition.topic, partition.index), NOTHING_FLUSHED)
            )
            high_watermark = self.creation.high_watermarks.loaded(directory, partition)
            try:
                self._load_log(partition, path, point, high_watermark, contents, is_clean=is_clean)
            except (LogCorruptError, StorageError, OSError) as error:
                contents.failures.append((partition, point, error))
        return contents

    def _load_log(
        self,
        partition: TopicPartition,
        directory: Path,
        point: RecoveryPoint,
        high_watermark: int,
        contents: _Contents,
        *,
        is_clean: bool,
    ) -> None:
        """Open a log that is on disk, recovered if it was not closed cleanly."""
        recoveries: list[Recovery] = []
        segments = list_segments(directory)
        end_offset = point.offset or 0
        creation_id = read_creation_id(directory)
        is_good = is_clean and bool(segments) and is_whole(segments, end_offset)
        has_copies = creation_id is not None and (is_good or self._has_copies(directory))
        if segments and not is_good:
            recoveries = recover(
                partition,
                segments,
                recovery_point=point.offset,
                time_ms=self.creation.parts.clock.time_ms(),
                has_copies=has_copies,
            )
            contents.kept_ends[partition] = min(
                (one.valid_end for one in recoveries), default=segments[-1].next_offset
            )
        elif end_offset and not segments:
            contents.kept_ends[partition] = 0
        if creation_id is not None:
            self.table.replica_creation_ids[partition] = creation_id
        if not has_copies and (not segments or segments[-1].next_offset < end_offset):
            contents.kept_ends.setdefault(partition, 0)
            self._restore_end(partition, directory, segments, end_offset)
        for hole in holes(segments):
            logger.warning(
                "%s has no messages from offset %d to %d, they were lost; readers continue behind "
                "them: %s",
                *(partition, *hole, directory),
            )
        log = self.creation.make(partition, directory, segments, point)
        if creation_id is not None:
            refuse_until_ordered(log)
            epochs = EpochFile(directory, read_epochs(directory))
            epochs.replace(epochs.epochs.recovered(log.log_start_offset, log.log_end_offset))
            log.replicate(epochs, high_watermark)
        contents.logs.append(log)
        contents.recoveries += recoveries

    def _has_copies(self, directory: Path) -> bool:
        """Return whether other replicas were in sync, so that what is lost is copied from them."""
        record = read_record(directory)
        return record is None or any(one != self.table.home for one in record.state.isr)

    def _restore_end(
        self, partition: TopicPartition, directory: Path, segments: list[Segment], end_offset: int
    ) -> None:
        """Start a log at its end at the last checkpoint, unless the settings reuse lost offsets."""
        if end_offset == 0:
            return
        lost = f"from offset {segments[-1].next_offset} to" if segments else "up to offset"
        reuses = self.creation.settings.broker.reuse_lost_offsets
        logger.warning(
            "%s has lost its messages %s %d, which were flushed, while the broker was down: %s; %s",
            *(partition, lost, end_offset, directory),
            "their offsets are given out again, as log.lost.offsets.reuse says"
            if reuses
            else f"new messages start at {end_offset}",
        )
        if not reuses:
            restore_end(
                directory, segments, end_offset, time_ms=self.creation.parts.clock.time_ms()
            )
