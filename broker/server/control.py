"""Requests between brokers and the controller: orders to replicas, and what brokers ask for.

Each is carried out on a thread of its own room, one after the other; the response follows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from broker.cluster_state import ReplicatedPartition
from broker.errors import NotControllerError, ServerError
from broker.protocol.cluster_requests import (
    AddPartitionsRequest,
    DeleteReplicatedTopicRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    ReassignRequest,
    ReplicateTopicRequest,
    encode_outcomes,
    encode_reassignments,
)
from broker.protocol.extension_requests import ControlRequest
from broker.protocol.recovery_requests import (
    ListUnknownReplicasRequest,
    RestorePartitionsRequest,
    encode_unknown_replicas,
)
from broker.protocol.replica_requests import (
    ChangeIsrRequest,
    ControlledShutdownRequest,
    CreateReplicatedTopicRequest,
    PushStatesRequest,
    encode_change_isr_response,
    encode_controlled_shutdown_response,
    encode_partitions_response,
)
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import encode_extension_error, encode_extension_response
from broker.server.purgatory import Response
from broker.server.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from broker.server.controller_thread import ControllerThread

_T = TypeVar("_T")


class ControlHandler:
    """Answers requests between brokers and the controller.

    Args:
        replicas: of this broker; carry out orders.
    """

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self.controller: ControllerThread | None = None
        """This broker's part in the office of controller; None without a registry."""
        self._orders = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replica-orders")

    def stop(self) -> None:
        """End the thread that carries out orders, after the one under way."""
        self._orders.shutdown(cancel_futures=True)

    def handle(self, request: ControlRequest, header: RequestHeader) -> Future[list[Response]]:
        """Have a request carried out; return its future response.

        Raises:
            NotControllerError: it is for a controller, and this broker can never be it.
        """
        if isinstance(request, PushStatesRequest):
            carried_out = self._orders.submit(self._replicas.apply, request)
            return _respond(carried_out, header, encode_unknown_replicas)
        if isinstance(request, ListUnknownReplicasRequest):
            found = self._orders.submit(self._replicas.unknown_replicas)
            return _respond(found, header, encode_unknown_replicas)
        controller = self.controller
        if controller is None:
            raise NotControllerError("this broker is in no cluster: zk.connect is not set")
        match request:
            case ChangeIsrRequest():
                return _respond(controller.change_isr(request), header, encode_change_isr_response)
            case ControlledShutdownRequest():
                progress = controller.controlled_shutdown(request)
                return _respond(progress, header, encode_controlled_shutdown_response)
            case CreateReplicatedTopicRequest():
                return _respond(controller.create_topic(request), header, _encode_partitions)
            case RestorePartitionsRequest():
                return _respond(controller.restore(request), header, _encode_partitions)
            case AddPartitionsRequest():
                return _respond(controller.add_partitions(request), header, _encode_partitions)
            case ReplicateTopicRequest():
                return _respond(controller.replicate_topic(request), header, _encode_partitions)
            case DeleteReplicatedTopicRequest():
                return _respond(controller.delete_topic(request), header, _encode_nothing)
            case ElectLeadersRequest():
                return _respond(controller.elect_leaders(request), header, encode_outcomes)
            case ReassignRequest():
                return _respond(controller.reassign(request), header, encode_outcomes)
            case ListReassignmentsRequest():
                return _respond(controller.reassignments(), header, encode_reassignments)


def _encode_nothing(_: None) -> bytes:
    return b""


def _encode_partitions(partitions: list[ReplicatedPartition]) -> bytes:
    return encode_partitions_response(tuple(partitions))


def _respond(
    outcome: Future[_T], header: RequestHeader, encode: Callable[[_T], bytes]
) -> Future[list[Response]]:
    """Return the future response to a request with a future outcome."""
    response: Future[list[Response]] = Future()
    response.set_running_or_notify_cancel()  # a client that hangs up does not stop what was begun

    def take(done: Future[_T]) -> None:
        try:
            frame = encode_extension_response(header.correlation_id, encode(done.result()))
        except ServerError as error:
            frame = encode_extension_error(header.correlation_id, error.code, str(error))
        except Exception as error:  # a bug, which costs one connection
            response.set_exception(error)
            raise
        response.set_result([Response(frame)])

    outcome.add_done_callback(take)
    return response
