"""Every read of a log: 0.7's fetch, multifetch and offsets, and our reads that can wait.

Messages go from the page cache to the socket: a response holds slices of segment files. Two kinds
of read have their messages in memory: filtered reads (`filtered_read`), and a read of 0.7 at a home
broker without a replica, for which the leader is asked (`forwarder`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from broker import errors
from broker.log.log import Log
from broker.log.log_parts import Listeners
from broker.log.segment import FileSlice
from broker.protocol import requests, responses
from broker.protocol.client_requests import (
    AnyReplicaReadRequest,
    ListSegmentsRequest,
    PartitionPosition,
    ReadRequest,
    SessionReadRequest,
)
from broker.protocol.primitives import INT64
from broker.server.cluster.storage_faults import unreadable
from broker.server.requests import broker_parts, forwarder, purgatory, read_sessions
from broker.server.requests.judge import RequestContext, Rights
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.read_loop import ENOUGH, is_enough, read_parts
from broker.topic import TopicPartition, validate_topic_name

FORWARD_DEADLINE_S = 20.0
"""How long a fetch may take that is read at the leader."""
_MAX_RESPONSE_BYTES = (1 << 31) - 1
"""The largest size field of a response."""
_MOST_READ_BYTES = 1 << 30
"""Message sets in one response to a read; with the headers of all parts it fits a size field."""
_POSITION_BYTES = 200
"""Memory of one position of a delayed read."""
_FETCH_HEADER_BYTES = len(responses.encode_fetch_header(errors.NO_ERROR, 0))
_Fetched = tuple[bytes, purgatory.Part | None]
"""The header of a fetch's response, and the messages behind it."""


class MissingLog:
    """Stands for the log of a partition that has no message yet: a read creates none."""

    log_start_offset = high_watermark = read_limit = 0

    def __init__(self, partition: TopicPartition, changes: Listeners) -> None:
        self.partition = partition
        self.changes = changes  # called when there is a log, or the topic is deleted

    def bytes_between(self, offset: int, end: int, enough_bytes: int) -> int:
        """Return 0: there are no messages."""
        return 0

    def read(self, offset: int, max_bytes: int) -> None:
        """Return no messages; raise as a log without messages does."""
        if offset:
            raise errors.OffsetOutOfRangeError(
                f"offset {offset} of {self.partition} is out of range: 0 to 0 can be read"
            )


class Found(NamedTuple):
    """One position of a read, and the log to serve it from; without one, an error."""

    position: PartitionPosition
    log: Log | MissingLog | None
    is_follower: bool = False  # this broker only follows the leader
    error: errors.ServerError | None = None


def watched(found: Sequence[Found]) -> list[purgatory.Watched]:
    """Return what a read watches while it waits."""
    logs = [one.log for one in found if one.log is not None]
    return [one.changes if isinstance(one, MissingLog) else one for one in logs]


def readable_bytes(found: Found, enough_bytes: int) -> int:
    """Return the bytes that a position has for a read, `ENOUGH` with an error.

    Perhaps only `enough_bytes`, where more are not needed.
    """
    position, log, is_follower, _ = found
    if log is None:
        return ENOUGH
    offset, end = position.offset, log.high_watermark
    if offset == end:  # as with most of many partitions
        return 0
    if offset < log.log_start_offset:
        return ENOUGH
    if offset > log.read_limit and not is_follower:
        return ENOUGH
    if offset > end:
        return 0
    return max(0, min(log.bytes_between(offset, end, enough_bytes), position.max_bytes))


class _Part(read_sessions.SessionPart):
    """One position of a consumer, and the log to read it from."""

    __slots__ = ("found", "told")

    def __init__(self, position: PartitionPosition, session: _Session) -> None:
        super().__init__(position.partition, session)
        self.found = Found(position, None)
        self.told = -1  # the high watermark that the consumer was told with this position


_Session = read_sessions.ReadSession[_Part]


