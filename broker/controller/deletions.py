"""Topics that are deleted, and the logs of them that brokers still have.

Source: Kafka 0.8 `TopicDeletionManager`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from broker.cluster_state import LAST_EPOCH, ClusterSnapshot, DeletedTopic
from broker.controller.context import ControllerContext
from broker.controller.pushes import PendingPushes, Push
from broker.controller.reassignments import Reassignments
from broker.controller.states import Store


@dataclass(eq=False)
class TopicDeletions:
    """Has brokers delete their logs of deleted topics, also those that were away then."""

    context: ControllerContext
    store: Store
    pushes: PendingPushes
    reassignments: Reassignments
    _deleted: dict[str, DeletedTopic] = field(default_factory=dict, init=False)  # by creation id

    def load(self, snapshot: ClusterSnapshot) -> None:
        """Continue the deletions that a former controller has begun."""
        for topic in snapshot.deletions & self.context.topics.keys():
            self._begin(topic)
        self._deleted = {one.creation_id: one for one in snapshot.deleted}
        self._stop_deleted(self.context.brokers.keys())

    @property
    def creation_ids(self) -> set[str]:
        """Return the creation ids of deleted topics that brokers may have logs of."""
        topics = self.context.topics
        return {*self._deleted, *(topics[one].creation_id for one in self.context.deletions)}

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its logs; brokers that are away delete theirs when they are back.

        It is gone once all live brokers have deleted their logs. A topic whose states cannot be
        read can be deleted if its brokers can be read; of one that the registry has lost, the logs
        of live brokers.
        """
        context = self.context
        if topic not in {**context.topics, **context.unreadable} and context.lost.has_topic(topic):
            self._stop_lost(topic)
            return
        if (damaged := context.unreadable.get(topic)) is None or damaged.assignment is None:
            context.existing(topic)
        self.store.begin_deletion(topic)
        if damaged is not None and damaged.assignment is not None:
            context.topics[topic] = damaged.assignment
            context.unreadable = {t: one for t, one in context.unreadable.items() if t != topic}
            if not context.unreadable:  # brokers wait for a full push
                self.pushes.add_full(context.brokers)
        self._begin(topic)
        self.finish()

    def started(self, broker_ids: Collection[int]) -> None:
        """Have brokers that are back delete their logs of topics deleted since."""
        for topic, waiting in self.context.deletions.items():
            for broker_id in waiting.intersection(broker_ids):
                self._stop_all(topic, broker_id)
        self._stop_deleted(broker_ids)

    def delivered(self, broker_id: int, push: Push) -> None:
        """Note that a broker has carried out a push."""
        ids = {one.creation_id for one in push.stopped if one.leader_epoch == LAST_EPOCH}
        for topic, waiting in self.context.deletions.items():
            if self.context.topics[topic].creation_id in ids:
                waiting.discard(broker_id)
        for deleted in [self._deleted[one] for one in ids if one in self._deleted]:
            left = deleted._replace(brokers=deleted.brokers - {broker_id})
            if left != deleted:
                self._record(left)
        self.finish()

    def finish(self) -> None:
        """Remove the topics of which no live broker has a log."""
        context = self.context
        live = context.brokers.keys()
        for topic in [one for one, waiting in context.deletions.items() if not waiting & live]:
            assignment = context.topics[topic]
            if away := frozenset(context.deletions[topic]):
                partitions = tuple(assignment.replicas)
                self._record(DeletedTopic(topic, assignment.creation_id, partitions, away))
            self.store.finish_deletion(assignment)
            del context.deletions[topic], context.topics[topic]
            context.settings.pop(topic, None)
            for partition in assignment.replicas:
                context.states.pop(partition, None)
            self.pushes.remove(assignment.replicas)

    def _begin(self, topic: str) -> None:
        # also if a former controller began: a later topic of the name must not inherit them
        self.reassignments.forget_topic(topic)
        replicas = self.context.topics[topic].replicas
        self.context.deletions[topic] = {one for ids in replicas.values() for one in ids}
        for broker_id in self.context.brokers:  # also those without a replica, which know of it
            self._stop_all(topic, broker_id)
        self._stop_lost(topic)

    def _record(self, deleted: DeletedTopic) -> None:
        self.store.write_deleted(deleted)
        self._deleted[deleted.creation_id] = deleted
        if not deleted.brokers:
            del self._deleted[deleted.creation_id]

    def _stop_all(self, topic: str, broker_id: int) -> None:
        assignment = self.context.topics[topic]
        for partition in assignment.replicas:
            self.pushes.delete_log(broker_id, partition, assignment.creation_id)

    def _stop_deleted(self, broker_ids: Collection[int]) -> None:
        for deleted in self._deleted.values():
            for broker_id in deleted.brokers.intersection(broker_ids):
                for partition in deleted.partitions:
                    self.pushes.delete_log(broker_id, partition, deleted.creation_id)

    def _stop_lost(self, topic: str) -> None:
        for broker_id, record in self.context.lost.take(topic):
            self.pushes.delete_log(broker_id, record.partition, record.creation_id)
