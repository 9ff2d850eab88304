"""What any broker of a cluster tells of the whole of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.log.deletion import LogDeletions
from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    HomeCount,
)
from broker.protocol.responses import ClusterMetadataResponse
from broker.server.broker import Broker
from broker.server.cluster.cluster_view import ClusterView
from broker.zk.creations import change_homes, read_homes
from broker.zk.session import Session
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartRegistered = Callable[[int], Broker]


@pytest.fixture
def start(start_broker: BrokerFactory, zookeeper: str, tmp_path: Path) -> StartRegistered:
    """Start the registered broker with an id."""

    def start_registered(broker_id: int) -> Broker:
        return start_broker(
            broker_id=broker_id,
            data_dir=tmp_path / str(broker_id),
            zookeeper=zookeeper,
        )

    return start_registered


def metadata(peer: Peer, *topics: str) -> ClusterMetadataResponse:
    request = ClusterMetadataRequest(topics or None)
    return ClusterMetadataResponse.decode(peer.call(request))


def leaders(peer: Peer, topic: str) -> dict[str, int]:
    return {one.partition.name: one.leader for one in metadata(peer, topic).topics[0].partitions}


def has_all(peer: Peer) -> bool:
    return len(leaders(peer, "events")) == 3 and leaders(peer, "audit") == {"1-0": 1, "2-0": 2}


def test_metadata_when_asked_of_any_broker_then_of_the_whole_cluster(
    start: StartRegistered, connect: PeerFactory
) -> None:
    brokers = [start(1), start(2)]
    peers = [connect(one) for one in brokers]
    for count, peer in enumerate(peers, 1):
        peer.call(CreateTopicRequest("events", count))
    peers[1].publish("audit", encode([b"x"]))

    for number, peer in enumerate(peers, 1):
        wait_until(partial(has_all, peer), "the topics of all homes")
        response = metadata(peer)
        assert response.broker_id == number
        assert [(one.id, one.port) for one in response.brokers] == [
            (id_, one.port) for id_, one in enumerate(brokers, 1)
        ]
        assert [one.topic for one in response.topics] == ["audit", "events"]
        assert leaders(peer, "events") == {"1-0": 1, "2-0": 2, "2-1": 2}


def test_metadata_when_a_broker_stops_then_its_partitions_have_no_leader_until_it_is_back(
    start: StartRegistered, connect: PeerFactory
) -> None:
    here, there = start(1), start(2)
    peer = connect(here)
    for broker in (here, there):
        connect(broker).call(CreateTopicRequest("events", 1))
    wait_until(lambda: leaders(peer, "events") == {"1-0": 1, "2-0": 2}, "both homes")

    there.stop()
    wait_until(lambda: leaders(peer, "events") == {"1-0": 1, "2-0": -1}, "the end of a broker")
    assert [one.id for one in metadata(peer).brokers] == [1]
    here.stop()
    peer = connect(start(1))
    assert leaders(peer, "events") == {"1-0": 1, "2-0": -1}, "forgotten at a restart"
    start(2)
    wait_until(lambda: leaders(peer, "events") == {"1-0": 1, "2-0": 2}, "its return")


def test_metadata_when_a_topic_is_deleted_then_it_is_unknown_everywhere(
    start: StartRegistered, connect: PeerFactory
) -> None:
    here, there = connect(start(1)), connect(start(2))
    there.call(CreateTopicRequest("events", 1))
    wait_until(lambda: leaders(here, "events") == {"2-0": 2}, "the topic")
    there.call(DeleteTopicRequest("events"))
    wait_until(lambda: not leaders(here, "events"), "the deletion")
    assert metadata(here).topics == ()


def test_metadata_when_the_registry_is_not_read_yet_then_the_response_waits(
    start: StartRegistered, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(start(1)).call(CreateTopicRequest("events", 1))
    is_readable = threading.Event()
    set_registered = ClusterView.set_registered

    def set_later(*arguments: Any) -> list[str]:
        is_readable.wait(60)
        return set_registered(*arguments)

    monkeypatch.setattr(ClusterView, "set_registered", set_later)
    peer = connect(start(2))
    peer.send_extension(ClusterMetadataRequest(None))
    assert not peer.has_answer(0.05)
    is_readable.set()
    response = ClusterMetadataResponse.decode(peer.receive_extension())
    assert [one.id for one in response.brokers] == [1, 2]
    assert [one.topic for one in response.topics] == ["events"]


def test_topic_when_deleted_and_recorded_again_between_two_looks_then_its_home_creates_it(
    start: StartRegistered,
    connect: PeerFactory,
    zookeeper: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_held, may_look = threading.Event(), threading.Event()
    set_registered = ClusterView.set_registered

    def set_later(view: ClusterView, brokers: Any, counts: Any) -> list[str]:
        if "other" in counts:
            is_held.set()
            may_look.wait(60)
        return set_registered(view, brokers, counts)

    monkeypatch.setattr(ClusterView, "set_registered", set_later)
    peer = connect(start(1))
    peer.call(CreateTopicRequest("events", 1))
    with Session(zookeeper) as session:
        wait_until(lambda: read_homes(session, ["events"]), "the record of its home")
        peer.call(CreateTopicRequest("other", 1))
        assert is_held.wait(60)
        peer.call(DeleteTopicRequest("events"))
        wait_until(lambda: not read_homes(session, ["events"]), "the end of the record")
        change_homes(session, {"events": lambda _: {1: 1}})
    may_look.set()

    wait_until(lambda: leaders(peer, "events") == {"1-0": 1}, "the second topic of the name")


def test_topic_when_recorded_while_a_former_one_is_deleted_then_is_created_after_it(
    start: StartRegistered,
    connect: PeerFactory,
    zookeeper: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_held, may_end = threading.Event(), threading.Event()
    end = LogDeletions._end

    def end_later(deletions: LogDeletions) -> None:
        if deletions.unfinished():
            is_held.set()
            may_end.wait(60)
        end(deletions)

    monkeypatch.setattr(LogDeletions, "_end", end_later)
    broker = start(1)
    peer, deleting = connect(broker), connect(broker)
    peer.call(CreateTopicRequest("events", 1))
    with Session(zookeeper) as session:
        wait_until(lambda: read_homes(session, ["events"]), "the record of its home")
        deleting.send_extension(DeleteTopicRequest("events"))
        assert is_held.wait(60)
        wait_until(lambda: not read_homes(session, ["events"]), "the end of the record")
        change_homes(session, {"events": lambda _: {1: 1}})
    peer.call(CreateTopicRequest("other", homes=(HomeCount(1, 1),)))  # not held up
    assert leaders(peer, "other") == {"1-0": 1}
    assert leaders(peer, "events") == {}

    may_end.set()

    deleting.receive_extension()
    wait_until(lambda: leaders(peer, "events") == {"1-0": 1}, "the second topic of the name")
