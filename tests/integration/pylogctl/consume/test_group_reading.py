"""Reading as a member of a group, held up where a process would only be now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from broker import Broker, Connection, ConsumerConfig, ConsumerConnector
from broker.client.list_offsets import OffsetLister
from broker.client.registry_cluster import RegistryCluster
from broker.errors import BrokerUnreachableError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from pylogctl.consume.group import GroupReader
from tests.integration.pylogctl.consume.test_consume import fill
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


class Reading:
    """A member that reads a topic to the end it has now, but fetches only when it may."""

    def __init__(self, reader: GroupReader, connector: ConsumerConnector) -> None:
        self.polls = reader.polls()
        self.connector = connector
        self.may_fetch = threading.Event()


@contextmanager
def reading(
    registry: Registry, topic: str = "t", *, unowned_limit_s: float = 60
) -> Iterator[Reading]:
    def connect(address: BrokerAddress) -> Connection:
        if not made.may_fetch.is_set():
            raise BrokerUnreachableError("not yet")  # tried again soon
        return Connection(address)

    cluster = RegistryCluster(registry)
    config = ConsumerConfig(
        group="g", zookeeper=registry.connect, consumer_timeout_ms=50, offset_reset="smallest"
    )
    with (
        OffsetLister(cluster, Connection) as positions,
        ConsumerConnector(config, registry=registry, connect=connect) as connector,
    ):
        stream = connector.create_shared_stream([topic])
        ends = {one: positions.latest(one) for one in cluster.partitions(topic)}
        reader = GroupReader(
            connector,
            stream,
            ends,
            positions,
            patience_s=60,
            unowned_limit_s=unowned_limit_s,
        )
        made = Reading(reader, connector)
        try:
            yield made
        finally:
            made.may_fetch.set()


@pytest.fixture
def broker(start_broker: Callable[..., Broker], zookeeper: str) -> Broker:
    """A broker with two messages in topic t."""
    started = start_broker(zookeeper=zookeeper)
    fill(started, "t", [b"1", b"2"])
    return started


@pytest.fixture
def registry(broker: Broker, zookeeper: str) -> Iterator[Registry]:
    """A registry that knows of the topic."""
    with Registry(zookeeper) as started:
        wait_until(lambda: started.session.exists(paths.topic_broker("t", 0)), "the registration")
        yield started


def test_reading_when_a_stored_offset_is_out_of_range_then_ends_only_after_all_that_is_there(
    registry: Registry,
) -> None:
    registry.session.create(f"{paths.group('g')}/offsets/t/0-0", b"5000")
    with reading(registry) as member:
        polls = member.polls
        wait_until(lambda: not next(polls) and member.connector.await_assignment(0), "a share")

        assert not next(polls)
        member.may_fetch.set()
        (assigned,) = next(poll for poll in polls if poll)

    assert assigned.offset == 0


def test_reading_when_a_partition_is_empty_then_ends_only_after_its_start_is_known_and_committed(
    registry: Registry, broker: Broker
) -> None:
    broker.logs.creation.create_topic("empty", 1)
    node = paths.topic_broker("empty", 0)
    wait_until(lambda: registry.session.exists(node), "the registration")
    with reading(registry, "empty") as member:
        polls = member.polls
        wait_until(lambda: not next(polls) and member.connector.await_assignment(0), "a share")

        assert not next(polls)
        member.may_fetch.set()
        assert not any(polls)

    offset, _ = registry.session.get(paths.offset("g", TopicPartition("empty", 0, 0)))
    assert offset == b"0"


def without_partitions(member: Reading) -> bool:
    """Poll; return whether a rebalance has taken the member's partitions away."""
    assert not next(member.polls)
    return member.connector.await_assignment(0) and not member.connector.positions


def test_reading_when_the_broker_is_not_registered_for_a_while_then_ends_only_after_all_is_read(
    registry: Registry, broker: Broker, start_broker: Callable[..., Broker], zookeeper: str
) -> None:
    with reading(registry) as member:
        wait_until(lambda: member.connector.positions, "a share")
        broker.stop()
        wait_until(lambda: without_partitions(member), "a rebalance without the broker")

        assert not next(member.polls)
        start_broker(zookeeper=zookeeper, port=broker.port)
        member.may_fetch.set()
        (assigned,) = next(poll for poll in member.polls if poll)

    assert assigned.offset == 0


def test_reading_when_the_broker_is_not_registered_for_long_then_fails_and_names_the_partition(
    registry: Registry, broker: Broker
) -> None:
    with reading(registry, unowned_limit_s=0) as member:
        wait_until(lambda: member.connector.positions, "a share")
        broker.stop()

        with pytest.raises(BrokerUnreachableError, match=r"can read t\[0-0\] to the end"):
            wait_until(lambda: without_partitions(member) and next(member.polls), "the failure")


def test_reading_when_all_is_of_another_member_then_ends_once_that_owns_it(
    registry: Registry,
) -> None:
    other = "g_0"  # the first in the order of ids, which gets the only partition
    registry.session.create(paths.consumer("g", other), b'{ "t": 1 }', ephemeral=True)
    with reading(registry) as member:
        wait_until(lambda: without_partitions(member), "a rebalance")
        assert not next(member.polls)

        node = paths.owner("g", TopicPartition("t", 0, 0))
        registry.session.create(node, f"{other}-0".encode(), ephemeral=True)

        assert next(member.polls, None) is None
