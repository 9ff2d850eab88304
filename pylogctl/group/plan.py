"""Where a group's offsets are to go: the targets of a reset, and the plan that comes of them.

A new offset always lies in the log and on a message boundary: what the user names is moved there,
and a note says so. Plans only; `changes` carries them out.

From what the user asked for to a plan for a whole group: which partitions, and where to.

Asks registry and brokers; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from broker.client.cluster import RegistryCluster
from broker.topic import TopicPartition
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.offset_resolution import OffsetSource, resolve
from pylogctl.cli.offsets import (
    Absolute,
    ByBytes,
    ByMessages,
    Mark,
    OffsetRange,
    OffsetSpec,
    Position,
    parse_offset_spec,
)
from pylogctl.cli.selection import PartitionList, select_partitions, select_topics
from pylogctl.cli.units import parse_duration_ms
from pylogctl.group.lag import GroupObserver
from pylogctl.group.offsets_file import Entry, parse_entries
from pylogctl.group.snapshot import GroupSnapshot, StoredOffset, require_group
from pylogctl.topic.facts import Ends, TopicFacts

_HINT = (
    "valid: start, end, 4096, ~4096, -100, -64KiB, @-10m, 0=4096,1=end, "
    "shift:-100, by:-1h, group:OTHER, file:PATH"
)


class Direction(Enum):
    """Which way an offset goes."""

    FORWARD = "forward"
    BACK = "back"
    SAME = "same"
    NEW = "new"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a group's offset in one partition.

    `current` is the node as it was read, None for none; `new` is None to have none. With `keeps`
    the offset stays as it is, and the note says why; with `fails` this is not what was asked for.
    """

    group: str
    partition: TopicPartition
    current: StoredOffset | None
    new: int | None
    notes: tuple[str, ...] = ()
    keeps: bool = False
    fails: bool = False

    @property
    def current_offset(self) -> int | None:
        """Return the offset as it is, None if there is none or it is no number."""
        return None if self.current is None else self.current.offset

    @property
    def is_needed(self) -> bool:
        """Say whether anything is to be written."""
        if self.keeps:
            return False
        if self.new is None:
            return self.current is not None
        return self.new != self.current_offset

    @property
    def delta_bytes(self) -> int | None:
        """Return by how far the offset moves."""
        if self.new is None or self.current_offset is None:
            return None
        return self.new - self.current_offset

    @property
    def direction(self) -> Direction:
        """Return which way the offset goes."""
        if not self.is_needed:
            return Direction.SAME
        if self.new is None:
            return Direction.REMOVED
        if self.delta_bytes is None:
            return Direction.NEW
        return Direction.FORWARD if self.delta_bytes > 0 else Direction.BACK


class Limits(Protocol):
    """Where the log of a partition starts and ends."""

    def ends(self, partition: TopicPartition) -> Ends:
        """Return the limits of a partition."""


@dataclass(frozen=True, slots=True)
class ToSpec:
    """To what an offset expression means, by partition."""

    spec: OffsetSpec


@dataclass(frozen=True, slots=True)
class Shift:
    """On or back by messages or bytes from where the group is."""

    by: ByMessages | ByBytes


@dataclass(frozen=True, slots=True)
class ShiftTime:
    """To the position of a moment, so many milliseconds from that of the last commit."""

    delta_ms: int


@dataclass(frozen=True, slots=True)
class ToEntries:
    """To the offsets of a file; None where there is no file yet but a path to it."""

    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class ToGroup:
    """To where another group is."""

    group: str
    offsets: Mapping[TopicPartition, StoredOffset]


Target = ToSpec | Shift | ShiftTime | ToEntries | ToGroup


def parse_shift(text: str) -> Shift:
    """Return the meaning of `+N`, `-N`, `+SIZE` or `-SIZE`.

    Raises:
        UsageError: it is none of these.
    """
    if text[:1] in ("+", "-"):
        start = parse_offset_spec([text], now_ms=0).default
        if isinstance(start.start, ByMessages | ByBytes) and start.end is None:
            return Shift(start.start)
    raise UsageError(f"not a shift: '{text}'", hints=["valid: shift:+100, shift:-64KiB"])


