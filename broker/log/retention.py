"""Retention: which segments are past their age or size, archiving and removing them.

Runs on a thread of its own; files are archived and deleted outside a log's append lock, and fetches
in flight keep their descriptors. An archived segment, always a whole one, is
`<archive>/<topic>_<home>-<index>/<segment>.gz`.
"""

from __future__ import annotations

import contextlib
import datetime
import gzip
import logging
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from broker.clock import Clock
from broker.errors import StorageError
from broker.files import DIRECTORY_MODE, open_file, sync_directory
from broker.log.log import Log
from broker.log.segment import ARCHIVE_SUFFIX, Segment
from broker.protocol.checksum import crc32
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig

_BLOCK_BYTES = 1 << 20
_COMPRESS_LEVEL = 6


def archive_segment(archive_dir: Path, partition: TopicPartition, path: Path) -> Path:
    """Compress a closed segment into the archive, verify the copy, and return its path."""
    directory = archive_dir / f"{partition.topic}_{partition.name}"
    target = directory / f"{path.name}{ARCHIVE_SUFFIX}"
    temporary = directory / f"{target.name}.tmp"
    try:
        directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        target_fd = open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(target_fd, "wb") as compressed, path.open("rb") as source:
            with gzip.GzipFile(
                filename="", mode="wb", fileobj=compressed, compresslevel=_COMPRESS_LEVEL, mtime=0
            ) as packer:
                for block in iter(lambda: source.read(_BLOCK_BYTES), b""):
                    packer.write(block)
            compressed.flush()
            os.fsync(compressed.fileno())
        _validate_same_content(path, temporary)
        temporary.replace(target)
        sync_directory(directory)
        sync_directory(archive_dir)
    except (OSError, EOFError, zlib.error) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot archive {path} to {target}: {error}") from error
    return target


def _validate_same_content(path: Path, compressed: Path) -> None:
    with path.open("rb") as source, gzip.open(compressed, "rb") as copy:
        expected, found = _size_and_crc(source), _size_and_crc(copy)
    if expected != found:
        raise OSError(f"it read back as {found[0]} bytes with another CRC, not {expected[0]}")


def _size_and_crc(file: BinaryIO | gzip.GzipFile) -> tuple[int, int]:
    size = crc = 0
    for block in iter(lambda: file.read(_BLOCK_BYTES), b""):
        size += len(block)
        crc = crc32(block, crc)
    return size, crc


logger = logging.getLogger(__name__)

MAX_CLOCK_STEP_S = 60.0


class RetentionTime:
    """The time that ages of segments are counted by: it does not jump ahead with the clock.

    A clock set ahead would make all segments old at once. If it moves more than a minute further
    than the monotonic clock between two calls, this time follows the monotonic clock, until the
    clock is back or the broker starts again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self._offset_s()
        self.waits: str | None = None
        """Why segments that are old by the clock are kept; None if they are not."""

    def _offset_s(self) -> float:
        return self._clock.time_ms() / 1000 - self._clock.monotonic_s()

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970; an error is logged when the clock jumps."""
        jump_s = self._offset_s() - self._ahead_s
        if jump_s <= MAX_CLOCK_STEP_S:
            self._ahead_s += jump_s
            if self.waits is not None:
                logger.warning("the clock is back: segments are deleted by its time again")
            self.waits = None
        elif self.waits is None:
            self.waits = (
                f"the clock has jumped {datetime.timedelta(seconds=round(jump_s))} ahead: segments "
                "are kept until they are old by the time that has passed; set the clock right, or "
                "start the broker again if it is right now"
            )
            logger.error("%s", self.waits)
        return round((self._clock.monotonic_s() + self._ahead_s) * 1000)


def expired_count(segments: Sequence[Segment], *, now_ms: int, retention_ms: int) -> int:
    """Return how many of the oldest segments had their last append too long ago."""
    count = 0
    for segment in segments:
        # strictly older, as in Kafka 0.7 `LogManager.cleanupExpiredSegments`
        if now_ms - segment.modified_ms <= retention_ms:
            break
        count += 1
    return count


def excess_count(segments: Sequence[Segment], *, retention_bytes: int) -> int:
    """Return how many of the oldest segments a log can lose and still keep `retention_bytes`."""
    excess = segments[-1].end_offset - segments[0].base_offset - retention_bytes
    if retention_bytes < 0:  # keeps all, as in Kafka 0.7 `LogManager.cleanupSegmentsToMaintainSize`
        return 0
    count = 0
    for segment in segments:
        if excess < segment.size:
            break
        excess -= segment.size
        count += 1
    return count


def apply_retention(
    log: Log, config: TopicConfig, *, now_ms: int, archive_dir: Path | None = None
) -> int:
    """Remove a log's segments past retention, and return their number; an error is logged.

    `now_ms` is the time of `RetentionTime`. With `archive_dir` they are archived before.
    """

    def choose_expired(segments: Sequence[Segment]) -> int:
        return expired_count(segments, now_ms=now_ms, retention_ms=config.retention_ms)

    def choose_excess(segments: Sequence[Segment]) -> int:
        return excess_count(segments, retention_bytes=config.retention_bytes)

    count = 0
    try:
        for choose in (choose_expired, choose_excess):
            segments = log.prepare_removal(choose)
            if segments:
                # The following segment must be on disk before these are removed: a log without any
                # segment would start again at offset 0.
                log.flush()
            for segment in segments:
                if archive_dir is not None:
                    archive_segment(archive_dir, log.partition, segment.path)
                log.remove(segment)
                logger.info("%s: removed segment %d", log.partition, segment.base_offset)
            count += len(segments)
    except StorageError as error:
        logger.error("retention of %s: %s", log.partition, error)
    return count
