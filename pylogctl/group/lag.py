"""Where a group stands in each partition: what it committed beside what the log has.

Puts the registry's view and the brokers' answers together, once or over a window of time. Knows no
command and writes nothing.

How far a group is behind, and what its recent history says about it: pure functions.

One partition is judged over a window of samples; the worst status of its partitions is that of a
group. Nothing here asks anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from broker.client.cluster import Connect, RegistryCluster
from broker.clock import Clock
from broker.errors import BrokerError, BrokerUnreachableError, RequestTimeoutError
from broker.topic import TopicPartition
from broker.zk.registry import Registry
from pylogctl.group.snapshot import GroupSnapshot, Member, Owner, StoredOffset, read_group
from pylogctl.topic.facts import Ends, TopicFacts

MIN_SAMPLES = 2


class Status(StrEnum):
    """How a partition of a group does, from best to worst."""

    OK = "OK"
    IDLE = "IDLE"  # a member that has no partition
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
    NOT_A_NUMBER = "NOT-A-NUMBER"


MEANINGS: dict[Status, str] = {
    Status.OK: "the lag is within the allowance, or was so at some point of the window, or shrinks",
    Status.IDLE: "a member that owns no partition",
    Status.NO_OFFSET: "nothing was ever committed",
    Status.LAG: "behind; without a window there is no more to say",
    Status.WARN: "consumes, but the lag never shrinks",
    Status.STALL: "commits, but the offset does not move",
    Status.REWIND: "the offset went back and has not caught up again",
    Status.STOP: "no commit for longer than the window, and not at the end",
    Status.UNKNOWN: "its broker does not answer",
    Status.GONE: "the partition is not there, or its broker is not",
    Status.MISALIGNED: "the committed offset lies inside a message (looked for with --count)",
    Status.OUT_OF_RANGE: "the committed offset is before the first or after the last message",
    Status.NOT_A_NUMBER: "the committed offset is no number",
}
_BADNESS = {status: place for place, status in enumerate(Status)}


class Sample(NamedTuple):
    """What was seen of a partition at one moment; times are milliseconds since 1970.

    `offset` is the committed one and `commit_ms` when it was; `end` is the offset after the last
    message that can be read.
    """

    time_ms: int
    offset: int
    end: int
    commit_ms: int

    @property
    def lag_bytes(self) -> int:
        """Return the bytes that are still to be read, never less than none."""
        return max(0, self.end - self.offset)


def window_status(samples: Sequence[Sample], *, allowed_lag: int = 0, window_ms: int = 0) -> Status:
    """Return how a partition does over a window.

    Args:
        samples: at least one, oldest first.
        allowed_lag: bytes of lag that do not count.
        window_ms: the window wanted; nothing is judged before half of it has been seen.
    """
    last = samples[-1]
    if last.lag_bytes <= allowed_lag:
        return Status.OK
    covered_ms = last.time_ms - samples[0].time_ms
    if len(samples) < MIN_SAMPLES or 2 * covered_ms < window_ms:
        return Status.LAG
    was_at_end = any(one.lag_bytes <= allowed_lag for one in samples)
    if last.time_ms - last.commit_ms > covered_ms and not was_at_end:
        return Status.STOP
    if last.offset < max(one.offset for one in samples):
        return Status.REWIND
    if was_at_end:
        return Status.OK
    if all(one.offset == last.offset for one in samples):
        return Status.STALL
    if all(after.lag_bytes >= before.lag_bytes for before, after in pairwise(samples)):
        return Status.WARN
    return Status.OK


def within_window(samples: Sequence[Sample], window_ms: int) -> Sequence[Sample]:
    """Return the last samples: those of the window, and the one that stood at its start.

    Args:
        samples: at least one, oldest first.
        window_ms: 0 for the last one only.
    """
    start_ms = samples[-1].time_ms - window_ms
    first = max((place for place, one in enumerate(samples) if one.time_ms <= start_ms), default=0)
    return samples[first:]


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst of some statuses; OK if there are none."""
    return max(statuses, key=_BADNESS.__getitem__, default=Status.OK)


def consume_rate(samples: Sequence[Sample]) -> float | None:
    """Return the bytes a second by which the committed offset moved over the window.

    Args:
        samples: oldest first.

    Returns:
        None with fewer than two samples; below zero if the offset went back.
    """
    if len(samples) < MIN_SAMPLES or samples[-1].time_ms <= samples[0].time_ms:
        return None
    elapsed_s = (samples[-1].time_ms - samples[0].time_ms) / 1000
    return (samples[-1].offset - samples[0].offset) / elapsed_s


