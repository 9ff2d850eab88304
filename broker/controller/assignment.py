"""Which brokers get the partitions of a topic, and the replicas of each.

Source: Kafka 0.8 `AdminUtils.assignReplicasToBrokers`, with the racks of later Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from broker.cluster_state import LiveBroker
from broker.errors import InvalidReplicationFactorError, InvalidRequestError
from broker.topic import (
    FORMAT_07,
    FORMAT_KAFKA,
    MAX_PARTITIONS,
    NO_HOME,
    TopicPartition,
    log_directory_name,
)


def validate_target(
    partition: TopicPartition,
    target: tuple[int, ...],
    live: Collection[int],
    present_count: int,
    min_isr: int,
) -> None:
    """Raise `InvalidRequestError` for replicas that a partition cannot be moved to.

    Args:
        target: broker ids, the preferred leader first.
        live: the brokers that may get replicas.
        present_count: how many replicas the partition has.
    """
    if not target or len(set(target)) < len(target):
        raise InvalidRequestError(
            f"replicas {list(target)} of {partition} are none, or name a broker twice"
        )
    if dead := [one for one in target if one not in live]:
        raise InvalidRequestError(
            f"{partition} cannot get a replica on broker {dead[0]}, which is not live"
        )
    if len(target) < min(min_isr, present_count):
        raise InvalidRequestError(
            f"{partition} cannot go down to {len(target)} replicas: its min.insync.replicas is "
            f"{min_isr}, and producers with acks -1 would be refused; lower it first"
        )


def place_partitions(
    topic: str,
    partition_count: int,
    replication_factor: int,
    brokers: Sequence[LiveBroker],
    *,
    format: str = FORMAT_07,
    start: int = 0,
    existing: Iterable[TopicPartition] = (),
) -> dict[TopicPartition, tuple[int, ...]]:
    """Spread new partitions of a topic, and their replicas, over brokers and racks.

    The first replica of each is its preferred leader, and its home in the format 0.7; these go
    round the brokers. The other replicas are shifted by one more with each round, so that the load
    of a failed broker spreads over all others. No two replicas are in one rack while another rack
    has none; racks count only if every broker names its own.

    Args:
        partition_count: how many partitions to add.
        replication_factor: replicas of each, the first included.
        format: of the topic. Kafka's partitions have no home, and one row of numbers.
        start: the broker of the first partition, as a position in the order of brokers; larger
            numbers go round.
        existing: partitions of the topic; new ones get indexes above theirs.

    Returns:
        The broker ids of each new partition, the preferred leader first.
    """
    existing = tuple(existing)
    if partition_count < 1:
        raise InvalidRequestError(
            f"topic '{topic}' cannot get {partition_count} partitions: ask for 1 or more"
        )
    if len(existing) + partition_count > MAX_PARTITIONS:
        raise InvalidRequestError(
            f"topic '{topic}' cannot get {partition_count} partitions: a topic has at most "
            f"{MAX_PARTITIONS}, this one has {len(existing)}"
        )
    if not 1 <= replication_factor <= len(brokers):
        raise InvalidReplicationFactorError(
            f"topic '{topic}' cannot have {replication_factor} replicas of a partition: "
            f"{len(brokers)} brokers are live"
        )
    racks = _racks(brokers)
    order = _alternate_racks(brokers, racks)
    next_index: Counter[int] = Counter()
    for one in existing:
        next_index[one.home] = max(next_index[one.home], one.index + 1)
    placed = {}
    for number in range(partition_count):
        first = (start + number) % len(order)
        leader = order[first]
        candidates = _followers(order, racks, first, shift=(start + number) // len(order))
        replicas = _choose(leader, candidates, racks, replication_factor)
        home = NO_HOME if format == FORMAT_KAFKA else leader
        placed[TopicPartition(topic, home, next_index[home])] = replicas
        next_index[home] += 1
    # raises InvalidTopicError if the name with the partition's number is too long for a directory
    log_directory_name(topic, max(next_index.values()) - 1)
    return placed


def place_replicas(
    partitions: Iterable[TopicPartition], replication_factor: int, brokers: Sequence[LiveBroker]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas for partitions that exist at their homes only; see `place_partitions`."""
    racks = _racks(brokers)
    order = _alternate_racks(brokers, racks)
    return {
        one: _choose(
            one.home,
            _followers(order, racks, order.index(one.home), shift=one.index),
            racks,
            replication_factor,
        )
        for one in partitions
    }


def _racks(brokers: Sequence[LiveBroker]) -> dict[int, str]:
    if all(one.rack for one in brokers):
        return {one.id: one.rack for one in brokers}
    return {one.id: "" for one in brokers}


def _alternate_racks(brokers: Sequence[LiveBroker], racks: dict[int, str]) -> list[int]:
    """Order broker ids so that neighbours are in different racks as far as possible."""
    members: dict[str, list[int]] = {}
    for broker_id in sorted(one.id for one in brokers):
        members.setdefault(racks[broker_id], []).append(broker_id)
    order: list[int] = []
    names = sorted(members)
    while len(order) < len(brokers):
        order += [members[name].pop(0) for name in names if members[name]]
    return order


def _followers(
    order: Sequence[int], racks: dict[int, str], first: int, *, shift: int
) -> Iterator[int]:
    """Yield the other brokers in the order in which they are preferred for a replica."""
    others = len(order) - 1
    for number in range(others):
        after = (shift * len(set(racks.values())) + number) % others
        yield order[(first + 1 + after) % len(order)]


def _choose(
    first: int, candidates: Iterable[int], racks: dict[int, str], count: int
) -> tuple[int, ...]:
    """Take as many candidates as replicas are needed, from racks without a replica first."""
    chosen = [first]
    waiting = list(candidates)
    while len(chosen) < count:
        used = Counter(racks[one] for one in chosen)
        best = min(waiting, key=lambda one: used[racks[one]])  # the first of equals
        waiting.remove(best)
        chosen.append(best)
    return tuple(chosen)
