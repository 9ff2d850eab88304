"""Several data directories: where logs go, what each keeps, and what the loss of one costs."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker.errors import ConfigError, LogCorruptError, LogLockedError, StorageError
from broker.log.data_directory import (
    CHECKPOINT_NAME,
    PLACES_NAME,
    DataDirectory,
    read_recovery_points,
)
from broker.log.format import ENTRIES, segment_name
from broker.log.manager import LogManager
from broker.protocol.codec import encode
from broker.topic import TopicPartition
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import ManagerFactory, abandon, content

ENTRY = encode([b"ab"])
MARKER = ".pylog_clean_shutdown"

Open = Callable[..., LogManager]


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path, ...]:
    return tmp_path / "a", tmp_path / "b", tmp_path / "c"


@pytest.fixture
def open_manager(make_manager: ManagerFactory, dirs: tuple[Path, ...]) -> Open:
    def open_manager(**settings: object) -> LogManager:
        manager = make_manager(**{"data_dirs": dirs, "num_partitions": 6, **settings})
        manager.open()
        return manager

    return open_manager


def fill(manager: LogManager, topic: str = "events", count: int = 6) -> None:
    for index in range(count):
        manager.creation.get_or_create(topic, index).append(ENTRY * (index + 1), index + 1)
    manager.flush_all()


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*_[0-9]*")}


def hide(directory: Path) -> Path:
    """Leave an empty directory in the place of a disk, as when that is not mounted."""
    hidden = directory.with_name(f"{directory.name}-hidden")
    directory.rename(hidden)
    directory.mkdir()
    return hidden


def break_off(directory: Path) -> Path:
    """Have a directory that cannot be used, also for root."""
    hidden = directory.with_name(f"{directory.name}-hidden")
    directory.rename(hidden)
    directory.touch()
    return hidden


def bring_back(directory: Path, hidden: Path) -> None:
    if directory.is_dir():
        shutil.rmtree(directory)
    else:
        directory.unlink()
    hidden.rename(directory)


def test_new_log_when_directories_have_other_numbers_of_logs_then_in_that_with_the_fewest(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    fill(manager)
    assert [names(one) for one in dirs] == [
        {"events_0", "events_3"},
        {"events_1", "events_4"},
        {"events_2", "events_5"},
    ]
    fill(manager, "orders", 1)
    manager.deletions.delete_topic("events")
    fill(manager, "audit", 2)
    assert [names(one) for one in dirs] == [{"orders_0"}, {"audit_0"}, {"audit_1"}]


def test_open_when_closed_before_then_all_logs_are_back_each_directory_with_its_own(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    fill(manager)
    manager.creation.create_topic("audit", 9)
    ids = [manager.topics.creation_id(topic) for topic in ("events", "audit")]
    token = manager.directories.creator_token("host")
    manager.close()
    assert all((one / MARKER).exists() for one in dirs)
    for one in dirs:
        found = read_recovery_points(one, 0)
        assert found is not None
        assert {f"{key.topic}_{key.index}" for key in found} == names(one)
    manager = open_manager()
    assert not manager.loaded.was_recovered
    assert manager.topics.names() == ["audit", "events"]
    assert [manager.topics.creation_id(topic) for topic in ("events", "audit")] == ids
    assert manager.directories.creator_token("other") == token
    assert [content(manager.creation.get_or_create("events", n)) for n in range(6)] == [
        ENTRY * (n + 1) for n in range(6)
    ]


def test_open_when_killed_then_each_directory_is_recovered_by_its_own_marker_and_checkpoint(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    fill(manager, count=3)
    manager.close()
    (dirs[1] / MARKER).unlink()
    for number, one in enumerate(dirs):
        with (one / f"events_{number}" / segment_name(0)).open("ab") as file:
            file.write(b"torn")
    manager = open_manager()
    assert manager.loaded.was_recovered
    assert manager.creation.get_or_create("events", 1).log_end_offset == 2 * len(ENTRY)
    assert manager.creation.get_or_create("events", 0).log_end_offset == len(ENTRY) + 4


@pytest.mark.parametrize("how", ["same", "link", "relative", "dots"])
def test_open_when_a_directory_is_named_twice_then_refused(
    make_manager: ManagerFactory, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = tmp_path / "a"
    first.mkdir()
    (tmp_path / "link").symlink_to(first)
    second = {
        "same": first,
        "link": tmp_path / "link",
        "relative": Path("a"),
        "dots": tmp_path / "x" / ".." / "a",
    }[how]
    manager = make_manager(data_dirs=(first, second))
    with pytest.raises(ConfigError, match="names one directory twice"):
        manager.open()
    assert list(first.iterdir()) == []


def test_open_when_one_directory_is_inside_another_then_refused(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="cannot contain another"):
        make_manager(data_dirs=(tmp_path / "a", tmp_path / "a" / "events_0")).open()


def test_open_when_a_partition_is_in_two_directories_then_refused_and_nothing_changed(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    fill(manager)
    manager.close()
    shutil.copytree(dirs[0] / "events_0", dirs[1] / "events_0")
    with pytest.raises(LogCorruptError, match=r"events\[0-0\] is in two data dir"):
        open_manager()
    assert all((one / MARKER).exists() for one in dirs)
    shutil.rmtree(dirs[0] / "events_0")
    assert content(open_manager().creation.get_or_create("events", 0)) == ENTRY


def test_open_when_one_directory_is_in_use_or_of_another_broker_then_refused_and_none_is_locked(
    open_manager: Open, make_manager: ManagerFactory, dirs: tuple[Path, ...]
) -> None:
    other = make_manager(data_dirs=(dirs[1],))
    other.open()
    with pytest.raises(LogLockedError, match="in use by process"):
        open_manager()
    other.close()
    with pytest.raises(LogLockedError, match="belongs to broker 0, not to broker 3"):
        open_manager(broker_id=3, data_dirs=(dirs[2], dirs[1]))
    make_manager(data_dirs=(dirs[2],), broker_id=3).open()


def test_open_when_directories_are_of_two_clusters_then_refused(
    open_manager: Open, make_manager: ManagerFactory, dirs: tuple[Path, ...]
) -> None:
    for directory in dirs[:2]:
        manager = make_manager(data_dirs=(directory,))
        manager.open()
        manager.directories.join_cluster(f"cluster-{directory.name}")
        manager.close()
    with pytest.raises(LogLockedError, match=r"cluster-a, and .* to cluster cluster-b"):
        open_manager()


@pytest.mark.parametrize("lose", [hide, break_off])
@pytest.mark.parametrize("number", [0, 2])
def test_open_when_a_directory_is_lost_then_its_partitions_are_offline_until_it_is_back(
    open_manager: Open, dirs: tuple[Path, ...], number: int, lose: Callable[[Path], Path]
) -> None:
    manager = open_manager()
    fill(manager)
    manager.creation.create_topic("audit", 9)
    manager.directories.join_cluster("the-cluster")
    token = manager.directories.creator_token("host")
    ids = [manager.topics.creation_id(topic) for topic in ("events", "audit")]
    manager.close()
    hidden = lose(dirs[number])

    manager = open_manager()
    assert sorted(one.index for one in manager.table.errors()) == [number, number + 3]
    with pytest.raises(StorageError, match=rf"events\[0-{number}\] is offline: .*{dirs[number]}"):
        manager.creation.get_or_create("events", number)
    assert {manager.table.choose_partition("events") for _ in range(99)}.isdisjoint(
        {number, number + 3}
    )
    assert (manager.topics.partition_count("audit"), manager.directories.cluster_id()) == (
        9,
        "the-cluster",
    )
    assert manager.directories.creator_token("other") == token
    assert [manager.topics.creation_id(topic) for topic in ("events", "audit")] == ids
    fill(manager, "orders", 2)  # go to the others
    states = manager.directories.states()
    assert [one.failure is not None for one in states] == [n == number for n in range(3)]
    assert states[number].log_count == 2
    manager.close()

    bring_back(dirs[number], hidden)
    manager = open_manager()
    assert manager.table.errors() == {}
    assert not manager.loaded.was_recovered
    assert [content(manager.creation.get_or_create("events", n)) for n in range(6)] == [
        ENTRY * (n + 1) for n in range(6)
    ]
    assert "orders" in manager.topics


def test_open_when_no_directory_can_be_used_then_refused(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    for one in dirs:
        one.touch()
    with pytest.raises(ConfigError, match="make it writable"):
        open_manager()


def test_open_when_a_lost_directory_is_no_longer_named_then_its_partitions_start_again(
    open_manager: Open, dirs: tuple[Path, ...], caplog: pytest.LogCaptureFixture
) -> None:
    manager = open_manager()
    fill(manager)
    manager.close()
    shutil.rmtree(dirs[1])
    open_manager(data_dirs=(dirs[0], dirs[2])).close()
    assert f"log.dirs no longer names {dirs[1]}" in caplog.text
    manager = open_manager()  # the new disk
    assert manager.table.errors() == {}
    assert manager.creation.get_or_create("events", 1).append(ENTRY, 1).base_offset == 0
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY


def test_delete_topic_when_a_directory_is_lost_then_its_logs_there_are_deleted_once_it_is_back(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    fill(manager)
    manager.creation.create_topic("audit", 9)
    manager.close()
    hidden = break_off(dirs[1])
    manager = open_manager()
    manager.deletions.delete_topic("events")
    manager.deletions.delete_topic("audit")
    assert manager.table.errors() == {}
    fill(manager, count=4)  # a new topic of that name
    new_id = manager.topics.creation_id("events")
    manager.close()
    bring_back(dirs[1], hidden)
    manager = open_manager()
    assert (manager.topics.names(), manager.topics.creation_id("events")) == (
        ["events"],
        new_id,
    )
    assert [content(manager.creation.get_or_create("events", n)) for n in range(4)] == [
        ENTRY * (n + 1) for n in range(4)
    ]
    assert names(dirs[1]) == set()


def test_open_when_a_log_was_put_into_another_directory_by_hand_then_it_is_served_from_there(
    open_manager: Open, dirs: tuple[Path, ...], caplog: pytest.LogCaptureFixture
) -> None:
    manager = open_manager()
    fill(manager)
    manager.close()
    (dirs[0] / "events_0").rename(dirs[2] / "events_0")
    manager = open_manager()
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY
    assert "is gone" not in caplog.text


def test_open_when_another_directory_is_added_then_the_old_one_serves_as_before(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager(data_dirs=dirs[:1])
    fill(manager)
    manager.creation.create_topic("audit", 9)
    manager.close()
    assert not (dirs[0] / PLACES_NAME).exists()
    manager = open_manager()
    assert manager.topics.partition_count("audit") == 9
    assert content(manager.creation.get_or_create("events", 5)) == ENTRY * 6
    fill(manager, "orders", 6)
    assert [len(names(one)) for one in dirs] == [6, 3, 3]


class _FailingDirectory(FaultyDisk):
    """A disk whose data cannot be made durable in one directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory: Path | None = directory
        self.failing = False

    def sync(self, fd: int) -> None:
        path = str(Path(f"/proc/self/fd/{fd}").readlink())
        if self.failing and path.startswith(f"{self.directory}/"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)


