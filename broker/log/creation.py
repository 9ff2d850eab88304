"""Creation of topics and logs: by the first append, by a request, and as replicas."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from broker import errors
from broker.files import reason_of, validate_no_link
from broker.log.data_directory import NOTHING_FLUSHED, RecoveryPoint
from broker.log.deletion import LogDeletions
from broker.log.format import format_of
from broker.log.log import Log, LogParts
from broker.log.replica_files import EpochFile, read_epochs, write_creation_id
from broker.log.segment import Segment
from broker.log.side_files import write_topic_id
from broker.log.table import LogSettings, LogTable
from broker.topic import (
    FORMAT_07,
    FORMAT_KAFKA,
    MAX_PARTITIONS,
    NO_HOME,
    TopicPartition,
    log_directory_name,
    validate_new_topic_name,
    validate_topic_name,
)


@dataclass(frozen=True, slots=True)
class LogCreation:
    """Creates the topics and logs of one broker."""

    table: LogTable
    settings: LogSettings
    parts: LogParts
    deletions: LogDeletions

    def make(
        self,
        partition: TopicPartition,
        directory: Path,
        segments: list[Segment],
        point: RecoveryPoint,
    ) -> Log:
        """Return the log of the segments; without any, of a new one."""
        unsynced = []
        if not segments:
            format, now_ms = format_of(partition), self.parts.clock.time_ms()
            segment = Segment(directory, 0, size=0, modified_ms=now_ms, format=format)
            format.prepare([segment])
            segment.file = self.parts.files.with_room(lambda: segment.open(os.O_RDWR | os.O_CREAT))
            segments = [segment]
            unsynced = [directory.parent, directory]
        is_same_segment = point.offset is not None and point.offset >= segments[-1].base_offset
        return Log(
            partition,
            directory,
            self.settings.of(partition.topic),
            segments,
            self.parts,
            active_since_ms=point.active_since_ms if is_same_segment else None,
            unsynced_directories=unsynced,
        )

    def get_or_create(self, topic: str, index: int) -> Log:
        """Return a partition's log, created if the topic has such a partition on this broker."""
        table, topics = self.table, self.table.topics
        log = table.get(topic, index)
        if log is not None:
            return log
        validate_topic_name(topic, self.settings.broker.max_topic_name_length)
        if topic not in topics and self.settings.format_of_new() == FORMAT_KAFKA:
            table.validate_partition(topic, index)
            with suppress(errors.TopicExistsError):
                self.create_topic(topic, topics.partition_count(topic), format=FORMAT_KAFKA)
        with table.lock:
            log = table.get(topic, index)
            if log is not None:
                return log
            self._validate_open()
            topics.validate_not_deleting(topic)
            table.validate_partition(topic, index)
            is_new_topic = topic not in topics
            if is_new_topic:
                validate_new_topic_name(topic)
                topics.creation_ids.add(topic)
            partition = table.named(topic, index)
            log = self._create_log(partition, topics.creation_id(topic))
            log.incarnations.begin(
                self.table.directories.incarnation,
                0,
                log_start_offset=0,
                creation=topics.creation_key(topic),
            )
            table.add(log)
        if is_new_topic:
            topics.announce(topic)
        return log

    def create_topic(
        self,
        topic: str,
        partition_count: int,
        *,
        format: str = FORMAT_07,
        has_replicas: bool = False,
    ) -> None:
        """Create a topic with a number of partitions; their logs are created by the first append.

        With `has_replicas` the controller has created it, and given it a creation id.
        """
        topics = self.table.topics
        max_name_length = self.settings.broker.max_topic_name_length
        validate_new_topic(topic, partition_count, max_name_length, format)
        with self.table.lock:
            self._validate_open()
            topics.validate_not_deleting(topic)
            if topic in topics:
                raise errors.TopicExistsError(
                    f"topic '{topic}' exists on broker {self.table.home}, "
                    f"with {topics.partition_count(topic)} partitions and the format "
                    f"{topics.format_of(topic)}"
                )
            topic_id = new_topic_id() if format == FORMAT_KAFKA else ""
            if not has_replicas and not topic_id:
                topics.creation_ids.add(topic)
            topics.set_explicit(topic, partition_count, topic_id)
        topics.announce(topic)

    def open_replica(self, partition: TopicPartition, creation_id: str) -> Log:
        """Return the log of a replicated partition, created if there is none.

        Several threads create logs side by side: most of it is syncs. A log of a former topic of
        the name (with another creation id) is removed; one of a partition at home that had no
        replicas yet becomes a replicated one. A log opened for the first time refuses appends until
        its leader is known.
        """
        _validate_replica_name(partition, creation_id)
        table = self.table
        known_ids = table.replica_creation_ids
        if known_ids.get(partition) == creation_id:
            log = table.find(partition)
            if log is not None:
                return log
        is_home = partition.home == table.home
        with table.removal_lock:
            if partition.home == NO_HOME:
                self._give_up_own(partition, creation_id)
            log = table.find(partition)
            if log is not None and known_ids.get(partition, creation_id) != creation_id:
                self.deletions.move_replica_aside(log)
                log = None
            with table.lock:
                self._validate_open()
                if is_home:
                    self.table.topics.validate_not_deleting(partition.topic)
                table.validate_online(partition)
                if log is not None:
                    if is_home:
                        self.table.topics.fix(partition.topic)
                    self._replicate(log, creation_id)
                    return log
                log = self._create_log(partition, creation_id)
                refuse_until_ordered(log)
                table.add(log)
        # No lock needed: the log refuses appends, so only a deletion can race.
        self._replicate(log, creation_id)
        log.note_directories_synced()
        return log

    def _give_up_own(self, partition: TopicPartition, creation_id: str) -> None:
        """Take a topic that this broker has alone as one with replicas, if it is the same.

        A broker that is killed before it marks a new log as a replica finds a topic of its own.
        """
        topic, topics = partition.topic, self.table.topics
        with self.table.lock:
            if topic not in topics:
                return
            if topics.creation_id(topic) != creation_id:
                raise errors.StorageError(
                    f"cannot create {partition}: broker {self.table.home} has a topic '{topic}' "
                    "without replicas, which has to be deleted first"
                )
            topics.forget([topic])
            topics.save()
        topics.on_deleted(topic)

    def _validate_open(self) -> None:
        if not self.table.is_open:
            raise errors.ShuttingDownError("the broker takes no new data: its logs are closed")

    def _create_log(self, partition: TopicPartition, creation_id: str | None) -> Log:
        """Create a log with its directory, which the log's first flush makes durable."""
        data_directory = self.table.directories.choose()
        directory = data_directory.path_of(partition)
        try:
            data_directory.make_log_directory(partition)
            validate_no_link(directory)
            if partition.format == FORMAT_KAFKA:
                assert creation_id is not None
                write_topic_id(directory, UUID(creation_id))
            log = self.make(partition, directory, [], NOTHING_FLUSHED)
        except OSError as error:
            raise errors.StorageError(
                f"cannot create {partition}: {directory}: {reason_of(error)}"
            ) from error
        self.table.directories.add(partition, data_directory)
        return log

    def _replicate(self, log: Log, creation_id: str) -> None:
        refuse_until_ordered(log)
        try:
            write_creation_id(log.directory, creation_id)
        except OSError as error:
            raise errors.StorageError(f"cannot make {log.directory} a replica: {error}") from error
        log.replicate(EpochFile(log.directory, read_epochs(log.directory)))
        self.table.replica_creation_ids[log.partition] = creation_id


