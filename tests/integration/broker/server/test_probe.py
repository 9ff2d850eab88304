"""A broker that is asked whether another one is there tries that one anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from broker.cluster_state import Finding, LiveBroker
from broker.config import BrokerConfig
from broker.errors import UnknownEpochError, UnsupportedVersionError
from broker.protocol.replica_requests import ProbeBrokerRequest
from broker.protocol.responses import encode_extension_error
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.probe import probe_registered
from tests.integration.broker.peers import Serve, Server, hang_up, say, stay_silent
from tests.support.ports import port_of_its_own

EPOCH = 7


def found(port: int, *, timeout_ms: int = 30_000, epoch: int = EPOCH) -> Finding:
    brokers = LiveBrokers(BrokerConfig(broker_id=2))
    brokers.note((LiveBroker(1, "127.0.0.1", port, EPOCH, is_clean=True, rack=""),), 0)
    return probe_registered(brokers, ProbeBrokerRequest(0, 1, epoch, timeout_ms))


@contextmanager
def listening(serve: Serve) -> Iterator[int]:
    server = Server(serve)
    yield server.port
    server.stop()


def test_broker_when_its_port_refuses_then_is_found_gone() -> None:
    assert found(port_of_its_own()) is Finding.REFUSES


@pytest.mark.parametrize("serve", [stay_silent, hang_up])
def test_broker_when_it_accepts_and_does_not_answer_then_is_silent(serve: Serve) -> None:
    with listening(serve) as port:
        assert found(port, timeout_ms=100) is Finding.SILENT


def test_broker_when_it_answers_with_an_error_then_is_there() -> None:
    with listening(say(encode_extension_error(1, UnsupportedVersionError.code, ""))) as port:
        assert found(port) is Finding.ANSWERS


def test_broker_when_another_registration_is_meant_then_nothing_is_tried() -> None:
    with pytest.raises(UnknownEpochError):
        found(1, epoch=EPOCH - 1)
