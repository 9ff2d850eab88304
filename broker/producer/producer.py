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
import warnings
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from broker.client import backoff
from broker.client.cluster import Cluster, Connect, locked
from broker.client.connection import Connection, parse_broker_list
from broker.client.counts import ClientCounts, MetricsRegistry
from broker.client.static_cluster import StaticCluster
from broker.errors import ConfigError, ProtocolError
from broker.producer import unclosed
from broker.producer.broker_connection import NO_RECONNECT, ReconnectRule
from broker.producer.broker_sender import SendRules
from broker.producer.config import ProducerConfig
from broker.producer.delivery import Delivery, Failures, OnDelivery
from broker.producer.dispatcher import Dispatcher, Moved, OnWait
from broker.producer.encoder import Encoder, Packer, bytes_encoder
from broker.producer.partitioner import Partitioner, TopicPartitions, hash_partitioner
from broker.producer.sync_producer import SyncProducer
from broker.protocol.client_requests import Acks
from broker.protocol.compression import Codec
from broker.protocol.primitives import Buffer
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

if TYPE_CHECKING:
    from broker.producer.async_producer import AsyncProducer
    from broker.producer.callbacks import ProducerCallbacks
    from broker.producer.sender_thread import QueueRules


__all__ = ["Delivery", "Producer"]

logger = logging.getLogger(__name__)

DEFAULT_MAX_MESSAGE_BYTES = 1_000_000
DEFAULT_DELIVERY_TIMEOUT_S = 120.0
# of one attempt: then the broker's address is read again, as it may have moved
_MAX_CONNECT_S = 1.0


