from __future__ import annotations

import errno
import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker.errors import OffsetOutOfRangeError, StorageError
from broker.log.archiving import archive_segment
from broker.log.expiry import excess_count, expired_count
from broker.log.format import ENTRIES, segment_name
from broker.log.log import Log
from broker.log.retention import apply_retention
from broker.log.segment import Segment
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import LogFactory
from tests.support.log_formats import FormatExample, bytes_of, messages_in, set_of


def apply(
    log: Log,
    *,
    retention_ms: int = 1 << 40,
    retention_bytes: int = -1,
    prepare: Callable[[TopicPartition, Path], object] = lambda _partition, _path: None,
) -> int:
    config = TopicConfig(
        segment_bytes=10,
        roll_ms=1 << 40,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        flush_interval_messages=1,
        flush_interval_ms=1,
    )
    removed = apply_retention(
        log,
        config,
        now_ms=log._clock.time_ms(),
        prepare=lambda partition, segment: prepare(partition, segment.path),
    )
    return len(removed)


def make_segments(*sizes_and_times: tuple[int, int]) -> list[Segment]:
    segments, base = [], 0
    for size, modified_ms in sizes_and_times:
        segments.append(Segment(Path(), base, size=size, modified_ms=modified_ms, format=ENTRIES))
        base += size
    return segments


