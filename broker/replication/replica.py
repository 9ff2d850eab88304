"""One replica of a partition on this broker: whether it leads, follows, or does neither."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from broker.cluster_state import IsrChange, ReplicatedPartition
from broker.errors import NotLeaderError
from broker.replication.follower import Follower, TruncationCounts
from broker.replication.leader import Leader
from broker.replication.replica_log import ReplicaLog
from broker.topic import TopicPartition


class ReplicaSettings(NamedTuple):
    """Settings that the replicas of a broker have in common."""

    lag_time_s: float = 10.0  # how long an in-sync replica may be behind: `replica.lag.time.max.ms`
    # whether only flushed messages of a topic count as being on a replica: `log.flush.before.read`
    counts_flushed: Callable[[str], bool] = lambda topic: True
    # whether retention keeps messages of a log before an offset, if its leader's ends at another
    keeps: Callable[[TopicPartition, int, int], bool] = lambda partition, offset, end: False


class RoleChange(Enum):
    """What a push of the controller did to a replica."""

    SKIPPED = auto()  # of an earlier leader epoch than the one known
    REFRESHED = auto()  # of the known leader epoch: at most the in-sync replicas changed
    LEADS = auto()
    FOLLOWS = auto()
    STOPPED = auto()  # this broker is no replica any more, or is to stop it


class Replica:
    """A replica of one creation of a partition, and its present role.

    Each term has its own `Leader` or `Follower`; the former one is stopped before anything else is
    done, so that what arrives for it late is refused or discarded. There is no role before `apply`.
    """

    def __init__(
        self, me: int, info: ReplicatedPartition, log: ReplicaLog, settings: ReplicaSettings
    ) -> None:
        self.partition = info.partition
        self.creation_id = info.creation_id
        self.log = log
        self.counts = TruncationCounts()
        self.leader_epoch = -1
        self.role: Leader | Follower | None = None
        self._me = me
        self._settings = settings

    @property
    def leader(self) -> Leader:
        """Return the present term as leader, or raise `NotLeaderError` with the known leader."""
        if isinstance(self.role, Leader):
            return self.role
        leader = self.role.leader if self.role is not None else -1
        raise NotLeaderError(
            f"broker {self._me} does not lead {self.partition}; "
            + ("no leader is known" if leader < 0 else f"broker {leader} does"),
            leader,
        )

    def apply(self, info: ReplicatedPartition, now_s: float) -> RoleChange:
        """Take over the controller's state of this creation of the partition.

        After a `StorageError` the replica has no role, and the same state can be applied again.
        """
        epoch = info.state.leader_epoch
        if epoch < self.leader_epoch:
            return RoleChange.SKIPPED
        if epoch == self.leader_epoch:
            if isinstance(self.role, Leader):
                self.role.isr_decided(info)
            elif self.role is not None:
                self.role.refresh(info)
            return RoleChange.REFRESHED
        self._drain()
        if self._me not in info.replicas:
            change = RoleChange.STOPPED
        elif info.state.leader == self._me:
            self._lead(info, now_s)
            change = RoleChange.LEADS
        else:
            self._follow(info)
            change = RoleChange.FOLLOWS
        self.leader_epoch = epoch
        return change

    def stop(self, leader_epoch: int) -> RoleChange:
        """Stop leading or following until a state of a later leader epoch comes.

        An order of an earlier leader epoch than the known one is skipped.
        """
        if leader_epoch < self.leader_epoch:
            return RoleChange.SKIPPED
        self._drain()
        self.leader_epoch = leader_epoch
        return RoleChange.STOPPED

    def isr_answered(self, proposal: IsrChange, info: ReplicatedPartition, now_s: float) -> None:
        """Take over the controller's response to a proposal of this replica as leader.

        A response with the version that the proposal was to replace is a refusal; one of another
        leader epoch means that a push is on its way: only pushes change roles.
        """
        if isinstance(self.role, Leader):
            if info.state.leader_epoch == self.leader_epoch:
                self.role.isr_decided(info)
            self.role.isr_failed(proposal, now_s)

    def _drain(self) -> None:
        if self.role is not None:
            self.role.stop()
            self.role = None

    def _lead(self, info: ReplicatedPartition, now_s: float) -> None:
        log = self.log
        end = log.log_end_offset
        epoch = info.state.leader_epoch
        if not log.epochs.entries:  # not replicated before: all of it belongs to this epoch
            log.begin_epoch(epoch, log.log_start_offset)
        elif epoch > log.epochs.last_epoch:  # else it leads on after a clean restart
            log.begin_epoch(epoch, end)
        self.role = Leader(
            self._me,
            info,
            log,
            end,
            now_s,
            lag_time_s=self._settings.lag_time_s,
            counts_flushed=self._settings.counts_flushed(info.partition.topic),
        )

    def _follow(self, info: ReplicatedPartition) -> None:
        log = self.log
        if not log.epochs.entries and log.log_end_offset > log.log_start_offset:
            log.restart_at(log.log_start_offset)  # unknown which leader appended these messages
        keeps = partial(self._settings.keeps, self.partition)
        self.role = Follower(info, log, self.counts, keeps)
