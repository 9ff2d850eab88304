"""A commit-log broker that keeps Kafka 0.7's promises, and the clients to use it.

Each public name is imported when it is first used, so that a program that only produces does not
wait for the modules of the server.

    clock.py               the clock, an argument everywhere so that tests can control the time
    closing.py             what is closed at the end of a `with` block
    cluster_state.py       what brokers and the controller know of replicated partitions and of each
                           other
    config.py              every setting of a broker, under the property names of Kafka 0.7
    deadlines.py           the deadline of the call that a thread is in: each wait inside asks how
                           much is left of it
    endpoints.py           endpoints: the addresses that a broker listens on, or is reached at, each
                           with a name
    errors.py              every exception of the library, its wire code, and whether a retry may
                           help
    exposition.py          what Prometheus scrapes: declared metrics as families of its client
                           library, and as text
    files.py               the files of a broker: opened without following links, replaced as a
                           whole, made durable
    ids.py                 ids that stand for none, in requests, in ZooKeeper and in memory
    json_fields.py         fields of messages in JSON: the last of equal keys counts, numbers stay
                           as they were written
    leader_epochs.py       the leader epoch in which each part of a log was written
    listener_config.py     the settings of a broker about who reaches it: listeners, TLS, logins,
                           rules, proofs
    metrics.py             metrics, each declared once: its name, kind, unit and meaning, and how to
                           read it
    metrics_server.py      the HTTP server that Prometheus scrapes
    partition_patterns.py  which partitions a text means: `0`, `2-0`, `*-0`, `0,1`, `0..3`,
                           `orders[2-0]`
    patterns.py            patterns that users write: regular expressions of RE2 on UTF-8,
                           everywhere the same
    plugins.py             plug-ins: objects of other packages that a setting names, as
                           `module:name` or by an entry point
    positions.py           the grammar of positions, as in `--offset`: text to values, values to
                           offsets
    properties.py          properties: the table that a settings class declares, and how their texts
                           become values
    records.py             records: dataclasses and NamedTuples whose fields say what they mean, for
                           tables, JSON and web
    replica_records.py     records of replicas, which their broker keeps beside the log: they
                           outlive ZooKeeper's data
    state_changes.py       changes of leaders and replicas, as each broker logs them and tools read
                           them
    stats.py               how often events happened and how long they took: since the start, and in
                           windows
    threads.py             threads that no exception ends unseen
    times.py               points in time: how people and programs write them, and when work is due
    token_bucket.py        how often something may happen: a burst at once, then so many times a
                           second
    topic.py               topic names, the identity of a partition, positions and ranges in it
    topic_settings.py      the settings of single topics: one table, their texts as values, and the
                           result for a topic
    units.py               durations, sizes, rates, times and ports: parsing, formatting, and pacing
                           to a rate
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # as `typing` has it, which takes time to import
if TYPE_CHECKING:
    from broker.client.connection import Connection as Connection
    from broker.client.registry_cluster import RegistryCluster as RegistryCluster
    from broker.client.static_cluster import StaticCluster as StaticCluster
    from broker.config import BrokerConfig as BrokerConfig
    from broker.consumer.config import ConsumerConfig as ConsumerConfig
    from broker.consumer.connector import ConsumerConnector as ConsumerConnector
    from broker.consumer.membership import Blacklist as Blacklist
    from broker.consumer.membership import Whitelist as Whitelist
    from broker.consumer.offset_store import FileOffsets as FileOffsets
    from broker.consumer.offset_store import SqliteOffsets as SqliteOffsets
    from broker.consumer.simple_consumer import SimpleConsumer as SimpleConsumer
    from broker.consumer.stream import ConsumerStream as ConsumerStream
    from broker.errors import BrokerError as BrokerError
    from broker.errors import ConsumerTimeoutError as ConsumerTimeoutError
    from broker.errors import DeliveryFailedError as DeliveryFailedError
    from broker.producer.callbacks import Event as Event
    from broker.producer.callbacks import ProducerCallbacks as ProducerCallbacks
    from broker.producer.config import ProducerConfig as ProducerConfig
    from broker.producer.delivery import Delivery as Delivery
    from broker.producer.delivery import Report as Report
    from broker.producer.producer import Producer as Producer
    from broker.protocol.client_requests import Acks as Acks
    from broker.protocol.client_requests import PayloadFilter as PayloadFilter
    from broker.protocol.compression import Codec as Codec
    from broker.protocol.requests import EARLIEST_TIME as EARLIEST_TIME
    from broker.protocol.requests import LATEST_TIME as LATEST_TIME
    from broker.protocol.requests import FetchRequest as FetchRequest
    from broker.server.broker import Broker as Broker
    from broker.tools.audit import AuditCounter as AuditCounter
    from broker.tools.audit import AuditedProducer as AuditedProducer
    from broker.tools.audit import AuditEvent as AuditEvent
    from broker.tools.audit import Auditor as Auditor
    from broker.tools.audit import audited as audited
    from broker.tools.audit import json_time as json_time
    from broker.tools.mirror import Mirror as Mirror
    from broker.tools.mirror import Route as Route
    from broker.tools.mirror_routes import TopicMap as TopicMap
    from broker.tools.retry import RetryingHandler as RetryingHandler
    from broker.tools.retry import RetryMessage as RetryMessage
    from broker.tools.retry import RetryPolicy as RetryPolicy
    from broker.tools.retry import RetryStore as RetryStore
    from broker.topic import TopicPartition as TopicPartition
    from broker.zk.registry import Registry as Registry
else:
    _MODULES = {
        "broker.client.connection": ("Connection",),
        "broker.client.registry_cluster": ("RegistryCluster",),
        "broker.client.static_cluster": ("StaticCluster",),
        "broker.config": ("BrokerConfig",),
        "broker.consumer.config": ("ConsumerConfig",),
        "broker.consumer.connector": ("ConsumerConnector",),
        "broker.consumer.membership": ("Blacklist", "Whitelist"),
        "broker.consumer.offset_store": ("FileOffsets", "SqliteOffsets"),
        "broker.consumer.simple_consumer": ("SimpleConsumer",),
        "broker.consumer.stream": ("ConsumerStream",),
        "broker.errors": ("BrokerError", "ConsumerTimeoutError", "DeliveryFailedError"),
        "broker.producer.callbacks": ("Event", "ProducerCallbacks"),
        "broker.producer.config": ("ProducerConfig",),
        "broker.producer.delivery": ("Delivery", "Report"),
        "broker.producer.producer": ("Producer",),
        "broker.protocol.compression": ("Codec",),
        "broker.protocol.client_requests": ("Acks", "PayloadFilter"),
        "broker.protocol.requests": ("EARLIEST_TIME", "LATEST_TIME", "FetchRequest"),
        "broker.server.broker": ("Broker",),
        "broker.tools.audit": (
            "AuditCounter",
            "AuditedProducer",
            "AuditEvent",
            "Auditor",
            "audited",
            "json_time",
        ),
        "broker.tools.mirror": ("Mirror", "Route"),
        "broker.tools.mirror_routes": ("TopicMap",),
        "broker.tools.retry": ("RetryingHandler", "RetryMessage", "RetryPolicy", "RetryStore"),
        "broker.topic": ("TopicPartition",),
        "broker.zk.registry": ("Registry",),
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
    __all__ = sorted(_MODULE_OF)

    def __getattr__(name):
        if (module := _MODULE_OF.get(name)) is None:
            raise AttributeError(f"module 'broker' has no attribute '{name}'")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(module), name)
        return value

    def __dir__():
        return sorted({*globals(), *_MODULE_OF})
