"""A broker's view of the whole cluster: its brokers, and who leads each partition.

The registry tells which brokers are live and how many partitions each has of a topic, live or not;
the broker's own topics are known before they are registered. The partitions of a broker that is
away have no leader. For partitions with replicas, the controller's states take precedence.

Any thread may take a snapshot. All topics share the encoded partitions of a broker: memory grows
with the number of topics, not of partitions, except for partitions with replicas.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from broker import errors
from broker.cluster_state import LiveBroker, ReplicatedPartition
from broker.endpoints import PLAIN_LISTENER, Endpoint
from broker.ids import NO_CONTROLLER, NO_LEADER
from broker.protocol import responses
from broker.protocol.primitives import Buffer
from broker.topic import FORMAT_07, FORMAT_KAFKA, NO_HOME, TopicPartition

if TYPE_CHECKING:
    from broker.zk.registry import Registry, RegistryChange, WatchedRegistry

logger = logging.getLogger(__name__)

MAX_METADATA_BYTES = 32 << 20
"""The largest metadata response: about a million partitions."""
LARGE_TOPIC_COUNT = 200
"""A response about more topics is encoded on a worker thread: it takes a millisecond."""


class _Topic(NamedTuple):
    """A topic in a snapshot."""

    # partitions of each home, by id; without one, those that this broker alone has
    counts: Mapping[int, int]
    replicated: Mapping[TopicPartition, ReplicatedPartition]
    creation_ids: Mapping[int, str]  # by home; those that this broker gave or the controller told

    @property
    def format(self) -> str:
        """Return the format of the topic."""
        for one in self.replicated:
            return one.format
        return FORMAT_KAFKA if NO_HOME in self.counts else FORMAT_07


class _OwnTopic(NamedTuple):
    """The partitions that this broker has of a topic."""

    home: int  # this broker, or none in the format kafka
    partition_count: int
    creation_id: str | None  # None for a topic with replicas, or if unknown


_NOTHING: Mapping[TopicPartition, ReplicatedPartition] = {}


class _HomePartitions:
    """The encoded partitions of each home, as many as the largest topic has."""

    def __init__(self) -> None:
        self._encoded: dict[tuple[int, bool], bytes] = {}

    def of(self, home: int, count: int, *, broker_id: int, is_led: bool) -> Buffer:
        """Return the first `count` partitions of a home, which are on a broker."""
        encoded = self._encoded.get((home, is_led), b"")
        known = len(encoded) // responses.HOME_PARTITION_BYTES
        if count > known:
            encoded += responses.encode_home_partitions(
                home, range(known, count), broker_id=broker_id, is_led=is_led
            )
            self._encoded[home, is_led] = encoded
        return memoryview(encoded)[: count * responses.HOME_PARTITION_BYTES]


@dataclass(eq=False)
class ClusterMetadata:
    """The cluster at one moment; immutable."""

    cluster_id: str  # of the registry; empty without one
    broker_id: int
    controller_id: int
    brokers: Mapping[int, responses.BrokerAddress]
    endpoints: Mapping[int, tuple[Endpoint, ...]]
    racks: Mapping[int, str]
    by_name: Mapping[str, _Topic]
    home_partitions: _HomePartitions  # shared by all snapshots
    # by listener and cluster id, the body of the response about all topics
    _all: dict[tuple[str, str], bytes] = field(default_factory=dict, init=False)
    # topics with replicas that were asked for by name
    _encoded: dict[str, bytes] = field(default_factory=dict, init=False)

    @property
    def topics(self) -> list[str]:
        """Return the names of the topics."""
        return sorted(self.by_name)

    def has(self, name: str) -> bool:
        """Return whether there is a topic."""
        return name in self.by_name

    def topic(self, name: str) -> responses.TopicMetadata | None:
        """Return the partitions of a topic by home and index; None for an unknown topic."""
        topic = self.by_name.get(name)
        if topic is None:
            return None
        partitions = []
        for partition in _partitions_of(name, topic):
            replicated = topic.replicated.get(partition)
            if replicated is None:
                home = self._broker_of(partition.home)
                is_led = home in self.brokers
                leader, error = (home, errors.NO_ERROR) if is_led else (NO_LEADER, _NO_LEADER_ERROR)
                one = responses.PartitionMetadata(partition, error, leader, (home,), (home,))
            else:
                state = replicated.state
                one = responses.PartitionMetadata(
                    partition,
                    errors.NO_ERROR if state.leader != NO_LEADER else _NO_LEADER_ERROR,
                    state.leader,
                    replicated.replicas,
                    state.isr,
                    state.leader_epoch,
                    replicated.min_isr,
                )
            partitions.append(one)
        return responses.TopicMetadata(
            name, errors.NO_ERROR, tuple(partitions), topic.creation_ids, topic.format
        )

    def _broker_of(self, home: int) -> int:
        """Return which broker has the partitions of a home: without one, the own broker."""
        return self.broker_id if home == NO_HOME else home

    def addresses(self, listener: str) -> list[responses.BrokerAddress]:
        """Return where the brokers' listeners of that name are; one that has none is left out."""
        if listener == PLAIN_LISTENER:  # as 0.7's clients know it
            return list(self.brokers.values())
        return [
            responses.BrokerAddress(broker_id, one.host, one.port)
            for broker_id in self.brokers
            for one in self.endpoints.get(broker_id, ())
            if one.listener == listener
        ]

    def encode(
        self,
        names: Iterable[str] | None,
        listener: str = PLAIN_LISTENER,
        hidden: Set[str] = frozenset(),
        *,
        tells_cluster: bool = True,
    ) -> bytes:
        """Return the body of a response about some topics, or all if `names` is None.

        It has the addresses of `listener`, by which the client came, and the cluster's id if
        `tells_cluster`. Hidden topics are left out of all, and are as unknown ones if they are
        named.
        """
        is_told = tells_cluster or not self.cluster_id
        key = listener, self.cluster_id if is_told else responses.HIDDEN_CLUSTER
        if names is not None:
            return self._encode(list(dict.fromkeys(names)), *key, hidden)
        if hidden:
            shown = [name for name in self.topics if name not in hidden]
            return self._encode(shown, *key, hidden)
        if key not in self._all:
            self._all[key] = self._encode(self.topics, *key, hidden)
        return self._all[key]

    def is_cheap(
        self,
        names: Collection[str] | None,
        listener: str = PLAIN_LISTENER,
        *,
        may_hide: bool = False,
    ) -> bool:
        """Return whether `encode` takes less than a millisecond; `may_hide`: some are hidden."""
        if names is None:
            is_encoded = (listener, self.cluster_id) in self._all and not may_hide
            return is_encoded or len(self.by_name) <= LARGE_TOPIC_COUNT
        return len(names) <= LARGE_TOPIC_COUNT

    def _encode(self, names: list[str], listener: str, cluster_id: str, hidden: Set[str]) -> bytes:
        parts: list[Buffer] = [
            responses.encode_cluster_metadata_header(
                cluster_id,
                self.broker_id,
                self.controller_id,
                self.addresses(listener),
                self.racks,
                len(names),
            )
        ]
        size_bytes = len(parts[0])
        for name in names:
            for part in self._encode_topic(
                name, None if name in hidden else self.by_name.get(name)
            ):
                parts.append(part)
                size_bytes += len(part)
            if size_bytes > MAX_METADATA_BYTES:
                raise errors.ResponseTooLargeError(
                    f"the topics asked for have too many partitions for one response of "
                    f"{MAX_METADATA_BYTES} bytes; ask for fewer topics, by name"
                )
        return b"".join(parts)

    def _encode_topic(self, name: str, topic: _Topic | None) -> Iterator[Buffer]:
        if topic is None:
            yield responses.encode_cluster_topic_header(
                name, errors.UnknownTopicError.code, "", {}, 0
            )
        elif topic.replicated:
            if name not in self._encoded:  # all clients ask after a failover
                self._encoded[name] = b"".join(self._encode_replicated(name, topic))
            yield self._encoded[name]
        else:
            count = sum(topic.counts.values())
            yield responses.encode_cluster_topic_header(
                name, errors.NO_ERROR, topic.format, topic.creation_ids, count
            )
            for home, count in sorted(topic.counts.items()):
                broker_id = self._broker_of(home)
                yield self.home_partitions.of(
                    home, count, broker_id=broker_id, is_led=broker_id in self.brokers
                )

    def _encode_replicated(self, name: str, topic: _Topic) -> Iterator[Buffer]:
        metadata = self.topic(name)
        assert metadata is not None
        count = len(metadata.partitions)
        yield responses.encode_cluster_topic_header(
            name, errors.NO_ERROR, topic.format, topic.creation_ids, count
        )
        for one in metadata.partitions:
            yield responses.encode_cluster_partition(one)


