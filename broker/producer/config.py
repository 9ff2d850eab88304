"""The settings of a producer, under the property names of Kafka 0.7.

They are apart from those of brokers, which are many: a producer starts without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from broker.properties import ZooKeeperConfig, setting
from broker.security.client_security import ClientSecurity


@dataclass(frozen=True)
class ProducerConfig(ZooKeeperConfig, ClientSecurity):
    """The settings of a producer.

    Defaults are 0.7's, except acknowledgements (0.7 has none), the number of retries (0.7: 0) and
    the unlimited wait for space in a queue (0.7 drops messages at once: KAFKA-709).
    """

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "zk.read.num.retries": "watches keep the cluster's metadata up to date",
        "zk.synctime.ms": "watches keep what is read from ZooKeeper up to date",
    }

    producer_type: str = setting(
        "sync",
        "producer.type",
        "send in the caller's thread, or in threads of its own",
        choices=("sync", "async"),
    )
    broker_list: str = setting("", "broker.list", "[ID:]HOST:PORT,..; instead of ZooKeeper")
    codec: str = setting(
        "none",
        "compression.codec",
        "compression of messages",
        choices=("0", "1", "2", "none", "gzip", "snappy", "lz4", "zstd"),
    )
    compressed_topics: str = setting("", "compressed.topics", "only these, TOPIC,..; empty: all")
    acks: str = setting(
        "-1",
        "request.required.acks",
        "0 none, 1 written, -1 or all: committed, auto: -1 if the topic has replicas, else 1",
        choices=("0", "1", "-1", "all", "auto"),
    )
    enable_idempotence: bool = setting(
        False,
        "enable.idempotence",
        "topics of format 0.7: store nothing twice that is sent again; kafka: always so",
    )
    partitioner: str = setting(
        "", "partitioner.class", "sticky, random, round-robin, hash, or a plug-in; empty: default"
    )
    encoder: str = setting("", "serializer.class", "bytes, text, json, or a plug-in; empty: bytes")
    callback_handler: str = setting("", "callback.handler", "async: plug-in; empty: none")
    callback_properties: str = setting(
        "", "callback.handler.props", "NAME=VALUE,.. for its class; empty: none"
    )
    event_handler: str = setting("", "event.handler", "async: plug-in; empty: none")
    event_properties: str = setting(
        "", "event.handler.props", "NAME=VALUE,.. for its class; empty: none"
    )
    connect_timeout_ms: int = setting(5000, "connect.timeout.ms", "to connect to a broker", 1)
    socket_timeout_ms: int = setting(30_000, "socket.timeout.ms", "wait for a response", 1)
    socket_send_bytes: int = setting(0, "buffer.size", "SO_SNDBUF; 0 leaves the system's", 0)
    max_message_bytes: int = setting(
        1_000_000, "max.message.size", "largest outer payload, bytes", 0
    )
    max_in_flight: int = setting(64, "max.in.flight.requests", "requests without a response", 1)
    delivery_timeout_ms: int = setting(
        120_000, "delivery.timeout.ms", "how long messages wait for a broker that can take them", 1
    )
    metadata_refresh_ms: int = setting(
        5000,
        "topic.metadata.refresh.interval.ms",
        "with broker.list: ask for partitions after this time; negative: after failures only",
    )
    # delivery.timeout.ms ends them
    num_retries: int = setting(2_147_483_647, "num.retries", "attempts after a failure, at most", 0)
    retry_backoff_ms: int = setting(20, "retry.backoff.ms", "before the second of them", 0)
    reconnect_requests: int = setting(30_000, "reconnect.interval", "requests; 0 for no limit", 0)
    reconnect_ms: int = setting(
        10_000_000, "reconnect.time.interval.ms", "or time; negative: no limit"
    )
    queue_size: int = setting(10_000, "queue.size", "async: messages waiting for one broker", 1)
    queue_ms: int = setting(5000, "queue.time", "async: how long a message may wait for others", 0)
    batch_size: int = setting(200, "batch.size", "async: messages that need not wait for others", 1)
    enqueue_timeout_ms: int = setting(
        -1, "queue.enqueueTimeout.ms", "async: wait for room; 0 not at all, negative without end"
    )
