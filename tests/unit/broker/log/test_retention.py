from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker.errors import OffsetOutOfRangeError, StorageError
from broker.log.archiving import archive_segment
from broker.log.expiry import excess_count, expired_count
from broker.log.format import segment_name
from broker.log.log import Log
from broker.log.retention import apply_retention
from broker.log.segment import Segment
from broker.protocol.codec import encode
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import LogFactory

TWELVE_BYTES = encode([b"ab"])


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
        segments.append(Segment(Path(), base, size=size, modified_ms=modified_ms))
        base += size
    return segments


def files(log: Log) -> list[int]:
    return [int(path.stem) for path in sorted(log.directory.glob("*.pylog"))]


@pytest.fixture
def log(make_log: LogFactory, clock: FakeClock) -> Log:
    """Three segments of one entry each, written 10 s apart, the last one just now."""
    log = make_log(segment_bytes=10)
    for _ in range(3):
        clock.advance(10)
        log.append(TWELVE_BYTES, 1)
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


def test_apply_when_old_segments_expired_then_they_go_and_offsets_stay(log: Log) -> None:
    assert apply(log, retention_ms=5_000) == 2
    assert (log.log_start_offset, log.high_watermark) == (24, 36)
    assert files(log) == [24]
    with pytest.raises(OffsetOutOfRangeError):
        log.read(0, 100)


def test_apply_when_all_expired_then_rolls_and_keeps_the_end_offset(
    log: Log, clock: FakeClock
) -> None:
    clock.advance(100)
    assert apply(log, retention_ms=5_000) == 3
    assert (log.log_start_offset, log.high_watermark, log.size_bytes) == (36, 36, 0)
    assert files(log) == [36]
    assert log.append(TWELVE_BYTES, 1) == 36


def test_apply_when_only_an_empty_segment_is_left_then_its_time_is_renewed(
    log: Log, clock: FakeClock
) -> None:
    clock.advance(100)
    apply(log, retention_ms=5_000)
    clock.advance(100)
    assert apply(log, retention_ms=5_000) == 0
    assert files(log) == [36]
    assert log.segments.all[0].path.stat().st_mtime == clock.time_ms() / 1000


def test_apply_when_unflushed_then_flushed_before_files_go(log: Log, clock: FakeClock) -> None:
    log.append(TWELVE_BYTES, 1)
    clock.advance(100)
    apply(log, retention_ms=5_000)
    assert (log.log_start_offset, log.high_watermark) == (48, 48)


def test_apply_when_over_size_then_oldest_go(log: Log) -> None:
    assert apply(log, retention_bytes=20) == 1
    assert files(log) == [12, 24]


def test_apply_when_a_reader_is_in_flight_then_it_still_reads(log: Log) -> None:
    held = log.read(0, 100)
    assert held is not None
    apply(log, retention_bytes=0)
    assert os.pread(held.file.fd, held.length, held.position) == TWELVE_BYTES


def test_apply_when_flush_fails_then_nothing_is_removed(
    make_log: LogFactory, faulty_disk: FaultyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(disk=faulty_disk.as_disk(), segment_bytes=10)
    for _ in range(3):
        log.append(TWELVE_BYTES, 1)
    faulty_disk.sync_errno = errno.EIO
    assert apply(log, retention_bytes=0) == 0
    assert files(log) == [0, 12, 24, 36]
    assert "retention of events[0-0]" in caplog.text


def test_apply_when_archiving_then_archived_and_removed(log: Log, tmp_path: Path) -> None:
    archive_dir = tmp_path / "archive"
    assert apply(log, retention_bytes=20, prepare=partial(archive_segment, archive_dir)) == 1
    names = [path.name for path in (archive_dir / "events_0-0").iterdir()]
    assert names == [f"{0:020d}.pylog.gz"]
    assert files(log) == [12, 24]


def test_apply_when_archive_cannot_be_written_then_segment_stays(
    log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "archive").touch()
    prepare = partial(archive_segment, tmp_path / "archive")
    assert apply(log, retention_bytes=0, prepare=prepare) == 0
    assert log.log_start_offset == 0
    assert files(log)[0] == 0
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
