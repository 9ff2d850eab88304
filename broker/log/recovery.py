"""Recovery: loading the segments of a log, and truncating a log that was not closed cleanly.

Data after the recovery point is cut from the first invalid entry on. Before it only segments are
cut that have become shorter, after their last whole message: behind a replica's all is cut, as its
leader has it; other logs get a hole, which an empty segment marks at its start. The bytes cut off
are kept in a side file next to the segment.
"""

from __future__ import annotations

import datetime
import itertools
import logging
import os
from bisect import bisect_right, insort
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from broker.errors import LogCorruptError
from broker.files import opened, sync_directory, validate_no_link, write_all
from broker.log.compaction import finish_swaps
from broker.log.format import ENTRIES
from broker.log.scan import BLOCK_BYTES
from broker.log.segment import LogFormat, Segment
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


class Recovery(NamedTuple):
    """The truncation of one segment file by recovery.

    `valid_end` is the offset up to which the log is good; `side_file` holds the rest.
    """

    partition: TopicPartition
    file: Path
    valid_end: int
    cut_bytes: int
    side_file: Path


def list_segments(directory: Path, format: LogFormat = ENTRIES) -> list[Segment]:
    """Return the segments in a log directory, oldest first; other files are ignored.

    Raises `LogCorruptError` for a segment that is no regular file: a link's target may not be the
    broker's.
    """
    validate_no_link(directory)
    if format.counts_records:
        finish_swaps(directory)
    segments = []
    with os.scandir(directory) as entries:
        for entry in entries:
            base_offset = format.base_offset_of(entry.name)
            if base_offset is not None:
                if not entry.is_file(follow_symlinks=False):
                    kind = "a symbolic link" if entry.is_symlink() else "no regular file"
                    raise LogCorruptError(f"{entry.path} is {kind}, and must be a regular file")
                status = entry.stat(follow_symlinks=False)
                segment = Segment(
                    directory,
                    base_offset,
                    size=status.st_size,
                    modified_ms=status.st_mtime_ns // 1_000_000,
                    format=format,
                )
                segments.append(segment)
    segments.sort(key=attrgetter("base_offset"))
    format.prepare(segments)
    return segments


def is_whole(segments: Sequence[Segment], end_offset: int) -> bool:
    """Return whether the segments, of which there is one at least, have all up to an offset.

    Holes that a former start has marked count as whole.
    """
    return segments[-1].next_offset >= end_offset and all(
        one.next_offset == following.base_offset or _is_hole(one, following)
        for one, following in itertools.pairwise(segments)
    )


