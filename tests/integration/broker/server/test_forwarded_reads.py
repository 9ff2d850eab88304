"""Reads of 0.7 at a home broker that has no replica of a partition any more."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.cluster_state import LiveBroker, PartitionState, ReplicatedPartition
from broker.errors import NotLeaderError, OffsetOutOfRangeError, UnknownServerError
from broker.protocol.client_requests import (
    Acks,
    ListSegmentsRequest,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.replica_requests import PushStatesRequest
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME, FetchRequest, OffsetsRequest
from broker.protocol.responses import SEGMENT_STARTS, decode_publish_response
from broker.security.principal import ANONYMOUS
from broker.security.rules import Operation, Resource, ResourceType, Rule, RuleSet
from broker.server.broker import Broker
from broker.server.requests.forwarder import MAX_READ_BYTES
from broker.topic import TopicPartition
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.broker_proof import give_key, prove_to
from tests.support.waiting import wait_until

HOME, LEADER, CONTROLLER, NOBODY = 0, 1, 9, -1
PARTITIONS = [TopicPartition("moved", HOME, index) for index in range(2)]
ONE, TWO = encode([b"first"]), encode([b"second"])


class MovedTopic:
    """A home broker, and the only replicas of its two partitions on another broker.

    The home also has a topic of its own, `local`.
    """

    def __init__(self, start: BrokerFactory, connect: PeerFactory, directory: Path) -> None:
        settings = {"flush_interval_messages": 1, "segment_bytes": 2 << 20, "num_threads": 1}
        self.home: Broker = start(broker_id=HOME, data_dir=give_key(directory / "home"), **settings)
        self.leader: Broker = start(
            broker_id=LEADER, data_dir=give_key(directory / "leader"), **settings
        )
        for broker in (self.home, self.leader):
            broker.replicas.registered_epoch = lambda: 1  # as if in ZooKeeper
        self.connect: Callable[[], Peer] = lambda: connect(self.home)
        self.peer = self.connect()
        self.at_leader = connect(self.leader)
        prove_to(self.home, self.peer.call, CONTROLLER)
        prove_to(self.leader, self.at_leader.call, CONTROLLER)
        self._epoch = 0
        self.decide(LEADER)

    def decide(self, leader: int, *, port: int | None = None) -> None:
        """Tell the brokers who leads, and perhaps a port that is not the leader's."""
        self._epoch += 1
        state = PartitionState(leader, self._epoch, (LEADER,), 1)
        ports = {HOME: self.home.port, LEADER: port or self.leader.port}
        brokers = tuple(LiveBroker(one, "127.0.0.1", at, 1, True, "") for one, at in ports.items())
        states = tuple(
            ReplicatedPartition(one, "id", (LEADER,), 1, state, self._epoch) for one in PARTITIONS
        )
        request = PushStatesRequest(CONTROLLER, 1, 1, False, brokers, states, ())
        for peer in (self.peer, self.at_leader):
            peer.call(request)

    def publish(self, index: int, message_set: bytes) -> None:
        sets = (PartitionSet(PARTITIONS[index], message_set),)
        request = PublishRequest(Acks.COMMITTED, 60_000, sets)
        (published,) = decode_publish_response(self.at_leader.call(request))
        assert published.error == 0, published.text


@pytest.fixture
def moved(start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path) -> MovedTopic:
    return MovedTopic(start_broker, connect, tmp_path)


def test_fetch_when_another_broker_has_the_only_replica_then_gets_what_that_has(
    moved: MovedTopic,
) -> None:
    moved.publish(0, ONE + TWO)

    assert moved.peer.fetch("moved", 0) == (0, ONE + TWO)
    assert moved.peer.fetch("moved", len(ONE)) == (0, TWO)
    assert moved.peer.fetch("moved", len(ONE + TWO)) == (0, b"")
    assert moved.peer.fetch("moved", 10_000) == (OffsetOutOfRangeError.code, b"")


def test_requests_when_rules_are_on_then_users_are_judged_at_home_and_not_by_the_leader(
    moved: MovedTopic,
) -> None:
    def judge(broker: Broker, *operations: Operation) -> None:
        topic = Resource(ResourceType.TOPIC, "moved")
        broker.judge.rules = RuleSet(Rule(ANONYMOUS, one, topic) for one in operations)

    moved.publish(0, ONE)
    judge(moved.leader)
    judge(moved.home, Operation.READ, Operation.WRITE)
    user = moved.connect()
    user.produce("moved", TWO)
    wait_until(lambda: user.fetch("moved", 0) == (0, ONE + TWO), "the message at the leader")

    judge(moved.home, Operation.READ)
    user.produce("moved", TWO)
    assert user.is_closed()
    user = moved.connect()
    assert user.fetch("moved", 0) == (0, ONE + TWO)
    judge(moved.home)
    assert user.fetch("moved", 0) == user.fetch("missing", 0) == (0, b"")


