"""What has been written to a log, and no flush has made durable yet."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from broker.files import sync_directory
from broker.log.segment import Disk, Segment, SegmentFile, SegmentFiles


class FlushedPart(NamedTuple):
    """The data one flush makes durable, captured under the append lock."""

    end_offset: int
    message_count: int
    files: list[SegmentFile]
    directories: list[Path]

    def sync(self, files: SegmentFiles, disk: Disk) -> None:
        """Make it durable; an `OSError` if the disk refuses."""
        for directory in self.directories:
            files.with_room(partial(sync_directory, directory))
        for file in self.files:
            disk.sync(file.fd)


class Unflushed:
    """The unflushed data of one log; guarded by its append lock.

    Args:
        directories: those with entries not yet durable: of a new log, its own and its parent.
    """

    def __init__(self, directories: Iterable[Path]) -> None:
        self.message_count = 0
        self.is_flush_scheduled = False
        self.rolled_files: list[SegmentFile] = []
        self.directories = list(directories)

    def capture(self, active: Segment, flushed_offset: int) -> FlushedPart | None:
        """Return the data the flush that starts now must cover, None if there is none."""
        self.is_flush_scheduled = False
        end_offset = active.next_offset
        if end_offset == flushed_offset and not self.directories:
            return None
        files = self.rolled_files
        if active.file is not None and end_offset > flushed_offset:
            files.append(active.file)
        directories = list(dict.fromkeys(self.directories))
        self.rolled_files, self.directories = [], []
        return FlushedPart(end_offset, self.message_count, files, directories)

    def put_back(self, part: FlushedPart) -> None:
        """Leave the data of a flush that found no free descriptor to a later flush."""
        self.rolled_files = [*part.files, *self.rolled_files]
        self.directories = [*part.directories, *self.directories]
        self.is_flush_scheduled = True

    def clear(self) -> None:
        """Forget all, as the log has been made durable elsewhere."""
        self.rolled_files, self.directories = [], []
        self.message_count = 0
