"""Retention: which segments are past their age or size, archiving and removing them.

Runs on a thread of its own; files are archived and deleted outside a log's append lock, and fetches
in flight keep their descriptors.
"""

from __future__ import annotations

import contextlib
import datetime
import gzip
import logging
import os
import shutil
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from broker.clock import Clock
from broker.errors import StorageError
from broker.files import DIRECTORY_MODE, open_file, sync_directory
from broker.log.data_directory import ARCHIVE_SUFFIX
from broker.log.log import Log
from broker.log.segment import Segment
from broker.log.table import LogSettings, LogTable
from broker.protocol.checksum import crc32
from broker.stats import ELECTION_BOUNDS_S, Histogram
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig

MAX_CLOCK_DIFFERENCE_S = 60.0
"""How far a clock may jump, or clocks of brokers differ, while segments are deleted by it."""
_BLOCK_BYTES = 1 << 20
_COMPRESS_LEVEL = 6

logger = logging.getLogger(__name__)


class RetentionTime:
    """The time that ages of segments are counted by: it does not jump ahead with the clock.

    A clock set ahead would make all segments old at once. If it moves more than a minute further
    than the monotonic clock between two calls, this time follows the monotonic clock, until the
    clock is back, the clocks of other brokers agree with it, or the broker starts again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self.offset_s()
        self.waits: str | None = None
        """Why segments that are old by the clock are kept; None if they are not."""

    def offset_s(self) -> float:
        """Return how far the clock is ahead of the monotonic clock now."""
        return self._clock.time_ms() / 1000 - self._clock.monotonic_s()

    def trust(self, offset_s: float) -> None:
        """Take the clock for right as it was when `offset_s` returned this."""
        self._ahead_s = offset_s

    def now_ms(self) -> int:
        """Return the time, milliseconds since 1970; an error is logged when the clock jumps."""
        jump_s = self.offset_s() - self._ahead_s
        if jump_s <= MAX_CLOCK_DIFFERENCE_S:
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


class Retention:
    """Removes what is past retention from all logs of a broker."""

    def __init__(self, table: LogTable, settings: LogSettings, clock: Clock) -> None:
        self.is_ownerless: Callable[[TopicPartition], bool] = lambda _partition: False
        """Whether no controller knows a replicated log: it is left alone then."""
        self._table = table
        self._settings = settings
        self._clock = clock
        self._is_ahead = False
        self.time = RetentionTime(clock)
        self.clock_doubt: str | None = None
        """Why this broker's clock may be wrong; nothing is deleted then."""
        self.awaits_clocks = False
        """Whether it has yet to be compared with those of other brokers; nothing is deleted."""
        self.times = Histogram(ELECTION_BOUNDS_S)
        self.removed_bytes = 0

    @property
    def waits(self) -> str | None:
        """Return why segments may be kept for too long; None if they are not."""
        return self.clock_doubt or self.time.waits or self._ahead()

    @property
    def is_held(self) -> bool:
        """Return whether ages are not to be trusted now."""
        return self.awaits_clocks or (self.clock_doubt or self.time.waits) is not None

    def _ahead(self) -> str | None:
        """Return which segments are dated in the future, None without one."""
        latest_ms = self._clock.time_ms() + MAX_CLOCK_DIFFERENCE_S * 1000
        found = [
            one
            for log in self._table.all()
            for one in log.segments.all
            if one.modified_ms > latest_ms
        ]
        if not found:
            return None
        text = "1 segment is" if len(found) == 1 else f"{len(found)} segments are"
        return (
            f"{text} dated in the future, such as {found[0].path}: retention takes the time of the "
            "segment behind it, and a start by time may be too early; set the clock right, or give "
            "the file its time (touch) while the broker is stopped"
        )

    def keeps(self, log: Log, offset: int, end_offset: int) -> bool:
        """Return whether messages of a log before an offset stay for more than another minute.

        For their size the log counts as one that ends at `end_offset`, as its leader's does.
        """
        config = self._settings.of(log.partition.topic)
        now_ms = self.time.now_ms()
        least_ms = now_ms + 1000 * MAX_CLOCK_DIFFERENCE_S - config.retention_ms
        segments, since_ms = log.segments.all, log.active_since_ms or 0
        before_ms = 0
        for one, written_ms in zip(segments, _written_times(segments, now_ms), strict=True):
            if one.base_offset >= offset:
                break
            end, time_ms = one.next_offset, written_ms
            if end > offset:  # of the messages before the offset only the earliest time is known
                end, first_ms = offset, min(since_ms, time_ms) if one is segments[-1] else 0
                time_ms = max(before_ms, first_ms)
            is_excess = 0 <= config.retention_bytes <= end_offset - end
            if one.size and time_ms >= least_ms and not is_excess:
                return True
            before_ms = written_ms
        return False

    def apply(self) -> None:
        """Remove the segments past retention of all logs."""
        ahead = self._ahead()
        if ahead is not None and not self._is_ahead:
            logger.warning("%s", ahead)
        self._is_ahead = ahead is not None
        began_s = time.perf_counter()
        now_ms = self.time.now_ms()
        if self.awaits_clocks or self.clock_doubt is not None:
            return
        config = self._settings.broker
        archive_dir = config.archive_dir if config.retention_policy == "archive" else None
        for log in self._table.all():
            # Under the lock: the files of a new log have the names of a deleted one's.
            with self._table.removal_lock:
                if not (log.is_deleted or (log.is_replicated and self.is_ownerless(log.partition))):
                    settings = self._settings.of(log.partition.topic)
                    removed = apply_retention(log, settings, now_ms=now_ms, archive_dir=archive_dir)
                    self.removed_bytes += sum(one.size for one in removed)
        self.times.record(time.perf_counter() - began_s)


