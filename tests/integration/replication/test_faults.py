"""Disks, sessions and networks that fail in ways of their own, under load; nothing is lost.

What is here and why: `docs/replication-failures.md`.
"""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.protocol.client_requests import Acks
from broker.protocol.cluster_requests import DeleteReplicatedTopicRequest
from broker.topic import TopicPartition
from tests.integration.replication.history import acknowledged_within
from tests.integration.replication.load import LoggedProducer
from tests.integration.replication.network import ZOOKEEPER
from tests.integration.replication.replicated_cluster import SESSION_TIMEOUT_MS, ReplicatedCluster
from tests.integration.replication.trial import Trial
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
LOG_LIMIT_BYTES = 100_000
SESSION_S = SESSION_TIMEOUT_MS / 1000


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ReplicatedCluster:
    return start_cluster()


def in_sync(cluster: ReplicatedCluster, partition: TopicPartition) -> set[int]:
    state = cluster.state(partition)
    return set() if state is None else set(state.isr)


def spoil_tails(cluster: ReplicatedCluster, broker_id: int, tail: bytes) -> None:
    """Have the last segment of each log end in what a torn write leaves."""
    for disk in cluster.disks_of(broker_id):
        for directory in {one.parent for one in disk.rglob("*.pylog")}:
            last = max(directory.glob("*.pylog"))
            with last.open("ab") as file:
                file.write(tail)


