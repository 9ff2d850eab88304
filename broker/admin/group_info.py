"""Consumer groups and their lag as values for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple

from broker.admin.groups import GroupSnapshot
from broker.admin.lag import GroupLag, LagStatus, ObservedPartition, consumer_of
from broker.records import Bytes
from broker.topic import TopicPartition

_NO_LAG = (LagStatus.NO_OFFSET, LagStatus.GONE)


class CommittedOffset(NamedTuple):
    """An offset that a group has committed; None if it cannot be used, then `problem` says why."""

    offset: int | None
    committed: datetime  # by the clock of ZooKeeper
    problem: str = ""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group."""

    id: str
    topics: tuple[str, ...]  # that it consumes; empty if its subscription cannot be decoded
    thread_count: int  # of its consumer threads
    partitions: tuple[TopicPartition, ...]  # assigned to it
    joined: datetime


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A consumer group."""

    name: str
    state: Literal["active", "empty", "dead"]  # with members; with offsets only; with neither
    members: tuple[GroupMember, ...]
    topics: tuple[str, ...]  # of its members, owners and offsets
    owners: Mapping[TopicPartition, str]  # the consumer thread that a partition is assigned to
    offsets: Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in a partition; None for what is unknown."""

    partition: TopicPartition
    status: LagStatus
    owner: str | None  # the consumer thread that it is assigned to
    offset: int | None  # committed
    committed: datetime | None  # when, by the clock of ZooKeeper
    end: int | None  # offset after the last readable message
    lag_bytes: int | None  # not yet consumed, without what retention deleted
    bytes_per_s: float | None  # consumed, over the window; negative if the offset went back
    eta_s: float | None  # until the lag is consumed at this rate if nothing is produced
    age_s: float | None  # since the end passed the offset, if that was in the window


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is behind."""

    group: str
    status: LagStatus  # the worst one of its partitions
    partitions: tuple[PartitionLag, ...]  # of its offsets, and of the topics of its members
    time: datetime

    @property
    def total_bytes(self) -> Annotated[Bytes, "bytes not yet consumed, where that is known of all"]:
        """The lag of all partitions with an offset; None if that of one, or of all, is unknown."""
        numbers = [one.lag_bytes or 0 for one in self.partitions]
        unknown = (one.lag_bytes is None and one.status not in _NO_LAG for one in self.partitions)
        return None if not numbers or any(unknown) else sum(numbers)


def info_of(snapshot: GroupSnapshot) -> GroupInfo:
    """Return a group as a value."""
    owners = snapshot.owner_threads
    return GroupInfo(
        snapshot.name,
        snapshot.state,
        tuple(
            GroupMember(
                one.consumer_id,
                tuple(sorted(one.stream_counts)),
                one.thread_count,
                tuple(p for p, thread in owners.items() if consumer_of(thread) == one.consumer_id),
                _moment(one.since_ms),
            )
            for one in snapshot.members
        ),
        tuple(snapshot.topics),
        owners,
        {
            partition: CommittedOffset(
                stored.offset,
                _moment(stored.commit_ms),
                stored.problem if stored.offset is None else "",
            )
            for partition, stored in snapshot.offsets.items()
        },
    )


def lag_of(found: GroupLag) -> Lag:
    """Return the lag of a group as a value."""
    partitions = tuple(map(_partition_lag, found.partitions))
    return Lag(found.snapshot.name, found.status(), partitions, _moment(found.time_ms))


def _partition_lag(one: ObservedPartition) -> PartitionLag:
    stored = one.stored
    return PartitionLag(
        one.partition,
        one.status(),
        None if one.owner is None else one.owner.thread_id,
        None if stored is None else stored.offset,
        None if stored is None else _moment(stored.commit_ms),
        None if one.ends is None else one.ends.end,
        one.lag_bytes,
        one.rate,
        None if one.rate is None else one.eta_s,
        one.age_s,
    )


def _moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
