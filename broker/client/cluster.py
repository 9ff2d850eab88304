"""The brokers, topics and partitions of a cluster, from ZooKeeper or from listed brokers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.client.connection import Connection, addresses_text
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConfigError,
    TopicNotFoundError,
    WrongPartitionError,
)
from broker.protocol.extension_requests import MetadataRequest
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import BrokerAddress, MetadataResponse, decode_fetch_response
from broker.topic import TopicPartition, validate_topic_name

if TYPE_CHECKING:
    from broker.zk.registry import Registry

Connect = Callable[[BrokerAddress], Connection]
"""Makes a connection to a broker, with the timeouts and buffer sizes of its owner."""

_T = TypeVar("_T")
_MAX_PROBED_PARTITIONS = 1024

logger = logging.getLogger(__name__)


class Cluster(Protocol):
    """The metadata of a cluster that clients need."""

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""

    def topics(self) -> list[str]:
        """Return the topics, by name."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition.

        Raises:
            BrokerUnreachableError: the broker is unknown or not live.
        """


class LockedCluster:
    """A cluster for several threads: a lock serializes the calls."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        with self._lock:
            return self._cluster.brokers()

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        with self._lock:
            return self._cluster.topics()

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""
        with self._lock:
            return self._cluster.partitions(topic)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition."""
        with self._lock:
            return self._cluster.leader(partition)


class RegistryCluster:
    """The cluster as registered in ZooKeeper; `registry` must be started."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        return [BrokerAddress(one.id, one.host, one.port) for one in self._registry.brokers()]

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        return sorted(self._registry.topics())

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic on live brokers, by home and index."""
        return self.partitions_of([topic])

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of several topics on live brokers, read at once."""
        return [
            TopicPartition(topic, home, index)
            for topic, counts in self._registry.partitions_of(topics).items()
            for home, count in sorted(counts.items())
            for index in range(count)
        ]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the partition's home broker."""
        for broker in self.brokers():
            if broker.id == partition.home:
                return broker
        raise BrokerUnreachableError(
            f"{partition} is on broker {partition.home}, which is not in the registry"
        )


OnAbsent = Callable[[BrokerError], None]
"""Called once when a listed broker stops responding; an exception it raises is passed on."""


def log_absent(error: BrokerError) -> None:
    """Log that a listed broker does not respond."""
    logger.warning("%s; going on without it", error)


class _Listed:
    """A listed broker: a connection for metadata requests, and whether it responds."""

    def __init__(self, connection: Connection, index: int) -> None:
        self.connection = connection
        self.address = connection.address
        self.index = index  # in the list
        self.id: int | None = None
        self.is_absent = False
        self.retry_at_s = 0.0

    def find_id(self) -> int:
        """Return the broker's id: from its hello, else from the list, else its index there."""
        if self.is_absent:
            self.connection.connect()  # `hello` may return the response of an earlier connection
        if self.id is None:
            hello = self.connection.hello()
            listed_id = self.address.id if self.address.id >= 0 else self.index
            self.id = listed_id if hello is None else hello.broker_id
        return self.id


