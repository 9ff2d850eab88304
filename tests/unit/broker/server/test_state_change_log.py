"""The state-change log in its files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from broker import files
from broker.log.data_directory import DataDirectory
from broker.server.cluster.state_change_log import StateChangeLog
from broker.state_changes import ChangeKind, LoggedChange, decode_changes
from broker.topic import TopicPartition
from tests.doubles import FakeClock


@pytest.fixture
def log(tmp_path: Path) -> StateChangeLog:
    log = StateChangeLog(7, FakeClock())
    log.open(tmp_path)
    return log


def note(log: StateChangeLog, version: int) -> None:
    partition = TopicPartition("t", 0, 0)
    log.note([LoggedChange(ChangeKind.LEADS, partition=partition, version=version)])


def versions(log: StateChangeLog, position: int = -1) -> list[int | None]:
    """Return the versions in all lines from a position on, read as a client reads them."""
    lines: list[bytes] = []
    while True:
        start, data = log.read(position)
        if not data:
            changes, damaged_count = decode_changes(lines)
            assert damaged_count == 0
            assert {one.broker for one in changes} <= {7}
            return [one.version for one in changes]
        lines += data.splitlines()
        position = start + len(data)


def reopened(log: StateChangeLog, directory: Path) -> StateChangeLog:
    log.close()
    log = StateChangeLog(7, FakeClock())
    log.open(directory)
    return log


def test_log_when_read_from_a_position_then_gives_what_came_later(log: StateChangeLog) -> None:
    note(log, 1)
    start, data = log.read(-1)
    assert log.read(start + len(data)).lines == b""
    note(log, 2)

    assert versions(log, start + len(data)) == [2]
    assert versions(log) == [1, 2]


def test_log_when_full_then_keeps_the_newest_in_two_files(tmp_path: Path) -> None:
    log = StateChangeLog(7, FakeClock(), max_file_bytes=1_000, max_read_bytes=300)
    log.open(tmp_path)
    for version in range(200):
        note(log, version)

    found = versions(log)
    assert found == list(range(200 - len(found), 200))
    assert len(found) > 10
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    assert sum(one.stat().st_size for one in files) <= 2_000
    assert versions(log, 3) == found  # a position that is not kept any more


def test_log_when_opened_again_then_goes_on(log: StateChangeLog, tmp_path: Path) -> None:
    note(log, 1)
    position = len(log.read(-1).lines)
    log = reopened(log, tmp_path)
    note(log, 2)

    assert versions(log) == [1, 2]
    assert versions(log, position) == [2]


def test_log_when_its_last_line_is_torn_then_goes_on_without_it(
    log: StateChangeLog, tmp_path: Path
) -> None:
    note(log, 1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + b'{"kind":"lea')
    log = reopened(log, tmp_path)
    note(log, 2)

    assert versions(log) == [1, 2]


def test_log_when_a_torn_line_cannot_be_cut_at_once_then_is_cut_before_the_next_one(
    log: StateChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tear(fd: int, content: bytes | memoryview) -> None:
        os.write(fd, content[:5])
        raise OSError(errno.EIO, "broken")

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "broken")

    note(log, 1)
    with monkeypatch.context() as broken:
        broken.setattr(files, "write_all", tear)
        broken.setattr(os, "ftruncate", refuse)
        note(log, 2)
    note(log, 3)

    assert versions(log) == [1, 3]


def test_log_when_the_directory_refuses_then_the_broker_goes_on_and_later_so_does_the_log(
    log: StateChangeLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    note(log, 1)
    log.close()
    away = tmp_path / "away"
    log = StateChangeLog(7, FakeClock())
    log.open(away)
    note(log, 2)
    note(log, 3)
    assert caplog.text.count("cannot be written") == 1

    away.mkdir()
    note(log, 4)
    assert versions(log) == [4]


def test_log_when_closed_then_notes_nothing(log: StateChangeLog) -> None:
    log.close()
    note(log, 1)

    assert log.read(-1).lines == b""


def test_log_when_in_a_data_directory_then_no_start_wonders_about_it(
    log: StateChangeLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    note(log, 1)

    assert DataDirectory(tmp_path, 7).logs() == {}
    assert "is not a log" not in caplog.text
