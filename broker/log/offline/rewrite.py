"""Offline tools that write new segment files from others: repair, split and merge.

No source is changed, and no file that exists is written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

from broker import errors
from broker.files import opened, write_all
from broker.log.batches import read_head, scan_batch_blocks
from broker.log.format import segment_name
from broker.log.offline.batch_verify import BatchVerification
from broker.log.offline.records import StoredBatch, first_offset_of
from broker.log.offline.segments import (
    archived_base_offset_of,
    has_batches,
    open_segment,
    segment_bytes,
)
from broker.log.offline.verify import Verification
from broker.log.scan import boundaries_around, read_header, read_range
from broker.protocol.codec import Fault, RecordBatch, decode_records
from broker.protocol.record_batch import MAGIC
from broker.records import HIDDEN, Count, Fit, Size

_BLOCK_BYTES = 8 << 20
_NO_LIMIT = 1 << 62
_HARMLESS = ("attributes", "epoch")
"""Problems of batches that can be read all the same."""


class LeftOut(NamedTuple):
    """A damaged span of a segment that is not in its repaired copy."""

    file: Annotated[str, "segment file", HIDDEN]
    pos: Annotated[Count, "position of the damage"]
    kind: Annotated[str, "the kind of problem, as in `log verify`", Fit.STATE]
    left_out_bytes: Annotated[Size, "bytes that the copy does not have"]


class Repair(NamedTuple):
    """A segment and the copy of its good entries."""

    source: Path
    copy: Path
    message_count: int
    size_bytes: int  # of the copy
    left_out: Sequence[LeftOut]


def plan_repair(source: Path, copy: Path) -> Repair:
    """Find what a repaired copy would leave out: each damaged span, up to the next good entry."""
    if has_batches(source):
        return _plan_of_batches(source, copy)
    report = Verification(source, max_problems=_NO_LIMIT).run()
    left_out = []
    file = open_segment(source)
    for problem in report.problems:
        span_bytes = problem.skipped_bytes
        if problem.kind == "compressed":  # the entry is whole, and what it holds is not
            header = read_header(file.fd, problem.pos)
            assert header is not None, "an entry that was verified has a header"
            span_bytes = header.end - problem.pos
        left_out.append(LeftOut(problem.file, problem.pos, problem.kind, span_bytes))
    size = report.size_bytes - sum(one.left_out_bytes for one in left_out)
    return Repair(source, copy, report.message_count, size, left_out)


def _plan_of_batches(source: Path, copy: Path) -> Repair:
    """Plan the repair of a segment of Kafka: batches stay whose records can be read in order."""
    report = BatchVerification(source, max_problems=_NO_LIMIT).run()
    message_count = report.message_count
    inside = [one for one in report.problems if one.file == str(source)]
    file = open_segment(source)
    left_out = []
    for problem in inside:
        if problem.kind == "time":  # its records are good, and were not counted
            head = read_head(file.fd, problem.pos)
            assert head is not None, "a batch that was verified has a head"
            message_count += _count_messages(file.fd, head)
        elif problem.skipped_bytes and problem.kind not in _HARMLESS:
            left_out.append(LeftOut(problem.file, problem.pos, problem.kind, problem.skipped_bytes))
    if any(one.kind == "offset" and not one.skipped_bytes for one in inside):
        heads = list(_out_of_order(source, file.fd, left_out))
        message_count -= sum(_count_messages(file.fd, head) for head in heads)
        left_out += [LeftOut(str(source), head.position, "offset", head.size) for head in heads]
        left_out.sort(key=lambda one: one.pos)
    size = report.size_bytes - sum(one.left_out_bytes for one in left_out)
    return Repair(source, copy, message_count, size, left_out)


def _count_messages(fd: int, head: RecordBatch) -> int:
    return len(decode_records(read_range(fd, head.position, head.size)).records)


def _out_of_order(source: Path, fd: int, left_out: Sequence[LeftOut]) -> Iterator[RecordBatch]:
    """Yield the heads of the batches to leave out so that the offsets of the others rise.

    Of two batches that do not rise the second is left out, unless it fits the one before them: then
    the offset of the first is too high.
    """
    starts = [0, *(one.pos + one.left_out_bytes for one in left_out)]
    ends = [*(one.pos for one in left_out), segment_bytes(source)]
    last: RecordBatch | None = None
    before_last = archived_base_offset_of(source) or 0
    for start, end in zip(starts, ends, strict=True):
        for block in scan_batch_blocks(fd, start, end):
            for found in block.scan.batches:
                head = found._replace(position=block.position + found.position)
                first = _first_offset(fd, head)
                reached = before_last if last is None else last.next_offset
                if first >= reached:
                    before_last, last = reached, head
                elif last is not None and first >= before_last:
                    yield last
                    last = head
                else:
                    yield head


def _first_offset(fd: int, head: RecordBatch) -> int:
    is_wrapper = head.magic < MAGIC and head.codec
    data = read_range(fd, head.position, head.size) if is_wrapper else b""
    return first_offset_of(StoredBatch(head, bytes(data), Fault.NONE))


def repair(source: Path, copy: Path) -> Repair:
    """Write the good entries of a segment to a new file.

    In 0.7's format offsets are positions: the messages behind a span that is left out get smaller
    ones. Kafka's batches keep their offsets.
    """
    plan = plan_repair(source, copy)
    with new_file(copy) as target:
        position = 0
        for one in plan.left_out:
            append_range(target, source, position, one.pos)
            position = one.pos + one.left_out_bytes
        append_range(target, source, position, segment_bytes(source))
    return plan


def split(source: Path, position: int, directory: Path) -> tuple[Path, Path]:
    """Write the two parts of a segment, cut before the message at a position of it, as segments.

    Raises:
        NotABoundaryError: the position is inside a message.
        ArgumentError: it is not inside the file, or the segment is Kafka's.
    """
    validate_format([source])
    file = open_segment(source)
    size = os.fstat(file.fd).st_size
    if not 0 < position < size:
        raise errors.ArgumentError(f"{position} is not inside '{source}', which has {size} bytes")
    before, after = boundaries_around(file, position, size)
    if before != position:
        raise errors.NotABoundaryError(
            f"{position} is not a message boundary in '{source}'; nearest are {before} and {after}",
            before,
            after,
        )
    base = archived_base_offset_of(source) or 0
    first, second = (directory / segment_name(base + start) for start in (0, position))
    with new_file(first) as target:
        append_range(target, source, 0, position)
    with new_file(second) as target:
        append_range(target, source, position, size)
    return first, second


def merge(sources: Sequence[Path], directory: Path) -> Path:
    """Write segments that follow one another in a log as one.

    Raises:
        ArgumentError: a name holds no offset, or a segment is Kafka's.
        ConflictError: there is a gap or an overlap between two of them.
    """
    validate_format(sources)
    by_base: dict[int, Path] = {}
    for source in sources:
        base = archived_base_offset_of(source)
        if base is None:
            raise errors.ArgumentError(f"the name of '{source}' holds no offset")
        if base in by_base:
            raise errors.ConflictError(
                f"'{by_base[base]}' and '{source}' have the same offset", "SEGMENTS_OVERLAP"
            )
        by_base[base] = source
    ordered = sorted(by_base.items())
    for (base, earlier), (following, later) in pairwise(ordered):
        end = base + segment_bytes(earlier)
        if end != following:
            raise errors.ConflictError(
                f"'{earlier}' ends at {end}, and '{later}' starts at {following}",
                "SEGMENTS_APART" if end < following else "SEGMENTS_OVERLAP",
            )
    merged = directory / segment_name(ordered[0][0])
    with new_file(merged) as target:
        for _, source in ordered:
            append_range(target, source, 0, segment_bytes(source))
    return merged


def validate_format(paths: Iterable[Path]) -> None:
    """Validate that segments are of 0.7's format, in which offsets are positions."""
    for path in paths:
        if has_batches(path):
            raise errors.ArgumentError(
                f"'{path}' is in Kafka's format: only segments of 0.7's format, in which offsets "
                "are positions, can be split, merged or compared"
            )


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """Create a file and give its descriptor; remove the file if the work in the block fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
        try:
            yield fd
            os.fsync(fd)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def append_range(target: int, source: Path, start: int, end: int) -> None:
    """Append a range of a segment, archived or not, to an open file."""
    file = open_segment(source)
    while start < end:
        block = os.pread(file.fd, min(_BLOCK_BYTES, end - start), start)
        if not block:
            raise errors.LogCorruptError(f"{source} has become shorter while it was read")
        write_all(target, block)
        start += len(block)
