"""The segments of one log: opening and cutting their files, and what is known of bad ones.

A bad segment cannot be read from some position on, or has a damaged message. Reads of an unreadable
one end before that position, and at intervals it is tried again.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from pathlib import Path

from broker import errors
from broker.clock import Clock
from broker.files import is_out_of_descriptors, reason_of, sync_directory
from broker.log.segment import (
    Disk,
    FileSlice,
    Segment,
    SegmentDamage,
    SegmentFile,
    SegmentFiles,
    Unreadable,
)
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_BASE_OFFSET = attrgetter("base_offset")
_RETRY_UNREADABLE_S = 10.0
"""Between attempts to read an unreadable segment: on a failing disk one can take seconds."""


@dataclass(eq=False)
class LogSegments:
    """The segments of one log."""

    partition: TopicPartition
    all: tuple[Segment, ...]
    """Oldest first, one at least; the last one is the active one. Replaced by the log, under its
    append lock."""
    files: SegmentFiles
    clock: Clock
    has_bad: bool = False
    start_offset: int = 0
    """What `Log.delete_records` has left starts here, or in a later segment."""

    def __post_init__(self) -> None:
        self._format = self.all[-1].format

    def open(self, segment: Segment) -> SegmentFile:
        """Return an open file of a segment."""
        try:
            return self.files.get(segment)
        except OSError as error:
            if segment.is_removed:  # by retention or truncation, since the tuple was read
                raise errors.OffsetOutOfRangeError(
                    f"{self.partition}: the segment at {segment.base_offset} was just removed"
                ) from error
            if not is_out_of_descriptors(error) and segment.unreadable is None:
                self._mark_unreadable(segment, 0, 0, str(self._read_error(segment, error)))
            # in no variable: this frame and the error would keep each other, and the files of all
            # frames above, until the next collection of garbage
            raise self._read_error(segment, error) from error

    def _read_error(self, segment: Segment, error: OSError) -> errors.StorageError:
        kind = (
            errors.OutOfDescriptorsError if is_out_of_descriptors(error) else errors.UnreadableError
        )
        return kind(f"cannot read {self.partition}: {segment.path}: {reason_of(error)}")

    def start_of(self, segments: tuple[Segment, ...]) -> int:
        """Return where what can be read of the segments starts."""
        return max(segments[0].base_offset, self.start_offset)

    def unreadable_offset(
        self, segments: tuple[Segment, ...], end: int, offset: int
    ) -> errors.OffsetOutOfRangeError:
        """Return the error of an offset behind the end of its segment, which is `end`.

        Messages were lost there if a later segment follows; else they were truncated just now.
        """
        at = bisect_right(segments, offset, key=_BASE_OFFSET)
        if at == len(segments):
            return self.out_of_range(segments, end, offset)
        start = segments[at].base_offset
        text = f"{self.partition} has lost its messages from offset {end} to {start}"
        return errors.LostOffsetsError(text, start)

    def out_of_range(
        self, segments: tuple[Segment, ...], end: int, offset: int
    ) -> errors.OffsetOutOfRangeError:
        """Return the error of an offset that is not in the segments, of which `end` is the end."""
        return errors.OffsetOutOfRangeError(
            f"offset {offset} of {self.partition} is out of range: "
            f"{self.start_of(segments)} to {end} can be read"
        )

    def boundaries_around(self, offset: int, visible_end: int) -> tuple[int, int]:
        """Return the entry starts, of good or damaged entries, next to an offset; see `Log`."""
        segments = self.all
        if self.start_of(segments) <= offset < visible_end:
            segment = segment_of(segments, offset)
            end = min(segment.next_offset, visible_end)
            if end <= offset:
                error = self.unreadable_offset(segments, end, offset)
                if not isinstance(error, errors.LostOffsetsError):
                    raise error
                return end, error.next_offset
            if self._format.counts_records:
                return offset, offset
            file, format = self.open(segment), self._format
            position = format.position(segment, file, offset)
            last = format.position(segment, file, end)
            try:
                before, after = format.around(file, position, last)
            except OSError as error:
                start = file.boundaries.floor(position)
                noted = self.note_unreadable(FileSlice(file, start, 0, self), start)
                raise noted or self._read_error(segment, error) from error
            return format.offset(segment, file, before), format.offset(segment, file, after)
        if offset != visible_end:
            raise self.out_of_range(segments, visible_end, offset)
        return offset, offset

    def offsets_before(self, time_ms: int, visible_end: int) -> list[int]:
        """Return segment starts, and the visible end, up to a time; see `Log.offsets_before`."""
        segments = [segment for segment in self.all if segment.base_offset <= visible_end]
        # never before the time of an earlier segment: where the clock went back, a start by time
        # must not lie behind messages that were written at that time by the clock of before
        times = accumulate((segment.modified_ms for segment in segments), max)
        candidates = [(one.base_offset, ms) for one, ms in zip(segments, times, strict=True)]
        if visible_end > segments[-1].base_offset:
            candidates.append((visible_end, max(candidates[-1][1], self.clock.time_ms())))
        if time_ms == LATEST_TIME:
            count = len(candidates)
        elif time_ms == EARLIEST_TIME:
            count = 1
        else:
            count = len(candidates)
            while count and candidates[count - 1][1] > time_ms:
                count -= 1
        # a start behind which records were deleted stands for where the rest starts
        starts = [max(offset, self.start_offset) for offset, _ in candidates[:count]]
        return sorted(set(starts), reverse=True)

    def readable_part(
        self, segment: Segment, unreadable: Unreadable, found: FileSlice
    ) -> FileSlice:
        """Return the readable part of a slice; at intervals retry whether all of it can be read."""
        if self.clock.monotonic_s() - unreadable.noted_s >= _RETRY_UNREADABLE_S:
            file = self._retry(segment, unreadable)
            if file is not None:
                return found._replace(file=file)
        length = min(found.length, unreadable.start - found.position)
        if length <= 0:
            raise errors.UnreadableError(str(unreadable.error))
        return found._replace(length=length)

    def note_unreadable(self, found: FileSlice, position: int) -> errors.StorageError | None:
        """Note that reading a slice failed at a position of its file: later reads end before it.

        Returns the error of reads from there on; None if the file can be read there, so that the
        failure has another cause.
        """
        reason = _reason_unreadable(found.file, position)
        if reason is None:
            return None
        base = self._format.base_offset_of(found.file.path.name)
        assert base is not None
        segment = segment_of(self.all, base)
        offset, path = self._format.offset(segment, found.file, position), found.file.path
        text = f"cannot read {self.partition} at offset {offset}: {path}: {reason}"
        error = errors.UnreadableError(text)
        known = segment.unreadable
        if segment.base_offset != base or (known and known.position <= position):
            return error  # removed by retention since; or noted by another read
        if position >= segment.size or found.file.path.parent != segment.directory:
            return error  # truncated, or moved, since
        start = self._format.start_of(found.file, found.position, position)
        self._mark_unreadable(segment, start, position, text)
        return error

    def _mark_unreadable(self, segment: Segment, start: int, position: int, text: str) -> None:
        # one that is never raised: a traceback keeps files open
        error = errors.UnreadableError(text)
        segment.unreadable = Unreadable(start, position, self.clock.monotonic_s(), error)
        self.has_bad = True
        logger.error(
            "%s; reads from there to offset %d get this error until the file can be read again",
            *(error, segment.next_offset),
        )

    def note_damage(self, offset: int) -> None:
        """Note that the message at an offset is damaged; it is served until it is mended."""
        self._note_damage_in(segment_of(self.all, offset), offset)

    def _note_damage_in(self, segment: Segment, offset: int) -> None:
        if segment.damage is None or offset < segment.damage.offset:
            error = errors.DamagedError(
                f"{self.partition}: the message at offset {offset} is damaged in {segment.path}"
            )
            logger.error("%s", error)
            segment.damage = SegmentDamage(offset, error)
            self.has_bad = True

    def bad(self) -> list[Segment]:
        """Return the unreadable or damaged segments that another replica may have whole."""
        return [one for one in self.all if one.errors and not one.is_given_up]

    def retry_bad(self) -> None:
        """Retry to read the unreadable segments."""
        for segment in self.all:
            if segment.unreadable is not None:
                self._retry(segment, segment.unreadable)
        self.has_bad = False  # first, as a read may mark another one now
        self.find_bad()

    def find_bad(self) -> None:
        """Set `has_bad` if a segment is bad."""
        if self.bad():
            self.has_bad = True

    def _retry(self, segment: Segment, unreadable: Unreadable) -> SegmentFile | None:
        """Return the file of a segment if it can be read again, else None."""
        segment.unreadable = unreadable._replace(noted_s=self.clock.monotonic_s())
        self.files.discard(segment)  # the file may have been replaced
        try:
            file = self.files.get(segment)
            if _reason_unreadable(file, unreadable.position) is not None:
                return None
            if unreadable.start < (size := segment.size):
                start, _ = self._format.around(file, unreadable.start, size)
                # a file that had become shorter has zeros there once it is appended to
                if not self._format.is_good(file.fd, start, size):
                    self._note_damage_in(segment, self._format.offset(segment, file, start))
        except OSError:
            return None
        segment.unreadable = None
        logger.warning("%s can be read again: %s", self.partition, segment.path)
        return file

    def create(self, directory: Path, offset: int, now_ms: int) -> Segment:
        """Create the file of a new segment, open for writing; an `OSError` if the disk refuses."""
        segment = Segment(directory, offset, size=0, modified_ms=now_ms, format=self._format)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        segment.file = self.files.with_room(lambda: segment.open(flags))
        self._format.prepare([segment])
        return segment

    def cut_files(self, directory: Path, offset: int, disk: Disk) -> list[Segment]:
        """Remove all messages from an offset on, durably, and return the segments that are left.

        `all` is not changed yet. An `OSError` leaves a part of the messages, without a gap.
        """
        kept = [one for one in self.all if one.base_offset < offset]
        for segment in reversed(self.all[len(kept) :]):  # a crash between them leaves no gap
            segment.is_removed = True
            segment.unlink()
            self.files.discard(segment)
        sync_directory(directory)
        if kept and kept[-1].next_offset > offset:
            kept[-1] = self._shortened(kept[-1], offset, disk)
        return kept

    def _shortened(self, segment: Segment, offset: int, disk: Disk) -> Segment:
        """Truncate a segment's file, durably, and return the segment that ends at the offset."""
        file = segment.file or self.files.with_room(lambda: segment.open(os.O_RDWR))
        size = self._format.position(segment, file, offset)
        # a file that had become shorter gets zeros there, which can be read
        file_end = os.fstat(file.fd).st_size
        lost_from = size
        if file_end < size:
            lost_from = self._format.start_of(file, file.boundaries.floor(file_end), file_end)
        disk.truncate(file.fd, size)
        disk.sync(file.fd)  # else the next segment could overlap it after a crash
        self.files.discard(segment)
        segment.is_removed = True
        # not the same object, as readers may still use it with its old size
        left = segment.copy(size=size, next_offset=offset)
        self._format.shorten(left)
        if (damage := segment.damage) is not None and damage.offset < offset:
            left.damage, left.is_given_up = damage, segment.is_given_up
        if (unreadable := segment.unreadable) is not None and unreadable.start < size:
            left.unreadable = unreadable
        if lost_from < size:
            left.is_given_up = False
            self._note_damage_in(left, self._format.offset(left, file, lost_from))
        return left

    def close_files(self) -> None:
        """Close the files of all segments; those that readers hold stay open."""
        for segment in self.all:
            segment.file = None
            self.files.discard(segment)

    def move_to(self, directory: Path) -> None:
        """Use the files in another directory."""
        former = self.all
        for segment in former:
            segment.directory = directory  # for readers that are about to open it
        self.close_files()
        # not the same objects, as files of the old ones may be put into the cache later
        self.all = tuple(one.copy(size=one.size, next_offset=one.next_offset) for one in former)
        for one, before in zip(self.all, former, strict=True):
            one.index = before.index


def segment_of(segments: Sequence[Segment], offset: int) -> Segment:
    """Return the segment that holds an offset at or after the first one's start."""
    last = segments[-1]
    if offset >= last.base_offset:
        return last
    return segments[bisect_right(segments, offset, key=_BASE_OFFSET) - 1]


def _reason_unreadable(file: SegmentFile, position: int) -> str | None:
    """Return why a file cannot be read at a position, None if it can."""
    try:
        if os.pread(file.fd, 1, position):
            return None
    except OSError as error:
        return error.strerror or str(error)
    return f"the file ends at byte {os.fstat(file.fd).st_size}"
