"""Message sets on their way to one broker: a window of them unacknowledged, in order.

Everything happens in the caller's thread. Knows neither topics nor partitioning.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerUnreachableError,
    ServerError,
    ShuttingDownError,
    error_for_code,
)
from broker.producer.delivery import Delivery
from broker.producer.link import Link, SendRules, retry_wait_s
from broker.producer.readable import Readability, commit_timeout_ms, latest_07, only_one
from broker.protocol.codec import scan
from broker.protocol.extension_requests import Acks, SinglePublish, good_answer_from
from broker.protocol.requests import ProduceRequest
from broker.topic import TopicPartition


class Channel:
    """The way to one broker: a link and the deliveries in flight on it, in order.

    Args:
        link: to the broker; owned by the channel from now on.
        rules: how to send.
        max_in_flight: how many deliveries may be unacknowledged.
        on_done: told of each delivery that is done.
    """

    def __init__(
        self,
        link: Link,
        *,
        rules: SendRules,
        max_in_flight: int,
        on_done: Callable[[Delivery], None] | None = None,
    ) -> None:
        self._link = link
        self._rules = rules
        self._max_in_flight = max_in_flight
        self._timeout_ms = commit_timeout_ms(rules.timeout_s)
        self._on_done = on_done
        self._readability = Readability(rules.acks, rules.timeout_s)
        self._in_flight: deque[tuple[int, Delivery]] = deque()
        self._ends: dict[TopicPartition, int] = {}
        self._publishes: dict[TopicPartition, SinglePublish] = {}

    def send(self, delivery: Delivery) -> None:
        """Send one set; wait for the oldest acknowledgement when the window is full.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries.
        """
        if len(self._in_flight) >= self._max_in_flight:
            self._retrying(self._receive_one)
        if self._link.is_reconnect_due:
            self.drain()
            self._link.reconnect()
        self._in_flight.append((0, delivery))
        self._retrying(self._send_last)

    def drain(self) -> None:
        """Wait for all acknowledgements.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries.
        """
        while self._in_flight:
            self._retrying(self._receive_one)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def _retrying(self, action: Callable[[], None]) -> None:
        """Run an action; on a lost connection send all that is in flight again, then go on."""
        for attempt in range(self._rules.retries + 1):
            try:
                if attempt and self._in_flight:
                    self._send_all_again()
                    if action == self._send_last:
                        return
                action()
                return
            except BrokerError as error:
                self._link.close()
                # a ServerError is a response: the request arrived, so it is not sent again
                is_lost = error.is_retriable and not isinstance(error, ServerError)
                if not is_lost or attempt == self._rules.retries:
                    self._fail_all(error)
                    raise
                time.sleep(retry_wait_s(self._rules.backoff_s, attempt + 1))

    def _fail_all(self, error: BrokerError) -> None:
        """Give up all that is in flight; the error is raised, so the caller knows."""
        while self._in_flight:
            self._fail_oldest(error).notice()

    def _fail_oldest(self, error: BrokerError) -> Delivery:
        _, delivery = self._in_flight.popleft()
        delivery.fail(error)
        self._note_done(delivery)
        return delivery

    def _note_done(self, delivery: Delivery) -> None:
        delivery.is_done = True
        if self._on_done is not None:
            self._on_done(delivery)

    def _send_last(self) -> None:
        self._send_at(len(self._in_flight) - 1)

    def _send_all_again(self) -> None:
        place = 0
        while place < len(self._in_flight):
            place += self._send_at(place)

    def _send_at(self, place: int) -> bool:
        """Send what is at a place of the window; return whether it waits for an answer there."""
        _, delivery = self._in_flight[place]
        connection = self._link.open(self._rules.connect_timeout_s)
        self._link.note_request()
        if connection.hello() is None:
            self._send_07(connection, delivery)
        else:
            correlation_id = connection.next_correlation_id()
            publish = self._publish_to(delivery.partition, connection.client_id)
            connection.send_parts(publish.encode_parts(correlation_id, delivery.message_set))
            if self._rules.acks is not Acks.NONE:
                self._in_flight[place] = (correlation_id, delivery)
                return True
            # where it ends is unknown; that something was sent there is what the barrier needs
            self._ends.setdefault(delivery.partition, 0)
        del self._in_flight[place]
        self._note_done(delivery)
        return False

    def _send_07(self, connection: Connection, delivery: Delivery) -> None:
        partition = delivery.partition
        if partition not in self._ends:
            self._ends[partition] = latest_07(connection, partition)
        connection.send_request(
            ProduceRequest(partition.topic, partition.index, delivery.message_set)
        )
        self._ends[partition] += scan(delivery.message_set).valid_bytes

    def _receive_one(self) -> None:
        if not self._in_flight:
            return
        correlation_id, delivery = self._in_flight[0]
        connection = self._link.current
        frame = connection.receive()
        base_offset = good_answer_from(delivery.partition).decode(frame, correlation_id)
        if base_offset is not None:
            self._note_taken(delivery, delivery.partition, base_offset)
            return
        try:
            published = only_one(connection.open_extension(frame, correlation_id))
        except ServerError as error:
            self._fail_oldest(error)
            return
        if published.error == ShuttingDownError.code:
            # nothing was appended; if the broker comes back in time, it takes all that is in flight
            raise BrokerUnreachableError(published.text)
        if published.error != NO_ERROR:
            self._fail_oldest(error_for_code(published.error, published.text))
            return
        self._note_taken(delivery, published.partition, published.base_offset)

    def _note_taken(self, delivery: Delivery, partition: TopicPartition, base_offset: int) -> None:
        self._in_flight.popleft()
        delivery.base_offset = base_offset
        self._ends[partition] = base_offset + len(delivery.message_set)
        self._note_done(delivery)

    def _publish_to(self, partition: TopicPartition, client_id: str) -> SinglePublish:
        publish = self._publishes.get(partition)
        if publish is None:
            publish = self._publishes[partition] = SinglePublish(
                client_id, self._rules.acks, self._timeout_ms, partition
            )
        return publish

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """Return up to where what was sent reaches in each partition; 0 where that is unknown."""
        return self._ends

    def expect(self, ends: Mapping[TopicPartition, int]) -> None:
        """Have `barrier` wait for what was sent in another way."""
        self._ends.update(ends)

    def barrier(self) -> None:
        """Wait until all that was sent can be read.

        Raises:
            RequestTimedOutError: it takes longer than the timeout; the text says what is missing.
            LogCorruptError: the broker no longer has what it acknowledged.
            BrokerError: the broker fails.
        """
        for partition, end in self._ends.items():
            # a connection may have been closed for its idleness since the last acknowledgement
            self._retrying(partial(self._readability.wait, self._link, partition, end))
