"""The synchronous producer: acknowledged publishes with a window of them in flight.

A set that a broker did not acknowledge is sent again after a lost connection, so a message can
end up in the log twice but is never lost without an error: delivery is at least once. Brokers
that know only 0.7's requests acknowledge nothing; with them a delivery means "handed over", and
`flush` waits until the log has grown by what was sent.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from functools import partial

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.client.partitioner import Partitioner, hash_partitioner
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerUnreachableError,
    LogCorruptError,
    MessageSizeTooLargeError,
    ProtocolError,
    RequestTimedOutError,
    RequestTimeoutError,
    ServerError,
    ShuttingDownError,
    error_for_code,
)
from broker.protocol.codec import scan
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.primitives import Buffer, Reader
from broker.protocol.requests import (
    LATEST_TIME,
    Acks,
    OffsetsRequest,
    PartitionSet,
    ProduceRequest,
    PublishRequest,
)
from broker.protocol.responses import (
    Published,
    decode_offsets_response,
    decode_publish_response,
)
from broker.topic import TopicPartition, check_topic_name

DEFAULT_MAX_MESSAGE_BYTES = 1_000_000
_BARRIER_PAUSE_S = 0.02
_RETRY_WAITS_S = (0.1, 0.4, 1.6)
"""Before the first, second and every later attempt to send again."""
_BROKER_SHARE_OF_TIMEOUT = 0.9


class Delivery:
    """What becomes of one message set.

    `base_offset` is the offset of its first message once it is acknowledged, -1 before, and for
    brokers that do not tell; `error` is set if the set could not be delivered.
    """

    __slots__ = ("base_offset", "error", "is_done", "message_set", "partition")

    def __init__(self, partition: TopicPartition, message_set: Buffer) -> None:
        self.partition = partition
        self.message_set = message_set
        self.base_offset = -1
        self.error: BrokerError | None = None
        self.is_done = False

    def result(self) -> int:
        """Return the base offset.

        Raises:
            BrokerError: the set could not be delivered.
        """
        if self.error is not None:
            raise self.error
        return self.base_offset


class Producer:
    """Sends messages to topics.

    Not safe for several threads at once.

    Args:
        cluster: where topics are.
        connect: makes connections to brokers.
        partitioner: picks a partition for each send; by key hash, or at random without a key.
        acks: when a broker acknowledges: `COMMITTED` (flushed), `WRITTEN` or `NONE`.
        codec: how sets are compressed.
        max_in_flight: unacknowledged sets per broker before `send` waits for the oldest.
        max_message_bytes: the largest payload, before and after compression, as 0.7 checks it.
        retries: how often a set is sent again after a lost connection.
        timeout_s: how long a broker may take to commit a set.
    """

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        *,
        partitioner: Partitioner = hash_partitioner,
        acks: Acks = Acks.COMMITTED,
        codec: Codec = Codec.NONE,
        max_in_flight: int = 64,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        retries: int = 3,
        timeout_s: float = 30.0,
    ) -> None:
        self._cluster = cluster
        self._connect = connect
        self._partitioner = partitioner
        self._acks = acks
        self._codec = codec
        self._max_in_flight = max_in_flight
        self._max_message_bytes = max_message_bytes
        self._retries = retries
        self._timeout_s = timeout_s
        self._partitions: dict[str, list[TopicPartition]] = {}
        self._new_topics: set[str] = set()
        self._channels: dict[int, Channel] = {}

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        try:
            if exc_type is None:
                self.flush()
        finally:
            self.close()

    def send(self, topic: str, messages: Iterable[Buffer], key: bytes | None = None) -> Delivery:
        """Send messages to one partition as one set, and wait for room in the window only.

        Args:
            topic: the topic; a topic that does not exist yet comes into being with it.
            messages: the payloads.
            key: picks the partition; it is not stored.

        Returns:
            What becomes of the set: done at the latest when `flush` returns.

        Raises:
            MessageSizeTooLargeError: a payload is above `max_message_bytes`; nothing is sent.
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker of the topic can be reached.
        """
        message_set = build_set(self._checked(messages), self._codec)
        return self.send_set(self.choose_partition(topic, key), message_set)

    def _checked(self, messages: Iterable[Buffer]) -> Iterable[Buffer]:
        for message in messages:
            if len(message) > self._max_message_bytes:
                raise MessageSizeTooLargeError(
                    f"a message has {len(message)} bytes; the limit is {self._max_message_bytes}"
                )
            yield message

    def choose_partition(self, topic: str, key: bytes | None = None) -> TopicPartition:
        """Return the partition that the next message with this key goes to.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        partitions = self.partitions(topic)
        return partitions[self._partitioner(key, len(partitions))]

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions messages of a topic can go to, by home and index.

        Of a topic that does not exist yet these are the ones it can come into being with.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        partitions = self._partitions.get(topic)
        if partitions is None:
            check_topic_name(topic)
            partitions = self._cluster.partitions(topic)
            if not partitions:
                partitions = self._partitions_of_new_topic(topic)
                self._new_topics.add(topic)
            self._partitions[topic] = partitions
        return partitions

    def is_new(self, topic: str) -> bool:
        """Say whether a topic did not exist when its partitions were looked up."""
        return topic in self._new_topics

    def _partitions_of_new_topic(self, topic: str) -> list[TopicPartition]:
        """Return partition 0 of every broker, as 0.7's producer does for a topic it cannot find."""
        partitions = [TopicPartition(topic, one.id, 0) for one in self._cluster.brokers()]
        if not partitions:
            raise BrokerUnreachableError(f"there is no live broker to create topic '{topic}' on")
        return partitions

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Send a ready message set to a partition; see `send`."""
        delivery = Delivery(partition, message_set)
        self._channel(partition).send(delivery)
        return delivery

    def _channel(self, partition: TopicPartition) -> Channel:
        channel = self._channels.get(partition.home)
        if channel is None:
            channel = Channel(
                self._connect(self._cluster.leader(partition)),
                acks=self._acks,
                max_in_flight=self._max_in_flight,
                retries=self._retries,
                timeout_s=self._timeout_s,
            )
            self._channels[partition.home] = channel
        return channel

    def flush(self) -> None:
        """Wait until every delivery is done."""
        for channel in self._channels.values():
            channel.drain()

    def barrier(self) -> None:
        """Wait until consumers can find and read all that was sent, whatever the acknowledgements.

        Raises:
            RequestTimedOutError, RequestTimeoutError: it takes longer than the timeout; the text
                says what is missing.
            LogCorruptError: a broker no longer has what it acknowledged.
            BrokerError: a broker fails meanwhile.
        """
        self.flush()
        for channel in self._channels.values():
            channel.barrier()
        sent_topics = {topic for channel in self._channels.values() for topic in channel.topics()}
        for topic in self._new_topics & sent_topics:
            self._wait_until_known(topic)
        self._new_topics -= sent_topics

    def _wait_until_known(self, topic: str) -> None:
        """Wait until a topic that came into being with our messages is there for others."""
        give_up_s = time.monotonic() + self._timeout_s
        while not self._cluster.partitions(topic):
            if time.monotonic() >= give_up_s:
                raise RequestTimeoutError(
                    f"topic '{topic}' is written but not registered after {self._timeout_s:g}s"
                )
            time.sleep(_BARRIER_PAUSE_S)

    def close(self) -> None:
        """Close all connections; deliveries that are not done stay undone. `flush` comes first."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()


