from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from broker.errors import LogCorruptError
from broker.log.format import segment_name
from broker.log.recovery import (
    Recovery,
    cut_file,
    holes,
    is_whole,
    list_segments,
    recover,
    validate_contiguity,
)
from broker.log.segment import Segment
from broker.protocol.codec import encode
from broker.topic import TopicPartition

PARTITION = TopicPartition("events", 0, 0)
TIME_MS = 1_700_000_000_000
STAMP = "20231114T221320Z"
ENTRY = encode([b"ab"])


def write_segments(directory: Path, *contents: bytes) -> list[Segment]:
    base = 0
    for content in contents:
        (directory / segment_name(base)).write_bytes(content)
        base += len(content)
    return list_segments(directory)


def run(
    segments: list[Segment], recovery_point: int | None = None, *, has_copies: bool = False
) -> list[Recovery]:
    return recover(
        PARTITION,
        segments,
        recovery_point=recovery_point,
        time_ms=TIME_MS,
        has_copies=has_copies,
    )


def ranges(segments: list[Segment]) -> list[tuple[int, int]]:
    return [(segment.base_offset, segment.path.stat().st_size) for segment in segments]


def test_list_segments_when_foreign_files_are_there_then_ignored(tmp_path: Path) -> None:
    write_segments(tmp_path, ENTRY, ENTRY)
    for name in ("x.pylog", f"{0:020d}.pylog.cut-1", f"{5:020d}.kafka", "notes.txt"):
        (tmp_path / name).touch()
    assert [segment.base_offset for segment in list_segments(tmp_path)] == [0, 12]


def test_recover_when_all_is_valid_then_nothing_is_cut(tmp_path: Path) -> None:
    segments = write_segments(tmp_path, ENTRY * 3, ENTRY)
    assert run(segments) == []
    assert ranges(segments) == [(0, 36), (36, 12)]


@pytest.mark.parametrize("size", range(37))
def test_recover_when_last_segment_is_cut_anywhere_then_whole_entries_stay(
    tmp_path: Path, size: int
) -> None:
    segments = write_segments(tmp_path, ENTRY * 2, (ENTRY * 3)[:size])
    found = run(segments)
    whole = size // 12 * 12
    assert ranges(segments) == [(0, 24), (24, whole)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == (
        [(24 + whole, size % 12)] if size % 12 else []
    )
    for one in found:
        assert one.side_file.read_bytes() == ENTRY[: size % 12]


@pytest.mark.parametrize(
    "tail",
    [
        bytes(50),
        struct.pack(">i", -1) + bytes(20),
        struct.pack(">iBBI", 8, 1, 0, 1) + b"ab",
        struct.pack(">iBBI", 8, 9, 0, 1) + b"ab",
        struct.pack(">iB", 5, 1) + bytes(4),
        struct.pack(">iBBI", 8, 1, 3, 0x9E83486D) + b"ab",
        b"\xff",
    ],
    ids=["zeros", "negative length", "bad crc", "unknown magic", "short", "unknown codec", "byte"],
)
def test_recover_when_tail_is_garbage_then_cut_and_kept_in_a_side_file(
    tmp_path: Path, tail: bytes
) -> None:
    segments = write_segments(tmp_path, ENTRY * 2 + tail)
    side_file = tmp_path / f"{0:020d}.pylog.cut-{STAMP}"
    assert run(segments) == [
        Recovery(PARTITION, segments[0].path, 24, len(tail), side_file),
    ]
    assert ranges(segments) == [(0, 24)]
    assert side_file.read_bytes() == tail


def test_recover_when_damage_is_before_the_recovery_point_then_not_looked_at(
    tmp_path: Path,
) -> None:
    segments = write_segments(tmp_path, ENTRY + b"x" * 12, ENTRY * 2)
    assert run(segments, recovery_point=24) == []


def test_recover_when_point_lies_in_an_older_segment_then_later_ones_are_put_aside(
    tmp_path: Path,
) -> None:
    segments = write_segments(tmp_path, ENTRY * 3, ENTRY + b"x" * 12, ENTRY * 2, b"")
    found = run(segments, recovery_point=12)
    assert ranges(segments) == [(0, 36), (36, 12)]
    assert [(one.file.name, one.valid_end, one.cut_bytes) for one in found] == [
        (segment_name(36), 48, 12),
        (segment_name(60), 60, 24),
        (segment_name(84), 84, 0),
    ]
    assert [one.side_file.read_bytes() for one in found] == [b"x" * 12, ENTRY * 2, b""]
    assert [segment.base_offset for segment in list_segments(tmp_path)] == [0, 36]


def test_recover_when_recovery_point_is_off_a_boundary_then_segment_is_scanned_from_its_start(
    tmp_path: Path,
) -> None:
    segments = write_segments(tmp_path, ENTRY * 3, ENTRY * 3)
    assert run(segments, recovery_point=41) == []
    assert ranges(segments) == [(0, 36), (36, 36)]


def test_recover_when_nothing_behind_a_good_point_is_valid_then_cut_there(tmp_path: Path) -> None:
    # Damage in front of the point was flushed once: a case for `log verify`, not for cutting.
    segments = write_segments(tmp_path, ENTRY[:-1] + b"?" + ENTRY + b"x" * 30)
    found = run(segments, recovery_point=24)
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(24, 30)]


def test_recover_when_the_point_is_beyond_the_end_of_a_replica_then_everything_is_scanned(
    tmp_path: Path,
) -> None:
    segments = write_segments(tmp_path, ENTRY + b"x" * 12, ENTRY)
    found = run(segments, recovery_point=1000, has_copies=True)
    assert ranges(segments) == [(0, 12)]
    assert len(found) == 2


