"""What a broker knows of the others, and its requests to the controller."""

from __future__ import annotations

from pathlib import Path
from socket import create_server

import pytest

from broker.client.connection import Connection
from broker.cluster_state import LiveBroker
from broker.config import BrokerConfig
from broker.endpoints import Endpoint
from broker.errors import NotControllerError, ShuttingDownError
from broker.protocol.replica_requests import ControlledShutdownRequest
from broker.server.cluster.live_brokers import LiveBrokers

LEAVE = ControlledShutdownRequest(0, 1)


@pytest.fixture
def brokers() -> LiveBrokers:
    return LiveBrokers(BrokerConfig())


def note(brokers: LiveBrokers, port: int) -> None:
    brokers.note((LiveBroker(1, "127.0.0.1", port, 1, is_clean=True, rack=""),), 1)


def connect(brokers: LiveBrokers, former: Connection | None = None) -> Connection:
    connection = brokers.connect(1, former)
    assert connection is not None
    return connection


def test_request_when_no_controller_is_known_then_is_refused(brokers: LiveBrokers) -> None:
    with pytest.raises(NotControllerError):
        brokers.ask_controller(LEAVE)


def test_request_when_the_broker_stops_then_is_refused_and_not_sent(brokers: LiveBrokers) -> None:
    note(brokers, 1)  # nobody listens there
    brokers.stop()
    with pytest.raises(ShuttingDownError):
        brokers.ask_controller(LEAVE)


def test_connection_when_the_broker_has_another_address_then_is_another_one(
    brokers: LiveBrokers,
) -> None:
    with create_server(("127.0.0.1", 0)) as server, create_server(("127.0.0.1", 0)) as other:
        note(brokers, server.getsockname()[1])
        first = connect(brokers)
        first.connect()
        assert connect(brokers, first) is first
        note(brokers, other.getsockname()[1])
        second = connect(brokers, first)
        assert (first.is_open, second.address.port) == (False, other.getsockname()[1])


def test_connection_when_the_former_one_failed_then_is_made_by_the_present_registration(
    brokers: LiveBrokers,
) -> None:
    note(brokers, 1)
    at = Endpoint("PLAIN", False, "127.0.0.1", 1)
    brokers.endpoints_of = lambda _id: (at,)
    failed = connect(brokers)
    brokers.endpoints_of = lambda _id: (at._replace(is_tls=True, listener="SECURE"),)
    again = connect(brokers, failed)
    assert (failed.security, again.security is None) == (None, False)


def test_connection_when_its_requests_have_little_time_then_connecting_has_no_more(
    brokers: LiveBrokers,
) -> None:
    peer = LiveBroker(1, "127.0.0.1", 1, 1, is_clean=True, rack="")
    assert brokers.connect_to(peer, timeout_s=0.5).connect_timeout_s == 0.5


PLAIN = Endpoint("PLAIN", False, "b2", 9092)
INNER = Endpoint("INNER", False, "b2", 9094)
SECURE = Endpoint("SECURE", True, "b2", 9093)


@pytest.mark.parametrize(
    ("registered", "used"),
    [
        ((PLAIN, SECURE), SECURE),  # it has not been switched yet
        ((SECURE, PLAIN), SECURE),
        ((INNER, PLAIN), INNER),  # what it chose for brokers
        ((), PLAIN),
    ],
)
def test_endpoint_when_brokers_are_switched_one_by_one_then_is_one_that_the_other_has(
    registered: tuple[Endpoint, ...], used: Endpoint
) -> None:
    config = BrokerConfig(
        listeners="SECURE=tls://b1:9093",
        inter_broker_listener="SECURE",
        ssl_certificate=Path("broker.pem"),
    )
    broker = LiveBroker(2, "b2", 9092, 5, True, "", endpoints=registered)
    assert LiveBrokers(config).endpoint(broker) == used
