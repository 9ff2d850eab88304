"""The replicas of one broker: all that carries out orders, copies, and proposes changes.

The parts of a `ReplicaManager` are used by their names; handlers of requests get the `table` alone.

Locks, in the order in which a thread takes them: that of the orders, for one push at a time; that
of a replica (several only for a push that names all partitions); those of the log manager and of
its logs. Those of the fetchers, the throttle, the records, the cluster view and the request to the
controller come last: under them no other one is taken.
"""

from __future__ import annotations

import logging
from functools import partial

from broker.clock import Clock
from broker.cluster_state import ShutdownProgress
from broker.config import BrokerConfig
from broker.log.manager import LogManager
from broker.protocol.replica_requests import (
    SHUTDOWN_PROGRESS,
    ControlledShutdownRequest,
    PushStatesRequest,
)
from broker.replica_records import UnknownReplica
from broker.server.cluster.disk_threads import DiskThreads
from broker.server.cluster.isr_proposals import IsrProposals
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_fetcher import ReplicaFetcher, ReplicaFetchers
from broker.server.cluster.replica_orders import ReplicaOrders
from broker.server.cluster.replica_records import ReplicaRecords
from broker.server.cluster.replica_table import NoteStates, ReplicaTable
from broker.server.cluster.state_change_log import NoteChanges
from broker.server.cluster.storage_faults import StorageFaults
from broker.server.cluster.throttle import Throttle
from broker.stats import ELECTION_BOUNDS_S, SharedStats
from broker.threads import LoopThread
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


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
        if self._ticker.ident is not None:
            self._ticker.join()
        self._disks.stop()
        self._faults.stop()
        self.records.stop()

    def apply(self, request: PushStatesRequest) -> list[UnknownReplica]:
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
        request = ControlledShutdownRequest(self.table.me, self.table.broker_epoch)
        return SHUTDOWN_PROGRESS.decode(self.brokers.ask_controller(request))

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
