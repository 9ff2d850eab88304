"""The log of a replica as the state machines of replication use it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from broker.cluster_state import EpochEnd
from broker.ids import NO_EPOCH
from broker.leader_epochs import LeaderEpochs


class ReplicaLog(Protocol):
    """The log of one replica: offsets and epochs; the bytes between offsets are opaque.

    The caller of the state machines appends bytes, under the same lock. A method that writes raises
    `StorageError` if the disk refuses; what it changed by then, no later start would see.
    """

    @property
    def log_start_offset(self) -> int:
        """Return the offset of the oldest message kept."""

    @property
    def log_end_offset(self) -> int:
        """Return the offset of the next append."""

    @property
    def flushed_offset(self) -> int:
        """Return the offset up to which the log survives a crash of the machine."""

    @property
    def high_watermark(self) -> int:
        """Return the offset up to which messages are known here to be committed."""

    @property
    def epochs(self) -> LeaderEpochs:
        """Return the leader epochs of the log."""

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Record that a leader epoch begins, above all in the log.

        It starts at the log's end, and is durable before the next append; for a log with bytes but
        without epochs it starts at the log's start, and is durable when this returns.
        """

    def truncate(self, offset: int) -> None:
        """Remove all bytes at and after an offset, and the epochs that begin there.

        The offset is at least the log start offset; above the log's end only epochs may go. First
        the truncation is durable, then the list of epochs, when this returns. The flushed offset
        and the high watermark are at most the offset afterwards.
        """

    def restart_at(self, offset: int) -> None:
        """Remove all bytes and epochs; the log is empty then, and starts at an offset.

        A crash in between leaves an empty log, or one that counts as unclean.
        """

    def advance_high_watermark(self, offset: int) -> None:
        """Make messages visible up to an offset above the present one, at most the log's end."""


NO_DIVERGENCE = EpochEnd(NO_EPOCH, -1)
"""The logs of follower and leader agree up to the follower's end."""


class FetchPosition(NamedTuple):
    """Where a follower continues in a partition."""

    leader_epoch: int  # as the follower knows it
    offset: int  # the end of its log; a fetch acknowledges all before it as appended
    last_epoch: int  # in which its log ends; `NO_EPOCH` for an empty log
    flushed_offset: int
    creation: int  # the `creation_key` of the topic that the follower means


class FetchAnswer(NamedTuple):
    """What a leader responds besides bytes: its offsets, and where the follower's log diverges."""

    high_watermark: int
    log_start_offset: int
    # unless `NO_DIVERGENCE`, the response has no bytes, and the fetch does not count as progress
    diverging: EpochEnd
