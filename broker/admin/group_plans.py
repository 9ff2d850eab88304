"""Plans of changes to the offsets of groups.

A new offset is always in the log and on a message boundary: other offsets are moved there, and the
plan notes it. `group_changes` applies plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from broker.admin.groups import GroupSnapshot, StoredOffset
from broker.admin.lag import GroupObserver
from broker.admin.topics import Ends, TopicFacts
from broker.client.side import Side
from broker.errors import ArgumentError, ConflictError
from broker.partition_patterns import PartitionPattern
from broker.positions import (
    Absolute,
    ByBytes,
    ByMessages,
    Mark,
    OffsetRange,
    OffsetSource,
    Position,
    parse_offset_spec,
    resolve,
)
from broker.topic import TopicPartition
from broker.units import parse_duration_ms

_GONE = "the partition is on no live broker"


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """An offset to be imported: a line of a file, or an item of a mapping."""

    group: str | None  # None if the file names none
    topic: str
    pattern: PartitionPattern
    offset: int | None  # None to delete it
    line: int = 0  # in the file
    checks_current: bool = False  # in a saved plan: the committed offset must still be `current`
    current: int | None = None

    @classmethod
    def of(cls, partition: TopicPartition, offset: int | None) -> OffsetRecord:
        """Return the record of one partition's offset."""
        pattern = PartitionPattern(partition.home, partition.index, partition.index)
        return cls(None, partition.topic, pattern, offset)

    def matches(self, partition: TopicPartition) -> bool:
        """Return whether this is the offset of a partition."""
        return self.topic == partition.topic and self.pattern.matches(partition)

    def __str__(self) -> str:
        home, first, *_ = self.pattern
        if home is None:
            return f"{self.topic}[*-{first}]"
        return str(TopicPartition(self.topic, home, first))


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of a group's offset in one partition."""

    group: str
    partition: TopicPartition
    current: StoredOffset | None  # the node as it was read
    new: int | None  # None to delete the offset
    notes: tuple[str, ...] = ()  # how `new` was adjusted, or why the offset is kept
    keeps: bool = False
    fails: bool = False  # it is kept, but the user asked for a change

    @property
    def current_offset(self) -> int | None:
        """Return the committed offset; None if there is none or it is no number."""
        return None if self.current is None else self.current.offset

    @property
    def is_needed(self) -> bool:
        """Return whether a node has to be written or deleted."""
        if self.keeps:
            return False
        if self.new is None:
            return self.current is not None
        return self.new != self.current_offset

    @property
    def delta_bytes(self) -> int | None:
        """Return the distance from the current offset to the new one."""
        if self.new is None or self.current_offset is None:
            return None
        return self.new - self.current_offset

    @property
    def direction(self) -> Literal["forward", "back", "same", "new", "removed"]:
        """Return the direction in which the offset moves."""
        if not self.is_needed:
            return "same"
        if self.new is None:
            return "removed"
        if self.delta_bytes is None:
            return "new"
        return "forward" if self.delta_bytes > 0 else "back"


class ShiftTime(NamedTuple):
    """A shift to the offset at the time of the last commit plus `delta_ms`."""

    delta_ms: int


PositionOf = Callable[[TopicPartition], Position | None]
"""The position of a partition; None to leave its offset as it is."""

Target = PositionOf | ByMessages | ByBytes | ShiftTime | list[OffsetRecord] | GroupSnapshot
"""Where offsets go: to a position, shifted by messages, bytes or time, to given offsets, or to
those of another group."""


def parse_shift(text: str) -> ByMessages | ByBytes:
    """Parse `+N`, `-N`, `+SIZE` or `-SIZE`."""
    if text[:1] in ("+", "-"):
        start = parse_offset_spec([text], now_ms=0).default
        if isinstance(start.start, ByMessages | ByBytes) and start.end is None:
            return start.start
    raise ArgumentError(f"not a shift: '{text}'", hints=["valid: shift:+100, shift:-64KiB"])


def parse_shift_time(text: str) -> ShiftTime:
    """Parse a duration with a sign, such as `-1h` or `+1h`."""
    if text[:1] not in ("+", "-"):
        raise ArgumentError(f"not a time to shift by: '{text}'", hints=["valid: by:-1h, by:+10m"])
    delta_ms = parse_duration_ms(text[1:])
    return ShiftTime(-delta_ms if text[0] == "-" else delta_ms)


