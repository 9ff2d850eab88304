"""Reading as a member of a group, held up where a process would only be now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from broker import Broker, Connection, ConsumerConfig, ConsumerConnector
from broker.client.cluster import RegistryCluster
from broker.client.list_offsets import OffsetLister
from broker.consumer.offset_store import RegistryOffsets
from broker.protocol.responses import BrokerAddress
from broker.zk import paths
from broker.zk.registry import Registry
from pylogctl.consume.group import GroupReader, StartElsewhere
from tests.integration.pylogctl.consume.test_consume import fill
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


def test_reading_when_a_stored_offset_is_out_of_range_then_ends_only_after_all_that_is_there(
    start_broker: Callable[..., Broker], zookeeper: str
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    fill(broker, "t", [b"1", b"2"])
    may_fetch = threading.Event()

    def connect(address: BrokerAddress) -> Connection:
        assert may_fetch.wait(60)
        return Connection(address)

    with Registry(zookeeper) as registry:
        wait_until(lambda: registry.session.exists(paths.topic_broker("t", 0)), "the registration")
        registry.session.create(f"{paths.group('g')}/offsets/t/0-0", b"5000")
        cluster = RegistryCluster(registry)
        starts = StartElsewhere(
            RegistryOffsets(registry.session, "g"), lambda _: None, is_kept=False, warn=pytest.fail
        )
        config = ConsumerConfig(group="g", zookeeper=zookeeper, consumer_timeout_ms=50)
        with (
            OffsetLister(cluster, Connection) as positions,
            ConsumerConnector(
                config, offsets=starts, registry=registry, connect=connect
            ) as connector,
        ):
            stream = connector.create_shared_stream(["t"])
            ends = {one: positions.latest(one) for one in cluster.partitions("t")}
            reader = GroupReader(connector, stream, ends, positions, starts, patience_s=30)
            polls = reader.polls()
            wait_until(lambda: not next(polls) and connector.await_assignment(0), "a share")

            assert not next(polls)
            may_fetch.set()
            (assigned,) = next(poll for poll in polls if poll)

    assert assigned.offset == 0
