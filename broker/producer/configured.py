"""What a producer is made of, out of its settings."""

from __future__ import annotations

import math
from contextlib import ExitStack

from broker.client.cluster import Connect, StaticCluster
from broker.client.connection import Connection, parse_broker_list
from broker.client.watched_cluster import LockedCluster, WatchedCluster
from broker.config import ProducerConfig
from broker.errors import ConfigError, ProtocolError
from broker.producer.accumulator import BatchRules
from broker.producer.sender_thread import LaneRules
from broker.protocol.responses import BrokerAddress
from broker.zk.registry import Registry

_MAX_CONNECT_S = 1.0
"""Of one attempt: then the broker is looked up again, as it may have moved."""
_LOOK_AGAIN_S = 1.0


def connector_of(config: ProducerConfig) -> Connect:
    """Return what makes connections, one attempt at a time; links try again."""

    def connect(address: BrokerAddress) -> Connection:
        return Connection(
            address,
            timeout_s=config.socket_timeout_ms / 1000,
            connect_timeout_s=min(_MAX_CONNECT_S, config.connect_timeout_ms / 1000),
            send_bytes=config.socket_send_bytes,
        )

    return connect


def open_cluster(
    config: ProducerConfig, connect: Connect, resources: ExitStack
) -> WatchedCluster | LockedCluster:
    """Open the way to brokers and topics that the settings name.

    Args:
        config: the settings.
        connect: makes the connections that listed brokers are asked over.
        resources: closes what is opened.

    Raises:
        ConfigError: not exactly one of `zk.connect` and `broker.list` is set, or it is malformed.
        RegistryUnreachableError: ZooKeeper does not answer.
    """
    if bool(config.zookeeper) == bool(config.broker_list):
        raise ConfigError("a producer needs either zk.connect or broker.list")
    if config.zookeeper:
        watched = WatchedCluster(
            Registry(config.zookeeper, session_timeout_ms=config.zk_session_timeout_ms)
        )
        watched.start(config.zk_connection_timeout_ms / 1000)
        resources.callback(watched.stop)
        return watched
    try:
        addresses = parse_broker_list(config.broker_list)
    except ProtocolError as error:
        raise ConfigError(f"broker.list: {error}") from error
    static = StaticCluster(addresses, connect)
    resources.callback(static.close)
    return LockedCluster(static)


def look_again_s(config: ProducerConfig) -> float:
    """Return after how long a topic that was nowhere is looked up again; a registry tells."""
    return math.inf if config.zookeeper else _LOOK_AGAIN_S


def queueing_of(config: ProducerConfig) -> LaneRules | None:
    """Return how an asynchronous producer queues; None for a synchronous one."""
    if config.producer_type == "sync":
        return None
    timeout_ms = config.enqueue_timeout_ms
    return LaneRules(
        BatchRules(
            capacity=config.queue_size,
            batch_count=config.batch_size,
            batch_bytes=max(1, config.max_message_bytes),
            linger_s=config.queue_ms / 1000,
        ),
        enqueue_timeout_s=None if timeout_ms < 0 else timeout_ms / 1000,
    )
