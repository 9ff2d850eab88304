"""The producer: messages to topics, sent by the caller's thread or queued and sent by others.

Delivery is at least once: what a broker did not acknowledge is sent again after a lost
connection, so a message can be in the log twice, but is never lost without an error. Order is
kept in each partition. Brokers that know only 0.7's requests acknowledge nothing; with them
delivered means handed over, and `barrier` waits until the log has grown by what was sent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from broker.client.cluster import Cluster, Connect
from broker.client.delivery import Delivery, OnDelivery
from broker.client.encoder import Encoder, Packer, bytes_encoder
from broker.client.link import NO_RECONNECT, ReconnectRule, SendRules
from broker.client.outlet import DirectOutlet, Outlet
from broker.client.partitioner import Partitioner, hash_partitioner
from broker.client.routes import Routes
from broker.protocol.compression import Codec
from broker.protocol.primitives import Buffer
from broker.protocol.requests import Acks
from broker.topic import TopicPartition

__all__ = ["Delivery", "Producer"]

DEFAULT_MAX_MESSAGE_BYTES = 1_000_000


class Producer:
    """Sends messages to topics.

    Made like this it sends in the caller's thread with a window of unacknowledged sets, and is
    not safe for several threads at once.

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
        encoder: makes payloads of messages.
        compressed_topics: the topics that `codec` is for; all if empty.
        backoff_s: how long to wait before the first retry; 4 and 16 times as long before others.
        reconnect: when connections are made anew.
        on_delivery: told what became of messages, by the thread that calls `send` or `flush`.
        waits: whether `send` waits for the acknowledgement.
        look_again_s: after so long the partitions of a topic that was new are looked up again.
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
        encoder: Encoder = bytes_encoder,
        compressed_topics: Collection[str] = (),
        backoff_s: float = 0.1,
        reconnect: ReconnectRule = NO_RECONNECT,
        on_delivery: OnDelivery | None = None,
        waits: bool = False,
        look_again_s: float = math.inf,
    ) -> None:
        self._timeout_s = timeout_s
        self._routes = Routes(cluster, partitioner, look_again_s=look_again_s)
        self._packer = Packer(
            encoder=encoder,
            codec=codec,
            compressed_topics=compressed_topics,
            max_message_bytes=max_message_bytes,
        )
        rules = SendRules(
            acks=acks,
            retries=retries,
            backoff_s=backoff_s,
            timeout_s=timeout_s,
            reconnect=reconnect,
        )
        self._outlet: Outlet = DirectOutlet(
            cluster,
            connect,
            self._routes,
            self._packer,
            rules,
            max_in_flight=max_in_flight,
            waits=waits,
            on_delivery=on_delivery,
        )

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        try:
            if exc_type is None:
                self.flush()
        finally:
            self.close()

    def send(self, topic: str, messages: Iterable[Any], key: bytes | None = None) -> Delivery:
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
        payloads = self._packer.payloads(messages)
        return self._outlet.put(topic, payloads, key)

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Send a ready message set to a partition; see `send`."""
        return self._outlet.send_set(partition, message_set)

    def choose_partition(self, topic: str, key: bytes | None = None) -> TopicPartition:
        """Return the partition that the next message with this key goes to.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        return self._routes.choose(topic, key)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions messages of a topic can go to, by home and index.

        Of a topic that does not exist yet these are the ones it can come into being with.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        return self._routes.partitions(topic)

    def is_new(self, topic: str) -> bool:
        """Say whether a topic did not exist when its partitions were looked up."""
        return self._routes.is_new(topic)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every delivery is done."""
        self._outlet.flush(timeout_s)

    def barrier(self) -> None:
        """Wait until consumers can find and read all that was sent, whatever the acknowledgements.

        Raises:
            RequestTimedOutError, RequestTimeoutError: it takes longer than the timeout; the text
                says what is missing.
            LogCorruptError: a broker no longer has what it acknowledged.
            BrokerError: a broker fails meanwhile.
        """
        self._routes.await_known(self._outlet.barrier(), self._timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Close all connections; deliveries that are not done stay undone. `flush` comes first."""
        self._outlet.close(timeout_s)
