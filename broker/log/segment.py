"""Segment files: their descriptors, sparse boundary index and the system calls on them.

Which segment is active and how much of it is flushed is the subject of `log`.
"""

from __future__ import annotations

import errno
import os
import sys
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from broker.errors import DiskFullError, StorageError
from broker.files import is_out_of_descriptors, open_file
from broker.protocol.message import Fault
from broker.protocol.primitives import Buffer
from broker.protocol.record_batch import RecordBatch

SPACING_BYTES = 1 << 20
_FLUSHED_FOR_ROOM = 16
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_Result = TypeVar("_Result")


class BoundaryIndex:
    """Sparse index of entry starts in one segment file, about one for each MiB, the first being 0.

    Takes 8 bytes for each MiB of log, and exists only while its file is open.
    """

    __slots__ = ("_lock", "_positions")

    def __init__(self) -> None:
        self._lock = Lock()
        self._positions = array("q", [0])

    def append(self, position: int) -> None:
        """Add an entry start behind all others, unless it is too close to the last one."""
        if position - self._positions[-1] >= SPACING_BYTES:
            self.insert(position)

    def insert(self, position: int) -> None:
        """Add an entry start, unless another one is too close."""
        with self._lock:
            positions = self._positions
            at = bisect_left(positions, position)
            if position - positions[at - 1] < SPACING_BYTES:
                return
            if at < len(positions) and positions[at] - position < SPACING_BYTES:
                return
            positions.insert(at, position)

    def floor(self, position: int) -> int:
        """Return the last indexed entry start at or before a position."""
        with self._lock:
            return self._positions[bisect_right(self._positions, position) - 1]

    def __len__(self) -> int:
        return len(self._positions)


class OffsetRows(Protocol):
    """Some rows of the index of a segment of batches; see `IndexRows`."""

    def are_around(self, offset: int) -> bool:
        """Return whether an offset is between the first row and the last one."""

    def floor(self, offset: int) -> tuple[int, int]:
        """Return last offset and position of a batch at or before the one with an offset."""


class SegmentFile:
    """An open segment file, whose descriptor closes with the last reference to it.

    Readers, the flusher and the cache hold references, so that a file deleted by retention stays
    readable for fetches in flight. A broker opens its own files by `Segment.open`, which follows no
    link; tools may follow links.
    """

    __slots__ = ("__weakref__", "boundaries", "fd", "path", "resumptions", "rows")
    all_open: ClassVar[weakref.WeakSet[SegmentFile]] = weakref.WeakSet()

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.path = path
        self.fd = open_file(path, flags) if flags & os.O_NOFOLLOW else os.open(path, flags)
        self.boundaries = BoundaryIndex()
        # where `boundaries_despite_damage` found the next entry, by the start and end of the search
        self.resumptions: dict[tuple[int, int], int] = {}
        self.rows: OffsetRows | None = None  # those of the last lookup in the file of the index
        weakref.finalize(self, os.close, self.fd).atexit = False
        self.all_open.add(self)


@dataclass(frozen=True, slots=True)
class Disk:
    """The system calls by which a log writes, syncs and truncates segment files.

    An argument, so that tests can make them write short, run out of space or fail.
    """

    pwrite: Callable[[int, Buffer, int], int] = os.pwrite
    sync: Callable[[int], None] = os.fdatasync
    truncate: Callable[[int, int], None] = os.ftruncate

    def write_all(self, fd: int, content: Buffer, position: int) -> None:
        """Write a whole buffer at a position; on an `OSError` a part of it may be in the file."""
        written = self.pwrite(fd, content, position)
        if written == len(content):
            return
        rest = memoryview(content)
        while True:
            if written <= 0:
                raise OSError(0, "the disk took none of the bytes")
            rest = rest[written:]
            position += written
            if not rest:
                return
            written = self.pwrite(fd, rest, position)


class SliceSource(Protocol):
    """The log of a slice."""

    def note_unreadable(self, found: FileSlice, position: int) -> StorageError | None:
        """See `LogSegments.note_unreadable`."""


