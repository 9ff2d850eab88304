"""Recovery by a tool: segment files are cut behind their last valid entry or batch.

Beside a segment of Kafka, an `.index` or `.timeindex` that is damaged or has entries behind the cut
is written anew from the batches that stay. Aborted transactions, snapshots and leader epochs behind
the cut are removed. A damaged `.txnindex` is not changed: transactions may start in earlier
segments, so that this one alone does not give its entries. The clean-shutdown marker is removed:
without it Kafka recovers each log at its next start, from the recovery point of the log on.

The log is cut last: until then a second run, after one that was interrupted, finds the same damage.
No broker may have the data directory open.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, NamedTuple

from broker.clock import Clock, SystemClock
from broker.files import TEMPORARY_SUFFIX, opened, sync_directory, write_atomically
from broker.log import side_files
from broker.log.batches import scan_batch_blocks
from broker.log.data_directory import held_by_tool, write_counted_lines
from broker.log.offline.segments import base_offset_of, has_batches, open_segment, segments_of
from broker.log.recovery import cut_file
from broker.log.scan import scan_blocks
from broker.log.side_files import SideFileError
from broker.protocol.codec import Fault
from broker.records import ColumnKind, Count, Fit, Rank, Size, Text

_CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"


class RecoveryPlan(NamedTuple):
    """A segment file that is, or would be, cut.

    A broker does not open a log with a gap before `later_segments` until they are moved away; Kafka
    may, but its consumers find a hole.
    """

    file: Annotated[str, "segment file"]
    bytes: Annotated[Size, "size of the file before", Rank(2)]
    cut_at: Annotated[Count, "position to cut at"]
    cut_bytes: Annotated[Size, "bytes that are cut"]
    fault: Annotated[Text, "what is wrong there", Fit.STATE]
    messages_kept: Annotated[
        Count, "valid messages before it, those of a compressed set as one", Rank(1)
    ]
    later_segments: Annotated[
        Sequence[str], "segments after the cut, to be moved away", Fit.WRAP, Rank(1)
    ]
    side_files: Annotated[
        Sequence[str],
        "files of Kafka that are cut, removed or written anew, to fit what stays",
        Fit.WRAP,
        Rank(1),
    ]
    backup: Annotated[Text, "where the cut bytes went", Rank(2)] = None
    done: Annotated[bool, ColumnKind.BOOLEAN, "whether it was cut"] = False

    @property
    def is_needed(self) -> bool:
        """Return whether there is something to cut."""
        return bool(self.cut_bytes or self.side_files)


_Change = Callable[[], object]


def plan_recovery(path: Path) -> RecoveryPlan:
    """Find where a segment file must be cut to hold valid entries only."""
    return _plan(path)[0]


def _plan(path: Path) -> tuple[RecoveryPlan, dict[Path, _Change]]:
    """Return the plan, and what it does to files beside the segment."""
    file = open_segment(path)
    size = os.fstat(file.fd).st_size
    base_offset = base_offset_of(path)
    is_kafkas = has_batches(path)
    found = (
        _valid_batches(file.fd, size, base_offset or 0)
        if is_kafkas
        else _valid_entries(file.fd, size)
    )
    later, changes = [], {}
    if base_offset is not None and (found.fault or is_kafkas):
        names = _segment_names(path.parent, path.parent.stat().st_mtime_ns)
        later = list(names[bisect_right(names, path.name) :])
        if is_kafkas:
            changes = dict(_side_changes(path, base_offset, found, is_last=not later))
    if found.fault or changes:
        marker = _data_directory(path) / _CLEAN_SHUTDOWN_NAME
        if is_kafkas and marker.exists():
            changes = {marker: partial(_remove, marker), **changes}
    plan = RecoveryPlan(
        file=str(path),
        bytes=size,
        cut_at=found.end,
        cut_bytes=size - found.end,
        fault=found.fault.name.lower() if found.fault else None,
        messages_kept=found.message_count,
        later_segments=later if found.fault else [],
        side_files=[one.name for one in changes],
    )
    return plan, changes


@lru_cache(maxsize=1)  # a directory can have thousands of segments, each of which needs it
def _segment_names(directory: Path, _modified_ns: int) -> tuple[str, ...]:
    return tuple(sorted(one.name for one in segments_of(directory)))


def _data_directory(path: Path) -> Path:
    """Return the data directory of a segment; the directory of its partition may be a link."""
    return path.parent.resolve().parent


class _ValidPart(NamedTuple):
    end: int
    fault: Fault
    message_count: int
    next_offset: int  # of Kafka: behind its last record


def _valid_entries(fd: int, size: int) -> _ValidPart:
    end, fault, count = 0, Fault.NONE, 0
    for block in scan_blocks(fd, 0, size):
        end, fault = block.end, block.scan.fault
        count += block.scan.entry_count
    return _ValidPart(end, fault, count, end)


def _valid_batches(fd: int, size: int, base_offset: int) -> _ValidPart:
    end, fault, count, next_offset = 0, Fault.NONE, 0, base_offset
    for block in scan_batch_blocks(fd, 0, size):
        for batch in block.scan.batches:
            if batch.base_offset < next_offset:
                return _ValidPart(
                    block.position + batch.position, Fault.OFFSETS, count, next_offset
                )
            next_offset = batch.next_offset
            count += 1 if batch.record_count < 0 else batch.record_count
        end, fault = block.end, block.scan.fault
    return _ValidPart(end, fault, count, next_offset)


def _side_changes(
    path: Path, base_offset: int, valid: _ValidPart, *, is_last: bool
) -> Iterator[tuple[Path, _Change]]:
    """Yield the files beside a segment of Kafka that do not fit its valid part, with the mend."""
    end, next_offset = valid.end, valid.next_offset
    index = path.with_suffix(side_files.INDEX_SUFFIX)
    times = path.with_suffix(side_files.TIME_INDEX_SUFFIX)
    aborted = path.with_suffix(side_files.ABORTED_SUFFIX)
    fitting: dict[Path, Iterator[bool]] = {
        index: (
            one.offset < next_offset and one.position < end
            for one in side_files.read_index(index, base_offset)
        ),
        times: (one.offset < next_offset for one in side_files.read_time_index(times, base_offset)),
    }
    for number, (one, fits) in enumerate(fitting.items()):
        if not _all_fit(fits):
            yield one, partial(_write_index, one, number, path, base_offset, end)
    with suppress(FileNotFoundError, SideFileError):
        for number, transaction in enumerate(side_files.read_aborted(aborted)):
            if transaction.last_offset >= next_offset:
                yield aborted, partial(_truncate, aborted, number * side_files.ABORTED_ENTRY_BYTES)
                break
    if not (valid.fault or is_last):
        return  # snapshots and epochs of later offsets belong to later segments
    for one in sorted(path.parent.glob(f"*{side_files.SNAPSHOT_SUFFIX}")):
        if one.stem.isdecimal() and int(one.stem) > next_offset:
            yield one, partial(_remove, one)
    epochs = path.with_name(side_files.EPOCHS_NAME)
    with suppress(FileNotFoundError, SideFileError):
        found = side_files.read_epochs(epochs)
        kept = [one for one in found if one.start_offset <= next_offset]
        if kept != found:
            lines = [f"{one.epoch} {one.start_offset}" for one in kept]
            yield epochs, partial(_replace, epochs, partial(write_counted_lines, lines=lines))


def _all_fit(fits: Iterator[bool]) -> bool:
    """Return whether no entry of a file is damaged or unfit; a missing file has none."""
    try:
        return all(fits)
    except FileNotFoundError:
        return True
    except SideFileError:
        return False


def _truncate(path: Path, size: int) -> None:
    with opened(path, os.O_RDWR) as fd:
        os.ftruncate(fd, size)
        os.fsync(fd)


def _write_index(target: Path, number: int, log: Path, base_offset: int, end: int) -> None:
    content = side_files.indexes_of(log, base_offset, end)[number]
    _replace(target, partial(write_atomically, content=content))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Replace a file by one that a function writes; Kafka's user, another one, still owns it."""
    found = path.stat()
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    write(temporary)
    os.chown(temporary, found.st_uid, found.st_gid)
    temporary.chmod(stat.S_IMODE(found.st_mode))
    temporary.replace(path)
    sync_directory(path.parent)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def recover(path: Path, *, backup: bool = True, clock: Clock | None = None) -> RecoveryPlan:
    """Cut a segment file behind its last valid entry, unless a broker has the directory open.

    `backup` keeps the bytes cut off in a side file next to it, with the time of `clock` in its
    name. Raises `LogLockedError`, or `OSError`, also for a symbolic link.
    """
    with held_by_tool(_data_directory(path)):
        plan, changes = _plan(path)
        side_file = None
        with opened(path, os.O_RDWR):
            pass  # before other files change: the segment can be cut, and is no link
        for change in changes.values():  # the first removes the marker of a clean stop
            change()
        if plan.cut_bytes and backup:
            side_file = str(cut_file(path, plan.cut_at, (clock or SystemClock()).time_ms()))
        elif plan.cut_bytes:
            _truncate(path, plan.cut_at)
    return plan._replace(backup=side_file, done=True)
