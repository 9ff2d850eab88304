"""What brokers and clients ask of the controller."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from broker import errors
from broker.cluster_state import Creation, ReplicatedPartition
from broker.controller.controller import Controller
from broker.protocol import cluster_requests
from broker.protocol.layouts import ControllerRequest
from broker.protocol.replica_requests import ChangeIsrRequest, ControlledShutdownRequest
from broker.server.cluster.controller_thread import ControllerThread
from broker.topic import TopicPartition
from broker.zk.creations import read_creations
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics

_CREATIONS = (cluster_requests.CreateReplicatedTopicRequest, cluster_requests.ReplicateTopicRequest)
_PLACING = (*_CREATIONS, cluster_requests.AddPartitionsRequest, cluster_requests.ReassignRequest)


@dataclass(eq=False)
class ControllerRequests:
    """Has requests carried out on the controller's thread."""

    thread: ControllerThread
    registry: Registry
    topics: ReplicatedTopics

    def handle(self, request: ControllerRequest) -> Future[Any]:
        """Return the future outcome of a request; it fails with a `ServerError`."""
        job = partial(self._carry_out, request)
        if isinstance(request, _PLACING):
            job = partial(self._with_all_brokers, job)
        return self.thread.submit(job, is_creation=isinstance(request, _CREATIONS))

    def _with_all_brokers(self, job: Callable[[Controller], Any], controller: Controller) -> Any:
        """Do a refused job again if a broker is registered that was not known before."""
        try:
            return job(controller)
        except (errors.InvalidReplicationFactorError, errors.InvalidRequestError):
            # ZooKeeper's watch for brokers may fire after a client's request that needs them
            brokers = self.topics.brokers()
            if set(brokers) == set(controller.context.brokers.values()):
                raise
            controller.brokers_changed(brokers)
            return job(controller)

    def _carry_out(self, request: ControllerRequest, controller: Controller) -> Any:
        match request:
            case ChangeIsrRequest(broker_id, broker_epoch, changes):
                return controller.change_isr(broker_id, broker_epoch, changes)
            case ControlledShutdownRequest(broker_id, broker_epoch):
                return controller.controlled_shutdown(broker_id, broker_epoch)
            case cluster_requests.CreateReplicatedTopicRequest():
                return self._create(request, controller)
            case cluster_requests.ReplicateTopicRequest():
                return self._replicate(request, controller)
            case cluster_requests.RestorePartitionsRequest():
                return self._restore(request, controller)
            case cluster_requests.AddPartitionsRequest(topic, count):
                return controller.topics.add_partitions(topic, count, start=_any_start())
            case cluster_requests.DeleteReplicatedTopicRequest(topic):
                return controller.deletions.delete_topic(topic)
            case cluster_requests.ElectLeadersRequest():
                return _elect(request, controller)
            case cluster_requests.ReassignRequest():
                return _reassign(request, controller)
            case cluster_requests.ListReassignmentsRequest():
                context, move = controller.context, cluster_requests.PartitionReassignment
                moves = tuple(move(*one) for one in context.reassignments.items())
                throttle = context.throttle_bytes_per_s
                return cluster_requests.ListedReassignments(throttle, moves)
        raise errors.InvalidRequestError(f"the controller takes no {type(request).__name__}")

    def _create(
        self, request: cluster_requests.CreateReplicatedTopicRequest, controller: Controller
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
            format=request.format or self.thread.config.log_format,
            creation_id=_new_creation_id(),
            start=_any_start(),
        )

    def _replicate(
        self, request: cluster_requests.ReplicateTopicRequest, controller: Controller
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
        self, request: cluster_requests.RestorePartitionsRequest, controller: Controller
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


def _elect(
    request: cluster_requests.ElectLeadersRequest, controller: Controller
) -> list[cluster_requests.PartitionOutcome]:
    leadership, wanted = controller.leadership, request.partitions
    if request.kind is cluster_requests.ElectionKind.PREFERRED:
        outcomes = leadership.elect_preferred(wanted)
        return [_outcome(one, outcomes[one]) for one in wanted]
    return [_outcome(one, _refusal(partial(leadership.elect_unclean, one))) for one in wanted]


def _reassign(
    request: cluster_requests.ReassignRequest, controller: Controller
) -> list[cluster_requests.PartitionOutcome]:
    """Begin reassignments; a partition whose target is empty has its own cancelled."""
    reassignments = controller.reassignments
    targets = {one.partition: one.replicas for one in request.targets if one.replicas}
    stays = request.throttle_bytes_per_s == cluster_requests.THROTTLE_STAYS
    if targets or not stays:
        reassignments.begin(targets, None if stays else request.throttle_bytes_per_s)
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


def _outcome(
    partition: TopicPartition, refusal: errors.ServerError | None
) -> cluster_requests.PartitionOutcome:
    code, text = (errors.NO_ERROR, "") if refusal is None else (refusal.code, str(refusal))
    return cluster_requests.PartitionOutcome(partition, code, text)


def _new_creation_id() -> str:
    return uuid4().hex  # a topic id of Kafka is a UUID


def _any_start() -> int:
    """Return which broker gets the first of new partitions, so that first ones are spread."""
    return random.randrange(1 << 16)
