"""From options to byte ranges: which partitions, from where to where, cut into how many pieces.

Runs on the driver. Asks for positions only, of brokers or of files; reads no messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.client.list_offsets import Watermarks
from broker.errors import ConfigError
from broker.spark.offsets import EARLIEST, LATEST
from broker.spark.options import Bound, ReadOptions
from broker.spark.ranges import ByteRange, RowFilter, cut, piece_bytes, split_evenly
from broker.spark.report import Cause, DataLossError, Omission
from broker.topic import TopicPartition


class LogPositions(Protocol):
    """Where positions of partitions are asked for."""

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return where the log starts and up to where it can be read."""

    def has_lookup(self, partition: TopicPartition) -> bool:
        """Return whether message boundaries are found without reading what lies before."""

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return where segments start, oldest first, and the end as the last item."""

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return a segment's start: the last not after the time, or the first after it."""

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or before a position."""

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or after a position."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A range that was asked for, as far as the log has it; and what it has not."""

    range: ByteRange
    omissions: tuple[Omission, ...] = ()


def check_bounds(options: ReadOptions, partitions: Iterable[TopicPartition]) -> None:
    """Check that bounds by partition name partitions that exist.

    Raises:
        ConfigError: one does not exist, or is not among those to be read.
    """
    known = set(partitions)
    for bound in (options.starting, options.ending):
        unknown = sorted(bound.by_partition.keys() - known)
        if unknown:
            raise ConfigError(f"{bound.option} names {unknown[0]}, which is not among those read")


def resolve(
    partition: TopicPartition, starting: Bound, ending: Bound, positions: LogPositions
) -> Resolved:
    """Return the range that two bounds mean on a partition.

    Args:
        partition: which.
        starting: where to start; a time means the start of the last segment not written after it.
        ending: where to end; a time means the start of the first segment written after it.
        positions: whom to ask.

    Raises:
        ConfigError: an offset is inside a message, or the end lies before the start.
    """
    first, last, _ = positions.watermarks(partition)
    start = _offset(starting, partition, positions, first, last, is_end=False)
    end = _offset(ending, partition, positions, first, last, is_end=True)
    if end < start:
        raise ConfigError(f"{partition}: the range ends at {end}, before it starts at {start}")
    return clip(ByteRange(partition, start, end), first, last)


def clip(wanted: ByteRange, first: int, last: int) -> Resolved:
    """Return what a log has of a range, and say what it has not.

    Args:
        wanted: the range.
        first: the log start offset.
        last: the end of what can be read.
    """
    partition, start, end = wanted.partition, wanted.start, wanted.end
    omissions = []
    if start < first:
        lost_end = min(first, end)
        text = (
            f"offset {start} was asked for, and the log starts at {first}: "
            f"{lost_end - start} bytes are gone"
        )
        omissions.append(Omission(Cause.LOST, partition, start, lost_end, text))
    if end > last:
        lost_start = max(last, start)
        text = (
            f"offset {end} was asked for, and the log ends at {last}: "
            f"{end - lost_start} bytes are not there"
        )
        omissions.append(Omission(Cause.LOST, partition, lost_start, end, text))
    low = min(max(start, first), last)
    return Resolved(ByteRange(partition, low, max(low, min(end, last))), tuple(omissions))


def refuse_loss(omissions: Iterable[Omission]) -> None:
    """Fail over the first of some omissions.

    Raises:
        DataLossError: there is one.
    """
    for omission in omissions:
        raise DataLossError(f"{omission.message}; failOnDataLoss=false reads what is left")


def narrow(whole: ByteRange, rows: RowFilter, positions: LogPositions) -> ByteRange:
    """Return the part of a range that can have the messages a query needs.

    Args:
        whole: the range.
        rows: what the query needs.
        positions: whom to ask for message boundaries.
    """
    partition, start, end = whole.partition, whole.start, whole.end
    if not positions.has_lookup(partition):
        return whole
    if rows.start is not None and rows.start > start:
        start = positions.boundary_after(partition, min(rows.start, end))
    if rows.end is not None and rows.end < end:
        end = positions.boundary_after(partition, max(rows.end, start))
    return ByteRange(partition, start, max(start, end))


def _offset(
    bound: Bound,
    partition: TopicPartition,
    positions: LogPositions,
    first: int,
    last: int,
    *,
    is_end: bool,
) -> int:
    value = bound.value(partition)
    if value == EARLIEST:
        return first
    if value == LATEST:
        return last
    if bound.is_time:
        found = positions.by_time(partition, value, rounded_up=is_end)
        if found is None:
            return last if is_end else first
        return min(max(found, first), last)
    if first < value < last:
        check_boundary(bound.option, partition, value, positions)
    return value


def check_boundary(
    option: str, partition: TopicPartition, offset: int, positions: LogPositions
) -> None:
    """Check that a message starts at an offset.

    Raises:
        ConfigError: none does; the text names the nearest that do.
    """
    before = positions.boundary_before(partition, offset)
    if before != offset:
        after = positions.boundary_after(partition, offset)
        raise ConfigError(
            f"{option}: offset {offset} of {partition} is inside a message; "
            f"messages start at {before} and {after}"
        )


def cut_ranges(
    ranges: Sequence[ByteRange],
    positions: LogPositions,
    *,
    max_bytes: int,
    min_count: int,
) -> list[ByteRange]:
    """Cut ranges into pieces for tasks: anywhere between messages, or at segment starts.

    Args:
        ranges: what is to be read.
        positions: whom to ask for message boundaries.
        max_bytes: the largest piece wanted.
        min_count: how many pieces there should be at least.
    """
    size = piece_bytes(ranges, max_bytes, min_count)
    pieces: list[ByteRange] = []
    for one in ranges:
        if one.size_bytes > size:
            pieces += _cut(one, positions, size)
        elif one.size_bytes:
            pieces.append(one)
    return pieces


def _cut(one: ByteRange, positions: LogPositions, size: int) -> list[ByteRange]:
    """Cut at segment starts, which cost nothing, and what is still too large anywhere."""
    pieces = split_evenly(one, size, positions.segment_starts(one.partition))
    if not positions.has_lookup(one.partition):
        return pieces
    return [part for piece in pieces for part in cut(piece, size, positions.boundary_after)]