class Producer:
    """Sends messages to topics; `from_config` makes one from 0.7's properties.

    There are three ways to send. Synchronous (`from_config` with `producer.type=sync`): `send`
    returns when the broker has acknowledged, and raises if it does not. Windowed (by this
    constructor): `send` returns before that, `flush` waits. Asynchronous (`producer.type=async`):
    `send` only queues, and threads of the producer send; only this way is safe for several threads.

    No message is lost in silence: one that was not delivered is reported to `on_delivery`, or
    raised by a call, or known to its `Delivery`, or else `close` raises, as does leaving a `with`
    block.

    Args:
        cluster: knows topics and brokers; with `queueing` called by several threads.
        connect: makes connections to brokers.
        partitioner: chooses a partition for each send; by key hash, or at random without a key.
        acks: when a broker acknowledges: `COMMITTED` (flushed, and on all in-sync replicas),
            `WRITTEN`, `AUTO` (committed where the topic has replicas, else written) or `NONE`.
        codec: how sets are compressed.
        max_in_flight: unacknowledged sets per broker before `send` waits for the oldest; a
            producer with queues has one for each partition.
        max_message_bytes: the largest payload, before and after compression, as 0.7 checks it.
        delivery_timeout_s: how long messages are sent again after failures that may pass, such
            as the loss of a leader, before they fail; `math.inf` for no limit.
        retries: how often, at most; None for any number.
        timeout_s: how long a broker may take to commit a set.
        encoder: makes payloads of messages.
        compressed_topics: the topics that `codec` is for; all if empty.
        backoff_s: the wait before the second retry, at most; twice as long before each further
            one, up to 16 times.
        reconnect: when connections are replaced.
        on_delivery: called with a report on each message given to `send`, exactly once: by the
            thread that calls `send`, `flush` or `wait_until_readable`, or by the producer's own
            threads.
        waits: whether `send` waits for the acknowledgement.
        max_age_s: age at which the partitions of a topic are read again.
        creates_topics: whether a topic that does not exist is created.
        queueing: makes the producer asynchronous, and says how it queues.
        callbacks: see and change queued messages.
        moves: whether messages without a key go to another partition when the broker of theirs is
            gone, if the topic has no replicas.
        counts: of the client that this producer is a part of; else it has its own.

    Raises:
        InvalidTopicError: by methods with a topic, if no topic can have the name.
        BrokerUnreachableError: by all methods that need a broker, if none can be reached.
    """

    # An argument for each setting: programs give two or three, and a value that held them would
    # have to be made first.
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
        delivery_timeout_s: float = DEFAULT_DELIVERY_TIMEOUT_S,
        retries: int | None = None,
        timeout_s: float = 30.0,
        encoder: Encoder = bytes_encoder,
        compressed_topics: Collection[str] = (),
        backoff_s: float = backoff.FIRST_S,
        reconnect: ReconnectRule = NO_RECONNECT,
        on_delivery: OnDelivery | None = None,
        waits: bool = False,
        max_age_s: float = math.inf,
        creates_topics: bool = True,
        queueing: QueueRules | None = None,
        callbacks: ProducerCallbacks | None = None,
        moves: bool = True,
        counts: ClientCounts | None = None,
    ) -> None:
        self._own_counts = ClientCounts()
        self._is_part = counts is not None
        self._is_ended = True  # until it is made
        ledger = (counts or self._own_counts).producers
        self._timeout_s = timeout_s
        self._failures = Failures()
        self._resources = ExitStack()
        self._partitions = partitions = TopicPartitions(
            cluster, partitioner, max_age_s=max_age_s, creates=creates_topics
        )
        self._packer = packer = Packer(
            encoder=encoder,
            codec=codec,
            compressed_topics=compressed_topics,
            max_message_bytes=max_message_bytes,
        )
        rules = SendRules(
            acks,
            timeout_s,
            delivery_timeout_s,
            retries,
            backoff_s,
            moves,
            reconnect,
            max_in_flight if queueing is None else 1,
        )

        def make_dispatcher() -> Dispatcher:  # what sends must not know this object; see `__del__`
            return Dispatcher(
                cluster,
                connect,
                rules,
                replacement=partitions.replacement,
                note_presence=partitions.note_presence,
                ledger=ledger,
            )

        self._sending: SyncProducer | AsyncProducer
        if queueing is None:
            if callbacks is not None:
                raise ConfigError("callbacks are for asynchronous producers")
            self._sending = SyncProducer(
                make_dispatcher(),
                self._partitions,
                packer,
                waits=waits,
                on_delivery=on_delivery,
                failures=self._failures,
            )
        else:
            from broker.producer.async_producer import AsyncProducer  # late: commands need none

            self._sending = AsyncProducer(
                make_dispatcher,
                self._partitions,
                packer,
                timeout_s=timeout_s,
                queueing=queueing,
                callbacks=callbacks,
                on_delivery=on_delivery,
                failures=self._failures,
            )
        self._is_ended = False

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

        With `zk.connect` it follows brokers and topics by watches; with `broker.list` it reads the
        partitions of its topics from the brokers every few seconds, and when one is gone.

        Args:
            config: for instance `ProducerConfig.from_properties({"zk.connect": "localhost"})`.
            partitioner: returns an index into a topic's partitions, sorted by broker id and index.
            encoder: makes payloads of the messages given to `send`.
            callbacks: see and change messages (`producer.type=async` only).
            on_delivery: called with reports on messages; see the class.

        Raises:
            ConfigError: not exactly one of `zk.connect` and `broker.list` is set, or a value is
                malformed.
            RegistryUnreachableError: there is no response from ZooKeeper.
        """
        with ExitStack() as resources:
            connect = _connector_of(config)
            cluster = _open_cluster(config, connect, resources)
            queueing = _queueing_of(config)
            producer = cls(
                cluster,
                connect,
                **settings_of(config),
                partitioner=partitioner,
                encoder=encoder,
                on_delivery=on_delivery,
                waits=queueing is None,
                max_age_s=_max_age_s_of(config),
                queueing=queueing,
                callbacks=callbacks,
            )
            if config.zookeeper:
                from broker.client.watched_cluster import WatchedCluster  # late: loads kazoo

                assert isinstance(cluster, WatchedCluster)
                partitions, sending = producer._partitions, producer._sending

                def note_change() -> None:
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
        if not isinstance(self._sending, SyncProducer):
            unclosed.end([self._sending])
        self._end(0)

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
            topic: created by the message if it does not exist.
            messages: a list of bytes, or of values for the encoder. A synchronous producer sends
                them as one set.
            key: picks the partition; it is not stored.

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
        return self._sending.send(topic, messages, key)

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
        if not isinstance(self._sending, SyncProducer):  # its reports are of single messages
            raise ConfigError(
                "ready message sets are for producers that send in the caller's thread"
            )
        self._partitions.find(partition.topic)
        return self._sending.send_set(partition, message_set, on_complete, can_move=can_move)

    def send_to(
        self,
        partition: TopicPartition,
        messages: list[bytes],
        on_complete: Callable[[Delivery], None] | None = None,
        *,
        can_move: bool = False,
    ) -> Delivery:
        """Queue messages for a partition, in this order.

        Args:
            partition: the target; its topic exists, as after `partitions` or `choose_partition`.
            messages: the payloads.
            on_complete: called by a thread of the producer once they are acknowledged or failed.
            can_move: whether they may go to another partition, as messages without a key.

        Raises:
            MessageSizeTooLargeError, QueueFullError, ProducerClosedError: as for `send`.
            ConfigError: the producer is not asynchronous.
        """
        if isinstance(self._sending, SyncProducer):
            raise ConfigError("messages are queued for a partition by asynchronous producers")
        payloads = self._packer.payloads(messages)
        return self._sending.queue(partition, payloads, None, on_complete, can_move=can_move)

    def watch(self, on_wait: OnWait, on_move: Callable[[Moved], object] | None = None) -> None:
        """Set callbacks, called during the calls of a producer that sends in the caller's thread.

        Args:
            on_wait: called repeatedly while messages wait for a broker; they fail once it returns
                False.
            on_move: called when messages go to another partition, as the broker of theirs is gone.
        """
        if isinstance(self._sending, SyncProducer):
            self._sending.watch(on_wait, on_move)

    def checked(self, messages: list[bytes]) -> list[bytes]:
        """Return payloads that may all be sent.

        Raises:
            MessageSizeTooLargeError: one is above `max_message_bytes`.
        """
        return self._packer.payloads(messages)

    def message_limit(self, partition: TopicPartition) -> int:
        """Return the largest payload that the leader of a partition takes; 0 if it is not known.

        A set with a larger message may be refused. Whoever must not store anything behind a refused
        message calls `flush` after such a set.

        Raises:
            ConfigError: the producer is asynchronous.
        """
        if not isinstance(self._sending, SyncProducer):
            raise ConfigError("limits are asked by producers that send in the caller's thread")
        return self._sending.message_limit(partition)

    def is_own_thread(self) -> bool:
        """Return whether the caller is a thread of this producer, as in a callback."""
        return not isinstance(self._sending, SyncProducer) and self._sending.is_own_thread()

    def choose_partition(self, topic: str, key: bytes | None = None) -> TopicPartition:
        """Return the partition that the next message with this key goes to."""
        return self._partitions.choose(topic, key)

    def partitions(self, topic: str, *, again: bool = False) -> list[TopicPartition]:
        """Return the partitions messages of a topic can go to, by home and index.

        A topic that does not exist is created; brokers of 0.7 do that with its first message, so
        that these are the partitions it can have there. `again` reads them even if they are known.
        """
        if again:
            self._partitions.refresh(topic)
        return self._partitions.partitions(topic)

    def is_new(self, topic: str) -> bool:
        """Return whether brokers of 0.7 create a topic with the first message of this producer."""
        return self._partitions.is_new(topic)

    def poll(self) -> None:
        """Read the acknowledgements that have come, without waiting.

        `send` also does so. An asynchronous producer needs no such call.
        """
        self._sending.poll()

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every delivery is done; of an asynchronous producer, also reported.

        Args:
            timeout_s: how long, for an asynchronous producer; None for as long as retries take.

        Raises:
            BrokerUnreachableError: a broker is gone (not if asynchronous: it is reported).
            RequestTimeoutError: it takes longer than the timeout.
        """
        self._sending.flush(timeout_s)

    def register_metrics(self, registry: MetricsRegistry, **labels: str) -> None:
        """Have a registry of `prometheus_client` collect this producer's metrics, until `close`.

        Args:
            registry: such as `prometheus_client.REGISTRY`.
            labels: of all series; they tell clients in one registry apart.

        Raises:
            ArgumentError: a label is malformed, or another client there has the same labels.
        """
        from broker.client.metrics import register  # late: few programs want it

        register(registry, self._own_counts, labels)

    def raise_failures(self) -> None:
        """Raise `DeliveryFailedError` if messages were not delivered, as `close` does."""
        failure = self._failures.take()
        if failure is not None:
            raise failure

    def wait_until_readable(self) -> None:
        """Wait until consumers can find and read all that was sent, whatever the acknowledgements.

        Raises:
            RequestTimedOutError, RequestTimeoutError: it takes longer than the timeout; the text
                says what is missing.
            AcknowledgedLossError: a broker no longer has messages that it acknowledged.
            BrokerError: a broker fails meanwhile.
        """
        self._partitions.await_known(self._sending.wait_until_readable(), self._timeout_s)

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
        self.raise_failures()

    def _end(self, timeout_s: float | None) -> None:
        self._is_ended = True
        try:
            self._sending.close(timeout_s)
        finally:
            self._own_counts.end()
            self._resources.close()