def eta_s(lag_bytes: int, rate: float | None) -> float | None:
    """Return after how many seconds a lag is gone at a rate, if nothing new comes.

    Returns:
        None if that is not known, or never.
    """
    if lag_bytes == 0:
        return 0.0
    return lag_bytes / rate if rate is not None and rate > 0 else None


def age_s(samples: Sequence[Sample]) -> float | None:
    """Return for how long the log's end has been past the committed offset.

    This is the age in seconds of the oldest message that is not consumed, as far as the samples
    tell: the time since the end had the value of the committed offset, on a straight line between
    two samples.

    Args:
        samples: oldest first.

    Returns:
        0 without lag, None if the end was past the offset in all samples.
    """
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
class Standing:
    """Where a group stands in one partition.

    `is_there` says whether the partition is on a live broker; `ends` is None if it is not, or if
    the broker does not answer. `samples` has what was seen over the window of `window_ms`,
    this moment last. `lag_messages` is None unless they were counted.
    """

    partition: TopicPartition
    owner: Owner | None
    stored: StoredOffset | None
    is_there: bool
    ends: Ends | None
    samples: tuple[Sample, ...] = ()
    window_ms: int = 0
    lag_messages: int | None = None
    is_misaligned: bool = False

    @property
    def lag_bytes(self) -> int | None:
        """Return the bytes still to be read; None if that cannot be known.

        Bytes that retention has removed do not count, as nobody can read them.
        """
        offset = None if self.stored is None else self.stored.offset
        if offset is None or self.ends is None or offset > self.ends.end:
            return None
        return self.ends.end - max(offset, self.ends.start)

    @property
    def rate(self) -> float | None:
        """Return the bytes a second by which the offset moved over the window."""
        return consume_rate(self.samples)

    @property
    def eta_s(self) -> float | None:
        """Return after how many seconds the lag is gone at this rate."""
        return None if self.lag_bytes is None else eta_s(self.lag_bytes, self.rate)

    @property
    def age_s(self) -> float | None:
        """Return the age in seconds of what is to be read next."""
        return None if self.lag_bytes is None else age_s(self.samples)

    def status(self, *, allowed_lag: int = 0) -> Status:
        """Return how the group does here.

        Args:
            allowed_lag: bytes of lag that do not count.
        """
        if not self.is_there:
            return Status.GONE
        if self.stored is None:
            return Status.NO_OFFSET
        if self.stored.offset is None:
            return Status.NOT_A_NUMBER
        if self.ends is None:
            return Status.UNKNOWN
        if not self.ends.start <= self.stored.offset <= self.ends.end:
            return Status.OUT_OF_RANGE
        if self.is_misaligned:
            return Status.MISALIGNED
        return window_status(self.samples, allowed_lag=allowed_lag, window_ms=self.window_ms)


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group in all its partitions at one moment; `failures` are the brokers' that did not answer.

    `time_ms` is milliseconds since 1970.
    """

    snapshot: GroupSnapshot
    partitions: Sequence[Standing]
    time_ms: int
    failures: Sequence[BrokerError] = ()

    @property
    def lag_bytes(self) -> int | None:
        """Return the lag of all partitions where it is known; None if it is known of none."""
        return total(one.lag_bytes for one in self.partitions)

    @property
    def homes(self) -> set[int]:
        """Return the ids of the brokers that were asked."""
        return {one.partition.home for one in self.partitions if one.is_there}

    @property
    def idle_members(self) -> list[Member]:
        """Return the members that own no partition."""
        busy = {consumer_of(one.owner.thread_id) for one in self.partitions if one.owner}
        return [one for one in self.snapshot.members if one.consumer_id not in busy]

    def status(self, *, allowed_lag: int = 0) -> Status:
        """Return the worst status of its partitions.

        Args:
            allowed_lag: bytes of lag that do not count, for each partition.
        """
        return worst(one.status(allowed_lag=allowed_lag) for one in self.partitions)


def total(numbers: Iterable[float | None]) -> int | None:
    """Return the sum of those numbers that are known; None if none is."""
    known = [number for number in numbers if number is not None]
    return round(sum(known)) if known else None


def consumer_of(thread_id: str) -> str:
    """Return the id of the consumer that a thread is of."""
    return thread_id.rpartition("-")[0]


@dataclass(slots=True)
class GroupObserver:
    """Looks at groups again and again, and remembers what it saw of each partition.

    Args:
        registry: started.
        connect: makes connections to brokers.
        clock: tells the time of each look.
        window_ms: for how long samples are kept; 0 for the last one only.
    """

    registry: Registry
    connect: Connect
    clock: Clock
    window_ms: int = 0
    _history: dict[tuple[str, TopicPartition], tuple[Sample, ...]] = field(default_factory=dict)

    def snapshot(self, group: str) -> GroupSnapshot:
        """Read a group from the registry, without asking brokers.

        Raises:
            CoordinationError: the registry does not answer.
        """
        return read_group(self.registry.session, group, all_topics=self.registry.topics())

    def look(
        self,
        *groups: str,
        topics: Sequence[str] = (),
        count: Callable[[int], None] | None = None,
    ) -> list[GroupStanding]:
        """Look at groups once, each broker being asked over one connection.

        Args:
            groups: names of groups.
            topics: only these; all that the group reads or has read if empty.
            count: count the messages that are to be read, too; called with the number of bytes
                read, again and again.

        Raises:
            CoordinationError: the registry does not answer.
            CliError: a message is corrupt, with `count`.
        """
        cluster = RegistryCluster(self.registry)
        there: dict[str, list[TopicPartition]] = {}
        found = []
        with TopicFacts(cluster, self.connect) as facts:
            for group in groups:
                # Offsets are read before the ends, so that none seems to be past its end.
                snapshot = self.snapshot(group)
                for topic in snapshot.topics:
                    if topic not in there:
                        there[topic] = cluster.partitions(topic)
                standings = [
                    self._standing(snapshot, one, facts, is_there=one in there[one.topic])
                    for one in partitions_of(snapshot, there)
                    if not topics or one.topic in topics
                ]
                if count is not None:
                    standings = [_counted(one, facts, count) for one in standings]
                now_ms = self.clock.time_ms()
                found.append(GroupStanding(snapshot, standings, now_ms, facts.failures))
        return found

    def _standing(
        self,
        snapshot: GroupSnapshot,
        partition: TopicPartition,
        facts: TopicFacts,
        *,
        is_there: bool,
    ) -> Standing:
        stored = snapshot.offsets.get(partition)
        ends = None
        if is_there:
            with suppress(BrokerUnreachableError, RequestTimeoutError):
                ends = facts.ends(partition)
        samples: tuple[Sample, ...] = ()
        if stored is not None and stored.offset is not None and ends is not None:
            now_ms = self.clock.time_ms()
            new = Sample(now_ms, stored.offset, ends.end, stored.commit_ms)
            samples = self._remember((snapshot.name, partition), new)
        return Standing(partition, snapshot.owners.get(partition), stored, is_there, ends, samples)

    def _remember(self, key: tuple[str, TopicPartition], new: Sample) -> tuple[Sample, ...]:
        kept = tuple(within_window((*self._history.get(key, ()), new), self.window_ms))
        self._history[key] = kept
        return kept


def partitions_of(
    snapshot: GroupSnapshot, there: Mapping[str, Sequence[TopicPartition]]
) -> list[TopicPartition]:
    """Return the partitions a group has to do with, by name.

    Args:
        snapshot: the group.
        there: the partitions of each of its topics on live brokers.
    """
    found = {*snapshot.offsets, *snapshot.owners}
    for topic in snapshot.topics:
        found.update(there.get(topic, ()))
    return sorted(found)


def partitions_there(
    registry: Registry, snapshot: GroupSnapshot
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each of a group's topics on live brokers.

    Raises:
        CoordinationError: the registry does not answer.
    """
    cluster = RegistryCluster(registry)
    return {topic: cluster.partitions(topic) for topic in snapshot.topics}


def _counted(standing: Standing, facts: TopicFacts, advance: Callable[[int], None]) -> Standing:
    """Return a standing with the number of messages that are to be read."""
    stored, ends = standing.stored, standing.ends
    if standing.lag_bytes is None or stored is None or stored.offset is None or ends is None:
        return standing
    start = max(stored.offset, ends.start)
    is_misaligned = facts.positions.boundary_before(standing.partition, start) != start
    messages = None
    if not is_misaligned:
        messages = facts.count_messages({standing.partition: Ends(start, ends.end)}, advance)
    return replace(standing, lag_messages=messages, is_misaligned=is_misaligned)