def parse_shift_time(text: str) -> ShiftTime:
    """Return the meaning of `-1h` or `+1h`.

    Raises:
        UsageError: it is neither.
    """
    if text[:1] not in ("+", "-"):
        raise UsageError(f"not a time to shift by: '{text}'", hints=["valid: by:-1h, by:+10m"])
    delta_ms = parse_duration_ms(text[1:])
    return ShiftTime(-delta_ms if text[0] == "-" else delta_ms)


def parse_spec(text: str, *, now_ms: int) -> ToSpec:
    """Return the meaning of an offset expression without an end.

    Raises:
        UsageError: it is none, or it has an end.
    """
    try:
        spec = parse_offset_spec([text], now_ms=now_ms)
    except UsageError as error:
        raise UsageError(error.message, hints=[_HINT]) from error
    ranges = [spec.default, *(offsets for _, offsets in spec.partitions)]
    if any(one.end is not None for one in ranges):
        raise UsageError(f"--to '{text}' has an end, but a group has only one position")
    return ToSpec(spec)


class Planner:
    """Plans where the offsets of one group go.

    Args:
        group: its name.
        offsets: its offsets as they are.
        limits: tells where logs start and end.
        positions: looks up boundaries.
    """

    def __init__(
        self,
        group: str,
        offsets: Mapping[TopicPartition, StoredOffset],
        limits: Limits,
        positions: OffsetSource,
    ) -> None:
        self._group = group
        self._offsets = offsets
        self._limits = limits
        self._positions = positions

    def plan(self, partition: TopicPartition, target: Target) -> Change:
        """Return what becomes of the offset of a partition on a live broker.

        Raises:
            BrokerError: its broker does not answer.
        """
        current = self._offsets.get(partition)
        match target:
            case ToSpec(spec):
                return self._to_position(partition, spec.range_for(partition).start)
            case ToEntries(entries):
                return self._to_entry(partition, entries)
            case ToGroup(other, offsets):
                stored = offsets.get(partition)
                if stored is None or stored.offset is None:
                    return self.keep(partition, f"group '{other}' has no offset here")
                return self.place(partition, stored.offset)
        if current is None:
            return self.keep(partition, "there is no offset to shift")
        if current.offset is None:
            return self.keep(partition, _not_a_number(current), fails=True)
        if isinstance(target, Shift):
            return self._shifted(partition, current.offset, target.by)
        return self._shifted_in_time(partition, current, target.delta_ms)

    def keep(self, partition: TopicPartition, note: str = "", *, fails: bool = False) -> Change:
        """Return the plan that leaves an offset as it is.

        Args:
            partition: which.
            note: why.
            fails: that is not what was asked for.
        """
        current = self._offsets.get(partition)
        new = None if current is None else current.offset
        notes = (note,) if note else ()
        return Change(self._group, partition, current, new, notes, keeps=True, fails=fails)

    def place(self, partition: TopicPartition, wanted: int) -> Change:
        """Return the plan to go to an offset, or to the valid one at or before it.

        At or before, so that no message is skipped.
        """
        start, end = self._limits.ends(partition)
        notes = []
        offset = min(max(wanted, start), end)
        if wanted < start:
            notes.append(f"{wanted} is before the first offset {start}")
        elif wanted > end:
            notes.append(f"{wanted} is after the last offset {end}")
        boundary = self._positions.boundary_before(partition, offset)
        if boundary != offset:
            notes.append(f"{offset} is inside the message at {boundary}")
        return self._to(partition, boundary, *notes)

    def _to(self, partition: TopicPartition, offset: int, *notes: str) -> Change:
        current = self._offsets.get(partition)
        if current is not None and current.offset is None:
            notes = (*notes, _not_a_number(current))
        return Change(self._group, partition, current, offset, notes)

    def _to_position(self, partition: TopicPartition, position: Position | None) -> Change:
        if position is None or position is Mark.STORED:
            return self.keep(partition)
        if isinstance(position, Absolute) and not position.nearest:
            return self.place(partition, position.position)
        return self._to_resolved(partition, position, self._positions)

    def _to_resolved(
        self, partition: TopicPartition, position: Position, source: OffsetSource
    ) -> Change:
        found = resolve(OffsetRange(position, None), partition, source)
        notes = [text.removeprefix(f"{partition}: ") for text in found.warnings]
        if found.start.inner:
            notes.append(f"at the start of its compressed set, {found.start.inner} messages before")
        return self._to(partition, found.start.offset, *notes)

    def _to_entry(self, partition: TopicPartition, entries: Sequence[Entry]) -> Change:
        entry = next((one for one in reversed(entries) if one.matches(partition)), None)
        if entry is None:
            return self.keep(partition, "not in the file")
        if entry.offset is None:
            return Change(self._group, partition, self._offsets.get(partition), None)
        return self.place(partition, entry.offset)

    def _shifted(self, partition: TopicPartition, offset: int, by: ByMessages | ByBytes) -> Change:
        here = self.place(partition, offset)
        start, end = self._limits.ends(partition)
        base = start if here.new is None else here.new
        # Seen from the group, the log ends where it is, or starts there.
        limits = Ends(start, base) if by.from_end else Ends(base, end)
        moved = self._to_resolved(partition, by, _Part(self._positions, limits))
        return replace(moved, notes=(*here.notes, *moved.notes))

    def _shifted_in_time(
        self, partition: TopicPartition, current: StoredOffset, delta_ms: int
    ) -> Change:
        start, end = self._limits.ends(partition)
        offset = current.offset or 0
        time_ms = max(0, current.commit_ms + delta_ms)
        found = self._positions.by_time(partition, time_ms, rounded_up=delta_ms > 0)
        if delta_ms > 0:
            return self.place(partition, max(end if found is None else found, offset))
        # The segment of that moment may lie ahead of a group that is far behind.
        return self.place(partition, min(start if found is None else found, offset))