def settings_of(config: ProducerConfig) -> dict[str, Any]:
    """Return the arguments of `Producer` for how messages are sent, whichever its kind."""
    return {
        "acks": acks_of(config),
        "codec": codec_of(config),
        "compressed_topics": compressed_topics_of(config),
        "max_in_flight": config.max_in_flight,
        "max_message_bytes": config.max_message_bytes,
        "delivery_timeout_s": config.delivery_timeout_ms / 1000,
        "retries": config.num_retries,
        "backoff_s": config.retry_backoff_ms / 1000,
        "timeout_s": config.socket_timeout_ms / 1000,
        "reconnect": reconnect_rule_of(config),
    }


def acks_of(config: ProducerConfig) -> Acks:
    """Return the acknowledgements that a setting names, by number or as `all` or `auto`."""
    named = {"all": Acks.COMMITTED, "auto": Acks.AUTO}
    return named.get(config.acks) or Acks(int(config.acks))


def codec_of(config: ProducerConfig) -> Codec:
    """Return the codec a setting names, by number or by name."""
    return Codec(int(config.codec)) if config.codec.isdecimal() else Codec[config.codec.upper()]


def compressed_topics_of(config: ProducerConfig) -> list[str]:
    """Return the topics that are compressed; none stands for all."""
    return [topic.strip() for topic in config.compressed_topics.split(",") if topic.strip()]


