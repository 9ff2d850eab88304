"""Elections and reassignments of the Python API, at brokers with a ZooKeeper."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import pylogctl
from broker import Broker as Server
from broker.admin.replicas import replicas_of
from broker.client.connection import Connection
from broker.client.side import Side
from broker.errors import BrokerUnreachableError
from broker.protocol.cluster_requests import ElectLeadersRequest, ReassignRequest
from broker.protocol.primitives import Reader
from pylogctl import Client, Move, TopicPartition
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3, {"auto.leader.rebalance.enable": "false"}) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.connect() as connected:
        yield connected


def create(client: Client, *, count: int = 1, factor: int = 2) -> str:
    """Create a topic, and return its name once all its replicas are in sync."""
    name = f"orders-{next(_numbers)}"
    client.create_topic(name, partitions=count, replicas=factor)
    wait_until(
        lambda: all(len(one.isr) == factor for one in known(client, name).values()),
        "replicas in sync",
    )
    return name


def known(client: Client, topic: str):  # type: ignore[no-untyped-def]  # as the library has it
    return replicas_of(Side(client._cluster, client._connect), [topic])


def replicas(client: Client, topic: str) -> dict[TopicPartition, tuple[int, ...]]:
    return {one: found.replicas for one, found in known(client, topic).items()}


def test_reassign_when_waited_for_then_partitions_are_on_the_brokers_named_with_their_messages(
    client: Client,
) -> None:
    topic = create(client, count=3)
    client.send_many(topic, [str(n) for n in range(50)])
    before = replicas(client, topic)

    moving = client.reassign(topic, [0, 1])
    moving.wait(60)

    after = replicas(client, topic)
    assert {frozenset(one) for one in after.values()} == {frozenset((0, 1))}
    assert moving.moves == tuple(
        Move(one, before[one], after[one]) for one in sorted(before) if before[one] != after[one]
    )
    assert moving.moves
    assert moving.progress() == []
    assert sorted(int(one.text()) for one in client.read(topic)) == list(range(50))
    # once more: nothing is left to do
    again = client.reassign(topic, [0, 1])
    assert again.moves == ()
    again.wait(0)


def test_reassign_when_only_planned_then_tells_the_moves_and_changes_nothing(
    client: Client,
) -> None:
    topic = create(client)
    ((partition, before),) = replicas(client, topic).items()

    plan = client.reassign(topic, replicas=3, plan=True)

    assert [(one.partition, one.before) for one in plan.moves] == [(partition, before)]
    assert sorted(plan.moves[0].target) == [0, 1, 2]
    assert replicas(client, topic) == {partition: before}
    assert client.reassignments() == []
    with pytest.raises(pylogctl.Conflict, match="other replicas") as caught:
        plan.wait(5)
    assert caught.value.reason == "REASSIGNMENT_ENDED"


def test_reassign_when_throttled_then_progress_says_how_far_and_a_cancel_restores(
    client: Client,
) -> None:
    topic = create(client, factor=1)
    ((partition, before),) = replicas(client, topic).items()
    client.send_many(topic, [bytes(100_000)] * 5)

    moving = client.reassign(topic, replicas=2, throttle=1)

    (added,) = set(moving.moves[0].target) - set(before)
    wait_until(
        lambda: all(one.percent is not None for one in moving.progress()),
        "the leader to know of the replica",
    )
    (found,) = moving.progress()
    assert (found.partition, found.before, found.missing) == (partition, before, (added,))
    assert found.throttle_bytes_per_s == 1
    assert found.percent is not None
    assert found.percent < 100
    assert found.left_bytes is not None
    assert 0 < found.left_bytes <= 501_000
    (listed,) = client.reassignments()
    assert (listed.topic, listed.moves) == (topic, moving.moves)
    with pytest.raises(pylogctl.TimedOut, match="1 of 1 partitions are still being copied"):
        listed.wait(0.1)

    assert client.cancel_reassignment(topic) == [partition]

    assert replicas(client, topic) == {partition: before}
    assert client.reassignments() == []
    assert client.cancel_reassignment(topic) == []
    with pytest.raises(pylogctl.Conflict, match="cancelled"):
        moving.wait()


def test_throttle_when_lifted_then_the_move_ends(client: Client) -> None:
    topic = create(client, factor=1)
    client.send_many(topic, [bytes(100_000)] * 5)
    moving = client.reassign(topic, replicas=2, throttle=1)

    client.throttle_reassignments(0)

    moving.wait(60)
    assert [len(one.isr) for one in known(client, topic).values()] == [2]


def test_reassign_when_the_response_is_lost_then_is_asked_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create(client, factor=1)
    lose_response_of(ReassignRequest, monkeypatch)

    moving = client.reassign(topic, replicas=2)
    moving.wait(60)

    assert [len(one) for one in replicas(client, topic).values()] == [2]


def test_reassign_when_the_controller_is_killed_behind_it_then_it_has_begun(
    client: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = next(one.id for one in client.brokers() if one.is_controller)
    topic = create(client, factor=1)
    ((home,),) = replicas(client, topic).values()
    while home == controller:
        topic = create(client, factor=1)
        ((home,),) = replicas(client, topic).values()
    client.send_many(topic, [bytes(100_000)] * 5)
    lose_response_of(ReassignRequest, monkeypatch, cluster.broker(controller).kill)
    try:
        # without a throttle the copy may be complete before the kill
        moving = client.reassign(topic, [home, controller], replicas=2, throttle=1)

        assert [set(one.target) for one in moving.moves] == [{home, controller}]
        assert [one.moves for one in client.reassignments()] == [moving.moves]
    finally:
        cluster.broker(controller).restart()
    client.throttle_reassignments(0)
    moving.wait(60)


def test_cancel_when_the_response_is_lost_then_looks_and_is_content(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create(client, factor=1)
    client.send_many(topic, [bytes(100_000)] * 5)
    client.reassign(topic, replicas=2, throttle=1)
    lose_response_of(ReassignRequest, monkeypatch)

    assert len(client.cancel_reassignment(topic)) == 1

    assert client.reassignments() == []


def lose_response_of(
    kind: type, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = lambda: None
) -> None:
    """Break the connection after the first request of a kind was carried out, and call `then`.

    A throttle is sent by itself before the moves that it is for: that is not the one.
    """
    call = Connection.call
    lost: list[object] = []

    def broken(connection: Connection, request: object) -> Reader:
        body = call(connection, request)  # type: ignore[arg-type]  # whatever it is
        is_throttle = isinstance(request, ReassignRequest) and not request.targets
        if isinstance(request, kind) and not (lost or is_throttle):
            lost.append(request)
            then()
            raise BrokerUnreachableError("the connection broke")
        return body

    monkeypatch.setattr(Connection, "call", broken)


@pytest.mark.parametrize("call", ["elect", "reassign", "cancel_reassignment"])
def test_call_when_the_topic_is_unknown_or_has_no_replicas_then_says_so(
    client: Client, call: str
) -> None:
    plain = f"plain-{next(_numbers)}"
    client.send(plain, "hello")

    with pytest.raises(pylogctl.UnknownTopic, match="topic 'nowhere' not found"):
        getattr(client, call)("nowhere")
    with pytest.raises(pylogctl.Conflict, match="created without replicas") as caught:
        getattr(client, call)(plain)
    assert caught.value.reason == "NOT_REPLICATED"


def test_reassign_when_brokers_do_not_fit_then_says_why(client: Client) -> None:
    topic = create(client)

    with pytest.raises(pylogctl.Conflict, match="broker 7 is not live") as caught:
        client.reassign(topic, [0, 7])
    assert caught.value.reason == "BROKER_NOT_LIVE"
    with pytest.raises(pylogctl.Refused, match="2 replicas of a partition need as many brokers"):
        client.reassign(topic, [0])


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda one: one.elect(7), "give the topic as str, not int"),
        (lambda one: one.elect(unclean=True), "give the topic of an unclean election"),
        (lambda one: one.reassign(b"t", [1]), "give the topic as str, not bytes"),
        (lambda one: one.reassign("t", "0,1"), "give brokers as a list of ids, not str"),
        (lambda one: one.reassign("t", 1), "give brokers as a list of ids, not int"),
        (lambda one: one.reassign("t", ["0"]), "give the broker as its id, an int, not str"),
        (lambda one: one.reassign("t", [0.5]), "give the broker as its id, an int, not float"),
        (lambda one: one.reassign("t", [0], throttle="1MB/s"), "give throttle as a number"),
        (lambda one: one.reassign("t", [0], replicas=True), "give replicas as a number, not bool"),
        (lambda one: one.throttle_reassignments(None), "give bytes_per_s as a number"),
        (lambda one: one.cancel_reassignment(None), "give the topic as str"),
    ],
)
def test_call_when_given_a_wrong_type_then_says_what_to_pass(
    client: Client, call: Callable[[Client], object], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        call(client)


def test_call_when_a_number_is_too_small_then_says_the_least(client: Client) -> None:
    with pytest.raises(ValueError, match="replicas is at least 1, not 0"):
        client.reassign("t", replicas=0)
    with pytest.raises(ValueError, match="throttle is at least 0, not -1"):
        client.reassign("t", throttle=-1)


def test_call_when_the_client_is_closed_then_says_so(cluster: Cluster) -> None:
    client = cluster.connect()
    topic = create(client)
    plan = client.reassign(topic, plan=True)
    client.close()

    for call in (
        client.elect,
        client.reassignments,
        lambda: client.reassign(topic),
        lambda: client.cancel_reassignment(topic),
        lambda: client.throttle_reassignments(0),
        plan.progress,
        plan.wait,
    ):
        with pytest.raises(pylogctl.Closed):
            call()


def test_call_when_there_is_no_controller_then_is_refused_as_retriable(
    pylog: Client,
) -> None:
    with pytest.raises(pylogctl.Refused, match="knows of no controller") as caught:
        pylog.reassignments(timeout=0.5)
    assert caught.value.is_retriable


def test_call_when_it_has_no_time_then_has_timed_out_unless_the_response_is_there(
    client: Client,
) -> None:
    for _ in range(5):
        with suppress(pylogctl.TimedOut):
            assert client.reassignments(timeout=0) == []


@pytest.fixture
def start(
    start_broker: Callable[..., Server], zookeeper: str, tmp_path: Path
) -> Callable[[int], Server]:
    """Start a broker by its id, with the data it had."""
    return lambda broker_id: start_broker(
        broker_id=broker_id,
        data_dir=tmp_path / str(broker_id),
        zookeeper=zookeeper,
        zk_session_timeout_ms=30_000,
        balances_leaders=False,
    )


def test_elect_when_some_preferred_replicas_are_away_then_the_others_lead_again(
    start: Callable[[int], Server], zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = {one: start(one) for one in range(3)}
    with pylogctl.connect(zookeeper=zookeeper) as client:
        topic = create(client, count=3, factor=3)
        homes = {found.replicas[0]: one for one, found in known(client, topic).items()}
        assert client.elect(topic) == []
        for one in (1, 2):
            servers[one].stop()
        wait_until(
            lambda: {found.leader for found in known(client, topic).values()} == {0}, "leader 0"
        )
        start(1)
        wait_until(lambda: all(1 in one.isr for one in known(client, topic).values()), "replica 1")
        lose_response_of(ElectLeadersRequest, monkeypatch)

        with pytest.raises(pylogctl.Partial, match="1 of 2 partitions were refused") as caught:
            client.elect(topic)

        assert caught.value.done == (pylogctl.Outcome(homes[1], 0, 1),)
        assert list(caught.value.failed) == [str(homes[2])]
        assert isinstance(caught.value.failed[str(homes[2])], pylogctl.Refused)
        assert known(client, topic)[homes[1]].leader == 1
        # for none it can be done
        with pytest.raises(pylogctl.Conflict, match="1 of 1 partitions were refused"):
            client.elect()
        start(2)
        wait_until(lambda: all(2 in one.isr for one in known(client, topic).values()), "replica 2")
        assert client.elect() == [pylogctl.Outcome(homes[2], 0, 2)]


def test_elect_when_unclean_and_the_topic_does_not_allow_it_then_is_refused(
    start: Callable[[int], Server], zookeeper: str
) -> None:
    servers = {one: start(one) for one in range(3)}
    with pylogctl.connect(zookeeper=zookeeper) as client:
        topic = create(client)
        ((partition, found),) = known(client, topic).items()
        leader, behind = found.replicas
        with pytest.raises(pylogctl.Conflict, match="has a leader") as caught:
            client.elect(topic, unclean=True)
        assert caught.value.reason == "NOT_OFFLINE"
        servers[behind].stop()
        client.send(topic, "lost")
        servers[leader].stop()
        wait_until(lambda: known(client, topic)[partition].leader == -1, "no leader")
        start(behind)

        with pytest.raises(pylogctl.Conflict, match="does not allow it"):
            client.elect(topic, unclean=True)
        assert known(client, topic)[partition].leader == -1


def test_call_when_brokers_are_dead_then_raises_at_once(
    start: Callable[[int], Server], zookeeper: str
) -> None:
    server = start(0)
    with pylogctl.connect(f"127.0.0.1:{server.port}", timeout=60) as client:
        topic = create(client, factor=1)
        server.stop()

        with pytest.raises(pylogctl.Unreachable):
            client.reassign(topic)
        with pytest.raises(pylogctl.Unreachable):
            client.elect()
