"""A cluster on three ZooKeepers, of which some are killed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.errors import BrokerError, ConsumerTimeoutError, CoordinationError
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from broker.topic import TopicPartition
from broker.zk.java import Java
from tests.integration.replication.load import LoadThread
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.waiting import wait_until
from tests.support.zookeeper_ensemble import ZooKeeperEnsemble

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

TOPIC = "t"


@pytest.fixture(scope="module")
def ensemble_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ensemble")


@pytest.fixture(scope="module")
def ensemble(ensemble_dir: Path, java: Java) -> Iterator[ZooKeeperEnsemble]:
    with ZooKeeperEnsemble(ensemble_dir, java) as started:
        yield started


@pytest.fixture
def cluster(
    tmp_path: Path, ensemble: ZooKeeperEnsemble, ensemble_dir: Path
) -> Iterator[ReplicatedCluster]:
    ensemble.start_killed()
    cluster = ReplicatedCluster(f"{ensemble.connect}/{uuid.uuid4().hex}", tmp_path)
    yield cluster
    cluster.close()
    for log in (*sorted(tmp_path.glob("*/*.log")), *sorted(ensemble_dir.glob("*/*.log"))):
        print(f"---- {log.parent.name}\n{log.read_text()[-4000:]}")


class Traffic:
    """A producer and a member of a group, both by ZooKeeper, that go on whatever happens.

    Args:
        cluster: that has the topic.
    """

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self.acknowledged: set[str] = set()
        self.received: list[str] = []
        self._number = 0
        self._producer = Producer.from_config(ProducerConfig.from_properties(cluster.client))
        self._member = ConsumerConnector(
            cluster.access.secured(
                ConsumerConfig(
                    group="g",
                    zookeeper=cluster.zookeeper,
                    consumer_timeout_ms=100,
                    leader_wait_ms=60_000,
                )
            )
        )
        (self._stream,) = self._member.create_message_streams({TOPIC: 1})[TOPIC]
        self._producing = LoadThread("producer", self._produce)
        self._consuming = LoadThread("member", self._consume)

    def _produce(self) -> None:
        self._number += 1
        payload = f"m{self._number}"
        with suppress(BrokerError):
            self._producer.send(TOPIC, [payload.encode()]).result()
            self.acknowledged.add(payload)

    def _consume(self) -> None:
        with suppress(ConsumerTimeoutError):
            _, _, _, _, payload = next(self._stream)
            self.received.append(bytes(payload).decode())

    def await_progress(self, count: int = 50) -> None:
        """Wait until so many more messages were acknowledged, and all of these received."""
        before = len(self.acknowledged)
        wait_until(
            lambda: len(self.acknowledged) >= before + count, "acknowledgements", deadline_s=120
        )
        wanted = set(self.acknowledged)
        wait_until(lambda: wanted <= set(self.received), "their delivery", deadline_s=120)

    def stop(self) -> None:
        self._producing.stop()
        wait_until(
            lambda: self.acknowledged <= set(self.received), "delivery of all", deadline_s=120
        )
        self._consuming.stop()
        self._member.shutdown()
        self._producer.close()


@contextmanager
def traffic_in(cluster: ReplicatedCluster) -> Iterator[Traffic]:
    traffic = Traffic(cluster)
    traffic.await_progress()
    yield traffic
    traffic.stop()


def create_topic(cluster: ReplicatedCluster) -> list[TopicPartition]:
    partitions = cluster.create_topic(TOPIC, 3, 3, min_insync_replicas="2")
    cluster.await_full_isr(partitions)
    return partitions


def kill_a_leader(cluster: ReplicatedCluster, partitions: list[TopicPartition]) -> int:
    leader = cluster.kill_leader(partitions[0])
    cluster.await_leader(partitions[0], other_than=leader)
    return leader


@pytest.mark.parametrize("mode", ["leader", "follower"])
def test_cluster_when_a_zookeeper_is_killed_then_goes_on_and_still_replaces_lost_brokers(
    ensemble: ZooKeeperEnsemble, cluster: ReplicatedCluster, mode: str
) -> None:
    partitions = create_topic(cluster)
    with traffic_in(cluster) as traffic:
        number = ensemble.number_of(mode)
        ensemble.kill(number)
        ensemble.await_quorum()
        traffic.await_progress()
        lost = kill_a_leader(cluster, partitions)
        traffic.await_progress()
        ensemble.start(number)
        ensemble.await_quorum()
        cluster.start(lost)
        cluster.await_full_isr(partitions)
        traffic.await_progress()
    for partition in partitions:
        cluster.await_equal_logs(partition)


def test_cluster_when_the_quorum_is_lost_and_comes_back_then_goes_on(
    ensemble: ZooKeeperEnsemble, cluster: ReplicatedCluster
) -> None:
    partitions = create_topic(cluster)
    with traffic_in(cluster) as traffic:
        killed = [ensemble.number_of("leader"), ensemble.number_of("follower")]
        for number in killed:
            ensemble.kill(number)
        wait_until(lambda: not is_reachable(cluster), "the loss of the quorum", deadline_s=60)
        for number in killed:
            ensemble.start(number)
        ensemble.await_quorum()
        traffic.await_progress()
        lost = kill_a_leader(cluster, partitions)
        traffic.await_progress()
        cluster.start(lost)
        cluster.await_full_isr(partitions)
    for partition in partitions:
        cluster.await_equal_logs(partition)


def is_reachable(cluster: ReplicatedCluster) -> bool:
    try:
        cluster.session.exists("/")
    except CoordinationError:
        return False
    return True
