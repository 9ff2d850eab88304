"""Atomic files: replaced as a whole by write, fsync and rename; and directory syncs."""

from __future__ import annotations

import os
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"
"""Suffix of a file under construction; a crash or a full disk can leave one behind."""


def sync_directory(directory: Path) -> None:
    """Make the creation, renaming and removal of entries in a directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a crash leaves either the old or the new content.

    Raises:
        OSError: the file cannot be written; the old content, if any, is unchanged.
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
    """Write a whole buffer at the descriptor's position, continuing after short writes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
