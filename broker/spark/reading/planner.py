"""The plan of a read: options to byte ranges, cut into tasks, each with its location.

Runs on the driver. `open_planner` opens brokers, ZooKeeper or segment files once; all plans of a
job are made while they are open. Lists offsets and finds message boundaries; reads no messages.
Requested messages that are gone raise a `DataLossError` if `failOnDataLoss` is set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from broker import errors
from broker.client.list_offsets import Watermarks
from broker.client.selection import causes_of_absence, partitions_of
from broker.client.static_cluster import log_absent
from broker.consumer.boundaries import BoundaryFinder
from broker.log.offline.segments import is_archive
from broker.spark.options import EARLIEST, LATEST, Bound, Offsets, ReadOptions, Selection
from broker.spark.reading import loss
from broker.spark.reading.cluster import (
    Leaders,
    OpenCluster,
    check_all_found,
    existing_partitions,
    open_cluster,
    selected_topics,
)
from broker.spark.reading.ranges import (
    ByteRange,
    CreationIds,
    Location,
    ReadTask,
    cut,
    range_bytes,
    split_evenly,
    without,
)
from broker.spark.reading.report import Cause, Omission
from broker.spark.reading.segment_logs import FileLogs
from broker.topic import TopicPartition

_BUNDLE_BYTES = 128 << 20  # as in Spark's own readers of files


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The ranges and tasks of a batch."""

    ranges: tuple[ByteRange, ...]  # one for each partition
    tasks: tuple[ReadTask, ...]  # the ranges without gaps between segment files, cut
    omissions: tuple[Omission, ...]  # requested bytes that the logs do not have
    absent: tuple[str, ...] = ()  # texts: brokers that are down, and what they lack due to that

    @property
    def homes(self) -> list[int]:
        """Return the ids of the brokers whose partitions are read."""
        return sorted({one.partition.home for one in self.ranges})


