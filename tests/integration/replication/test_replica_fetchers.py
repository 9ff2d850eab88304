"""Several threads that copy from one leader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.topic import share_of
from tests.integration.replication.load import LoggedProducer
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_consumers_follow import create_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

FETCHERS = 3


def test_follower_when_it_has_several_fetchers_then_each_copies_its_share_after_a_failover_too(
    start_cluster: Callable[..., ReplicatedCluster],
) -> None:
    cluster = start_cluster(num_replica_fetchers=str(FETCHERS))
    partitions = create_topic(cluster, 12)
    led = [one for one in partitions if cluster.leader(one) == 0]
    shares = {share_of(one, FETCHERS) for one in led}
    assert len(shares) > 1
    wait_until(
        lambda: cluster.network.connection_count(1, 0) >= len(shares),
        "a connection of each fetcher",
        deadline_s=60,
    )
    producer = LoggedProducer(cluster, partitions, "p")
    wait_until(lambda: producer.acknowledged_count > 60, "messages", deadline_s=60)
    cluster.kill_replaceable(0, partitions)
    for partition in led:
        cluster.await_leader(partition, other_than=0)
    before = producer.acknowledged_count
    wait_until(lambda: producer.acknowledged_count > before + 60, "progress", deadline_s=60)
    producer.stop()
    cluster.start(0)
    cluster.await_full_isr(partitions)
    for partition in partitions:
        cluster.await_equal_logs(partition)
