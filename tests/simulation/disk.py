"""The logs of a simulated broker, each change of which is checked."""

from __future__ import annotations

from broker.topic import TopicPartition
from tests.simulation.checker import Checker
from tests.support.replica_log import MemoryLog


class SimulatedLog(MemoryLog):
    """A log whose changes the checker sees; it outlives the process that has it open."""

    def __init__(self, owner: int, partition: TopicPartition, checker: Checker) -> None:
        super().__init__()
        self.owner = owner
        self.partition = partition
        self.checker = checker
        self.cuts = 0
        """How often its end was moved back: a flush that began before does not count then."""
        self.losses = 0
        """How often it lost something."""
        self.checkpoint = 0
        """The high watermark as it is on disk."""

    def truncate(self, offset: int) -> None:
        before = self.high_watermark
        super().truncate(offset)
        self.cuts += 1
        self.checker.truncated(self, offset, before)

    def restart_at(self, offset: int) -> None:
        before = self.high_watermark
        super().restart_at(offset)
        self.cuts += 1
        self.checkpoint = offset
        self.checker.truncated(self, offset, before)

    def advance_high_watermark(self, offset: int) -> None:
        before = self.high_watermark
        super().advance_high_watermark(offset)
        self.checker.high_watermark_moved(self, before)

    def crash(self, kept_end: int) -> None:
        self.losses += kept_end < self.log_end_offset
        super().crash(kept_end)
        self.cuts += 1
        self.checker.log_lost_its_end(self)

    def opened(self) -> None:
        """Recover: flush what there is, take the high watermark from its checkpoint."""
        known = max(self.start, min(self.checkpoint, self.log_end_offset))
        self.high_watermark = known
        self.epochs = self.epochs.recovered(self.start, self.log_end_offset)
        self.flush()
