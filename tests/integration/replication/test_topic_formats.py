"""`pylogctl topic` and `cluster` on topics of the format kafka, with three brokers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker.topic import NO_HOME, TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

ORDERS = [TopicPartition("orders", NO_HOME, number) for number in range(4)]


class Commands:
    """Commands on a cluster, with their rows."""

    def __init__(self, cluster: ReplicatedCluster, invoke: Invoke) -> None:
        self.cluster = cluster
        self._invoke = invoke

    def rows(self, *args: str, status: ExitStatus = ExitStatus.OK) -> list[dict[str, Any]]:
        to = ("-b", self.cluster.listed(), "--timeout", "60s")
        result = self._invoke(*args, *to, "--output", "json")
        assert result.status == status, result.stderr
        found: list[dict[str, Any]] = json.loads(result.text)["data"]
        return found

    def refusal(self, *args: str) -> str:
        result = self._invoke(*args, "-b", self.cluster.listed(), "--timeout", "60s")
        assert result.status != ExitStatus.OK
        return result.stderr

    def leaders(self) -> dict[str, int]:
        return {one["partition"]: one["leader"] for one in self.rows("topic", "describe", "orders")}


@pytest.fixture
def commands(start_cluster: StartCluster, invoke: Invoke) -> Commands:
    cluster = start_cluster()
    cluster.create_topic("first", 1, 3)  # once all brokers are trusted
    return Commands(cluster, invoke)


def test_topic_when_of_the_format_kafka_then_is_shown_enlarged_moved_and_deleted(
    commands: Commands,
) -> None:
    made = commands.rows(
        *("topic", "create", "orders", "--format", "kafka"),
        *("--partitions", "3", "--replication-factor", "3", "--set", "min.insync.replicas=2"),
    )
    assert [one["partition"] for one in made] == ["0", "1", "2"]
    assert {one["leader"] for one in made} == {0, 1, 2}
    assert [(one["name"], one["format"]) for one in commands.rows("topic", "list")] == [
        ("first", "0.7"),
        ("orders", "kafka"),
    ]
    described = commands.rows("topic", "describe", "orders")
    assert {(one["format"], one["state"], one["size_bytes"]) for one in described} == {
        ("kafka", "ok", 0)
    }

    added = commands.rows("topic", "alter", "orders", "--partitions", "4", "--yes")
    assert [(one["partition"], len(one["replicas"])) for one in added] == [("3", 3)]
    commands.rows("topic", "alter", "orders", "--replication-factor", "2", "--yes")
    wait_until(
        lambda: (
            {len(one["replicas"]) for one in commands.rows("topic", "describe", "orders")} == {2}
        ),
        "fewer replicas",
    )
    commands.cluster.await_full_isr(ORDERS)
    assert [
        one["partition"] for one in commands.rows("topic", "offsets", "orders", "-p", "1..2")
    ] == [
        "1",
        "2",
    ]
    assert {one["messages"] for one in commands.rows("topic", "count", "orders", "-p", "3")} == {0}

    commands.rows("topic", "delete", "orders", "--data", "--yes", "--confirm", "orders")
    assert [one["name"] for one in commands.rows("topic", "list")] == ["first"]
    for broker_id in range(3):
        assert not commands.cluster.directory_of(broker_id, ORDERS[0]).exists()


def test_topic_when_of_the_format_kafka_and_its_leader_dies_then_another_replica_leads(
    commands: Commands,
) -> None:
    commands.rows("topic", "create", "orders", "--format", "kafka", "--replication-factor", "3")
    first = commands.cluster.await_leader(ORDERS[0])
    commands.cluster.kill_leader(ORDERS[0])
    second = commands.cluster.await_leader(ORDERS[0], other_than=first)

    wait_until(lambda: commands.leaders() == {"0": second}, "the new leader in METADATA")

    def described() -> dict[str, Any]:
        (one,) = commands.rows("topic", "describe", "orders")
        return one

    wait_until(lambda: described()["state"] == "under-replicated", "the state of the partition")
    assert first not in described()["in_sync"]

    commands.cluster.start(first)
    commands.cluster.await_full_isr(ORDERS[:1])
    preferred = described()["replicas"][0]
    commands.rows("topic", "elect", "orders")
    wait_until(lambda: commands.leaders() == {"0": preferred}, "the preferred leader")


def test_create_when_the_format_does_not_fit_then_is_refused_by_name(commands: Commands) -> None:
    create = ("topic", "create")
    assert "in the format kafka it has at most 249" in commands.refusal(
        *create, "a b", "--format", "kafka"
    )
    assert "has no home brokers" in commands.refusal(
        *create, "orders", "--format", "kafka", "--broker", "0"
    )
    assert "give --partitions" in commands.refusal(
        *create, "orders", "--format", "kafka", "--partitions-per-broker", "2"
    )
    assert "exists with the format 0.7, which it has for life" in commands.refusal(
        *create, "first", "--format", "kafka", "--if-not-exists"
    )
    assert [one["name"] for one in commands.rows("topic", "list")] == ["first"]


def test_create_when_brokers_have_a_default_format_then_topics_get_it(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2, log_format="kafka", default_replication_factor="2")
    cluster.create_topic("first", 1, 1)
    commands = Commands(cluster, invoke)

    (made,) = commands.rows("topic", "create", "orders")
    commands.rows("topic", "create", "plain", "--format", "0.7")

    assert (made["partition"], sorted(made["replicas"])) == ("0", [0, 1])
    listed = invoke("broker", "list", "-Z", cluster.zookeeper, "--output", "json")
    assert sum(one["topics"] for one in json.loads(listed.text)["data"]) == 4  # of 1, 2 and 1
    assert {one["name"]: one["format"] for one in commands.rows("topic", "list")} == {
        "first": "kafka",
        "orders": "kafka",
        "plain": "0.7",
    }
