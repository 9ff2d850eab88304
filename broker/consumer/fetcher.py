"""Fetches partitions of one broker in the calling thread, one request ahead; see `FetchSession`.

A message may be larger than a request: `PartitionReader` joins its parts. For brokers that cannot
filter, messages are filtered here, with the same chunks as result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from broker import deadlines
from broker.client import backoff
from broker.client.cluster import BRIEFLY_S, Patience
from broker.client.connection import Connection
from broker.client.counts import ConsumerCounts, Ledger
from broker.consumer.chunk import Chunk
from broker.consumer.fetch_session import (
    DEFAULT_FETCH_BYTES,
    DEFAULT_MAX_WAIT_MS,
    MAX_RESPONSE_BYTES,
    FetchSession,
)
from broker.errors import BrokerError, RequestTimeoutError
from broker.protocol.client_requests import PayloadFilter
from broker.topic import TopicPartition

_LOOK_S = 2 * BRIEFLY_S  # for who leads: another broker is asked if the first one hangs


class Fetcher:
    """Fetches partitions of one broker, in turn and without gaps.

    Args:
        connection: to the broker; `close` closes it.
        positions: the first offset of each partition.
        fetch_bytes: the most to request of one partition.
        max_response_bytes: the most to request of all partitions.
        max_wait_ms: how long the broker may delay a response of fewer than `min_bytes`, which is 1
            or more, of all partitions. A 0.7 broker does not wait.
        retry_s: how long to try to reach a lost broker again before raising an error.
        payload_filter: chooses messages; the broker applies it if it can. Wrappers are given whole
            if a message in them matches, corrupt entries always.
        takes_followers: the broker may be any in-sync replica. Then a filter is applied here.
        is_replaced: whether other brokers lead partitions now; asked each time the broker was
            silent for longer than it may delay a response, and ends the wait for it. Attempts to
            connect are short then.
        ledger: gets the counts of this object.
    """

    def __init__(
        self,
        connection: Connection,
        positions: Mapping[TopicPartition, int],
        *,
        fetch_bytes: int = DEFAULT_FETCH_BYTES,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
        min_bytes: int = 1,
        retry_s: float = 10.0,
        payload_filter: PayloadFilter | None = None,
        takes_followers: bool = False,
        is_replaced: Callable[[], bool] | None = None,
        ledger: Ledger[ConsumerCounts] | None = None,
    ) -> None:
        self._ledger = ledger or Ledger(ConsumerCounts)
        self._counts = self._ledger.open()
        self._asked_s = 0.0
        self._connection = connection
        self._retry_s = retry_s
        self._is_replaced = is_replaced
        self._patience = Patience()
        self._silence_s = max_wait_ms / 1000 + BRIEFLY_S
        self._session = FetchSession(
            positions,
            fetch_bytes=fetch_bytes,
            max_response_bytes=max_response_bytes,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            payload_filter=payload_filter,
            takes_followers=takes_followers,
        )
        self._correlation_id = 0
        self._is_interrupted = False
        self.seek = self._session.seek
        self.forget = self._session.forget
        self.expect = self._session.expect
        self.pause = self._session.pause
        self.resume = self._session.resume

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions being fetched."""
        return self._session.partitions

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._ledger.end(self._counts)

    def interrupt(self) -> None:
        """Make a poll that blocks in another thread, and all later ones, fail at once."""
        self._is_interrupted = True
        self._connection.interrupt()

    def poll(self) -> list[Chunk]:
        """Return new chunks; wait for them up to about `max_wait_ms`.

        A chunk without data or an error has the high watermark of a partition without new data; a
        0.7 broker sends none. With a filter there may be several chunks of a partition, in order.
        """
        session = self._session
        if not (session.is_in_flight or session.is_wanting):
            return []
        give_up_s = time.monotonic() + self._retry_s
        waits_s = backoff.waits_s()
        while True:
            try:
                chunks = self._receive()
            except BrokerError as error:
                if session.drop_request(error):
                    continue
                if not error.is_retriable:
                    raise
                self._connection.close()
                self._connection.retries_refused = False  # the attempts are made here
                if self._is_interrupted or time.monotonic() >= give_up_s:
                    raise
                time.sleep(next(waits_s))
                continue
            # After an empty response the next poll asks: partitions that the caller adds before it
            # would have to wait for the end of a request that does not name them.
            if any(len(one.data) for one in chunks):
                self._ask_ahead()
            return session.filtered(chunks)

    def _receive(self) -> list[Chunk]:
        session, connection = self._session, self._connection
        if not session.is_in_flight:
            self._ask()
        if connection.hello() is not None:
            self._await_response()
            body = connection.receive_extension(self._correlation_id)
            self._counts.fetch_times.record(time.monotonic() - self._asked_s)
            return session.take(body)
        frame = connection.receive()
        self._counts.fetch_times.record(time.monotonic() - self._asked_s)
        chunks = session.take_07(frame)
        if not chunks:
            time.sleep(session.empty_wait_s)
        return chunks

    def _await_response(self) -> None:
        connection = self._connection
        if self._is_replaced is None:
            return
        while not connection.has_received(self._silence_s):
            if self._is_interrupted:
                return
            waited_s = time.monotonic() - self._asked_s
            with deadlines.Limit(_LOOK_S):  # an interrupt does not end it
                is_replaced = self._is_replaced()
            if waited_s >= connection.timeout_s or is_replaced:
                raise RequestTimeoutError(f"{connection.name} has not answered for {waited_s:.1f}s")

    def _ask(self) -> None:
        if self._is_replaced is None or self._connection.is_open:
            self._send()
        else:
            with self._patience.attempt() as limit_s, deadlines.Limit(limit_s):
                self._send()

    def _send(self) -> None:
        connection = self._connection
        self._asked_s = time.monotonic()
        if connection.hello() is None:
            connection.send_request(self._session.request_07())
        else:
            request = self._session.request(connection.understands)
            self._correlation_id = connection.send_extension(request)

    def _ask_ahead(self) -> None:
        if not self._session.is_wanting:
            return
        try:
            self._ask()
        except BrokerError as error:
            if not error.is_retriable:
                raise
            # the next poll retries, and raises the error if that fails too
            self._session.drop_request(error)
            self._connection.close()