class FileSlice(NamedTuple):
    """A range of bytes of an open segment file, ready for `os.sendfile`, and the log it is of."""

    file: SegmentFile
    position: int
    length: int
    source: SliceSource


class Unreadable(NamedTuple):
    """The part of a segment that cannot be read: all from the position `start` on.

    Whole entries lie before `start`; `position`, in the entry that starts there, is where reading
    failed. `noted_s` is the monotonic time of the last attempt.
    """

    start: int
    position: int
    noted_s: float
    error: StorageError


class SegmentDamage(NamedTuple):
    """The first damaged message that was found in a segment; `offset` is where it starts."""

    offset: int
    error: StorageError


PlacedSet = tuple[Buffer, int, Sequence[RecordBatch]]
"""Bytes to write, the offset behind them, and the heads of batches at their positions in them."""


class CopiedEntries(NamedTuple):
    """Whole entries, or batches, copied from another replica's log."""

    data: memoryview
    entry_count: int
    next_offset: int
    """Behind the last of them."""
    heads: Sequence[RecordBatch] = ()
    """Of the batches, at their positions in the data."""


class FoundScan(Protocol):
    """What `Scan` and `BatchScan` have in common."""

    @property
    def valid_bytes(self) -> int:
        """The position of the first fault, or the end."""

    @property
    def fault(self) -> Fault:
        """Why the scan ended there."""


class SegmentIndex(Protocol):
    """The index in memory of a segment of batches that is appended to; see `batch_index`."""

    end: tuple[int, int]

    @property
    def largest(self) -> tuple[int, int]:
        """The largest timestamp, and the last offset of the first batch that has it."""

    def needs_roll(self, heads: Sequence[RecordBatch], age_ms: int, roll_ms: int) -> bool:
        """Return whether batches have to be in another segment; this one is so old."""

    def add(self, batch: RecordBatch, position: int = 0) -> None:
        """Add a batch that was appended, at its position behind the given one."""

    is_from_files: bool

    def floor(self, offset: int) -> tuple[int, int]:
        """See `OffsetRows`."""

    def floor_of_time(self, time_ms: int) -> int:
        """Return an offset up to which all batches are of before a time."""

    def write(self, segment: Path) -> None:
        """Write the files beside a segment; an `OSError` if the disk refuses."""


class TimedOffset(NamedTuple):
    """A record with its time, milliseconds since 1970."""

    timestamp: int
    offset: int


class Appended(NamedTuple):
    """Where the messages of an append are in a log."""

    base_offset: int
    end_offset: int


class LogFormat(Protocol):
    """What differs between the logs of two formats.

    A log, its recovery and its retention know offsets, and not what an offset counts: each step
    from an offset to a position, and back, is a call of a format.
    """

    name: str
    counts_records: bool
    """Whether offsets count records, so that each can be read from; else bytes."""

    def segment_name(self, base_offset: int) -> str:
        """Return the file name of the segment that starts at an offset."""

    def base_offset_of(self, name: str) -> int | None:
        """Return the base offset in the name of a segment's file, None for another name."""

    def files_of(self, segment: Path) -> tuple[Path, ...]:
        """Return the paths of all files that a segment can have, its messages last."""

    def open_end(self, segment: Segment) -> int:
        """Return the offset behind the last message of a segment that was found."""

    def prepare(self, segments: Sequence[Segment]) -> None:
        """Prepare the segments that were found for the log's appends and reads."""

    def time_ms(self, segment: Segment) -> int:
        """Return of which time the youngest message is, milliseconds since 1970."""

    def copied(
        self, chunk: Buffer, partition: object, offset: int, found: FoundScan | None = None
    ) -> CopiedEntries:
        """Return the whole entries in a chunk of another replica's log, read at `offset`.

        A last entry that is cut is left out; a damaged one raises `InvalidMessageError`. `found` is
        the scan of the chunk, if there is one.
        """

    def place(self, message_set: Buffer, offset: int, leader_epoch: int) -> PlacedSet:
        """Return the bytes to write for a set that is appended at an offset."""

    def close(self, segment: Segment) -> None:
        """Write the indexes of a segment that is no longer appended to."""

    def shorten(self, segment: Segment) -> None:
        """Write the indexes of a segment that was cut anew."""

    def position(self, segment: Segment, file: SegmentFile, offset: int) -> int:
        """Return where the message with an offset starts, or the first one behind it."""

    def offset(self, segment: Segment, file: SegmentFile, position: int) -> int:
        """Return the offset of the message that starts at a position, or would start there."""

    def around(self, file: SegmentFile, position: int, end: int) -> tuple[int, int]:
        """Return the starts of messages next to a position, of good or damaged ones."""

    def start_of(self, file: SegmentFile, start: int, position: int) -> int:
        """Return the start of the message that holds a position, walking from another's start."""

    def is_good(self, fd: int, position: int, end: int) -> bool:
        """Return whether a whole message with a good CRC starts at a position."""

    def find(self, fd: int, position: int, end: int) -> int | None:
        """Return the position of the next good message, None if there is none."""

    def valid_end(self, segment: Segment, file: SegmentFile, position: int) -> int:
        """Return where the valid messages of a segment end, which are good up to a position."""

    def find_time(
        self, segment: Segment, file: SegmentFile, time_ms: int, offset: int
    ) -> TimedOffset | None:
        """Return the first record of a segment from an offset and a time on, None without one."""


