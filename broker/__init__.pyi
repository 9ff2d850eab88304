"""The public names of the library, each with the module that `broker/__init__.py` loads it from."""

__version__: str

from broker.client.connection import Connection as Connection
from broker.client.registry_cluster import RegistryCluster as RegistryCluster
from broker.client.static_cluster import StaticCluster as StaticCluster
from broker.config import BrokerConfig as BrokerConfig
from broker.config import ConsumerConfig as ConsumerConfig
from broker.config import ProducerConfig as ProducerConfig
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
from broker.producer.delivery import Delivery as Delivery
from broker.producer.delivery import Report as Report
from broker.producer.producer import Producer as Producer
from broker.protocol.compression import Codec as Codec
from broker.protocol.extension_requests import Acks as Acks
from broker.protocol.payload_filter import PayloadFilter as PayloadFilter
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
