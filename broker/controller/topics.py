"""Partitions that come into being: created, given replicas, added, or restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from broker import errors
from broker.cluster_state import Creation, KeptCreation, ReplicatedPartition, TopicAssignment
from broker.controller.assignment import place_partitions, place_replicas
from broker.controller.context import MIN_ISR, ControllerContext
from broker.controller.leadership import Leadership
from broker.controller.lost import validate_records
from broker.controller.states import StateWriter, Store
from broker.ids import NO_LEADER
from broker.replica_records import ReplicaRecord
from broker.topic import (
    FORMAT_07,
    MAX_CLUSTER_PARTITIONS,
    TopicPartition,
    validate_new_topic_name,
)


@dataclass(eq=False)
class TopicChanges:
    """Decides which brokers get partitions, and records that before they get a leader."""

    context: ControllerContext
    store: Store
    states: StateWriter
    leadership: Leadership

    def create(
        self,
        topic: str,
        partition_count: int,
        replication_factor: int,
        settings: Mapping[str, str],
        *,
        format: str = FORMAT_07,
        creation_id: str,
        start: int,
    ) -> list[ReplicatedPartition]:
        """Create a topic whose partitions are spread over the brokers.

        Args:
            format: for life, `0.7` or `kafka`.
            creation_id: not used by any topic before.
            start: any number; which broker gets the first partition follows from it.
        """
        validate_new_topic_name(topic, format=format)
        self._validate_absent(topic)
        brokers = self.context.brokers_for_new(topic, replication_factor)
        replicas = place_partitions(
            topic, partition_count, replication_factor, brokers, format=format, start=start
        )
        _validate_min_isr(topic, settings, replication_factor)
        return self._create(TopicAssignment(topic, creation_id, replicas), settings)

    def replicate(
        self,
        topic: str,
        partitions: Collection[TopicPartition],
        replication_factor: int,
        kept: Mapping[int, Creation],
        settings: Mapping[str, str],
        *,
        creation_id: str,
    ) -> list[ReplicatedPartition]:
        """Give replicas to a topic that has none.

        The log at the home of a partition has all its messages: the home leads, and alone is in
        sync until others have copied it. To clients it stays the same topic: `kept` has the
        creations that they know, by home broker.
        """
        if topic in self.context.topics and topic not in self.context.deletions:
            raise errors.TopicExistsError(
                f"topic '{topic}' has replicas already: a reassignment changes how many"
            )
        self._validate_absent(topic)
        brokers = self.context.brokers_for_new(topic, replication_factor)
        if away := {one.home for one in partitions} - {one.id for one in brokers}:
            raise errors.InvalidRequestError(
                f"topic '{topic}' cannot get replicas while its brokers {sorted(away)} are away: "
                "start them first"
            )
        if not 1 <= replication_factor <= len(brokers):
            raise errors.InvalidReplicationFactorError(
                f"topic '{topic}' cannot have {replication_factor} replicas of a partition: "
                f"{len(brokers)} brokers are live"
            )
        _validate_min_isr(topic, settings, replication_factor)
        replicas = place_replicas(partitions, replication_factor, brokers)
        counts = Counter(one.home for one in partitions)
        older = {home: KeptCreation(one, counts[home]) for home, one in kept.items()}
        return self._create(TopicAssignment(topic, creation_id, replicas, kept=older), settings)

    def add_partitions(
        self, topic: str, partition_count: int, *, start: int
    ) -> list[ReplicatedPartition]:
        """Add partitions to a topic, with as many replicas as its others have."""
        context = self.context
        assignment = context.existing(topic)
        self._validate_not_lost(topic)
        factor = min(len(context.settled_replicas(one)) for one in assignment.replicas)
        brokers = context.brokers_for_new(topic, factor)
        added = place_partitions(
            *(topic, partition_count, factor, brokers),
            format=assignment.format,
            start=start,
            existing=assignment.replicas,
        )
        self._validate_count(added)
        context.topics[topic] = self.store.write_topic(
            assignment._replace(replicas={**assignment.replicas, **added})
        )
        self.leadership.settle("created")
        return [context.described(one) for one in added]

    def restore(self, records: Sequence[ReplicaRecord]) -> list[ReplicatedPartition]:
        """Put partitions of one topic back that the registry has lost and brokers have logs of.

        The records have the new states, in higher leader epochs than any log has, and the topic's
        settings.
        """
        context = self.context
        topic, creation_id = records[0].partition.topic, records[0].creation_id
        known = context.topics.get(topic, TopicAssignment(topic, creation_id, {}, version=-1))
        if topic in context.unreadable or topic in context.deletions:
            raise errors.TopicExistsError(f"topic '{topic}' exists, or is being deleted")
        validate_records(records, known)
        for partition, _, _, (leader, *_), *_ in records:
            holders = context.lost.holders(partition, creation_id)
            if not holders:
                raise errors.InvalidRequestError(f"no broker has told of a log of {partition}")
            if leader not in {*holders, NO_LEADER}:
                raise errors.InvalidRequestError(
                    f"broker {leader} is to lead {partition}, and has told of no log of it"
                )
        epoch = self.states.epoch
        states = {one.partition: one.state._replace(controller_epoch=epoch) for one in records}
        replicas = {**known.replicas, **{one.partition: one.replicas for one in records}}
        kept = dict(known.kept)
        for partition, *_, kept_id in records:
            count = max(one.index for one in replicas if one.home == partition.home) + 1
            # to clients it is the same topic, and no offset in the new registry is older
            kept[partition.home] = KeptCreation(Creation(kept_id or creation_id, 0), count)
        context.topics[topic] = self.store.write_topic(
            known._replace(replicas=replicas, kept=kept), records[0].settings, states
        )
        context.settings.setdefault(topic, dict(records[0].settings))
        context.lost.forget(states)
        for partition, state in states.items():
            self.states.note_restored(partition, state)
        self.leadership.settle("restored")
        return [context.described(one) for one in states]

    def _create(
        self, assignment: TopicAssignment, settings: Mapping[str, str]
    ) -> list[ReplicatedPartition]:
        self._validate_count(assignment.replicas)
        new = assignment._replace(version=-1)
        self.context.topics[assignment.topic] = self.store.write_topic(new, settings)
        self.context.settings[assignment.topic] = dict(settings)
        self.leadership.settle("created")
        return [self.context.described(one) for one in assignment.replicas]

    def _validate_count(self, added: Collection[TopicPartition]) -> None:
        """Refuse partitions with which brokers could not be told of all there are."""
        count = sum(len(one.replicas) for one in self.context.topics.values())
        if count + len(added) > MAX_CLUSTER_PARTITIONS:
            raise errors.InvalidRequestError(
                f"{len(added)} partitions cannot be added to the {count} with replicas: a cluster "
                f"has at most {MAX_CLUSTER_PARTITIONS}"
            )

    def _validate_absent(self, topic: str) -> None:
        context = self.context
        if topic in context.unreadable:
            raise errors.TopicExistsError(
                f"topic '{topic}' exists: {context.unreadable[topic].reason}"
            )
        self._validate_not_lost(topic)
        if topic in context.topics:
            state = "is being deleted" if topic in context.deletions else "exists"
            raise errors.TopicExistsError(f"topic '{topic}' {state}")

    def _validate_not_lost(self, topic: str) -> None:
        """Refuse to give new partitions the names of lost ones that brokers still have logs of."""
        if self.context.lost.has_topic(topic):
            raise errors.TopicExistsError(
                f"brokers have logs of a topic '{topic}' that ZooKeeper has lost: `pylogctl "
                "cluster recover` shows and restores it"
            )


def _validate_min_isr(topic: str, settings: Mapping[str, str], factor: int) -> None:
    text = settings.get(MIN_ISR, "1")
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= factor):
        raise errors.InvalidRequestError(
            f"{MIN_ISR} of topic '{topic}' is {text}: it must be a number from 1 to the "
            f"replication factor, {factor}"
        )
