"""An open cluster as those who look at it, or change it, are given it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.responses import BrokerAddress, ClusterMetadataResponse


class Side(NamedTuple):
    """An open cluster, how its brokers are asked, and how long a change of it may take."""

    cluster: Cluster
    connect: Connect
    timeout_s: float = 10.0

    @property
    def give_up_s(self) -> float:
        """When a change that begins now has taken too long, on the monotonic clock."""
        return time.monotonic() + self.timeout_s

    def until(self, give_up_s: float) -> Side:
        """Return the side for the rest of a change that may take until then."""
        return self._replace(timeout_s=max(0.0, give_up_s - time.monotonic()))

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        return self.cluster.brokers()

    def metadata(self, topics: Iterable[str] | None) -> ClusterMetadataResponse:
        """Return what the first broker that responds tells of topics, for None of all."""
        names = None if topics is None else tuple(topics)
        return cluster_metadata(self.brokers(), self.connect, names)

    def ask_controller(self, request: ExtensionRequest) -> Reader:
        """Send a request to the controller, once it is found; return the body of its response."""
        return ask_controller(self.brokers(), self.connect, request, timeout_s=self.timeout_s)
