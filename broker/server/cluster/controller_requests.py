"""What brokers and clients ask of the controller."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from broker import errors
from broker.cluster_state import Creation, ReplicatedPartition
from broker.controller.controller import Controller
from broker.protocol.cluster_requests import (
    THROTTLE_STAYS,
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    DeleteReplicatedTopicRequest,
    ElectionKind,
    ElectLeadersRequest,
    ListedReassignments,
    ListReassignmentsRequest,
    PartitionOutcome,
    PartitionReassignment,
    ReassignRequest,
    ReplicateTopicRequest,
    RestorePartitionsRequest,
)
from broker.protocol.layouts import ControllerRequest
from broker.protocol.replica_requests import ChangeIsrRequest, ControlledShutdownRequest
from broker.server.cluster.controller_thread import ControllerThread
from broker.topic import TopicPartition
from broker.zk.creations import read_creations
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics

_T = TypeVar("_T")


@dataclass(eq=False)
class ControllerRequests:
    """Has requests carried out on the controller's thread."""

    thread: ControllerThread
    registry: Registry
    topics: ReplicatedTopics

    def handle(self, request: ControllerRequest) -> Future[Any]:
        """Return the future outcome of a request; it fails with a `ServerError`."""
        job = partial(self._carry_out, request)
        match request:
            case CreateReplicatedTopicRequest() | ReplicateTopicRequest():
                return self.thread.submit_creation(self._with_all_brokers(job))
            case AddPartitionsRequest() | ReassignRequest():
                return self.thread.submit(self._with_all_brokers(job))
        return self.thread.submit(job)

    def _with_all_brokers(self, job: Callable[[Controller], _T]) -> Callable[[Controller], _T]:
        """Have a refused job done again if a broker is registered that was not known before."""

        def work(controller: Controller) -> _T:
            try:
                return job(controller)
            except (errors.InvalidReplicationFactorError, errors.InvalidRequestError):
                # ZooKeeper's watch for brokers may fire after a client's request that needs them
                brokers = self.topics.brokers()
                if set(brokers) == set(controller.context.brokers.values()):
                    raise
                controller.brokers_changed(brokers)
                return job(controller)

        return work

    def _carry_out(self, request: ControllerRequest, controller: Controller) -> Any:
        match request:
            case ChangeIsrRequest(broker_id, broker_epoch, changes):
                return controller.change_isr(broker_id, broker_epoch, changes)
            case ControlledShutdownRequest(broker_id, broker_epoch):
                return controller.controlled_shutdown(broker_id, broker_epoch)
            case CreateReplicatedTopicRequest():
                return self._create(request, controller)
            case ReplicateTopicRequest():
                return self._replicate(request, controller)
            case RestorePartitionsRequest():
                return self._restore(request, controller)
            case AddPartitionsRequest(topic, count):
                return controller.topics.add_partitions(topic, count, start=_any_start())
            case DeleteReplicatedTopicRequest(topic):
                return controller.deletions.delete_topic(topic)
            case ElectLeadersRequest():
                return _elect(request, controller)
            case ReassignRequest():
                return _reassign(request, controller)
            case ListReassignmentsRequest():
                context = controller.context
                moves = (PartitionReassignment(*one) for one in context.reassignments.items())
                return ListedReassignments(context.throttle_bytes_per_s, tuple(moves))
        raise errors.InvalidRequestError(f"the controller takes no {type(request).__name__}")

    def _create(
        self, request: CreateReplicatedTopicRequest, controller: Controller
    ) -> list[ReplicatedPartition]:
        homes = self.registry.homes_of([request.topic])[request.topic]
        known = {*controller.context.topics, *controller.context.unreadable}
        if homes and request.topic not in known:
            raise errors.TopicExistsError(
                f"topic '{request.topic}' exists without replicas on brokers {sorted(homes)}"
            )
        return controller.topics.create(
            request.topic,
            request.partition_count,
            request.replication_factor,
            {one.name: one.value for one in request.settings},
            creation_id=_new_creation_id(),
            start=_any_start(),
        )

    def _replicate(
        self, request: ReplicateTopicRequest, controller: Controller
    ) -> list[ReplicatedPartition]:
        topic = request.topic
        counts = self.registry.homes_of([topic])[topic]
        if not counts and topic not in controller.context.topics:
            raise errors.UnknownTopicError(f"no broker has topic '{topic}'")
        partitions = [
            TopicPartition(topic, home, index)
            for home, count in counts.items()
            for index in range(count)
        ]
        creations = read_creations(self.registry.session, partitions)
        return controller.topics.replicate(
            topic,
            partitions,
            request.replication_factor,
            {
                one.home: creations.of(one) or Creation("", 0)  # no older creation is known
                for one in partitions
            },
            self.topics.settings([topic]).get(topic, {}),
            creation_id=_new_creation_id(),
        )

    def _restore(
        self, request: RestorePartitionsRequest, controller: Controller
    ) -> list[ReplicatedPartition]:
        if not request.records:
            raise errors.InvalidRequestError("no partitions to restore are named")
        topic = request.records[0].partition.topic
        homes = self.registry.topic_partitions(topic).keys()
        context = controller.context
        if topic not in context.topics and (others := homes - context.lost.homes(topic)):
            raise errors.TopicExistsError(
                f"a topic '{topic}' exists without replicas on brokers {sorted(others)}"
            )
        return controller.topics.restore(request.records)


def _elect(request: ElectLeadersRequest, controller: Controller) -> list[PartitionOutcome]:
    leadership = controller.leadership
    if request.kind is ElectionKind.PREFERRED:
        outcomes = leadership.elect_preferred(request.partitions)
        return [_outcome(one, outcomes[one]) for one in request.partitions]
    return [
        _outcome(one, _refusal(partial(leadership.elect_unclean, one)))
        for one in request.partitions
    ]


def _reassign(request: ReassignRequest, controller: Controller) -> list[PartitionOutcome]:
    """Begin reassignments; a partition whose target is empty has its own cancelled."""
    reassignments = controller.reassignments
    targets = {one.partition: one.replicas for one in request.targets if one.replicas}
    throttle = request.throttle_bytes_per_s
    if targets or throttle != THROTTLE_STAYS:
        reassignments.begin(targets, None if throttle == THROTTLE_STAYS else throttle)
    return [
        _outcome(
            one.partition,
            None if one.replicas else _refusal(partial(reassignments.cancel, one.partition)),
        )
        for one in request.targets
    ]


def _refusal(job: Callable[[], object]) -> errors.ServerError | None:
    """Return why a job was refused, None if it was done."""
    try:
        job()
    except errors.ServerError as error:
        return error
    return None


def _outcome(partition: TopicPartition, refusal: errors.ServerError | None) -> PartitionOutcome:
    if refusal is None:
        return PartitionOutcome(partition, errors.NO_ERROR, "")
    return PartitionOutcome(partition, refusal.code, str(refusal))


def _new_creation_id() -> str:
    return os.urandom(16).hex()


def _any_start() -> int:
    """Return which broker gets the first of new partitions, so that first ones are spread."""
    return random.randrange(1 << 16)
