"""A log of a replica in memory, over a disk that forgets what was not flushed."""

from __future__ import annotations

from broker.errors import StorageError
from broker.leader_epochs import LeaderEpochs


class MemoryLog:
    """A `ReplicaLog` of entries of one byte each: an entry is any value.

    Args:
        start: the log start offset of the empty log.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.entries: list[object] = []
        self.flushed_offset = start
        self.high_watermark = start
        self.epochs = self.written_epochs = LeaderEpochs()
        self.is_full = False

    @property
    def log_start_offset(self) -> int:
        return self.start

    @property
    def log_end_offset(self) -> int:
        return self.start + len(self.entries)

    def append(self, *entries: object) -> int:
        """Add entries; return the offset of the first."""
        self.raise_if_full()
        self.written_epochs = self.epochs
        offset = self.log_end_offset
        self.entries += entries
        return offset

    def read(self, offset: int, end_offset: int) -> list[object]:
        """Return the entries of a range."""
        return self.entries[offset - self.start : end_offset - self.start]

    def flush(self) -> None:
        """Make all durable."""
        self.flushed_offset = self.log_end_offset

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Record that a leader epoch begins."""
        self.raise_if_full()
        self.epochs = self.epochs.begun(epoch, start_offset)
        if start_offset < self.log_end_offset:
            self.written_epochs = self.epochs

    def truncate(self, offset: int) -> None:
        """Remove what lies at and after an offset."""
        del self.entries[offset - self.start :]
        self.epochs = self.written_epochs = self.epochs.truncated(offset)
        self.flushed_offset = min(self.flushed_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)

    def restart_at(self, offset: int) -> None:
        """Remove everything."""
        self.start = self.flushed_offset = self.high_watermark = offset
        self.entries = []
        self.epochs = self.written_epochs = LeaderEpochs()

    def advance_high_watermark(self, offset: int) -> None:
        """Make messages visible."""
        assert self.high_watermark < offset <= self.log_end_offset
        self.high_watermark = offset

    def remove_before(self, offset: int) -> None:
        """Remove the beginning, as retention does."""
        del self.entries[: offset - self.start]
        self.start = offset
        self.epochs = self.epochs.trimmed(offset)

    def crash(self, kept_end: int) -> None:
        """Lose the end of what was not flushed, then recover.

        Args:
            kept_end: from the flushed offset to the log's end.
        """
        assert self.flushed_offset <= kept_end <= self.log_end_offset
        del self.entries[kept_end - self.start :]
        self.epochs = self.written_epochs.recovered(self.start, kept_end)
        self.flushed_offset = kept_end
        self.high_watermark = min(self.high_watermark, kept_end)

    def raise_if_full(self) -> None:
        """Raise if the disk has no room."""
        if self.is_full:
            raise StorageError("no space left on device")
