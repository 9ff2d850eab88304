"""Logs that are moved between data directories while they are in use."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker.errors import (
    InvalidRequestError,
    OffsetOutOfRangeError,
    StorageError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.log.data_directory import MOVED_FROM_NAME, DataDirectory, read_recovery_points
from broker.log.deletion import DirectoryDeletions
from broker.log.format import ENTRIES, segment_name
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.moves import DirectoryMove, LogCopy, Moves
from broker.protocol.codec import encode
from broker.topic import TopicPartition
from tests.support.log_fixtures import ManagerFactory, abandon, content
from tests.support.waiting import wait_until

ENTRY = encode([b"ab"])
EVENTS = TopicPartition("events", 0, 0)

Open = Callable[..., LogManager]


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def open_manager(make_manager: ManagerFactory, dirs: tuple[Path, Path]) -> Open:
    def open_manager(**settings: object) -> LogManager:
        manager = make_manager(**{"data_dirs": dirs, "segment_bytes": 100, **settings})
        manager.open()
        return manager

    return open_manager


def fill(manager: LogManager, count: int = 40) -> Log:
    log = manager.creation.get_or_create("events", 0)
    for _ in range(count):
        log.append(ENTRY, 1)
    return log


def finish(move: DirectoryMove) -> None:
    wait_until(lambda: move.is_done, "the move")
    if move.error is not None:
        raise move.error


def files(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns // 1_000_000)
        for path in directory.iterdir()
    }


def test_move_when_done_then_all_files_are_in_the_other_directory_and_nothing_else_changed(
    open_manager: Open, dirs: tuple[Path, Path]
) -> None:
    manager = open_manager()
    log = fill(manager)
    log.flush()
    (dirs[0] / "events_0" / "kept.cut-1").write_bytes(b"cut")
    before = files(dirs[0] / "events_0")
    times = [one.modified_ms for one in log.segments.all]
    finish(manager.moves.add(EVENTS, dirs[1]))
    assert manager.table.get("events", 0) is log
    after = files(dirs[1] / "events_0")
    assert {name: one[0] for name, one in after.items()} == {
        name: one[0] for name, one in before.items()
    }
    assert [after[one.path.name][1] for one in log.segments.all] == times
    assert not (dirs[0] / "events_0").exists()
    assert content(log) == ENTRY * 40
    log.append(ENTRY, 1)
    log.flush()
    assert log.partition in (read_recovery_points(dirs[1], 0) or {})
    assert log.partition not in (read_recovery_points(dirs[0], 0) or {})
    manager.close()
    manager = open_manager()
    assert not manager.loaded.was_recovered
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 41
    finish(manager.moves.add(EVENTS, dirs[0]))  # and back
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 41


def test_move_when_something_is_not_flushed_then_it_is_afterwards_and_those_who_wait_are_told(
    open_manager: Open, dirs: tuple[Path, Path]
) -> None:
    manager = open_manager(flush_interval_ms=3_600_000)
    log = fill(manager)
    seen: list[int] = []
    log.add_listener(lambda: seen.append(log.flushed_offset))
    finish(manager.moves.add(EVENTS, dirs[1]))
    assert seen[-1] == log.log_end_offset == log.high_watermark == 40 * len(ENTRY)


def test_move_when_a_slice_was_handed_out_then_it_stays_readable(
    open_manager: Open, dirs: tuple[Path, Path]
) -> None:
    manager = open_manager()
    log = fill(manager)
    log.flush()
    slices = [log.read(offset, 1000) for offset in (0, 39 * len(ENTRY))]
    finish(manager.moves.add(EVENTS, dirs[1]))
    for part in slices:
        assert part is not None
        found = os.pread(part.file.fd, part.length, part.position)
        assert found == ENTRY * (part.length // len(ENTRY))


def test_move_when_others_append_read_and_remove_all_the_time_then_nothing_is_lost(
    make_manager: ManagerFactory, dirs: tuple[Path, Path]
) -> None:
    manager = make_manager(data_dirs=dirs, segment_bytes=1 << 14, flush_interval_ms=1)
    manager.open()
    manager.start()
    log = manager.creation.get_or_create("events", 0)
    stopped = threading.Event()
    entry = encode([b"x" * 100])

    def append() -> int:
        count = 0
        while not stopped.wait(0.0002):  # a load that the machine bears
            log.append(entry, 1)
            count += 1
        return count

    def read() -> None:
        offset = 0
        while not stopped.is_set() or offset < log.high_watermark:
            try:
                part = log.read(offset, 1 << 16)
            except OffsetOutOfRangeError:
                offset = log.log_start_offset
                continue
            if part is None:
                stopped.wait(0.0002)
                continue
            found = os.pread(part.file.fd, part.length, part.position)
            whole = len(found) // len(entry)
            assert found[: whole * len(entry)] == entry * whole
            assert len(found) == part.length
            offset += whole * len(entry)

    with ThreadPoolExecutor(3) as pool:
        appending, reading = pool.submit(append), pool.submit(read)
        try:
            for number in range(8):
                finish(manager.moves.add(EVENTS, dirs[1 - number % 2]))
                if number % 2:
                    for segment in log.prepare_removal(lambda found: len(found) // 2):
                        log.remove(segment)
        finally:
            stopped.set()
        count = appending.result()
        reading.result()
    assert log.log_end_offset == count * len(entry)
    log.flush()
    start = log.log_start_offset
    abandon(manager)
    manager = make_manager(data_dirs=dirs)
    assert manager.open() == []
    log = manager.creation.get_or_create("events", 0)
    assert (log.log_start_offset, log.log_end_offset) == (start, count * len(entry))


def test_move_when_of_a_replica_then_its_epochs_and_creation_id_go_with_it(
    open_manager: Open, dirs: tuple[Path, Path]
) -> None:
    manager = open_manager()
    replica = TopicPartition("events", 7, 2)
    log = manager.creation.open_replica(replica, "id")
    log.begin_epoch(3, 0)
    log.append_copied(ENTRIES.copied(ENTRY * 3, replica, 0), 0)
    finish(manager.moves.add(replica, dirs[1]))
    log.begin_epoch(5, len(ENTRY) * 3)
    log.append_copied(ENTRIES.copied(ENTRY, replica, 0), len(ENTRY) * 3)
    log.truncate(len(ENTRY) * 3 + len(ENTRY))
    epochs = log.epochs
    manager.close()
    assert not (dirs[0] / "replicas" / "7" / "events_2").exists()
    manager = open_manager()
    found = manager.table.find(replica)
    assert found is not None
    assert (found.epochs.entries, found.log_end_offset) == (epochs.entries, 4 * len(ENTRY))
    assert manager.creation.open_replica(replica, "id") is found


def test_move_when_not_possible_then_refused_with_the_reason(
    open_manager: Open, dirs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager(num_partitions=2)
    log = fill(manager)
    with pytest.raises(InvalidRequestError, match=rf"no data directory {tmp_path}/c; `") as refused:
        manager.moves.add(EVENTS, tmp_path / "c")
    assert f"{tmp_path}/b" not in str(refused.value)  # paths are for those who see the cluster
    (tmp_path / "link").symlink_to(dirs[0])
    with pytest.raises(InvalidRequestError, match=r"is in .*link already"):
        manager.moves.add(EVENTS, tmp_path / "link")
    with pytest.raises(WrongPartitionError, match=r"no log of events\[0-1\]"):
        manager.moves.add(TopicPartition("events", 0, 1), dirs[1])
    with monkeypatch.context() as patch:
        patch.setattr(DataDirectory, "free_bytes", lambda _self: 100)
        with pytest.raises(StorageError, match="has room for 100"):
            manager.moves.add(EVENTS, dirs[1])
    with monkeypatch.context() as patch:
        patch.setattr(log, "directory", dirs[0] / "gone")
        with pytest.raises(StorageError, match="cannot be read: No such file") as unreadable:
            manager.moves.add(EVENTS, dirs[1])
        assert str(dirs[0]) not in str(unreadable.value)
    dirs[1].rename(tmp_path / "gone")
    manager.check_directories()
    with pytest.raises(StorageError, match=r"not moved: .*/b has failed$"):
        manager.moves.add(EVENTS, dirs[1])
    log.append(ENTRY, 1)
    assert content(log)[-len(ENTRY) :] == ENTRY or log.high_watermark == 0


@pytest.mark.parametrize("method", ["_copy_range", "_copy_other_files", "_sync_places"])
def test_move_when_the_disk_is_full_or_fails_then_the_log_stays_and_no_copy_is_left(
    open_manager: Open, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    manager = open_manager()
    log = fill(manager)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(LogCopy, method, refuse)
        with pytest.raises(StorageError, match=r"cannot move events\[0-0\] .*No space left"):
            finish(manager.moves.add(EVENTS, dirs[1]))
    assert not list(dirs[1].glob("*_0"))
    assert not list(dirs[1].glob(".moving/*"))
    log.append(ENTRY, 1)
    finish(manager.moves.add(EVENTS, dirs[1]))
    assert content(log) == ENTRY * 41


def test_move_when_the_topic_is_deleted_meanwhile_then_it_is_gone_everywhere(
    open_manager: Open, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager()
    fill(manager)
    catch_up = LogCopy.catch_up

    def delete_then(copy: LogCopy) -> None:
        catch_up(copy)
        manager.deletions.delete_topic("events")

    monkeypatch.setattr(LogCopy, "catch_up", delete_then)
    with pytest.raises(UnknownTopicError):
        finish(manager.moves.add(EVENTS, dirs[1]))
    assert not [path for one in dirs for path in one.glob("**/events_0*")]


def test_move_when_truncated_meanwhile_then_the_copy_has_what_was_written_after(
    open_manager: Open, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager(segment_bytes=1 << 20)
    replica = TopicPartition("events", 7, 2)
    log = manager.creation.open_replica(replica, "id")
    old, new = encode([b"old!"]), encode([b"new!"])
    log.append_copied(ENTRIES.copied(old * 9, replica, 0), 0)
    log.truncate(len(old) * 4)  # a segment starts there, as with the next truncation
    log.append_copied(ENTRIES.copied(old * 5, replica, len(old) * 4), len(old) * 4)
    catch_up = LogCopy.catch_up
    calls: list[int] = []

    def truncate_then(copy: LogCopy) -> None:
        catch_up(copy)
        calls.append(1)
        if len(calls) == 1:
            log.truncate(len(old) * 4)
            log.append_copied(ENTRIES.copied(new * 5, replica, len(old) * 4), len(old) * 4)

    monkeypatch.setattr(LogCopy, "catch_up", truncate_then)
    finish(manager.moves.add(replica, dirs[1]))
    log.advance_high_watermark(log.log_end_offset)
    assert content(log) == old * 4 + new * 5


@pytest.mark.parametrize(
    "killed_in", ["catch_up", "complete", "_remove_former", "move_aside", "never"]
)
def test_open_when_killed_in_a_move_then_one_whole_log_and_no_leftover(
    open_manager: Open, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    manager = open_manager()
    log = fill(manager)

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(LogCopy, "discard", lambda _self: None)
        owner: type = LogCopy
        if killed_in == "_remove_former":
            owner = Moves
        elif killed_in == "move_aside":
            owner = DirectoryDeletions
        if killed_in == "catch_up":
            catch_up = LogCopy._copy_range
            calls: list[int] = []

            def copy_one(copy: LogCopy, *arguments: object) -> None:
                if calls:
                    raise Killed
                calls.append(1)
                catch_up(copy, *arguments)  # type: ignore[arg-type]  # as it was called

            patch.setattr(LogCopy, "_copy_range", copy_one)
        elif killed_in != "never":
            patch.setattr(owner, killed_in, kill)
        move = DirectoryMove(EVENTS, dirs[1], log.size_bytes)
        if killed_in == "never":
            manager.moves._make(move)
        else:
            with pytest.raises(Killed):
                manager.moves._make(move)
    count = 40
    is_switched = killed_in in ("_remove_former", "move_aside", "never")
    assert log.directory.parent == dirs[is_switched]
    log.append(ENTRY, 1)  # goes to one of the two only
    log.flush()
    count += 1
    abandon(manager)
    manager = open_manager()
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * count
    assert [(one / "events_0").exists() for one in dirs] == [not is_switched, is_switched]
    assert not list(dirs[1].glob(".moving/*"))
    assert not list(dirs[1].glob(f"*/{MOVED_FROM_NAME}"))


def test_open_when_the_former_directory_was_away_then_its_old_copy_is_removed_once_it_is_back(
    open_manager: Open, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manager = open_manager()
    log = fill(manager)
    with monkeypatch.context() as patch:
        patch.setattr(Moves, "_remove_former", lambda *_: None)
        finish(manager.moves.add(EVENTS, dirs[1]))
    log.append(ENTRY, 1)
    manager.close()
    dirs[0].rename(tmp_path / "hidden")
    dirs[0].touch()
    manager = open_manager()
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 41
    manager.close()
    dirs[0].unlink()
    (tmp_path / "hidden").rename(dirs[0])
    manager = open_manager()
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 41
    assert not (dirs[0] / "events_0").exists()


def test_move_when_the_log_has_a_hole_then_the_copy_has_it_too(
    open_manager: Open, dirs: tuple[Path, Path]
) -> None:
    manager = open_manager(segment_bytes=1 << 30)
    fill(manager, 3)
    manager.close()
    end = 3 * len(ENTRY)
    os.truncate(dirs[0] / "events_0" / segment_name(0), end - 7)
    manager = open_manager()
    finish(manager.moves.add(EVENTS, dirs[1]))
    manager.close()
    manager = open_manager()
    log = manager.creation.get_or_create("events", 0)
    assert log.directory == dirs[1] / "events_0"
    assert (log.log_end_offset, log.size_bytes) == (end, end - len(ENTRY))


def test_close_when_a_move_is_under_way_then_it_is_given_up(
    open_manager: Open, dirs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager()
    fill(manager)
    entered = threading.Event()
    copy_range = LogCopy._copy_range

    def wait_then(copy: LogCopy, *arguments: object) -> None:
        entered.set()
        copy._stopping.wait(60)
        copy_range(copy, *arguments)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(LogCopy, "_copy_range", wait_then)
    move = manager.moves.add(EVENTS, dirs[1])
    assert entered.wait(60)
    with pytest.raises(InvalidRequestError, match="being moved already"):
        manager.moves.add(EVENTS, dirs[1])
    manager.close()
    assert "the broker stops" in str(move.error)
    manager = open_manager()
    assert not manager.loaded.was_recovered
    assert content(manager.creation.get_or_create("events", 0)) == ENTRY * 40
