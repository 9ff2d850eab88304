"""Archived segments: gzip files that retention makes, and that tools read beside plain segments.

One, always a whole segment, is `<archive>/<topic>_<home>-<index>/<segment>.gz`. It is read from a
temporary file, the unpacked segment; positions are those in it.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from broker.errors import LogCorruptError, StorageError
from broker.files import DIRECTORY_MODE, open_file, sync_directory
from broker.log.segment import SegmentFile
from broker.log.segment_paths import ARCHIVE_SUFFIX, base_offset_of
from broker.protocol.checksum import crc32
from broker.topic import TopicPartition

_BLOCK_BYTES = 1 << 20
_COMPRESS_LEVEL = 6


def is_archive(path: Path) -> bool:
    """Return whether a file is an archived segment, by its name."""
    return path.name.endswith(ARCHIVE_SUFFIX)


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
                for block in iter(lambda: source.read(_BLOCK_BYTES), b""):
                    packer.write(block)
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
