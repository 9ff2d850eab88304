"""The cluster that a job reads or writes: brokers or a ZooKeeper, opened once, on the driver."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from broker.client import backoff
from broker.client.cluster import Cluster
from broker.client.registry_cluster import RegistryCluster
from broker.client.static_cluster import OnAbsent, StaticCluster, log_absent
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import BrokerError, TopicNotFoundError
from broker.protocol.responses import BrokerAddress
from broker.spark.options import ConnectionOptions, Selection, Where
from broker.spark.reading.ranges import ByteRange, LeaderAddress
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class OpenCluster(NamedTuple):
    """A cluster, and the offsets of its partitions."""

    cluster: Cluster
    positions: BoundaryFinder


@contextmanager
def open_cluster(
    where: Where, connection: ConnectionOptions, *, on_absent: OnAbsent = log_absent
) -> Iterator[OpenCluster]:
    """Open the cluster of brokers or a ZooKeeper until the block ends.

    `on_absent` is called with the error of each broker that is listed and does not respond.
    """
    assert not where.paths
    leader_wait_s = connection.timeout_s  # a killed broker leads until its session expires
    if where.zookeeper is None:
        static = StaticCluster(where.brokers, connection.connect, on_absent=on_absent)
        try:
            with BoundaryFinder(
                static, connection.connect, leader_wait_s=leader_wait_s
            ) as positions:
                yield OpenCluster(static, positions)
        finally:
            static.close()
        return
    from broker.zk.registry import Registry  # late: jobs on a static list have no use for kazoo

    registry = Registry(
        where.zookeeper,
        request_timeout_s=connection.timeout_s,
        speaks_tls=connection.security.has_tls,
    )
    registry.start(connection.connect_timeout_s)
    try:
        cluster = RegistryCluster(registry, connection.connect)
        with BoundaryFinder(cluster, connection.connect, leader_wait_s=leader_wait_s) as positions:
            yield OpenCluster(cluster, positions)
    finally:
        registry.stop()


def repeated(
    question: Callable[[], _T],
    timeout_s: float,
    *,
    is_temporary: Callable[[BrokerError], bool],
    between: Callable[[], object] = lambda: None,  # called before each further attempt
) -> _T:
    """Ask a cluster again while errors are temporary, for `timeout_s`; log each kind once."""
    deadline_s = time.monotonic() + timeout_s
    logged: set[type[BrokerError]] = set()
    waits_s = backoff.waits_s()
    while True:
        try:
            return question()
        except BrokerError as error:
            if not is_temporary(error) or time.monotonic() >= deadline_s:
                raise
            if type(error) not in logged:
                logged.add(type(error))
                logger.warning("asking again for up to %gs: %s", timeout_s, error)
        between()
        time.sleep(next(waits_s))


def selected_topics(cluster: Cluster, selection: Selection) -> list[str]:
    """Return the topics of a selection that it names, or that exist now."""
    if selection.partitions is not None:
        return sorted({one.topic for one in selection.partitions})
    if selection.topics:
        return list(selection.topics)
    return [topic for topic in cluster.topics() if selection.has_topic(topic)]


def selected_partitions(cluster: Cluster, selection: Selection) -> list[TopicPartition]:
    """Return the partitions of a selection that can be read now."""
    topics = selected_topics(cluster, selection)
    found = [one for topic in topics for one in cluster.partitions(topic)]
    return [one for one in found if selection.has_partition(one)]


def existing_partitions(cluster: Cluster, selection: Selection) -> list[TopicPartition]:
    """Return the partitions of a selection; each topic and partition that it names must exist."""
    found = selected_partitions(cluster, selection)
    check_all_found(selection, found, absent="not found", hint="; is its broker away?")
    return found


def check_all_found(
    selection: Selection, found: Sequence[TopicPartition], *, absent: str, hint: str = ""
) -> None:
    """Raise a `TopicNotFoundError` for a topic or partition that a selection names and lacks."""
    topics = {one.topic for one in found}
    for topic in selection.topics:
        if topic not in topics:
            raise TopicNotFoundError(f"topic '{topic}' {absent}")
    missing = sorted((selection.partitions or frozenset()).difference(found))
    if missing:
        raise TopicNotFoundError(f"partition {missing[0]} {absent}{hint}")


class Leaders:
    """The leaders of partitions, each looked up once, with timeouts for executors."""

    def __init__(self, cluster: Cluster, connection: ConnectionOptions) -> None:
        self._cluster = cluster
        self._connection = connection
        self._leaders: dict[TopicPartition, LeaderAddress] = {}
        self._brokers: tuple[BrokerAddress, ...] | None = None

    def of(self, one: ByteRange) -> LeaderAddress:
        """Return the broker to read a range from."""
        if one.partition not in self._leaders:
            address = self._cluster.leader(one.partition)
            if self._brokers is None:
                self._brokers = tuple(self._cluster.brokers())
            self._leaders[one.partition] = LeaderAddress(address, self._brokers, self._connection)
        return self._leaders[one.partition]
