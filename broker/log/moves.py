"""Moves of logs between the data directories of a broker, which serves them meanwhile.

A log is copied to the directory `.moving` of its new data directory while it is read and appended
to, in passes until little is left. Then appends are blocked while the rest is copied and the copy
is made durable and renamed into its place, where the log continues. The file `moved-from` in the
copy names the former directory, which is deleted afterwards: a broker that is killed in between
finds both, and knows by it which one is out of date. A copy that was not finished is removed at the
next start.
"""

from __future__ import annotations

import errno
import logging
import os
import queue
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

from broker import errors
from broker.files import DIRECTORY_MODE, opened, reason_of, sync_directory, write_all
from broker.log.checkpoints import Checkpoints
from broker.log.compaction import CLEANED_SUFFIX, SWAP_SUFFIX
from broker.log.data_directory import MOVED_FROM_NAME, MOVING_NAME, DataDirectory
from broker.log.deletion import LogDeletions
from broker.log.log import Log
from broker.log.segment import Segment
from broker.log.table import LogTable
from broker.threads import LoopThread
from broker.topic import TopicPartition

_BLOCK_BYTES = 8 << 20
_SYNC_EVERY_BYTES = 64 << 20
"""Copied between two syncs: few enough that no flush of other logs is delayed for long."""
_SMALL_BYTES = 1 << 18
"""Left to copy at most while appends are blocked."""
_FILE_BYTES = 1 << 14
"""Counted for each file still to be created, as that takes time too."""
_MAX_PASSES = 100
_COARSE_NS = 2_000_000_000

logger = logging.getLogger(__name__)


@dataclass
class DirectoryMove:
    """A move of one log; changed by the thread that makes it, read by any."""

    partition: TopicPartition
    target: Path
    """The data directory."""
    total_bytes: int
    copied_bytes: int = 0
    is_done: bool = False
    error: errors.ServerError | None = None


class Moves:
    """The moves of one broker's logs, made one after another on a thread of their own."""

    def __init__(self, table: LogTable, deletions: LogDeletions, checkpoints: Checkpoints) -> None:
        self._table = table
        self._directories = table.directories
        self._deletions = deletions
        self._checkpoints = checkpoints
        self._lock = Lock()
        self._latest: dict[TopicPartition, DirectoryMove] = {}
        self._queue: queue.SimpleQueue[DirectoryMove | None] = queue.SimpleQueue()
        self._thread: Thread | None = None
        self._stopping = Event()

    def latest(self, partition: TopicPartition) -> DirectoryMove | None:
        """Return the latest move of a partition, None if there was none since the start."""
        return self._latest.get(partition)

    def add(self, partition: TopicPartition, data_dir: Path) -> DirectoryMove:
        """Queue the move of a log, which is served meanwhile, to another data directory."""
        table, directories = self._table, self._directories
        if not table.is_open:
            raise errors.ShuttingDownError(f"{partition} is not moved: the logs are closed")
        table.validate_online(partition)
        log = table.find(partition)
        if log is None:
            raise errors.WrongPartitionError(
                f"broker {table.home} has no log of {partition}, which nothing was appended to here"
            )
        if log.failure is not None:
            logger.warning("%s is not moved: %s", partition, log.failure)
            raise errors.StorageError(
                f"{partition} is not moved: its log cannot be read or written"
            )
        target = directories.find(data_dir)
        if target is None:
            # who may move logs of a topic need not see the broker's paths
            raise errors.InvalidRequestError(
                f"broker {table.home} has no data directory {data_dir}; `pylogctl broker status "
                f"{table.home}` shows those it has"
            )
        if target.failure is not None:
            logger.warning("%s is not moved: %s", partition, target.failure)
            raise errors.StorageError(f"{partition} is not moved: {data_dir} has failed")
        if directories.place_of.get(partition) is target:
            raise errors.InvalidRequestError(f"{partition} is in {data_dir} already")
        move = DirectoryMove(partition, target.path, log.size_bytes)
        _validate_room(log, target)
        if not self._enqueue(move):
            raise errors.InvalidRequestError(f"{partition} is being moved already")
        return move

    def _enqueue(self, move: DirectoryMove) -> bool:
        """Queue a move; return False if one of the partition is queued or under way."""
        with self._lock:
            known = self._latest.get(move.partition)
            if known is not None and not known.is_done:
                return False
            self._latest[move.partition] = move
            self._queue.put(move)
            if self._thread is None:
                self._thread = LoopThread(self._run, name="moves")
                self._thread.start()
        return True

    def stop(self) -> None:
        """Abandon the moves that are queued or under way, and join the thread."""
        self._stopping.set()
        with self._lock:
            self._queue.put(None)
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while (move := self._queue.get()) is not None:
            try:
                if self._stopping.is_set():
                    raise errors.ShuttingDownError(
                        f"{move.partition} is not moved: the broker stops"
                    )
                self._make(move)
            except errors.ServerError as error:
                move.error = error
            except OSError as error:
                move.error = errors.StorageError(
                    f"cannot move {move.partition} to {move.target}: {reason_of(error)}"
                )
            except Exception:  # a bug in one move must not end the thread
                logger.exception("the move of %s failed", move.partition)
                move.error = errors.StorageError(
                    f"{move.partition} is not moved, by an error of the broker"
                )
            if move.error is not None:
                logger.error("%s", move.error)
            move.is_done = True

    def _make(self, move: DirectoryMove) -> None:
        partition = move.partition
        log, target = self._table.find(partition), self._directories.find(move.target)
        if log is None or target is None:
            raise errors.UnknownTopicError(f"{partition} was deleted")
        _validate_room(log, target)
        former, source = log.directory, self._directories.place_of[partition]
        final = target.path_of(partition)
        copy = LogCopy(log, move, final, self._stopping)
        try:
            while True:
                copy.catch_up()
                # Under the lock: retention and deletions change the directory, too.
                with self._table.removal_lock:
                    try:
                        self._switch(log, target, final, copy)
                    except TooMuchLeftError:
                        continue
                    self._checkpoints.write_or_log()
                    self._remove_former(source, former, final)
                    break
        except BaseException:
            copy.discard()
            raise
        values = {"partition": partition, "source": source.path, "target": target.path}
        logger.info("moved %(partition)s from %(source)s to %(target)s", values)
        self._deletions.remove_in_background()

    def _switch(self, log: Log, target: DataDirectory, final: Path, copy: LogCopy) -> None:
        with self._table.lock:  # against the failure of a directory
            if target.failure is not None:
                raise errors.StorageError(f"{log.partition} is not moved: {target.path} has failed")
            log.move_to(final, copy.complete)
            self._directories.add(log.partition, target)

    def _remove_former(self, source: DataDirectory, former: Path, final: Path) -> None:
        try:
            self._deletions.move_aside(source, [former])
            (final / MOVED_FROM_NAME).unlink()
        except OSError as error:
            logger.error("cannot remove %s, the next start does: %s", former, error)


