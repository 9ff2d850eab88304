"""Logs made of segment files, without a broker: their partitions, offsets and message boundaries.

`FileLogs` has the methods of `cluster.OpenCluster` and of `broker.consumer.boundaries`, for logs on
brokers. The newest file of a log may still be written: a partial message at its end is left out,
and reported. An archive is of a finished segment; the driver unpacks it only to find boundaries.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from glob import has_magic
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Self

from broker.client.list_offsets import Watermarks
from broker.errors import ConfigError, LogCorruptError, OffsetOutOfRangeError
from broker.log.data_directory import parse_log_directory_name, read_broker_id
from broker.log.offline import segments
from broker.log.scan import BLOCK_BYTES, boundaries_despite_damage, find_entry
from broker.log.segment import SegmentFile
from broker.protocol.codec import boundaries
from broker.spark.options import Crc, ReadOptions, Selection
from broker.spark.reading import loss
from broker.spark.reading.ranges import ByteRange, CreationIds, LogFile, without
from broker.spark.reading.report import Cause, Omission
from broker.topic import NO_HOME, TopicPartition

_REPLICAS_NAME = "replicas"
_KAFKA_DIRECTORY = re.compile(r"(.+)[_-]([0-9]+)", re.ASCII)
_TAIL_BYTES = 1 << 18
_MAX_INT32 = 2**31 - 1


class FileLog:
    """The segment files of one partition, in the order of their offsets, which must not overlap."""

    def __init__(self, partition: TopicPartition, files: Iterable[LogFile]) -> None:
        self.partition = partition
        self.files = tuple(files)
        self._opened: dict[Path, SegmentFile] = {}
        for earlier, later in pairwise(self.files):
            if later.base_offset < earlier.end_offset:
                raise LogCorruptError(
                    f"{partition}: {earlier.path} and {later.path} both have offset "
                    f"{later.base_offset}; name only one of them"
                )

    @property
    def start(self) -> int:
        """Return the offset of the first message."""
        return self.files[0].base_offset

    @cached_property
    def end(self) -> int:
        """Return the offset after the last whole message of the newest file."""
        newest = self.files[-1]
        if segments.is_archive(newest.path):
            return newest.end_offset
        return newest.base_offset + _whole_bytes(
            newest.path, newest.end_offset - newest.base_offset
        )

    @property
    def tail_bytes(self) -> int:
        """Return the size of the partial message after the last whole one."""
        return self.files[-1].end_offset - self.end

    def boundaries_around(self, position: int) -> tuple[int, int]:
        """Return the message boundaries at or before, and at or after, a position in the log.

        Damage extends to the next good message, as it does for brokers, and a gap to the next file.
        """
        if position == self.end:
            return position, position
        number = bisect_right(self.files, position, key=lambda one: one.base_offset) - 1
        if number < 0 or position > self.end:
            raise OffsetOutOfRangeError(
                f"{position} is not in the segment files of {self.partition}, "
                f"{self.start}..{self.end}"
            )
        one = self.files[number]
        if position >= one.end_offset:
            return one.end_offset, self.files[number + 1].base_offset
        size = min(one.end_offset, self.end) - one.base_offset
        if one.path not in self._opened:
            self._opened[one.path] = segments.open_segment(one.path)
        file = self._opened[one.path]
        before, after = boundaries_despite_damage(file, position - one.base_offset, size)
        return one.base_offset + before, one.base_offset + after


PartitionFiles = dict[TopicPartition, list[LogFile]]
"""The segment files of partitions, in the order of their offsets."""


def selected_files(options: ReadOptions) -> PartitionFiles:
    """Return the segment files of the selected partitions, which have one format.

    Partitions of Kafka's batches have no home. A `ConfigError` names a file of each format.
    """
    files = files_of(options.where.paths)
    selected = {key: some for key, some in files.items() if options.selection.has_partition(key)}
    batches = next((some for key, some in selected.items() if key.home == NO_HOME), None)
    entries = next((some for key, some in selected.items() if key.home != NO_HOME), None)
    if batches and entries:
        raise ConfigError(
            f"{batches[0].path} has record batches of Kafka's, and {entries[0].path} messages of "
            "Kafka 0.7, with other columns: read them one after the other"
        )
    if batches and options.crc in (Crc.MARK, Crc.OFF):
        raise ConfigError(
            f"crc={options.crc.value} is for messages of Kafka 0.7, and {batches[0].path} has "
            "record batches: valid: fail, skip"
        )
    return selected


def files_of(paths: Iterable[Path]) -> PartitionFiles:
    """Return the segment files in directories and patterns such as `data/*/*.pylog`.

    Archived segments count as others, unless they are there unpacked, too.
    """
    files: PartitionFiles = {}
    for path in segments.expand_paths(_existing(paths), archives=True):
        directory = path.absolute().parent
        file = _log_file(path)
        if segments.is_archive(path):  # to read its first batch would unpack it
            has_batches = segments.is_archive_of_batches(path)
        else:
            has_batches = segments.has_batches(path)
        partition = partition_of_directory(directory, has_batches=has_batches)
        if max(partition.index, partition.home) > _MAX_INT32:
            raise ConfigError(
                f"{directory}: its partition or broker is above {_MAX_INT32}: leave it out"
            )
        files.setdefault(partition, []).append(file)
    return {partition: _in_order(found) for partition, found in sorted(files.items())}


class OfflineLogs:
    """Partitions of logs in files of either format, for a read without a broker."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self._partitions = tuple(partitions)

    @property
    def positions(self) -> Self:
        """Return what finds offsets and message boundaries."""
        return self

    def existing(self, selection: Selection) -> list[TopicPartition]:
        """Return the partitions of a selection; each topic and partition it names must exist."""
        found = [one for one in self._partitions if selection.has_partition(one)]
        selection.check_all_found(found, absent="is not in these files")
        return found

    def absent(self, _: Selection) -> tuple[str, ...]:
        """Return nothing: no broker is needed."""
        return ()

    def creation_ids(self, _: Collection[TopicPartition]) -> CreationIds:
        """Return nothing: files do not have the ids of the creations of topics."""
        return {}


