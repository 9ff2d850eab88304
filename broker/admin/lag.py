"""The lag of a group: its committed offsets compared with the ends of the logs.

A partition is judged by samples over a window of time, oldest first. The status of a group is the
worst status of its partitions. `allowed_lag` bytes of lag count as none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from broker.admin.groups import GroupSnapshot, Member, Owner, StoredOffset, read_group
from broker.admin.topics import Ends, TopicFacts
from broker.client.cluster import Connect
from broker.client.registry_cluster import RegistryCluster
from broker.client.side import Side
from broker.clock import Clock
from broker.consumer.membership import GroupView
from broker.errors import BrokerError
from broker.records import Bytes
from broker.topic import TopicPartition
from broker.zk.registry import Registry
from broker.zk.session import Session
from broker.zk.values import StaticSubscription

_MIN_SAMPLES = 2
_MIN_INTERVAL_S = 0.1
_COUNTED_BYTES = 16 << 20
"""Messages of at most this lag of a group are counted without being asked for."""


class LagStatus(StrEnum):
    """The status of a partition, from best to worst."""

    OK = "OK"
    IDLE = "IDLE"  # of a member
    NO_OFFSET = "NO-OFFSET"
    LAG = "LAG"
    WARN = "WARN"
    STALL = "STALL"
    REWIND = "REWIND"
    STOP = "STOP"
    UNKNOWN = "UNKNOWN"
    GONE = "GONE"
    MISALIGNED = "MISALIGNED"
    OUT_OF_RANGE = "OUT-OF-RANGE"
    VOID = "VOID"
    NOT_A_NUMBER = "NOT-A-NUMBER"


MEANINGS: dict[LagStatus, str] = {
    LagStatus.OK: "the lag is within the allowance, or was at some point of the window, or shrinks",
    LagStatus.IDLE: "a member without an assigned partition",
    LagStatus.NO_OFFSET: "no offset was ever committed",
    LagStatus.LAG: "behind; without a window nothing more is known",
    LagStatus.WARN: "consumes, but the lag never shrinks",
    LagStatus.STALL: "commits, but the offset does not move",
    LagStatus.REWIND: "the offset went back and has not caught up again",
    LagStatus.STOP: "no commit for longer than the window, and not at the end",
    LagStatus.UNKNOWN: "its broker does not respond, or its members keep no offsets in ZooKeeper",
    LagStatus.GONE: "the partition does not exist",
    LagStatus.MISALIGNED: "the committed offset lies inside a message (found only with --count)",
    LagStatus.OUT_OF_RANGE: "the committed offset is before the first or after the last message",
    LagStatus.VOID: "the offset was committed before the topic was created again",
    LagStatus.NOT_A_NUMBER: "the committed offset is no number",
}
_BADNESS = {status: index for index, status in enumerate(LagStatus)}


class LagSample(NamedTuple):
    """A partition at one moment."""

    time_ms: int  # since 1970
    offset: int
    end: int  # after the last readable message
    commit_ms: int  # when `offset` was committed

    @property
    def lag_bytes(self) -> int:
        """Return the bytes not yet consumed, at least 0."""
        return max(0, self.end - self.offset)


def window_status(
    samples: Sequence[LagSample], *, allowed_lag: int = 0, window_ms: int = 0
) -> LagStatus:
    """Return the status of a partition by samples (at least one) of a window."""
    last = samples[-1]
    if last.lag_bytes <= allowed_lag:
        return LagStatus.OK
    covered_ms = last.time_ms - samples[0].time_ms
    if len(samples) < _MIN_SAMPLES or 2 * covered_ms < window_ms:
        return LagStatus.LAG  # no trend can be judged, as less than half of the window is covered
    was_at_end = any(one.lag_bytes <= allowed_lag for one in samples)
    if last.time_ms - last.commit_ms > covered_ms and not was_at_end:
        return LagStatus.STOP
    if last.offset < max(one.offset for one in samples):
        return LagStatus.REWIND
    if was_at_end:
        return LagStatus.OK
    if all(one.offset == last.offset for one in samples):
        return LagStatus.STALL
    if all(after.lag_bytes >= before.lag_bytes for before, after in pairwise(samples)):
        return LagStatus.WARN
    return LagStatus.OK


def within_window(samples: Sequence[LagSample], window_ms: int) -> Sequence[LagSample]:
    """Return the samples (of at least one) that cover the last `window_ms`; the last one for 0."""
    start_ms = samples[-1].time_ms - window_ms
    first = max((index for index, one in enumerate(samples) if one.time_ms <= start_ms), default=0)
    return samples[first:]


def worst(statuses: Iterable[LagStatus]) -> LagStatus:
    """Return the worst status, UNKNOWN if there is none."""
    return max(statuses, key=_BADNESS.__getitem__, default=LagStatus.UNKNOWN)


def consume_rate(samples: Sequence[LagSample]) -> float | None:
    """Return the bytes a second by which the committed offset moved; negative if it went back."""
    if len(samples) < _MIN_SAMPLES or samples[-1].time_ms <= samples[0].time_ms:
        return None
    elapsed_s = (samples[-1].time_ms - samples[0].time_ms) / 1000
    return (samples[-1].offset - samples[0].offset) / elapsed_s


def eta_s(lag_bytes: int, rate: float | None) -> float | None:
    """Return the seconds until the lag is consumed at a rate if nothing is produced."""
    if lag_bytes == 0:
        return 0.0
    return lag_bytes / rate if rate is not None and rate > 0 else None


def age_s(samples: Sequence[LagSample]) -> float | None:
    """Return the age in seconds of the oldest message that is not consumed, None if unknown."""
    # That is the time since the log's end was at the committed offset, interpolated between two
    # samples; unknown if the end was past the offset in all of them.
    if not samples:
        return None
    last = samples[-1]
    if last.lag_bytes == 0:
        return 0.0
    for before, after in reversed(list(pairwise(samples))):
        if before.end <= last.offset < after.end:
            share = (last.offset - before.end) / (after.end - before.end)
            then_ms = before.time_ms + share * (after.time_ms - before.time_ms)
            return (last.time_ms - then_ms) / 1000
    return None


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """The lag of a group in one partition, and the samples it is judged by."""

    partition: TopicPartition
    owner: Owner | None
    stored: StoredOffset | None
    exists: bool
    ends: Ends | None  # None if it does not exist, or its broker is away or does not respond
    samples: tuple[LagSample, ...] = ()  # of the last `window_ms`
    window_ms: int = 0
    lag_messages: int | None = None  # None unless messages were counted
    is_misaligned: bool = False
    written_ms: int | None = None  # about when the next message was written, by its segment
    time_ms: int = 0  # of the observation

    @property
    def lag_bytes(self) -> int | None:
        """Return the bytes not yet consumed, without those retention deleted; None if unknown."""
        offset = None if self.stored is None else self.stored.offset
        if offset is None or self.ends is None or offset > self.ends.end:
            return None
        return self.ends.end - max(offset, self.ends.start)

    @property
    def rate(self) -> float | None:
        """Return `consume_rate` over the window."""
        return consume_rate(self.samples)

    @property
    def eta_s(self) -> float | None:
        """Return the seconds until the lag is consumed at this rate."""
        return None if self.lag_bytes is None else eta_s(self.lag_bytes, self.rate)

    @property
    def age_s(self) -> float | None:
        """Return the age in seconds of the next message to be consumed."""
        if self.lag_bytes is None:
            return None
        by_samples_s = age_s(self.samples)
        if by_samples_s is not None or self.written_ms is None:
            return by_samples_s
        return max(0, self.time_ms - self.written_ms) / 1000

    def status(self, *, allowed_lag: int = 0) -> LagStatus:
        """Return the status."""
        if not self.exists:
            return LagStatus.GONE
        if self.stored is None:
            is_empty = self.ends is not None and self.ends.start == self.ends.end
            if is_empty or (self.owner is None and self.ends is not None):
                return LagStatus.NO_OFFSET
            # its owner reads it from an offset that is kept elsewhere, or not committed yet
            return LagStatus.UNKNOWN
        if self.stored.offset is None:
            return LagStatus.VOID if self.stored.is_void else LagStatus.NOT_A_NUMBER
        if self.ends is None:
            return LagStatus.UNKNOWN
        if not self.ends.start <= self.stored.offset <= self.ends.end:
            return LagStatus.OUT_OF_RANGE
        if self.is_misaligned:
            return LagStatus.MISALIGNED
        return window_status(self.samples, allowed_lag=allowed_lag, window_ms=self.window_ms)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """The lag of a group in all its partitions."""

    snapshot: GroupSnapshot
    partitions: Sequence[ObservedPartition]
    time_ms: int  # since 1970
    failures: Sequence[BrokerError] = ()  # of brokers that did not respond

    @property
    def lag_bytes(self) -> int | None:
        """Return the lag of all partitions where it is known; None if it is known of none."""
        return total(one.lag_bytes for one in self.partitions)

    @property
    def homes(self) -> set[int]:
        """Return the ids of the brokers that were asked."""
        return {one.partition.home for one in self.partitions if one.exists}

    @property
    def idle_members(self) -> list[Member]:
        """Return the members without an assigned partition."""
        busy = {consumer_of(one.owner.thread_id) for one in self.partitions if one.owner}
        return [one for one in self.snapshot.members if one.consumer_id not in busy]

    def status(self, *, allowed_lag: int = 0) -> LagStatus:
        """Return the worst status of a partition; UNKNOWN if there is none."""
        return worst(one.status(allowed_lag=allowed_lag) for one in self.partitions)


def total(numbers: Iterable[float | None]) -> int | None:
    """Return the sum of the known numbers; None if none is known."""
    known = [number for number in numbers if number is not None]
    return round(sum(known)) if known else None


def consumer_of(thread_id: str) -> str:
    """Return the consumer id in a thread id."""
    return thread_id.rpartition("-")[0]


@dataclass(slots=True)
class LagSamples:
    """The samples of the partitions of groups over a window of time."""

    window_ms: int  # 0 for the last one only
    _history: dict[tuple[str, TopicPartition], tuple[LagSample, ...]] = field(default_factory=dict)

    def observe(
        self,
        snapshot: GroupSnapshot,
        partition: TopicPartition,
        ends: Ends | None,
        *,
        exists: bool,
        time_ms: int,
    ) -> ObservedPartition:
        """Add a sample, and return the lag; `ends` are of after the snapshot, None if unknown."""
        stored = snapshot.offsets.get(partition)
        samples: tuple[LagSample, ...] = ()
        if stored is not None and stored.offset is not None and ends is not None:
            key = snapshot.name, partition
            new = LagSample(time_ms, stored.offset, ends.end, stored.commit_ms)
            samples = tuple(within_window((*self._history.get(key, ()), new), self.window_ms))
            self._history[key] = samples
        owner = snapshot.owners.get(partition)
        lag = ObservedPartition(partition, owner, stored, exists, ends, samples, self.window_ms)
        return replace(lag, lag_messages=0) if lag.lag_bytes == 0 else lag

    def keep(self, groups: Collection[str]) -> None:
        """Forget the samples of all other groups."""
        self._history = {key: kept for key, kept in self._history.items() if key[0] in groups}


@dataclass(slots=True)
class GroupObserver:
    """Reads groups and their lag, and keeps the samples of each partition."""

    registry: Registry  # started
    connect: Connect
    clock: Clock
    window_ms: int = 0  # for which samples are kept; 0 for the last one only
    _samples: LagSamples = field(init=False)

    def __post_init__(self) -> None:
        self._samples = LagSamples(self.window_ms)

    @property
    def session(self) -> Session:
        """Return the registry's ZooKeeper session."""
        return self.registry.session

    @property
    def cluster(self) -> RegistryCluster:
        """Return the cluster as ZooKeeper has it now."""
        return RegistryCluster(self.registry)

    def snapshot(self, group: str) -> GroupSnapshot:
        """Read a group from ZooKeeper, without asking brokers."""
        return read_group(self.session, group, all_topics=self.registry.topics())

    def live_partitions(self, snapshot: GroupSnapshot) -> dict[str, list[TopicPartition]]:
        """Return the partitions that members split, by topic: those live or with replicas."""
        # Read as members do, so that the partitions are those that members know.
        subscription = StaticSubscription(dict.fromkeys(snapshot.topics, 1))
        view = GroupView(self.session, snapshot.name, subscription, lambda: None)
        return view.read().partitions

    def lag(
        self,
        *groups: str,
        topics: Sequence[str] = (),
        count: Callable[[int], None] | None = None,
        ages: bool = False,
        estimates: bool = False,
    ) -> list[GroupLag]:
        """Return the lag of groups now, in `topics` only if any are named.

        With `ages` these come from the times of segments where samples do not tell them; with
        `estimates`, messages are counted besides if that reads little. Samples are kept of these
        groups only.
        """
        cluster = self.cluster
        known: dict[str, set[TopicPartition]] = {}
        found = []
        self._samples.keep(groups)
        with TopicFacts(Side(cluster, self.connect)) as facts:
            for group in groups:
                # Offsets are read before the ends, so that no offset can be past its end.
                snapshot = self.snapshot(group)
                if new := [topic for topic in snapshot.topics if topic not in known]:
                    cluster.find_leaders(new)  # a dead home broker does not lead them all
                    known |= {topic: set(cluster.assigned(topic)) for topic in new}
                wanted = [
                    one
                    for one in partitions_of(snapshot, known)
                    if not topics or one.topic in topics
                ]
                existing = {one for one in wanted if one in known[one.topic]}
                ends = facts.ends_of(existing)
                for error in facts.unreadable:
                    raise error
                lags = [
                    self._samples.observe(
                        snapshot,
                        one,
                        ends.get(one),
                        exists=one in existing,
                        time_ms=self.clock.time_ms(),
                    )
                    for one in wanted
                ]
                if count is not None:  # called with the bytes of each chunk that was read
                    lags = [_counted(one, facts, count) for one in lags]
                elif estimates and (total(one.lag_bytes for one in lags) or 0) <= _COUNTED_BYTES:
                    lags = [_counted_if_readable(one, facts) for one in lags]
                if ages or estimates:
                    now_ms = self.clock.time_ms()
                    lags = [_with_age(one, facts, now_ms) for one in lags]
                found.append(GroupLag(snapshot, lags, self.clock.time_ms(), facts.failures))
        return found

    def sample(self, group: str, *, topics: Sequence[str] = (), samples: int) -> None:
        """Take at least so many samples, less the last one, over the window; return at its end."""
        window_s = self.window_ms / 1000
        end_s = time.monotonic() + window_s
        interval_s = max(window_s / (samples - 1), _MIN_INTERVAL_S)
        while (left_s := end_s - time.monotonic()) > 0:
            self.lag(group, topics=topics)
            time.sleep(max(0.0, min(interval_s, left_s)))