@dataclass(eq=False, slots=True)
class FetchHandler:
    """Reads logs for the connections of one thread."""

    broker: broker_parts.BrokerParts
    metrics: ProcessorMetrics
    wake: Callable[[purgatory.DelayedResponse], None]  # callable from any thread

    def fetch(
        self,
        fetches: Sequence[requests.FetchRequest],
        rights: Rights | None,
        *,
        is_multifetch: bool,
    ) -> purgatory.Response:
        """Respond to one fetch, or to those of a multifetch, with the readable messages.

        The response comes later if a leader has to be asked. In a multifetch, an error of one fetch
        does not affect the others.
        """
        fetched: list[_Fetched | PartitionPosition] = []
        here: list[_Fetched] = []
        room_bytes = _MAX_RESPONSE_BYTES - responses.ERROR_BYTES
        if is_multifetch:
            room_bytes -= len(fetches) * _FETCH_HEADER_BYTES
        for one in fetches:
            found = self._fetch_one(one, room_bytes, rights, is_multifetch=is_multifetch)
            fetched.append(found)
            if not isinstance(found, PartitionPosition):
                here.append(found)
                room_bytes -= found[1].length if isinstance(found[1], FileSlice) else 0
        if len(here) < len(fetched):
            return self._forward(fetched, rights, is_multifetch=is_multifetch)
        return purgatory.Response(*_fetch_parts(here, is_multifetch=is_multifetch))

    def _forward(
        self,
        fetched: Sequence[_Fetched | PartitionPosition],
        rights: Rights | None,
        *,
        is_multifetch: bool,
    ) -> purgatory.Response:
        """Respond to a fetch or multifetch of which a part is read at leaders."""
        positions = [one for one in fetched if isinstance(one, PartitionPosition)]
        result = self.broker.forwarder.read(positions)

        def attempt(is_last: bool) -> list[purgatory.Part] | None:
            if result.done():
                read = result.result()
            elif is_last:  # late, or this broker stops
                code = errors.LeaderNotAvailableError.code
                read = [responses.ReadPart(one.partition, code) for one in positions]
            else:
                return None
            forwarded = (self._take(one, rights, is_multifetch=is_multifetch) for one in read)
            found = [
                next(forwarded) if isinstance(one, PartitionPosition) else one for one in fetched
            ]
            return _fetch_parts(found, is_multifetch=is_multifetch)

        delayed = purgatory.DelayedResponse(
            attempt,
            self.broker.clock.monotonic_s() + FORWARD_DEADLINE_S,
            [],
            expected_bytes=min(sum(one.max_bytes for one in positions), forwarder.MAX_READ_BYTES),
            work=result,
        )
        result.add_done_callback(lambda _: self.wake(delayed))
        return delayed

    def _take(
        self, part: responses.ReadPart, rights: Rights | None, *, is_multifetch: bool
    ) -> _Fetched:
        """Return the response to one fetch from what its leader has sent."""
        topic = part.partition.topic
        if rights is not None and rights.refusal(topic) is not None:
            return responses.encode_fetch_header(errors.NO_ERROR, 0), None  # taken away meanwhile
        if part.error != errors.NO_ERROR:
            text = f"{part.partition} cannot be read at its leader"
            error = errors.error_for_code(part.error, text)
            self.metrics.topics[topic].failed_fetch += 1
            return self._refused(error, is_multifetch=is_multifetch)
        self.metrics.topics[topic].bytes_out += len(part.message_set)
        header = responses.encode_fetch_header(errors.NO_ERROR, len(part.message_set))
        return header, part.message_set

    def _refused(self, error: errors.ServerError, *, is_multifetch: bool) -> _Fetched:
        self.note_refused(error.code)
        code = _code_for_07(error, is_multifetch=is_multifetch)
        return responses.encode_fetch_header(code, 0), None

    def _fetch_one(
        self,
        request: requests.FetchRequest,
        room_bytes: int,
        rights: Rights | None,
        *,
        is_multifetch: bool,
    ) -> _Fetched | PartitionPosition:
        """Return header and messages, or the position that is to be read at the leader."""
        try:
            found = self._slice(request, room_bytes, rights)
        except errors.ServerError as error:
            if self.broker.logs.table.get(request.topic, request.index):
                self.metrics.topics[request.topic].failed_fetch += 1
            return self._refused(error, is_multifetch=is_multifetch)
        if isinstance(found, PartitionPosition):
            return found
        if found is None:
            return responses.encode_fetch_header(errors.NO_ERROR, 0), None
        self.metrics.topics[request.topic].bytes_out += found.length
        return responses.encode_fetch_header(errors.NO_ERROR, found.length), found

    def _slice(
        self, request: requests.FetchRequest, room_bytes: int, rights: Rights | None
    ) -> FileSlice | PartitionPosition | None:
        if rights is not None and rights.refusal(request.topic) is not None:
            self._check_hidden(request.topic, request.index)
            return None
        max_bytes = max(0, min(request.max_bytes, room_bytes))
        log = self.broker.logs.table.get(request.topic, request.index)
        if log is None:
            self._check_partition(request.topic, request.index)
            if request.topic in self.broker.replicas.topics:
                partition = self.broker.at_home(request.topic, request.index)
                return PartitionPosition(partition, request.offset, max_bytes)
            return None
        has_replicas = log.is_replicated or request.topic in self.broker.replicas.topics
        if has_replicas and request.offset > log.read_limit:
            # this replica may be behind the one that the client read before
            return None
        found = log.read(request.offset, max_bytes)
        return found if found and found.length else None

    def _check_partition(self, topic: str, index: int) -> None:
        validate_topic_name(topic, self.broker.config.max_topic_name_length)
        self.broker.logs.table.validate_partition(topic, index)

    def _check_hidden(self, topic: str, index: int) -> None:
        """Check a partition as if there were no such topic: its own count must not show."""
        validate_topic_name(topic, self.broker.config.max_topic_name_length)
        if not 0 <= index < self.broker.logs.settings.broker.num_partitions:
            raise errors.WrongPartitionError(f"topic '{topic}' has no partition {index}")

    def offsets(
        self, request: requests.OffsetsRequest, rights: Rights | None
    ) -> purgatory.Response | Future[purgatory.Response | None]:
        """Respond to an offsets request; with a future if the leader has to be asked."""
        if request.max_offsets < 0:
            raise errors.ProtocolError(f"{request.max_offsets} offsets were asked for")
        if rights is not None and rights.refusal(request.topic) is not None:
            self._check_hidden(request.topic, request.index)
            offsets = _offsets_without_log(request.time_ms)
            return purgatory.Response(responses.encode_offsets_response(offsets))
        log = self.broker.logs.table.get(request.topic, request.index)
        if log is not None:
            return purgatory.Response(
                responses.encode_offsets_response(
                    log.offsets_before(request.time_ms, request.max_offsets)
                )
            )
        # an error closes the connection, as in 0.7
        self._check_partition(request.topic, request.index)
        if request.topic in self.broker.replicas.topics:
            partition = self.broker.at_home(request.topic, request.index)
            return self.broker.forwarder.offsets(partition, request.time_ms, request.max_offsets)
        return purgatory.Response(
            responses.encode_offsets_response(_offsets_without_log(request.time_ms))
        )

    def list_segments(
        self, request: ListSegmentsRequest, context: RequestContext
    ) -> purgatory.Response:
        """Respond as to an offsets request, for a partition of any home that this broker leads."""
        partition, time_ms, max_offsets = request.partition, request.time_ms, request.max_offsets
        if max_offsets < 0:
            raise errors.InvalidRequestError(f"{max_offsets} offsets were asked for")
        log = self.broker.replicas.find_served(partition)
        if log is None:
            self._check_partition(partition.topic, partition.index)
            offsets = _offsets_without_log(time_ms)
        else:
            if log.is_replicated and time_ms != requests.EARLIEST_TIME:
                self.broker.replicas.leader_of(log.partition).check_latest()
            offsets = log.offsets_before(time_ms, max_offsets)
        return context.respond(responses.SEGMENT_STARTS.encode(offsets))

    def read(self, request: ReadRequest, context: RequestContext) -> purgatory.Response:
        """Respond to a read now, or when enough is readable or its wait is over."""
        found = self.find_all(request, context.rights)
        if request.max_wait_ms <= 0 or self.is_enough(request, found):
            return purgatory.Response(*self.read_parts(request, context, found))
        expected_bytes = len(found) * _POSITION_BYTES
        return DelayedRead(self, request, context, watched(found), expected_bytes)

    def read_in_session(
        self, request: SessionReadRequest, context: RequestContext
    ) -> purgatory.Response:
        """Do as `read` for positions that the broker keeps, with messages and news of them."""
        rights, sessions = context.rights, self.broker.sessions
        scan_s = self.broker.replicas.scan_s  # for what no log tells, as of a lost lead
        read, now_s = request.read, self.broker.clock.monotonic_s()
        session: _Session = read_sessions.session_of(
            sessions, request.session_id, request.session_epoch, context.client
        )
        with session.lock:
            self.check_position_count(session.count_with(read.positions, request.forgotten))
            named = session.change(read.positions, request.forgotten, _Part)
            session.due.update(dict.fromkeys(named))
            basis = None if rights is None else rights.basis
            if basis != session.basis or now_s - session.scanned_s >= scan_s:
                session.basis, session.scanned_s = basis, now_s
                session.due.update(dict.fromkeys(session.parts.values()))
        if named or request.forgotten:
            sessions.fit(session)

        def attempt(is_last: bool) -> list[purgatory.Part] | None:
            with session.lock:
                session.take_moved()
                due = [*session.due]
                readable = (self._look_up(session, one, request, rights) for one in due)
                is_last = is_last or session.is_ended
                if not (is_last or is_enough(readable, min(read.min_bytes, read.max_bytes))):
                    return None
                return self._respond_in_session(session, request, context)

        parts = attempt(read.max_wait_ms <= 0)
        if parts is not None:
            return purgatory.Response(*parts)
        return purgatory.DelayedResponse(
            attempt,
            self.deadline_of(read),
            [session.listeners],
            expected_bytes=len(session.due) * _POSITION_BYTES,
            kind=purgatory.DelayKind.READ,
        )

    def _look_up(
        self, session: _Session, part: _Part, request: SessionReadRequest, rights: Rights | None
    ) -> int:
        """Find the log of a part; return what it has for the read. One without news is not due."""
        found = self.find(part.found.position, rights, request.takes_followers)
        part.found, log = found, found.log
        if part.watch(*watched([found])) and isinstance(log, MissingLog):
            return self._look_up(session, part, request, rights)  # it may have come meanwhile
        # after it is watched: no advance is missed
        size = readable_bytes(found, request.read.min_bytes)
        if not size and log is not None and log.high_watermark == part.told:
            del session.due[part]
        return size

    def _respond_in_session(
        self, session: _Session, request: SessionReadRequest, context: RequestContext
    ) -> list[purgatory.Part]:
        """Return the response with what is due, as far as there is room; the rest stays due."""
        is_full = False

        def read(
            part: _Part, room_bytes: int, has_messages: bool
        ) -> tuple[bytes, FileSlice | None]:
            nonlocal is_full
            is_full = has_messages and room_bytes <= 0
            if not is_full:
                self._look_up(session, part, request, context.rights)
            if is_full or part not in session.due:
                return b"", None
            log = part.found.log
            if log is not None:
                part.told = log.high_watermark
            head, messages = self.read_one(part.found, room_bytes, has_messages)
            if messages is not None:  # those that got none come first the next time
                del session.due[part]
                session.due[part] = None
            return head, messages

        due = takewhile(lambda _: not is_full, [*session.due])
        max_bytes = min(request.read.max_bytes, _MOST_READ_BYTES)
        head = INT64.pack(session.id)
        return read_parts(context.header.correlation_id, due, max_bytes, read, head)

    def check_position_count(self, count: int) -> None:
        """Raise if a read names too many positions, before they are decoded."""
        if count > (most := self.broker.config.max_fetch_positions):
            raise errors.ResponseTooLargeError(
                f"a read of {count} positions is above max.fetch.positions={most}; "
                "ask for fewer at a time"
            )

    def deadline_of(self, request: ReadRequest) -> float:
        """Return the monotonic time at which the wait of a read ends."""
        wait_ms = min(max(0, request.max_wait_ms), self.broker.config.max_fetch_wait_ms)
        return self.broker.clock.monotonic_s() + wait_ms / 1000

    def find_all(self, request: ReadRequest, rights: Rights | None) -> list[Found]:
        """Look up the logs that a read is served from."""
        is_any_replica = isinstance(request, AnyReplicaReadRequest)
        found = []
        for position in request.positions:
            found.append(self.find(position, rights, is_any_replica))  # a call less
        return found

    def find(
        self, position: PartitionPosition, rights: Rights | None, is_any_replica: bool
    ) -> Found:
        """Look up the log that one position is served from."""
        partition = position.partition
        if rights is not None and (refusal := rights.refusal(partition.topic)) is not None:
            return Found(position, None, error=refusal)
        if (
            is_any_replica
            and (follower := self.broker.replicas.find_readable(partition)) is not None
        ):
            return Found(position, follower, is_follower=True)
        try:
            log = self.broker.replicas.find_served(partition)
            if log is None:
                return Found(position, self._missing_log(partition))
        except errors.ServerError as error:
            return Found(position, None, error=error)
        return Found(position, log)

    def _missing_log(self, partition: TopicPartition) -> MissingLog:
        """Return what stands for the log of a partition that has no message yet."""
        validate_topic_name(partition.topic, self.broker.config.max_topic_name_length)
        if partition.topic not in self.broker.logs.topics:
            raise errors.UnknownTopicError(
                f"there is no topic '{partition.topic}' on broker {self.broker.config.broker_id}"
            )
        self._check_partition(partition.topic, partition.index)
        at_home = self.broker.at_home(partition.topic, partition.index)
        return MissingLog(at_home, self.broker.logs.table.awaited(at_home))

    def is_enough(self, request: ReadRequest, found: list[Found]) -> bool:
        """Return whether a read need not wait: enough is readable, or a partition has an error."""
        enough_bytes = min(request.min_bytes, request.max_bytes)
        return is_enough((readable_bytes(one, enough_bytes) for one in found), enough_bytes)

    def read_log(self, log: Log | MissingLog, offset: int, max_bytes: int) -> FileSlice | None:
        """Read from a log; `NotLeaderError` if it cannot be read and another replica is to lead."""
        try:
            return log.read(offset, max_bytes)
        except errors.UnreadableError as error:
            raise unreadable(self.broker.replicas, log.partition, error) from error

    def read_parts(
        self, request: ReadRequest, context: RequestContext, found: list[Found]
    ) -> list[purgatory.Part]:
        """Return the response to a read, with what is readable now."""
        max_bytes = min(request.max_bytes, _MOST_READ_BYTES)
        return read_parts(context.header.correlation_id, found, max_bytes, self.read_one)

    def note_refused(self, code: int) -> None:
        """Count a read, or one position of it, that is refused."""
        self.metrics.errors.note(purgatory.RequestGroup.FETCH, code)

    def read_one(
        self, found: Found, room_bytes: int, has_messages: bool
    ) -> tuple[bytes, FileSlice | None]:
        """Return the head of one position, and the messages to send with it."""
        position, log, is_follower, error = found
        partition = position.partition
        messages = None
        code = errors.NO_ERROR
        if log is not None:
            max_bytes = min(position.max_bytes, room_bytes)
            try:
                if is_follower and position.offset > log.high_watermark:
                    code = errors.OffsetNotAvailableError.code
                elif max_bytes > 0:
                    messages = self.read_log(log, position.offset, max_bytes)
            except errors.ServerError as problem:
                # else skip it: the response holds all descriptors it may; the next read gets it
                if not (has_messages and isinstance(problem, errors.OutOfDescriptorsError)):
                    error = problem
        if log is None or isinstance(error, errors.NotLeaderError):
            assert error is not None
            leader = error.leader if isinstance(error, errors.NotLeaderError) else 0
            self.note_refused(error.code)
            part = responses.ReadPart(partition, error.code, leader)
            return responses.encode_read_part_header(part, 0), None
        if error is not None:
            code = error.code
            self.metrics.topics[partition.topic].failed_fetch += 1
        if code != errors.NO_ERROR:
            self.note_refused(code)
        # After the read: the high watermark in the response must not be below what was read.
        high_watermark = high_watermark_of(log, error)
        part = responses.ReadPart(partition, code, high_watermark, log.log_start_offset)
        if messages is None:
            return responses.encode_read_part_header(part, 0), None
        self.metrics.topics[partition.topic].bytes_out += messages.length
        return responses.encode_read_part_header(part, messages.length), messages


