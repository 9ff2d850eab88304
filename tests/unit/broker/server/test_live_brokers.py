"""What a broker knows of the others, and its requests to the controller."""

from __future__ import annotations

import pytest

from broker.cluster_state import LiveBroker
from broker.config import BrokerConfig
from broker.errors import NotControllerError, ShuttingDownError
from broker.protocol.replica_requests import ControlledShutdownRequest
from broker.protocol.responses import BrokerAddress
from broker.server.cluster.live_brokers import LiveBrokers

LEAVE = ControlledShutdownRequest(0, 1)


@pytest.fixture
def brokers() -> LiveBrokers:
    return LiveBrokers(BrokerConfig())


def note(brokers: LiveBrokers, port: int) -> BrokerAddress:
    brokers.note([LiveBroker(1, "127.0.0.1", port, 1, is_clean=True, rack="")], 1)
    address = brokers.address_of(1)
    assert address is not None
    return address


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
    first = brokers.connect(note(brokers, 1))
    assert brokers.connect(note(brokers, 1), first) is first
    second = brokers.connect(note(brokers, 2), first)
    assert (second is first, second.address.port) == (False, 2)