class LogPositions(Protocol):
    """Offsets and message boundaries of partitions, on brokers or in segment files."""

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return the log start offset and the high watermark."""

    def finds_boundaries(self, partition: TopicPartition) -> bool:
        """Return whether message boundaries are found without reading the bytes before them."""

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return where segments start, oldest first, and the end as the last item."""

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return a segment's start: the last not after a time, or `rounded_up` the first after it.

        None if there is no such segment. `time_ms` is in milliseconds since 1970.
        """

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or before a position."""

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or after a position."""


def plan_read(options: ReadOptions, *, may_lack_brokers: bool = False) -> ReadPlan:
    """Plan a batch read of the messages that exist now.

    With `failOnDataLoss` it is an error if a broker that has a selected topic is down; with
    `may_lack_brokers` only if that broker is of a static list.
    """
    with open_planner(options) as planner:
        plan = planner.plan(options)
    if plan.absent and options.fail_on_data_loss and not may_lack_brokers:
        raise _absent_error("\n".join(plan.absent))
    return plan


@contextmanager
def open_planner(options: ReadOptions) -> Iterator[Planner]:
    """Open brokers, ZooKeeper or segment files, to plan reads of them."""
    if options.where.paths:
        with _storage_errors():
            logs = FileLogs(options.where.paths)
        yield _FilePlanner(logs)
        return
    absent: list[str] = []

    def on_absent(error: errors.BrokerError) -> None:
        if options.fail_on_data_loss:
            raise _absent_error(str(error)) from error
        log_absent(error)
        absent.append(str(error))

    with open_cluster(options.where, options.connection, on_absent=on_absent) as opened:
        yield _BrokerPlanner(opened, absent)


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise errors.StorageError(f"cannot read {error.filename}: {error.strerror}") from error


def _absent_error(text: str) -> errors.PartitionsAwayError:
    return errors.PartitionsAwayError(
        f"{text}; failOnDataLoss=false reads what the other brokers have"
    )


class Planner(ABC):
    """Plans reads of one cluster, or of some segment files."""

    def __init__(self, positions: LogPositions) -> None:
        self._positions = positions

    def plan(self, options: ReadOptions, reached: Offsets | None = None) -> ReadPlan:
        """Plan a read of the cluster or files that this planner has open.

        `reached` has offsets that were high watermarks in the same topics: an
        `OffsetNotAvailableError` is raised for a high watermark below them.
        """
        partitions = self._existing(options.selection)
        absent = self._absent(options.selection)
        for bound in (options.starting, options.ending):
            if unknown := sorted(bound.by_partition.keys() - set(partitions)):
                raise errors.ConfigError(
                    f"{bound.option} names {unknown[0]}, which is not among those read"
                )
        ranges: list[ByteRange] = []
        omissions: list[Omission] = []
        for partition in partitions:
            found = resolve(
                partition,
                options.starting,
                options.ending,
                self._positions,
                reached=(reached or {}).get(partition, 0),
            )
            omissions += found.omissions
            ranges.append(found.range)
        present = [part for one in ranges for part in self._present(one, omissions)]
        loss.refuse(omissions, options)
        tasks = cut_tasks(present, self._positions, self._location, options)
        return ReadPlan(tuple(ranges), tuple(tasks), tuple(omissions), absent)

    def creation_ids(self, partitions: Collection[TopicPartition]) -> CreationIds:
        """Return the known ids of the creations of partitions' topics."""
        return {}

    @abstractmethod
    def _existing(self, selection: Selection) -> list[TopicPartition]:
        """Return the partitions of a selection, all of which must exist."""

    def _absent(self, selection: Selection) -> tuple[str, ...]:
        """Return a text for each broker that is down, so that partitions cannot be read."""
        return ()

    @abstractmethod
    def _present(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        """Return the parts of a range that exist, and add the missing parts to the omissions."""

    @abstractmethod
    def _location(self, one: ByteRange) -> Location:
        """Return where to read a range."""


class _BrokerPlanner(Planner):
    def __init__(self, opened: OpenCluster, absent: Sequence[str]) -> None:
        super().__init__(opened.positions)
        self._opened = opened
        self._absent_listed = absent

    def plan(self, options: ReadOptions, reached: Offsets | None = None) -> ReadPlan:
        self._leaders = Leaders(self._opened.cluster, options.connection)
        return super().plan(options, reached)

    def creation_ids(self, partitions: Collection[TopicPartition]) -> CreationIds:
        return self._opened.positions.creation_ids(partitions)

    def _existing(self, selection: Selection) -> list[TopicPartition]:
        try:
            return existing_partitions(self._opened.cluster, selection)
        except errors.TopicNotFoundError as error:
            if absent := self._absent(selection):
                raise _absent_error("\n".join(absent)) from error
            raise

    def _absent(self, selection: Selection) -> tuple[str, ...]:
        cluster = self._opened.cluster
        every = [partitions_of(cluster, one) for one in selected_topics(cluster, selection)]
        away = [one for some in every for one in some.away if selection.has_partition(one)]
        return (*self._absent_listed, *causes_of_absence(cluster, away))

    def _present(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        return [one]

    def _location(self, one: ByteRange) -> Location:
        return self._leaders.of(one)


class _FilePlanner(Planner):
    def __init__(self, logs: FileLogs) -> None:
        super().__init__(logs)
        self._logs = logs.logs

    def plan(self, options: ReadOptions, reached: Offsets | None = None) -> ReadPlan:
        with _storage_errors():
            return super().plan(options)  # files have no leader that could be behind

    def _existing(self, selection: Selection) -> list[TopicPartition]:
        found = [one for one in self._logs if selection.has_partition(one)]
        check_all_found(selection, found, absent="is not in these files")
        return found

    def _present(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        log = self._logs[one.partition]
        if log.tail_bytes and one.end == log.end:
            text = (
                f"the last {log.tail_bytes} bytes of {log.files[-1].path} are no whole message "
                f"(from offset {log.end} on): left out"
            )
            end = log.end + log.tail_bytes
            omissions.append(Omission(Cause.INCOMPLETE, one.partition, log.end, end, text))
        parts = [one]
        for start, end in log.gaps():
            if one.start < end and start < one.end:
                omissions.append(loss.gap(one.partition, start, end))
                parts = [part for each in parts for part in without(each, start, end)]
        return parts

    def _location(self, one: ByteRange) -> Location:
        files = self._logs[one.partition].files
        return tuple(f for f in files if f.base_offset < one.end and one.start < f.end_offset)


def resolve(
    partition: TopicPartition,
    starting: Bound,
    ending: Bound,
    positions: LogPositions,
    *,
    reached: int = 0,
) -> loss.Resolved:
    """Return the range that two bounds mean on a partition, clipped to its log.

    As a start, a time means the start of the last segment not written after it; as an end, the
    start of the first segment written after it. An offset inside a message is a `ConfigError`.
    `reached` is an offset that was a high watermark in the same topic.
    """
    found = positions.watermarks(partition)
    loss.check_reached(partition, reached, found)
    first, last, _ = found
    start = _offset(starting, partition, positions, first, last, is_end=False)
    end = _offset(ending, partition, positions, first, last, is_end=True)
    if end < start:
        raise errors.ConfigError(
            f"{partition}: the range ends at {end}, before it starts at {start}"
        )
    return loss.clip(ByteRange(partition, start, end), found)


def _offset(
    bound: Bound,
    partition: TopicPartition,
    positions: LogPositions,
    first: int,
    last: int,
    *,
    is_end: bool,
) -> int:
    if bound.offset_of is not None:
        assert isinstance(positions, BoundaryFinder)
        value = bound.offset_of(partition, positions)
    else:
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
        before = positions.boundary_before(partition, value)
        if before != value:
            after = positions.boundary_after(partition, value)
            raise errors.ConfigError(
                f"{bound.option}: offset {value} of {partition} is inside a message; "
                f"messages start at {before} and {after}"
            )
    return value


def cut_tasks(
    ranges: Sequence[ByteRange],
    positions: LogPositions,
    location_of: Callable[[ByteRange], Location],
    options: ReadOptions,
) -> list[ReadTask]:
    """Cut ranges into tasks: at segment starts, which cost nothing to find, then at any message."""
    size = range_bytes(ranges, options.task_bytes, options.min_partitions or 1)
    parts: list[ByteRange] = []
    for one in ranges:
        if one.size_bytes > size:
            large = split_evenly(one, size, positions.segment_starts(one.partition))
            for part in large:
                if positions.finds_boundaries(one.partition) and not _is_archived(
                    location_of(part)
                ):
                    parts += cut(part, size, positions.boundary_after)
                else:
                    parts.append(part)
        elif one.size_bytes:
            parts.append(one)
    return [ReadTask(one, location_of(one)) for one in parts]


def _is_archived(location: Location) -> bool:
    """Return whether a range is in an archive: each task would unpack all of it."""
    return isinstance(location, tuple) and any(is_archive(one.path) for one in location)


def bundled_tasks(tasks: Sequence[ReadTask], options: ReadOptions) -> list[tuple[ReadTask, ...]]:
    """Join small tasks if `min_partitions` is set: Spark takes 20 ms or more to start one."""
    if options.min_partitions is None:
        return [(task,) for task in tasks]
    limit_bytes = min(options.task_bytes, _BUNDLE_BYTES)
    size_bytes = range_bytes([one.range for one in tasks], limit_bytes, options.min_partitions)
    bundles: list[list[ReadTask]] = []
    left_bytes = 0
    for number, task in enumerate(tasks):
        must_be_alone = len(tasks) - number <= options.min_partitions - len(bundles)
        if not bundles or must_be_alone or task.range.size_bytes > left_bytes:
            bundles.append([])
            left_bytes = size_bytes
        bundles[-1].append(task)
        left_bytes -= task.range.size_bytes
    return [tuple(one) for one in bundles]
