"""The log of one partition: append, read, roll, flush and truncate.

A `Log` owns the segments of one directory and three offsets: the log end offset (written), the
flushed offset (durable) and the high watermark (visible to readers). The high watermark equals the
flushed or the log end offset, as the topic's settings say; that of a replicated log is set by its
replica, which also decides whether clients may append, and what is truncated. Opening, cutting and
mending files is the subject of `log_segments`; recovery and the times of retention are decided in
modules of their own.

Locks: `_lock` guards every change to what is written; `_flush_lock` lets one flush run at a time
and is taken first. Readers take neither: they read one tuple of segments and two numbers.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from broker import errors
from broker.clock import Clock
from broker.files import is_out_of_descriptors, reason_of, sync_directory
from broker.leader_epochs import LeaderEpochs
from broker.log import compaction, producer_rows, producers, side_files
from broker.log.flusher import Flushable
from broker.log.log_parts import FlushedPart, Incarnations, Listeners, Unflushed
from broker.log.log_segments import LogSegments, segment_of
from broker.log.producer_rows import AppendRow, ProducerRows, decode_rows, encode_rows
from broker.log.producers import Producers
from broker.log.replica_files import EpochFile, read_start_offset, write_start_offset
from broker.log.segment import (
    Appended,
    CopiedEntries,
    Disk,
    FileSlice,
    Segment,
    SegmentFile,
    SegmentFiles,
    TimedOffset,
    write_error,
)
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import HEADER_BYTES, RecordBatch
from broker.stats import WindowedStats
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig

logger = logging.getLogger(__name__)

_PROBE = bytes(64 << 10)
_FLUSH_RETRY_S = 1.0
_LOST_FORMER_NAME = "lost-former"
"""Before a flush that found no free descriptor is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogParts:
    """What all logs of a broker share.

    Attributes:
        schedule_flush: has a log flushed at a time of the clock's `monotonic_s`
            (`Flusher.schedule`).
        flush_stats: durations of flushes.
        note_truncation: called before anything is cut off that was flushed, when `flushed_offset`
            is lowered: a recovery point stored above it would be wrong for what is written next.
            Raises `StorageError` to prevent it.
    """

    clock: Clock
    files: SegmentFiles
    schedule_flush: Callable[[Flushable, float], None]
    flush_stats: WindowedStats
    disk: Disk = field(default_factory=Disk)
    note_truncation: Callable[[], None] = lambda: None


