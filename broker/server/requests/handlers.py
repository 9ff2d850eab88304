"""Dispatch: which handler a request goes to, and the outcome of an invalid one.

It knows no socket: `CloseConnection` asks for the close, 0.7's only way to refuse a request.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from broker import errors
from broker.config import BrokerConfig
from broker.protocol import requests
from broker.protocol.append_request import PRODUCE_TYPE, PUBLISH_TYPE, append_request
from broker.protocol.cluster_requests import (
    ListUnknownReplicasRequest,
)
from broker.protocol.extension_requests import (
    EXTENSION_REQUESTS,
    MAX_CONTROLLER_REQUEST_BYTES,
    AnyReplicaReadRequest,
    ClusterMetadataRequest,
    CreateTopicRequest,
    DeleteTopicRequest,
    DigestLogRequest,
    ExtensionRequest,
    FilteredReadRequest,
    HelloRequest,
    ListOffsetsRequest,
    ListSegmentsRequest,
    MetadataRequest,
    MoveLogRequest,
    PublishRequest,
    ReadChangesRequest,
    ReadRequest,
    ShutdownRequest,
    StatusRequest,
    position_count,
)
from broker.protocol.layouts import ControllerRequest
from broker.protocol.primitives import INT16, Reader
from broker.protocol.replica_requests import (
    PushStatesRequest,
    ReplicaFetchRequest,
)
from broker.protocol.responses import encode_extension_error
from broker.server.requests.admin import AdminHandler, request_name
from broker.server.requests.control import ControlHandler
from broker.server.requests.fetch import FetchHandler
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.produce import ProduceHandler, RefusedPartitions
from broker.server.requests.purgatory import Response
from broker.server.requests.replica_reads import ReplicaReadHandler
from broker.server.requests.validation import ValidationBudgetExceededError, Validator


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """The connection must be closed."""

    reason: errors.BrokerError
    is_bad_frame: bool  # for bytes that are no request, not for a refused one


@dataclass(frozen=True, slots=True)
class Offload:
    """Requests above the validation budget: a worker handles them, before any that follow."""

    frames: list[memoryview]


@dataclass(frozen=True, slots=True)
class YieldTurn:
    """The turn's time or validation budget is used up; the rest is handled in the next turn."""


Outcome = Response | CloseConnection | Offload | YieldTurn | Future[Any]
"""The outcome of a request. A `Future` is done when a worker has a list of outcomes for it."""
_Outcome = Response | Future[Any]
TURN_S = 0.005
"""How long requests of one connection are handled in one turn; the last may exceed it."""


