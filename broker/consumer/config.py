"""The settings of a consumer, under the property names of Kafka 0.7.

They are apart from those of brokers, which are many: a consumer starts without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from broker.properties import ZOOKEEPER_PROPERTIES, Property, PropertyKind
from broker.security.client_security import ClientSecurity

_P = Property
_INT, _BOOL, _TEXT = PropertyKind.INTEGER, PropertyKind.BOOLEAN, PropertyKind.TEXT


@dataclass(frozen=True, slots=True)
class ConsumerConfig(ClientSecurity):
    """The settings of a consumer."""

    PROPERTIES: ClassVar[tuple[Property, ...]] = (
        _P("broker.list", "broker_list", _TEXT, "[ID:]HOST:PORT,..; instead of ZooKeeper"),
        _P("connect.timeout.ms", "connect_timeout_ms", _INT, "for all attempts together", 1),
        _P("socket.timeout.ms", "socket_timeout_ms", _INT, "wait for a response", 1),
        _P("socket.buffersize", "socket_receive_bytes", _INT, "SO_RCVBUF; 0 the system's", 0),
        _P("fetch.size", "fetch_bytes", _INT, "per partition and request", 1),
        _P("fetch.wait.max.ms", "max_wait_ms", _INT, "how long a read may wait", 0),
        _P("fetch.min.bytes", "fetch_min_bytes", _INT, "for so many new bytes of a broker", 1),
        _P("num.consumer.fetchers", "num_fetchers", _INT, "threads that fetch of a broker", 1),
        _P("leader.wait.max.ms", "leader_wait_ms", _INT, "wait for a lost leader or the next", 0),
        _P("read.from", "read_from", _TEXT, "leader, any in-sync replica, or those of a rack"),
        _P("groupid", "group", _TEXT, "the consumer group"),
        _P("consumerid", "consumer_name", _TEXT, "the member's name; empty: one is made"),
        _P("autocommit.enable", "auto_commit", _BOOL, "commit finished offsets"),
        _P("autocommit.interval.ms", "auto_commit_interval_ms", _INT, "time between commits", 1),
        _P(
            "autooffset.reset",
            "offset_reset",
            _TEXT,
            "where to start without an offset, or with one out of range",
            choices=("smallest", "largest", "fail"),
        ),
        _P(
            "autooffset.outofrange.reset",
            "out_of_range_reset",
            _TEXT,
            "the latter, if it differs",
            choices=("", "smallest", "largest", "fail"),
        ),
        _P("queuedchunks.max", "max_queued_chunks", _INT, "chunks a stream reads ahead", 1),
        _P("fetcher.backoff.ms", "fetch_backoff_ms", _INT, "longest wait for a lost broker", 1),
        _P("rebalance.retries.max", "rebalance_retries", _INT, "failures before all is revoked", 1),
        _P("rebalance.backoff.ms", "rebalance_backoff_ms", _INT, "longest wait in between", 1),
        _P(
            "consumer.timeout.ms",
            "consumer_timeout_ms",
            _INT,
            "raise after no message for so long; -1 waits for ever",
            -1,
        ),
        *ZOOKEEPER_PROPERTIES,
        *ClientSecurity.PROPERTIES,
    )

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "zk.synctime.ms": "rebalance.backoff.ms says how long to wait for other members",
    }

    broker_list: str = ""
    connect_timeout_ms: int = 5000
    socket_timeout_ms: int = 30_000
    socket_receive_bytes: int = 0
    fetch_bytes: int = 1 << 20
    max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    num_fetchers: int = 1
    leader_wait_ms: int = 15_000
    read_from: str = "leader"
    group: str = ""
    consumer_name: str = ""
    auto_commit: bool = True
    auto_commit_interval_ms: int = 10_000
    offset_reset: str = "smallest"
    out_of_range_reset: str = ""
    max_queued_chunks: int = 10
    fetch_backoff_ms: int = 1000
    rebalance_retries: int = 4
    rebalance_backoff_ms: int = 2000
    consumer_timeout_ms: int = -1
    zookeeper: str = ""
    zk_session_timeout_ms: int = 6000
    zk_connection_timeout_ms: int = 6000
    zk_credential_file: Path | None = None
    zk_tls: bool = False
    zk_tls_ca: Path | None = None
    zk_tls_cert: Path | None = None
    zk_tls_key: Path | None = None
