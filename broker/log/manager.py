"""All logs of one broker: opening, creating, flushing, retention, deleting, closing.

A `LogManager` owns the map from topic and index to log, and the threads that work on logs. A broker
sets the callbacks `on_*`, to keep the registry up to date and to learn of failed data directories.
Which partition is in which directory is the subject of `directories`.

A data directory that fails, at the start or later, takes its partitions offline. Errors of all
methods: `StorageError` if the partition is offline or the disk refuses, `ShuttingDownError` once
the logs are closed, `UnknownTopicError` for a topic that is unknown or being deleted.
"""

from __future__ import annotations

import logging
import os
import random
import resource
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from broker.clock import Clock
from broker.cluster_state import creation_key
from broker.config import BrokerConfig
from broker.errors import (
    InvalidRequestError,
    LeaderNotAvailableError,
    LogCorruptError,
    ShuttingDownError,
    StorageError,
    TopicExistsError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.files import DIRECTORY_MODE, validate_no_link
from broker.leader_epochs import FIRST_INCARNATION
from broker.log.creation_ids import CreationIds
from broker.log.data_directory import (
    MOVED_FROM_NAME,
    DataDirectory,
    LogKey,
    RecoveryPoint,
    read_checkpoint,
)
from broker.log.directories import DataDirectories, DirectoryState
from broker.log.epoch_file import EpochFile, read_epochs
from broker.log.flusher import Flusher, PeriodicTask
from broker.log.log import Log
from broker.log.moves import LogCopy, Move, Moves, TooMuchLeftError, used_bytes
from broker.log.recovery import (
    Recovery,
    list_segments,
    recover,
    restore_end,
    validate_contiguity,
)
from broker.log.replica_logs import (
    ReplicaLogs,
    read_creation_id,
    read_high_watermarks,
    replica_directory,
    validate_replica_name,
    write_creation_id,
    write_high_watermarks,
)
from broker.log.retention import RetentionTime, apply_retention
from broker.log.segment import Disk, Segment, SegmentFiles, reason_of
from broker.log.topics import Deletions, PartitionCounts
from broker.stats import WindowedStats
from broker.topic import (
    MAX_PARTITIONS,
    TopicPartition,
    log_directory_name,
    validate_topic_name,
)
from broker.topic_settings import NO_OVERRIDES, TopicConfig, TopicOverrides, topic_config

_FIRST_RETENTION_DELAY_S = 60.0

logger = logging.getLogger(__name__)

_NOTHING_FLUSHED = RecoveryPoint(0, None)
_UNKNOWN = RecoveryPoint(None, None)


class _OfflineLog(NamedTuple):
    """A log that could not be opened, and its recovery point at the last stop."""

    partition: TopicPartition
    point: RecoveryPoint
    error: StorageError


class _Loaded(NamedTuple):
    """The contents of one data directory."""

    logs: list[Log]
    failures: list[tuple[TopicPartition, RecoveryPoint, Exception]]
    """The logs that could not be opened."""
    recoveries: list[Recovery]
    gone: set[TopicPartition]
    """Partitions with a recovery point and no log."""
    kept_ends: dict[TopicPartition, int]
    """The ends of logs that have lost messages, or may have."""
    was_recovered: bool


Step = Callable[[str, Callable[[], str | None]], object]
"""Runs one step of closing, given its name and a function that may return a remark."""


class LogManager:
    """The logs of one broker."""

    def __init__(self, config: BrokerConfig, clock: Clock, *, disk: Disk | None = None) -> None:
        self.on_new_topic: Callable[[str], object] = _ignore_topic
        self.on_deleted_topic: Callable[[str], object] = _ignore_topic
        self.on_directory_failure: Callable[[StorageError], object] = _ignore_failure
        self.on_no_directory: Callable[[StorageError], object] = _ignore_failure
        """Called when the last data directory has failed: nothing can be served any more."""
        self.is_ownerless: Callable[[TopicPartition], bool] = lambda _partition: False
        """Whether no controller knows a replicated log: retention leaves it alone then."""
        self._flusher = Flusher(clock, thread_count=config.flusher_threads)
        self.flush_stats = WindowedStats(clock, config.monitoring_period_ms / 1000)
        self.was_clean = False
        """Whether `open` found the marker of a clean shutdown: all that was flushed is there."""
        self.is_loss_known = False
        """Whether a controller knows of a start that was not clean. Until then this run is not
        closed cleanly either: replicas may lack messages that they had."""
        self.was_recovered = False
        """Whether `open` found logs that had not been closed cleanly."""
        self.recovery_s = 0.0
        """The time `open` took to recover and load logs; 0 if all had been closed cleanly."""
        self._config = config
        self._overrides: Mapping[str, TopicOverrides] = {}
        self._clock = clock
        self._disk = disk or Disk()
        self._directories = DataDirectories(config.data_dirs, config.broker_id)
        self._files = SegmentFiles()
        self._tasks: list[PeriodicTask] = []
        self._checkpoint_task: PeriodicTask | None = None
        self._high_watermarks_task: PeriodicTask | None = None
        self._retention_task: PeriodicTask | None = None
        self._create_lock = Lock()  # guards the sets of logs and topics
        self._removal_lock = Lock()  # one thread at a time removes files; taken before the others
        self._checkpoint_lock = Lock()
        self._deletions = {one: Deletions(one.path) for one in self._directories.all}
        self._retention_time = RetentionTime(clock)
        self._deleting: set[str] = set()
        self._logs: dict[LogKey, Log] = {}
        self._offline: dict[TopicPartition, _OfflineLog] = {}
        self._replicas = ReplicaLogs()
        self._replica_creation_ids: dict[TopicPartition, str] = {}
        self._high_watermarks: dict[DataDirectory, dict[TopicPartition, int]] = {}
        self._counts = PartitionCounts(config, self._directories)
        self._creation_ids = CreationIds(self._directories)
        self._incarnation = 0
        self._moves = Moves(self._make_move)
        self._is_checkpoint_refused = False
        self._is_open = False
        self._safe: set[DataDirectory] = set()  # all there is flushed, closed and checkpointed

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
            self._files.fit(descriptor_count)
        self._directories.lock()
        try:
            recoveries = self._load_logs()
            self._directories.for_each(DataDirectory.mark_in_use)
            self._leave_directories_offline()
            unfinished = self._unfinished_deletions()
            if self._write_checkpoint_or_log():
                self._note_deletions_ended()
            else:
                self._deleting |= unfinished  # a new topic of such a name would be deleted too
            self._prepare_deletions()
        except OSError as error:
            self._directories.unlock()
            where = ", ".join(map(str, self._config.data_dirs))
            raise StorageError(f"cannot open the logs in {where}: {error}") from error
        except BaseException:
            self._directories.unlock()
            raise
        self._is_open = True
        return recoveries

    def start(self) -> None:
        """Start the threads that flush, apply retention and write the checkpoint."""
        retention_s = self._config.cleanup_interval_ms / 1000
        checkpoint_s = self._config.checkpoint_interval_ms / 1000
        self._checkpoint_task = PeriodicTask(
            "checkpoint",
            self._checkpoint_and_check,
            first_delay_s=checkpoint_s,
            interval_s=checkpoint_s,
        )
        self._retention_task = PeriodicTask(
            "retention",
            self.apply_retention,
            first_delay_s=min(_FIRST_RETENTION_DELAY_S, retention_s),
            interval_s=retention_s,
        )
        high_watermarks_s = self._config.high_watermark_checkpoint_ms / 1000
        self._high_watermarks_task = PeriodicTask(
            "high-watermarks",
            self._write_high_watermarks_or_log,
            first_delay_s=high_watermarks_s,
            interval_s=high_watermarks_s,
        )
        self._tasks = [self._checkpoint_task, self._high_watermarks_task, self._retention_task]
        self._remove_deleted_logs()
        self._flusher.start()
        self._checkpoint_task.start()
        self._retention_task.start()
        with self._create_lock:
            if self.has_replicas:
                self._high_watermarks_task.start()

    def reconfigure(
        self, config: BrokerConfig, overrides: Mapping[str, TopicOverrides]
    ) -> list[str]:
        """Use other settings from now on; return the topics that have another partition count now.

        `config` differs only in what may change while the broker runs; `overrides` are also of
        topics that do not exist.
        """
        counts = {topic: self.partition_count(topic) for topic in self.topics()}
        with self._create_lock:
            self._config, self._overrides = config, overrides
            self._counts.reconfigure(config, overrides)
            logs = self.logs()
        for log in logs:
            log.reconfigure(self.settings_of(log.partition.topic))
        if self._checkpoint_task is not None and self._retention_task is not None:
            self._checkpoint_task.set_interval(config.checkpoint_interval_ms / 1000)
            self._retention_task.set_interval(config.cleanup_interval_ms / 1000)
        return [topic for topic, count in counts.items() if count != self.partition_count(topic)]

    def settings_of(self, topic: str) -> TopicConfig:
        """Return the settings that a topic has now."""
        return topic_config(self._config, topic, self._overrides.get(topic, NO_OVERRIDES))

    def close(self, step: Step | None = None) -> None:
        """Stop the threads, flush and close every log, and mark the directories clean.

        A directory is marked only if everything in it was flushed and checkpointed, and no log of
        it was offline; otherwise the next start recovers the logs there. `step` runs each step and
        handles its error; by default errors are logged. Does nothing when not open.
        """
        if not self._is_open:
            return
        self._is_open = False
        run = step or _run_step
        try:
            run("close logs", self._stop_and_close)
            run("checkpoint", self._write_last_checkpoint)
            run("marker", self._mark_clean)
        finally:
            self._files.clear()
            self._directories.unlock()

    def _stop_and_close(self) -> None:
        self._moves.stop()
        for task in reversed(self._tasks):
            task.stop()
        self._flusher.stop()
        for deletions in self._deletions.values():
            deletions.stop()
        logs: dict[DataDirectory, list[Log]] = {one: [] for one in self._directories.online}
        for log in self.logs():
            logs[self._directories.place_of[log.partition]].append(log)
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
        failures = {**self._write_checkpoints(), **self._write_high_watermarks()}
        self._safe -= failures.keys()
        for error in failures.values():
            raise StorageError(f"cannot write the checkpoint: {error}") from error
        with suppress(OSError):  # written at each change; needed by a start that lacks a disk only
            self._directories.write_places()

    def _mark_clean(self) -> str | None:
        is_told = self.was_clean or self.is_loss_known
        if not is_told and any(log.is_replicated for log in self.logs()):
            return "not written: no controller knows yet that replicas may have lost messages"
        places = self._directories.place_of
        notes = []
        failures = []
        for directory in self._directories.online:
            count = sum(places[one] is directory for one in self._offline)
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

    def get(self, topic: str, index: int) -> Log | None:
        """Return a partition's log, None if it has none yet."""
        return self._logs.get((topic, index))

    def get_or_create(self, topic: str, index: int) -> Log:
        """Return a partition's log, created if the topic has such a partition on this broker."""
        log = self._logs.get((topic, index))
        if log is not None:
            return log
        validate_topic_name(topic, self._config.max_topic_name_length)
        with self._create_lock:
            log = self._logs.get((topic, index))
            if log is not None:
                return log
            if not self._is_open:
                raise ShuttingDownError("the broker takes no new data: its logs are closed")
            self._raise_if_deleting(topic)
            self.validate_not_offline(topic, index)
            count = self.partition_count(topic)
            if not 0 <= index < count:
                raise WrongPartitionError(
                    f"topic '{topic}' has no partition {index} on broker "
                    f"{self._config.broker_id}: it has {count}"
                )
            is_new_topic = topic not in self._counts
            if is_new_topic:
                self._creation_ids.add(topic)
            log = self._create_log(TopicPartition(topic, self._config.broker_id, index))
            self._begin_incarnation(log, 0)
            self._add_log(log)
        if is_new_topic:
            self._announce(topic)
        return log

    def find(self, partition: TopicPartition) -> Log | None:
        """Return the log of a partition of any home, None if this broker has none."""
        if partition.home == self._config.broker_id:
            return self._logs.get((partition.topic, partition.index))
        return self._replicas.get(partition)

    def open_replica(self, partition: TopicPartition, creation_id: str) -> Log:
        """Return the log of a replicated partition, created if there is none.

        Several threads create logs side by side: most of it is syncs. A log of a former topic of
        the name (with another creation id) is removed; one of a partition at home that had no
        replicas yet becomes a replicated one. A log opened for the first time refuses appends until
        its leader is known.
        """
        validate_replica_name(partition)
        if self._replica_creation_ids.get(partition) == creation_id:
            log = self.find(partition)
            if log is not None:
                return log
        is_home = partition.home == self._config.broker_id
        with self._removal_lock:
            log = self.find(partition)
            if log is not None and self._replica_creation_ids.get(partition, creation_id) != (
                creation_id
            ):
                self._remove_replica(log)
                log = None
            with self._create_lock:
                if not self._is_open:
                    raise ShuttingDownError("the broker takes no new data: its logs are closed")
                if is_home:
                    self._raise_if_deleting(partition.topic)
                self._raise_if_offline(partition)
                if self._high_watermarks_task is not None:
                    self._high_watermarks_task.start()
                if log is not None:
                    if is_home:
                        self._counts.fix(partition.topic)
                    self._replicate(log, creation_id)
                    return log
                log = self._create_log(partition)
                log.refuse_appends(lambda: _await_orders(partition))
                self._add_log(log)
        # No lock needed: the log refuses appends, so only a deletion can race.
        self._replicate(log, creation_id)
        log.note_directories_synced()
        return log

    def _replicate(self, log: Log, creation_id: str) -> None:
        log.refuse_appends(lambda: _await_orders(log.partition))
        try:
            write_creation_id(log.directory, creation_id)
        except OSError as error:
            raise StorageError(f"cannot make {log.directory} a replica: {error}") from error
        log.replicate(EpochFile(log.directory, read_epochs(log.directory)))
        self._replica_creation_ids[log.partition] = creation_id

    @property
    def has_replicas(self) -> bool:
        """Return whether there is a replicated log."""
        return bool(self._replica_creation_ids)

    def has_replicas_of(self, topic: str) -> bool:
        """Return whether there is a replicated log of a topic."""
        return any(one.topic == topic for one in list(self._replica_creation_ids))

    def replica_creation_id(self, partition: TopicPartition) -> str | None:
        """Return the creation id of the topic of a replicated log here; None without one."""
        return self._replica_creation_ids.get(partition)

    def delete_replica(self, partition: TopicPartition) -> None:
        """Delete the log of a replicated partition; blocks on a flush."""
        with self._removal_lock:
            log = self.find(partition)
            if log is not None:
                self._remove_replica(log)
        self._remove_deleted_logs()

    def _remove_replica(self, log: Log) -> None:
        """Close a log and move its directory aside; caller holds `_removal_lock`."""
        partition = log.partition
        with self._create_lock:
            is_home = partition.home == self._config.broker_id
            if is_home:
                del self._logs[partition.topic, partition.index]
            else:
                self._replicas.forget(partition)
            directory = self._directories.place_of[partition]
            self._directories.remove(partition)
            self._replica_creation_ids.pop(partition, None)
            is_last = is_home and not any(topic == partition.topic for topic, _ in self._logs)
            if is_last:
                self._counts.forget(partition.topic)
        if is_last:
            self.on_deleted_topic(partition.topic)
        try:
            log.delete()
        except StorageError as error:  # the unflushed data is deleted too
            logger.warning("%s", error)
        try:
            self._deletions[directory].move_aside([log.directory])
            if is_last:
                with self._create_lock:
                    self._counts.save()
            # before a new log can have the name of this one
            self._with_room(self.write_checkpoint)
        except OSError as error:
            raise StorageError(f"cannot delete {partition}: {error}") from error

    def validate_not_offline(self, topic: str, index: int) -> None:
        """Validate that a partition is not offline; one without a log passes."""
        if self._offline:
            self._raise_if_offline(TopicPartition(topic, self._config.broker_id, index))

    def _raise_if_offline(self, partition: TopicPartition) -> None:
        if (offline := self._offline.get(partition)) is not None:
            raise StorageError(str(offline.error))

    def choose_partition(self, topic: str) -> int:
        """Return the index of a partition chosen at random among those that are not offline."""
        indexes: Sequence[int] = range(self.partition_count(topic))
        if self._offline:
            home = self._config.broker_id
            online = [
                index
                for index in indexes
                if TopicPartition(topic, home, index) not in self._offline
            ]
            indexes = online or indexes
        return random.choice(indexes)

    def offline(self) -> dict[TopicPartition, StorageError]:
        """Return the partitions that cannot be used, and why."""
        return {one.partition: one.error for one in list(self._offline.values())}

    def move_log(self, partition: TopicPartition, data_dir: Path) -> Move:
        """Queue the move of a log, which is served meanwhile, to another data directory."""
        if not self._is_open:
            raise ShuttingDownError(f"{partition} is not moved: the logs are closed")
        self._raise_if_offline(partition)
        log = self.find(partition)
        if log is None:
            raise WrongPartitionError(
                f"broker {self._config.broker_id} has no log of {partition}, which nothing was "
                "appended to here"
            )
        if log.failure is not None:
            raise StorageError(f"{partition} is not moved: {log.failure}")
        target = self._directories.find(data_dir)
        if target is None:
            known = ", ".join(str(one.path.absolute()) for one in self._directories.all)
            raise InvalidRequestError(
                f"broker {self._config.broker_id} has no data directory {data_dir}: it has {known}"
            )
        if target.failure is not None:
            raise StorageError(str(target.failure))
        if self._directories.place_of.get(partition) is target:
            raise InvalidRequestError(f"{partition} is in {target.path} already")
        move = Move(partition, target.path, log.size_bytes)
        _validate_room(log, target)
        if not self._moves.add(move):
            raise InvalidRequestError(f"{partition} is being moved already")
        return move

    def latest_move(self, partition: TopicPartition) -> Move | None:
        """Return the latest move of a partition, None if there was none since the start."""
        return self._moves.get(partition)

    def _make_move(self, move: Move) -> None:
        partition = move.partition
        log, target = self.find(partition), self._directories.find(move.target)
        if log is None or target is None:
            raise UnknownTopicError(f"{partition} was deleted")
        _validate_room(log, target)
        name = log_directory_name(partition.topic, partition.index)
        is_own = partition.home == self._config.broker_id
        former, source = log.directory, self._directories.place_of[partition]
        final = target.path / name if is_own else replica_directory(target.path, partition)
        copy = LogCopy(log, move, final, self._moves.stopping)
        try:
            while True:
                copy.catch_up()
                # Under the lock: retention and deletions change the directory, too.
                with self._removal_lock:
                    try:
                        self._switch(log, target, final, copy)
                    except TooMuchLeftError:
                        continue
                    self._write_checkpoint_or_log()
                    self._remove_former(source, former, final)
                    break
        except BaseException:
            copy.discard()
            raise
        logger.info("moved %s from %s to %s", partition, source.path, target.path)
        self._deletions[source].remove_in_background()

    def _switch(self, log: Log, target: DataDirectory, final: Path, copy: LogCopy) -> None:
        with self._create_lock:  # against the failure of a directory
            if target.failure is not None:
                raise StorageError(str(target.failure))
            log.move_to(final, copy.complete)
            self._directories.add(log.partition, target)

    def _remove_former(self, source: DataDirectory, former: Path, final: Path) -> None:
        try:
            self._deletions[source].move_aside([former])
            (final / MOVED_FROM_NAME).unlink()
        except OSError as error:
            logger.error("cannot remove %s, the next start does: %s", former, error)

    def directory_states(self) -> list[DirectoryState]:
        """Return the state of each data directory, in the order of the settings."""
        return self._directories.states()

    def data_dir(self) -> Path:
        """Return the first data directory in use; the first of all if none is."""
        return (self._directories.online or self._directories.all)[0].path

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has on this broker, or would have if created.

        The count it was created with; else the configured one, or that on disk if larger.
        """
        return self._counts.of(topic)

    def create_topic(self, topic: str, partition_count: int, *, has_replicas: bool = False) -> None:
        """Create a topic with a number of partitions; their logs are created by the first append.

        With `has_replicas` the controller has created it, and given it a creation id.
        """
        validate_topic_name(topic, self._config.max_topic_name_length)
        if not 1 <= partition_count <= MAX_PARTITIONS:
            raise WrongPartitionError(
                f"topic '{topic}' cannot have {partition_count} partitions: "
                f"from 1 to {MAX_PARTITIONS} are possible"
            )
        log_directory_name(topic, partition_count - 1)
        with self._create_lock:
            self._raise_if_deleting(topic)
            if topic in self._counts:
                raise TopicExistsError(
                    f"topic '{topic}' exists on broker {self._config.broker_id}, "
                    f"with {self.partition_count(topic)} partitions"
                )
            if not has_replicas:
                self._creation_ids.add(topic)
            self._counts.set_explicit(topic, partition_count)
        self._announce(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its logs; blocks on flushes, so not for a processor's thread.

        Fetches in flight keep their files. A deletion that fails half-way is finished by the next
        call or the next start, and the topic refuses data until then.
        """
        with self._removal_lock:
            with self._create_lock:
                self._validate_deletable(topic)
            try:
                self._end_deletion()  # of another topic, if that failed half-way
                self._begin_deletion(topic)
                self._close_deleted(topic)
                self._end_deletion()
            except OSError as error:
                raise StorageError(f"cannot delete topic '{topic}': {error}") from error
        self._remove_deleted_logs()

    def _announce(self, topic: str) -> None:
        self.on_new_topic(topic)
        if topic not in self._counts:  # another thread deleted it and called back before this
            self.on_deleted_topic(topic)

    def _validate_deletable(self, topic: str) -> None:
        if not self._is_open:
            raise ShuttingDownError("nothing can be deleted: the logs are closed")
        if topic not in self._counts and topic not in self._deleting:
            raise UnknownTopicError(
                f"there is no topic '{topic}' on broker {self._config.broker_id}"
            )

    def _raise_if_deleting(self, topic: str) -> None:
        if topic in self._deleting:
            raise UnknownTopicError(f"topic '{topic}' is being deleted")

    def _close_deleted(self, topic: str) -> None:
        with self._create_lock:
            self._deleting.add(topic)
            keys = [key for key in self._logs if key[0] == topic]
            logs = [self._logs.pop(key) for key in keys]
            home = self._config.broker_id
            for one in [one for one in self._offline if (one.topic, one.home) == (topic, home)]:
                del self._offline[one]
            self._counts.forget(topic)
            self._directories.remove_topic(topic)
        self.on_deleted_topic(topic)
        for log in logs:
            try:
                log.delete()
            except StorageError as error:  # the unflushed data is deleted too
                logger.warning("%s", error)

    def _begin_deletion(self, topic: str) -> None:
        try:
            for directory in self._directories.online:
                self._deletions[directory].begin(topic)
        except OSError:
            with suppress(OSError):  # the next start would finish it
                self._note_deletions_ended()
            raise

    def _end_deletion(self) -> None:
        """Finish the deletion that was begun, if there is one, for good."""
        topics = self._unfinished_deletions()
        if topics:
            for directory in self._directories.online:
                self._move_aside(directory, topics)
            with self._create_lock:
                self._forget_counts(topics)
            # before a new log can have the name of an old one
            self._with_room(self.write_checkpoint)
            self._note_deletions_ended()
            with self._create_lock:
                self._deleting -= topics

    def _unfinished_deletions(self) -> set[str]:
        """Return the topic whose deletion was begun and not ended, if there is one."""
        found = (self._deletions[one].unfinished() for one in self._directories.online)
        return {topic for topic in found if topic is not None}

    def _note_deletions_ended(self) -> None:
        for directory in self._directories.online:
            self._deletions[directory].end()

    def _move_aside(self, directory: DataDirectory, topics: Collection[str]) -> None:
        found = directory.log_directories()
        self._deletions[directory].move_aside(
            path for (topic, _), path in found.items() if topic in topics
        )

    def _forget_counts(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._counts.forget(topic)
        self._with_room(self._counts.save)

    def _with_room(self, action: Callable[[], object]) -> None:
        """Write to the disks; if one refuses, once more after deleted logs are removed."""
        try:
            action()
        except (OSError, StorageError):
            for directory in self._directories.online:
                self._deletions[directory].remove()
            action()

    def _remove_deleted_logs(self) -> None:
        for directory in self._directories.online:
            self._deletions[directory].remove_in_background()

    def topics(self) -> list[str]:
        """Return the names of all topics on this broker, sorted."""
        return sorted(self._counts.topics())

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic is on this broker."""
        return topic in self._counts

    def creation_id(self, topic: str) -> str | None:
        """Return the id of a topic's creation, None if it is older than such ids."""
        return self._creation_ids.of(topic)

    def logs(self) -> list[Log]:
        """Return all logs, those of other homes included."""
        return [*self._logs.values(), *self._replicas.all()]

    def cluster_id(self) -> str | None:
        """Return the cluster of the data directories, None if they never had one."""
        return self._directories.cluster_id()

    def join_cluster(self, cluster_id: str) -> None:
        """Note the cluster of the data directories for good; `LogLockedError` if it is another."""
        self._directories.join_cluster(cluster_id)

    def close_idle_files(self) -> None:
        """Close files that can be opened again, when the process is out of descriptors."""
        self._files.make_room()

    def creator_token(self, host: str) -> str:
        """Return the token by which this broker knows its own node in the registry."""
        return self._directories.creator_token(f"{host}-{self._clock.time_ms()}")

    def flush_all(self) -> None:
        """Flush every log, on the calling thread; the first error is raised after all flushes."""
        _for_each(self.logs(), Log.flush)

    def apply_retention(self) -> None:
        """Remove the segments past retention of all logs."""
        now_ms = self._retention_time.now_ms()
        config = self._config
        archive_dir = config.archive_dir if config.retention_policy == "archive" else None
        for log in self.logs():
            # Under the lock: the files of a new log have the names of a deleted one's.
            with self._removal_lock:
                if not (log.is_deleted or (log.is_replicated and self.is_ownerless(log.partition))):
                    settings = self.settings_of(log.partition.topic)
                    apply_retention(log, settings, now_ms=now_ms, archive_dir=archive_dir)

    @property
    def retention_waits(self) -> str | None:
        """Return why segments that are old by the clock are kept; None if they are not."""
        return self._retention_time.waits

    def write_checkpoint(self) -> None:
        """Write the recovery point of each log, and its directory, unless nothing changed.

        Raises `OSError` if a directory refuses; its old checkpoint remains.
        """
        for error in self._write_checkpoints().values():
            raise error
        with self._checkpoint_lock:
            self._directories.write_places()

    def _write_checkpoints(self) -> dict[DataDirectory, OSError]:
        """Write the checkpoint of each directory, and return the failures."""
        with self._checkpoint_lock:
            places = self._directories.place_of
            points: dict[DataDirectory | None, dict[LogKey, RecoveryPoint]]
            points = {one: {} for one in self._directories.online}
            nowhere: dict[LogKey, RecoveryPoint] = {}  # for logs just deleted, or lost with a disk
            for key, log in list(self._logs.items()):
                point = RecoveryPoint(log.flushed_offset, log.active_since_ms)
                points.get(places.get(log.partition), nowhere)[key] = point
            for partition, one in list(self._offline.items()):
                if partition.home == self._config.broker_id:
                    of_place = points.get(places.get(partition), nowhere)
                    of_place[partition.topic, partition.index] = one.point
            failures = {}
            for directory, of_directory in points.items():
                if directory is None or directory.failure is not None:
                    continue
                try:
                    directory.write_checkpoint(of_directory, if_changed=self._is_open)
                    self._replicas.write_checkpoints(directory.path)
                except OSError as error:
                    failures[directory] = error
            return failures

    def _write_high_watermarks(self) -> dict[DataDirectory, OSError]:
        """Write the high watermarks of replicated logs, and return the failures."""
        places = self._directories.place_of
        failures = {}
        for directory in self._directories.online:
            offsets = {
                log.partition: log.high_watermark
                for log in self.logs()
                if log.is_replicated and places.get(log.partition) is directory
            }
            if offsets != self._high_watermarks.get(directory, {}):
                try:
                    write_high_watermarks(directory.path, offsets)
                    self._high_watermarks[directory] = offsets
                except OSError as error:
                    failures[directory] = error
        return failures

    def _write_high_watermarks_or_log(self) -> None:
        for directory, error in self._write_high_watermarks().items():
            logger.error("cannot write the high watermarks in %s: %s", directory.path, error)

    def _note_truncation(self) -> None:
        """Write the checkpoint before a log is truncated below its recovery point."""
        try:
            self.write_checkpoint()
        except OSError as error:
            raise StorageError(f"cannot write the checkpoint: {error}") from error

    def _write_checkpoint_or_log(self) -> bool:
        """Write the checkpoint; return False if the disk refuses, which is logged when it begins.

        A start does without a new checkpoint, as retention may have to make room for it: the old
        one is of earlier offsets.
        """
        try:
            self.write_checkpoint()
        except OSError as error:
            if not self._is_checkpoint_refused:
                logger.error("cannot write the checkpoint, trying again: %s", error)
            self._is_checkpoint_refused = True
            return False
        self._is_checkpoint_refused = False
        return True

    def _checkpoint_and_check(self) -> None:
        self._write_checkpoint_or_log()
        self.check_directories()

    def check_directories(self) -> None:
        """Take data directories that can no longer be used offline, with their partitions.

        A directory is written to if a log there, or its checkpoint, was refused something: a bad
        file concerns one partition, a bad disk all of its partitions.
        """
        places = self._directories.place_of
        suspects = {places.get(log.partition) for log in self.logs() if log.failures()}
        for directory in self._directories.online:
            error = directory.find_failure(is_suspect=directory in suspects, sync=self._disk.sync)
            if error is not None:
                self._take_directory_offline(directory, error)

    def _take_directory_offline(self, directory: DataDirectory, error: OSError) -> None:
        failure = StorageError(
            f"data directory {directory.path} has failed: {reason_of(error)}; mend it, and start "
            "the broker again"
        )
        with self._create_lock:
            self._directories.take_offline(directory, failure)
            logs = self._lose_partitions(directory, failure)
        logger.error("%s; its partitions are offline: %d", failure, len(logs))
        self.on_directory_failure(failure)
        for log in logs:
            log.take_offline(failure)
        if not self._directories.online:
            self.on_no_directory(failure)

    def _lose_partitions(self, directory: DataDirectory, failure: StorageError) -> list[Log]:
        """Take the partitions in a directory offline, and return the logs that were open."""
        logs = []
        for partition, place in self._directories.place_of.items():
            if place is not directory:
                continue
            if partition.home == self._config.broker_id:
                log = self._logs.pop((partition.topic, partition.index), None)
            else:
                log = self._replicas.forget(partition)
            if log is not None:
                logs.append(log)
            error = StorageError(f"{partition} is offline: {failure}")
            self._add_offline(partition, _UNKNOWN, error)
        return logs

    def _prepare_deletions(self) -> None:
        try:
            for directory in self._directories.online:
                self._deletions[directory].prepare()
        except OSError as error:
            logger.error("there may be no room to delete a topic: %s", error)

    def _load_logs(self) -> list[Recovery]:
        directories = self._directories
        directories.for_each(self._remove_what_is_left)
        deleted = self._unfinished_deletions()
        if deleted:
            directories.for_each(lambda one: self._move_aside(one, deleted))
        found, left_behind = directories.find_logs()
        for directory, paths in left_behind.items():
            if paths:
                self._deletions[directory].move_aside(paths)
        for logs in found.values():
            directories.note_formers_removed(logs.values())
        self._counts.load()
        if deleted:
            self._forget_counts(deleted)
        self._high_watermarks = {one: read_high_watermarks(one.path) for one in directories.online}
        self.was_clean = all(one.failure is None and one.is_clean() for one in directories.all)
        started_s = self._clock.monotonic_s()
        loaded = directories.for_each(lambda one: self._load_directory(one, found[one]))
        if any(one.was_recovered for one in loaded.values()):
            self.recovery_s = self._clock.monotonic_s() - started_s
        recoveries: list[Recovery] = []
        for one in loaded.values():
            for log in one.logs:
                self._add_log(log)
            for partition, point, reason in one.failures:
                self._leave_offline(partition, point, reason)
            for partition in sorted(one.gone - directories.place_of.keys()):
                logger.warning(
                    "the log of %s is gone; it is taken as deleted, and a new one starts at "
                    "offset 0",
                    partition,
                )
            recoveries += one.recoveries
            self.was_recovered |= one.was_recovered
        self._leave_directories_offline()
        self._creation_ids.load(self._counts.topics())
        kept_ends = {p: end for one in loaded.values() for p, end in one.kept_ends.items()}
        is_another = not self.was_clean or bool(kept_ends)
        self._incarnation = directories.begin_incarnation(is_another=is_another)
        for log in self._logs.values():
            start = log.log_end_offset if is_another else log.log_start_offset
            self._begin_incarnation(log, kept_ends.get(log.partition, start))
        return recoveries

    def _begin_incarnation(self, log: Log, start_offset: int) -> None:
        creation = creation_key(self._creation_ids.of(log.partition.topic) or "")
        incarnation = FIRST_INCARNATION + self._incarnation
        log.begin_incarnation(incarnation, start_offset, creation)

    def _leave_directories_offline(self) -> None:
        """Leave the partitions in directories that cannot be used at the start offline."""
        directories = self._directories
        for partition, directory in directories.lost_partitions().items():
            directories.add(partition, directory)
        for directory in directories.all:
            if directory.failure is not None:
                self._lose_partitions(directory, directory.failure)

    def _remove_what_is_left(self, directory: DataDirectory) -> None:
        """Remove unfinished copies, and logs that were deleted while the directory was away."""
        deletions = self._deletions[directory]
        if copies := directory.unfinished_copies():
            deletions.move_aside(copies)
        if self._directories.was_away(directory):
            topics = self._directories.deleted_topics(directory)
            # only here, as the other directories have records of their own
            topics |= set(filter(None, [deletions.unfinished()]))
            self._move_aside(directory, topics)
            deletions.end()

    def _load_directory(
        self, directory: DataDirectory, logs: Mapping[TopicPartition, Path]
    ) -> _Loaded:
        """Open the logs in a data directory, recovered if it was not closed cleanly."""
        is_clean = directory.is_clean()
        points = {
            parent: read_checkpoint(parent)
            for parent in {directory.path, *(path.parent for path in logs.values())}
        }
        home = self._config.broker_id
        known = {TopicPartition(topic, home, n) for topic, n in points[directory.path] or ()}
        loaded = _Loaded([], [], [], known - logs.keys(), {}, not is_clean and bool(logs))
        for partition, path in sorted(logs.items()):
            of_parent = points[path.parent]
            # A log not in the checkpoint was created after it: nothing of it is flushed.
            point = (
                _UNKNOWN
                if of_parent is None
                else of_parent.get((partition.topic, partition.index), _NOTHING_FLUSHED)
            )
            high_watermark = self._high_watermarks[directory].get(partition, 0)
            try:
                log, recoveries = self._load_log(
                    partition, path, point, high_watermark, loaded.kept_ends, is_clean=is_clean
                )
            except (LogCorruptError, StorageError, OSError) as error:
                loaded.failures.append((partition, point, error))
                continue
            loaded.logs.append(log)
            loaded.recoveries.extend(recoveries)
        return loaded

    def _load_log(
        self,
        partition: TopicPartition,
        directory: Path,
        point: RecoveryPoint,
        high_watermark: int,
        kept_ends: dict[TopicPartition, int],
        *,
        is_clean: bool,
    ) -> tuple[Log, list[Recovery]]:
        """Open a log that is on disk, recovered if it was not closed cleanly."""
        recoveries: list[Recovery] = []
        segments = list_segments(directory)
        end_offset = point.offset or 0
        if segments and is_clean and segments[-1].end_offset >= end_offset:
            validate_contiguity(partition, segments)
        elif segments:
            recoveries = recover(
                partition,
                segments,
                recovery_point=point.offset,
                time_ms=self._clock.time_ms(),
            )
            kept_ends[partition] = segments[-1].end_offset
        creation_id = read_creation_id(directory)
        if creation_id is not None:  # what is lost is copied from the leader
            self._replica_creation_ids[partition] = creation_id
        elif not segments or segments[-1].end_offset < end_offset:
            kept_ends[partition] = segments[-1].end_offset if segments else 0
            self._restore_end(partition, directory, segments, end_offset)
        log = self._make_log(partition, directory, segments, point)
        if creation_id is not None:
            log.refuse_appends(lambda: _await_orders(partition))
            epochs = EpochFile(directory, read_epochs(directory))
            epochs.replace(epochs.epochs.recovered(log.log_start_offset, log.log_end_offset))
            log.replicate(epochs, high_watermark)
        return log, recoveries

    def _restore_end(
        self, partition: TopicPartition, directory: Path, segments: list[Segment], end_offset: int
    ) -> None:
        """Start a log at its end at the last checkpoint, unless the settings reuse lost offsets."""
        if end_offset == 0:
            return
        lost = f"from offset {segments[-1].end_offset} to" if segments else "up to offset"
        reuses = self._config.reuse_lost_offsets
        logger.warning(
            "%s has lost its messages %s %d, which were flushed, while the broker was down: %s; %s",
            *(partition, lost, end_offset, directory),
            "their offsets are given out again, as log.lost.offsets.reuse says"
            if reuses
            else f"new messages start at {end_offset}",
        )
        if not reuses:
            restore_end(directory, segments, end_offset, time_ms=self._clock.time_ms())

    def _leave_offline(
        self, partition: TopicPartition, point: RecoveryPoint, reason: Exception
    ) -> None:
        if partition.home != self._config.broker_id:
            logger.error("the replica of %s is not used: %s", partition, reason)
            return
        error = StorageError(
            f"{partition} is offline: {reason}; mend it and start the broker again, "
            "or delete the topic"
        )
        logger.error("%s", error)
        self._add_offline(partition, point, error)

    def _add_offline(
        self, partition: TopicPartition, point: RecoveryPoint, error: StorageError
    ) -> None:
        """Leave a log offline; its recovery point is kept for the start that finds it mended."""
        self._offline[partition] = _OfflineLog(partition, point, error)
        if partition.home == self._config.broker_id:
            self._counts.add_partition(partition.topic, partition.index)

    def _create_log(self, partition: TopicPartition) -> Log:
        """Create a log with its directory, which the log's first flush makes durable."""
        data_directory = self._directories.choose()
        name = log_directory_name(partition.topic, partition.index)
        directory = data_directory.path / name
        try:
            if partition.home == self._config.broker_id:
                directory.mkdir(DIRECTORY_MODE, exist_ok=True)
            else:
                directory = self._replicas.make_directory(data_directory.path, partition)
            validate_no_link(directory)
            log = self._make_log(partition, directory, [], _NOTHING_FLUSHED)
        except OSError as error:
            raise StorageError(
                f"cannot create {partition}: {directory}: {reason_of(error)}"
            ) from error
        self._directories.add(partition, data_directory)
        return log

    def _make_log(
        self,
        partition: TopicPartition,
        directory: Path,
        segments: list[Segment],
        point: RecoveryPoint,
    ) -> Log:
        unsynced = []
        if not segments:
            segment = Segment(directory, 0, size=0, modified_ms=self._clock.time_ms())
            segment.file = self._files.with_room(lambda: segment.open(os.O_RDWR | os.O_CREAT))
            segments = [segment]
            unsynced = [directory.parent, directory]
        is_same_segment = point.offset is not None and point.offset >= segments[-1].base_offset
        return Log(
            partition,
            directory,
            self.settings_of(partition.topic),
            segments,
            clock=self._clock,
            files=self._files,
            schedule_flush=self._flusher.schedule,
            flush_stats=self.flush_stats,
            disk=self._disk,
            active_since_ms=point.active_since_ms if is_same_segment else None,
            unsynced_directories=unsynced,
            note_truncation=self._note_truncation,
        )

    def _add_log(self, log: Log) -> None:
        if log.partition.home != self._config.broker_id:
            self._replicas.add(log)
            return
        topic, index = log.partition.topic, log.partition.index
        self._logs[topic, index] = log
        self._counts.add_partition(topic, index)


def _validate_room(log: Log, target: DataDirectory) -> None:
    """Validate that a data directory has room for a log that can be read."""
    free = target.free_bytes()
    try:
        needed = used_bytes(log.directory)
    except OSError as error:
        raise StorageError(f"cannot read {log.directory}: {reason_of(error)}") from error
    if free is not None and free < needed:
        raise StorageError(
            f"{log.partition} takes {needed} bytes, and {target.path} has room for {free}"
        )


def _await_orders(partition: TopicPartition) -> LeaderNotAvailableError:
    return LeaderNotAvailableError(
        f"the controller has not yet told this broker who leads {partition}; try again"
    )


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


def _ignore_topic(_topic: str) -> None:
    """The default of the callbacks about topics."""


def _ignore_failure(_failure: StorageError) -> None:
    """The default of the callback about directories."""