def _not_a_number(stored: StoredOffset) -> str:
    return f"the current offset is no number: {stored.text!r}"


class _Part:
    """Part of a log, which seems to start and end elsewhere."""

    def __init__(self, source: OffsetSource, ends: Ends) -> None:
        self._source = source
        self._ends = ends
        self.by_time = source.by_time
        self.boundary_before = source.boundary_before
        self.boundary_after = source.boundary_after
        self.message_counts = source.message_counts

    def earliest(self, partition: TopicPartition) -> int:
        """Return where the part starts."""
        return self._ends.start

    def latest(self, partition: TopicPartition) -> int:
        """Return where the part ends."""
        return self._ends.end


_GONE = "the partition is on no live broker"


def read_entries(env: Environment, file: str) -> list[Entry]:
    """Return the offsets of a file, `-` for standard input.

    Raises:
        UsageError: lines are broken, or it is no text.
        OSError: it cannot be read.
    """
    try:
        if file == "-":
            stdin = env.streams.stdin
            return parse_entries("" if stdin is None else stdin.read().decode(), "stdin")
        return parse_entries(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is not UTF-8 text") from error


def find_target(env: Environment, observer: GroupObserver, text: str) -> Target:
    """Return the meaning of `--to`.

    Args:
        env: tells the time, and has standard input.
        observer: reads other groups.
        text: an offset expression, or `shift:`, `by:`, `group:` or `file:` and more.

    Raises:
        UsageError: it is none of these.
        CliError: the other group does not exist.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind == "shift":
        return parse_shift(rest)
    if colon and kind == "by":
        return parse_shift_time(rest)
    if colon and kind == "file":
        return ToEntries(read_entries(env, rest))
    if colon and kind == "group":
        require_group(observer.registry.session, rest)
        return ToGroup(rest, observer.snapshot(rest).offsets)
    return parse_spec(text, now_ms=env.clock.time_ms())


def plan_reset(
    observer: GroupObserver,
    snapshot: GroupSnapshot,
    target: Target,
    *,
    topics: Sequence[str],
    wanted: PartitionList | None,
) -> list[Change]:
    """Return what becomes of a group's offsets.

    Args:
        observer: the way to brokers.
        snapshot: the group.
        target: where they go.
        topics: which must exist; all of the group's if empty.
        wanted: only these partitions of them.

    Raises:
        CliError: a topic or partition does not exist, or the group has no topics.
        BrokerError: a broker does not answer.
    """
    cluster = RegistryCluster(observer.registry)
    with TopicFacts(cluster, observer.connect) as facts:
        planner = Planner(snapshot.name, snapshot.offsets, facts, facts.positions)
        if topics:
            there = select_partitions(cluster, select_topics(cluster, topics), wanted)
            return [planner.plan(one, target) for one in there]
        if not snapshot.topics:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"group '{snapshot.name}' has no topics",
                hints=["name one with --topic"],
            )
        there = [one for topic in snapshot.topics for one in cluster.partitions(topic)]
        gone = sorted(snapshot.offsets.keys() - set(there))
        plans = [planner.plan(one, target) for one in there]
        return sorted(
            [*plans, *(planner.keep(one, _GONE, fails=True) for one in gone)],
            key=lambda change: change.partition,
        )


def plan_import(
    observer: GroupObserver, snapshot: GroupSnapshot, entries: Sequence[Entry]
) -> list[Change]:
    """Return what the offsets of a file make of a group.

    Args:
        observer: the way to brokers.
        snapshot: the group; it need not exist.
        entries: the offsets for this group, later ones going first.

    Raises:
        CliError: a plan of which the current offsets are not the group's any more.
        BrokerError: a broker does not answer.
    """
    cluster = RegistryCluster(observer.registry)
    there: dict[TopicPartition, bool] = dict.fromkeys(snapshot.offsets, False)
    for topic in dict.fromkeys(entry.topic for entry in entries):
        there |= dict.fromkeys(cluster.partitions(topic), True)
    changes: dict[TopicPartition, Change] = {}
    with TopicFacts(cluster, observer.connect) as facts:
        planner = Planner(snapshot.name, snapshot.offsets, facts, facts.positions)
        for entry in entries:
            matching = [one for one in there if entry.matches(one)]
            if not matching:
                changes |= _missing(snapshot, entry)
            for one in matching:
                _check_current(snapshot, one, entry)
                if entry.checks_current and entry.offset is None and entry.current is None:
                    changes[one] = planner.keep(one)  # the plan, too, was to leave it alone
                elif there[one] or entry.offset is None:
                    changes[one] = planner.plan(one, ToEntries([entry]))
                else:
                    changes[one] = planner.keep(one, _GONE, fails=True)
    return sorted(changes.values(), key=lambda change: change.partition)


def _missing(snapshot: GroupSnapshot, entry: Entry) -> dict[TopicPartition, Change]:
    """Return the plan for an offset of a partition that is nowhere; nothing is to be removed."""
    if entry.offset is None:
        return {}
    one = TopicPartition(entry.topic, entry.pattern.home or 0, entry.pattern.first)
    return {one: Change(snapshot.name, one, None, None, (_GONE,), keeps=True, fails=True)}


def _check_current(snapshot: GroupSnapshot, partition: TopicPartition, entry: Entry) -> None:
    stored = snapshot.offsets.get(partition)
    current = None if stored is None else stored.offset
    if entry.checks_current and entry.current != current:
        raise CliError(
            ExitStatus.CONFLICT,
            f"group '{snapshot.name}': the offset of {partition} is {_text(current)}, "
            f"but the plan was made when it was {_text(entry.current)}",
            hints=["make the plan again"],
            code="OFFSET_CHANGED",
        )


def _text(offset: int | None) -> str:
    return "none" if offset is None else str(offset)


def by_group(entries: Iterable[Entry], group: str | None) -> dict[str, list[Entry]]:
    """Return the offsets of a file by the group they are for.

    Args:
        entries: the offsets.
        group: the one they are all for, whatever the file says; None to go by the file.

    Raises:
        UsageError: a line names no group, and the user named none.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        name = group or entry.group
        if name is None:
            raise UsageError(
                f"line {entry.line} names no group", hints=["name it: pylogctl group import GROUP"]
            )
        groups.setdefault(name, []).append(entry)
    return groups
