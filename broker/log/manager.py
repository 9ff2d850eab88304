"""All logs of one data directory: opening, creating, flushing, retention, closing.

Owns the map from topic and index to log, and the threads that work on logs. Knows no requests
and no registry; who wants to hear of new topics sets `on_new_topic`.
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
from broker.log.recovery import Recovery, check_contiguity, list_segments, recover
from broker.log.retention import Retention
from broker.log.segment import Disk, Segment, SegmentFile, SegmentFiles
from broker.log.topics import Deletions, PartitionCounts
from broker.stats import WindowedStats
from broker.topic import TopicPartition, check_topic_name

FIRST_RETENTION_DELAY_S = 60.0

logger = logging.getLogger(__name__)

Step = Callable[[str, Callable[[], None]], object]
"""Takes a step of closing down, given its name and what does it."""


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
        """Whether the logs there were at `open` had not been closed cleanly."""
        self._config = config
        self._clock = clock
        self._disk = disk or Disk()
        self._directory = DataDirectory(config.data_dir, config.broker_id)
        self._files = SegmentFiles()
        self._retention = Retention(
            config.for_topic,
            archive_dir=config.archive_dir if config.retention_policy == "archive" else None,
        )
        self._tasks: list[PeriodicTask] = []
        self._create_lock = Lock()  # guards which logs and topics there are
        self._removal_lock = Lock()  # one at a time takes files away; taken before the others
        self._checkpoint_lock = Lock()
        self._deletions = Deletions(config.data_dir)
        self._deleting: set[str] = set()
        self._logs: dict[LogKey, Log] = {}
        self._counts = PartitionCounts(config, self._directory)
        self._checkpointed: dict[LogKey, RecoveryPoint] = {}
        self._is_open = False
        self._is_safe = False  # all is flushed, closed and checkpointed

    def open(self) -> list[Recovery]:
        """Take the data directory and load every log, recovering those not closed cleanly.

        Returns:
            What recovery cut; nothing after a clean shutdown.

        Raises:
            LogLockedError: another broker uses the directory, or it belongs to one.
            LogCorruptError: a log has a gap that no crash explains.
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
        """Start the threads that flush, remove old segments and write the checkpoint."""
        retention_s = self._config.cleanup_interval_ms / 1000
        checkpoint_s = self._config.checkpoint_interval_ms / 1000
        self._tasks = [
            PeriodicTask(
                "checkpoint",
                self._write_checkpoint_or_complain,
                first_delay_s=checkpoint_s,
                interval_s=checkpoint_s,
            ),
            PeriodicTask(
                "retention",
                self.apply_retention,
                first_delay_s=min(FIRST_RETENTION_DELAY_S, retention_s),
                interval_s=retention_s,
            ),
        ]
        self._deletions.remove_in_background()
        self._flusher.start()
        for task in self._tasks:
            task.start()

    def close(self, step: Step | None = None) -> None:
        """Stop the threads, flush and close every log, and leave the directory marked clean.

        The marker is only written if everything was opened, flushed and checkpointed; a log that
        failed is recovered at the next start. Does nothing when not open.

        Args:
            step: takes each of the steps, given its name; a failure of one is for it to tell.
        """
        if not self._is_open:
            return
        self._is_open = False
        take = step or _take_step
        try:
            take("close logs", self._stop_and_close)
            take("checkpoint", self._write_last_checkpoint)
            take("marker", self._mark_clean)
        finally:
            self._files.clear()
            self._directory.unlock()

    def _stop_and_close(self) -> None:
        for task in reversed(self._tasks):
            task.stop()
        self._flusher.stop()
        self._deletions.stop()
        self._is_safe = False
        _do_with_all(self.logs(), Log.close)
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
        """Return a partition's log, None if it has none yet.

        Args:
            topic: any text.
            index: any number.
        """
        return self._logs.get((topic, index))

    def get_or_create(self, topic: str, index: int) -> Log:
        """Return a partition's log, making an empty one if there is none.

        Args:
            topic: the topic.
            index: the partition's index on this broker.

        Raises:
            InvalidTopicError: no topic may have that name.
            WrongPartitionError: the topic has no such partition here.
            StorageError: the log's directory or first segment cannot be made.
            ShuttingDownError: the logs are closed.
            UnknownTopicError: the topic is being deleted.
        """
        log = self._logs.get((topic, index))
        if log is not None:
            return log
        check_topic_name(topic, self._config.max_topic_name_length)
        with self._create_lock:
            log = self._logs.get((topic, index))
            if log is not None:
                return log
            if not self._is_open:
                raise ShuttingDownError("the broker takes no new data: its logs are closed")
            self._check_not_deleting(topic)
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
        """Return how many partitions a topic has on this broker, existing or not.

        Args:
            topic: any text.

        Returns:
            The count it was created with; else the configured one, or more if more are on disk.
        """
        return self._counts.of(topic)

    def create_topic(self, topic: str, partition_count: int) -> None:
        """Give a new topic its number of partitions; their logs appear with the first append.

        Args:
            topic: the topic.
            partition_count: at least 1.

        Raises:
            InvalidTopicError: no topic may have that name.
            WrongPartitionError: the count is below 1.
            TopicExistsError: the topic is here already.
            StorageError: the count cannot be kept.
            UnknownTopicError: a topic of that name is being deleted.
        """
        check_topic_name(topic, self._config.max_topic_name_length)
        if partition_count < 1:
            raise WrongPartitionError(f"topic '{topic}' needs at least 1 partition")
        log_directory_name(topic, partition_count - 1)
        with self._create_lock:
            self._check_not_deleting(topic)
            if topic in self._counts:
                raise TopicExistsError(
                    f"topic '{topic}' exists on broker {self._config.broker_id}, "
                    f"with {self.partition_count(topic)} partitions"
                )
            self._counts.set_explicit(topic, partition_count)
        self._announce(topic)

    def delete_topic(self, topic: str) -> None:
        """Remove a topic with all its logs; blocks for flushes and files, so not on a processor.

        Readers in flight keep their files. Once begun, a deletion that fails is continued by the
        next call or the next start, and the topic takes no data until then.

        Args:
            topic: any text.

        Raises:
            UnknownTopicError: there is no such topic here.
            ShuttingDownError: the logs are closed.
            StorageError: the disk refuses.
        """
        with self._removal_lock:
            with self._create_lock:
                self._check_deletable(topic)
            try:
                self._deletions.begin(topic)
                self._close_deleted(topic)
                self._finish_deletion()
                self.write_checkpoint()  # before a new log can be in the place of an old one
                self._deletions.end()
            except OSError as error:
                raise StorageError(f"cannot delete topic '{topic}': {error}") from error
            with self._create_lock:
                self._deleting.discard(topic)
        self._deletions.remove_in_background()

    def _announce(self, topic: str) -> None:
        self.on_new_topic(topic)
        if topic not in self._counts:  # deleted by another thread, which told of it too early
            self.on_deleted_topic(topic)

    def _check_deletable(self, topic: str) -> None:
        if not self._is_open:
            raise ShuttingDownError("nothing can be deleted: the logs are closed")
        if topic not in self._counts and topic not in self._deleting:
            raise UnknownTopicError(
                f"there is no topic '{topic}' on broker {self._config.broker_id}"
            )

    def _check_not_deleting(self, topic: str) -> None:
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
            except StorageError as error:  # what could not be flushed goes with the rest
                logger.warning("%s", error)

    def _finish_deletion(self) -> None:
        """Move aside what is left of a topic whose deletion has begun, if there is one.

        Raises:
            OSError: a directory cannot be moved.
            StorageError: the explicit partition counts cannot be kept.
        """
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
        """Return the token that marks this broker's node in the registry as its own.

        Args:
            host: the advertised host; part of the token when it is made for the first time.

        Raises:
            StorageError: a new token cannot be kept.
        """
        return self._directory.creator_token(host, self._clock.time_ms())

    def flush_all(self) -> None:
        """Flush every log, on the calling thread.

        Raises:
            StorageError: of the first log that failed, after all others were flushed.
        """
        _do_with_all(self.logs(), Log.flush)

    def apply_retention(self) -> None:
        """Remove the segments past retention, now."""
        for log in self.logs():
            # a deleted log's files must not be looked for where a new one's are
            with self._removal_lock:
                if not log.is_deleted:
                    self._retention.apply([log])

    def write_checkpoint(self) -> None:
        """Write how far each log is flushed, unless nothing changed.

        Raises:
            OSError: the checkpoint cannot be written; the old one still holds.
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

    def _write_checkpoint_or_complain(self) -> None:
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
                check_contiguity(partition, segments)
            elif segments:
                # A log the checkpoint does not know was made after it: nothing of it is flushed.
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
        """Make the directory of a new log; its durability is up to the log's first flush."""
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
        self._counts.note_partition(topic, index)


def _do_with_all(logs: Iterable[Log], action: Callable[[Log], object]) -> None:
    """Do something with every log.

    Raises:
        StorageError: of the first that failed, after all others were dealt with.
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


def _take_step(name: str, action: Callable[[], None]) -> None:
    """Take a step of closing; the next one is taken even if it fails."""
    try:
        action()
    except StorageError as error:
        logger.error("%s: %s", name, error)


def _ignore_topic(_topic: str) -> None:
    """Stand in until somebody wants to hear of new topics."""
