"""All logs of one broker, from its start to its stop.

The parts of a `LogManager` are used by their names: `table` finds logs, `creation`, `deletions` and
`moves` change which there are, `topics`, `settings` and `directories` say what is known of them,
`retention` and `checkpoints` do what is due. A broker sets their callbacks `on_*`.

A data directory that fails, at the start or later, takes its partitions offline. Errors of all
methods, and of those of the parts: `StorageError` if the partition is offline or the disk refuses,
`ShuttingDownError` once the logs are closed, `UnknownTopicError` for a topic that is unknown or
being deleted.
"""

from __future__ import annotations

import logging
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.errors import LogCorruptError, StorageError
from broker.files import reason_of
from broker.log.checkpoints import Checkpoints
from broker.log.cleaner import Cleaner
from broker.log.creation import LogCreation, new_topic_id, refuse_until_ordered
from broker.log.data_directory import DataDirectory, RecoveryPoint, point_of, read_recovery_points
from broker.log.deletion import LogDeletions
from broker.log.directories import DataDirectories
from broker.log.flusher import Flusher, PeriodicTask
from broker.log.format import format_of
from broker.log.log import Log, LogParts
from broker.log.moves import Moves
from broker.log.recovery import Recovery, holes, is_whole, list_segments, recover, restore_end
from broker.log.replica_files import EpochFile, read_creation_id, read_epochs, read_record
from broker.log.retention import Retention
from broker.log.segment import Disk, Segment, SegmentFiles
from broker.log.side_files import METADATA_NAME, SideFileError, read_topic_id, write_topic_id
from broker.log.table import HomeTopics, LogSettings, LogTable
from broker.stats import FLUSH_BOUNDS_S, SharedStats
from broker.times import parse_times_of_day, seconds_to_next
from broker.topic import FORMAT_KAFKA, NO_HOME, TopicPartition
from broker.topic_settings import TopicOverrides


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
    """The logs that could not be opened, but for replicas that others have as well."""
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
    checkpoints: Checkpoints

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
        self._take_in({key: path for logs in found.values() for key, path in logs.items()})
        self.checkpoints.load_high_watermarks()
        return found

    def _take_in(self, found: Mapping[TopicPartition, Path]) -> None:
        """Record the topics of directories that a Kafka broker has written, with their ids."""
        topics = self.table.topics
        known = {*topics.names(), *(one.topic for one in found if one.home == self.table.home)}
        new: dict[str, list[TopicPartition]] = {}
        for partition in sorted(found):
            if (
                partition.home == NO_HOME
                and partition.topic not in known
                and not self._is_replica(partition, found[partition])
            ):
                new.setdefault(partition.topic, []).append(partition)
        for topic, partitions in new.items():
            ids = filter(None, (_read_metadata(found[one]) for one in partitions))
            topic_id = next((one.hex for one in ids), new_topic_id())
            logger.info("taking in topic '%(topic)s', which was put here", {"topic": topic})
            topics.set_explicit(topic, partitions[-1].index + 1, topic_id)

    def _is_here(self, partition: TopicPartition) -> bool:
        return partition.home in (self.table.home, NO_HOME)

    def _is_replica(self, partition: TopicPartition, directory: Path) -> bool:
        """Return whether a log is of a partition that other brokers may have as well."""
        if partition.home != NO_HOME:
            return partition.home != self.table.home
        with suppress(OSError):
            return read_creation_id(directory) is not None
        return False

    def _begin_incarnation(self, log: Log, start_offset: int) -> None:
        if self.table.is_own(log.partition):
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
        homes = {path.parent: one.home for one, path in logs.items() if not self._is_here(one)}
        homes[directory.path] = self.table.home
        points = {parent: read_recovery_points(parent, home) for parent, home in homes.items()}
        contents = _Contents(
            was_recovered=not is_clean and bool(logs),
            gone=(points[directory.path] or {}).keys() - logs.keys(),
        )
        for partition, path in sorted(logs.items()):
            point = point_of(partition, points[path.parent])
            high_watermark = self.checkpoints.high_watermarks[directory].get(partition, 0)
            try:
                self._load_log(partition, path, point, high_watermark, contents, is_clean=is_clean)
            except (LogCorruptError, StorageError, OSError) as error:
                if self._is_replica(partition, path):
                    logger.error("the replica of %s is not used: %s", partition, error)
                else:
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
        creation_id = read_creation_id(directory)
        if creation_id is None and self._is_here(partition):
            self._validate_own(partition, directory)
        segments = list_segments(directory, format_of(partition))
        end_offset = point.offset or 0
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

    def _validate_own(self, partition: TopicPartition, directory: Path) -> None:
        """Validate that a log without replicas is of the topic that is on record."""
        topics = self.table.topics
        expected = topics.format_of(partition.topic)
        if partition.format != expected:
            raise LogCorruptError(
                f"topic '{partition.topic}' has the format {expected}, and {directory} is a log "
                f"of the format {partition.format}, which has to be moved out of the data directory"
            )
        if partition.format == FORMAT_KAFKA:
            topic_id = UUID(topics.creation_id(partition.topic))
            found = _read_metadata(directory)
            if found is None:
                write_topic_id(directory, topic_id)
            elif found != topic_id:
                raise LogCorruptError(
                    f"{directory / METADATA_NAME} is of a topic with the id {found}, and topic "
                    f"'{partition.topic}' has the id {topic_id} here; without that file the log is "
                    "taken as one of this topic"
                )

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
                *(directory, segments, end_offset),
                time_ms=self.creation.parts.clock.time_ms(),
                format=format_of(partition),
            )


