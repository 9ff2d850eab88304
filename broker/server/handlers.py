"""From frames to answers: which request goes where, and what a bad one costs.

Knows no socket. A `Close` says that the connection must go, as 0.7's only way to say no.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from broker.errors import (
    BrokerError,
    ProtocolError,
    ServerError,
    ShuttingDownError,
    UnsupportedVersionError,
)
from broker.protocol.extension_requests import (
    EXTENSION_REQUESTS,
    CreateTopicRequest,
    DeleteTopicRequest,
    ExtensionRequest,
    FilteredReadRequest,
    HelloRequest,
    LookupRequest,
    MetadataRequest,
    PublishRequest,
    ReadRequest,
    ShutdownRequest,
    StatusRequest,
)
from broker.protocol.primitives import INT16, Reader
from broker.protocol.requests import (
    BASE_REQUESTS,
    FIRST_EXTENSION_TYPE,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    RequestHeader,
    RequestType,
    decode_request,
)
from broker.protocol.responses import encode_extension_error
from broker.server.admin import ExtensionHandler, Host, request_name
from broker.server.checking import SetChecker, TooMuchToCheckError
from broker.server.fetch import FetchHandler
from broker.server.filtered_read import FilteredReadHandler
from broker.server.produce import ProduceHandler
from broker.server.publish_run import PublishRunHandler
from broker.server.purgatory import Answer, Parked

_PRODUCE = INT16.pack(RequestType.PRODUCE)
_PUBLISH = INT16.pack(RequestType.PUBLISH)
_SMALL_BYTES = 4096
"""A publish alone is taken as a run up to here: a larger set must not be checked twice."""


@dataclass(frozen=True, slots=True)
class Close:
    """The connection is of no further use.

    `is_bad_frame` tells bytes that are no request from requests that were refused.
    """

    reason: BrokerError
    is_bad_frame: bool


@dataclass(frozen=True, slots=True)
class Deferred:
    """Requests that take too long for a processor: nothing was done about them yet.

    A worker's handlers, whose checker has no limit, have to handle them before any that follow.
    """

    frames: list[memoryview]


@dataclass(frozen=True, slots=True)
class TurnOver:
    """It is time to serve other connections; the requests that follow have to wait for a while."""


Outcome = Answer | Parked | Close | Deferred | TurnOver


class RequestHandlers:
    """Handles the frames of one processor's connections.

    Args:
        host: the broker.
        checker: what produce requests are checked with.
        produce: takes runs of produce requests.
        publish_runs: takes runs of publish requests.
        fetch: answers reads.
        filtered: answers reads with a filter.
        extension: answers the rest of our own requests.
    """

    def __init__(
        self,
        host: Host,
        checker: SetChecker,
        produce: ProduceHandler,
        publish_runs: PublishRunHandler,
        fetch: FetchHandler,
        filtered: FilteredReadHandler,
        extension: ExtensionHandler,
    ) -> None:
        self._host = host
        self._checker = checker
        self._produce = produce
        self._publish_runs = publish_runs
        self._fetch = fetch
        self._filtered = filtered
        self._extension = extension

    def handle(self, frames: list[memoryview]) -> Iterator[tuple[int, Outcome]]:
        """Handle frames in order, each when what the one before it led to has been taken.

        Args:
            frames: without size fields, in the order they came.

        Yields:
            For each request that is answered, how many frames are handled with it, and its answer,
            known or parked; a `Close` comes last and stands for the request that caused it and
            all behind it. After a `Deferred` or a `TurnOver`, which come last too, the rest is for
            another call.
        """
        self._checker.begin_turn()
        place = single_end = 0
        try:
            while place < len(frames):
                if place and self._checker.is_turn_over:
                    yield place, TurnOver()
                    return
                if (end := _end_of_run(frames, place, _PRODUCE)) > place:
                    self._check_taking()
                    place += self._produce.handle_run(frames[place:end])
                    continue
                outcomes = None
                if place >= single_end:
                    single_end = _end_of_run(frames, place, _PUBLISH)
                    outcomes = self._publish_together(frames[place:single_end])
                if outcomes is not None:
                    place = single_end
                else:
                    outcomes = self._handle_singly(frames[place])
                    place += 1
                for outcome in outcomes:
                    yield place, outcome
        except TooMuchToCheckError:
            yield place + 1, Deferred(frames[place : place + 1])
        except ProtocolError as error:
            yield len(frames), Close(error, is_bad_frame=True)
        except BrokerError as error:
            yield len(frames), Close(error, is_bad_frame=False)

    def _publish_together(self, frames: list[memoryview]) -> list[Answer | Parked] | None:
        """Return the answers to publish requests, None if each is to be handled singly."""
        is_run = len(frames) > 1 or (len(frames) == 1 and len(frames[0]) <= _SMALL_BYTES)
        return self._publish_runs.handle(frames) if is_run else None

    def _check_taking(self) -> None:
        if self._host.refuses_appends():
            raise ShuttingDownError("the broker is shutting down")

    def _handle_singly(self, frame: memoryview) -> list[Answer | Parked]:
        outcome = self._handle_one(frame)
        return [] if outcome is None else [outcome]

    def _handle_one(self, frame: memoryview) -> Answer | Parked | None:
        reader = Reader(frame)
        request_type = reader.int16()
        if request_type >= FIRST_EXTENSION_TYPE:
            return self._handle_extension(request_type, reader)
        if request_type not in BASE_REQUESTS:
            raise ProtocolError(f"request {request_name(request_type)} is unknown")
        match decode_request(frame):
            case FetchRequest() as request:
                return self._fetch.fetch(request)
            case MultiFetchRequest() as request:
                return self._fetch.multifetch(request)
            case OffsetsRequest() as request:
                return self._fetch.offsets(request)
            case MultiProduceRequest() as request:
                self._check_taking()
                self._produce.handle_multi(request)
        return None

    def _handle_extension(self, request_type: int, reader: Reader) -> Answer | Parked | None:
        header = RequestHeader.decode(reader)
        try:
            kind = EXTENSION_REQUESTS.get((request_type, header.version))
            if kind is None:
                raise UnsupportedVersionError(
                    f"request {request_name(request_type)} version {header.version} is unknown here"
                )
            return self._dispatch(kind.decode(reader), header)
        except ServerError as error:
            return Answer(encode_extension_error(header.correlation_id, error.code, str(error)))

    def _dispatch(self, request: ExtensionRequest, header: RequestHeader) -> Answer | Parked | None:
        match request:
            case PublishRequest():
                return self._extension.publish(request, header)
            case ReadRequest() | FilteredReadRequest():
                return self._read(request, header)
            case LookupRequest():
                return self._extension.lookup(request, header)
            case MetadataRequest():
                return self._extension.metadata(request, header)
            case CreateTopicRequest():
                return self._extension.create_topic(request, header)
            case DeleteTopicRequest():
                return self._extension.delete_topic(request, header)
            case HelloRequest():
                return self._extension.hello(header)
            case StatusRequest():
                return self._extension.status(header)
            case ShutdownRequest():
                return self._extension.shutdown(request, header)

    def _read(
        self, request: ReadRequest | FilteredReadRequest, header: RequestHeader
    ) -> Answer | Parked:
        if isinstance(request, FilteredReadRequest):
            return self._filtered.read(request, header)
        return self._fetch.read(request, header)


def _end_of_run(frames: list[memoryview], start: int, request_type: bytes) -> int:
    """Return where requests of a type end that follow one another."""
    for place in range(start, len(frames)):
        if frames[place][:2] != request_type:
            return place
    return len(frames)
