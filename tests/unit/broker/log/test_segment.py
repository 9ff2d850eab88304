from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.format import ENTRIES, segment_name
from broker.log.segment import (
    SPACING_BYTES,
    BoundaryIndex,
    Segment,
    SegmentFile,
    SegmentFiles,
)


def make_segments(directory: Path, count: int) -> list[Segment]:
    segments = [
        Segment(directory, base, size=1, modified_ms=0, format=ENTRIES) for base in range(count)
    ]
    for segment in segments:
        segment.path.write_bytes(b"x")
    return segments


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_segment_name_when_parsed_then_offset_is_back() -> None:
    assert segment_name(108) == "00000000000000000108.pylog"
    assert ENTRIES.base_offset_of("00000000000000000108.pylog") == 108


@pytest.mark.parametrize(
    "name", ["0.pylog", "00000000000000000108.kafka", "00000000000000000108.pylog.cut-1", "x"]
)
def test_parse_segment_name_when_foreign_then_none(name: str) -> None:
    assert ENTRIES.base_offset_of(name) is None


def test_segment_file_when_last_reference_goes_then_descriptor_closes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    file = SegmentFile(path)
    fd, second = file.fd, file
    del file
    assert is_open(fd)
    del second
    gc.collect()
    assert not is_open(fd)


def test_segment_files_when_over_capacity_then_least_recently_read_closes(tmp_path: Path) -> None:
    files = SegmentFiles(capacity=2)
    first, second, third = make_segments(tmp_path, 3)
    first_fd, second_fd = files.get(first).fd, files.get(second).fd
    files.get(first)
    files.get(third)
    assert len(files) == 2
    assert is_open(first_fd)
    assert not is_open(second_fd)


def test_segment_files_when_reader_holds_evicted_file_then_it_stays_open(tmp_path: Path) -> None:
    files = SegmentFiles(capacity=1)
    first, second = make_segments(tmp_path, 2)
    held = files.get(first)
    files.get(second)
    assert os.pread(held.fd, 1, 0) == b"x"


def test_segment_files_when_readers_hold_two_thirds_of_all_descriptors_then_no_more_are_given(
    tmp_path: Path,
) -> None:
    gc.collect()  # the limit is of all files of the process
    files = SegmentFiles()
    files.fit((3 * (len(SegmentFile.all_open) + 2) + 1) // 2)
    segments = make_segments(tmp_path, 3)
    held = [files.get(one) for one in segments[:2]]
    with pytest.raises(OSError, match="Too many open files"):
        files.get(segments[2])
    held.pop()
    assert files.get(segments[2]).fd


def test_segment_files_when_active_then_the_writers_file_is_read(tmp_path: Path) -> None:
    files = SegmentFiles()
    (segment,) = make_segments(tmp_path, 1)
    segment.file = SegmentFile(segment.path, os.O_RDWR)
    assert files.get(segment) is segment.file
    assert len(files) == 0


def test_floor_when_new_then_zero() -> None:
    assert BoundaryIndex().floor(5 * SPACING_BYTES) == 0


def test_append_when_close_to_the_last_then_left_out() -> None:
    index = BoundaryIndex()
    index.append(SPACING_BYTES - 1)
    assert len(index) == 1


@given(st.lists(st.integers(0, 20 * SPACING_BYTES)), st.integers(0, 20 * SPACING_BYTES))
def test_floor_when_positions_inserted_then_nearest_kept_one_at_or_below(
    positions: list[int], target: int
) -> None:
    index = BoundaryIndex()
    kept = [0]
    for position in positions:
        index.insert(position)
        if all(abs(position - known) >= SPACING_BYTES for known in kept):
            kept.append(position)
    assert len(index) == len(kept)
    assert index.floor(target) == max(known for known in kept if known <= target)


class Writer:
    """Stands in for a log that holds a file."""

    def __init__(self, files: SegmentFiles, last_append_ms: int, *, is_flushed: bool) -> None:
        self.last_append_ms = last_append_ms
        self.is_open = True
        self._files = files
        self._is_flushed = is_flushed
        files.note_writer(self)

    def release_file(self, *, may_flush: bool) -> bool:
        if self._is_flushed or may_flush:
            self.is_open = False
            self._files.forget_writer(self)
        return not self.is_open


@pytest.mark.parametrize("is_flushed", [True, False])
def test_note_writer_when_over_capacity_then_those_not_written_to_for_longest_close(
    is_flushed: bool,
) -> None:
    files = SegmentFiles(writer_capacity=8)
    writers = [Writer(files, at, is_flushed=is_flushed) for at in (5, 1, 9, 2, 8, 3, 7, 4, 6)]
    assert sorted(one.last_append_ms for one in writers if one.is_open) == [3, 4, 5, 6, 7, 8, 9]


def test_note_writer_when_some_are_flushed_then_none_is_flushed_for_room() -> None:
    files = SegmentFiles(writer_capacity=8)
    flushed = [Writer(files, 2, is_flushed=True)]
    busy = [Writer(files, at, is_flushed=False) for at in (1, 3, 4, 5, 6, 7, 8, 9)]
    assert [one.is_open for one in flushed] == [False]
    assert all(one.is_open for one in busy)


def test_with_room_when_out_of_descriptors_then_once_more_after_closing() -> None:
    files = SegmentFiles()
    writer = Writer(files, 1, is_flushed=True)
    seen = []

    def work() -> str:
        seen.append(writer.is_open)
        if writer.is_open:
            raise OSError(errno.EMFILE, "too many")
        return "done"

    assert files.with_room(work) == "done"
    assert seen == [True, False]
