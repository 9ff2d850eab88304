"""Which segments are past retention, and how they go.

Owns 0.7's rules of age and size. Runs on a thread of its own; files are archived and deleted
outside any log's append lock, and readers in flight keep theirs open.

Segments kept elsewhere, compressed, before retention deletes them.

Owns the archive's layout, `<archive>/<topic>_<home>-<index>/<segment>.gz`, and the promise that a
file there holds the whole segment. Does not delete segments.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from broker.config import LogConfig
from broker.errors import StorageError
from broker.log.atomic_file import sync_directory
from broker.log.log import Log
from broker.log.segment import Segment
from broker.protocol.checksum import crc32
from broker.topic import TopicPartition

_BLOCK_BYTES = 1 << 20
_COMPRESS_LEVEL = 6


def archive_segment(archive_dir: Path, partition: TopicPartition, path: Path) -> Path:
    """Compress a closed segment into the archive and check that it can be read back.

    Args:
        archive_dir: where the archive is; made if it does not exist.
        partition: whose segment.
        path: the segment file, which nobody writes to any more.

    Returns:
        The archived file; one of the same name is replaced.

    Raises:
        StorageError: it cannot be written, or does not read back as it was.
    """
    directory = archive_dir / f"{partition.topic}_{partition.name}"
    target = directory / f"{path.name}.gz"
    temporary = directory / f"{target.name}.tmp"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, temporary.open("wb") as compressed:
            with gzip.GzipFile(
                filename="", mode="wb", fileobj=compressed, compresslevel=_COMPRESS_LEVEL, mtime=0
            ) as packer:
                for block in iter(lambda: source.read(_BLOCK_BYTES), b""):
                    packer.write(block)
            compressed.flush()
            os.fsync(compressed.fileno())
        _check_same_content(path, temporary)
        temporary.replace(target)
        sync_directory(directory)
        sync_directory(archive_dir)
    except (OSError, EOFError, zlib.error) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot archive {path} to {target}: {error}") from error
    return target


def _check_same_content(path: Path, compressed: Path) -> None:
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


def expired_count(segments: Sequence[Segment], *, now_ms: int, retention_ms: int) -> int:
    """Return how many of the oldest segments were last written too long ago.

    Args:
        segments: oldest first.
        now_ms: the time.
        retention_ms: how long a segment is kept after its last append.

    Source: Kafka 0.7 `LogManager.cleanupExpiredSegments`: the longest prefix, strictly older.
    """
    count = 0
    for segment in segments:
        if now_ms - segment.modified_ms <= retention_ms:
            break
        count += 1
    return count


def excess_count(segments: Sequence[Segment], *, retention_bytes: int) -> int:
    """Return how many of the oldest segments a log can lose without falling below its size.

    Args:
        segments: oldest first.
        retention_bytes: bytes of a log to keep; negative keeps all.

    Source: Kafka 0.7 `LogManager.cleanupSegmentsToMaintainSize`.
    """
    excess = segments[-1].end_offset - segments[0].base_offset - retention_bytes
    if retention_bytes < 0:
        return 0
    count = 0
    for segment in segments:
        if excess < segment.size:
            break
        excess -= segment.size
        count += 1
    return count


class Retention:
    """Removes segments past retention from logs.

    Args:
        settings_of: gives a topic's settings.
        archive_dir: where segments are archived before they are deleted; None just deletes.
    """

    def __init__(
        self, settings_of: Callable[[str], LogConfig], *, archive_dir: Path | None
    ) -> None:
        self._settings_of = settings_of
        self._archive_dir = archive_dir

    def apply(self, logs: Iterable[Log]) -> int:
        """Remove what is past retention; a log that fails is reported and skipped.

        Args:
            logs: the logs to look at.

        Returns:
            How many segments went.
        """
        count = 0
        for log in logs:
            settings = self._settings_of(log.partition.topic)
            try:
                count += self._remove_expired(log, settings.retention_ms)
                count += self._remove_excess(log, settings.retention_bytes)
            except StorageError as error:
                logger.error("retention of %s: %s", log.partition, error)
        return count

    def _remove_expired(self, log: Log, retention_ms: int) -> int:
        def choose(segments: Sequence[Segment], now_ms: int) -> int:
            return expired_count(segments, now_ms=now_ms, retention_ms=retention_ms)

        return self._remove(log, choose)

    def _remove_excess(self, log: Log, retention_bytes: int) -> int:
        def choose(segments: Sequence[Segment], _now_ms: int) -> int:
            return excess_count(segments, retention_bytes=retention_bytes)

        return self._remove(log, choose)

    def _remove(self, log: Log, choose: Callable[[Sequence[Segment], int], int]) -> int:
        segments = log.prepare_removal(choose)
        if not segments:
            return 0
        # The segment that follows must be on disk before these go: with none left the log would
        # start again at 0.
        log.flush()
        for segment in segments:
            if self._archive_dir is not None:
                archive_segment(self._archive_dir, log.partition, segment.path)
            log.remove(segment)
            logger.info("%s: removed segment %d", log.partition, segment.base_offset)
        return len(segments)
