"""Checking many segment files at once, on several processes, and how they join up.

Owns the worker processes and the comparison of neighbouring segments; what is wrong inside a
file is `broker.log.verify`'s business.
"""

from __future__ import annotations

import itertools
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from broker.log.segment_paths import base_offset_of, expand_paths, segments_of
from broker.log.verify import Engine, Kind, Problem, VerifyReport, verify_segment

_POLL_S = 0.1


class UnreadableFile(NamedTuple):
    """A file that could not be checked."""

    path: Path
    reason: str
    is_missing: bool


@dataclass(frozen=True, slots=True)
class VerifySummary:
    """What was found in all files.

    Attributes:
        reports: of the files that could be read, in the order of the paths.
        joints: gaps and overlaps between neighbouring segments.
        unreadable: files that are missing or could not be read.
    """

    reports: tuple[VerifyReport, ...]
    joints: tuple[Problem, ...]
    unreadable: tuple[UnreadableFile, ...]

    @property
    def problems(self) -> list[Problem]:
        """Return all damage, inside files first."""
        inside = [problem for report in self.reports for problem in report.problems]
        return [*inside, *self.joints]

    @property
    def size_bytes(self) -> int:
        """Return the bytes looked at."""
        return sum(report.size_bytes for report in self.reports)

    @property
    def message_count(self) -> int:
        """Return the good messages."""
        return sum(report.message_count for report in self.reports)


class FileTask(NamedTuple):
    """A file to check, and how; the fields are arguments of `verify_segment`."""

    path: Path
    deep: bool
    max_problems: int
    engine: Engine


Outcome = VerifyReport | UnreadableFile
"""What came of checking one file."""


def verify_paths(
    paths: Iterable[Path],
    *,
    jobs: int = 1,
    deep: bool = True,
    max_problems: int = 100,
    engine: Engine = "codec",
    progress: Callable[[int], None] | None = None,
) -> VerifySummary:
    """Check segment files, and that neighbours in a directory neither overlap nor leave gaps.

    Args:
        paths: files and directories (`segment_paths.expand_paths`).
        jobs: how many processes to use; 1 works in this one.
        deep: also unfold wrappers.
        max_problems: stop in a file after so many.
        engine: what computes the CRCs (`verify.verify_segment`).
        progress: called on this thread with the bytes done since the last call.
    """
    files = expand_paths(paths)
    tasks = [FileTask(path, deep, max_problems, engine) for path in files]
    job_count = min(jobs, len(files))
    if job_count > 1:
        outcomes = _verify_parallel(tasks, job_count, progress or _ignore)
    else:
        outcomes = [verify_file(task, progress or _ignore) for task in tasks]
    return summary_of(files, outcomes)


def summary_of(files: Sequence[Path], outcomes: Iterable[Outcome]) -> VerifySummary:
    """Return what was found in files, and where they join up.

    Args:
        files: all of them.
        outcomes: of each, in the same order.
    """
    found = list(outcomes)
    return VerifySummary(
        reports=tuple(one for one in found if isinstance(one, VerifyReport)),
        joints=tuple(find_joint_problems(files)),
        unreadable=tuple(one for one in found if isinstance(one, UnreadableFile)),
    )


def find_joint_problems(files: Sequence[Path]) -> Iterator[Problem]:
    """Give the gaps and overlaps between segments that are neighbours in their directory.

    Args:
        files: the segments to look at; a pair counts if both are among them.
    """
    chosen = set(files)
    for directory in dict.fromkeys(path.parent for path in files):
        if not directory.is_dir():
            continue
        for earlier, later in itertools.pairwise(segments_of(directory)):
            if earlier in chosen and later in chosen:
                yield from _joint_problem(earlier, later)


def _joint_problem(earlier: Path, later: Path) -> Iterator[Problem]:
    start, following = base_offset_of(earlier), base_offset_of(later)
    if start is None or following is None:
        return
    size = earlier.stat().st_size
    end = start + size
    if end != following:
        kind: Kind = "gap" if end < following else "overlap"
        expected = f"{later.name} to start at {end}"
        skipped = max(0, following - end)
        yield Problem(earlier, size, kind, expected, str(following), skipped, 0)


def verify_file(task: FileTask, progress: Callable[[int], None]) -> Outcome:
    """Check a file, or say that it cannot be read.

    Args:
        task: the file, and how to check it.
        progress: called now and then with the bytes done since the last call.
    """
    try:
        return verify_segment(
            task.path,
            deep=task.deep,
            max_problems=task.max_problems,
            engine=task.engine,
            progress=progress,
        )
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        return UnreadableFile(task.path, error.strerror or str(error), is_missing)


def _verify_parallel(
    tasks: Sequence[FileTask], job_count: int, progress: Callable[[int], None]
) -> list[Outcome]:
    # Not fork: the caller may have threads, whose locks a forked child would inherit as they are.
    context = multiprocessing.get_context("spawn")
    done_bytes: Synchronized[int] = context.Value("Q", 0)
    stopping = context.Event()
    pool = ProcessPoolExecutor(
        job_count, context, initializer=_start_worker, initargs=(done_bytes, stopping)
    )
    told_bytes = 0
    try:
        futures = [pool.submit(_work, task) for task in tasks]
        waiting: set[Future[Outcome]] = set(futures)
        while waiting:
            _, waiting = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            now_bytes = done_bytes.value
            progress(now_bytes - told_bytes)
            told_bytes = now_bytes
        return [future.result() for future in futures]
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


class _Stopped(Exception):  # noqa: N818 - it ends a worker's task, it is no error
    """The caller wants no more results."""


def _start_worker(done_bytes: Synchronized[int], stopping: Event) -> None:
    """Keep what the parent shares, in the worker process."""
    global _shared  # an executor's initializer can hand over state in no other way
    _shared = (done_bytes, stopping)
    # Ctrl-C is for the parent: it sets the event.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_shared: tuple[Synchronized[int], Event] | None = None


def _work(task: FileTask) -> Outcome:
    return verify_file(task, _report_progress)


def _report_progress(size: int) -> None:
    if _shared is None:
        return
    done_bytes, stopping = _shared
    if stopping.is_set():
        raise _Stopped
    with done_bytes.get_lock():
        done_bytes.value += size


def _ignore(_bytes: int) -> None:
    """Stand in where nobody wants progress."""
