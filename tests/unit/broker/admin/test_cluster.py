"""What the metadata of a cluster means."""

from __future__ import annotations

from broker.admin.cluster import FAIL, OK, WARN, broker_infos, health_checks
from broker.protocol.responses import (
    BrokerAddress,
    ClusterMetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from broker.topic import TopicPartition

REPLICATED = PartitionMetadata(TopicPartition("t", 0, 0), 0, 0, (0, 1), (0,), 3, 1)


def metadata(*partitions: PartitionMetadata, live: tuple[int, ...]) -> ClusterMetadataResponse:
    brokers = tuple(BrokerAddress(id, "host", 9000 + id) for id in live)
    topics = (TopicMetadata("t", 0, partitions),)
    return ClusterMetadataResponse("cluster", 0, 0, brokers, {}, topics)


def test_describe_when_a_broker_with_a_replica_is_gone_then_it_is_shown_without_an_address() -> (
    None
):
    here, gone = broker_infos(metadata(REPLICATED, live=(0,)))

    assert (here.id, here.is_live, here.address, here.leads) == (0, True, "host:9000", 1)
    assert (gone.id, gone.is_live, gone.address) == (1, False, None)
    assert (gone.leads, gone.replicas, gone.in_sync) == (0, 1, 0)


def test_health_when_a_broker_with_a_replica_is_gone_then_fails_and_names_it() -> None:
    def check(live: tuple[int, ...], *suspected: int) -> tuple[str, tuple[str, ...]]:
        found = health_checks(metadata(REPLICATED, live=live), suspected)
        checks = {one.name: one for one in found}
        return checks["brokers not there"].result, checks["brokers not there"].found

    assert check((0,)) == (FAIL, ("broker 1",))
    assert check((0, 1)) == (OK, ())
    assert check((0, 1), 1) == (FAIL, ("broker 1 (taken for dead)",))


def test_health_when_several_brokers_have_a_topic_without_replicas_then_warns_of_it() -> None:
    single = PartitionMetadata(TopicPartition("t", 0, 0), 0, 0, (0,), (0,))

    def check(partition: PartitionMetadata, live: tuple[int, ...]) -> tuple[str, tuple[str, ...]]:
        checks = {one.name: one for one in health_checks(metadata(partition, live=live))}
        return checks["without replicas"].result, checks["without replicas"].found

    assert check(single, (0, 1)) == (WARN, ("t",))
    assert check(single, (0,)) == (OK, ())
    assert check(REPLICATED, (0, 1)) == (OK, ())
