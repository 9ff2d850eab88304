"""One data directory of a broker: its lock, owner, clean-shutdown marker and what is where in it.

Owns the lock file, the ids of broker and cluster (in `meta.properties`, as later Kafka has them),
the creator token, the clean-shutdown marker, the explicit partition counts, and the names of all
files and log directories. A partition whose home is another broker has its log in
`replicas/HOME/TOPIC_INDEX`, any other in `TOPIC_INDEX`; one of Kafka's format has it in
`TOPIC-INDEX`. How several directories of one broker relate is the subject of `directories`.

The explicit partition counts are also the record of topics of Kafka's format, with their ids:

    pylogctl-partition-counts 1
    TOPIC COUNT                                     (one line a topic)
    TOPIC COUNT kafka=ID                            (of Kafka's format)

Also its checkpoints. A lost or damaged one costs time at the next start, never data. The file of
recovery points:

    pylogctl-recovery-points 1
    TOPIC INDEX RECOVERY_POINT ACTIVE_SINCE_MS      (one line a log; of Kafka's format: .. kafka)

The last two numbers are -1 for a recovery point that is unknown, and for an empty active segment.
The file of high watermarks has the form of later Kafka: a version, their number, and lines
`TOPIC PARTITION OFFSET`.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from broker import files
from broker.config import load_file
from broker.errors import ConfigError, InvalidTopicError, LogLockedError, StorageError
from broker.topic import (
    FORMAT_07,
    FORMAT_KAFKA,
    NO_HOME,
    TopicPartition,
    log_directory_name,
    validate_new_topic_name,
    validate_topic_name,
)

CHECKPOINT_NAME = "recovery-point-checkpoint"
LOCK_NAME = ".lock"
_META_NAME = "meta.properties"
_BROKER_ID = "broker.id"
_CLUSTER_ID = "cluster.id"
_INCARNATION = "incarnation"
_HAD_ORDERS = "had.orders"
_CLEAN_SHUTDOWN_NAME = ".pylog_clean_shutdown"
_PARTITION_COUNTS_NAME = "topic-partition-counts"
_CREATOR_NAME = "creator"
CREATION_IDS_NAME = "topic-creation-ids"
ZOOKEEPER_NAME = "zookeeper"
"""The data directory of an embedded ZooKeeper, if the broker was started with one."""
DELETING_NAME = "topic-being-deleted"
STATE_CHANGES_PREFIX = "state-changes-"
"""Of the files of the state-change log; a number follows."""
REPLICAS_NAME = "replicas"
"""Holds the logs of partitions of other homes, of which this broker has a replica."""
HIGH_WATERMARKS_NAME = "replication-offset-checkpoint"
CLEANER_OFFSETS_NAME = "cleaner-offset-checkpoint"
DELETED_NAME = ".deleted"
"""Holds the logs of deleted topics until they are removed."""
CLUSTER_KEY_NAME = "cluster.key"
"""What brokers prove themselves with, for its owner only."""
SETTINGS_NAME = "settings"
"""The last good settings that came from ZooKeeper, used where its nodes are damaged at a start."""
SCHEMAS_NAME = "schemas.json"
"""The registry of schemas of a broker without ZooKeeper."""
MOVING_NAME = ".moving"
"""Holds logs that are being copied here from another data directory."""
MOVED_FROM_NAME = "moved-from"
"""In a log's directory: the path of its former one, until that is removed."""
PLACES_NAME = "partition-directories"
ARCHIVE_SUFFIX = ".gz"
"""Follows the name of a segment in the archive."""

