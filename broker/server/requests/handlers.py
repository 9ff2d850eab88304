"""Dispatch: which handler a request goes to, and the outcome of an invalid one.

It knows no socket: `CloseConnection` asks for the close, 0.7's only way to refuse a request. Here
requests are counted, their times, and the errors of whole requests; those of single partitions are
counted where they are encoded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker import errors
from broker.config import BrokerConfig
from broker.protocol import client_requests as ours
from broker.protocol import cluster_requests, extension_requests, replica_requests, requests
from broker.protocol.append_request import AppendRequest, append_request, decode_single_appends
from broker.protocol.client_requests import (
    AUTHENTICATED,
    AuthenticateRequest,
    PublishRequest,
    position_count,
)
from broker.protocol.extension_requests import MAX_CONTROLLER_REQUEST_BYTES
from broker.protocol.framing import Frames
from broker.protocol.layouts import EXTENSION_REQUESTS, ControllerRequest
from broker.protocol.primitives import INT16, Reader
from broker.protocol.responses import encode_extension_error
from broker.security.cluster_keys import CLUSTER_PROOF
from broker.server.requests import authentication, broker_parts, creation_limits, failure_delays
from broker.server.requests.admin import AdminHandler, request_name
from broker.server.requests.client import ConnectedClient
from broker.server.requests.fetch import FetchHandler
from broker.server.requests.filtered_read import FilteredRead
from broker.server.requests.judge import LIMITED, NEEDS, RequestContext, Rights
from broker.server.requests.metrics import ProcessorMetrics, request_group
from broker.server.requests.outcomes import CloseConnection, Offload, Outcome, Work, YieldTurn
from broker.server.requests.produce import ProduceHandler
from broker.server.requests.purgatory import DelayedResponse, RequestGroup, Response
from broker.server.requests.replica_reads import ReplicaReadHandler
from broker.server.requests.schemas import SchemaHandler
from broker.server.requests.validation import ValidationBudgetExceededError, Validator
from broker.threads import logged
from broker.topic import FORMAT_KAFKA

_Outcome = Response | Future[Any]
_READS = (
    ours.ReadRequest,
    ours.FilteredReadRequest,
    ours.AnyReplicaReadRequest,
    ours.SessionReadRequest,
)
TURN_S = 0.005
"""How long requests of one connection are handled in one turn; the last may exceed it."""


@dataclass(eq=False)
class RequestHandlers:
    """Handles the frames of the connections of one thread."""

    broker: broker_parts.BrokerParts
    metrics: ProcessorMetrics
    turn_bytes: int | None  # the validation budget; None for no limit
    wake: Callable[[DelayedResponse], None]
    """Has a delayed response attempted again; callable from any thread."""

    def __post_init__(self) -> None:
        broker, metrics = self.broker, self.metrics
        self._judge = broker.judge
        self._validator = Validator(
            broker.config.max_message_bytes, self.turn_bytes, metrics.refused_sets
        )
        self._produce = ProduceHandler(broker, metrics, self._validator)
        self._fetch = FetchHandler(broker, metrics, self.wake)
        self._admin = AdminHandler(broker, metrics.errors)
        self._routes = self._make_routes()

    def _make_routes(self) -> dict[Any, Callable[[Any, RequestContext], _Outcome]]:
        """Return what handles each of our requests, by class."""
        fetch, admin, control = self._fetch, self._admin, self.broker.control
        replica_read = ReplicaReadHandler(self.broker, self.metrics).read
        by_controller = (one for one in NEEDS if issubclass(one, ControllerRequest))
        return {
            ours.ReadRequest: fetch.read,
            ours.AnyReplicaReadRequest: fetch.read,
            ours.FilteredReadRequest: partial(FilteredRead, fetch),
            ours.SessionReadRequest: fetch.read_in_session,
            ours.ListOffsetsRequest: admin.list_offsets,
            ours.ListSegmentsRequest: fetch.list_segments,
            ours.ClusterMetadataRequest: admin.cluster_metadata,
            ours.MetadataRequest: admin.metadata,
            extension_requests.CreateTopicRequest: admin.create_topic,
            extension_requests.DeleteTopicRequest: admin.delete_topic,
            extension_requests.MoveLogRequest: admin.move_log,
            extension_requests.ReadChangesRequest: admin.read_changes,
            ours.DigestLogRequest: admin.digest_log,
            ours.SchemasRequest: SchemaHandler(self.broker).handle,
            ours.HelloRequest: admin.hello,
            extension_requests.StatusRequest: admin.status,
            extension_requests.ShutdownRequest: admin.shutdown,
            replica_requests.ReplicaFetchRequest: replica_read,
            replica_requests.SessionFetchRequest: replica_read,
            cluster_requests.ListUnknownReplicasRequest: control.handle,
            replica_requests.ProbeBrokerRequest: control.handle,
            **dict.fromkeys(by_controller, control.handle),
        }

    def reconfigure(self, config: BrokerConfig) -> None:
        """Use other limits from now on; callable from any thread."""
        self._validator.max_message_bytes = config.max_message_bytes

    def handle_all(
        self, frames: Frames, client: ConnectedClient, arrived_s: float
    ) -> list[Outcome]:
        """Return the outcomes of frames that a worker handles."""
        began_s = time.perf_counter()
        self.metrics.offloaded_count += 1
        found = [outcome for _, outcome in self.handle(frames, client, arrived_s)]
        self.metrics.forget_topics()  # a worker has no turns to do it in
        worked_s = time.perf_counter() - began_s
        self.metrics.busy_s += worked_s
        client.worked_s = worked_s
        return found

    def handle(
        self, frames: Frames, client: ConnectedClient, arrived_s: float
    ) -> Iterator[tuple[int, Outcome]]:
        """See `Handlers.handle`."""
        self._validator.begin_turn()
        started_s = time.perf_counter()  # of the request at `position`
        end_s = started_s + TURN_S
        position = single_end = 0
        frame_count = len(frames.bounds) - 1
        try:
            while position < frame_count:
                if position and (self._validator.is_turn_used_up or started_s > end_s):
                    yield position, YieldTurn()
                    return
                if client.authentication.state is not authentication.AuthState.ANONYMOUS:
                    client.authentication.check(_type_of(frames[position]))
                if position >= single_end and (appends := decode_single_appends(frames, position)):
                    rights = self._judge.judge(PublishRequest, client)  # of produce, too
                    together = self._produce.append_together(
                        appends, client.refused, rights, is_one=appends.end - position == 1
                    )
                    if together is None:
                        single_end = appends.end
                        # or the next turn would join the rest again, for one request of this turn
                        end_s = time.perf_counter() + TURN_S
                    else:
                        outcome = together[0] if together else None
                        kind = PublishRequest if appends.is_publish else requests.ProduceRequest
                        client.has_published |= appends.is_publish
                        count = appends.end - position
                        group = RequestGroup.PRODUCE
                        started_s = self._note(
                            kind.TYPE, group, outcome, arrived_s, started_s, count
                        )
                        position = appends.end
                        if outcome is not None:
                            yield position, outcome
                        continue
                frame = frames[position]
                single = self._handle_one(frame, client)
                if isinstance(single, Future):
                    work = self._begin(frame, single, arrived_s, started_s)
                    started_s = time.perf_counter()
                    position += 1
                    yield position, work
                    continue
                # only now: one beyond the budget is handled again, by a worker
                started_s = self._note(*_kind(frame), single, arrived_s, started_s)
                position += 1
                if single is not None:
                    yield position, single
        except errors.AuthenticationStateError as error:
            for last in self._end(frames[position], error):
                yield frame_count, last
        except ValidationBudgetExceededError:
            yield position + 1, Offload(frames.only(position))
        except errors.ProtocolError as error:
            yield frame_count, CloseConnection(error, is_bad_frame=True)
        except errors.BrokerError as error:
            self._note(*_kind(frames[position]), None, arrived_s, started_s)
            yield frame_count, self._close(_group(frames[position]), error)

    def _note(
        self,
        request_type: int,
        group: RequestGroup,
        outcome: Response | None,
        arrived_s: float,
        started_s: float,
        count: int = 1,
    ) -> float:
        """Count requests that are handled, together, and their times; return the time."""
        ended_s = time.perf_counter()
        metrics = self.metrics
        metrics.requests[request_type] += count
        is_complete = True
        if outcome is not None:
            outcome.group = group
            if isinstance(outcome, DelayedResponse):
                outcome.arrived_s = arrived_s
                is_complete = False  # its total time follows when it is
        metrics.times[group].record(arrived_s, started_s, ended_s, count, is_complete)
        return ended_s

    def _begin(
        self, frame: memoryview, future: Future[Any], arrived_s: float, started_s: float
    ) -> Work:
        """Count a request that another thread handles; its times follow in `finish`."""
        reader = Reader(frame)
        request_type = reader.int16()
        self.metrics.requests[request_type] += 1
        correlation_id = None
        if request_type >= requests.FIRST_EXTENSION_TYPE:
            correlation_id = requests.RequestHeader.decode(reader).correlation_id
        return Work(future, _group(frame), correlation_id, arrived_s, started_s)

    def finish(self, work: Work) -> list[Response | CloseConnection]:
        """Return the outcome of a request that another thread has handled."""
        times = self.metrics.times[work.group]
        times.record(work.arrived_s, work.started_s, time.perf_counter(), 1, True)
        try:
            found: list[Response] = work.future.result()
        except errors.ServerError as error:
            if work.correlation_id is not None:
                refusal = self._refuse(work.group, work.correlation_id, error)
                if isinstance(error, errors.AuthenticationError):
                    return [refusal, CloseConnection(error, is_bad_frame=False)]
                found = [refusal]
            else:
                return [self._close(work.group, error)]
        except errors.ProtocolError as error:
            return [CloseConnection(error, is_bad_frame=True)]
        except errors.BrokerError as error:
            return [self._close(work.group, error)]
        for one in found:
            one.group = work.group
        return [*found]

    def _end(
        self, frame: memoryview, error: errors.AuthenticationStateError
    ) -> Iterator[Response | CloseConnection]:
        """Refuse a request as the identity of its connection has ended, and close that."""
        reader = Reader(frame)
        with suppress(errors.ProtocolError):  # whose text or end is missing has no answer
            if reader.int16() >= requests.FIRST_EXTENSION_TYPE:
                header = requests.RequestHeader.decode(reader)
                yield self._refuse(_group(frame), header.correlation_id, error)
        yield CloseConnection(error, is_bad_frame=False)

    def _close(self, group: RequestGroup, error: errors.BrokerError) -> CloseConnection:
        """Return the refusal of one of 0.7's requests."""
        if isinstance(error, errors.ServerError):
            self.metrics.errors.note(group, error.code)
        return CloseConnection(error, is_bad_frame=False)

    def _refuse(
        self, group: RequestGroup, correlation_id: int, error: errors.ServerError
    ) -> Response:
        """Return the refusal of one of our requests."""
        self.metrics.errors.note(group, error.code)
        return Response(encode_extension_error(correlation_id, error.code, str(error)))

    def _handle_one(self, frame: memoryview, client: ConnectedClient) -> _Outcome | None:
        reader = Reader(frame)
        request_type = reader.int16()
        if request_type >= requests.FIRST_EXTENSION_TYPE:
            return self._handle_extension(request_type, reader, frame, client)
        if request_type not in requests.BASE_REQUESTS:
            raise errors.ProtocolError(f"request {request_name(request_type)} is unknown")
        request = requests.decode_request(frame)
        rights = self._judge.judge(request, client)
        dispatch = partial(self._dispatch_of_07, request, client, rights)
        return dispatch() if rights is None else _audited(rights, dispatch)

    def _dispatch_of_07(
        self, request: requests.BaseRequest, client: ConnectedClient, rights: Rights | None
    ) -> _Outcome | None:
        self._refuse_kafka_topics(request, rights)
        match request:
            case requests.FetchRequest():
                return self._fetch.fetch((request,), rights, is_multifetch=False)
            case requests.MultiFetchRequest():
                return self._fetch.fetch(request.fetches, rights, is_multifetch=True)
            case requests.OffsetsRequest():
                return _when_done(self._fetch.offsets(request, rights))
            case requests.ProduceRequest() | requests.MultiProduceRequest():
                return self._append(append_request(request, 0), client, rights)

    def _refuse_kafka_topics(self, request: requests.BaseRequest, rights: Rights | None) -> None:
        """Refuse what 0.7 asks of topics whose messages it cannot read or write."""
        match request:
            case requests.MultiFetchRequest():
                topics = {one.topic for one in request.fetches}
            case requests.MultiProduceRequest():
                topics = {one.topic for one in request.produces}
            case _:
                topics = {request.topic}
        for topic in topics:
            if self.broker.replicas.format_of(topic) != FORMAT_KAFKA:
                continue
            if rights is None or rights.refusal(topic) is None:  # else it must not show
                raise errors.WrongFormatError(
                    f"topic '{topic}' has format kafka, which requests of 0.7 cannot use"
                )

    def _append(
        self, append: AppendRequest, client: ConnectedClient, rights: Rights | None
    ) -> _Outcome | None:
        return _when_done(self._produce.append(append, client, rights))

    def _handle_extension(
        self, request_type: int, reader: Reader, frame: memoryview, client: ConnectedClient
    ) -> _Outcome | None:
        header = requests.RequestHeader.decode(reader)
        client.id = header.client_id
        try:
            kind = EXTENSION_REQUESTS.get((request_type, header.version))
            if kind is None:
                raise errors.UnsupportedVersionError(
                    f"request {request_name(request_type)} version {header.version} is unknown here"
                )
            client.has_published |= issubclass(
                kind, PublishRequest
            )  # also one that is refused below
            self._judge.check_order(client, kind, reader.rest)
            if kind is replica_requests.PushStatesRequest:
                return self.broker.control.push(reader.rest, header)
            if kind is AuthenticateRequest:
                return self._authenticate(kind.decode(reader), header, client)
            if issubclass(kind, ControllerRequest):
                _check_length(reader.remaining)
            if kind in _READS:
                self._fetch.check_position_count(position_count(reader.rest))
            request = kind.decode(reader)
            rights = self._judge.judge(request, client)
            dispatch: Callable[[], _Outcome | None]
            if isinstance(request, PublishRequest):
                append = append_request(request, header.correlation_id)
                dispatch = partial(self._append, append, client, rights)
            else:
                context = RequestContext(header, client, rights)
                dispatch = partial(self._routes[kind], request, context)
            outcome = dispatch() if rights is None else _audited(rights, dispatch)
            if isinstance(outcome, Future) and isinstance(request, LIMITED):
                outcome.add_done_callback(partial(self._note_created, request, client, rights))
            return outcome
        except errors.ServerError as error:
            return self._refuse(_group(frame), header.correlation_id, error)

    def _note_created(
        self, request: Any, client: ConnectedClient, rights: Rights | None, outcome: Future[Any]
    ) -> None:
        """Have a creation audited that nothing refused: refused ones have no end."""
        if not outcome.cancelled() and not creation_limits.is_refusal(outcome.exception()):
            self._judge.note_allowed(request, client, rights)

    def _authenticate(
        self, request: AuthenticateRequest, header: requests.RequestHeader, client: ConnectedClient
    ) -> Future[list[Response]]:
        """Have a worker take a step of an exchange; what is pipelined behind waits for it.

        A proof of a password waits for the failures of its user and address. Keys of brokers
        cannot be guessed: so brokers do not wait for a client that uses their address.
        """
        outcome: Future[list[Response]] = Future()
        outcome.set_running_or_notify_cancel()  # completed even if the client leaves

        is_broker = request.mechanism == CLUSTER_PROOF
        delays, logins = self.broker.delays, self.broker.logins

        def take() -> None:
            try:
                answer = client.authentication.take(request)
                if answer.is_done:
                    if not is_broker:
                        delays.forget(client.address, client.named_user)
                    self.broker.admit(client)
            except errors.ServerError as error:
                self._judge.note_failed_login(client, request, error)
                refuse = partial(outcome.set_exception, error)
                if not isinstance(error, errors.AuthenticationFailedError):
                    refuse()
                elif is_broker:  # no user's failure
                    delays.run_later(failure_delays.FIRST_DELAY_S, refuse)
                else:
                    delays.after_failure(client.address, client.named_user, refuse)
            except Exception as bug:  # it costs one connection
                outcome.set_exception(bug)
                raise
            else:
                context = RequestContext(header, client, None)
                outcome.set_result([context.respond(AUTHENTICATED.encode(answer))])

        def take_in_turn(*, is_last: bool = False) -> None:
            # here, so that it knows of the failures of all logins that were judged before
            wait_s = delays.take_turn(
                client.address, client.named_user, is_taken=bool(request.step)
            )
            if wait_s > failure_delays.MAX_WAIT_S:
                refuse_late(is_last=is_last)
            elif wait_s and request.step:
                delays.run_later(wait_s, lambda: logins.submit(logged(take)))
            else:
                take()

        def refuse_late(*, is_last: bool = False) -> None:
            """Refuse a login without a turn later, unless it has one then: a user got in."""
            if not is_last:
                again = logged(partial(take_in_turn, is_last=True))
                delays.run_later(failure_delays.MAX_DELAY_S, lambda: logins.submit(again))
                return
            client.authentication.fail()
            error = errors.AuthenticationStateError(
                "too many logins from this address have failed, and others wait: try later",
                details={"user": client.named_user} if client.named_user else None,
            )
            self._judge.note_failed_login(client, request, error)
            outcome.set_exception(error)

        if is_broker:
            logins.submit(logged(take))
        elif request.step:
            logins.submit(logged(take_in_turn))
        else:
            client.name_user(request)
            turn = delays.take_turn(client.address, client.named_user, is_taken=False)
            if turn > failure_delays.MAX_WAIT_S:
                refuse_late()  # without work for the threads of logins
            else:
                logins.submit(logged(take))
        return outcome


