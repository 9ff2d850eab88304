"""Topics and their partitions, as programs get them: sizes, leaders, replicas, offsets.

Brokers are asked a few times each, however many topics there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from broker import errors
from broker.admin.sampling import Sampler
from broker.admin.topic_facts import (
    PartitionFacts,
    TopicFacts,
    Topics,
    count_messages,
    metadata_of,
    state_of,
)
from broker.client.cluster import Cluster, Connect
from broker.client.controller_client import cluster_metadata
from broker.client.list_offsets import OffsetLister
from broker.client.selection import topic_without_partitions
from broker.consumer.boundaries import BoundaryFinder
from broker.ids import NO_LEADER
from broker.protocol.codec import Message
from broker.protocol.responses import BrokerAddress, PartitionMetadata
from broker.topic import ReadRange, TopicPartition, validate_topic_name

_POLL_S = 0.05
_DAY_MS = 86_400_000
_SILENCE = (errors.BrokerUnreachableError, errors.RequestTimeoutError)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic.

    Attributes:
        name: of the topic.
        partitions: how many it has on all brokers together, also those without a leader now.
        replicas: copies of each partition; None for a topic without replicas.
        brokers: ids of the brokers that have logs of it.
        size_bytes: readable bytes of all partitions; None if a broker has not told its part.
        offline: how many partitions have no leader.
        under_replicated: how many have a replica that is not in sync.
    """

    name: str
    partitions: int
    replicas: int | None
    brokers: tuple[int, ...]
    size_bytes: int | None
    offline: int = 0
    under_replicated: int = 0

    @property
    def state(self) -> str:
        """Return the worst state of its partitions: ok, under-replicated or offline."""
        return "offline" if self.offline else "under-replicated" if self.under_replicated else "ok"


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A partition; what its broker tells is None if that does not respond, as `problem` says.

    Attributes:
        partition: topic, home broker and index.
        leader: id of the broker that serves it; None if there is none at present.
        replicas: ids of its brokers, the preferred leader first.
        in_sync: ids of those that have all committed messages.
        min_in_sync: the fewest of these with which messages are committed.
        leader_epoch: one higher with each change of the leader; None without replicas.
        start: first offset.
        end: offset after the last readable message.
        segments: number of segment files.
        last_append: when messages were last written; None if there are none.
        lags: bytes that each follower is behind, by broker id; None before its first fetch.
        problem: why something is unknown; empty if nothing is.
    """

    partition: TopicPartition
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    min_in_sync: int
    leader_epoch: int | None
    start: int | None
    end: int | None
    segments: int | None
    last_append: datetime | None
    lags: Mapping[int, int | None]
    problem: str

    @property
    def size_bytes(self) -> int | None:
        """Readable bytes; None if unknown."""
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def state(self) -> str:
        """Return ok, under-replicated, below min in-sync or offline: without a leader."""
        return state_of(self.leader, self.replicas, self.in_sync, self.min_in_sync)


def list_topics(cluster: Cluster, connect: Connect) -> list[TopicInfo]:
    """Return all topics, by name."""
    return _infos(cluster, connect, metadata_of(cluster, connect, None))


def topic_info(cluster: Cluster, connect: Connect, topic: str) -> TopicInfo:
    """Return one topic; `TopicNotFoundError` if there is none of the name."""
    validate_topic_name(topic)
    found = metadata_of(cluster, connect, (topic,))
    if not found.get(topic):
        raise topic_without_partitions(cluster, topic)
    (info,) = _infos(cluster, connect, found)
    return info


def shape_of(
    topic: str, partitions: Sequence[PartitionMetadata], size_bytes: int | None
) -> TopicInfo:
    """Return what is known of a topic by its partitions."""
    replicated = [len(one.replicas) for one in partitions if one.is_replicated]
    brokers = {broker for one in partitions for broker in one.replicas}
    return TopicInfo(
        topic,
        len(partitions),
        max(replicated, default=None),
        tuple(sorted(brokers)),
        size_bytes,
        offline=sum(one.leader == NO_LEADER for one in partitions),
        under_replicated=sum(len(one.isr) < len(one.replicas) for one in partitions),
    )


def _infos(cluster: Cluster, connect: Connect, topics: Topics) -> list[TopicInfo]:
    led: dict[int, list[TopicPartition]] = {}
    for partitions in topics.values():
        for one in partitions:
            if one.leader != NO_LEADER:
                cluster.note_leader(one.partition, one.leader)
                led.setdefault(one.leader, []).append(one.partition)
    sizes: dict[TopicPartition, int] = {}
    with OffsetLister(cluster, connect) as offsets:
        for some in led.values():
            with suppress(*_SILENCE, errors.LeaderNotAvailableError):
                found = offsets.readable(some)
                sizes |= {one: end - start for one, (start, end) in found.items()}
    infos = []
    for topic, partitions in sorted(topics.items()):
        known = [sizes.get(one.partition) for one in partitions]
        total = sum(size for size in known if size is not None)
        infos.append(shape_of(topic, partitions, None if None in known else total))
    return infos


def await_shown(
    cluster: Cluster,
    connect: Connect,
    topic: str,
    is_shown: Callable[[Collection[TopicPartition]], bool],
    *,
    give_up_s: float,
) -> None:
    """Wait until brokers and `cluster` show a change of a topic's partitions that have a leader.

    Brokers that do not respond, or know only themselves, are not waited for. `give_up_s` is on the
    monotonic clock.
    """

    def shows(broker: BrokerAddress) -> bool:
        try:
            metadata = cluster_metadata([broker], connect, (topic,))
        except (*_SILENCE, errors.UnsupportedVersionError):
            return True
        partitions = [one for found in metadata.topics for one in found.partitions]
        led = [one.partition for one in partitions if one.leader != NO_LEADER]
        return not metadata.cluster_id or is_shown(led)

    waiting = cluster.brokers()
    while True:
        waiting = [broker for broker in waiting if not shows(broker)]
        if not waiting:
            cluster.find_leaders([topic])  # it may know those of before
            if is_shown(cluster.partitions(topic)):
                return
        if time.monotonic() >= give_up_s:
            where = ", ".join(str(broker.id) for broker in waiting) or "the registry"
            raise errors.RequestTimeoutError(
                f"the change of topic '{topic}' is made, but not shown in time by: {where}"
            )
        time.sleep(_POLL_S)


def describe_topic(cluster: Cluster, connect: Connect, topic: str) -> list[PartitionInfo]:
    """Return the partitions of a topic, by home and index; raise if no broker of it responds."""
    # a time that is behind the last append on the broker's clock too
    later_ms = time.time_ns() // 1_000_000 + _DAY_MS
    validate_topic_name(topic)
    with TopicFacts(cluster, connect) as facts:
        found = facts.describe_topic(topic, facts.metadata([topic]), now_ms=later_ms)
        if not any(one.replicas for one in found):
            facts.check_any_response(one.partition for one in found)
        return [_partition_info(one, facts.problem_of(one.partition)) for one in found]


def _partition_info(facts: PartitionFacts, problem: errors.BrokerError | None) -> PartitionInfo:
    partition, replicas, ends = facts.partition, facts.replicas, facts.ends
    appended_ms = facts.last_append_ms
    return PartitionInfo(
        partition=partition,
        leader=None if facts.leader is None else facts.leader.id,
        replicas=(partition.home,) if replicas is None else replicas.replicas,
        in_sync=(partition.home,) if replicas is None else replicas.isr,
        min_in_sync=1 if replicas is None else replicas.min_isr,
        leader_epoch=None if replicas is None else replicas.leader_epoch,
        start=None if ends is None else ends.start,
        end=None if ends is None else ends.end,
        segments=facts.segment_count,
        last_append=None
        if appended_ms is None
        else datetime.fromtimestamp(appended_ms / 1000, UTC),
        lags={} if replicas is None else dict(replicas.lags),
        problem="" if problem is None else str(problem),
    )


def count_in(cluster: Cluster, connect: Connect, ranges: Mapping[TopicPartition, ReadRange]) -> int:
    """Return the number of messages in ranges that have ends, by reading them."""
    return sum(count_messages(cluster, connect, ranges, lambda _: None).values())


def sample_of(
    cluster: Cluster,
    connect: Connect,
    ranges: Mapping[TopicPartition, ReadRange],
    count: int,
    random: Random | None,
) -> list[Message]:
    """Return up to `count` messages of each range, evenly spaced or chosen by `random`."""
    with BoundaryFinder(cluster, connect) as positions:
        return [
            Message(
                one.topic, one, found.offset, found.next_offset, bytes(found.payload), found.inner
            )
            for one, wanted in ranges.items()
            for found in Sampler(positions, one, random).sample(wanted, count)
        ]
