"""What is found out about topics when a broker of the registry is down."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from broker import Broker, Connection, TopicPartition
from broker.admin.topics import Ends, TopicFacts
from broker.client.cluster import Cluster
from broker.client.side import Side
from broker.errors import BrokerUnreachableError
from broker.protocol.responses import BrokerAddress, PartitionMetadata

HERE, GONE = TopicPartition("t", 0, 0), TopicPartition("t", 9, 0)
METADATA = [PartitionMetadata(one, 0, one.home, (one.home,), (one.home,)) for one in (HERE, GONE)]


class RegisteredCluster(Cluster):
    """Topic t on broker 0, which runs, and on broker 9, which the registry has not missed yet."""

    def __init__(self, port: int, closed_port: int) -> None:
        self._brokers = [
            BrokerAddress(0, "127.0.0.1", port),
            BrokerAddress(9, "127.0.0.1", closed_port),
        ]
        self.connected: list[int] = []

    def brokers(self) -> list[BrokerAddress]:
        return self._brokers

    def topics(self) -> list[str]:
        return ["t"]

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [HERE, GONE]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return next(one for one in self._brokers if one.id == partition.home)

    def connect(self, address: BrokerAddress) -> Connection:
        self.connected.append(address.id)
        return Connection(address, timeout_s=60, connect_timeout_s=0.05)


@pytest.fixture
def cluster(running_broker: Broker) -> Iterator[RegisteredCluster]:
    with socket.socket() as closed:  # bound but not listening: nobody else gets the port
        closed.bind(("127.0.0.1", 0))
        yield RegisteredCluster(running_broker.port, closed.getsockname()[1])


@pytest.fixture
def facts(cluster: RegisteredCluster) -> Iterator[TopicFacts]:
    with TopicFacts(Side(cluster, cluster.connect)) as opened:
        yield opened


def test_summary_when_a_broker_is_down_has_no_ends_and_the_failure_is_noted(
    facts: TopicFacts,
) -> None:
    (topic,), ends = facts.summaries({"t": METADATA})
    assert (topic.size_bytes, ends) == (None, {HERE: Ends(0, 0)})
    assert ["cannot reach broker 9" in str(one) for one in facts.failures] == [True]


def test_describe_when_a_broker_is_down_leaves_gaps_there_only(facts: TopicFacts) -> None:
    here, gone = (facts.describe(one, now_ms=1) for one in (HERE, GONE))
    assert ((here.start, here.end), gone.end, gone.leader) == ((0, 0), None, 9)


def test_a_broker_that_is_down_is_not_asked_again(
    facts: TopicFacts, cluster: RegisteredCluster
) -> None:
    for _ in range(3):
        facts.describe(GONE, now_ms=1)
    assert cluster.connected == [9]
    with pytest.raises(BrokerUnreachableError):
        facts.ends(GONE)


def test_check_any_response_raises_only_if_no_broker_responded(facts: TopicFacts) -> None:
    facts.summaries({"t": METADATA})
    facts.check_any_response([HERE, GONE])
    facts.check_any_response([])
    with pytest.raises(BrokerUnreachableError, match="broker 9"):
        facts.check_any_response([GONE])
