"""What an offset specification means on a partition that exists: numbers on message boundaries.

Knows the grammar's values and a small protocol to ask for positions; knows no connection.

Ranges of several partitions: how a user's offsets become them. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, assert_never

from broker.topic import TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.offsets import (
    Absolute,
    ByBytes,
    ByMessages,
    ByTime,
    Mark,
    OffsetRange,
    Position,
    Span,
)

_FIRST_WINDOW_BYTES = 1 << 18


class OffsetSource(Protocol):
    """Where positions of a partition are asked for."""

    def earliest(self, partition: TopicPartition) -> int:
        """Return the first valid position."""

    def latest(self, partition: TopicPartition) -> int:
        """Return the position after the last message that can be read."""

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return a segment's start: the last not after the time, or the first after it.

        None when there is no such segment.
        """

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or before a position."""

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or after a position."""

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> Sequence[tuple[int, int]]:
        """Return start and message count of each entry from `start` (a boundary) up to `end`."""


class MessagePosition(NamedTuple):
    """A boundary, and how many messages of the compressed set that starts there lie before."""

    offset: int
    inner: int = 0


class ResolvedRange(NamedTuple):
    """From `start` up to `end`, which is None for no end; `warnings` say what was moved."""

    start: MessagePosition
    end: MessagePosition | None
    warnings: tuple[str, ...]


def resolve(
    offsets: OffsetRange,
    partition: TopicPartition,
    source: OffsetSource,
    *,
    strict: bool = False,
) -> ResolvedRange:
    """Return the positions a range means on one partition.

    Args:
        offsets: what the user asked for; no start means the end of the log.
        partition: on which partition.
        source: whom to ask.
        strict: refuse positions out of range instead of moving them to the nearest valid one.

    Raises:
        UsageError: an absolute position is not a message boundary, or `stored` was asked for.
        CliError: `strict` and a position is out of range.
    """
    resolver = _Resolver(partition, source, strict=strict)
    start = resolver.point(offsets.start or Mark.LATEST, is_end=False)
    end = None if offsets.end is None else resolver.point(offsets.end, is_end=True)
    return ResolvedRange(start, end, tuple(resolver.warnings))


class _Resolver:
    """Resolves the two ends of one partition's range; asks for its limits once."""

    def __init__(self, partition: TopicPartition, source: OffsetSource, *, strict: bool) -> None:
        self.partition = partition
        self.source = source
        self.strict = strict
        self.first = source.earliest(partition)
        self.last = source.latest(partition)
        self.warnings: list[str] = []

    def point(self, position: Position, *, is_end: bool) -> MessagePosition:
        match position:
            case Mark.EARLIEST:
                return MessagePosition(self.first)
            case Mark.LATEST:
                return MessagePosition(self.last)
            case Absolute():
                return MessagePosition(self._absolute(position, is_end=is_end))
            case ByMessages(count, from_end):
                return self._messages_back(count) if from_end else self._messages_on(count)
            case ByBytes(size, from_end):
                wanted = self.last - size if from_end else self.first + size
                return MessagePosition(self._boundary_after(wanted))
            case ByTime(time_ms):
                return MessagePosition(self._by_time(time_ms, is_end=is_end))
            case Mark.STORED:
                raise UsageError("offset 'stored' needs a consumer group")
            case _:
                assert_never(position)

    def _absolute(self, wanted: Absolute, *, is_end: bool) -> int:
        position = wanted.position
        if not self.first <= position <= self.last:
            return self._moved_into_range(position, is_end=is_end)
        if wanted.nearest:
            return self._boundary_after(position)
        before = self.source.boundary_before(self.partition, position)
        if before != position:
            after = self.source.boundary_after(self.partition, position)
            raise UsageError(
                f"{position} is not a message boundary in {self.partition}; "
                f"nearest are {before} and {after}",
                hints=[f"try: ~{position} for the next boundary"],
            )
        return position

    def _moved_into_range(self, position: int, *, is_end: bool) -> int:
        is_before = position < self.first
        limit = self.first if is_before else self.last
        side = "before the first" if is_before else "after the last"
        problem = f"{self.partition}: {position} is {side} offset {limit}"
        if self.strict:
            raise CliError(ExitStatus.NOT_FOUND, problem, code="OFFSET_OUT_OF_RANGE")
        self.warnings.append(f"{problem}; {'ending' if is_end else 'starting'} at {limit}")
        return limit

    def _boundary_after(self, position: int) -> int:
        clamped = min(max(position, self.first), self.last)
        return self.source.boundary_after(self.partition, clamped)

    def _by_time(self, time_ms: int, *, is_end: bool) -> int:
        offset = self.source.by_time(self.partition, time_ms, rounded_up=is_end)
        if offset is None:
            return self.last if is_end else self.first
        return min(max(offset, self.first), self.last)

    def _messages_back(self, count: int) -> MessagePosition:
        """Return the point `count` messages before the end, scanning ever larger windows."""
        if count == 0:
            return MessagePosition(self.last)
        window = _FIRST_WINDOW_BYTES
        while True:
            start = self._boundary_after(self.last - window)
            entries = self.source.message_counts(self.partition, start, self.last)
            total = sum(n for _, n in entries)
            if total >= count:
                return nth_message(entries, total - count)
            if start <= self.first:
                return MessagePosition(self.first)
            window *= 4

    def _messages_on(self, count: int) -> MessagePosition:
        """Return the point `count` messages after the start, scanning window by window."""
        start, remaining = self.first, count
        while start < self.last:
            end = min(self._boundary_after(start + _FIRST_WINDOW_BYTES), self.last)
            entries = self.source.message_counts(self.partition, start, end)
            total = sum(n for _, n in entries)
            if total > remaining:
                return nth_message(entries, remaining)
            start, remaining = end, remaining - total
        return MessagePosition(self.last)


def nth_message(entries: Sequence[tuple[int, int]], index: int) -> MessagePosition:
    """Return the point before message `index`, which lies in one of the entries.

    Args:
        entries: offset and message count of each.
        index: counts from 0, at the first message of the first entry.
    """
    for offset, count in entries:
        if index < count:
            return MessagePosition(offset, index)
        index -= count
    raise AssertionError("the caller counted")


def resolve_ranges(
    env: Environment,
    side: Side,
    partitions: Iterable[TopicPartition],
    span: Span,
    *,
    default_start: Mark = Mark.EARLIEST,
    strict: bool = False,
) -> dict[TopicPartition, ResolvedRange]:
    """Return from where to where to read in each partition.

    Args:
        env: told of what had to be moved.
        side: the cluster.
        partitions: which.
        span: what the user asked for.
        default_start: where to start if the user named no start.
        strict: an offset out of range is an error.

    Raises:
        CliError: an offset is not possible there.
        BrokerError: a broker does not answer.
    """
    from broker.consumer.list_offsets import Positions  # late: log commands know no broker

    ranges = {}
    with Positions(side.cluster, side.connect) as positions:
        for partition in partitions:
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or default_start)
            found = resolve(wanted, partition, positions, strict=strict)
            for warning in found.warnings:
                env.warn(warning)
            end = "" if found.end is None else f" to {found.end.offset}"
            env.trace(1, f"{partition}: reading from {found.start.offset}{end}")
            ranges[partition] = found
    return ranges


def total_bytes(ranges: Mapping[TopicPartition, ResolvedRange]) -> int:
    """Return how many bytes lie in some ranges that have ends."""
    return sum(
        max(0, one.end.offset - one.start.offset) for one in ranges.values() if one.end is not None
    )
