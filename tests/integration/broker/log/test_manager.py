from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.errors import (
    InvalidTopicError,
    LogLockedError,
    ShuttingDownError,
    StorageError,
    TopicExistsError,
    WrongPartitionError,
)
from broker.log.data_directory import CHECKPOINT_NAME
from broker.log.format import segment_name
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.codec import encode
from broker.topic import MAX_PARTITIONS, TopicPartition
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import ManagerFactory, abandon, content
from tests.support.waiting import wait_until

ENTRY = encode([b"ab"])
MARKER = ".pylog_clean_shutdown"


def test_open_when_directory_is_new_then_empty_and_marked_in_use(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    assert manager.open() == []
    assert (manager.topics.names(), manager.table.all(), manager.loaded.was_recovered) == (
        [],
        [],
        False,
    )
    assert not (tmp_path / "data" / ".pylog_clean_shutdown").exists()


def test_close_when_all_is_flushed_then_marked_clean_and_reopened_without_recovery(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    manager.open()
    manager.creation.get_or_create("events", 0).append(ENTRY * 2, 2)
    manager.close()
    assert (tmp_path / "data" / ".pylog_clean_shutdown").exists()
    manager = make_manager()
    assert manager.open() == []
    assert not manager.loaded.was_recovered
    log = manager.table.get("events", 0)
    assert log is not None
    assert content(log) == ENTRY * 2
    assert log.partition == TopicPartition("events", 0, 0)
    assert log.directory.name == "events_0"


def test_open_when_killed_then_tail_is_cut_and_reported(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    abandon(manager)
    path = tmp_path / "data" / "events_0" / segment_name(0)
    path.write_bytes(ENTRY + b"torn")
    manager = make_manager()
    (recovery,) = manager.open()
    assert (recovery.partition, recovery.file) == (TopicPartition("events", 0, 0), path)
    assert (recovery.valid_end, recovery.cut_bytes) == (12, 4)
    assert recovery.side_file.read_bytes() == b"torn"
    assert manager.loaded.was_recovered
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY


def test_open_when_clean_then_nothing_is_scanned(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    manager.open()
    manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    manager.close()
    with (tmp_path / "data" / "events_0" / segment_name(0)).open("ab") as file:
        file.write(b"torn")
    assert make_manager().open() == []


@pytest.mark.parametrize("has_checkpoint", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
def test_open_when_segment_is_missing_then_offline_until_it_is_back(
    make_manager: ManagerFactory, tmp_path: Path, is_clean: bool, has_checkpoint: bool
) -> None:
    manager = make_manager(segment_bytes=1)
    manager.open()
    for topic in ("events", "others"):
        for _ in range(3):
            manager.creation.get_or_create(topic, 0).append(ENTRY, 1)
    manager.close()
    data = tmp_path / "data"
    missing, kept = data / "events_0" / segment_name(12), tmp_path / "kept"
    missing.rename(kept)
    if not is_clean:
        (data / MARKER).unlink()
    if not has_checkpoint:
        (data / CHECKPOINT_NAME).unlink()
    for _ in range(2):  # neither start may cut what is behind the gap
        manager = make_manager(segment_bytes=1)
        manager.open()
        assert [log.partition.topic for log in manager.table.all()] == ["others"]
        assert manager.topics.names() == ["events", "others"]
        with pytest.raises(StorageError, match=r"events\[0-0\] is offline: a gap in events\[0-0\]"):
            manager.creation.get_or_create("events", 0)
        manager.close()
        assert not (data / MARKER).exists()
    kept.rename(missing)
    manager = make_manager(segment_bytes=1)
    manager.open()
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 3
    assert manager.table.errors() == {}


def test_choose_partition_when_one_is_offline_then_another(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    directory = tmp_path / "data" / "events_0"
    directory.mkdir(parents=True)
    for base in (0, 5):
        (directory / segment_name(base)).write_bytes(b"x")
    manager = make_manager(num_partitions=2)
    manager.open()
    assert {manager.table.choose_partition("events") for _ in range(50)} == {1}
    assert {manager.table.choose_partition("others") for _ in range(100)} == {0, 1}


def test_delete_topic_when_a_partition_is_offline_then_it_can_be_made_again(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    directory = tmp_path / "data" / "events_0"
    directory.mkdir(parents=True)
    for base in (0, 5):
        (directory / segment_name(base)).write_bytes(b"x")
    manager = make_manager()
    manager.open()
    manager.deletions.delete_topic("events")
    assert (manager.topics.names(), manager.table.errors()) == ([], {})
    assert manager.creation.get_or_create("events", 0).append(ENTRY, 1).base_offset == 0


def test_open_when_directory_has_no_segment_then_log_starts_at_0(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    (tmp_path / "data" / "events_0").mkdir(parents=True)
    manager = make_manager()
    manager.open()
    assert manager.creation.get_or_create("events", 0).append(ENTRY, 1).base_offset == 0


def test_open_when_another_manager_is_open_then_locked(make_manager: ManagerFactory) -> None:
    make_manager().open()
    with pytest.raises(LogLockedError, match=rf"process {os.getpid()} \(broker 0\)"):
        make_manager().open()


def test_open_when_checkpointed_then_only_what_follows_is_scanned(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY * 2, 2)
    log.flush()
    manager.checkpoints.write()
    abandon(manager)
    path = tmp_path / "data" / "events_0" / segment_name(0)
    path.write_bytes(ENTRY[:-1] + b"?" + ENTRY * 2 + b"torn")
    (recovery,) = make_manager().open()
    assert (recovery.valid_end, recovery.cut_bytes) == (36, 4)


def test_checkpoint_when_reads_come_before_flushes_then_says_what_is_flushed(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager(flush_before_read=False, flush_interval_ms=3_600_000)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    assert log.high_watermark == len(ENTRY)
    manager.checkpoints.write()
    path = tmp_path / "data" / "recovery-point-checkpoint"
    assert "events 0 0 " in path.read_text()


def test_open_when_log_is_younger_than_the_checkpoint_then_gap_is_cut(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager(segment_bytes=1)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY * 2, 2)
    log.append(ENTRY, 1)
    abandon(manager)
    (tmp_path / "data" / "events_0" / segment_name(0)).write_bytes(ENTRY)
    assert [one.valid_end for one in make_manager().open()] == [24]


def test_open_when_restarted_then_roll_age_goes_on(
    make_manager: ManagerFactory, clock: FakeClock
) -> None:
    manager = make_manager(roll_ms=10_000)
    manager.open()
    manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    clock.advance(6)
    manager.close()
    manager = make_manager(roll_ms=10_000)
    manager.open()
    clock.advance(5)
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    assert len(log.segments.all) == 2


def test_open_when_checkpoint_is_older_than_the_segment_then_its_age_is_not_used(
    make_manager: ManagerFactory, tmp_path: Path, clock: FakeClock
) -> None:
    manager = make_manager(segment_bytes=1)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    log.flush()
    manager.checkpoints.write()
    log.append(ENTRY, 1)
    log.append(ENTRY, 1)
    abandon(manager)
    os.utime(tmp_path / "data" / "events_0" / segment_name(24), ns=(0, 5_000_000))
    manager = make_manager(segment_bytes=1)
    manager.open()
    assert manager.creation.get_or_create("events", 0).active_since_ms == 5


def test_start_when_running_then_checkpoint_is_written_now_and_then(tmp_path: Path) -> None:
    config = BrokerConfig(
        data_dirs=(tmp_path / "data",), flush_interval_ms=5, checkpoint_interval_ms=5
    )
    manager = LogManager(config, SystemClock())
    manager.open()
    manager.start()
    try:
        manager.creation.get_or_create("events", 0).append(ENTRY, 1)
        path = tmp_path / "data" / "recovery-point-checkpoint"
        wait_until(lambda: "events 0 12 " in path.read_text(), "the checkpoint")
    finally:
        manager.close()


def test_close_when_flush_fails_then_not_marked_clean(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    disk = FaultyDisk()
    manager = make_manager(disk=disk.as_disk())
    manager.open()
    manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    disk.sync_errno = errno.EIO
    manager.close()
    assert not (tmp_path / "data" / ".pylog_clean_shutdown").exists()
    manager = make_manager()
    manager.open()
    assert manager.loaded.was_recovered


def test_close_when_no_controller_knows_of_a_loss_then_next_start_is_not_clean_either(
    make_manager: ManagerFactory,
) -> None:
    for is_loss_known in (False, False, True):
        manager = make_manager()
        manager.open()
        assert not manager.loaded.was_clean
        log = manager.creation.open_replica(TopicPartition("events", 7, 0), "created")
        log.begin_epoch(log.epochs.last_epoch + 1, log.log_end_offset)
        manager.is_loss_known = is_loss_known
        manager.close()

    manager = make_manager()
    manager.open()
    assert manager.loaded.was_clean


def test_close_when_closed_before_then_nothing(make_manager: ManagerFactory) -> None:
    manager = make_manager()
    manager.open()
    manager.close()
    manager.close()
    with pytest.raises(ShuttingDownError):
        manager.creation.get_or_create("events", 0)


def test_get_or_create_when_index_is_out_of_range_then_wrong_partition(
    make_manager: ManagerFactory,
) -> None:
    manager = make_manager(num_partitions=2)
    manager.open()
    manager.creation.get_or_create("events", 1)
    for index in (-1, 2):
        with pytest.raises(WrongPartitionError, match="has no partition"):
            manager.creation.get_or_create("events", index)
    assert [log.partition.name for log in manager.table.all()] == ["0-1"]


@pytest.mark.parametrize("topic", ["", "a/b", "..", "x" * 256, "ü" * 200])
def test_get_or_create_when_topic_is_illegal_then_invalid_topic(
    make_manager: ManagerFactory, topic: str
) -> None:
    manager = make_manager()
    manager.open()
    with pytest.raises(InvalidTopicError):
        manager.creation.get_or_create(topic, 0)
    assert manager.topics.names() == []


def test_get_or_create_when_directory_cannot_be_made_then_storage_error(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = make_manager()
    manager.open()
    (tmp_path / "data" / "events_0").touch()
    with pytest.raises(StorageError, match=r"cannot create events\[0-0\]"):
        manager.creation.get_or_create("events", 0)


def test_get_or_create_when_many_threads_ask_then_one_log(make_manager: ManagerFactory) -> None:
    manager = make_manager()
    manager.open()
    found: list[Log] = []
    threads = [
        threading.Thread(target=lambda: found.append(manager.creation.get_or_create("events", 0)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_on_new_topic_when_topic_appears_then_told_once(make_manager: ManagerFactory) -> None:
    manager = make_manager(num_partitions=2)
    told: list[str] = []
    manager.topics.on_new = told.append
    manager.open()
    manager.creation.get_or_create("events", 0)
    manager.creation.get_or_create("events", 1)
    manager.creation.create_topic("orders", 3)
    manager.creation.get_or_create("orders", 0)
    assert told == ["events", "orders"]


def test_partition_count_when_set_in_several_places_then_the_strongest_counts(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    (tmp_path / "data" / "found_5").mkdir(parents=True)
    manager = make_manager(num_partitions=2, topic_partition_counts={"mapped": 4, "found": 3})
    manager.open()
    manager.creation.create_topic("explicit", 7)
    counts = {topic: manager.topics.partition_count(topic) for topic in ("x", "mapped", "found")}
    assert counts == {"x": 2, "mapped": 4, "found": 6}
    assert manager.topics.partition_count("explicit") == 7


def test_create_topic_when_restarted_then_count_is_still_there(
    make_manager: ManagerFactory,
) -> None:
    manager = make_manager()
    manager.open()
    manager.creation.create_topic("events", 3)
    manager.close()
    manager = make_manager()
    manager.open()
    assert manager.topics.names() == ["events"]
    assert manager.creation.get_or_create("events", 2).log_end_offset == 0


def test_create_topic_when_it_exists_then_refused(make_manager: ManagerFactory) -> None:
    manager = make_manager()
    manager.open()
    manager.creation.create_topic("explicit", 3)
    manager.creation.get_or_create("implicit", 0)
    for topic in ("explicit", "implicit"):
        with pytest.raises(TopicExistsError, match=topic):
            manager.creation.create_topic(topic, 2)


@pytest.mark.parametrize(
    ("topic", "count", "error"),
    [
        ("a/b", 1, InvalidTopicError),
        ("events", 0, WrongPartitionError),
        ("events", MAX_PARTITIONS + 1, WrongPartitionError),
    ],
)
def test_create_topic_when_illegal_then_refused(
    make_manager: ManagerFactory, topic: str, count: int, error: type[Exception]
) -> None:
    manager = make_manager()
    manager.open()
    with pytest.raises(error):
        manager.creation.create_topic(topic, count)
    assert manager.topics.names() == []


def test_flush_all_when_one_log_fails_then_the_others_are_flushed(
    make_manager: ManagerFactory,
) -> None:
    disk = FaultyDisk(sync_errno=errno.EIO)
    manager = make_manager(disk=disk.as_disk())
    manager.open()
    bad, good = manager.creation.get_or_create("bad", 0), manager.creation.get_or_create("good", 0)
    bad.append(ENTRY, 1)
    with pytest.raises(StorageError):
        bad.flush()
    disk.sync_errno = 0
    good.append(ENTRY, 1)
    with pytest.raises(StorageError, match=r"cannot flush bad\[0-0\]"):
        manager.flush_all()
    assert good.high_watermark == 12


def test_flush_stats_when_flushed_then_counted(make_manager: ManagerFactory) -> None:
    manager = make_manager()
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    log.flush()
    assert manager.flush_stats.count == 1
    assert log.last_flush_ms == log.last_append_ms


def test_apply_retention_when_topic_has_its_own_time_then_that_counts(
    make_manager: ManagerFactory, clock: FakeClock
) -> None:
    manager = make_manager(retention_ms=100_000, topic_retention_ms={"short": 1_000})
    manager.open()
    logs = [manager.creation.get_or_create(topic, 0) for topic in ("short", "long")]
    for log in logs:
        log.append(ENTRY, 1)
    clock.advance(50)
    manager.retention.apply()
    assert [log.log_start_offset for log in logs] == [12, 0]


def test_retention_when_it_has_times_of_day_then_is_applied_at_those_only(
    make_manager: ManagerFactory, clock: FakeClock
) -> None:
    clock.jump(7 - clock.time_ms() / 1000 % 60)
    due = time.localtime(clock.time_ms() / 1000 + 54)
    times = f"{due.tm_hour:02}:{due.tm_min:02}"
    manager = make_manager(retention_ms=1_000, cleanup_interval_ms=1, cleanup_times=times)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    clock.advance(50)  # 3 s are left
    manager.start()
    try:
        assert log.log_start_offset == 0
        wait_until(lambda: log.log_start_offset == 12, "the retention of that time")
    finally:
        manager.close()


TEN_DAYS_S = 10 * 86_400


def test_apply_retention_when_the_clock_may_be_wrong_then_nothing_is_removed(
    make_manager: ManagerFactory, clock: FakeClock
) -> None:
    manager = make_manager(retention_ms=1_000, retention_bytes=1)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    clock.advance(50)
    manager.retention.clock_doubt = "the clock is wrong"
    manager.retention.apply()
    assert (manager.retention.waits, log.log_start_offset) == ("the clock is wrong", 0)
    manager.retention.clock_doubt, manager.retention.awaits_clocks = None, True
    manager.retention.apply()
    assert (manager.retention.waits, log.log_start_offset) == (None, 0)
    manager.retention.awaits_clocks = False
    manager.retention.apply()
    assert log.log_start_offset == 12


def test_retention_when_asked_what_it_keeps_then_goes_by_age_and_size_up_to_the_offset(
    make_manager: ManagerFactory, clock: FakeClock
) -> None:
    manager = make_manager(
        segment_bytes=20,
        retention_ms=1_000_000,
        topic_retention_bytes={"small": 12},
    )
    manager.open()
    log, small = (manager.creation.get_or_create(topic, 0) for topic in ("events", "small"))
    for _ in range(4):  # two in a segment
        log.append(ENTRY, 1)
        small.append(ENTRY, 1)
        clock.advance(100)
    keeps = manager.retention.keeps
    assert (keeps(log, 0, 48), keeps(log, 24, 48)) == (False, True)
    assert [keeps(small, 24, end) for end in (35, 36)] == [True, False]

    clock.advance(650)  # the first segment goes within a minute
    assert [keeps(log, offset, 48) for offset in (24, 36, 48)] == [False, True, True]
    clock.advance(100)  # and now the first message of the second
    assert [keeps(log, offset, 48) for offset in (24, 36, 48)] == [False, False, True]
    clock.advance(100)
    assert not keeps(log, 48, 48)


def test_apply_retention_when_the_clock_jumps_ahead_then_ages_go_on_by_the_time_that_passes(
    make_manager: ManagerFactory, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    manager = make_manager(retention_ms=100_000)
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    clock.jump(TEN_DAYS_S)
    clock.advance(90)
    for _ in range(2):
        manager.retention.apply()
    assert log.log_start_offset == 0
    assert caplog.text.count("the clock has jumped 10 days, 0:00:00 ahead: segments are kept") == 1
    assert manager.retention.waits is not None
    clock.advance(20)
    manager.retention.apply()
    assert log.log_start_offset == 12


def test_apply_retention_when_the_clock_is_back_then_nothing_waits_any_more(
    make_manager: ManagerFactory, clock: FakeClock
) -> None:
    manager = make_manager()
    manager.open()
    for seconds, waits in ((3600, True), (-3600, False), (50, False), (-3600, False), (50, False)):
        clock.jump(seconds)
        manager.retention.apply()
        assert (manager.retention.waits is not None) is waits


def test_start_when_running_then_appends_become_visible_and_close_ends_the_threads(
    tmp_path: Path,
) -> None:
    config = BrokerConfig(data_dirs=(tmp_path / "data",), flush_interval_ms=5)
    threads = set(threading.enumerate())
    manager = LogManager(config, SystemClock())
    manager.open()
    manager.start()
    try:
        log = manager.creation.get_or_create("events", 0)
        log.append(ENTRY, 1)
        wait_until(lambda: log.high_watermark == 12, "the flush by time")
        log.append(ENTRY, 1, flush_now=True)
        wait_until(lambda: log.high_watermark == 24, "the flush on request")
    finally:
        manager.close()
    names = {thread.name for thread in set(threading.enumerate()) - threads}
    assert not names & {"checkpoint", "retention", "flusher-0"}
    assert (tmp_path / "data" / ".pylog_clean_shutdown").exists()


FULL_DISK_CODE = """
import resource, signal, sys
from pathlib import Path
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.errors import StorageError
from broker.log.manager import LogManager
from broker.protocol.codec import encode

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
manager = LogManager(BrokerConfig(data_dirs=(Path(sys.argv[1]),)), SystemClock())
manager.open()
log = manager.creation.get_or_create("events", 0)
log.append(encode([b"x" * 800]), 1)
try:
    log.append(encode([b"y" * 800]), 1)
except StorageError as error:
    print(error)
assert log.append(encode([b"z" * 50]), 1).base_offset == 810, log.log_end_offset
log.flush()
assert log.high_watermark == 870
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
manager.close()
"""


def test_append_when_file_size_limit_is_hit_then_refused_cut_and_goes_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK_CODE, str(tmp_path)],
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "cannot append events[0-0] at offset 810" in done.stdout
    assert "File too large" in done.stdout
    stored = (tmp_path / "events_0" / segment_name(0)).read_bytes()
    assert stored == encode([b"x" * 800, b"z" * 50])
