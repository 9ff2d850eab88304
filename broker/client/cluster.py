"""The brokers, topics and partitions of a cluster, read from ZooKeeper or from brokers.

A cluster knows which broker leads a partition: its home broker, unless a broker says otherwise.
Clients report to it: that a broker refused a request as it does not lead, or that another broker
answers at an address, as behind a load balancer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, cast

from broker import deadlines
from broker.client.connection import Connection
from broker.errors import BrokerError, BrokerUnreachableError, RequestTimeoutError
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition

Connect = Callable[[BrokerAddress], Connection]
"""Makes a connection to a broker, with the timeouts and buffer sizes of its owner."""
BRIEFLY_S = 1.0
"""How long one of several brokers may take for metadata before another is asked."""


class Patience:
    """Limits attempts to connect to a broker, as another one may lead by now.

    The first is short; each that its limit cut short has the next one take twice as long.
    """

    def __init__(self) -> None:
        self._limit_s = BRIEFLY_S

    @contextmanager
    def attempt(self) -> Iterator[float]:
        """Give the seconds that the attempt in this block may take."""
        started_s, limit_s = time.monotonic(), self._limit_s
        self._limit_s = BRIEFLY_S
        try:
            yield limit_s
        except BrokerError as error:
            # a broker that does not answer a hello in half of the time left is lost behind a proxy
            share = 0.5 if isinstance(error, RequestTimeoutError) else 1.0
            error.is_cut_short = time.monotonic() - started_s >= share * limit_s
            if error.is_cut_short:
                self._limit_s = 2 * limit_s
            raise


class InSyncReplicas(NamedTuple):
    """The in-sync replicas of partitions, and the racks of brokers."""

    # broker ids, the leader's among them, of partitions that have replicas
    replicas: Mapping[TopicPartition, tuple[int, ...]]
    racks: Mapping[int, str]  # of the brokers that have one, by id


class Cluster(Protocol):
    """The metadata of a cluster that clients need; the defaults fit a cluster that never changes.

    Methods that send requests raise `BrokerUnreachableError` or `RegistryUnreachableError` without
    a response; `leader` and `address` raise the first if the broker is unknown or not live.
    """

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""

    def topics(self) -> list[str]:
        """Return the topics, by name."""

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions by home and index; none for an unknown topic."""

    def assigned(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic, also those without a leader now.

        Those of a broker of 0.7 that is away are not known.
        """
        return self.partitions(topic)

    def create(self, topic: str) -> None:
        """Have a topic created as its first message would, on all live brokers.

        Brokers of 0.7 create it with that message. An existing topic stays as it is.
        """
        return

    def absent_homes(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the brokers that have each topic and are not live, where they are known."""
        return {}

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves a partition."""

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the last known leader of a partition, without a request."""
        return partition.home

    def address(self, broker_id: int) -> BrokerAddress:
        """Return the address of a broker."""
        for broker in self.brokers():
            if broker.id == broker_id:
                return broker
        raise BrokerUnreachableError(f"there is no live broker {broker_id}")

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Request the leaders of the partitions of topics again, after a leader was lost."""
        # partitions without a known leader, or without replicas, can be missing
        return {}

    def in_sync_replicas(self, topics: Iterable[str]) -> InSyncReplicas:
        """Request the in-sync replicas of those partitions of topics that have replicas."""
        return InSyncReplicas({}, {})

    def has_replicas(self, partition: TopicPartition) -> bool:
        """Return whether another broker can become the leader of a partition."""
        return False

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note that the supposed leader is not; `broker_id` is the leader that it named, or -1."""
        return

    def note_answer(self, address: BrokerAddress, broker_id: int) -> None:
        """Note that `broker_id` (-1: none) answers at an address, not the broker expected there."""
        return


def led_elsewhere(
    cluster: Cluster, partitions: Collection[TopicPartition], broker_id: int
) -> dict[TopicPartition, int]:
    """Request who leads partitions; return those that other brokers than `broker_id` lead."""
    leaders = cluster.find_leaders(sorted({one.topic for one in partitions}))
    return {one: leaders[one] for one in partitions if leaders.get(one, broker_id) != broker_id}


class _Locked:
    """Calls the methods of a cluster one at a time, but for those that only look at memory."""

    # an event loop calls them, and may not wait for a request of another thread
    _IN_MEMORY = frozenset(("leader_id", "note_leader", "note_answer"))

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._cluster, name)
        if name in self._IN_MEMORY:
            return method

        def call(*args: Any, **named: Any) -> Any:
            with deadlines.holding(self._lock, "the broker that tells of the cluster"):
                return method(*args, **named)

        return call


def locked(cluster: Cluster) -> Cluster:
    """Return a cluster for several threads: a lock serializes the calls of its methods."""
    return cast(Cluster, _Locked(cluster))


def are_same(one: Cluster, other: Cluster) -> bool:
    """Whether two clusters are the same: they have a broker in common."""
    addresses = {(broker.host, broker.port) for broker in one.brokers()}
    return any((broker.host, broker.port) in addresses for broker in other.brokers())


def absence_of(cluster: Cluster, topic: str) -> str:
    """Return, for an error, which brokers with a topic are not live; empty if none is known."""
    absent = cluster.absent_homes([topic]).get(topic)
    if absent is None and topic in cluster.topics():
        return f"topic '{topic}' is registered, but no live broker has it"
    if not absent:
        return ""
    which = f"broker{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
    return f"topic '{topic}' is on {which}, which {'is' if len(absent) == 1 else 'are'} away"


def with_assigned(
    cluster: Cluster, topic: str, partitions: list[TopicPartition]
) -> list[TopicPartition]:
    """Return the partitions that a topic has now and those that wait for a leader, in order."""
    # So a key, or an index into the partitions, means the same one whichever brokers are away.
    return sorted({*partitions, *cluster.assigned(topic)})
