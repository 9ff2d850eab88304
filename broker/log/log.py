"""The log of one partition: append, read, roll and flush.

Owns the segments of one directory, the log end offset (written), the flushed offset (safe) and the
high watermark (visible): equal to the flushed or to the log end offset, as its topic is
configured. When retention runs and how a log is recovered is decided elsewhere.

Locks: `_lock` guards every change to what is written; `_flush_lock` lets one flush run at a time
and is taken first. Readers take neither: they read one tuple of segments and two numbers.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from broker.clock import Clock
from broker.config import LogConfig
from broker.errors import OffsetOutOfRangeError, ShuttingDownError, StorageError, UnknownTopicError
from broker.log.atomic_file import sync_directory
from broker.log.flusher import Flushable
from broker.log.scan import boundaries_despite_damage
from broker.log.segment import Disk, FileSlice, Segment, SegmentFile, SegmentFiles
from broker.protocol.primitives import Buffer
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from broker.stats import WindowedStats
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_BASE_OFFSET = attrgetter("base_offset")


class _Listeners:
    """Callbacks run when a log's high watermark advances; called without holding a lock."""

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[Callable[[], None]] = Counter()

    def add(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._counts[callback] += 1

    def remove(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if self._counts[callback] <= 1:
                del self._counts[callback]
            else:
                self._counts[callback] -= 1

    def notify(self) -> None:
        with self._lock:
            callbacks = list(self._counts)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # a failing listener must not keep the others from being called
                logger.exception("a listener of the high watermark failed")


class _Unflushed(NamedTuple):
    """The data one flush makes durable, captured under the append lock."""

    end_offset: int
    message_count: int
    files: list[SegmentFile]
    directories: list[Path]


class Log:
    """One partition's log.

    Args:
        partition: which partition.
        directory: where its segments are.
        config: roll and flush settings of its topic.
        segments: those on disk, oldest first, contiguous; at least one.
        clock: for ages and deadlines.
        files: descriptors shared with other logs.
        schedule_flush: has the log flushed at a time of the clock's `monotonic_s`
            (`Flusher.schedule`).
        flush_stats: durations of flushes.
        disk: the system calls that write message data.
        active_since_ms: when the last segment got its first message, milliseconds since 1970;
            None for the segment's modification time.
        unsynced_directories: directories with entries not yet durable: of a new log, its own and
            the data directory.
    """

    def __init__(
        self,
        partition: TopicPartition,
        directory: Path,
        config: LogConfig,
        segments: Sequence[Segment],
        *,
        clock: Clock,
        files: SegmentFiles,
        schedule_flush: Callable[[Flushable, float], None],
        flush_stats: WindowedStats,
        disk: Disk | None = None,
        active_since_ms: int | None = None,
        unsynced_directories: Sequence[Path] = (),
    ) -> None:
        self.partition = partition
        self.directory = directory
        self._config = config
        self._clock = clock
        self._files = files
        self._schedule_flush = schedule_flush
        self._flush_stats = flush_stats
        self._disk = disk or Disk()
        self._lock = Lock()
        self._flush_lock = Lock()
        self._listeners = _Listeners()
        self._segments = tuple(segments)
        active = self._segments[-1]
        self._active_since_ms = (active_since_ms or active.modified_ms) if active.size else None
        self._log_end_offset = active.end_offset
        self._flushed_offset = self._high_watermark = active.end_offset
        self._last_append_ms = max(segment.modified_ms for segment in self._segments)
        self._last_flush_ms = 0
        self._appended_message_count = 0
        self._unflushed_message_count = 0
        self._is_flush_scheduled = False
        self._rolled_files: list[SegmentFile] = []
        self._unsynced_directories = list(unsynced_directories)
        self._failure: StorageError | None = None
        self._is_closed = False
        self._is_deleted = False

    @property
    def log_start_offset(self) -> int:
        """Return the offset of the oldest message kept."""
        return self._segments[0].base_offset

    @property
    def log_end_offset(self) -> int:
        """Return the offset of the next append."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        """Return the offset up to which the log is visible to readers."""
        return self._high_watermark

    @property
    def flushed_offset(self) -> int:
        """Return the offset up to which the log survives a crash of the machine."""
        return self._flushed_offset

    @property
    def size_bytes(self) -> int:
        """Return the size of all segments."""
        return self._log_end_offset - self._segments[0].base_offset

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments, oldest first; the last one is the active one."""
        return self._segments

    @property
    def segment_count(self) -> int:
        """Return the number of segments."""
        return len(self._segments)

    @property
    def last_append_ms(self) -> int:
        """Return when the log was last appended to, milliseconds since 1970."""
        return self._last_append_ms

    @property
    def last_flush_ms(self) -> int:
        """Return when the log was last flushed since it was opened; 0 for never."""
        return self._last_flush_ms

    @property
    def active_since_ms(self) -> int | None:
        """Return when the active segment got its first message; None while it is empty."""
        return self._active_since_ms

    @property
    def appended_message_count(self) -> int:
        """Return the number of messages appended since the log was opened."""
        return self._appended_message_count

    @property
    def failure(self) -> StorageError | None:
        """Return the error after which the log refuses appends, None if there was none."""
        return self._failure

    @property
    def is_deleted(self) -> bool:
        """Return whether the topic was deleted; a new log may use the same directory."""
        return self._is_deleted

    def append(self, message_set: Buffer, message_count: int, *, flush_now: bool = False) -> int:
        """Write a message set at the log's end.

        Args:
            message_set: whole, valid entries; an empty one appends nothing.
            message_count: how many messages they hold, those inside wrappers counted singly.
            flush_now: request a flush at once, also of earlier appends; the flushed offset shows
                when it is done.

        Returns:
            The offset of the first entry. It is readable once the high watermark passed it.

        Raises:
            StorageError: the disk refused the data, which is then not in the log; or an earlier
                flush or undo failed, and the log refuses all appends.
            ShuttingDownError: the log is closed.
            UnknownTopicError: the log is deleted.

        Source: Kafka 0.7 `Log.append`; a set is never split, and rolling comes before it.
        """
        length = len(message_set)
        if not length:
            if flush_now and self._log_end_offset != self._flushed_offset:
                self._schedule_flush(self, self._clock.monotonic_s())
            return self._log_end_offset
        try:
            with self._lock:
                self._raise_if_not_writable()
                now_ms = self._clock.time_ms()
                active = self._segments[-1]
                if self._is_roll_due(active, now_ms):
                    active = self._roll(now_ms)
                self._write(active, message_set)
                active.size += length
                active.modified_ms = self._last_append_ms = now_ms
                if self._active_since_ms is None:
                    self._active_since_ms = now_ms
                offset = self._log_end_offset
                self._log_end_offset = offset + length
                if not self._config.flush_before_read:
                    self._high_watermark = self._log_end_offset
                self._appended_message_count += message_count
                self._unflushed_message_count += message_count
                due_s = self._next_flush_s(flush_now=flush_now)
        except StorageError as error:
            if self._failure is not None and error.__cause__ is not self._failure:
                self._listeners.notify()  # the log failed in this call
            raise
        if due_s is not None:
            self._schedule_flush(self, due_s)
        if not self._config.flush_before_read:
            self._listeners.notify()
        return offset

    def read(self, offset: int, max_bytes: int) -> FileSlice | None:
        """Return the slice of a file with the visible bytes from an offset on, None at their end.

        Args:
            offset: from the log start offset to the high watermark; may lie inside a message.
            max_bytes: the most bytes wanted, 0 or more.

        Raises:
            OffsetOutOfRangeError: the offset is outside that range.
            StorageError: the segment cannot be opened.
            UnknownTopicError: the log is deleted.

        Source: Kafka 0.7 `Log.read`: a read never crosses a segment.
        """
        # The high watermark first: the segments up to it are then sure to be in the tuple.
        visible_end = self._high_watermark
        segments = self._segments
        found = None
        if segments[0].base_offset <= offset < visible_end:
            segment = _segment_of(segments, offset)
            base = segment.base_offset
            end = min(base + segment.size, visible_end)
            found = FileSlice(self._open(segment), offset - base, min(max_bytes, end - offset))
        elif offset != visible_end:
            raise self._out_of_range(segments, visible_end, offset)
        self._raise_if_deleted()
        return found

    def flush(self) -> None:
        """Make everything appended before this call durable, then visible.

        Raises:
            StorageError: a sync failed, now or earlier. Unflushed data may then be lost even if a
                later sync succeeds, so the log refuses further appends.
        """
        with self._flush_lock:
            with self._lock:
                if self._failure is not None:
                    raise self._failure
                unflushed = self._capture_unflushed()
            if unflushed is None:
                return
            self._sync(unflushed)
        self._listeners.notify()
        if self._failure is not None:
            raise self._failure

    def add_listener(self, callback: Callable[[], None]) -> None:
        """Have a callback run when high watermark or flushed offset advance, on failure and close.

        Args:
            callback: runs on a flusher's or appender's thread with no lock held; must be quick.
                Added twice, it runs once each time, until removed twice. Read the offsets after
                adding it: an advance just before is not reported.
        """
        self._listeners.add(callback)

    def remove_listener(self, callback: Callable[[], None]) -> None:
        """Undo one `add_listener`; an unknown callback is ignored."""
        self._listeners.remove(callback)

    def offsets_before(self, time_ms: int, max_offsets: int) -> list[int]:
        """Return segment starts, and the high watermark, written at or before a time, newest first.

        Args:
            time_ms: -1 for the latest offsets, -2 for the earliest, else milliseconds since 1970;
                the high watermark counts as written now.
            max_offsets: how many to return at most.

        Source: Kafka 0.7 `Log.getOffsetsBefore`. The resolution is one segment.
        """
        visible_end = self._high_watermark
        segments = [segment for segment in self._segments if segment.base_offset <= visible_end]
        candidates = [(segment.base_offset, segment.modified_ms) for segment in segments]
        if visible_end > segments[-1].base_offset:
            candidates.append((visible_end, self._clock.time_ms()))
        if time_ms == LATEST_TIME:
            count = len(candidates)
        elif time_ms == EARLIEST_TIME:
            count = 1
        else:
            count = len(candidates)
            while count and candidates[count - 1][1] > time_ms:
                count -= 1
        newest_first = [offset for offset, _ in reversed(candidates[:count])]
        return newest_first[: max(0, max_offsets)]

    def boundary_at_or_before(self, offset: int) -> int:
        """Return the last offset at or before another where an entry starts, good or damaged.

        Args:
            offset: from the log start offset to the high watermark.

        Raises:
            OffsetOutOfRangeError: the offset is outside that range.
            StorageError: the segment cannot be read.
        """
        return self._boundaries_around(offset)[0]

    def boundary_at_or_after(self, offset: int) -> int:
        """Return the first offset at or after another where an entry starts, or the end.

        Behind a damaged entry that is the next good one.

        Args:
            offset: from the log start offset to the high watermark.

        Raises:
            OffsetOutOfRangeError: the offset is outside that range.
            StorageError: the segment cannot be read.
        """
        return self._boundaries_around(offset)[1]

    def prepare_removal(
        self, choose: Callable[[Sequence[Segment], int], int]
    ) -> tuple[Segment, ...]:
        """Return the segments retention may remove; roll first if it chooses all of them.

        Args:
            choose: gets the segments and the time in ms, returns how many of the oldest to remove;
                called under the append lock, so that no append intervenes.

        Returns:
            The oldest segments, never the active one. They stay readable until `remove`.

        Raises:
            StorageError: a new segment could not be created, or a file time not set.

        Source: Kafka 0.7 `Log.markDeletedWhile`; an empty active segment gets a new time instead.
        """
        with self._lock:
            segments = self._segments
            now_ms = self._clock.time_ms()
            count = choose(segments, now_ms)
            if count < len(segments) or self._failure is not None or self._is_closed:
                return segments[: min(count, len(segments) - 1)]
            active = segments[-1]
            if active.size:
                self._roll(now_ms)
                return segments
            active.modified_ms = now_ms
            try:
                os.utime(active.path, ns=(now_ms * 1_000_000, now_ms * 1_000_000))
            except OSError as error:
                raise self._storage_error("touch", error) from error
            return segments[:-1]

    def remove(self, segment: Segment) -> None:
        """Remove the oldest segment and delete its file; readers in flight keep it open.

        Args:
            segment: the oldest one returned by `prepare_removal`; the log was flushed since.

        Raises:
            StorageError: the file could not be deleted; it is no longer part of the log.
        """
        with self._lock:
            self._segments = self._segments[1:]
            segment.is_removed = True
        try:
            segment.path.unlink(missing_ok=True)
        except OSError as error:
            raise self._storage_error("delete a segment of", error, segment) from error
        finally:
            self._files.discard(segment)

    def delete(self) -> None:
        """Refuse reads and appends from now on, and close; the caller moves the directory away.

        Earlier appends are flushed, so that requests delayed for that are completed. File slices
        returned before stay readable.

        Raises:
            StorageError: the flush failed, now or earlier.
        """
        with self._lock:
            self._is_deleted = True
            for segment in self._segments:
                segment.is_removed = True
        self.close()

    def close(self) -> None:
        """Refuse further appends, flush, and close the active segment.

        Raises:
            StorageError: the flush failed, now or earlier.
        """
        with self._lock:
            self._is_closed = True
        try:
            self.flush()
        finally:
            with self._lock:
                for segment in self._segments:
                    segment.file = None
                    self._files.discard(segment)
            self._listeners.notify()

    def _open(self, segment: Segment) -> SegmentFile:
        try:
            return self._files.get(segment)
        except OSError as error:
            if segment.is_removed:  # by retention, since the segments were read
                raise OffsetOutOfRangeError(
                    f"{self.partition}: the segment at {segment.base_offset} was just removed"
                ) from error
            raise self._unreadable(segment, error) from error

    def _unreadable(self, segment: Segment, error: OSError) -> StorageError:
        return StorageError(f"cannot read {self.partition}: {segment.path}: {error.strerror}")

    def _out_of_range(
        self, segments: tuple[Segment, ...], visible_end: int, offset: int
    ) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"offset {offset} of {self.partition} is out of range: "
            f"{segments[0].base_offset} to {visible_end} can be read"
        )

    def _boundaries_around(self, offset: int) -> tuple[int, int]:
        visible_end = self._high_watermark
        segments = self._segments
        found = offset, offset
        if segments[0].base_offset <= offset < visible_end:
            segment = _segment_of(segments, offset)
            base = segment.base_offset
            end = min(segment.end_offset, visible_end) - base
            try:
                before, after = boundaries_despite_damage(self._open(segment), offset - base, end)
            except OSError as error:
                raise self._unreadable(segment, error) from error
            found = base + before, base + after
        elif offset != visible_end:
            raise self._out_of_range(segments, visible_end, offset)
        self._raise_if_deleted()
        return found

    def _raise_if_deleted(self) -> None:
        """Called after a file was opened: the files of a new log have the same names."""
        if self._is_deleted:
            raise UnknownTopicError(f"{self.partition} was deleted")

    def _raise_if_not_writable(self) -> None:
        self._raise_if_deleted()
        if self._failure is not None:
            raise StorageError(str(self._failure)) from self._failure
        if self._is_closed:
            raise ShuttingDownError(f"{self.partition} is closed")

    def _next_flush_s(self, *, flush_now: bool) -> float | None:
        """Return when to flush the last append, None if a flush is scheduled already."""
        if flush_now or self._unflushed_message_count >= self._config.flush_interval_messages:
            due_s = self._clock.monotonic_s()
        elif self._is_flush_scheduled:
            return None
        else:
            due_s = self._clock.monotonic_s() + self._config.flush_interval_ms / 1000
        self._is_flush_scheduled = True
        return due_s

    def _is_roll_due(self, active: Segment, now_ms: int) -> bool:
        if active.size > self._config.segment_bytes:
            return True
        since_ms = self._active_since_ms
        return since_ms is not None and now_ms - since_ms > self._config.roll_ms

    def _roll(self, now_ms: int) -> Segment:
        """Roll: start a new segment at the log's end; caller holds `_lock`. Syncs nothing."""
        previous = self._segments[-1]
        segment = Segment(self.directory, self._log_end_offset, size=0, modified_ms=now_ms)
        try:
            segment.file = SegmentFile(segment.path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise self._storage_error("start a segment", error) from error
        self._unsynced_directories.append(self.directory)
        if previous.file is not None:
            if previous.end_offset > self._flushed_offset:
                self._rolled_files.append(previous.file)
            self._files.put(previous, previous.file)
            previous.file = None
        self._active_since_ms = None
        self._segments = (*self._segments, segment)
        return segment

    def _write(self, active: Segment, message_set: Buffer) -> None:
        """Write at the active segment's end, or leave it unchanged; caller holds `_lock`."""
        position = active.size
        try:
            if (file := active.file) is None:
                file = active.file = SegmentFile(active.path, os.O_RDWR)
                self._files.discard(active)
            self._disk.write_all(file.fd, message_set, position)
        except OSError as error:
            self._undo_write(active, position)
            raise self._storage_error("append", error) from error
        file.boundaries.append(position)

    def _undo_write(self, active: Segment, size: int) -> None:
        """Truncate after a failed write; caller holds `_lock`."""
        if active.file is None:
            return
        try:
            self._disk.truncate(active.file.fd, size)
        except OSError as error:
            self._fail("undo a failed append", error)

    def _capture_unflushed(self) -> _Unflushed | None:
        """Return the data the flush that starts now must cover; caller holds `_lock`."""
        self._is_flush_scheduled = False
        if self._log_end_offset == self._flushed_offset and not self._unsynced_directories:
            return None
        files = self._rolled_files
        active = self._segments[-1]
        if active.file is not None and active.end_offset > self._flushed_offset:
            files.append(active.file)
        directories = list(dict.fromkeys(self._unsynced_directories))
        self._rolled_files, self._unsynced_directories = [], []
        return _Unflushed(self._log_end_offset, self._unflushed_message_count, files, directories)

    def _sync(self, unflushed: _Unflushed) -> None:
        """Sync, then advance the flushed offset or fail the log; caller holds `_flush_lock`."""
        started_s = self._clock.monotonic_s()
        try:
            for directory in unflushed.directories:
                sync_directory(directory)
            for file in unflushed.files:
                self._disk.sync(file.fd)
        except OSError as error:
            self._fail("flush", error)
            return
        with self._lock:
            self._unflushed_message_count -= unflushed.message_count
            self._flushed_offset = unflushed.end_offset
            self._high_watermark = max(self._high_watermark, unflushed.end_offset)
            self._last_flush_ms = self._clock.time_ms()
        self._flush_stats.record(self._clock.monotonic_s() - started_s)

    def _fail(self, action: str, error: OSError) -> None:
        failure = self._storage_error(action, error)
        failure.__cause__ = error
        self._failure = failure

    def _storage_error(
        self, action: str, error: OSError, segment: Segment | None = None
    ) -> StorageError:
        path = (segment or self._segments[-1]).path
        reason = error.strerror or error
        return StorageError(
            f"cannot {action} {self.partition} at offset {self._log_end_offset}: {path}: {reason}"
        )


def _segment_of(segments: tuple[Segment, ...], offset: int) -> Segment:
    """Return the segment that holds an offset at or after the first one's start."""
    last = segments[-1]
    if offset >= last.base_offset:
        return last
    return segments[bisect_right(segments, offset, key=_BASE_OFFSET) - 1]
