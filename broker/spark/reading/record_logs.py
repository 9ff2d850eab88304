"""Logs made of Kafka's segment files, without a broker: their offsets, and the parts of tasks.

`RecordLogs` has the methods of `segment_logs.FileLogs`. Offsets count records: those that
compaction removed, and marks of transactions, leave gaps, which are no losses. A plan reads the
heads of batches, from where the indexes beside a file say. The newest file of a log may end inside
a batch, or in zeros: the bytes behind the last whole batch are left out, and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise

from broker.client.list_offsets import Watermarks
from broker.errors import LogCorruptError
from broker.log import batches
from broker.log.aborted import aborted_beside
from broker.log.offline.records import offset_by_time, position_of
from broker.log.offline.segments import is_archive, open_segment
from broker.log.side_files import (
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    AbortedTransaction,
    SideFileError,
    read_index,
    read_time_index,
)
from broker.protocol.codec import RecordBatch
from broker.spark.options import ReadOptions
from broker.spark.reading.ranges import (
    ByteRange,
    FilePart,
    LogFile,
    ReadTask,
    RecordFiles,
    grouped,
    range_bytes,
)
from broker.spark.reading.report import Cause, Omission
from broker.spark.reading.segment_logs import OfflineLogs, PartitionFiles
from broker.topic import TopicPartition

_MAX_FILE_OFFSETS = 2**31


class RecordLog:
    """The segment files of a partition of Kafka's, in the order of their offsets."""

    def __init__(self, partition: TopicPartition, files: Sequence[LogFile]) -> None:
        self.partition = partition
        self.files = tuple(files)

    @cached_property
    def _tail(self) -> tuple[int, int]:
        """Return where the last whole batch of the newest file ends, and the offset behind it."""
        newest = self.files[-1]
        end, offset = 0, newest.base_offset
        # no CRC covers the offset of a batch: its bits are wrong if offsets do not rise, or are not
        # within 2^31 of the base offset, as those are that a broker puts in a file
        limit = newest.base_offset + _MAX_FILE_OFFSETS
        for start in (position_of(newest.path, _last_indexed_offset(newest)), 0):
            for head in _heads(newest, start):
                if offset <= head.base_offset < head.next_offset <= limit:
                    offset = head.next_offset
                elif _good_head(newest, head.position):  # else the reader meets the damage
                    raise LogCorruptError(
                        f"{newest.path}: the batch at {head.position} has offset "
                        f"{head.base_offset}, and must be in {offset}..{limit - 1}"
                    )
                end = head.end
            if end:  # else the index is wrong
                break
        return end, offset

    @property
    def end(self) -> int:
        """Return the offset behind the last whole batch."""
        return self._tail[1]

    @property
    def tail_bytes(self) -> int:
        """Return the number of bytes behind the last whole batch, which are left out."""
        return self.files[-1].size_bytes - self._tail[0]

    @cached_property
    def aborted(self) -> tuple[AbortedTransaction, ...]:
        """Return the aborted transactions, as listed beside the segment that has their mark."""
        return tuple(aborted_beside(file.path for file in self.files))

    def parts(self, wanted: ByteRange, task_bytes: int) -> list[FilePart]:
        """Return the parts of files that have a range, of about `task_bytes` at most."""
        found: list[FilePart] = []
        for number, file in enumerate(self.files):
            is_newest = number == len(self.files) - 1
            following = self.end if is_newest else self.files[number + 1].base_offset
            first, last = max(wanted.start, file.base_offset), min(wanted.end, following)
            if first >= last:
                continue
            start, end = 0, self._tail[0] if is_newest else file.size_bytes
            if first > file.base_offset:
                start = _start_of(file, first)
            if last < following:  # with the batch that has this offset: it may start before it
                behind = _heads(file, _start_of(file, last))
                end = min(end, next((one.end for one in behind), end))
            count = 1 if is_archive(file.path) else -(-(end - start) // task_bytes)
            cuts = [(start, first)]
            for offset in (first + (last - first) * at // count for at in range(1, count)):
                head = _good_head(file, position_of(file.path, offset))
                if head is None:  # a damaged size leads into the batches behind it
                    continue
                is_inside = cuts[-1][0] < head.position < end
                if is_inside and cuts[-1][1] < head.base_offset < last:
                    cuts.append((head.position, head.base_offset))
            if start < end:
                ends = pairwise([*cuts, (end, following)])
                found += [FilePart(file.path, low, *high) for (low, _), high in ends]
        return found

    def offset_at(self, time_ms: int) -> int:
        """Return the offset of the first record that is not older than a time; else the end.

        Damaged batches are left out.
        """
        for file in self.files:
            if file is not self.files[-1] and _last_indexed_ms(file, time_ms) < time_ms:
                continue
            if (offset := offset_by_time(file.path, time_ms)) is not None:
                return offset
        return self.end


class RecordLogs(OfflineLogs):
    """The logs in Kafka's segment files."""

    def __init__(self, files: PartitionFiles) -> None:
        super().__init__(files)
        self.logs = {partition: RecordLog(partition, found) for partition, found in files.items()}

    def present(self, one: ByteRange, omissions: list[Omission]) -> list[ByteRange]:
        """Return the range; add the bytes behind the last whole batch to the omissions."""
        log = self.logs[one.partition]
        if log.tail_bytes and one.end == log.end:
            text = (
                f"the last {log.tail_bytes} bytes of {log.files[-1].path} are no whole batch "
                f"(from offset {log.end} on): left out"
            )
            ends = log.end, log.end
            tail_bytes = log.tail_bytes
            omissions.append(
                Omission(Cause.INCOMPLETE, one.partition, *ends, text, omitted_bytes=tail_bytes)
            )
        return [one]

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return the base offset of the first file, and the offset behind the last whole batch."""
        log = self.logs[partition]
        return Watermarks(log.files[0].base_offset, log.end, None)

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int:
        """Return the offset of the first record that is not older than a time; else the end.

        That is also where a range ends, whatever `rounded_up` says.
        """
        del rounded_up
        return self.logs[partition].offset_at(time_ms)

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the offset: reads may start at any record."""
        del partition
        return position

    boundary_after = boundary_before

    def tasks(self, ranges: Sequence[ByteRange], options: ReadOptions) -> list[ReadTask]:
        """Cut ranges into tasks where batches start, none larger than options ask for, if possible.

        Small files are read together in one task.
        """
        found = [one for one in ranges if one.size_bytes]
        tasks = [task for one in found for task in self._cut(one, options.task_bytes)]
        size = range_bytes(tasks, options.task_bytes, options.min_partitions or 1)
        if size == options.task_bytes:
            return tasks
        return [task for one in found for task in self._cut(one, size)]

    def _cut(self, wanted: ByteRange, task_bytes: int) -> Iterator[ReadTask]:
        log = self.logs[wanted.partition]
        parts = log.parts(wanted, task_bytes)
        groups = list(grouped(parts, lambda one: one.size_bytes, task_bytes)) or [[]]
        start = wanted.start
        for number, group in enumerate(groups):
            end = wanted.end if number == len(groups) - 1 else group[-1].end_offset
            aborted = [
                one for one in log.aborted if one.first_offset < end and start <= one.last_offset
            ]
            files = RecordFiles(tuple(group), wanted, tuple(aborted))
            yield ReadTask(ByteRange(wanted.partition, start, end), files)
            start = end


def _heads(file: LogFile, position: int) -> Iterator[RecordBatch]:
    """Yield the heads of the whole batches from a position on, also behind damage.

    What a broker appends after files were listed is not read.
    """
    opened, size = open_segment(file.path), file.size_bytes
    budget = batches.SearchBudget(size)
    while position < size:
        for head in batches.walk_heads(opened.fd, position, size):
            yield head
            position = head.end
        if position < size:
            position = batches.find_batch(opened.fd, position + 1, size, budget) or size


def _good_head(file: LogFile, position: int) -> RecordBatch | None:
    opened = open_segment(file.path)
    return batches.good_head(opened.fd, position, file.size_bytes)


def _start_of(file: LogFile, offset: int) -> int:
    """Return where to read an offset from: its batch, else damage that may have it, else behind."""
    position = position_of(file.path, offset)
    if position == file.size_bytes or _good_head(file, position):
        return position
    position = 0
    for head in _heads(file, 0):
        if head.next_offset > offset:
            return head.position if head.base_offset <= offset else position
        position = head.end
    return position


def _last_indexed_offset(file: LogFile) -> int:
    """Return the last offset in the index of a file; its base offset if there is none."""
    offset = file.base_offset
    with suppress(FileNotFoundError, SideFileError):  # it is only a hint
        for entry in read_index(file.path.with_suffix(INDEX_SUFFIX), file.base_offset):
            offset = entry.offset
    return offset


def _last_indexed_ms(file: LogFile, unknown_ms: int) -> int:
    """Return the largest timestamp in the time index of a file; `unknown_ms` without a good one."""
    path, last_ms = file.path.with_suffix(TIME_INDEX_SUFFIX), unknown_ms
    try:
        for entry in read_time_index(path, file.base_offset):
            last_ms = entry.timestamp
    except (FileNotFoundError, SideFileError):
        return unknown_ms
    return last_ms
