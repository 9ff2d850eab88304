"""One segment file: its name, its size, its descriptor.

Owns the naming of segment files and the life of descriptors. Does not know which segment is
active, what is flushed, or what an entry looks like.

Where some of a segment's entries start, so that a search need not walk the whole file.

Owns a sorted, sparse list of positions in one file; never reads the file itself.

Segment files as offline tools find them: by path, of this broker or of a real Kafka 0.7.

Owns which files a path stands for and in which order. Opens none of them.
"""

from __future__ import annotations

import os
import re
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from broker.log.data_directory import DELETED_NAME

SPACING_BYTES = 1 << 20


class BoundaryIndex:
    """Known entry starts of one segment file, about one for each MiB, the first being 0.

    Eight bytes for each MiB of log; an index lives and dies with its open file, so memory is
    bounded by the number of open files.
    """

    __slots__ = ("_lock", "_positions")

    def __init__(self) -> None:
        self._lock = Lock()
        self._positions = array("q", [0])

    def append(self, position: int) -> None:
        """Note an entry start that lies behind all known ones, unless it is too close to the last.

        Args:
            position: where in the file an entry starts.
        """
        if position - self._positions[-1] >= SPACING_BYTES:
            self.insert(position)

    def insert(self, position: int) -> None:
        """Note an entry start anywhere, unless a known one is too close.

        Args:
            position: where in the file an entry starts.
        """
        with self._lock:
            positions = self._positions
            at = bisect_left(positions, position)
            if position - positions[at - 1] < SPACING_BYTES:
                return
            if at < len(positions) and positions[at] - position < SPACING_BYTES:
                return
            positions.insert(at, position)

    def floor(self, position: int) -> int:
        """Return the last known entry start at or before a position.

        Args:
            position: a position in the file, 0 or more.
        """
        with self._lock:
            return self._positions[bisect_right(self._positions, position) - 1]

    def __len__(self) -> int:
        return len(self._positions)


SEGMENT_SUFFIX = ".pylog"
KAFKA_SUFFIX = ".kafka"

_SEGMENT_NAME = re.compile(r"([0-9]{20})\.pylog", re.ASCII)


def segment_name(base_offset: int) -> str:
    """Return the file name of the segment that starts at an offset.

    Args:
        base_offset: the offset of the segment's first byte.

    Returns:
        20 digits and `.pylog`.

    Source: Kafka 0.7 `Log.nameFromOffset`, with another suffix.
    """
    return f"{base_offset:020d}{SEGMENT_SUFFIX}"


def parse_segment_name(name: str) -> int | None:
    """Return the base offset a file name stands for.

    Args:
        name: a file name without directory.

    Returns:
        The offset, or None when the name is not that of a segment of this broker.
    """
    found = _SEGMENT_NAME.fullmatch(name)
    return int(found[1]) if found else None


class SegmentFile:
    """An open segment file, whose descriptor closes when the last reference goes.

    Readers, the flusher and the cache share it by holding references, so a file that retention
    deletes stays readable for whoever is still sending it.

    Args:
        path: the file.
        flags: `os.open` flags; read-only unless told otherwise.

    Raises:
        OSError: the file cannot be opened.
    """

    __slots__ = ("__weakref__", "boundaries", "fd")

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.fd = os.open(path, flags, 0o644)
        self.boundaries = BoundaryIndex()
        weakref.finalize(self, os.close, self.fd).atexit = False


class FileSlice(NamedTuple):
    """A range of bytes of an open segment file, ready for `os.sendfile`."""

    file: SegmentFile
    position: int
    length: int


class Segment:
    """One file of a log; the log alone changes it, under its append lock.

    Args:
        directory: the log's directory.
        base_offset: the offset of the first byte.
        size: bytes in the file.
        modified_ms: time of the last append, milliseconds since 1970.
    """

    __slots__ = ("base_offset", "directory", "file", "is_removed", "modified_ms", "size")

    def __init__(self, directory: Path, base_offset: int, *, size: int, modified_ms: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.modified_ms = modified_ms
        # Set while the segment is appended to: the writer's descriptor must see its fsync errors.
        self.file: SegmentFile | None = None
        self.is_removed = False

    @property
    def path(self) -> Path:
        """Return the segment's file."""
        return self.directory / segment_name(self.base_offset)

    @property
    def end_offset(self) -> int:
        """Return the offset after the last written byte."""
        return self.base_offset + self.size


class SegmentFiles:
    """A bounded number of open descriptors for segments that are only read.

    The least recently read one is forgotten when there are too many; it closes as soon as no
    reader holds it.

    Args:
        capacity: how many descriptors to keep, at least 1.
    """

    def __init__(self, capacity: int = 512) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._files: OrderedDict[Segment, SegmentFile] = OrderedDict()

    def get(self, segment: Segment) -> SegmentFile:
        """Return an open file of a segment, opening it if need be.

        Args:
            segment: the segment to read.

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
        """Keep an open file for the readers to come.

        Args:
            segment: the segment it belongs to.
            file: the open file.
        """
        with self._lock:
            self._files[segment] = file
            if len(self._files) > self._capacity:
                self._files.popitem(last=False)

    def discard(self, segment: Segment) -> None:
        """Forget a segment's file, so that its disk space is freed when the last reader is done.

        Args:
            segment: a segment that was deleted.
        """
        with self._lock:
            self._files.pop(segment, None)

    def clear(self) -> None:
        """Forget every file."""
        with self._lock:
            self._files.clear()

    def __len__(self) -> int:
        return len(self._files)


_NAME = re.compile(
    rf"([0-9]{{20}})(?:{re.escape(SEGMENT_SUFFIX)}|{re.escape(KAFKA_SUFFIX)})", re.ASCII
)
_DIGITS = re.compile(r"([0-9]+)", re.ASCII)


def base_offset_of(path: Path) -> int | None:
    """Return the offset a segment's name says it starts at, None for another file's name.

    Args:
        path: any path; `.pylog` and `.kafka` names count.
    """
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def expand_paths(paths: Iterable[Path]) -> list[Path]:
    """Return files as given, and the segments of directories and the directories below.

    Logs of deleted topics that wait in a data directory to be removed are none of them.

    Args:
        paths: files and directories; what does not exist is passed on as it is.

    Returns:
        Each file once: in the order given, inside a directory in natural order (`t_2` before
        `t_10`).
    """
    found: list[Path] = []
    for path in paths:
        found += _segments_below(path) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def segments_of(directory: Path) -> list[Path]:
    """Return the segments directly in a directory, by base offset.

    Args:
        directory: an existing directory.
    """
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
        [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in _DIGITS.split(part)]
        for part in path.parts
    ]