@dataclass(frozen=True, slots=True)
class ResetPlanner:
    """Plans the offset changes of one group."""

    group: str
    offsets: Mapping[TopicPartition, StoredOffset]
    ends: Callable[[TopicPartition], Ends]
    source: OffsetSource

    def plan(self, partition: TopicPartition, target: Target) -> Change:
        """Return the change of a partition on a live broker."""
        current = self.offsets.get(partition)
        match target:
            case list():
                return self._to_entry(partition, target)
            case GroupSnapshot(name=other, offsets=offsets):
                stored = offsets.get(partition)
                if stored is None or stored.offset is None:
                    return self.keep(partition, f"group '{other}' has no offset here")
                return self._to_offset(partition, stored.offset)
        if callable(target):
            return self._to_position(partition, target(partition))
        if current is None:
            return self.keep(partition, "there is no offset to shift")
        if current.offset is None:
            return self.keep(partition, _useless(current), fails=True)
        if isinstance(target, ShiftTime):
            return self._shifted_in_time(partition, current, target.delta_ms)
        return self._shifted(partition, current.offset, target)

    def keep(self, partition: TopicPartition, note: str = "", *, fails: bool = False) -> Change:
        """Return the plan that does not change an offset, noting the reason."""
        current = self.offsets.get(partition)
        new = None if current is None else current.offset
        notes = (note,) if note else ()
        return Change(self.group, partition, current, new, notes, keeps=True, fails=fails)

    def _to_offset(self, partition: TopicPartition, wanted: int) -> Change:
        """Plan the valid offset at or before `wanted`, so that no message is skipped."""
        start, end = self.ends(partition)
        notes = []
        offset = min(max(wanted, start), end)
        if wanted < start:
            notes.append(f"{wanted} is before the first offset {start}")
        elif wanted > end:
            notes.append(f"{wanted} is after the last offset {end}")
        boundary = self.source.boundary_before(partition, offset)
        if boundary != offset:
            notes.append(f"{offset} is inside the message at {boundary}")
        return self._change(partition, boundary, *notes)

    def _change(self, partition: TopicPartition, offset: int, *notes: str) -> Change:
        current = self.offsets.get(partition)
        if current is not None and current.offset is None:
            notes = (*notes, _useless(current))
        return Change(self.group, partition, current, offset, notes)

    def _to_position(self, partition: TopicPartition, position: Position | None) -> Change:
        if position is None or position is Mark.STORED:
            return self.keep(partition)
        if isinstance(position, Absolute) and not position.nearest:
            return self._to_offset(partition, position.position)
        return self._resolved(partition, position, self.source)

    def _resolved(
        self, partition: TopicPartition, position: Position, source: OffsetSource
    ) -> Change:
        warnings: list[str] = []
        found = resolve(OffsetRange(position, None), partition, source, warn=warnings.append)
        notes = [text.removeprefix(f"{partition}: ") for text in warnings]
        if found.start.inner:
            notes.append(f"at the start of its compressed set, {found.start.inner} messages before")
        return self._change(partition, found.start.offset, *notes)

    def _to_entry(self, partition: TopicPartition, entries: Sequence[OffsetRecord]) -> Change:
        entry = next((one for one in reversed(entries) if one.matches(partition)), None)
        if entry is None:
            return self.keep(partition, "not in the file")
        if entry.offset is None:
            return Change(self.group, partition, self.offsets.get(partition), None)
        return self._to_offset(partition, entry.offset)

    def _shifted(self, partition: TopicPartition, offset: int, by: ByMessages | ByBytes) -> Change:
        here = self._to_offset(partition, offset)
        start, end = self.ends(partition)
        base = start if here.new is None else here.new
        # A shift is resolved in a log that ends at the group's offset, or that starts there.
        ends = Ends(start, base) if by.from_end else Ends(base, end)
        moved = self._resolved(partition, by, _LogPart(self.source, ends))
        return replace(moved, notes=(*here.notes, *moved.notes))

    def _shifted_in_time(
        self, partition: TopicPartition, current: StoredOffset, delta_ms: int
    ) -> Change:
        start, end = self.ends(partition)
        offset = current.offset or 0
        time_ms = max(0, current.commit_ms + delta_ms)
        found = self.source.by_time(partition, time_ms, rounded_up=delta_ms > 0)
        if delta_ms > 0:
            return self._to_offset(partition, max(end if found is None else found, offset))
        # If the group is far behind, the segment written at that time may be after its offset.
        return self._to_offset(partition, min(start if found is None else found, offset))


