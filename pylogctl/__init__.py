"""pylogctl: a commit-log broker, its command line, and its Python API.

    import pylogctl

    with pylogctl.connect("localhost:9092") as client:
        client.send("greetings", "hello")
        for message in client.read("greetings"):
            print(message.text())

The names of the API are imported when they are first used. Nothing in `broker` imports this
package.

    __main__.py       entry point: fast paths, and how signals, broken pipes and errors end the
                      process
    comparison.py     reads messages of clusters, and pairs them with others: one engine below
                      several reports
    pytest_plugin.py  pytest fixtures for programs that use pylogctl; installed with it, imported
                      when first used
    windows.py        windows in time for a consumer: messages by key, as `pipeline window` has them
"""

from __future__ import annotations

from broker import __version__ as __version__

__released__ = "2026-11-21"

TYPE_CHECKING = False  # as `typing` has it, which takes time to import
if TYPE_CHECKING:
    from broker.admin.brokers import BrokerStatus as BrokerStatus
    from broker.admin.brokers import DataDirectory as DataDirectory
    from broker.admin.brokers import LogFailure as LogFailure
    from broker.admin.brokers import StopReport as StopReport
    from broker.admin.brokers import StopStep as StopStep
    from broker.admin.cluster import BrokerInfo as BrokerInfo
    from broker.admin.cluster import Health as Health
    from broker.admin.cluster import HealthCheck as HealthCheck
    from broker.admin.copies import CopiedPartition as CopiedPartition
    from broker.admin.copies import CopyReport as CopyReport
    from broker.admin.decommission import Decommission as Decommission
    from broker.admin.group_changes import OffsetChange as OffsetChange
    from broker.admin.lag import CommittedOffset as CommittedOffset
    from broker.admin.lag import GroupInfo as GroupInfo
    from broker.admin.lag import GroupMember as GroupMember
    from broker.admin.lag import Lag as Lag
    from broker.admin.lag import LagStatus as LagStatus
    from broker.admin.lag import PartitionLag as PartitionLag
    from broker.admin.log_moves import LogMove as LogMove
    from broker.admin.reassignment import Move as Move
    from broker.admin.reassignment import MoveProgress as MoveProgress
    from broker.admin.rebalance import GroupProblem as GroupProblem
    from broker.admin.rebalance import OwnerChange as OwnerChange
    from broker.admin.replicas import Outcome as Outcome
    from broker.admin.settings import Setting as Setting
    from broker.admin.settings_changes import SettingChange as SettingChange
    from broker.admin.topic_deletion import Deletion as Deletion
    from broker.admin.topics import PartitionInfo as PartitionInfo
    from broker.admin.topics import TopicInfo as TopicInfo
    from broker.aio.calls import AsyncChanges as AsyncChanges
    from broker.aio.calls import AsyncReassignment as AsyncReassignment
    from broker.aio.client import AsyncClient as AsyncClient
    from broker.aio.client import aconnect as aconnect
    from broker.aio.group import AsyncGroup as AsyncGroup
    from broker.aio.producer import AsyncDelivery as AsyncDelivery
    from broker.aio.producer import AsyncProducer as AsyncProducer
    from broker.aio.reader import AsyncBatches as AsyncBatches
    from broker.aio.reader import AsyncReader as AsyncReader
    from broker.aio.schemas import AsyncDecoder as AsyncDecoder
    from broker.aio.schemas import AsyncSchemaProducer as AsyncSchemaProducer
    from broker.api.changes import Changes as Changes
    from broker.api.client import Client as Client
    from broker.api.client import connect as connect
    from broker.api.errors import BufferFull as BufferFull
    from broker.api.errors import Closed as Closed
    from broker.api.errors import Conflict as Conflict
    from broker.api.errors import CorruptMessage as CorruptMessage
    from broker.api.errors import DeliveryFailed as DeliveryFailed
    from broker.api.errors import Error as Error
    from broker.api.errors import GroupActive as GroupActive
    from broker.api.errors import IncompatibleSchema as IncompatibleSchema
    from broker.api.errors import InvalidName as InvalidName
    from broker.api.errors import InvalidSchema as InvalidSchema
    from broker.api.errors import NotABoundary as NotABoundary
    from broker.api.errors import NotEnoughReplicas as NotEnoughReplicas
    from broker.api.errors import NotSupported as NotSupported
    from broker.api.errors import NoZooKeeper as NoZooKeeper
    from broker.api.errors import OffsetOutOfRange as OffsetOutOfRange
    from broker.api.errors import Partial as Partial
    from broker.api.errors import Refused as Refused
    from broker.api.errors import SchemaMismatch as SchemaMismatch
    from broker.api.errors import TimedOut as TimedOut
    from broker.api.errors import TlsFailed as TlsFailed
    from broker.api.errors import TooLarge as TooLarge
    from broker.api.errors import TopicExists as TopicExists
    from broker.api.errors import UnknownBroker as UnknownBroker
    from broker.api.errors import UnknownGroup as UnknownGroup
    from broker.api.errors import UnknownSchema as UnknownSchema
    from broker.api.errors import UnknownTopic as UnknownTopic
    from broker.api.errors import Unreachable as Unreachable
    from broker.api.group import Group as Group
    from broker.api.group_run import RetryPolicy as RetryPolicy
    from broker.api.producer import Delivery as Delivery
    from broker.api.producer import Producer as Producer
    from broker.api.reader import Batches as Batches
    from broker.api.reader import Reader as Reader
    from broker.api.replica_calls import Reassignment as Reassignment
    from broker.api.schema_producer import SchemaProducer as SchemaProducer
    from broker.api.values import Batch as Batch
    from broker.api.values import Receipt as Receipt
    from broker.protocol.client_requests import Acks as Acks
    from broker.protocol.client_requests import PayloadFilter as PayloadFilter
    from broker.protocol.codec import Message as Message
    from broker.protocol.compression import Codec as Codec
    from broker.protocol.envelope import Envelope as Envelope
    from broker.schemas.payloads import Decoder as Decoder
    from broker.schemas.values import Compatibility as Compatibility
    from broker.schemas.values import RegisteredSchema as RegisteredSchema
    from broker.schemas.values import SchemaType as SchemaType
    from broker.state_changes import LoggedChange as LoggedChange
    from broker.topic import TopicPartition as TopicPartition
