"""Checking segment files on a cluster: the report of `log verify`, from many machines.

Large files are cut anywhere. Each part looks for its first message by itself, and its guess is
right if the part before ends there: a file whose parts are all good and meet is good. Any other
file is checked again as a whole, so that the report on it is the one that a single process gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.log.segment import expand_paths
from broker.log.verify import (
    Engine,
    FileTask,
    Outcome,
    RangeReport,
    VerifyReport,
    VerifySummary,
    summary_of,
    verify_file,
    verify_range,
)
from broker.spark.jobs import OnProgress, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE_BYTES = 64 << 20
"""How much a task checks: files are cut into that, and small ones put together."""


class Piece(NamedTuple):
    """A part of a file: the entries that start from `start` up to `stop`."""

    path: Path
    start: int
    stop: int


def verify_on_spark(
    spark: SparkSession,
    paths: Iterable[Path],
    *,
    deep: bool = True,
    max_problems: int = 100,
    engine: Engine = "codec",
    piece_bytes: int = PIECE_BYTES,
    on_progress: OnProgress | None = None,
) -> VerifySummary:
    """Check segment files, and that neighbours in a directory neither overlap nor leave gaps.

    Args:
        spark: any session.
        paths: files and directories, which all machines see under the same names.
        deep: also unfold wrappers.
        max_problems: stop in a file after so many.
        engine: what computes the CRCs (`verify.verify_segment`).
        piece_bytes: how much a task checks at least, where there is that much.
        on_progress: told which part is done.

    Raises:
        Py4JJavaError: a task failed; `failures.cause_of` says why.
    """
    given = expand_paths(paths)
    files = [path.absolute() for path in given]
    groups = list(grouped(cut_files(files, piece_bytes), piece_bytes))
    work = partial(check_pieces, deep=deep, engine=engine)
    found = [one for some in run_tasks(spark, work, groups, on_progress) for one in some]
    outcomes: dict[Path, Outcome] = {}
    for path, pieces in _by_file(groups, found).items():
        report = report_of(path, pieces)
        if report is not None:
            outcomes[path] = report
    others = [FileTask(path, deep, max_problems, engine) for path in files if path not in outcomes]
    again = run_tasks(spark, check_file, others)
    outcomes |= {task.path: outcome for task, outcome in zip(others, again, strict=True)}
    named = [_named(outcomes[path], name) for path, name in zip(files, given, strict=True)]
    return summary_of(given, named)


def _named(outcome: Outcome, path: Path) -> Outcome:
    """Return what was found under the name that was given."""
    if not isinstance(outcome, VerifyReport):
        return outcome._replace(path=path)
    problems = tuple(problem._replace(file=path) for problem in outcome.problems)
    return replace(outcome, path=path, problems=problems)


def cut_files(files: Iterable[Path], piece_bytes: int) -> Iterator[Piece]:
    """Give the parts of files; none of a file that cannot be read.

    Args:
        files: segment files.
        piece_bytes: how large a part is at most.
    """
    for path in files:
        try:
            size = path.stat().st_size
        except OSError:
            continue
        yield Piece(path, 0, min(size, piece_bytes))
        for start in range(piece_bytes, size, piece_bytes):
            yield Piece(path, start, min(size, start + piece_bytes))


def grouped(pieces: Iterable[Piece], group_bytes: int) -> Iterator[list[Piece]]:
    """Put small parts together, in their order.

    Args:
        pieces: of any size.
        group_bytes: how much to put together at most.
    """
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        piece_size = piece.stop - piece.start
        if group and size + piece_size > group_bytes:
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece_size
    if group:
        yield group


def check_pieces(
    pieces: Sequence[Piece], *, deep: bool, engine: Engine
) -> list[RangeReport | None]:
    """Check parts of files, on an executor; None for one that cannot be read."""
    return [_check_piece(piece, deep=deep, engine=engine) for piece in pieces]


def _check_piece(piece: Piece, *, deep: bool, engine: Engine) -> RangeReport | None:
    try:
        return verify_range(piece.path, piece.start, piece.stop, deep=deep, engine=engine)
    except OSError:
        return None  # the check of the whole file says why


def check_file(task: FileTask) -> Outcome:
    """Check a whole file, on an executor."""
    return verify_file(task, lambda _: None)


def _by_file(
    groups: Iterable[Sequence[Piece]], found: Sequence[RangeReport | None]
) -> dict[Path, list[RangeReport | None]]:
    pieces = [piece for group in groups for piece in group]
    by_file: dict[Path, list[RangeReport | None]] = {}
    for piece, report in zip(pieces, found, strict=True):
        by_file.setdefault(piece.path, []).append(report)
    return by_file


def report_of(path: Path, pieces: Sequence[RangeReport | None]) -> VerifyReport | None:
    """Return the report on a file whose parts are good and meet; None if it has to be looked at.

    Args:
        path: the file.
        pieces: what was found in its parts, in their order.
    """
    reached = entries = messages = 0
    for piece in pieces:
        if piece is None or not piece.is_good:
            return None
        is_empty = piece.start == piece.end
        if reached < piece.start if is_empty else reached != piece.start:
            return None
        reached = max(reached, piece.end)
        entries += piece.entry_count
        messages += piece.message_count
    return VerifyReport(path, reached, entries, messages, (), is_complete=True)
