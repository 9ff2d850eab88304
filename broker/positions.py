"""The grammar of positions, as in `--offset`: text to values, values to offsets.

`SPEC = START [":" END]`, or `P=SPEC,..` by partition, or `file:PATH`; a malformed text is an
`ArgumentError`. `resolve` finds the offsets that a value means on a partition. `now_ms` is the
present time in milliseconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, assert_never

from broker.errors import ArgumentError, NotABoundaryError, OffsetOutOfRangeError, did_you_mean
from broker.partition_patterns import PartitionPattern, parse_partition
from broker.times import WORDS, parse_time_ms
from broker.topic import MessagePosition, ReadRange, TopicPartition
from broker.units import parse_size


class Mark(Enum):
    """An offset with a name: the first of the log, its end, or the committed one of the group."""

    EARLIEST = "start"
    LATEST = "end"
    STORED = "stored"


@dataclass(frozen=True)
class Absolute:
    """A byte offset on a message boundary; with `nearest` moved to the next one."""

    position: int
    nearest: bool


@dataclass(frozen=True)
class ByMessages:
    """A number of messages before the end, or after the start."""

    count: int
    from_end: bool


@dataclass(frozen=True)
class ByBytes:
    """A number of bytes before the end, or after the start, moved to the next message boundary."""

    size: int
    from_end: bool


@dataclass(frozen=True)
class ByTime:
    """A time in milliseconds since 1970; resolved to the start of a segment."""

    time_ms: int


Position = Mark | Absolute | ByMessages | ByBytes | ByTime


class OffsetRange(NamedTuple):
    """The start, and the exclusive end; None for a side that is not given."""

    start: Position | None
    end: Position | None


NO_RANGE = OffsetRange(None, None)


@dataclass(frozen=True)
class OffsetSpec:
    """All `--offset` values: the default range, ranges by partition, an offset file."""

    default: OffsetRange = NO_RANGE
    partitions: tuple[tuple[PartitionPattern, OffsetRange], ...] = ()
    file: Path | None = None

    def range_for(self, partition: TopicPartition) -> OffsetRange:
        """Return the range of one partition: the last item that names it, else the default."""
        for pattern, offsets in reversed(self.partitions):
            if pattern.matches(partition):
                return offsets
        return self.default


_WORDS: dict[str, Position] = {
    **dict.fromkeys(("start", "beginning", "earliest", "oldest", "smallest"), Mark.EARLIEST),
    **dict.fromkeys(("end", "latest", "newest", "largest"), Mark.LATEST),
    "stored": Mark.STORED,
}
_HINT = "valid: start, end, 4096, -100, -64KiB, @-10m, @2026-11-20T08:00, A:B"
_BY_PARTITION = r"(?:\*|\d)[\d.\-*]*="


def parse_offset_spec(texts: Sequence[str], *, now_ms: int) -> OffsetSpec:
    """Parse `--offset` values; a later one overrides the sides that it sets."""
    spec = OffsetSpec()
    for text in texts:
        if text.startswith("file:"):
            spec = OffsetSpec(spec.default, spec.partitions, Path(text[5:]))
        elif re.match(_BY_PARTITION, text):
            spec = OffsetSpec(
                spec.default, (*spec.partitions, *_parse_by_partition(text, now_ms)), spec.file
            )
        else:
            new = parse_range(text, now_ms=now_ms)
            merged = OffsetRange(new.start or spec.default.start, new.end or spec.default.end)
            spec = OffsetSpec(merged, spec.partitions, spec.file)
    return spec


def _parse_by_partition(text: str, now_ms: int) -> Iterable[tuple[PartitionPattern, OffsetRange]]:
    for item in text.split(","):
        partition, equals, offsets = item.partition("=")
        if not equals:
            raise ArgumentError(f"not PARTITION=OFFSET: '{item}'", hints=["valid: 0=4096,1=end"])
        yield parse_partition(partition), parse_range(offsets, now_ms=now_ms)


def parse_range(text: str, *, now_ms: int) -> OffsetRange:
    """Parse `[START][:END]`; of several colons the last that leaves a valid START separates."""
    if text.startswith("e@"):
        return OffsetRange(None, _parse_position(text[1:], now_ms=now_ms, base=None))
    if text.startswith("s@"):
        text = text[1:]
    cuts = [len(text), *(i for i in range(len(text) - 1, -1, -1) if text[i] == ":")]
    failures = []
    for cut in cuts:
        try:
            start = _parse_start(text[:cut], is_alone=cut >= len(text) - 1, now_ms=now_ms)
        except ArgumentError as error:
            failures.append(error)
            continue
        is_clock = not text[1:cut].isdigit() and re.match(r"\d:\d\d?(?!\d)", text[cut - 1 :])
        if isinstance(start, ByTime) and is_clock:
            continue  # the end would be a part of a time that is none
        if not text[cut + 1 :]:
            return OffsetRange(start, None)
        return OffsetRange(start, _parse_position(text[cut + 1 :], now_ms=now_ms, base=start))
    # A time has colons of its own: then the error names the whole text, else its first part.
    raise failures[0] if text.startswith("@") else failures[-1]


def _parse_start(text: str, *, is_alone: bool, now_ms: int) -> Position:
    if not text and is_alone:
        raise ArgumentError("not an offset: it is empty", hints=[_HINT])
    return _parse_position(text, now_ms=now_ms, base=None) if text else Mark.EARLIEST


def _parse_position(text: str, *, now_ms: int, base: Position | None) -> Position:
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("@"):
        base_ms = base.time_ms if isinstance(base, ByTime) else None
        return ByTime(parse_time_ms(text[1:], now_ms=now_ms, base_ms=base_ms))
    number = text.lstrip("+-~")
    sign = text[: len(text) - len(number)]
    if number.isascii() and number.isdigit() and len(sign) < 2:
        if sign in ("", "~"):
            return Absolute(int(number), nearest=sign == "~")
        return ByMessages(int(number), from_end=sign == "-")
    if sign in ("+", "-") and number[:1].isdigit():
        return ByBytes(_parse_bytes(number, text), from_end=sign == "-")
    raise ArgumentError(f"not an offset: '{text}'{_suggestion(text)}", hints=[_HINT])


def _parse_bytes(number: str, text: str) -> int:
    try:
        return parse_size(number)
    except ArgumentError as error:
        raise ArgumentError(f"not an offset: '{text}'", hints=[_HINT]) from error


def _suggestion(text: str) -> str:
    guess = did_you_mean(text, [*_WORDS, "follow", *(f"@{word}" for word in WORDS)])
    if "'follow'" in guess:
        return " (did you mean 'follow'? that is an option: --follow)"
    return guess


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


def _is_back_in_time(offsets: OffsetRange) -> bool:
    match offsets:
        case OffsetRange(ByTime(start_ms), ByTime(end_ms)):
            return end_ms < start_ms
    return False


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
    with `strict` it is an `OffsetOutOfRangeError`. An offset inside a message is a
    `NotABoundaryError`; `stored` is an `ArgumentError`, as there is no group here. A range that
    ends before it starts is empty, which `warn` gets, too.
    """
    resolver = _Resolver(partition, source, strict, warn)
    start = resolver.position(offsets.start or Mark.LATEST, is_end=False)
    end = None if offsets.end is None else resolver.position(offsets.end, is_end=True)
    if warn is not None and end is not None and end < start:
        warn(
            f"{partition}: the range is empty: it ends at {end.offset}, before its start at "
            f"{start.offset}"
        )
    elif warn is not None and _is_back_in_time(offsets):
        warn(f"{partition}: the range is empty: it ends at a time before that of its start")
    return ReadRange(start, end)


@dataclass(eq=False)
class _Resolver:
    """Resolves both sides of a range; asks once for an end of the partition that it needs."""

    partition: TopicPartition
    source: OffsetSource
    strict: bool
    warn: Callable[[str], object] | None

    @cached_property
    def first(self) -> int:
        """Return the first offset of the log."""
        return self.source.earliest(self.partition)

    @cached_property
    def last(self) -> int:
        """Return the offset after the last message that can be read."""
        return self.source.latest(self.partition)

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
                raise ArgumentError("offset 'stored' needs a consumer group")
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
            raise NotABoundaryError(
                f"{position} is not a message boundary in {self.partition}; "
                f"nearest are {before} and {after}",
                before,
                after,
                hints=[f"try: ~{position} for the next boundary"],
            )
        return position

    def _moved_into_range(self, position: int, *, is_end: bool) -> int:
        is_before = position < self.first
        limit = self.first if is_before else self.last
        side = "before the first" if is_before else "after the last"
        problem = f"{self.partition}: {position} is {side} offset {limit}"
        if self.strict:
            raise OffsetOutOfRangeError(problem)
        if self.warn is not None:
            self.warn(f"{problem}; {'ending' if is_end else 'starting'} at {limit}")
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