class Channel:
    """The way to one broker: a connection and the deliveries in flight on it, in order.

    Args:
        connection: to the broker; owned by the channel from now on.
        acks: when the broker acknowledges.
        max_in_flight: how many deliveries may be unacknowledged.
        retries: how often they are sent again after a lost connection.
        timeout_s: how long the broker may take to commit.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        acks: Acks,
        max_in_flight: int,
        retries: int,
        timeout_s: float,
    ) -> None:
        self._connection = connection
        self._acks = acks
        self._max_in_flight = max_in_flight
        self._retries = retries
        self._timeout_s = timeout_s
        self._in_flight: deque[tuple[int, Delivery]] = deque()
        self._ends: dict[TopicPartition, int] = {}

    def send(self, delivery: Delivery) -> None:
        """Send one set; wait for the oldest acknowledgement when the window is full.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries.
        """
        if len(self._in_flight) >= self._max_in_flight:
            self._retrying(self._receive_one)
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
        self._connection.close()

    def _retrying(self, action: object) -> None:
        """Run an action; on a lost connection send all that is in flight again, then go on."""
        assert callable(action)
        for attempt in range(self._retries + 1):
            try:
                if attempt and self._in_flight:
                    self._send_all_again()
                    if action == self._send_last:
                        return
                action()
                return
            except (BrokerUnreachableError, RequestTimeoutError) as error:
                self._connection.close()
                if attempt == self._retries:
                    self._fail_all(error)
                    raise
                time.sleep(_RETRY_WAITS_S[min(attempt, len(_RETRY_WAITS_S) - 1)])
            except ProtocolError as error:
                self._connection.close()
                self._fail_all(error)
                raise

    def _fail_all(self, error: BrokerError) -> None:
        while self._in_flight:
            self._fail_oldest(error)

    def _fail_oldest(self, error: BrokerError) -> None:
        _, delivery = self._in_flight.popleft()
        delivery.error = error
        delivery.is_done = True

    def _send_last(self) -> None:
        self._send_at(len(self._in_flight) - 1)

    def _send_all_again(self) -> None:
        for place in range(len(self._in_flight)):
            self._send_at(place)

    def _send_at(self, place: int) -> None:
        _, delivery = self._in_flight[place]
        if self._connection.hello() is None:
            self._send_07(delivery)
            del self._in_flight[place]
            return
        correlation_id = self._connection.send_extension(
            self._publish(delivery.partition, delivery.message_set, self._acks)
        )
        if self._acks is Acks.NONE:
            del self._in_flight[place]
            delivery.is_done = True
            # where it ends is unknown; that something was sent there is what the barrier needs
            self._ends.setdefault(delivery.partition, 0)
        else:
            self._in_flight[place] = (correlation_id, delivery)

    def _publish(
        self, partition: TopicPartition, message_set: Buffer, acks: Acks
    ) -> PublishRequest:
        # less than the connection waits for an answer, so that the broker can say that time is up
        timeout_ms = int(self._timeout_s * 1000 * _BROKER_SHARE_OF_TIMEOUT)
        return PublishRequest(acks, timeout_ms, (PartitionSet(partition, message_set),))

    def _receive_one(self) -> None:
        if not self._in_flight:
            return
        correlation_id, delivery = self._in_flight[0]
        try:
            published = _only_one(self._connection.receive_extension(correlation_id))
        except ServerError as error:
            self._fail_oldest(error)
            return
        if published.error == ShuttingDownError.code:
            # nothing was appended; if the broker comes back in time, it takes all that is in flight
            raise BrokerUnreachableError(published.text)
        if published.error != NO_ERROR:
            self._fail_oldest(error_for_code(published.error, published.text))
            return
        self._in_flight.popleft()
        delivery.is_done = True
        delivery.base_offset = published.base_offset
        self._ends[published.partition] = published.base_offset + len(delivery.message_set)

    def _send_07(self, delivery: Delivery) -> None:
        partition = delivery.partition
        if partition not in self._ends:
            self._ends[partition] = self._latest_07(partition)
        self._connection.send_request(
            ProduceRequest(partition.topic, partition.index, delivery.message_set)
        )
        self._ends[partition] += scan(delivery.message_set).valid_bytes
        delivery.is_done = True

    def _latest_07(self, partition: TopicPartition) -> int:
        self._connection.send_request(
            OffsetsRequest(partition.topic, partition.index, LATEST_TIME, 1)
        )
        return next(iter(decode_offsets_response(self._connection.receive())), 0)

    def topics(self) -> set[str]:
        """Return the topics something was sent to."""
        return {partition.topic for partition in self._ends}

    def barrier(self) -> None:
        """Wait until all that was sent can be read.

        Raises:
            RequestTimedOutError: it takes longer than the timeout; the text says what is missing.
            LogCorruptError: the broker no longer has what it acknowledged.
            BrokerError: the broker fails.
        """
        for partition, end in self._ends.items():
            # a connection may have been closed for its idleness since the last acknowledgement
            self._retrying(partial(self._wait_until_readable, partition, end))

    def _wait_until_readable(self, partition: TopicPartition, end: int) -> None:
        if self._connection.hello() is None:
            self._barrier_07(partition, end)
        elif self._acks is not Acks.COMMITTED:
            # an empty committed publish waits for all that was written before it
            published = _only_one(
                self._connection.call(self._publish(partition, b"", Acks.COMMITTED))
            )
            if published.error == RequestTimedOutError.code:
                raise self._not_readable(partition, end, self._latest_07(partition))
            if published.error != NO_ERROR:
                raise error_for_code(published.error, published.text)
            if published.base_offset < end:
                raise LogCorruptError(
                    f"{partition} ends at {published.base_offset} and not at {end}: the broker "
                    "has lost what it acknowledged as written"
                )

    def _not_readable(self, partition: TopicPartition, end: int, latest: int) -> ServerError:
        missing = f"{end - latest} bytes" if end > latest else "some"
        return RequestTimedOutError(
            f"{missing} of {partition} cannot be read yet, "
            f"{self._timeout_s:g}s after they were sent"
        )

    def _barrier_07(self, partition: TopicPartition, end: int) -> None:
        give_up_s = time.monotonic() + self._timeout_s
        while (latest := self._latest_07(partition)) < end:
            if time.monotonic() >= give_up_s:
                raise self._not_readable(partition, end, latest)
            time.sleep(_BARRIER_PAUSE_S)


def _only_one(body: Reader) -> Published:
    """Return what became of the one set of a publish."""
    results = decode_publish_response(body)
    if len(results) != 1:
        raise ProtocolError(f"{len(results)} results came for the one set of a publish")
    return results[0]
