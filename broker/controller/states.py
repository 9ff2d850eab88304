"""The states of partitions: decided, written to the registry, and noted.

Source: Kafka 0.8 `PartitionStateMachine`, with fenced writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from broker.cluster_state import PartitionState, StateWrite, StoredState
from broker.controller.context import ControllerContext
from broker.controller.pushes import PendingPushes
from broker.controller.store import Store
from broker.errors import RegistryConflictError
from broker.ids import NO_LEADER
from broker.topic import TopicPartition

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
