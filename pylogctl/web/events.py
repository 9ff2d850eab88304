"""Server-sent events: messages as they come, and figures of the cluster.

The id of an event has the positions in all partitions, so a client that connects again goes on
where it was. A client that takes events too slowly misses some, and is told how many.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from broker.api.client import Client
from broker.api.reader import Reader
from broker.errors import BrokerError
from broker.threads import start_once
from broker.topic import MAX_PARTITIONS, MessagePosition, TopicPartition
from pylogctl.web import documents as docs
from pylogctl.web.api import BASE, message_document, positions_of
from pylogctl.web.messages import ShownMessage, ValueDecoder, cursor_of, parse_cursor
from pylogctl.web.problems import ProblemError
from pylogctl.web.sampler import INTERVAL_S
from pylogctl.web.site import Call, WebRoutes

logger = logging.getLogger("pylogctl.web")

MAX_STREAMS = 100
MAX_STREAMS_OF_SESSION = 5
BUFFERED = 256
_BUFFERED_BYTES = 512 << 10
_HEARTBEAT_S = 15.0
_END_S = 1800.0
_OTHERS = f"0..{MAX_PARTITIONS}"  # every partition
_RETRY = b"retry: 3000\n\n"
_HEARTBEAT = b":\n\n"
_MEDIA_TYPE = "text/event-stream"

ROUTES = WebRoutes(BASE, {"media_type": _MEDIA_TYPE})


@dataclass(slots=True)
class EventStreams:
    """Counts the open streams, of all and of each session."""

    count: int = 0
    of_sessions: Counter[str] = field(default_factory=Counter)

    def open(self, session: str) -> Callable[[], None]:
        """Count a stream, unless there are too many; return what is called at its end."""
        if self.count >= MAX_STREAMS or self.of_sessions[session] >= MAX_STREAMS_OF_SESSION:
            raise ProblemError(
                429, "too many streams are open", code="TOO_MANY_STREAMS", retry_after_s=30
            )
        self.count += 1
        self.of_sessions[session] += 1

        def close() -> None:
            self.count -= 1
            self.of_sessions[session] -= 1
            if not self.of_sessions[session]:
                del self.of_sessions[session]

        return close


class _EventStream(StreamingResponse):
    """A stream with what is released at its end."""

    def __init__(self, events: AsyncIterator[bytes], closing: ExitStack) -> None:
        super().__init__(events, media_type=_MEDIA_TYPE)
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._closing:
            await super().__call__(scope, receive, send)


def _stream_of(
    call: Call, events: AsyncIterator[bytes], on_end: Callable[[], None] = lambda: None
) -> Response:
    with ExitStack() as closing:
        closing.callback(on_end)
        if call.method == "HEAD":
            return Response(media_type=_MEDIA_TYPE)
        streams: EventStreams = call.app.state.streams
        closing.callback(streams.open(call.state.session))
        return _EventStream(events, closing.pop_all())


def event(data: bytes, *, name: str = "", id: str = "") -> bytes:
    """Return an event with a line of data."""
    head = (f"event: {name}\n" if name else "") + (f"id: {id}\n" if id else "")
    return head.encode() + b"data: " + data + b"\n\n"


@ROUTES.at("/events", query=docs.EventsQuery)
async def values(call: Call, query: docs.EventsQuery) -> Response:
    """Stream what the last look at the cluster found, by name: `cluster/in`, `group/g/lag`, ..."""
    topics = tuple(f"topic/{one}/" for one in query.topics.split(",") if one)
    sampler = call.sampler

    async def events() -> AsyncIterator[bytes]:
        yield _RETRY
        end_s = time.monotonic() + _END_S
        while time.monotonic() < end_s:
            found = {
                name: value
                for name, value in sampler.newest().items()
                if not name.startswith("topic/") or name.startswith(topics)
            }
            yield event(msgspec.json.encode(found), name="values")
            await asyncio.sleep(INTERVAL_S)

    return _stream_of(call, events())


@ROUTES.at("/topics/{topic}/messages/live", shows_messages=True, query=docs.LiveQuery)
async def live(call: Call, query: docs.LiveQuery, topic: str) -> Response:
    """Stream messages as they come; `gap` tells of those that the client was too slow for."""
    last_id = call.headers.get("last-event-id", "")

    def open_tail(client: Client) -> _Tail:
        place = docs.MessagesQuery(partition=query.partition, place="end")
        positions = positions_of(client, topic, place, allow_missing=True)
        skipped = 0
        if last_id:
            first, end = (
                client.offsets(topic, at, partition=list(positions)) for at in ("start", "end")
            )
            known = parse_cursor(topic, last_id)
            for partition in positions:
                # one that has come since is read from its start
                at = known.get(partition, MessagePosition(first[partition]))
                if at.offset <= end[partition]:
                    positions[partition] = max(at, MessagePosition(first[partition]))
                    skipped += max(0, first[partition] - at.offset)
            if known.keys() - positions:  # they cannot be read now, or there are none such any more
                there = {one.partition for one in client.describe(topic)}
                positions |= {one: known[one] for one in known.keys() - positions if one in there}
        reader = client.read(
            topic,
            partition=query.partition or None,
            # those that cannot be read now begin at the end of then
            start={**{one: at.offset for one, at in positions.items()}, _OTHERS: "end"},
            stop=None,
            filter=re.escape(query.filter) if query.filter else None,
        )
        decoder = ValueDecoder(client) if query.shown_as == "decoded" else None
        return _Tail(reader, positions, query, loop, skipped, decoder)

    loop = asyncio.get_running_loop()
    tail = await call.read(open_tail)
    return _stream_of(call, tail.events(), tail.reader.close)


def _problem(detail: str) -> bytes:
    return event(msgspec.json.encode({"detail": detail}), name="problem")


@dataclass(eq=False)
class _Tail:
    """Reads messages by a thread, and keeps some for a client."""

    reader: Reader
    positions: dict[TopicPartition, MessagePosition]
    query: docs.LiveQuery
    loop: asyncio.AbstractEventLoop
    skipped_bytes: int
    decoder: ValueDecoder | None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # guards what follows
    _events: list[bytes] = field(default_factory=list)
    _bytes: int = 0
    _missed: int = 0
    _is_done: bool = False

    async def events(self) -> AsyncIterator[bytes]:
        yield _RETRY
        if self.skipped_bytes:  # retention has removed what the client was to read next
            yield self._gap(0, self.skipped_bytes)
        start_once(self._read, name="web-tail")
        end_s = time.monotonic() + _END_S
        while time.monotonic() < end_s:
            try:
                async with asyncio.timeout(_HEARTBEAT_S):
                    await self._wake.wait()
            except TimeoutError:
                yield _HEARTBEAT
                continue
            self._wake.clear()
            with self._lock:
                events, self._events, self._bytes = self._events, [], 0
                missed, self._missed = self._missed, 0
                gap = self._gap(missed, 0) if missed else b""
                is_done = self._is_done
            yield b"".join(events) + gap
            if is_done:
                return

    def _gap(self, missed: int, missed_bytes: int) -> bytes:
        data = msgspec.json.encode({"missed": missed, "bytes": missed_bytes})
        return event(data, name="gap", id=cursor_of(self.positions))

    def _read(self) -> None:
        last = b""
        try:
            for one in self.reader:
                at = MessagePosition(one.offset, one.inner)
                # a compressed set is read as a whole
                if at >= self.positions.get(one.partition, at):
                    self._add(ShownMessage.of(one))
        except BrokerError as error:
            last = _problem(str(error))
        except Exception:
            logger.exception("messages cannot be read on")
            last = _problem("an error that was not expected; the log has it")
        with self._lock:
            self._events.append(last)
            self._is_done = True
        self._notify()

    def _add(self, row: ShownMessage) -> None:
        shown = row if self.decoder is None else self.decoder.shown(row)
        is_last = row.next_offset != row.offset
        after = (
            MessagePosition(row.next_offset)
            if is_last
            else MessagePosition(row.offset, row.inner + 1)
        )
        with self._lock:
            self.positions[row.partition] = after
            if self._missed or len(self._events) >= BUFFERED or self._bytes > _BUFFERED_BYTES:
                self._missed += 1
                return
            document = message_document(shown, self.query.shown_as, self.query.max_bytes)
            data = event(msgspec.json.encode(document), id=cursor_of(self.positions))
            self._events.append(data)
            self._bytes += len(data)
            is_first = len(self._events) == 1
        if is_first:
            self._notify()

    def _notify(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the server has ended
            self.reader.close()
