"""The topics and logs of one broker, and the locks under which the set of them changes.

A topic gets another creation id each time it is created. By the id in the registry consumers know
that a topic was deleted and created again, and that stored offsets are of the former one. A file in
each data directory has a line `ID TOPIC` for each creation, of which the last one of a topic
counts. That of a topic of Kafka's format is the topic id, and stands beside its partition count.

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

import logging
import os
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from broker.cluster_state import creation_key
from broker.config import BrokerConfig
from broker.errors import StorageError, UnknownTopicError, WrongPartitionError
from broker.files import opened, write_all, write_atomically
from broker.log.data_directory import (
    CREATION_IDS_NAME,
    UNKNOWN,
    DataDirectory,
    RecoveryPoint,
    TopicRecord,
)
from broker.log.directories import DataDirectories
from broker.log.log import Log
from broker.log.log_parts import Listeners
from broker.topic import FORMAT_07, FORMAT_KAFKA, NO_HOME, TopicPartition
from broker.topic_settings import NO_OVERRIDES, TopicConfig, TopicOverrides, topic_config

logger = logging.getLogger(__name__)


class LogSettings:
    """The settings of a broker and of its topics, which can change while it runs."""

    def __init__(self, config: BrokerConfig) -> None:
        self.broker = config
        self.overrides: Mapping[str, TopicOverrides] = {}
        """Also of topics that do not exist."""

    def replace(self, config: BrokerConfig, overrides: Mapping[str, TopicOverrides]) -> None:
        """Use other settings from now on."""
        self.broker, self.overrides = config, overrides

    def format_of_new(self) -> str:
        """Return the format of a topic that its first message creates on this broker alone."""
        # in a cluster only topics of 0.7 exist without the controller
        return FORMAT_07 if self.broker.zookeeper_connect else self.broker.log_format

    def of(self, topic: str) -> TopicConfig:
        """Return the settings that a topic has now."""
        return topic_config(self.broker, topic, self.overrides.get(topic, NO_OVERRIDES))


class HomeTopics:
    """The topics of one broker: their formats, partition counts and creation ids.

    Changed by one thread at a time. The explicit counts of all topics are stored in every
    directory. A topic of Kafka's format always has one. With replicas it is not among these topics.
    """

    def __init__(self, settings: LogSettings, directories: DataDirectories) -> None:
        self.on_new: Callable[[str], object] = _ignore
        """Called when there is a new topic, with no lock held."""
        self.on_deleted: Callable[[str], object] = _ignore
        """Called when there is a topic less, before its files are removed."""
        self.on_removed: Callable[[str], object] = _ignore
        """Called when a deletion has ended, and the name can be used again, with no lock held."""
        self.creation_ids = CreationIds(directories)
        self.deleting: set[str] = set()
        """Topics whose deletion has begun, or failed half-way: they take no data until it ends."""
        self._settings = settings
        self._directories = directories
        self._explicit: dict[str, TopicRecord] = {}
        self._found: dict[str, int] = {}

    def load(self) -> None:
        """Read the explicit counts; the largest where directories differ."""
        directories = self._directories
        stored = {one: one.read_topics() for one in directories.online}
        # the first id counts where directories differ, so those that were away come last
        for directory in sorted(stored, key=directories.was_away):
            records = stored[directory]
            if directories.was_away(directory):
                # it may know topics that were deleted since: those that it has no log of
                here = directories.own_topics(directory)
                records = {topic: one for topic, one in records.items() if topic in here}
            for topic, one in records.items():
                known = self._explicit.get(topic, one)
                self._explicit[topic] = known._replace(
                    partition_count=max(known.partition_count, one.partition_count)
                )
        for directory, records in stored.items():
            if records != self._explicit:
                try:
                    directory.write_topics(self._explicit)
                except StorageError as error:  # a full disk: the others have them
                    logger.warning("%s", error)

    def format_of(self, topic: str) -> str:
        """Return the format of a topic of this broker, 0.7 if it has no such topic."""
        record = self._explicit.get(topic)  # no call more for a hidden topic than for none
        return FORMAT_KAFKA if record is not None and record.topic_id else FORMAT_07

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has on this broker, or would have if created.

        The count it was created with; else the configured one, or that on disk if larger. A setting
        of the topic comes before these, but partitions that exist stay.
        """
        record = self._explicit.get(topic)
        explicit = 0 if record is None else record.partition_count
        overrides = self._settings.overrides.get(topic, NO_OVERRIDES)
        if record is not None and (record.topic_id or "partition_count" not in overrides):
            return explicit
        configured = self._settings.of(topic).partition_count
        return max(configured, explicit, self._found.get(topic, 0))

    def add_partition(self, topic: str, index: int) -> None:
        """Record that a partition exists."""
        self._found[topic] = max(self._found.get(topic, 0), index + 1)

    def set_explicit(self, topic: str, count: int, topic_id: str = "") -> None:
        """Set and store the explicit count of a topic, and its id if it is of Kafka's format."""
        explicit = {**self._explicit, topic: TopicRecord(count, topic_id)}
        try:
            for directory in self._directories.online:
                directory.write_topics(explicit)
        except StorageError:
            with suppress(StorageError):  # the next start would find the topic created
                self.save()
            raise
        self._explicit = explicit

    def fix(self, topic: str) -> None:
        """Make a topic's present count explicit, so that the broker's settings do not change it."""
        if topic not in self._explicit:
            self.set_explicit(topic, self.partition_count(topic))

    def forget(self, topics: Iterable[str]) -> None:
        """Remove topics with their explicit counts; `save` makes that permanent."""
        gone = set(topics)
        for topic in gone:
            self._found.pop(topic, None)
        self._explicit = {name: n for name, n in self._explicit.items() if name not in gone}

    def save(self) -> None:
        """Store the explicit counts, after `forget`."""
        for directory in self._directories.online:
            directory.write_topics(self._explicit)

    def announce(self, topic: str) -> None:
        """Report a new topic; the caller holds no lock."""
        self.on_new(topic)
        if topic not in self:  # another thread deleted it and called back before this
            self.on_deleted(topic)

    def validate_not_deleting(self, topic: str) -> None:
        """Validate that a topic takes data, as it is not being deleted."""
        if topic in self.deleting:
            raise UnknownTopicError(f"topic '{topic}' is being deleted")

    def creation_id(self, topic: str) -> str | None:
        """Return the id of a topic's creation, None if it is older than such ids."""
        record = self._explicit.get(topic)
        return (record and record.topic_id) or self.creation_ids.of(topic)

    def creation_key(self, topic: str) -> int:
        """Return the part of a term that tells a topic from a former one of its name."""
        return creation_key(self.creation_id(topic) or "")

    def names(self) -> list[str]:
        """Return the topics that have a partition or an explicit count, sorted."""
        return sorted({*self._explicit, *list(self._found)})

    def __contains__(self, topic: str) -> bool:
        return topic in self._explicit or topic in self._found