def test_directory_when_its_disk_fails_then_its_partitions_are_offline_and_others_go_on(
    open_manager: Open, dirs: tuple[Path, ...], caplog: pytest.LogCaptureFixture
) -> None:
    disk = _FailingDirectory(dirs[1])
    manager = open_manager(disk=disk.as_disk())
    fill(manager)
    lost = manager.creation.get_or_create("events", 1)
    disk.failing = True
    lost.append(ENTRY, 1)
    with pytest.raises(StorageError):
        lost.flush()
    manager.check_directories()
    assert sorted(one.index for one in manager.table.errors()) == [1, 4]
    assert f"data directory {dirs[1]} has failed: Input/output error" in caplog.text
    with pytest.raises(StorageError, match=r"events\[0-4\] is offline"):
        manager.creation.get_or_create("events", 4)
    with pytest.raises(StorageError):
        lost.append(ENTRY, 1)
    manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    fill(manager, "orders", 2)
    assert names(dirs[1]) == {"events_1", "events_4"}
    manager.close()
    assert [(one / MARKER).exists() for one in dirs] == [True, False, True]

    manager = open_manager()
    assert manager.table.errors() == {}
    assert content(manager.creation.get_or_create("events", 4)) == ENTRY * 5
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 2


def test_directory_when_one_log_alone_fails_then_the_others_there_go_on(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    disk = _FailingDirectory(dirs[1] / "events_1")
    manager = open_manager(disk=disk.as_disk())
    fill(manager)
    disk.failing = True
    bad = manager.creation.get_or_create("events", 1)
    bad.append(ENTRY, 1)
    with pytest.raises(StorageError):
        bad.flush()
    manager.check_directories()
    assert manager.table.errors() == {}
    manager.creation.get_or_create("events", 4).append(ENTRY, 1)


def test_directory_when_it_is_gone_then_offline_and_the_last_one_stops_the_broker(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    failures: list[StorageError] = []
    manager.on_no_directory = failures.append
    fill(manager)
    for number, one in enumerate(dirs):
        assert failures == []
        hide(one) if number else break_off(one)
        manager.check_directories()
        assert len(manager.table.errors()) == 2 * (number + 1)
    assert str(dirs[2]) in str(failures[0])
    with pytest.raises(StorageError, match="no data directory"):
        manager.creation.get_or_create("orders", 0)


def test_directory_when_full_then_it_stays_in_use(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    disk = FaultyDisk()
    manager = open_manager(disk=disk.as_disk())
    fill(manager)
    disk.room_bytes = 0
    disk.sync_errno = errno.ENOSPC
    with pytest.raises(StorageError):
        manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    manager.check_directories()
    assert manager.table.errors() == {}


def test_checkpoint_when_a_directory_refuses_it_then_the_others_have_theirs(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    fill(manager)
    (dirs[0] / CHECKPOINT_NAME).unlink()
    (dirs[0] / CHECKPOINT_NAME).mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        manager.checkpoints.write()
    assert {str(one) for one in read_recovery_points(dirs[1], 0) or ()} == {
        "events[0-1]",
        "events[0-4]",
    }
    (dirs[0] / CHECKPOINT_NAME).rmdir()


def test_directory_when_the_checkpoint_of_its_replicas_is_refused_then_its_disk_is_tried(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    disk = _FailingDirectory(dirs[0])
    manager = open_manager(disk=disk.as_disk())
    partition = TopicPartition("events", 7, 0)
    log = manager.creation.open_replica(partition, "id")
    (log.directory.parent / CHECKPOINT_NAME).mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        manager.checkpoints.write()
    manager.check_directories()
    assert manager.table.errors() == {}
    disk.failing = True
    manager.check_directories()
    assert list(manager.table.errors()) == [partition]


def test_open_when_a_directory_with_replicas_is_lost_then_they_are_offline_until_it_is_back(
    open_manager: Open, dirs: tuple[Path, ...]
) -> None:
    manager = open_manager()
    replicas = [TopicPartition("events", 7, index) for index in range(3)]
    for replica in replicas:
        log = manager.creation.open_replica(replica, "id")
        log.append_copied(ENTRIES.copied(ENTRY, replica, 0), 0)
    assert [len(list(one.glob("replicas/7/*_*"))) for one in dirs] == [1, 1, 1]
    manager.close()
    hidden = break_off(dirs[1])
    manager = open_manager()
    assert [manager.table.find(one) is None for one in replicas] == [False, True, False]
    with pytest.raises(StorageError, match=r"events\[7-1\] is offline"):
        manager.creation.open_replica(replicas[1], "id")
    manager.close()
    bring_back(dirs[1], hidden)
    manager = open_manager()
    logs = [manager.table.find(one) for one in replicas]
    assert [log is not None and log.log_end_offset for log in logs] == [len(ENTRY)] * 3


def test_replicas_when_threads_open_them_side_by_side_then_all_are_there_after_a_crash(
    open_manager: Open,
) -> None:
    manager = open_manager()
    replicas = [TopicPartition("orders", home, index) for home in (0, 7, 8) for index in range(8)]
    with ThreadPoolExecutor(8) as threads:
        logs = list(threads.map(lambda one: manager.creation.open_replica(one, "id"), replicas))
    for log in logs:
        log.begin_epoch(0, 0)
        log.accept_appends()
        log.append(ENTRY, 1)
        log.flush()
    abandon(manager)

    again = open_manager()

    found = [again.table.find(one) for one in replicas]
    assert all(log is not None and log.is_replicated for log in found)
    assert {log.log_end_offset for log in found if log is not None} == {len(ENTRY)}
    assert {again.table.replica_creation_ids[one] for one in replicas} == {"id"}


def test_term_when_no_directory_can_store_the_incarnation_then_no_later_start_knows_it(
    make_manager: ManagerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: DataDirectory, incarnation: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    manager = make_manager()
    manager.open()
    manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    abandon(manager)
    with monkeypatch.context() as full:
        full.setattr(DataDirectory, "write_incarnation", refuse)
        manager = make_manager()
        manager.open()
    log = manager.creation.get_or_create("events", 0)
    log.append(ENTRY, 1)
    term = log.incarnations.term
    abandon(manager)
    manager = make_manager()
    manager.open()
    log = manager.creation.get_or_create("events", 0)
    assert log.incarnations.end_of_term(term, log.log_end_offset) == -1
