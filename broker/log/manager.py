"""All logs of one data directory: opening, creating, flushing, retention, deleting, closing.

Owns the map from topic and index to log, and the threads that work on logs. Calls `on_new_topic`
and `on_deleted_topic`, by which a broker keeps the registry up to date.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.errors import (
    ShuttingDownError,
    StorageError,
    TopicExistsError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.log.data_directory import (
    DataDirectory,
    LogKey,
    RecoveryPoint,
    log_directory_name,
    read_checkpoint,
    write_checkpoint,
)
from broker.log.flusher import Flusher, PeriodicTask
from broker.log.log import Log
from broker.log.recovery import Recovery, list_segments, recover, validate_contiguity
from broker.log.retention import apply_retention
from broker.log.segment import Disk, Segment, SegmentFile, SegmentFiles
from broker.log.topics import Deletions, PartitionCounts
from broker.stats import WindowedStats
from broker.topic import TopicPartition, validate_topic_name

_FIRST_RETENTION_DELAY_S = 60.0

logger = logging.getLogger(__name__)

Step = Callable[[str, Callable[[], None]], object]
"""Runs one step of closing, given its name and a function."""


class LogManager:
    """The logs of one broker.

    Args:
        config: the broker's settings.
        clock: for ages and deadlines.
        disk: how message data is written; the operating system's calls by default.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, *, disk: Disk | None = None) -> None:
        self.on_new_topic: Callable[[str], object] = _ignore_topic
        self.on_deleted_topic: Callable[[str], object] = _ignore_topic
        self._flusher = Flusher(clock, thread_count=config.flusher_threads)
        self.flush_stats = WindowedStats(clock, config.monitoring_period_ms / 1000)
        self.was_recovered = False
        """Whether `open` found logs that had not been closed cleanly."""
        self._config = config
        self._clock = clock
        self._disk = disk or Disk()
        self._directory = DataDirectory(config.data_dir, config.broker_id)
        self._files = SegmentFiles()
        self._tasks: list[PeriodicTask] = []
        self._create_lock = Lock()  # guards the sets of logs and topics
        self._removal_lock = Lock()  # one thread at a time removes files; taken before the others
        self._checkpoint_lock = Lock()
        self._deletions = Deletions(config.data_dir)
        self._deleting: set[str] = set()
        self._logs: dict[LogKey, Log] = {}
        self._counts = PartitionCounts(config, self._directory)
        self._checkpointed: dict[LogKey, RecoveryPoint] = {}
        self._is_open = False
        self._is_safe = False  # everything is flushed, closed and checkpointed

    def open(self) -> list[Recovery]:
        """Lock the data directory and load every log, recovering those not closed cleanly.

        Returns:
            The truncations by recovery; none after a clean shutdown.

        Raises:
            LogLockedError: another broker uses the directory, or it belongs to another broker.
            LogCorruptError: a log has a gap that a crash does not explain.
            ConfigError: the directory cannot be written.
            StorageError: a log cannot be read or recovered.
        """
        self._directory.lock()
        try:
            recoveries = self._load_logs()
            self._directory.mark_in_use()
            self.write_checkpoint()
            self._deletions.end()
        except OSError as error:
            self._directory.unlock()
            raise StorageError(
                f"cannot open the logs in {self._config.data_dir}: {error}"
            ) from error
        except BaseException:
            self._directory.unlock()
            raise
        self._is_open = True
        return recoveries

    def start(self) -> None:
        """Start the threads that flush, apply retention and write the checkpoint."""
        retention_s = self._config.cleanup_interval_ms / 1000
        checkpoint_s = self._config.checkpoint_interval_ms / 1000
        self._tasks = [
            PeriodicTask(
                "checkpoint",
                self._write_checkpoint_or_log,
                first_delay_s=checkpoint_s,
                interval_s=checkpoint_s,
            ),
            PeriodicTask(
                "retention",
                self.apply_retention,
                first_delay_s=min(_FIRST_RETENTION_DELAY_S, retention_s),
                interval_s=retention_s,
            ),
        ]
        self._deletions.remove_in_background()
        self._flusher.start()
        for task in self._tasks:
            task.start()

    def close(self, step: Step | None = None) -> None:
        """Stop the threads, flush and close every log, and mark the directory clean.

        The marker is only written if everything was flushed and checkpointed; otherwise the next
        start recovers the logs. Does nothing when not open.

        Args:
            step: runs each step and handles its error; by default errors are logged.
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
            self._directory.unlock()

    def _stop_and_close(self) -> None:
        for task in reversed(self._tasks):
            task.stop()
        self._flusher.stop()
        self._deletions.stop()
        self._is_safe = False
        _for_each(self.logs(), Log.close)
        self._is_safe = True

    def _write_last_checkpoint(self) -> None:
        try:
            self.write_checkpoint()
        except OSError as error:
            self._is_safe = False
            raise StorageError(f"cannot write the checkpoint: {error}") from error

    def _mark_clean(self) -> None:
        where = self._config.data_dir
        if not self._is_safe:
            raise StorageError(f"{where} is not marked clean: the next start recovers its logs")
        try:
            self._directory.mark_clean()
        except OSError as error:
            raise StorageError(f"cannot mark {where} clean: {error}") from error

    def get(self, topic: str, index: int) -> Log | None:
        """Return a partition's log, None if it has none yet."""
        return self._logs.get((topic, index))

    def get_or_create(self, topic: str, index: int) -> Log:
        """Return a partition's log, created if there is none.

        Raises:
            InvalidTopicError: the name is invalid.
            WrongPartitionError: the topic has no such partition on this broker.
            StorageError: the log's directory or first segment cannot be created.
            ShuttingDownError: the logs are closed.
            UnknownTopicError: the topic is being deleted.
        """
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
            count = self.partition_count(topic)
            if not 0 <= index < count:
                raise WrongPartitionError(
                    f"topic '{topic}' has no partition {index} on broker "
                    f"{self._config.broker_id}: it has {count}"
                )
            is_new_topic = topic not in self._counts
            log = self._create_log(topic, index)
            self._add_log(log)
        if is_new_topic:
            self._announce(topic)
        return log

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has on this broker, or would have if created.

        That is the count it was created with; else the configured one, or that on disk if larger.
        """
        return self._counts.of(topic)

    def create_topic(self, topic: str, partition_count: int) -> None:
        """Create a topic with a number of partitions; their logs are created by the first append.

        Raises:
            InvalidTopicError: the name is invalid.
            WrongPartitionError: the count is below 1.
            TopicExistsError: the topic exists on this broker.
            StorageError: the count cannot be stored.
            UnknownTopicError: a topic of that name is being deleted.
        """
        validate_topic_name(topic, self._config.max_topic_name_length)
        if partition_count < 1:
            raise WrongPartitionError(f"topic '{topic}' needs at least 1 partition")
        log_directory_name(topic, partition_count - 1)
        with self._create_lock:
            self._raise_if_deleting(topic)
            if topic in self._counts:
                raise TopicExistsError(
                    f"topic '{topic}' exists on broker {self._config.broker_id}, "
                    f"with {self.partition_count(topic)} partitions"
                )
            self._counts.set_explicit(topic, partition_count)
        self._announce(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its logs; blocks on flushes, so not for a processor's thread.

        Fetches in flight keep their files. A deletion that fails half-way is finished by the next
        call or the next start, and the topic refuses data until then.

        Raises:
            UnknownTopicError: the topic does not exist on this broker.
            ShuttingDownError: the logs are closed.
            StorageError: the disk refuses.
        """
        with self._removal_lock:
            with self._create_lock:
                self._validate_deletable(topic)
            try:
                self._deletions.begin(topic)
                self._close_deleted(topic)
                self._finish_deletion()
                self.write_checkpoint()  # before a new log can have the name of an old one
                self._deletions.end()
            except OSError as error:
                raise StorageError(f"cannot delete topic '{topic}': {error}") from error
            with self._create_lock:
                self._deleting.discard(topic)
        self._deletions.remove_in_background()

    def _announce(self, topic: str) -> None:
        self.on_new_topic(topic)
        if topic not in self._counts:  # deleted by another thread, which called back too early
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
            self._counts.forget(topic)
        self.on_deleted_topic(topic)
        for log in logs:
            try:
                log.delete()
            except StorageError as error:  # the unflushed data is deleted too
                logger.warning("%s", error)

    def _finish_deletion(self) -> None:
        """Move aside the remaining logs of a topic whose deletion has begun, if there is one."""
        topic = self._deletions.unfinished()
        if topic is None:
            return
        found = self._directory.log_directories()
        self._deletions.move_aside(path for (name, _), path in found.items() if name == topic)
        with self._create_lock:
            self._counts.forget(topic)
            self._counts.save()

    def topics(self) -> list[str]:
        """Return the names of all topics on this broker, sorted."""
        return sorted(self._counts.topics())

    def logs(self) -> list[Log]:
        """Return all logs."""
        return list(self._logs.values())

    def creator_token(self, host: str) -> str:
        """Return the token by which this broker recognizes its own node in the registry.

        Args:
            host: the advertised host, for a new token.

        Raises:
            StorageError: a new token cannot be stored.
        """
        return self._directory.creator_token(host, self._clock.time_ms())

    def flush_all(self) -> None:
        """Flush every log, on the calling thread.

        Raises:
            StorageError: the first error, after all other logs were flushed.
        """
        _for_each(self.logs(), Log.flush)

    def apply_retention(self) -> None:
        """Remove the segments past retention of all logs."""
        config = self._config
        archive_dir = config.archive_dir if config.retention_policy == "archive" else None
        for log in self.logs():
            # Under the lock: the files of a new log have the names of a deleted one's.
            with self._removal_lock:
                if not log.is_deleted:
                    settings = config.for_topic(log.partition.topic)
                    apply_retention(log, settings, archive_dir=archive_dir)

    def write_checkpoint(self) -> None:
        """Write the recovery point of each log, unless none changed.

        Raises:
            OSError: the checkpoint cannot be written; the old one remains.
        """
        with self._checkpoint_lock:
            points = {
                (log.partition.topic, log.partition.index): RecoveryPoint(
                    log.flushed_offset, log.active_since_ms
                )
                for log in self.logs()
            }
            if points != self._checkpointed or not self._is_open:
                write_checkpoint(self._config.data_dir, points)
                self._checkpointed = points

    def _write_checkpoint_or_log(self) -> None:
        try:
            self.write_checkpoint()
        except OSError as error:
            logger.error("cannot write the checkpoint: %s", error)

    def _load_logs(self) -> list[Recovery]:
        is_clean = self._directory.is_clean()
        self._counts.load()
        self._finish_deletion()
        directories = self._directory.log_directories()
        points = read_checkpoint(self._config.data_dir)
        self.was_recovered = not is_clean and bool(directories)
        recoveries: list[Recovery] = []
        for key, directory in sorted(directories.items()):
            topic, index = key
            partition = TopicPartition(topic, self._config.broker_id, index)
            segments = list_segments(directory)
            point = points.get(key) if points is not None else None
            if segments and is_clean:
                validate_contiguity(partition, segments)
            elif segments:
                # A log not in the checkpoint was created after it: nothing of it is flushed.
                known = 0 if points is not None else None
                recoveries += recover(
                    partition,
                    segments,
                    recovery_point=point.offset if point is not None else known,
                    time_ms=self._clock.time_ms(),
                )
            self._add_log(self._make_log(partition, directory, segments, point))
        return recoveries

    def _create_log(self, topic: str, index: int) -> Log:
        """Create a log with its directory, which the log's first flush makes durable."""
        directory = self._config.data_dir / log_directory_name(topic, index)
        partition = TopicPartition(topic, self._config.broker_id, index)
        try:
            directory.mkdir(exist_ok=True)
            return self._make_log(partition, directory, [], None)
        except OSError as error:
            raise StorageError(
                f"cannot create {partition}: {directory}: {error.strerror}"
            ) from error

    def _make_log(
        self,
        partition: TopicPartition,
        directory: Path,
        segments: list[Segment],
        point: RecoveryPoint | None,
    ) -> Log:
        unsynced = []
        if not segments:
            segment = Segment(directory, 0, size=0, modified_ms=self._clock.time_ms())
            segment.file = SegmentFile(segment.path, os.O_RDWR | os.O_CREAT)
            segments = [segment]
            unsynced = [self._config.data_dir, directory]
        is_same_segment = point is not None and point.offset >= segments[-1].base_offset
        return Log(
            partition,
            directory,
            self._config.for_topic(partition.topic),
            segments,
            clock=self._clock,
            files=self._files,
            schedule_flush=self._flusher.schedule,
            flush_stats=self.flush_stats,
            disk=self._disk,
            active_since_ms=point.active_since_ms if point and is_same_segment else None,
            unsynced_directories=unsynced,
        )

    def _add_log(self, log: Log) -> None:
        topic, index = log.partition.topic, log.partition.index
        self._logs[topic, index] = log
        self._counts.add_partition(topic, index)


def _for_each(logs: Iterable[Log], action: Callable[[Log], object]) -> None:
    """Call a function with every log.

    Raises:
        StorageError: the first error, after all calls.
    """
    failures = []
    for log in logs:
        try:
            action(log)
        except StorageError as error:
            logger.error("%s", error)
            failures.append(error)
    if failures:
        raise failures[0]


def _run_step(name: str, action: Callable[[], None]) -> None:
    """Run a step of closing; log its error, so that the next one runs."""
    try:
        action()
    except StorageError as error:
        logger.error("%s: %s", name, error)


def _ignore_topic(_topic: str) -> None:
    """The default of the callbacks."""
