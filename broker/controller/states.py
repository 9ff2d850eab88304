"""The states of partitions: decided, written to the registry, and noted.

Source: Kafka 0.8 `PartitionStateMachine`, with fenced writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from broker.cluster_state import (
    DeletedTopic,
    PartitionState,
    Reassignment,
    StateResult,
    StateWrite,
    StoredState,
    TopicAssignment,
)
from broker.controller.context import ControllerContext
from broker.controller.pushes import PendingPushes
from broker.errors import RegistryConflictError
from broker.ids import NO_LEADER
from broker.topic import TopicPartition


class Store(Protocol):
    """The registry of replicated topics, written by one controller at a time.

    Every write is carried out only while the epoch of this controller is the last one. Each method
    raises:

    - `ControllerFencedError`: there is a later controller; nothing was written. This one must
      resign.
    - `RegistryUnreachableError`: some of it may have been written. The caller of the controller
      makes a new one of the same epoch and loads it, once the registry can be reached.
    - `RegistryConflictError`, those that create or replace a topic's node: it exists already, has
      another version, or is gone.
    """

    def write_states(self, writes: Sequence[StateWrite]) -> list[StateResult]:
        """Write states, each of them by itself: some may meet another version, others not.

        A node that has the new state already, at the next version, counts as written: by an attempt
        whose response was lost.
        """

    def write_topic(
        self,
        assignment: TopicAssignment,
        settings: Mapping[str, str] = MappingProxyType({}),
        states: Mapping[TopicPartition, PartitionState] = MappingProxyType({}),
    ) -> TopicAssignment:
        """Replace the replicas of a topic; return it with its new version.

        A topic that does not exist has version -1: it is created with the settings. Restored
        partitions get their states in the same step, as a later controller would take them for new
        ones without.
        """

    def validate_reassignments(self, changes: Mapping[TopicPartition, Reassignment]) -> None:
        """Raise `InvalidRequestError` if ZooKeeper cannot take a record of so many."""

    def write_reassignments(
        self, changes: Mapping[TopicPartition, Reassignment], throttle_bytes_per_s: int
    ) -> None:
        """Replace the record of reassignments; without changes, remove it and the throttle."""

    def begin_deletion(self, topic: str) -> None:
        """Record that a topic is being deleted; does nothing if it is recorded."""

    def finish_deletion(self, assignment: TopicAssignment) -> None:
        """Remove a topic, the states of its partitions, its settings and the record of deletion."""

    def write_deleted(self, deleted: DeletedTopic) -> None:
        """Record which brokers may have logs of a deleted topic; with none, remove the record."""


_MISSING = -1
"""The version of a state whose node is gone from the registry; it is created again."""
_MAX_ROUNDS = 10


class StateChange(NamedTuple):
    """A decision that was written, for the log of state changes."""

    partition: TopicPartition
    state: PartitionState
    version: int  # of the node that holds the state
    reason: str
    is_unclean: bool  # the leader was not in sync: committed messages may be lost
    is_election: bool  # a partition that is not new has another leader now


@dataclass(eq=False)
class StateWriter:
    """Writes the states that a controller of one epoch decides, and has brokers told of them."""

    epoch: int
    context: ControllerContext
    store: Store
    pushes: PendingPushes
    _changes: list[StateChange] = field(default_factory=list, init=False)

    def take_changes(self) -> list[StateChange]:
        """Return the decisions since the last call, in their order."""
        changes, self._changes = self._changes, []
        return changes

    def decide(
        self,
        partitions: Iterable[TopicPartition],
        decision: Callable[[TopicPartition, PartitionState], PartitionState],
        reason: str,
        *,
        confirmed: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """Write new states; where another writer changed a node, decide again from its content.

        Partitions without a state are left out.

        Args:
            decision: returns the state a partition is to have, the same one if it may stay.
            confirmed: versions to replace by later ones even if the state stays.
        """
        states = self.context.states
        waiting = [one for one in partitions if one in states]
        for _ in range(_MAX_ROUNDS):
            writes = []
            for partition in waiting:
                state, version = states[partition]
                decided = decision(partition, state)
                is_confirmed = confirmed.get(partition) == version
                if decided != state or is_confirmed or version == _MISSING:
                    new = decided._replace(controller_epoch=self.epoch)
                    writes.append(
                        StateWrite(partition, new, None if version == _MISSING else version)
                    )
            waiting = self._write(writes, reason)
            if not waiting:
                return
        raise RegistryConflictError(f"the state of {waiting[0]} keeps being changed by others")

    def create(self, members: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Write the first states of partitions; all members are in sync, the first one leads."""
        writes = [
            StateWrite(partition, PartitionState(isr[0], 0, tuple(isr), self.epoch), None)
            for partition, isr in members.items()
        ]
        for partition in self._write(writes, "created"):
            if partition not in self.context.states:
                raise RegistryConflictError(f"the nodes of topic '{partition.topic}' are gone")

    def note_restored(self, partition: TopicPartition, state: PartitionState) -> None:
        """Note the first state of a partition that was recorded together with its topic."""
        reason = "restored over its logs: ZooKeeper had lost it"
        self.context.states[partition] = StoredState(state, 0)
        self.pushes.add([partition])
        self._changes.append(StateChange(partition, state, 0, reason, False, False))

    def _write(self, writes: list[StateWrite], reason: str) -> list[TopicPartition]:
        """Write states, elections first; return the partitions whose nodes had another version."""
        if not writes:
            return []
        states = self.context.states
        writes.sort(key=lambda one: not self._changes_leader(one))
        refused = []
        for write, result in zip(writes, self.store.write_states(writes), strict=True):
            partition, before = write.partition, states.get(write.partition)
            if result.is_written:
                assert result.stored is not None
                is_unclean = before is not None and write.state.leader not in before.state.isr
                is_unclean &= write.state.leader != NO_LEADER
                self._changes.append(
                    StateChange(
                        partition,
                        write.state,
                        result.stored.version,
                        reason,
                        is_unclean,
                        before is not None
                        and write.state.leader not in (before.state.leader, NO_LEADER),
                    )
                )
            else:
                refused.append(partition)
            if result.stored is not None:
                states[partition] = _never_older(result.stored, before)
            elif before is not None:
                states[partition] = before._replace(version=_MISSING)
        self.pushes.add(write.partition for write in writes)
        return refused

    def _changes_leader(self, write: StateWrite) -> bool:
        before = self.context.states.get(write.partition)
        return before is None or before.state.leader != write.state.leader


def led_by(state: PartitionState, leader: int, isr: tuple[int, ...]) -> PartitionState:
    """Return the state in the next leader epoch."""
    return state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)


def in_next_epoch(_: TopicPartition, state: PartitionState) -> PartitionState:
    """Return the same state in the next leader epoch, in which alone added replicas start."""
    return led_by(state, state.leader, state.isr)


def _never_older(stored: StoredState, known: StoredState | None) -> StoredState:
    """Return a stored state, but in no lower leader epoch than known: its node was edited."""
    if known is None or stored.state.leader_epoch >= known.state.leader_epoch:
        return stored
    return stored._replace(state=stored.state._replace(leader_epoch=known.state.leader_epoch))
