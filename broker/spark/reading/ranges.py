"""Byte ranges of partitions, how they are cut into tasks, and where a task finds their bytes.

The values are made on the driver, pickled, and used on executors; pure functions divide ranges.
Opens no connection and no file.

Also the creations of topics, as checkpoints and manifests have them. A topic can be deleted and
created again under its name. Offsets reached in the former topic mean nothing in the new one,
though they may be valid there. The leader of a partition tells the creation id of its topic; a
broker of Kafka 0.7 has none. In the same topic, a message that was read once stays until retention
removes it. A new leader may not know yet that the message is committed: readers wait for that, and
read nothing again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from broker.log.side_files import AbortedTransaction
from broker.protocol.responses import BrokerAddress
from broker.spark.options import ConnectionOptions, Offsets, from_document, to_document
from broker.topic import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """The messages of a partition from `start` up to `end`, both message boundaries.

    Offsets of Kafka's records count these, and not bytes: the size is that of a `ReadTask`.
    """

    partition: TopicPartition
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """Return the size of the range in the log; of Kafka's records how many offsets it has."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.partition} {self.start}..{self.end}"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A segment file that has the bytes of a partition from `base_offset` up to `end_offset`.

    Of Kafka's files only the base offset and the size are known.
    """

    path: Path
    base_offset: int
    end_offset: int

    @property
    def size_bytes(self) -> int:
        """Return the size of the file, of an archive unpacked."""
        return self.end_offset - self.base_offset


@dataclass(frozen=True, slots=True)
class LeaderAddress:
    """The broker that serves a partition, and the timeouts of connections to it."""

    address: BrokerAddress
    brokers: tuple[BrokerAddress, ...]  # live: each of them knows the next leader
    connection: ConnectionOptions


class FilePart(NamedTuple):
    """The batches of a segment file of Kafka's between two positions, where batches start."""

    path: Path
    start: int
    end: int
    end_offset: int  # its batches have lower ones

    @property
    def size_bytes(self) -> int:
        """Return the size of the batches."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """The parts of segment files that have the records of a range.

    A batch belongs to the task whose part it starts in, also where it exceeds the task's range.
    """

    parts: tuple[FilePart, ...]
    wanted: ByteRange  # that of the whole read: batches also have records outside it
    aborted: tuple[AbortedTransaction, ...]  # of the log: their records are left out


Location = LeaderAddress | tuple[LogFile, ...] | RecordFiles
"""A broker, or the segment files that have all of a range, in the order of their offsets."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The range that one task reads, the same in each attempt, and its location."""

    range: ByteRange
    location: Location

    @property
    def size_bytes(self) -> int:
        """Return how many bytes the task reads."""
        if isinstance(self.location, RecordFiles):
            return sum(one.size_bytes for one in self.location.parts)
        return self.range.size_bytes


FindBoundary = Callable[[TopicPartition, int], int]
"""Returns a message boundary of a partition near a position."""


