"""The producer: messages to topics, sent by the caller's thread or queued and sent by others.

Delivery is at least once: what a broker did not acknowledge is sent again after a lost
connection, so a message can be in the log twice, but is never lost without an error. Order is
kept in each partition. Brokers that know only 0.7's requests acknowledge nothing; with them
delivered means handed over, and `barrier` waits until the log has grown by what was sent.

What the texts of a producer's settings mean, for whoever makes producers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from broker.client.cluster import Cluster, Connect
from broker.config import ProducerConfig
from broker.errors import ConfigError
from broker.producer.delivery import Delivery, Failures, OnDelivery
from broker.producer.encoder import Encoder, Packer, bytes_encoder
from broker.producer.link import NO_RECONNECT, ReconnectRule, SendRules
from broker.producer.outlet import DirectOutlet, Outlet
from broker.producer.partitioner import Partitioner, hash_partitioner
from broker.producer.routes import Routes
from broker.protocol.compression import Codec
from broker.protocol.extension_requests import Acks
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from broker.config import ProducerConfig
    from broker.producer.callbacks import ProducerCallbacks
    from broker.producer.sender_thread import LaneRules


__all__ = ["Delivery", "Producer"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_MESSAGE_BYTES = 1_000_000


class Producer:
    """Sends messages to topics; `from_config` makes one of 0.7's properties.

    There are three ways to send. Synchronous (`from_config` with `producer.type=sync`): `send`
    returns when the broker has acknowledged, and raises if it does not. Windowed (made like this):
    `send` returns before that, `flush` waits. Asynchronous (`producer.type=async`): `send` only
    queues, and threads of the producer send; that way alone is safe for several threads at once.

    Nothing is lost in silence: what was not delivered is reported to `on_delivery`, or raised by
    a call, or told by the `Delivery`, or else `close` raises, as does leaving a `with` block.

    Args:
        cluster: where topics are; with `queueing` several threads ask it.
        connect: makes connections to brokers.
        partitioner: picks a partition for each send; by key hash, or at random without a key.
        acks: when a broker acknowledges: `COMMITTED` (flushed), `WRITTEN` or `NONE`.
        codec: how sets are compressed.
        max_in_flight: unacknowledged sets per broker before `send` waits for the oldest; a
            producer with queues has one for each partition.
        max_message_bytes: the largest payload, before and after compression, as 0.7 checks it.
        retries: how often a set is sent again after a failure that may pass.
        timeout_s: how long a broker may take to commit a set.
        encoder: makes payloads of messages.
        compressed_topics: the topics that `codec` is for; all if empty.
        backoff_s: how long to wait before the first retry; 4 and 16 times as long before others.
        connect_timeout_s: how long a broker may be nowhere until an attempt has failed, on top of
            what its connections wait.
        reconnect: when connections are made anew.
        on_delivery: told what became of messages given to `send`, each exactly once: by the
            thread that calls `send`, `flush` or `barrier`, or by the producer's own threads.
        waits: whether `send` waits for the acknowledgement.
        look_again_s: after so long the partitions of a topic that was new are looked up again.
        queueing: makes the producer asynchronous, and says how it queues.
        callbacks: what queued messages are put through.
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
        connect_timeout_s: float = 0.0,
        reconnect: ReconnectRule = NO_RECONNECT,
        on_delivery: OnDelivery | None = None,
        waits: bool = False,
        look_again_s: float = math.inf,
        queueing: LaneRules | None = None,
        callbacks: ProducerCallbacks | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._failures = Failures()
        self._resources = ExitStack()
        self._routes = Routes(cluster, partitioner, look_again_s=look_again_s)
        self._packer = Packer(
            encoder=encoder,
            codec=codec,
            compressed_topics=compressed_topics,
            max_message_bytes=max_message_bytes,
        )
        rules = SendRules(acks, retries, backoff_s, timeout_s, connect_timeout_s, reconnect)
        self._outlet: Outlet
        if queueing is None:
            if callbacks is not None:
                raise ConfigError("callbacks are for asynchronous producers")
            self._outlet = DirectOutlet(
                cluster,
                connect,
                self._routes,
                self._packer,
                rules,
                max_in_flight=max_in_flight,
                waits=waits,
                on_delivery=on_delivery,
                failures=self._failures,
            )
        else:
            from broker.producer.queued_outlet import QueuedOutlet  # late: commands need none

            self._outlet = QueuedOutlet(
                cluster,
                connect,
                self._routes,
                self._packer,
                sending=rules,
                queueing=queueing,
                callbacks=callbacks,
                on_delivery=on_delivery,
                failures=self._failures,
            )

    @classmethod
    def from_config(
        cls,
        config: ProducerConfig,
        *,
        partitioner: Partitioner = hash_partitioner,
        encoder: Encoder = bytes_encoder,
        callbacks: ProducerCallbacks | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Self:
        """Return a producer with 0.7's properties, synchronous or asynchronous; close it.

        With `zk.connect` it follows brokers and topics by watches; with `broker.list` a topic goes
        to those listed brokers that answer when it is sent to first.

        Args:
            config: for instance `ProducerConfig.from_properties({"zk.connect": "localhost"})`.
            partitioner: picks a place in a topic's partitions, sorted by broker id and index.
            encoder: makes payloads of what is given to `send`.
            callbacks: what messages are put through (`producer.type=async` only).
            on_delivery: told what became of messages; see the class.

        Raises:
            ConfigError: not exactly one of `zk.connect` and `broker.list` is set, or a value is
                malformed.
            RegistryUnreachableError: ZooKeeper does not answer.
        """
        from broker.client.watched_cluster import WatchedCluster
        from broker.producer import configured  # late: it needs the registry's modules

        with ExitStack() as resources:
            connect = configured.connector_of(config)
            cluster = configured.open_cluster(config, connect, resources)
            queueing = configured.queueing_of(config)
            producer = cls(
                cluster,
                connect,
                partitioner=partitioner,
                acks=Acks(int(config.acks)),
                codec=codec_of(config),
                max_in_flight=config.max_in_flight,
                max_message_bytes=config.max_message_bytes,
                retries=config.num_retries,
                timeout_s=config.socket_timeout_ms / 1000,
                encoder=encoder,
                compressed_topics=compressed_topics_of(config),
                backoff_s=config.retry_backoff_ms / 1000,
                connect_timeout_s=config.connect_timeout_ms / 1000,
                reconnect=reconnect_rule_of(config),
                on_delivery=on_delivery,
                waits=queueing is None,
                look_again_s=configured.look_again_s(config),
                queueing=queueing,
                callbacks=callbacks,
            )
            if isinstance(cluster, WatchedCluster):
                cluster.on_change = producer._cluster_changed
            producer._resources = resources.pop_all()
        return producer

    def _cluster_changed(self) -> None:
        self._routes.forget_all()
        self._outlet.retry_now()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        try:
            if exc_type is None:
                self.flush()
        finally:
            self._end(None)
        failure = self._failures.take()
        if failure is not None and exc_type is None:
            raise failure
        if failure is not None:
            logger.error("%s", failure)  # another error is on its way to the program

    def send(self, topic: str, messages: Iterable[Any], key: bytes | None = None) -> Delivery:
        """Send messages to one partition, in this order.

        Args:
            topic: the topic; a topic that does not exist yet comes into being with it.
            messages: a list of bytes, or of what the encoder takes. A synchronous producer sends
                them as one set.
            key: picks the partition; it is not stored.

        Returns:
            What becomes of them: done on return (synchronous), at the latest when `flush` returns
            (windowed), or some time after the message that came last is `queue.time` old
            (asynchronous).

        Raises:
            MessageSizeTooLargeError: a payload is above `max_message_bytes`; nothing is sent.
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries;
                asynchronous: none was ever found. Whether the messages are in the log is unknown.
            ServerError: the broker refuses the messages (synchronous only).
            QueueFullError: there was no room in time; nothing is queued (asynchronous only).
            ProducerClosedError: the producer is closed (asynchronous only).
        """
        return self._outlet.put(topic, self._packer.payloads(messages), key)

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Send a ready message set to a partition, and wait for room in the window only.

        No reports are made of it, and `close` does not raise if it is refused: ask the delivery.

        Raises:
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries.
            ConfigError: the producer is asynchronous.
        """
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
        """Wait until every delivery is done; of an asynchronous producer, also reported.

        Args:
            timeout_s: how long, for an asynchronous producer; None for as long as retries take.

        Raises:
            BrokerUnreachableError: a broker is gone (not if asynchronous: it is reported).
            RequestTimeoutError: it takes longer than the timeout.
        """
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
        """End the producer; a second call does nothing.

        An asynchronous producer first sends and reports what is queued. Others close their
        connections, and what is not acknowledged yet stays undone: `flush` comes first.

        Args:
            timeout_s: after how long an asynchronous producer reports what is left as failed;
                None for `socket.timeout.ms`. An attempt to connect may take a second more.

        Raises:
            DeliveryFailedError: messages were not delivered, and the program cannot know: there is
                no `on_delivery`, no call has raised that, and nobody has asked their `Delivery`.
                The producer is closed all the same.
        """
        self._end(timeout_s)
        failure = self._failures.take()
        if failure is not None:
            raise failure

    def _end(self, timeout_s: float | None) -> None:
        try:
            self._outlet.close(timeout_s)
        finally:
            self._resources.close()


def codec_of(config: ProducerConfig) -> Codec:
    """Return the codec a setting names, by number or by name."""
    return Codec(int(config.codec)) if config.codec.isdecimal() else Codec[config.codec.upper()]


def compressed_topics_of(config: ProducerConfig) -> list[str]:
    """Return the topics that are compressed; none stands for all."""
    return [topic.strip() for topic in config.compressed_topics.split(",") if topic.strip()]


def reconnect_rule_of(config: ProducerConfig) -> ReconnectRule:
    """Return when connections are made anew."""
    return ReconnectRule(config.reconnect_requests, config.reconnect_ms / 1000)
