"""What a topic with replicas is depends on no disk, and clients know when it was made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from broker.protocol.client_requests import ClusterMetadataRequest
from broker.protocol.cluster_requests import DeleteReplicatedTopicRequest
from broker.protocol.responses import ClusterMetadataResponse
from broker.spark.options import ConnectionOptions, parse_read_options
from broker.spark.reading.stream_reader import Document, StreamReader
from broker.spark.schema import full_schema
from broker.topic import TopicPartition
from broker.zk import paths
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke, Spawn
from tests.support.spark_session import publish_to
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
TOPIC, PARTITION_COUNT = "t", 3


def payloads_of(first: int, last: int) -> list[str]:
    return [f"{number:05}" for number in range(first, last)]


def create(cluster: ReplicatedCluster) -> list[TopicPartition]:
    partitions = cluster.create_topic(TOPIC, PARTITION_COUNT, 3, min_insync_replicas="2")
    cluster.await_full_isr(partitions)
    return partitions


def publish(cluster: ReplicatedCluster, partitions: list[TopicPartition], texts: list[str]) -> None:
    """Have messages in partitions in turn, committed."""
    count = len(partitions)
    for number, partition in enumerate(partitions):
        port = cluster.network.door_to_broker(cluster.await_leader(partition))
        payloads = [one.encode() for one in texts[number::count]]
        publish_to(port, partition, payloads, connect=cluster.connection)


def empty_home(cluster: ReplicatedCluster, partitions: list[TopicPartition]) -> int:
    """Have the home broker of the first partition lose its disk, and copy everything anew."""
    home = partitions[0].home
    cluster.kill_replaceable(home, partitions)
    cluster.empty_disks(home)
    cluster.start(home)
    cluster.await_full_isr(partitions)
    wait_until(
        lambda: cluster.session.exists(paths.topic_broker(TOPIC, home)),
        "the registration of the topic at its home",
    )
    return home


def delete(cluster: ReplicatedCluster) -> None:
    connection = cluster.connect(cluster.controller())
    connection.call(DeleteReplicatedTopicRequest(TOPIC))
    connection.close()
    wait_until(lambda: not cluster.has_topic(TOPIC), "the end of the deletion")


def creation_ids(
    cluster: ReplicatedCluster, partitions: list[TopicPartition]
) -> dict[tuple[int, int], str]:
    """What each broker says of the topic, by broker and home."""
    told = {}
    for broker_id in cluster.brokers:
        connection = cluster.connect(broker_id)
        response = ClusterMetadataResponse.decode(connection.call(ClusterMetadataRequest((TOPIC,))))
        connection.close()
        for topic in response.topics:
            told.update({(broker_id, home): one for home, one in topic.creation_ids.items()})
    return told


def test_home_when_its_disk_is_emptied_then_the_topic_has_the_id_that_the_controller_gave(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    partitions = create(cluster)
    wait_until(
        lambda: len(creation_ids(cluster, partitions)) == 3 * PARTITION_COUNT,
        "metadata of the topic on all brokers",
    )
    before = creation_ids(cluster, partitions)
    empty_home(cluster, partitions)
    wait_until(
        lambda: creation_ids(cluster, partitions).keys() == before.keys(), "metadata of the topic"
    )

    assert creation_ids(cluster, partitions) == before
    assert len(set(before.values())) == 1
    assert cluster.session.exists(paths.creation_ids(TOPIC)) is None


def test_group_when_it_was_stopped_while_a_home_lost_its_disk_then_reads_on(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    partitions = create(cluster)
    publish(cluster, partitions, payloads_of(0, 300))
    where = ("-g", "g", "-Z", cluster.zookeeper, "-o", "start")
    read = ("consume", TOPIC, *where, "-e", "-q")
    first = invoke(*read)
    empty_home(cluster, partitions)
    publish(cluster, partitions, payloads_of(300, 330))

    lag = invoke("group", "lag", "g", "-Z", cluster.zookeeper, "--output", "json")
    second = invoke(*read)

    assert sorted(first.text.split()) == payloads_of(0, 300)
    assert "void" not in lag.text
    assert sorted(second.text.split()) == payloads_of(300, 330)


def test_group_when_a_home_loses_its_disk_meanwhile_then_reads_each_message_once(
    start_cluster: StartCluster, spawn: Spawn
) -> None:
    cluster = start_cluster()
    partitions = create(cluster)
    publish(cluster, partitions, payloads_of(0, 300))
    read = ("consume", TOPIC, "-g", "g", "-Z", cluster.zookeeper, "-o", "start")
    found: list[str] = []
    with spawn(*read, stderr=None) as process:

        def collect() -> None:
            found.extend(line.decode().strip() for line in process.stdout or ())

        collecting = Thread(target=collect, daemon=True)
        collecting.start()
        wait_until(lambda: len(found) >= 300, "the first messages")
        empty_home(cluster, partitions)
        publish(cluster, partitions, payloads_of(300, 330))
        wait_until(lambda: set(found) >= set(payloads_of(300, 330)), "the last messages")
        process.terminate()
        collecting.join()

    assert Counter(found) == Counter(payloads_of(0, 330))


@pytest.mark.parametrize("where", ["zk", "brokers"])
def test_stream_when_a_home_loses_its_disk_and_the_leader_moves_then_nothing_comes_twice(
    start_cluster: StartCluster, where: str
) -> None:
    cluster = start_cluster()
    partitions = create(cluster)
    publish(cluster, partitions, payloads_of(0, 300))
    options = {
        where: cluster.zookeeper if where == "zk" else cluster.listed(),
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "failOnDataLoss": "false",
        **ConnectionOptions().secured(cluster.access.security).to_options(),
    }
    parsed = parse_read_options(options, is_stream=True)
    found: list[str] = []

    def read_all(start: Document) -> Document:
        """Read until there is nothing new, by a reader of its own as after a restart."""
        reader = StreamReader(parsed, full_schema(parsed.crc))
        try:
            while (end := reader.latestOffset(start, ReadAllAvailable())) != start:
                for task in reader.partitions(start, end):
                    for batch in reader.read(task):
                        found.extend(one.decode() for one in batch.column("value").to_pylist())
                start = end
        finally:
            reader.stop()
        return start

    reached = read_all(StreamReader(parsed, full_schema(parsed.crc)).initialOffset())
    home = empty_home(cluster, partitions)
    cluster.kill_replaceable((home + 1) % 3, partitions)
    reached = read_all(reached)
    publish(cluster, partitions, payloads_of(300, 330))
    read_all(reached)

    assert Counter(found) == Counter(payloads_of(0, 330))


def test_load_when_a_home_loses_its_disk_then_loads_only_what_is_new(
    start_cluster: StartCluster, invoke: Invoke, tmp_path: Path
) -> None:
    cluster = start_cluster()
    partitions = create(cluster)
    lake = tmp_path / "lake"

    def load() -> int:
        result = invoke(
            *("pipeline", "load", TOPIC, "-b", cluster.listed(), "--to", str(lake)),
            *("--local", "--allow-data-loss", "-q"),
        )
        assert result.status == 0, result.stderr
        return len(loaded(lake))

    publish(cluster, partitions, payloads_of(0, 300))
    first = load()
    empty_home(cluster, partitions)
    again = load()
    publish(cluster, partitions, payloads_of(300, 330))

    assert (first, again, load()) == (300, 300, 330)
    assert sorted(loaded(lake)) == payloads_of(0, 330)


def loaded(lake: Path) -> list[str]:
    files = [str(one) for one in lake.glob("loads/**/*.parquet")]
    return [value.decode() for one in files for value in pq.read_table(one)["value"].to_pylist()]


@pytest.mark.parametrize("where", ["-Z", "-b"])
def test_load_when_the_topic_was_deleted_and_made_again_then_says_so_and_loads_all_of_the_new_one(
    start_cluster: StartCluster, invoke: Invoke, tmp_path: Path, where: str
) -> None:
    cluster = start_cluster()
    lake = tmp_path / "lake"
    publish(cluster, create(cluster), payloads_of(0, 600))
    place = cluster.zookeeper if where == "-Z" else cluster.listed()
    load = ("pipeline", "load", TOPIC, where, place, "--to", str(lake), "--local", "-q")
    first = invoke(*load)
    delete(cluster)
    publish(cluster, create(cluster), payloads_of(600, 3600))

    strict = invoke(*load)
    bearing = invoke(*load, "--allow-data-loss")

    assert (first.status, bearing.status) == (0, 0), bearing.stderr
    assert strict.status != 0
    assert "deleted and created again since" in strict.stderr
    assert sorted(loaded(lake)) == payloads_of(0, 3600)