@contextmanager
def full_disk(
    cluster: ReplicatedCluster, broker_id: int, *, counts_all: bool = True
) -> Iterator[None]:
    """Have no log of a broker grow, as on a full disk; its other files are small enough.

    It begins once all logs are so large, or one is.
    """

    def are_large() -> bool:
        logs = [one for disk in cluster.disks_of(broker_id) for one in disk.rglob("*.pylog")]
        large = [one.stat().st_size > LOG_LIMIT_BYTES for one in logs]
        return all(large) if counts_all else any(large)

    wait_until(are_large, "logs larger than all other files")
    pid = cluster.brokers[broker_id].pid
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (LOG_LIMIT_BYTES, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_logs_when_all_brokers_lose_power_in_a_write_then_what_is_whole_stays(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    tails = {0: bytes(4096), 1: b"\x00\x00\x10\x00torn", 2: b"\xff" * 300}
    for broker_id, tail in tails.items():
        cluster.kill(broker_id, session_lives_on=True)
        spoil_tails(cluster, broker_id, tail)
    for broker_id in (1, 2, 0):
        cluster.start(broker_id)
    trial.verdict()


def test_controller_when_frozen_beyond_its_session_then_one_acts_and_it_resigns_when_thawed(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster, min_isr=1)
    controller = cluster.controller()
    cluster.freeze(controller)
    wait_until(lambda: cluster.controller() not in (-1, controller), "another controller")
    partition = trial.partitions[0]
    leader = cluster.await_leader(partition, other_than=controller)

    def are_others_in_sync() -> bool:
        return all(len(in_sync(cluster, one) - {controller}) == 2 for one in trial.partitions)

    while True:
        wait_until(are_others_in_sync, "a replica that can lead after the next one")
        cluster.freeze(leader)  # so that it removes no replica from now on
        time.sleep(0.2)  # a removal that it has sent takes effect
        if are_others_in_sync():
            break
        cluster.thaw(leader)
    cluster.kill(leader)
    cluster.await_leader(partition, other_than=leader)
    trial.await_progress()

    cluster.thaw(controller)
    cluster.start(leader)

    trial.verdict()


def cut_until_shrunk(
    cluster: ReplicatedCluster,
    partition: TopicPartition,
    cut: Callable[[int, int], None],
) -> tuple[int, int]:
    """Cut the link of a leader and a follower until that leaves the in-sync replicas; return both.

    On a slow machine the lead can move meanwhile: then the link of the next leader is cut.
    """
    while True:
        leader = cluster.await_leader(partition)
        # not the controller, which could not be told of the shrink
        follower = min(set(cluster.brokers) - {leader, cluster.controller()})
        cut(leader, follower)
        wait_until(
            lambda: (
                follower not in in_sync(cluster, partition)  # noqa: B023
                or cluster.await_leader(partition) != leader  # noqa: B023
            ),
            "the shrink",
        )
        if cluster.await_leader(partition) == leader:
            return leader, follower
        cluster.network.heal()
        cluster.await_full_isr([partition])


def test_links_when_cut_in_one_direction_or_flapping_then_nothing_is_lost_and_nothing_leaks(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    partition = trial.partitions[0]
    network = cluster.network
    pids = [one.pid for one in cluster.brokers.values()]
    before = {pid: (open_files(pid), threads(pid)) for pid in pids}

    def offices() -> list[int]:
        return [cluster.controller(), *map(cluster.leader, trial.partitions)]

    held = offices()

    cut_until_shrunk(cluster, partition, lambda leader, other: network.cut_one_way(other, leader))
    network.heal()
    cluster.await_full_isr([partition])
    leader, follower = cut_until_shrunk(cluster, partition, network.cut_one_way)
    for _ in range(5):
        cluster.network.heal()
        time.sleep(0.2)
        cluster.network.cut(leader, follower)
        time.sleep(0.2)

    trial.verdict()
    # some come with the first change, and stay; more with an office, if a slow machine moves one
    more = 4 if offices() == held else 12
    for pid, (files, tasks) in before.items():
        wait_until(lambda: open_files(pid) <= files + more, f"no more than {files} open files")  # noqa: B023
        wait_until(lambda: threads(pid) <= tasks + more, f"no more than {tasks} threads")  # noqa: B023


def test_zookeeper_when_no_broker_reaches_it_for_longer_than_a_session_then_all_is_as_before(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    for broker_id in cluster.brokers:
        cluster.network.cut(broker_id, ZOOKEEPER)
    wait_until(lambda: cluster.controller() == -1, "the end of the controller's session")
    time.sleep(SESSION_S)
    cluster.network.heal()

    trial.verdict()
    wait_until(lambda: cluster.controller() >= 0, "a controller")


def test_disk_when_full_at_a_follower_and_at_a_leader_then_nothing_acknowledged_is_torn(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster, padding_bytes=3000)
    partition = trial.partitions[0]
    leader = cluster.await_leader(partition)
    follower = next(one for one in cluster.brokers if one != leader)
    with full_disk(cluster, follower):
        wait_until(lambda: follower not in in_sync(cluster, partition), "the shrink")
        trial.await_progress(5)
    cluster.await_full_isr(trial.partitions)
    with full_disk(cluster, leader):
        sent = len(trial.producers[0].sent)
        wait_until(lambda: len(trial.producers[0].sent) > sent + 10, "attempts to publish")

    trial.verdict()


def test_partition_when_its_last_in_sync_replica_dies_then_waits_for_it_and_loses_nothing(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster, partition_count=1)
    partition = trial.partitions[0]
    leader = cluster.await_leader(partition)
    for follower in [one for one in cluster.brokers if one != leader]:
        cluster.kill(follower)
        wait_until(lambda: follower not in in_sync(cluster, partition), "the shrink")  # noqa: B023
    begin_s = time.monotonic()
    alone = LoggedProducer(cluster, trial.partitions, "alone", acks=Acks.WRITTEN)
    wait_until(lambda: alone.acknowledged_count >= 20, "messages that the leader alone has")
    producer = trial.producers[0]
    refused = producer.errors["NotEnoughReplicas"]
    wait_until(lambda: producer.errors["NotEnoughReplicas"] > refused + 3, "refusals")
    end_s = time.monotonic()
    alone.stop()
    trial.producers.append(alone)

    cluster.kill(leader)
    wait_until(lambda: cluster.controller() == -1, "the end of its session")
    for follower in [one for one in range(3) if one != leader]:
        cluster.start(follower)
    path = f"/replicated/brokers/{next(iter(cluster.brokers))}"
    wait_until(
        lambda: b'"is_clean": true' in cluster.session.get_many([path]).get(path, (b"",))[0],
        "the orders that say that a possible loss is known",
    )
    assert cluster.leader(partition) == -1  # they lack what the leader alone has
    cluster.start(leader)

    trial.verdict(stopped=[alone])
    committing = [one for p in trial.producers if p is not alone for one in p.sent]
    assert acknowledged_within(committing, begin_s, end_s) == []


def test_topic_when_deleted_while_a_replica_is_down_then_its_messages_never_come_back(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    for producer in trial.producers:
        producer.stop()
    for reader in trial.readers:
        reader.stop()
    topic = trial.partitions[0].topic
    absent = next(one for one in cluster.brokers if one != cluster.controller())
    cluster.kill(absent, session_lives_on=True)
    connection = cluster.connect(cluster.controller())
    connection.call(DeleteReplicatedTopicRequest(topic))
    connection.close()

    cluster.start(absent)
    wait_until(lambda: not cluster.has_topic(topic), "the end of the deletion")

    Trial(cluster, name="again-").verdict()  # in which a message of the former topic is invented


def test_broker_when_killed_in_its_shutdown_then_recovers_and_nothing_is_lost(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    for broker_id in list(cluster.brokers):
        cluster.await_full_isr(trial.partitions)
        cluster.brokers[broker_id].signal(signal.SIGTERM)
        state = trial.partitions[0]
        wait_until(lambda: cluster.leader(state) != broker_id, "the move of the leadership")  # noqa: B023
        cluster.kill(broker_id, session_lives_on=True)
        cluster.start(broker_id)
    trial.verdict()
