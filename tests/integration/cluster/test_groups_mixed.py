"""Groups that our members share with members of Kafka 0.7, which is played by `foreign_member`.

Members of the two kinds know of each other only by what stands in ZooKeeper. In each test every
message is delivered, and each partition has one owner once all has settled.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from bench.broker_process import REPOSITORY
from broker.protocol.compression import Codec
from tests.integration.cluster.group_harness import (
    VICTIM,
    Cluster,
    Load,
    Member,
    check_order,
    count_duplicates,
    running_load,
)
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.zookeeper,
    pytest.mark.slow,
    pytest.mark.open_only("0.7's clients cannot log in"),
]

Join = Callable[..., Member]
KINDS = ["ours", "foreign"]


def joiner(cluster: Cluster, kind: str) -> Join:
    return cluster.join if kind == "ours" else cluster.join_foreign


def other(kind: str) -> str:
    return KINDS[1 - KINDS.index(kind)]


@pytest.mark.parametrize("first", KINDS)
def test_mixed_group_when_members_join_and_leave_then_all_is_delivered_and_little_twice(
    cluster: Cluster, topic: str, first: str
) -> None:
    with running_load(cluster, topic) as load:
        early = joiner(cluster, first)(topic, f"{topic}:2")
        cluster.settle(topic, topic, 2, f"the start of {first}")
        late = joiner(cluster, other(first))(topic, f"{topic}:1")
        cluster.settle(topic, topic, 3, f"the joining of {other(first)}")
        wait_until(lambda: len(late.delivered()) > 50, "work of the second member")
        early.leave()
        cluster.settle(topic, topic, 1, f"the leaving of {first}")
        load.finish()
        cluster.await_delivery(load)
        late.leave()

    # at each handover only the message in a stream's hand can be delivered again
    assert count_duplicates(cluster.delivered()) <= 3
    check_order(early)
    check_order(late)
    assert cluster.offsets(topic, topic) == cluster.ends(topic)


@pytest.mark.parametrize("victim_kind", KINDS)
def test_mixed_group_when_a_member_is_killed_then_only_what_it_had_not_committed_comes_again(
    cluster: Cluster, topic: str, victim_kind: str
) -> None:
    with running_load(cluster, topic) as load:
        victim = joiner(cluster, victim_kind)(topic, f"{topic}:1", **VICTIM)
        survivors = [joiner(cluster, kind)(topic, f"{topic}:1") for kind in KINDS]
        cluster.settle(topic, topic, 3, "the start of three members")
        wait_until(lambda: len(victim.delivered()) > 100, "work of the victim")
        owned = cluster.owned_by(victim, topic, topic)
        victim.kill()
        committed = cluster.offsets(topic, topic)
        cluster.settle(topic, topic, 2, f"kill -9 of {victim_kind}")
        load.finish()
        cluster.await_delivery(load)

    uncommitted = [
        one
        for one in victim.delivered()
        if one.partition in owned and one.offset >= committed.get(one.partition, 0)
    ]
    assert count_duplicates(cluster.delivered()) <= len(uncommitted) + len(survivors)
    for member in survivors:
        check_order(member, max_jumps=2)  # what it read until all had joined
        member.leave()


@pytest.mark.parametrize("victim_kind", KINDS)
def test_mixed_group_when_sets_are_compressed_then_what_a_killed_member_left_is_read_again(
    cluster: Cluster, topic: str, victim_kind: str
) -> None:
    with running_load(cluster, topic, Codec.GZIP) as load:
        victim = joiner(cluster, victim_kind)(topic, f"{topic}:1", **VICTIM)
        survivor = joiner(cluster, other(victim_kind))(topic, f"{topic}:1")
        cluster.settle(topic, topic, 2, "the start of two members")
        wait_until(lambda: len(victim.delivered()) > 100, "work of the victim")
        victim.kill()
        cluster.settle(topic, topic, 1, f"kill -9 of {victim_kind}")
        load.finish()
        cluster.await_delivery(load)
    check_order(survivor, max_jumps=2)
    wait_until(lambda: cluster.offsets(topic, topic) == cluster.ends(topic), "commit of everything")
    survivor.leave()


@pytest.mark.parametrize("frozen_kind", KINDS)
def test_mixed_group_when_a_frozen_member_comes_back_then_nothing_is_lost(
    cluster: Cluster, topic: str, frozen_kind: str
) -> None:
    with running_load(cluster, topic) as load:
        zombie = joiner(cluster, frozen_kind)(topic, f"{topic}:1", **VICTIM)
        member = joiner(cluster, other(frozen_kind))(topic, f"{topic}:1")
        cluster.settle(topic, topic, 2, "the start of two members")
        wait_until(lambda: len(zombie.delivered()) > 50, "work of the first member")
        zombie.freeze()
        cluster.settle(topic, topic, 1, f"SIGSTOP of {frozen_kind}")
        zombie.thaw()
        cluster.settle(topic, topic, 2, "SIGCONT of the member")
        load.finish()
        cluster.await_delivery(load)
        wait_until(
            lambda: cluster.offsets(topic, topic) == cluster.ends(topic), "commit of everything"
        )
    zombie.leave()
    member.leave()


def test_mixed_group_when_members_subscribe_by_filter_then_they_split_new_topics_as_well(
    cluster: Cluster, topic: str
) -> None:
    loads = [Load(cluster, f"{topic}-{number}") for number in range(2)]
    loads[0].produce(20)
    ours = cluster.join(topic, f"*1*{topic}-.*")
    foreign = cluster.join_foreign(topic, f"*2*{topic}-[0-9]")
    cluster.settle(topic, loads[0].topic, 3, "the start of two members")
    cluster.await_delivery(loads[0])

    loads[1].produce(20)
    cluster.settle(topic, loads[1].topic, 3, "the creation of a topic")
    cluster.await_delivery(loads[1])
    ours.leave()
    foreign.leave()


@pytest.mark.parametrize("reader_kind", KINDS)
def test_mixed_group_when_a_broker_dies_and_moves_then_its_partitions_are_read_on(
    cluster: Cluster, topic: str, reader_kind: str
) -> None:
    load = Load(cluster, topic)
    load.produce(50)
    # in the order of their names: the second one reads broker 1
    names = {other(reader_kind): "a", reader_kind: "z"}
    members = [
        joiner(cluster, kind)(topic, f"{topic}:1", consumerid=name) for kind, name in names.items()
    ]
    cluster.settle(topic, topic, 2, "the start of two members")
    cluster.await_delivery(load)

    cluster.brokers[1].kill()
    cluster.start_broker(1)  # at another port
    cluster.settle(topic, topic, 2, "kill -9 and restart of a broker")
    load.produce(50)
    cluster.await_delivery(load)
    for member in members:
        member.leave()


def test_mixed_group_when_it_is_made_to_rebalance_then_it_is_sound_again(
    cluster: Cluster, topic: str
) -> None:
    load = Load(cluster, topic)
    load.produce(20)
    members = [joiner(cluster, kind)(topic, f"{topic}:1") for kind in KINDS]
    cluster.settle(topic, topic, 2, "the start of two members")

    for command in ("rebalance", "verify"):
        words = [command, topic, "--yes"] if command == "rebalance" else [command, topic]
        ended = subprocess.run(
            [sys.executable, "-m", "pylogctl", "group", *words, "--zookeeper", cluster.zookeeper],
            cwd=REPOSITORY,
            capture_output=True,
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr.decode()
    cluster.await_delivery(load)
    for member in members:
        member.leave()


def test_mixed_group_when_ten_partitions_go_to_four_threads_then_both_kinds_agree_on_the_split(
    cluster: Cluster, topic: str
) -> None:
    for broker_id, count in (("2", b"3"), ("10", b"7")):
        cluster.registry.session.create(f"/brokers/topics/{topic}/{broker_id}", count)

    foreign = cluster.join_foreign(topic, f"{topic}:3", consumerid="m")
    ours = cluster.join(topic, f"{topic}:1", consumerid="z")
    owned = {
        f"{topic}_m-0": ["10-0", "10-1", "10-2"],
        f"{topic}_m-1": ["10-3", "10-4", "10-5"],
        f"{topic}_m-2": ["10-6", "2-0"],  # sorted as text, 10 comes before 2
        f"{topic}_z-0": ["2-1", "2-2"],
    }
    expected = {name: thread for thread, names in owned.items() for name in names}

    wait_until(lambda: cluster.owners(topic, topic) == expected, "the split of 0.7")
    ours.leave()
    foreign.leave()
