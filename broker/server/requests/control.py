"""Requests between brokers and the controller: pushes to replicas, and requests to the controller.

Each is carried out on another thread, one after the other; the response follows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from broker.cluster_state import IsrDecision
from broker.errors import NO_ERROR, BrokerError, NotControllerError, TopicExistsError
from broker.protocol import layouts, replica_requests, requests, responses
from broker.protocol.cluster_requests import (
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    ListedReassignments,
    ListUnknownReplicasRequest,
    PartitionOutcome,
)
from broker.protocol.primitives import Reader
from broker.replica_records import UnknownReplica
from broker.security.principal import Principal
from broker.server.cluster.peer_watch import probe_registered
from broker.server.cluster.replica_manager import ReplicaManager
from broker.server.requests import creation_limits, freed_memory, judge, metrics, validation
from broker.server.requests.purgatory import RequestGroup, Response
from broker.topic import MAX_PARTITIONS

if TYPE_CHECKING:
    from broker.server.cluster.controller_requests import ControllerRequests

_T = TypeVar("_T")


@dataclass(eq=False)
class ControlHandler:
    """Handles requests between brokers and the controller."""

    replicas: ReplicaManager
    refusals: metrics.RequestErrors
    limits: creation_limits.CreationLimits
    controller: ControllerRequests | None = None  # None without a registry

    def __post_init__(self) -> None:
        self._orders = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replica-orders")
        self._probes = ThreadPoolExecutor(max_workers=2, thread_name_prefix="probe")

    def stop(self) -> None:
        """End the threads, after what is under way."""
        self._orders.shutdown(cancel_futures=True)
        self._probes.shutdown(cancel_futures=True)

    def push(self, body: memoryview, header: requests.RequestHeader) -> Future[list[Response]]:
        """Have a controller's push carried out; return the future response.

        A push can name so many partitions that the thread that carries it out decodes it, once its
        header shows that it comes from the controller. `body` is valid until this returns, unless
        it is longer than a receive.
        """
        if len(body) <= validation.RECEIVE_BYTES:
            body = memoryview(bytes(body))
        carried_out = self._orders.submit(self._carry_out, body)
        return _respond(carried_out, header, replica_requests.UNKNOWN_REPLICAS)

    def _carry_out(self, body: memoryview) -> list[UnknownReplica]:
        try:
            self.replicas.orders.check(replica_requests.decode_push_epochs(body))
            return self.replicas.apply(replica_requests.PushStatesRequest.decode(Reader(body)))
        finally:
            if len(body) > validation.RECEIVE_BYTES:
                freed_memory.give_back_freed_memory()

    def handle(
        self,
        request: layouts.ControllerRequest
        | ListUnknownReplicasRequest
        | replica_requests.ProbeBrokerRequest,
        context: judge.RequestContext,
    ) -> Future[list[Response]]:
        """Have a request carried out by the controller, or as it asks; return the response."""
        outcome: Future[Any]
        if isinstance(request, ListUnknownReplicasRequest):
            outcome = self._orders.submit(self.replicas.records.find_unknown)
        elif isinstance(request, replica_requests.ProbeBrokerRequest):  # not behind a push
            outcome = self._probes.submit(probe_registered, self.replicas.brokers, request)
        elif self.controller is None:
            raise NotControllerError("this broker is in no cluster: zk.connect is not set")
        else:
            count, who = 0, context.limited
            if (
                isinstance(request, CreateReplicatedTopicRequest | AddPartitionsRequest)
                and 1 <= request.partition_count <= MAX_PARTITIONS  # or the controller refuses it
            ):
                count = request.partition_count
                self.limits.take(who, request.topic, count)
            outcome = self.controller.handle(request)
            if count:
                outcome.add_done_callback(partial(self._give_back_refused, who, count))
        outcome.add_done_callback(self._count_refused)
        shown = partial(_shown, request, context.rights)
        return _respond(outcome, context.header, request.RESPONSE, shown)

    def _give_back_refused(self, who: Principal | None, count: int, outcome: Future[Any]) -> None:
        """Uncount partitions that were not created."""
        if outcome.cancelled() or creation_limits.is_refusal(outcome.exception()):
            self.limits.give_back(who, count)

    def _count_refused(self, outcome: Future[Any]) -> None:
        """Count the partitions for which a request was refused."""
        if not outcome.cancelled() and outcome.exception() is None:
            found = outcome.result()
            for one in found if isinstance(found, list) else ():
                if isinstance(one, PartitionOutcome | IsrDecision) and one.error != NO_ERROR:
                    self.refusals.note(RequestGroup.OTHER, one.error)


def _respond(
    outcome: Future[_T],
    header: requests.RequestHeader,
    layout: layouts.Layout[_T],
    shown: Callable[[Any], Any] = lambda found: found,
) -> Future[list[Response]]:
    """Return the future response to a request with a future outcome."""
    response: Future[list[Response]] = Future()
    response.set_running_or_notify_cancel()  # completed even if the client leaves

    def take(done: Future[_T]) -> None:
        # not raised here: a traceback would keep this frame, which keeps the future
        error = done.exception()
        if isinstance(error, BrokerError):
            response.set_exception(shown(error))
            return
        try:
            body = layout.encode(shown(done.result()))
            frame = responses.encode_extension_response(header.correlation_id, body)
        except Exception as bug:  # it costs one connection
            response.set_exception(bug)
            raise
        response.set_result([Response(frame)])

    outcome.add_done_callback(take)
    return response


def _shown(request: object, rights: judge.Rights | None, found: Any) -> Any:
    """Return an outcome without what it tells of topics that are hidden from the client."""
    if rights is None:
        return found
    if isinstance(request, CreateReplicatedTopicRequest) and isinstance(found, TopicExistsError):
        return rights.of_existing(request.topic, found)
    if isinstance(found, ListedReassignments):
        seen = (one for one in found.changes if rights.allows(one.partition.topic))
        return found._replace(changes=tuple(seen))
    return found