class StaticCluster:
    """The cluster that the listed brokers form, without ZooKeeper.

    A broker that does not respond is left out, with its partitions, until a later request to it
    succeeds.

    Args:
        addresses: at least one broker; duplicates are ignored.
        connect: makes the connections for metadata requests, which stay open until `close`.
        on_absent: called for a broker that does not respond.
        retry_after_s: how long a broker that did not respond is left out, if others respond.
    """

    def __init__(
        self,
        addresses: Sequence[BrokerAddress],
        connect: Connect,
        *,
        on_absent: OnAbsent = log_absent,
        retry_after_s: float = 5.0,
    ) -> None:
        self._listed = [
            _Listed(connect(address), index)
            for index, address in enumerate(dict.fromkeys(addresses))
        ]
        self._on_absent = on_absent
        self._retry_after_s = retry_after_s

    def close(self) -> None:
        """Close the connections."""
        for one in self._listed:
            one.connection.close()

    def _query(self, query: Callable[[_Listed], _T], *, include_absent: bool = False) -> list[_T]:
        """Return the results of a query to each listed broker that responds.

        Brokers that did not respond in the last `retry_after_s` are queried only if no other
        broker responds, or if `include_absent`.

        Raises:
            BrokerUnreachableError: no broker responds.
        """
        now_s = time.monotonic()
        due = [one for one in self._listed if now_s >= one.retry_at_s]
        postponed = [one for one in self._listed if now_s < one.retry_at_s]
        results: list[_T] = []
        failures: list[tuple[_Listed, BrokerError]] = []
        for some in (due, postponed):
            if some is postponed and results and not include_absent:
                break
            for one in some:
                try:
                    results.append(query(one))
                except BrokerError as error:
                    if not error.is_retriable:
                        raise
                    failures.append((one, error))
                else:
                    one.is_absent, one.retry_at_s = False, 0.0
        if not results:
            if len(failures) == 1:
                raise failures[0][1]
            causes = "; ".join(str(failure) for _, failure in failures)
            raise BrokerUnreachableError(f"no broker answers: {causes}")
        for one, failure in failures:
            was_absent, one.is_absent = one.is_absent, True
            one.retry_at_s = time.monotonic() + self._retry_after_s
            if not was_absent:
                self._on_absent(failure)
        return results

    def brokers(self) -> list[BrokerAddress]:
        """Return the listed brokers that respond, by id.

        A 0.7 broker does not send its id: it gets the one in the list, or else its index there.

        Raises:
            BrokerUnreachableError: no broker can be reached; the text names each.
            ConfigError: two brokers have the same id.
        """
        return self._brokers(include_absent=False)

    def _brokers(self, *, include_absent: bool) -> list[BrokerAddress]:
        self._query(_Listed.find_id, include_absent=include_absent)
        found: dict[int, BrokerAddress] = {}
        for one in self._listed:
            if one.id is None or one.is_absent:
                continue
            if one.id in found:
                both = [found[one.id], one.address]
                raise ConfigError(
                    f"{addresses_text(both, ' and ')} both are broker {one.id}: "
                    "the brokers of one cluster need different ids"
                )
            found[one.id] = one.address
        return [address._replace(id=broker_id) for broker_id, address in sorted(found.items())]

    def topics(self) -> list[str]:
        """Return the topics of the brokers that respond; 0.7 brokers do not list theirs.

        Raises:
            BrokerUnreachableError: no broker can be reached; the text names each.
        """
        return sorted({topic for topics in self._query(_topics_of) for topic in topics})

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions on the brokers that respond, by home and index.

        Raises:
            InvalidTopicError: the name is not valid.
            BrokerUnreachableError: no broker can be reached; the text names each.
        """
        validate_topic_name(topic)
        found = self._query(lambda one: _partitions_of(one, topic))
        return sorted(partition for partitions in found for partition in partitions)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the listed broker that is the partition's home.

        Raises:
            BrokerUnreachableError: it is not among the brokers that respond.
            ConfigError: two brokers have the same id.
        """
        for one in self._listed:
            if one.id == partition.home:
                return one.address._replace(id=one.id)
        brokers = self._brokers(include_absent=True)
        for broker in brokers:
            if broker.id == partition.home:
                return broker
        absent = addresses_text([one.address for one in self._listed if one.is_absent])
        raise BrokerUnreachableError(
            f"{partition} is on broker {partition.home}, which is not among "
            f"{addresses_text(brokers)}" + (f"; there is no answer from {absent}" * bool(absent))
        )


def _topics_of(one: _Listed) -> list[str]:
    if one.connection.hello() is None:
        return []
    return [found.topic for found in _metadata(one.connection, MetadataRequest(None)).topics]


def _partitions_of(one: _Listed, topic: str) -> list[TopicPartition]:
    if one.connection.hello() is None:
        return _probe_partitions(one.connection, topic, one.find_id())
    response = _metadata(one.connection, MetadataRequest((topic,)))
    return [found.partition for found in response.topics[0].partitions]


def _metadata(connection: Connection, request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse.decode(connection.repeat_if_lost(lambda: connection.call(request)))


def _probe_partitions(connection: Connection, topic: str, home: int) -> list[TopicPartition]:
    """Find a 0.7 broker's partitions of a topic: fetch from each index until one is wrong."""
    found: list[TopicPartition] = []
    for index in range(_MAX_PROBED_PARTITIONS):
        request = FetchRequest(topic, index, 0, 0)
        response = connection.repeat_if_lost(partial(connection.ask, request))
        if decode_fetch_response(response)[0] == WrongPartitionError.code:
            break
        found.append(TopicPartition(topic, home, index))
    return found


def find_partitions(cluster: Cluster, topic: str) -> list[TopicPartition]:
    """Return a topic's partitions.

    Raises:
        TopicNotFoundError: no live broker has the topic.
    """
    partitions = cluster.partitions(topic)
    if not partitions:
        raise TopicNotFoundError(f"topic '{topic}' not found")
    return partitions
