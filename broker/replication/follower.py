"""The follower of a partition: from where it fetches, and how it applies each response.

Before it takes bytes it makes its log a prefix of the leader's. The leader says where the logs
diverge; one truncation may not be enough, as each side can have epochs that the other has not: the
follower then truncates to the end of what both may share, and fetches again (KIP-279).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from broker.cluster_state import EpochStart, ReplicatedPartition, creation_key
from broker.errors import FencedEpochError, KeptMessagesError
from broker.ids import NO_LEADER
from broker.replication.replica_log import NO_DIVERGENCE, FetchAnswer, FetchPosition, ReplicaLog

_FIRST_BACKOFF_S = 0.05
_MAX_BACKOFF_S = 1.0
"""Wait before a partition is fetched again after an error, doubled after each further error.

The first is short: after an election the follower often hears of the new leader before that broker
does, and producers wait for the follower.
"""


class FetchResult(Enum):
    """What a follower did with the response to a fetch."""

    DISCARDED = auto()  # of another term, or the log has changed since the fetch
    APPEND = auto()  # append its bytes at once, then call `appended`
    UP_TO_DATE = auto()  # it has no bytes
    TRUNCATED = auto()  # the log was truncated; the next fetch compares the logs again
    RESTARTED = auto()  # the log was emptied, and may start elsewhere


@dataclass(slots=True)
class TruncationCounts:
    """Counts of truncations of a replica's log."""

    truncations: int = 0
    truncated_bytes: int = 0
    # truncations that removed messages known to be committed: only after an unclean election or a
    # loss of flushed data
    below_high_watermark: int = 0