def _validate_room(log: Log, target: DataDirectory) -> None:
    """Validate that a data directory has room for a log that can be read."""
    free = target.free_bytes()
    try:
        needed = sum(path.lstat().st_blocks * 512 for path in log.directory.iterdir())
    except OSError as error:
        logger.warning("%s is not moved: cannot read %s: %s", log.partition, log.directory, error)
        raise errors.StorageError(
            f"{log.partition} is not moved: its log cannot be read: {reason_of(error)}"
        ) from error
    if free is not None and free < needed:
        raise errors.StorageError(
            f"{log.partition} takes {needed} bytes, and {target.path} has room for {free}"
        )


class TooMuchLeftError(Exception):
    """The log has grown, or was truncated, since the copy caught up: it must catch up again."""


class _Copied(NamedTuple):
    """The bytes copied of a segment; another object at its offset has other messages."""

    segment: Segment
    size: int


class LogCopy:
    """A copy of a log's directory under construction; the log is served meanwhile.

    Args:
        move: counts the copied bytes.
        final: the path that the complete copy gets, in the data directory `move.target`.
        stopping: set to abandon the copy.
    """

    def __init__(self, log: Log, move: DirectoryMove, final: Path, stopping: Event) -> None:
        self._log = log
        self._move = move
        self._stopping = stopping
        self._former = log.directory
        self._final = final
        self._moving = move.target / MOVING_NAME
        self._directory = self._moving / f"{log.partition.topic}_{log.partition.name}"
        self._copied: dict[int, _Copied] = {}
        self._others: dict[str, tuple[int, int, int]] = {}  # copied files that do not change now

    def catch_up(self) -> None:
        """Copy the log until little is left; `StorageError` if it grows faster than its copy."""
        self._directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        self._final.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        for _ in range(_MAX_PASSES):
            segments = self._log.segments.all
            self._copy_segments(segments)
            with suppress(FileNotFoundError):  # removed by retention or a deletion
                self._copy_other_files()
            if self._left(self._log.segments.all) <= _SMALL_BYTES:
                return
        raise errors.StorageError(f"{self._log.partition} grows faster than it is copied")

    def _left(self, segments: Sequence[Segment]) -> int:
        return sum(
            segment.size - copied.size
            if (copied := self._known(segment)) is not None
            else segment.size + _FILE_BYTES
            for segment in segments
        )

    def _known(self, segment: Segment) -> _Copied | None:
        copied = self._copied.get(segment.base_offset)
        return copied if copied is not None and copied.segment is segment else None

    def complete(self) -> None:
        """Copy the rest, make the copy durable, and rename it to its final path.

        Called while nothing is appended, flushed or truncated, and no segment is removed. Raises
        `TooMuchLeftError` if that would take too long; on any error nothing has changed.
        """
        segments = self._log.segments.all
        if self._left(segments) > _SMALL_BYTES:
            raise TooMuchLeftError
        self._copy_segments(segments)
        for segment in segments:  # retention and list-offsets requests go by the files' times
            time_ns = segment.modified_ms * 1_000_000
            os.utime(self._directory / segment.path.name, ns=(time_ns, time_ns))
        self._copy_other_files()
        names = {segment.path.name for segment in segments} | self._others.keys()
        for path in list(self._directory.iterdir()):
            if path.name not in names:  # removed by retention, truncated, or of an earlier attempt
                path.unlink()
        note = self._directory / MOVED_FROM_NAME
        with opened(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            write_all(fd, str(self._former.resolve()).encode())
            os.fsync(fd)
        sync_directory(self._directory)
        if self._final.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._final))
        self._directory.rename(self._final)
        try:
            self._sync_places()
        except OSError:
            self._take_back()
            raise

    def _take_back(self) -> None:
        """Keep the log in its former directory, also at the next start."""
        try:
            self._final.rename(self._directory)
        except OSError:
            with suppress(OSError):  # a start refuses both logs without it, and uses this with it
                (self._final / MOVED_FROM_NAME).unlink()

    def _sync_places(self) -> None:
        places = {self._final.parent, self._moving, self._move.target}
        if self._final.parent != self._move.target:
            places.add(self._final.parent.parent)
        for place in places:
            sync_directory(place)

    def _copy_segments(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            size = segment.size  # bytes below it do not change any more
            copied = self._known(segment)
            if copied is not None and copied.size == size:
                continue
            try:
                self._copy_range(segment, 0 if copied is None else copied.size, size)
            except OSError:
                if segment.is_removed:
                    continue  # by retention, or truncated; the next pass knows
                raise
            self._copied[segment.base_offset] = _Copied(segment, size)

    def _copy_range(self, segment: Segment, position: int, end: int) -> None:
        target_path = self._directory / segment.path.name
        flags = os.O_WRONLY | os.O_CREAT | (0 if position else os.O_TRUNC)
        with opened(segment.path, os.O_RDONLY) as source:
            if (size := os.fstat(source).st_size) < end:
                raise OSError(0, f"{segment.path} ends at byte {size}, not at {end}")
            with opened(target_path, flags) as target:
                unsynced = 0
                os.lseek(target, position, os.SEEK_SET)
                while position < end:
                    if self._stopping.is_set():
                        raise errors.ShuttingDownError(
                            f"{self._log.partition} is not moved: the broker stops"
                        )
                    block = os.pread(source, min(_BLOCK_BYTES, end - position), position)
                    if not block:
                        raise OSError(0, f"{segment.path} was cut at byte {position}")
                    write_all(target, block)
                    position += len(block)
                    unsynced += len(block)
                    self._move.copied_bytes += len(block)
                    if unsynced >= _SYNC_EVERY_BYTES:
                        os.fdatasync(target)
                        unsynced = 0
                os.ftruncate(target, end)
                os.fsync(target)

    def _copy_other_files(self) -> None:
        """Copy the files that are no segments: indexes, leader epochs, those of recovery, others.

        Those copied before are copied again if they have changed, or may have, as the times of
        files are coarse.
        """
        others = {}
        recent_ns = time.time_ns() - _COARSE_NS
        for path in self._former.iterdir():
            is_segment = self._log.format.base_offset_of(path.name) is not None
            if is_segment or path.name == MOVED_FROM_NAME or not path.is_file():
                continue
            if path.suffix in (CLEANED_SUFFIX, SWAP_SUFFIX):
                continue  # of a compaction under way, whose segments may be others by then
            status = path.lstat()
            state = status.st_ino, status.st_size, status.st_mtime_ns
            if state != self._others.get(path.name) or status.st_mtime_ns > recent_ns:
                _copy_file(path, self._directory / path.name)
            others[path.name] = state
        self._others = others

    def discard(self) -> None:
        """Remove the copy, unless it got its final path."""
        with suppress(OSError):  # the next start removes it
            shutil.rmtree(self._directory)


def _copy_file(path: Path, target: Path) -> None:
    """Copy a file, or a link, with its times, durably."""
    target.unlink(missing_ok=True)
    shutil.copy2(path, target, follow_symlinks=False)
    if not target.is_symlink():
        with opened(target, os.O_RDONLY) as fd:
            os.fsync(fd)
