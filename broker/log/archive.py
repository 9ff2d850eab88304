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
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    if not is_archive(path):
        return SegmentFile(path)
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
