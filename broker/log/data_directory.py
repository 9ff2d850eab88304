"""The data directory of one broker: its lock, owner, clean-shutdown marker and recovery points.

Owns the lock file, the broker id, the creator token, the clean-shutdown marker, the explicit
partition counts, the names of log directories and the recovery-point checkpoint. A lost or damaged
checkpoint costs time at the next start, never data. Its format:

    pylogctl-recovery-points 1
    TOPIC INDEX RECOVERY_POINT ACTIVE_SINCE_MS      (one line a log; -1 for an empty active segment)
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from broker.errors import ConfigError, InvalidTopicError, LogLockedError, StorageError
from broker.log.atomic_file import TEMPORARY_SUFFIX, sync_directory, write_all, write_atomically
from broker.topic import validate_topic_name

CHECKPOINT_NAME = "recovery-point-checkpoint"
_FIRST_LINE = "pylogctl-recovery-points 1"


class RecoveryPoint(NamedTuple):
    """The offset up to which a log is flushed, and the age of its active segment.

    `active_since_ms` is when the segment that held `offset` got its first message, None for an
    empty one.
    """

    offset: int
    active_since_ms: int | None


LogKey = tuple[str, int]
"""Topic and index of a log within its data directory."""


def write_checkpoint(data_dir: Path, points: Mapping[LogKey, RecoveryPoint]) -> None:
    """Replace a data directory's checkpoint.

    Raises:
        OSError: it cannot be written; the old one remains.
    """
    lines = [_FIRST_LINE]
    for (topic, index), point in sorted(points.items()):
        since_ms = -1 if point.active_since_ms is None else point.active_since_ms
        lines.append(f"{topic} {index} {point.offset} {since_ms}")
    write_atomically(data_dir / CHECKPOINT_NAME, ("\n".join(lines) + "\n").encode())


def read_checkpoint(data_dir: Path) -> dict[LogKey, RecoveryPoint] | None:
    """Return a data directory's recovery points, None without a readable checkpoint."""
    path = data_dir / CHECKPOINT_NAME
    try:
        lines = path.read_bytes().decode().split("\n")
        if lines[0] != _FIRST_LINE or lines[-1] != "":
            raise ValueError("its first line or its end is wrong")
        return dict(_parse_line(line) for line in lines[1:-1])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("ignoring checkpoint %s, all logs will be scanned: %s", path, error)
        return None


def _parse_line(line: str) -> tuple[LogKey, RecoveryPoint]:
    topic, index, offset, since_ms = line.rsplit(" ", 3)
    since = int(since_ms)
    return (topic, int(index)), RecoveryPoint(int(offset), None if since < 0 else since)


LOCK_NAME = ".lock"
_BROKER_ID_NAME = "broker-id"
_CLEAN_SHUTDOWN_NAME = ".pylog_clean_shutdown"
_PARTITION_COUNTS_NAME = "topic-partition-counts"
_CREATOR_NAME = "creator"
ZOOKEEPER_NAME = "zookeeper"
"""The data directory of an embedded ZooKeeper, if the broker was started with one."""
DELETING_NAME = "topic-being-deleted"
DELETED_NAME = ".deleted"
"""Holds the logs of deleted topics until they are removed."""

_OWN_NAMES = frozenset(
    (
        LOCK_NAME,
        _BROKER_ID_NAME,
        _CLEAN_SHUTDOWN_NAME,
        _PARTITION_COUNTS_NAME,
        _CREATOR_NAME,
        ZOOKEEPER_NAME,
        DELETING_NAME,
        DELETED_NAME,
        CHECKPOINT_NAME,
    )
)
_COUNTS_FIRST_LINE = "pylogctl-partition-counts 1"
_LOG_DIRECTORY = re.compile(r"(.+)_(0|[1-9][0-9]{0,9})", re.ASCII | re.DOTALL)
_NAME_MAX_BYTES = 255

logger = logging.getLogger(__name__)


def log_directory_name(topic: str, index: int) -> str:
    """Return the name of a log's directory.

    Raises:
        InvalidTopicError: the name is too long for the file system.
    """
    name = f"{topic}_{index}"
    if len(os.fsencode(name)) > _NAME_MAX_BYTES:
        raise InvalidTopicError(
            f"invalid topic name '{topic[:40]}...': its directory name would exceed "
            f"{_NAME_MAX_BYTES} bytes"
        )
    return name


def parse_log_directory_name(name: str) -> LogKey | None:
    """Return topic and index in the name of a log directory, None for another name."""
    found = _LOG_DIRECTORY.fullmatch(name)
    if found is None:
        return None
    try:
        validate_topic_name(found[1])
    except InvalidTopicError:
        return None
    return found[1], int(found[2])


