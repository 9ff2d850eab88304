"""What is kept beside a replicated log, besides its segments.

The creation id of its topic, as a log of a former topic of the same name is no replica of this one;
its leader epochs (`epoch_file`); and a record of the controller's last orders (`replica_records`),
from which its topic can be made again if ZooKeeper's data are lost.
"""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

from broker.files import open_file, sync_directory, write_atomically
from broker.replica_records import ReplicaRecord

_CREATION_ID_NAME = "replica-creation-id"
_RECORD_NAME = "replica-record"

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
        # a crash can leave the end of a longer, earlier record behind the first line
        return ReplicaRecord.decode(path.read_bytes().partition(b"\n")[0])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("ignoring %s: %s", path, error)
        return None


def write_record(directory: Path, record: ReplicaRecord) -> None:
    """Replace the record beside a replicated log, unless it is the same."""
    # In place: a failover changes all records of a broker at once, and a rename costs fifty times
    # as much. A power failure can leave an earlier record, or none that can be read: those of
    # other replicas, and the logs' epochs, remain.
    path, content = directory / _RECORD_NAME, record.encode() + b"\n"
    fd = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.pread(fd, len(content) + 1, 0) != content:
            if os.pwrite(fd, content, 0) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.ftruncate(fd, len(content))
    finally:
        os.close(fd)
