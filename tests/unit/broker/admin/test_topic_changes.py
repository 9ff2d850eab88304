"""Creating topics: what is waited for afterwards. The rest is tested with the command."""

from __future__ import annotations

import pytest

from broker.admin.topic_changes import (
    NewTopic,
    TopicCreation,
    check_absent,
    plan_creation,
)
from broker.client.cluster import Cluster
from broker.client.side import Side
from broker.client.topic_creation import await_topic
from broker.errors import BrokerNotFoundError, RequestTimeoutError, TopicExistsError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition


class SlowCluster(Cluster):
    """A cluster without brokers that shows a topic on one more home each time it is asked."""

    def __init__(self, homes: list[int]) -> None:
        self._homes = homes
        self.asked_count = 0

    def brokers(self) -> list[BrokerAddress]:
        return []

    def topics(self) -> list[str]:
        return []

    def partitions(self, topic: str) -> list[TopicPartition]:
        seen = self._homes[: self.asked_count]
        self.asked_count += 1
        return [TopicPartition(topic, home, 0) for home in seen]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        raise AssertionError("not asked for")


def test_await_topic_when_brokers_register_late_waits_for_all_of_them() -> None:
    cluster = SlowCluster([1, 2])
    await_topic(cluster, "t", {1, 2}, timeout_s=60)
    assert cluster.asked_count == 3


def test_await_topic_when_a_broker_never_registers_names_it() -> None:
    with pytest.raises(RequestTimeoutError, match=r"not registered by broker 7"):
        await_topic(SlowCluster([1]), "t", {1, 7}, timeout_s=0.2)


def test_check_absent_when_it_is_on_one_broker_says_where() -> None:
    here, there = (BrokerAddress(one, "h", 1) for one in (1, 2))
    plan = [TopicCreation(here, 0, 3), TopicCreation(there, 1, 3)]
    with pytest.raises(TopicExistsError, match="topic 't' exists on broker 2 with 1 partition"):
        check_absent("t", plan)


def test_plan_creation_when_no_broker_is_alive_is_not_found() -> None:
    def connect(address: BrokerAddress) -> object:
        raise AssertionError("nobody to connect to")

    with pytest.raises(BrokerNotFoundError, match="no live broker"):
        plan_creation(Side(SlowCluster([]), connect), NewTopic("t", 1))  # type: ignore[arg-type]  # never called
