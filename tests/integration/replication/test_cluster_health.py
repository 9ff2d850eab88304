"""`pylogctl cluster describe` and `health` of brokers that are killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker.ids import NO_LEADER
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

StartCluster = Callable[..., ReplicatedCluster]


def test_broker_when_killed_then_all_that_show_brokers_name_it_until_it_is_back(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    (partition,) = cluster.create_topic("t", 1, 2)
    cluster.await_full_isr([partition])

    def ask(command: str) -> dict[Any, dict[str, Any]]:
        result = invoke("cluster", command, "-Z", cluster.zookeeper, "--output", "json")
        expected = (ExitStatus.OK, ExitStatus.THRESHOLD if command == "health" else ExitStatus.OK)
        assert result.status in expected, result.stderr
        rows = json.loads(result.text)["data"]
        return {row["name" if command == "health" else "id"]: row for row in rows}

    cluster.kill(1)
    wait_until(lambda: not ask("describe")[1]["is_live"], "the end of its session", deadline_s=60)
    row = ask("describe")[1]
    assert (row["address"], row["leads"], row["replicas"]) == (None, 0, 1)
    assert row["state"] == "down"
    assert ask("health")["brokers not there"]["found"] == ["broker 1"]
    for where in ("-Z", cluster.zookeeper), ("-b", cluster.listed()):
        listed = invoke("broker", "list", *where, "--output", "json")
        here, away = json.loads(listed.text)["data"]
        assert (here["state"], away["state"], away["first_topics"]) == ("up", "down", "t"), where
        every = invoke("broker", "status", *where, "--output", "json")
        phases = {row["id"]: row["phase"] for row in json.loads(every.text)["data"]}
        assert (every.status, phases) == (ExitStatus.PARTIAL, {0: "running", 1: "down"}), where
        one = invoke("broker", "status", "1", *where)
        assert one.status == ExitStatus.UNREACHABLE, where
        assert "broker 1 is down: it is not registered, and has logs of t" in one.stderr
        assert invoke("broker", "status", "7", *where).status == ExitStatus.NOT_FOUND
        assert invoke("broker", "stop", "1", *where, "--yes").status == ExitStatus.UNREACHABLE
        doctor = invoke("doctor", *where)
        assert doctor.status == ExitStatus.FAILED, where
        assert "broker 1 is down" in doctor.text

    cluster.start(1)
    wait_until(lambda: ask("describe")[1]["is_live"], "its registration", deadline_s=60)
    wait_until(lambda: ask("health")["brokers not there"]["result"] == "ok", "the word of health")


def lost_by_disks(cluster: ReplicatedCluster, invoke: Invoke) -> list[str]:
    result = invoke("cluster", "health", "-Z", cluster.zookeeper, "--output", "json")
    rows = {row["name"]: row["found"] for row in json.loads(result.text)["data"]}
    found: list[str] = rows["lost by disks"]
    return found


def test_topics_of_one_copy_when_a_disk_is_replaced_then_health_names_them_until_they_are_deleted(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    where = ("-Z", cluster.zookeeper)
    partitions = cluster.create_topic("one", 2, 1)
    (mine,) = (one for one in partitions if cluster.leader(one) == 1)
    create = ("topic", "create", "plain", "--broker", "1", "--partitions-per-broker", "2")
    assert invoke(*create, *where, "--yes").status == ExitStatus.OK
    cluster.kill(1)
    cluster.empty_disks(1)
    wait_until(lambda: cluster.leader(mine) == NO_LEADER, "the end of its session")

    cluster.start(1)
    cluster.await_leader(mine)
    # as its next message would
    assert invoke(*create, "--if-not-exists", *where, "--yes").status == ExitStatus.OK

    loss = "lost all messages with a disk; send them again, or delete the topic and create it again"
    expected = [f"one on broker 1: {mine.name} {loss}", f"plain on broker 1: 1-0, 1-1 {loss}"]
    wait_until(lambda: sorted(lost_by_disks(cluster, invoke)) == expected, "the loss")
    cluster.stop(1)
    cluster.start(1)
    cluster.await_leader(mine)
    wait_until(lambda: sorted(lost_by_disks(cluster, invoke)) == expected, "the loss, still")
    assert all(text in invoke("doctor", *where).text for text in expected)
    for topic in ("one", "plain"):
        options = (*where, "--data", "--yes", "--confirm", topic)
        assert invoke("topic", "delete", topic, *options).status == ExitStatus.OK
    wait_until(lambda: lost_by_disks(cluster, invoke) == [], "the deletions")


def test_topics_without_messages_when_brokers_restart_and_logs_move_then_none_counts_as_lost(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2, disk_count=2, zk_sessiontimeout_ms="6000")
    where = ("-Z", cluster.zookeeper)
    partitions = cluster.create_topic("one", 2, 1)
    (mine,) = (one for one in partitions if cluster.leader(one) == 1)
    create = ("topic", "create", "plain", "--partitions-per-broker", "1")
    assert invoke(*create, *where, "--yes").status == ExitStatus.OK
    here = cluster.directory_of(1, mine).parent
    (other,) = (disk for disk in cluster.disks_of(1) if disk != here)
    assert invoke("log", "move", str(mine), "--to", str(other), *where).status == ExitStatus.OK
    cluster.stop(1)
    cluster.start(1)
    cluster.await_leader(mine)
    cluster.kill(1, session_lives_on=True)
    early = cluster.create_topic("early", 2, 1)  # one of them on that broker, which has no log
    wait_until(lambda: cluster.leader(mine) == NO_LEADER, "the end of its session")
    wait_until(lambda: NO_LEADER in map(cluster.leader, early), "the end of what it leads")
    cluster.start(1)
    for partition in (mine, *early):
        cluster.await_leader(partition)

    assert lost_by_disks(cluster, invoke) == []
