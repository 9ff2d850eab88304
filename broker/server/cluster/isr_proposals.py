"""Changes of in-sync replicas that this broker, as their leader, proposes to the controller."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from broker import errors
from broker.clock import Clock
from broker.cluster_state import IsrChange, IsrDecision
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import ISR_DECISIONS, ChangeIsrRequest
from broker.replication.leader import Leader
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import HostedReplica, ReplicaTable
from broker.server.cluster.storage_faults import StorageFaults
from broker.state_changes import ChangeKind

logger = logging.getLogger(__name__)


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
            decided = {one.partition: one for one in ISR_DECISIONS.decode(body)}
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
        request = ChangeIsrRequest(self.table.me, self.table.broker_epoch, tuple(changes))
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
