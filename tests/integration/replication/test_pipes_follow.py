"""`pylogctl produce` into topics with replicas, in all its ways, while their leaders change.

Each test counts lines, order and status of all pipes: none ends, nothing is missing, and the first
copies of all lines are in order in each partition.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from broker.protocol.codec import encode
from broker.topic import TopicPartition
from broker.zk.paths import parse_connect_string
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.network import CLIENT, ZOOKEEPER
from tests.integration.replication.pipes import FEW_WAYS, WAYS, Pipe, Way
from tests.integration.replication.replicated_cluster import (
    ReplicatedCluster,
)
from tests.integration.replication.test_consumers_follow import await_orders
from tests.integration.replication.test_metrics import metrics
from tests.support.command_line import Invoke, Spawn, first_note
from tests.support.command_line import spawn as spawn
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

StartPipes = Callable[..., list[Pipe]]


@pytest.fixture
def start_pipes(spawn: Spawn, tmp_path: Path) -> Iterator[StartPipes]:
    """Start a pipe of each of some ways; the clients reach ZooKeeper through the network."""
    pipes: list[Pipe] = []

    def start(cluster: ReplicatedCluster, ways: Sequence[Way] = WAYS) -> list[Pipe]:
        connect = parse_connect_string(cluster.zookeeper)
        ((_, port),) = connect.hosts
        door = cluster.network.door_to_zookeeper(CLIENT, port)
        for way in ways:
            place = f"127.0.0.1:{door}{connect.chroot}"
            pipes.append(Pipe(cluster, spawn, way, tmp_path, place))
        await_progress(pipes)
        return pipes

    yield start
    for pipe in pipes:
        pipe.end()


def await_progress(pipes: list[Pipe]) -> None:
    for pipe in pipes:
        pipe.await_progress()


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def has_written(
    cluster: ReplicatedCluster, broker_id: int, partition: TopicPartition, size: int
) -> bool:
    return len(cluster.log_bytes(broker_id, partition)[1]) >= size


def finish(pipes: list[Pipe]) -> None:
    for pipe in pipes:
        pipe.finish()


def partitions_of(pipes: list[Pipe]) -> list[TopicPartition]:
    return [partition for pipe in pipes for partition in pipe.partitions]


def test_pipes_when_leaders_are_stopped_elected_and_reassigned_then_lose_nothing(
    start_cluster: StartCluster, start_pipes: StartPipes, invoke: Invoke
) -> None:
    cluster = start_cluster()
    pipes = start_pipes(cluster)
    for broker_id in (1, 0):
        stopped = invoke("broker", "stop", f"{broker_id}", "--yes", "-Z", cluster.zookeeper)
        assert stopped.status == 0, stopped.stderr
        cluster.stop(broker_id)
        await_progress(pipes)
        cluster.start(broker_id)
        cluster.await_full_isr(partitions_of(pipes))
        await_progress(pipes)
    elected = invoke("topic", "elect", "-Z", cluster.zookeeper)
    assert elected.status == 0, elected.stderr
    await_progress(pipes)
    topics = [one.way.name for one in pipes]
    moved = ("--to", "0,1", "--replication-factor", "2", "-Z", cluster.zookeeper)
    reassigned = invoke("topic", "reassign", "execute", *topics, *moved)
    assert reassigned.status == 0, reassigned.stderr

    def has_moved() -> bool:
        states = [cluster.state(one) for one in partitions_of(pipes)]
        return all(one is not None and set(one.isr) == {0, 1} for one in states)

    wait_until(has_moved, "the end of the reassignment")
    await_progress(pipes)
    finish(pipes)


def test_pipes_when_each_broker_is_killed_in_turn_then_lose_nothing_and_a_group_reads_all_once(
    start_cluster: StartCluster, start_pipes: StartPipes, spawn: Spawn, tmp_path: Path
) -> None:
    cluster = start_cluster()
    pipes = start_pipes(cluster)
    output = tmp_path / "consumed"
    reading = ("consume", "plain", "--group", "g", "-o", "start")
    with output.open("wb") as stdout:
        group = spawn(*reading, "-Z", cluster.zookeeper, stdout=stdout, stderr=subprocess.DEVNULL)
    for broker_id in (0, 1, 2):  # one of them is the controller
        cluster.kill_replaceable(broker_id, partitions_of(pipes), session_lives_on=broker_id == 0)
        await_progress(pipes)
        cluster.start(broker_id)
        await_progress(pipes)
    finish(pipes)
    (stored,) = pipes[0].stored().values()
    all_lines = b"".join(b"%d\n" % number for number in stored)
    wait_until(lambda: output.stat().st_size >= len(all_lines), "all messages in the group")
    group.terminate()
    group.wait(60)
    assert output.read_bytes() == all_lines


def test_pipes_when_too_few_replicas_are_in_sync_then_wait_for_them(
    start_cluster: StartCluster, start_pipes: StartPipes
) -> None:
    cluster = start_cluster()
    pipes = start_pipes(cluster, FEW_WAYS)
    partitions = partitions_of(pipes)
    for broker_id in (1, 2):  # what is on its way has an unknown outcome
        cluster.freeze(broker_id)

    def leads_alone() -> bool:
        states = [cluster.state(one) for one in partitions]
        return any(state is not None and state.isr == (0,) for state in states)

    wait_until(leads_alone, "a leader that is alone in sync")
    for broker_id in (1, 2):
        cluster.kill(broker_id)
    wait_until(
        lambda: any("waiting up to" in pipe.said for pipe in pipes), "a pipe that says it waits"
    )
    for broker_id in (1, 2):
        cluster.start(broker_id)
    await_progress(pipes)
    finish(pipes)


def test_pipes_when_zookeeper_is_away_then_go_on_with_the_brokers(
    start_cluster: StartCluster, start_pipes: StartPipes
) -> None:
    cluster = start_cluster()
    pipes = start_pipes(cluster, FEW_WAYS)
    for side in (CLIENT, 0, 1, 2):
        cluster.network.cut(side, ZOOKEEPER)
    for _ in range(3):
        await_progress(pipes)
    cluster.network.heal()
    await_progress(pipes)
    finish(pipes)


@pytest.mark.parametrize("is_listed", [False, True])
def test_pipes_when_they_start_while_a_partition_has_no_leader_then_wait_for_it(
    start_cluster: StartCluster, invoke: Invoke, spawn: Spawn, is_listed: bool
) -> None:
    cluster = start_cluster()
    partitions = cluster.create_topic("t", 3, 2)
    cluster.await_full_isr(partitions)
    leaderless = partitions[0]
    state = cluster.state(leaderless)
    assert state is not None
    (kept,) = set(cluster.brokers) - set(state.replicas)
    door = f"127.0.0.1:{cluster.network.door_to_broker(kept)}"
    where = ("-b", door) if is_listed else ("-Z", cluster.zookeeper)
    keyed = b"".join(b"%d:%d\n" % (number, number) for number in range(50))
    assert invoke("produce", "t", *where, "-K", ":", stdin=keyed).status == 0
    words = ("s", "--partitions", "3", "-b", f"{kept}", "-Z", cluster.zookeeper)
    assert invoke("topic", "create", *words).status == 0
    planned = invoke("copy", "s", "t", "--dry-run", *where).stdout
    placed = {one: cluster.log_bytes(cluster.leader(one), one)[1] for one in partitions}
    assert all(placed.values())
    for broker_id in state.replicas:
        cluster.freeze(broker_id)  # so that none leads alone in the end
    for broker_id in state.replicas:
        cluster.kill(broker_id)
    wait_until(lambda: cluster.leader(leaderless) == -1, "a partition without a leader")
    assert invoke("copy", "s", "t", "--dry-run", *where).stdout == planned
    with (
        spawn("produce", "t", *where, "-K", ":", stdin=subprocess.PIPE) as by_key,
        spawn("produce", "t", *where, "-p", leaderless.name, stdin=subprocess.PIPE) as chosen,
    ):
        feed(by_key, keyed)
        feed(chosen, b"chosen\n")
        # others may have the same replicas, or their next leader a moment later
        for process, awaited in ((by_key, partitions), (chosen, [leaderless])):
            assert process.stdin is not None
            process.stdin.close()
            line = first_note(process)
            assert any(f"for the leader of {one}" in line for one in awaited), line
        for broker_id in state.replicas:
            cluster.start(broker_id)
        for process in (by_key, chosen):
            assert process.wait(120) == 0
    for one in partitions:
        cluster.await_equal_logs(one)
        _, data = cluster.log_bytes(cluster.await_leader(one), one)
        if one == leaderless:
            data = data.replace(encode([b"chosen"]), b"")
        assert data == 2 * placed[one]


def test_pipe_when_the_leader_hangs_then_says_so_and_ends_at_a_signal(
    start_cluster: StartCluster, spawn: Spawn
) -> None:
    cluster = start_cluster(zk_sessiontimeout_ms="10000")  # no session ends before it says so
    (partition,) = cluster.create_topic("t", 1, 3)
    await_orders(cluster, [partition])  # else it waits for the first leader, too
    with spawn("produce", "t", "-Z", cluster.zookeeper, stdin=subprocess.PIPE) as process:
        feed(process, b"0\n")
        cluster.await_equal_logs(partition)
        leader = cluster.leader(partition)
        wait_until(lambda: cluster.log_bytes(leader, partition)[1], "the first line")
        for broker_id in cluster.brokers:  # so that no other takes over
            cluster.freeze(broker_id)
        feed(process, b"1\n")
        said = first_note(process)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert "has not answered for 3s; waiting up to 2m00s for the leader of t" in said
    assert process.returncode == ExitStatus.TIMEOUT, stderr
    assert b"sent and not confirmed" in stderr


def test_pipe_when_told_not_to_wait_for_followers_and_the_leader_dies_then_says_what_is_lost(
    start_cluster: StartCluster, spawn: Spawn
) -> None:
    # followers' reads wait at the leader for longer than the test needs to freeze both and send;
    # until then none is taken for dead
    cluster = start_cluster(
        replica_lag_time_max_ms="60000",
        replica_fetch_wait_max_ms="30000",
        zk_sessiontimeout_ms="10000",
        broker_silence_ms="8000",
    )
    (partition,) = cluster.create_topic("t", 1, 3, min_insync_replicas="2")
    cluster.await_full_isr([partition])
    words = ("produce", "t", "-Z", cluster.zookeeper, "-X", "request.required.acks=1")
    with spawn(*words, stdin=subprocess.PIPE) as process:
        feed(process, b"0\n")
        cluster.await_equal_logs(partition)
        leader = cluster.leader(partition)
        wait_until(lambda: cluster.log_bytes(leader, partition)[1], "the first line")
        cluster.await_equal_logs(partition)

        def reads_wait(count: int) -> bool:
            return bool(metrics(cluster, leader)["Purgatory"]["FollowerReadWaiting"] == count)

        wait_until(partial(reads_wait, 2), "the reads of both followers")
        followers = [one for one in (0, 1, 2) if one != leader]
        for broker_id in followers:
            cluster.freeze(broker_id)
        for number in (1, 2):  # the first is in the followers' sockets, which wait for it
            feed(process, b"%d\n" % number)
            size = 11 * (number + 1)
            wait_until(partial(has_written, cluster, leader, partition, size), "the line")
            # a response that is made later would have both lines
            wait_until(partial(reads_wait, 0), "the responses to the followers")
        # so that followers read what is in their sockets before one of them leads
        cluster.kill(leader, session_lives_on=True)
        for broker_id in followers:
            cluster.thaw(broker_id)
        cluster.await_leader(partition, other_than=leader)
        _, stderr = process.communicate(b"3\n4\n5\n", timeout=120)
    assert process.returncode == ExitStatus.UNREACHABLE, stderr
    assert f"{partition}: messages before offset 33 were acknowledged".encode() in stderr
    assert b"the log has nothing of that behind offset 22" in stderr