@dataclass(eq=False, slots=True)
class Segment:
    """One file of a log; only the log changes it, under its append lock."""

    directory: Path
    base_offset: int
    size: int = field(kw_only=True)
    modified_ms: int = field(kw_only=True)
    """When it was last appended to, milliseconds since 1970."""
    format: LogFormat = field(kw_only=True)
    next_offset: int = field(default=-1, kw_only=True)
    """That of the first message behind it; found in the file unless it is given."""
    index: SegmentIndex | None = field(default=None, init=False)
    """Of a segment of batches that is appended to."""
    largest: tuple[int, int] | None = field(default=None, init=False)
    """Of a closed segment of batches: the largest timestamp, once it was asked for."""
    file: SegmentFile | None = field(default=None, init=False)
    """Set while the segment is active: fsync errors are reported to the writer's descriptor."""
    is_removed: bool = field(default=False, init=False)
    is_replaced: bool = field(default=False, init=False)
    """Whether another segment has its offsets: compaction has removed it."""
    unreadable: Unreadable | None = field(default=None, init=False)
    damage: SegmentDamage | None = field(default=None, init=False)
    is_given_up: bool = field(default=False, init=False)
    """Set once it is known that no other replica has its messages in good order."""

    def __post_init__(self) -> None:
        if self.next_offset < 0:
            self.next_offset = self.format.open_end(self)

    @property
    def path(self) -> Path:
        """Return the path of the segment's file."""
        return self.directory / self.format.segment_name(self.base_offset)

    @property
    def time_ms(self) -> int:
        """Return of which time its youngest message is, milliseconds since 1970."""
        return self.format.time_ms(self)

    def copy(self, *, size: int, next_offset: int) -> Segment:
        """Return a segment of the same file, or of so much of it, that is not known to be bad."""
        return replace(self, size=size, next_offset=next_offset)

    def unlink(self) -> None:
        """Remove all files of the segment that are there."""
        for path in self.format.files_of(self.path):
            path.unlink(missing_ok=True)

    @property
    def errors(self) -> list[StorageError]:
        """Return the known errors of the file."""
        return [one.error for one in (self.unreadable, self.damage) if one is not None]

    def open(self, flags: int = os.O_RDONLY) -> SegmentFile:
        """Open the file, unless it is a symbolic link."""
        return SegmentFile(self.path, flags | os.O_NOFOLLOW)


def write_error(error: OSError) -> type[StorageError]:
    """Return the type of error for a write that failed."""
    return DiskFullError if error.errno in _NO_ROOM else StorageError


