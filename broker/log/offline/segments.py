"""Segment files for tools: which files are segments, of this broker and of Kafka 0.7, and archives.

An archived segment is a gzip file that retention makes, always of a whole segment:
`<archive>/<topic>_<partition>/<segment>.gz`. It is read from a temporary file, the unpacked
segment; positions are those in it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from broker.errors import LogCorruptError
from broker.log import batches, scan
from broker.log.data_directory import ARCHIVE_SUFFIX, DELETED_NAME, MOVING_NAME
from broker.log.segment import SegmentFile
from broker.topic import NO_HOME, TopicPartition

_BLOCK_BYTES = 1 << 20
_LOOKED_AT_BYTES = 16 << 20
# 0.7's have any width, as those of Kafka before it; `.log` is Kafka's since 0.8
_NAME = re.compile(r"([0-9]{1,20}(?=\.(?:pylog|kafka)$)|[0-9]{20}(?=\.log$))\.\w+", re.ASCII)
_ARCHIVE_DIRECTORY = re.compile(r"(.+)_([0-9]+(?:-[0-9]+)?)", re.ASCII)
_DIGITS = re.compile(r"([0-9]+)", re.ASCII)
_LEFT_BY_KAFKA = re.compile(r".+-[0-9]+\.[0-9a-f]{32}-(delete|stray|future)", re.ASCII)
_NOT_SERVED = frozenset((DELETED_NAME, MOVING_NAME))
"""Parts of a data directory with logs that no broker serves."""


def base_offset_of(path: Path) -> int | None:
    """Return the base offset in the name of a `.pylog` or `.kafka` segment, else None."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def expand_paths(paths: Iterable[Path], *, archives: bool = False) -> list[Path]:
    """Return the given files, and the segments in and below the given directories, each once.

    Files inside a directory come in natural order (`t_2` before `t_10`); missing paths are returned
    as given. Left out are, of a data directory, the logs of deleted topics and copies under
    construction, also those of Kafka, and archived segments unless asked for. A directory that
    cannot be listed, as it was removed meanwhile, is returned itself.
    """
    found: list[Path] = []
    for path in paths:
        found += _segments_below(path, archives) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def segments_of(directory: Path, *, archives: bool = False) -> list[Path]:
    """Return the segments directly in a directory, with archived ones if asked, by base offset."""
    found = (path for path in directory.iterdir() if is_segment(path, archives=archives))
    return sorted(found, key=_natural_key)


def is_segment(path: Path, *, archives: bool) -> bool:
    """Return whether a path has the name of a segment, and is a file or a link to one."""
    name = path.name.removesuffix(ARCHIVE_SUFFIX) if archives else path.name
    return _NAME.fullmatch(name) is not None and path.is_file()


def _segments_below(directory: Path, archives: bool) -> list[Path]:
    found: list[Path] = []
    failed: list[OSError] = []
    seen: set[str] = set()  # a link may lead back
    for parent, names, files in os.walk(directory, onerror=failed.append, followlinks=True):
        if (place := os.path.realpath(parent)) in seen:
            names.clear()
            continue
        seen.add(place)
        names[:] = [
            one for one in names if one not in _NOT_SERVED and not _LEFT_BY_KAFKA.fullmatch(one)
        ]
        paths = (Path(parent, one) for one in files)
        found += (path for path in paths if is_segment(path, archives=archives))
    found += (Path(one.filename) for one in failed)
    return sorted(found, key=_natural_key)


def _natural_key(path: Path) -> list[list[tuple[int, str]]]:
    return [
        [(int(text), "") if text.isdecimal() else (-1, text) for text in _DIGITS.split(part)]
        for part in path.parts
    ]


def is_archive(path: Path) -> bool:
    """Return whether a file is an archived segment, by its name."""
    return path.name.endswith(ARCHIVE_SUFFIX)


def archived_partition_of(directory: Path, *, has_batches: bool = False) -> TopicPartition | None:
    """Return whose archive a directory is, `<topic>_<partition>`; None for another name."""
    found = _ARCHIVE_DIRECTORY.fullmatch(directory.name)
    partition = TopicPartition.named(*found.groups()) if found else None
    return partition if partition and (partition.home == NO_HOME) == has_batches else None


def is_archive_of_batches(path: Path) -> bool:
    """Return whether a file is an archived segment of Kafka's batches, by its name."""
    return path.name.endswith(f".log{ARCHIVE_SUFFIX}")


def archived_base_offset_of(path: Path) -> int | None:
    """Return the base offset in the name of a segment, archived or not, else None."""
    return base_offset_of(path.with_name(path.name.removesuffix(ARCHIVE_SUFFIX)))


def open_segment(path: Path) -> SegmentFile:
    """Open a segment for reading, an archived one unpacked (`LogCorruptError` if damaged).

    `OSError` for what is no regular file: the open of a FIFO would wait for a writer.
    """
    status = _regular_status(path)
    if not is_archive(path):
        return SegmentFile(path)
    return _unpacked(path, status.st_mtime_ns, status.st_size)


def _regular_status(path: Path) -> os.stat_result:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return status


@lru_cache(maxsize=1)  # commands and tasks open an archive several times, one after the other
def _unpacked(path: Path, modified_ns: int, packed_bytes: int) -> SegmentFile:
    """Return an archive unpacked; the time and size tell whether the file is still the same."""
    with tempfile.NamedTemporaryFile(prefix="pylogctl-", suffix=".segment") as unpacked:
        try:
            with gzip.open(path) as packed:
                shutil.copyfileobj(packed, unpacked, _BLOCK_BYTES)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise LogCorruptError(f"{path}: the archive is damaged: {error}") from error
        unpacked.flush()
        return SegmentFile(Path(unpacked.name))  # its descriptor outlives the name


def has_batches(path: Path) -> bool:
    """Return whether a segment is of Kafka's batches, not of 0.7's entries; errors as above.

    Its start tells, if that is undamaged, else its name, else the first good batch.
    """
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    if batches.has_good_batch(file.fd):
        return True
    if scan.has_good_entry(file.fd, 0, size):
        return False
    name = path.name.removesuffix(ARCHIVE_SUFFIX)
    if _NAME.fullmatch(name):
        return name.endswith(".log")
    return batches.find_batch(file.fd, 0, min(size, _LOOKED_AT_BYTES)) is not None


def segment_bytes(path: Path) -> int:
    """Return the size of a segment, of an archived one unpacked; errors as `open_segment`."""
    file = open_segment(path)  # kept, as its descriptor closes with it
    return os.fstat(file.fd).st_size


def stated_bytes(path: Path) -> int:
    """Return the size of a segment, of an archived one unpacked as its last four bytes state it.

    Quick, and right for archives of less than 4 GiB, as retention makes them.
    """
    size = _regular_status(path).st_size
    if not is_archive(path):
        return size
    with path.open("rb") as file:
        return int.from_bytes(os.pread(file.fileno(), 4, max(0, size - 4)), "little")


def total_bytes(paths: Iterable[Path]) -> int:
    """Return the size of segments for a display, archived ones unpacked, unreadable ones 0."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += stated_bytes(path)
    return total