def _type_of(frame: memoryview) -> int:
    """Return the type of a request; -1 for a frame too short for one."""
    return INT16.unpack_from(frame)[0] if len(frame) >= INT16.size else -1


def _kind(frame: memoryview) -> tuple[int, RequestGroup]:
    request_type: int = INT16.unpack_from(frame)[0]
    return request_type, request_group(request_type, frame)


def _group(frame: memoryview) -> RequestGroup:
    return _kind(frame)[1]


def _check_length(size: int) -> None:
    """Refuse a request to the controller that is too long to be decoded on a network thread."""
    if size > MAX_CONTROLLER_REQUEST_BYTES:
        raise errors.InvalidRequestError(
            f"a request of {size} bytes to the controller is too long: "
            f"{MAX_CONTROLLER_REQUEST_BYTES} are possible; name fewer partitions at a time"
        )


def _audited(rights: Rights, dispatch: Callable[[], _Outcome | None]) -> _Outcome | None:
    """Dispatch a request; what is refused of it is audited together, once that is decided."""
    outcome: _Outcome | None = None
    try:
        outcome = dispatch()
    finally:
        if isinstance(outcome, Future):
            outcome.add_done_callback(lambda _: rights.audit())
        else:
            rights.audit()
    if isinstance(outcome, DelayedResponse):
        outcome.after_attempt = rights.audit
    return outcome


def _when_done(outcome: Response | Future[Response | None] | None) -> _Outcome | None:
    """Return what is done with the outcome, but can be cancelled without cancelling the work."""
    if not isinstance(outcome, Future):
        return outcome
    outcomes: Future[list[Response]] = Future()

    def take(done: Future[Response | None]) -> None:
        if not outcomes.set_running_or_notify_cancel():
            return  # the client has left
        error = None if done.cancelled() else done.exception()
        if error is not None:
            outcomes.set_exception(error)
        else:
            response = None if done.cancelled() else done.result()
            outcomes.set_result([] if response is None else [response])

    outcome.add_done_callback(take)
    return outcomes
