"""Our own requests about the broker and its topics: hello, metadata, offsets, topics, shutdown.

Requests that read or change files are handled on a worker thread.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from broker import errors
from broker.log.damage import digest_of
from broker.log.log import Log
from broker.protocol import responses
from broker.protocol.client_requests import (
    ClusterMetadataRequest,
    DigestLogRequest,
    HelloRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    MoveLogRequest,
    ReadChangesRequest,
    ShutdownRequest,
    StatusRequest,
)
from broker.protocol.layouts import DATA, EXTENSION_REQUESTS
from broker.protocol.primitives import Buffer
from broker.protocol.requests import RequestType
from broker.server.cluster.cluster_view import LARGE_TOPIC_COUNT, MAX_METADATA_BYTES
from broker.server.cluster.storage_faults import damage_in
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.judge import RequestContext, Rights
from broker.server.requests.metrics import RequestErrors
from broker.server.requests.purgatory import DelayedResponse, Part, RequestGroup, Response
from broker.topic import FORMAT_KAFKA, NO_HOME, TopicPartition, validate_topic_name

logger = logging.getLogger(__name__)

_SLICE_S = 0.005
"""How long a worker lists offsets for one request before it takes those of another."""
SHUTDOWN_DEADLINE_S = 3600.0
_SHARED_BYTES = 1 << 14
"""Partitions that take more in a metadata response are not copied into it."""
_Responses = Future[list[Response]]


def _on_worker(
    make_body: Callable[[AdminHandler, Any, RequestContext], bytes],
) -> Callable[[AdminHandler, Any, RequestContext], _Responses]:
    """Have the body of a response made on a worker thread, as files are read or changed."""

    def handle(handler: AdminHandler, request: Any, context: RequestContext) -> _Responses:
        body = partial(make_body, handler, request, context)
        return handler.broker.workers.submit(lambda: [_respond(context, body)])

    return handle


@dataclass(eq=False)
class AdminHandler:
    """Handles requests about the broker, its topics and their offsets, for one thread."""

    broker: BrokerParts
    refusals: RequestErrors
    _encoded_partitions: bytes = field(default=b"", init=False)

    def list_offsets(self, request: ListOffsetsRequest, context: RequestContext) -> _Responses:
        """List offsets; on a worker, as that may read part of a segment."""

        def list_offset(query: OffsetQuery) -> responses.ListedOffset:
            listed = self._try_offset(query, context.rights)
            if listed.error != errors.NO_ERROR:
                self.refusals.note(RequestGroup.OTHER, listed.error)
            return listed

        return _Listing(self.broker.workers, request.queries, list_offset, context).start()

    def _try_offset(self, query: OffsetQuery, rights: Rights | None) -> responses.ListedOffset:
        partition = query.partition
        try:
            if rights is not None and (refusal := rights.refusal(partition.topic)) is not None:
                validate_topic_name(partition.topic)
                return responses.ListedOffset(partition, refusal.code, -1, 0, 0)
            log = self.broker.replicas.find_served(partition)
            if log is None:
                return responses.ListedOffset(partition, *self._empty_log(partition), 0, 0)
            if log.is_replicated and _depends_on_end(query, log):
                self.broker.replicas.leader_of(log.partition).check_latest()
            if query.kind is OffsetKind.TERM_END:
                offset = self._end_of_term(log, query.argument)
            else:
                offset = _offset_for(log, query.kind, query.argument)
        except errors.ServerError as error:
            leader = error.leader if isinstance(error, errors.NotLeaderError) else -1
            return responses.ListedOffset(partition, error.code, leader, -1, -1)
        return responses.ListedOffset(
            partition, errors.NO_ERROR, offset, log.log_start_offset, log.high_watermark
        )

    def _end_of_term(self, log: Log, term: int) -> int:
        """Return where a term ends in the log; also a term before the topic got its replicas."""
        if not log.is_replicated:
            return log.incarnations.end_of_term(term, log.log_end_offset)
        end = self.broker.replicas.leader_of(log.partition).end_of_term(term)
        return end if end >= 0 else log.incarnations.end_of_term(term, log.log_end_offset)

    def _empty_log(self, partition: TopicPartition) -> tuple[int, int]:
        """Return error and offset of a partition without a log."""
        validate_topic_name(partition.topic)
        if partition.topic not in self.broker.logs.topics:
            return errors.UnknownTopicError.code, -1
        try:
            self.broker.logs.table.validate_partition(partition.topic, partition.index)
        except errors.WrongPartitionError as error:
            return error.code, -1
        return errors.NO_ERROR, 0

    def metadata(self, request: MetadataRequest, context: RequestContext) -> Response | _Responses:
        """List this broker's topics and the partitions it leads; a topic named twice once."""
        asked = dict.fromkeys(
            self.broker.logs.topics.names() if request.topics is None else request.topics
        )
        if len(asked) <= LARGE_TOPIC_COUNT:
            return self._metadata(request, asked, context)
        return self.broker.listers.submit(lambda: [self._metadata(request, asked, context)])

    def _metadata(
        self, request: MetadataRequest, asked: dict[str, None], context: RequestContext
    ) -> Response:
        rights = context.rights
        hidden = _hidden(asked, rights, are_named=request.topics is not None)
        if request.topics is None:
            asked = {topic: None for topic in asked if topic not in hidden}
        address = self.broker.address(context.client.listener)
        cluster_id = self.broker.hello().cluster_id
        if cluster_id and not _knows_cluster(rights):
            cluster_id = responses.HIDDEN_CLUSTER
        small: list[Buffer] = [responses.encode_metadata_header(cluster_id, address, len(asked))]
        parts: list[Part] = []
        body_bytes = len(small[0])
        unknown_count = 0
        for topic in asked:
            is_known = topic in self.broker.logs.topics and topic not in hidden
            unknown_count += not is_known
            error = errors.NO_ERROR if is_known else errors.UnknownTopicError.code
            if is_known and self.broker.replicas.format_of(topic) == FORMAT_KAFKA:
                error = errors.WrongFormatError.code  # its partitions have no home, and one leader
            count = self.broker.logs.topics.partition_count(topic) if not error else 0
            head = responses.encode_topic_metadata_header(topic, error, count)
            body_bytes += len(head) + count * responses.LED_PARTITION_BYTES
            if body_bytes > MAX_METADATA_BYTES:
                raise errors.ResponseTooLargeError(
                    f"the topics asked for have too many partitions for one response of "
                    f"{MAX_METADATA_BYTES} bytes; ask for fewer topics, by name"
                )
            small.append(head)
            partitions = self._led_partitions(address.id, count)
            if len(partitions) < _SHARED_BYTES:
                small.append(partitions)
            else:
                parts += (b"".join(small), partitions)
                small = []
        self._note_unknown(unknown_count)
        if small:  # see `_respond`
            parts.append(b"".join(small))
        header_part = responses.encode_extension_header(context.header.correlation_id, body_bytes)
        return Response(header_part, *parts)

    def _note_unknown(self, count: int) -> None:
        if count:
            self.refusals.note(RequestGroup.METADATA, errors.UnknownTopicError.code, count)

    def cluster_metadata(
        self, request: ClusterMetadataRequest, context: RequestContext
    ) -> Response | _Responses:
        """List the brokers of the cluster, and topics with all their partitions."""
        ready, rights, listener = self.broker.view.ready, context.rights, context.client.listener

        def make_body() -> bytes:
            ready.result()  # raises if the broker stops before it has read the registry
            snapshot = self.broker.view.snapshot()
            named = request.topics or ()
            hidden = _hidden(named or snapshot.topics, rights, are_named=bool(named))
            self._note_unknown(sum(one in hidden or not snapshot.has(one) for one in named))
            return snapshot.encode(
                request.topics, listener, hidden, tells_cluster=_knows_cluster(rights)
            )

        if ready.done():
            may_hide = rights is not None
            if self.broker.view.snapshot().is_cheap(request.topics, listener, may_hide=may_hide):
                return _respond(context, make_body)
            return self.broker.listers.submit(lambda: [_respond(context, make_body)])
        done: _Responses = Future()

        def end_wait(_: Future[None]) -> None:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result([_respond(context, make_body)])
                except errors.ServerError as error:
                    done.set_exception(error)

        # a broker that has just started responds once it has read the registry
        ready.add_done_callback(end_wait)
        return done

    def _led_partitions(self, broker_id: int, count: int) -> memoryview:
        """Return the encoded partitions of a topic, which are the same for every topic."""
        encoded = self._encoded_partitions  # which another thread may replace
        known_count = len(encoded) // responses.LED_PARTITION_BYTES
        if count > known_count:
            encoded += responses.encode_led_partitions(broker_id, range(known_count, count))
            self._encoded_partitions = encoded
        return memoryview(encoded)[: count * responses.LED_PARTITION_BYTES]

    def create_topic(self, request: CreateTopicRequest, context: RequestContext) -> _Responses:
        """Create a topic without replicas, on a thread that may wait for other brokers."""
        rights, who = context.rights, context.limited

        def make_body() -> bytes:
            try:
                return request.RESPONSE.encode(self.broker.creations.carry_out(request, who))
            except errors.TopicExistsError as error:
                if rights is None:
                    raise
                raise rights.of_existing(request.topic, error) from None

        return self.broker.creations.workers.submit(lambda: [_respond(context, make_body)])

    @_on_worker
    def delete_topic(self, request: DeleteTopicRequest, context: RequestContext) -> bytes:
        """Delete a topic without replicas: its logs are flushed and moved aside."""
        if request.topic in self.broker.replicas.topics:
            raise errors.InvalidRequestError(
                f"topic '{request.topic}' has replicas on several brokers: ask the "
                "controller to delete it (version 1 of the request, or `pylogctl topic "
                f"delete {request.topic} --data`)"
            )
        if self.broker.replicas.is_lost(request.topic):
            raise errors.InvalidRequestError(
                f"there are logs of replicas of topic '{request.topic}', of which the "
                "controller has not told: if ZooKeeper has lost it, `pylogctl cluster "
                "recover` restores it, or discards them"
            )
        self.broker.logs.deletions.delete_topic(request.topic)
        logger.info("deleted topic '%(topic)s'", {"topic": request.topic})
        return b""

    @_on_worker
    def move_log(self, request: MoveLogRequest, context: RequestContext) -> bytes:
        """Start to move a log to another data directory, or report on its latest move."""
        partition = request.partition
        if partition.home == -1:
            partition = self.broker.at_home(partition.topic, partition.index)
        if request.directory:
            move = self.broker.logs.moves.add(partition, Path(request.directory))
        else:
            latest = self.broker.logs.moves.latest(partition)
            if latest is None:
                raise errors.InvalidRequestError(
                    f"no move of {partition} was asked for since the broker started"
                )
            move = latest
        if move.error is not None:
            raise move.error
        report = {
            "directory": str(move.target.absolute()),
            "copied_bytes": move.copied_bytes,
            "total_bytes": move.total_bytes,
            "done": move.is_done,
        }
        return DATA.encode(json.dumps(report).encode())

    @_on_worker
    def read_changes(self, request: ReadChangesRequest, context: RequestContext) -> bytes:
        """Return lines of the state-change log."""
        try:
            found = self.broker.changes.read(request.position)
        except OSError as error:
            raise errors.StorageError(f"the state-change log cannot be read: {error}") from error
        return responses.CHANGES.encode(responses.LoggedLines(*found))

    @_on_worker
    def digest_log(self, request: DigestLogRequest, context: RequestContext) -> bytes:
        """Return the digest of a range of any replica here, and whether messages are damaged."""
        log = self.broker.logs.table.find(request.partition)
        if log is None:
            raise errors.WrongPartitionError(f"this broker has no log of {request.partition}")
        digest = digest_of(log, request.offset, request.length)
        damage = damage_in(self.broker.replicas, log, request.offset, request.length)
        return responses.LOG_DIGEST.encode(digest._replace(damage=damage))

    def hello(self, request: HelloRequest, context: RequestContext) -> Response:
        """Tell the broker's id, software and supported versions; strangers not what it runs on."""
        hello = self.broker.hello()
        if not _knows_cluster(context.rights):
            cluster_id = responses.HIDDEN_CLUSTER if hello.cluster_id else ""
            software = hello.software.partition(" ")[0]
            hello = hello._replace(cluster_id=cluster_id, software=software)
        return context.respond(responses.HELLO.encode(hello))

    @_on_worker
    def status(self, request: StatusRequest, context: RequestContext) -> bytes:
        """Return the state and counters as JSON; with many logs that takes long."""
        document = self.broker.status(request.parts, request.topic)
        return DATA.encode(json.dumps(document, separators=(",", ":")).encode())

    def shutdown(self, request: ShutdownRequest, context: RequestContext) -> DelayedResponse:
        """Start the shutdown; the response comes at its end, with all its steps."""

        def attempt(is_last: bool) -> list[Part] | None:
            if not is_last:
                return None
            return [context.frame(DATA.encode(self.broker.shutdown.report()))]

        self.broker.shutdown.request(force=request.force)
        deadline_s = self.broker.clock.monotonic_s() + SHUTDOWN_DEADLINE_S
        return DelayedResponse(attempt, deadline_s, [], lingers=True)


