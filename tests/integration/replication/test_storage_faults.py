"""Replicas whose disks fail reads, are full or damage messages, as users see them."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.responses import decode_publish_response
from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_compare import flip_byte
from tests.integration.replication.test_faults import full_disk
from tests.support.command_line import Invoke, Result
from tests.support.failing_reads import FailingReads
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]
LINES = [f"line {n} {'x' * 200}" for n in range(1000)]


class Shell:
    """The commands of a user of a cluster."""

    def __init__(self, cluster: ReplicatedCluster, invoke: Invoke) -> None:
        self.cluster = cluster
        self._invoke = invoke

    def run(self, *args: str, stdin: bytes = b"") -> Result:
        return self._invoke(*args, "-Z", self.cluster.zookeeper, stdin=stdin)

    def produce(self, lines: list[str]) -> None:
        result = self.run("produce", "t", stdin="".join(f"{one}\n" for one in lines).encode())
        assert result.status == ExitStatus.OK, result.stderr

    def consume(self, *options: str) -> list[str]:
        result = self.run("consume", "t", "-o", "start", "-e", *options)
        assert result.status == ExitStatus.OK, result.stderr
        return result.text.splitlines()

    def health(self) -> dict[str, dict[str, Any]]:
        result = self.run("cluster", "health", "--output", "json")
        checks = {one["name"]: one for one in json.loads(result.text)["data"]}
        has_failed = any(one["result"] == "fail" for one in checks.values())
        assert result.status == (ExitStatus.THRESHOLD if has_failed else ExitStatus.OK)
        return checks

    def storage(self, broker_id: int) -> str:
        result = self.run("broker", "status", str(broker_id), "--output", "json")
        (row,) = json.loads(result.text)["data"]
        return str(row["storage"])

    def await_healthy_storage(self) -> None:
        wait_until(
            lambda: self.health()["storage"]["result"] == "ok",
            "storage that is healthy",
            deadline_s=90,
        )


@contextmanager
def no_descriptors(cluster: ReplicatedCluster, broker_id: int) -> Iterator[None]:
    """Let a broker open no more files than it has open."""
    pid = cluster.brokers[broker_id].pid
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


def filled(
    cluster: ReplicatedCluster, shell: Shell, *, min_isr: int = 2, replicas: int = 3
) -> TopicPartition:
    """Return a partition with messages in several segments, all replicas in sync."""
    least = min(min_isr, replicas - 1)
    (partition,) = cluster.create_topic("t", 1, replicas, min_insync_replicas=str(least))
    for first in range(0, len(LINES), 200):
        shell.produce(LINES[first : first + 200])
    cluster.await_full_isr([partition])
    cluster.await_equal_logs(partition)
    return partition


def test_leader_when_its_reads_fail_then_another_leads_and_consumers_get_everything(
    start_cluster: StartCluster,
    invoke: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = FailingReads(tmp_path, monkeypatch)
    cluster = start_cluster(log_file_size="50000")
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)
    leader = cluster.leader(partition)
    directory = cluster.directory_of(leader, partition)
    assert shell.health()["storage"]["result"] == "ok"

    reads.begin(directory)
    assert shell.consume() == LINES
    cluster.await_leader(partition, other_than=leader)
    (found, *_) = shell.health()["storage"]["found"]
    assert f"broker {leader} unreadable: cannot read {partition} at offset" in found
    assert f"{directory}/" in found
    assert shell.storage(leader) == "unreadable"
    assert f"{partition} has a faulty log: cannot read" in cluster.output_of(leader)
    shell.produce(["one more"])
    assert shell.consume() == [*LINES, "one more"]
    assert cluster.leader(partition) != leader

    reads.end()
    cluster.await_full_isr([partition])
    shell.await_healthy_storage()
    cluster.await_equal_logs(partition)


def test_leader_when_its_disk_and_that_of_a_follower_are_full_then_the_third_leads_until_there_is_room(  # noqa: E501
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell, min_isr=1)
    state = cluster.state(partition)
    assert state is not None
    full = [state.leader, next(one for one in state.replicas if one != state.leader)]
    (roomy,) = set(state.replicas) - set(full)

    with ExitStack() as disks:
        for broker_id in full:
            disks.enter_context(full_disk(cluster, broker_id))
        shell.produce(["one more"])
        assert cluster.leader(partition) == roomy
        found = shell.health()["storage"]["found"]
        assert any(f"broker {full[0]} full: cannot append {partition}" in one for one in found)
        assert shell.storage(full[0]) == "full"

    cluster.await_full_isr([partition])
    shell.await_healthy_storage()
    assert shell.consume() == [*LINES, "one more"]
    cluster.await_equal_logs(partition)


def test_leader_when_no_disk_has_room_then_stays_and_goes_on_once_there_is_some(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)

    with ExitStack() as disks:
        for broker_id in cluster.brokers:
            disks.enter_context(full_disk(cluster, broker_id))
        result = shell.run("produce", "t", "--timeout", "8s", stdin=b"refused\n")
        assert result.status != ExitStatus.OK
        found = shell.health()["storage"]["found"]
        assert any("No space left" in one or "File too large" in one for one in found)

    shell.produce(["one more"])
    cluster.await_full_isr([partition])
    shell.await_healthy_storage()
    assert [one for one in shell.consume() if one != "refused"] == [*LINES, "one more"]
    cluster.await_equal_logs(partition)


def damage(cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition) -> Path:
    """Flip a byte in the second segment of a replica, and return its file."""
    segments = sorted(cluster.directory_of(broker_id, partition).glob("*.pylog"))
    assert len(segments) > 2
    flip_byte(segments[1], 5000)
    return segments[1]


def await_mended(cluster: ReplicatedCluster, shell: Shell, partition: TopicPartition) -> None:
    """Wait until all replicas are in sync, equal, and in good order by all commands."""
    cluster.await_full_isr([partition])
    shell.await_healthy_storage()
    cluster.await_equal_logs(partition)
    assert shell.run("log", "compare", "t").status == ExitStatus.OK


@pytest.mark.parametrize("options", [(), ("--group", "g")], ids=["alone", "group"])
def test_consume_when_the_leader_has_a_damaged_segment_then_reads_on_and_it_is_mended(
    start_cluster: StartCluster, invoke: Invoke, options: tuple[str, ...]
) -> None:
    cluster = start_cluster(log_file_size="50000")
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)
    leader = cluster.leader(partition)
    segment = damage(cluster, leader, partition)

    assert shell.consume(*options) == LINES

    await_mended(cluster, shell, partition)
    said = cluster.output_of(leader)
    assert f"is damaged in {segment}" in said
    assert f"{segment} has good messages again" in said
    assert invoke("log", "verify", str(segment.parent)).status == ExitStatus.OK


def test_consume_when_a_segment_of_the_leader_became_shorter_then_reads_on_and_it_is_replaced(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(log_file_size="50000")
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)
    leader = cluster.leader(partition)
    segment = min(cluster.directory_of(leader, partition).glob("*.pylog"))
    os.truncate(segment, 5000)

    assert shell.consume() == LINES

    await_mended(cluster, shell, partition)
    assert f"cannot read {partition}" in cluster.output_of(leader)


def test_follower_when_new_and_the_leader_has_a_damaged_segment_then_gets_it_from_the_next_one(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(log_file_size="50000")
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)
    leader = cluster.leader(partition)
    follower = next(one for one in cluster.brokers if one != leader)
    directory = cluster.directory_of(follower, partition)
    cluster.stop(follower)
    directory.rename(directory.with_name("lost"))
    damage(cluster, leader, partition)

    cluster.start(follower)

    await_mended(cluster, shell, partition)
    assert shell.consume() == LINES


def test_consume_when_all_replicas_are_damaged_in_one_place_then_stops_there_and_they_stay_in_sync(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(log_file_size="50000")
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)
    for broker_id in cluster.brokers:
        damage(cluster, broker_id, partition)

    words = ("consume", "t", "-o", "start", "-e")
    assert shell.run(*words).status == ExitStatus.CORRUPT
    assert any("is damaged in" in one for one in shell.health()["storage"]["found"])
    shell.produce(["one more"])
    cluster.await_full_isr([partition])
    skipped = shell.run(*words, "--on-corrupt", "skip")
    assert skipped.status == ExitStatus.PARTIAL
    lines = skipped.text.splitlines()
    assert "one more" in lines  # twice if the leader moved before it was acknowledged
    intact = [one for one in lines if one != "one more"]
    assert intact == [one for one in LINES if one in intact]
    assert len(intact) == len(LINES) - 1


def test_leader_when_what_is_not_committed_lies_behind_what_it_cannot_read_then_is_mended(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(replica_lag_time_max_ms="60000", zk_sessiontimeout_ms="60000")
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell)
    state = cluster.state(partition)
    assert state is not None
    leader = state.leader
    *_, frozen = (one for one in state.replicas if one != leader)
    cluster.freeze(frozen)  # in sync, so that nothing more is committed
    connection = cluster.connect(leader)
    sets = (PartitionSet(partition, encode([b"not committed"])),)
    (published,) = decode_publish_response(
        connection.call(PublishRequest(Acks.WRITTEN, 1000, sets))
    )
    assert published.error == 0
    connection.close()

    (segment,) = cluster.directory_of(leader, partition).glob("*.pylog")
    os.truncate(segment, 5000)
    shell.run("consume", "t", "-o", "start", "-n", "1000", "--timeout", "5s")
    cluster.await_leader(partition, other_than=leader)
    cluster.thaw(frozen)

    await_mended(cluster, shell, partition)
    assert [one for one in shell.consume() if one != "not committed"] == LINES


@pytest.mark.parametrize("lack", ["room", "descriptors"])
def test_follower_when_it_lacks_room_or_descriptors_then_publishes_do_not_wait_for_its_lag_time(
    start_cluster: StartCluster, invoke: Invoke, lack: str
) -> None:
    # small segments, as what is open stays open; the lag time is longer than the test may take
    size = {"log_file_size": "100000"} if lack == "descriptors" else {}
    cluster = start_cluster(2, replica_lag_time_max_ms="600000", **size)
    shell = Shell(cluster, invoke)
    partition = filled(cluster, shell, replicas=2)
    leader = cluster.leader(partition)
    follower = 1 - leader
    lacking = full_disk if lack == "room" else no_descriptors
    with lacking(cluster, follower):
        for _ in range(5):  # more than a segment
            shell.produce(LINES[:200])
        state = cluster.state(partition)
        assert state is not None and state.isr == (leader,)
    cluster.await_full_isr([partition])
    cluster.await_equal_logs(partition)
