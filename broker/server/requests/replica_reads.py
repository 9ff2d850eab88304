"""Reads of followers: up to the log's end, many partitions a request, from the page cache.

First the follower's progress in the request is noted, once; then the request waits, as any read,
until there are messages or news. Only then the messages are read, under the lock of the replica, so
that they are of the leader epoch that the response names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from broker import errors
from broker.cluster_state import EpochStart
from broker.log.log_segments import segment_of
from broker.log.segment import FileSlice
from broker.protocol.primitives import INT64
from broker.protocol.replica_requests import (
    LEAVES_IN_SYNC,
    NOTHING_DIVERGES,
    ReplicaFetchRequest,
    ReplicaPart,
    ReplicaPosition,
    SessionFetchRequest,
    encode_replica_part_header,
)
from broker.replication.leader import Leader
from broker.replication.replica_log import NO_DIVERGENCE, FetchAnswer, FetchPosition
from broker.server.cluster.replica_table import HostedReplica
from broker.server.requests import broker_parts, judge, purgatory, read_sessions
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.read_loop import ENOUGH, is_enough, read_parts

_POSITION_BYTES = 300
"""Memory of one position of a delayed read."""
_Read = tuple[bytes, FileSlice | None]
_FENCES = (errors.FencedEpochError, errors.UnknownEpochError)


class _Part(read_sessions.SessionPart):
    """One position that a follower has named, and the outcome of noting its progress."""

    __slots__ = ("diverging", "error", "fetch_position", "hosted", "leader", "position", "told")

    def __init__(self, position: ReplicaPosition, session: _Session | None = None) -> None:
        super().__init__(position.partition, session)
        self.position = position
        self.fetch_position = FetchPosition(*position[1:6])
        self.hosted: HostedReplica | None = None  # the replica here
        self.leader: Leader | None = None  # its term
        self.diverging: FetchAnswer | None = None  # the response if the follower's log diverges
        self.error: errors.ServerError | None = None  # why no messages can be sent
        self.told: tuple[int, int] | None = None  # high watermark and start of the log

    def watch_log(self) -> None:
        """Watch the log of the replica that is here now."""
        if self.hosted is None:
            self.watch()
        else:  # the high watermark goes with the next response
            self.watch(self.hosted.log.append_listeners, self.hosted.log)


_Session = read_sessions.ReadSession[_Part]


@dataclass(eq=False, slots=True)
class ReplicaReadHandler:
    """Handles the reads of followers, for one thread.

    None waits longer than this broker's `replica.fetch.wait.max.ms`, whatever the follower's
    settings say: one that does not fetch again in time leaves the in-sync set.
    """

    broker: broker_parts.BrokerParts
    metrics: ProcessorMetrics

    def read(
        self, request: ReplicaFetchRequest | SessionFetchRequest, context: judge.RequestContext
    ) -> purgatory.Response:
        """Note a follower's progress, and respond when there are messages or news for it."""
        if isinstance(request, SessionFetchRequest):
            return self._read_in_session(request, context)
        now_s = self.broker.clock.monotonic_s()
        parts = [_Part(one) for one in request.positions]
        self._note_all(request, parts, now_s)
        correlation_id = context.header.correlation_id

        def attempt(is_last: bool) -> list[purgatory.Part] | None:
            if not (is_last or _is_enough(parts, request.min_bytes)):
                return None
            return read_parts(correlation_id, parts, request.max_bytes, self._read_one)

        logs = [one.hosted.log.append_listeners for one in parts if one.hosted is not None]
        return self._respond(request, attempt, now_s, logs, len(parts))

    def _read_in_session(
        self, request: SessionFetchRequest, context: judge.RequestContext
    ) -> purgatory.Response:
        """Do as `read` for all positions of a session, but respond with news only."""
        now_s = self.broker.clock.monotonic_s()
        session: _Session = read_sessions.session_of(
            self.broker.sessions,
            *(request.session_id, request.session_epoch, context.client),
            *(request.replica_id, request.broker_epoch),
            is_follower=True,
        )
        with session.lock:
            session.take_moved()
            named = session.change(request.positions, request.forgotten, _Part)
            looked_at = dict.fromkeys(session.due)
            if now_s - session.scanned_s >= self.broker.replicas.scan_s:
                session.scanned_s = now_s
                looked_at = dict.fromkeys(session.parts.values())
            self._note_all(request, looked_at | dict.fromkeys(named), now_s, session)
        if request.positions or request.forgotten:
            self.broker.sessions.fit(session)

        def read(part: _Part, room_bytes: int, has_messages: bool) -> _Read:
            return self._read_news(session, part, room_bytes, has_messages)

        def attempt(is_last: bool) -> list[purgatory.Part] | None:
            with session.lock:
                session.take_moved()
                is_last = is_last or session.is_ended
                if not (is_last or _is_enough(session.due, request.min_bytes)):
                    return None
                due, head = list(session.due), INT64.pack(session.id)
                return read_parts(context.header.correlation_id, due, request.max_bytes, read, head)

        return self._respond(request, attempt, now_s, [session.listeners], len(session.due))

    def _respond(
        self,
        request: ReplicaFetchRequest | SessionFetchRequest,
        attempt: Callable[[bool], list[purgatory.Part] | None],
        now_s: float,
        watched: Sequence[purgatory.Watched],
        part_count: int,
    ) -> purgatory.Response:
        parts = attempt(request.max_wait_ms <= 0)
        if parts is not None:
            return purgatory.Response(*parts)
        own_wait_ms = self.broker.config.replica_fetch_wait_ms
        longest_ms = max(own_wait_ms, int(self.broker.replicas.scan_s * 1000))
        wait_ms = min(request.max_wait_ms, longest_ms)
        return purgatory.DelayedResponse(
            attempt,
            now_s + wait_ms / 1000,
            watched,
            expected_bytes=part_count * _POSITION_BYTES,
            kind=purgatory.DelayKind.FOLLOWER_READ,
        )

    def _note_all(
        self,
        request: ReplicaFetchRequest | SessionFetchRequest,
        parts: Iterable[_Part],
        now_s: float,
        session: _Session | None = None,
    ) -> None:
        """Note a follower's progress; in a session, that there is news where it is not idle."""
        follower = request.replica_id, request.broker_epoch
        refusal: errors.ServerError | None = None
        try:
            self.broker.replicas.states.check_follower(*follower)
        except errors.ServerError as error:
            refusal = error
        has_joining = False
        for part in parts:
            if session is not None:
                leader = part.leader
                if not (
                    leader is None or refusal or part.diverging or _has_news(part)
                ) and leader.fetched_again(request.replica_id, part.fetch_position, now_s):
                    session.due.pop(part, None)
                    continue
                session.due[part] = None
            self._note_progress(follower, part, now_s, refusal)
            if session is not None:
                part.watch_log()
            has_joining |= part.leader is not None and part.leader.has_joining
        if has_joining:
            self.broker.replicas.isr_due.set()

    def _note_progress(
        self,
        follower: tuple[int, int],
        part: _Part,
        now_s: float,
        refusal: errors.ServerError | None,
    ) -> None:
        """Note a follower's progress in one partition, unless there is a `refusal` for all."""
        part.hosted = part.leader = part.diverging = part.error = None
        try:
            if refusal is not None:
                raise refusal
            part.hosted = hosted = self.broker.replicas.hosted(part.position.partition)
            with hosted:
                part.leader = leader = hosted.replica.leader
                if part.position.max_bytes == LEAVES_IN_SYNC:
                    leader.left(follower[0], part.fetch_position)
                    self.broker.replicas.isr_due.set()
                    return
                answer = leader.fetched(*follower, part.fetch_position, now_s)
            if answer.diverging != NO_DIVERGENCE:
                part.diverging = answer
        except errors.ServerError as error:
            self.metrics.fenced_fetch_count += isinstance(error, _FENCES)
            part.leader, part.error = None, error

    def _read_news(
        self, session: _Session, part: _Part, room_bytes: int, has_messages: bool
    ) -> _Read:
        """Read one position of a session; the head is empty if there is nothing new."""
        found = self._find(part, room_bytes, has_messages)
        head, messages = found
        if messages is not None:  # those that got none come first the next time
            del session.due[part]
            session.due[part] = None
        if head.error == errors.NO_ERROR and head.diverging == NOTHING_DIVERGES:
            news = head.high_watermark, head.log_start_offset
            if messages is None and part.told == news:
                return b"", None
            part.told = news
        return _encoded(found)

    def _read_one(self, part: _Part, room_bytes: int, has_messages: bool) -> _Read:
        return _encoded(self._find(part, room_bytes, has_messages))

    def _find(
        self, part: _Part, room_bytes: int, has_messages: bool
    ) -> tuple[ReplicaPart, FileSlice | None]:
        """Return the head of a partition, and its messages."""
        hosted, leader = part.hosted, part.leader
        diverging, error = part.diverging, part.error
        if error is None and diverging is None:
            assert hosted is not None and leader is not None
            try:
                with hosted:
                    answer = leader.answer(part.fetch_position)
                    if answer.diverging == NO_DIVERGENCE:
                        max_bytes = min(part.position.max_bytes, room_bytes)
                        found = _read(hosted, part.position, answer, max_bytes, has_messages)
                        self.metrics.replication_sent_bytes += found[1].length if found[1] else 0
                        return found
                    diverging = answer
            except errors.ServerError as refusal:
                error = refusal
        return self._refused(part.position, hosted, diverging, error), None

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
            return ReplicaPart(partition, errors.NO_ERROR, *diverging)
        assert error is not None
        self.metrics.errors.note(purgatory.RequestGroup.FOLLOWER_FETCH, error.code)
        if isinstance(error, errors.OffsetOutOfRangeError) and hosted is not None:
            log = hosted.log
            end = log.high_watermark
            if isinstance(error, errors.LostOffsetsError):
                end = error.next_offset
            return ReplicaPart(partition, error.code, end, log.log_start_offset)
        leader_id = error.leader if isinstance(error, errors.NotLeaderError) else -1
        return ReplicaPart(partition, error.code, leader_id, 0)


