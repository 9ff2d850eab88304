from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.errors import (
    ArgumentError,
    ConflictError,
    LogCorruptError,
    LogLockedError,
    StorageError,
)
from broker.log import archiving
from broker.log.archiving import archive_segment, prune
from broker.log.data_directory import DataDirectory
from broker.log.format import segment_name
from broker.log.manager import LogManager
from broker.log.offline.archives import list_archive, restore
from broker.log.offline.verify import verify_paths
from broker.protocol.codec import encode, encode_batch
from broker.protocol.record_batch import Record
from broker.topic import FORMAT_07, FORMAT_KAFKA, TopicPartition
from tests.support.log_fixtures import ManagerFactory

MESSAGE = encode([b"ab"])
SIZE = len(MESSAGE)
PARTITION = TopicPartition("t", 0, 0)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of three segments of `t[0-0]`, of one message each, written 10 s apart."""
    directory = tmp_path / "archive"
    for number in range(3):
        segment = tmp_path / segment_name(number * SIZE)
        segment.write_bytes(MESSAGE)
        os.utime(segment, (10 * number, 10 * number))
        archive_segment(directory, PARTITION, segment)
    return directory


def offsets(directory: Path) -> list[int]:
    return sorted(int(path.name.partition(".")[0]) for path in directory.iterdir())


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, 3),
        ({"archive_retention_ms": 15_000}, 1),
        ({"archive_retention_ms": 20_000}, 2),
        ({"archive_retention_bytes": 1}, 1),
        ({"archive_retention_bytes": 0}, 0),
        ({"archive_retention_ms": 20_000, "archive_retention_bytes": 1}, 1),
    ],
)
def test_archive_when_past_an_age_or_size_then_its_oldest_files_go(
    archive: Path, settings: dict[str, int], kept: int
) -> None:
    prune(BrokerConfig(archive_dir=archive, **settings), now_ms=30_000)  # type: ignore[arg-type]  # settings by name

    assert offsets(archive / "t_0-0") == [SIZE * number for number in range(3)][3 - kept :]


def test_archive_when_it_has_the_segment_of_a_deleted_topic_then_that_is_not_overwritten(
    archive: Path, tmp_path: Path
) -> None:
    segment = tmp_path / segment_name(0)
    segment.write_bytes(encode([b"cd"]))

    with pytest.raises(StorageError, match=r"maybe of a deleted topic .*: move .*t_0-0 out of"):
        archive_segment(archive, PARTITION, segment)

    archived = archive / "t_0-0" / f"{segment.name}.gz"
    assert gzip.decompress(archived.read_bytes()) == MESSAGE


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1)])
def test_archive_when_replicas_share_it_then_the_longer_segment_stays(
    tmp_path: Path, sizes: tuple[int, int]
) -> None:
    segment = tmp_path / segment_name(0)
    for size in sizes:
        segment.write_bytes(MESSAGE * size)
        archive_segment(tmp_path, PARTITION, segment)

    archived = tmp_path / "t_0-0" / f"{segment.name}.gz"
    assert gzip.decompress(archived.read_bytes()) == MESSAGE * 2


def filled(make_manager: ManagerFactory, **settings: object) -> LogManager:
    """A manager whose topics a and b have two segments past retention, and one that stays."""
    manager = make_manager(segment_bytes=10, retention_bytes=SIZE, **settings)
    manager.open()
    for topic in "ab":
        for _ in range(3):
            manager.creation.get_or_create(topic, 0).append(MESSAGE, 1)
    return manager


def test_policy_when_a_topic_has_its_own_then_only_its_segments_are_archived(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = filled(make_manager, archive_dir=tmp_path / "archive")
    manager.reconfigure(manager.settings.broker, {"b": {"cleanup_policy": "archive"}})

    manager.retention.apply()

    assert [log.log_start_offset for log in manager.table.all()] == [2 * SIZE, 2 * SIZE]
    found = list_archive([tmp_path / "archive"])
    assert [(str(one.partition), one.start, one.end) for one in found] == [
        ("b[0-0]", 0, SIZE),
        ("b[0-0]", SIZE, 2 * SIZE),
    ]


def test_policy_when_the_broker_has_no_archive_then_segments_stay_and_it_tells_why(
    make_manager: ManagerFactory,
) -> None:
    manager = filled(make_manager)
    manager.reconfigure(manager.settings.broker, {"b": {"cleanup_policy": "archive"}})

    manager.retention.apply()

    assert [log.log_start_offset for log in manager.table.all()] == [2 * SIZE, 0]
    assert "needs log.archive.dir" in str(manager.retention.waits)

    manager.reconfigure(manager.settings.broker, {})
    manager.retention.apply()
    assert manager.retention.waits is None


def test_archive_when_its_disk_fills_then_it_is_told_and_logged_once(
    make_manager: ManagerFactory,
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = make_manager(archive_dir=archive)
    manager.retention.archive.measure()
    assert manager.retention.waits is None

    monkeypatch.setattr(archiving, "LEAST_FREE", 1.1)
    for _ in range(2):
        manager.retention.archive.measure()

    assert "once it is full, segments past retention are kept" in str(manager.retention.waits)
    assert caplog.text.count("once it is full") == 1


def test_restore_when_repeated_then_segments_have_their_offsets_and_times(
    archive: Path, tmp_path: Path
) -> None:
    found = list_archive([archive])

    done = restore(found, tmp_path / "old")

    log = tmp_path / "old" / "t_0"
    assert [(one.start, one.end) for one in done] == [
        (2 * SIZE, 3 * SIZE), (SIZE, 2 * SIZE), (0, SIZE),
    ]  # fmt: skip
    assert [path.read_bytes() for path in log.iterdir()] == [MESSAGE] * 3
    assert [(log / segment_name(n * SIZE)).stat().st_mtime for n in range(3)] == [0, 10, 20]
    assert restore(found, tmp_path / "old") == []


def test_restore_when_an_archive_is_damaged_then_only_newer_segments_are_there(
    archive: Path, tmp_path: Path
) -> None:
    bad = archive / "t_0-0" / f"{segment_name(SIZE)}.gz"
    bad.write_bytes(gzip.compress(MESSAGE[:-1] + b"x"))

    with pytest.raises(LogCorruptError, match=r"position 0 \(crc\)"):
        restore(list_archive([archive]), tmp_path / "old")

    assert offsets(tmp_path / "old" / "t_0") == [2 * SIZE]


def test_restore_when_it_would_leave_a_gap_then_nothing_is_written(
    archive: Path, tmp_path: Path
) -> None:
    (archive / "t_0-0" / f"{segment_name(SIZE)}.gz").unlink()

    with pytest.raises(ConflictError, match=f"ends at {SIZE}, and .* starts at {2 * SIZE}"):
        restore(list_archive([archive]), tmp_path / "old")

    log = tmp_path / "data" / "t_0"
    log.mkdir(parents=True)
    (log / segment_name(10 * SIZE)).write_bytes(MESSAGE)
    with pytest.raises(ConflictError, match=f"starts at {10 * SIZE}"):
        restore(list_archive([archive])[1:], tmp_path / "data")
    assert not (tmp_path / "old").exists()
    assert offsets(log) == [10 * SIZE]


def test_restore_when_the_log_has_another_file_or_is_a_replica_then_refused(
    archive: Path, tmp_path: Path
) -> None:
    log = tmp_path / "data" / "t_0"
    log.mkdir(parents=True)
    (log / segment_name(SIZE)).write_bytes(MESSAGE * 2)
    with pytest.raises(ConflictError, match="is there already"):
        restore(list_archive([archive]), tmp_path / "data")

    (log / "replica-record").touch()
    with pytest.raises(ConflictError, match="is for a replica"):
        restore(list_archive([archive]), tmp_path / "data")


def test_restore_when_the_directory_is_of_another_broker_then_refused(
    archive: Path, tmp_path: Path
) -> None:
    directory = DataDirectory(tmp_path / "data", 1)
    directory.lock()
    directory.unlock()

    with pytest.raises(ConflictError, match=r"replicas/0/t_0 is for a replica"):
        restore(list_archive([archive]), tmp_path / "data")


def test_restore_when_a_broker_has_the_directory_open_then_refused(
    archive: Path, tmp_path: Path
) -> None:
    directory = DataDirectory(tmp_path / "data", 0)
    directory.lock()
    try:
        with pytest.raises(LogLockedError, match="is in use"):
            restore(list_archive([archive]), tmp_path / "data")
    finally:
        directory.unlock()


def test_restore_when_of_batches_then_the_broker_has_all_records_again(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    batch = encode_batch([Record(n, 5 + n, b"k", b"v", ()) for n in range(3)])
    settings = {"segment_bytes": 10, "retention_bytes": SIZE, "retention_ms": 1 << 50}
    manager = make_manager(archive_dir=tmp_path / "archive", **settings)
    manager.open()
    for topic, format in {"orders": FORMAT_KAFKA, "orders_0-1": FORMAT_07, "t": FORMAT_07}.items():
        manager.creation.create_topic(topic, 2, format=format)
    manager.reconfigure(
        manager.settings.broker,
        {one: {"cleanup_policy": "archive"} for one in manager.topics.names()},
    )
    for _ in range(3):
        manager.creation.get_or_create("orders", 1).append(batch, 3)
        manager.creation.get_or_create("orders_0-1", 1).append(MESSAGE, 1)
    manager.retention.apply()
    manager.close()

    found = list_archive([tmp_path / "archive"])
    assert [(str(one.partition), one.start, one.end) for one in found] == [
        ("orders[1]", 0, 3),
        ("orders[1]", 3, 6),
        ("orders_0-1[0-1]", 0, SIZE),
        ("orders_0-1[0-1]", SIZE, 2 * SIZE),
    ]
    done = restore(found, tmp_path / "data")
    assert sorted((str(one.partition), one.end) for one in done) == [
        (str(one.partition), one.end) for one in found
    ]
    assert restore(found, tmp_path / "data") == []
    manager = make_manager()
    manager.open()
    assert manager.table.errors() == {}
    log = manager.table.get("orders", 1)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 9)
    assert verify_paths([tmp_path / "data", tmp_path / "archive"]).problems == []


def test_list_when_a_path_is_missing_or_no_archive_then_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_archive([tmp_path / "nowhere"])
    plain = tmp_path / segment_name(0)
    plain.touch()
    assert list_archive([tmp_path]) == []
    with pytest.raises(ArgumentError, match="is no archived segment"):
        list_archive([plain])