def new_topic_id() -> str:
    """Return the id of a topic of Kafka's format that is about to be created."""
    return uuid4().hex


def validate_new_topic(
    topic: str, partition_count: int, max_name_length: int, format: str = FORMAT_07
) -> None:
    """Validate that a broker can have a topic with so many partitions."""
    validate_new_topic_name(topic, max_name_length, format)
    if not 1 <= partition_count <= MAX_PARTITIONS:
        raise errors.WrongPartitionError(
            f"topic '{topic}' cannot have {partition_count} partitions: "
            f"from 1 to {MAX_PARTITIONS} are possible"
        )
    log_directory_name(topic, partition_count - 1, format)


def refuse_until_ordered(log: Log) -> None:
    """Have a replicated log refuse appends until the controller has told who leads it."""
    partition = log.partition
    log.refuse_appends(
        lambda: errors.LeaderNotAvailableError(
            f"the controller has not yet told this broker who leads {partition}; try again"
        )
    )


def _validate_replica_name(partition: TopicPartition, creation_id: str) -> None:
    """Validate that a partition can have a log here, whatever a controller says."""
    # Other names would lead out of the data directory, or be found by no start.
    try:
        validate_topic_name(partition.topic)
        log_directory_name(partition.topic, partition.index, partition.format)
        if partition.format == FORMAT_KAFKA:
            validate_new_topic_name(partition.topic, format=FORMAT_KAFKA)
            UUID(creation_id)
    except (errors.InvalidTopicError, ValueError) as error:
        raise errors.StorageError(f"cannot create {partition}: {error}") from error
    if partition.home < NO_HOME or partition.index < 0:
        raise errors.StorageError(
            f"cannot create {partition}: no partition has this home and index"
        )
