"""Brokers that die, pause and lose the network, under load; nothing acknowledged is lost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from broker.errors import LeaderNotAvailableError, NotLeaderError, WrongPartitionError
from broker.ids import NO_LEADER
from broker.log.data_directory import DataDirectory
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from broker.protocol.client_requests import (
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.codec import encode
from broker.protocol.message_set import iter_messages
from broker.protocol.responses import LISTED_OFFSETS
from broker.topic import TopicPartition
from tests.integration.replication.history import Outcome
from tests.integration.replication.network import ZOOKEEPER
from tests.integration.replication.replicated_cluster import (
    LAG_TIME_MS,
    SESSION_TIMEOUT_MS,
    ReplicatedCluster,
)
from tests.integration.replication.trial import Trial
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
SESSION_S = SESSION_TIMEOUT_MS / 1000
LAG_S = LAG_TIME_MS / 1000


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ReplicatedCluster:
    return start_cluster()


def leader_of_first(trial: Trial) -> tuple[TopicPartition, int]:
    partition = trial.partitions[0]
    return partition, trial.cluster.await_leader(partition)


def test_leader_when_killed_under_load_then_another_leads_and_nothing_is_lost(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster, reads_back=True)
    partition, leader = leader_of_first(trial)

    cluster.kill_replaceable(leader, trial.partitions, session_lives_on=True)

    cluster.await_leader(partition, other_than=leader)
    trial.await_progress()
    cluster.start(leader)
    trial.verdict()


def test_leader_when_its_disk_is_gone_then_another_leads_and_its_other_disk_is_used(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(disk_count=2, log_checkpoint_interval_ms="200")
    trial = Trial(cluster, partition_count=6)
    partition, leader = leader_of_first(trial)

    cluster.await_full_isr(trial.partitions)
    cluster.lose_disk(leader, partition)

    cluster.await_leader(partition, other_than=leader)
    trial.await_progress()
    cluster.kill(leader)
    cluster.start(leader)  # without that disk, so that its replicas are copied again
    trial.verdict()


def test_last_replica_when_its_disk_is_gone_then_it_says_that_messages_are_lost(
    cluster: ReplicatedCluster,
) -> None:
    (partition,) = cluster.create_topic("t", 1, 1)
    leader = cluster.await_leader(partition)
    cluster.kill(leader)
    for disk in cluster.disks_of(leader):
        shutil.rmtree(disk)
    wait_until(lambda: cluster.leader(partition) == NO_LEADER, "the end of its session")

    cluster.start(leader)

    cluster.await_leader(partition)
    loss = "its log is new: messages on a former disk of the broker are lost"
    wait_until(lambda: any(one.text == loss for one in cluster.changes()), "the change")
    assert loss in cluster.output_of(leader)


def test_leader_when_killed_and_started_at_once_again_and_again_then_nothing_is_lost(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    for _ in range(4):
        _, leader = leader_of_first(trial)
        cluster.kill(leader, session_lives_on=True)
        cluster.start(leader)
        trial.await_progress(5)
    trial.verdict()


def test_producer_when_the_leader_restarts_and_has_no_orders_yet_then_waits_and_loses_nothing(
    start_cluster: StartCluster,
) -> None:
    # nobody takes the office while the controller hangs
    cluster = start_cluster(zk_sessiontimeout_ms="30000", broker_silence_ms="0")
    partitions = cluster.create_topic("t", 3, 3)
    cluster.await_full_isr(partitions)
    controller = cluster.controller()
    restarted = next(one for one in cluster.brokers if one != controller)
    (partition,) = (one for one in partitions if cluster.leader(one) == restarted)
    cluster.kill(restarted, session_lives_on=True)
    later = cluster.create_topic("later", 2, 2)  # while it is down
    cluster.freeze(controller)
    cluster.start(restarted)

    properties = {**cluster.client, "num.retries": "200", "retry.backoff.ms": "100"}
    config = ProducerConfig.from_properties(properties)
    payloads = [b"%d" % number for number in range(100)]

    def send() -> None:
        with Producer.from_config(config) as producer:
            deliveries = [producer.send_set(partition, encode([one])) for one in payloads]
            for one in deliveries:
                one.result()

    unknown = TopicPartition("no-such-topic", 7, 0)
    with closing(cluster.connect(restarted)) as connection, ThreadPoolExecutor() as threads:

        def code_of(one: TopicPartition) -> int:
            query = ListOffsetsRequest((OffsetQuery(one, OffsetKind.LATEST, 0),))
            (found,) = LISTED_OFFSETS.decode(connection.call(query))
            return found.error

        sending = threads.submit(send)
        for one in (*partitions, *later, unknown):
            assert code_of(one) == LeaderNotAvailableError.code
        cluster.thaw(controller)
        sending.result(120)
        cluster.await_full_isr(partitions)  # another replica may lead, as the broker was killed
        start, data = cluster.log_bytes(restarted, partition)
        assert [bytes(one.payload) for one in iter_messages(data, start)] == payloads
        assert code_of(later[0]) == NotLeaderError.code
        assert code_of(unknown) == WrongPartitionError.code


def test_brokers_when_killed_one_after_the_other_then_nothing_is_lost(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    for broker_id in list(cluster.brokers):
        cluster.kill_replaceable(broker_id, trial.partitions)
        trial.await_progress()
        cluster.start(broker_id)
    trial.verdict()


def test_brokers_when_all_are_killed_at_once_then_nothing_is_lost(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    ids = list(cluster.brokers)
    for broker_id in ids:
        cluster.kill(broker_id, session_lives_on=True)
    for broker_id in reversed(ids):
        cluster.start(broker_id)
    trial.verdict()


def test_brokers_when_stopped_in_turn_under_load_then_nothing_is_lost_and_gaps_are_short(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    for broker_id in list(cluster.brokers):
        cluster.await_full_isr(trial.partitions)
        cluster.stop(broker_id)
        for disk in cluster.disks_of(broker_id):
            assert DataDirectory(disk, broker_id).is_clean()
        trial.await_progress()
        cluster.start(broker_id)
        assert "cut off" not in cluster.output_of(broker_id)
    trial.verdict()
    for producer in trial.producers:
        assert producer.errors.keys() <= {"NotEnoughReplicas"}  # all else could be sent again
        unknown = [one for one in producer.sent if one.outcome is Outcome.UNKNOWN]
        assert len(unknown) <= 6 * len(trial.partitions)


def test_leader_when_frozen_beyond_its_session_then_it_acknowledges_nothing_after_it(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    partition, leader = leader_of_first(trial)

    cluster.freeze(leader)
    cluster.await_leader(partition, other_than=leader)
    trial.await_progress()
    cluster.thaw(leader)

    trial.await_progress()
    trial.verdict()


def test_follower_when_frozen_for_long_then_it_leaves_the_isr_and_comes_back(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    partition, leader = leader_of_first(trial)
    follower = next(one for one in cluster.brokers if one != leader)

    cluster.freeze(follower)
    wait_until(
        lambda: follower not in (cluster.state(partition) or ((), (), ()))[2],
        "the shrink of the in-sync replicas",
    )
    trial.await_progress()
    cluster.thaw(follower)

    trial.verdict()


def test_leader_when_cut_off_from_its_followers_then_it_commits_nothing_alone(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    partition, leader = leader_of_first(trial)
    for other in cluster.brokers:
        if other != leader:
            cluster.network.cut(leader, other)
    time.sleep(3 * LAG_S)

    cluster.kill(leader)
    cluster.network.heal()
    # if it was alone in sync, no other replica may lead before it is back
    wait_until(lambda: cluster.leader(partition) != leader, "the loss of the leader")
    cluster.start(leader)

    trial.verdict()


def test_leader_when_cut_off_from_zookeeper_only_then_nothing_is_acknowledged_twice(
    cluster: ReplicatedCluster,
) -> None:
    trial = Trial(cluster)
    partition, leader = leader_of_first(trial)

    cluster.network.cut(leader, ZOOKEEPER)
    cluster.await_leader(partition, other_than=leader)
    time.sleep(SESSION_S)
    cluster.network.heal()

    trial.verdict()


def test_controller_when_killed_with_a_leader_then_another_one_elects(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(5)
    trial = Trial(cluster, partition_count=5, min_isr=1)
    controller = cluster.controller()
    partition = next(one for one in trial.partitions if cluster.leader(one) != controller)
    leader = cluster.leader(partition)

    cluster.kill_replaceable(controller, trial.partitions)
    cluster.kill(leader)

    cluster.await_leader(partition, other_than=leader)
    trial.await_progress()
    for broker_id in (controller, leader):
        cluster.start(broker_id)
    trial.verdict()


def test_brokers_when_started_anew_without_topics_then_are_trusted_with_new_ones(
    cluster: ReplicatedCluster,
) -> None:
    def are_trusted() -> bool:
        paths = [f"/replicated/brokers/{one}" for one in cluster.brokers]
        found = cluster.session.get_many(paths)
        return all(path in found and b'"is_clean": true' in found[path][0] for path in paths)

    wait_until(are_trusted, "the orders that say that a possible loss is known")
