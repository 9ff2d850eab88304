"""How a broker finds out whether another one is there, for itself or when it is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from broker.clock import SystemClock
from broker.cluster_state import LiveBroker, PeerFinding
from broker.config import BrokerConfig
from broker.controller.suspicion import Suspicion
from broker.endpoints import Endpoint
from broker.errors import UnknownEpochError, UnsupportedVersionError
from broker.protocol.replica_requests import ProbeBrokerRequest
from broker.protocol.responses import encode_extension_error
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.peer_watch import PeerWatch, PeerWatches, Watcher, probe_registered
from tests.integration.broker.peers import Serve, Server, hang_up, say, stay_silent
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

EPOCH = 7
REFUSE = say(encode_extension_error(1, UnsupportedVersionError.code, ""))


def peer_at(port: int) -> LiveBroker:
    return LiveBroker(1, "127.0.0.1", port, EPOCH, is_clean=True, rack="")


def found(
    port: int, *, timeout_ms: int = 30_000, epoch: int = EPOCH, is_tls: bool = False
) -> PeerFinding:
    brokers = LiveBrokers(BrokerConfig(broker_id=2))
    brokers.note((peer_at(port),), 0)
    if is_tls:
        brokers.endpoints_of = lambda _id: (Endpoint("SECURE", True, "127.0.0.1", port),)
    return probe_registered(brokers, ProbeBrokerRequest(0, 1, epoch, timeout_ms))


@contextmanager
def listening(serve: Serve) -> Iterator[int]:
    server = Server(serve)
    yield server.port
    server.stop()


def test_broker_when_its_port_refuses_then_is_found_gone() -> None:
    assert found(port_of_its_own()) is PeerFinding.REFUSES


@pytest.mark.parametrize("serve", [stay_silent, hang_up])
def test_broker_when_it_accepts_and_does_not_answer_then_is_silent(serve: Serve) -> None:
    with listening(serve) as port:
        assert found(port, timeout_ms=100) is PeerFinding.SILENT


@pytest.mark.parametrize("is_tls", [False, True])
def test_broker_when_it_answers_what_is_not_accepted_then_is_there(is_tls: bool) -> None:
    with listening(REFUSE) as port:
        assert found(port, is_tls=is_tls) is PeerFinding.ANSWERS


def test_broker_when_it_refuses_its_watch_then_is_not_asked_again_at_once() -> None:
    seen: list[tuple[str, float]] = []

    def note(_peer: LiveBroker, suspicion: Suspicion) -> None:
        seen.append((suspicion.evidence, time.monotonic()))

    brokers = LiveBrokers(BrokerConfig())
    watcher = Watcher(0, brokers, SystemClock(), 3.0, note)
    with listening(REFUSE) as port:
        watch = PeerWatch(peer_at(port), watcher, lambda _peer: {})
        watch.start()
        wait_until(lambda: len(seen) > 2, "two more looks")
        watch.stop()
        watch.join()
    evidence, looks_s = zip(*seen, strict=True)
    assert set(evidence) == {""}
    assert all(later_s - sooner_s > 0.2 for sooner_s, later_s in pairwise(looks_s))


def test_broker_when_another_registration_is_meant_then_nothing_is_tried() -> None:
    with pytest.raises(UnknownEpochError):
        found(1, epoch=EPOCH - 1)


def test_others_when_all_refuse_but_one_is_missed_already_then_there_are_others_to_ask() -> None:
    seen: list[str] = []
    peers = [peer_at(port_of_its_own())._replace(id=id) for id in (1, 2)]
    watches = PeerWatches(
        Watcher(0, LiveBrokers(BrokerConfig()), SystemClock(), 3.0, lambda *_: seen.append(""))
    )
    watches.follow(peers, peers)
    found = [one.suspicion for one in watches._by_id.values()]
    wait_until(lambda: len(seen) > 4 and all(one.is_missed for one in found), "both are missed")
    watches.stop()
    assert [one.evidence for one in found] == ["", ""], "this broker may be cut off"
