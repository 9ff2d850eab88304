"""The storage of partition states, as the controller uses it.

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

    def create_topic(self, assignment: TopicAssignment, settings: Mapping[str, str]) -> None:
        """Record a new topic and its settings in one step; its partitions have no states yet."""

    def restore_partitions(
        self,
        assignment: TopicAssignment,
        settings: Mapping[str, str],
        states: Mapping[TopicPartition, PartitionState],
    ) -> TopicAssignment:
        """Record partitions with their states in one step; return the assignment as written.

        Without the states, a later controller would take the partitions for new ones. A topic that
        does not exist has version -1: it is created with the settings.
        """

    def write_assignment(self, assignment: TopicAssignment) -> TopicAssignment:
        """Replace the replicas of a topic; return it with its new version."""

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
