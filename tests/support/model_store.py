"""A registry of replicated topics in memory, as the controller sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from broker.cluster_state import (
    ClusterSnapshot,
    DeletedTopic,
    LiveBroker,
    PartitionState,
    Reassignment,
    StateResult,
    StateWrite,
    StoredState,
    TopicAssignment,
    UnreadableTopic,
)
from broker.errors import ControllerFencedError, RegistryConflictError
from broker.topic import TopicPartition


class ModelRegistry:
    """What all controllers of a test share."""

    def __init__(self) -> None:
        self.controller_epoch = 0
        self.topics: dict[str, TopicAssignment] = {}
        self.states: dict[TopicPartition, StoredState] = {}
        self.settings: dict[str, Mapping[str, str]] = {}
        self.reassignments: dict[TopicPartition, Reassignment] = {}
        self.throttle_bytes_per_s = 0
        self.deletions: set[str] = set()
        self.unreadable: dict[str, UnreadableTopic] = {}
        self.deleted: dict[str, DeletedTopic] = {}

    def snapshot(self, brokers: Sequence[LiveBroker]) -> ClusterSnapshot:
        """What a new controller reads."""
        return ClusterSnapshot(
            tuple(brokers),
            tuple(one for one in self.topics.values() if one.topic not in self.unreadable),
            {one: state for one, state in self.states.items() if one.topic not in self.unreadable},
            dict(self.settings),
            dict(self.reassignments),
            frozenset(self.deletions),
            dict(self.unreadable),
            tuple(self.deleted.values()),
            self.throttle_bytes_per_s,
        )

    def edit(self, partition: TopicPartition, state: PartitionState) -> None:
        """Write a state as an operator by hand."""
        version = self.states[partition].version if partition in self.states else -1
        self.states[partition] = StoredState(state, version + 1)


class ModelStore:
    """The store of one controller.

    Attributes:
        on_write: called before each write; may raise what the real store raises.
        batches: the writes of states, as they came.
    """

    def __init__(self, registry: ModelRegistry) -> None:
        self.registry = registry
        registry.controller_epoch += 1
        self.epoch = registry.controller_epoch
        self.on_write: Callable[[], None] = lambda: None
        self.batches: list[list[StateWrite]] = []

    def _check(self) -> None:
        self.on_write()
        if self.registry.controller_epoch != self.epoch:
            raise ControllerFencedError(f"there is a controller of epoch {self.epoch + 1}")

    def write_states(self, writes: Sequence[StateWrite]) -> list[StateResult]:
        self._check()
        self.batches.append(list(writes))
        return [self._write(write) for write in writes]

    def _write(self, write: StateWrite) -> StateResult:
        stored = self.registry.states.get(write.partition)
        if write.partition.topic not in self.registry.topics:
            return StateResult(False, None)
        if (stored and stored.version) != write.expected_version:
            return StateResult(False, stored)
        version = 0 if stored is None else stored.version + 1
        self.registry.states[write.partition] = StoredState(write.state, version)
        return StateResult(True, self.registry.states[write.partition])

    def write_topic(
        self,
        assignment: TopicAssignment,
        settings: Mapping[str, str] = MappingProxyType({}),
        states: Mapping[TopicPartition, PartitionState] = MappingProxyType({}),
    ) -> TopicAssignment:
        self._check()
        known = self.registry.topics.get(assignment.topic)
        if (-1 if known is None else known.version) != assignment.version:
            raise RegistryConflictError(f"topic '{assignment.topic}' was changed")
        written = assignment._replace(version=assignment.version + 1)
        self.registry.topics[assignment.topic] = written
        if known is None:
            self.registry.settings[assignment.topic] = dict(settings)
        self.registry.states.update({one: StoredState(state, 0) for one, state in states.items()})
        return written

    def validate_reassignments(self, changes: Mapping[TopicPartition, Reassignment]) -> None:
        """Take any number."""

    def write_reassignments(
        self, changes: Mapping[TopicPartition, Reassignment], throttle_bytes_per_s: int
    ) -> None:
        self._check()
        self.registry.reassignments = dict(changes)
        self.registry.throttle_bytes_per_s = throttle_bytes_per_s if changes else 0

    def begin_deletion(self, topic: str) -> None:
        self._check()
        self.registry.deletions.add(topic)

    def finish_deletion(self, assignment: TopicAssignment) -> None:
        self._check()
        del self.registry.topics[assignment.topic]
        self.registry.settings.pop(assignment.topic, None)
        for partition in assignment.replicas:
            self.registry.states.pop(partition, None)
        self.registry.deletions.discard(assignment.topic)

    def write_deleted(self, deleted: DeletedTopic) -> None:
        self._check()
        self.registry.deleted[deleted.creation_id] = deleted
        if not deleted.brokers:
            del self.registry.deleted[deleted.creation_id]
