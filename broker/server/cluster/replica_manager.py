"""The replicas of one broker: their copies and records, and the changes they propose.

The parts of a `ReplicaManager` are used by their names; handlers of requests get the `table` alone.

Locks, in the order in which a thread takes them: that of the orders, for one push at a time; that
of a replica (several only for a push that names all partitions); those of the log manager and of
its logs. Those of the fetchers, the throttle, the records, the cluster view and the request to the
controller come last: under them no other one is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock, Timer
from typing import NamedTuple

from broker import errors
from broker.clock import Clock
from broker.cluster_state import IsrChange, IsrDecision, ReplicatedPartition, ShutdownProgress
from broker.config import BrokerConfig
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.replica_files import read_record, write_record
from broker.protocol import replica_requests
from broker.protocol.primitives import Reader
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.replication.leader import Leader
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_fetcher import DiskThreads, ReplicaFetcher, ReplicaFetchers
from broker.server.cluster.replica_orders import ReplicaOrders
from broker.server.cluster.replica_table import HostedReplica, NoteStates, ReplicaTable
from broker.server.cluster.state_change_log import NoteChanges
from broker.server.cluster.storage_faults import StorageFaults
from broker.server.cluster.throttle import Throttle
from broker.state_changes import ChangeKind
from broker.stats import ELECTION_BOUNDS_S, SharedStats
from broker.threads import LoopThread, logged
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


class ReplicaRecords:
    """The records of one broker."""

    def __init__(self, logs: LogManager, table: ReplicaTable) -> None:
        self._logs = logs
        self._table = table
        self.settings_of: Callable[[str], Mapping[str, str]] = lambda _topic: {}
        """Returns the settings of a topic that differ from the broker's."""
        self._reported: set[str] = set()
        self._lock = Lock()  # guards the fields below
        self._waiting: dict[TopicPartition, ReplicatedPartition] = {}
        self._timer: Timer | None = None
        self._is_stopped = False

    def note(self, partitions: Iterable[ReplicatedPartition]) -> None:
        """Have the records of partitions that have a log here written soon."""
        with self._lock:
            self._waiting.update((one.partition, one) for one in partitions)
            if self._waiting and self._timer is None and not self._is_stopped:
                self._timer = Timer(_RECORD_DELAY_S, logged(self._write))
                self._timer.name, self._timer.daemon = "replica-records", True
                self._timer.start()

    def stop(self) -> None:
        """Write the records still due, and end all threads of this object."""
        with self._lock:
            self._is_stopped = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        self._write()

    def _write(self) -> None:
        with self._lock:
            waiting, self._waiting, self._timer = self._waiting, {}, None
        for info in waiting.values():
            log = self._logs.table.find(info.partition)
            if (
                log is None
                or self._logs.table.replica_creation_id(info.partition) != info.creation_id
            ):
                continue
            try:
                write_record(log.directory, self._record(info))
            except FileNotFoundError:
                logger.debug("%s was moved or deleted", log.directory)
            except OSError as error:
                logger.warning("cannot write the record of %s: %s", info.partition, error)

    def _record(self, info: ReplicatedPartition) -> ReplicaRecord:
        settings = self.settings_of(info.partition.topic)
        return ReplicaRecord(
            *(info.partition, info.creation_id, info.replicas, info.state, info.version),
            settings,
            info.kept_id,
        )

    def find_unknown(self) -> list[UnknownReplica]:
        """Return the replicas that have logs here and that the controller does not know."""
        if not self._table.has_full_orders and self._logs.table.has_replicas:
            raise errors.LeaderNotAvailableError(
                f"the controller has not yet told broker {self._logs.table.home} of all "
                "partitions; try again"
            )
        known, unnamed = self._table.states.known, self._table.states.unnamed
        found = []
        for log in self._logs.table.all():
            creation_id = self._logs.table.replica_creation_id(log.partition)
            if creation_id is not None and log.partition not in known:
                # the last state told to this run, if the registry has lost the partition since
                info = unnamed.get(log.partition)
                if info is not None and info.creation_id != creation_id:
                    info = None
                found.append(_described(log, creation_id, info))
        return found

    def report(self, unknown: Iterable[UnknownReplica]) -> None:
        """Log the topics of replicas that the registry does not know, each topic once."""
        topics: dict[str, list[str]] = {}
        for one in unknown:
            topics.setdefault(one.record.partition.topic, []).append(one.record.partition.name)
        for topic in topics.keys() - self._reported:
            logger.error(
                "ZooKeeper does not have topic '%(topic)s' (or not all of it), of which "
                "%(count)d logs are here, of partitions %(partitions)s: they are kept, and nobody "
                "can use them. If ZooKeeper has lost its data: pylogctl cluster recover",
                {
                    "topic": topic,
                    "count": len(topics[topic]),
                    "partitions": ", ".join(sorted(topics[topic])[:_NAMED_MAX]),
                },
            )
        self._reported = set(topics)


