"""Brokers of one cluster with ZooKeeper, as processes, for benchmarks of replication."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.broker_process import BrokerProcess, temporary_directory
from broker.client.connection import Connection
from broker.client.controller_client import ask_controller
from broker.cluster_state import ReplicatedPartition
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest, SettingText
from broker.protocol.replica_requests import PARTITIONS
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity
from broker.topic import TopicPartition
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import find_java
from broker.zk.session import Session

_WAIT_S = 120.0


class KnownState(NamedTuple):
    """What ZooKeeper says of a partition."""

    leader: int
    isr: tuple[int, ...]


class BenchCluster:
    """Brokers with ids from 0 on.

    Args:
        directory: where everything is kept.
        zookeeper: connect string.
        broker_count: how many brokers.
        properties: of all brokers, by their names.
        security: how to connect to them; None for plain connections.
    """

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        broker_count: int,
        properties: dict[str, str],
        security: ClientSecurity | None = None,
    ) -> None:
        self._security = security
        self._directory = directory
        self._properties = {"zk.connect": zookeeper, "zk.sessiontimeout.ms": "6000", **properties}
        self.session = Session(zookeeper)
        self.session.start()
        self.brokers: dict[int, BrokerProcess] = {}
        for broker_id in range(broker_count):
            self.start(broker_id)

    def start(self, broker_id: int) -> BrokerProcess:
        """Start a broker, with the data it had before."""
        directory = self.data(broker_id).parent
        directory.mkdir(exist_ok=True)
        broker = BrokerProcess(
            directory, self._security, brokerid=str(broker_id), **self._properties
        )
        self.brokers[broker_id] = broker
        return broker

    def data(self, broker_id: int) -> Path:
        """Return the data directory of a broker."""
        return self._directory / f"broker-{broker_id}" / "data"

    def stop(self, broker_id: int) -> None:
        """Shut a broker down."""
        self.brokers.pop(broker_id).stop()

    def kill(self, broker_id: int) -> None:
        """Kill a broker with SIGKILL."""
        self.brokers.pop(broker_id).kill()

    def close(self) -> None:
        """End all brokers."""
        for broker in self.brokers.values():
            broker.kill()
        self.session.stop()

    def connect(self, broker_id: int) -> Connection:
        """Return a connection to a broker."""
        return self.brokers[broker_id].connect()

    def create_topic(
        self, topic: str, partition_count: int, factor: int, min_isr: int = 1
    ) -> list[ReplicatedPartition]:
        """Create a topic and wait until all its replicas are in sync."""
        request = CreateReplicatedTopicRequest(
            topic, partition_count, factor, (SettingText("min.insync.replicas", str(min_isr)),)
        )
        addresses = [
            BrokerAddress(number, "127.0.0.1", one.port) for number, one in self.brokers.items()
        ]
        connect = partial(Connection, security=self._security)
        body = ask_controller(addresses, connect, request, timeout_s=_WAIT_S)
        created = PARTITIONS.decode(body)
        partitions = sorted(one.partition for one in created)
        self.await_isr(partitions, factor)
        return sorted(created)

    def states(self, partitions: Sequence[TopicPartition]) -> list[KnownState]:
        """Return the states of partitions."""
        paths = [
            f"/replicated/topics/{one.topic}/partitions/{one.name}/state" for one in partitions
        ]
        found = self.session.get_many(paths)
        documents = [json.loads(found[path][0]) for path in paths]
        return [KnownState(one["leader"], tuple(one["isr"])) for one in documents]

    def await_isr(self, partitions: Sequence[TopicPartition], size: int) -> None:
        """Wait until partitions have so many in-sync replicas."""
        await_condition(lambda: all(len(one.isr) == size for one in self.states(partitions)))


def await_condition(condition: Callable[[], object]) -> None:
    """Wait for a condition.

    Raises:
        RuntimeError: it did not come within two minutes.
    """
    deadline_s = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"the cluster did not settle within {_WAIT_S:g} s")
        time.sleep(0.01)


@contextmanager
def running_cluster(
    parent: Path,
    broker_count: int = 3,
    security: ClientSecurity | None = None,
    /,
    **properties: str,
) -> Iterator[BenchCluster]:
    """Yield a cluster with new data; stop and remove it afterwards.

    Args:
        parent: directory for its data.
        broker_count: how many brokers.
        security: how to connect to them; None for plain connections.
        properties: of all brokers; underscores in names stand for dots.
    """
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    with (
        temporary_directory(parent) as directory,
        EmbeddedZooKeeper(directory / "zookeeper", java=find_java(), is_durable=False) as zookeeper,
    ):
        cluster = BenchCluster(directory, zookeeper.connect, broker_count, settings, security)
        try:
            yield cluster
        finally:
            cluster.close()
