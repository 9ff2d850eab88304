from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.errors import LogCorruptError, LogLockedError
from broker.log.data_directory import LOCK_NAME, DataDirectory
from broker.log.format import segment_name
from broker.log.offline.inspect import (
    first_entry_at_or_after,
    iter_segment_entries,
    segment_stat,
)
from broker.log.offline.recover import plan_recovery, recover
from broker.log.offline.segments import expand_paths
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from tests.doubles import FakeClock

ENTRY = encode([b"some payload"])
SIZE = len(ENTRY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    directory = tmp_path / "events_0"
    directory.mkdir()
    return directory / segment_name(0)


def test_iter_segment_entries_when_real_file_then_every_entry(shared_data: Path) -> None:
    entries = list(iter_segment_entries(shared_data / "kafka-magic0" / f"{0:020d}.kafka"))
    assert [entry.offset for entry in entries] == list(range(0, 10_900, 109))
    assert {bytes(entry.payload) for entry in entries} == {b"x" * 100}


def test_iter_segment_entries_when_larger_than_a_block_then_whole(path: Path) -> None:
    large = encode([b"y" * (3 << 20)])
    path.write_bytes(ENTRY + large + ENTRY)
    sizes = [len(entry.payload) for entry in iter_segment_entries(path)]
    assert sizes == [12, 3 << 20, 12]


def test_iter_segment_entries_when_crc_is_bad_then_given_as_invalid(path: Path) -> None:
    path.write_bytes(ENTRY[:-1] + b"?" + ENTRY)
    assert [entry.is_valid for entry in iter_segment_entries(path)] == [False, True]


def test_iter_segment_entries_when_started_inside_then_from_there(path: Path) -> None:
    path.write_bytes(ENTRY * 3)
    assert [entry.offset for entry in iter_segment_entries(path, 2 * SIZE)] == [2 * SIZE]


@pytest.mark.parametrize("tail", [b"\0\0\0\0\1\0\0\0\0\0", b"to", ENTRY[:-1]])
def test_iter_segment_entries_when_tail_is_no_entry_then_corrupt_after_the_good_ones(
    path: Path, tail: bytes
) -> None:
    path.write_bytes(ENTRY * 2 + tail)
    entries = iter_segment_entries(path)
    assert [next(entries).offset, next(entries).offset] == [0, SIZE]
    with pytest.raises(LogCorruptError, match=rf"{path.name}: the message at {2 * SIZE}"):
        next(entries)


def test_first_entry_at_or_after_when_inside_an_entry_then_the_next(path: Path) -> None:
    path.write_bytes(ENTRY * 3)
    positions = [first_entry_at_or_after(path, position) for position in (-1, 0, 1, SIZE, 500)]
    assert positions == [0, 0, SIZE, SIZE, 3 * SIZE]


def test_first_entry_at_or_after_when_damaged_then_corrupt(path: Path) -> None:
    path.write_bytes(ENTRY + bytes(100))
    with pytest.raises(LogCorruptError, match=path.name):
        first_entry_at_or_after(path, 60)


def test_expand_paths_when_directories_then_their_segments_in_natural_order(
    tmp_path: Path,
) -> None:
    for name in ("t_10", "t_2"):
        (tmp_path / name).mkdir()
        for file in (segment_name(5), f"{0:020d}.kafka", "notes", f"{0:020d}.pylog.cut-x"):
            (tmp_path / name / file).touch()
    found = [str(one.relative_to(tmp_path)) for one in expand_paths([tmp_path, tmp_path])]
    names = (f"{0:020d}.kafka", segment_name(5))
    assert found == [f"{log}/{name}" for log in ("t_2", "t_10") for name in names]


def test_expand_paths_when_a_topic_was_deleted_then_without_its_segments(tmp_path: Path) -> None:
    for directory in (tmp_path / "data" / "t_0", tmp_path / "data" / ".deleted" / "x"):
        directory.mkdir(parents=True)
        (directory / segment_name(0)).touch()
    (found,) = expand_paths([tmp_path])
    assert found.parent.name == "t_0"


def test_expand_paths_when_file_or_missing_then_as_given(tmp_path: Path) -> None:
    given = [tmp_path / "any name", tmp_path / "none"]
    given[0].touch()
    assert expand_paths(given) == given


def test_segment_stat_when_mixed_then_figures(path: Path) -> None:
    wrapper = build_set([b"a" * 1000, b"b" * 3000], Codec.GZIP)
    path.write_bytes(encode([b"", b"x" * 8]) + wrapper + b"torn")
    stat = segment_stat(path)
    assert (stat.bytes, stat.fault) == ((stat.valid_bytes or 0) + 4, "partial")
    assert (stat.entries, stat.messages, stat.payload_bytes) == (3, 4, 4008)
    assert (stat.min, stat.avg, stat.max) == (0, 1002, 3000)
    assert stat.sizes == {1: 1, 16: 1, 1024: 1, 4096: 1}
    assert (stat.magics, stat.codecs) == ({1: 3}, {"none": 2, "gzip": 1})
    assert stat.ratio == round(4000 / (len(wrapper) - 10), 3)


def test_segment_stat_when_real_file_then_magic_0(shared_data: Path) -> None:
    stat = segment_stat(shared_data / "kafka-magic0" / f"{0:020d}.kafka")
    assert (stat.magics, stat.sizes) == ({0: 100}, {128: 100})
    assert stat.ratio is None


def test_segment_stat_when_empty_then_sizes_of_messages_are_unknown(path: Path) -> None:
    path.touch()
    stat = segment_stat(path)
    assert (stat.messages, stat.payload_bytes) == (0, 0)
    assert (stat.avg, stat.min) == (None, None)


def test_plan_recovery_when_damaged_then_nothing_is_changed(path: Path) -> None:
    path.write_bytes(ENTRY * 2 + b"torn")
    later = path.with_name(segment_name(500))
    later.touch()
    plan = plan_recovery(path)
    assert (plan.cut_at, plan.cut_bytes, plan.messages_kept) == (2 * SIZE, 4, 2)
    assert (plan.fault, plan.later_segments) == ("partial", [later.name])
    assert path.stat().st_size == 2 * SIZE + 4


def test_recover_when_damaged_then_cut_and_kept(path: Path, clock: FakeClock) -> None:
    path.write_bytes(ENTRY * 2 + b"torn")
    done = recover(path, clock=clock)
    assert done.backup is not None
    assert Path(done.backup).read_bytes() == b"torn"
    assert path.read_bytes() == ENTRY * 2
    assert recover(path).cut_bytes == 0


def test_recover_when_no_backup_is_wanted_then_only_cut(path: Path) -> None:
    path.write_bytes(ENTRY + b"torn")
    assert recover(path, backup=False).backup is None
    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208 - names are what is compared
    assert path.read_bytes() == ENTRY


def test_recover_when_a_broker_has_the_directory_open_then_refused(
    path: Path, tmp_path: Path
) -> None:
    path.write_bytes(ENTRY + b"torn")
    directory = DataDirectory(tmp_path, 0)
    directory.lock()
    try:
        with pytest.raises(LogLockedError, match="in use"):
            recover(path)
    finally:
        directory.unlock()
    assert path.stat().st_size == SIZE + 4


def test_recover_when_the_lock_cannot_be_looked_at_then_refused(path: Path, tmp_path: Path) -> None:
    path.write_bytes(ENTRY + b"torn")
    lock = tmp_path / LOCK_NAME
    lock.symlink_to(lock)
    with pytest.raises(LogLockedError, match="cannot tell"):
        recover(path)
    assert path.stat().st_size == SIZE + 4