_NO_LEADER_ERROR = errors.LeaderNotAvailableError.code


def _partitions_of(name: str, topic: _Topic) -> list[TopicPartition]:
    homes = {
        TopicPartition(name, home, index)
        for home, count in topic.counts.items()
        for index in range(count)
    }
    return sorted(homes | topic.replicated.keys())


class ClusterView:
    """Gathers the view from the registry, the controller and the broker's own topics."""

    def __init__(self, cluster_id: str, own: responses.BrokerAddress) -> None:
        self._cluster_id = cluster_id  # of the registry; empty without one
        self._own = own
        self._lock = threading.Lock()  # guards all fields below
        self._home_partitions = _HomePartitions()
        self._brokers = {own.id: own}
        self._endpoints: dict[int, tuple[Endpoint, ...]] = {}
        self._racks: dict[int, str] = {}
        self._controller_id = NO_CONTROLLER
        self._own_topics: dict[str, _OwnTopic] = {}
        self._registered: dict[str, dict[int, int]] = {}
        self._replicated: dict[str, dict[TopicPartition, ReplicatedPartition]] = {}
        self._topics: dict[str, _Topic] = {}
        self._snapshot: ClusterMetadata | None = None
        self.on_brokers: Callable[[Mapping[int, responses.BrokerAddress]], object] = lambda _: None
        """Called with the live brokers as the registry tells them; must be quick."""
        self.ready: Future[None] = Future()
        """Done once the registry has been read, or if there is none."""
        if not cluster_id:
            self.ready.set_result(None)

    def snapshot(self) -> ClusterMetadata:
        """Return the cluster as it is known now."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot = ClusterMetadata(
                    self._cluster_id,
                    self._own.id,
                    self._controller_id,
                    dict(sorted(self._brokers.items())),
                    dict(self._endpoints),
                    dict(self._racks),
                    dict(self._topics),
                    self._home_partitions,
                )
            return self._snapshot

    def set_own_address(
        self, own: responses.BrokerAddress, endpoints: tuple[Endpoint, ...]
    ) -> None:
        """Note where clients reach this broker, once it listens."""
        with self._lock:
            self._own = own
            self._endpoints[own.id] = endpoints
            self._set_brokers(self._brokers)

    def set_endpoints(self, endpoints: Mapping[int, tuple[Endpoint, ...]]) -> None:
        """Note where the listeners of the live brokers are; those of this broker are known."""
        with self._lock:
            self._endpoints = {**endpoints, self._own.id: self._endpoints.get(self._own.id, ())}
            self._snapshot = None

    def endpoints_of(self, broker_id: int) -> tuple[Endpoint, ...]:
        """Return the endpoints of a live broker; none if it has the plain listener only."""
        return self._endpoints.get(broker_id, ())

    def set_controller(self, broker_id: int) -> None:
        """Note which broker is the controller, `NO_CONTROLLER` for none."""
        with self._lock:
            if broker_id != self._controller_id:
                self._controller_id = broker_id
                self._snapshot = None

    def set_racks(self, brokers: Iterable[LiveBroker]) -> None:
        """Note the racks of the live brokers, as the controller tells them."""
        racks = {one.id: one.rack for one in brokers if one.rack}
        with self._lock:
            if racks != self._racks:
                self._racks = racks
                self._snapshot = None

    def set_own_topic(
        self,
        topic: str,
        partition_count: int,
        creation_id: str | None = None,
        *,
        format: str = FORMAT_07,
    ) -> None:
        """Note how many partitions of a topic this broker has; 0 for a topic it no longer has."""
        with self._lock:
            if partition_count:
                home = NO_HOME if format == FORMAT_KAFKA else self._own.id
                self._own_topics[topic] = _OwnTopic(home, partition_count, creation_id)
            else:
                self._own_topics.pop(topic, None)
            self._merge([topic])

    def set_registered(
        self,
        brokers: Mapping[int, responses.BrokerAddress] | None,
        counts: Mapping[str, Mapping[int, int]],
    ) -> list[str]:
        """Note a change of the registry: its live brokers, None if unchanged, and changed topics.

        `counts` has all partitions of those topics, by home broker. Returns the topics that this
        broker is to have, and has not.
        """
        with self._lock:
            if brokers is not None:
                self._set_brokers(brokers)
                self.on_brokers(brokers)
            for topic, homes in counts.items():
                self._registered[topic] = dict(homes)
            self._merge(counts)
            assigned = [
                topic
                for topic, homes in counts.items()
                if self._own.id in homes and topic not in self._own_topics
            ]
        if not self.ready.done():
            self.ready.set_result(None)
        return assigned

    def _set_brokers(self, brokers: Mapping[int, responses.BrokerAddress]) -> None:
        self._brokers = {**brokers, self._own.id: self._own}
        self._snapshot = None

    def apply_partition_states(
        self, partitions: Iterable[ReplicatedPartition], gone: Iterable[TopicPartition] = ()
    ) -> None:
        """Note the controller's states of partitions with replicas, and removed partitions."""
        with self._lock:
            changed = set()
            for partition in gone:
                self._replicated.get(partition.topic, {}).pop(partition, None)
                changed.add(partition.topic)
            for one in partitions:
                topic = one.partition.topic
                self._replicated.setdefault(topic, {})[one.partition] = one
                changed.add(topic)
            self._merge(changed)

    def _merge(self, topics: Iterable[str]) -> None:
        """Rebuild topics from all sources; caller holds the lock."""
        for topic in topics:
            counts = dict(self._registered.get(topic, {}))
            # of its own topics the broker knows first, also that they are deleted
            is_assigned = counts.pop(self._own.id, 0) > 0
            own = self._own_topics.get(topic)
            if own is not None:
                counts[own.home] = own.partition_count
            elif is_assigned and topic not in self._topics and topic not in self._replicated:
                continue  # shown as a whole, once its part is here
            replicated = dict(self._replicated.get(topic, {})) or _NOTHING
            creation_ids = {
                one.home: info.kept_id or info.creation_id for one, info in replicated.items()
            }
            if not replicated and own is not None and own.creation_id is not None:
                creation_ids[own.home] = own.creation_id
            if counts or replicated:
                self._topics[topic] = _Topic(counts, replicated, creation_ids)
            else:
                self._topics.pop(topic, None)
                self._registered.pop(topic, None)
            self._snapshot = None

    def close(self) -> None:
        """Fail the requests that wait for the registry to be read."""
        if not self.ready.done():
            self.ready.set_exception(errors.ShuttingDownError("the broker is shutting down"))


def follow_registry(registry: Registry, view: ClusterView) -> WatchedRegistry:
    """Return the thread that keeps a view up to date with the registry of a registered broker."""
    from broker.zk.registry import WatchedRegistry  # late: kazoo, as the registry

    def apply(change: RegistryChange) -> None:
        brokers = None
        if change.brokers is not None:
            brokers = {
                one.id: responses.BrokerAddress(one.id, one.host, one.port)
                for one in change.brokers.values()
            }
            view.set_endpoints({id: one.endpoints for id, one in change.brokers.items()})
        registry.note_assigned(view.set_registered(brokers, change.counts))

    return WatchedRegistry(
        registry, name="cluster-view", on_change=apply, follows_all=True, reads_endpoints=True
    )
