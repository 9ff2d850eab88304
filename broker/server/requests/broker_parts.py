"""The parts of a broker that requests are about, shared by the handlers of all threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.endpoints import PLAIN_LISTENER
from broker.log.manager import LogManager
from broker.protocol.extension_requests import StatusParts
from broker.protocol.fetch_sessions import FetchSessions
from broker.protocol.responses import BrokerAddress, HelloResponse
from broker.schemas.store import SchemaStore
from broker.schemas.values import TopicContract
from broker.server.cluster.cluster_view import ClusterView
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.cluster.shutdown import Shutdown
from broker.server.cluster.state_change_log import StateChangeLog
from broker.server.requests.client import ConnectedClient
from broker.server.requests.control import ControlHandler
from broker.server.requests.failure_delays import FailureDelays
from broker.server.requests.forwarder import Forwarder
from broker.server.requests.judge import Judge
from broker.server.requests.pattern_filter import PatternFilter, Turns
from broker.server.requests.read_sessions import ReadSession
from broker.server.requests.schema_guard import SchemaGuard
from broker.server.requests.topic_creations import TopicCreations
from broker.topic import TopicPartition


class BrokerParts(Protocol):
    """A broker, as its handlers use it; each part may be used by any thread."""

    config: BrokerConfig  # in effect
    clock: Clock
    logs: LogManager
    replicas: ReplicaTable
    view: ClusterView
    shutdown: Shutdown
    changes: StateChangeLog
    creations: TopicCreations
    forwarder: Forwarder
    pattern_filter: PatternFilter
    sessions: FetchSessions[ReadSession[Any]]
    control: ControlHandler
    guard: SchemaGuard
    judge: Judge
    delays: FailureDelays
    schemas: SchemaStore
    workers: ThreadPoolExecutor
    listers: ThreadPoolExecutor  # for metadata of many topics, behind which no other must wait
    judges: Turns  # for schemas, which may take seconds to judge
    logins: ThreadPoolExecutor  # for steps of exchanges, which may look into ZooKeeper
    admit: Callable[[ConnectedClient], None]  # raises if a client has too many connections

    def hello(self) -> HelloResponse:
        """Return who this broker is."""

    def address(self, listener: str = PLAIN_LISTENER) -> BrokerAddress:
        """Return the address that clients of a listener connect to."""

    def status(self, parts: StatusParts, topic: str) -> dict[str, Any]:
        """Return the state and counters as a document; any thread."""

    def contract(self, topic: str) -> TopicContract:
        """Return which schemas the messages of a topic have."""

    def at_home(self, topic: str, index: int) -> TopicPartition:
        """Return the partition that a client which names no home means by its index."""
        return self.replicas.at_home(topic, index)