def range_bytes(ranges: Iterable[ByteRange | ReadTask], max_bytes: int, min_count: int) -> int:
    """Return the size to cut ranges to, so that there are at least `min_count`; at least 1."""
    total = sum(one.size_bytes for one in ranges)
    return max(1, min(max_bytes, -(-total // max(1, min_count))))


_Item = TypeVar("_Item")


def grouped(
    items: Iterable[_Item], size_of: Callable[[_Item], int], group_bytes: int
) -> Iterator[list[_Item]]:
    """Group consecutive items up to a total of `group_bytes`; a larger one is alone."""
    group: list[_Item] = []
    size_bytes = 0
    for one in items:
        if group and size_bytes + size_of(one) > group_bytes:
            yield group
            group, size_bytes = [], 0
        group.append(one)
        size_bytes += size_of(one)
    if group:
        yield group


def cut(whole: ByteRange, max_bytes: int, boundary_after: FindBoundary) -> list[ByteRange]:
    """Cut a range into ranges of about equal size, none empty, at message boundaries.

    One is larger than `max_bytes` where the boundary after a cut is that far away.
    """
    count = -(-whole.size_bytes // max_bytes)
    wanted = (whole.start + whole.size_bytes * number // count for number in range(1, count))
    return _split(whole, [boundary_after(whole.partition, position) for position in wanted])


def split_evenly(whole: ByteRange, max_bytes: int, boundaries: Sequence[int]) -> list[ByteRange]:
    """Cut a range at as few of the ascending boundaries as possible.

    A range is larger than `max_bytes` only where boundaries are farther apart.
    """
    chosen: list[int] = []
    start = whole.start
    inside = [position for position in boundaries if whole.start < position < whole.end]
    for position, following in pairwise([*inside, whole.end]):
        if following - start > max_bytes:
            chosen.append(position)
            start = position
    return _split(whole, chosen)


def _split(whole: ByteRange, boundaries: Iterable[int]) -> list[ByteRange]:
    """Cut a range at the boundaries inside it; others are ignored."""
    inside = {position for position in boundaries if whole.start < position < whole.end}
    ends = sorted({whole.start, *inside, whole.end})
    return [ByteRange(whole.partition, start, end) for start, end in pairwise(ends)]


def without(whole: ByteRange, start: int, end: int) -> list[ByteRange]:
    """Return a range without the bytes from `start` to `end`: up to two ranges, none empty."""
    low = ByteRange(whole.partition, whole.start, min(whole.end, start))
    high = ByteRange(whole.partition, max(whole.start, end), whole.end)
    return [one for one in (low, high) if one.size_bytes > 0]


def share_bytes(
    pending: Mapping[TopicPartition, int], limit_bytes: int
) -> dict[TopicPartition, int]:
    """Divide a limit of at least 1 among partitions, in proportion to the bytes of each."""
    total = sum(pending.values())
    if total <= limit_bytes:
        return dict(pending)
    return {partition: size * limit_bytes // total for partition, size in pending.items()}


def limited_ends(
    pending: Iterable[ByteRange],
    limit_bytes: int,
    boundary_before: FindBoundary,
    boundary_after: FindBoundary,
) -> dict[TopicPartition, int]:
    """Return where to stop in each partition, to read about `limit_bytes` (at least 1) in all.

    No partition starves: each with data gives at least one message, so that the limit can be
    exceeded by a message for each partition.
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


CreationIds = Mapping[tuple[str, int], str]
"""The known creation ids of topics, by topic and home broker."""


class Reached(NamedTuple):
    """The offsets that a load or batch ended at, and the creations of their topics."""

    offsets: Offsets
    creation_ids: CreationIds

    def of_former_topics(
        self, present: CreationIds, partitions: Iterable[TopicPartition]
    ) -> set[TopicPartition]:
        """Return those of some partitions whose topic was created again since they were reached."""

        def is_former(one: TopicPartition) -> bool:
            key = one.topic, one.home
            known = self.creation_ids.get(key)
            return known is not None and present.get(key, known) != known

        return {one for one in partitions if one in self.offsets and is_former(one)}

    def to_document(self) -> dict[str, Any]:
        """Return `{"offsets": {"topic": {"0-0": 123}}, "creations": {"topic": {"0": "ID"}}}`."""
        created: dict[str, dict[str, str]] = {}
        for topic, home in sorted({(one.topic, one.home) for one in self.offsets}):
            if creation_id := self.creation_ids.get((topic, home)):
                created.setdefault(topic, {})[str(home)] = creation_id
        return {"offsets": to_document(self.offsets), "creations": created}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Reached:
        """Return what `to_document` was called on; older documents have no creations."""
        creation_ids = {
            (topic, int(home)): creation_id
            for topic, homes in document.get("creations", {}).items()
            for home, creation_id in homes.items()
        }
        return cls(from_document(document["offsets"]), creation_ids)

    def is_known(self, partition: TopicPartition) -> bool:
        """Return whether the creation is known that a partition's offset belongs to."""
        return (partition.topic, partition.home) in self.creation_ids
