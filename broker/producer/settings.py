"""How a producer sends, encodes and queues: one value, which its parts hand on as it is."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from broker.client import backoff
from broker.producer.config import ProducerConfig
from broker.protocol.client_requests import Acks
from broker.protocol.compression import Codec

DEFAULT_MAX_MESSAGE_BYTES = 1_000_000
DEFAULT_DELIVERY_TIMEOUT_S = 120.0


class ReconnectRule(NamedTuple):
    """When a connection is replaced by a new one, so that load balancers can act.

    Source: Kafka 0.7 `reconnect.interval` and `reconnect.time.interval.ms` of `SyncProducer`.
    """

    requests: int = 0  # after this many requests; 0 for never
    # After this many seconds; negative for never. The first time comes at random within it, so that
    # producers started together do not reconnect together.
    interval_s: float = -1.0


NO_RECONNECT = ReconnectRule()


class BatchRules(NamedTuple):
    """When a batch is sent, and how much may be queued."""

    capacity: int = 10_000  # messages queued for one broker, without those in flight
    capacity_bytes: float = math.inf  # of their payloads
    batch_count: int = 200  # messages that make a batch full
    batch_bytes: int = 1_000_000  # most payload bytes; a larger message is a batch of its own
    linger_s: float = 5.0  # how long a batch that is not full waits for more messages


class QueueRules(NamedTuple):
    """How a producer queues messages that others send."""

    batches: BatchRules
    enqueue_timeout_s: float | None = None  # for room; None without a limit, 0 not at all
    lingers_when_full: bool = True  # as in 0.7
    # age at which the partitions of a topic are read again once it is sent to, as there may be more
    refresh_s: float = math.inf
    logs_failures: bool = True  # also those that a delivery, a report or `close` tells of


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How a producer sends, encodes and queues.

    Attributes:
        acks: when a broker acknowledges: `COMMITTED` (flushed, and on all in-sync replicas),
            `WRITTEN`, `AUTO` (committed where the topic has replicas, else written) or `NONE`.
        codec: how sets are compressed.
        compressed_topics: the topics that `codec` is for; all if empty.
        max_message_bytes: the largest payload, before and after compression, as 0.7 checks it.
        max_in_flight: unacknowledged sets per broker before `send` waits for the oldest; a
            producer with queues has one for each partition.
        timeout_s: for a response; to commit a set a broker gets a little less, so that it can
            respond in time.
        delivery_timeout_s: how long messages are sent again after failures that may pass, such
            as the loss of a leader, before they fail; `math.inf` for no limit.
        retries: how often, at most; None for any number.
        backoff_s: the wait before the second retry, at most; twice as long before each further
            one, up to 16 times.
        reconnect: when connections are replaced.
        moves: whether messages without a key go to another partition when the broker of theirs is
            gone, if the topic has no replicas.
        max_age_s: age at which the partitions of a topic are read again.
        creates_topics: whether a topic that does not exist is created.
        waits: whether `send` waits for the acknowledgement.
        queueing: makes the producer asynchronous, and says how it queues.
        is_idempotent: whether sets of 0.7's topics are numbered, too, as record batches always are:
            a broker stores no set twice that is sent again. Such a set never moves.
    """

    acks: Acks = Acks.COMMITTED
    codec: Codec = Codec.NONE
    compressed_topics: Collection[str] = ()
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    max_in_flight: int = 64
    timeout_s: float = 30.0
    delivery_timeout_s: float = DEFAULT_DELIVERY_TIMEOUT_S
    retries: int | None = None
    backoff_s: float = backoff.FIRST_S
    reconnect: ReconnectRule = NO_RECONNECT
    moves: bool = True
    max_age_s: float = math.inf
    creates_topics: bool = True
    waits: bool = False
    queueing: QueueRules | None = None
    is_idempotent: bool = False


DEFAULTS = ProducerSettings()


def settings_of(config: ProducerConfig) -> ProducerSettings:
    """Return how messages are sent by 0.7's properties, whichever kind the producer is."""
    return ProducerSettings(
        acks_of(config),
        codec_of(config),
        [topic.strip() for topic in config.compressed_topics.split(",") if topic.strip()],
        config.max_message_bytes,
        config.max_in_flight,
        config.socket_timeout_ms / 1000,
        config.delivery_timeout_ms / 1000,
        config.num_retries,
        config.retry_backoff_ms / 1000,
        ReconnectRule(config.reconnect_requests, config.reconnect_ms / 1000),
        is_idempotent=config.enable_idempotence,
    )


def acks_of(config: ProducerConfig) -> Acks:
    """Return the acknowledgements that a setting names, by number or as `all` or `auto`."""
    named = {"all": Acks.COMMITTED, "auto": Acks.AUTO}
    return named.get(config.acks) or Acks(int(config.acks))


def codec_of(config: ProducerConfig) -> Codec:
    """Return the codec a setting names, by number or by name."""
    return Codec(int(config.codec)) if config.codec.isdecimal() else Codec[config.codec.upper()]


def queueing_of(config: ProducerConfig) -> QueueRules | None:
    """Return how a producer queues by 0.7's properties; None for a synchronous one."""
    if config.producer_type == "sync":
        return None
    batches = BatchRules(
        config.queue_size,
        batch_count=config.batch_size,
        batch_bytes=max(1, config.max_message_bytes),
        linger_s=config.queue_ms / 1000,
    )
    timeout_ms = config.enqueue_timeout_ms
    return QueueRules(batches, None if timeout_ms < 0 else timeout_ms / 1000)
