"""A cluster that is known from ZooKeeper, while ZooKeeper is away."""

from __future__ import annotations

from typing import cast

import pytest

from broker.client.registry_cluster import RegistryCluster
from broker.errors import BrokerUnreachableError, RegistryUnreachableError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from broker.zk.registry import Registry
from broker.zk.session import SessionState


class Away:
    """A registry with broker 0, which fails once it is away."""

    def __init__(self) -> None:
        self.session = self
        self.state = SessionState.CONNECTED

    def brokers(self) -> list[BrokerAddress]:
        if self.state is not SessionState.CONNECTED:
            raise RegistryUnreachableError("it is away")
        return [BrokerAddress(0, "here", 1)]


def test_brokers_when_zookeeper_is_away_then_are_where_they_were() -> None:
    registry = Away()
    cluster = RegistryCluster(cast(Registry, registry))
    registry.state = SessionState.SUSPENDED
    with pytest.raises(RegistryUnreachableError):
        cluster.brokers()
    registry.state = SessionState.CONNECTED
    assert cluster.address(0).host == "here"
    registry.state = SessionState.LOST
    assert cluster.address(0).host == "here"
    assert cluster.leader(TopicPartition("t", 0, 0)).id == 0
    assert cluster.find_leaders(["t"]) == {}
    with pytest.raises(BrokerUnreachableError):
        cluster.address(1)
