"""Filtered reads: they wait for messages as any read, then for the search of a pattern in them.

The messages found are in memory. The response always says how far the search came, so that a reader
makes progress through a log without any message it wants.
"""

from __future__ import annotations

from broker import errors
from broker.patterns import PayloadTest
from broker.protocol import responses
from broker.protocol.client_requests import FilteredReadRequest
from broker.protocol.primitives import INT32, Buffer
from broker.server.requests import purgatory
from broker.server.requests.fetch import DelayedRead, FetchHandler, Found, high_watermark_of
from broker.server.requests.judge import RequestContext
from broker.server.requests.pattern_filter import KEPT_BYTES, Search
from broker.topic import NO_HOME

SEARCH_DEADLINE_S = 20.0
"""How long a search may take, with the searches queued before it."""
_WHOLE_SEGMENT = (1 << 63) - 1


class FilteredRead(DelayedRead):
    """The response to a filtered read: waits for messages as any read, then for the search."""

    __slots__ = ("_compiled", "_searched", "_turn_of", "_wait_until_s")

    def __init__(
        self, handler: FetchHandler, request: FilteredReadRequest, context: RequestContext
    ) -> None:
        # The entries found are held in memory: pipelined requests must not add them up.
        kept_bytes = min(max(0, request.read.max_bytes), KEPT_BYTES)
        super().__init__(handler, request.read, context, [], kept_bytes)
        self._turn_of = context.client.turn_of
        self._wait_until_s = self.deadline_s  # for messages
        self._searched: list[tuple[Found, Search | None]] = []
        # before any wait: an invalid pattern is refused at once, not only when messages come
        pattern_filter = handler.broker.pattern_filter
        self._compiled = pattern_filter.compile(request.payload_filter, self._turn_of)
        self._compiled.add_done_callback(lambda _: handler.wake(self))

    def forget(self) -> None:
        """Stop watching, and cancel the search for a client that is gone."""
        super().forget()
        self._compiled.cancel()
        self._searched = []  # a cycle of references would keep the entries found in memory

    def _try(self, is_last: bool) -> list[purgatory.Part] | None:
        now_s = self._handler.broker.clock.monotonic_s()
        if self.work is None and self._compiled.done():
            try:
                is_wanted = self._compiled.result()
            except errors.InvalidPatternError as error:
                return self._refused(error)
            except errors.ConfigError as error:  # there is no RE2
                return self._refused(errors.InvalidPatternError(f"of the broker: {error}"))
            found = self._find(is_last or now_s >= self._wait_until_s)
            return None if found is None else self._start(found, is_wanted)
        if self.work is not None and self.work.done():
            self.work.result()
            self._searched = [self._judged_again(*one) for one in self._searched]
            return self._parts()
        if not is_last or now_s < self.deadline_s:
            return None  # or the broker stops: the client asks again when it is back
        if self.work is None and self.deadline_s == self._wait_until_s:
            self.deadline_s = now_s + SEARCH_DEADLINE_S  # for the turn in which to compile
            return None
        text = f"{SEARCH_DEADLINE_S:g} s were not enough for this search and those before it"
        return self._refused(errors.RequestTimedOutError(text))

    def _refused(self, error: errors.ServerError) -> list[purgatory.Part]:
        self._handler.note_refused(error.code)
        correlation_id = self._context.header.correlation_id
        return [responses.encode_extension_error(correlation_id, error.code, str(error))]

    def _start(self, found: list[Found], is_wanted: PayloadTest) -> list[purgatory.Part] | None:
        """Start the search of the readable messages; return the response if there are none."""
        handler = self._handler
        self._searched = [self._search_of(one) for one in found]
        searches = [search for _, search in self._searched if search is not None]
        if not searches:
            return self._parts()
        self.deadline_s = handler.broker.clock.monotonic_s() + SEARCH_DEADLINE_S
        self.work = handler.broker.pattern_filter.submit(
            searches, is_wanted, self._request.max_bytes, self._turn_of
        )
        self.work.add_done_callback(lambda _: handler.wake(self))
        return None

    def _judged_again(self, found: Found, search: Search | None) -> tuple[Found, Search | None]:
        """Return what was found, or the refusal if the right to it was taken away meanwhile."""
        topic = found.position.partition.topic
        rights = self._context.rights
        if rights is None or (refusal := rights.refusal(topic)) is None:
            return found, search
        return Found(found.position, None, error=refusal), None

    def _search_of(self, found: Found) -> tuple[Found, Search | None]:
        position, log, _, _ = found
        if log is None:
            return found, None
        if log.partition.home == NO_HOME:
            text = f"topic '{log.partition.topic}' has format kafka: no filter searches it"
            return Found(position, log, error=errors.WrongFormatError(text)), None
        try:
            messages = self._handler.read_log(log, position.offset, _WHOLE_SEGMENT)
        except errors.NotLeaderError as error:
            return Found(position, None, error=error), None
        except errors.ServerError as error:
            return Found(position, log, error=error), None
        if not messages or position.max_bytes <= 0:
            return found, None
        return found, Search(log.partition, messages, position.offset, position.max_bytes)

    def _parts(self) -> list[purgatory.Part]:
        body: list[Buffer] = [INT32.pack(len(self._searched))]
        for one in self._searched:
            body += self._encode(*one)
        return [self._context.frame(b"".join(body))]

    def _encode(self, found: Found, search: Search | None) -> list[bytes]:
        position, log, _, error = found
        topics = self._handler.metrics.topics
        if search is not None:
            error = search.error
            counters = topics[position.partition.topic]
            counters.bytes_out += search.kept_bytes
            counters.messages_filtered_out += search.left_out_count
        if error is not None:
            self._handler.note_refused(error.code)
        if log is not None and error is not None:
            topics[position.partition.topic].failed_fetch += 1
        part = responses.FilteredPart(
            partition=position.partition,
            error=errors.NO_ERROR if error is None else error.code,
            # After the search: the high watermark must not be below what was searched.
            high_watermark=0 if log is None else high_watermark_of(log, error),
            log_start_offset=0 if log is None else log.log_start_offset,
            next_offset=position.offset if search is None else search.next_offset,
            text="" if error is None else str(error),
            runs=(),
        )
        if search is None:
            return [responses.encode_filtered_part_header(part, 0)]
        return [responses.encode_filtered_part_header(part, search.run_count), *search.runs]