def holes(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """Return start and end of each range of offsets whose messages were lost."""
    return [
        (one.base_offset, following.base_offset)
        for one, following in itertools.pairwise(segments)
        if _is_hole(one, following)
    ]


def _is_hole(segment: Segment, following: Segment) -> bool:
    return not segment.size and segment.base_offset < following.base_offset


def validate_contiguity(
    partition: TopicPartition, segments: Sequence[Segment], *, flushed_to: int | None = None
) -> None:
    """Validate that each segment ends where the next one starts, else `LogCorruptError`.

    A gap behind `flushed_to` is allowed: a power failure leaves one when a later file reached the
    disk before an earlier one. Source: Kafka 0.7 `Log.validateSegments`.
    """
    for segment, following in itertools.pairwise(segments):
        end, start = segment.next_offset, following.base_offset
        if end == start or (flushed_to is not None and flushed_to <= end < start):
            continue
        if _is_hole(segment, following):
            continue
        raise LogCorruptError(
            f"{'a gap' if end < start else 'an overlap'} in {partition}: {segment.path} ends at "
            f"offset {end}, but {following.path.name} starts at {start}; "
            f"look with `pylogctl log verify {segment.directory}`"
        )


def recover(
    partition: TopicPartition,
    segments: list[Segment],
    *,
    recovery_point: int | None,
    time_ms: int,
    has_copies: bool = False,
) -> list[Recovery]:
    """Truncate a log to its valid messages, and make them durable.

    There is one segment at least; those set aside are removed from the list, and those that mark
    holes are added. The log is known to be flushed up to the recovery point; without one all of it
    is scanned. With copies on other brokers, it is cut at the first gap. Raises `LogCorruptError`
    for an overlap, or a segment that is missing where flushed data must be.
    """
    found: list[Recovery] = []
    flushed_to, point = recovery_point, recovery_point or 0
    if has_copies:
        flushed_to = segments[0].base_offset  # gaps are cut
        pairs = itertools.pairwise(segments)
        short = (one for one, following in pairs if one.next_offset < following.base_offset)
        point = min([point, *(one.base_offset for one in short)])
        if point > segments[-1].next_offset:
            point = 0
    elif recovery_point is not None:
        found = _cut_shortened(partition, segments, recovery_point, time_ms)
        flushed_to = point = min(point, segments[-1].next_offset)
    validate_contiguity(partition, segments, flushed_to=flushed_to)
    point = max(segments[0].base_offset, point)
    index = bisect_right(segments, point, key=attrgetter("base_offset")) - 1
    for at in range(index, len(segments)):
        segment = segments[at]
        valid_end = _sync_valid(segment, point if at == index else segment.base_offset)
        if recovery_point is not None and at < len(segments) - 1:
            end = segment.format.open_end(segment)
            if end >= recovery_point:  # gaps of Kafka's compaction are before it
                segment.next_offset = end
        if valid_end == segment.size and (
            at == len(segments) - 1
            or segment.next_offset == segments[at + 1].base_offset
            or (flushed_to is None and _is_hole(segment, segments[at + 1]))
        ):
            continue
        found += _cut(partition, segments, at, valid_end, time_ms)
        break
    for segment in segments[index:]:
        segment.format.shorten(segment)
    segments[0].format.prepare(segments)
    sync_directory(segments[0].directory)
    return found


def _cut_shortened(
    partition: TopicPartition, segments: list[Segment], recovery_point: int, time_ms: int
) -> list[Recovery]:
    """Cut the segments that have become shorter, and mark the holes behind them."""
    found = []
    ends = [*(one.base_offset for one in segments[1:]), recovery_point]
    for segment, end in list(zip(segments, ends, strict=True)):
        if not segment.next_offset < end <= recovery_point or not segment.size:
            continue
        valid_end = _end_despite_damage(segment)
        side_files = f"{segment.path.name}.cut-*"  # of a start that ended after the cut
        is_cut = valid_end < segment.size or any(segment.directory.glob(side_files))
        if valid_end < segment.size:
            found += _cut(partition, [segment], 0, valid_end, time_ms)
        if segment is segments[-1] or not is_cut:
            continue  # `restore_end` goes on behind it; or the next segment is missing
        if segment.format.counts_records:
            segment.next_offset = end  # a gap as compaction leaves one
        elif segment.size:
            _add_empty(segment.directory, segments, segment.next_offset, segment.modified_ms)
    return found


def _end_despite_damage(segment: Segment) -> int:
    """Return the position after the last whole message of a segment, damage before it or not."""
    file, position = segment.open(), 0
    while True:
        end = segment.format.valid_end(segment, file, position)
        following = segment.format.find(file.fd, end + 1, segment.size)
        if following is None:
            return end
        position = following


def restore_end(
    directory: Path,
    segments: list[Segment],
    end_offset: int,
    *,
    time_ms: int,
    format: LogFormat = ENTRIES,
) -> None:
    """Start a log at a later offset after it lost its tail, so that no offset is given out twice.

    A new last segment, added to the list, starts at `end_offset`; the hole before it is marked in
    logs whose offsets count bytes.
    """
    if segments and segments[-1].size and not format.counts_records:
        _add_empty(directory, segments, segments[-1].next_offset, segments[-1].modified_ms)
    _add_empty(directory, segments, end_offset, time_ms, format)
    format.prepare(segments)
    sync_directory(directory)


def _add_empty(
    directory: Path,
    segments: list[Segment],
    base_offset: int,
    modified_ms: int,
    format: LogFormat = ENTRIES,
) -> None:
    """Create an empty segment, with a time for retention."""
    segment = Segment(directory, base_offset, size=0, modified_ms=modified_ms, format=format)
    file = segment.open(os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.utime(file.fd, ns=(modified_ms * 1_000_000,) * 2)
    insort(segments, segment, key=attrgetter("base_offset"))


def _sync_valid(segment: Segment, offset: int) -> int:
    """Return the end of a segment's valid messages, good up to an offset; make it durable."""
    file = segment.open()
    try:
        position = min(segment.format.position(segment, file, offset), segment.size)
        end = segment.format.valid_end(segment, file, position)
        os.fsync(file.fd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(segment.path)) from error
    return end


def _cut(
    partition: TopicPartition, segments: list[Segment], at: int, valid_end: int, time_ms: int
) -> list[Recovery]:
    """Truncate one segment and rename all later ones, the newest first so that no gap appears."""
    stamp = _stamp(time_ms)
    found = []
    while len(segments) > at + 1:
        segment = segments.pop()
        side_file = _side_name(segment.path, stamp)
        for path in segment.format.files_of(segment.path)[:-1]:
            path.unlink(missing_ok=True)
        segment.path.rename(side_file)
        found.append(
            Recovery(partition, segment.path, segment.base_offset, segment.size, side_file)
        )
    segment = segments[at]
    offset = segment.format.offset(segment, segment.open(), valid_end)
    if valid_end < segment.size:
        side_file = cut_file(segment.path, valid_end, time_ms)
        found.append(Recovery(partition, segment.path, offset, segment.size - valid_end, side_file))
        segment.size, segment.next_offset = valid_end, offset
    found.reverse()
    for recovery in found:
        logger.warning(
            "%(partition)s: cut %(bytes)d bytes at offset %(offset)d of %(file)s, kept in %(kept)s",
            {
                "partition": partition,
                "bytes": recovery.cut_bytes,
                "offset": recovery.valid_end,
                "file": recovery.file,
                "kept": recovery.side_file.name,
            },
        )
    return found


def cut_file(path: Path, valid_end: int, time_ms: int) -> Path:
    """Truncate a segment file; return the side file, `<segment>.cut-<UTC time>`, with the rest.

    Unless the side file is written, the segment is unchanged.
    """
    side_file = _side_name(path, _stamp(time_ms))
    with opened(path, os.O_RDWR) as source:
        _copy_tail(source, valid_end, side_file)
        sync_directory(path.parent)
        os.ftruncate(source, valid_end)
        os.fsync(source)
    return side_file


def _copy_tail(source: int, position: int, target_path: Path) -> None:
    zeros = bytes(BLOCK_BYTES)
    start = position
    with opened(target_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as target:
        while block := os.pread(source, BLOCK_BYTES, position):
            if block == zeros:  # a hole in the file stays one: the disk may have no room for it
                os.lseek(target, len(block), os.SEEK_CUR)
            else:
                write_all(target, block)
            position += len(block)
        os.ftruncate(target, position - start)
        os.fsync(target)


def _stamp(time_ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def _side_name(path: Path, stamp: str) -> Path:
    """Return an unused name for a side file."""
    names = itertools.chain([stamp], (f"{stamp}.{number}" for number in itertools.count(2)))
    candidates = (path.with_name(f"{path.name}.cut-{name}") for name in names)
    return next(candidate for candidate in candidates if not candidate.exists())
