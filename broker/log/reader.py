"""Reading a log without a lock: from a snapshot of its segments and its visible end.

Owns nothing but the way from an offset to the file that holds it.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from broker.errors import OffsetOutOfRangeError, StorageError
from broker.log.lookup import boundaries_despite_damage
from broker.log.segment import FileSlice, Segment, SegmentFile, SegmentFiles
from broker.topic import TopicPartition

_BASE_OFFSET = attrgetter("base_offset")


class Boundaries(NamedTuple):
    """The offsets around a position where entries start; equal if it is one itself."""

    before: int
    after: int


class LogReader:
    """Reads one log.

    Args:
        partition: whose log, for error texts.
        files: open descriptors, shared with other logs.
    """

    __slots__ = ("_files", "_partition")

    def __init__(self, partition: TopicPartition, files: SegmentFiles) -> None:
        self._partition = partition
        self._files = files

    def read(
        self, segments: tuple[Segment, ...], visible_end: int, offset: int, max_bytes: int
    ) -> FileSlice | None:
        """Return where the visible bytes from an offset on are (`Log.read`)."""
        if not segments[0].base_offset <= offset < visible_end:
            if offset == visible_end:
                return None
            raise self._out_of_range(segments, visible_end, offset)
        segment = _segment_of(segments, offset)
        base = segment.base_offset
        end = min(base + segment.size, visible_end)
        return FileSlice(self._open(segment), offset - base, min(max_bytes, end - offset))

    def boundaries_around(
        self, segments: tuple[Segment, ...], visible_end: int, position: int
    ) -> Boundaries:
        """Return the message boundaries around a position (`Log.boundary_at_or_before`)."""
        if position == visible_end:
            return Boundaries(position, position)
        if not segments[0].base_offset <= position < visible_end:
            raise self._out_of_range(segments, visible_end, position)
        segment = _segment_of(segments, position)
        base = segment.base_offset
        end = min(segment.end_offset, visible_end) - base
        try:
            before, after = boundaries_despite_damage(self._open(segment), position - base, end)
        except OSError as error:
            raise self._unreadable(segment, error) from error
        return Boundaries(base + before, base + after)

    def _open(self, segment: Segment) -> SegmentFile:
        try:
            return self._files.get(segment)
        except OSError as error:
            if segment.is_removed:  # by retention, since the snapshot was taken
                raise OffsetOutOfRangeError(
                    f"{self._partition}: the segment at {segment.base_offset} was just removed"
                ) from error
            raise self._unreadable(segment, error) from error

    def _unreadable(self, segment: Segment, error: OSError) -> StorageError:
        return StorageError(f"cannot read {self._partition}: {segment.path}: {error.strerror}")

    def _out_of_range(
        self, segments: tuple[Segment, ...], visible_end: int, offset: int
    ) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"offset {offset} of {self._partition} is out of range: "
            f"{segments[0].base_offset} to {visible_end} can be read"
        )


def _segment_of(segments: tuple[Segment, ...], offset: int) -> Segment:
    """Return the segment that holds an offset at or after the first one's start."""
    last = segments[-1]
    if offset >= last.base_offset:
        return last
    return segments[bisect_right(segments, offset, key=_BASE_OFFSET) - 1]