def files(log: Log, log_format: FormatExample) -> list[int]:
    """Return how many messages are before each segment on disk."""
    found = (log.format.base_offset_of(path.name) for path in log.directory.iterdir())
    return sorted(one // log_format.step for one in found if one is not None)


def message_of(log: Log) -> bytes:
    """Return a set of one message of now."""
    return set_of(log.format, [b"ab"], time_ms=log._clock.time_ms())


@pytest.fixture
def log(make_log: LogFactory, clock: FakeClock, log_format: FormatExample) -> Log:
    """Three segments of one message each, written 10 s apart, the last one just now."""
    log = make_log(segment_bytes=10)
    for _ in range(3):
        clock.advance(10)
        log.append(message_of(log), 1)
    log.flush()
    return log


@pytest.mark.parametrize(
    ("times", "now_ms", "count"),
    [
        *[([10, 20, 30], 110, 0), ([10, 20, 30], 111, 1), ([50, 20, 30], 140, 0), ([1, 2], 500, 2)],
        *[([10, 999, 30], 125, 1), ([10, 999, 30], 131, 3), ([10, 999], 500, 1)],
    ],
)
def test_expired_count_when_any_times_then_longest_prefix_strictly_older(
    times: list[int], now_ms: int, count: int
) -> None:
    segments = make_segments(*((12, time_ms) for time_ms in times))
    assert expired_count(segments, now_ms=now_ms, retention_ms=100) == count


@pytest.mark.parametrize(
    ("retention_bytes", "count"), [(-1, 0), (0, 3), (1, 2), (12, 2), (13, 1), (24, 1), (36, 0)]
)
def test_excess_count_when_any_limit_then_log_never_falls_below_it(
    retention_bytes: int, count: int
) -> None:
    segments = make_segments((12, 0), (12, 0), (12, 0))
    assert excess_count(segments, retention_bytes=retention_bytes) == count


def test_apply_when_old_segments_expired_then_they_go_and_offsets_stay(
    log: Log, log_format: FormatExample
) -> None:
    assert apply(log, retention_ms=5_000) == 2
    assert (log.log_start_offset, log.high_watermark) == (2 * log_format.step, 3 * log_format.step)
    assert files(log, log_format) == [2]
    with pytest.raises(OffsetOutOfRangeError):
        log.read(0, 100)


def test_apply_when_all_expired_then_rolls_and_keeps_the_end_offset(
    log: Log, log_format: FormatExample, clock: FakeClock
) -> None:
    clock.advance(100)
    assert apply(log, retention_ms=5_000) == 3
    end = 3 * log_format.step
    assert (log.log_start_offset, log.high_watermark, log.size_bytes) == (end, end, 0)
    assert files(log, log_format) == [3]
    assert log.append(message_of(log), 1).base_offset == end


def test_apply_when_only_an_empty_segment_is_left_then_its_time_is_renewed(
    log: Log, log_format: FormatExample, clock: FakeClock
) -> None:
    clock.advance(100)
    apply(log, retention_ms=5_000)
    clock.advance(100)
    assert apply(log, retention_ms=5_000) == 0
    assert files(log, log_format) == [3]
    assert log.segments.all[0].path.stat().st_mtime == clock.time_ms() / 1000


def test_apply_when_unflushed_then_flushed_before_files_go(
    log: Log, log_format: FormatExample, clock: FakeClock
) -> None:
    log.append(message_of(log), 1)
    clock.advance(100)
    apply(log, retention_ms=5_000)
    assert (log.log_start_offset, log.high_watermark) == (4 * log_format.step, 4 * log_format.step)


def test_apply_when_over_size_then_oldest_go(log: Log, log_format: FormatExample) -> None:
    assert apply(log, retention_bytes=log.size_bytes // 2) == 1
    assert files(log, log_format) == [1, 2]


def test_apply_when_a_reader_is_in_flight_then_it_still_reads(
    log: Log, log_format: FormatExample
) -> None:
    held = log.read(0, 100)
    assert held is not None
    apply(log, retention_bytes=0)
    assert [one.value for one in messages_in(log.format, bytes_of(held))] == [b"ab"]


def test_apply_when_flush_fails_then_nothing_is_removed(
    make_log: LogFactory,
    log_format: FormatExample,
    faulty_disk: FaultyDisk,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = make_log(disk=faulty_disk.as_disk(), segment_bytes=10)
    for _ in range(3):
        log.append(message_of(log), 1)
    faulty_disk.sync_errno = errno.EIO
    assert apply(log, retention_bytes=0) == 0
    assert files(log, log_format) == [0, 1, 2, 3]
    assert f"retention of {log.partition}" in caplog.text


def test_apply_when_archiving_then_archived_and_removed(
    log: Log, log_format: FormatExample, tmp_path: Path
) -> None:
    archive_dir = tmp_path / "archive"
    prepare = partial(archive_segment, archive_dir)
    assert apply(log, retention_bytes=log.size_bytes // 2, prepare=prepare) == 1
    (archived,) = archive_dir.glob("*/*")
    assert archived.name == f"{log.format.segment_name(0)}.gz"
    assert files(log, log_format) == [1, 2]


def test_apply_when_archive_cannot_be_written_then_segment_stays(
    log: Log, log_format: FormatExample, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "archive").touch()
    prepare = partial(archive_segment, tmp_path / "archive")
    assert apply(log, retention_bytes=0, prepare=prepare) == 0
    assert log.log_start_offset == 0
    assert files(log, log_format)[0] == 0
    assert "cannot archive" in caplog.text


PARTITION = TopicPartition("events", 2, 1)


def test_archive_segment_when_done_then_reads_back_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / segment_name(12)
    path.write_bytes(b"content" * 1000)
    target = archive_segment(tmp_path / "archive", PARTITION, path)
    assert target == tmp_path / "archive" / "events_2-1" / f"{12:020d}.pylog.gz"
    assert gzip.decompress(target.read_bytes()) == path.read_bytes()
    assert list(target.parent.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == 0o640


def test_archive_segment_when_left_from_an_earlier_try_then_replaced(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"content")
    target = tmp_path / "events_2-1" / f"{path.name}.gz"
    target.parent.mkdir()
    target.write_bytes(b"half of it")
    archive_segment(tmp_path, PARTITION, path)
    assert gzip.decompress(target.read_bytes()) == b"content"


def test_archive_segment_when_source_is_missing_then_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot archive"):
        archive_segment(tmp_path / "archive", PARTITION, tmp_path / segment_name(0))
    assert list((tmp_path / "archive" / "events_2-1").iterdir()) == []
