"""A commit-log broker that keeps Kafka 0.7's promises, and the clients to use it.

The names in `__all__` are the public ones. They are imported when first used: a program that only
produces must not wait for the server's modules to load, which take longer than its own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.client.audit import (
        AuditCounter,
        AuditedProducer,
        AuditEvent,
        Auditor,
        audited,
        json_time,
    )
    from broker.client.callbacks import Event, ProducerCallbacks
    from broker.client.cluster import RegistryCluster, StaticCluster
    from broker.client.connection import Connection
    from broker.client.connector import ConsumerConnector
    from broker.client.delivery import Delivery, Report
    from broker.client.handling import RetryingHandler
    from broker.client.mirror import Mirror, Route
    from broker.client.offsets_file import FileOffsets
    from broker.client.offsets_sqlite import SqliteOffsets
    from broker.client.producer import Producer
    from broker.client.retry_store import RetryMessage, RetryPolicy, RetryStore
    from broker.client.simple_consumer import SimpleConsumer
    from broker.client.streams import ConsumerStream
    from broker.client.subscription import Blacklist, Whitelist
    from broker.client.topic_map import TopicMap
    from broker.config import BrokerConfig, ConsumerConfig, ProducerConfig
    from broker.errors import BrokerError, ConsumerTimeoutError, DeliveryFailedError
    from broker.protocol.compression import Codec
    from broker.protocol.data_requests import Acks
    from broker.protocol.payload_filter import PayloadFilter
    from broker.server.lifecycle import Broker
    from broker.topic import TopicPartition
    from broker.zk.registry import Registry

__all__ = [
    "Acks",
    "AuditCounter",
    "AuditEvent",
    "AuditedProducer",
    "Auditor",
    "Blacklist",
    "Broker",
    "BrokerConfig",
    "BrokerError",
    "Codec",
    "Connection",
    "ConsumerConfig",
    "ConsumerConnector",
    "ConsumerStream",
    "ConsumerTimeoutError",
    "Delivery",
    "DeliveryFailedError",
    "Event",
    "FileOffsets",
    "Mirror",
    "PayloadFilter",
    "Producer",
    "ProducerCallbacks",
    "ProducerConfig",
    "Registry",
    "RegistryCluster",
    "Report",
    "RetryMessage",
    "RetryPolicy",
    "RetryStore",
    "RetryingHandler",
    "Route",
    "SimpleConsumer",
    "SqliteOffsets",
    "StaticCluster",
    "TopicMap",
    "TopicPartition",
    "Whitelist",
    "audited",
    "json_time",
]

_MODULE_OF = {
    "Acks": "broker.protocol.data_requests",
    "AuditCounter": "broker.client.audit",
    "AuditEvent": "broker.client.audit",
    "AuditedProducer": "broker.client.audit",
    "Auditor": "broker.client.audit",
    "Blacklist": "broker.client.subscription",
    "Broker": "broker.server.lifecycle",
    "BrokerConfig": "broker.config",
    "BrokerError": "broker.errors",
    "Codec": "broker.protocol.compression",
    "Connection": "broker.client.connection",
    "ConsumerConfig": "broker.config",
    "ConsumerConnector": "broker.client.connector",
    "ConsumerStream": "broker.client.streams",
    "ConsumerTimeoutError": "broker.errors",
    "Delivery": "broker.client.delivery",
    "DeliveryFailedError": "broker.errors",
    "Event": "broker.client.callbacks",
    "FileOffsets": "broker.client.offsets_file",
    "Mirror": "broker.client.mirror",
    "PayloadFilter": "broker.protocol.payload_filter",
    "Producer": "broker.client.producer",
    "ProducerCallbacks": "broker.client.callbacks",
    "ProducerConfig": "broker.config",
    "Registry": "broker.zk.registry",
    "RegistryCluster": "broker.client.cluster",
    "Report": "broker.client.delivery",
    "RetryMessage": "broker.client.retry_store",
    "RetryPolicy": "broker.client.retry_store",
    "RetryStore": "broker.client.retry_store",
    "RetryingHandler": "broker.client.handling",
    "Route": "broker.client.mirror",
    "SimpleConsumer": "broker.client.simple_consumer",
    "SqliteOffsets": "broker.client.offsets_sqlite",
    "StaticCluster": "broker.client.cluster",
    "TopicMap": "broker.client.topic_map",
    "TopicPartition": "broker.topic",
    "Whitelist": "broker.client.subscription",
    "audited": "broker.client.audit",
    "json_time": "broker.client.audit",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'broker' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)
