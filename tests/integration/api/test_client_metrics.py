"""Metrics of clients in a registry of the program, at brokers with a double of ZooKeeper."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter

import pylogctl
from broker import ConsumerConfig, ConsumerConnector, Producer, ProducerConfig
from broker.client.metrics import MANAGED_OBJECTS
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES
from pylogctl.testing import Cluster, memory_cluster
from tests.support.waiting import wait_until

_numbers = itertools.count()
_ENTRY_BYTES = ENTRY_OVERHEAD_BYTES + 1  # of a message of one byte


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with memory_cluster() as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"orders-{next(_numbers)}"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"pylogctl_{name}", labels)


def names(registry: CollectorRegistry) -> set[str]:
    return {sample.name for family in registry.collect() for sample in family.samples}


def test_producers_when_messages_are_sent_then_are_counted_by_topic_and_stay_when_closed(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    with cluster.connect() as client:
        client.register_metrics(registry)
        client.send(topic, "a")
        with client.producer() as producer:
            producer.send_many(topic, ["b"] * 9)
        assert value(registry, "producer_messages_total", topic=topic) == 10
        assert value(registry, "producer_bytes_total", topic=topic) == 10 * _ENTRY_BYTES
        assert value(registry, "producer_errors_total", topic=topic) == 0
        assert value(registry, "producer_retries_total", topic=topic) == 0
        assert value(registry, "producer_queued_messages") == 0
        assert value(registry, "producer_in_flight_requests") == 0
        for name in ("queue_seconds", "request_seconds", "batch_bytes"):
            assert value(registry, f"producer_{name}_count") == 2
        assert value(registry, "producer_batch_bytes_sum") == 10 * _ENTRY_BYTES


def test_producer_when_its_broker_is_away_then_counts_retries_errors_and_what_is_queued(
    registry: CollectorRegistry,
) -> None:
    with memory_cluster() as away, away.connect(timeout=2) as client:
        client.register_metrics(registry)
        producer = client.producer(linger=3600)
        delivery = producer.send("orders", "a")
        assert value(registry, "producer_queued_messages") == 1
        away.broker(0).kill()
        with pytest.raises(pylogctl.DeliveryFailed):
            producer.close(timeout=3)
        assert delivery.exception() is not None
        assert value(registry, "producer_errors_total", topic="orders") == 1
        assert value(registry, "producer_queued_messages") == 0
        assert value(registry, "producer_in_flight_requests") == 0
        assert value(registry, "producer_messages_total", topic="orders") == 0
        assert (value(registry, "producer_retries_total", topic="orders") or 0) >= 1


def test_reader_when_it_reads_then_its_position_and_lag_are_there_until_it_is_closed(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    with cluster.connect() as client:
        client.register_metrics(registry)
        client.send_many(topic, ["a", "b"], partition="0-0")
        where = {"group": "", "topic": topic, "partition": "0-0"}
        with client.read(topic, stop=None) as reader:
            next(reader)
            assert value(registry, "consumer_position_bytes", **where) == 2 * _ENTRY_BYTES
            assert value(registry, "consumer_lag_bytes", **where) == 0
            assert value(registry, "consumer_lag_max_bytes", group="") == 0
        assert value(registry, "consumer_lag_bytes", **where) is None
        assert value(registry, "consumer_lag_max_bytes", group="") is None
        assert value(registry, "consumer_messages_total", group="", topic=topic) == 2
        assert value(registry, "consumer_bytes_total", group="", topic=topic) == 2 * _ENTRY_BYTES
        assert (value(registry, "consumer_fetch_seconds_count", group="") or 0) >= 1


def test_group_when_it_handles_commits_and_leaves_then_its_series_follow(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    with cluster.connect() as client:
        client.register_metrics(registry)
        client.send_many(topic, ["a", "b", "c"], partition="0-0")
        where = {"group": topic, "topic": topic, "partition": "0-0"}
        with client.group(topic, topic, start="earliest", commit="manual") as group:
            next(group)
            next(group)
            assert value(registry, "consumer_position_bytes", **where) == _ENTRY_BYTES
            assert value(registry, "consumer_lag_bytes", **where) == 2 * _ENTRY_BYTES
            assert value(registry, "consumer_lag_max_bytes", group=topic) == 2 * _ENTRY_BYTES
            assert value(registry, "consumer_assigned_partitions", group=topic) == 1
            assert value(registry, "consumer_commits_total", group=topic, outcome="done") == 0
            group.commit()
            assert value(registry, "consumer_commits_total", group=topic, outcome="done") == 1
            assert value(registry, "consumer_commit_seconds_count", group=topic) == 1
            done = value(registry, "consumer_rebalances_total", group=topic, outcome="done")
            assert done is not None
            assert done >= 1
            assert value(registry, "consumer_rebalance_seconds_count", group=topic) == done
        assert value(registry, "consumer_lag_bytes", **where) is None
        assert value(registry, "consumer_assigned_partitions", group=topic) == 0
        assert value(registry, "consumer_messages_total", group=topic, topic=topic) == 3


def test_group_when_another_member_takes_a_partition_then_its_series_go(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    def shown() -> set[str]:
        """Return the partitions with a position."""
        families = {one.name: one for one in registry.collect()}
        found = families.get("pylogctl_consumer_position_bytes")
        return {sample.labels["partition"] for sample in found.samples} if found else set()

    with cluster.connect() as client, cluster.connect() as other:
        client.create_topic(topic, partitions=2)
        for partition in ("0-0", "0-1"):
            client.send(topic, "a", partition=partition)
        client.register_metrics(registry)
        with client.group(topic, topic, start="earliest") as group:
            next(group)
            next(group)
            assert shown() == {"0-0", "0-1"}
            assert value(registry, "consumer_assigned_partitions", group=topic) == 2
            with other.group(topic, topic, start="earliest"):
                wait_until(lambda: len(shown()) == 1, "one partition")
                assert shown() == {one.name for one in group.assigned}
                assert value(registry, "consumer_assigned_partitions", group=topic) == 1


def test_group_when_a_commit_comes_too_late_then_it_counts_as_failed(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    with cluster.connect() as client:
        client.register_metrics(registry)
        client.send(topic, "a", partition="0-0")
        with client.group(topic, topic, start="earliest", commit="manual") as group:
            next(group)
            zookeeper = client._zookeeper().session
            zookeeper.delete(f"/consumers/{topic}/owners/{topic}/0-0")
            with pytest.raises(pylogctl.Conflict):
                group.commit()
            assert value(registry, "consumer_commits_total", group=topic, outcome="failed") == 1


def test_client_of_a_loop_when_it_sends_and_reads_then_counts_the_same(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    async def main() -> None:
        async with pylogctl.aconnect(cluster.address) as client:
            client.register_metrics(registry)
            await client.send(topic, "a")
            async with client.producer() as producer:
                await producer.send_many(topic, ["b", "c"])
            assert [message.text() async for message in client.read(topic)] == ["a", "b", "c"]
            async with client.group(topic, topic, start="earliest", idle=30) as group:
                async for _ in group:
                    break
            assert value(registry, "producer_messages_total", topic=topic) == 3
            assert value(registry, "producer_request_seconds_count") == 2
            assert value(registry, "consumer_messages_total", group="", topic=topic) == 3
            assert (value(registry, "consumer_fetch_seconds_count", group="") or 0) >= 1
            assert value(registry, "consumer_messages_total", group=topic, topic=topic) == 3
            assert names(registry)
        assert names(registry) == set()

    asyncio.run(main())


def test_clients_when_they_share_a_registry_then_need_labels_and_go_when_closed(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    with cluster.connect() as one:
        one.register_metrics(registry)
        with cluster.connect() as two:
            with pytest.raises(pylogctl.Error, match="these labels") as caught:
                two.register_metrics(registry)
            assert "register_metrics" in caught.value.hints[0]
            for name in ("topic", "le", "a-b", "__name__"):
                with pytest.raises(pylogctl.Error, match=f"'{name}' cannot be a label"):
                    two.register_metrics(registry, **{name: "x"})
            two.register_metrics(registry, client="two")
            two.send(topic, "a")
            found = value(registry, "producer_messages_total", topic=topic, client="two")
            assert found == 1
        assert value(registry, "producer_queued_messages", client="two") is None
        assert value(registry, "producer_queued_messages") == 0
        families = [family.name for family in registry.collect()]
        assert len(families) == len(set(families))
    with pytest.raises(pylogctl.Closed):
        one.register_metrics(registry)
    with cluster.connect() as three:
        three.register_metrics(registry)
        assert value(registry, "producer_queued_messages") == 0


def test_registry_when_a_program_has_a_metric_of_a_name_then_says_so_and_nothing_is_global(
    cluster: Cluster, topic: str
) -> None:
    assert not any(name.startswith("pylogctl_") for name in names(REGISTRY))
    with cluster.connect() as client:
        client.register_metrics(REGISTRY)  # which collects to find clashes of names
        with pytest.raises(ValueError, match="pylogctl_consumer_lag_bytes"):
            Counter("pylogctl_consumer_lag_bytes", "clashes")
    assert not any(name.startswith("pylogctl_") for name in names(REGISTRY))


def test_classes_of_kafka_when_they_register_then_count_for_themselves(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    config = ProducerConfig.from_properties({"zk.connect": cluster.zookeeper})
    with Producer.from_config(config) as producer:
        producer.register_metrics(registry)
        producer.send(topic, [b"a", b"b"])
        assert value(registry, "producer_messages_total", topic=topic) == 2
        group = ConsumerConfig.from_properties(
            {"zk.connect": cluster.zookeeper, "groupid": topic, "autooffset.reset": "smallest"}
        )
        with ConsumerConnector(group) as member:
            member.register_metrics(registry, program="billing")
            ((stream,),) = member.create_message_streams({topic: 1}).values()
            next(iter(stream))
            labels = {"group": topic, "program": "billing"}
            assert value(registry, "consumer_messages_total", topic=topic, **labels) == 2
            assert value(registry, "consumer_assigned_partitions", **labels) == 1
        assert value(registry, "consumer_assigned_partitions", **labels) is None
    assert names(registry) == set()


def test_families_when_a_client_has_done_all_then_each_declared_one_has_samples(
    cluster: Cluster, topic: str, registry: CollectorRegistry
) -> None:
    declared = {
        f"pylogctl_{metric.series.partition('{')[0]}"
        for managed in MANAGED_OBJECTS
        for metric in managed.metrics
    }
    with cluster.connect() as client:
        client.register_metrics(registry)
        client.send(topic, "a")
        with client.group(topic, topic, start="earliest") as group:
            next(group)
            found = {one.name.removesuffix("_total") for one in registry.collect() if one.samples}
            assert found == {name.removesuffix("_total") for name in declared}
