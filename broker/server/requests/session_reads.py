"""Reads of consumers in sessions: as `FetchHandler.read`, for positions that the broker keeps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from broker.log.segment import FileSlice
from broker.protocol.client_requests import PartitionPosition, SessionReadRequest
from broker.protocol.primitives import INT64
from broker.server.requests.fetch import (
    MOST_READ_BYTES,
    POSITION_BYTES,
    FetchHandler,
    Found,
    MissingLog,
    readable_bytes,
    watched,
)
from broker.server.requests.judge import RequestContext, Rights
from broker.server.requests.purgatory import DelayedResponse, DelayKind, Part, Response
from broker.server.requests.read_loop import is_enough, read_parts
from broker.server.requests.read_sessions import ReadSession, SessionPart, session_of


class _Part(SessionPart):
    """One position of a consumer, and the log to read it from."""

    __slots__ = ("found", "told")

    def __init__(self, position: PartitionPosition, session: _Session) -> None:
        super().__init__(position.partition, session)
        self.found = Found(position, None)
        self.told = -1  # the high watermark that the consumer was told with this position


_Session = ReadSession[_Part]


@dataclass(eq=False, slots=True)
class SessionReadHandler:
    """Reads logs in sessions for the connections of one thread."""

    fetch: FetchHandler

    def read(self, request: SessionReadRequest, context: RequestContext) -> Response:
        """Respond with the messages and news of the session, when there is enough of them."""
        rights, sessions = context.rights, self.fetch.broker.sessions
        scan_s = self.fetch.broker.replicas.scan_s  # for what no log tells, as of a lost lead
        read, now_s = request.read, self.fetch.broker.clock.monotonic_s()
        session: _Session = session_of(
            sessions, request.session_id, request.session_epoch, context.client
        )
        with session.lock:
            self.fetch.check_position_count(session.count_with(read.positions, request.forgotten))
            named = session.change(read.positions, request.forgotten, _Part)
            session.due.update(dict.fromkeys(named))
            basis = None if rights is None else rights.basis
            if basis != session.basis or now_s - session.scanned_s >= scan_s:
                session.basis, session.scanned_s = basis, now_s
                session.due.update(dict.fromkeys(session.parts.values()))
        if named or request.forgotten:
            sessions.fit(session)

        def attempt(is_last: bool) -> list[Part] | None:
            with session.lock:
                session.take_moved()
                due = [*session.due]
                readable = (self._look_up(session, one, request, rights) for one in due)
                is_last = is_last or session.is_ended
                if not (is_last or is_enough(readable, min(read.min_bytes, read.max_bytes))):
                    return None
                return self._respond(session, request, context)

        parts = attempt(read.max_wait_ms <= 0)
        if parts is not None:
            return Response(*parts)
        return DelayedResponse(
            attempt,
            self.fetch.deadline_of(read),
            [session.listeners],
            expected_bytes=len(session.due) * POSITION_BYTES,
            kind=DelayKind.READ,
        )

    def _look_up(
        self, session: _Session, part: _Part, request: SessionReadRequest, rights: Rights | None
    ) -> int:
        """Find the log of a part; return what it has for the read. One without news is not due."""
        found = self.fetch.find(part.found.position, rights, request.takes_followers)
        part.found, log = found, found.log
        if part.watch(*watched([found])) and isinstance(log, MissingLog):
            return self._look_up(session, part, request, rights)  # it may have come meanwhile
        size = readable_bytes(found)  # after it is watched: no advance is missed
        if not size and log is not None and log.high_watermark == part.told:
            del session.due[part]
        return size

    def _respond(
        self, session: _Session, request: SessionReadRequest, context: RequestContext
    ) -> list[Part]:
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
            head, messages = self.fetch.read_one(part.found, room_bytes, has_messages)
            if messages is not None:  # those that got none come first the next time
                del session.due[part]
                session.due[part] = None
            return head, messages

        due = takewhile(lambda _: not is_full, [*session.due])
        max_bytes = min(request.read.max_bytes, MOST_READ_BYTES)
        head = INT64.pack(session.id)
        return read_parts(context.header.correlation_id, due, max_bytes, read, head)
