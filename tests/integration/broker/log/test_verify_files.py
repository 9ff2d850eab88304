from __future__ import annotations

from pathlib import Path

import pytest

from broker.log.format import segment_name
from broker.log.offline.verify import verify_paths
from broker.protocol.codec import encode

ENTRY = encode([b"some payload"])
SIZE = len(ENTRY)


def make_log(directory: Path, *bases_and_counts: tuple[int, int]) -> Path:
    directory.mkdir(parents=True)
    for base, count in bases_and_counts:
        (directory / segment_name(base)).write_bytes(ENTRY * count)
    return directory


@pytest.mark.parametrize("jobs", [1, 2])
def test_verify_paths_when_all_is_well_then_reports_in_order(tmp_path: Path, jobs: int) -> None:
    make_log(tmp_path / "data" / "t_10", (0, 1))
    make_log(tmp_path / "data" / "t_2", (0, 2), (2 * SIZE, 3))
    done: list[int] = []
    summary = verify_paths([tmp_path / "data"], jobs=jobs, progress=done.append)
    assert [report.message_count for report in summary.reports] == [2, 3, 1]
    assert (summary.problems, summary.unreadable) == ([], ())
    assert (summary.message_count, summary.size_bytes) == (6, 6 * SIZE)
    assert sum(done) == 6 * SIZE


def test_verify_paths_when_segments_do_not_join_then_gap_and_overlap(tmp_path: Path) -> None:
    make_log(tmp_path / "t_0", (0, 2), (SIZE, 2), (10 * SIZE, 1))
    problems = verify_paths([tmp_path / "t_0"]).problems
    assert [(Path(one.file).name, one.pos, one.kind, one.skipped_bytes) for one in problems] == [
        (segment_name(0), 2 * SIZE, "overlap", 0),
        (segment_name(SIZE), 2 * SIZE, "gap", 7 * SIZE),
    ]


def test_verify_paths_when_only_some_segments_are_given_then_others_make_no_gap(
    tmp_path: Path,
) -> None:
    directory = make_log(tmp_path / "t_0", (0, 1), (SIZE, 1), (2 * SIZE, 1))
    chosen = [directory / segment_name(0), directory / segment_name(2 * SIZE)]
    assert verify_paths(chosen).problems == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_verify_paths_when_a_file_is_missing_then_the_others_are_checked(
    tmp_path: Path, jobs: int
) -> None:
    directory = make_log(tmp_path / "t_0", (0, 1), (SIZE, 1))
    summary = verify_paths([directory, tmp_path / "none"], jobs=jobs)
    assert len(summary.reports) == 2
    (unreadable,) = summary.unreadable
    assert (unreadable.path, unreadable.is_missing) == (tmp_path / "none", True)
    assert unreadable.reason == "No such file or directory"


def test_verify_paths_when_progress_raises_then_workers_are_gone(tmp_path: Path) -> None:
    make_log(tmp_path / "t_0", (0, 1), (SIZE, 1))

    def give_up(_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_paths([tmp_path / "t_0"], jobs=2, progress=give_up)
