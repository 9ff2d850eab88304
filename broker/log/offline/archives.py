"""Archives of segments: what is in them, and restoring segments to a log at the same offsets.

A restore goes from the newest segment to the oldest, and gives each its name once it is verified
and durable: after a crash the log has no gap, and the same restore does the rest.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from broker import errors
from broker.files import DIRECTORY_MODE, TEMPORARY_SUFFIX, sync_directory
from broker.log.batch_index import walk_places
from broker.log.data_directory import ARCHIVE_SUFFIX, DataDirectory, held_by_tool, read_broker_id
from broker.log.offline import segments
from broker.log.offline.rewrite import append_range, new_file
from broker.log.offline.segment_run import VerifyReport
from broker.log.offline.verify import FileTask, verify_file
from broker.records import HIDDEN, Count, Millis, Rank, Size
from broker.topic import NO_HOME, TopicPartition

_REPLICA_NAME = "replica-record"
"""A file beside the segments of a replica."""


class ArchivedSegment(NamedTuple):
    """A segment in an archive."""

    partition: TopicPartition
    start: Annotated[Count, "its first offset"]
    end: Annotated[Count, "the offset behind its last message"]
    bytes: Annotated[Size, "size of the file", Rank(1)]
    modified: Annotated[Millis, "when its last message was appended"]
    file: Annotated[str, "the file", Rank(2)]


class RestoredSegment(NamedTuple):
    """A segment that a restore put into a log, or would."""

    partition: TopicPartition
    start: Annotated[Count, "its first offset"]
    end: Annotated[Count, "the offset behind its last message"]
    archive: Annotated[str, "the file that it comes from", HIDDEN]
    file: Annotated[str, "the segment"]


def list_archive(paths: Sequence[Path]) -> list[ArchivedSegment]:
    """Return the archived segments in and below paths, by partition and offset.

    Raises:
        ArgumentError: a file is not named as an archived segment in the directory of a partition.
        LogCorruptError: one of batches is damaged, so that its end is not known.
        OSError: a path cannot be read.
    """
    found = []
    for path in segments.expand_paths(paths, archives=True):
        status = path.stat()  # a path that is missing is an error
        if not segments.is_archive(path) and path not in paths:
            continue
        has_batches = segments.is_archive_of_batches(path)
        partition = segments.archived_partition_of(path.absolute().parent, has_batches=has_batches)
        base = segments.archived_base_offset_of(path)
        if partition is None or base is None or not segments.is_archive(path):
            raise errors.ArgumentError(
                f"'{path}' is no archived segment, which is called TOPIC_PARTITION/OFFSET.pylog.gz "
                "(or .log.gz)"
            )
        end = _end_of_batches(path, base) if has_batches else base + segments.stated_bytes(path)
        modified_ms = status.st_mtime_ns // 1_000_000
        found.append(ArchivedSegment(partition, base, end, status.st_size, modified_ms, str(path)))
    return sorted(found)


def _end_of_batches(path: Path, base_offset: int) -> int:
    """Return the offset behind the last batch of an archived segment, by the heads."""
    file, end = segments.open_segment(path), base_offset
    for place in walk_places(file.fd, 0, os.fstat(file.fd).st_size, base_offset):
        end = place.last_offset + 1
    return end


def restore(
    archived: Sequence[ArchivedSegment],
    directory: Path,
    *,
    is_dry_run: bool = False,
    progress: Callable[[int], None] = lambda _bytes: None,
) -> list[RestoredSegment]:
    """Put archived segments into the logs of a data directory; return those that were not there.

    Args:
        archived: as `list_archive` returns them.
        directory: that of a stopped broker, or one that no broker has yet, which is made.
        is_dry_run: only check that they fit.
        progress: called with the bytes verified.

    Raises:
        LogLockedError: a broker has the directory open.
        ConflictError: they do not reach up to what the log has, or to one another; the log is a
            replica; a file of the same name is another one.
        LogCorruptError: an archive is damaged; newer segments are restored.
        OSError: a file cannot be read or written.
    """
    homes = [one.partition.home for one in archived]
    owner = read_broker_id(directory)
    place = DataDirectory(directory, min(homes, default=0) if owner is None else owner)
    with held_by_tool(directory):
        plans = [
            _plan(list(group), place.path_of(partition), owner)
            for partition, group in itertools.groupby(archived, lambda one: one.partition)
        ]
        done = []
        for one in itertools.chain.from_iterable(plans):
            if not is_dry_run:
                one = one._replace(end=_restore(one, progress))
            done.append(one)
        return done


def _plan(found: list[ArchivedSegment], target: Path, owner: int | None) -> list[RestoredSegment]:
    """Return what is missing of a partition's segments, newest first, once it is known to fit."""
    is_foreign = found[0].partition.home not in (NO_HOME, owner) and owner is not None
    if is_foreign or (target / _REPLICA_NAME).exists():
        raise errors.ConflictError(
            f"{target} is for a replica, which gets its segments from its leader: restore "
            f"{found[0].partition} to another directory, and send it with `pylogctl log replay`",
            "REPLICA",
        )
    for one, later in itertools.pairwise(found):
        _check_joint(one, later.start, later.file)
    present = segments.segments_of(target) if target.is_dir() else []
    missing = []
    for one in found:
        size = segments.stated_bytes(Path(one.file))
        path = target / Path(one.file).name.removesuffix(ARCHIVE_SUFFIX)
        if path not in present:
            missing.append(RestoredSegment(one.partition, one.start, one.end, one.file, str(path)))
        elif path.stat().st_size != size:
            raise errors.ConflictError(
                f"{path} is there already, with {path.stat().st_size} bytes, and '{one.file}' has "
                f"{size}: it is of another log, or damaged",
                "SEGMENT_EXISTS",
            )
    if missing and present:
        last = found[len(missing) - 1]
        _check_joint(last, segments.base_offset_of(present[0]) or 0, str(present[0]))
    return missing[::-1]


def _check_joint(one: ArchivedSegment, following: int, later: str) -> None:
    if one.end != following:
        raise errors.ConflictError(
            f"'{one.file}' ends at {one.end}, and '{later}' starts at {following}: name only "
            "the files behind that, or restore to another directory",
            "SEGMENTS_APART" if one.end < following else "SEGMENTS_OVERLAP",
        )


def _restore(one: RestoredSegment, progress: Callable[[int], None]) -> int:
    """Unpack, verify and write a segment under its name; return its end offset."""
    archive, target = Path(one.archive), Path(one.file)
    outcome = verify_file(FileTask(archive, True, 1, "codec"), progress)
    if not isinstance(outcome, VerifyReport):
        raise errors.BrokerError(f"cannot read '{archive}': {outcome.reason}")
    for problem in outcome.problems:
        raise errors.LogCorruptError(
            f"'{archive}' is damaged at position {problem.pos} ({problem.kind}), and is not "
            "restored; newer segments of its log are",
            hints=[f"try: pylogctl log verify {archive}"],
        )
    temporary = target.with_name(target.name + TEMPORARY_SUFFIX)
    target.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    temporary.unlink(missing_ok=True)  # of a restore that was killed
    with new_file(temporary) as fd:
        append_range(fd, archive, 0, outcome.size_bytes)
        modified_ns = archive.stat().st_mtime_ns  # retention and searches by time go by it
        os.utime(fd, ns=(modified_ns, modified_ns))
    temporary.replace(target)
    sync_directory(target.parent)
    sync_directory(target.parent.parent)
    return one.end if one.partition.home == NO_HOME else one.start + outcome.size_bytes
