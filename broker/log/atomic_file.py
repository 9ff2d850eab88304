"""Small files that are whole or absent after a crash, and directory entries that last.

Owns the write-fsync-rename dance; knows nothing of what the files mean.

The system calls whose failure a log must survive, as an argument.

Nothing but `broker.log.log` writes message data through it; tests pass calls that write short,
run out of space or fail to sync.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broker.protocol.primitives import Buffer

TEMPORARY_SUFFIX = ".tmp"
"""Of a file that is being written; a crash, or a full disk, can leave one behind."""


def sync_directory(directory: Path) -> None:
    """Make the creation, renaming and removal of entries in a directory durable.

    Args:
        directory: an existing directory.

    Raises:
        OSError: the directory cannot be opened or synced.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a small file so that a crash leaves either the old or the new content.

    Args:
        path: the file; its directory must exist.
        content: everything the file shall hold.

    Raises:
        OSError: the file cannot be written; the old content, if any, is still there.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    sync_directory(path.parent)


def write_all(fd: int, content: bytes | memoryview) -> None:
    """Write a whole buffer at the descriptor's position, continuing after short writes.

    Args:
        fd: a descriptor open for writing.
        content: the bytes to write.

    Raises:
        OSError: the disk refused the rest.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


@dataclass(frozen=True, slots=True)
class Disk:
    """How a log writes, syncs and cuts its files; the operating system's calls by default.

    Attributes:
        pwrite: writes at a position, returns how many bytes went out (maybe not all).
        sync: makes a file's data and size durable.
        truncate: cuts a file to a size.
    """

    pwrite: Callable[[int, Buffer, int], int] = os.pwrite
    sync: Callable[[int], None] = os.fdatasync
    truncate: Callable[[int, int], None] = os.ftruncate

    def write_all(self, fd: int, content: Buffer, position: int) -> None:
        """Write a whole buffer at a position, continuing after short writes.

        Args:
            fd: a descriptor open for writing.
            content: what to write.
            position: where in the file, in bytes.

        Raises:
            OSError: the disk refused some of it; what went out before is in the file.
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
