"""The leader epoch in which each part of a log was written.

The offset at which the logs of two replicas diverge is found by comparing these lists, never by
high watermarks, which may lag on either side.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import attrgetter

from broker.cluster_state import EpochEnd, EpochStart
from broker.ids import NO_EPOCH

_EPOCH = attrgetter("epoch")
_START = attrgetter("start_offset")
_EPOCH_BIT_COUNT = 32
_EPOCH_BITS = (1 << _EPOCH_BIT_COUNT) - 1
# incarnations of a broker are numbered from here, so that none is taken for a leader epoch
FIRST_INCARNATION = 1 << 31


def term_of(creation: int, epoch: int) -> int:
    """Return the number, of 63 bits, of an epoch of one creation of a topic.

    With it and the end of its messages a producer can ask later whether they are still in the log.
    `epoch` is the leader epoch; for a log without replicas, the incarnation of its broker.
    """
    return creation << _EPOCH_BIT_COUNT | epoch


def is_of_replicas(term: int) -> bool:
    """Return whether the log of a term had replicas."""
    return not term & FIRST_INCARNATION


@dataclass(frozen=True, slots=True)
class LeaderEpochs:
    """The leader epochs of a log and their starts, strictly increasing in both; never changed.

    A log keeps the list in a side file. A new epoch is in the file before the first bytes of the
    epoch are in the log, and a cut of the log is durable before the shorter list is: so the list
    that a crash leaves is right once `recovered` has seen the end of the log.
    """

    entries: tuple[EpochStart, ...] = ()  # the epochs with their starts, in order

    def __post_init__(self) -> None:
        for before, after in zip(self.entries, self.entries[1:], strict=False):
            if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
                raise ValueError(f"leader epoch {after} does not follow {before}")

    @property
    def last_epoch(self) -> int:
        """Return the last epoch, `NO_EPOCH` if none has begun."""
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def begun(self, epoch: int, start_offset: int) -> LeaderEpochs:
        """Return the list with one more epoch, without those not before it in both numbers."""
        kept = tuple(
            one for one in self.entries if one.epoch < epoch and one.start_offset < start_offset
        )
        return LeaderEpochs((*kept, EpochStart(epoch, start_offset)))

    def truncated(self, end_offset: int) -> LeaderEpochs:
        """Return the list of the log cut at an offset, without epochs that have no bytes then."""
        # also applied if the log needs no cut: epochs without data may be at its end
        if not self.entries or self.entries[-1].start_offset < end_offset:
            return self
        return LeaderEpochs(tuple(one for one in self.entries if one.start_offset < end_offset))

    def recovered(self, log_start_offset: int, log_end_offset: int) -> LeaderEpochs:
        """Return the list that fits a log that was opened: the file may have more or fewer."""
        if log_start_offset < log_end_offset:
            return self.truncated(log_end_offset).trimmed(log_start_offset)
        # retention has removed all: in which epoch the log ends is known nevertheless
        known = tuple(one for one in self.entries if one.start_offset <= log_end_offset)
        return LeaderEpochs(known).trimmed(log_start_offset)

    def trimmed(self, log_start_offset: int) -> LeaderEpochs:
        """Return the list of the log whose beginning was removed up to an offset.

        The epoch of the last message that was removed stays, with its start: a log that ends where
        this one starts is known by it to be the same up to there.
        """
        at = bisect_left(self.entries, log_start_offset, key=_START) - 1
        return self if at <= 0 else LeaderEpochs(self.entries[at:])

    def end_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return the largest epoch not above a given one, which another replica sent, and its end.

        If all epochs here are above it: its own number and the start of the first one. Without any
        epoch: `NO_EPOCH` and the log's end.
        """
        if not self.entries:
            return EpochEnd(NO_EPOCH, log_end_offset)
        if epoch >= self.entries[-1].epoch:
            return EpochEnd(self.entries[-1].epoch, log_end_offset)
        after = bisect_right(self.entries, epoch, key=_EPOCH)
        found = self.entries[after - 1].epoch if after else epoch
        return EpochEnd(found, self.entries[after].start_offset)

    def end_of_term(self, term: int, creation: int, log_end_offset: int) -> int:
        """Return the end of a term in the log; -1 if none of it is known here. See `term_of`."""
        epoch = term & _EPOCH_BITS
        if term >> _EPOCH_BIT_COUNT != creation or not self.entries:
            return -1
        found = self.end_of(epoch, log_end_offset)
        return found.end_offset if found.epoch == epoch else -1

    def covering(self, offset: int, end_offset: int) -> tuple[EpochStart, ...]:
        """Return the epochs in which the bytes of a range were written; none if it is empty."""
        if end_offset <= offset:
            return ()
        first = max(bisect_right(self.entries, offset, key=_START) - 1, 0)
        return tuple(one for one in self.entries[first:] if one.start_offset < end_offset)