def _respond(context: RequestContext, make_body: Callable[[], bytes]) -> Response:
    """Return the response with a body."""
    body = make_body()
    head = responses.encode_extension_header(context.header.correlation_id, len(body))
    # the last part must not be empty: the system holds what is sent before it, for 0.2 s
    return Response(head, body) if body else Response(head)


@dataclass(eq=False)
class _Listing:
    """The offsets of one request, listed on the workers in slices, in turn with other requests."""

    workers: Executor
    queries: Sequence[OffsetQuery]
    list_offset: Callable[[OffsetQuery], responses.ListedOffset]
    context: RequestContext
    _listed: list[responses.ListedOffset] = field(default_factory=list, init=False)
    _done: _Responses = field(default_factory=Future, init=False)

    def start(self) -> _Responses:
        """Start; the future is done with the response. Cancelling it ends the work."""
        self.workers.submit(self._list_some).add_done_callback(self._go_on)
        return self._done

    def _go_on(self, slice_: Future[None]) -> None:
        error = slice_.exception()
        if self._done.cancelled():
            return
        if len(self._listed) < len(self.queries) and error is None:
            self.workers.submit(self._list_some).add_done_callback(self._go_on)
        elif not self._done.set_running_or_notify_cancel():
            return
        elif error is not None:  # a bug, which costs the connection
            self._done.set_exception(error)
        else:
            self._done.set_result(
                [self.context.respond(responses.LISTED_OFFSETS.encode(self._listed))]
            )

    def _list_some(self) -> None:
        end_s = time.perf_counter() + _SLICE_S
        for query in self.queries[len(self._listed) :]:
            self._listed.append(self.list_offset(query))
            if time.perf_counter() > end_s or self._done.cancelled():
                return


