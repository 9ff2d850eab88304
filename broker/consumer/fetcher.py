"""Fetches partitions of one broker in the calling thread, one request ahead; see `FetchSession`.

A message may be larger than a request: `PartitionReader` joins its parts. For brokers that cannot
filter, messages are filtered here, with the same chunks as result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from broker import deadlines
from broker.client.cluster import BRIEFLY_S, Patience
from broker.client.connection import Connection
from broker.client.counts import ConsumerCounts, Ledger
from broker.consumer.chunk import Chunk
from broker.consumer.fetch_session import FetchSession
from broker.errors import BrokerError, RequestTimeoutError
from broker.topic import TopicPartition

_LOOK_S = 2 * BRIEFLY_S  # for who leads: another broker is asked if the first one hangs


@dataclass(eq=False, repr=False)
class Fetcher(FetchSession):
    """Fetches partitions of one broker, in turn and without gaps.

    Args:
        positions: the first offset of each partition.
        connection: to the broker; `close` closes it.
        is_replaced: whether other brokers lead partitions now; asked each time the broker was
            silent for longer than it may delay a response, and ends the wait for it. Attempts to
            connect are short then.
        ledger: gets the counts of this object.
    """

    connection: Connection
    _: KW_ONLY
    is_replaced: Callable[[], bool] | None = None
    ledger: Ledger[ConsumerCounts] = field(default_factory=lambda: Ledger(ConsumerCounts))

    def __post_init__(self, positions: Mapping[TopicPartition, int]) -> None:
        super().__post_init__(positions)
        self._counts = self.ledger.open()
        self._asked_s = 0.0
        self._patience = Patience()
        self._silence_s = self.max_wait_ms / 1000 + BRIEFLY_S
        self._correlation_id = 0
        self._is_interrupted = False

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
        self.ledger.end(self._counts)

    def interrupt(self) -> None:
        """Make a poll that blocks in another thread, and all later ones, fail at once."""
        self._is_interrupted = True
        self.connection.interrupt()

    def poll(self) -> list[Chunk]:
        """Return new chunks; wait for them up to about `max_wait_ms`.

        A chunk without data or an error has the high watermark of a partition without new data; a
        0.7 broker sends none. With a filter there may be several chunks of a partition, in order.
        After a retriable error the next poll connects again, and continues at the same offsets.
        """
        if not (self.is_in_flight or self.is_wanting):
            return []
        while True:
            try:
                chunks = self._receive()
            except BrokerError as error:
                if self.drop_request(error):
                    continue
                if error.is_retriable:
                    self.connection.close()
                    self.connection.retries_refused = False  # the attempts are the caller's
                raise
            # After an empty response the next poll asks: partitions that the caller adds before it
            # would have to wait for the end of a request that does not name them.
            if any(len(one.data) for one in chunks):
                self._ask_ahead()
            return self.filtered(chunks)

    def _receive(self) -> list[Chunk]:
        connection = self.connection
        if not self.is_in_flight:
            self._ask()
        if connection.hello() is not None:
            self._await_response()
            body = connection.receive_extension(self._correlation_id)
            self._counts.fetch_times.record(time.monotonic() - self._asked_s)
            return self.take(body)
        frame = connection.receive()
        self._counts.fetch_times.record(time.monotonic() - self._asked_s)
        chunks = self.take_07(frame)
        if not chunks:
            time.sleep(self.empty_wait_s)
        return chunks

    def _await_response(self) -> None:
        connection = self.connection
        if self.is_replaced is None:
            return
        while not connection.has_received(self._silence_s):
            if self._is_interrupted:
                return
            waited_s = time.monotonic() - self._asked_s
            with deadlines.Limit(_LOOK_S):  # an interrupt does not end it
                is_replaced = self.is_replaced()
            if waited_s >= connection.timeout_s or is_replaced:
                raise RequestTimeoutError(f"{connection.name} has not answered for {waited_s:.1f}s")

    def _ask(self) -> None:
        if self.is_replaced is None or self.connection.is_open:
            self._send()
        else:
            with self._patience.attempt() as limit_s, deadlines.Limit(limit_s):
                self._send()

    def _send(self) -> None:
        connection = self.connection
        self._asked_s = time.monotonic()
        if connection.hello() is None:
            connection.send_request(self.request_07())
        else:
            request = self.request(connection.understands)
            self._correlation_id = connection.send_extension(request)

    def _ask_ahead(self) -> None:
        if not self.is_wanting:
            return
        try:
            self._ask()
        except BrokerError as error:
            if not error.is_retriable:
                raise
            # the next poll retries, and raises the error if that fails too
            self.drop_request(error)
            self.connection.close()
