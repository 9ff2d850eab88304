"""The logs of one broker by partition, and the locks under which the set of them changes.

Lock order; a thread that holds one takes only those further down:

1. `LogTable.removal_lock`: files of logs are removed or renamed, by deletion, retention or a move.
   Held while logs are flushed and disks synced.
2. `LogTable.lock`: the sets of logs, offline partitions and topics change, and what is on record of
   them. A log is created, and switched to another directory, under it.
3. A log's flush lock, then its append lock (`log`).
4. The lock of `Checkpoints`: a log that is truncated writes the checkpoint first.

Readers take none: they look up in dictionaries, and copy one before they iterate over it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from broker.errors import StorageError, WrongPartitionError
from broker.log.data_directory import UNKNOWN, DataDirectory, RecoveryPoint
from broker.log.directories import DataDirectories
from broker.log.log import Log
from broker.log.log_parts import Listeners
from broker.log.topics import HomeTopics
from broker.topic import TopicPartition


class OfflineLog(NamedTuple):
    """A log that cannot be used; its recovery point is kept for the start that finds it mended."""

    point: RecoveryPoint
    error: StorageError


class LogTable:
    """The logs of one broker: those of its own partitions, and replicas of other homes."""

    def __init__(self, home: int, topics: HomeTopics, directories: DataDirectories) -> None:
        self.home = home
        """The id of the broker."""
        self.topics = topics
        self.directories = directories
        self.is_open = False
        """Whether logs may be created, moved and deleted."""
        self.removal_lock = Lock()
        self.lock = Lock()
        self.offline: dict[TopicPartition, OfflineLog] = {}
        self.replica_creation_ids: dict[TopicPartition, str] = {}
        """The creation ids of the topics of replicated partitions, at home or not."""
        self._logs: dict[tuple[str, int, int], Log] = {}  # by partition, which is such a tuple
        self._awaited: WeakValueDictionary[TopicPartition, Listeners] = WeakValueDictionary()
        self._awaited_lock = Lock()

    def get(self, topic: str, index: int) -> Log | None:
        """Return the log of a partition with this broker as its home, None if it has none yet."""
        return self._logs.get((topic, self.home, index))

    def find(self, partition: TopicPartition) -> Log | None:
        """Return the log of a partition of any home, None if this broker has none."""
        return self._logs.get(partition)

    def awaited(self, partition: TopicPartition) -> Listeners:
        """Return what is called when a missing log at home is added, or its topic deleted."""
        with self._awaited_lock:
            return self._awaited.setdefault(partition, Listeners())

    def notify_deleted(self, topic: str) -> None:
        """Tell those that await a log of a topic that it is deleted."""
        with self._awaited_lock:
            awaited = [one for key, one in self._awaited.items() if key.topic == topic]
        for one in awaited:
            one.notify()

    def all(self) -> list[Log]:
        """Return all logs."""
        return list(self._logs.values())

    @property
    def has_replicas(self) -> bool:
        """Return whether there is a replicated log."""
        return bool(self.replica_creation_ids)

    def has_replicas_of(self, topic: str) -> bool:
        """Return whether there is a replicated log of a topic."""
        return any(one.topic == topic for one in list(self.replica_creation_ids))

    def replica_creation_id(self, partition: TopicPartition) -> str | None:
        """Return the creation id of the topic of a replicated log here; None without one."""
        return self.replica_creation_ids.get(partition)

    def has_own(self, topic: str) -> bool:
        """Return whether a partition of a topic has a log here, and this broker as its home."""
        return any(key[:2] == (topic, self.home) for key in self._logs)

    def add(self, log: Log) -> None:
        """Add a log that was opened or created."""
        partition = log.partition
        self._logs[partition] = log
        if partition.home == self.home:
            self.topics.add_partition(partition.topic, partition.index)
            with self._awaited_lock:
                awaited = self._awaited.get(partition)
            if awaited is not None:
                awaited.notify()

    def remove(self, partition: TopicPartition) -> Log | None:
        """Remove and return the log of a partition, None if there is none."""
        return self._logs.pop(partition, None)

    def remove_topic(self, topic: str) -> list[Log]:
        """Remove all partitions of a topic with this broker as their home; return their logs."""
        for one in [one for one in self.offline if (one.topic, one.home) == (topic, self.home)]:
            del self.offline[one]
        own = [key for key in self._logs if key[:2] == (topic, self.home)]
        return [self._logs.pop(key) for key in own]

    def leave_offline(
        self, partition: TopicPartition, point: RecoveryPoint, error: StorageError
    ) -> None:
        """Record that a partition cannot be used, and why."""
        self.offline[partition] = OfflineLog(point, error)
        if partition.home == self.home:
            self.topics.add_partition(partition.topic, partition.index)

    def lose(self, directory: DataDirectory, failure: StorageError) -> list[Log]:
        """Take the partitions in a directory offline, and return the logs that were open."""
        logs = []
        for partition, place in self.directories.place_of.items():
            if place is directory:
                log = self.remove(partition)
                if log is not None:
                    logs.append(log)
                error = StorageError(f"{partition} is offline: {failure}")
                self.leave_offline(partition, UNKNOWN, error)
        return logs

    def errors(self) -> dict[TopicPartition, StorageError]:
        """Return the partitions that cannot be used, and why."""
        return {partition: one.error for partition, one in list(self.offline.items())}

    def validate_partition(self, topic: str, index: int) -> None:
        """Validate that this home has a partition, not offline; one without a log passes."""
        if self.offline:
            self.validate_online(TopicPartition(topic, self.home, index))
        count = self.topics.partition_count(topic)
        if not 0 <= index < count:
            raise WrongPartitionError(
                f"topic '{topic}' has no partition {index} on broker {self.home}: it has {count}"
            )

    def validate_online(self, partition: TopicPartition) -> None:
        """Validate that a partition of any home is not offline; one without a log passes."""
        if (offline := self.offline.get(partition)) is not None:
            raise StorageError(str(offline.error))

    def choose_partition(self, topic: str) -> int:
        """Return the index of a partition chosen at random among those that are not offline."""
        indexes: Sequence[int] = range(self.topics.partition_count(topic))
        if self.offline:
            online = [
                one for one in indexes if TopicPartition(topic, self.home, one) not in self.offline
            ]
            indexes = online or indexes
        return random.choice(indexes)
