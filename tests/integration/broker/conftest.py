"""Connections of the library, and stand-ins for brokers that it connects to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from tests.integration.broker.consumer.group_members import Member
from tests.integration.broker.factories import ConnectionFactory, ServerFactory
from tests.integration.broker.peers import Serve, Server, as_true_07_broker


@pytest.fixture
def start_server() -> Iterator[ServerFactory]:
    """Start stand-ins for brokers; stopped at the end."""
    servers: list[Server] = []

    def start(serve: Serve) -> Server:
        server = Server(serve)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def open_connection() -> Iterator[ConnectionFactory]:
    """Make connections that give up a connect soon and a response late; closed at the end."""
    connections: list[Connection] = []

    def make(
        address: BrokerAddress, *, timeout_s: float = 60.0, connect_timeout_s: float = 2.0
    ) -> Connection:
        connection = Connection(address, timeout_s=timeout_s, connect_timeout_s=connect_timeout_s)
        connections.append(connection)
        return connection

    yield make
    for connection in connections:
        connection.close()


@pytest.fixture
def old_broker(running_broker: Broker, start_server: ServerFactory) -> Server:
    """A true 0.7 broker, as far as a client can see, in front of `running_broker`."""
    return start_server(as_true_07_broker(running_broker.port))


@pytest.fixture
def join(zookeeper: str) -> Iterator[Callable[..., Member]]:
    """Start members of group g; those that have not left leave at the end."""
    members: list[Member] = []

    def start(topics: str = ".*", *, connect: Connect | None = None, **settings: object) -> Member:
        where = str(settings.pop("zookeeper", zookeeper))
        members.append(Member(where, topics, connect=connect, **settings))
        return members[-1]

    yield start
    for member in members:
        member.leave()
