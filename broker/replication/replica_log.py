"""What replication asks of a log."""

from __future__ import annotations

from typing import Protocol

from broker.leader_epochs import LeaderEpochs


class ReplicaLog(Protocol):
    """The log of one replica: offsets and epochs; it is opaque what lies between two offsets.

    Bytes are appended by whoever drives the state machines, under the same lock. A method that
    writes raises `StorageError` if the disk refuses, and has then changed nothing that a later
    start would see.
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
        """Return the offset up to which messages are committed, as far as is known here."""

    @property
    def epochs(self) -> LeaderEpochs:
        """Return the leader epochs of the log."""

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        """Record that a leader epoch begins; it is durable when this returns.

        Args:
            epoch: above all in the log.
            start_offset: the log's end; its start for a log with bytes but without epochs.
        """

    def truncate(self, offset: int) -> None:
        """Remove what lies at and after an offset, and the epochs that begin there.

        The cut is durable, then the list of epochs, when this returns. Epochs are removed also
        where there are no bytes to remove. The flushed offset and the high watermark are at most
        the offset afterwards.

        Args:
            offset: from the log start offset on; above the log's end it changes nothing.
        """

    def restart_at(self, offset: int) -> None:
        """Remove all bytes and epochs; the log is empty and starts at an offset then.

        A crash in the midst of it leaves an empty log or one that counts as unclean.
        """

    def advance_high_watermark(self, offset: int) -> None:
        """Make messages visible up to an offset: above the present one, at most the log's end."""
