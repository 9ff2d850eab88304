"""The plan of a read: ranges of bytes with the place each is read from.

Opens brokers, registry or files for as long as the planning takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from broker.client.cluster import (
    Cluster,
    Connect,
    OnAbsent,
    RegistryCluster,
    StaticCluster,
    log_absent,
)
from broker.client.connection import Connection
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    StorageError,
    TopicNotFoundError,
)
from broker.protocol.responses import BrokerAddress
from broker.spark.options import (
    BrokerList,
    ConnectionOptions,
    ReadOptions,
    RegistryAddress,
    SegmentPaths,
    Selection,
)
from broker.spark.places import BrokerPlace, FilePlace, Place
from broker.spark.planning import (
    LogPositions,
    check_bounds,
    cut_ranges,
    narrow,
    refuse_loss,
    resolve,
)
from broker.spark.ranges import ALL_ROWS, ByteRange, RowFilter, without
from broker.spark.report import Cause, Omission
from broker.spark.segments import FileLogs
from broker.topic import TopicPartition


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one task reads: always the same bytes, however often it is tried."""

    range: ByteRange
    place: Place


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What a batch reads.

    Attributes:
        ranges: one for each partition; all of them together are what is read.
        tasks: the ranges cut into pieces.
        omissions: what was asked for and is not there.
    """

    ranges: tuple[ByteRange, ...]
    tasks: tuple[ReadTask, ...]
    omissions: tuple[Omission, ...]


class OpenCluster(NamedTuple):
    """A cluster with what it takes to ask for positions in it."""

    cluster: Cluster
    positions: BoundaryFinder


def connector_of(options: ConnectionOptions) -> Connect:
    """Return what makes connections to brokers."""

    def connect(address: BrokerAddress) -> Connection:
        return Connection(
            address, timeout_s=options.timeout_s, connect_timeout_s=options.connect_timeout_s
        )

    return connect


@contextmanager
def open_cluster(
    where: BrokerList | RegistryAddress,
    options: ConnectionOptions,
    *,
    on_absent: OnAbsent = log_absent,
) -> Iterator[OpenCluster]:
    """Open the way to brokers and topics.

    Args:
        where: which brokers, or which registry.
        options: how to talk to them.
        on_absent: told of brokers that are listed and do not answer.

    Raises:
        RegistryUnreachableError: ZooKeeper does not answer.
    """
    connect = connector_of(options)
    if isinstance(where, BrokerList):
        static = StaticCluster(where.addresses, connect, on_absent=on_absent)
        try:
            with BoundaryFinder(static, connect) as positions:
                yield OpenCluster(static, positions)
        finally:
            static.close()
        return
    from broker.zk.registry import Registry  # late: Spark imports this module on every look-up

    registry = Registry(where.connect, request_timeout_s=options.timeout_s)
    registry.start(options.connect_timeout_s)
    try:
        cluster = RegistryCluster(registry)
        with BoundaryFinder(cluster, connect) as positions:
            yield OpenCluster(cluster, positions)
    finally:
        registry.stop()


def select_partitions(cluster: Cluster, selection: Selection) -> list[TopicPartition]:
    """Return the partitions of a cluster that are wanted.

    Raises:
        TopicNotFoundError: a topic named, or a partition, does not exist.
    """
    found = wanted_partitions(cluster, selection)
    _check_all_found(selection, found, absent="not found", hint="; is its broker away?")
    return found


def _check_all_found(
    selection: Selection, found: Sequence[TopicPartition], *, absent: str, hint: str = ""
) -> None:
    topics = {one.topic for one in found}
    for topic in selection.topics:
        if topic not in topics:
            raise TopicNotFoundError(f"topic '{topic}' {absent}")
    missing = sorted((selection.partitions or frozenset()).difference(found))
    if missing:
        raise TopicNotFoundError(f"partition {missing[0]} {absent}{hint}")


def wanted_partitions(cluster: Cluster, selection: Selection) -> list[TopicPartition]:
    """Return the partitions that are wanted, of those that are there."""
    if selection.partitions is not None:
        topics = sorted({one.topic for one in selection.partitions})
    elif selection.topics:
        topics = list(selection.topics)
    else:
        topics = [topic for topic in cluster.topics() if selection.has_topic(topic)]
    found = [one for topic in topics for one in cluster.partitions(topic)]
    return [one for one in found if selection.has_partition(one)]


def plan_read(options: ReadOptions, rows: RowFilter = ALL_ROWS) -> ReadPlan:
    """Plan a batch read.

    Args:
        options: of the read.
        rows: leaves out what a query does not need.

    Raises:
        ConfigError: bounds make no sense on what is there.
        DataLossError: messages asked for are gone, and that is not to be borne.
        TopicNotFoundError: a topic, or partition, does not exist.
        BrokerError: a broker, the registry or a file fails.
    """
    if isinstance(options.where, SegmentPaths):
        return _plan_files(options, rows, options.where)
    on_absent = _refuse_absent if options.fail_on_data_loss else log_absent
    opened = open_cluster(options.where, options.connection, on_absent=on_absent)
    with opened as (cluster, positions):
        partitions = select_partitions(cluster, options.selection)
        return _BrokerPlanner(options, rows, positions, cluster).plan(partitions)


def _plan_files(options: ReadOptions, rows: RowFilter, where: SegmentPaths) -> ReadPlan:
    try:
        logs = FileLogs(where.paths)
        partitions = [one for one in logs.partitions() if options.selection.has_partition(one)]
        _check_all_found(options.selection, partitions, absent="is not in these files")
        return _FilePlanner(options, rows, logs).plan(partitions)
    except OSError as error:
        raise StorageError(f"cannot read {error.filename}: {error.strerror}") from error


def _refuse_absent(error: BrokerError) -> None:
    raise BrokerUnreachableError(
        f"{error}; failOnDataLoss=false reads what the other brokers have"
    ) from error


class _Planner(ABC):
    """The steps that are the same for brokers and files."""

    def __init__(self, options: ReadOptions, rows: RowFilter, positions: LogPositions) -> None:
        self._options = options
        self._rows = rows
        self._positions = positions

    def plan(self, partitions: Sequence[TopicPartition]) -> ReadPlan:
        options = self._options
        check_bounds(options, partitions)
        wanted = [one for one in partitions if self._rows.has_partition(one)]
        ranges: list[ByteRange] = []
        omissions: list[Omission] = []
        for partition in wanted:
            found = resolve(partition, options.starting, options.ending, self._positions)
            omissions += found.omissions
            ranges.append(narrow(found.range, self._rows, self._positions))
        whole = [part for one in ranges for part in self.parts(one, omissions)]
        if options.fail_on_data_loss:
            refuse_loss(one for one in omissions if one.cause is Cause.LOST)
        pieces = cut_ranges(
            whole,
            self._positions,
            max_bytes=options.max_partition_bytes,
            min_count=options.min_partitions,
        )
        tasks = tuple(ReadTask(one, self.place(one)) for one in pieces)
        return ReadPlan(tuple(ranges), tasks, tuple(omissions))

    @abstractmethod
    def parts(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        """Return the parts of a range that are there, noting what is not."""

    @abstractmethod
    def place(self, one: ByteRange) -> Place:
        """Return where to read a range."""


class _BrokerPlanner(_Planner):
    def __init__(
        self, options: ReadOptions, rows: RowFilter, positions: BoundaryFinder, cluster: Cluster
    ) -> None:
        super().__init__(options, rows, positions)
        self._leaders = BrokerPlaces(cluster, options.connection)

    def parts(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        return [one]

    def place(self, one: ByteRange) -> Place:
        return self._leaders.place(one.partition)


class _FilePlanner(_Planner):
    def __init__(self, options: ReadOptions, rows: RowFilter, logs: FileLogs) -> None:
        super().__init__(options, rows, logs)
        self._logs = logs.logs

    def parts(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        log = self._logs[one.partition]
        if log.tail_bytes and one.end == log.end:
            text = (
                f"the last {log.tail_bytes} bytes of {log.pieces[-1].path} are no whole message "
                f"(from offset {log.end} on): left out"
            )
            end = log.end + log.tail_bytes
            omissions.append(Omission(Cause.INCOMPLETE, one.partition, log.end, end, text))
        parts = [one]
        for gap in log.gaps():
            if one.start < gap.end and gap.start < one.end:
                text = f"no file has offsets {gap.start} to {gap.end}"
                omissions.append(Omission(Cause.LOST, one.partition, gap.start, gap.end, text))
                parts = [part for each in parts for part in without(each, gap.start, gap.end)]
        return parts

    def place(self, one: ByteRange) -> Place:
        pieces = self._logs[one.partition].pieces
        return FilePlace(
            tuple(p for p in pieces if p.base_offset < one.end and one.start < p.end_offset)
        )


class BrokerPlaces:
    """The brokers that serve partitions, each asked for once.

    Args:
        cluster: tells which broker serves a partition.
        connection: how executors talk to it.
    """

    def __init__(self, cluster: Cluster, connection: ConnectionOptions) -> None:
        self._cluster = cluster
        self._connection = connection
        self._places: dict[TopicPartition, BrokerPlace] = {}

    def place(self, partition: TopicPartition) -> BrokerPlace:
        """Return where a partition is read."""
        if partition not in self._places:
            address = self._cluster.leader(partition)
            self._places[partition] = BrokerPlace(address, self._connection)
        return self._places[partition]
