"""`copy`, `mirror run` and the Spark writer, while the leaders of the target are killed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from broker.protocol.codec import decode
from broker.spark.options import ConnectionOptions, parse_write_options
from broker.spark.writer import send_rows
from broker.topic import TopicPartition
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke, Spawn
from tests.support.command_line import spawn as spawn
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

COUNT = 1500


@pytest.fixture
def cluster(start_cluster: StartCluster) -> ReplicatedCluster:
    """Three brokers; topics `from` and `to` have a partition on all of them."""
    cluster = start_cluster()
    for topic in ("from", "to"):
        cluster.await_full_isr(cluster.create_topic(topic, 1, 3, min_insync_replicas="2"))
    return cluster


def partition_of(cluster: ReplicatedCluster, topic: str) -> TopicPartition:
    (found,) = (
        partition
        for home in cluster.brokers
        if cluster.state(partition := TopicPartition(topic, home, 0)) is not None
    )
    return found


def fill(cluster: ReplicatedCluster, invoke: Invoke, first: int, count: int) -> None:
    lines = b"".join(b"%d\n" % number for number in range(first, first + count))
    words = ("produce", "from", "-Z", cluster.zookeeper, "--batch-messages", "10")
    result = invoke(*words, stdin=lines)
    assert result.status == 0, result.stderr


def written(cluster: ReplicatedCluster, partition: TopicPartition) -> int:
    return max(len(cluster.log_bytes(one, partition)[1]) for one in cluster.brokers)


def await_growth(
    cluster: ReplicatedCluster,
    partition: TopicPartition,
    before: int | None = None,
    *,
    has_ended: Callable[[], bool] = lambda: False,
) -> None:
    """Wait for more than there is now, or was `before` what may be there by now was sent.

    No longer than until `has_ended`: what writes can be quicker than a machine that is slow.
    """
    if before is None:
        before = written(cluster, partition)
    wait_until(
        lambda: written(cluster, partition) > before or has_ended(), "more messages in the target"
    )


def first_copies(cluster: ReplicatedCluster, partition: TopicPartition) -> list[int]:
    cluster.await_equal_logs(partition)
    _, data = cluster.log_bytes(cluster.await_leader(partition), partition)
    return list(dict.fromkeys(int(payload) for _, _, payload in decode(data, 0).messages))


def test_copy_when_the_leader_of_the_target_is_killed_then_all_is_copied_in_order(
    cluster: ReplicatedCluster, invoke: Invoke, spawn: Spawn
) -> None:
    fill(cluster, invoke, 0, COUNT)
    target = partition_of(cluster, "to")
    words = ("copy", "from", "to", "-Z", cluster.zookeeper, "--rate", "200/s")
    with spawn(*words) as process:
        await_growth(cluster, target)
        killed = cluster.kill_leader(target)
        await_growth(cluster, target, has_ended=lambda: process.poll() is not None)
        cluster.start(killed)
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert first_copies(cluster, target) == list(range(COUNT))


def test_mirror_when_the_leader_of_the_target_is_killed_then_all_is_mirrored_in_order(
    cluster: ReplicatedCluster, invoke: Invoke, spawn: Spawn
) -> None:
    fill(cluster, invoke, 0, 100)
    target = partition_of(cluster, "to")
    words = ("mirror", "run", "-Z", cluster.zookeeper, "--include", "from", "--yes")
    with spawn(*words, "--topic-map", "s/from/to/") as process:
        await_growth(cluster, target, 0)
        killed = cluster.kill_leader(target)
        before = written(cluster, target)
        fill(cluster, invoke, 100, 100)
        await_growth(cluster, target, before)
        cluster.start(killed)
        fill(cluster, invoke, 200, 100)
        wait_until(lambda: first_copies(cluster, target)[-1] == 299, "the last message")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert first_copies(cluster, target) == list(range(300))


def test_rows_when_the_leader_of_their_topic_is_killed_then_all_are_sent(
    cluster: ReplicatedCluster,
) -> None:
    target = partition_of(cluster, "to")
    killed: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, COUNT, 100):
            if first == 1000:
                wait_until(lambda: written(cluster, target), "the first rows")
                killed.append(cluster.kill_leader(target))
            values = [b"%d" % number for number in range(first, first + 100)]
            yield pa.RecordBatch.from_pydict({"value": values})

    options = {"zk": cluster.zookeeper, "topic": "to", "batchSize": "200"}
    options |= ConnectionOptions().secured(cluster.access.security).to_options()
    assert send_rows(batches(), parse_write_options(options)).message_count == COUNT
    cluster.start(killed[0])
    assert first_copies(cluster, target) == list(range(COUNT))