class RequestHandlers:
    """Handles the frames of the connections of one thread."""

    def __init__(
        self,
        validator: Validator,
        produce: ProduceHandler,
        fetch: FetchHandler,
        replica_reads: ReplicaReadHandler,
        control: ControlHandler,
        admin: AdminHandler,
        metrics: ProcessorMetrics,
    ) -> None:
        self._validator = validator  # that of the produce handler
        self._produce = produce
        self._fetch = fetch
        self._replica_reads = replica_reads
        self._control = control
        self._admin = admin
        self._metrics = metrics

    def reconfigure(self, config: BrokerConfig) -> None:
        """Use other limits from now on; callable from any thread."""
        self._validator.set_limit(config.max_message_bytes)
        self._fetch.set_limits(
            max_wait_ms=config.max_fetch_wait_ms, max_positions=config.max_fetch_positions
        )

    def handle(
        self, frames: list[memoryview], refused: RefusedPartitions
    ) -> Iterator[tuple[int, Outcome]]:
        """Handle frames in order, each after the outcome of the one before has been taken.

        For each outcome yield how many frames are handled with it. A `CloseConnection` comes last,
        for the request that caused it and all behind it. After an `Offload`, a `Future` or a
        `YieldTurn`, where the caller stops, the rest is for another call.
        """
        self._validator.begin_turn()
        end_s = time.perf_counter() + TURN_S
        position = single_end = 0
        try:
            while position < len(frames):
                if position and (self._validator.is_turn_used_up or time.perf_counter() > end_s):
                    yield position, YieldTurn()
                    return
                request_type = frames[position][:2]
                if position >= single_end and request_type in (PUBLISH_TYPE, PRODUCE_TYPE):
                    end = _end_of_type(frames, position)
                    together = self._produce.append_together(frames[position:end], refused)
                    if together is None:
                        single_end = end
                    else:
                        self._metrics.requests[int.from_bytes(request_type)] += end - position
                        position = end
                        for response in together:
                            yield position, response
                        continue
                single = self._handle_one(frames[position], refused)
                # only now: one beyond the budget is handled again, by a worker
                self._metrics.requests[int.from_bytes(request_type)] += 1
                position += 1
                if single is not None:
                    yield position, single
        except ValidationBudgetExceededError:
            yield position + 1, Offload(frames[position : position + 1])
        except errors.ProtocolError as error:
            yield len(frames), CloseConnection(error, is_bad_frame=True)
        except errors.BrokerError as error:
            yield len(frames), CloseConnection(error, is_bad_frame=False)

    def _handle_one(self, frame: memoryview, refused: RefusedPartitions) -> _Outcome | None:
        reader = Reader(frame)
        request_type = reader.int16()
        if request_type >= requests.FIRST_EXTENSION_TYPE:
            return self._handle_extension(request_type, reader, refused)
        if request_type not in requests.BASE_REQUESTS:
            raise errors.ProtocolError(f"request {request_name(request_type)} is unknown")
        match requests.decode_request(frame):
            case requests.FetchRequest() as request:
                return self._fetch.fetch(request)
            case requests.MultiFetchRequest() as request:
                return self._fetch.multifetch(request)
            case requests.OffsetsRequest() as request:
                return _when_done(self._fetch.offsets(request))
            case requests.ProduceRequest() | requests.MultiProduceRequest() as request:
                return _when_done(self._produce.append(append_request(request, 0), refused))

    def _handle_extension(
        self, request_type: int, reader: Reader, refused: RefusedPartitions
    ) -> _Outcome | None:
        header = requests.RequestHeader.decode(reader)
        try:
            kind = EXTENSION_REQUESTS.get((request_type, header.version))
            if kind is None:
                raise errors.UnsupportedVersionError(
                    f"request {request_name(request_type)} version {header.version} is unknown here"
                )
            if kind is PushStatesRequest:
                return self._control.push(reader.rest, header)
            if issubclass(kind, ControllerRequest):
                _check_length(reader.remaining)
            if kind in (ReadRequest, FilteredReadRequest, AnyReplicaReadRequest):
                self._fetch.check_position_count(position_count(reader.rest))
            return self._dispatch(kind.decode(reader), header, refused)
        except errors.ServerError as error:
            return Response(encode_extension_error(header.correlation_id, error.code, str(error)))

    def _dispatch(
        self, request: ExtensionRequest, header: requests.RequestHeader, refused: RefusedPartitions
    ) -> _Outcome | None:
        assert not isinstance(request, PushStatesRequest)  # decoded by the control handler
        match request:
            case PublishRequest():
                append = append_request(request, header.correlation_id)
                return _when_done(self._produce.append(append, refused))
            case ReadRequest():  # of the leader, or of any replica
                return self._fetch.read(request, header)
            case FilteredReadRequest():
                return self._fetch.filtered_read(request, header)
            case ListOffsetsRequest():
                return self._admin.list_offsets(request, header)
            case ListSegmentsRequest():
                return self._fetch.list_segments(request, header)
            case ClusterMetadataRequest():
                return self._admin.cluster_metadata(request, header)
            case MetadataRequest():
                return self._admin.metadata(request, header)
            case CreateTopicRequest():
                return self._admin.create_topic(request, header)
            case DeleteTopicRequest():
                return self._admin.delete_topic(request, header)
            case MoveLogRequest():
                return self._admin.move_log(request, header)
            case ReadChangesRequest():
                return self._admin.read_changes(request, header)
            case DigestLogRequest():
                return self._admin.digest_log(request, header)
            case HelloRequest():
                return self._admin.hello(header)
            case StatusRequest():
                return self._admin.status(request, header)
            case ShutdownRequest():
                return self._admin.shutdown(request, header)
            case ReplicaFetchRequest():
                return self._replica_reads.read(request, header)
            case ControllerRequest() | ListUnknownReplicasRequest():
                return self._control.handle(request, header)


def _check_length(size: int) -> None:
    """Refuse a request to the controller that is too long to be decoded on a network thread."""
    if size > MAX_CONTROLLER_REQUEST_BYTES:
        raise errors.InvalidRequestError(
            f"a request of {size} bytes to the controller is too long: "
            f"{MAX_CONTROLLER_REQUEST_BYTES} are possible; name fewer partitions at a time"
        )


def _when_done(outcome: Response | Future[Response | None] | None) -> _Outcome | None:
    """Have a connection closed if a leader refused what was forwarded for it."""
    if not isinstance(outcome, Future):
        return outcome
    outcomes: Future[list[Outcome]] = Future()

    def take(done: Future[Response | None]) -> None:
        if not outcomes.set_running_or_notify_cancel():
            return  # the client has left
        error = None if done.cancelled() else done.exception()
        if isinstance(error, errors.BrokerError):
            outcomes.set_result([CloseConnection(error, is_bad_frame=False)])
        elif error is not None:
            outcomes.set_exception(error)
        else:
            response = None if done.cancelled() else done.result()
            outcomes.set_result([] if response is None else [response])

    outcome.add_done_callback(take)
    return outcomes


def _end_of_type(frames: list[memoryview], start: int) -> int:
    """Return the index after the frames from `start` on that have one request type."""
    unpack = INT16.unpack_from  # faster than slices of a memoryview
    request_type = unpack(frames[start])
    index = start
    try:
        for index in range(start + 1, len(frames)):
            if unpack(frames[index]) != request_type:
                return index
    except struct.error:  # too short for a type
        return index
    return len(frames)
