"""The replicas of a broker, and which orders of controllers they take.

Orders can be late or come twice: a controller sends again what got no answer, and a former
controller may go on for a while. Each order carries what tells that it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from broker.cluster_state import (
    LAST_EPOCH,
    NO_LEADER,
    UNKNOWN_BROKER_EPOCH,
    LiveBroker,
    ReplicatedPartition,
    StoppedReplica,
)
from broker.errors import (
    InvalidRequestError,
    ServerError,
    StaleBrokerEpochError,
    StaleControllerEpochError,
    StorageError,
    UnknownEpochError,
)
from broker.replication.replica import Replica, ReplicaSettings, RoleChange
from broker.replication.replica_log import ReplicaLog
from broker.topic import TopicPartition


class Applied(NamedTuple):
    """What one push did: replicas that changed, and partitions whose order was not carried out.

    A failure is a `StorageError` if the disk refused, an `InvalidRequestError` if the state cannot
    be: a node in ZooKeeper was edited, or the order is of no controller.
    """

    changes: list[tuple[Replica, RoleChange]]
    failures: list[tuple[TopicPartition, ServerError]]


class Replicas:
    """All replicas of one broker.

    Args:
        me: id of this broker.
        settings: of its replicas.
        open_log: opens or creates the log of a replica of a partition; a log of another creation
            is set aside first. May raise `StorageError`.
        delete_log: deletes the log of a replica.

    Attributes:
        known: the last that controllers have told of each partition, those without a replica on
            this broker too.
        unnamed: the last that controllers have told of partitions with a replica here, which the
            registry does not have any more though they were not deleted: it has lost them.
    """

    def __init__(
        self,
        me: int,
        settings: ReplicaSettings,
        open_log: Callable[[ReplicatedPartition], ReplicaLog],
        delete_log: Callable[[Replica], None],
    ) -> None:
        self.controller_epoch = -1
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.known: dict[TopicPartition, ReplicatedPartition] = {}
        self.unnamed: dict[TopicPartition, ReplicatedPartition] = {}
        self._broker_epochs: dict[int, int] = {}  # of the last registration that was told
        self._me = me
        self._settings = settings
        self._open_log = open_log
        self._delete_log = delete_log
        self._replicas: dict[TopicPartition, Replica] = {}
        self._registry_id = 0
        self._last_full = (-1, -1)
        self._deleted: dict[tuple[TopicPartition, str], int] = {}  # and in which leader epoch

    def __iter__(self) -> Iterator[Replica]:
        return iter(list(self._replicas.values()))

    def get(self, partition: TopicPartition) -> Replica | None:
        """Return the replica of a partition, None if this broker has none."""
        return self._replicas.get(partition)

    def registered(self, broker_epoch: int, registry_id: int = 0) -> None:
        """Note that this broker has registered; orders for earlier registrations are over.

        Args:
            broker_epoch: of the registration.
            registry_id: another one if the registry has lost its data since the last registration.
                It counts all epochs anew then, and orders of its former controllers are over.
        """
        if registry_id != self._registry_id:
            self._registry_id = registry_id
            self.controller_epoch += 1
            self._broker_epochs.clear()
            self._deleted.clear()  # a partition may be restored in an epoch that counts as deleted
        self.broker_epoch = broker_epoch

    def check_orders(self, controller_epoch: int, broker_epoch: int) -> None:
        """Validate that the orders of a controller are not over.

        The errors tell no epochs: with them anybody could give orders.

        Args:
            controller_epoch: of the controller.
            broker_epoch: the registration of this broker that the orders are for.

        Raises:
            StaleControllerEpochError: there is a later controller.
            StaleBrokerEpochError: the orders are not for the present registration, or this broker
                has not registered since it started, so that they can only be for its former run. A
                controller can know of a registration before this broker does: it tries again.
        """
        if controller_epoch < self.controller_epoch:
            raise StaleControllerEpochError(
                f"orders for broker {self._me} of a former controller: there is a later one"
            )
        if broker_epoch != self.broker_epoch or self.broker_epoch == UNKNOWN_BROKER_EPOCH:
            raise StaleBrokerEpochError(
                f"orders for broker {self._me} that are not for its present registration"
            )

    def note_brokers(self, brokers: Iterable[LiveBroker]) -> None:
        """Note the registrations of brokers that a controller tells.

        An earlier one, of a push that was late, changes nothing.
        """
        for one in brokers:
            self._broker_epochs[one.id] = max(one.epoch, self._broker_epochs.get(one.id, one.epoch))

    def check_follower(self, broker_id: int, broker_epoch: int) -> None:
        """Validate that a follower fetches under the registration that a controller has told.

        Raises:
            StaleBrokerEpochError: it has registered again since.
            UnknownEpochError: this broker has yet to hear of that registration.
        """
        told_epoch = self._broker_epochs.get(broker_id)
        if told_epoch is None or broker_epoch > told_epoch:
            raise UnknownEpochError(
                f"this registration of broker {broker_id}, which fetches, is not known here"
            )
        if broker_epoch < told_epoch:
            raise StaleBrokerEpochError(
                f"broker {broker_id} fetches under a registration that is over"
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
        """Carry out the orders of a controller.

        Several threads may push at once what one controller orders about different partitions.

        Args:
            controller_epoch: of the controller.
            broker_epoch: as for `check_orders`.
            partitions: that changed, with their states; those of other brokers are skipped.
            stopped: replicas to stop, after the others.
            is_full: all partitions of the cluster are named: a replica of any other is stopped,
                its log stays. Only the first such push of a controller to a registration counts,
                as partitions may have been made since.

        Raises:
            StaleControllerEpochError, StaleBrokerEpochError: they are over; nothing was done.
        """
        self.check_orders(controller_epoch, broker_epoch)
        self.controller_epoch = controller_epoch
        applied = Applied([], [])
        named = set()
        for info in partitions:
            named.add(info.partition)
            self.note(info)
            try:
                _validate_state(info)
                self._apply(info, now_s, applied)
            except (StorageError, InvalidRequestError) as error:
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
        """Take note of what a controller tells of a partition, with or without a replica here.

        Returns:
            Whether it is news; not if it is of a deleted topic, or older than what is known.
        """
        known = self.known.get(info.partition)
        if self._deleted.get((info.partition, info.creation_id)) == LAST_EPOCH:
            return False
        if (
            known is not None
            and known.creation_id == info.creation_id
            and (info.state.leader_epoch, info.version) < (known.state.leader_epoch, known.version)
        ):
            return False
        self.known[info.partition] = info
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
            self._delete_log(replica)
        applied.changes.append((replica, change))

    def _note_deleted(self, partition: TopicPartition, creation_id: str, epoch: int) -> None:
        """Refuse late orders for what is deleted; a later leader epoch can make it a replica again.

        A topic that is deleted, or gives way to one of its name, has no later epoch.
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
            if self._me not in info.replicas:
                return
            replica = Replica(self._me, info, self._open_log(info), self._settings)
            self._replicas[info.partition] = replica
        applied.changes.append((replica, replica.apply(info, now_s)))


def _validate_state(info: ReplicatedPartition) -> None:
    """Validate what a leader and a follower rely on.

    Raises:
        InvalidRequestError: the state cannot be.
    """
    leader, leader_epoch, isr, _ = info.state
    members = set(isr)
    if (
        len(members) != len(isr)
        or len(set(info.replicas)) != len(info.replicas)
        or not (members and members <= set(info.replicas))
        or not (leader == NO_LEADER or leader in members)
        or not 0 <= leader_epoch < LAST_EPOCH
    ):
        raise InvalidRequestError(
            f"{info.partition} cannot have leader {leader} in epoch {leader_epoch} with replicas "
            f"{list(info.replicas)}, in sync {list(isr)}"
        )
