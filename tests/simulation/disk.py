"""The logs of a simulated broker, each change of which is checked."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from broker.errors import StorageError
from broker.log.segment import Appended
from tests.simulation.checker import Checker, Created, is_past_retention
from tests.support.replica_log import MemoryLog


class SimulatedLog(MemoryLog):
    """A log whose changes the checker sees; it outlives the process that has it open."""

    def __init__(self, owner: int, created: Created, checker: Checker) -> None:
        super().__init__()
        self.owner = owner
        self.created = created
        self.partition = created.partition
        self.checker = checker
        self.is_failed = False
        """Whether its disk refuses everything, until the broker is started again."""
        self.cuts = 0
        """How often its end was moved back: a flush that began before does not count then."""
        self.losses = 0
        """How often it lost something."""
        self.checkpoint = 0
        """The high watermark as it is on disk."""
        self.times_s: list[float] = []
        """When each entry was appended, by the clock of its broker."""

    def publish(self, message_set: object, now_s: float) -> Appended:
        """Append what a client sends; return where it is, or was before if it was sent again."""
        assert isinstance(message_set, tuple)
        offset = self.append(*message_set, times_s=[now_s] * len(message_set))
        return Appended(offset, self.log_end_offset)

    def fetch(self, offset: int, count: int) -> tuple[object, int]:
        """Return what a follower gets of so many entries, and the offset behind it."""
        data = self.read(offset, offset + count)
        return data, offset + len(data)

    def count_in(self, data: object, offset: int) -> int:
        """Return how many entries, from an offset on, a follower got."""
        assert isinstance(data, list)
        return len(data)

    def append_copied(self, data: object, offset: int, times_s: Iterable[float]) -> None:
        """Append what a follower got."""
        assert isinstance(data, list)
        self.append(*data, times_s=times_s)

    def read_committed(self, offset: int, end_offset: int) -> list[object]:
        """Return what a consumer gets of a range below the high watermark."""
        return self.read(offset, end_offset)

    def append(self, *entries: object, times_s: Iterable[float] = ()) -> int:
        self.raise_if_failed()
        offset = super().append(*entries)
        self.times_s += times_s
        return offset

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        self.raise_if_failed()
        super().begin_epoch(epoch, start_offset)

    def truncate(self, offset: int) -> None:
        self.raise_if_failed()
        before, end = self.high_watermark, self.log_end_offset
        super().truncate(offset)
        del self.times_s[len(self.entries) :]
        self.cuts += 1
        self.checker.counts["truncations"] += offset < end
        self.checker.counts["cuts of epochs without data"] += offset >= end
        self.checker.truncated(self, offset, before)

    def restart_at(self, offset: int) -> None:
        self.raise_if_failed()
        self.checker.counts["logs given up and fetched again"] += bool(self.entries)
        before = self.high_watermark
        if offset > self.start:
            self.checker.removed(self, self.times_s)
        super().restart_at(offset)
        self.times_s = []
        self.cuts += 1
        self.checkpoint = offset
        self.checker.truncated(self, offset, before)

    def advance_high_watermark(self, offset: int) -> None:
        before = self.high_watermark
        super().advance_high_watermark(offset)
        self.checker.high_watermark_moved(self, before)

    def crash(self, kept_end: int) -> None:
        self.losses += kept_end < self.log_end_offset
        self.checker.counts["logs that lost their end"] += kept_end < self.log_end_offset
        super().crash(kept_end)
        del self.times_s[len(self.entries) :]
        self.cuts += 1
        self.checker.log_lost_its_end(self)

    def expire(self, now_s: float) -> None:
        """Remove what retention does not keep."""
        gone = [*takewhile(lambda one: is_past_retention(one, now_s), self.times_s)]
        offset = min(self.start + len(gone), self.high_watermark)
        self.checker.removed(self, self.times_s[: offset - self.start])
        del self.times_s[: offset - self.start]
        self.remove_before(offset)
        self.checkpoint = max(self.checkpoint, offset)

    def flushed(self, end_offset: int) -> None:
        """Note that all up to an offset is durable."""
        self.flushed_offset = max(self.flushed_offset, end_offset)

    def close(self) -> None:
        """End in good order."""
        self.flush()
        self.checkpoint = self.high_watermark

    def opened(self) -> None:
        """Recover: flush what there is, take the high watermark from its checkpoint."""
        self.is_failed = False
        known = max(self.start, min(self.checkpoint, self.log_end_offset))
        self.high_watermark = known
        self.epochs = self.written_epochs.recovered(self.start, self.log_end_offset)
        self.flush()

    def compare(self) -> None:
        """Check that the files, if there are any, have what the log has."""

    def raise_if_failed(self) -> None:
        """Raise if the disk refuses everything."""
        if self.is_failed:
            raise StorageError("input/output error")
