"""The cluster that a job reads or writes: brokers or a ZooKeeper, opened once, on the driver."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from broker.client import backoff
from broker.client.cluster import Cluster
from broker.client.registry_cluster import RegistryCluster
from broker.client.selection import causes_of_absence, partitions_of
from broker.client.static_cluster import OnAbsent, StaticCluster, log_absent
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import BrokerError
from broker.spark.options import ConnectionOptions, Selection, Where
from broker.spark.reading.ranges import ByteRange, LeaderAddress
from broker.spark.reading.report import Omission
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class OpenCluster:
    """A cluster, and the offsets of its partitions."""

    cluster: Cluster
    positions: BoundaryFinder
    connection: ConnectionOptions  # of executors
    absent_listed: Sequence[str] = ()  # texts of the listed brokers that do not respond

    def topics(self, selection: Selection) -> list[str]:
        """Return the topics of a selection that it names, or that exist now."""
        if selection.partitions is not None:
            return sorted({one.topic for one in selection.partitions})
        if selection.topics:
            return list(selection.topics)
        return [topic for topic in self.cluster.topics() if selection.has_topic(topic)]

    def readable(self, selection: Selection) -> list[TopicPartition]:
        """Return the partitions of a selection that can be read now."""
        found = [one for topic in self.topics(selection) for one in self.cluster.partitions(topic)]
        return [one for one in found if selection.has_partition(one)]

    def existing(self, selection: Selection) -> list[TopicPartition]:
        """Return the partitions of a selection; each topic and partition it names must exist."""
        found = self.readable(selection)
        selection.check_all_found(found, absent="not found", hint="; is its broker away?")
        return found

    def absent(self, selection: Selection) -> tuple[str, ...]:
        """Return a text for each broker that is down, so that partitions cannot be read."""
        every = [partitions_of(self.cluster, one) for one in self.topics(selection)]
        away = [one for some in every for one in some.away if selection.has_partition(one)]
        return (*self.absent_listed, *causes_of_absence(self.cluster, away))

    def present(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        """Return the parts of a range that exist, and add the missing parts to the omissions."""
        return [one]

    def locations(self) -> Callable[[ByteRange], LeaderAddress]:
        """Return a function that returns where to read a range: each leader is looked up once."""
        brokers = cache(lambda: tuple(self.cluster.brokers()))
        leader = cache(self.cluster.leader)
        return lambda one: LeaderAddress(leader(one.partition), brokers(), self.connection)


@contextmanager
def open_cluster(
    where: Where, connection: ConnectionOptions, *, on_absent: OnAbsent = log_absent
) -> Iterator[OpenCluster]:
    """Open the cluster of brokers or a ZooKeeper until the block ends.

    `on_absent` is called with the error of each broker that is listed and does not respond.
    """
    assert not where.paths
    with ExitStack() as closing:
        cluster: Cluster
        if where.zookeeper is None:
            cluster = StaticCluster(where.brokers, connection.connect, on_absent=on_absent)
            closing.callback(cluster.close)
        else:
            from broker.zk.registry import Registry  # late: a static list has no use for kazoo

            registry = Registry(
                where.zookeeper,
                request_timeout_s=connection.timeout_s,
                speaks_tls=connection.security.has_tls,
            )
            registry.start(connection.connect_timeout_s)
            closing.callback(registry.stop)
            cluster = RegistryCluster(registry, connection.connect)
        # a killed broker leads until its session expires
        finder = BoundaryFinder(cluster, connection.connect, leader_wait_s=connection.timeout_s)
        yield OpenCluster(cluster, closing.enter_context(finder), connection)


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
