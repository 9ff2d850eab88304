"""What members of a group are given while members and brokers come and go.

In each test every message is delivered, in order of each partition, and what is delivered twice is
at most what was not committed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from tests.integration.cluster.group_harness import (
    VICTIM,
    Cluster,
    Load,
    check_order,
    count_duplicates,
    running_load,
)
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]


@pytest.mark.both_ways
def test_group_when_members_join_and_leave_then_all_is_delivered_and_little_twice(
    cluster: Cluster, topic: str
) -> None:
    with running_load(cluster, topic) as load:
        first = cluster.join(topic, f"{topic}:1")
        cluster.settle(topic, topic, 1, "the first member's start")
        second = cluster.join(topic, f"{topic}:2")
        cluster.settle(topic, topic, 3, "the second member's start")
        wait_until(lambda: len(second.delivered()) > 50, "work of the second member")
        first.leave()
        cluster.settle(topic, topic, 2, "a member's leaving")
        load.finish()
        cluster.await_delivery(load)
        second.leave()

    # at each handover only the message in a stream's hand can be delivered again
    assert count_duplicates(cluster.delivered()) <= 2
    check_order(first)
    check_order(second)
    assert cluster.offsets(topic, topic) == cluster.ends(topic)


def test_group_when_a_member_is_killed_then_only_what_it_had_not_committed_comes_again(
    cluster: Cluster, topic: str
) -> None:
    with running_load(cluster, topic) as load:
        victim = cluster.join(topic, f"{topic}:1", **VICTIM)
        survivor = cluster.join(topic, f"{topic}:1")
        cluster.settle(topic, topic, 2, "the start of two members")
        wait_until(lambda: len(victim.delivered()) > 100, "work of the victim")
        owned = cluster.owned_by(victim, topic, topic)
        victim.kill()
        committed = cluster.offsets(topic, topic)
        cluster.settle(topic, topic, 1, "kill -9 of a member")
        load.finish()
        cluster.await_delivery(load)

    uncommitted = [
        one
        for one in victim.delivered()
        if one.partition in owned and one.offset >= committed.get(one.partition, 0)
    ]
    assert count_duplicates(cluster.delivered()) <= len(uncommitted)
    check_order(victim, max_jumps=1)  # what the survivor read until both had joined
    check_order(survivor, max_jumps=1)


def test_group_when_a_broker_is_killed_and_moves_then_its_partitions_are_read_on(
    cluster: Cluster, topic: str
) -> None:
    load = Load(cluster, topic)
    load.produce(50)
    members = [cluster.join(topic, f"{topic}:1") for _ in range(2)]
    cluster.settle(topic, topic, 2, "the start of two members")
    cluster.await_delivery(load)

    cluster.brokers[1].kill()
    cluster.start_broker(1)  # at another port
    cluster.settle(topic, topic, 2, "kill -9 and restart of a broker")
    load.produce(50)
    cluster.await_delivery(load)

    for member in members:
        member.leave()
        check_order(member, max_jumps=1)
    assert count_duplicates(cluster.delivered()) <= 8  # one in hand for each partition


def test_group_when_a_frozen_member_comes_back_then_it_gives_and_commits_nothing_it_lost(
    cluster: Cluster, topic: str
) -> None:
    with running_load(cluster, topic) as load:
        zombie = cluster.join(topic, f"{topic}:1", **VICTIM)
        cluster.settle(topic, topic, 1, "the first member's start")
        other = cluster.join(topic, f"{topic}:1")
        cluster.settle(topic, topic, 2, "the second member's start")
        wait_until(lambda: len(zombie.delivered()) > 50, "work of the first member")
        zombie.freeze()
        cluster.settle(topic, topic, 1, "SIGSTOP of a member")
        taken_over = len(other.delivered())
        wait_until(lambda: len(other.delivered()) > taken_over + 100, "work after the take-over")
        in_flight = len(zombie.delivered())
        offsets = cluster.offsets(topic, topic)
        zombie.thaw()
        cluster.settle(topic, topic, 2, "SIGCONT of the member")
        load.finish()
        cluster.await_delivery(load)
        wait_until(
            lambda: cluster.offsets(topic, topic) == cluster.ends(topic), "commit of everything"
        )

    # once it runs again it reads on from where the other one has committed, never behind it
    for one in zombie.delivered()[in_flight + 1 :]:
        assert one.offset >= offsets[one.partition]
    check_order(zombie, max_jumps=1)
    check_order(other, max_jumps=1)


def test_group_when_eight_members_join_32_partitions_at_once_then_each_gets_four(
    cluster: Cluster, topic: str
) -> None:
    topics = [f"{topic}-{number}" for number in range(4)]
    loads = [Load(cluster, one) for one in topics]
    for load in loads:
        load.produce(25)
    subscription = ",".join(f"{one}:1" for one in topics)
    members = [cluster.join(topic, subscription) for _ in range(8)]
    for one in topics:
        cluster.settle(topic, one, 8, "the start of eight members")
    for load in loads:
        load.produce(25)
        cluster.await_delivery(load)

    for member in members:
        member.leave()
    for load in loads:
        assert cluster.offsets(topic, load.topic) == cluster.ends(load.topic)
    assert count_duplicates(cluster.delivered()) <= 8 * len(members)


def test_group_when_a_filter_takes_a_new_topic_then_its_messages_come_too(
    cluster: Cluster, topic: str
) -> None:
    member = cluster.join(topic, f"*2*{topic}-.*")
    old, new = Load(cluster, f"{topic}-old"), Load(cluster, f"{topic}-new")
    old.produce(5)
    cluster.await_delivery(old)

    new.produce(5)
    cluster.await_delivery(new)

    member.leave()
    assert count_duplicates(cluster.delivered()) == 0


def test_group_when_zookeeper_restarts_then_it_goes_on(
    java: Java, work_dir: Path, *, is_closed: bool
) -> None:
    directory = work_dir / "zookeeper"
    port = port_of_its_own()
    server = EmbeddedZooKeeper(directory, java=java, port=port, is_durable=False, tick_ms=500)
    server.start()
    cluster = Cluster(server.connect, work_dir, broker_count=1, is_closed=is_closed)
    cluster.connect()
    try:
        with running_load(cluster, "restart") as load:
            members = [cluster.join("g", "restart:1", **VICTIM) for _ in range(2)]
            cluster.settle("g", "restart", 2, "the start of two members")
            server.stop()
            server = EmbeddedZooKeeper(
                directory, java=java, port=port, is_durable=False, tick_ms=500
            )
            server.start()
            before = len(cluster.delivered())
            cluster.settle("g", "restart", 2, "a restart of ZooKeeper")
            wait_until(lambda: len(cluster.delivered()) > before + 100, "work after the restart")
            load.finish()
            cluster.await_delivery(load)
            wait_until(
                lambda: cluster.offsets("g", "restart") == cluster.ends("restart"),
                "commit of everything",
            )
        for member in members:
            check_order(member, max_jumps=3)
    finally:
        cluster.disconnect()
        cluster.stop()
        server.stop()
