from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from broker.errors import ConfigError, InvalidTopicError, LogLockedError
from broker.log.data_directory import (
    DataDirectory,
    parse_log_directory_name,
    validate_not_in_use,
)
from broker.topic import log_directory_name


@contextmanager
def locked(path: Path, broker_id: int = 0) -> Iterator[DataDirectory]:
    directory = DataDirectory(path, broker_id)
    directory.lock()
    try:
        yield directory
    finally:
        directory.unlock()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("events_0", ("events", 0)),
        ("a_b_12", ("a_b", 12)),
        ("_0", None),
        ("events", None),
        ("events_", None),
        ("events_01", None),
        ("events_-1", None),
        ("events_x", None),
        ("lost+found", None),
        ("._0", None),
    ],
)
def test_parse_log_directory_name_when_any_then_split_at_last_underscore(
    name: str, key: tuple[str, int] | None
) -> None:
    assert parse_log_directory_name(name) == key


def test_log_directory_name_when_too_long_for_the_file_system_then_invalid_topic() -> None:
    assert len(log_directory_name("x" * 253, 0)) == 255
    with pytest.raises(InvalidTopicError, match="255 bytes"):
        log_directory_name("x" * 254, 0)


def test_lock_when_held_by_another_process_then_error_names_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from broker.log.data_directory import DataDirectory\n"
        "DataDirectory(Path(sys.argv[1]), 7).lock(); print('held', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[4],
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child, closing(child.stdin):
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(LogLockedError, match=rf"process {child.pid} \(broker 7\)"):
            DataDirectory(tmp_path, 7).lock()
        with pytest.raises(LogLockedError):
            validate_not_in_use(tmp_path)


def test_lock_when_unlocked_then_can_be_had_again(tmp_path: Path) -> None:
    with locked(tmp_path):
        pass
    validate_not_in_use(tmp_path)
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()} 0\n"


def test_lock_when_directory_belongs_to_another_broker_then_error_names_both(
    tmp_path: Path,
) -> None:
    with locked(tmp_path, broker_id=3):
        pass
    with pytest.raises(LogLockedError, match="belongs to broker 3, not to broker 4"):
        DataDirectory(tmp_path, 4).lock()
    with locked(tmp_path, broker_id=3):
        pass


def test_lock_when_directory_cannot_be_made_then_config_error_says_what_to_do(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file/data: Not a directory; make it writable"):
        DataDirectory(tmp_path / "file" / "data", 0).lock()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_lock_when_directory_is_read_only_then_config_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(ConfigError, match="Permission denied"):
        DataDirectory(tmp_path, 0).lock()


def test_marker_when_marked_clean_then_clean_until_in_use(tmp_path: Path) -> None:
    with locked(tmp_path) as directory:
        assert not directory.is_clean()
        directory.mark_clean()
        assert directory.is_clean()
        directory.mark_in_use()
        assert not directory.is_clean()


def test_logs_when_foreign_ones_are_there_then_skipped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("events_0", "events_1", "lost+found"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes_3").touch()
    (tmp_path / "recovery-point-checkpoint.tmp").touch()  # left by a full disk
    with locked(tmp_path) as directory:
        found = directory.logs()
    assert {(one.topic, one.index): path for one, path in found.items()} == {
        ("events", n): tmp_path / f"events_{n}" for n in (0, 1)
    }
    assert "lost+found is not a log" in caplog.text
    assert "notes_3 is not a log" in caplog.text
    assert "checkpoint" not in caplog.text


def test_partition_counts_when_written_then_read_back(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, 0)
    assert directory.read_partition_counts() == {}
    directory.write_partition_counts({"b topic": 3, "a": 1})
    assert directory.read_partition_counts() == {"a": 1, "b topic": 3}


def test_partition_counts_when_damaged_then_config_error(tmp_path: Path) -> None:
    (tmp_path / "topic-partition-counts").write_text("events 3\n")
    with pytest.raises(ConfigError, match="topic-partition-counts"):
        DataDirectory(tmp_path, 0).read_partition_counts()


def test_creator_token_when_asked_again_then_the_first_one(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, 0)
    assert directory.creator_token("host1-5") == "host1-5"
    assert DataDirectory(tmp_path, 0).creator_token("host2-6") == "host1-5"