_OWN_NAMES = frozenset(
    (
        LOCK_NAME,
        _META_NAME,
        _CLEAN_SHUTDOWN_NAME,
        _PARTITION_COUNTS_NAME,
        _CREATOR_NAME,
        CREATION_IDS_NAME,
        ZOOKEEPER_NAME,
        DELETING_NAME,
        DELETED_NAME,
        REPLICAS_NAME,
        HIGH_WATERMARKS_NAME,
        CLEANER_OFFSETS_NAME,
        MOVING_NAME,
        PLACES_NAME,
        CHECKPOINT_NAME,
        SETTINGS_NAME,
        CLUSTER_KEY_NAME,
        SCHEMAS_NAME,
    )
)
_COUNTS_FIRST_LINE = "pylogctl-partition-counts 1"
_LOG_DIRECTORY = re.compile(r"(.+)([_-])(0|[1-9][0-9]{0,9})", re.ASCII | re.DOTALL)
_KAFKA_MARK = f"{FORMAT_KAFKA}="
_TOPIC_ID = re.compile("[0-9a-f]{32}")

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_S = TypeVar("_S")


def parse_log_directory_name(name: str, home: int) -> TopicPartition | None:
    """Return the partition whose log a directory has by its name, None for another name.

    `home` is that of partitions that have one.
    """
    found = _LOG_DIRECTORY.fullmatch(name)
    if found is None:
        return None
    topic, separator, index = found.groups()
    try:
        if separator == "-":
            validate_new_topic_name(topic, format=FORMAT_KAFKA)
            home = NO_HOME
        else:
            validate_topic_name(topic)
    except InvalidTopicError:
        return None
    return TopicPartition(topic, home, int(index))


class TopicRecord(NamedTuple):
    """What a broker has on record of a topic: its explicit partition count, and its format."""

    partition_count: int
    topic_id: str = ""
    """Of a topic of Kafka's format, its creation id: the 32 hexadecimal digits of a UUID."""

    @property
    def format(self) -> str:
        """Return the topic's format, for life."""
        return FORMAT_KAFKA if self.topic_id else FORMAT_07


class UnusableDirectoryError(ConfigError):
    """A data directory cannot be created, read or written."""


class Space(NamedTuple):
    """The space of a file system."""

    free_bytes: int  # for this user
    size_bytes: int