def _ignore(_topic: str) -> None:
    """The default of the callbacks."""


_ID_BYTES = 8


class _IdFile:
    """The file in one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / CREATION_IDS_NAME
        self._lines: list[str] = []
        self._end = 0
        """The end of the whole lines; a crash or a full disk can leave part of one behind it."""

    def read(self) -> dict[str, str]:
        """Return the ids by topic."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        *whole, rest = content.decode(errors="replace").split("\n")
        self._lines = [*(f"{line}\n" for line in whole), *filter(None, [rest])]
        self._end = content.rfind(b"\n") + 1
        return {topic: one for one, _, topic in (line.partition(" ") for line in whole)}

    def correct(self, ids: Mapping[str, str]) -> None:
        """Make the file hold these ids and no others, unless the disk refuses."""
        lines = [f"{one} {topic}\n" for topic, one in ids.items()]
        if sorted(lines) == sorted(self._lines):
            return
        content = "".join(lines).encode()
        try:
            write_atomically(self._path, content)
            self._end = len(content)
        except OSError as error:  # a full disk: lines of other topics do no harm
            logger.warning("cannot correct %s: %s", self._path, error)

    def append(self, topic: str, creation_id: str) -> None:
        line = f"{creation_id} {topic}\n".encode()
        try:
            with opened(self._path, os.O_WRONLY | os.O_CREAT) as fd:
                os.lseek(fd, self._end, os.SEEK_SET)
                write_all(fd, line)
                os.ftruncate(fd, self._end + len(line))
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        self._end += len(line)


