"""How many topics clients may create, by requests and by first messages, alone and in a cluster."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

import pytest

from broker.errors import ServerError, TooManyTopicsError
from broker.protocol.client_requests import AuthenticateRequest
from broker.protocol.cluster_requests import AddPartitionsRequest, CreateReplicatedTopicRequest
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest, HomeCount
from broker.protocol.layouts import ExtensionRequest
from broker.security.mechanisms import Channel, Proved, ServerExchange
from broker.security.principal import ANONYMOUS, Principal
from broker.security.rules import CLUSTER, Operation, Rule, StoredRules, parse_pattern
from broker.server import broker as broker_module
from broker.server.broker import Broker
from broker.server.requests import creation_limits
from broker.zk.session import Session
from broker.zk.settings import change_rules
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer

MESSAGE = encode([b"x"])
ALICE, BOB, ADMIN, ROOT = (Principal("User", one) for one in ("alice", "bob", "admin", "root"))


def create(peer: Peer, topic: str, count: int = 1) -> None:
    peer.call(CreateTopicRequest(topic, count))


def ask_for(peer: Peer, topic: str) -> None:
    peer.call(CreateTopicRequest(topic))


def create_replicated(peer: Peer, topic: str) -> None:
    peer.call(CreateReplicatedTopicRequest(topic, 1, 1, ()))


def produce(peer: Peer, topic: str) -> None:
    peer.produce(topic, MESSAGE)
    try:
        peer.fetch("other", 0)
    except (ConnectionError, EOFError) as error:
        raise TooManyTopicsError("the connection is closed") from error


def create_until_refused(make: Callable[[Peer, str], None], peer: Peer) -> int:
    """Return how many topics a client creates before it is refused: more take a second each."""
    name = make.__name__
    for number in range(100):
        try:
            make(peer, f"{name}-{number}")
        except TooManyTopicsError:
            return number
    pytest.fail("a hundred topics were created")


@pytest.mark.parametrize(
    ("make", "is_clustered"),
    [
        (create, False),
        (create, True),
        (ask_for, True),
        (produce, False),
        (produce, True),
        (create_replicated, True),
    ],
)
def test_topics_when_a_client_creates_very_many_then_is_refused_and_others_are_served(
    make: Callable[[Peer, str], None],
    is_clustered: bool,
    request: pytest.FixtureRequest,
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creation_limits, "BURST_S", 3)
    zookeeper = request.getfixturevalue("zookeeper") if is_clustered else ""
    broker = start_broker(quota_creation_rate=1, zookeeper=zookeeper)
    connect(broker).publish("other", MESSAGE)

    count = create_until_refused(make, connect(broker))

    assert count >= 2
    assert connect(broker).publish("other", MESSAGE).error == 0
    refused = re.search(r"topic_creations_refused_total (\d+)", broker.exposition())
    assert refused is not None
    assert int(refused[1]) > 0


def _trusting(_: Channel) -> ServerExchange:
    """A mechanism for tests: a client is who it says it is."""
    name = yield b""
    return Proved(Principal(*name.decode().split(":")), b"")


@pytest.fixture
def as_user(connect: PeerFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Peer]:
    monkeypatch.setattr(broker_module, "_mechanisms", lambda *_: {"TEST": _trusting})

    def make(broker: Broker, who: Principal) -> Peer:
        peer = connect(broker)
        peer.call(AuthenticateRequest("TEST", 0, str(who).encode()))
        return peer

    return make


def test_topics_when_one_user_creates_too_many_then_others_and_administrators_still_may(
    zookeeper: str,
    start_broker: BrokerFactory,
    as_user: Callable[..., Peer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creation_limits, "BURST_S", 3)
    every_topic, _ = parse_pattern("topic:*")
    rules = [Rule(one, Operation.CREATE, every_topic) for one in (ALICE, BOB)]
    rules.append(Rule(ADMIN, Operation.CREATE, CLUSTER))
    with Session(zookeeper) as session:
        change_rules(session, lambda _: StoredRules().adding(rules).encode())
    broker = start_broker(
        zookeeper=zookeeper, enforces_rules=True, super_users=str(ROOT), quota_creation_rate=1
    )
    create_until_refused(create, as_user(broker, ALICE))

    create(as_user(broker, BOB), "of-bob")
    for who in (ADMIN, ROOT):
        peer = as_user(broker, who)
        for number in range(10):
            create(peer, f"{who.name}-{number}")


def test_partitions_when_a_user_has_created_half_of_all_or_all_are_there_then_no_more(
    start_broker: BrokerFactory,
    as_user: Callable[..., Peer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creation_limits, "_COUNTED_S", 0.0)
    broker = start_broker(max_partitions=10)
    alice, bob, root = (as_user(broker, who) for who in (ALICE, BOB, ROOT))
    create(alice, "a", 5)
    with pytest.raises(TooManyTopicsError, match="User:alice has created 5 partitions"):
        create(alice, "b")
    create(bob, "b", 5)
    with pytest.raises(TooManyTopicsError, match=r"has 10 partitions \(max.partitions=10\)"):
        create(root, "c")

    alice.call(DeleteTopicRequest("b"))
    alice.call(DeleteTopicRequest("a"))
    create(alice, "d", 5)
    create(root, "c")


@pytest.mark.parametrize("count", [-(2**31), 2**31 - 1])
def test_partitions_when_a_client_asks_for_impossible_ones_then_the_limits_stay(
    count: int,
    zookeeper: str,
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creation_limits, "_COUNTED_S", 3600.0)
    broker = start_broker(max_partitions=10, zookeeper=zookeeper)
    peer = connect(broker)
    impossible: list[ExtensionRequest] = [
        CreateTopicRequest("x", count),
        CreateTopicRequest("x", count, (HomeCount(77, count),)),
        CreateReplicatedTopicRequest("x", count, 1, ()),
        AddPartitionsRequest("x", count),
        CreateReplicatedTopicRequest("x", 1, 99, ()),
    ]
    for request in impossible * 5:
        with pytest.raises(ServerError) as caught:
            peer.call(request)
        assert not isinstance(caught.value, TooManyTopicsError)

    with pytest.raises(TooManyTopicsError):
        peer.call(CreateTopicRequest("elsewhere", count & 1, (HomeCount(77, 6),)))
    create(peer, "a", 5)
    with pytest.raises(TooManyTopicsError):
        create(peer, "b")


@pytest.mark.parametrize("is_clustered", [False, True])
def test_topic_when_very_many_producers_start_on_it_together_then_counts_once(
    is_clustered: bool,
    request: pytest.FixtureRequest,
    start_broker: BrokerFactory,
    connect: PeerFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zookeeper = request.getfixturevalue("zookeeper") if is_clustered else ""
    broker = start_broker(zookeeper=zookeeper, max_partitions=10)
    connect(broker).publish("other", MESSAGE)
    are_sent = threading.Event()
    make_in_cluster = broker.creations._create_in_cluster

    def make_late(topic: str, homes: Mapping[int, int]) -> None:
        are_sent.wait(60)
        make_in_cluster(topic, homes)

    monkeypatch.setattr(broker.creations, "_create_in_cluster", make_late)
    peers = [connect(broker) for _ in range(50)]
    for peer in peers:
        peer.produce("new", MESSAGE)
    are_sent.set()
    for peer in peers:
        peer.fetch("other", 0)
    assert broker.creations.limits._created == {ANONYMOUS: 2}
