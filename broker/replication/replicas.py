"""The replicas of a broker, the role of each, and which pushes of controllers they accept.

A push can be late or come twice: a controller sends it again if it got no response, and a former
controller may still be running. Each carries epochs that tell whether it is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from broker import errors
from broker.cluster_state import (
    LAST_EPOCH,
    UNKNOWN_BROKER_EPOCH,
    IsrChange,
    LiveBroker,
    ReplicatedPartition,
    StoppedReplica,
)
from broker.errors import NotLeaderError
from broker.ids import NO_LEADER
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


class Applied(NamedTuple):
    """The replicas that a push changed, and the partitions for which it failed."""

    changes: list[tuple[Replica, RoleChange]]
    # `StorageError`: the disk refused; `InvalidRequestError`: the state is impossible (a node in
    # ZooKeeper was edited, or no controller sent it)
    failures: list[tuple[TopicPartition, errors.ServerError]]


@dataclass(eq=False)
class Replicas:
    """All replicas of one broker.

    Args:
        open_log: opens or creates the log of a replica, and sets a log of another creation aside
            first. May raise `StorageError`.

    Attributes:
        known: the last state of each partition that a controller pushed, also without a replica
            on this broker.
        unnamed: the same for partitions with a replica here that the registry has lost: they are
            not in it any more though they were not deleted.
    """

    me: int
    settings: ReplicaSettings
    open_log: Callable[[ReplicatedPartition], ReplicaLog]
    delete_log: Callable[[Replica], None]

    def __post_init__(self) -> None:
        self.controller_epoch = -1
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.known: dict[TopicPartition, ReplicatedPartition] = {}
        self.unnamed: dict[TopicPartition, ReplicatedPartition] = {}
        self._broker_epochs: dict[int, int] = {}  # of the last registration that was told
        self._replicas: dict[TopicPartition, Replica] = {}
        self._registry_id = 0
        self._last_full = (-1, -1)
        # Partitions whose known state may be of a higher epoch than the restored one: a restored
        # partition goes on above the epochs of the logs, and this broker may have none of it.
        self._of_former_registry: set[TopicPartition] = set()
        self._deleted: dict[tuple[TopicPartition, str], int] = {}  # and in which leader epoch

    def __iter__(self) -> Iterator[Replica]:
        return iter(list(self._replicas.values()))

    def get(self, partition: TopicPartition) -> Replica | None:
        """Return the replica of a partition, None if this broker has none."""
        return self._replicas.get(partition)

    def registered(self, broker_epoch: int, registry_id: int = 0) -> None:
        """Note that this broker has registered: orders for earlier registrations are stale."""
        # The registry has lost its data and counts all epochs anew: its former controllers' orders
        # are stale.
        if registry_id != self._registry_id:
            self._registry_id = registry_id
            self.controller_epoch += 1
            self._broker_epochs.clear()
            self._of_former_registry = set(self.known)
            self._deleted.clear()  # a partition may be restored in an epoch that counts as deleted
        self.broker_epoch = broker_epoch

    def check_orders(self, controller_epoch: int, broker_epoch: int) -> None:
        """Raise `StaleControllerEpochError` or `StaleBrokerEpochError` for a stale order.

        `broker_epoch` is the registration of this broker that the order is for. The errors tell no
        epochs, nor whether another one is too low or too high: with them any client could give
        orders.
        """
        # Before this broker has registered, orders can only be for its former run. A controller can
        # know of a registration before this broker does: it tries again.
        if broker_epoch != self.broker_epoch or self.broker_epoch == UNKNOWN_BROKER_EPOCH:
            raise errors.StaleBrokerEpochError(
                f"orders for broker {self.me} that are not for its present registration"
            )
        if controller_epoch < self.controller_epoch:
            raise errors.StaleControllerEpochError(
                f"orders for broker {self.me} of a former controller: there is a later one"
            )

    def note_brokers(self, brokers: Iterable[LiveBroker]) -> None:
        """Note the registrations that a push announces; those of a late push change nothing."""
        for one in brokers:
            self._broker_epochs[one.id] = max(one.epoch, self._broker_epochs.get(one.id, one.epoch))

    def check_follower(self, broker_id: int, broker_epoch: int) -> None:
        """Raise `UnknownEpochError` unless a follower fetches under its announced registration."""
        # The error does not tell whether this broker or the follower is behind.
        if self._broker_epochs.get(broker_id) != broker_epoch:
            raise errors.UnknownEpochError(
                f"this registration of broker {broker_id}, which fetches, is not known here"
            )

    def push(
        self,
        controller_epoch: int,
        broker_epoch: int,
        partitions: Iterable[ReplicatedPartition],
        stopped: Iterable[StoppedReplica],
        now_s: float,
        *,
        is_full: bool,
    ) -> Applied:
        """Carry out a controller's push, or raise like `check_orders` before anything was done.

        Several threads may apply pushes of one controller about different partitions at once.
        Partitions without a replica here are only noted. `stopped` takes effect after `partitions`.

        Args:
            is_full: `partitions` names all of the cluster: replicas of others are stopped, and
                their logs stay. Only the first full push of a controller to a registration counts,
                as partitions may have been created since.
        """
        self.check_orders(controller_epoch, broker_epoch)
        if controller_epoch > self.controller_epoch:
            # Those that a former controller announced may be of a registry that has lost its data.
            self._broker_epochs.clear()
        self.controller_epoch = controller_epoch
        applied = Applied([], [])
        named = set()
        for info in partitions:
            named.add(info.partition)
            self.note(info)
            try:
                _validate_state(info)
                self._apply(info, now_s, applied)
            except (errors.StorageError, errors.InvalidRequestError) as error:
                applied.failures.append((info.partition, error))
        for order in stopped:
            self._stop(order, applied)
        if is_full and self._last_full < (controller_epoch, broker_epoch):
            self._last_full = (controller_epoch, broker_epoch)
            for replica in [one for one in self if one.partition not in named]:
                applied.changes.append((replica, replica.stop(replica.leader_epoch)))
            for partition in [one for one in list(self.known) if one not in named]:
                info, hosted = self.known.pop(partition), self._replicas.get(partition)
                if hosted is not None and hosted.creation_id == info.creation_id:
                    self.unnamed[partition] = info
        return applied

    def note(self, info: ReplicatedPartition) -> bool:
        """Note a controller's state of a partition, with or without a replica here.

        Returns:
            False if it is of a deleted topic, or older than the known one.
        """
        known = self.known.get(info.partition)
        if self._deleted.get((info.partition, info.creation_id)) == LAST_EPOCH:
            return False
        if (
            known is not None
            and info.partition not in self._of_former_registry
            and known.creation_id == info.creation_id
            and (info.state.leader_epoch, info.version) < (known.state.leader_epoch, known.version)
        ):
            return False
        self.known[info.partition] = info
        self._of_former_registry.discard(info.partition)
        self.unnamed.pop(info.partition, None)
        return True

    def _stop(self, order: StoppedReplica, applied: Applied) -> None:
        if order.deletes_log:
            self._note_deleted(order.partition, order.creation_id, order.leader_epoch)
            known = self.known.get(order.partition)
            is_last = order.leader_epoch == LAST_EPOCH
            if is_last and known is not None and known.creation_id == order.creation_id:
                del self.known[order.partition]
            unnamed = self.unnamed.get(order.partition)
            if unnamed is not None and unnamed.creation_id == order.creation_id:
                del self.unnamed[order.partition]
        replica = self._replicas.get(order.partition)
        if replica is None or replica.creation_id != order.creation_id:
            return
        change = replica.stop(order.leader_epoch)
        if change is RoleChange.STOPPED and order.deletes_log:
            del self._replicas[order.partition]
            self.delete_log(replica)
        applied.changes.append((replica, change))

    def _note_deleted(self, partition: TopicPartition, creation_id: str, epoch: int) -> None:
        """Refuse late orders for a deleted replica; a later leader epoch can create it again.

        A deleted topic, or one replaced by another creation, has no later epoch than `LAST_EPOCH`.
        """
        key = (partition, creation_id)
        self._deleted[key] = max(epoch, self._deleted.get(key, -1))

    def _apply(self, info: ReplicatedPartition, now_s: float, applied: Applied) -> None:
        replica = self._replicas.get(info.partition)
        deleted_in = self._deleted.get((info.partition, info.creation_id), -1)
        if info.state.leader_epoch <= deleted_in:
            return
        if replica is not None and replica.creation_id != info.creation_id:
            self._note_deleted(info.partition, replica.creation_id, LAST_EPOCH)
            replica.stop(replica.leader_epoch)
            del self._replicas[info.partition]
            replica = None
        if replica is None:
            if self.me not in info.replicas:
                return
            replica = Replica(self.me, info, self.open_log(info), self.settings)
            self._replicas[info.partition] = replica
        applied.changes.append((replica, replica.apply(info, now_s)))


def _validate_state(info: ReplicatedPartition) -> None:
    # all that `Leader` and `Follower` rely on
    leader, leader_epoch, isr, _ = info.state
    members = set(isr)
    if (
        len(members) != len(isr)
        or len(set(info.replicas)) != len(info.replicas)
        or not (members and members <= set(info.replicas))
        or not (leader == NO_LEADER or leader in members)
        or not 0 <= leader_epoch < LAST_EPOCH
    ):
        raise errors.InvalidRequestError(
            f"{info.partition} cannot have leader {leader} in epoch {leader_epoch} with replicas "
            f"{list(info.replicas)}, in sync {list(isr)}"
        )