class CreationIds:
    """Ids of one broker's topics, stored in every directory; changed by one thread at a time."""

    def __init__(self, directories: DataDirectories) -> None:
        self._directories = directories
        self._ids: dict[str, str] = {}
        self._files: dict[DataDirectory, _IdFile] = {}

    def load(self, topics: Collection[str]) -> None:
        """Read the ids of existing topics, and drop the lines of others."""
        directories = self._directories
        # the first counts where directories differ, so those that were away come last
        for directory in sorted(directories.online, key=directories.was_away):
            file = self._files[directory] = _IdFile(directory.path)
            self._ids = {**file.read(), **self._ids}
        self._ids = {topic: one for topic, one in self._ids.items() if topic in topics}
        for file in self._files.values():
            file.correct(self._ids)

    def add(self, topic: str) -> None:
        """Give a topic that is about to be created an id."""
        # Not flushed: a topic that loses its id in a power failure counts as one without, and its
        # records in the registry stay.
        creation_id = os.urandom(_ID_BYTES).hex()
        for directory in self._directories.online:
            self._files[directory].append(topic, creation_id)
        self._ids[topic] = creation_id

    def of(self, topic: str) -> str | None:
        """Return the id of a topic, None if it was created before brokers kept ids."""
        return self._ids.get(topic)


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
        """Return the log of a partition of this broker, None if it has none yet."""
        logs = self._logs
        log = logs.get((topic, self.home, index))
        return logs.get((topic, NO_HOME, index)) if log is None else log

    def named(self, topic: str, index: int) -> TopicPartition:
        """Return the partition of this broker's topic, which has a home unless it is Kafka's."""
        is_kafka = self.topics.format_of(topic) == FORMAT_KAFKA
        return TopicPartition(topic, NO_HOME if is_kafka else self.home, index)

    def is_own(self, partition: TopicPartition) -> bool:
        """Return whether a partition is of a topic of this broker, with it as its home if any."""
        return partition == self.named(partition.topic, partition.index)

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
        if self.is_own(partition):
            self.topics.add_partition(partition.topic, partition.index)
            with self._awaited_lock:
                awaited = self._awaited.get(partition)
            if awaited is not None:
                awaited.notify()

    def remove(self, partition: TopicPartition) -> Log | None:
        """Remove and return the log of a partition, None if there is none."""
        return self._logs.pop(partition, None)

    def remove_topic(self, topic: str) -> list[Log]:
        """Remove all partitions of a topic of this broker; return their logs."""
        own_names = {(topic, self.home), (topic, NO_HOME)}
        for one in [one for one in self.offline if one[:2] in own_names]:
            del self.offline[one]
        own = [key for key in self._logs if key[:2] in own_names]
        return [self._logs.pop(key) for key in own]

    def leave_offline(
        self, partition: TopicPartition, point: RecoveryPoint, error: StorageError
    ) -> None:
        """Record that a partition cannot be used, and why."""
        self.offline[partition] = OfflineLog(point, error)
        if self.is_own(partition):
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
            self.validate_online(self.named(topic, index))
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
            online = [one for one in indexes if self.named(topic, one) not in self.offline]
            indexes = online or indexes
        return random.choice(indexes)
