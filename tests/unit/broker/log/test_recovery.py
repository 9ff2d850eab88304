from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from broker.errors import LogCorruptError
from broker.log.format import ENTRIES, segment_name
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
from tests.support.log_formats import EXAMPLES, FormatExample

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


def write_messages(directory: Path, log_format: FormatExample, *counts: int) -> list[Segment]:
    """Write segments of so many messages."""
    offset = 0
    for count in counts:
        content = log_format.at(offset, log_format.one * count)
        (directory / log_format.format.segment_name(offset)).write_bytes(content)
        offset += count * log_format.step
    return list_segments(directory, log_format.format)


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


def test_recover_when_all_is_valid_then_nothing_is_cut(
    tmp_path: Path, log_format: FormatExample
) -> None:
    segments = write_messages(tmp_path, log_format, 3, 1)
    assert run(segments) == []
    assert ranges(segments) == [(0, 3 * log_format.size), (3 * log_format.step, log_format.size)]


def test_recover_when_last_segment_is_cut_anywhere_then_whole_messages_stay(
    tmp_path: Path, log_format: FormatExample
) -> None:
    step, size = log_format.step, log_format.size
    for left in range(3 * size + 1):
        directory = tmp_path / f"{left}"
        directory.mkdir()
        last = write_messages(directory, log_format, 2, 3)[-1].path
        content = last.read_bytes()[:left]
        last.write_bytes(content)
        segments = list_segments(directory, log_format.format)

        found = run(segments)

        count, torn = divmod(left, size)
        assert ranges(segments) == [(0, 2 * size), (2 * step, count * size)]
        assert segments[-1].next_offset == (2 + count) * step
        assert [(one.valid_end, one.cut_bytes) for one in found] == (
            [((2 + count) * step, torn)] if torn else []
        )
        assert [one.side_file.read_bytes() for one in found] == ([content[-torn:]] if torn else [])


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
    tmp_path: Path, log_format: FormatExample, tail: bytes
) -> None:
    (segment,) = write_messages(tmp_path, log_format, 2)
    with segment.path.open("ab") as file:
        file.write(tail)
    segments = list_segments(tmp_path, log_format.format)
    side_file = tmp_path / f"{segment.path.name}.cut-{STAMP}"
    end = 2 * log_format.step
    assert run(segments) == [Recovery(PARTITION, segment.path, end, len(tail), side_file)]
    assert ranges(segments) == [(0, 2 * log_format.size)]
    assert side_file.read_bytes() == tail


def spoil(segment: Segment, end: int) -> None:
    """Flip the byte before a position."""
    with segment.path.open("r+b") as file:
        (byte,) = os.pread(file.fileno(), 1, end - 1)
        os.pwrite(file.fileno(), bytes([byte ^ 1]), end - 1)


def test_recover_when_damage_is_before_the_recovery_point_then_not_looked_at(
    tmp_path: Path, log_format: FormatExample
) -> None:
    segments = write_messages(tmp_path, log_format, 2, 2)
    spoil(segments[0], 2 * log_format.size)
    assert run(segments, recovery_point=2 * log_format.step) == []


def test_recover_when_point_lies_in_an_older_segment_then_later_ones_are_put_aside(
    tmp_path: Path, log_format: FormatExample
) -> None:
    step, size = log_format.step, log_format.size
    segments = write_messages(tmp_path, log_format, 3, 2, 2, 0)
    paths = [one.path for one in segments]
    spoil(segments[1], 2 * size)
    contents = [one.read_bytes() for one in paths]
    found = run(segments, recovery_point=step)
    assert ranges(segments) == [(0, 3 * size), (3 * step, size)]
    assert [(one.file, one.valid_end, one.cut_bytes) for one in found] == [
        (paths[1], 4 * step, size),
        (paths[2], 5 * step, 2 * size),
        (paths[3], 7 * step, 0),
    ]
    assert [one.side_file.read_bytes() for one in found] == [contents[1][size:], contents[2], b""]
    again = list_segments(tmp_path, log_format.format)
    assert [segment.base_offset for segment in again] == [0, 3 * step]


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


def shorten_first(directory: Path, log_format: FormatExample) -> list[Segment]:
    """Write segments of 2, 2 and 1 messages, and take 7 bytes from the end of the first."""
    first, _, _ = write_messages(directory, log_format, 2, 2, 1)
    os.truncate(first.path, first.size - 7)
    return list_segments(directory, log_format.format)


def test_recover_when_a_flushed_segment_was_shortened_then_a_hole_that_later_starts_know(
    tmp_path: Path, log_format: FormatExample
) -> None:
    step, size = log_format.step, log_format.size
    segments = shorten_first(tmp_path, log_format)
    found = run(segments, recovery_point=5 * step)
    mark = [(step, 0)] if log_format.format is ENTRIES else []  # batches have their offsets
    assert ranges(segments) == [(0, size), *mark, (2 * step, 2 * size), (4 * step, size)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(step, size - 7)]
    assert holes(segments) == [(step, 2 * step)][: len(mark)]
    again = list_segments(tmp_path, log_format.format)
    assert is_whole(again, 5 * step)
    assert run(again, recovery_point=5 * step) == run(again, None) == []
    assert ranges(again) == ranges(segments)


def test_recover_when_a_start_ended_before_the_hole_was_marked_then_the_next_one_marks_it(
    tmp_path: Path,
) -> None:
    segments = shorten_first(tmp_path, EXAMPLES["0.7"])
    cut_file(segments[0].path, 12, TIME_MS)
    segments = list_segments(tmp_path)
    assert run(segments, recovery_point=60) == []
    assert ranges(segments) == [(0, 12), (12, 0), (24, 24), (48, 12)]


def test_recover_when_a_segment_of_a_replica_was_shortened_then_all_behind_it_is_put_aside(
    tmp_path: Path, log_format: FormatExample
) -> None:
    step, size = log_format.step, log_format.size
    segments = shorten_first(tmp_path, log_format)
    found = run(segments, recovery_point=5 * step, has_copies=True)
    assert ranges(segments) == [(0, size)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [
        *[(step, size - 7), (2 * step, 2 * size), (4 * step, size)],
    ]


def test_recover_when_retention_passed_the_point_then_scans_from_the_start(tmp_path: Path) -> None:
    write_segments(tmp_path, ENTRY, ENTRY + b"x")
    (tmp_path / segment_name(0)).unlink()
    segments = list_segments(tmp_path)
    assert [(one.valid_end, one.cut_bytes) for one in run(segments, recovery_point=0)] == [(24, 1)]


@pytest.mark.parametrize("has_copies", [True, False])
def test_recover_when_gap_is_behind_the_point_then_cut_there(
    tmp_path: Path, log_format: FormatExample, has_copies: bool
) -> None:
    step, size = log_format.step, log_format.size
    segments = write_messages(tmp_path, log_format, 2, 2)
    os.truncate(segments[0].path, size)
    segments = list_segments(tmp_path, log_format.format)
    found = run(segments, recovery_point=step, has_copies=has_copies)
    assert ranges(segments) == [(0, size)]
    assert [(one.valid_end, one.cut_bytes) for one in found] == [(2 * step, 2 * size)]
    assert segments[0].next_offset == step


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
