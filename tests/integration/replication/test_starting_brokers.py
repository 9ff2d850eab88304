"""Brokers that have restarted, and that no controller has told of partitions yet."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from threading import Event, Thread

import pytest

from broker.client.list_offsets import OffsetLister
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.responses import BrokerAddress, ClusterMetadataResponse, TopicMetadata
from broker.topic import MessagePosition, ReadRange, TopicPartition
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_consumers_follow import (
    OpenCluster,
    listed_cluster,
    registry_cluster,
)
from tests.support.spark_session import publish_to
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

PATIENT = {"zk_sessiontimeout_ms": "30000", "broker_silence_ms": "0"}
"""Properties with which nobody takes the office of a controller that hangs for a while."""


def restart_without_orders(cluster: ReplicatedCluster) -> int:
    """Restart a leader while the controller hangs; return its id."""
    controller = cluster.controller()
    restarted = next(one for one in cluster.brokers if one != controller)
    cluster.kill(restarted, session_lives_on=True)
    cluster.freeze(controller)
    cluster.start(restarted)
    return restarted


def metadata_of(cluster: ReplicatedCluster, broker_id: int) -> TopicMetadata | None:
    connection = cluster.connect(broker_id)
    response = ClusterMetadataResponse.decode(connection.call(ClusterMetadataRequest(("t",))))
    connection.close()
    return next(iter(response.topics), None)


def test_metadata_when_the_broker_has_no_orders_yet_then_tells_what_the_registry_knows(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(4, **PATIENT)
    partitions = cluster.create_topic("t", 4, 4)
    cluster.await_full_isr(partitions)
    controller = cluster.controller()
    wait_until(
        lambda: (
            (told := metadata_of(cluster, controller)) is not None and len(told.partitions) == 4
        ),
        "the controller's broker to know of the topic",
    )
    before = metadata_of(cluster, controller)
    restarted = restart_without_orders(cluster)
    found = metadata_of(cluster, restarted)
    assert found == before


@pytest.mark.parametrize("opened", [registry_cluster, listed_cluster])
def test_offsets_when_a_leader_has_no_orders_yet_then_are_waited_for(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch, opened: OpenCluster
) -> None:
    """As loads and reads of Spark do, which ended with 10."""
    cluster = start_cluster(**PATIENT)
    partitions = cluster.create_topic("t", 3, 3)
    cluster.await_full_isr(partitions)
    controller = cluster.controller()
    restarted = restart_without_orders(cluster)
    (partition,) = (one for one in partitions if one.home == restarted)
    has_refused = Event()
    found: list[int] = []

    def ask() -> None:
        with opened(cluster) as known:
            find_leaders = known.find_leaders

            def noted(topics: Iterable[str]) -> dict[TopicPartition, int]:
                has_refused.set()
                return find_leaders(topics)

            monkeypatch.setattr(known, "find_leaders", noted)
            with OffsetLister(known, cluster.connection, leader_wait_s=60) as offsets:
                found.append(offsets.latest(partition))

    asking = Thread(target=ask, daemon=True)
    asking.start()
    wait_until(has_refused.is_set, "a refusal")
    cluster.thaw(controller)
    asking.join(60)
    assert found == [0]


@pytest.mark.parametrize("opened", [registry_cluster, listed_cluster])
def test_read_when_a_leader_has_no_orders_yet_then_goes_on_once_it_has(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch, opened: OpenCluster
) -> None:
    cluster = start_cluster(**PATIENT)
    partitions = cluster.create_topic("t", 3, 3)
    cluster.await_full_isr(partitions)
    for one in partitions:
        port = cluster.network.door_to_broker(cluster.await_leader(one))
        publish_to(port, one, [b"a"], connect=cluster.connection)
    controller = cluster.controller()
    restarted = restart_without_orders(cluster)
    (partition,) = (one for one in partitions if one.home == restarted)
    asked_again = Event()
    found: list[PartitionReader] = []

    def read() -> None:
        with opened(cluster) as known:
            leader = known.leader
            calls = count(1)

            def noted(one: TopicPartition) -> BrokerAddress:
                if next(calls) > 3:
                    asked_again.set()
                return leader(one)

            monkeypatch.setattr(known, "leader", noted)
            ranges = {partition: ReadRange(MessagePosition(0), None)}
            with ClusterReader(known, cluster.connection, ranges, leader_wait_s=60) as reader:
                found.extend(next(some for some in reader.polls() if some))

    reading = Thread(target=read, daemon=True)
    reading.start()
    wait_until(asked_again.is_set, "a refusal")
    cluster.thaw(controller)
    reading.join(60)
    assert len(found) == 1
