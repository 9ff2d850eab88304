"""Topics that are deleted: what becomes of their logs, also when the disk refuses or we crash."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from broker.errors import StorageError, UnknownTopicError
from broker.log.data_directory import DELETED_NAME, read_recovery_points
from broker.log.deletion import DirectoryDeletions
from broker.log.manager import LogManager
from broker.protocol.codec import encode
from tests.support.log_fixtures import ManagerFactory, abandon, content
from tests.support.waiting import wait_until

ENTRY = encode([b"ab"])


def opened(make_manager: ManagerFactory) -> LogManager:
    """A manager with two partitions of `events` and one of `orders`, which has another count."""
    manager = make_manager(num_partitions=2)
    manager.open()
    manager.creation.create_topic("orders", 3)
    for topic, index in (("events", 0), ("events", 1), ("orders", 0)):
        manager.creation.get_or_create(topic, index).append(ENTRY, 1)
    manager.flush_all()
    return manager


def log_directories(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "data").glob("*_*"))


def test_delete_topic_when_there_then_its_logs_are_gone_and_others_are_not(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager)
    told: list[str] = []
    manager.topics.on_deleted = told.append
    manager.deletions.delete_topic("events")
    assert (manager.topics.names(), told) == (["orders"], ["events"])
    assert [str(log.partition) for log in manager.table.all()] == ["orders[0-0]"]
    assert log_directories(tmp_path) == ["orders_0"]
    assert list(read_recovery_points(tmp_path / "data", 0) or {}) == [("orders", 0, 0)]


def test_delete_topic_when_it_had_a_count_of_its_own_then_that_is_gone_after_a_restart_too(
    make_manager: ManagerFactory,
) -> None:
    manager = opened(make_manager)
    manager.creation.create_topic("audit", 5)
    manager.deletions.delete_topic("orders")
    assert manager.topics.partition_count("orders") == 2
    manager.close()
    manager = make_manager(num_partitions=2)
    manager.open()
    assert (manager.topics.names(), manager.topics.partition_count("audit")) == (
        ["audit", "events"],
        5,
    )


def test_delete_topic_when_made_again_then_starts_at_zero(make_manager: ManagerFactory) -> None:
    manager = opened(make_manager)
    manager.deletions.delete_topic("events")
    log = manager.creation.get_or_create("events", 0)
    assert (log.log_end_offset, *log.append(ENTRY, 1)) == (0, 0, 12)


def test_delete_topic_when_files_are_moved_then_removed_in_the_background(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager)
    manager.deletions.delete_topic("events")
    wait_until(lambda: not list((tmp_path / "data" / ".deleted").iterdir()), "the removal")


def test_delete_topic_when_a_removal_has_only_to_remove_an_empty_directory_then_leaves_it_empty(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    opened(make_manager)
    emptied = tmp_path / "data" / DELETED_NAME / "0"
    emptied.mkdir()
    deletions = DirectoryDeletions(tmp_path / "data")
    deletions.move_aside([tmp_path / "data" / "events_0"])
    assert list(emptied.iterdir()) == []


def test_delete_topic_when_many_do_at_once_then_all_files_are_removed_without_an_error(
    make_manager: ManagerFactory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = make_manager(num_partitions=8)
    manager.open()

    def make_and_delete(topic: str) -> None:
        for _ in range(40):
            for index in range(8):
                manager.creation.get_or_create(topic, index)
            manager.deletions.delete_topic(topic)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(make_and_delete, ["events", "orders", "audit"]))
    wait_until(lambda: not list((tmp_path / "data" / DELETED_NAME).iterdir()), "the removal")
    assert caplog.messages == []


def test_delete_topic_when_somebody_holds_its_log_then_that_takes_and_gives_nothing(
    make_manager: ManagerFactory,
) -> None:
    manager = opened(make_manager)
    log = manager.creation.get_or_create("events", 0)
    manager.deletions.delete_topic("events")
    manager.creation.get_or_create("events", 0).append(ENTRY * 2, 2)
    manager.flush_all()
    assert log.is_deleted
    with pytest.raises(UnknownTopicError, match=r"events\[0-0\] was deleted"):
        log.append(ENTRY, 1)
    with pytest.raises(UnknownTopicError):
        log.read(0, 100)


def test_delete_topic_when_a_slice_was_handed_out_then_it_stays_readable(
    make_manager: ManagerFactory,
) -> None:
    manager = opened(make_manager)
    part = manager.creation.get_or_create("events", 0).read(0, 100)
    assert part is not None
    manager.deletions.delete_topic("events")
    assert os.pread(part.file.fd, part.length, part.position) == ENTRY


def test_delete_topic_when_something_waits_for_a_flush_then_it_is_flushed_first(
    make_manager: ManagerFactory,
) -> None:
    manager = opened(make_manager)
    log = manager.creation.get_or_create("events", 0)
    end = log.append(ENTRY, 1).end_offset
    seen: list[int] = []
    log.add_listener(lambda: seen.append(log.high_watermark))
    manager.deletions.delete_topic("events")
    assert seen[-1] == end


def test_delete_topic_when_unknown_then_refused(make_manager: ManagerFactory) -> None:
    manager = opened(make_manager)
    with pytest.raises(UnknownTopicError, match="no topic 'nothing'"):
        manager.deletions.delete_topic("nothing")


def test_delete_topic_when_the_disk_refuses_then_it_takes_no_data_until_it_is_done(
    make_manager: ManagerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = opened(make_manager)
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryDeletions, "move_aside", refuse)
        with pytest.raises(StorageError, match="cannot delete topic 'events'"):
            manager.deletions.delete_topic("events")
    with pytest.raises(UnknownTopicError, match="being deleted"):
        manager.creation.get_or_create("events", 0)
    with pytest.raises(UnknownTopicError, match="being deleted"):
        manager.creation.create_topic("events", 1)
    manager.deletions.delete_topic("events")
    assert log_directories(tmp_path) == ["orders_0"]
    manager.creation.get_or_create("events", 0)


def test_open_when_killed_in_the_middle_of_a_deletion_then_it_is_finished(
    make_manager: ManagerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = opened(make_manager)
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryDeletions, "move_aside", move_only_one)
        with pytest.raises(StorageError):
            manager.deletions.delete_topic("events")
    abandon(manager)
    assert len(log_directories(tmp_path)) == 2
    manager = make_manager(num_partitions=2)
    manager.open()
    assert (manager.topics.names(), manager.topics.partition_count("orders")) == (["orders"], 3)
    assert log_directories(tmp_path) == ["orders_0"]
    assert content(manager.creation.get_or_create("orders", 0)) == ENTRY


def test_delete_topic_when_another_deletion_failed_half_way_then_both_are_gone_after_a_start(
    make_manager: ManagerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = opened(make_manager)
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryDeletions, "move_aside", move_only_one)
        with pytest.raises(StorageError):
            manager.deletions.delete_topic("events")
    manager.deletions.delete_topic("orders")
    abandon(manager)
    manager = make_manager(num_partitions=2)
    manager.open()
    assert (manager.topics.names(), log_directories(tmp_path)) == ([], [])


def test_open_when_the_record_of_a_deletion_is_torn_then_it_had_not_begun(
    make_manager: ManagerFactory, tmp_path: Path
) -> None:
    manager = opened(make_manager)
    manager.close()
    (tmp_path / "data" / "topic-being-deleted").write_bytes(b"events")
    manager = make_manager(num_partitions=2)
    manager.open()
    assert "events" in manager.topics.names()


def test_open_when_a_deletion_was_finished_then_a_new_topic_of_the_name_stays(
    make_manager: ManagerFactory,
) -> None:
    manager = opened(make_manager)
    manager.deletions.delete_topic("events")
    manager.creation.get_or_create("events", 0).append(ENTRY, 1)
    manager.flush_all()
    abandon(manager)
    manager = make_manager()
    manager.open()
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY


def test_delete_topic_when_others_append_all_the_time_then_nothing_breaks(
    make_manager: ManagerFactory,
) -> None:
    manager = opened(make_manager)
    stopped, appended = threading.Event(), threading.Event()

    def append() -> None:
        while not stopped.is_set():
            with suppress(UnknownTopicError):
                manager.creation.get_or_create("events", 0).append(ENTRY, 1)
                appended.set()

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(append) for _ in range(2)]
        for _ in range(20):
            appended.clear()
            assert appended.wait(60)
            manager.deletions.delete_topic("events")
        stopped.set()
        for future in futures:
            future.result()
    log = manager.creation.get_or_create("events", 0)
    log.flush()
    abandon(manager)
    manager = make_manager(num_partitions=2)
    assert manager.open() == []
    assert content(manager.creation.get_or_create("events", 0)) == content(log)


def refuse(_deletions: DirectoryDeletions, _directories: object) -> None:
    raise OSError("disk on fire")


def move_only_one(_deletions: DirectoryDeletions, directories: object) -> None:
    first = next(iter(directories))  # type: ignore[call-overload]  # an iterable, as it is called
    deleted = first.parent / DELETED_NAME
    deleted.mkdir(exist_ok=True)
    first.rename(deleted / "one")
    raise OSError("killed")