def reconnect_rule_of(config: ProducerConfig) -> ReconnectRule:
    """Return when connections are replaced."""
    return ReconnectRule(config.reconnect_requests, config.reconnect_ms / 1000)


def _max_age_s_of(config: ProducerConfig) -> float:
    # with ZooKeeper, partitions are watched
    is_limited = not config.zookeeper and config.metadata_refresh_ms >= 0
    return config.metadata_refresh_ms / 1000 if is_limited else math.inf


def _connector_of(config: ProducerConfig) -> Connect:
    # one attempt for each connection; `BrokerConnection` tries again

    def connect(address: BrokerAddress) -> Connection:
        return Connection(
            address,
            timeout_s=config.socket_timeout_ms / 1000,
            connect_timeout_s=min(_MAX_CONNECT_S, config.connect_timeout_ms / 1000),
            send_bytes=config.socket_send_bytes,
            security=config,
        )

    return connect


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


def _queueing_of(config: ProducerConfig) -> QueueRules | None:
    if config.producer_type == "sync":
        return None
    from broker.producer.accumulator import BatchRules  # late: as `AsyncProducer`
    from broker.producer.sender_thread import QueueRules

    timeout_ms = config.enqueue_timeout_ms
    return QueueRules(
        BatchRules(
            capacity=config.queue_size,
            batch_count=config.batch_size,
            batch_bytes=max(1, config.max_message_bytes),
            linger_s=config.queue_ms / 1000,
        ),
        enqueue_timeout_s=None if timeout_ms < 0 else timeout_ms / 1000,
    )