@dataclass(eq=False)
class Follower:
    """One term of a replica as a follower, of another broker or of none.

    `keeps` returns whether retention here keeps messages of the log before an offset, if the log
    were as long as the leader's, whose end is the second argument.
    """

    info: ReplicatedPartition
    log: ReplicaLog
    counts: TruncationCounts
    keeps: Callable[[int, int], bool]

    def __post_init__(self) -> None:
        self.is_stopped = False
        self.is_parked = self.info.state.leader == NO_LEADER
        self.told: FetchAnswer | None = None
        """What the leader told last in this term."""
        self._creation = creation_key(self.info.creation_id)
        self.answered_s: float | None = None
        """When the leader last responded in this term without an error or a truncation."""
        self._retry_s: float | None = None
        self._backoff_s = _FIRST_BACKOFF_S

    @property
    def leader(self) -> int:
        """Return the broker to fetch from, or `NO_LEADER`."""
        return self.info.state.leader

    @property
    def retry_s(self) -> float | None:
        """Return when to fetch again after an error; None if no retry is due."""
        return None if self.is_stopped or self.is_parked else self._retry_s

    def next_fetch(self, now_s: float) -> FetchPosition | None:
        """Return where to continue; None if there is no leader or a retry is not due yet."""
        if self.is_stopped or self.is_parked:
            return None
        if self._retry_s is not None:
            if now_s < self._retry_s:
                return None
            self._retry_s = None
        return self._position()

    def fetched(
        self,
        position: FetchPosition,
        answer: FetchAnswer,
        epoch_starts: Sequence[EpochStart],
        offset_count: int,
    ) -> FetchResult:
        """Handle a response without an error; no other thread may change the log meanwhile.

        `epoch_starts` are those of the response's bytes; they are recorded before the bytes are
        appended. `offset_count` is by how much the offset advances with the whole messages.
        Raises as `out_of_range`.
        """
        if not self.is_awaiting(position):
            return FetchResult.DISCARDED
        self.told = answer
        if answer.diverging != NO_DIVERGENCE:
            return self._cut(answer)
        if not offset_count:
            self.appended(answer)
            return FetchResult.UP_TO_DATE
        end = position.offset + offset_count
        for epoch, start in epoch_starts:
            if epoch > self.log.epochs.last_epoch and start < end:
                self.log.begin_epoch(epoch, max(start, position.offset))
        return FetchResult.APPEND

    def appended(self, answer: FetchAnswer) -> None:
        """Take over the high watermark after the bytes of a response were appended."""
        self._backoff_s = _FIRST_BACKOFF_S
        known = min(self.log.log_end_offset, answer.high_watermark)
        # never back: a new leader may not know yet what is committed
        if known > self.log.high_watermark:
            self.log.advance_high_watermark(known)

    def out_of_range(
        self, position: FetchPosition, answer: FetchAnswer, now_s: float
    ) -> FetchResult:
        """Handle that the leader does not have the offset asked for.

        The log is given up only if retention has removed the next messages from the leader, and
        would remove all there is from this log too, never because the leader seems to be behind.
        Raises `KeptMessagesError` if retention here keeps messages.
        """
        if not self.is_awaiting(position):
            return FetchResult.DISCARDED
        self.told = answer
        log = self.log
        is_empty = log.log_end_offset == log.log_start_offset
        if answer.log_start_offset > log.log_end_offset or is_empty:
            return self._start_at(answer)
        self._back_off(now_s)
        return FetchResult.UP_TO_DATE

    def kept_error(self, answer: FetchAnswer) -> KeptMessagesError:
        """Return the error of a leader that lacks messages which retention here keeps."""
        return KeptMessagesError(
            f"{self.info.partition}: its leader, broker {self.leader}, starts at offset "
            f"{answer.log_start_offset}; this broker has messages from offset "
            f"{self.log.log_start_offset} to {self.log.log_end_offset}, and its own retention "
            "keeps them: compare clocks, file times and settings of the two brokers"
        )

    def refused(self, position: FetchPosition, error: Exception, now_s: float) -> None:
        """Retry a failed fetch later; a fenced one only once the controller pushes a new state."""
        if self.is_stopped or position.leader_epoch != self.info.state.leader_epoch:
            return
        if isinstance(error, FencedEpochError):
            self.is_parked = True
        else:
            self._back_off(now_s)

    def refresh(self, info: ReplicatedPartition) -> None:
        """Take over a later version of the state in the same leader epoch."""
        if info.version >= self.info.version:
            self.info = info

    def stop(self) -> None:
        """End the term: later responses are discarded."""
        self.is_stopped = True

    def _back_off(self, now_s: float) -> None:
        self._retry_s = now_s + self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, _MAX_BACKOFF_S)

    def _position(self) -> FetchPosition:
        log = self.log
        return FetchPosition(
            self.info.state.leader_epoch,
            log.log_end_offset,
            log.epochs.last_epoch,
            log.flushed_offset,
            self._creation,
        )

    def is_awaiting(self, position: FetchPosition) -> bool:
        """Return whether a response to a fetch at this position continues the log."""
        return not self.is_stopped and position[:3] == self._position()[:3]

    def _cut(self, answer: FetchAnswer) -> FetchResult:
        """Truncate the log to what it may share with the leader's."""
        log, leader = self.log, answer.diverging
        own = log.epochs.end_of(leader.epoch, log.log_end_offset)
        if own.epoch == leader.epoch:
            offset = min(leader.end_offset, own.end_offset)
        else:
            offset = own.end_offset
        if offset <= log.log_start_offset or log.epochs.entries[0].epoch > leader.epoch:
            offset = log.log_start_offset
        if offset < answer.log_start_offset:  # what follows there is not in the leader's log
            return self._start_at(answer)
        self.counts.truncations += 1
        self.counts.truncated_bytes += max(0, log.log_end_offset - offset)
        self.counts.below_high_watermark += offset < log.high_watermark
        if offset == log.log_start_offset:  # nothing here is known to be the leader's
            log.restart_at(offset)
            return FetchResult.RESTARTED
        log.truncate(offset)
        return FetchResult.TRUNCATED

    def _start_at(self, answer: FetchAnswer) -> FetchResult:
        """Go on at the leader's log start offset, with an empty log."""
        log, start = self.log, answer.log_start_offset
        size = log.log_end_offset - log.log_start_offset
        if size and self.keeps(log.log_end_offset, max(start, answer.high_watermark)):
            raise self.kept_error(answer)
        self.counts.truncations += size > 0
        self.counts.truncated_bytes += size
        log.restart_at(start)
        return FetchResult.RESTARTED
