from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ConfigError, InvalidTopicError, LogLockedError
from broker.log.data_directory import (
    DataDirectory,
    TopicRecord,
    parse_log_directory_name,
    validate_not_in_use,
)
from broker.topic import FORMAT_KAFKA, FORMATS, NO_HOME, TopicPartition, log_directory_name

TOPIC_ID = "0123456789abcdef0123456789abcdef"
_FIRST_LINE = "pylogctl-partition-counts 1\n"


@contextmanager
def locked(path: Path, broker_id: int = 0) -> Iterator[DataDirectory]:
    directory = DataDirectory(path, broker_id)
    directory.lock()
    try:
        yield directory
    finally:
        directory.unlock()


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("events_0", TopicPartition("events", 3, 0)),
        ("a_b_12", TopicPartition("a_b", 3, 12)),
        ("events-0", TopicPartition("events", NO_HOME, 0)),
        ("a_1-0", TopicPartition("a_1", NO_HOME, 0)),
        ("a-1_0", TopicPartition("a-1", 3, 0)),
        ("a--0", TopicPartition("a-", NO_HOME, 0)),
        ("größe_0", TopicPartition("größe", 3, 0)),
        ("größe-0", None),  # no name that Kafka has
        ("a b-0", None),
        ("_0", None),
        ("-0", None),
        ("events", None),
        ("events_", None),
        ("events_01", None),
        ("events-01", None),
        ("events_-1", TopicPartition("events_", NO_HOME, 1)),
        ("events_x", None),
        ("events-0.0123456789abcdef0123456789abcdef-delete", None),
        ("lost+found", None),
        ("._0", None),
        (".-0", None),
    ],
)
def test_parse_log_directory_name_when_any_then_the_last_separator_tells_the_format(
    name: str, partition: TopicPartition | None
) -> None:
    assert parse_log_directory_name(name, 3) == partition


@given(
    st.text("a_-.0", min_size=1, max_size=8).filter(lambda name: name not in (".", "..")),
    st.sampled_from(FORMATS),
    st.integers(0, 9_999),
)
def test_log_directory_name_when_any_then_parsed_to_its_partition(
    topic: str, format: str, index: int
) -> None:
    home = NO_HOME if format == FORMAT_KAFKA else 3
    name = log_directory_name(topic, index, format)
    assert parse_log_directory_name(name, 3) == TopicPartition(topic, home, index)


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
    for name in ("events_0", "events_1", "events-1", "lost+found"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes_3").touch()
    (tmp_path / "recovery-point-checkpoint.tmp").touch()  # left by a full disk
    with locked(tmp_path) as directory:
        found = directory.logs()
    assert {str(one): path.name for one, path in found.items()} == {
        "events[0-0]": "events_0",
        "events[0-1]": "events_1",
        "events[1]": "events-1",
    }
    assert "lost+found is not a log" in caplog.text
    assert "notes_3 is not a log" in caplog.text
    assert "checkpoint" not in caplog.text


def test_partition_counts_when_written_then_read_back(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, 0)
    assert directory.read_topics() == {}
    records = {
        "a": TopicRecord(1),
        "b topic": TopicRecord(3),
        "c": TopicRecord(2, TOPIC_ID),
        "d 5": TopicRecord(4),
        "kafka=": TopicRecord(1),
    }
    directory.write_topics(records)
    assert directory.read_topics() == records


@pytest.mark.parametrize(
    "content",
    ["events 3\n", f"{_FIRST_LINE}events 3 kafka=1\n", f"{_FIRST_LINE}events kafka={TOPIC_ID}\n"],
)
def test_partition_counts_when_damaged_then_config_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "topic-partition-counts").write_text(content)
    with pytest.raises(ConfigError, match="topic-partition-counts"):
        DataDirectory(tmp_path, 0).read_topics()


def test_creator_token_when_asked_again_then_the_first_one(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, 0)
    assert directory.creator_token("host1-5") == "host1-5"
    assert DataDirectory(tmp_path, 0).creator_token("host2-6") == "host1-5"