def supported_versions() -> dict[int, tuple[int, int]]:
    """Return the least and greatest version of every extension request the broker knows."""
    versions: dict[int, tuple[int, int]] = {}
    for request_type, version in sorted(EXTENSION_REQUESTS):
        least, greatest = versions.get(request_type, (version, version))
        versions[int(request_type)] = (min(least, version), max(greatest, version))
    return versions


def request_name(request_type: int) -> str:
    """Return the name of a request type for messages."""
    if request_type in RequestType.__members__.values():
        return RequestType(request_type).name.lower()
    return f"type {request_type}"


def _depends_on_end(query: OffsetQuery, log: Log) -> bool:
    """Return whether the response to a query can depend on the high watermark."""
    if query.kind in (OffsetKind.BOUNDARY_BEFORE, OffsetKind.BOUNDARY_AFTER):
        return query.argument > log.high_watermark
    return query.kind is not OffsetKind.EARLIEST


def _offset_for(log: Log, kind: OffsetKind, argument: int) -> int:
    match kind:
        case OffsetKind.EARLIEST:
            return log.log_start_offset
        case OffsetKind.LATEST:
            return log.high_watermark
        case OffsetKind.LOG_END:
            return log.log_end_offset
        case OffsetKind.BEFORE_TIME if log.partition.home == NO_HOME:
            found = log.offset_at(max(argument, 0))
            high_watermark = log.high_watermark
            return high_watermark if found is None else min(found.offset, high_watermark)
        case OffsetKind.BEFORE_TIME:
            return next(iter(log.offsets_before(max(argument, 0), 1)), -1)
        case OffsetKind.BOUNDARY_BEFORE:
            return log.boundary_at_or_before(argument)
        case OffsetKind.BOUNDARY_AFTER:
            return log.boundary_at_or_after(argument)
        case OffsetKind.TERM_END:
            raise AssertionError("only the replicas know it")


def _knows_cluster(rights: Rights | None) -> bool:
    return rights is None or rights.knows_cluster


def _hidden(topics: Iterable[str], rights: Rights | None, *, are_named: bool) -> frozenset[str]:
    """Return the topics that a client may not know of, which it has named or not."""
    return frozenset() if rights is None else rights.hidden(topics, are_named=are_named)
