"""What fixtures make, for the annotations of tests."""

from __future__ import annotations

from collections.abc import Callable

from broker.client.connection import Connection
from broker.protocol.responses import BrokerAddress
from broker.server.broker import Broker
from tests.integration.broker.peers import Server
from tests.integration.broker.server.peer import Peer

BrokerFactory = Callable[..., Broker]
ServerFactory = Callable[..., Server]
ConnectionFactory = Callable[..., Connection]
PeerFactory = Callable[..., Peer]


def address_of(peer: Broker | Server) -> BrokerAddress:
    """Return the address of a broker or stand-in, its id unknown."""
    return BrokerAddress(-1, "127.0.0.1", peer.port)
