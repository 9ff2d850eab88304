"""Stand-ins for disk and flusher."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field

from broker.log.flusher import Flushable
from broker.log.segment import Disk
from broker.protocol.primitives import Buffer


class RecordingSchedule:
    """Remembers when logs asked to be flushed, and flushes none of them."""

    def __init__(self) -> None:
        self.due_s: list[float] = []

    def schedule(self, log: Flushable, due_s: float) -> None:
        self.due_s.append(due_s)


@dataclass
class FaultyDisk:
    """A disk that writes short, runs full or fails, as told by its attributes."""

    chunk_bytes: int | None = None
    room_bytes: int | None = None
    sync_errno: int = 0
    truncate_errno: int = 0
    synced_fds: list[int] = field(default_factory=list)
    synced_sizes: dict[int, int] = field(default_factory=dict)
    """By inode."""

    def as_disk(self) -> Disk:
        return Disk(pwrite=self.pwrite, sync=self.sync, truncate=self.truncate)

    def pwrite(self, fd: int, content: Buffer, position: int) -> int:
        if self.chunk_bytes is not None:
            content = memoryview(content)[: self.chunk_bytes]
        if self.room_bytes is not None:
            content = memoryview(content)[: self.room_bytes]
            if not content:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room_bytes -= len(content)
        return os.pwrite(fd, content, position)

    def sync(self, fd: int) -> None:
        if self.sync_errno:
            raise OSError(self.sync_errno, os.strerror(self.sync_errno))
        self.synced_fds.append(fd)
        status = os.fstat(fd)
        self.synced_sizes[status.st_ino] = status.st_size

    def truncate(self, fd: int, size: int) -> None:
        if self.truncate_errno:
            raise OSError(self.truncate_errno, os.strerror(self.truncate_errno))
        os.ftruncate(fd, size)
