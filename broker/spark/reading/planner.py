"""The plan of a read: options to byte ranges, cut into tasks, each with its location.

Runs on the driver. `open_logs` opens brokers, ZooKeeper or segment files once; all plans of a job
are made while they are open. Lists offsets and finds message boundaries; reads no messages.
Requested messages that are gone raise a `DataLossError` if `failOnDataLoss` is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from broker import errors
from broker.client.list_offsets import Watermarks
from broker.client.static_cluster import log_absent
from broker.consumer.boundaries import BoundaryFinder
from broker.log.offline.segments import is_archive
from broker.spark.options import EARLIEST, LATEST, Bound, Offsets, ReadOptions
from broker.spark.reading import loss
from broker.spark.reading.cluster import OpenCluster, open_cluster
from broker.spark.reading.ranges import ByteRange, ReadTask, cut, range_bytes, split_evenly
from broker.spark.reading.record_logs import RecordLogs
from broker.spark.reading.report import Omission
from broker.spark.reading.segment_logs import FileLogs, selected_files
from broker.topic import NO_HOME, TopicPartition

_BUNDLE_BYTES = 128 << 20  # as in Spark's own readers of files


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The ranges and tasks of a batch."""

    ranges: tuple[ByteRange, ...]  # one for each partition
    tasks: tuple[ReadTask, ...]  # the ranges without gaps between segment files, cut
    omissions: tuple[Omission, ...]  # requested bytes that the logs do not have
    absent: tuple[str, ...] = ()  # texts: brokers that are down, and what they lack due to that

    @property
    def has_records(self) -> bool:
        """Return whether Kafka's records are read, and not messages of 0.7."""
        return any(one.partition.home == NO_HOME for one in self.ranges)

    @property
    def homes(self) -> list[int]:
        """Return the ids of the brokers whose partitions are read."""
        return sorted({one.partition.home for one in self.ranges})


Logs = OpenCluster | FileLogs | RecordLogs
"""The logs that a read is planned for: of a cluster, or in segment files."""
Positions = BoundaryFinder | FileLogs | RecordLogs
"""Finds offsets and message boundaries of these logs."""


def plan_read(options: ReadOptions, *, may_lack_brokers: bool = False) -> ReadPlan:
    """Plan a batch read of the messages that exist now.

    With `failOnDataLoss` it is an error if a broker that has a selected topic is down; with
    `may_lack_brokers` only if that broker is of a static list.
    """
    with open_logs(options) as logs:
        plan = plan_ranges(logs, options)
    if plan.absent and options.fail_on_data_loss and not may_lack_brokers:
        raise _absent_error("\n".join(plan.absent))
    return plan


@contextmanager
def open_logs(options: ReadOptions) -> Iterator[Logs]:
    """Open brokers, ZooKeeper or segment files, to plan reads of them."""
    if options.where.paths:
        try:
            yield open_files(options)
        except OSError as error:
            raise errors.StorageError(f"cannot read {error.filename}: {error.strerror}") from error
        return
    absent: list[str] = []

    def on_absent(error: errors.BrokerError) -> None:
        if options.fail_on_data_loss:
            raise _absent_error(str(error)) from error
        log_absent(error)
        absent.append(str(error))

    with open_cluster(options.where, options.connection, on_absent=on_absent) as opened:
        yield replace(opened, absent_listed=absent)


def open_files(options: ReadOptions) -> FileLogs | RecordLogs:
    """Open the segment files of the selected partitions, which are all of 0.7 or all of Kafka's."""
    files = selected_files(options)
    if any(one.home == NO_HOME for one in files):
        return RecordLogs(files)
    return FileLogs(files)


def reads_records(options: ReadOptions) -> bool:
    """Return whether a read is of Kafka's record batches, by a look at the files."""
    if not options.where.paths:
        return False
    with open_logs(options) as logs:
        return isinstance(logs, RecordLogs)


def _absent_error(text: str) -> errors.PartitionsAwayError:
    return errors.PartitionsAwayError(
        f"{text}; failOnDataLoss=false reads what the other brokers have"
    )