def _described(log: Log, creation_id: str, info: ReplicatedPartition | None) -> UnknownReplica:
    record = read_record(log.directory)
    if record is None or (record.partition, record.creation_id) != (log.partition, creation_id):
        record = ReplicaRecord.of_bare_log(log.partition, creation_id)
    if info is not None:  # later than the record on the disk
        record = record._replace(
            replicas=info.replicas, state=info.state, version=info.version, kept_id=info.kept_id
        )
    return UnknownReplica(
        record, info is not None, log.epochs.last_epoch, log.log_start_offset, log.log_end_offset
    )


_NAMED_MAX = 5
_RECORD_DELAY_S = 3.0
"""Records are written this long after a change, to include the changes and settings after it.

A failover changes all of them at once: it is over by then.
"""


class _Proposal(NamedTuple):
    """A change of in-sync replicas to propose, and those that its leader knew then."""

    hosted: HostedReplica
    role: Leader
    change: IsrChange
    isr: tuple[int, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class IsrProposals:
    """Proposes the changes of all partitions led here in one request; for one thread."""

    table: ReplicaTable
    brokers: LiveBrokers
    faults: StorageFaults
    clock: Clock
    shrinks: int = 0  # decisions by which replicas have left
    expands: int = 0  # by which replicas have joined
    failed: int = 0  # proposals that the controller refused, or did not respond to

    def propose(self) -> None:
        """Propose the changes that are due: leaders with a faulty log resign."""
        proposals = []
        counts_flushed = cache(self.table.counts_flushed)
        now_s = self.clock.monotonic_s()
        for hosted in self.table.all():
            role = hosted.replica.role
            if not isinstance(role, Leader):
                continue
            topic = hosted.log.partition.topic
            if not hosted.log.is_faulty and role.rests(now_s, counts_flushed=counts_flushed(topic)):
                continue
            with hosted:
                role = hosted.replica.role
                if isinstance(role, Leader):
                    role.count_flushed(counts_flushed(topic))
                    change = None
                    if hosted.log.is_faulty:
                        change = self.faults.resignation(hosted, role)
                    if change is None:
                        change = role.tick(self.clock.monotonic_s())
                    if change is not None:
                        proposals.append(_Proposal(hosted, role, change, role.info.state.isr))
        if not proposals:
            return
        decided = {}
        try:
            body = self._ask([one.change for one in proposals])
            decided = {one.partition: one for one in replica_requests.ISR_DECISIONS.decode(body)}
        except errors.ServerError as error:
            logger.warning("the in-sync replicas stay as they are: %s", error)
        except errors.BrokerError as error:
            logger.warning("whether in-sync replicas have changed is not known: %s", error)
        for one in proposals:
            self._take_over(one, decided.get(one.change.partition))

    def resign(self, changes: list[IsrChange]) -> None:
        """Propose that others lead; the push that follows tells the outcome."""
        if changes:
            with suppress(errors.BrokerError):  # tried again
                self._ask(changes)

    def _ask(self, changes: list[IsrChange]) -> Reader:
        request = replica_requests.ChangeIsrRequest(
            self.table.me, self.table.broker_epoch, tuple(changes)
        )
        return self.brokers.ask_controller(request)

    def _take_over(self, proposal: _Proposal, decision: IsrDecision | None) -> None:
        """Note the outcome of a proposal; a decision None means that it is not known."""
        hosted, role, change, isr = proposal
        now_s = self.clock.monotonic_s()
        self._count(isr, decision)
        with hosted:
            if hosted.replica.role is not role:
                return
            if decision is None or decision.decided is None:
                role.isr_failed(change, now_s)
                return
            hosted.replica.isr_answered(change, decision.decided, now_s)
            is_same_epoch = decision.decided.state.leader_epoch == hosted.replica.leader_epoch
            # for another epoch, a push is on its way
            if is_same_epoch and self.table.states.note(decision.decided):
                if decision.decided.version > change.version:
                    noted = {"isr": decision.decided.state.isr, "version": decision.decided.version}
                    self.table.note_changes([self.table.change_of(hosted, ChangeKind.ISR, **noted)])
                self.table.note_states([decision.decided], ())

    def _count(self, isr: Iterable[int], decision: IsrDecision | None) -> None:
        """Count the outcome of a proposal; `isr` are the in-sync replicas that it was to change."""
        if decision is None or decision.error != errors.NO_ERROR or decision.decided is None:
            self.failed += 1
            return
        before, after = set(isr), set(decision.decided.state.isr)
        self.shrinks += not before <= after
        self.expands += not after <= before


class ReplicaManager:
    """The replicas of one broker, and the threads that work on them."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogManager,
        clock: Clock,
        note_states: NoteStates,
        note_changes: NoteChanges,
    ) -> None:
        self.table = ReplicaTable(config, logs, clock, note_states, note_changes)
        self.brokers = LiveBrokers(config)
        self.records = ReplicaRecords(logs, self.table)
        """Written beside the logs, for the case that the registry loses its data."""
        self.throttle = Throttle()  # of copies to replicas that are being added
        self._disks = DiskThreads()
        self.fetchers = ReplicaFetchers(
            partial(
                ReplicaFetcher,
                table=self.table,
                brokers=self.brokers,
                disks=self._disks,
                throttle=self.throttle,
                config=config,
                clock=clock,
            ),
            config.num_replica_fetchers,
        )
        self._faults = StorageFaults(config.broker_id, self.brokers, clock)
        self.isr = IsrProposals(
            table=self.table, brokers=self.brokers, faults=self._faults, clock=clock
        )
        self.orders = ReplicaOrders(
            table=self.table,
            logs=logs,
            brokers=self.brokers,
            fetchers=self.fetchers,
            throttle=self.throttle,
            disks=self._disks,
            clock=clock,
            stats=SharedStats(clock, config.monitoring_period_ms / 1000, ELECTION_BOUNDS_S),
        )
        self._is_stopping = False
        self._ticker = LoopThread(self._run_ticker, name="replica-ticker")

    def stop(self) -> None:
        """Stop fetching, and all threads; logs stay open."""
        self._is_stopping = True
        self.table.isr_due.set()
        self.orders.stop()
        self.fetchers.stop()
        self.brokers.stop()
        self.fetchers.join()
        self._ticker.join()
        self._disks.stop()
        self._faults.stop()
        self.records.stop()

    def apply(self, request: replica_requests.PushStatesRequest) -> list[UnknownReplica]:
        """Carry out a push; return, for a full one, the replicas here that it does not know."""
        if self._ticker.ident is None and not self._is_stopping:
            self._ticker.start()
        self.orders.apply(request)
        if not request.is_full:
            return []
        unknown = self.records.find_unknown()
        self.records.report(unknown)
        return unknown

    def could_move(self, partition: TopicPartition) -> bool:
        """Return whether another broker that is live has a replica of a partition."""
        known = self.table.states.known.get(partition)
        return known is not None and any(
            one != self.table.me and self.brokers.epoch_of(one) is not None
            for one in known.replicas
        )

    def ask_to_leave(self) -> ShutdownProgress:
        """Ask the controller to move all leaderships away from this broker."""
        request = replica_requests.ControlledShutdownRequest(self.table.me, self.table.broker_epoch)
        return replica_requests.SHUTDOWN_PROGRESS.decode(self.brokers.ask_controller(request))

    def _run_ticker(self) -> None:
        due = self.table.isr_due
        while True:
            due.wait(self.table.scan_s)
            due.clear()
            if self._is_stopping:
                return
            try:
                self.isr.propose()
                self._faults.retry(self.table.all())
                self.isr.resign(self.orders.retry_refused())
            except Exception:  # the next one may succeed
                logger.exception("watching the in-sync replicas failed")
