"""The system calls whose failure a log must survive, as an argument.

Nothing but `broker.log.log` writes message data through it; tests pass calls that write short,
run out of space or fail to sync.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from broker.protocol.primitives import Buffer


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