class DataDirectory:
    """The data directory of this process's broker.

    Args:
        path: the directory; created if it does not exist.
        broker_id: the broker it belongs to, or will if it is new.
    """

    def __init__(self, path: Path, broker_id: int) -> None:
        self.path = path
        self._broker_id = broker_id
        self._lock_fd: int | None = None

    def lock(self) -> None:
        """Lock the directory for this process, and assign it to this broker if it is new.

        Raises:
            LogLockedError: another process has locked it, or it belongs to another broker.
            ConfigError: it cannot be created or written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            self._take_lock(fd)
            self._validate_broker_id()
        except OSError as error:
            os.close(fd)
            raise self._unusable(error) from error
        except LogLockedError:
            os.close(fd)
            raise
        self._lock_fd = fd

    def unlock(self) -> None:
        """Release the lock, if it is held."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def is_clean(self) -> bool:
        """Return whether the last broker here flushed and closed every log."""
        return (self.path / _CLEAN_SHUTDOWN_NAME).exists()

    def mark_clean(self) -> None:
        """Write the clean-shutdown marker: every log was flushed and closed."""
        write_atomically(self.path / _CLEAN_SHUTDOWN_NAME, b"")

    def mark_in_use(self) -> None:
        """Remove the clean-shutdown marker, durably, before anything else is written."""
        (self.path / _CLEAN_SHUTDOWN_NAME).unlink(missing_ok=True)
        sync_directory(self.path)

    def creator_token(self, host: str, time_ms: int) -> str:
        """Return the token that identifies the broker of this directory.

        Args:
            host: the broker's host, for a new token.
            time_ms: the time, for a new token.

        Returns:
            The same `<host>-<milliseconds>` at every start, so that a restarted broker recognizes
            its own node in the registry.

        Raises:
            StorageError: a new token cannot be stored.
        """
        path = self.path / _CREATOR_NAME
        try:
            if not path.exists():
                write_atomically(path, f"{host}-{time_ms}\n".encode())
            return path.read_text().strip()
        except OSError as error:
            raise StorageError(f"cannot keep {path}: {error.strerror}") from error

    def log_directories(self) -> dict[LogKey, Path]:
        """Return the directories of all logs; others are ignored with a warning."""
        found: dict[LogKey, Path] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                key = parse_log_directory_name(entry.name) if entry.is_dir() else None
                if key is not None:
                    found[key] = Path(entry.path)
                elif entry.name.removesuffix(TEMPORARY_SUFFIX) not in _OWN_NAMES:
                    logger.warning("%s is not a log: ignored", entry.path)
        return found

    def read_partition_counts(self) -> dict[str, int]:
        """Return the explicit partition counts by topic.

        Raises:
            ConfigError: the file is damaged.
        """
        path = self.path / _PARTITION_COUNTS_NAME
        try:
            lines = path.read_bytes().decode().split("\n")
            if lines[0] != _COUNTS_FIRST_LINE or lines[-1] != "":
                raise ValueError("its first line or its end is wrong")
            pairs = [line.rsplit(" ", 1) for line in lines[1:-1]]
            return {topic: int(count) for topic, count in pairs}
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ConfigError(
                f"cannot read the partition counts {path}: {error}; "
                "correct it, or remove it to use the configured counts"
            ) from error

    def write_partition_counts(self, counts: Mapping[str, int]) -> None:
        """Replace the explicit partition counts by topic.

        Raises:
            StorageError: they cannot be written; the old ones remain.
        """
        lines = [_COUNTS_FIRST_LINE, *(f"{topic} {counts[topic]}" for topic in sorted(counts)), ""]
        path = self.path / _PARTITION_COUNTS_NAME
        try:
            write_atomically(path, "\n".join(lines).encode())
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error

    def _take_lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LogLockedError(
                f"data directory {self.path} is in use by {_describe_holder(fd)}"
            ) from error
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        write_all(fd, f"{os.getpid()} {self._broker_id}\n".encode())

    def _validate_broker_id(self) -> None:
        path = self.path / _BROKER_ID_NAME
        if not path.exists():
            write_atomically(path, f"{self._broker_id}\n".encode())
            return
        owner = path.read_text().strip()
        if owner != str(self._broker_id):
            raise LogLockedError(
                f"data directory {self.path} belongs to broker {owner}, not to broker "
                f"{self._broker_id}: use that id, or another directory"
            )

    def _unusable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"cannot write to data directory {self.path}: {error.strerror}; "
            "make it writable for this user, or set log.dir to another directory"
        )


def read_broker_id(data_dir: Path) -> int | None:
    """Return the id of the broker a directory belongs to, None for any other directory."""
    try:
        text = (data_dir / _BROKER_ID_NAME).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def validate_not_in_use(data_dir: Path) -> None:
    """Validate that no broker has a directory open; for tools that change its files.

    Raises:
        LogLockedError: a broker has it open.
    """
    try:
        fd = os.open(data_dir / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LogLockedError(
            f"data directory {data_dir} is in use by {_describe_holder(fd)}"
        ) from error
    finally:
        os.close(fd)


def holder_pid(data_dir: Path) -> int | None:
    """Return the id of the process that has a directory open as its data directory, else None."""
    try:
        validate_not_in_use(data_dir)
    except LogLockedError:
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