def _useless(stored: StoredOffset) -> str:
    return f"the current offset {stored.problem}"


class _LogPart:
    """An `OffsetSource` of a log with other ends."""

    def __init__(self, source: OffsetSource, ends: Ends) -> None:
        self._ends = ends
        self.by_time = source.by_time
        self.boundary_before = source.boundary_before
        self.boundary_after = source.boundary_after
        self.message_counts = source.message_counts

    def earliest(self, partition: TopicPartition) -> int:
        return self._ends.start

    def latest(self, partition: TopicPartition) -> int:
        return self._ends.end


def plan_reset(
    observer: GroupObserver,
    snapshot: GroupSnapshot,
    target: Target,
    partitions: Sequence[TopicPartition] | None = None,
) -> list[Change]:
    """Plan the changes of a group's offsets in live partitions, or in all topics of the group."""
    cluster = observer.cluster
    with TopicFacts(Side(cluster, observer.connect)) as facts:
        planner = ResetPlanner(snapshot.name, snapshot.offsets, facts.ends, facts.positions)
        if partitions is not None:
            return [planner.plan(one, target) for one in partitions]
        live = [one for topic in snapshot.topics for one in cluster.partitions(topic)]
        gone = sorted(snapshot.offsets.keys() - set(live))
        plans = [planner.plan(one, target) for one in live]
        return sorted(
            [*plans, *(planner.keep(one, _GONE, fails=True) for one in gone)],
            key=lambda change: change.partition,
        )


def plan_import(
    observer: GroupObserver, snapshot: GroupSnapshot, entries: Sequence[OffsetRecord]
) -> list[Change]:
    """Plan changes to the offsets of a file, the last of each partition; the group may be new."""
    cluster = observer.cluster
    is_live: dict[TopicPartition, bool] = dict.fromkeys(snapshot.offsets, False)
    for topic in dict.fromkeys(entry.topic for entry in entries):
        is_live |= dict.fromkeys(cluster.partitions(topic), True)
    changes: dict[TopicPartition, Change] = {}
    with TopicFacts(Side(cluster, observer.connect)) as facts:
        planner = ResetPlanner(snapshot.name, snapshot.offsets, facts.ends, facts.positions)
        for entry in entries:
            matching = [one for one in is_live if entry.matches(one)]
            if not matching and entry.offset is not None:
                one = TopicPartition(entry.topic, entry.pattern.home or 0, entry.pattern.first)
                changes[one] = planner.keep(one, _GONE, fails=True)
            for one in matching:
                _check_current(snapshot, one, entry)
                if entry.checks_current and entry.offset is None and entry.current is None:
                    changes[one] = planner.keep(one)  # the saved plan kept the offset, too
                elif is_live[one] or entry.offset is None:
                    changes[one] = planner.plan(one, [entry])
                else:
                    changes[one] = planner.keep(one, _GONE, fails=True)
    return sorted(changes.values(), key=lambda change: change.partition)


def _check_current(snapshot: GroupSnapshot, partition: TopicPartition, entry: OffsetRecord) -> None:
    """Raise ConflictError if the entry of a saved plan expects another current offset."""
    stored = snapshot.offsets.get(partition)
    current = None if stored is None else stored.offset
    if entry.checks_current and entry.current != current:
        found, expected = ("none" if one is None else one for one in (current, entry.current))
        raise ConflictError(
            f"group '{snapshot.name}': the offset of {partition} is {found}, "
            f"but the plan was made when it was {expected}",
            "OFFSET_CHANGED",
            hints=["make the plan again"],
        )


def plan_removal(snapshot: GroupSnapshot) -> list[Change]:
    """Plan to remove all offsets of a group."""
    return [
        Change(snapshot.name, partition, stored, None)
        for partition, stored in snapshot.offsets.items()
    ]