@pytest.mark.parametrize("former", [b"", ENTRY, b"x" * 12, ENTRY[:-1] + b"?"])
def test_recover_when_the_flushed_end_was_shortened_then_cut_after_the_last_whole_message(
    tmp_path: Path, former: bytes
) -> None:
    segments = write_segments(tmp_path, ENTRY, former + ENTRY + ENTRY[:5])
    found = run(segments, recovery_point=12 + len(former) + 24)
    assert ranges(segments) == [(0, 12), (12, len(former) + 12)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(24 + len(former), 5)]


def shorten_first(directory: Path) -> list[Segment]:
    """Write segments from 0, 24 and 48 on, and take 7 bytes from the end of the first."""
    write_segments(directory, ENTRY * 2, ENTRY * 2, ENTRY)
    os.truncate(directory / segment_name(0), 17)
    return list_segments(directory)


def test_recover_when_a_flushed_segment_was_shortened_then_a_hole_that_later_starts_know(
    tmp_path: Path,
) -> None:
    segments = shorten_first(tmp_path)
    found = run(segments, recovery_point=60)
    assert ranges(segments) == [(0, 12), (12, 0), (24, 24), (48, 12)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(12, 5)]
    assert holes(segments) == [(12, 24)]
    again = list_segments(tmp_path)
    assert is_whole(again, 60)
    assert run(again, recovery_point=60) == run(again, None) == []
    assert ranges(again) == ranges(segments)


def test_recover_when_a_start_ended_before_the_hole_was_marked_then_the_next_one_marks_it(
    tmp_path: Path,
) -> None:
    segments = shorten_first(tmp_path)
    cut_file(segments[0].path, 12, TIME_MS)
    segments = list_segments(tmp_path)
    assert run(segments, recovery_point=60) == []
    assert ranges(segments) == [(0, 12), (12, 0), (24, 24), (48, 12)]


def test_recover_when_a_segment_of_a_replica_was_shortened_then_all_behind_it_is_put_aside(
    tmp_path: Path,
) -> None:
    segments = shorten_first(tmp_path)
    found = run(segments, recovery_point=60, has_copies=True)
    assert ranges(segments) == [(0, 12)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(12, 5), (24, 24), (48, 12)]


def test_recover_when_retention_passed_the_point_then_scans_from_the_start(tmp_path: Path) -> None:
    write_segments(tmp_path, ENTRY, ENTRY + b"x")
    (tmp_path / segment_name(0)).unlink()
    segments = list_segments(tmp_path)
    assert [(one.valid_end, one.cut_bytes) for one in run(segments, recovery_point=0)] == [(24, 1)]


def test_recover_when_gap_is_behind_the_point_then_cut_there(tmp_path: Path) -> None:
    segments = write_segments(tmp_path, ENTRY * 2, ENTRY * 2)
    segments[0].path.write_bytes(ENTRY)
    segments = list_segments(tmp_path)
    found = run(segments, recovery_point=12)
    assert ranges(segments) == [(0, 12)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(24, 24)]


@pytest.mark.parametrize("recovery_point", [None, 13, 24, 36])
def test_recover_when_gap_may_hold_flushed_data_then_corrupt(
    tmp_path: Path, recovery_point: int | None
) -> None:
    write_segments(tmp_path, ENTRY * 2, ENTRY * 2)
    (tmp_path / segment_name(0)).write_bytes(ENTRY)
    segments = list_segments(tmp_path)
    with pytest.raises(LogCorruptError, match=r"a gap in events.* ends at offset 12, but .*24"):
        run(segments, recovery_point)
    assert ranges(segments) == [(0, 12), (24, 24)]


@pytest.mark.parametrize("recovery_point", [None, 0, 24])
def test_recover_when_segments_overlap_then_corrupt(
    tmp_path: Path, recovery_point: int | None
) -> None:
    write_segments(tmp_path, ENTRY * 2, ENTRY * 2)
    (tmp_path / segment_name(0)).write_bytes(ENTRY * 3)
    with pytest.raises(LogCorruptError, match=r"an overlap .*`pylogctl log verify"):
        run(list_segments(tmp_path), recovery_point)


def test_validate_contiguity_when_whole_then_passes(tmp_path: Path) -> None:
    validate_contiguity(PARTITION, write_segments(tmp_path, ENTRY, ENTRY * 2, b""))


def test_recover_when_run_again_then_nothing_more_to_cut(tmp_path: Path) -> None:
    segments = write_segments(tmp_path, ENTRY * 2 + b"xyz", ENTRY)
    assert run(segments)
    assert run(list_segments(tmp_path)) == []


def test_cut_file_when_side_file_name_is_taken_then_another_one(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"abcdef")
    first = cut_file(path, 4, TIME_MS)
    second = cut_file(path, 2, TIME_MS)
    assert (first.read_bytes(), second.read_bytes(), path.read_bytes()) == (b"ef", b"cd", b"ab")
    assert second.name == f"{path.name}.cut-{STAMP}.2"


def test_cut_file_when_the_tail_is_sparse_then_the_side_file_is_too(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(ENTRY + b"tail")
    with path.open("r+b") as file:
        file.truncate(1 << 30)
        file.seek(500 << 20)
        file.write(b"in between")

    side_file = cut_file(path, len(ENTRY), TIME_MS)

    assert side_file.stat().st_size == (1 << 30) - len(ENTRY)
    assert side_file.stat().st_blocks * 512 < 8 << 20
    with side_file.open("rb") as file:
        assert file.read(8) == b"tail" + bytes(4)
        file.seek((500 << 20) - len(ENTRY))
        assert file.read(12) == b"in between" + bytes(2)
