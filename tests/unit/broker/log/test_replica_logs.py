from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.cluster_state import PartitionState
from broker.errors import LeaderNotAvailableError, StorageError
from broker.log.data_directory import read_high_watermarks, write_high_watermarks
from broker.log.flusher import PeriodicTask
from broker.log.log import Log, whole_entries
from broker.log.manager import LogManager
from broker.log.replica_files import EPOCH_FILE_NAME, read_record, write_record
from broker.protocol.codec import encode
from broker.replica_records import ReplicaRecord
from broker.topic import TopicPartition
from tests.support.log_fixtures import ManagerFactory, abandon
from tests.support.waiting import wait_until

TWELVE_BYTES = encode([b"ab"])
AWAY = TopicPartition("events", 7, 1)
HOME = TopicPartition("events", 0, 0)


def bytes_of(log: Log) -> bytes:
    found, offset = b"", log.log_start_offset
    while (part := log.read(offset, 1 << 20, to_log_end=True)) is not None:
        found += os.pread(part.file.fd, part.length, part.position)
        offset += part.length
    return found


def opened(manager: LogManager, *partitions: TopicPartition) -> LogManager:
    manager.open()
    for partition in partitions:
        log = manager.creation.open_replica(partition, "id")
        log.append_copied(whole_entries(TWELVE_BYTES * 3, partition, 0), 0)
        log.begin_epoch(2, 0)
        log.advance_high_watermark(24)
    return manager


@pytest.mark.parametrize("partition", [AWAY, HOME])
def test_open_replica_when_closed_cleanly_then_the_next_start_has_all_of_it(
    make_manager: ManagerFactory, partition: TopicPartition
) -> None:
    former = opened(make_manager(), partition)
    former.is_loss_known = True  # a first start counts as one after a loss
    former.close()
    manager = make_manager()
    assert manager.open() == []
    log = manager.table.find(partition)
    assert log is not None and not manager.loaded.was_recovered
    assert (bytes_of(log), log.high_watermark, list(log.epochs.entries)) == (
        TWELVE_BYTES * 3,
        24,
        [(2, 0)],
    )
    assert manager.creation.open_replica(partition, "id") is log
    with pytest.raises(LeaderNotAvailableError):
        log.append(TWELVE_BYTES, 1)


def test_open_replica_when_the_log_had_none_then_its_messages_and_partition_count_stay(
    make_manager: ManagerFactory,
) -> None:
    manager = make_manager(num_partitions=2)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(TWELVE_BYTES, 1, flush_now=True)
    log.flush()

    assert manager.creation.open_replica(HOME, "id") is log
    assert (bytes_of(log), log.high_watermark) == (TWELVE_BYTES, 12)
    manager.is_loss_known = True
    manager.close()
    manager = make_manager(num_partitions=5)
    manager.open()
    assert manager.topics.partition_count("events") == 2
    assert manager.table.replica_creation_id(HOME) == "id"


def test_open_replica_when_home_is_another_broker_then_apart_from_own_partitions(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager(), TopicPartition("events", 7, 0))
    own = manager.creation.get_or_create("events", 0)
    assert own.log_end_offset == 0
    assert (tmp_path / "data/replicas/7/events_0").is_dir()
    assert manager.topics.names() == ["events"]
    assert {log.partition.home for log in manager.table.all()} == {0, 7}


@pytest.mark.parametrize(
    "partition",
    [
        TopicPartition("../../../escaped", 7, 0),
        TopicPartition("../escaped", 0, 0),
        TopicPartition("", 7, 0),
        TopicPartition("x" * 254, 7, 11),
        TopicPartition("events", -2, 0),
        TopicPartition("events", 7, -1),
    ],
)
def test_open_replica_when_its_name_is_invalid_then_refused_and_nothing_is_created(
    make_manager: ManagerFactory, tmp_path: Path, partition: TopicPartition
) -> None:
    manager = make_manager()
    manager.open()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StorageError, match="cannot create"):
        manager.creation.open_replica(partition, "id")
    assert sorted(tmp_path.rglob("*")) == before
    assert manager.table.find(partition) is None


def test_open_replica_when_topic_was_created_again_then_its_log_is_new(
    make_manager: ManagerFactory,
) -> None:
    opened(make_manager(), AWAY).close()
    manager = make_manager()
    manager.open()
    log = manager.creation.open_replica(AWAY, "other")
    assert (log.log_end_offset, log.high_watermark, list(log.epochs.entries)) == (0, 0, [])


