"""Reads of followers: up to the log's end, many partitions a request, from the page cache.

First the follower's progress in the request is noted, once; then the request waits, as any read,
until there are messages or news. Only then the messages are read, under the lock of the replica, so
that they are of the leader epoch that the response names.
"""

from __future__ import annotations

from typing import NamedTuple

from broker import errors
from broker.clock import Clock
from broker.cluster_state import EpochStart
from broker.log.segment import FileSlice
from broker.protocol.replica_requests import (
    NOTHING_DIVERGES,
    ReplicaFetchRequest,
    ReplicaPart,
    ReplicaPosition,
    encode_replica_part_header,
    refused_replica_part,
)
from broker.protocol.requests import RequestHeader
from broker.replication.leader import Leader
from broker.replication.positions import NO_DIVERGENCE, FetchAnswer, FetchPosition
from broker.server.cluster.hosted_replica import HostedReplica
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.purgatory import (
    DelayedResponse,
    DelayKind,
    Part,
    RequestGroup,
    Response,
)
from broker.server.requests.read_loop import ENOUGH, is_enough, read_parts

_POSITION_BYTES = 300
"""Memory of one position of a delayed read."""
_FENCES = (errors.FencedEpochError, errors.UnknownEpochError)


class _Asked(NamedTuple):
    """One position of a request, and the outcome of noting its progress."""

    position: ReplicaPosition
    hosted: HostedReplica | None  # the replica here
    leader: Leader | None  # its term
    diverging: FetchAnswer | None  # the response if the follower's log diverges from this one
    error: errors.ServerError | None  # why no messages can be sent

    @property
    def fetch_position(self) -> FetchPosition:
        return FetchPosition(*self.position[1:6])


class ReplicaReadHandler:
    """Handles the reads of followers, for one thread; none waits longer than `max_wait_ms`."""

    def __init__(
        self,
        replicas: ReplicaTable,
        metrics: ProcessorMetrics,
        clock: Clock,
        max_wait_ms: int,
    ) -> None:
        self._replicas = replicas
        self._metrics = metrics
        self._clock = clock
        self._max_wait_ms = max_wait_ms

    def read(self, request: ReplicaFetchRequest, header: RequestHeader) -> Response:
        """Note a follower's progress, and respond when there are messages or news for it."""
        now_s = self._clock.monotonic_s()
        error: errors.ServerError | None = None
        try:
            self._replicas.states.check_follower(request.replica_id, request.broker_epoch)
        except errors.ServerError as refusal:
            error = refusal
        asked = [self._note_progress(request, one, now_s, error) for one in request.positions]
        if any(one.leader is not None and one.leader.has_joining for one in asked):
            self._replicas.isr_due.set()

        def attempt(is_last: bool) -> list[Part] | None:
            if not (is_last or is_enough(map(_readable_bytes, asked), request.min_bytes)):
                return None
            return read_parts(header.correlation_id, asked, request.max_bytes, self._read_one)

        parts = attempt(request.max_wait_ms <= 0)
        if parts is not None:
            return Response(*parts)
        wait_ms = min(request.max_wait_ms, self._max_wait_ms)
        return DelayedResponse(
            attempt,
            now_s + wait_ms / 1000,
            [one.hosted.log.append_listeners for one in asked if one.hosted is not None],
            expected_bytes=len(asked) * _POSITION_BYTES,
            kind=DelayKind.FOLLOWER_READ,
        )

    def _note_progress(
        self,
        request: ReplicaFetchRequest,
        position: ReplicaPosition,
        now_s: float,
        error: errors.ServerError | None,
    ) -> _Asked:
        """Note a follower's progress in one partition, unless the request has an `error`."""
        hosted = leader = diverging = None
        try:
            if error is not None:
                raise error
            hosted = self._replicas.hosted(position.partition)
            with hosted:
                leader = hosted.replica.leader
                answer = leader.fetched(
                    request.replica_id,
                    request.broker_epoch,
                    FetchPosition(*position[1:6]),
                    now_s,
                )
            if answer.diverging != NO_DIVERGENCE:
                diverging = answer
        except errors.ServerError as error:
            self._metrics.fenced_fetch_count += isinstance(error, _FENCES)
            return _Asked(position, hosted, leader, None, error)
        return _Asked(position, hosted, leader, diverging, None)

    def _read_one(
        self, asked: _Asked, room_bytes: int, has_messages: bool
    ) -> tuple[bytes, FileSlice | None]:
        position, hosted, leader, diverging, error = asked
        if error is None and diverging is None:
            assert hosted is not None and leader is not None
            try:
                with hosted:
                    answer = leader.answer(asked.fetch_position)
                    if answer.diverging == NO_DIVERGENCE:
                        max_bytes = min(position.max_bytes, room_bytes)
                        read = _read(hosted, position, answer, max_bytes, has_messages)
                        self._metrics.replication_sent_bytes += read[1].length if read[1] else 0
                        return read
                    diverging = answer
            except errors.ServerError as refusal:
                error = refusal
        part = self._refused(position, hosted, diverging, error)
        return encode_replica_part_header(part, 0), None

    def _refused(
        self,
        position: ReplicaPosition,
        hosted: HostedReplica | None,
        diverging: FetchAnswer | None,
        error: errors.ServerError | None,
    ) -> ReplicaPart:
        """Return the part of a position for which there are no bytes."""
        partition = position.partition
        if diverging is not None:
            high_watermark, start, where = diverging
            return ReplicaPart(partition, errors.NO_ERROR, high_watermark, start, where, (), b"")
        assert error is not None
        self._metrics.errors.note(RequestGroup.FOLLOWER_FETCH, error.code)
        if isinstance(error, errors.OffsetOutOfRangeError) and hosted is not None:
            log = hosted.log
            return ReplicaPart(
                partition,
                error.code,
                log.high_watermark,
                log.log_start_offset,
                NOTHING_DIVERGES,
                (),
                b"",
            )
        leader_id = error.leader if isinstance(error, errors.NotLeaderError) else -1
        return refused_replica_part(partition, error.code, leader_id)


def _read(
    hosted: HostedReplica,
    position: ReplicaPosition,
    answer: FetchAnswer,
    max_bytes: int,
    has_messages: bool,
) -> tuple[bytes, FileSlice | None]:
    """Return the head of a partition and its messages; caller holds the replica's lock."""
    log = hosted.log
    found = None
    starts: tuple[EpochStart, ...] = ()
    try:
        if max_bytes > 0:
            found = log.read(position.offset, max_bytes, to_log_end=True)
    except errors.OutOfDescriptorsError:
        if not has_messages:  # else skip it, as for consumers
            raise
    if found is not None:
        starts = log.epochs.covering(position.offset, position.offset + found.length)
    part = ReplicaPart(
        position.partition,
        errors.NO_ERROR,
        answer.high_watermark,
        answer.log_start_offset,
        NOTHING_DIVERGES,
        starts,
        b"",
    )
    return encode_replica_part_header(part, found.length if found else 0), found


def _readable_bytes(asked: _Asked) -> int:
    position, hosted, leader, diverging, error = asked
    if error is not None or diverging is not None:
        return ENOUGH
    assert hosted is not None and leader is not None
    if leader.is_stopped:
        return ENOUGH
    return min(hosted.log.log_end_offset - position.offset, position.max_bytes)
