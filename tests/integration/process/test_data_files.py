"""The files of a data directory: no link is followed, and other users get nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.log.format import segment_name
from broker.log.offline.recover import recover
from broker.protocol.codec import encode
from tests.integration.process.broker_process import StartError
from tests.integration.process.conftest import ProcessFactory
from tests.support.log_fixtures import ManagerFactory
from tests.support.log_fixtures import clock as clock
from tests.support.log_fixtures import make_manager as make_manager

PRECIOUS = b"a file of somebody else"
ONE = encode([b"x"])


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / segment_name(0)
    path.parent.mkdir()
    path.write_bytes(PRECIOUS)
    return path


def link_file(log_directory: Path, target: Path) -> None:
    log_directory.mkdir(parents=True)
    (log_directory / target.name).symlink_to(target)


def link_directory(log_directory: Path, target: Path) -> None:
    log_directory.parent.mkdir()
    log_directory.symlink_to(target.parent)


@pytest.mark.parametrize("link", [link_file, link_directory])
def test_start_when_a_log_is_linked_then_offline_and_the_target_is_as_it_was(
    start_process: ProcessFactory, tmp_path: Path, precious: Path, link: object
) -> None:
    assert callable(link)
    link(tmp_path / "data" / "events_0", precious)
    with start_process().peer() as peer:
        refused = peer.publish("events", ONE)
        assert refused.error == StorageError.code
        assert "is a symbolic link" in refused.text
        assert peer.publish("others", ONE).error == 0
    assert precious.read_bytes() == PRECIOUS
    assert [path.name for path in precious.parent.iterdir()] == [precious.name]


def test_publish_when_a_link_appeared_then_refused_and_the_target_is_as_it_was(
    start_process: ProcessFactory, tmp_path: Path, precious: Path
) -> None:
    with start_process().peer() as peer:
        (tmp_path / "data" / "events_0").symlink_to(precious.parent)
        assert peer.publish("events", ONE).error == StorageError.code
    assert precious.read_bytes() == PRECIOUS
    assert [path.name for path in precious.parent.iterdir()] == [precious.name]


def test_start_when_the_lock_is_linked_then_refused_and_the_target_is_as_it_was(
    start_process: ProcessFactory, tmp_path: Path, precious: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".lock").symlink_to(precious)
    with pytest.raises(StartError, match="symbolic link"):
        start_process()
    assert precious.read_bytes() == PRECIOUS


def test_start_when_a_temporary_file_is_linked_then_the_link_is_replaced_and_not_the_target(
    start_process: ProcessFactory, tmp_path: Path, precious: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "recovery-point-checkpoint.tmp").symlink_to(precious)
    start_process()
    assert precious.read_bytes() == PRECIOUS


@pytest.mark.parametrize("backup", [True, False])
def test_log_recover_when_a_segment_is_linked_then_the_target_is_as_it_was(
    precious: Path, tmp_path: Path, backup: bool
) -> None:
    link_file(tmp_path / "data" / "events_0", precious)
    with pytest.raises(OSError, match="it is a symbolic link"):
        recover(tmp_path / "data" / "events_0" / precious.name, backup=backup)
    assert precious.read_bytes() == PRECIOUS


def test_topic_delete_when_a_log_is_linked_then_only_the_link_goes(
    make_manager: ManagerFactory, tmp_path: Path, precious: Path
) -> None:
    link_directory(tmp_path / "data" / "events_0", precious)
    manager = make_manager()
    manager.open()
    manager.deletions.delete_topic("events")
    assert not (tmp_path / "data" / "events_0").is_symlink()
    assert precious.read_bytes() == PRECIOUS


def test_files_when_written_then_neither_read_nor_listed_by_other_users(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    process = start_process("-X", "log.file.size=5")
    with process.peer() as peer:
        for _ in range(2):
            assert peer.publish("events", ONE).error == 0
        process.signal(signal.SIGTERM)
    assert process.wait() == 0
    paths = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    assert len(paths) > 6
    assert {oct(path.stat().st_mode & 0o777) for path in paths if path.is_dir()} == {"0o750"}
    modes = {path: path.stat().st_mode & 0o777 for path in paths if path.is_file()}
    assert set(modes.values()) == {0o640}