def partitions_of(
    snapshot: GroupSnapshot, live: Mapping[str, Collection[TopicPartition]]
) -> list[TopicPartition]:
    """Return the partitions of a group's offsets and owners, and the live ones of its topics."""
    found = {*snapshot.offsets, *snapshot.owners}
    for topic in snapshot.topics:
        found.update(live.get(topic, ()))
    return sorted(found)


def _counted(
    lag: ObservedPartition, facts: TopicFacts, advance: Callable[[int], None]
) -> ObservedPartition:
    """Return the lag with its number of messages, or as misaligned."""
    stored, ends = lag.stored, lag.ends
    if lag.lag_bytes is None or stored is None or stored.offset is None or ends is None:
        return lag
    start = max(stored.offset, ends.start)
    if facts.positions.boundary_before(lag.partition, start) != start:
        return replace(lag, is_misaligned=True)
    messages = facts.count_messages({lag.partition: Ends(start, ends.end)}, advance)
    return replace(lag, lag_messages=messages)


def _counted_if_readable(lag: ObservedPartition, facts: TopicFacts) -> ObservedPartition:
    try:
        return _counted(lag, facts, lambda _size: None)
    except BrokerError:  # the number stays unknown: nobody asked for it
        return lag


def _with_age(lag: ObservedPartition, facts: TopicFacts, now_ms: int) -> ObservedPartition:
    stored, ends = lag.stored, lag.ends
    if not lag.lag_bytes or lag.age_s is not None or stored is None or ends is None:
        return lag
    start = max(stored.offset or 0, ends.start)
    return replace(lag, written_ms=facts.written_ms(lag.partition, start, now_ms), time_ms=now_ms)


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
            partition: CommittedOffset(stored.offset, _moment(stored.commit_ms), stored.problem)
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
