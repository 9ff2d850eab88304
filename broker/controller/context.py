"""What the controller knows of its cluster.

Source: Kafka 0.8 `ControllerContext`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from broker import cluster_state
from broker.controller.lost import LostPartitions
from broker.errors import InvalidReplicationFactorError, InvalidRequestError, UnknownTopicError
from broker.topic import TopicPartition

MIN_ISR = "min.insync.replicas"
ALLOWS_UNCLEAN = "unclean.leader.election.enable"


class ControllerSettings(NamedTuple):
    """Defaults for topics that have no setting of their own."""

    min_isr: int = 1  # the fewest in-sync replicas with which messages are committed
    allows_unclean: bool = False  # a replica that is not in sync may lead if no other is live


class ControllerContext:
    """The brokers, topics, states and changes under way that the controller knows.

    The registry holds all but the brokers that shut down or are suspected, and the lost partitions.
    The parts of the controller write a change there first, then note it here.
    """

    def __init__(self, defaults: ControllerSettings) -> None:
        self._defaults = defaults
        self.brokers: dict[int, cluster_state.LiveBroker] = {}  # those that are registered
        self.shutting_down: set[int] = set()
        self.suspected: set[int] = set()  # registered ones that are taken for dead
        self.missed: set[int] = set()  # those that the controller does not reach, maybe alone
        # replicated ones, those that are being deleted too
        self.topics: dict[str, cluster_state.TopicAssignment] = {}
        self.states: dict[TopicPartition, cluster_state.StoredState] = {}
        self.settings: dict[str, Mapping[str, str]] = {}  # by topic
        self.reassignments: dict[TopicPartition, cluster_state.Reassignment] = {}
        # that each broker may copy for all reassignments together; 0: no limit
        self.throttle_bytes_per_s = 0
        # left as they are; only a new controller includes a topic once it can be read
        self.unreadable: Mapping[str, cluster_state.UnreadableTopic] = {}
        # the brokers that may still have logs, for each topic that is being deleted
        self.deletions: dict[str, set[int]] = {}
        self.lost = LostPartitions()

    def load(self, snapshot: cluster_state.ClusterSnapshot) -> None:
        """Take over the registry's data; topics that are being deleted count as existing."""
        self.brokers = {one.id: one for one in snapshot.brokers}
        self.topics = {one.topic: one for one in snapshot.topics}
        self.unreadable = dict(snapshot.unreadable)
        self.settings = dict(snapshot.settings)
        self.states = {
            partition: stored
            for partition, stored in snapshot.states.items()
            if partition in self.replicas_of(partition.topic)
        }
        self.reassignments = {
            partition: change
            for partition, change in snapshot.reassignments.items()
            if partition in self.replicas_of(partition.topic)
        }
        self.throttle_bytes_per_s = snapshot.throttle_bytes_per_s

    # Brokers.

    def eligible(self) -> set[int]:
        """Return the brokers that may get leaderships and new replicas."""
        return self.brokers.keys() - self.shutting_down - self.suspected

    def is_registered(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether a broker is registered under that epoch."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    def brokers_for_new(self, topic: str, factor: int) -> list[cluster_state.LiveBroker]:
        """Return the brokers that new partitions of a topic may be placed on.

        A broker that all replicas are being moved away from is about to be removed, so it gets
        none.
        """
        kept: set[int] = set()
        for partition in self.partitions():
            change = self.reassignments.get(partition)
            kept.update(change.target if change else self.replicas(partition))
        originals = (one for change in self.reassignments.values() for one in change.original)
        eligible = self.eligible()
        left = eligible.intersection(originals) - kept
        if len(eligible) >= factor > len(eligible - left):
            raise InvalidReplicationFactorError(
                f"topic '{topic}' cannot have {factor} replicas of a partition: "
                f"{len(eligible - left)} brokers are live besides {sorted(left)}, from which all "
                "replicas are being moved away"
            )
        return [self.brokers[one] for one in sorted(eligible - left)]

    # Topics.

    def existing(self, topic: str) -> cluster_state.TopicAssignment:
        """Return a topic; an error if it is being deleted or cannot be read."""
        if topic in self.unreadable:
            raise InvalidRequestError(
                f"topic '{topic}' stays as it is until it can be read: "
                f"{self.unreadable[topic].reason}"
            )
        if topic not in self.topics or topic in self.deletions:
            raise UnknownTopicError(f"no replicated topic '{topic}'")
        return self.topics[topic]

    def replicas_of(self, topic: str) -> Mapping[TopicPartition, tuple[int, ...]]:
        """Return the replicas of each partition of a topic; none if it does not exist."""
        assignment = self.topics.get(topic)
        return {} if assignment is None else assignment.replicas

    def min_isr(self, topic: str) -> int:
        """Return the fewest in-sync replicas with which messages are committed."""
        text = self.settings.get(topic, {}).get(MIN_ISR, "")
        return max(1, int(text)) if text.isascii() and text.isdigit() else self._defaults.min_isr

    def allows_unclean(self, topic: str) -> bool:
        """Return whether a replica that is not in sync may lead if no other is live."""
        text = self.settings.get(topic, {}).get(ALLOWS_UNCLEAN)
        return self._defaults.allows_unclean if text is None else text == "true"

    # Partitions.

    def partitions(self) -> Iterator[TopicPartition]:
        """Yield every partition of the topics that are not being deleted."""
        for topic, assignment in self.topics.items():
            if topic not in self.deletions:
                yield from assignment.replicas

    def is_known(self, partition: TopicPartition) -> bool:
        """Return whether a partition has a state, and its topic is not being deleted."""
        return partition in self.states and partition.topic not in self.deletions

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition, the preferred leader first."""
        return self.topics[partition.topic].replicas[partition]

    def candidates(self, partition: TopicPartition) -> list[int]:
        """Return the replicas of a partition in the order in which they may lead.

        One that the controller does not reach would not hear that it leads: it comes last.
        """
        return sorted(self.replicas(partition), key=self.missed.__contains__)

    def settled_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition, those before a reassignment that is under way."""
        change = self.reassignments.get(partition)
        return change.original if change else self.replicas(partition)

    def leader_of(self, partition: TopicPartition) -> int:
        """Return the leader of a partition that has a state, or `NO_LEADER`."""
        return self.states[partition].state.leader

    def described(self, partition: TopicPartition) -> cluster_state.ReplicatedPartition:
        """Return a partition that has a state as brokers are told of it."""
        topic, change = self.topics[partition.topic], self.reassignments.get(partition)
        min_isr, original = self.min_isr(partition.topic), change and change.original
        return topic.described(partition, self.states[partition], min_isr, original)
