"""The replicas of this broker: pushes of the controller carried out on logs.

The state machines of `replication` decide; here are the logs, the locks and the threads. A log
refuses appends before its replica stops leading, so that no message is appended that the next
leader lacks. Every replica has a lock of its own; no thread takes two of them, except for a push
that names all partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, Thread
from typing import NamedTuple, TypeVar

from broker import errors
from broker.client.connection import Connection
from broker.clock import Clock
from broker.cluster_state import (
    LAST_EPOCH,
    NO_CONTROLLER,
    IsrChange,
    IsrDecision,
    LiveBroker,
    ReplicatedPartition,
    ShutdownProgress,
    StoppedReplica,
)
from broker.config import BrokerConfig
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.extension_requests import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import (
    ISR_DECISIONS,
    SHUTDOWN_PROGRESS,
    ChangeIsrRequest,
    ControlledShutdownRequest,
    PushEpochs,
    PushStatesRequest,
)
from broker.protocol.responses import BrokerAddress, DamageState, LogDamage
from broker.replica_records import UnknownReplica
from broker.replication.follower import Follower
from broker.replication.leader import Leader, resignation
from broker.replication.replica import Replica, ReplicaSettings, RoleChange
from broker.replication.replicas import Applied, Replicas
from broker.server.hosted_replica import HostedReplica
from broker.server.replica_fetcher import ReplicaFetcher
from broker.server.replica_records import ReplicaRecords
from broker.server.state_change_log import NoteChange
from broker.server.storage_faults import StorageFaults
from broker.server.throttle import Throttle
from broker.state_changes import ChangeKind, LoggedChange
from broker.stats import WindowedStats
from broker.topic import TopicPartition, share_of

logger = logging.getLogger(__name__)

_DISK_THREADS = 16
"""How many logs are created, or flushed, side by side: a file system syncs many files in one go."""
_MENDING_THREADS = 4
"""Apart from those, as a disk that fails can take minutes, and its logs are many."""
_TICK_S = 0.5
_KINDS = {
    RoleChange.LEADS: ChangeKind.LEADS,
    RoleChange.FOLLOWS: ChangeKind.FOLLOWS,
    RoleChange.STOPPED: ChangeKind.STOPPED,
}
_CONNECT_TIMEOUT_S = 2.0
_FIRST_EPOCH = 0
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(slots=True)
class IsrCounts:
    """Counts of the changes of in-sync replicas that this broker proposed as the leader."""

    shrinks: int = 0  # replicas have left
    expands: int = 0  # replicas have joined
    failed: int = 0  # the controller refused, or did not respond


class _Proposal(NamedTuple):
    """A change of in-sync replicas to propose, and those that its leader knew then."""

    hosted: HostedReplica
    role: Leader
    change: IsrChange
    isr: tuple[int, ...]


class ReplicaManager:
    """The replicas of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogManager,
        clock: Clock,
        note_states: Callable[[Iterable[ReplicatedPartition], Iterable[TopicPartition]], object],
        note_change: NoteChange,
    ) -> None:
        self._note_change = note_change
        self.isr_counts = IsrCounts()
        # durations of pushes
        self.order_stats = WindowedStats(clock, config.monitoring_period_ms / 1000)
        # pushes refused: of a former controller or for a former registration
        self.fenced_order_count = 0
        self._config = config
        self._me = config.broker_id
        self._logs = logs
        self._clock = clock
        # called with the states that the controller tells, and with partitions that are gone
        self._note_states = note_states
        self._orders_lock = Lock()  # one push at a time
        self._replicas = Replicas(
            self._me,
            ReplicaSettings(
                config.replica_lag_ms / 1000,
                self.counts_flushed,
            ),
            self._open_log,
            self._delete_log,
        )
        self._hosted: dict[TopicPartition, HostedReplica] = {}
        self.registered_epoch: Callable[[], int | None] = lambda: None
        """Returns the epoch of this broker's registration; pushes for earlier ones are refused."""
        self.registry_id: Callable[[], int] = lambda: 0
        """Returns another number once the registry has lost its data."""
        self.records = ReplicaRecords(logs)
        """Written beside the logs, for the case that the registry loses its data."""
        self.stored_controller_epoch: Callable[[], int | None] = lambda: None
        """Returns the last epoch of a controller in ZooKeeper, None without one."""
        self.on_first_orders: Callable[[], object] = lambda: None
        """Called once a push that names all partitions has been carried out."""
        self.on_brokers: Callable[[Iterable[LiveBroker]], object] = lambda _brokers: None
        """Called with the live brokers of each push."""
        self._ordered_epoch: int | None = None
        """The registration in which a controller told this broker of all partitions it knows."""
        self._has_full_orders = False
        self._new_logs: set[TopicPartition] = set()  # created by the push being carried out
        self._topics: set[str] = set()
        self._expected: set[TopicPartition] = set()  # told to clients before the first orders
        self._creation_ids: dict[str, str] = {}  # of topics, as told last
        self._brokers: dict[int, LiveBroker] = {}
        self.controller_id = NO_CONTROLLER  # as far as this broker knows
        self.throttle = Throttle()  # of copies to replicas that are being added
        # by the leader's broker, and the share of the partitions
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        # of brokers that lead nothing any more; they end soon
        self._retired_fetchers: list[ReplicaFetcher] = []
        self._disk_workers = ThreadPoolExecutor(_DISK_THREADS, thread_name_prefix="replica-disk")
        # pushes about partitions that a disk has refused to carry out
        self._refused: dict[TopicPartition, PushStatesRequest] = {}
        self._is_stopping = Event()
        self._menders = ThreadPoolExecutor(_MENDING_THREADS, thread_name_prefix="replica-mender")
        self._faults = StorageFaults(
            self._me,
            self._menders,
            self.address_of,
            self._connect,
            clock,
            self._is_stopping,
        )
        self._tick_wanted = Event()
        self._ticker = Thread(target=self._run_ticker, name="replica-ticker", daemon=True)
        self._controller_lock = Lock()  # one request to the controller at a time
        self._controller_connection: Connection | None = None

    @property
    def broker_epoch(self) -> int:
        """Return the epoch of this broker's registration, -1 before the first."""
        epoch = self.registered_epoch()
        return self._replicas.broker_epoch if epoch is None else epoch

    @property
    def is_hosting(self) -> bool:
        """Return whether this broker has any replica."""
        return bool(self._hosted)

    def expect_topics(
        self, topics: Iterable[str], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Note topics that have replicas, before the controller has told of them.

        Args:
            topics: their names.
            partitions: those that clients are told of meanwhile.
        """
        self._topics.update(topics)
        self._expected.update(partitions)

    def stop(self) -> None:
        """Stop fetching, and all threads; logs stay open."""
        self._is_stopping.set()
        self._tick_wanted.set()
        with self._orders_lock:
            fetchers, self._fetchers = list(self._fetchers.values()), {}
            fetchers += self._retired_fetchers
        for fetcher in fetchers:
            fetcher.request_stop()
        connection = self._controller_connection
        if connection is not None:
            connection.interrupt()
        for fetcher in fetchers:
            fetcher.join()
        if self._ticker.ident is not None:
            self._ticker.join()
        if connection is not None:
            connection.close()
        self._disk_workers.shutdown()
        self._menders.shutdown(cancel_futures=True)
        self.records.stop()

    def hosted(self, partition: TopicPartition) -> HostedReplica:
        """Return this broker's replica of a partition, or raise the error of `not_led`."""
        found = self._hosted.get(partition)
        if found is None:
            raise self.not_led(partition)
        return found

    def leader_of(self, partition: TopicPartition) -> Leader:
        """Return this broker's present term as leader of a partition, or raise like `hosted`."""
        return self.hosted(partition).replica.leader

    def find_served(self, partition: TopicPartition) -> Log | None:
        """Return the log of a partition that clients may use here, None if it has none yet.

        Home -1 means this broker. Raises the error of `not_led` if others lead the partition, or
        its topic is lost.
        """
        topic = partition.topic
        if partition.home == -1:
            partition = TopicPartition(topic, self._me, partition.index)
        log = self._logs.table.find(partition)
        if log is None:
            is_foreign = partition.home != self._me or topic in self._topics
            if (
                is_foreign
                or self.is_lost(topic)
                or (self._awaits_orders and topic not in self._logs.topics)
            ):
                raise self.not_led(partition)
        elif log.is_replicated or partition in self._replicas.known:  # it is about to be one
            self.leader_of(partition)
        return log

    def find_readable(self, partition: TopicPartition) -> Log | None:
        """Return the log of a follower here that consumers may read, None if there is none.

        It is in sync as far as this broker has been told, and its leader responds: a follower cut
        off from controller and leader would stay behind for ever without knowing it.
        """
        hosted, known = self._hosted.get(partition), self._replicas.known.get(partition)
        if hosted is None or known is None or self._me not in known.state.isr:
            return None
        if hosted.log.is_faulty:
            return None
        role = hosted.replica.role
        if not isinstance(role, Follower) or role.is_stopped or role.answered_s is None:
            return None
        silent_s = self._clock.monotonic_s() - role.answered_s
        return hosted.log if silent_s <= self._config.replica_lag_ms / 1000 else None

    def leads(self, partition: TopicPartition) -> bool:
        """Return whether this broker leads a partition that has replicas."""
        hosted = self._hosted.get(partition)
        return hosted is not None and isinstance(hosted.replica.role, Leader)

    def is_replicated(self, topic: str) -> bool:
        """Return whether a topic has replicas."""
        return topic in self._topics

    def leader_id(self, partition: TopicPartition) -> int:
        """Return which broker leads a partition, -1 if none does or that is not known."""
        known = self._replicas.known.get(partition)
        return -1 if known is None else known.state.leader

    @property
    def _awaits_orders(self) -> bool:
        """Return whether no controller has pushed partitions since this broker registered."""
        # until then a partition that is not known here may have replicas, as topics may be new
        return bool(self._topics) and self._ordered_epoch != self.broker_epoch

    def not_led(self, partition: TopicPartition) -> errors.ServerError:
        """Return the error for a partition of which this broker has no log that it may use."""
        known = self._replicas.known.get(partition)
        if known is None:
            is_lost = self.is_lost(partition.topic)
            has_replicas = is_lost or partition.topic in self._topics
            is_unread = has_replicas and not self._has_full_orders
            if is_unread or self._awaits_orders:
                return errors.LeaderNotAvailableError(
                    f"the controller has not yet told this broker who leads {partition}; try again"
                )
            if is_lost:
                return errors.LeaderNotAvailableError(
                    f"ZooKeeper has lost topic '{partition.topic}', of which broker {self._me} has "
                    "logs: `pylogctl cluster recover` restores it"
                )
            return errors.WrongPartitionError(f"broker {self._me} does not lead {partition}")
        leader = known.state.leader
        return errors.NotLeaderError(
            f"broker {self._me} does not lead {partition}; "
            + ("no broker does" if leader < 0 else f"broker {leader} does"),
            leader,
        )

    def unreadable(
        self, partition: TopicPartition, error: errors.ServerError
    ) -> errors.ServerError:
        """Return the error for a failed read of a disk; `NotLeaderError` if another can lead."""
        hosted = self._hosted.get(partition)
        if hosted is None:
            return error
        with hosted:
            role = hosted.replica.role
            if isinstance(role, Leader) and role.resignation() is None:
                return error
        self.request_tick()
        return errors.NotLeaderError(f"another broker is to lead {partition}: {error}")

    def following(self, leader_id: int, share: int) -> list[HostedReplica]:
        """Return the replicas that one of the fetchers copies from a broker."""
        found = []
        count = self._config.num_replica_fetchers
        for hosted in list(self._hosted.values()):
            role = hosted.replica.role
            if not isinstance(role, Follower) or role.leader != leader_id:
                continue
            if count == 1 or share_of(hosted.log.partition, count) == share:
                found.append(hosted)
        return found

    def led(self) -> list[HostedReplica]:
        """Return the replicas that lead."""
        return [one for one in list(self._hosted.values()) if isinstance(one.replica.role, Leader)]

    def fetchers(self) -> list[ReplicaFetcher]:
        """Return the fetchers that copy from other brokers."""
        return list(self._fetchers.values())

    def all(self) -> list[HostedReplica]:
        """Return all replicas of this broker."""
        return list(self._hosted.values())

    def counts_flushed(self, topic: str) -> bool:
        """Return whether only flushed messages of a topic count as being on a replica."""
        return self._logs.settings.of(topic).flush_before_read

    def address_of(self, broker_id: int) -> BrokerAddress | None:
        """Return the address of a live broker, None for another."""
        broker = self._brokers.get(broker_id)
        return None if broker is None else BrokerAddress(broker.id, broker.host, broker.port)

    def _connect(self, address: BrokerAddress) -> Connection:
        return Connection(
            address,
            timeout_s=self._config.replica_socket_timeout_ms / 1000,
            connect_timeout_s=_CONNECT_TIMEOUT_S,
            client_id=f"broker-{self._me}",
            retries_refused=False,
        )

    def damage_in(self, log: Log, offset: int, length: int) -> LogDamage:
        """Look for damaged messages in a range of a log; see `StorageFaults`."""
        found = self._faults.damage_in(log, self._hosted.get(log.partition), offset, length)
        if found.state is not DamageState.NONE:
            self.request_tick()
        return found

    def flush(self, logs: list[Log]) -> None:
        """Flush logs side by side; an error of one is logged, as it refuses appends then."""
        if len(logs) == 1:
            _flush(logs[0])
        elif logs:
            self.side_by_side(_flush, logs)

    def side_by_side(self, action: Callable[[_Item], _Result], items: list[_Item]) -> list[_Result]:
        """Call a function, which waits for a disk, with each item on threads of this object."""
        futures = [self._disk_workers.submit(action, one) for one in items]
        wait(futures)
        return [one.result() for one in futures]  # raises the first error

    def check_push(self, epochs: PushEpochs) -> None:
        """Raise unless a push comes from the controller, before it is decoded.

        A controller epoch that is not known here is looked up in ZooKeeper: `UnknownEpochError` if
        it is not there, or ZooKeeper cannot be read now. Other errors as in
        `Replicas.check_orders`.
        """
        self._replicas.registered(self.broker_epoch, self.registry_id())
        try:
            self._replicas.check_orders(*epochs)
        except errors.ServerError:
            self.fenced_order_count += 1
            raise
        if epochs.controller_epoch <= self._replicas.controller_epoch:
            return
        try:
            stored_epoch = self.stored_controller_epoch()
        except errors.CoordinationError as error:
            raise errors.UnknownEpochError(
                f"broker {self._me} cannot look for that controller in ZooKeeper: {error}"
            ) from error
        if stored_epoch is not None and epochs.controller_epoch > stored_epoch:
            raise errors.UnknownEpochError(
                f"broker {self._me} finds no controller of that epoch in ZooKeeper"
            )

    def check_follower(self, broker_id: int, broker_epoch: int) -> None:
        """Raise like `Replicas.check_follower`."""
        self._replicas.check_follower(broker_id, broker_epoch)

    def apply(self, request: PushStatesRequest) -> list[UnknownReplica]:
        """Carry out a push, and note the states of partitions on other brokers.

        Return, for a full push, the replicas here that the controller does not know. A stale push
        raises like `Replicas.check_orders`; on `ShuttingDownError`, part of the push is not carried
        out.
        """
        started_s = self._clock.monotonic_s()
        try:
            self._apply(request)
        except (errors.StaleControllerEpochError, errors.StaleBrokerEpochError):
            self.fenced_order_count += 1
            raise
        self.order_stats.record(self._clock.monotonic_s() - started_s)
        if not request.is_full:
            return []
        unknown = self.unknown_replicas()
        self.records.report(unknown)
        return unknown

    def unknown_replicas(self) -> list[UnknownReplica]:
        """Return the replicas that have logs here and that the controller does not know."""
        if not self._has_full_orders and self._logs.table.has_replicas:
            raise errors.LeaderNotAvailableError(
                f"the controller has not yet told broker {self._me} of all partitions; try again"
            )
        return self.records.find_unknown(self._replicas.known, self._replicas.unnamed)

    def is_lost(self, topic: str) -> bool:
        """Return whether replicas here are of a topic of which no controller has told this run."""
        return topic not in self._topics and self._logs.table.has_replicas_of(topic)

    def is_unknown(self, partition: TopicPartition) -> bool:
        """Return whether no controller has told this run of a partition, or it is gone."""
        return partition not in self._replicas.known

    def _apply(self, request: PushStatesRequest) -> None:
        with self._orders_lock:
            self._replicas.registered(self.broker_epoch, self.registry_id())
            self._push(request)
            if self._ticker.ident is None and not self._is_stopping.is_set():
                self._ticker.start()
            self._replicas.note_brokers(request.brokers)
            self._brokers = {one.id: one for one in request.brokers}
            self.on_brokers(request.brokers)
            self.controller_id = request.controller_id
            self.throttle.set(request.throttle_bytes_per_s, self._clock.monotonic_s())
            before = set(self._replicas.known)
            news = [info for info in request.partitions if self._replicas.note(info)]
            self._delete_former(request, news)
            # a topic that the controller does not name may be one that it cannot read
            self._topics |= {info.partition.topic for info in news}
            self._create_home_topics(request.partitions)
            self._ordered_epoch = request.broker_epoch
            self._apply_all(request)
            for order in request.stopped:
                self._stop_one(request, order)
            self._forget_deleted(request.stopped)
            if request.is_full:
                self._stop_unnamed(request)
                self._delete_unassigned(request)
                self._topics = {partition.topic for partition in list(self._replicas.known)}
                before |= self._expected
                self._expected = set()
            self._note_states(news, before - self._replicas.known.keys())
            self._direct_fetchers()
            if request.is_full and not self._has_full_orders:
                self._has_full_orders = True
                self.on_first_orders()

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
        self._note_states([one for one in news if one.partition.topic in again], ())
        self._creation_ids.update(creation_ids)
        orders = []
        for log in self._logs.table.all():
            former = self._logs.table.replica_creation_id(log.partition)
            if former is not None and former != creation_ids.get(log.partition.topic, former):
                orders.append(StoppedReplica(log.partition, former, LAST_EPOCH, deletes_log=True))
        for order in orders:
            logger.info("%s is of a topic that was deleted: its log is deleted", order.partition)
            self._stop_one(request, order)

    def _delete_unassigned(self, request: PushStatesRequest) -> None:
        """Delete the logs of partitions that moved to other brokers while this one was away."""
        for log in self._logs.table.all():
            partition = log.partition
            known = self._replicas.known.get(partition)
            if known is None or self._me in known.replicas:
                continue
            if self._logs.table.replica_creation_id(partition) == known.creation_id:
                logger.info("%s has other replicas by now: the log here is deleted", partition)
                epoch = known.state.leader_epoch
                order = StoppedReplica(partition, known.creation_id, epoch, deletes_log=True)
                self._stop_one(request, order)

    def _forget_deleted(self, orders: Iterable[StoppedReplica]) -> None:
        """Forget deleted topics, and the number of partitions that they had here."""
        topics = {one.partition.topic for one in orders if one.leader_epoch == LAST_EPOCH}
        if not topics:
            return
        topics -= {partition.topic for partition in list(self._replicas.known)}
        self._topics -= topics
        for topic in topics:
            self._creation_ids.pop(topic, None)
        with_logs = {one.partition.topic for one in self._logs.table.all()}
        for topic in topics - with_logs:
            with suppress(errors.UnknownTopicError):
                self._logs.deletions.delete_topic(topic)

    def _apply_all(self, request: PushStatesRequest) -> None:
        """Carry out the orders about partitions, those that write to a disk side by side."""
        self._raise_if_stopping()
        led: list[ReplicatedPartition] = []
        created: list[ReplicatedPartition] = []
        others: list[ReplicatedPartition] = []
        for info in request.partitions:
            hosted = self._hosted.get(info.partition)
            if self._me not in info.replicas:
                others.append(info)
            elif info.state.leader == self._me and (
                hosted is None or info.state.leader_epoch > hosted.replica.leader_epoch
            ):
                led.append(info)
            else:
                (created if hosted is None else others).append(info)
        apply_one = partial(self._apply_one, request)
        self.side_by_side(apply_one, led)  # first, as clients wait for the new leaders
        self.side_by_side(apply_one, created)
        for info in others:
            apply_one(info)

    def _push(
        self,
        request: PushStatesRequest,
        partitions: Iterable[ReplicatedPartition] = (),
        stopped: Iterable[StoppedReplica] = (),
        *,
        is_full: bool = False,
    ) -> Applied:
        applied = self._replicas.push(
            request.controller_epoch,
            request.broker_epoch,
            partitions,
            stopped,
            self._clock.monotonic_s(),
            is_full=is_full,
        )
        for replica, _ in applied.changes:
            self._refused.pop(replica.partition, None)
        for partition, error in applied.failures:
            if partition not in self._refused:
                logger.error("the order about %s is not carried out: %s", partition, error)
            if isinstance(error, errors.StorageError):
                self._refused[partition] = request
        return applied

    def _create_home_topics(self, partitions: Iterable[ReplicatedPartition]) -> None:
        """Register the partitions whose home this broker is, as clients of 0.7 know no others."""
        counts: dict[str, int] = {}
        for info in partitions:
            partition = info.partition
            if partition.home == self._me:
                counts[partition.topic] = max(counts.get(partition.topic, 0), partition.index + 1)
        for topic, count in counts.items():
            if topic not in self._logs.topics:
                try:
                    self._logs.creation.create_topic(topic, count, has_replicas=True)
                except errors.TopicExistsError:
                    continue  # a client's message created it before this push
                except errors.ServerError as error:
                    logger.error("cannot create topic '%s' here: %s", topic, error)

    def _raise_if_stopping(self) -> None:
        if self._is_stopping.is_set():
            raise errors.ShuttingDownError("the broker is shutting down")

    def _apply_one(self, request: PushStatesRequest, info: ReplicatedPartition) -> None:
        self._raise_if_stopping()
        hosted = self._hosted.get(info.partition)
        if hosted is None:
            if self._me in info.replicas:
                self._take_over(self._push(request, [info]), None)
            return
        with hosted:
            replica = hosted.replica
            is_new_term = info.state.leader_epoch > replica.leader_epoch
            if is_new_term or info.creation_id != replica.creation_id:
                hosted.log.refuse_appends(partial(self.not_led, info.partition))
            self._take_over(self._push(request, [info]), hosted)

    def _stop_one(self, request: PushStatesRequest, order: StoppedReplica) -> None:
        hosted = self._hosted.get(order.partition)
        with ExitStack() as stack:
            if hosted is not None:
                stack.enter_context(hosted)
                if (
                    hosted.replica.creation_id == order.creation_id
                    and hosted.replica.leader_epoch <= order.leader_epoch
                ):
                    hosted.log.refuse_appends(partial(self.not_led, order.partition))
            self._take_over(self._push(request, (), [order]), hosted)
        known = self._replicas.known.get(order.partition)
        is_unused = hosted is None and (known is None or self._me not in known.replicas)
        is_former = self._logs.table.replica_creation_id(order.partition) == order.creation_id
        if order.deletes_log and is_unused and is_former:
            # no push has opened it since the start
            self._logs.deletions.delete_replica(order.partition)

    def _stop_unnamed(self, request: PushStatesRequest) -> None:
        """Stop the replicas of partitions that are gone."""
        named = {info.partition for info in request.partitions}
        unnamed = [one for partition, one in self._hosted.items() if partition not in named]
        with ExitStack() as stack:
            for hosted in self._hosted.values():
                stack.enter_context(hosted)
            for hosted in unnamed:
                hosted.log.refuse_appends(partial(self.not_led, hosted.log.partition))
            self._take_over(self._push(request, request.partitions, is_full=True), None)

    def _take_over(self, applied: Applied, hosted: HostedReplica | None) -> None:
        """Change the logs as the new roles of their replicas require."""
        for replica, change in applied.changes:
            known = self._hosted.get(replica.partition)
            if known is None or known.replica is not replica:
                log = self._logs.table.find(replica.partition)
                if log is None:  # it was deleted
                    continue
                if known is not None:
                    known.forget_log()
                known = self._hosted[replica.partition] = HostedReplica(replica, log)
            self._note_role(known, change)

    def _note_role(self, hosted: HostedReplica, change: RoleChange) -> None:
        partition, loss = hosted.log.partition, ""
        if change is RoleChange.LEADS:
            hosted.log.accept_appends()
            if partition in self._new_logs and hosted.replica.leader_epoch > _FIRST_EPOCH:
                loss = "its log is new: messages on a former disk of the broker are lost"
                logger.error("%s is led here, the last in-sync replica: %s", partition, loss)
        elif change in (RoleChange.FOLLOWS, RoleChange.STOPPED):
            hosted.log.refuse_appends(partial(self.not_led, partition))
        self._new_logs.discard(partition)
        kind = _KINDS.get(change)
        if kind is not None:
            known = self._replicas.known.get(partition)
            state = None if known is None else known.state
            self._note_change(
                LoggedChange(
                    kind,
                    controller_epoch=self._replicas.controller_epoch,
                    partition=partition,
                    leader_epoch=hosted.replica.leader_epoch,
                    leader=None if state is None else state.leader,
                    isr=None if state is None else state.isr,
                    version=None if known is None else known.version,
                    offset=hosted.log.log_end_offset,
                    text=loss,
                )
            )

    def note_truncated(self, hosted: HostedReplica, from_offset: int) -> None:
        """Log that a follower's log, which ended at an offset, was truncated; it is locked."""
        role = hosted.replica.role
        self._note_change(
            LoggedChange(
                ChangeKind.TRUNCATED,
                controller_epoch=self._replicas.controller_epoch,
                partition=hosted.log.partition,
                leader_epoch=hosted.replica.leader_epoch,
                version=None if role is None else role.info.version,
                offset=hosted.log.log_end_offset,
                text=f"the log ended at {from_offset}",
            )
        )

    def _open_log(self, info: ReplicatedPartition) -> Log:
        if self._logs.table.find(info.partition) is None:
            self._new_logs.add(info.partition)
        return self._logs.creation.open_replica(info.partition, info.creation_id)

    def _delete_log(self, replica: Replica) -> None:
        hosted = self._hosted.pop(replica.partition, None)
        if hosted is not None:
            hosted.forget_log()
        self._logs.deletions.delete_replica(replica.partition)

    def _direct_fetchers(self) -> None:
        """Have a fetcher for each followed leader and share of its partitions, and no others."""
        count = self._config.num_replica_fetchers
        wanted = set()
        for hosted in self._hosted.values():
            role = hosted.replica.role
            if isinstance(role, Follower) and role.leader >= 0:
                wanted.add((role.leader, share_of(hosted.log.partition, count)))
        for key in self._fetchers.keys() - wanted:
            retired = self._fetchers.pop(key)
            retired.request_stop()
            self._retired_fetchers = [one for one in self._retired_fetchers if one.is_alive]
            self._retired_fetchers.append(retired)
        if self._is_stopping.is_set():
            return
        for key in wanted:
            fetcher = self._fetchers.get(key)
            if fetcher is None:
                fetcher = ReplicaFetcher(*key, self, self._config, self._clock)
                self._fetchers[key] = fetcher
                fetcher.start()
            fetcher.wake()

    def request_tick(self) -> None:
        """Have changes of in-sync replicas proposed soon."""
        self._tick_wanted.set()

    def _run_ticker(self) -> None:
        while not self._is_stopping.is_set():
            self._tick_wanted.wait(_TICK_S)
            self._tick_wanted.clear()
            if self._is_stopping.is_set():
                return
            try:
                self._tick()
            except Exception:  # the next one may succeed
                logger.exception("watching the in-sync replicas failed")

    def _tick(self) -> None:
        proposals = []
        for hosted in self.led():
            with hosted:
                role = hosted.replica.role
                if isinstance(role, Leader):
                    role.count_flushed(self.counts_flushed(hosted.log.partition.topic))
                    proposal = None
                    if hosted.log.is_faulty:
                        proposal = self._faults.resignation(hosted, role)
                    if proposal is None:
                        proposal = role.tick(self._clock.monotonic_s())
                    if proposal is not None:
                        proposals.append(_Proposal(hosted, role, proposal, role.info.state.isr))
        if proposals:
            self._propose(proposals)
        self._faults.retry(self.all())
        self._retry_orders()

    def _retry_orders(self) -> None:
        """Carry out orders that a disk refused, such as to note an epoch on a full disk."""
        if not self._refused:
            return
        changes = []
        with self._orders_lock:
            for partition, request in list(self._refused.items()):
                info = self._replicas.known.get(partition)
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
                elif partition in self._refused and info.state.leader == self._me:
                    changes.append(resignation(info, self._me))
            self._direct_fetchers()
        if any(changes):
            with suppress(errors.BrokerError):  # tried again
                named = tuple(one for one in changes if one is not None)
                self._ask_controller(ChangeIsrRequest(self._me, self.broker_epoch, named))

    def _propose(self, proposals: list[_Proposal]) -> None:
        """Propose changes of in-sync replicas to the controller."""
        changes = tuple(one.change for one in proposals)
        decided = {}
        try:
            body = self._ask_controller(ChangeIsrRequest(self._me, self.broker_epoch, changes))
            decided = {one.partition: one for one in ISR_DECISIONS.decode(body)}
        except errors.ServerError as error:
            logger.warning("the in-sync replicas stay as they are: %s", error)
        except errors.BrokerError as error:
            logger.warning("whether in-sync replicas have changed is not known: %s", error)
        now_s = self._clock.monotonic_s()
        for hosted, role, proposal, isr in proposals:
            decision = decided.get(proposal.partition)
            self._count(isr, decision)
            with hosted:
                if hosted.replica.role is not role:
                    continue
                if decision is None or decision.decided is None:
                    role.isr_failed(proposal, now_s)
                    continue
                hosted.replica.isr_answered(proposal, decision.decided, now_s)
                is_same_epoch = decision.decided.state.leader_epoch == hosted.replica.leader_epoch
                # for another epoch, a push is on its way
                if is_same_epoch and self._replicas.note(decision.decided):
                    if decision.decided.version > proposal.version:
                        self._note_isr(decision.decided)
                    self._note_states([decision.decided], ())

    def _count(self, isr: Iterable[int], decision: IsrDecision | None) -> None:
        """Count the outcome of a proposal; `isr` are the in-sync replicas that it was to change."""
        counts = self.isr_counts
        if decision is None or decision.error != errors.NO_ERROR or decision.decided is None:
            counts.failed += 1
            return
        before, after = set(isr), set(decision.decided.state.isr)
        counts.shrinks += not before <= after
        counts.expands += not after <= before

    def _note_isr(self, decided: ReplicatedPartition) -> None:
        self._note_change(
            LoggedChange(
                ChangeKind.ISR,
                controller_epoch=self._replicas.controller_epoch,
                partition=decided.partition,
                leader_epoch=decided.state.leader_epoch,
                isr=decided.state.isr,
                version=decided.version,
            )
        )

    def could_move(self, partition: TopicPartition) -> bool:
        """Return whether another broker that is live has a replica of a partition."""
        known = self._replicas.known.get(partition)
        return known is not None and any(
            one != self._me and one in self._brokers for one in known.replicas
        )

    def ask_to_leave(self) -> ShutdownProgress:
        """Ask the controller to move all leaderships away from this broker."""
        body = self._ask_controller(ControlledShutdownRequest(self._me, self.broker_epoch))
        return SHUTDOWN_PROGRESS.decode(body)

    def _ask_controller(self, request: ExtensionRequest) -> Reader:
        """Return the body of the controller's response; after a `ServerError` nothing was done."""
        with self._controller_lock:
            address = self.address_of(self.controller_id)
            if address is None:
                raise errors.NotControllerError("no controller is known at present")
            connection = self._controller_connection
            if connection is None or connection.address != address:
                if connection is not None:
                    connection.close()
                connection = self._controller_connection = self._connect(address)
            try:
                return connection.call(request)
            except errors.ServerError:
                raise
            except errors.BrokerError:
                connection.close()
                raise


def _flush(log: Log) -> None:
    try:
        log.flush()
    except errors.StorageError as error:
        logger.error("%s", error)
