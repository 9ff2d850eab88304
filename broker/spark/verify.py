"""Validation of segment files on a cluster, with the report of `log verify`.

Large files are split at fixed sizes. The task of each part searches for its first message, which is
right if the previous part ends there: a file is good if all of its parts are good and adjacent. Any
other file is validated again as a whole, so its report is the same as that of a single process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from broker.log.offline import verify
from broker.log.offline.segment_run import VerifyReport
from broker.log.offline.segments import expand_paths, is_archive
from broker.spark.jobs import OnProgress, TaskEngine, run_tasks
from broker.spark.reading.ranges import grouped

_MAX_PROBLEMS = 100
PART_BYTES = 64 << 20
"""Size of the work of a task: large files are split, and small files grouped."""


class FilePart(NamedTuple):
    """A part of a file: the entries that start from `start` up to `stop`."""

    path: Path
    start: int
    stop: int


def verify_on_spark(
    spark: TaskEngine,
    paths: Iterable[Path],
    *,
    deep: bool = True,
    part_bytes: int = PART_BYTES,
    on_progress: OnProgress | None = None,
) -> verify.VerifySummary:
    """Validate segment files, and that neighbours in a directory neither overlap nor leave gaps.

    All machines have the files at the same paths. Validation of a file stops after 100 problems;
    `deep` also decompresses wrappers.
    """
    given = expand_paths(paths, archives=True)
    files = [path.absolute() for path in given]
    parts = list(cut_files(files, part_bytes))
    groups = list(grouped(parts, lambda part: part.stop - part.start, part_bytes))
    work = partial(verify_parts, deep=deep)
    found = [one for some in run_tasks(spark, work, groups, on_progress) for one in some]
    by_file: dict[Path, list[verify.RangeReport | None]] = {}
    for part, one in zip(parts, found, strict=True):
        by_file.setdefault(part.path, []).append(one)
    outcomes: dict[Path, verify.Outcome] = {}
    for path, some in by_file.items():
        if (report := report_of(path, some)) is not None:
            outcomes[path] = report
    others = [
        verify.FileTask(path, deep, _MAX_PROBLEMS, "codec")
        for path in files
        if path not in outcomes
    ]
    again = run_tasks(spark, verify_whole, others)
    outcomes |= {task.path: outcome for task, outcome in zip(others, again, strict=True)}
    named = [_named(outcomes[path], name) for path, name in zip(files, given, strict=True)]
    return verify.summary_of(given, named)


def _named(outcome: verify.Outcome, path: Path) -> verify.Outcome:
    """Return the outcome for the path as the caller gave it."""
    if not isinstance(outcome, VerifyReport):
        return outcome._replace(path=path)
    problems = tuple(  # some are of files beside the segment
        problem._replace(file=str(path.with_name(Path(problem.file).name)))
        for problem in outcome.problems
    )
    return replace(outcome, path=path, problems=problems)


def cut_files(files: Iterable[Path], part_bytes: int) -> Iterator[FilePart]:
    """Split files into parts of at most `part_bytes`; skip archives and unreadable files."""
    for path in files:
        if is_archive(path):
            continue  # without positions that a part could start from
        try:
            size = path.stat().st_size
        except OSError:
            continue
        yield FilePart(path, 0, min(size, part_bytes))
        for start in range(part_bytes, size, part_bytes):
            yield FilePart(path, start, min(size, start + part_bytes))


def verify_parts(parts: Sequence[FilePart], *, deep: bool) -> list[verify.RangeReport | None]:
    """Validate parts of files, on an executor; None for one that cannot be read."""
    found: list[verify.RangeReport | None] = []
    for part in parts:
        try:
            found.append(verify.Verification(part.path, deep, 1).run_range(part.start, part.stop))
        except OSError:
            found.append(None)  # validating the whole file reports why
    return found


def verify_whole(task: verify.FileTask) -> verify.Outcome:
    """Validate a whole file, on an executor."""
    return verify.verify_file(task, lambda _: None)


def report_of(path: Path, parts: Sequence[verify.RangeReport | None]) -> VerifyReport | None:
    """Return the report of a file whose parts are good and adjacent, else None."""
    reached = entries = messages = 0
    for part in parts:
        if part is None or not part.is_good:
            return None
        is_empty = part.start == part.end
        if reached < part.start if is_empty else reached != part.start:
            return None
        reached = max(reached, part.end)
        entries += part.entry_count
        messages += part.message_count
    return VerifyReport(path, reached, entries, messages, (), is_complete=True)