class FileLogs(OfflineLogs):
    """The logs in segment files of messages of Kafka 0.7."""

    def __init__(self, files: PartitionFiles) -> None:
        super().__init__(files)
        self.logs = {partition: FileLog(partition, found) for partition, found in files.items()}

    def present(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        """Return the parts of a range that exist, and add the missing parts to the omissions."""
        log = self.logs[one.partition]
        if log.tail_bytes and one.end == log.end:
            text = (
                f"the last {log.tail_bytes} bytes of {log.files[-1].path} are no whole message "
                f"(from offset {log.end} on): left out"
            )
            end = log.end + log.tail_bytes
            omissions.append(Omission(Cause.INCOMPLETE, one.partition, log.end, end, text))
        parts = [one]
        for earlier, later in pairwise(log.files):
            start, end = earlier.end_offset, later.base_offset
            if start < end and one.start < end and start < one.end:
                omissions.append(loss.gap(one.partition, start, end))
                parts = [part for each in parts for part in without(each, start, end)]
        return parts

    def locations(self) -> Callable[[ByteRange], tuple[LogFile, ...]]:
        """Return a function that returns the files that have a range."""
        return lambda one: tuple(
            file
            for file in self.logs[one.partition].files
            if file.base_offset < one.end and one.start < file.end_offset
        )

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return the start of the first message and the end of the last whole one."""
        log = self.logs[partition]
        return Watermarks(log.start, log.end, None)

    def finds_boundaries(self, partition: TopicPartition) -> bool:
        """Return True: the chain of lengths is followed, which is quick on a local file."""
        return partition in self.logs

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return the base offsets of files, oldest first, and the end as the last item."""
        log = self.logs[partition]
        return [*(one.base_offset for one in log.files), log.end]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the start of a file by the time of its last change; see `OffsetLister.by_time`.

        With `rounded_up` the end of the log if no file is later.
        """
        log = self.logs[partition]
        times = [one.path.stat().st_mtime_ns // 1_000_000 for one in log.files]
        starts = self.segment_starts(partition)
        if rounded_up:
            count = max((at for at, one in enumerate(times, 1) if one <= time_ms), default=0)
            return starts[count] if count < len(starts) else None
        # times that go back must not make a start too late
        count = sum(1 for one in accumulate(times, max) if one <= time_ms)
        return starts[count - 1] if count else None

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or before a position."""
        return self.logs[partition].boundaries_around(position)[0]

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or after a position."""
        return self.logs[partition].boundaries_around(position)[1]


def _existing(paths: Iterable[Path]) -> list[Path]:
    """Return paths with patterns expanded."""
    found = []
    for path in paths:
        root = Path(path.anchor or ".")
        matches = [path]
        if has_magic(str(path)):
            matches = sorted(root.glob(str(path.relative_to(path.anchor))))
        if not matches or not all(one.exists() for one in matches):
            raise ConfigError(f"no such file or directory: {path}")
        found += matches
    return found


def _log_file(path: Path) -> LogFile:
    base_offset = segments.archived_base_offset_of(path)
    if base_offset is None:
        raise ConfigError(
            f"{path} is not named as a segment: 20 digits and .pylog, .kafka or .log, .gz if "
            "archived"
        )
    return LogFile(path.absolute(), base_offset, base_offset + segments.stated_bytes(path))


def _in_order(files: Iterable[LogFile]) -> list[LogFile]:
    """Return files by offset, without archives of segments that retention has yet to delete."""
    found = sorted(files, key=lambda one: one.base_offset)
    plain = {one.base_offset for one in found if not segments.is_archive(one.path)}
    return [
        one for one in found if not segments.is_archive(one.path) or one.base_offset not in plain
    ]


def partition_of_directory(directory: Path, *, has_batches: bool = False) -> TopicPartition:
    """Return whose segment files are in a directory, as a broker names its directories.

    `<data>/<topic>_<index>`, `<data>/replicas/<home>/<topic>_<index>`, or
    `<archive>/<topic>_<home>-<index>`. Home is 0 if no file names a broker; a directory of another
    form is partition 0 of a topic with its name. Kafka's are `<topic>-<index>`, and archives
    `<topic>_<index>`, for files with its batches; their partitions have no home.
    """
    if has_batches:
        found = _KAFKA_DIRECTORY.fullmatch(directory.name)
        topic, index = (found[1], int(found[2])) if found else (directory.name, 0)
        return TopicPartition(topic, NO_HOME, index)
    if archived := segments.archived_partition_of(directory):
        return archived
    parent = directory.parent
    home = read_broker_id(parent) or 0
    if parent.parent.name == _REPLICAS_NAME and parent.name.isdecimal():
        home = int(parent.name)
    named = parse_log_directory_name(directory.name, home)
    return named if named and named.home == home else TopicPartition(directory.name, home, 0)


def _whole_bytes(path: Path, size: int) -> int:
    """Return the end of the last whole message of a file, by the chain of lengths.

    Damage before whole messages is not the end; reading the file reports it.
    """
    file = segments.open_segment(path)
    if _ends_on_message(file.fd, size):
        return size
    start = 0
    while True:
        end = _chain_end(file.fd, start, size)
        resumed = find_entry(file.fd, end + 1, size) if end < size else None
        if resumed is None:
            return end
        start = resumed


def _ends_on_message(fd: int, size: int) -> bool:
    """Return whether a message ends where the file does, judging by the last part of the file.

    Reads little, so that a directory of large segments is planned quickly. Bytes inside a message
    that look like one cannot end there, unless the file itself ends inside of that message.
    """
    start = find_entry(fd, max(0, size - _TAIL_BYTES), size)
    return start is not None and _chain_end(fd, start, size) == size


def _chain_end(fd: int, position: int, size: int) -> int:
    block_bytes = BLOCK_BYTES
    while position < size:
        block = os.pread(fd, min(block_bytes, size - position), position)
        whole = boundaries(block)[-1]
        if not whole and len(block) < block_bytes:
            break
        # a message larger than a block: read more, up to its end or that of the file
        block_bytes = BLOCK_BYTES if whole else 2 * block_bytes
        position += whole
    return position
