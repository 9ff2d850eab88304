"""Where topics are: brokers and partitions, from a registry or from a static list."""

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
"""Makes a connection to a broker, with the timeouts and sizes its owner wants."""

_T = TypeVar("_T")
_MAX_PROBED_PARTITIONS = 1024

logger = logging.getLogger(__name__)


class Cluster(Protocol):
    """What a client needs to know of brokers and topics."""

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""

    def topics(self) -> list[str]:
        """Return the topics, by name."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition.

        Raises:
            BrokerUnreachableError: it is not there.
        """


class LockedCluster:
    """A cluster that several threads share: a lock lets one at a time use it."""

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
    """The cluster as ZooKeeper has it.

    Args:
        registry: started.
    """

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
        """Return the partitions of topics on live brokers, asked for all at once."""
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
"""Told that a listed broker does not answer, once until it does; what it raises goes through."""


def log_absent(error: BrokerError) -> None:
    """Log that a listed broker does not answer."""
    logger.warning("%s; going on without it", error)


class _Listed:
    """A listed broker: the connection it is asked over, and what became of that so far."""

    def __init__(self, connection: Connection, place: int) -> None:
        self.connection = connection
        self.address = connection.address
        self.place = place
        self.id: int | None = None
        self.is_absent = False
        self.ask_again_s = 0.0

    def find_id(self) -> int:
        """Return the id the broker gives itself, or that of the list, or its place there."""
        if self.is_absent:
            self.connection.connect()  # what it once said does not make it present
        if self.id is None:
            hello = self.connection.hello()
            listed_id = self.address.id if self.address.id >= 0 else self.place
            self.id = listed_id if hello is None else hello.broker_id
        return self.id


class StaticCluster:
    """The cluster as the listed brokers tell it, with no registry.

    A broker that does not answer is left out, and asked again from time to time; what it has is
    unknown meanwhile, as it would be in a registry.

    Args:
        addresses: at least one broker; one that is listed twice counts once.
        connect: makes the connections they are asked over; these are kept until `close`.
        on_absent: told of brokers that do not answer.
        ask_again_s: how long one that did not answer is left alone, if others do.
    """

    def __init__(
        self,
        addresses: Sequence[BrokerAddress],
        connect: Connect,
        *,
        on_absent: OnAbsent = log_absent,
        ask_again_s: float = 5.0,
    ) -> None:
        self._listed = [
            _Listed(connect(address), place)
            for place, address in enumerate(dict.fromkeys(addresses))
        ]
        self._on_absent = on_absent
        self._ask_again_s = ask_again_s

    def close(self) -> None:
        """Close the connections."""
        for one in self._listed:
            one.connection.close()

    def _ask(self, question: Callable[[_Listed], _T], *, everybody: bool = False) -> list[_T]:
        """Return what the brokers answer that do.

        Args:
            question: asks one of them.
            everybody: ask those too that did not answer a moment ago.

        Raises:
            BrokerUnreachableError: none answers.
        """
        now_s = time.monotonic()
        at_once = [one for one in self._listed if now_s >= one.ask_again_s]
        later = [one for one in self._listed if now_s < one.ask_again_s]
        answers: list[_T] = []
        failures: list[tuple[_Listed, BrokerError]] = []
        for some in (at_once, later):
            if some is later and answers and not everybody:
                break
            for one in some:
                try:
                    answers.append(question(one))
                except BrokerError as error:
                    if not error.is_retriable:
                        raise
                    failures.append((one, error))
                else:
                    one.is_absent, one.ask_again_s = False, 0.0
        if not answers:
            raise _nobody([failure for _, failure in failures])
        for one, failure in failures:
            self._note_absent(one, failure)
        return answers

    def _note_absent(self, one: _Listed, error: BrokerError) -> None:
        was_absent, one.is_absent = one.is_absent, True
        one.ask_again_s = time.monotonic() + self._ask_again_s
        if not was_absent:
            self._on_absent(error)

    def brokers(self) -> list[BrokerAddress]:
        """Return the listed brokers that answer, under the ids they give themselves.

        A 0.7 broker cannot say its id: the one in the list is taken, or else its place there.

        Raises:
            BrokerUnreachableError: none of them can be reached; the text names each.
            ConfigError: two of them have the same id.
        """
        return self._brokers(everybody=False)

    def _brokers(self, *, everybody: bool) -> list[BrokerAddress]:
        self._ask(_Listed.find_id, everybody=everybody)
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
        """Return the topics of the brokers that answer; those of 0.7 brokers cannot be known.

        Raises:
            BrokerUnreachableError: none of them can be reached; the text names each.
        """
        return sorted({topic for topics in self._ask(_topics_of) for topic in topics})

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions on the brokers that answer, by home and index.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: none of them can be reached; the text names each.
        """
        validate_topic_name(topic)
        answers = self._ask(lambda one: _partitions_of(one, topic))
        return sorted(partition for partitions in answers for partition in partitions)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the listed broker that is the partition's home.

        Raises:
            BrokerUnreachableError: it is not among those that answer.
            ConfigError: two of them have the same id.
        """
        for one in self._listed:
            if one.id == partition.home:
                return one.address._replace(id=one.id)
        brokers = self._brokers(everybody=True)
        for broker in brokers:
            if broker.id == partition.home:
                return broker
        absent = addresses_text([one.address for one in self._listed if one.is_absent])
        raise BrokerUnreachableError(
            f"{partition} is on broker {partition.home}, which is not among "
            f"{addresses_text(brokers)}" + (f"; there is no answer from {absent}" * bool(absent))
        )


def _nobody(errors: Sequence[BrokerError]) -> BrokerError:
    """Return the error for brokers none of which answers."""
    if len(errors) == 1:
        return errors[0]
    return BrokerUnreachableError(f"no broker answers: {'; '.join(map(str, errors))}")


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
    """Count a 0.7 broker's partitions of a topic: the first one it calls wrong ends them."""
    found: list[TopicPartition] = []
    for index in range(_MAX_PROBED_PARTITIONS):
        request = FetchRequest(topic, index, 0, 0)
        answer = connection.repeat_if_lost(partial(connection.ask, request))
        if decode_fetch_response(answer)[0] == WrongPartitionError.code:
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
