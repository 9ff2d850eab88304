"""Resolves the values of `--offset` on partitions: offsets on message boundaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, assert_never

from broker.topic import MessagePosition, ReadRange, TopicPartition
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
    """Lists offsets of a partition: on brokers, in segment files, or in a test."""

    def earliest(self, partition: TopicPartition) -> int:
        """Return the first offset of the log."""

    def latest(self, partition: TopicPartition) -> int:
        """Return the offset after the last message that can be read."""

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return where the last segment up to a time starts; with `rounded_up`, the first after."""

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or before an offset."""

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or after an offset."""

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> Sequence[tuple[int, int]]:
        """Return offset and message count of each entry from `start` (a boundary) up to `end`."""


def resolve(
    offsets: OffsetRange,
    partition: TopicPartition,
    source: OffsetSource,
    *,
    strict: bool = False,
    warn: Callable[[str], object] | None = None,
) -> ReadRange:
    """Resolve a range on one partition; without a start it begins at the end of the log.

    An offset out of range is moved to the nearest valid one, and `warn` gets a sentence about it;
    with `strict` it is a CliError. An offset inside a message, or `stored`, is a UsageError.
    """
    resolver = _Resolver(partition, source, strict=strict, warn=warn)
    start = resolver.position(offsets.start or Mark.LATEST, is_end=False)
    end = None if offsets.end is None else resolver.position(offsets.end, is_end=True)
    return ReadRange(start, end)


class _Resolver:
    """Resolves both sides of a range; asks for the ends of the partition once."""

    def __init__(
        self,
        partition: TopicPartition,
        source: OffsetSource,
        *,
        strict: bool,
        warn: Callable[[str], object] | None,
    ) -> None:
        self.partition = partition
        self.source = source
        self.strict = strict
        self.first = source.earliest(partition)
        self.last = source.latest(partition)
        self._warn = warn

    def position(self, wanted: Position, *, is_end: bool) -> MessagePosition:
        match wanted:
            case Mark.EARLIEST:
                return MessagePosition(self.first)
            case Mark.LATEST:
                return MessagePosition(self.last)
            case Absolute():
                return MessagePosition(self._absolute(wanted, is_end=is_end))
            case ByMessages(count, from_end):
                return self._messages_back(count) if from_end else self._messages_on(count)
            case ByBytes(size, from_end):
                offset = self.last - size if from_end else self.first + size
                return MessagePosition(self._boundary_after(offset))
            case ByTime(time_ms):
                return MessagePosition(self._by_time(time_ms, is_end=is_end))
            case Mark.STORED:
                raise UsageError("offset 'stored' needs a consumer group")
            case _:
                assert_never(wanted)

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
        if self._warn is not None:
            self._warn(f"{problem}; {'ending' if is_end else 'starting'} at {limit}")
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
        """Return the position `count` messages before the end, scanning ever larger windows."""
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
        """Return the position `count` messages after the start, scanning window by window."""
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
    """Return the position of message `index` (from 0) in entries, by their message counts."""
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
    leader_wait_s: float = 0.0,
) -> dict[TopicPartition, ReadRange]:
    """Resolve `span` on each partition; a lost leader is awaited for `leader_wait_s`."""
    from broker.consumer.boundaries import BoundaryFinder  # late: log commands know no broker

    ranges = {}
    with BoundaryFinder(side.cluster, side.connect, leader_wait_s=leader_wait_s) as positions:
        for partition in partitions:
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or default_start)
            found = resolve(wanted, partition, positions, strict=strict, warn=env.warn)
            end = "" if found.end is None else f" to {found.end.offset}"
            env.trace(1, f"{partition}: reading from {found.start.offset}{end}")
            ranges[partition] = found
    return ranges


def total_bytes(ranges: Mapping[TopicPartition, ReadRange]) -> int:
    """Return the number of bytes in the ranges that have an end."""
    return sum(
        max(0, one.end.offset - one.start.offset) for one in ranges.values() if one.end is not None
    )
