"""Where the logs of replicated partitions are in data directories, and what is kept beside them.

A partition whose home is another broker has its log in `replicas/HOME/TOPIC_INDEX`, one whose home
is this broker in the place of any log. A replicated log has three files besides its segments: the
creation id of its topic, as a log of a former topic of the same name is no replica of this one; its
leader epochs; and a record of the controller's last orders (`replica_records`), from which its
topic can be made again if ZooKeeper's data are lost. `replication-offset-checkpoint` in a data
directory has the high watermarks of the logs there, in the form of later Kafka: a version, their
number, and lines `TOPIC HOME-INDEX OFFSET`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from broker.errors import InvalidTopicError, StorageError
from broker.files import DIRECTORY_MODE, sync_directory, write_atomically
from broker.log.data_directory import (
    HIGH_WATERMARKS_NAME,
    REPLICAS_NAME,
    LogKey,
    RecoveryPoint,
    write_checkpoint,
)
from broker.log.log import Log
from broker.replica_records import ReplicaRecord
from broker.topic import TopicPartition, log_directory_name, validate_topic_name

_CREATION_ID_NAME = "replica-creation-id"
_RECORD_NAME = "replica-record"
_VERSION = "0"

logger = logging.getLogger(__name__)


def read_creation_id(directory: Path) -> str | None:
    """Return the creation id in the directory of a replicated log, None for any other log."""
    try:
        return (directory / _CREATION_ID_NAME).read_text().strip()
    except FileNotFoundError:
        return None


def write_creation_id(directory: Path, creation_id: str) -> None:
    """Mark a log as a replica of a partition; makes this, and the log's directory, durable."""
    write_atomically(directory / _CREATION_ID_NAME, f"{creation_id}\n".encode())
    sync_directory(directory.parent)


def read_record(directory: Path) -> ReplicaRecord | None:
    """Return the record beside a replicated log, None if there is none or it cannot be read."""
    path = directory / _RECORD_NAME
    try:
        return ReplicaRecord.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("ignoring %s: %s", path, error)
        return None


def write_record(directory: Path, record: ReplicaRecord) -> None:
    """Replace the record beside a replicated log, unless it is the same."""
    path, content = directory / _RECORD_NAME, record.encode()
    try:
        if path.read_bytes() == content:
            return
    except FileNotFoundError:
        pass
    # It waits for no disk, as a failover changes all records of a broker at once. A power failure
    # can leave an earlier one, or none: those of other replicas, and the logs' epochs, remain.
    write_atomically(path, content, is_durable=False)


def read_high_watermarks(data_dir: Path) -> dict[TopicPartition, int]:
    """Return the stored high watermarks, none if unreadable: leaders send present ones."""
    path = data_dir / HIGH_WATERMARKS_NAME
    try:
        version, count, *lines, end = path.read_bytes().decode().split("\n")
        if version != _VERSION or end or int(count) != len(lines):
            raise ValueError("its version, its length or its end is wrong")
        return dict(map(_parse_line, lines))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.warning("ignoring the high watermarks in %s: %s", path, error)
        return {}


def _parse_line(line: str) -> tuple[TopicPartition, int]:
    topic, name, offset = line.rsplit(" ", 2)
    home, _, index = name.partition("-")
    return TopicPartition(topic, int(home), int(index)), int(offset)


def write_high_watermarks(data_dir: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the stored high watermarks; on an `OSError` the old ones remain."""
    lines = [
        _VERSION,
        str(len(offsets)),
        *(f"{one.topic} {one.name} {offset}" for one, offset in sorted(offsets.items())),
    ]
    write_atomically(data_dir / HIGH_WATERMARKS_NAME, ("\n".join(lines) + "\n").encode())


def replica_directory(data_dir: Path, partition: TopicPartition) -> Path:
    """Return the path of a log of another home in a data directory."""
    name = log_directory_name(partition.topic, partition.index)
    return data_dir / REPLICAS_NAME / str(partition.home) / name


def validate_replica_name(partition: TopicPartition) -> None:
    """Validate that a partition can have a log here, whatever a controller says."""
    # Other names would lead out of the data directory, or be found by no start.
    try:
        validate_topic_name(partition.topic)
        log_directory_name(partition.topic, partition.index)
    except InvalidTopicError as error:
        raise StorageError(f"cannot create {partition}: {error}") from error
    if partition.home < 0 or partition.index < 0:
        raise StorageError(f"cannot create {partition}: no partition has this home and index")


class ReplicaLogs:
    """The logs of partitions with another home; changed by one thread at a time, read by any."""

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, Log] = {}
        self._checkpointed: dict[Path, dict[LogKey, RecoveryPoint]] = {}
        self._durable_homes: set[Path] = set()

    def get(self, partition: TopicPartition) -> Log | None:
        """Return the log of a partition, None if there is none."""
        return self._logs.get(partition)

    def all(self) -> list[Log]:
        """Return all logs."""
        return list(self._logs.values())

    def add(self, log: Log) -> None:
        """Add a log that was opened or created."""
        self._logs[log.partition] = log

    def forget(self, partition: TopicPartition) -> Log | None:
        """Remove and return the log of a partition, whose directory the caller moves away."""
        return self._logs.pop(partition, None)

    def make_directory(self, data_dir: Path, partition: TopicPartition) -> Path:
        """Create the directory of a log, and return it; `write_creation_id` makes it durable."""
        directory = replica_directory(data_dir, partition)
        directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        home = directory.parent
        if home not in self._durable_homes:
            sync_directory(home.parent)
            sync_directory(data_dir)
            self._durable_homes.add(home)
        return directory

    def write_checkpoints(self, data_dir: Path) -> None:
        """Write the recovery points of the logs in a data directory, unless none changed."""
        root = data_dir / REPLICAS_NAME
        points: dict[Path, dict[LogKey, RecoveryPoint]] = {
            home: {} for home in self._checkpointed if home.parent == root
        }
        for partition, log in list(self._logs.items()):
            home = log.directory.parent
            if home.parent == root:
                point = RecoveryPoint(log.flushed_offset, log.active_since_ms)
                points.setdefault(home, {})[partition.topic, partition.index] = point
        for home, of_home in points.items():
            if of_home != self._checkpointed.get(home):
                write_checkpoint(home, of_home)
                self._checkpointed[home] = of_home
