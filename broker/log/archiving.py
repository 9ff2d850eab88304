"""Archiving: what a policy does with segments past retention, and the archive that one fills.

An archive has a gzip file of each segment, `<archive>/<topic>_<partition>/<segment>.gz`, with
the time of the segment, and a retention of its own. A file is written beside its place first, and
read back: what a crash leaves of it is written again the next time.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import shutil
import zlib
from pathlib import Path
from typing import NamedTuple

from broker.config import BrokerConfig
from broker.errors import StorageError
from broker.files import DIRECTORY_MODE, open_file, sync_directory
from broker.log.data_directory import ARCHIVE_SUFFIX, Space, space_of
from broker.log.expiry import excess_count, expired_count
from broker.topic import TopicPartition
from broker.units import format_size

LEAST_FREE = 0.1
"""An archive whose file system has a smaller share free is nearly full."""
_BLOCK_BYTES = 1 << 20
_COMPRESS_LEVEL = 6

logger = logging.getLogger(__name__)


def prepare_removal(
    policy: str, config: BrokerConfig, partition: TopicPartition, path: Path
) -> None:
    """Do what a cleanup policy does with a closed segment before it is removed.

    The one place that knows them by their names; plug-ins are in `policies`. After a
    `StorageError` the segment stays.
    """
    if policy != "archive":
        return
    if config.archive_dir is None:
        raise StorageError(
            f"cleanup.policy={policy} needs log.archive.dir, which broker {config.broker_id} does "
            f"not have: {path} is kept; set it, and start the broker again"
        )
    archive_segment(config.archive_dir, partition, path, config.broker_id)


class ArchivedSegment(NamedTuple):
    """A file of an archive."""

    path: Path
    base_offset: int
    size: int  # compressed
    time_ms: int  # of its last message


class Archive:
    """The archive of a broker: the space that it has, and why segments do not get there."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.failure: StorageError | None = None
        """Why a segment was kept, the last time that retention ran; None if none was."""
        self.space: Space | None = None
        """Of its file system, when `measure` last looked; None if it cannot be asked."""
        self._reported = False

    @property
    def problem(self) -> str | None:
        """Return why segments are kept, or will soon be; None if nothing is wrong."""
        if self.failure is not None:
            return str(self.failure)
        if self.space and self.space.free_bytes < LEAST_FREE * self.space.size_bytes:
            return (
                f"the archive {self.path} has {format_size(self.space.free_bytes)} free of "
                f"{format_size(self.space.size_bytes)}: once it is full, segments past retention "
                "are kept; make room, or set log.archive.retention.hours or .size"
            )
        return None

    def measure(self) -> None:
        """Look up its space, and log when it begins to fill and when it has room again."""
        if self.path is None:
            return
        self.space = space_of(self.path)
        problem = self.problem
        if problem and not self._reported and self.failure is None:  # logged where it happened
            logger.warning("%s", problem)
        elif self._reported and not problem:
            logger.warning("segments can be archived to %s again", self.path)
        self._reported = problem is not None

    def note(self, failure: StorageError | None) -> None:
        """Note what a run of retention met."""
        self.failure = failure
        self.measure()


def archived_segments(directory: Path) -> list[ArchivedSegment]:
    """Return the files of a partition's archive by offset; none if it is not there."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in directory.glob(f"*{ARCHIVE_SUFFIX}"):
            number = path.name.partition(".")[0]
            status = path.stat()
            if number.isdecimal() and path.is_file():
                time_ms = status.st_mtime_ns // 1_000_000
                found.append(ArchivedSegment(path, int(number), status.st_size, time_ms))
    return sorted(found, key=lambda one: one.base_offset)


def prune(config: BrokerConfig, now_ms: int) -> None:
    """Remove the files past the retention of archives; an error is logged."""
    if config.archive_dir is None or not config.archive_dir.is_dir():
        return
    retention_ms = config.archive_retention_ms or now_ms  # 0: for good, as nothing is so old
    try:
        for directory in config.archive_dir.iterdir():
            found = archived_segments(directory) if directory.is_dir() else []
            count = expired_count(found, now_ms=now_ms, retention_ms=retention_ms)
            kept = found[count:]
            count += excess_count(kept, retention_bytes=config.archive_retention_bytes)
            for one in found[:count]:
                one.path.unlink(missing_ok=True)  # another broker may share the archive
                logger.info("removed %(file)s, past the retention of archives", {"file": one.path})
    except OSError as error:
        logger.error("retention of the archive %s: %s", config.archive_dir, error)


def archive_segment(archive: Path, partition: TopicPartition, path: Path, broker: int = 0) -> Path:
    """Compress a closed segment into the archive, verify the copy, and return its path.

    What a topic of the same name has left there, before it was deleted, is not overwritten.
    """
    directory = archive / f"{partition.topic}_{partition.name}"
    target = directory / f"{path.name}{ARCHIVE_SUFFIX}"
    temporary = directory / f"{target.name}.{broker}.tmp"  # brokers may share the archive
    try:
        if _has(target, path):
            return target
        directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        target_fd = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(target_fd, "wb") as compressed, path.open("rb") as source:
            with gzip.GzipFile(
                filename="", mode="wb", fileobj=compressed, compresslevel=_COMPRESS_LEVEL, mtime=0
            ) as packer:
                shutil.copyfileobj(source, packer, _BLOCK_BYTES)
            compressed.flush()
            modified_ns = path.stat().st_mtime_ns  # by which readers find the messages of a time
            os.utime(target_fd, ns=(modified_ns, modified_ns))
            os.fsync(compressed.fileno())
        if not _has(temporary, path):
            raise OSError("it read back as other bytes than were written")
        temporary.replace(target)
        sync_directory(directory)
        sync_directory(archive)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot archive {path} to {target}: {error}") from error
    return target


def _has(archived: Path, segment: Path) -> bool:
    """Return whether a file of an archive has the bytes of a segment; false if it is damaged.

    False also if it has but the first of them: a replica may begin another segment earlier.
    """
    try:
        with gzip.open(archived, "rb") as copy, segment.open("rb") as source:
            for block in iter(lambda: source.read(_BLOCK_BYTES), b""):
                found = copy.read(len(block))
                if not block.startswith(found):
                    raise FileExistsError(
                        "there are other messages in it, maybe of a deleted topic of that name: "
                        f"move {archived.parent} out of the archive"
                    )
                if len(found) < len(block):
                    return False
            copy.read(1)  # at its end is its checksum
    except (FileNotFoundError, gzip.BadGzipFile, EOFError, zlib.error):
        return False
    return True