def high_watermark_of(log: Log | MissingLog, error: errors.ServerError | None) -> int:
    """Return a log's high watermark; where messages were lost, the offset of the next one."""
    return error.next_offset if isinstance(error, errors.LostOffsetsError) else log.high_watermark


def _offset_to_reach(request: ReadRequest, logs: Sequence[purgatory.Watched]) -> int:
    """Return the high watermark that a read waits for; 0 if advances of several logs add up."""
    if len(request.positions) != 1:
        return 0
    offset = request.positions[0].offset
    if logs and isinstance(logs[0], Log) and logs[0].format.counts_records:
        return offset + 1  # any record may have the bytes
    return offset + min(request.min_bytes, request.max_bytes)


def _offsets_without_log(time_ms: int) -> list[int]:
    return [0] if time_ms in (requests.LATEST_TIME, requests.EARLIEST_TIME) else []


def _fetch_parts(fetched: Sequence[_Fetched], *, is_multifetch: bool) -> list[purgatory.Part]:
    """Return the parts of the response to a fetch or multifetch."""
    parts: list[purgatory.Part] = []
    part_bytes = 0
    for header, messages in fetched:
        parts.append(header)
        part_bytes += len(header)
        if messages is not None:
            parts.append(messages)
            part_bytes += messages.length if isinstance(messages, FileSlice) else len(messages)
    if is_multifetch:
        parts.insert(0, responses.encode_multifetch_header(part_bytes))
    return purgatory.join_bytes(parts)


