"""What a task does: a range of bytes in, Arrow batches out.

Runs on executors. The same range gives the same rows, however often it is read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.errors import InvalidMessageError
from broker.protocol.codec import Fault
from broker.protocol.message import entry_bytes, has_length
from broker.protocol.message_set import describe_fault
from broker.protocol.primitives import Buffer
from broker.spark.damage import Damage, Spool, spooled
from broker.spark.decode import BatchMaker, decode
from broker.spark.options import Crc
from broker.spark.places import BrokerPlace, Place
from broker.spark.plans import ReadTask
from broker.spark.ranges import ByteRange
from broker.spark.report import Cause, DataLossError, Omission, Report
from broker.spark.sources import log_start, read_bytes
from broker.topic import MessagePosition

Batches = Generator[pa.RecordBatch, None, Fault]
"""Gives batches, and returns why there are no more: `NONE` at the end of the range."""


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """What is the same for all tasks of a read."""

    schema: pa.Schema
    crc: Crc
    fail_on_data_loss: bool
    fetch_bytes: int
    report_path: Path | None


def read_task(
    task: ReadTask, settings: TaskSettings, report: Report | None = None
) -> Iterator[pa.RecordBatch]:
    """Give the messages of a range.

    Args:
        task: what to read, and where.
        settings: of the read.
        report: told what is left out; by default one that the settings say.

    Raises:
        InvalidMessageError: a message is corrupt, and `crc` does not bear that.
        DataLossError: a part of the range is gone since it was planned.
        BrokerError: the broker fails, or a segment file cannot be read.
    """
    return _TaskReader(task, settings, report or Report(settings.report_path)).batches()


class _TaskReader:
    """Reads one range, from front to back; `_position` is where the next message starts."""

    def __init__(self, task: ReadTask, settings: TaskSettings, report: Report) -> None:
        self._range = task.range
        self._place = task.place
        self._settings = settings
        self._maker = BatchMaker(task.range.partition, settings.schema)
        self._report = report
        self._position = task.range.start

    def batches(self) -> Iterator[pa.RecordBatch]:
        fault = yield from self._good_batches_despite_loss()
        if fault:
            self._check_bearable(fault)
            with spooled(self._rest(), self._place, self._settings.fetch_bytes) as spool:
                yield from self._all_batches(spool, fault)

    def _rest(self) -> ByteRange:
        return replace(self._range, start=self._position)

    def _good_batches_despite_loss(self) -> Batches:
        while True:
            try:
                return (yield from self._good_batches(self._place))
            except DataLossError:
                if self._settings.fail_on_data_loss or not self._has_moved_on():
                    raise

    def _has_moved_on(self) -> bool:
        """Go on where the log starts now; return whether that is any further."""
        if not isinstance(self._place, BrokerPlace):
            return False
        rest = self._rest()
        first = log_start(self._place, rest)
        if first <= rest.start:
            return False
        self._position = min(first, rest.end)
        text = f"offsets {rest.start} to {self._position} were deleted before they could be read"
        lost = Omission(Cause.LOST, rest.partition, rest.start, self._position, text)
        self._report.add(lost)
        return True

    def _good_batches(self, place: Place) -> Batches:
        """Give what is good from the position on, up to the first damage."""
        partition = self._range.partition
        reader = PartitionReader(partition, MessagePosition(self._position))
        for data in read_bytes(place, self._rest(), self._settings.fetch_bytes):
            reader.add(Chunk(partition, data.offset, data.data))
            fault = yield from self._batches_of(reader.data)
            reader.take(self._position - reader.offset)
            if fault and not self._needs_more(fault, reader.data):
                return fault
        return Fault.PARTIAL if len(reader.data) else Fault.NONE

    def _batches_of(self, view: memoryview) -> Batches:
        """Give the messages of a stretch that starts at the position, and move that on."""
        checks_crc = self._settings.crc is not Crc.OFF
        taken = 0
        while True:
            found = decode(view[taken:], self._position, checks_crc=checks_crc)
            taken += found.valid_bytes
            self._position += found.valid_bytes
            if found.message_count:
                yield self._maker.batch(found)
            if found.fault or taken == len(view):
                return found.fault

    def _needs_more(self, fault: Fault, rest: Buffer) -> bool:
        """Return whether what looks like a fault may only be the end of a piece."""
        if fault is not Fault.PARTIAL:
            return False
        return not has_length(rest) or self._position + entry_bytes(rest) <= self._range.end

    def _check_bearable(self, fault: Fault) -> None:
        if self._settings.crc in (Crc.FAIL, Crc.OFF):
            partition = self._range.partition
            raise InvalidMessageError(
                f"{partition}: {describe_fault(fault, self._position)}; "
                "crc=skip leaves it out, crc=mark shows it"
            )

    def _all_batches(self, spool: Spool, fault: Fault) -> Iterator[pa.RecordBatch]:
        """Give the rest of the range, damage dealt with as the option `crc` says."""
        while fault:
            damage = spool.damage_at(self._position, fault)
            self._position = damage.end
            yield from self._rows_of(damage)
            fault = yield from self._good_batches(spool.place)

    def _rows_of(self, damage: Damage) -> Iterator[pa.RecordBatch]:
        if self._settings.crc is Crc.MARK:
            yield self._maker.damaged(damage.start, damage.end, damage.payload, damage.crc)
            return
        text = f"{describe_fault(damage.fault, damage.start)}: left out up to {damage.end}"
        partition = self._range.partition
        self._report.add(Omission(Cause.CORRUPT, partition, damage.start, damage.end, text))