def expired_count(segments: Sequence[Segment], *, now_ms: int, retention_ms: int) -> int:
    """Return how many of the oldest segments had their last append too long ago."""
    count = 0
    for written_ms in _written_times(segments, now_ms):
        # strictly older, as in Kafka 0.7 `LogManager.cleanupExpiredSegments`
        if now_ms - written_ms <= retention_ms:
            break
        count += 1
    return count


def _written_times(segments: Sequence[Segment], now_ms: int) -> list[int]:
    """Return when segments had their last append, milliseconds since 1970."""
    # One that is dated in the future was written before the next one with a possible time: else
    # it would keep all segments behind it.
    times: list[int] = []
    next_ms: int | None = None
    for segment in reversed(segments):
        if segment.modified_ms <= now_ms:
            next_ms = segment.modified_ms
        times.append(segment.modified_ms if next_ms is None else next_ms)
    return times[::-1]


def excess_count(segments: Sequence[Segment], *, retention_bytes: int) -> int:
    """Return how many of the oldest segments a log can lose and still keep `retention_bytes`."""
    excess = sum(segment.size for segment in segments) - retention_bytes
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
) -> list[Segment]:
    """Remove a log's segments past retention, and return them; an error is logged.

    `now_ms` is the time of `RetentionTime`. With `archive_dir` they are archived before.
    """
    removed: list[Segment] = []
    try:
        for choose in (
            partial(expired_count, now_ms=now_ms, retention_ms=config.retention_ms),
            partial(excess_count, retention_bytes=config.retention_bytes),
        ):
            segments = log.prepare_removal(choose)
            if segments:
                # The following segment must be on disk before these are removed: a log without any
                # segment would start again at offset 0.
                log.flush()
            for segment in segments:
                if archive_dir is not None:
                    archive_segment(archive_dir, log.partition, segment.path)
                log.remove(segment)
                removed.append(segment)
                values = {"partition": log.partition, "offset": segment.base_offset}
                logger.info("%(partition)s: removed segment %(offset)d", values)
    except StorageError as error:
        logger.error("retention of %s: %s", log.partition, error)
    return removed


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
                shutil.copyfileobj(source, packer, _BLOCK_BYTES)
            compressed.flush()
            modified_ns = path.stat().st_mtime_ns  # by which readers find the messages of a time
            os.utime(target_fd, ns=(modified_ns, modified_ns))
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