def space_of(path: Path) -> Space | None:
    """Return the space of a path's file system, None if it cannot be asked."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return Space(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


class DataDirectory:
    """A data directory of this process's broker; `lock` creates it."""

    def __init__(self, path: Path, broker_id: int) -> None:
        self.path = path
        self.failure: StorageError | None = None
        """Why the directory is not in use, None while it is."""
        self.space: Space | None = None
        """Of its file system, when `measure` last looked; None if it cannot be asked."""
        self._broker_id = broker_id
        self._durable_homes: set[Path] = set()
        self._meta: dict[str, str] = {}
        self._lock_fd: int | None = None
        self._identity = (0, 0)  # device and inode: another file system may be mounted there
        self.is_suspect = False
        """Whether the last checkpoint here could not be written."""

    def has_owner(self) -> bool:
        """Return whether a broker has used the directory before."""
        try:
            (self.path / _META_NAME).stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unusable(error) from error
        return True

    def lock(self) -> None:
        """Lock the directory for this process, and assign it to this broker if it is new.

        Raises `LogLockedError` if another process has locked it or it is another broker's,
        `UnusableDirectoryError` if it cannot be written to, `ConfigError` if its ids are damaged.
        """
        try:
            self.path.mkdir(files.DIRECTORY_MODE, parents=True, exist_ok=True)
            fd = files.open_file(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            self._take_lock(fd)
            self._validate_broker_id()
            self._identity = _identity_of(self.path)
        except OSError as error:
            os.close(fd)
            raise self._unusable(error) from error
        except (LogLockedError, ConfigError):
            os.close(fd)
            raise
        self._lock_fd = fd

    def unlock(self) -> None:
        """Release the lock, if it is held."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    @property
    def cluster_id(self) -> str | None:
        """Return the cluster of the locked directory, None if it never had one."""
        return self._meta.get(_CLUSTER_ID)

    def join_cluster(self, cluster_id: str) -> None:
        """Note the directory's cluster for good; `LogLockedError` if it belongs to another."""
        known = self.cluster_id
        if known == cluster_id:
            return
        path = self.path / _META_NAME
        if known is not None:
            raise LogLockedError(
                f"data directory {self.path} belongs to cluster {known}, not to cluster "
                f"{cluster_id}: use that cluster's ZooKeeper, or another directory; to move the "
                f"data to this cluster for good, remove {_CLUSTER_ID} from {path}"
            )
        try:
            self._write_meta({**self._meta, _CLUSTER_ID: cluster_id})
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    @property
    def had_orders(self) -> bool:
        """Return whether a broker has carried out orders of a controller with this directory."""
        return _HAD_ORDERS in self._meta

    def note_orders(self) -> None:
        """Note that it has; unless the disk refuses, which others will tell of."""
        if not self.had_orders:
            with suppress(OSError):
                self._write_meta({**self._meta, _HAD_ORDERS: "true"})

    @property
    def incarnation(self) -> int:
        """Return the number of starts here after an unclean stop or a loss of messages."""
        text = self._meta.get(_INCARNATION, "")
        return int(text) if text.isdecimal() else 0

    def write_incarnation(self, incarnation: int) -> None:
        """Store the number of the broker's incarnation, if it has changed."""
        if incarnation != self.incarnation:
            self._write_meta({**self._meta, _INCARNATION: str(incarnation)})

    def _write_meta(self, meta: dict[str, str]) -> None:
        lines = [f"{name}={value}\n" for name, value in meta.items()]
        files.write_atomically(self.path / _META_NAME, "".join(lines).encode())
        self._meta = meta

    def is_clean(self) -> bool:
        """Return whether the last broker here flushed and closed every log."""
        return (self.path / _CLEAN_SHUTDOWN_NAME).exists()

    def mark_clean(self) -> None:
        """Write the clean-shutdown marker: every log was flushed and closed."""
        files.write_atomically(self.path / _CLEAN_SHUTDOWN_NAME, b"")

    def find_failure(self, *, is_suspect: bool, sync: Callable[[int], None]) -> OSError | None:
        """Return why the directory cannot be used any more, None if it can.

        A full disk is no failure: retention and deletions make room. A suspect directory, whose
        disk has refused something, is written to and synced by `sync`.
        """
        assert self._lock_fd is not None
        try:
            if _identity_of(self.path) != self._identity:
                return OSError(errno.ENOENT, "another directory, or none, has its place")
            if os.statvfs(self.path).f_flag & os.ST_RDONLY:
                return OSError(errno.EROFS, os.strerror(errno.EROFS))
            if is_suspect or self.is_suspect:
                self._write_holder(self._lock_fd)
                sync(self._lock_fd)
        except OSError as error:
            return None if error.errno in (errno.ENOSPC, errno.EDQUOT) else error
        return None

    def free_bytes(self) -> int | None:
        """Return the free bytes of the directory's file system; None if it cannot be asked."""
        self.measure()
        return self.space.free_bytes if self.space else None

    def measure(self) -> None:
        """Look up the space of the directory's file system; a disk that hangs holds this up."""
        self.space = space_of(self.path)

    def mark_in_use(self) -> None:
        """Remove the clean-shutdown marker, durably, before anything else is written."""
        (self.path / _CLEAN_SHUTDOWN_NAME).unlink(missing_ok=True)
        files.sync_directory(self.path)

    def has_creator(self) -> bool:
        """Return whether the directory has a token that identifies its broker."""
        return (self.path / _CREATOR_NAME).exists()

    def creator_token(self, proposed: str) -> str:
        """Return the token of this directory's broker, always the same: `proposed` at first."""
        path = self.path / _CREATOR_NAME
        try:
            if not path.exists():
                files.write_atomically(path, f"{proposed}\n".encode())
            return path.read_text().strip()
        except OSError as error:
            raise StorageError(f"cannot keep {path}: {error.strerror}") from error

    def path_of(self, partition: TopicPartition) -> Path:
        """Return the directory of a partition's log, whether it is there or not."""
        name = log_directory_name(partition.topic, partition.index, partition.format)
        if partition.home in (self._broker_id, NO_HOME):
            return self.path / name
        return self.path / REPLICAS_NAME / str(partition.home) / name

    def make_log_directory(self, partition: TopicPartition) -> Path:
        """Create the directory of a log; it is durable once its log is flushed, or marked."""
        directory = self.path_of(partition)
        home = directory.parent
        # not the data directory itself, as its disk may be gone
        directory.mkdir(files.DIRECTORY_MODE, parents=home != self.path, exist_ok=True)
        if home != self.path and home not in self._durable_homes:
            files.sync_directory(home.parent)
            files.sync_directory(self.path)
            self._durable_homes.add(home)
        return directory

    def logs(self) -> dict[TopicPartition, Path]:
        """Return the directories of all logs; others are ignored with a warning."""
        found: dict[TopicPartition, Path] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                partition = None
                if entry.is_dir():
                    partition = parse_log_directory_name(entry.name, self._broker_id)
                if partition is not None:
                    found[partition] = Path(entry.path)
                elif not _is_own(entry.name):
                    logger.warning("%s is not a log: ignored", entry.path)
        root = self.path / REPLICAS_NAME
        homes = [one for one in root.iterdir() if one.name.isdecimal()] if root.exists() else []
        for home in homes:
            for path in home.iterdir():
                partition = parse_log_directory_name(path.name, int(home.name))
                if partition is not None and partition.home != NO_HOME and path.is_dir():
                    found[partition] = path
        return found

    def unfinished_copies(self) -> list[Path]:
        """Return the copies of logs that a move did not finish."""
        moving = self.path / MOVING_NAME
        return list(moving.iterdir()) if moving.is_dir() else []

    def read_topics(self) -> dict[str, TopicRecord]:
        """Return the records of topics by name; `ConfigError` if the file is damaged."""
        path = self.path / _PARTITION_COUNTS_NAME
        try:
            return dict(map(_parse_topic, read_lines(path, _COUNTS_FIRST_LINE)))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ConfigError(
                f"cannot read the partition counts {path}: {error}; "
                "correct it, or remove it to use the configured counts"
            ) from error

    def write_topics(self, topics: Mapping[str, TopicRecord]) -> None:
        """Replace the records of topics by name; on an error the old ones remain."""
        lines = [
            f"{topic} {one.partition_count}"
            + (f" {_KAFKA_MARK}{one.topic_id}" if one.topic_id else "")
            for topic, one in sorted(topics.items())
        ]
        path = self.path / _PARTITION_COUNTS_NAME
        try:
            write_lines(path, _COUNTS_FIRST_LINE, lines)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    def _take_lock(self, fd: int) -> None:
        _lock(fd, self.path, fcntl.LOCK_EX)
        os.ftruncate(fd, self._write_holder(fd))

    def _write_holder(self, fd: int) -> int:
        """Overwrite the lock file's content with the holder, which needs no room on a full disk."""
        content = f"{os.getpid()} {self._broker_id}\n".encode()
        os.lseek(fd, 0, os.SEEK_SET)
        files.write_all(fd, content)
        return len(content)

    def _validate_broker_id(self) -> None:
        path = self.path / _META_NAME
        if not path.exists():
            self._write_meta({"version": "0", _BROKER_ID: str(self._broker_id)})
            return
        self._meta = load_file(path)
        owner = self._meta.get(_BROKER_ID)
        if owner != str(self._broker_id):
            raise LogLockedError(
                f"data directory {self.path} belongs to broker {owner}, not to broker "
                f"{self._broker_id}: use that id, or another directory"
            )

    def _unusable(self, error: OSError) -> UnusableDirectoryError:
        return UnusableDirectoryError(
            f"cannot write to data directory {self.path}: {error.strerror}; "
            "make it writable for this user, or set log.dir to another directory"
        )


def _parse_topic(line: str) -> tuple[str, TopicRecord]:
    rest, mark, topic_id = line.rpartition(f" {_KAFKA_MARK}")  # no count ends like that
    if mark and not _TOPIC_ID.fullmatch(topic_id):
        raise ValueError(f"'{topic_id}' is no topic id")
    topic, count = (rest if mark else line).rsplit(" ", 1)
    return topic, TopicRecord(int(count), topic_id if mark else "")


def _is_own(name: str) -> bool:
    """Return whether a data directory has a file of this name that is no log."""
    return name.removesuffix(files.TEMPORARY_SUFFIX) in _OWN_NAMES or name.startswith(
        STATE_CHANGES_PREFIX
    )


def _identity_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def read_broker_id(data_dir: Path) -> int | None:
    """Return the id of the broker a directory belongs to, None for any other directory."""
    path = data_dir / _META_NAME
    text = load_file(path).get(_BROKER_ID, "") if path.exists() else ""
    return int(text) if text.isdecimal() else None


def validate_not_in_use(data_dir: Path) -> None:
    """Validate, for tools that change its files, that no broker has a directory open."""
    with held_by_tool(data_dir):
        pass


@contextmanager
def held_by_tool(data_dir: Path) -> Iterator[None]:
    """Keep brokers from opening a directory, which none has open (else `LogLockedError`)."""
    try:
        fd = os.open(data_dir / LOCK_NAME, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        yield
        return
    except OSError as error:
        raise LogLockedError(
            f"cannot tell whether a broker has {data_dir} open: {LOCK_NAME}: "
            f"{files.reason_of(error)}"
        ) from error
    try:
        _lock(fd, data_dir, fcntl.LOCK_SH)
        _lock_as_java(fd, data_dir)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, data_dir: Path, kind: int) -> None:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LogLockedError(
            f"data directory {data_dir} is in use by {_describe_holder(fd)}"
        ) from error


def _lock_as_java(fd: int, data_dir: Path) -> None:
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise LogLockedError(
            f"data directory {data_dir} is in use by another process, such as a Kafka broker"
        ) from error


def holder_pid(data_dir: Path) -> int | None:
    """Return the id of the process that has a directory open as its data directory, else None."""
    try:
        validate_not_in_use(data_dir)
    except LogLockedError:
        with suppress(OSError):
            words = _holder_words((data_dir / LOCK_NAME).read_bytes())
            return int(words[0]) if words else None
    return None


def _describe_holder(fd: int) -> str:
    words = _holder_words(os.pread(fd, 64, 0))
    return f"process {words[0]} (broker {words[1]})" if words else "another process"


def _holder_words(content: bytes) -> list[str]:
    """Return process id and broker id in the content of a lock file; empty for other content."""
    words = content.decode(errors="replace").split()
    return words if len(words) == 2 and all(map(str.isdecimal, words)) else []


_FIRST_LINE = "pylogctl-recovery-points 1"
_COUNTED_VERSION = "0"


class RecoveryPoint(NamedTuple):
    """The offset up to which a log is flushed, None if unknown, and the age of its active segment.

    `active_since_ms` is when that segment got its first message, None if it is empty.
    """

    offset: int | None
    active_since_ms: int | None


NOTHING_FLUSHED = RecoveryPoint(0, None)
UNKNOWN = RecoveryPoint(None, None)


def write_recovery_points(directory: Path, points: Mapping[TopicPartition, RecoveryPoint]) -> None:
    """Replace the recovery points in a directory of logs; on an `OSError` the old ones remain."""
    lines = []
    for partition, point in sorted(points.items()):
        offset, since_ms = (-1 if number is None else number for number in point)
        mark = f" {FORMAT_KAFKA}" if partition.format == FORMAT_KAFKA else ""
        lines.append(f"{partition.topic} {partition.index} {offset} {since_ms}{mark}")
    write_lines(directory / CHECKPOINT_NAME, _FIRST_LINE, lines)


def read_recovery_points(directory: Path, home: int) -> dict[TopicPartition, RecoveryPoint] | None:
    """Return the recovery points in a directory of logs, None without a readable checkpoint.

    `home` is that of partitions that have one.
    """

    def parse(path: Path) -> dict[TopicPartition, RecoveryPoint]:
        return dict(_parse_recovery_point(line, home) for line in read_lines(path, _FIRST_LINE))

    warning = "ignoring checkpoint %s, all logs will be scanned: %s"
    return read_or_ignore(directory / CHECKPOINT_NAME, parse, None, warning)


def point_of(
    partition: TopicPartition, points: Mapping[TopicPartition, RecoveryPoint] | None
) -> RecoveryPoint:
    """Return the recovery point of a log among those of its directory, as they were read."""
    # A log not in the checkpoint was created after it: nothing of it is flushed.
    return UNKNOWN if points is None else points.get(partition, NOTHING_FLUSHED)


def _parse_recovery_point(line: str, home: int) -> tuple[TopicPartition, RecoveryPoint]:
    whole = line.removesuffix(f" {FORMAT_KAFKA}")  # other lines end with a number
    topic, index, *numbers = whole.rsplit(" ", 3)
    offset, since_ms = (None if int(one) < 0 else int(one) for one in numbers)
    partition = TopicPartition(topic, home if whole == line else NO_HOME, int(index))
    return partition, RecoveryPoint(offset, since_ms)


def read_or_ignore(
    path: Path, parse: Callable[[Path], _T], default: _S, warning: str = "ignoring %s: %s"
) -> _T | _S:
    """Return what a file holds; the default if it is missing, or damaged, which is logged."""
    try:
        return parse(path)
    except FileNotFoundError:
        return default
    except (OSError, ValueError, TypeError) as error:
        logger.warning(warning, path, error)
        return default


def write_lines(path: Path, first_line: str, lines: Iterable[str]) -> None:
    """Replace a file of lines below one that names its form; on an `OSError` it stays."""
    files.write_atomically(path, "\n".join((first_line, *lines, "")).encode())


def read_lines(path: Path, first_line: str) -> list[str]:
    """Return the lines of such a file below the first; `ValueError` if it is damaged."""
    first, *lines, end = path.read_bytes().decode().split("\n")
    if first != first_line or end:
        raise ValueError("its first line or its end is wrong")
    return lines


def write_counted_lines(path: Path, lines: Sequence[str]) -> None:
    """Replace a checkpoint of later Kafka's form: a version, the number of lines, and these."""
    content = "\n".join((_COUNTED_VERSION, str(len(lines)), *lines, ""))
    files.write_atomically(path, content.encode())


def read_counted_lines(path: Path) -> list[str]:
    """Return the lines of such a checkpoint; `ValueError` if it is damaged."""
    version, count, *lines, end = path.read_bytes().decode().split("\n")
    if version != _COUNTED_VERSION or end or int(count) != len(lines):
        raise ValueError("its version, its length or its end is wrong")
    return lines


def write_high_watermarks(data_dir: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the stored high watermarks; on an `OSError` the old ones remain."""
    write_offsets(data_dir / HIGH_WATERMARKS_NAME, offsets)


def read_high_watermarks(data_dir: Path) -> dict[TopicPartition, int]:
    """Return the stored high watermarks, none if unreadable: leaders send present ones."""
    return read_offsets(data_dir / HIGH_WATERMARKS_NAME)


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a file of offsets, one a partition; on an `OSError` the old one remains."""
    lines = [f"{one.topic} {one.name} {offset}" for one, offset in sorted(offsets.items())]
    write_counted_lines(path, lines)


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets in such a file; none if it is unreadable, which is logged."""

    def parse(path: Path) -> dict[TopicPartition, int]:
        return dict(map(_parse_offset, read_counted_lines(path)))

    return read_or_ignore(path, parse, {})


def _parse_offset(line: str) -> tuple[TopicPartition, int]:
    topic, name, offset = line.rsplit(" ", 2)
    return TopicPartition.named(topic, name), int(offset)
