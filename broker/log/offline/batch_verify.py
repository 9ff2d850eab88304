"""Verifying a segment of Kafka's record batches, with the files beside it.

Damage in a file beside a segment is one problem, the first: brokers make such a file anew as a
whole. A missing one is no damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from broker.errors import InvalidMessageError
from broker.log import batches, side_files
from broker.log.offline import segments
from broker.log.offline.segment_run import Engine, SegmentProblem, SegmentRun, VerifyReport
from broker.log.scan import ScannedBlock, read_range
from broker.log.side_files import IndexEntry, SideFileError
from broker.protocol import _batches_python, codec, record_batch
from broker.protocol.codec import BatchScan, Fault, RecordBatch

_KNOWN_ATTRIBUTES = (0x07, 0x0F, 0x7F)  # by magic
_MAX_EPOCH = 2**31 - 1
_NOWHERE = 2**63  # behind the end of any file
_VERIFY: dict[Engine, Callable[..., BatchScan]] = {
    "codec": codec.verify_batches,
    "zlib": _batches_python.verify_batches,
    "crcmod": _batches_python.verify_batches,
}
_KINDS = {side_files.EPOCHS_NAME: "epochs", side_files.METADATA_NAME: "metadata"}


@dataclass(eq=False)
class BatchVerification(SegmentRun[BatchScan]):
    """One run over a segment of batches and the files beside it; for one call of a method."""

    _next_offset: int = field(default=0, init=False)
    _epoch: int = field(default=-1, init=False)
    _last_epoch: int = field(default=_MAX_EPOCH, init=False)
    _is_compacted: bool = field(default=False, init=False)
    _is_behind_damage: bool = field(default=False, init=False)
    _base_offset: int | None = field(default=None, init=False)
    _side_problems: list[SegmentProblem] = field(default_factory=list, init=False)

    def run(self) -> VerifyReport:
        """Verify every batch of the file, and the files beside it."""
        base = self._base_offset = segments.archived_base_offset_of(self.path)
        self._next_offset = base or 0
        self._is_behind_damage = base is None  # any offset may be the first
        self._budget = batches.SearchBudget(self._end)
        path = self.path.with_suffix(side_files.INDEX_SUFFIX)
        entries = side_files.read_index(path, base or 0) if self._has_side_files() else iter(())
        self._index = _IndexCheck(path, entries)
        if self._has_side_files():
            self._last_epoch = _last_epoch_in(self.path.parent)
        report = super().run()
        if self._has_side_files() and report.is_complete:
            end = self._end if self._has_known_end() else None
            self._check("index", partial(self._index.finish, end))
            self._check("timeindex", self._check_time_index)
            self._check("txnindex", self._check_aborted)
            snapshot = self.path.with_suffix(side_files.SNAPSHOT_SUFFIX)
            self._side_problems += _problems_of(snapshot, side_files.read_snapshot)
        return replace(
            report,
            problems=(*report.problems, *self._side_problems),
            next_offset=self._next_offset,
            is_compacted=self._is_compacted,
        )

    def _blocks(self, position: int) -> Iterator[ScannedBlock[BatchScan]]:
        scan = partial(_VERIFY[self.engine], deep=self.deep)
        return batches.scan_batch_blocks(self._file.fd, position, self._end, scan=scan)

    def _count(self, block: ScannedBlock[BatchScan]) -> None:
        self._entry_count += len(block.scan.batches)
        for batch in block.scan.batches:
            position, _, magic, base, epoch, _, attributes, delta, _, _, _, _, _, count = batch
            position += block.position
            last = base + delta
            if magic == record_batch.MAGIC:
                first = base
                if epoch != self._epoch:
                    self._judge_epoch(position, epoch)
                self._is_compacted |= count <= delta
            else:  # its offset is the last one of a wrapper, and there are at least so many before
                first = base - max(count, 1) + 1
            if attributes & ~_KNOWN_ATTRIBUTES[magic]:
                self._add(position, "attributes", "no unknown bits", f"{attributes:#06x}", 0)
            if magic < record_batch.MAGIC:
                self._message_count += max(count, 1)
            elif not attributes & record_batch.CONTROL:
                self._message_count += count
            if first != self._next_offset:
                self._judge_offset(position, first)
            self._next_offset = last + 1
            self._is_behind_damage = False
            if position >= self._index.from_position:
                self._index.see(batch, position, first, last)

    def _judge_offset(self, position: int, first: int) -> None:
        if first < self._next_offset:
            self._add(position, "offset", f"at least {self._next_offset}", str(first), 0)
        elif not self._is_behind_damage:
            self._is_compacted = True

    def _judge_epoch(self, position: int, epoch: int) -> None:
        """Validate a leader epoch that differs from that of the batch before.

        Neither it nor the offset is under the CRC of the batch.
        """
        if not self._epoch <= epoch <= self._last_epoch:
            expected = f"{self._epoch} to {self._last_epoch}"
            if self._last_epoch == _MAX_EPOCH:
                expected = f"at least {self._epoch}"
            self._add(position, "epoch", expected, str(epoch), 0)
        if epoch <= self._last_epoch:
            self._epoch = epoch

    def _has_grown(self, position: int) -> bool:
        head = batches.read_head(self._file.fd, position)
        size = os.fstat(self._file.fd).st_size
        if head is None or not self._end < head.end <= size:
            return False
        self._end = head.end
        return True

    def _record(self, position: int, fault: Fault) -> int:
        fd, end = self._file.fd, self._end
        head = batches.read_head(fd, position)
        resumed = batches.resume_behind(fd, position, end, fault, self._budget)
        kind, expected, found = self._describe(fault, head, position, is_tail=resumed == end)
        self._add(position, kind, expected, found, resumed - position)
        self._is_behind_damage = True
        self._index.skip_to(resumed)
        return resumed

    def _describe(
        self, fault: Fault, head: RecordBatch | None, position: int, *, is_tail: bool
    ) -> tuple[str, str, str]:
        rest = self._end - position
        if head is None:
            return "partial", f"at least {record_batch.LEAST_BYTES} bytes", f"{rest} bytes"
        if fault is Fault.CRC:
            crc = batches.crc_of_batch(self._file.fd, head)
            return "crc", f"{head.crc:08x}", f"{crc:08x}"
        if fault is Fault.CODEC:
            return "codec", "a known codec", f"attributes {head.attributes:#06x}"
        if fault is Fault.MAGIC:
            return "magic", "0 to 2", str(head.magic)
        if fault is Fault.OFFSETS:
            taken = f"offset {head.base_offset}, {head.last_offset_delta} to the last"
            return "offset", "offsets for its records", f"{taken}, {head.record_count} records"
        if fault is Fault.TIMESTAMPS:
            found = f"max timestamp {head.max_timestamp}"
            return "time", "the largest timestamp of its records", found
        if fault is Fault.RECORDS:
            count = head.record_count if head.magic == record_batch.MAGIC else 1
            return "records", f"{count} records and nothing else", "bytes that do not parse as such"
        if fault is Fault.COMPRESSED:
            name = head.codec.name.lower() if head.codec else "compressed"
            return "compressed", f"{name} data", self._describe_compressed(head)
        if fault is Fault.PARTIAL and is_tail:
            return "partial", f"{head.size} bytes", f"{rest} bytes"
        least = record_batch.HEADER_BYTES if head.magic == 2 else record_batch.LEAST_BYTES
        return "size", f"{least} to {rest}", str(head.size)

    def _describe_compressed(self, head: RecordBatch) -> str:
        if head.magic == record_batch.MAGIC:
            start = head.position + record_batch.HEADER_BYTES
            try:
                codec.unfold_batch(
                    head.attributes, head.magic, read_range(self._file.fd, start, head.end - start)
                )
            except InvalidMessageError as error:
                return str(error)
        return "other data"

    def _offset_at(self, position: int) -> int | None:
        return self._next_offset

    def _has_side_files(self) -> bool:
        return self._base_offset is not None and self.path.suffix == ".log"

    def _check(self, kind: str, check: Callable[[], object]) -> None:
        """Record what a check of a file beside the segment finds."""
        path = self.path.with_suffix(f".{kind}")
        self._side_problems += _problems_of(path, lambda _: check())

    def _has_known_end(self) -> bool:
        """Return whether all batches are known, so that nothing beside them tells of others."""
        return not self._problems and os.fstat(self._file.fd).st_size == self._end

    def _check_time_index(self) -> None:
        path = self.path.with_suffix(side_files.TIME_INDEX_SUFFIX)
        for at, _, offset in side_files.read_time_index(path, self._base_offset or 0):
            if offset >= self._next_offset and self._has_known_end():
                expected = f"an offset below {self._next_offset}"
                raise SideFileError(path, at, expected, str(offset))

    def _check_aborted(self) -> None:
        path = self.path.with_suffix(side_files.ABORTED_SUFFIX)
        for number, one in enumerate(side_files.read_aborted(path)):
            is_inside = (self._base_offset or 0) <= one.last_offset < self._next_offset
            if not is_inside and self._has_known_end():
                expected = f"a last offset of {self._base_offset} to {self._next_offset - 1}"
                at = number * side_files.ABORTED_ENTRY_BYTES
                raise SideFileError(path, at, expected, str(one.last_offset))


class _IndexCheck:
    """Compares the entries of an `.index` file with the batches of its segment, as they come.

    `from_position` is where the next batch is that concerns the index. The first error ends the
    comparison.
    """

    def __init__(self, path: Path, entries: Iterator[IndexEntry]) -> None:
        self.from_position = _NOWHERE
        self._path = path
        self._entries = entries
        self._next: IndexEntry | None = None
        self._open: IndexEntry | None = None
        """An entry whose batch has come, and not the last offset appended with that batch."""
        self._error: OSError | SideFileError | None = None
        self._advance()

    def _advance(self) -> None:
        try:
            self._next = next(self._entries, None)
        except (OSError, SideFileError) as error:
            self._fail(error)
        else:
            self._aim()

    def _aim(self) -> None:
        self.from_position = self._next.position if self._next else _NOWHERE

    def _fail(self, error: OSError | SideFileError) -> None:
        self._error = error
        self._next = self._open = None
        self.from_position = _NOWHERE

    def see(self, batch: RecordBatch, position: int, first: int, last: int) -> None:
        """Compare the batch at a position of the file, with these offsets."""
        if (entry := self._next) and entry.position <= position:
            if not self._open and entry.position == position and entry.offset == last:
                self._advance()  # as nearly always
                return
            if self._open:
                self._mismatch(self._open, f"the offset of a batch from {self._open.position}")
                return
            if entry.position < position:
                self._mismatch(entry, "the position of a batch")
                return
            self._open = entry
            self._advance()
        if entry := self._open:
            is_own = entry.position == position
            is_wrapper = batch.magic < record_batch.MAGIC and batch.codec
            if entry.offset == last or (
                is_own and (entry.offset == first or (is_wrapper and first < entry.offset < last))
            ):
                self._open = None
                self._aim()
            elif entry.offset < last:
                self._mismatch(entry, f"the offset of a batch from {entry.position}")
            else:
                self.from_position = 0

    def skip_to(self, position: int) -> None:
        """Leave out entries for damaged batches before a position of the segment."""
        self._open = None
        self._aim()
        while self._next and self._next.position < position:
            self._advance()

    def finish(self, end: int | None) -> None:
        """Raise what was found, or an error if there are entries behind the end, if it is known."""
        entry = self._open or self._next
        if end is not None and entry:
            self._mismatch(entry, f"a batch before position {end} of the segment")
        if self._error:
            raise self._error

    def _mismatch(self, entry: IndexEntry, expected: str) -> None:
        found = f"offset {entry.offset} at position {entry.position}"
        self._fail(SideFileError(self._path, entry.at, expected, found))


def directory_problems(directory: Path) -> Iterator[SegmentProblem]:
    """Verify the files of a partition's directory that belong to no segment."""
    yield from _problems_of(directory / side_files.EPOCHS_NAME, side_files.read_epochs)
    yield from _problems_of(directory / side_files.METADATA_NAME, side_files.read_topic_id)
    for path in sorted(directory.glob(f"*{side_files.SNAPSHOT_SUFFIX}")):
        if path.stem.isdecimal() and not path.with_suffix(".log").exists():
            yield from _problems_of(path, side_files.read_snapshot)


def _last_epoch_in(directory: Path) -> int:
    """Return the last leader epoch of a partition; the largest there can be if it is not known."""
    try:
        epochs = side_files.read_epochs(directory / side_files.EPOCHS_NAME)
    except (OSError, SideFileError):
        return _MAX_EPOCH
    return epochs[-1].epoch if epochs else _MAX_EPOCH


def _problems_of(path: Path, read: Callable[[Path], object]) -> list[SegmentProblem]:
    """Return the problem of a file beside a segment, found by a function that reads it."""
    kind = _KINDS.get(path.name, path.suffix[1:])
    try:
        found = read(path)
        if isinstance(found, Iterator):
            for _ in found:
                pass
    except FileNotFoundError:
        return []
    except OSError as error:
        return [SegmentProblem(str(path), 0, kind, "a readable file", str(error.strerror), 0, 0)]
    except SideFileError as error:
        size = path.stat().st_size
        rest = max(0, size - error.position)
        place = (str(path), error.position)
        return [SegmentProblem(*place, kind, error.expected, error.found, rest, rest)]
    return []