else:
    _NAMES = {
        "broker.admin.brokers": "BrokerStatus DataDirectory LogFailure StopReport StopStep",
        "broker.admin.cluster": "BrokerInfo Health HealthCheck",
        "broker.aio.calls": "AsyncChanges AsyncReassignment",
        "broker.aio.client": "AsyncClient aconnect",
        "broker.aio.group": "AsyncGroup",
        "broker.aio.producer": "AsyncDelivery AsyncProducer",
        "broker.aio.reader": "AsyncBatches AsyncReader",
        "broker.aio.schemas": "AsyncDecoder AsyncSchemaProducer",
        "broker.admin.group_changes": "OffsetChange",
        "broker.admin.lag": "CommittedOffset GroupInfo GroupMember Lag LagStatus PartitionLag",
        "broker.admin.rebalance": "GroupProblem OwnerChange",
        "broker.admin.copies": "CopiedPartition CopyReport",
        "broker.admin.decommission": "Decommission",
        "broker.admin.log_moves": "LogMove",
        "broker.admin.reassignment": "Move MoveProgress",
        "broker.admin.replicas": "Outcome",
        "broker.api.changes": "Changes",
        "broker.admin.settings": "Setting",
        "broker.admin.settings_changes": "SettingChange",
        "broker.admin.topic_deletion": "Deletion",
        "broker.admin.topics": "PartitionInfo TopicInfo",
        "broker.api.client": "Client connect",
        "broker.api.errors": "BufferFull Closed CorruptMessage DeliveryFailed Error "
        "InvalidName NoZooKeeper NotABoundary NotEnoughReplicas NotSupported OffsetOutOfRange "
        "Partial Refused TimedOut TooLarge TopicExists UnknownTopic Unreachable Conflict "
        "GroupActive UnknownGroup TlsFailed UnknownBroker IncompatibleSchema InvalidSchema "
        "SchemaMismatch UnknownSchema",
        "broker.api.group": "Group",
        "broker.api.group_run": "RetryPolicy",
        "broker.api.producer": "Delivery Producer",
        "broker.api.reader": "Batches Reader",
        "broker.api.replica_calls": "Reassignment",
        "broker.api.schema_producer": "SchemaProducer",
        "broker.api.values": "Batch Receipt",
        "broker.protocol.codec": "Message",
        "broker.protocol.compression": "Codec",
        "broker.protocol.envelope": "Envelope",
        "broker.protocol.client_requests": "Acks PayloadFilter",
        "broker.schemas.payloads": "Decoder",
        "broker.schemas.values": "Compatibility RegisteredSchema SchemaType",
        "broker.state_changes": "LoggedChange",
        "broker.topic": "TopicPartition",
    }
    _MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

    def __getattr__(name):
        if (module := _MODULE_OF.get(name)) is None:
            raise AttributeError(f"module 'pylogctl' has no attribute '{name}'")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(module), name)
        return value

    def __dir__():
        return sorted({*globals(), *_MODULE_OF})