def _read(
    hosted: HostedReplica,
    position: ReplicaPosition,
    answer: FetchAnswer,
    max_bytes: int,
    has_messages: bool,
) -> tuple[ReplicaPart, FileSlice | None]:
    """Return the head of a partition and its messages; caller holds the replica's lock."""
    log = hosted.log
    found = None
    starts: tuple[EpochStart, ...] = ()
    appended_ms = 0
    rows = b""
    try:
        if max_bytes > 0:
            found = log.read(position.offset, max_bytes, to_log_end=True)
    except errors.OutOfDescriptorsError:
        if not has_messages:  # else skip it, as for consumers
            raise
    if found is not None:
        base = log.format.base_offset_of(found.file.path.name)  # of a later one after compaction
        assert base is not None
        segment = segment_of(log.segments.all, base)
        # also those behind the messages: where these end is not known without a look at them
        starts = log.epochs.covering(position.offset, segment.next_offset)
        appended_ms = segment.modified_ms
        rows = log.rows_between(position.offset, position.offset + found.length)
    part = ReplicaPart(position.partition, errors.NO_ERROR, *answer, starts, b"", appended_ms, rows)
    return part, found


def _encoded(found: tuple[ReplicaPart, FileSlice | None]) -> _Read:
    part, messages = found
    return encode_replica_part_header(part, messages.length if messages else 0), messages


def _has_news(part: _Part) -> bool:
    """Return whether there is anything to tell of a part beside messages."""
    if part.hosted is None:
        return True
    log = part.hosted.log
    return part.told != (log.high_watermark, log.log_start_offset)


def _is_enough(parts: Iterable[_Part], min_bytes: int) -> bool:
    return is_enough((_readable_bytes(one, min_bytes) for one in parts), min_bytes)


def _readable_bytes(part: _Part, enough_bytes: int) -> int:
    if part.error is not None or part.diverging is not None:
        return ENOUGH
    assert part.hosted is not None and part.leader is not None
    if part.leader.is_stopped:
        return ENOUGH
    log, offset = part.hosted.log, part.position.offset
    if offset >= log.log_end_offset:
        return 0
    size = log.bytes_between(offset, log.log_end_offset, enough_bytes)
    return min(size, max(0, part.position.max_bytes))