def _code_for_07(error: errors.ServerError, *, is_multifetch: bool) -> int:
    """Return the error code for a client of 0.7.

    Our own codes mean nothing to its clients, and "unknown", by which 0.7 also reports an illegal
    topic, ends the fetcher of a group member with all its partitions of this broker. So in a
    multifetch, a partition whose disk fails or has lost the next messages, or whose leader is away,
    looks as if it had no new messages: the member waits there, and continues with the others.
    """
    is_lost = isinstance(error, errors.LostOffsetsError)
    if is_multifetch and (error.is_retriable or is_lost):
        return errors.NO_ERROR
    if is_lost:
        return errors.OffsetOutOfRangeError.code
    return error.code if error.code in (1, 3) else errors.UnknownServerError.code


class DelayedRead(purgatory.DelayedResponse):
    """The response to a read that waits until enough is readable."""

    __slots__ = ("_context", "_handler", "_request")

    def __init__(
        self,
        handler: FetchHandler,
        request: ReadRequest,
        context: RequestContext,
        logs: Sequence[purgatory.Watched],
        expected_bytes: int,
    ) -> None:
        super().__init__(
            self._try,
            handler.deadline_of(request),
            logs,
            from_offset=_offset_to_reach(request, logs),
            expected_bytes=expected_bytes,
            kind=purgatory.DelayKind.READ,
        )
        self._handler = handler
        self._request = request
        self._context = context

    def _try(self, is_last: bool) -> list[purgatory.Part] | None:
        found = self._find(is_last)
        if found is None:
            return None
        return self._handler.read_parts(self._request, self._context, found)

    def _find(self, is_last: bool) -> list[Found] | None:
        """Return the logs to read from, or None to wait: then exactly these are watched."""
        while True:
            found = self._handler.find_all(self._request, self._context.rights)
            if is_last or self._handler.is_enough(self._request, found):
                return found
            logs = watched(found)
            if logs == self.logs:
                return None
            self.watch_instead(logs)  # a log was created, or is another one
