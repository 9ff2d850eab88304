"""Reads with a filter: waiting as any read does, searching, and answering with what is wanted.

A search can take long, so it is done elsewhere (`pattern_filter`), and the processor is woken when
it is over. An answer always tells how far the search came: a reader gets on through a log in which
it wants nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import NO_ERROR, RequestTimedOutError, ServerError
from broker.log.log import Log
from broker.protocol.extension_requests import FilteredReadRequest, PartitionPosition
from broker.protocol.primitives import INT32, Buffer
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import (
    FilteredPart,
    encode_extension_error,
    encode_extension_response,
    encode_filtered_part_header,
)
from broker.server.fetch import FetchHandler
from broker.server.metrics import ProcessorMetrics
from broker.server.pattern_filter import KEPT_BYTES, PatternFilter, Search
from broker.server.purgatory import Answer, Parked, Part

SEARCH_DEADLINE_S = 20.0
"""How long a search may take together with those that are before it."""
_WHOLE_SEGMENT = (1 << 63) - 1


class FilteredReadHandler:
    """Answers reads with a filter.

    Args:
        fetch: knows the logs.
        pattern_filter: searches them.
        metrics: where to count.
        clock: for deadlines.
        wake: makes a processor attempt a parked request again; callable from any thread.
    """

    def __init__(
        self,
        fetch: FetchHandler,
        pattern_filter: PatternFilter,
        metrics: ProcessorMetrics,
        clock: Clock,
        wake: Callable[[Parked], None],
    ) -> None:
        self.fetch = fetch
        self.pattern_filter = pattern_filter
        self.metrics = metrics
        self.clock = clock
        self.wake = wake

    def read(self, request: FilteredReadRequest, header: RequestHeader) -> Parked:
        """Park a read until it has something to search, or its time is up, and then the result.

        Raises:
            InvalidPatternError: the pattern is none. It is compiled here, which is quick whatever
                it is, so that its author need not wait for messages to hear of it.
        """
        request.payload_filter.compile()
        logs = [] if request.read.max_wait_ms <= 0 else self._logs_of(request)
        return FilteredRead(self, request, header, logs)

    def _logs_of(self, request: FilteredReadRequest) -> list[Log]:
        try:
            return [self.fetch.log_of(position.partition) for position in request.read.positions]
        except ServerError:
            return []  # an error ends the wait before it has begun


class _Place(NamedTuple):
    """One position of a request: its log, and the search of what is there, or an error instead."""

    position: PartitionPosition
    log: Log | None
    search: Search | None
    error: ServerError | None


class FilteredRead(Parked):
    """One read with a filter, from its request to its answer.

    Args:
        handler: what it works with.
        request: what is wanted.
        header: of the request.
        logs: whose high watermark it waits for.
    """

    __slots__ = ("_handler", "_header", "_places", "_request", "_result", "_started_s")

    def __init__(
        self,
        handler: FilteredReadHandler,
        request: FilteredReadRequest,
        header: RequestHeader,
        logs: list[Log],
    ) -> None:
        deadline_s = handler.clock.monotonic_s() + max(0, request.read.max_wait_ms) / 1000
        # what is found is held in memory: a client must not have it pile up by asking ahead
        answer = Answer(expected_bytes=min(max(0, request.read.max_bytes), KEPT_BYTES))
        super().__init__(answer, self._try, deadline_s, logs)
        self._handler = handler
        self._request = request
        self._header = header
        self._places: list[_Place] = []
        self._result: Future[None] | None = None
        self._started_s = 0.0

    def forget(self) -> None:
        """Stop watching, and search no more for a client that is gone."""
        super().forget()
        if self._result is not None:
            self._result.cancel()
        # no cycle of references must keep what was found in memory
        self._result = None
        self._places = []

    def _try(self, is_last: bool) -> list[Part] | None:
        if self._result is None:
            if not is_last and not self._handler.fetch.is_enough(self._request.read):
                return None
            return self._start()
        if self._result.done():
            self._result.result()
            return self._parts()
        if not is_last or self._handler.clock.monotonic_s() < self.deadline_s:
            return None  # or the broker stops, and the client asks again when it is back
        late = RequestTimedOutError(
            f"{SEARCH_DEADLINE_S:g} s were not enough for this search and those before it"
        )
        return [encode_extension_error(self._header.correlation_id, late.code, str(late))]

    def _start(self) -> list[Part] | None:
        """Have what is there searched; return the answer if nothing is."""
        self._started_s = time.perf_counter()
        read = self._request.read
        self._places = [self._place(position) for position in read.positions]
        searches = [place.search for place in self._places if place.search is not None]
        if not searches:
            return self._parts()
        self.deadline_s = self._handler.clock.monotonic_s() + SEARCH_DEADLINE_S
        self._result = self._handler.pattern_filter.submit(
            searches, self._request.payload_filter, read.max_bytes
        )
        self._result.add_done_callback(lambda _: self._handler.wake(self))
        return None

    def _place(self, position: PartitionPosition) -> _Place:
        partition, offset, max_bytes = position
        log = None
        try:
            log = self._handler.fetch.log_of(partition)
            found = log.read(offset, _WHOLE_SEGMENT)
        except ServerError as error:
            return _Place(position, log, None, error)
        if not found or max_bytes <= 0:
            return _Place(position, log, None, None)
        return _Place(position, log, Search(log.partition, found, offset, max_bytes), None)

    def _parts(self) -> list[Part]:
        body: list[Buffer] = [INT32.pack(len(self._places))]
        for place in self._places:
            body += self._part(place)
        self._handler.metrics.fetch.record(time.perf_counter() - self._started_s)
        return [encode_extension_response(self._header.correlation_id, b"".join(body))]

    def _part(self, place: _Place) -> list[bytes]:
        """Return what is told of one partition, and count it."""
        position, log, search, error = place
        topics = self._handler.metrics.topics
        if search is not None:
            error = search.error
            counters = topics[position.partition.topic]
            counters.bytes_out += search.kept_bytes
            counters.messages_filtered_out += search.left_out_count
        if log is not None and error is not None:
            topics[position.partition.topic].failed_fetch += 1
        part = FilteredPart(
            partition=position.partition,
            error=NO_ERROR if error is None else error.code,
            # looked at only now: the high watermark told must not be below what was searched
            high_watermark=0 if log is None else log.high_watermark,
            log_start_offset=0 if log is None else log.log_start_offset,
            next_offset=position.offset if search is None else search.next_offset,
            text="" if error is None else str(error),
            runs=(),
        )
        if search is None:
            return [encode_filtered_part_header(part, 0)]
        return [encode_filtered_part_header(part, search.run_count), *search.runs]