class Log:
    """One partition's log.

    It has more methods than other classes: the offsets, the active segment and what is unflushed
    change together under the append lock, in appends, flushes, truncation and retention alike.

    Errors of all methods: `StorageError` if the disk refuses; after a failed flush or truncation,
    or a failed undo of an append, the log refuses all appends with it (`failure`).
    `ShuttingDownError` once it is closed, `UnknownTopicError` once it is deleted.

    Args:
        segments: those on disk, oldest first, contiguous; at least one.
        active_since_ms: when the last segment got its first message, milliseconds since 1970; None
            for its modification time.
        unsynced_directories: directories with entries not yet durable: of a new log, its own and
            the data directory.
    """

    def __init__(
        self,
        partition: TopicPartition,
        directory: Path,
        config: TopicConfig,
        segments: Sequence[Segment],
        parts: LogParts,
        *,
        active_since_ms: int | None = None,
        unsynced_directories: Sequence[Path] = (),
    ) -> None:
        self.partition = partition
        self.directory = directory
        self._config = config
        self._clock, self._files, self._disk = parts.clock, parts.files, parts.disk
        self._schedule_flush = parts.schedule_flush
        self._flush_stats = parts.flush_stats
        self._note_truncation = parts.note_truncation
        self._lock = Lock()
        self._flush_lock = Lock()
        self._listeners = Listeners()
        self.append_listeners = Listeners()
        """Run after every append to a replicated log, before the high watermark passes it."""
        self.segments = LogSegments(partition, tuple(segments), parts.files, parts.clock)
        active = segments[-1]
        self.format = active.format
        # of what `delete_records` has left; behind the end once that was lost
        if self.format.counts_records:
            self.segments.start_offset = read_start_offset(directory)
        active.next_offset = max(active.next_offset, self.segments.start_offset)
        self._unflushed = Unflushed(unsynced_directories)
        self.log_end_offset = active.next_offset
        """The offset of the next append."""
        self.flushed_offset = active.next_offset
        """The offset up to which the log survives a crash of the machine."""
        self.high_watermark = active.next_offset
        """The offset up to which the log is visible to readers."""
        self.active_since_ms = (active_since_ms or active.modified_ms) if active.size else None
        """When the active segment got its first message; None while it is empty."""
        self.last_append_ms = max(segment.modified_ms for segment in segments)
        """When the log was last appended to, milliseconds since 1970."""
        self.last_flush_ms = 0
        """When the log was last flushed since it was opened; 0 for never."""
        self.appended_message_count = 0
        """The number of messages appended since the log was opened."""
        self.failure: errors.StorageError | None = None
        """The error after which the log refuses appends, None if there was none."""
        self._append_failure: errors.StorageError | None = None
        self._is_closed = False
        self._is_dated_back = False  # the active segment has the time of older copied messages
        self.is_deleted = False
        """Whether the topic was deleted; a new log may use the same directory."""
        self._refusal: Callable[[], errors.ServerError] | None = None
        self._epochs: EpochFile | None = None
        self._has_lost_former = (directory / _LOST_FORMER_NAME).exists()
        self.is_replicated = False
        """Whether other brokers have copies of the log, or may have."""
        self.producers: Producers | None = None
        """Those of a log of batches, by which repeated batches are found."""
        if self.format.counts_records:
            self.producers = producers.rebuild(
                partition, segments, active.next_offset, parts.clock.time_ms()
            )
        self._rows: ProducerRows | None = None
        """Of a log of entries: its idempotent appends, by which repeated ones are found."""
        if not self.format.counts_records:
            self._rows = producer_rows.load(
                partition, directory, active.next_offset, parts.clock.time_ms()
            )
        self.clean_offset = 0
        """The offset up to which compaction has read the log."""
        self.incarnations = Incarnations()
        """Of a log without replicas."""
        self._is_visible_at_once = not config.flush_before_read
        self._told_of_appends = self._listeners if self._is_visible_at_once else None
        if active.file is not None:
            parts.files.note_writer(self)

    @property
    def log_start_offset(self) -> int:
        """Return the offset of the oldest message kept."""
        return self.segments.start_of(self.segments.all)

    @property
    def flushes_before_read(self) -> bool:
        """Return whether only what is flushed counts, for readers and for other replicas."""
        return self._config.flush_before_read

    @property
    def read_limit(self) -> int:
        """Return the greatest offset that a read may ask for.

        The high watermark; of a replicated log its end, as the high watermark of a new leader may
        be behind the one that its readers have seen.
        """
        return self.log_end_offset if self.is_replicated else self.high_watermark

    @property
    def epochs(self) -> LeaderEpochs:
        """Return the leader epochs of a replicated log."""
        return self._leader_epochs.epochs.trimmed(self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Return the size of all segments."""
        return sum(segment.size for segment in self.segments.all)

    @property
    def has_lost_former(self) -> bool:
        """Return whether a former disk of the broker had a log of the partition, which is lost.

        Until retention removes the first segment: it would have removed what is lost before.
        """
        return self._has_lost_former and self.log_start_offset == 0

    def note_lost_former(self) -> None:
        """Note that a former disk of the broker had a log of the partition."""
        self._has_lost_former = True
        with suppress(OSError):  # a full disk: it is known until the next start
            (self.directory / _LOST_FORMER_NAME).touch()

    def failures(self) -> list[errors.StorageError]:
        """Return the present errors: why appends are refused, and which segments are bad."""
        found = [error for one in self.segments.all for error in one.errors]
        refusal = self.failure or self._append_failure
        return found if refusal is None else [refusal, *found]

    @property
    def is_faulty(self) -> bool:
        """Return whether anything is wrong, so that another replica should lead."""
        return self.segments.has_bad or self._append_failure is not None or self.failure is not None

    def retry_refused(self) -> None:
        """Retry what the disk has refused: reading bad segments, and an append if one failed."""
        self.segments.retry_bad()
        if self._append_failure is None:
            return
        with self._lock:
            self._raise_if_not_writable()
            if self._epochs is not None:
                self._epochs.settle()
            active, now_ms = self.segments.all[-1], self._clock.time_ms()
            if self._is_roll_due(active, now_ms, ()):
                active = self._roll(now_ms)
            self._write(active, _PROBE)
            self._undo_write(active, active.size)
            self._raise_if_not_writable()
        self._note_room()

    def reconfigure(self, config: TopicConfig) -> None:
        """Use other settings from now on, also for when unflushed messages are flushed."""
        if config == self._config:
            return
        due_s = None
        with self._lock:
            self._config = config
            if self._epochs is None:  # else its replica sets the high watermark
                self._is_visible_at_once = not config.flush_before_read
                self._told_of_appends = self._listeners if self._is_visible_at_once else None
            if self._is_visible_at_once:
                self.high_watermark = self.log_end_offset
            if self.log_end_offset != self.flushed_offset:
                self._unflushed.is_flush_scheduled = False
                due_s = self._next_flush_s(flush_now=False)
        if due_s is not None:
            self._schedule_flush(self, due_s)
        self._listeners.notify()

    def append(
        self,
        message_set: Buffer,
        message_count: int,
        *,
        flush_now: bool = False,
        stamp: ProducerStamp | None = None,
    ) -> Appended:
        """Write a message set at the log's end, and return where it is.

        It is readable once the high watermark has passed it. A set is never split, and rolling
        comes before it (Kafka 0.7 `Log.append`). If the disk refuses, nothing of the set is in the
        log.

        Args:
            message_set: whole, valid entries or batches; an empty one appends nothing. Batches get
                their offsets and the leader epoch here.
            message_count: how many messages they hold, those inside wrappers counted singly.
            flush_now: request a flush at once, also of earlier appends; the flushed offset shows
                when it is done.
            stamp: of entries of an idempotent producer; what the log has of them is not appended.
        """
        if not len(message_set):
            if flush_now and self.log_end_offset != self.flushed_offset:
                self._schedule_flush(self, self._clock.monotonic_s())
            return Appended(self.log_end_offset, self.log_end_offset)
        try:
            with self._lock:
                self._raise_if_not_writable()
                if self._refusal is not None:
                    raise self._refusal()
                offset = self.log_end_offset
                content, next_offset, heads = self.format.place(
                    message_set, offset, self._leader_epoch if self.is_replicated else 0
                )
                known = self._known_batch(heads) if heads else None
                if stamp is not None:
                    known = self._append_stamped(content, stamp)
                elif known is None:
                    self._append_at_end(content, message_count, next_offset, heads)
                if self.log_end_offset != offset or flush_now:
                    due_s = self._next_flush_s(flush_now=flush_now)
                else:
                    due_s = None
        except errors.StorageError as error:
            self._note_append_failure(error)
            raise
        self._note_appended(due_s)
        # a third of the time that the class takes to make one, once for each request
        return known or tuple.__new__(Appended, (offset, next_offset))

    def _append_stamped(self, entries: Buffer, stamp: ProducerStamp) -> Appended | None:
        """Append what the log lacks of a set; return where the set is if it has a part of it.

        The caller holds `_lock`.
        """
        rows, offset = self._rows_for_append(), self.log_end_offset
        known = rows.find(stamp)
        base_offset, end = offset, offset + len(entries)
        if known is not None:
            base_offset, end = known[:2]
            if (rest := memoryview(entries)[end - base_offset :]).nbytes == 0:
                return Appended(base_offset, end)
            entries, end = rest, offset + len(rest)
            base_offset = end - len(entries) - (known.next_offset - known.base_offset)
        row = AppendRow(offset, len(entries), stamp)
        self._append_with_rows([row], entries, stamp.message_count, end, ())
        return None if known is None else Appended(base_offset, end)

    def _rows_for_append(self) -> ProducerRows:
        if self._rows is None:
            self._rows = ProducerRows(self.partition, self.directory)
        return self._rows

    def _append_with_rows(
        self,
        rows: list[AppendRow],
        content: Buffer,
        message_count: int,
        next_offset: int,
        heads: Sequence[RecordBatch],
    ) -> None:
        """Write rows, and then what they are of; caller holds `_lock`."""
        known, now_ms = self._rows_for_append(), self._clock.time_ms()
        try:
            self._files.with_room(lambda: known.write(rows, now_ms))
        except OSError as error:
            raise self._storage_error("note an idempotent append to", error) from error
        try:
            self._append_at_end(content, message_count, next_offset, heads)
        except errors.StorageError:
            known.undo(rows)
            raise
        known.note(rows, now_ms)

    def _cut_rows(self, end_offset: int) -> None:
        """Drop the rows of what is not in the log; caller holds `_lock`."""
        if (rows := self._rows) is not None:
            try:
                self._files.with_room(lambda: rows.cut(end_offset, self._clock.time_ms()))
            except OSError as error:
                self._fail("drop idempotent appends", error)
                raise self._storage_error("drop idempotent appends of", error) from error

    def rows_between(self, offset: int, end: int) -> bytes:
        """Return the idempotent appends of what a follower reads; at the start, also those before.

        As they are in the file; empty for a log of batches, which tell of them.
        """
        if self._rows is None:
            return b""
        return encode_rows(
            self._rows.between(0 if offset <= self.log_start_offset else offset, end)
        )

    def leave_out(self, offset: int) -> None:
        """Continue at a later offset, as the leader has lost the messages up to there, too."""
        with self._lock:
            self._raise_if_not_writable()
            now_ms = self._clock.time_ms()
            if self.segments.all[-1].size:
                self._roll(now_ms)  # an empty segment, by which a start knows the hole behind it
            self.log_end_offset = offset
            self._roll(now_ms)

    def append_copied(
        self,
        entries: CopiedEntries,
        offset: int,
        appended_ms: int | None = None,
        rows: Buffer = b"",
    ) -> None:
        """Write entries of the leader at the log's end; also where clients may not append.

        Raises `OffsetOutOfRangeError`, and writes nothing, if the log does not end at `offset`.
        Retention counts their age from `appended_ms`, milliseconds since 1970, if that is earlier
        than now. `rows` are the leader's for them, perhaps with others.
        """
        if not len(entries.data):
            return
        if entries.heads and entries.heads[0].base_offset < offset:
            self._begin_inside(entries.heads[0], offset)
        try:
            with self._lock:
                self._raise_if_not_writable()
                if offset != self.log_end_offset:
                    raise errors.OffsetOutOfRangeError(
                        f"{self.partition} ends at offset {self.log_end_offset}, not at {offset}"
                    )
                if appended_ms is None and self._is_dated_back:
                    self._roll(self._clock.time_ms())  # younger ones must not keep them
                new_rows: list[AppendRow] = []
                if rows:
                    known, end = self._rows_for_append(), entries.next_offset
                    new_rows = known.unknown(decode_rows(rows), end)
                if new_rows:
                    self._append_with_rows(new_rows, *entries)
                else:
                    self._append_at_end(*entries)
                if appended_ms is not None and not self.format.counts_records:
                    self._date_back(appended_ms)
                due_s = self._next_flush_s(flush_now=False)
        except errors.StorageError as error:
            self._note_append_failure(error)
            raise
        self._note_appended(due_s)

    def _begin_inside(self, first: RecordBatch, offset: int) -> None:
        """Have an empty log begin with the batch that holds its start, as its leader's does."""
        with self._flush_lock, self._lock:
            self._raise_if_not_writable()
            if not self.log_start_offset == self.log_end_offset == offset:
                raise errors.InvalidMessageError(
                    f"{self.partition}: another replica has sent a batch of offset "
                    f"{first.base_offset}, where {self.log_end_offset} is the next one"
                )
            self._set_start(offset)
            self._replace_end(first.base_offset, keeps_start=False)
            self.segments.all[-1].next_offset = self.log_end_offset = offset
            self.flushed_offset = self.high_watermark = offset

    def _date_back(self, appended_ms: int) -> None:
        """Give the active segment the time of the messages copied into it; caller holds `_lock`."""
        active = self.segments.all[-1]
        if active.file is not None and appended_ms < active.modified_ms:
            active.modified_ms = appended_ms
            self._is_dated_back = True
            with suppress(OSError):  # counts as younger after the next start then
                os.utime(active.file.fd, ns=(appended_ms * 1_000_000,) * 2)

    def _append_at_end(
        self, content: Buffer, message_count: int, next_offset: int, heads: Sequence[RecordBatch]
    ) -> None:
        """Write entries or batches at the log's end; caller holds `_lock`."""
        if self._rows is not None and self._rows.is_torn:
            try:  # else rows would be taken for those of what is appended now
                self._files.with_room(self._rows.settle)
            except OSError as error:
                raise self._storage_error("drop an idempotent append to", error) from error
        if self._epochs is not None and self._epochs.is_due:
            self._epochs.settle()
        now_ms = self._clock.time_ms()
        active = self.segments.all[-1]
        if self._is_roll_due(active, now_ms, heads):
            active = self._roll(now_ms)
        position = active.size
        self._write(active, content)
        if heads:
            self._note_batches(active, position, heads, content)
        active.size += len(content)
        active.next_offset = next_offset
        active.modified_ms = self.last_append_ms = now_ms
        if self.active_since_ms is None:
            self.active_since_ms = now_ms
        self.log_end_offset = next_offset
        if self._is_visible_at_once:
            self.high_watermark = next_offset
        self.appended_message_count += message_count
        self._unflushed.message_count += message_count

    def _known_batch(self, heads: Sequence[RecordBatch]) -> Appended | None:
        """Return where the batches of a producer are that it sends again; else validate them."""
        assert self.producers is not None
        known = self.producers.check(heads)
        return None if known is None else Appended(known.base_offset, known.next_offset)

    def _note_batches(
        self, active: Segment, position: int, heads: Sequence[RecordBatch], content: Buffer
    ) -> None:
        """Note what was written in the segment's index, and of its producers."""
        index = active.index
        assert index is not None, f"the index of {active.path} is not loaded"
        assert self.producers is not None
        for head in heads:
            index.add(head, position)
            if head.producer_id < 0:
                continue
            now_ms = self._clock.time_ms()
            aborted = self.producers.note(head, head.base_offset, now_ms, content)
            if aborted is None:
                continue
            path = active.path.with_suffix(side_files.ABORTED_SUFFIX)
            try:
                side_files.append_aborted(path, aborted)
            except OSError as error:
                logger.error("%s: cannot write %s: %s", self.partition, path, error)

    @property
    def _leader_epoch(self) -> int:
        """Return the epoch for batches appended now, of a replicated log."""
        return max(0, self._leader_epochs.epochs.last_epoch)

    def _note_appended(self, due_s: float | None) -> None:
        """Schedule the flush of an append and notify listeners; caller holds no lock."""
        if self._append_failure is not None:
            self._note_room()
        if due_s is not None:
            self._schedule_flush(self, due_s)
        if self._told_of_appends is not None:
            self._told_of_appends.notify(self.log_end_offset)

    def _note_room(self) -> None:
        self._append_failure = None
        logger.warning("%s can be appended to again", self.partition)

    def replicate(self, epochs: EpochFile, high_watermark: int | None = None) -> None:
        """Make this a replicated log, for good: its high watermark is set by its replica.

        `high_watermark` is known to be committed; None if all that can be read now is.
        """
        with self._lock:
            if high_watermark is not None:
                self.high_watermark = max(
                    self.log_start_offset, min(high_watermark, self.log_end_offset)
                )
            self._epochs = epochs
            self.is_replicated = True
            self._is_visible_at_once = False
            self._told_of_appends = self.append_listeners

    def note_directories_synced(self) -> None:
        """Note, before the first append, that the new directory is durable: no flush syncs it."""
        with self._lock:
            self._unflushed.directories.clear()

    def refuse_appends(self, reason: Callable[[], errors.ServerError]) -> None:
        """Refuse appends of clients with an error: none is written after this returns."""
        with self._lock:
            self._refusal = reason
        self._listeners.notify()
        self.append_listeners.notify()

    def accept_appends(self) -> None:
        """Let clients append again."""
        with self._lock:
            self._refusal = None
        self._listeners.notify()

    def advance_high_watermark(self, offset: int) -> None:
        """Move the high watermark of a replicated log up, to its end at most."""
        with self._lock:
            offset = min(offset, self.log_end_offset)
            if offset <= self.high_watermark:
                return
            self.high_watermark = offset
        self._listeners.notify(offset)

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that messages from an offset on are of a leader epoch.

        It is durable now, or for one without messages before the first of them is written.
        """
        epochs, begun = self._leader_epochs, self.epochs.begun(epoch, start_offset)
        with self._lock:  # a set that ends there with a part has its rest elsewhere
            self._cut_rows(self.log_end_offset)
        if start_offset == self.log_end_offset:
            epochs.begin(begun)
        else:
            epochs.replace(begun)

    def settle_epochs(self) -> None:
        """Make an epoch that has begun durable, so that no append has to wait for that."""
        if self._epochs is not None:
            try:
                self._epochs.settle()
            except errors.StorageError as error:
                self._note_append_failure(error)

    @property
    def _leader_epochs(self) -> EpochFile:
        assert self._epochs is not None, f"{self.partition} is not replicated"
        return self._epochs

    def truncate(self, offset: int) -> None:
        """Remove all messages, and leader epochs, from an offset on; clients may not append.

        A new segment starts there: readers that hold the old file never find other messages in it.
        The offset is a message boundary, not below the log start offset (`OffsetOutOfRangeError`);
        at or above the end only epochs are removed.
        """
        epochs = self._leader_epochs
        with self._flush_lock:
            with self._lock:
                self._raise_if_not_writable()
                if offset < self.log_start_offset:
                    raise self.segments.out_of_range(self.segments.all, self.log_end_offset, offset)
                if offset < self.log_end_offset:
                    self._replace_end(offset)
            epochs.replace(epochs.epochs.truncated(offset))
        self._listeners.notify()

    def restart_at(self, offset: int) -> None:
        """Remove all messages and leader epochs, and start at an offset; clients may not append."""
        epochs = self._leader_epochs
        with self._flush_lock, self._lock:
            self._raise_if_not_writable()
            if self.log_start_offset == self.log_end_offset == offset:
                epochs.begin(LeaderEpochs())  # durable before the first message
            else:
                epochs.remove()
                if offset < self.segments.start_offset:
                    self._set_start(offset)
                self._replace_end(offset, keeps_start=False)
        self._listeners.notify()

    def _replace_end(self, offset: int, *, keeps_start: bool = True) -> None:
        """Make the log end at an offset, with a new segment; caller holds both locks."""
        logger.warning(
            "%(partition)s is cut from offset %(former_end)d to %(offset)d (high watermark "
            "%(high_watermark)d)",
            {
                "partition": self.partition,
                "former_end": self.log_end_offset,
                "offset": offset,
                "high_watermark": self.high_watermark,
            },
        )
        if offset < self.flushed_offset or not keeps_start:
            self.flushed_offset = offset
            self._note_truncation()
        try:
            kept = self.segments.cut_files(self.directory, offset if keeps_start else 0, self._disk)
            segment = self.segments.create(self.directory, offset, self._clock.time_ms())
        except OSError as error:
            self._fail("truncate", error)
            raise self._storage_error("truncate", error) from error
        self._files.note_writer(self)
        self._unflushed.directories.append(self.directory)
        self.active_since_ms = None
        self._is_dated_back = False
        # Before the segments: a reader takes these in the same order.
        if not keeps_start or offset < self.high_watermark:
            self.high_watermark = offset
        self.segments.all = (*kept, segment)
        self.clean_offset = min(self.clean_offset, offset)
        self._cut_rows(offset if keeps_start else 0)  # the leader tells of those before, too
        self.segments.find_bad()
        self.log_end_offset = offset
        if self.flushed_offset == offset:
            self._unflushed.message_count = 0
        if self.producers is not None:
            try:
                self.producers = producers.truncated(
                    self.producers, self.segments.all, offset, self._clock.time_ms()
                )
            except OSError as error:
                self._fail("find the producers of", error)
                raise self._storage_error("find the producers of", error) from error

    def read(self, offset: int, max_bytes: int, *, to_log_end: bool = False) -> FileSlice | None:
        """Return the slice of a file with the visible bytes from an offset on, None at their end.

        A read never crosses a segment (Kafka 0.7 `Log.read`).

        Args:
            offset: from the log start offset to `read_limit`, else `OffsetOutOfRangeError`; may lie
                inside a message.
            max_bytes: 0 or more.
            to_log_end: for replicas: return what is above the high watermark too.
        """
        # The high watermark first: the segments up to it are then sure to be in the tuple.
        visible_end = self.log_end_offset if to_log_end else self.high_watermark
        segments = self.segments.all
        found = None
        start = self.segments.start_offset
        if segments[0].base_offset <= offset < visible_end and offset >= start:
            segment = segment_of(segments, offset)
            end = min(segment.next_offset, visible_end)
            if end <= offset:
                raise self.segments.unreadable_offset(segments, end, offset)
            file = segment.file or self._open(segment)
            if file is None:
                return self.read(offset, max_bytes, to_log_end=to_log_end)
            position_of = self.format.position
            position = position_of(segment, file, offset)
            length = min(max_bytes, position_of(segment, file, end) - position)
            if length <= 0 < max_bytes:  # compaction has left no batch up to the segment's end
                if segment is not segments[-1] and end == visible_end:
                    text = f"{self.partition} has lost its messages from offset {offset} to {end}"
                    raise errors.LostOffsetsError(text, end)
                is_last = end == visible_end
                return None if is_last else self.read(end, max_bytes, to_log_end=to_log_end)
            found = FileSlice(file, position, length, self.segments)
            if segment.unreadable is not None:
                found = self.segments.readable_part(segment, segment.unreadable, found)
        elif offset != visible_end and not visible_end < offset <= self.read_limit:
            raise self.segments.out_of_range(segments, visible_end, offset)
        self._raise_if_deleted()
        return found

    def bytes_between(self, offset: int, end: int, enough_bytes: int) -> int:
        """Return how many bytes a read of the messages from an offset up to a later one has.

        Perhaps fewer, but `enough_bytes`. What cannot be found now, as on a failing disk, counts as
        very many: a read tells why.
        """
        if not self.format.counts_records:
            return end - offset
        if enough_bytes <= HEADER_BYTES:  # of one batch
            return HEADER_BYTES
        segments = self.segments.all
        first, last = segment_of(segments, offset), segment_of(segments, end)
        position_of, open_file = self.format.position, self.segments.open
        size = sum(
            one.size for one in segments if first.base_offset <= one.base_offset < last.base_offset
        )
        try:
            start = position_of(first, open_file(first), offset)
            return size + position_of(last, open_file(last), end) - start
        except (OSError, errors.ServerError):
            return sys.maxsize

    def _open(self, segment: Segment) -> SegmentFile | None:
        """Return an open file of a segment; None once compaction has another one in its place."""
        try:
            file = self.segments.open(segment)
        except errors.OffsetOutOfRangeError:
            if not segment.is_replaced:
                raise
        else:
            if not segment.is_replaced:
                return file
        with self._lock:  # the other one is in its place when the lock is free
            return None

    def offset_at(self, time_ms: int) -> TimedOffset | None:
        """Return the first record that can be read from a time on; None without one.

        Of a log of batches: only their records have times. `time_ms` is in milliseconds since 1970.
        """
        end = self.high_watermark
        for segment in self.segments.all:
            if segment.base_offset >= end:
                break
            if segment.size:
                file = self._open(segment)
                if file is None:
                    return self.offset_at(time_ms)
                found = self.format.find_time(segment, file, time_ms, self.log_start_offset)
                if found is not None:
                    return found if found.offset < end else None
        return None

    def delete_records(self, offset: int) -> None:
        """Make all before an offset unreadable, durably; retention removes whole segments of it.

        Of a log of batches. The offset is at most the high watermark, else `OffsetOutOfRangeError`;
        nothing happens where the log starts behind it already.
        """
        if self.flushed_offset < offset <= self.high_watermark:
            self.flush()  # else a crash could leave an end before the start
        with self._lock:
            self._raise_if_not_writable()
            if offset > self.high_watermark:
                raise self.segments.out_of_range(self.segments.all, self.high_watermark, offset)
            if offset <= self.log_start_offset:
                return
            self._set_start(offset)
        self._listeners.notify()

    def _set_start(self, offset: int) -> None:
        try:
            write_start_offset(self.directory, offset)
        except OSError as error:
            raise self._storage_error("set the start of", error) from error
        self.segments.start_offset = offset

    def forget_unused_producers(self) -> None:
        """Forget the producers that have sent nothing for a day."""
        known = self._rows.producers if self._rows is not None else self.producers
        if known is not None:
            with self._lock:
                known.expire(self._clock.time_ms())

    @property
    def stable_offset(self) -> int:
        """Return the offset before which all is flushed, visible and of ended transactions."""
        with self._lock:
            start = self.producers.first_open_offset if self.producers else None
            end = min(self.high_watermark, self.flushed_offset)
            return end if start is None else min(start, end)

    def last_offsets(self) -> set[int]:
        """Return the last offsets of the last batches of all producers."""
        with self._lock:
            return {one.last_offset for one in self.producers.states()} if self.producers else set()

    def replace_segments(self, replaced: Sequence[Segment], swap: Path) -> None:
        """Put the segment that compaction has made of others in their place.

        Nothing happens, but that its files are removed, if the log has changed there since, or is
        not flushed there. Readers in flight keep the old files open.

        Args:
            replaced: neighbours, oldest first, and none of them active.
            swap: the `.swap` file of the new segment, durable.
        """
        with self._flush_lock, self._lock:
            self._raise_if_not_writable()
            segments = self.segments.all
            at = segments.index(replaced[0]) if replaced[0] in segments else len(segments)
            end = at + len(replaced)
            if (
                segments[at:end] != tuple(replaced)
                or end >= len(segments)
                or replaced[-1].next_offset > self.flushed_offset
            ):
                compaction.discard(swap.with_suffix(""))
                return
            for one in replaced:
                one.is_replaced = one.is_removed = True
            first, last = replaced[0], replaced[-1]
            try:
                path = compaction.finish_swap(swap, last.next_offset)
                size = path.stat().st_size
            except OSError as error:
                for one in replaced:  # readers get what is left of it
                    one.is_replaced = one.is_removed = False
                self._fail("compact", error)  # which files are there only the next start finds out
                raise self._storage_error("compact", error, first) from error
            segment = Segment(
                self.directory,
                first.base_offset,
                size=size,
                modified_ms=last.modified_ms,
                format=self.format,
                next_offset=last.next_offset,
            )
            self.segments.all = (*segments[:at], segment, *segments[end:])
            for one in replaced:
                self._files.discard(one)

    def replace_file(self, segment: Segment, path: Path) -> None:
        """Replace a segment's file by another with the same messages, durably.

        `path` is in the log's directory, flushed, and as long as the segment; nothing happens if
        the segment has changed or is no longer part of the log.
        """
        with self._flush_lock, self._lock:
            self._raise_if_not_writable()
            if segment not in self.segments.all or path.stat().st_size != segment.size:
                return  # truncated, removed or appended to since
            try:
                path.replace(segment.path)
                sync_directory(self.directory)
            except OSError as error:
                raise self._storage_error("mend a segment of", error, segment) from error
            segment.file = None
            self._files.discard(segment)
            segment.unreadable = segment.damage = None
        logger.warning("%s: %s has good messages again", self.partition, segment.path)

    def flush(self) -> None:
        """Make everything appended before this call durable, then visible.

        After a failed sync unflushed data may be lost even if a later sync succeeds, so the log
        refuses further appends.
        """
        with self._flush_lock:
            with self._lock:
                if self.failure is not None:
                    raise self.failure
                part = self._unflushed.capture(self.segments.all[-1], self.flushed_offset)
            if part is None:
                return
            self._sync(part)
        self._tell_of_flush()
        if self.failure is not None:
            raise self.failure

    def _tell_of_flush(self) -> None:
        self._listeners.notify(self.high_watermark if self.failure is None else None)

    def add_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Have a callback run when high watermark or flushed offset advance, on failure and close.

        It runs on a flusher's or appender's thread with no lock held, and must be quick. Added
        twice, it runs once each time, until removed twice. Read the offsets after adding it: an
        advance just before is not reported, nor is one to below `from_offset`.
        """
        self._listeners.add_listener(callback, from_offset)

    def remove_listener(self, callback: Callable[[], None], from_offset: int = 0) -> None:
        """Undo one `add_listener`; an unknown callback is ignored."""
        self._listeners.remove_listener(callback, from_offset)

    def offsets_before(self, time_ms: int, max_offsets: int) -> list[int]:
        """Return segment starts, and the high watermark, written at or before a time, newest first.

        None lies before the log start offset. `time_ms` is -1 for the latest offsets, -2 for the
        earliest, else milliseconds since 1970; the high watermark counts as written now. The
        resolution is one segment (Kafka 0.7 `Log.getOffsetsBefore`).
        """
        newest_first = self.segments.offsets_before(time_ms, self.high_watermark)
        return newest_first[: max(0, max_offsets)]

    def boundary_at_or_before(self, offset: int, *, to_log_end: bool = False) -> int:
        """Return the last offset at or before another where an entry starts, good or damaged.

        The other is from the log start offset to the high watermark, with `to_log_end` to the log
        end offset, else `OffsetOutOfRangeError`.
        """
        end = self.log_end_offset if to_log_end else self.high_watermark
        found, _ = self.segments.boundaries_around(offset, end)
        self._raise_if_deleted()
        return found

    def boundary_at_or_after(self, offset: int, *, to_log_end: bool = False) -> int:
        """Return the first offset at or after another where an entry starts, or the end.

        Behind a damaged entry that is the next good one. Range as for `boundary_at_or_before`.
        """
        end = self.log_end_offset if to_log_end else self.high_watermark
        _, found = self.segments.boundaries_around(offset, end)
        self._raise_if_deleted()
        return found

    def prepare_removal(self, choose: Callable[[Sequence[Segment]], int]) -> tuple[Segment, ...]:
        """Return the segments retention may remove; roll first if it chooses all of them.

        They are the oldest, never the active one, and stay readable until `remove`. An empty active
        segment gets a new time instead (Kafka 0.7 `Log.markDeletedWhile`). `choose` returns how
        many of the oldest to remove; it runs under the append lock, so that no append intervenes.
        """
        with self._lock:
            segments = self.segments.all
            count = choose(segments)
            if self._epochs is not None:  # other brokers may lack what is above it
                committed = sum(one.next_offset <= self.high_watermark for one in segments)
                count = min(count, committed)
            if count < len(segments) or self.failure is not None or self._is_closed:
                return segments[: min(count, len(segments) - 1)]
            active = segments[-1]
            now_ms = self._clock.time_ms()
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

        The caller has flushed the log since `prepare_removal` returned it. A segment that is no
        longer part of the log is left alone; one whose file cannot be deleted is no longer part of
        it.
        """
        with self._lock:
            if self.segments.all[0] is not segment:
                return  # truncated since
            self.segments.all = self.segments.all[1:]
            segment.is_removed = True
        try:
            segment.unlink()
        except OSError as error:
            raise self._storage_error("delete a segment of", error, segment) from error
        finally:
            self._files.discard(segment)

    def delete(self) -> None:
        """Refuse reads and appends from now on, and close; the caller moves the directory away.

        Earlier appends are flushed, so that requests delayed for that are completed. File slices
        returned before stay readable.
        """
        with self._lock:
            self.is_deleted = True
            for segment in self.segments.all:
                segment.is_removed = True
        self.close()

    def close(self) -> None:
        """Refuse further appends, flush, and close the active segment."""
        with self._lock:
            self._is_closed = True
        try:
            self.flush()
        finally:
            with self._lock:
                if self.failure is None and not self.is_deleted:
                    self._write_state(self.segments.all[-1])
                self.segments.close_files()
                self._files.forget_writer(self)
            self._listeners.notify()

    def move_to(self, directory: Path, complete: Callable[[], None]) -> None:
        """Continue in another directory; files that readers have open stay readable.

        `complete` makes the directory hold all files of the log, durably; it runs while nothing is
        written. If it raises, nothing has changed.
        """
        with self._flush_lock, self._lock:
            self._raise_if_not_writable()
            with nullcontext() if self._epochs is None else self._epochs.moving_to(directory):
                complete()
            self.segments.move_to(directory)
            if self._rows is not None:
                self._rows.directory = directory
            self._files.forget_writer(self)
            self.directory = directory
            self._unflushed.clear()
            self.flushed_offset = self.log_end_offset
            if self._epochs is None:
                self.high_watermark = self.log_end_offset
        self._listeners.notify()

    def take_offline(self, failure: errors.StorageError) -> None:
        """Refuse appends and flushes with the failure of the data directory, and close files."""
        with self._lock:
            self.failure = self.failure or failure
            self._is_closed = True
            self.segments.close_files()
            self._files.forget_writer(self)
        self._listeners.notify()  # requests delayed for a flush get the failure

    def release_file(self, *, may_flush: bool) -> bool:
        """Close the active segment's file if all in it is flushed; return whether it is closed.

        The next append opens it. Until all is flushed it stays open, as errors of an fsync are
        reported to the writer's descriptor; `may_flush` flushes the rest, unless that is under way.
        Waits for no lock of an append, as its caller may append to another log.
        """
        if may_flush:
            self._flush_if_idle()
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self.flushed_offset != self.log_end_offset:
                return False
            self.segments.all[-1].file = None
            self._files.forget_writer(self)
            return True
        finally:
            self._lock.release()

    def _flush_if_idle(self) -> None:
        if not self._flush_lock.acquire(blocking=False):
            return
        try:
            if not self._lock.acquire(blocking=False):
                return
            try:
                part = (
                    None
                    if self.failure
                    else self._unflushed.capture(self.segments.all[-1], self.flushed_offset)
                )
            finally:
                self._lock.release()
            if part is not None:
                with suppress(errors.StorageError):  # it is flushed later
                    self._sync(part)
        finally:
            self._flush_lock.release()
        self._tell_of_flush()

    def _note_append_failure(self, error: errors.StorageError) -> None:
        if self.failure is not None:
            if error.__cause__ is not self.failure:
                self._listeners.notify()  # the log failed in this call
            return
        is_new = self._append_failure is None
        # without the traceback, which holds the frames of the call and with them the messages
        self._append_failure = type(error)(str(error))
        if is_new:
            logger.error("%s; refused until the disk takes it (not logged again)", error)
            self._listeners.notify()

    def _raise_if_deleted(self) -> None:
        """Called after a file was opened: the files of a new log have the same names."""
        if self.is_deleted:
            raise errors.UnknownTopicError(f"{self.partition} was deleted")

    def _raise_if_not_writable(self) -> None:
        if self.is_deleted:
            self._raise_if_deleted()
        if self.failure is not None:
            raise errors.StorageError(str(self.failure)) from self.failure
        if self._is_closed:
            raise errors.ShuttingDownError(f"{self.partition} is closed")

    def _next_flush_s(self, *, flush_now: bool) -> float | None:
        """Return when to flush the last append, None if a flush is scheduled already."""
        if flush_now or self._unflushed.message_count >= self._config.flush_interval_messages:
            due_s = self._clock.monotonic_s()
        elif self._unflushed.is_flush_scheduled:
            return None
        else:
            due_s = self._clock.monotonic_s() + self._config.flush_interval_ms / 1000
        self._unflushed.is_flush_scheduled = True
        return due_s

    def _is_roll_due(self, active: Segment, now_ms: int, heads: Sequence[RecordBatch]) -> bool:
        if active.size > self._config.segment_bytes:
            return True
        since_ms = self.active_since_ms
        if since_ms is None:
            return False
        age_ms, roll_ms = now_ms - since_ms, self._config.roll_ms
        if (index := active.index) is not None:
            return index.needs_roll(heads, age_ms, roll_ms)
        # a segment of its own once the clock went back, so that its time is that of all in it
        return age_ms > roll_ms or now_ms < active.modified_ms

    def _roll(self, now_ms: int) -> Segment:
        """Roll: start a new segment at the log's end; caller holds `_lock`. Syncs nothing."""
        previous = self.segments.all[-1]
        try:
            segment = self.segments.create(self.directory, self.log_end_offset, now_ms)
        except OSError as error:
            raise self._storage_error("start a segment", error) from error
        self._files.note_writer(self)
        self._unflushed.directories.append(self.directory)
        if previous.file is not None:
            if previous.next_offset > self.flushed_offset:
                self._unflushed.rolled_files.append(previous.file)
            self._files.put(previous, previous.file)
            previous.file = None
        self._write_state(previous)
        self.active_since_ms = None
        self._is_dated_back = False
        self.segments.all = (*self.segments.all, segment)
        return segment

    def _write_state(self, closed: Segment) -> None:
        """Write the index of a closed segment, and a snapshot of the producers as of its end."""
        self.format.close(closed)
        if self.producers is None:
            return
        try:
            self.producers.write_snapshot(
                producers.snapshot_path(self.directory, self.log_end_offset)
            )
            bases = [one.base_offset for one in self.segments.all]
            producers.remove(producers.stale_snapshots(self.directory, bases))
        except OSError as error:  # found again in the batches
            logger.warning("%s: no snapshot of its producers: %s", self.partition, error)

    def _write(self, active: Segment, message_set: Buffer) -> None:
        """Write at the active segment's end, or leave it unchanged; caller holds `_lock`."""
        position = active.size
        try:
            if (file := active.file) is None:
                file = active.file = self._files.with_room(lambda: active.open(os.O_RDWR))
                self._files.discard(active)
                self._files.note_writer(self)
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

    def _sync(self, part: FlushedPart) -> None:
        """Sync, then advance the flushed offset or fail the log; caller holds `_flush_lock`."""
        started_s = self._clock.monotonic_s()
        try:
            if self._rows is not None:
                self._rows.sync(self._disk)
            part.sync(self._files, self._disk)
        except OSError as error:
            if is_out_of_descriptors(error):  # nothing has been lost
                with self._lock:
                    self._unflushed.put_back(part)
                self._schedule_flush(self, self._clock.monotonic_s() + _FLUSH_RETRY_S)
                raise self._storage_error("flush", error) from error
            self._fail("flush", error)
            return
        with self._lock:
            self._unflushed.message_count -= part.message_count
            self.flushed_offset = part.end_offset
            if self._epochs is None:
                self.high_watermark = max(self.high_watermark, part.end_offset)
            self.last_flush_ms = self._clock.time_ms()
        self._flush_stats.record(self._clock.monotonic_s() - started_s)

    def _fail(self, action: str, error: OSError) -> None:
        failure = self._storage_error(action, error)
        failure.__cause__ = error
        self.failure = failure
        logger.error("%s; it refuses appends until the broker is started again", failure)

    def _storage_error(
        self, action: str, error: OSError, segment: Segment | None = None
    ) -> errors.StorageError:
        path = (segment or self.segments.all[-1]).path
        return write_error(error)(
            f"cannot {action} {self.partition} at offset {self.log_end_offset}: {path}: "
            f"{reason_of(error)}"
        )
