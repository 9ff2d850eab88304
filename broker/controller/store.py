"""What the controller asks of the place where the states of partitions are kept.

A broker has ZooKeeper for it (`zk/replicated_topics.py`), the simulation a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from broker.cluster_state import (
    DeletedTopic,
    PartitionState,
    Reassignment,
    StateResult,
    StateWrite,
    TopicAssignment,
)
from broker.topic import TopicPartition


class Store(Protocol):
    """The registry of replicated topics, written by one controller at a time.

    Every write is carried out only while the epoch of this controller is the last one. Each method
    raises:

    - `ControllerFencedError`: there is a later controller; nothing was written. This one must
      resign.
    - `RegistryUnreachableError`: some of it may have been written. Whoever calls the controller
      makes a new one of the same epoch and loads it, once the registry can be reached.
    """

    def write_states(self, writes: Sequence[StateWrite]) -> list[StateResult]:
        """Write states, each of them by itself: some may meet another version, others not.

        A node that holds the new state already, at one version more than expected, was written by
        an attempt whose answer was lost, and counts as written.
        """

    def create_topic(self, assignment: TopicAssignment, settings: Mapping[str, str]) -> None:
        """Record a new topic and its settings in one step; its partitions have no states yet.

        Raises:
            RegistryConflictError: there is a replicated topic of this name.
        """

    def restore_partitions(
        self,
        assignment: TopicAssignment,
        settings: Mapping[str, str],
        states: Mapping[TopicPartition, PartitionState],
    ) -> TopicAssignment:
        """Record partitions with their states in one step; return the assignment as written.

        Without the states, a later controller would take the partitions for new ones.

        Args:
            assignment: of the topic, which is created if it does not exist; version -1 for that.
            settings: of a topic that is created.
            states: of the partitions that are added to it.

        Raises:
            RegistryConflictError: the topic's node has another version, exists or is gone.
        """

    def write_assignment(self, assignment: TopicAssignment) -> TopicAssignment:
        """Replace the replicas of a topic; return it with its new version.

        Raises:
            RegistryConflictError: the topic's node has another version or is gone.
        """

    def write_reassignments(
        self, changes: Mapping[TopicPartition, Reassignment], throttle_bytes_per_s: int
    ) -> None:
        """Record which changes of replicas are under way; replaces the former record.

        With no changes the record is removed, and the throttle with it.
        """

    def begin_deletion(self, topic: str) -> None:
        """Record that a topic is being deleted; does nothing if it is recorded."""

    def finish_deletion(self, assignment: TopicAssignment) -> None:
        """Remove a topic, the states of its partitions, its settings and the record of deletion."""

    def write_deleted(self, deleted: DeletedTopic) -> None:
        """Record which brokers may have logs of a deleted topic; with none, remove the record."""
