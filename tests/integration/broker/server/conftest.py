from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from broker.log.log import Log
from broker.server.broker import Broker
from tests.integration.broker.factories import PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.bugs import expects_bugs as expects_bugs
from tests.support.bugs import no_bugs as no_bugs


@pytest.fixture
def connect() -> Iterator[PeerFactory]:
    """Make connections to a broker, closed at the end."""
    peers: list[Peer] = []

    def make(broker: Broker, *, receive_bytes: int = 0, address: str = "127.0.0.1") -> Peer:
        peer = Peer(broker.port, receive_bytes=receive_bytes, address=address)
        peers.append(peer)
        return peer

    yield make
    for peer in peers:
        peer.close()


@pytest.fixture
def peer(running_broker: Broker, connect: PeerFactory) -> Peer:
    """A connection to `running_broker`."""
    return connect(running_broker)


@pytest.fixture
def held_flushes(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold back every flush until the event is set."""
    may_flush = threading.Event()
    flush = Log.flush

    def flush_later(log: Log) -> None:
        may_flush.wait(60)
        flush(log)

    monkeypatch.setattr(Log, "flush", flush_later)
    return may_flush
