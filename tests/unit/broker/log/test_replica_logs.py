from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.cluster_state import PartitionState
from broker.errors import LeaderNotAvailableError, StorageError
from broker.log.creation import LogCreation
from broker.log.data_directory import read_high_watermarks, write_high_watermarks
from broker.log.flusher import PeriodicTask
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.replica_files import EPOCH_FILE_NAME, read_record, write_record
from broker.log.side_files import read_topic_id
from broker.protocol.codec import encode, encode_batch, stamp_batches
from broker.protocol.record_batch import Record
from broker.replica_records import ReplicaRecord
from broker.topic import FORMATS, NO_HOME, TopicPartition
from tests.support.log_fixtures import ManagerFactory, abandon
from tests.support.waiting import wait_until

ID = "0123456789abcdef0123456789abcdef"
TWELVE_BYTES = encode([b"ab"])
TWELVE_RECORDS = encode_batch([Record(n, n, None, b"ab", ()) for n in range(12)])
BATCHES = stamp_batches(TWELVE_RECORDS * 3, 0, 2)[0]
AWAY = TopicPartition("events", 7, 1)
HOME = TopicPartition("events", 0, 0)
KAFKA = TopicPartition("events", NO_HOME, 1)
ENDS = range(0, 37, 12)  # of entries or batches, in both formats


def messages(partition: TopicPartition) -> bytes:
    """Three entries or batches, which end at 36."""
    return bytes(BATCHES) if partition.home == NO_HOME else TWELVE_BYTES * 3


def bytes_of(log: Log) -> bytes:
    found, offset = b"", log.log_start_offset
    while (part := log.read(offset, 1 << 20, to_log_end=True)) is not None:
        found += os.pread(part.file.fd, part.length, part.position)
        count = len(found) * 3 // len(messages(log.partition))
        offset = log.log_start_offset + ENDS[count]
    return found


def opened(manager: LogManager, *partitions: TopicPartition) -> LogManager:
    manager.open()
    for partition in partitions:
        log = manager.creation.open_replica(partition, ID)
        log.append_copied(log.format.copied(messages(partition), partition, 0), 0)
        log.begin_epoch(2, 0)
        log.advance_high_watermark(24)
    return manager


@pytest.mark.parametrize("partition", [AWAY, HOME, KAFKA])
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
        messages(partition),
        24,
        [(2, 0)],
    )
    assert manager.creation.open_replica(partition, ID) is log
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

    assert manager.creation.open_replica(HOME, ID) is log
    assert (bytes_of(log), log.high_watermark) == (TWELVE_BYTES, 12)
    manager.is_loss_known = True
    manager.close()
    manager = make_manager(num_partitions=5)
    manager.open()
    assert manager.topics.partition_count("events") == 2
    assert manager.table.replica_creation_id(HOME) == ID


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
        TopicPartition("events", NO_HOME, -1),
        TopicPartition("größe", NO_HOME, 0),
        TopicPartition("../escaped", NO_HOME, 0),
        TopicPartition("x" * 250, NO_HOME, 0),
    ],
)
def test_open_replica_when_its_name_is_invalid_then_refused_and_nothing_is_created(
    make_manager: ManagerFactory, tmp_path: Path, partition: TopicPartition
) -> None:
    manager = make_manager()
    manager.open()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StorageError, match="cannot create"):
        manager.creation.open_replica(partition, ID)
    assert sorted(tmp_path.rglob("*")) == before
    assert manager.table.find(partition) is None


def test_open_replica_when_it_has_no_home_then_as_kafka_has_it_and_apart_from_own_topics(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager(), KAFKA)
    assert read_topic_id(tmp_path / "data/events-1/partition.metadata").hex == ID
    assert manager.topics.names() == []
    manager.close()
    manager = make_manager()
    manager.open()
    assert (manager.topics.names(), manager.table.errors()) == ([], {})
    assert manager.table.replica_creation_id(KAFKA) == ID
    assert manager.table.get("events", 1) is manager.table.find(KAFKA)
    assert manager.partition_count() == 1


@pytest.mark.parametrize("format", FORMATS)
def test_open_replica_when_the_broker_has_a_topic_of_that_name_alone_then_refused(
    make_manager: ManagerFactory, tmp_path: Path, format: str
) -> None:
    manager = make_manager()
    manager.open()
    manager.creation.create_topic("events", 2, format=format)
    own = manager.creation.get_or_create("events", 1)
    with pytest.raises(StorageError, match="has to be deleted first"):
        manager.creation.open_replica(KAFKA, ID)
    assert manager.table.all() == [own]
    assert not own.is_replicated


def test_open_replica_when_killed_before_it_was_marked_then_it_is_a_replica_all_the_same(
    make_manager: ManagerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = make_manager()
    manager.open()
    monkeypatch.setattr(LogCreation, "_replicate", lambda *_: None)
    manager.creation.open_replica(KAFKA, ID)
    monkeypatch.undo()
    abandon(manager)
    manager = make_manager()
    manager.open()
    assert manager.topics.names() == ["events"]
    told: list[str] = []
    manager.topics.on_deleted = told.append
    log = manager.creation.open_replica(KAFKA, ID)
    assert (log.is_replicated, manager.topics.names(), told) == (True, [], ["events"])
    manager.close()
    manager = make_manager()
    manager.open()
    assert (manager.topics.names(), manager.table.replica_creation_id(KAFKA)) == ([], ID)


def test_open_replica_when_its_creation_id_is_no_topic_id_then_refused(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    manager.open()
    with pytest.raises(StorageError, match="cannot create"):
        manager.creation.open_replica(KAFKA, "id")
    assert not (tmp_path / "data/events-1").exists()


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
    assert manager.creation.open_replica(HOME, ID) is log
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


@pytest.mark.parametrize("partition", [AWAY, HOME, KAFKA])
def test_delete_replica_when_called_then_nothing_of_it_is_left(
    make_manager: ManagerFactory, partition: TopicPartition
) -> None:
    manager = opened(make_manager(), partition)
    manager.deletions.delete_replica(partition)
    assert manager.table.find(partition) is None
    assert manager.topics.names() == []
    log = manager.creation.open_replica(partition, ID)
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
    long = ReplicaRecord(HOME, ID, (1, 2), state, 7, {"a": "b" * 100})
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
