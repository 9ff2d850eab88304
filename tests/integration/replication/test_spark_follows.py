"""Tasks of Spark that read on when the leader of their partition dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from broker.errors import DataLossError
from broker.log.replica_files import EPOCH_FILE_NAME
from broker.protocol.cluster_requests import DeleteReplicatedTopicRequest
from broker.protocol.message_set import iter_messages
from broker.spark.load import LoadRequest, run_load
from broker.spark.local import LocalProcesses
from broker.spark.options import ConnectionOptions
from broker.spark.reading.planner import ReadPlan
from broker.spark.reading.task_reader import read_task
from broker.topic import TopicPartition
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.spark_rows import parse, plan, run, settings_for, values
from tests.support.spark_session import publish_to
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
PAYLOADS = [b"%05d" % number for number in range(3000)]
"""Of each partition."""


class Options(dict[str, str]):
    """The options of a read of a topic with two partitions, which have three replicas each.

    Attributes:
        partitions: of the topic.
        plan: of the read.
        payloads: what is in the logs, partition by partition.
    """

    def __init__(self, cluster: ReplicatedCluster, where: dict[str, str]) -> None:
        secured = ConnectionOptions().secured(cluster.access.security).to_options()
        super().__init__(
            where, subscribe="t", fetchSize="2000", **{**secured, "timeoutMs": "60000"}
        )
        self.cluster = cluster
        self.partitions = cluster.create_topic("t", 2, 3, min_insync_replicas="2")
        cluster.await_full_isr(self.partitions)
        self.payloads: list[bytes] = []
        for partition in self.partitions:
            wait_until(partial(self._leads, partition), "the orders of the controller")
            leader = cluster.leader(partition)
            port = cluster.network.door_to_broker(leader)
            publish_to(port, partition, PAYLOADS, connect=cluster.connection)
            start, data = cluster.log_bytes(leader, partition)
            self.payloads += [bytes(one.payload) for one in iter_messages(data, start)]
        self.plan = plan(self)

    def _leads(self, partition: TopicPartition) -> bool:
        directory = self.cluster.directory_of(self.cluster.leader(partition), partition)
        return (directory / EPOCH_FILE_NAME).exists()


@pytest.fixture
def options(request: pytest.FixtureRequest, start_cluster: StartCluster) -> Options:
    """Of a cluster named by ZooKeeper or, if a test is parametrized so, by its brokers."""
    cluster = start_cluster()
    name = getattr(request, "param", "zk")
    return Options(cluster, {name: cluster.zookeeper if name == "zk" else cluster.listed()})


def batches(made: ReadPlan, options: Options) -> Iterator[pa.RecordBatch]:
    settings = settings_for(parse(options))
    for task in made.tasks:
        yield from read_task(task, settings)


@pytest.mark.parametrize("options", ["zk", "brokers"], indirect=True)
def test_task_when_its_leader_is_killed_during_the_read_then_every_message_comes_once(
    options: Options,
) -> None:
    found = batches(options.plan, options)
    payloads = next(found).column("value").to_pylist()
    assert len(payloads) < len(PAYLOADS)

    options.cluster.kill_leader(options.partitions[0])
    for batch in found:
        payloads += batch.column("value").to_pylist()

    assert payloads == options.payloads


def test_task_when_its_leader_is_killed_after_planning_then_every_message_comes_once(
    options: Options,
) -> None:
    options.cluster.kill_leader(options.partitions[0], session_lives_on=True)

    assert values(run(options.plan, options)) == options.payloads


@pytest.mark.parametrize("options", ["brokers"], indirect=True)
def test_task_when_its_leader_hands_over_during_the_read_then_every_message_comes_once(
    options: Options,
) -> None:
    found = batches(options.plan, options)
    payloads = next(found).column("value").to_pylist()

    options.cluster.await_full_isr(options.partitions)
    options.cluster.stop(options.cluster.leader(options.partitions[0]))
    for batch in found:
        payloads += batch.column("value").to_pylist()

    assert payloads == options.payloads


def test_load_when_a_topic_is_created_again_then_notices_and_not_when_its_leader_dies(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start_cluster()
    options = Options(cluster, {"zk": cluster.zookeeper})
    request = LoadRequest(tmp_path / "lake", parse(options))
    with LocalProcesses(1) as engine:
        first = run_load(engine, request)
        killed = cluster.kill_leader(options.partitions[0])
        assert run_load(engine, request) is None  # from the new leader
        cluster.start(killed)
        cluster.await_full_isr(options.partitions)
        connection = cluster.connect(cluster.controller())
        connection.call(DeleteReplicatedTopicRequest("t"))
        connection.close()
        wait_until(lambda: not cluster.has_topic("t"), "the end of the deletion")
        again = Options(cluster, {"zk": cluster.zookeeper})

        assert first is not None
        assert first.message_count == len(options.payloads)
        with pytest.raises(DataLossError, match="deleted and created again since"):
            run_load(engine, request)
        bearing = replace(request, options=parse({**again, "failOnDataLoss": "false"}))
        second = run_load(engine, bearing)

    assert second is not None
    assert second.message_count == len(again.payloads)
