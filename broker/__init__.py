"""A commit-log broker that keeps Kafka 0.7's promises, and the clients to use it.

The names in `__all__` are the public ones. They are imported when first used: a program that only
produces must not wait for the server's modules to load, which take longer than its own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.client.cluster import RegistryCluster, StaticCluster
    from broker.client.connection import Connection
    from broker.config import BrokerConfig, ConsumerConfig, ProducerConfig
    from broker.consumer.connector import ConsumerConnector
    from broker.consumer.membership import Blacklist, Whitelist
    from broker.consumer.offset_store import FileOffsets, SqliteOffsets
    from broker.consumer.simple_consumer import SimpleConsumer
    from broker.consumer.stream import ConsumerStream
    from broker.errors import BrokerError, ConsumerTimeoutError, DeliveryFailedError
    from broker.producer.callbacks import Event, ProducerCallbacks
    from broker.producer.delivery import Delivery, Report
    from broker.producer.producer import Producer
    from broker.protocol.compression import Codec
    from broker.protocol.extension_requests import Acks
    from broker.protocol.payload_filter import PayloadFilter
    from broker.server.broker import Broker
    from broker.tools.audit import (
        AuditCounter,
        AuditedProducer,
        AuditEvent,
        Auditor,
        audited,
        json_time,
    )
    from broker.tools.mirror import Mirror, Route
    from broker.tools.retry import RetryingHandler, RetryMessage, RetryPolicy, RetryStore
    from broker.tools.topic_map import TopicMap
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
    "Acks": "broker.protocol.extension_requests",
    "AuditCounter": "broker.tools.audit",
    "AuditEvent": "broker.tools.audit",
    "AuditedProducer": "broker.tools.audit",
    "Auditor": "broker.tools.audit",
    "Blacklist": "broker.consumer.membership",
    "Broker": "broker.server.broker",
    "BrokerConfig": "broker.config",
    "BrokerError": "broker.errors",
    "Codec": "broker.protocol.compression",
    "Connection": "broker.client.connection",
    "ConsumerConfig": "broker.config",
    "ConsumerConnector": "broker.consumer.connector",
    "ConsumerStream": "broker.consumer.stream",
    "ConsumerTimeoutError": "broker.errors",
    "Delivery": "broker.producer.delivery",
    "DeliveryFailedError": "broker.errors",
    "Event": "broker.producer.callbacks",
    "FileOffsets": "broker.consumer.offset_store",
    "Mirror": "broker.tools.mirror",
    "PayloadFilter": "broker.protocol.payload_filter",
    "Producer": "broker.producer.producer",
    "ProducerCallbacks": "broker.producer.callbacks",
    "ProducerConfig": "broker.config",
    "Registry": "broker.zk.registry",
    "RegistryCluster": "broker.client.cluster",
    "Report": "broker.producer.delivery",
    "RetryMessage": "broker.tools.retry",
    "RetryPolicy": "broker.tools.retry",
    "RetryStore": "broker.tools.retry",
    "RetryingHandler": "broker.tools.retry",
    "Route": "broker.tools.mirror",
    "SimpleConsumer": "broker.consumer.simple_consumer",
    "SqliteOffsets": "broker.consumer.offset_store",
    "StaticCluster": "broker.client.cluster",
    "TopicMap": "broker.tools.topic_map",
    "TopicPartition": "broker.topic",
    "Whitelist": "broker.consumer.membership",
    "audited": "broker.tools.audit",
    "json_time": "broker.tools.audit",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'broker' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)
