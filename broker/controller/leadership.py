"""Who leads each partition: the best state that live brokers allow, and elections on request."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from broker.cluster_state import PartitionState, ReplicatedPartition
from broker.controller.context import ALLOWS_UNCLEAN, ControllerContext
from broker.controller.election import elect_offline, elect_preferred
from broker.controller.reassignments import Reassignments
from broker.controller.states import StateWriter, led_by
from broker.errors import InvalidRequestError, ServerError, UnknownTopicError
from broker.ids import NO_LEADER
from broker.topic import TopicPartition


@dataclass(eq=False)
class Leadership:
    """Decides who leads."""

    context: ControllerContext
    states: StateWriter
    reassignments: Reassignments

    def settle(self, reason: str) -> None:
        """Bring every partition to the best state that live brokers allow."""
        self._start_new()
        self.states.decide(self.context.partitions(), self._settled, reason)
        self.reassignments.advance()  # their replicas may be in sync, or gone

    def _start_new(self) -> None:
        context = self.context
        eligible = context.eligible()
        members = {}
        for partition in context.partitions():
            if partition not in context.states:
                assignment = context.topics[partition.topic]
                replicas = assignment.replicas[partition]
                kept = assignment.kept.get(partition.home)
                if kept is not None and partition.index < kept.partition_count:
                    # its log has messages that others lack
                    replicas = (partition.home,)
                # a partition without a live replica gets its first state once one is live
                if live := [one for one in replicas if one in eligible]:
                    members[partition] = live
        self.states.create(members)

    def _settled(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        """Return the state of a partition without dead brokers among its leader and ISR.

        Leaving the in-sync replicas keeps the leader epoch: until the leader hears of it, it only
        waits for more replicas than it must.
        """
        context = self.context
        eligible = context.eligible()
        if state.leader in context.brokers and state.leader not in context.suspected:
            isr = tuple(one for one in state.isr if one in eligible or one == state.leader)
            return state._replace(isr=isr)
        # one that only seems to be dead may go on alone, and lose nothing
        waits = not context.suspected.isdisjoint(state.isr)
        allows_unclean = context.allows_unclean(partition.topic) and not waits
        replicas = context.candidates(partition)
        election = elect_offline(replicas, state.isr, eligible, is_unclean=allows_unclean)
        if election is not None:
            return led_by(state, election.leader, election.isr)
        if state.leader in context.brokers:
            return state
        # in-sync replicas may lead again once they are back
        return state if state.leader == NO_LEADER else led_by(state, NO_LEADER, state.isr)

    def distrust(self, unclean: Collection[int]) -> None:
        """Take brokers that may have lost messages out of in-sync replicas with other members."""

        def without(partition: TopicPartition, state: PartitionState) -> PartitionState:
            isr = tuple(one for one in state.isr if one not in unclean)
            if len(isr) == len(state.isr):
                return state
            if not isr:  # all of them may have lost messages: keep the first
                replicas = self.context.replicas(partition)
                isr = tuple(one for one in replicas if one in state.isr)[:1] or state.isr[:1]
            if state.leader not in unclean:
                return state._replace(isr=isr)
            # a new epoch even if it stays leader: its log may end before offsets that it gave out
            election = elect_offline(isr, isr, self.context.eligible(), is_unclean=False)
            return led_by(state, election.leader if election else NO_LEADER, isr)

        self.states.decide(self.context.partitions(), without, "not shut down cleanly")

    def elect_preferred(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ServerError | None]:
        """Give leaderships to the preferred replicas, where these are live and in sync.

        Returns:
            None for each partition that its preferred replica leads now, else why not.
        """
        context = self.context
        wanted = list(partitions)

        def preferred(partition: TopicPartition, state: PartitionState) -> PartitionState:
            replicas = context.replicas(partition)
            reached = context.eligible() - context.missed
            election = elect_preferred(replicas, state.isr, reached)
            if election is None or election.leader == state.leader:
                return state
            return led_by(state, election.leader, election.isr)

        known = [one for one in wanted if context.is_known(one)]
        self.states.decide(known, preferred, "preferred leader")
        outcome: dict[TopicPartition, ServerError | None] = {}
        for partition in wanted:
            if not context.is_known(partition):
                outcome[partition] = UnknownTopicError(f"no replicated partition {partition}")
                continue
            first = context.replicas(partition)[0]
            reason = "not reached by the controller"
            if first not in context.missed:
                reason = "not live and in sync"
            outcome[partition] = (
                None
                if context.leader_of(partition) == first
                else InvalidRequestError(
                    f"broker {first}, the preferred leader of {partition}, is {reason}"
                )
            )
        return outcome

    def balance_leaders(self, max_percentage: int) -> None:
        """Move leaderships back to brokers of whose preferred partitions others lead too many.

        That is more than `max_percentage`. Partitions that are being reassigned are left out.
        """
        context = self.context
        preferred: dict[int, list[TopicPartition]] = {}
        for partition in context.partitions():
            if partition in context.states and partition not in context.reassignments:
                preferred.setdefault(context.replicas(partition)[0], []).append(partition)
        wanted = []
        for broker_id, partitions in preferred.items():
            elsewhere = [one for one in partitions if context.leader_of(one) != broker_id]
            if len(elsewhere) * 100 > len(partitions) * max_percentage:
                wanted += elsewhere
        self.elect_preferred(wanted)

    def elect_unclean(self, partition: TopicPartition) -> ReplicatedPartition:
        """Let a replica that is not in sync lead a partition that has no leader."""
        context = self.context
        context.existing(partition.topic)
        if partition not in context.states:
            raise UnknownTopicError(f"no replicated partition {partition}")
        if (leader := context.leader_of(partition)) != NO_LEADER:
            raise InvalidRequestError(f"{partition} has a leader: broker {leader}")
        if not context.allows_unclean(partition.topic):
            raise InvalidRequestError(
                f"topic '{partition.topic}' does not allow it: set {ALLOWS_UNCLEAN} to true first"
            )
        self.states.decide([partition], self._settled, "unclean election asked for")
        if context.leader_of(partition) == NO_LEADER:
            raise InvalidRequestError(f"no replica of {partition} is live")
        return context.described(partition)
