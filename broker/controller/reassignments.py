"""Partitions that move to other replicas: the steps from the present to the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.cluster_state import PartitionState, Reassignment
from broker.controller.assignment import validate_target
from broker.controller.context import ControllerContext
from broker.controller.election import elect_reassigned
from broker.controller.pushes import PendingPushes
from broker.controller.states import StateWriter, Store, in_next_epoch, led_by
from broker.errors import InvalidRequestError, UnknownTopicError
from broker.ids import NO_LEADER
from broker.topic import TopicPartition


@dataclass(eq=False)
class Reassignments:
    """Begins, advances, cancels and completes reassignments, and keeps their record."""

    context: ControllerContext
    store: Store
    pushes: PendingPushes
    states: StateWriter
    # of unreadable topics
    _set_aside: dict[TopicPartition, Reassignment] = field(default_factory=dict, init=False)

    def load(self, recorded: Mapping[TopicPartition, Reassignment]) -> None:
        """Set aside the reassignments of topics that cannot be read; the context has the others."""
        unreadable = self.context.unreadable
        self._set_aside = {p: one for p, one in recorded.items() if p.topic in unreadable}

    def begin(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...]],
        throttle_bytes_per_s: int | None = None,
    ) -> None:
        """Begin to move partitions to other replicas; a refusal changes nothing.

        The new replicas are added, and the old ones removed once all new ones are in sync. A
        reassignment that is under way continues to the new target.

        Args:
            targets: the replicas each partition is to have, the preferred leader first.
            throttle_bytes_per_s: how much each broker may copy, for all reassignments under way
                together, until they have ended; 0 for no limit, None to leave it unchanged.
        """
        context = self.context
        for partition, target in targets.items():
            self._validate(partition, target)
        if throttle_bytes_per_s is not None and throttle_bytes_per_s < 0:
            raise InvalidRequestError(
                f"a throttle of {throttle_bytes_per_s} bytes per second is below 0"
            )
        changes = dict(context.reassignments)
        for partition, target in targets.items():
            # a change stays under way while one of its replicas still copies
            if partition in changes or target != context.replicas(partition):
                changes[partition] = Reassignment(context.settled_replicas(partition), target)
        if len(changes) > len(context.reassignments):
            self.store.validate_reassignments({**self._set_aside, **changes})
        if throttle_bytes_per_s is not None:
            self._set_throttle(throttle_bytes_per_s)
        self._write(changes)
        self.advance()

    def _validate(self, partition: TopicPartition, target: tuple[int, ...]) -> None:
        context = self.context
        if partition not in context.existing(partition.topic).replicas:
            raise UnknownTopicError(f"no replicated partition {partition}")
        present_count = len(context.settled_replicas(partition))
        min_isr = context.min_isr(partition.topic)
        validate_target(partition, target, context.eligible(), present_count, min_isr)

    def cancel(self, partition: TopicPartition) -> None:
        """Return a partition to the replicas it had before the reassignment under way."""
        change = self.context.reassignments.get(partition)
        if change is None:
            raise UnknownTopicError(f"no change of the replicas of {partition} is under way")
        if not set(self.context.states[partition].state.isr) & set(change.original):
            raise InvalidRequestError(
                f"none of the former replicas {list(change.original)} of {partition} is in sync"
            )
        self._complete(partition, change.original)

    def advance(self) -> None:
        """Take the next possible step of each reassignment."""
        context = self.context
        for partition, change in list(context.reassignments.items()):
            if partition not in context.states:
                continue
            replicas = context.replicas(partition)
            union = (*replicas, *(one for one in change.target if one not in replicas))
            if union != replicas:
                self._assign(partition, union)
                self.states.decide([partition], in_next_epoch, "replicas added")
            if set(change.target) <= set(context.states[partition].state.isr):
                self._complete(partition, change.target)

    def forget_topic(self, topic: str) -> None:
        """End the reassignments of a topic that is being deleted."""
        self._set_aside = {p: one for p, one in self._set_aside.items() if p.topic != topic}
        changes = {p: one for p, one in self.context.reassignments.items() if p.topic != topic}
        if len(changes) < len(self.context.reassignments):
            self._write(changes)

    def _complete(self, partition: TopicPartition, target: tuple[int, ...]) -> None:
        """Remove the replicas not in the target; the record of the reassignment goes last."""
        context = self.context
        removed = set(context.replicas(partition)) - set(target)

        def reduced(_: TopicPartition, state: PartitionState) -> PartitionState:
            isr = tuple(one for one in target if one in state.isr)
            if state.leader in target and state.leader in context.brokers:
                return led_by(state, state.leader, isr)
            election = elect_reassigned(target, isr, context.eligible())
            return led_by(state, election.leader if election else NO_LEADER, isr)

        self.states.decide([partition], reduced, "replicas removed")
        self._assign(partition, target)
        self._write({p: one for p, one in context.reassignments.items() if p != partition})
        epoch = context.states[partition].state.leader_epoch
        for broker_id in sorted(removed):
            self.pushes.stop(broker_id, partition, epoch, deletes=True)

    def _write(self, changes: dict[TopicPartition, Reassignment]) -> None:
        """Replace the record but for unreadable topics; with the last entry the throttle ends."""
        recorded = {**self._set_aside, **changes}
        if not recorded:
            self._set_throttle(0)
        self.store.write_reassignments(recorded, self.context.throttle_bytes_per_s)
        self.context.reassignments = changes

    def _set_throttle(self, bytes_per_s: int) -> None:
        if bytes_per_s != self.context.throttle_bytes_per_s:
            self.pushes.tell_all()
        self.context.throttle_bytes_per_s = bytes_per_s

    def _assign(self, partition: TopicPartition, replicas: tuple[int, ...]) -> None:
        assignment = self.context.topics[partition.topic]
        if assignment.replicas[partition] != replicas:
            self.context.topics[partition.topic] = self.store.write_topic(
                assignment._replace(replicas={**assignment.replicas, partition: replicas})
            )
        self.pushes.add([partition])
