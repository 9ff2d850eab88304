"""Our own requests about the broker and its topics: hello, metadata, offsets, topics, shutdown."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from broker.clock import Clock
from broker.errors import (
    NO_ERROR,
    RequestTimedOutError,
    ServerError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.extension_requests import (
    EXTENSION_REQUESTS,
    CreateTopicRequest,
    DeleteTopicRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
    ShutdownRequest,
)
from broker.protocol.requests import RequestHeader, RequestType
from broker.protocol.responses import (
    BrokerAddress,
    HelloResponse,
    ListedOffset,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    encode_document,
    encode_extension_error,
    encode_extension_response,
    encode_list_offsets_response,
)
from broker.server.purgatory import DelayedResponse, Part, Response
from broker.topic import TopicPartition, validate_topic_name

logger = logging.getLogger(__name__)

WORK_DEADLINE_S = 60.0
"""How long a client waits for a worker."""
SHUTDOWN_DEADLINE_S = 3600.0
MAX_PARTITIONS = 10_000
"""Of a topic that a client creates on one broker: a metadata response lists each of them."""


class Host(Protocol):
    """The broker, as far as its handlers see it."""

    refuses_appends: bool
    """Whether the shutdown has reached the step that takes no more messages."""

    def hello(self) -> HelloResponse:
        """Return who this broker is."""

    def address(self) -> BrokerAddress:
        """Return the address that clients connect to."""

    def status(self) -> dict[str, Any]:
        """Return the state and counters as a document."""

    def request_shutdown(self, *, force: bool) -> None:
        """Start the shutdown; with `force`, also end its wait for clients."""

    def shutdown_report(self) -> bytes:
        """Return the steps of the shutdown so far as a JSON array."""


class AdminHandler:
    """Answers requests about the broker, its topics and their offsets.

    Args:
        host: the broker.
        logs: where the logs are.
        clock: for deadlines.
        workers: run what reads or changes many files.
        wake: has a processor attempt a delayed response again; callable from any thread.
    """

    def __init__(
        self,
        host: Host,
        logs: LogManager,
        clock: Clock,
        workers: ThreadPoolExecutor,
        wake: Callable[[DelayedResponse], None],
    ) -> None:
        self._host = host
        self._logs = logs
        self._clock = clock
        self._workers = workers
        self._wake = wake

    def _check_home(self, partition: TopicPartition) -> None:
        broker_id = self._host.address().id
        if partition.home not in (-1, broker_id):
            raise WrongPartitionError(f"broker {broker_id} does not lead {partition}")

    def list_offsets(self, request: ListOffsetsRequest, header: RequestHeader) -> DelayedResponse:
        """List offsets on a worker thread, as that may read part of a segment."""

        def work() -> bytes:
            return encode_list_offsets_response(
                [self._list_offset(query) for query in request.queries]
            )

        return self._respond_from_worker(work, header, "listing offsets")

    def _respond_from_worker(
        self, work: Callable[[], bytes], header: RequestHeader, name: str
    ) -> DelayedResponse:
        """Respond with the body that `work` returns on a worker thread, or with its error."""
        future = self._workers.submit(work)

        def attempt(is_last: bool) -> list[Part] | None:
            try:
                if future.done():
                    return [encode_extension_response(header.correlation_id, future.result())]
                if not is_last:
                    return None
                raise RequestTimedOutError(f"{name} took too long")
            except ServerError as error:
                return [encode_extension_error(header.correlation_id, error.code, str(error))]

        delayed = DelayedResponse(attempt, self._clock.monotonic_s() + WORK_DEADLINE_S, [])
        future.add_done_callback(lambda _: self._wake(delayed))
        return delayed

    def _list_offset(self, query: OffsetQuery) -> ListedOffset:
        partition = query.partition
        try:
            self._check_home(partition)
            log = self._logs.get(partition.topic, partition.index)
            if log is None:
                return ListedOffset(partition, *self._empty_log(partition), 0, 0)
            offset = _offset_for(log, query.kind, query.argument)
        except ServerError as error:
            return ListedOffset(partition, error.code, -1, -1, -1)
        return ListedOffset(partition, NO_ERROR, offset, log.log_start_offset, log.high_watermark)

    def _empty_log(self, partition: TopicPartition) -> tuple[int, int]:
        """Return error and offset of a partition without a log."""
        validate_topic_name(partition.topic)
        if partition.topic not in self._logs.topics():
            return UnknownTopicError.code, -1
        if not 0 <= partition.index < self._logs.partition_count(partition.topic):
            return WrongPartitionError.code, -1
        return NO_ERROR, 0

    def metadata(self, request: MetadataRequest, header: RequestHeader) -> Response:
        """List this broker's topics and the partitions it leads."""
        topics = self._logs.topics()
        known = frozenset(topics)
        asked = topics if request.topics is None else request.topics
        address = self._host.address()
        response = MetadataResponse(
            cluster_id=self._host.hello().cluster_id,
            brokers=(address,),
            topics=tuple(
                self._topic_metadata(topic, topic in known, address.id) for topic in asked
            ),
        )
        return Response(encode_extension_response(header.correlation_id, response.encode()))

    def _topic_metadata(self, topic: str, is_known: bool, broker_id: int) -> TopicMetadata:
        if not is_known:
            return TopicMetadata(topic, UnknownTopicError.code, ())
        only = (broker_id,)
        return TopicMetadata(
            topic,
            NO_ERROR,
            tuple(
                PartitionMetadata(
                    TopicPartition(topic, broker_id, index), NO_ERROR, broker_id, only, only
                )
                for index in range(self._logs.partition_count(topic))
            ),
        )

    def create_topic(self, request: CreateTopicRequest, header: RequestHeader) -> Response:
        """Create a topic.

        Raises:
            ServerError: it exists, its name or number of partitions is illegal, or the disk
                refuses.
        """
        if request.partition_count > MAX_PARTITIONS:
            raise WrongPartitionError(
                f"topic '{request.topic}' cannot have {request.partition_count} partitions: "
                f"the most is {MAX_PARTITIONS}"
            )
        self._logs.create_topic(request.topic, request.partition_count)
        return Response(encode_extension_response(header.correlation_id, b""))

    def delete_topic(self, request: DeleteTopicRequest, header: RequestHeader) -> DelayedResponse:
        """Delete a topic on a worker thread, as its logs are flushed and their files moved."""

        def work() -> bytes:
            self._logs.delete_topic(request.topic)
            logger.info("deleted topic '%s'", request.topic)
            return b""

        return self._respond_from_worker(work, header, f"deleting topic '{request.topic}'")

    def hello(self, header: RequestHeader) -> Response:
        """Say who the broker is."""
        return Response(
            encode_extension_response(header.correlation_id, self._host.hello().encode())
        )

    def status(self, header: RequestHeader) -> Response:
        """Return the state and counters as JSON."""
        document = json.dumps(self._host.status(), separators=(",", ":")).encode()
        return Response(encode_extension_response(header.correlation_id, encode_document(document)))

    def shutdown(self, request: ShutdownRequest, header: RequestHeader) -> DelayedResponse:
        """Start the shutdown; the response comes at its end, with all its steps."""

        def attempt(is_last: bool) -> list[Part] | None:
            if not is_last:
                return None
            body = encode_document(self._host.shutdown_report())
            return [encode_extension_response(header.correlation_id, body)]

        self._host.request_shutdown(force=request.force)
        deadline_s = self._clock.monotonic_s() + SHUTDOWN_DEADLINE_S
        return DelayedResponse(attempt, deadline_s, [], lingers=True)


def supported_versions() -> dict[int, tuple[int, int]]:
    """Return the least and greatest version of every extension request the broker knows."""
    versions: dict[int, tuple[int, int]] = {}
    for request_type, version in EXTENSION_REQUESTS:
        least, greatest = versions.get(request_type, (version, version))
        versions[int(request_type)] = (min(least, version), max(greatest, version))
    return versions


def request_name(request_type: int) -> str:
    """Return the name of a request type for messages."""
    if request_type in RequestType.__members__.values():
        return RequestType(request_type).name.lower()
    return f"type {request_type}"


def _offset_for(log: Log, kind: OffsetKind, argument: int) -> int:
    match kind:
        case OffsetKind.EARLIEST:
            return log.log_start_offset
        case OffsetKind.LATEST:
            return log.high_watermark
        case OffsetKind.LOG_END:
            return log.log_end_offset
        case OffsetKind.BEFORE_TIME:
            return next(iter(log.offsets_before(max(argument, 0), 1)), -1)
        case OffsetKind.BOUNDARY_BEFORE:
            return log.boundary_at_or_before(argument)
        case OffsetKind.BOUNDARY_AFTER:
            return log.boundary_at_or_after(argument)
