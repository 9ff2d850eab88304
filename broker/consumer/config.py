"""The settings of a consumer, under the property names of Kafka 0.7.

They are apart from those of brokers, which are many: a consumer starts without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from broker.properties import ZooKeeperConfig, setting
from broker.security.client_security import ClientSecurity


@dataclass(frozen=True)
class ConsumerConfig(ZooKeeperConfig, ClientSecurity):
    """The settings of a consumer."""

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "zk.synctime.ms": "rebalance.backoff.ms says how long to wait for other members"
    }

    broker_list: str = setting("", "broker.list", "[ID:]HOST:PORT,..; instead of ZooKeeper")
    connect_timeout_ms: int = setting(5000, "connect.timeout.ms", "for all attempts together", 1)
    socket_timeout_ms: int = setting(30_000, "socket.timeout.ms", "wait for a response", 1)
    socket_receive_bytes: int = setting(0, "socket.buffersize", "SO_RCVBUF; 0 the system's", 0)
    fetch_bytes: int = setting(1 << 20, "fetch.size", "per partition and request", 1)
    max_wait_ms: int = setting(500, "fetch.wait.max.ms", "how long a read may wait", 0)
    fetch_min_bytes: int = setting(1, "fetch.min.bytes", "for so many new bytes of a broker", 1)
    num_fetchers: int = setting(1, "num.consumer.fetchers", "threads that fetch of a broker", 1)
    leader_wait_ms: int = setting(
        15_000, "leader.wait.max.ms", "wait for a lost leader or the next", 0
    )
    read_from: str = setting(
        "leader", "read.from", "leader, any in-sync replica, or those of a rack"
    )
    group: str = setting("", "groupid", "the consumer group")
    consumer_name: str = setting("", "consumerid", "the member's name; empty: one is made")
    auto_commit: bool = setting(True, "autocommit.enable", "commit finished offsets")
    auto_commit_interval_ms: int = setting(
        10_000, "autocommit.interval.ms", "time between commits", 1
    )
    offset_reset: str = setting(
        "smallest",
        "autooffset.reset",
        "where to start without an offset, or with one out of range",
        choices=("smallest", "largest", "fail"),
    )
    out_of_range_reset: str = setting(
        "",
        "autooffset.outofrange.reset",
        "the latter, if it differs",
        choices=("", "smallest", "largest", "fail"),
    )
    max_queued_chunks: int = setting(10, "queuedchunks.max", "chunks a stream reads ahead", 1)
    fetch_backoff_ms: int = setting(1000, "fetcher.backoff.ms", "longest wait for a lost broker", 1)
    rebalance_retries: int = setting(
        4, "rebalance.retries.max", "failures before all is revoked", 1
    )
    rebalance_backoff_ms: int = setting(2000, "rebalance.backoff.ms", "longest wait in between", 1)
    consumer_timeout_ms: int = setting(
        -1, "consumer.timeout.ms", "raise after no message for so long; -1 waits for ever", -1
    )
