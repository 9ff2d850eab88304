"""The files beside the segments of a replicated log: epochs, creation id, and record.

The file of leader epochs is the one of later Kafka: a version, the number of entries, and for each
a line `EPOCH START_OFFSET`, both ascending. An entry is durable before the first message of its
epoch is written, so that no message is taken for one of an earlier epoch. Messages do not name
their epoch: a log whose file is lost has to be copied again.

The creation id is that of the topic, as a log of a former topic of the same name is no replica of
this one. The record has the controller's last orders (`replica_records`), from which the topic can
be made again if ZooKeeper's data are lost.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from broker.cluster_state import EpochStart
from broker.errors import StorageError
from broker.files import opened, reason_of, sync_directory, write_atomically
from broker.leader_epochs import LeaderEpochs
from broker.log.data_directory import read_counted_lines, read_or_ignore, write_counted_lines
from broker.log.segment import write_error
from broker.replica_records import ReplicaRecord

EPOCH_FILE_NAME = "leader-epoch-checkpoint"
_NONE = LeaderEpochs()


def read_epochs(directory: Path) -> LeaderEpochs:
    """Return the epochs in the file of a log's directory; none if it is missing or unreadable."""

    def parse(path: Path) -> LeaderEpochs:
        lines = read_counted_lines(path)
        return LeaderEpochs(tuple(EpochStart(*map(int, line.split(" "))) for line in lines))

    warning = "ignoring %s, the log is copied from its leader again: %s"
    return read_or_ignore(directory / EPOCH_FILE_NAME, parse, _NONE, warning)


class EpochFile:
    """The leader epochs of one log; changed by one thread at a time, read by any."""

    def __init__(self, directory: Path, epochs: LeaderEpochs = _NONE) -> None:
        self._path = directory / EPOCH_FILE_NAME
        self._lock = Lock()  # guards the file, against a move of its directory
        self._written = epochs
        self.epochs = epochs

    @contextmanager
    def moving_to(self, directory: Path) -> Iterator[None]:
        """Block changes while the file is copied; use the copy afterwards, unless that fails."""
        with self._lock:
            yield
            self._path = directory / EPOCH_FILE_NAME

    @property
    def is_due(self) -> bool:
        """Return whether an epoch that was begun is not in the file yet."""
        return self._written is not self.epochs

    def begin(self, epochs: LeaderEpochs) -> None:
        """Note that an epoch begins of which no message may be written before `settle`."""
        self.epochs = epochs

    def settle(self) -> None:
        """Write the epochs that were begun; raises as `replace`."""
        with self._lock:
            if self.is_due:
                self._write(self.epochs)

    def replace(self, epochs: LeaderEpochs) -> None:
        """Replace all epochs, durably; `StorageError` if the file cannot be written."""
        if epochs == self.epochs:
            return
        with self._lock:
            self._write(epochs)
            self.epochs = epochs

    def _write(self, epochs: LeaderEpochs) -> None:
        lines = [f"{one.epoch} {one.start_offset}" for one in epochs.entries]
        try:
            write_counted_lines(self._path, lines)
        except OSError as error:
            text = f"cannot write {self._path}: {reason_of(error)}"
            raise write_error(error)(text) from error
        self._written = epochs

    def remove(self) -> None:
        """Remove the file, durably: a log with messages and without the file is copied again."""
        with self._lock:
            try:
                self._path.unlink(missing_ok=True)
                sync_directory(self._path.parent)
            except OSError as error:
                raise StorageError(f"cannot remove {self._path}: {reason_of(error)}") from error
            self._written = self.epochs = _NONE


_START_NAME = "log-start-offset"


def read_start_offset(directory: Path) -> int:
    """Return where a log starts whose first records were deleted, 0 without the file."""
    return read_or_ignore(directory / _START_NAME, lambda path: int(path.read_text()), 0)


def write_start_offset(directory: Path, offset: int) -> None:
    """Write where a log starts, durably."""
    write_atomically(directory / _START_NAME, b"%d\n" % offset)


_CREATION_ID_NAME = "replica-creation-id"
_RECORD_NAME = "replica-record"


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

    def parse(path: Path) -> ReplicaRecord:
        # a crash can leave the end of a longer, earlier record behind the first line
        return ReplicaRecord.decode(path.read_bytes().partition(b"\n")[0])

    return read_or_ignore(directory / _RECORD_NAME, parse, None)


def write_record(directory: Path, record: ReplicaRecord) -> None:
    """Replace the record beside a replicated log, unless it is the same."""
    # In place: a failover changes all records of a broker at once, and a rename costs fifty times
    # as much. A power failure can leave an earlier record, or none that can be read: those of
    # other replicas, and the logs' epochs, remain.
    path, content = directory / _RECORD_NAME, record.encode() + b"\n"
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        if os.pread(fd, len(content) + 1, 0) != content:
            if os.pwrite(fd, content, 0) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.ftruncate(fd, len(content))
