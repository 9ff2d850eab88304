"""Groups that Jafka's members, which are 0.7's in Java, share with ours."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.protocol.compression import Codec
from tests.integration.cluster.group_harness import (
    COMMIT_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
    Cluster,
    Load,
    Member,
    check_order,
    running_load,
)
from tests.interop.peers import Peer, PeerProcess, find_peer, numbers_of, pylogctl, require_peers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

require_peers()

Join = Callable[[int], PeerProcess]


@pytest.fixture
def jafka() -> Peer:
    return find_peer("jafka")


@pytest.fixture
def join(jafka: Peer, cluster: Cluster, topic: str, work_dir: Path) -> Iterator[Join]:
    """Have Jafka's members join the test's group, with so many streams."""
    members: list[PeerProcess] = []

    def start(stream_count: int) -> PeerProcess:
        settings = {
            "zk.sessiontimeout.ms": SESSION_TIMEOUT_MS,
            "autocommit.interval.ms": COMMIT_INTERVAL_MS,
            "autooffset.reset": "smallest",
            "rebalance.retries.max": 10,
            "rebalance.backoff.ms": 500,
            "fetcher.backoff.ms": 50,
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        output = work_dir / f"jafka-{len(members)}.txt"
        arguments = (cluster.zookeeper, topic, topic, stream_count, *words)
        members.append(jafka.start(output, "join", *arguments))
        return members[-1]

    yield start
    for member in members:
        member.kill()


def await_all(load: Load, theirs: list[PeerProcess], ours: list[Member]) -> None:
    """Wait until each message of a load was delivered to somebody."""

    def is_complete() -> bool:
        seen: dict[str, set[int]] = defaultdict(set)
        for member in theirs:
            for partition, numbers in numbers_of(member.lines()).items():
                seen[partition].update(numbers)
        for one in itertools.chain.from_iterable(member.delivered() for member in ours):
            seen[one.partition].add(one.number)
        return all(len(seen[name]) == count for name, count in load.counts().items())

    wait_until(is_complete, "delivery of every message", deadline_s=40)


def test_group_when_ours_joins_jafkas_and_leaves_again_then_all_is_delivered(
    cluster: Cluster, topic: str, join: Join
) -> None:
    with running_load(cluster, topic) as load:
        theirs = join(2)
        cluster.settle(topic, topic, 2, "Jafka's start")
        ours = cluster.join(topic, f"{topic}:1")
        cluster.settle(topic, topic, 3, "our joining")
        wait_until(lambda: len(ours.delivered()) > 50, "our work")
        ours.leave()
        cluster.settle(topic, topic, 2, "our leaving")
        load.finish()
        await_all(load, [theirs], [ours])
    check_order(ours)
    theirs.leave()


def test_group_when_jafka_joins_ours_and_leaves_again_then_all_is_delivered(
    cluster: Cluster, topic: str, join: Join
) -> None:
    with running_load(cluster, topic) as load:
        ours = cluster.join(topic, f"{topic}:2")
        cluster.settle(topic, topic, 2, "our start")
        theirs = join(1)
        cluster.settle(topic, topic, 3, "Jafka's joining")
        wait_until(lambda: len(theirs.lines()) > 50, "Jafka's work")
        theirs.leave()
        cluster.settle(topic, topic, 2, "Jafka's leaving")
        load.finish()
        await_all(load, [theirs], [ours])
    ours.leave()


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("victim", ["ours", "theirs"])
def test_group_when_a_member_is_killed_then_those_of_the_other_make_take_over(
    cluster: Cluster, topic: str, join: Join, victim: str, codec: Codec
) -> None:
    with running_load(cluster, topic, codec) as load:
        theirs = [join(1), join(1)]
        ours = [cluster.join(topic, f"{topic}:1") for _ in range(2)]
        cluster.settle(topic, topic, 4, "the start of two and two")
        wait_until(lambda: len(theirs[0].lines()) > 50, "Jafka's work")
        wait_until(lambda: len(ours[0].delivered()) > 50, "our work")
        (ours[0] if victim == "ours" else theirs[0]).kill()
        cluster.settle(topic, topic, 3, f"kill -9 of one of {victim}")
        load.finish()
        await_all(load, theirs, ours)


@pytest.mark.parametrize("frozen", ["ours", "theirs"])
def test_group_when_a_member_is_frozen_then_it_comes_back_and_nothing_is_lost(
    cluster: Cluster, topic: str, join: Join, frozen: str
) -> None:
    with running_load(cluster, topic) as load:
        theirs, ours = join(1), cluster.join(topic, f"{topic}:1")
        cluster.settle(topic, topic, 2, "the start of two members")
        zombie = ours if frozen == "ours" else theirs
        zombie.freeze()
        cluster.settle(topic, topic, 1, f"SIGSTOP of {frozen}")
        zombie.thaw()
        cluster.settle(topic, topic, 2, "SIGCONT")
        load.finish()
        await_all(load, [theirs], [ours])
    theirs.leave()
    ours.leave()


def test_group_when_our_broker_is_killed_and_moves_then_jafkas_members_read_on(
    cluster: Cluster, topic: str, join: Join
) -> None:
    load = Load(cluster, topic)
    load.produce(20)
    theirs = join(2)
    cluster.settle(topic, topic, 2, "Jafka's start")
    await_all(load, [theirs], [])

    cluster.brokers[1].kill()
    cluster.start_broker(1)  # at another port
    load.produce(20)
    await_all(load, [theirs], [])
    theirs.leave()


def test_group_when_it_is_made_to_rebalance_then_it_is_sound_again(
    cluster: Cluster, topic: str, join: Join
) -> None:
    load = Load(cluster, topic)
    load.produce(20)
    theirs, ours = join(1), cluster.join(topic, f"{topic}:1")
    cluster.settle(topic, topic, 2, "the start of two members")

    pylogctl("group", "rebalance", topic, "--yes", "--zookeeper", cluster.zookeeper)
    pylogctl("group", "verify", topic, "--zookeeper", cluster.zookeeper)

    await_all(load, [theirs], [ours])
    theirs.leave()
    ours.leave()
