"""`pylogctl log compare` on the replicas of brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_describe import publish
from tests.support.command_line import Invoke, Result
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
PAYLOAD = b"x" * 990


def flip_byte(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 0x10]))


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.text.splitlines()]


def compare(cluster: ReplicatedCluster, invoke: Invoke, *options: str) -> Result:
    return invoke("log", "compare", "t", *options, "-Z", cluster.zookeeper, "--output", "jsonl")


def filled(cluster: ReplicatedCluster, invoke: Invoke) -> TopicPartition:
    """Return a partition with a megabyte that all three replicas know to be committed."""
    (partition,) = cluster.create_topic("t", 1, 3)
    cluster.await_full_isr([partition])
    for _ in range(10):
        publish(cluster, partition, [PAYLOAD] * 100)

    def is_known_everywhere() -> bool:
        result = compare(cluster, invoke)
        return result.status == ExitStatus.OK and rows(result)[0]["bytes"] == 1_000_000

    wait_until(is_known_everywhere, "the high watermark on all replicas", deadline_s=60)
    return partition


def test_compare_when_a_byte_of_a_replica_is_flipped_then_names_it_and_the_broker_mends_it(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(log_file_size="300000")
    partition = filled(cluster, invoke)
    (row,) = rows(compare(cluster, invoke))
    assert (row["result"], row["offset"]) == ("same", None)
    bad = next(id for id in range(3) if id != cluster.leader(partition))
    segments = sorted(cluster.directory_of(bad, partition).glob("*.pylog"))
    assert len(segments) > 2
    flip_byte(segments[1], 4321)

    result = compare(cluster, invoke)

    assert result.status == ExitStatus.CORRUPT
    (row,) = rows(result)
    assert (row["result"], row["bytes"]) == ("damaged", 1_000_000)
    damaged = int(segments[1].stem) + 4000
    assert f"{partition} on broker {bad}: the message at offset {damaged}" in result.stderr
    assert "the broker fetches the segment anew from its leader" in result.stderr

    def is_mended() -> bool:
        return [one["result"] for one in rows(compare(cluster, invoke))] == ["same"]

    wait_until(is_mended, "the copy of the segment")
    assert f"is damaged in {segments[1]}" in cluster.output_of(bad)

    for id in range(3):
        cluster.stop(id)
    flip_byte(segments[1], 4321)
    offset = int(segments[1].stem) + 4321
    paths = [word for id in range(3) for word in ("--path", str(cluster.disks_of(id)[0]))]
    offline = invoke("log", "compare", *paths, "--output", "jsonl")
    assert offline.status == ExitStatus.CORRUPT
    assert [row["offset"] for row in rows(offline)] == [offset]
    assert rows(invoke("log", "compare", *paths[:4], "u", "--output", "jsonl")) == []


def test_compare_when_a_broker_is_gone_then_the_others_are_compared(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    partition = filled(cluster, invoke)
    lost = next(id for id in range(3) if id != cluster.leader(partition))
    cluster.kill(lost)

    def is_known_to_be_lost() -> bool:
        return f"broker {lost} is not there" in compare(cluster, invoke).stderr

    wait_until(is_known_to_be_lost, "the end of its session", deadline_s=60)
    result = compare(cluster, invoke)
    assert result.status == ExitStatus.PARTIAL
    assert [row["bytes"] for row in rows(result)] == [1_000_000]


def test_compare_when_a_topic_has_no_replicas_or_does_not_exist_then_says_so(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(1)
    created = invoke("topic", "create", "t", "--partitions", "1", "-Z", cluster.zookeeper)
    assert created.status == ExitStatus.OK

    result = compare(cluster, invoke)
    assert (result.status, "has no replicas" in result.stderr) == (ExitStatus.UNSUPPORTED, True)
    result = invoke("log", "compare", "tt", "-Z", cluster.zookeeper)
    assert (result.status, "'tt' not found" in result.stderr) == (ExitStatus.NOT_FOUND, True)
    result = invoke("log", "compare", "-Z", cluster.zookeeper)
    assert result.status == ExitStatus.NOT_FOUND
