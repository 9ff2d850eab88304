"""The settings of a producer, under the property names of Kafka 0.7.

They are apart from those of brokers, which are many: a producer starts without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from broker.properties import ZOOKEEPER_PROPERTIES, Property, PropertyKind
from broker.security.client_security import ClientSecurity

_P = Property
_INT, _TEXT = PropertyKind.INTEGER, PropertyKind.TEXT


@dataclass(frozen=True, slots=True)
class ProducerConfig(ClientSecurity):
    """The settings of a producer.

    Defaults are 0.7's, except acknowledgements (0.7 has none), the number of retries (0.7: 0) and
    the unlimited wait for space in a queue (0.7 drops messages at once: KAFKA-709).
    """

    PROPERTIES: ClassVar[tuple[Property, ...]] = (
        _P(
            "producer.type",
            "producer_type",
            _TEXT,
            "send in the caller's thread, or in threads of its own",
            choices=("sync", "async"),
        ),
        _P("broker.list", "broker_list", _TEXT, "[ID:]HOST:PORT,..; instead of ZooKeeper"),
        _P(
            "compression.codec",
            "codec",
            _TEXT,
            "compression of messages",
            choices=("0", "1", "2", "none", "gzip", "snappy", "lz4", "zstd"),
        ),
        _P("compressed.topics", "compressed_topics", _TEXT, "only these, TOPIC,..; empty: all"),
        _P(
            "request.required.acks",
            "acks",
            _TEXT,
            "0 none, 1 written, -1 or all: committed, auto: -1 if the topic has replicas, else 1",
            choices=("0", "1", "-1", "all", "auto"),
        ),
        _P("connect.timeout.ms", "connect_timeout_ms", _INT, "to connect to a broker", 1),
        _P("socket.timeout.ms", "socket_timeout_ms", _INT, "wait for a response", 1),
        _P("buffer.size", "socket_send_bytes", _INT, "SO_SNDBUF; 0 leaves the system's", 0),
        _P("max.message.size", "max_message_bytes", _INT, "largest outer payload, bytes", 0),
        _P("max.in.flight.requests", "max_in_flight", _INT, "requests without a response", 1),
        _P(
            "delivery.timeout.ms",
            "delivery_timeout_ms",
            _INT,
            "how long messages wait for a broker that can take them",
            1,
        ),
        _P(
            "topic.metadata.refresh.interval.ms",
            "metadata_refresh_ms",
            _INT,
            "with broker.list: ask for partitions after this time; negative: after failures only",
        ),
        _P("num.retries", "num_retries", _INT, "attempts after a failure, at most", 0),
        _P("retry.backoff.ms", "retry_backoff_ms", _INT, "before the second of them", 0),
        _P("reconnect.interval", "reconnect_requests", _INT, "requests; 0 for no limit", 0),
        _P("reconnect.time.interval.ms", "reconnect_ms", _INT, "or time; negative: no limit"),
        _P("queue.size", "queue_size", _INT, "async: messages waiting for one broker", 1),
        _P("queue.time", "queue_ms", _INT, "async: how long a message may wait for others", 0),
        _P("batch.size", "batch_size", _INT, "async: messages that need not wait for others", 1),
        _P(
            "queue.enqueueTimeout.ms",
            "enqueue_timeout_ms",
            _INT,
            "async: wait for room; 0 not at all, negative without end",
        ),
        *ZOOKEEPER_PROPERTIES,
        *ClientSecurity.PROPERTIES,
    )

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "serializer.class": "give Producer.from_config an encoder",
        "partitioner.class": "give Producer.from_config a partitioner",
        "event.handler": "there is one way to send batches",
        "event.handler.props": "there is one way to send batches",
        "callback.handler": "give Producer.from_config callbacks",
        "callback.handler.props": "give Producer.from_config callbacks",
        "zk.read.num.retries": "watches keep the cluster's metadata up to date",
        "zk.synctime.ms": "watches keep what is read from ZooKeeper up to date",
    }

    producer_type: str = "sync"
    broker_list: str = ""
    codec: str = "none"
    compressed_topics: str = ""
    acks: str = "-1"
    connect_timeout_ms: int = 5000
    socket_timeout_ms: int = 30_000
    socket_send_bytes: int = 0
    max_message_bytes: int = 1_000_000
    max_in_flight: int = 64
    delivery_timeout_ms: int = 120_000
    metadata_refresh_ms: int = 5000
    num_retries: int = 2_147_483_647  # delivery.timeout.ms ends them
    retry_backoff_ms: int = 20
    reconnect_requests: int = 30_000
    reconnect_ms: int = 10_000_000
    queue_size: int = 10_000
    queue_ms: int = 5000
    batch_size: int = 200
    enqueue_timeout_ms: int = -1
    zookeeper: str = ""
    zk_session_timeout_ms: int = 6000
    zk_connection_timeout_ms: int = 6000
    zk_credential_file: Path | None = None
    zk_tls: bool = False
    zk_tls_ca: Path | None = None
    zk_tls_cert: Path | None = None
    zk_tls_key: Path | None = None
