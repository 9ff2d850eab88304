"""Segment files: their names, descriptors, sparse boundary index and the system calls on them.

Which segment is active and how much of it is flushed is the subject of `log`.
"""

from __future__ import annotations

import os
import re
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from broker.log.data_directory import DELETED_NAME
from broker.protocol.primitives import Buffer

SPACING_BYTES = 1 << 20


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


_SEGMENT_SUFFIX = ".pylog"
_KAFKA_SUFFIX = ".kafka"

_SEGMENT_NAME = re.compile(r"([0-9]{20})\.pylog", re.ASCII)


def segment_name(base_offset: int) -> str:
    """Return the file name of the segment that starts at an offset: 20 digits and `.pylog`.

    Source: Kafka 0.7 `Log.nameFromOffset`, with another suffix.
    """
    return f"{base_offset:020d}{_SEGMENT_SUFFIX}"


def parse_segment_name(name: str) -> int | None:
    """Return the base offset in the name of a segment of this broker, None for another name."""
    found = _SEGMENT_NAME.fullmatch(name)
    return int(found[1]) if found else None


class SegmentFile:
    """An open segment file, whose descriptor closes with the last reference to it.

    Readers, the flusher and the cache hold references, so that a file deleted by retention stays
    readable for fetches in flight.

    Args:
        path: the file.
        flags: `os.open` flags.

    Raises:
        OSError: the file cannot be opened.
    """

    __slots__ = ("__weakref__", "boundaries", "fd")

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.fd = os.open(path, flags, 0o644)
        self.boundaries = BoundaryIndex()
        weakref.finalize(self, os.close, self.fd).atexit = False


@dataclass(frozen=True, slots=True)
class Disk:
    """The system calls by which a log writes, syncs and truncates segment files.

    An argument, so that tests can make them write short, run out of space or fail.
    """

    pwrite: Callable[[int, Buffer, int], int] = os.pwrite
    sync: Callable[[int], None] = os.fdatasync
    truncate: Callable[[int, int], None] = os.ftruncate

    def write_all(self, fd: int, content: Buffer, position: int) -> None:
        """Write a whole buffer at a position, continuing after short writes.

        Raises:
            OSError: the disk refused a part; the bytes before it are in the file.
        """
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


class FileSlice(NamedTuple):
    """A range of bytes of an open segment file, ready for `os.sendfile`."""

    file: SegmentFile
    position: int
    length: int


class Segment:
    """One file of a log; only the log changes it, under its append lock.

    Args:
        directory: the log's directory.
        base_offset: the offset of the first message.
        size: bytes in the file.
        modified_ms: time of the last append, milliseconds since 1970.
    """

    __slots__ = ("base_offset", "directory", "file", "is_removed", "modified_ms", "size")

    def __init__(self, directory: Path, base_offset: int, *, size: int, modified_ms: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.modified_ms = modified_ms
        # Set while the segment is active: fsync errors are reported to the writer's descriptor.
        self.file: SegmentFile | None = None
        self.is_removed = False

    @property
    def path(self) -> Path:
        """Return the path of the segment's file."""
        return self.directory / segment_name(self.base_offset)

    @property
    def end_offset(self) -> int:
        """Return the offset after the last message."""
        return self.base_offset + self.size


class SegmentFiles:
    """A bounded cache of open descriptors for segments that are not active.

    The least recently read one is evicted; it closes as soon as no reader holds it.

    Args:
        capacity: how many descriptors to keep, at least 1.
    """

    def __init__(self, capacity: int = 512) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._files: OrderedDict[Segment, SegmentFile] = OrderedDict()

    def get(self, segment: Segment) -> SegmentFile:
        """Return an open file of a segment, opening it if necessary.

        Raises:
            OSError: the file cannot be opened; `FileNotFoundError` once retention deleted it.
        """
        if (active := segment.file) is not None:
            return active
        with self._lock:
            if (known := self._files.get(segment)) is not None:
                self._files.move_to_end(segment)
                return known
        opened = SegmentFile(segment.path)
        self.put(segment, opened)
        return opened

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
        """Drop every file."""
        with self._lock:
            self._files.clear()

    def __len__(self) -> int:
        return len(self._files)


_NAME = re.compile(
    rf"([0-9]{{20}})(?:{re.escape(_SEGMENT_SUFFIX)}|{re.escape(_KAFKA_SUFFIX)})", re.ASCII
)
_DIGITS = re.compile(r"([0-9]+)", re.ASCII)


def base_offset_of(path: Path) -> int | None:
    """Return the base offset in the name of a `.pylog` or `.kafka` segment, else None."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def expand_paths(paths: Iterable[Path]) -> list[Path]:
    """Return the given files, and the segments in and below the given directories, each once.

    Logs of deleted topics that a data directory still contains are left out. Files inside a
    directory come in natural order (`t_2` before `t_10`); missing paths are returned as given.
    """
    found: list[Path] = []
    for path in paths:
        found += _segments_below(path) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def segments_of(directory: Path) -> list[Path]:
    """Return the segments directly in a directory, by base offset."""
    return sorted(path for path in directory.iterdir() if base_offset_of(path) is not None)


def _segments_below(directory: Path) -> list[Path]:
    found = [
        path
        for path in directory.rglob("*")
        if base_offset_of(path) is not None
        and DELETED_NAME not in path.relative_to(directory).parts
    ]
    return sorted(found, key=_natural_key)


def _natural_key(path: Path) -> list[list[tuple[int, str]]]:
    return [
        [(int(text), "") if text.isdecimal() else (-1, text) for text in _DIGITS.split(part)]
        for part in path.parts
    ]
