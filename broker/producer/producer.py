"""The producer: messages to topics, sent by the caller's thread or queued and sent by others.

Delivery is at least once: a set that a broker did not acknowledge is sent again after a lost
connection, so a message can be in the log twice if the broker crashed, but not if it was shut down
in good order; none is lost without an error. Order is kept in each partition. Brokers that know
only 0.7's requests acknowledge nothing: there, delivered means handed over, and
`wait_until_readable` waits until the log has grown by the bytes sent.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from broker.client.cluster import Cluster, Connect, locked
from broker.client.connection import Connection, parse_broker_list
from broker.client.counts import ClientCounts, MetricsRegistry
from broker.client.static_cluster import StaticCluster
from broker.errors import ConfigError, ProtocolError
from broker.producer import unclosed
from broker.producer.config import ProducerConfig
from broker.producer.delivery import Delivery, Failures, OnDelivery, reports_of
from broker.producer.dispatcher import Dispatcher, Moved, OnWait
from broker.producer.encoder import Encoder, bytes_encoder
from broker.producer.named import callbacks_of, encoder_of, partitioner_of
from broker.producer.partitioner import Partitioner, hash_partitioner
from broker.producer.parts import Parts
from broker.producer.settings import DEFAULTS, ProducerSettings, queueing_of, settings_of
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, Record, scan
from broker.protocol.message_set import count_messages
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from broker.producer.callbacks import ProducerCallbacks
    from broker.producer.producer_pool import ProducerPool


__all__ = ["Delivery", "Producer"]

logger = logging.getLogger(__name__)

# of one attempt: then the broker's address is read again, as it may have moved
_MAX_CONNECT_S = 1.0


class Producer:
    """Sends messages to topics; `from_config` makes one from 0.7's properties.

    There are three ways to send. Synchronous (settings with `waits`; `producer.type=sync`): `send`
    returns when the broker has acknowledged, and raises if it does not. Windowed (the default of
    this constructor): `send` returns before that, `flush` waits. Asynchronous (settings with
    `queueing`; `producer.type=async`): `send` only queues, and threads of the producer send; only
    this way is safe for several threads.

    No message is lost in silence: one that was not delivered is reported to `on_delivery`, or
    raised by a call, or known to its `Delivery`, or else `close` raises, as does leaving a `with`
    block.

    Args:
        cluster: knows topics and brokers; with queues, called by several threads.
        connect: makes connections to brokers.
        settings: how it sends, encodes and queues.
        partitioner: chooses a partition for each send; by key hash, or at random without a key.
        encoder: makes payloads of messages.
        on_delivery: called with a report on each message given to `send`, exactly once: by the
            thread that calls `send`, `flush` or `wait_until_readable`, or by the producer's own
            threads.
        callbacks: see and change queued messages.
        counts: of the client that this producer is a part of; else it has its own.

    Raises:
        InvalidTopicError: by methods with a topic, if no topic can have the name.
        BrokerUnreachableError: by all methods that need a broker, if none can be reached.
    """

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        settings: ProducerSettings = DEFAULTS,
        *,
        partitioner: Partitioner = hash_partitioner,
        encoder: Encoder = bytes_encoder,
        on_delivery: OnDelivery | None = None,
        callbacks: ProducerCallbacks | None = None,
        counts: ClientCounts | None = None,
    ) -> None:
        self._is_ended = True  # until it is made
        self._counts = ClientCounts()
        self._is_part = counts is not None
        self._resources = ExitStack()
        self._parts = parts = Parts(
            cluster=cluster,
            connect=connect,
            settings=settings,
            partitioner=partitioner,
            encoder=encoder,
            on_delivery=on_delivery,
            ledger=(counts or self._counts).producers,
        )
        self._pool: ProducerPool | None = None  # of a producer with queues, which sends only by it
        if settings.queueing is not None:
            from broker.producer.producer_pool import ProducerPool  # late: commands need none

            self._pool = ProducerPool(parts, settings.queueing, callbacks)
        else:
            if callbacks is not None:
                raise ConfigError("callbacks are for asynchronous producers")
            self._dispatcher = Dispatcher(parts)
        self._is_ended = False

    @classmethod
    def from_config(
        cls,
        config: ProducerConfig,
        *,
        partitioner: Partitioner | None = None,
        encoder: Encoder | None = None,
        callbacks: ProducerCallbacks | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Self:
        """Return a producer with 0.7's properties, synchronous or asynchronous; close it.

        With `zk.connect` it follows brokers and topics by watches; with `broker.list` it reads the
        partitions of its topics from the brokers every few seconds, and when one is gone.

        Args:
            config: for instance `ProducerConfig.from_properties({"zk.connect": "localhost"})`.
            partitioner: returns an index into a topic's partitions, sorted by broker id and index;
                None for that of `partitioner.class`.
            encoder: makes payloads of the messages given to `send`; None for `serializer.class`.
            callbacks: see and change messages (`producer.type=async` only); None for those of
                `callback.handler` and `event.handler`.
            on_delivery: called with reports on messages; see the class.

        Raises:
            ConfigError: not exactly one of `zk.connect` and `broker.list` is set, a value is
                malformed, or a plug-in cannot be loaded.
            RegistryUnreachableError: there is no response from ZooKeeper.
        """
        partitioner = partitioner or partitioner_of(config) or hash_partitioner
        encoder = encoder or encoder_of(config)
        callbacks = callbacks or callbacks_of(config)
        with ExitStack() as resources:
            connect = _connector_of(config)
            cluster = _open_cluster(config, connect, resources)
            queueing = queueing_of(config)
            # with ZooKeeper, partitions are watched
            is_aging = not config.zookeeper and config.metadata_refresh_ms >= 0
            producer = cls(
                cluster,
                connect,
                replace(
                    settings_of(config),
                    max_age_s=config.metadata_refresh_ms / 1000 if is_aging else math.inf,
                    waits=queueing is None,
                    queueing=queueing,
                ),
                partitioner=partitioner,
                encoder=encoder,
                on_delivery=on_delivery,
                callbacks=callbacks,
            )
            if config.zookeeper:
                from broker.client.watched_cluster import WatchedCluster  # late: loads kazoo

                assert isinstance(cluster, WatchedCluster)
                partitions = producer._parts.partitions
                sending = producer._pool or producer._dispatcher

                def note_change() -> None:  # must not know the producer; see `__del__`
                    partitions.forget_all()
                    sending.retry_now()

                cluster.on_change = note_change
            producer._resources = resources.pop_all()
        return producer

    def __del__(self) -> None:
        # one of a client is ended by what the program has of the client
        if not getattr(self, "_is_ended", True) and not self._is_part:
            unclosed.later(self._end_dropped)
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)

    def _end_dropped(self) -> None:
        if self._pool is not None:
            unclosed.end([self._pool])
        self._end(0)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        try:
            if exc_type is None:
                self.flush()
        finally:
            self._end(None)
        failure = self._parts.failures.take()
        if failure is not None and exc_type is None:
            raise failure
        if failure is not None:
            logger.error("%s", failure)  # another error is on its way to the program

    def send(self, topic: str, messages: Iterable[Any], key: bytes | None = None) -> Delivery:
        """Send messages to one partition, in this order.

        Args:
            topic: created by the message if it does not exist.
            messages: a list of bytes, or of values for the encoder. A synchronous producer sends
                them as one set.
            key: picks the partition; topics of format `kafka` store it.

        Returns:
            Their outcome: done on return (synchronous), at the latest when `flush` returns
            (windowed), or some time after the last message is `queue.time` old (asynchronous).

        Raises:
            MessageSizeTooLargeError: a payload is above `max_message_bytes`; nothing is sent.
            BrokerUnreachableError, RequestTimeoutError: the broker is gone, also after retries;
                asynchronous: none was ever found. Whether the messages are in the log is unknown.
            ServerError: the broker refuses the messages (synchronous only).
            QueueFullError: there was no room in time; nothing is queued (asynchronous only).
            ProducerClosedError: the producer is closed (asynchronous only).
        """
        if self._pool is not None:
            return self._pool.send(topic, messages, key)
        messages = messages if isinstance(messages, list) else list(messages)
        parts = self._parts
        on_complete = None
        if parts.partitions.have_records(topic):
            return self._send_records(topic, parts.packer.payloads(messages, topic), key)
        if parts.on_delivery is None:
            message_set, _ = parts.packer.pack_messages(topic, messages)
        else:
            payloads = parts.packer.payloads(messages, topic)
            message_set, is_wrapped = parts.packer.pack(topic, payloads)
            on_complete = _reporter(parts.on_delivery, payloads, key, is_wrapped=is_wrapped)
        partition = parts.partitions.choose(topic, key)
        if partition.has_records:  # which was not known yet
            return self._send_records(topic, parts.packer.payloads(messages, topic), key)
        delivery = Delivery(
            partition,
            message_set,
            parts.unreported,
            on_complete,
            can_move=key is None,
            message_count=len(messages),
        )
        return self._sent(delivery)

    def _send_records(self, topic: str, payloads: list[bytes], key: bytes | None) -> Delivery:
        """Send payloads as records of the present time."""
        partition = self._parts.partitions.choose(topic, key)
        parts, now_ms, on_complete = self._parts, time.time_ns() // 1_000_000, None
        records = [Record(number, now_ms, key, one) for number, one in enumerate(payloads)]
        if parts.on_delivery is not None:
            on_complete = _reporter(parts.on_delivery, payloads, key, is_wrapped=False)
        return self._sent(self._delivery_of(partition, records, parts.unreported, on_complete))

    def _delivery_of(
        self,
        partition: TopicPartition,
        records: Sequence[Record],
        failures: Failures | None,
        on_complete: Callable[[Delivery], None] | None,
    ) -> Delivery:
        message_set = b""
        if records:
            message_set = self._parts.packer.pack_records(partition.topic, records)
        return Delivery(
            partition,
            message_set,
            failures,
            on_complete,
            message_count=len(records),
            is_numbered=not records,
        )

    def send_records(
        self,
        partition: TopicPartition,
        records: Sequence[Record],
        on_complete: Callable[[Delivery], None] | None = None,
    ) -> Delivery:
        """Send records to a partition of a topic of format `kafka`, as `send_set` does.

        Their offsets are 0, 1, and so on.
        """
        if self._pool is not None:
            raise ConfigError("records are for producers that send in the caller's thread")
        delivery = self._delivery_of(partition, records, None, on_complete)
        self._send(delivery)
        return delivery

    def _sent(self, delivery: Delivery) -> Delivery:
        """Send a set, and wait for its acknowledgement if the settings say so."""
        self._send(delivery)
        if self._parts.settings.waits:
            while not delivery.is_done:
                self._dispatcher.step()
                self._raise_failure()
            delivery.result()
        return delivery

    def _send(self, delivery: Delivery) -> None:
        self._dispatcher.send(delivery)
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure = self._dispatcher.take_failure()
        if failure is not None:
            raise failure

    def send_set(
        self,
        partition: TopicPartition,
        message_set: Buffer,
        on_complete: Callable[[Delivery], None] | None = None,
        *,
        can_move: bool = False,
    ) -> Delivery:
        """Send a ready message set to a partition, and wait only for room in the window.

        It is compressed as the messages of `send` are. There are no reports on it, and `close` does
        not raise if it is refused: read the delivery.

        Args:
            partition: the target; its topic is created if it does not exist.
            message_set: whole entries.
            on_complete: called in this or a later call, once the set is acknowledged or failed; for
                sets of one partition in order, unless a broker refuses one for its content.
            can_move: whether it may go to another partition, as messages without a key.

        Raises:
            BrokerError: sets could not be delivered; see `flush`.
            ConfigError: the producer is asynchronous.
        """
        if self._pool is not None:  # its reports are of single messages
            raise ConfigError(
                "ready message sets are for producers that send in the caller's thread"
            )
        self._parts.partitions.find(partition.topic)
        packed, is_wrapped = self._parts.packer.compress(partition.topic, message_set)
        if is_wrapped and 0 < self.message_limit(partition) < len(packed) - ENTRY_OVERHEAD_BYTES:
            packed = message_set
        delivery = Delivery(partition, packed, None, on_complete, can_move=can_move)
        if self._parts.settings.is_idempotent:
            delivery.message_count = count_messages(message_set, scan(message_set)).message_count
        self._send(delivery)
        return delivery

    def watch(self, on_wait: OnWait, on_move: Callable[[Moved], object] | None = None) -> None:
        """Set callbacks, called during the calls of a producer that sends in the caller's thread.

        Args:
            on_wait: called repeatedly while messages wait for a broker; they fail once it returns
                False.
            on_move: called when messages go to another partition, as the broker of theirs is gone.
        """
        if self._pool is None:
            self._dispatcher.on_wait = on_wait
            self._dispatcher.on_move = on_move or self._dispatcher.on_move

    def message_limit(self, partition: TopicPartition) -> int:
        """Return the largest payload that the leader of a partition takes; 0 if it is not known.

        A set with a larger message may be refused. Whoever must not store anything behind a refused
        message calls `flush` after such a set.

        Raises:
            ConfigError: the producer is asynchronous.
        """
        if self._pool is not None:
            raise ConfigError("limits are asked by producers that send in the caller's thread")
        return self._dispatcher.message_limit(partition)

    def choose_partition(self, topic: str, key: bytes | None = None) -> TopicPartition:
        """Return the partition that the next message with this key goes to."""
        return self._parts.partitions.choose(topic, key)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions messages of a topic can go to, by home and index.

        A topic that does not exist is created; brokers of 0.7 do that with its first message, so
        that these are the partitions it can have there.
        """
        return self._parts.partitions.partitions(topic)

    def is_new(self, topic: str) -> bool:
        """Return whether brokers of 0.7 create a topic with the first message of this producer."""
        return self._parts.partitions.is_new(topic)

    def poll(self) -> None:
        """Read the acknowledgements that have come, without waiting.

        `send` also does so. An asynchronous producer needs no such call.
        """
        if self._pool is None:
            self._dispatcher.poll()
            self._raise_failure()

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every delivery is done; of an asynchronous producer, also reported.

        Args:
            timeout_s: how long, for an asynchronous producer; None for as long as retries take.

        Raises:
            BrokerUnreachableError: a broker is gone (not if asynchronous: it is reported).
            RequestTimeoutError: it takes longer than the timeout.
        """
        if self._pool is not None:
            self._pool.flush(timeout_s)
        else:
            self._dispatcher.flush()
            self._raise_failure()

    def register_metrics(self, registry: MetricsRegistry, **labels: str) -> None:
        """Have a registry of `prometheus_client` collect this producer's metrics, until `close`.

        Args:
            registry: such as `prometheus_client.REGISTRY`.
            labels: of all series; they tell clients in one registry apart.

        Raises:
            ArgumentError: a label is malformed, or another client there has the same labels.
        """
        from broker.client.metrics import register  # late: few programs want it

        register(registry, self._counts, labels)

    def wait_until_readable(self) -> None:
        """Wait until consumers can find and read all that was sent, whatever the acknowledgements.

        Raises:
            RequestTimedOutError, RequestTimeoutError: it takes longer than the timeout; the text
                says what is missing.
            AcknowledgedLossError: a broker no longer has messages that it acknowledged.
            BrokerError: a broker fails meanwhile.
        """
        if self._pool is not None:
            topics = self._pool.wait_until_readable()
        else:
            self.flush()
            self._dispatcher.await_readable()
            topics = self._dispatcher.topics
        self._parts.partitions.await_known(topics, self._parts.settings.timeout_s)

    def close(self, timeout_s: float | None = None) -> None:
        """Close the producer; a second call does nothing.

        An asynchronous producer first sends and reports all queued messages. Others close their
        connections, and unacknowledged sets stay undone: call `flush` first.

        Args:
            timeout_s: after this time an asynchronous producer reports the rest as failed; None for
                `socket.timeout.ms`. An attempt to connect may take a second more.

        Raises:
            DeliveryFailedError: messages were not delivered, and the program cannot know: there is
                no `on_delivery`, no call has raised that, and their `Delivery` was not read. The
                producer is closed all the same.
        """
        self._end(timeout_s)
        failure = self._parts.failures.take()
        if failure is not None:
            raise failure

    def _end(self, timeout_s: float | None) -> None:
        self._is_ended = True
        try:
            if self._pool is not None:
                self._pool.close(timeout_s)
            else:
                self._dispatcher.close()
        finally:
            self._counts.end()
            self._resources.close()


def _reporter(
    on_delivery: OnDelivery, payloads: list[bytes], key: bytes | None, *, is_wrapped: bool
) -> Callable[[Delivery], None]:
    """Return what reports on the messages of a set once its delivery is done."""

    def report(delivery: Delivery) -> None:
        reports = reports_of(
            delivery.partition,
            payloads,
            [key] * len(payloads),
            delivery.base_offset,
            is_wrapped=is_wrapped,
            error=delivery.error,
        )
        on_delivery(reports)

    return report


def _connector_of(config: ProducerConfig) -> Connect:
    # one attempt for each connection; `BrokerConnection` tries again
    return partial(
        Connection,
        timeout_s=config.socket_timeout_ms / 1000,
        connect_timeout_s=min(_MAX_CONNECT_S, config.connect_timeout_ms / 1000),
        send_bytes=config.socket_send_bytes,
        security=config,
    )


def _open_cluster(config: ProducerConfig, connect: Connect, resources: ExitStack) -> Cluster:
    # `resources` closes it
    if bool(config.zookeeper) == bool(config.broker_list):
        raise ConfigError("a producer needs either zk.connect or broker.list")
    if config.zookeeper:
        # late: they load kazoo
        from broker.client.watched_cluster import WatchedCluster
        from broker.zk.registry import Registry
        from broker.zk.security import security_of

        registry = Registry(
            config.zookeeper,
            session_timeout_ms=config.zk_session_timeout_ms,
            security=security_of(config),
            speaks_tls=config.has_tls,
        )
        watched = WatchedCluster(registry, connect)
        watched.start(config.zk_connection_timeout_ms / 1000)
        resources.callback(watched.stop)
        return watched
    try:
        addresses = parse_broker_list(config.broker_list)
    except ProtocolError as error:
        raise ConfigError(f"broker.list: {error}") from error
    static = StaticCluster(addresses, connect)
    resources.callback(static.close)
    return locked(static)