class SegmentWriter(Protocol):
    """A log that holds the file of its active segment open."""

    @property
    def last_append_ms(self) -> int:
        """Return when it was last written to."""

    def release_file(self, *, may_flush: bool) -> bool:
        """See `Log.release_file`."""


class SegmentFiles:
    """The open segment files of all logs, within a number of descriptors.

    Has a cache of `capacity` files that are read, of which the least recently read one is evicted
    and closes as soon as no reader holds it, and knows the logs that hold the file of their active
    segment: if these are more than `writer_capacity`, those not written to for longest close it.
    Responses that are under way hold files, too: no more are opened to read if all are many, so
    that there are descriptors for connections and checkpoints.
    """

    def __init__(self, capacity: int = 512, writer_capacity: int = 1 << 20) -> None:
        self._capacity = capacity
        self._writer_capacity = writer_capacity
        self._most_open = sys.maxsize
        self._lock = Lock()
        self._files: OrderedDict[Segment, SegmentFile] = OrderedDict()
        # weakly, as the logs refer to this, and one dropped without a close has a file to close
        self._writers: weakref.WeakSet[SegmentWriter] = weakref.WeakSet()

    def fit(self, descriptor_count: int) -> None:
        """Use five eighths of the process's descriptors, two thirds with those of responses."""
        self._capacity = max(1, min(self._capacity, descriptor_count // 8))
        self._writer_capacity = max(1, descriptor_count // 2)
        self._most_open = descriptor_count * 2 // 3

    def get(self, segment: Segment) -> SegmentFile:
        """Return an open file of a segment; `FileNotFoundError` once retention deleted it."""
        if (active := segment.file) is not None:
            return active
        with self._lock:
            if (known := self._files.get(segment)) is not None:
                self._files.move_to_end(segment)
                return known
        opened = self.with_room(partial(self._open, segment))
        self.put(segment, opened)
        return opened

    def _open(self, segment: Segment) -> SegmentFile:
        """Open a file for a reader, unless the others need the descriptors that are left."""
        if len(SegmentFile.all_open) >= self._most_open:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(segment.path))
        return segment.open()

    def with_room(self, action: Callable[[], _Result]) -> _Result:
        """Call a function that opens a file; if too many are open, once more after closing some."""
        try:
            return action()
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise
            self.make_room()
            return action()

    def make_room(self) -> None:
        """Close the files that can be opened again."""
        self.clear()
        with self._lock:
            writers = self._oldest(len(self._writers))
        _release(writers)

    def note_writer(self, writer: SegmentWriter) -> None:
        """Note that a log holds the file of its active segment; others may close theirs."""
        with self._lock:
            self._writers.add(writer)
            if len(self._writers) <= self._writer_capacity:
                return
            # several at once, as the order takes time
            oldest = self._oldest(max(1, len(self._writers) // 4))
        _release(oldest)

    def forget_writer(self, writer: SegmentWriter) -> None:
        """Note that a log no longer holds a file."""
        with self._lock:
            self._writers.discard(writer)

    def _oldest(self, count: int) -> list[SegmentWriter]:
        """Return the logs not written to for longest; caller holds the lock."""
        return sorted(self._writers, key=attrgetter("last_append_ms"))[:count]

    def put(self, segment: Segment, file: SegmentFile) -> None:
        """Cache an open file of a segment."""
        with self._lock:
            self._files[segment] = file
            if len(self._files) > self._capacity:
                self._files.popitem(last=False)

    def discard(self, segment: Segment) -> None:
        """Drop a segment's file, so that its disk space is freed after the last reader."""
        with self._lock:
            self._files.pop(segment, None)

    def clear(self) -> None:
        """Drop every file that is kept for readers."""
        with self._lock:
            self._files.clear()

    def __len__(self) -> int:
        return len(self._files)


def _release(writers: Sequence[SegmentWriter]) -> None:
    """Make logs close their files; if all have something to flush, let a few flush it first."""
    if not sum([writer.release_file(may_flush=False) for writer in writers]):
        for writer in writers[:_FLUSHED_FOR_ROOM]:
            writer.release_file(may_flush=True)
