"""TLS listeners of a broker, from raw sockets."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.codec import encode
from broker.protocol.responses import ClusterMetadataResponse
from broker.server.broker import Broker
from tests.integration.broker.server.peer import Peer, extension_frame, publish_request
from tests.support.certificates import Certificates
from tests.support.waiting import wait_until

ConnectTls = Callable[..., Peer]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_broker(start_broker: Callable[..., Broker], certificates: Certificates) -> Broker:
    return start_broker(**certificates.settings())


@pytest.fixture
def connect_tls(certificates: Certificates) -> Iterator[ConnectTls]:
    """Connect to a broker's TLS listener; closed at the end."""
    peers: list[Peer] = []

    def make(broker: Broker, tls: ssl.SSLContext | None = None, receive_bytes: int = 0) -> Peer:
        peer = Peer(tls_port(broker), tls=tls or certificates.client(), receive_bytes=receive_bytes)
        peers.append(peer)
        return peer

    yield make
    for peer in peers:
        peer.close()


def tls_port(broker: Broker) -> int:
    (port,) = (one["port"] for one in broker.status()["listeners"] if one["tls"])
    return int(port)


def test_tls_when_messages_are_published_then_plain_and_tls_clients_read_the_same(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    secure = connect_tls(tls_broker)
    data = encode([os.urandom(5000) for _ in range(300)])

    assert secure.publish("events", data).error == 0

    with Peer(tls_broker.port) as plain:
        assert plain.fetch("events", 0, max_bytes=1 << 24) == (0, data)
    assert secure.fetch("events", 0, max_bytes=1 << 24) == (0, data)
    assert secure.read("events", 0, max_bytes=1 << 24).error == 0


def test_tls_when_a_slow_client_pipelines_then_each_response_comes_whole_and_in_order(
    tls_broker: Broker, connect_tls: ConnectTls
) -> None:
    client = connect_tls(tls_broker, receive_bytes=4096)
    data = encode([os.urandom(900_000)])
    for _ in range(3):
        assert client.publish("events", data).error == 0
    size = len(data)

    frames = [extension_frame(publish_request("events", data), number) for number in range(3)]
    client.send_bytes(b"".join(frames))
    for number in range(3):
        client.receive_extension(number)
    for number in range(6):
        assert client.fetch("events", number * size, max_bytes=size) == (0, data)


def test_metadata_when_a_client_comes_by_tls_then_has_the_tls_addresses_of_all_brokers(
    zookeeper: str,
    start_broker: Callable[..., Broker],
    certificates: Certificates,
    connect_tls: ConnectTls,
    tmp_path: Path,
) -> None:
    brokers = [
        start_broker(
            data_dir=tmp_path / str(number),
            broker_id=number,
            zookeeper=zookeeper,
            advertised_listeners=f"SECURE=broker-{number}.example:{9094 + number}",
            **certificates.settings(),
        )
        for number in (1, 2)
    ]
    secure = connect_tls(brokers[0])

    def addresses(peer: Peer) -> list[tuple[int, str, int]]:
        found = ClusterMetadataResponse.decode(peer.call(ClusterMetadataRequest(None)))
        return [(one.id, one.host, one.port) for one in found.brokers]

    expected = [(1, "broker-1.example", 9095), (2, "broker-2.example", 9096)]
    wait_until(lambda: addresses(secure) == expected, "broker 1 knowing both endpoints")
    with Peer(brokers[0].port) as plain:
        ports = enumerate((one.port for one in brokers), 1)
        assert addresses(plain) == [(number, "127.0.0.1", port) for number, port in ports]