def test_open_replica_when_home_log_had_no_replicas_then_its_messages_stay(
    make_manager: ManagerFactory,
) -> None:
    manager = make_manager()
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(TWELVE_BYTES, 1)
    log.flush()
    assert manager.creation.open_replica(HOME, "id") is log
    assert (bytes_of(log), log.high_watermark, log.is_replicated) == (TWELVE_BYTES, 12, True)


def test_open_when_killed_and_the_end_of_a_replica_is_lost_then_it_ends_there_without_its_epoch(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager(), AWAY)
    log = manager.table.find(AWAY)
    assert log is not None
    log.begin_epoch(3, 24)
    manager.flush_all()
    manager.checkpoints.write()
    abandon(manager)
    os.truncate(tmp_path / "data/replicas/7/events_1" / f"{0:020d}.pylog", 15)
    manager = make_manager()
    manager.open()
    log = manager.table.find(AWAY)
    assert log is not None and manager.loaded.was_recovered
    assert (bytes_of(log), len(log.segments.all), list(log.epochs.entries)) == (
        TWELVE_BYTES,
        1,
        [(2, 0)],
    )
    written = (log.directory / EPOCH_FILE_NAME).read_text()
    assert written == "0\n1\n2 0\n"


def test_truncate_when_below_the_recovery_point_then_the_checkpoint_has_the_lower_one(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager(), AWAY)
    manager.flush_all()
    manager.checkpoints.write()
    checkpoint = tmp_path / "data/replicas/7/recovery-point-checkpoint"
    assert " 36 " in checkpoint.read_text()
    log = manager.table.find(AWAY)
    assert log is not None
    log.truncate(12)
    assert " 12 " in checkpoint.read_text()


@pytest.mark.parametrize("partition", [AWAY, HOME])
def test_delete_replica_when_called_then_nothing_of_it_is_left(
    make_manager: ManagerFactory, partition: TopicPartition
) -> None:
    manager = opened(make_manager(), partition)
    manager.deletions.delete_replica(partition)
    assert manager.table.find(partition) is None
    assert manager.topics.names() == []
    log = manager.creation.open_replica(partition, "id")
    assert log.log_end_offset == 0
    manager.close()
    manager = make_manager()
    assert manager.open() == []
    assert [one.partition for one in manager.table.all()] == [partition]


def test_start_when_an_interval_for_high_watermarks_is_set_then_they_are_written_so_often(
    make_manager: ManagerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals: dict[str, float] = {}

    class NotedTask(PeriodicTask):
        def __post_init__(self) -> None:
            super().__post_init__()
            intervals[self.name] = self.delay_s()

    monkeypatch.setattr("broker.log.manager.PeriodicTask", NotedTask)
    manager = opened(make_manager(high_watermark_checkpoint_ms=10), AWAY)
    manager.start()
    (directory,) = manager.settings.broker.data_dirs
    wait_until(lambda: read_high_watermarks(directory) == {AWAY: 24}, "writing the high watermark")
    assert intervals["high-watermarks"] == 0.01


def test_high_watermarks_when_no_replicated_log_could_be_opened_then_those_on_disk_stay(
    make_manager: ManagerFactory,
) -> None:
    manager = make_manager()
    (directory,) = manager.settings.broker.data_dirs
    directory.mkdir(exist_ok=True)
    write_high_watermarks(directory, {AWAY: 24})
    manager.open()

    manager.checkpoints.write_high_watermarks_or_log()

    assert read_high_watermarks(directory) == {AWAY: 24}


def test_read_high_watermarks_when_damaged_then_empty(tmp_path: Path) -> None:
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\nt 0-0 1\n")
    assert read_high_watermarks(tmp_path) == {}


def test_record_when_a_crash_left_the_end_of_a_longer_one_behind_it_then_is_read(
    tmp_path: Path,
) -> None:
    state = PartitionState(1, 5, (1, 2), 3)
    long = ReplicaRecord(HOME, "id", (1, 2), state, 7, {"a": "b" * 100})
    short = long._replace(settings={})
    write_record(tmp_path, long)
    former = (tmp_path / "replica-record").read_bytes()
    write_record(tmp_path, short)
    content = (tmp_path / "replica-record").read_bytes()
    assert read_record(tmp_path) == short
    assert len(content) < len(former)
    (tmp_path / "replica-record").write_bytes(content + former[len(content) :])
    assert read_record(tmp_path) == short
    write_record(tmp_path, short)
    assert (tmp_path / "replica-record").read_bytes() == content