def _read_metadata(directory: Path) -> UUID | None:
    """Return the topic id in a directory, None if it is missing or damaged, which is logged."""
    try:
        return read_topic_id(directory / METADATA_NAME)
    except FileNotFoundError:
        return None
    except SideFileError as error:
        logger.warning("%s; it is written again", error)
        return None


_FIRST_RETENTION_DELAY_S = 60.0
_SPACE_INTERVAL_S = 10.0

logger = logging.getLogger(__name__)

Step = Callable[[str, Callable[[], str | None]], object]
"""Runs one step of closing, given its name and a function that may return a remark."""


class LogManager:
    """The logs of one broker."""

    def __init__(self, config: BrokerConfig, clock: Clock, *, disk: Disk | None = None) -> None:
        self.on_directory_failure: Callable[[StorageError], object] = _ignore
        self.on_no_directory: Callable[[StorageError], object] = _ignore
        """Called when the last data directory has failed: nothing can be served any more."""
        self.loaded = Loaded()
        """What `open` found."""
        self.is_loss_known = False
        """Whether a controller knows of a start that was not clean. Until then this run is not
        closed cleanly either: replicas may lack messages that they had."""
        self._clock = clock
        self.flush_stats = SharedStats(clock, config.monitoring_period_ms / 1000, FLUSH_BOUNDS_S)
        self._disk = disk or Disk()
        self._flusher = Flusher(clock, thread_count=config.flusher_threads)
        self._tasks: list[PeriodicTask] = []
        self._safe: set[DataDirectory] = set()  # all there is flushed, closed and checkpointed

        self.files = SegmentFiles()
        self.settings = LogSettings(config)
        self.directories = DataDirectories(config.data_dirs, config.broker_id)
        self.topics = HomeTopics(self.settings, self.directories)
        self.table = LogTable(config.broker_id, self.topics, self.directories)
        self.checkpoints = Checkpoints(self.table)
        self.deletions = LogDeletions(self.table, self.checkpoints)
        self.moves = Moves(self.table, self.deletions, self.checkpoints)
        self.retention = Retention(self.table, self.settings, clock)
        self.cleaner = Cleaner(
            *(self.table, self.settings, clock, self.retention.time.now_ms, self._disk.sync)
        )
        parts = LogParts(
            clock=clock,
            files=self.files,
            disk=self._disk,
            schedule_flush=self._flusher.schedule,
            flush_stats=self.flush_stats,
            note_truncation=self.checkpoints.before_truncation,
        )
        self.creation = LogCreation(self.table, self.settings, parts, self.deletions)

    def open(self) -> list[Recovery]:
        """Lock the data directories and load every log; return the truncations by recovery.

        Logs that were not closed cleanly are recovered. A log that cannot be read or recovered, or
        contradicts itself, is left offline; the others are served. So are all logs of a directory
        that cannot be used, if another one can.

        Raises `LogLockedError` for a directory that another broker uses or owns, `LogCorruptError`
        for a partition in two directories, `ConfigError` for a directory given twice or if none can
        be written, `StorageError` if none can be read.
        """
        descriptor_count = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if descriptor_count != resource.RLIM_INFINITY:
            self.files.fit(descriptor_count)
        self.directories.lock()
        try:
            self._load()
        except OSError as error:
            self.directories.unlock()
            where = ", ".join(map(str, self.settings.broker.data_dirs))
            raise StorageError(f"cannot open the logs in {where}: {error}") from error
        except BaseException:
            self.directories.unlock()
            raise
        self.table.is_open = True
        return list(self.loaded.recoveries)

    def _load(self) -> None:
        loader = Loader(self.creation, self.checkpoints)
        self.loaded = loader.load()
        self.directories.for_each(DataDirectory.mark_in_use)
        loader.leave_directories_offline()
        unfinished = self.deletions.unfinished()
        if self.checkpoints.write_or_log():
            self.deletions.note_ended()
        else:
            self.topics.deleting |= unfinished  # a new topic of such a name would be deleted too
        self.deletions.prepare()

    def start(self) -> None:
        """Start the threads that flush, apply retention and write the checkpoint."""
        config = self.settings.broker
        checkpoint = PeriodicTask(
            "checkpoint", self._checkpoint_and_check, self._checkpoint_delay_s
        )
        first_s = self._retention_delay_s()
        if not config.cleanup_times:
            first_s = min(_FIRST_RETENTION_DELAY_S, first_s)
        retention = PeriodicTask(
            "retention", self.retention.apply, self._retention_delay_s, first_s
        )
        self._measure_space()
        # with a thread of its own: a disk that hangs holds nothing else up
        space = PeriodicTask("disk-space", self._measure_space, lambda: _SPACE_INTERVAL_S)
        high_watermarks = PeriodicTask(
            "high-watermarks",
            self.checkpoints.write_high_watermarks_or_log,
            lambda: config.high_watermark_checkpoint_ms / 1000,
        )
        self.cleaner.load()
        cleaner = PeriodicTask("log-cleaner", self.cleaner.run, self._cleaner_delay_s)
        self._tasks = [checkpoint, retention, cleaner, space, high_watermarks]
        self.deletions.remove_in_background()
        self._flusher.start()
        for task in self._tasks:
            task.start()

    def _checkpoint_delay_s(self) -> float:
        return self.settings.broker.checkpoint_interval_ms / 1000

    def _retention_delay_s(self) -> float:
        config = self.settings.broker
        if times := parse_times_of_day(config.cleanup_times):
            return seconds_to_next(times, self._clock.time_ms() / 1000)
        return config.cleanup_interval_ms / 1000

    def _cleaner_delay_s(self) -> float:
        return self.settings.broker.cleaner_backoff_ms / 1000

    def partition_count(self) -> int:
        """Return how many partitions are here, with those without messages, which have no log."""
        replicated = list(self.table.replica_creation_ids)
        plain = set(self.topics.names()) - {one.topic for one in replicated}
        return len(replicated) + sum(map(self.topics.partition_count, plain))

    def reconfigure(
        self, config: BrokerConfig, overrides: Mapping[str, TopicOverrides]
    ) -> list[str]:
        """Use other settings from now on; return the topics that have another partition count now.

        `config` differs only in what may change while the broker runs; `overrides` are also of
        topics that do not exist.
        """
        counts = {topic: self.topics.partition_count(topic) for topic in self.topics.names()}
        before = self.settings.broker
        with self.table.lock:
            self.settings.replace(config, overrides)
            logs = self.table.all()
        for log in logs:
            log.reconfigure(self.settings.of(log.partition.topic))
        if self._tasks:
            checkpoint, retention, cleaner, *_ = self._tasks
            if config.cleaner_backoff_ms != before.cleaner_backoff_ms:
                cleaner.set_delay(self._cleaner_delay_s)
            if config.checkpoint_interval_ms != before.checkpoint_interval_ms:
                checkpoint.set_delay(self._checkpoint_delay_s)
            if (config.cleanup_interval_ms, config.cleanup_times) != (
                before.cleanup_interval_ms,
                before.cleanup_times,
            ):
                retention.set_delay(self._retention_delay_s)
        return [one for one, count in counts.items() if count != self.topics.partition_count(one)]

    def flush_all(self) -> None:
        """Flush every log, on the calling thread; the first error is raised after all flushes."""
        _for_each(self.table.all(), Log.flush)

    def close(self, step: Step | None = None) -> None:
        """Stop the threads, flush and close every log, and mark the directories clean.

        A directory is marked only if everything in it was flushed and checkpointed, and no log of
        it was offline; otherwise the next start recovers the logs there. `step` runs each step and
        handles its error; by default errors are logged. Does nothing when not open.
        """
        if not self.table.is_open:
            return
        self.table.is_open = False
        run = step or _run_step
        try:
            run("close logs", self._stop_and_close)
            run("checkpoint", self._write_last_checkpoint)
            run("marker", self._mark_clean)
        finally:
            self.files.clear()
            self.directories.unlock()

    def _stop_and_close(self) -> None:
        self.moves.stop()
        self.cleaner.stop()
        for task in reversed(self._tasks):
            task.stop()
        self._flusher.stop()
        self.deletions.stop()
        logs: dict[DataDirectory, list[Log]] = {one: [] for one in self.directories.online}
        for log in self.table.all():
            logs[self.directories.place_of[log.partition]].append(log)
        failures = []
        for directory, its_logs in logs.items():
            try:
                _for_each(its_logs, Log.close)
                self._safe.add(directory)
            except StorageError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _write_last_checkpoint(self) -> None:
        failures = self.checkpoints.write_recovery_points()
        failures |= self.checkpoints.write_high_watermarks()
        self._safe -= failures.keys()
        for error in failures.values():
            raise StorageError(f"cannot write the checkpoint: {error}") from error
        with suppress(OSError):  # written at each change; needed by a start that lacks a disk only
            self.directories.write_places()

    def _mark_clean(self) -> str | None:
        is_told = self.loaded.was_clean or self.is_loss_known
        if not is_told and any(log.is_replicated for log in self.table.all()):
            return "not written: no controller knows yet that replicas may have lost messages"
        places = self.directories.place_of
        notes = []
        failures = []
        for directory in self.directories.online:
            count = sum(places[one] is directory for one in self.table.offline)
            if count:
                notes.append(f"not written: {count} partitions are offline, and not recovered")
            elif directory not in self._safe:
                failures.append(
                    f"{directory.path} is not marked clean: the next start recovers its logs"
                )
            else:
                try:
                    directory.mark_clean()
                except OSError as error:
                    failures.append(f"cannot mark {directory.path} clean: {error}")
        if failures:
            raise StorageError("; ".join(failures))
        return "; ".join(notes) or None

    def _checkpoint_and_check(self) -> None:
        self.checkpoints.write_or_log()
        self.check_directories()

    def _measure_space(self) -> None:
        for directory in self.directories.all:
            if directory.failure is None:
                directory.measure()
        self.retention.archive.measure()

    def check_directories(self) -> None:
        """Take data directories that can no longer be used offline, with their partitions.

        A directory is written to if a log there, or its checkpoint, was refused something: a bad
        file concerns one partition, a bad disk all of its partitions.
        """
        places = self.directories.place_of
        suspects = {places.get(log.partition) for log in self.table.all() if log.is_faulty}
        for directory in self.directories.online:
            error = directory.find_failure(is_suspect=directory in suspects, sync=self._disk.sync)
            if error is not None:
                self._take_directory_offline(directory, error)

    def _take_directory_offline(self, directory: DataDirectory, error: OSError) -> None:
        failure = StorageError(
            f"data directory {directory.path} has failed: {reason_of(error)}; mend it, and start "
            "the broker again"
        )
        with self.table.lock:
            self.directories.take_offline(directory, failure)
            logs = self.table.lose(directory, failure)
        logger.error("%s; its partitions are offline: %d", failure, len(logs))
        self.on_directory_failure(failure)
        for log in logs:
            log.take_offline(failure)
        if not self.directories.online:
            self.on_no_directory(failure)


def _for_each(logs: Iterable[Log], action: Callable[[Log], object]) -> None:
    """Call a function with every log; the first `StorageError` is raised after all calls."""
    failures = []
    for log in logs:
        try:
            action(log)
        except StorageError as error:
            logger.error("%s", error)
            failures.append(error)
    if failures:
        raise failures[0]


def _run_step(name: str, action: Callable[[], str | None]) -> None:
    """Run a step of closing; log its error, so that the next one runs."""
    try:
        action()
    except StorageError as error:
        logger.error("%s: %s", name, error)


def _ignore(_failure: StorageError) -> None:
    """The default of the callbacks."""
