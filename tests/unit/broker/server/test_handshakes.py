"""Which TLS handshakes end for others that wait."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest

from broker.server.network.connection import Listener, ServerConnection
from broker.server.network.handshakes import (
    MAX_HANDSHAKES,
    RESERVED_HANDSHAKES,
    SCARCE_S,
    Handshakes,
    WaitingClient,
)
from tests.doubles import FakeClock

STRANGER, BROKER = Listener("CLIENTS"), Listener("CLIENTS", has_reserve=True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def handshakes(clock: FakeClock) -> Iterator[Handshakes]:
    with closing(Handshakes(clock)) as made:
        yield made


def begin(handshakes: Handshakes, listener: Listener, count: int) -> list[ServerConnection]:
    """Begin handshakes that never end, of as many addresses."""
    begun = [cast("ServerConnection", object()) for _ in range(count)]
    for number, connection in enumerate(begun):
        address = f"127.0.{number >> 8}.{number & 255}"
        handshakes.begin(
            connection, WaitingClient(cast("socket.socket", None), address, listener, 0.0)
        )
    return begun


def test_handshakes_when_strangers_wait_then_those_of_brokers_go_on(
    handshakes: Handshakes, clock: FakeClock
) -> None:
    begin(handshakes, BROKER, RESERVED_HANDSHAKES)
    strangers = begin(handshakes, STRANGER, MAX_HANDSHAKES - 1)
    client, server = socket.socketpair()
    with client, server:
        client.sendall(b"x")
        handshakes.wait(server, "127.1.0.1", STRANGER)
        (waiting,) = handshakes.ready()
        late = cast("ServerConnection", object())
        handshakes.begin(late, waiting)
        handshakes.wait(server, "127.1.0.2", STRANGER)
        assert not list(handshakes.ready())
        clock.advance(SCARCE_S)
        assert handshakes.overdue() == [*strangers, late]
