"""Segments kept elsewhere, compressed, before retention deletes them.

Owns the archive's layout, `<archive>/<topic>_<home>-<index>/<segment>.gz`, and the promise that a
file there holds the whole segment. Does not delete segments.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO

from broker.errors import StorageError
from broker.log.durable import sync_directory
from broker.protocol.checksum import crc32
from broker.topic import TopicPartition

_BLOCK_BYTES = 1 << 20
_COMPRESS_LEVEL = 6


def archive_segment(archive_dir: Path, partition: TopicPartition, path: Path) -> Path:
    """Compress a closed segment into the archive and check that it can be read back.

    Args:
        archive_dir: where the archive is; made if it does not exist.
        partition: whose segment.
        path: the segment file, which nobody writes to any more.

    Returns:
        The archived file; one of the same name is replaced.

    Raises:
        StorageError: it cannot be written, or does not read back as it was.
    """
    directory = archive_dir / f"{partition.topic}_{partition.name}"
    target = directory / f"{path.name}.gz"
    temporary = directory / f"{target.name}.tmp"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, temporary.open("wb") as compressed:
            with gzip.GzipFile(
                filename="", mode="wb", fileobj=compressed, compresslevel=_COMPRESS_LEVEL, mtime=0
            ) as packer:
                for block in iter(lambda: source.read(_BLOCK_BYTES), b""):
                    packer.write(block)
            compressed.flush()
            os.fsync(compressed.fileno())
        _check_same_content(path, temporary)
        temporary.replace(target)
        sync_directory(directory)
        sync_directory(archive_dir)
    except (OSError, EOFError, zlib.error) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot archive {path} to {target}: {error}") from error
    return target


def _check_same_content(path: Path, compressed: Path) -> None:
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
