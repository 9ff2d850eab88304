"""`produce` to topics that do not exist yet, as the settings of the brokers say."""

from __future__ import annotations

import json

import pytest

from broker.topic import TopicPartition
from tests.integration.replication.conftest import StartCluster
from tests.support.command_line import Invoke

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize("how", [(), ("--partitioner", "round-robin"), ("-p", "1-0")])
def test_produce_when_default_replication_factor_is_two_then_all_is_on_two_brokers(
    start_cluster: StartCluster, invoke: Invoke, how: tuple[str, ...]
) -> None:
    cluster = start_cluster(default_replication_factor="2")
    place = ("-Z", cluster.zookeeper)
    lines = [str(number) for number in range(100)]

    produced = invoke("produce", "new", *how, *place, stdin="\n".join(lines).encode())

    assert produced.status == 0, produced.stderr
    partitions = [TopicPartition("new", home, 0) for home in range(3)]
    cluster.await_full_isr(partitions)
    described = invoke("topic", "describe", "new", *place, "--output", "json")
    assert all(len(one["replicas"]) == 2 for one in json.loads(described.text)["data"])
    for partition in partitions:
        cluster.await_equal_logs(partition)
    consumed = invoke("consume", "new", "--from-beginning", "--exit-at-end", *place)
    assert sorted(consumed.text.split(), key=int) == lines


def test_produce_when_auto_create_is_off_then_ends_with_an_error_that_says_how_to_create(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(1, auto_create_topics_enable="false")
    place = ("-Z", cluster.zookeeper)

    refused = invoke("produce", "new", *place, stdin=b"1\n")

    assert refused.status != 0
    assert "auto.create.topics.enable is false" in refused.stderr
    assert not cluster.has_topic("new")
    assert invoke("topic", "create", "new", "--partitions", "3", *place).status == 0
    produced = invoke("produce", "new", *place, stdin=b"1\n")
    assert produced.status == 0, produced.stderr
