"""Brokers that die or freeze are replaced before their sessions end, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.zk.paths import replicated_broker
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.trial import Trial
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


def replace(trial: Trial, victim: int, end: Callable[[], None]) -> None:
    """End a broker that leads; wait until others lead, while its session goes on."""
    cluster = trial.cluster
    cluster.await_full_isr(trial.partitions)
    led = [one for one in trial.partitions if cluster.leader(one) == victim]
    assert led
    session = cluster.session.exists(replicated_broker(victim))
    end()
    for one in led:
        cluster.await_leader(one, other_than=victim)
    assert cluster.session.exists(replicated_broker(victim)) == session, "its session has ended"
    trial.await_progress()


def return_leaders(trial: Trial) -> None:
    cluster = trial.cluster
    wait_until(
        lambda: {cluster.leader(one) for one in trial.partitions} == {0, 1, 2},
        "leaders on all brokers",
    )


def test_brokers_when_they_die_or_freeze_under_load_then_are_replaced_before_their_sessions_end(
    start_cluster: Callable[..., ReplicatedCluster],
) -> None:
    cluster = start_cluster(
        advertised_port="0",  # their own: what a dead one refuses is its port
        zk_sessiontimeout_ms="10000",
        leader_imbalance_check_interval_seconds="1",
        leader_imbalance_per_broker_percentage="0",
    )
    trial = Trial(cluster, partition_count=3, reads_back=True)
    office = cluster.controller()
    victim = (office + 1) % 3

    replace(trial, victim, lambda: cluster.kill(victim, session_lives_on=True))
    assert cluster.controller() == office
    assert any("taken for dead" in one.text for one in cluster.changes())
    cluster.start(victim)
    return_leaders(trial)

    replace(trial, victim, lambda: cluster.freeze(victim))
    cluster.thaw(victim)
    return_leaders(trial)

    replace(trial, office, lambda: cluster.kill(office, session_lives_on=True))
    assert cluster.controller() not in (office, -1)
    cluster.start(office)
    trial.verdict()
