"""Byte ranges of partitions, and how they are shared out: pure functions, no broker and no file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from broker.topic import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """The messages of a partition from `start` up to `end`, both message boundaries."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """Return how many bytes of the log it is."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.partition} {self.start}..{self.end}"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which messages a query can need; what is None is not restricted.

    `names` are partitions' names; `start` and `end` bound the offsets of messages.
    """

    topics: frozenset[str] | None = None
    names: frozenset[str] | None = None
    start: int | None = None
    end: int | None = None

    def has_partition(self, partition: TopicPartition) -> bool:
        """Return whether a partition can have such messages."""
        has_topic = self.topics is None or partition.topic in self.topics
        return has_topic and (self.names is None or partition.name in self.names)

    def both(self, other: RowFilter) -> RowFilter:
        """Return the filter of what passes this one and another."""
        return RowFilter(
            topics=_common(self.topics, other.topics),
            names=_common(self.names, other.names),
            start=max((one for one in (self.start, other.start) if one is not None), default=None),
            end=min((one for one in (self.end, other.end) if one is not None), default=None),
        )


def _common(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


ALL_ROWS = RowFilter()

BoundaryAfter = Callable[[TopicPartition, int], int]
"""Returns the message boundary at or after a position of a partition."""


def piece_bytes(ranges: Iterable[ByteRange], max_bytes: int, min_count: int) -> int:
    """Return how large pieces may be, so that there are enough of them.

    Args:
        ranges: what is to be cut.
        max_bytes: the largest piece wanted.
        min_count: how many pieces there should be at least.

    Returns:
        At least 1.
    """
    total = sum(one.size_bytes for one in ranges)
    return max(1, min(max_bytes, -(-total // max(1, min_count))))


def cut(whole: ByteRange, max_bytes: int, boundary_after: BoundaryAfter) -> list[ByteRange]:
    """Cut a range into pieces of about one size.

    Args:
        whole: what is cut.
        max_bytes: the largest piece wanted; one is larger where a boundary is that far off.
        boundary_after: where cuts may be.

    Returns:
        Pieces without gap or overlap, none of them empty; none at all of an empty range.
    """
    count = -(-whole.size_bytes // max_bytes)
    wanted = (whole.start + whole.size_bytes * place // count for place in range(1, count))
    return split(whole, [boundary_after(whole.partition, position) for position in wanted])


def split(whole: ByteRange, boundaries: Iterable[int]) -> list[ByteRange]:
    """Cut a range at the boundaries inside it; others are ignored."""
    inside = {position for position in boundaries if whole.start < position < whole.end}
    ends = sorted({whole.start, *inside, whole.end})
    return [ByteRange(whole.partition, start, end) for start, end in pairwise(ends)]


def split_evenly(whole: ByteRange, max_bytes: int, boundaries: Sequence[int]) -> list[ByteRange]:
    """Cut a range at few of the known boundaries, so that pieces come near a size.

    Args:
        whole: what is cut.
        max_bytes: the largest piece wanted; one is larger where known boundaries are far apart.
        boundaries: where cuts may be, ascending.
    """
    chosen: list[int] = []
    start = whole.start
    inside = [position for position in boundaries if whole.start < position < whole.end]
    for position, following in pairwise([*inside, whole.end]):
        if following - start > max_bytes:
            chosen.append(position)
            start = position
    return split(whole, chosen)


def without(whole: ByteRange, start: int, end: int) -> list[ByteRange]:
    """Return what is left of a range without the bytes from `start` to `end`."""
    low = ByteRange(whole.partition, whole.start, min(whole.end, start))
    high = ByteRange(whole.partition, max(whole.start, end), whole.end)
    return [one for one in (low, high) if one.size_bytes > 0]


def share_bytes(
    pending: Mapping[TopicPartition, int], limit_bytes: int
) -> dict[TopicPartition, int]:
    """Share a limit out over partitions, in proportion to what each of them has.

    Args:
        pending: bytes that can be read, by partition.
        limit_bytes: what to read in all, at least 1.

    Returns:
        How much to read of each; all that is pending where the limit allows.
    """
    total = sum(pending.values())
    if total <= limit_bytes:
        return dict(pending)
    return {partition: size * limit_bytes // total for partition, size in pending.items()}


def limited_ends(
    pending: Iterable[ByteRange],
    limit_bytes: int,
    boundary_before: BoundaryAfter,
    boundary_after: BoundaryAfter,
) -> dict[TopicPartition, int]:
    """Return how far to read each partition under a limit on all of them.

    No partition starves: each that has something gives one message at least, so that the limit can
    be exceeded by a message for each partition.

    Args:
        pending: what could be read.
        limit_bytes: what to read in all, at least 1.
        boundary_before: finds the message boundary at or before a position.
        boundary_after: finds the message boundary at or after a position.
    """
    ranges = {one.partition: one for one in pending if one.size_bytes}
    shares = share_bytes({key: one.size_bytes for key, one in ranges.items()}, limit_bytes)
    ends = {}
    for partition, one in ranges.items():
        end = one.start + shares[partition]
        if end < one.end:
            end = boundary_before(partition, end)
            if end <= one.start:
                end = boundary_after(partition, one.start + 1)
        ends[partition] = min(end, one.end)
    return ends
