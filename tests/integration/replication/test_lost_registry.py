"""What becomes of topics with replicas when ZooKeeper loses all its data."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.admin.recovery import plan
from broker.errors import NO_ERROR, InvalidRequestError, LeaderNotAvailableError
from broker.protocol.client_requests import (
    Acks,
    ClusterMetadataRequest,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.cluster_requests import (
    ListUnknownReplicasRequest,
    RestorePartitionsRequest,
)
from broker.protocol.codec import Record, decode_records, encode, encode_batch
from broker.protocol.extension_requests import (
    DeleteTopicRequest,
)
from broker.protocol.replica_requests import UNKNOWN_REPLICAS
from broker.protocol.responses import ClusterMetadataResponse, decode_publish_response
from broker.replica_records import UnknownReplica
from broker.topic import FORMAT_07, FORMAT_KAFKA, FORMATS, TopicPartition
from broker.zk import paths
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke, Spawn
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

PAYLOADS = [f"message {number}".encode() for number in range(500)]


class LosableCluster(ReplicatedCluster):
    """Three brokers with a ZooKeeper of their own, which can lose its data."""

    def __init__(self, java: Java, directory: Path) -> None:
        self._java = java
        self._zookeeper_dir = directory / "zookeeper"
        self._server = self._start_zookeeper(port_of_its_own())
        super().__init__(self._server.connect, directory)

    def _start_zookeeper(self, port: int) -> EmbeddedZooKeeper:
        server = EmbeddedZooKeeper(
            self._zookeeper_dir, java=self._java, port=port, is_durable=False, tick_ms=500
        )
        server.start()
        return server

    def lose_registry(self) -> None:
        """Restart ZooKeeper with an empty data directory, at the same port."""
        self._server.stop()
        shutil.rmtree(self._zookeeper_dir)
        self._server = self._start_zookeeper(int(self.zookeeper.rpartition(":")[2]))

    def restart_without_registry(self) -> None:
        """Kill all brokers, empty ZooKeeper, and start the brokers again."""
        for broker_id in list(self.brokers):
            self.kill(broker_id)
        self.lose_registry()
        for broker_id in range(3):
            self.start(broker_id)

    def restart_brokers(self) -> None:
        for broker_id in list(self.brokers):
            self.kill(broker_id, session_lives_on=True)
            self.start(broker_id)

    def close(self) -> None:
        super().close()
        self._server.stop()


@pytest.fixture
def cluster(java: Java, tmp_path: Path) -> Iterator[LosableCluster]:
    started = LosableCluster(java, tmp_path)
    yield started
    started.close()
    for log in sorted(tmp_path.glob("broker-*/broker.log")):
        print(f"---- {log.parent.name}\n{log.read_text()}")


def fill(
    cluster: LosableCluster, count: int = 3, *, format: str = FORMAT_07, **settings: str
) -> list[TopicPartition]:
    """Create a topic with partitions of three replicas, and commit messages."""
    partitions = cluster.create_topic("t", count, 3, format=format, **settings)
    cluster.await_full_isr(partitions)
    publish(cluster, partitions)
    wait_until(
        lambda: all(
            (cluster.directory_of(id, one) / "replica-record").exists()
            for id in cluster.brokers
            for one in partitions
        ),
        "the records beside the logs",
    )
    return partitions


def publish(cluster: LosableCluster, partitions: list[TopicPartition]) -> None:
    for partition in partitions:
        wait_until(partial(is_published, cluster, partition), f"the messages of {partition}")


def is_published(cluster: LosableCluster, partition: TopicPartition) -> bool:
    message_set = encode(PAYLOADS)
    if partition.format == FORMAT_KAFKA:
        now_ms = time.time_ns() // 1_000_000  # as retention goes by it
        records = [Record(n, now_ms, None, one) for n, one in enumerate(PAYLOADS)]
        message_set = encode_batch(records)
    request = PublishRequest(Acks.COMMITTED, 60_000, (PartitionSet(partition, message_set),))
    with closing(cluster.connect(cluster.await_leader(partition))) as connection:
        (published,) = decode_publish_response(connection.call(request))
    return published.error == NO_ERROR


def brokers_of(cluster: LosableCluster) -> list[str]:
    doors = (cluster.network.door_to_broker(id) for id in cluster.brokers)
    return [word for port in doors for word in ("-b", f"127.0.0.1:{port}")]


def data_of(invoke: Invoke, cluster: LosableCluster, *args: str) -> list[dict[str, Any]]:
    result = invoke(*args, *brokers_of(cluster), "--output", "json")
    found: list[dict[str, Any]] = json.loads(result.text)["data"]
    return found


def lost_topics(invoke: Invoke, cluster: LosableCluster) -> list[str]:
    """Return what the check of `cluster health` names."""
    (check,) = (
        one
        for one in data_of(invoke, cluster, "cluster", "health")
        if one["name"] == "lost by ZooKeeper"
    )
    return list(check["found"])


def unknown_replicas(cluster: LosableCluster, broker_id: int) -> list[UnknownReplica]:
    """Return the replicas of a broker that the registry does not know."""
    connection = cluster.connect(broker_id)
    try:
        return UNKNOWN_REPLICAS.decode(connection.call(ListUnknownReplicasRequest()))
    finally:
        connection.close()


def await_missed(
    cluster: LosableCluster, invoke: Invoke, partition_count: int = 3, *, holders: int = 3
) -> None:
    """Wait until each of the first brokers, which have logs of the topic, misses all of it."""

    def is_missed() -> bool:
        try:
            counts = [len(unknown_replicas(cluster, one)) for one in range(holders)]
        except LeaderNotAvailableError:  # the controller has not told it what there is
            return False
        return counts == [partition_count] * holders and lost_topics(invoke, cluster) == ["t"]

    wait_until(is_missed, "the topic to be missed")


def await_whole(cluster: LosableCluster, partitions: list[TopicPartition], sets: int = 1) -> None:
    """Wait until the replicas are in sync and equal, and check that all messages are there."""
    cluster.await_full_isr(partitions)
    for partition in partitions:
        cluster.await_equal_logs(partition)
        state = cluster.state(partition)
        assert state is not None
        start, data = cluster.log_bytes(state.leader, partition)
        assert start == 0
        if partition.format == FORMAT_KAFKA:
            values = [one.value for one in decode_records(data).records]
            assert values == PAYLOADS * sets
        else:
            assert data == bytes(encode(PAYLOADS)) * sets


@pytest.mark.parametrize("format", FORMATS)
def test_registry_when_it_loses_its_data_and_brokers_restart_then_recover_makes_topics_again(
    cluster: LosableCluster, invoke: Invoke, format: str
) -> None:
    partitions = fill(cluster, format=format, min_insync_replicas="2", log_retention_hours="5000")
    cluster.restart_without_registry()

    await_missed(cluster, invoke)
    health = invoke("cluster", "health", *brokers_of(cluster))
    assert health.status == ExitStatus.THRESHOLD
    assert "lost by ZooKeeper" in health.stderr
    wait_until(
        lambda: all(
            "ZooKeeper does not have topic 't'" in cluster.output_of(id) for id in range(3)
        ),
        "the word of all brokers in their logs",
    )
    refused = invoke(
        "topic",
        "create",
        "t",
        "--partitions",
        "1",
        "--replication-factor",
        "3",
        "--zookeeper",
        cluster.zookeeper,
    )
    assert refused.status == ExitStatus.CONFLICT  # it would take the place of the logs

    planned = data_of(invoke, cluster, "cluster", "recover")
    assert {one["partition"] for one in planned} == {str(one) for one in partitions}
    assert all(one["restored"] and one["loss"] is None for one in planned)
    assert planned[0]["settings"] == {"retention.ms": "18000000000", "min.insync.replicas": "2"}
    assert not cluster.has_topic("t") or cluster.state(partitions[0]) is None

    done = invoke("cluster", "recover", "--execute", "--yes", *brokers_of(cluster))
    assert done.status == ExitStatus.OK, done.stderr
    await_whole(cluster, partitions)
    wait_until(lambda: lost_topics(invoke, cluster) == [], "the news that it is there")
    settings = invoke("config", "list", "--topic", "t", "--zookeeper", cluster.zookeeper)
    assert "18000000000" in settings.text
    publish(cluster, partitions)
    await_whole(cluster, partitions, sets=2)


@pytest.mark.parametrize("format", FORMATS)
def test_registry_when_it_loses_its_data_under_live_brokers_then_they_write_it_back(
    cluster: LosableCluster, invoke: Invoke, format: str
) -> None:
    partitions = fill(cluster, format=format, min_insync_replicas="2")
    before = {one: cluster.state(one) for one in partitions}

    cluster.lose_registry()

    wait_until(
        lambda: all(cluster.state(one) is not None for one in partitions),
        "the states to be written back",
        deadline_s=120,
    )
    await_whole(cluster, partitions)
    for one in partitions:
        state, former = cluster.state(one), before[one]
        assert state is not None
        assert former is not None
        assert state.leader_epoch > former.leader_epoch
        assert state.replicas == former.replicas
    wait_until(lambda: lost_topics(invoke, cluster) == [], "the news that it is there")
    publish(cluster, partitions)
    await_whole(cluster, partitions, sets=2)
    cluster.restart_brokers()
    await_whole(cluster, partitions, sets=2)


def test_recover_when_a_broker_with_replicas_has_no_log_then_the_topic_is_left_until_it_is_named(
    cluster: LosableCluster, invoke: Invoke
) -> None:
    partitions = fill(cluster)
    for broker_id in list(cluster.brokers):
        cluster.kill(broker_id)
    cluster.lose_registry()
    for partition in partitions:
        shutil.rmtree(cluster.directory_of(2, partition))
    for broker_id in range(3):
        cluster.start(broker_id)
    await_missed(cluster, invoke, holders=2)

    left = invoke("cluster", "recover", "--execute", "--yes", *brokers_of(cluster))
    assert left.status == ExitStatus.PARTIAL
    assert "brokers 2 have no log of it" in left.text
    assert cluster.state(partitions[0]) is None

    done = invoke("cluster", "recover", "--topic", "t", "--execute", "--yes", *brokers_of(cluster))
    assert done.status == ExitStatus.OK, done.stderr
    await_whole(cluster, partitions)


def test_recover_when_told_to_discard_then_the_logs_are_gone_and_the_name_is_free(
    cluster: LosableCluster, invoke: Invoke
) -> None:
    partitions = fill(cluster)
    cluster.restart_without_registry()
    await_missed(cluster, invoke)
    unnamed = invoke("cluster", "recover", "--discard", *brokers_of(cluster))
    assert unnamed.status == ExitStatus.USAGE

    words = ("cluster", "recover", "--topic", "t", "--discard", "--execute", "--yes")
    done = invoke(*words, *brokers_of(cluster))
    assert done.status == ExitStatus.OK, done.stderr

    wait_until(
        lambda: (
            not any(cluster.directory_of(id, one).exists() for id in range(3) for one in partitions)
        ),
        "the end of the logs",
    )
    wait_until(lambda: lost_topics(invoke, cluster) == [], "the news that it is there")
    wait_until(lambda: not cluster.has_topic("t"), "the end of its nodes")
    assert fill(cluster)


def test_group_when_a_lost_topic_is_recovered_then_reads_on_where_it_was(
    cluster: LosableCluster, invoke: Invoke, spawn: Spawn, tmp_path: Path
) -> None:
    partitions = fill(cluster)
    output = tmp_path / "consumed"
    read = ("consume", "t", "-g", "g", "-Z", cluster.zookeeper, "-o", "start")
    with output.open("wb") as file:
        group = spawn(*read, stdout=file)
    wait_until(lambda: len(output.read_text().splitlines()) >= 3 * len(PAYLOADS), "the messages")
    cluster.restart_without_registry()
    offsets = [paths.offset("g", one) for one in partitions]
    wait_until(
        lambda: len(cluster.session.get_many(offsets)) == len(offsets), "the group's offsets"
    )
    await_missed(cluster, invoke)
    done = invoke("cluster", "recover", "--execute", "--yes", *brokers_of(cluster))
    assert done.status == ExitStatus.OK, done.stderr
    await_whole(cluster, partitions)
    group.kill()
    group.wait(60)

    again = invoke(*read, "--exit-at-end")
    assert (again.status, again.text) == (0, ""), again.stderr


def test_topic_when_it_got_replicas_and_zookeeper_loses_its_data_then_clients_know_it_as_before(
    cluster: LosableCluster, invoke: Invoke
) -> None:
    place = ("-Z", cluster.zookeeper)
    assert invoke("topic", "create", "t", "--partitions", "3", *place).status == 0
    altered = invoke("topic", "alter", "t", "--replication-factor", "3", "--yes", *place)
    assert altered.status == 0, altered.stderr
    partitions = [TopicPartition("t", home, 0) for home in range(3)]
    cluster.await_full_isr(partitions)

    def creation_ids() -> dict[int, str]:
        connection = cluster.connect(0)
        response = ClusterMetadataResponse.decode(connection.call(ClusterMetadataRequest(("t",))))
        connection.close()
        (topic,) = response.topics
        return dict(topic.creation_ids)

    wait_until(lambda: len(creation_ids()) == 3, "metadata of the topic")
    before = creation_ids()
    cluster.lose_registry()
    wait_until(
        lambda: all(cluster.state(one) is not None for one in partitions),
        "the states to be written back",
        deadline_s=120,
    )
    cluster.await_full_isr(partitions)
    wait_until(lambda: len(creation_ids()) == 3, "metadata of the topic")
    assert creation_ids() == before


def test_lost_topic_when_messages_come_or_brokers_are_to_delete_it_then_they_wait_for_recovery(
    cluster: LosableCluster, invoke: Invoke
) -> None:
    partitions = fill(cluster, 1)  # of one home
    cluster.restart_without_registry()
    await_missed(cluster, invoke, 1)

    for broker_id in range(3):
        connection = cluster.connect(broker_id)
        for partition in (TopicPartition("t", -1, -1), TopicPartition("t", broker_id, 7)):
            request = PublishRequest(Acks.WRITTEN, 0, (PartitionSet(partition, encode([b"x"])),))
            (published,) = decode_publish_response(connection.call(request))
            assert published.error == LeaderNotAvailableError.code, published
            assert "cluster recover" in published.text
        with pytest.raises(InvalidRequestError, match="cluster recover"):
            connection.call(DeleteTopicRequest("t"))
        connection.close()

    done = invoke("cluster", "recover", "--execute", "--yes", *brokers_of(cluster))
    assert done.status == ExitStatus.OK, done.stderr
    await_whole(cluster, partitions)


def test_recover_when_told_to_discard_a_topic_of_which_partitions_are_there_then_refuses(
    cluster: LosableCluster, invoke: Invoke
) -> None:
    partitions = fill(cluster)
    cluster.restart_without_registry()
    await_missed(cluster, invoke)
    found = {broker_id: unknown_replicas(cluster, broker_id) for broker_id in range(3)}
    restored, *_ = (one.record for one in plan(found))
    connection = cluster.connect(cluster.controller())
    connection.call(RestorePartitionsRequest((restored,)))
    connection.close()
    assert lost_topics(invoke, cluster) == ["t"]  # the others

    words = ("cluster", "recover", "--topic", "t", "--discard", "--execute", "--yes")
    refused = invoke(*words, *brokers_of(cluster))
    assert refused.status == ExitStatus.CONFLICT
    assert "pylogctl topic delete t" in refused.stderr

    done = invoke("cluster", "recover", "--execute", "--yes", *brokers_of(cluster))
    assert done.status == ExitStatus.OK, done.stderr
    await_whole(cluster, partitions)
