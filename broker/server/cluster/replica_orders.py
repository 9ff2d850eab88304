"""Orders of the controller, carried out on the logs of this broker.

The state machines of `replication` decide. A log refuses appends before its replica stops leading,
so that no message is appended that the next leader lacks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from broker import errors
from broker.clock import Clock
from broker.cluster_state import LAST_EPOCH, IsrChange, ReplicatedPartition, StoppedReplica
from broker.log.manager import LogManager
from broker.protocol.replica_requests import PushEpochs, PushStatesRequest
from broker.replication.leader import resignation
from broker.replication.replicas import RoleChange
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_fetcher import BACKGROUND_COUNT, DiskThreads, ReplicaFetchers
from broker.server.cluster.replica_table import HostedReplica, ReplicaTable
from broker.server.cluster.throttle import Throttle
from broker.state_changes import ChangeKind, LoggedChange
from broker.stats import WindowedStats
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_KINDS = {
    RoleChange.LEADS: ChangeKind.LEADS,
    RoleChange.FOLLOWS: ChangeKind.FOLLOWS,
    RoleChange.STOPPED: ChangeKind.STOPPED,
}
_FIRST_EPOCH = 0


@dataclass(slots=True, kw_only=True, eq=False)
class ReplicaOrders:
    """Carries out the pushes of controllers, one at a time."""

    table: ReplicaTable
    logs: LogManager
    brokers: LiveBrokers
    fetchers: ReplicaFetchers
    throttle: Throttle
    disks: DiskThreads
    clock: Clock
    stats: WindowedStats  # how long the pushes take
    # returns another number once the registry has lost its data
    registry_id: Callable[[], int] = lambda: 0
    # returns the last epoch of a controller in ZooKeeper, None without one
    stored_controller_epoch: Callable[[], int | None] = lambda: None
    # called once a push that names all partitions has been carried out
    on_first_orders: Callable[[], object] = lambda: None
    fenced_count: int = 0  # pushes of a former controller, or for a former registration
    _lock: Lock = field(default_factory=Lock, init=False)  # one push at a time
    _is_stopping: bool = field(default=False, init=False)
    # told to clients before the first orders
    _expected: set[TopicPartition] = field(default_factory=set, init=False)
    _changes: list[LoggedChange] = field(default_factory=list, init=False)  # to be logged
    # of topics, as told last
    _creation_ids: dict[str, str] = field(default_factory=dict, init=False)
    # pushes about partitions that a disk has refused to carry out
    _refused: dict[TopicPartition, PushStatesRequest] = field(default_factory=dict, init=False)

    def expect_topics(
        self, topics: Iterable[str], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Note topics that have replicas, and the partitions that clients are told of meanwhile.

        Called before a controller has told of them.
        """
        self.table.topics.update(topics)
        self._expected.update(partitions)

    def stop(self) -> None:
        """Have the push under way refused where it is now, and wait for its end."""
        self._is_stopping = True
        with self._lock:
            pass

    def check(self, epochs: PushEpochs) -> None:
        """Raise unless a push comes from the controller, before it is decoded.

        A controller epoch that is not known here is looked up in ZooKeeper: `UnknownEpochError` if
        it is not there, or ZooKeeper cannot be read now. Other errors as in
        `Replicas.check_orders`.
        """
        self.table.states.registered(self.table.broker_epoch, self.registry_id())
        try:
            self.table.states.check_orders(*epochs)
        except errors.ServerError:
            self.fenced_count += 1
            raise
        if epochs.controller_epoch <= self.table.states.controller_epoch:
            return
        try:
            stored_epoch = self.stored_controller_epoch()
        except errors.CoordinationError as error:
            raise errors.UnknownEpochError(
                f"broker {self.table.me} cannot look for that controller in ZooKeeper: {error}"
            ) from error
        if stored_epoch is not None and epochs.controller_epoch > stored_epoch:
            raise errors.UnknownEpochError(
                f"broker {self.table.me} finds no controller of that epoch in ZooKeeper"
            )

    def apply(self, request: PushStatesRequest) -> None:
        """Carry out a push, and note the states of partitions on other brokers.

        A stale push raises like `Replicas.check_orders`; on `ShuttingDownError`, part of the push
        is not carried out.
        """
        started_s = self.clock.monotonic_s()
        with self._lock:
            try:
                self._apply(request)
            except (errors.StaleControllerEpochError, errors.StaleBrokerEpochError):
                self.fenced_count += 1
                raise
            finally:  # some replicas follow others even if a later order failed
                self.fetchers.direct(self.table.all())
                self._note_changes()
            if request.is_full and not self.table.has_full_orders:
                self.table.has_full_orders = True
                self.on_first_orders()
        self.stats.record(self.clock.monotonic_s() - started_s)

    def _apply(self, request: PushStatesRequest) -> None:
        table, states = self.table, self.table.states
        states.registered(table.broker_epoch, self.registry_id())
        self._carry_out(request)  # of no partition: raises if it is stale
        states.note_brokers(request.brokers)
        self.brokers.note(request.brokers, request.controller_id)
        self.throttle.set(request.throttle_bytes_per_s, self.clock.monotonic_s())
        before = set(states.known)
        news = [info for info in request.partitions if states.note(info)]
        self._delete_former(request, news)
        # a topic that the controller does not name may be one that it cannot read
        table.topics |= {info.partition.topic for info in news}
        self._create_home_topics(request.partitions)
        table.ordered_epoch = request.broker_epoch
        self._apply_all(request)
        for order in request.stopped:
            self._stop_one(request, order)
        self._forget_deleted(request.stopped)
        if request.is_full:
            self._stop_unnamed(request)
            self._delete_unassigned(request)
            table.topics = {partition.topic for partition in list(states.known)}
            before |= self._expected
            self._expected = set()
        self.table.note_states(news, before - states.known.keys())

    def _delete_former(
        self, request: PushStatesRequest, news: Iterable[ReplicatedPartition]
    ) -> None:
        """Delete the logs of topics that were deleted and recreated while this broker was away."""
        creation_ids = {
            info.partition.topic: info.creation_id
            for info in news
            if self._creation_ids.get(info.partition.topic) != info.creation_id
        }
        if not creation_ids:
            return
        again = creation_ids.keys() & self._creation_ids.keys()
        # before the logs change, so that no offset of the new topic is taken for one of the former
        self.table.note_states([one for one in news if one.partition.topic in again], ())
        self._creation_ids.update(creation_ids)
        orders = []
        for log in self.logs.table.all():
            former = self.logs.table.replica_creation_id(log.partition)
            if former is not None and former != creation_ids.get(log.partition.topic, former):
                orders.append(StoppedReplica(log.partition, former, LAST_EPOCH, deletes_log=True))
        for order in orders:
            logger.info("%s is of a topic that was deleted: its log is deleted", order.partition)
            self._stop_one(request, order)

    def _delete_unassigned(self, request: PushStatesRequest) -> None:
        """Delete the logs of partitions that moved to other brokers while this one was away."""
        for log in self.logs.table.all():
            partition = log.partition
            known = self.table.states.known.get(partition)
            if known is None or self.table.me in known.replicas:
                continue
            if self.logs.table.replica_creation_id(partition) == known.creation_id:
                logger.info("%s has other replicas by now: the log here is deleted", partition)
                epoch = known.state.leader_epoch
                order = StoppedReplica(partition, known.creation_id, epoch, deletes_log=True)
                self._stop_one(request, order)

    def _forget_deleted(self, orders: Iterable[StoppedReplica]) -> None:
        """Forget deleted topics, and the number of partitions that they had here."""
        topics = {one.partition.topic for one in orders if one.leader_epoch == LAST_EPOCH}
        if not topics:
            return
        topics -= {partition.topic for partition in list(self.table.states.known)}
        self.table.topics -= topics
        for topic in topics:
            self._creation_ids.pop(topic, None)
        with_logs = {one.partition.topic for one in self.logs.table.all()}
        for topic in topics - with_logs:
            with suppress(errors.UnknownTopicError):
                self.logs.deletions.delete_topic(topic)

    def _apply_all(self, request: PushStatesRequest) -> None:
        """Carry out the orders about partitions, those that write to a disk side by side."""
        self._raise_if_stopping()
        led: list[ReplicatedPartition] = []
        created: list[ReplicatedPartition] = []
        others: list[ReplicatedPartition] = []
        for info in request.partitions:
            hosted = self.table.find(info.partition)
            if self.table.me not in info.replicas:
                others.append(info)
            elif info.state.leader == self.table.me and (
                hosted is None or info.state.leader_epoch > hosted.replica.leader_epoch
            ):
                led.append(info)
            else:
                (created if hosted is None else others).append(info)
        apply_one = partial(self._apply_one, request)
        self.disks.run(apply_one, led)  # first, as clients wait for the new leaders
        for first in range(min(BACKGROUND_COUNT, len(led))):
            some = [one.partition for one in led[first::BACKGROUND_COUNT]]
            self.disks.start(partial(self._settle_epochs, some))
        self.disks.run(apply_one, created)
        for info in others:
            apply_one(info)

    def _settle_epochs(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            hosted = self.table.find(partition)
            if hosted is not None:
                hosted.log.settle_epochs()

    def _carry_out(
        self,
        request: PushStatesRequest,
        partitions: Iterable[ReplicatedPartition] = (),
        stopped: Iterable[StoppedReplica] = (),
        *,
        is_full: bool = False,
    ) -> None:
        """Carry out orders of a push, and change the logs as the new roles require."""
        applied = self.table.states.push(
            request.controller_epoch,
            request.broker_epoch,
            partitions,
            stopped,
            self.clock.monotonic_s(),
            is_full=is_full,
        )
        for replica, change in applied.changes:
            self._refused.pop(replica.partition, None)
            hosted = self.table.add(replica)
            if hosted is not None:
                self._note_role(hosted, change)
        for partition, error in applied.failures:
            if partition not in self._refused:
                logger.error("the order about %s is not carried out: %s", partition, error)
            if isinstance(error, errors.StorageError):
                self._refused[partition] = request

    def _create_home_topics(self, partitions: Iterable[ReplicatedPartition]) -> None:
        """Register the partitions whose home this broker is, as clients of 0.7 know no others."""
        counts: dict[str, int] = {}
        for info in partitions:
            partition = info.partition
            if partition.home == self.table.me:
                counts[partition.topic] = max(counts.get(partition.topic, 0), partition.index + 1)
        for topic, count in counts.items():
            if topic not in self.logs.topics:
                try:
                    self.logs.creation.create_topic(topic, count, has_replicas=True)
                except errors.TopicExistsError:
                    continue  # a client's message created it before this push
                except errors.ServerError as error:
                    logger.error(
                        "cannot create topic '%(topic)s' here: %(error)s",
                        {"topic": topic, "error": error},
                    )

    def _raise_if_stopping(self) -> None:
        if self._is_stopping:
            raise errors.ShuttingDownError("the broker is shutting down")

    def _apply_one(self, request: PushStatesRequest, info: ReplicatedPartition) -> None:
        self._raise_if_stopping()
        hosted = self.table.find(info.partition)
        if hosted is None:
            if self.table.me in info.replicas:
                self._carry_out(request, [info])
            return
        with hosted:
            replica = hosted.replica
            is_new_term = info.state.leader_epoch > replica.leader_epoch
            if is_new_term or info.creation_id != replica.creation_id:
                hosted.log.refuse_appends(partial(self.table.not_led, info.partition))
            self._carry_out(request, [info])

    def _stop_one(self, request: PushStatesRequest, order: StoppedReplica) -> None:
        hosted = self.table.find(order.partition)
        with hosted or nullcontext():
            if (
                hosted is not None
                and hosted.replica.creation_id == order.creation_id
                and hosted.replica.leader_epoch <= order.leader_epoch
            ):
                hosted.log.refuse_appends(partial(self.table.not_led, order.partition))
            self._carry_out(request, (), [order])
        known = self.table.states.known.get(order.partition)
        is_unused = hosted is None and (known is None or self.table.me not in known.replicas)
        is_former = self.logs.table.replica_creation_id(order.partition) == order.creation_id
        if order.deletes_log and is_unused and is_former:
            # no push has opened it since the start
            self.logs.deletions.delete_replica(order.partition)

    def _stop_unnamed(self, request: PushStatesRequest) -> None:
        """Stop the replicas of partitions that are gone."""
        named = {info.partition for info in request.partitions}
        unnamed = [one for one in self.table.all() if one.log.partition not in named]
        with ExitStack() as stack:
            for hosted in self.table.all():
                stack.enter_context(hosted)
            for hosted in unnamed:
                hosted.log.refuse_appends(partial(self.table.not_led, hosted.log.partition))
            self._carry_out(request, request.partitions, is_full=True)

    def _note_role(self, hosted: HostedReplica, change: RoleChange) -> None:
        partition, loss = hosted.log.partition, ""
        if change is RoleChange.LEADS:
            hosted.log.accept_appends()
            if partition in self.table.new_logs and hosted.replica.leader_epoch > _FIRST_EPOCH:
                loss = "its log is new: messages on a former disk of the broker are lost"
                logger.error("%s is led here, the last in-sync replica: %s", partition, loss)
                if self.logs.directories.are_new:  # else it may have been created while away
                    hosted.log.note_lost_former()
        elif change in (RoleChange.FOLLOWS, RoleChange.STOPPED):
            hosted.log.refuse_appends(partial(self.table.not_led, partition))
        self.table.new_logs.discard(partition)
        kind = _KINDS.get(change)
        if kind is not None:
            known = self.table.states.known.get(partition)
            state = None if known is None else known.state
            self._changes.append(
                self.table.change_of(
                    *(hosted, kind),
                    time_ms=self.clock.time_ms(),
                    leader=None if state is None else state.leader,
                    isr=None if state is None else state.isr,
                    version=None if known is None else known.version,
                    offset=hosted.log.log_end_offset,
                    text=loss,
                )
            )

    def _note_changes(self) -> None:
        """Log the changes of a push, once all are made: clients wait for these."""
        changes, self._changes = self._changes, []
        self.table.note_changes(changes)

    def retry_refused(self) -> list[IsrChange]:
        """Carry out orders that a disk refused, such as to note an epoch on a full disk.

        Return proposals that others lead where the disk refuses still.
        """
        if not self._refused:
            return []
        resignations = []
        with self._lock:
            for partition, request in list(self._refused.items()):
                info = self.table.states.known.get(partition)
                try:
                    if info is not None:
                        self._apply_one(request, info)
                except (
                    errors.StaleControllerEpochError,
                    errors.StaleBrokerEpochError,
                    errors.ShuttingDownError,
                ):
                    info = None  # a later push has the next orders
                if info is None:
                    del self._refused[partition]
                elif partition in self._refused and info.state.leader == self.table.me:
                    resignations.append(resignation(info, self.table.me))
            self.fetchers.direct(self.table.all())
            self._note_changes()
        return [one for one in resignations if one is not None]