def test_multifetch_when_some_partitions_are_at_home_then_each_part_is_in_its_place(
    moved: MovedTopic,
) -> None:
    moved.publish(0, ONE)
    moved.publish(1, TWO)
    moved.peer.publish("local", TWO + ONE)
    moved_fetches = [FetchRequest("moved", index, 0, 1000) for index in (1, 0)]
    local = FetchRequest("local", 0, 0, 1000)

    found = moved.peer.multifetch(moved_fetches[0], local, moved_fetches[1])

    assert found == [(0, TWO), (0, TWO + ONE), (0, ONE)]


def test_fetch_when_a_message_is_larger_than_a_forwarded_read_then_it_comes_whole(
    moved: MovedTopic,
) -> None:
    large = encode([b"x" * (MAX_READ_BYTES + 1000)])
    moved.publish(0, large + ONE)

    assert moved.peer.fetch("moved", 0) == (0, large)
    assert moved.peer.fetch("moved", 0, max_bytes=100) == (
        0,
        large[:100],
    )  # which tells a client of 0.7


def test_multifetch_when_it_names_very_many_then_no_part_ends_in_its_first_message(
    moved: MovedTopic,
) -> None:
    large = encode([b"x" * 20_000])
    moved.publish(0, large)

    found = moved.peer.multifetch(*[FetchRequest("moved", 0, 0, 1 << 20)] * 2000)

    assert len(found) == 2000
    assert {data for _, data in found} == {b"", large}
    assert sum(len(data) for _, data in found) <= MAX_READ_BYTES + len(large)


def test_fetch_when_there_is_no_leader_then_an_error_and_a_multifetch_goes_on_with_the_others(
    moved: MovedTopic,
) -> None:
    moved.publish(0, ONE)
    moved.peer.publish("local", TWO)
    moved.decide(NOBODY)

    assert moved.peer.fetch("moved", 0) == (UnknownServerError.code, b"")
    fetches = [FetchRequest(topic, 0, 0, 1000) for topic in ("moved", "local")]
    assert moved.peer.multifetch(*fetches) == [(0, b""), (0, TWO)]
    moved.decide(LEADER)
    assert moved.peer.multifetch(*fetches) == [(0, ONE), (0, TWO)]


def test_fetch_when_the_leader_is_silent_then_other_clients_of_the_processor_are_served(
    moved: MovedTopic,
) -> None:
    moved.peer.publish("local", TWO)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        moved.decide(LEADER, port=silent.getsockname()[1])
        waiting = moved.connect()
        waiting.send(FetchRequest("moved", 0, 0, 1000))
        accepted, _ = silent.accept()
        with accepted:
            assert accepted.recv(1000)  # the read is under way

            assert moved.peer.fetch("local", 0) == (0, TWO)
    assert waiting.receive()[:2] == b"\xff\xff"  # the connections of the silent one are closed


def test_fetch_when_its_client_leaves_before_the_leader_answers_then_nothing_is_kept_for_it(
    moved: MovedTopic,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        moved.decide(LEADER, port=silent.getsockname()[1])
        waiting = moved.connect()
        waiting.send(FetchRequest("moved", 0, 0, 1000))
        accepted, _ = silent.accept()
        with accepted:
            waiting.close()
            wait_until(
                lambda: moved.home.status()["metrics"]["Purgatory"]["Waiting"] == 0,
                "the forgetting",
            )


def test_offsets_when_another_broker_has_the_only_replica_then_are_those_of_its_log(
    moved: MovedTopic,
) -> None:
    large = encode([b"x" * (900 << 10)])
    for _ in range(4):
        moved.publish(0, large)
    size = len(large)

    assert moved.peer.offsets("moved", LATEST_TIME) == [4 * size, 3 * size, 0]
    assert moved.peer.offsets("moved", LATEST_TIME, 1) == [4 * size]
    assert moved.peer.offsets("moved", EARLIEST_TIME) == [0]
    assert moved.peer.offsets("moved", 1) == []


def test_offsets_when_there_is_no_leader_then_closes_the_connection_as_07_does(
    moved: MovedTopic,
) -> None:
    moved.decide(NOBODY)
    peer = moved.connect()

    peer.send(OffsetsRequest("moved", 0, LATEST_TIME, 1))

    assert peer.is_closed()


def test_list_segments_when_asked_of_a_broker_that_does_not_lead_then_refused_as_not_the_leader(
    moved: MovedTopic, connect: PeerFactory
) -> None:
    moved.publish(0, ONE)
    request = ListSegmentsRequest(PARTITIONS[0], LATEST_TIME, 10)

    assert SEGMENT_STARTS.decode(moved.at_leader.call(request)) == [len(ONE), 0]
    with pytest.raises(NotLeaderError):
        moved.peer.call(request)