def plan_ranges(logs: Logs, options: ReadOptions, reached: Offsets | None = None) -> ReadPlan:
    """Plan a read of open logs.

    `reached` has offsets that were high watermarks in the same topics: an `OffsetNotAvailableError`
    is raised for a high watermark below them. Files have no leader that could be behind.
    """
    try:
        partitions = logs.existing(options.selection)
    except errors.TopicNotFoundError as error:
        if absent := logs.absent(options.selection):
            raise _absent_error("\n".join(absent)) from error
        raise
    absent = logs.absent(options.selection)
    for bound in (options.starting, options.ending):
        if unknown := sorted(bound.by_partition.keys() - set(partitions)):
            raise errors.ConfigError(
                f"{bound.option} names {unknown[0]}, which is not among those read"
            )
    known = reached or {} if isinstance(logs, OpenCluster) else {}
    found = [resolve(one, options, logs.positions, reached=known.get(one, 0)) for one in partitions]
    omissions = [omission for one in found for omission in one.omissions]
    ranges = [one.range for one in found]
    present = [part for one in ranges for part in logs.present(one, omissions)]
    loss.refuse(omissions, options)
    tasks = cut_tasks(present, logs, options)
    return ReadPlan(tuple(ranges), tuple(tasks), tuple(omissions), absent)


def resolve(
    partition: TopicPartition, options: ReadOptions, positions: Positions, *, reached: int = 0
) -> loss.Resolved:
    """Return the range that the bounds of a read mean on a partition, clipped to its log.

    As a start, a time means the start of the last segment not written after it; as an end, the
    start of the first segment written after it. An offset inside a message is a `ConfigError`.
    `reached` is an offset that was a high watermark in the same topic.
    """
    found = positions.watermarks(partition)
    loss.check_reached(partition, reached, found)
    start = _offset(options.starting, partition, positions, found, is_end=False)
    end = _offset(options.ending, partition, positions, found, is_end=True)
    if end < start:
        raise errors.ConfigError(
            f"{partition}: the range ends at {end}, before it starts at {start}"
        )
    return loss.clip(ByteRange(partition, start, end), found)


def _offset(
    bound: Bound,
    partition: TopicPartition,
    positions: Positions,
    found: Watermarks,
    *,
    is_end: bool,
) -> int:
    first, last, _ = found
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
        offset = positions.by_time(partition, value, rounded_up=is_end)
        if offset is None:
            return last if is_end else first
        return min(max(offset, first), last)
    if first < value < last:
        before = positions.boundary_before(partition, value)
        if before != value:
            after = positions.boundary_after(partition, value)
            raise errors.ConfigError(
                f"{bound.option}: offset {value} of {partition} is inside a message; "
                f"messages start at {before} and {after}"
            )
    return value


def cut_tasks(ranges: Sequence[ByteRange], logs: Logs, options: ReadOptions) -> list[ReadTask]:
    """Cut ranges into tasks: at segment starts, which cost nothing to find, then at any message."""
    if isinstance(logs, RecordLogs):
        return logs.tasks(ranges, options)
    positions, location_of = logs.positions, logs.locations()
    size = range_bytes(ranges, options.task_bytes, options.min_partitions or 1)
    parts: list[ByteRange] = []
    for one in ranges:
        if one.size_bytes > size:
            finds_boundaries = positions.finds_boundaries(one.partition)
            for part in split_evenly(one, size, positions.segment_starts(one.partition)):
                files = location_of(part)  # of an archive, each task would unpack all of it
                is_whole = isinstance(files, tuple) and any(is_archive(one.path) for one in files)
                is_cut = finds_boundaries and not is_whole
                parts += cut(part, size, positions.boundary_after) if is_cut else [part]
        elif one.size_bytes:
            parts.append(one)
    return [ReadTask(one, location_of(one)) for one in parts]


def bundled_tasks(tasks: Sequence[ReadTask], options: ReadOptions) -> list[tuple[ReadTask, ...]]:
    """Join small tasks if `min_partitions` is set: Spark takes 20 ms or more to start one."""
    if options.min_partitions is None:
        return [(task,) for task in tasks]
    limit_bytes = min(options.task_bytes, _BUNDLE_BYTES)
    size_bytes = range_bytes(tasks, limit_bytes, options.min_partitions)
    bundles: list[list[ReadTask]] = []
    left_bytes = 0
    for number, task in enumerate(tasks):
        must_be_alone = len(tasks) - number <= options.min_partitions - len(bundles)
        if not bundles or must_be_alone or task.size_bytes > left_bytes:
            bundles.append([])
            left_bytes = size_bytes
        bundles[-1].append(task)
        left_bytes -= task.size_bytes
    return [tuple(one) for one in bundles]
