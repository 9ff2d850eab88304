"""Brokers from which all replicas move away, by the Python API."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import pylogctl
from broker.admin.replicas import replicas_of
from broker.client.controller_client import ask_controller
from broker.client.side import Side
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest
from pylogctl import Client
from pylogctl.testing import Cluster, ephemeral_cluster

pytestmark = pytest.mark.zookeeper

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.connect(timeout=120) as connected:
        yield connected


def create(client: Client, count: int, factor: int) -> str:
    name = f"orders-{next(_numbers)}"
    request = CreateReplicatedTopicRequest(name, count, factor, ())
    ask_controller(client._cluster.brokers(), client._connect, request, timeout_s=60)
    return name


def known(client: Client, topic: str) -> dict[pylogctl.TopicPartition, tuple[int, ...]]:
    """The replicas of each partition."""
    found = replicas_of(Side(client._cluster, client._connect), [topic])
    return {partition: one.replicas for partition, one in found.items()}


def brokers_of(client: Client, topic: str) -> set[int]:
    return {broker for replicas in known(client, topic).values() for broker in replicas}


def test_decommission_when_done_then_others_have_the_replicas_and_repeating_changes_nothing(
    client: Client,
) -> None:
    topic = create(client, 3, 2)
    plan = client.decommission(2, plan=True)

    assert (plan.broker, plan.is_live, plan.leaderless, plan.staying) == (2, True, (), {})
    assert plan.moves
    assert all(2 in one.before and 2 not in one.target for one in plan.moves)
    assert brokers_of(client, topic) == {0, 1, 2}

    assert client.decommission(2, throttle=0) == plan
    assert brokers_of(client, topic) == {0, 1}
    assert client.decommission(2).moves == ()
    assert client.brokers()[2].replicas == 0


def test_decommission_when_it_takes_long_then_times_out_and_a_call_without_limit_waits(
    cluster: Cluster, client: Client
) -> None:
    topic = create(client, 3, 1)
    (name,) = {one.name for one in known(client, topic) if one.home == 2}
    client.send_many(topic, ["x" * 1000] * 300, partition=name)
    with cluster.connect(timeout=2) as hasty:
        with pytest.raises(pylogctl.TimedOut, match="partitions are still being copied") as caught:
            client.decommission(2, throttle=50_000, timeout=2)
        assert caught.value.outcome == "unknown"
        assert hasty.decommission(2, timeout=None).moves == ()  # all were under way
    assert brokers_of(client, topic) == {0, 1}


def test_decommission_when_partitions_have_no_replicas_then_partial_names_their_topics(
    client: Client,
) -> None:
    topic = f"plain-{next(_numbers)}"
    client.send(topic, "x", partition="2-0")
    moving = create(client, 1, 1)

    assert client.decommission(2, plan=True).staying == {topic: 1}
    with pytest.raises(pylogctl.Partial, match="1 partitions without replicas stay") as caught:
        client.decommission(2)
    assert list(caught.value.failed) == [topic]
    assert 2 not in brokers_of(client, moving)


def test_decommission_when_it_makes_no_sense_then_refused_and_nothing_changed(
    client: Client,
) -> None:
    topic = create(client, 1, 3)
    with pytest.raises(pylogctl.Conflict, match="broker 1 cannot be taken away: 3") as caught:
        client.decommission(1)
    assert caught.value.reason == "TOO_FEW_BROKERS"
    with pytest.raises(pylogctl.UnknownBroker, match="broker 9 not found"):
        client.decommission(9)
    with pytest.raises(TypeError, match="as its id, an int, not str"):
        client.decommission("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="throttle as a number, not str"):
        client.decommission(1, throttle="1MB/s")  # type: ignore[arg-type]
    assert brokers_of(client, topic) == {0, 1, 2}
