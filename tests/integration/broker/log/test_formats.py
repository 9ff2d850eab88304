"""Topics of both formats on one broker: their records, directories, and lives over restarts."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from broker import errors
from broker.log.data_directory import CHECKPOINT_NAME, MOVED_FROM_NAME
from broker.log.deletion import DirectoryDeletions
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.offline.verify import verify_paths
from broker.log.side_files import METADATA_NAME, read_topic_id, write_topic_id
from broker.protocol import codec
from broker.protocol.record_batch import Record
from broker.topic import FORMAT_07, FORMAT_KAFKA, FORMATS, NO_HOME, TopicPartition
from tests.support.log_fixtures import ManagerFactory, abandon
from tests.support.waiting import wait_until

Open = Callable[..., LogManager]
ORDERS = TopicPartition("orders", NO_HOME, 0)
RECORDS = [Record(n, 1_000 + n, b"key", b"value %d" % n, ()) for n in range(3)]
BATCH = codec.encode_batch(RECORDS)
ENTRY = codec.encode([b"ab"])
SETS = {FORMAT_07: (ENTRY, 1), FORMAT_KAFKA: (BATCH, len(RECORDS))}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "a", tmp_path / "b"


@pytest.fixture
def open_manager(make_manager: ManagerFactory) -> Open:
    def open_manager(**settings: object) -> LogManager:
        manager = make_manager(**settings)
        manager.open()
        return manager

    return open_manager


def fill(manager: LogManager, topic: str, index: int = 0, count: int = 2) -> Log:
    log = manager.creation.get_or_create(topic, index)
    for _ in range(count):
        log.append(*SETS[log.partition.format])
    return log


def problems(*paths: Path) -> list[object]:
    found = verify_paths(paths)
    assert found.size_bytes
    return [*found.problems, *found.unreadable]


def offsets(log: Log) -> list[int]:
    """The offsets of the records of a log of batches."""
    found: list[int] = []
    offset = log.log_start_offset
    while (part := log.read(offset, 1 << 20)) is not None:
        with part.file.path.open("rb") as file:
            file.seek(part.position)
            scan = codec.scan_batches(file.read(part.length))
        for batch in scan.batches:
            found += range(batch.base_offset, batch.next_offset)
        offset = found[-1] + 1
    return found


@pytest.mark.parametrize("is_clean", [True, False])
def test_open_when_there_are_topics_of_both_formats_then_all_are_as_before(
    open_manager: Open, data: Path, *, is_clean: bool
) -> None:
    manager = open_manager()
    manager.creation.create_topic("events", 2)
    manager.creation.create_topic("orders", 3, format=FORMAT_KAFKA)
    for topic in ("events", "orders"):
        fill(manager, topic, 1)
    manager.flush_all()
    ids = [manager.topics.creation_id(one) for one in ("events", "orders")]
    log = fill(manager, "orders", 1)
    term = log.incarnations.term
    assert (log.log_end_offset, log.directory.name) == (12, "orders-1")
    assert manager.checkpoints.write_or_log()
    if is_clean:
        manager.close()
    else:
        abandon(manager)
    assert problems(data) == []

    manager = open_manager()

    assert manager.loaded.was_clean is is_clean
    assert manager.table.errors() == {}
    assert [manager.topics.format_of(one) for one in manager.topics.names()] == list(FORMATS)
    assert [manager.topics.partition_count(one) for one in manager.topics.names()] == [2, 3]
    assert [manager.topics.creation_id(one) for one in manager.topics.names()] == ids
    found = manager.table.get("orders", 1)
    assert found is not None
    assert (str(found.partition), offsets(found)) == ("orders[1]", list(range(12)))
    assert manager.table.find(TopicPartition("orders", 0, 1)) is None
    assert manager.table.named("events", 1) == TopicPartition("events", 0, 1)
    assert manager.partition_count() == 5
    assert (found.incarnations.term == term) is is_clean
    found.append(BATCH, 3)
    assert found.incarnations.end_of_term(term, 15) == (15 if is_clean else 12)
    assert found.log_end_offset == 15
    manager.close()
    assert problems(data) == []


def test_create_when_in_kafkas_format_then_metadata_and_records_have_the_topic_id(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager()
    manager.creation.create_topic("orders", 2, format=FORMAT_KAFKA)
    creation_id = manager.topics.creation_id("orders")
    fill(manager, "orders")
    assert creation_id is not None
    assert read_topic_id(data / "orders-0" / METADATA_NAME) == UUID(creation_id)
    assert f"orders 2 kafka={creation_id}\n" in (data / "topic-partition-counts").read_text()
    assert manager.creation.get_or_create("orders", 0).incarnations.term


@pytest.mark.parametrize("format", FORMATS)
def test_first_append_when_the_setting_names_a_format_then_the_topic_has_it_for_life(
    open_manager: Open, format: str
) -> None:
    manager = open_manager(log_format=format, num_partitions=2)
    assert fill(manager, "orders", 1).partition.format == format
    assert manager.topics.format_of("orders") == format
    manager.close()
    (other,) = set(FORMATS) - {format}
    manager = open_manager(log_format=other, num_partitions=2)
    assert fill(manager, "orders").partition.format == format
    assert manager.topics.partition_count("orders") == 2


def test_first_append_when_the_log_cannot_be_made_then_the_topic_is_announced_all_the_same(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager(log_format=FORMAT_KAFKA)
    told: list[str] = []
    manager.topics.on_new = told.append
    with pytest.raises(errors.WrongPartitionError):
        manager.creation.get_or_create("orders", 1)
    assert (told, manager.topics.names()) == ([], [])
    (data / "orders-0").touch()
    with pytest.raises(errors.StorageError, match=r"cannot create orders\[0\]"):
        manager.creation.get_or_create("orders", 0)
    (data / "orders-0").unlink()
    fill(manager, "orders")
    assert (told, manager.topics.names()) == (["orders"], ["orders"])


def test_open_when_a_deletion_was_begun_then_it_is_finished(open_manager: Open, data: Path) -> None:
    manager = open_manager()
    for topic in ("orders", "orders_0"):
        manager.creation.create_topic(topic, 1, format=FORMAT_KAFKA)
        fill(manager, topic)
    manager.flush_all()
    DirectoryDeletions(data).begin("orders")
    abandon(manager)
    manager = open_manager()
    assert (manager.topics.names(), manager.table.errors()) == (["orders_0"], {})
    assert [one.name for one in data.glob("orders*")] == ["orders_0-0"]
    manager.close()
    assert open_manager().topics.names() == ["orders_0"]


@pytest.mark.parametrize("name", ["größe", "a b", "a:b", "x" * 250])
def test_create_when_kafka_has_no_such_name_then_refused_unless_of_07(
    open_manager: Open, name: str
) -> None:
    manager = open_manager()
    with pytest.raises(errors.InvalidTopicError, match="in the format kafka"):
        manager.creation.create_topic(name, 1, format=FORMAT_KAFKA)
    assert name not in manager.topics
    manager.creation.create_topic(name, 1)
    assert fill(manager, name).partition.format == FORMAT_07


def test_logs_when_names_look_like_directories_of_others_then_each_has_its_own(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager()
    names = {
        "a": FORMAT_07,
        "a_1": FORMAT_KAFKA,
        "a-1": FORMAT_07,
        "a_1-0": FORMAT_07,
        "a-1_0": FORMAT_KAFKA,
        "a_": FORMAT_KAFKA,
        "a-": FORMAT_KAFKA,
        "_": FORMAT_KAFKA,
        "-": FORMAT_07,
    }
    for topic, format in names.items():
        manager.creation.create_topic(topic, 2, format=format)
        for index in range(2):
            fill(manager, topic, index, count=1)
    places = [one.directory for one in manager.table.all()]
    assert len(set(places)) == 2 * len(names)
    manager.close()
    manager = open_manager()
    assert manager.table.errors() == {}
    assert {one: manager.topics.format_of(one) for one in manager.topics.names()} == names
    assert len(manager.table.all()) == 2 * len(names)
    assert problems(data) == []


def test_create_when_asked_at_once_in_both_formats_then_one_wins_and_the_other_is_told(
    open_manager: Open,
) -> None:
    manager = open_manager()
    barrier = threading.Barrier(2)
    told: dict[str, str] = {}

    def create(format: str) -> None:
        barrier.wait(10)
        try:
            manager.creation.create_topic("orders", 1, format=format)
        except errors.TopicExistsError as error:
            told[format] = str(error)

    threads = [threading.Thread(target=create, args=(one,)) for one in FORMATS]
    for one in threads:
        one.start()
    for one in threads:
        one.join(10)
    winner = manager.topics.format_of("orders")
    (error,) = told.values()
    assert told.keys() == set(FORMATS) - {winner}
    assert error.endswith(f"and the format {winner}")
    assert fill(manager, "orders").partition.format == winner


@pytest.mark.parametrize("format", FORMATS)
def test_delete_when_created_again_in_the_other_format_then_nothing_of_the_former_is_left(
    open_manager: Open, data: Path, format: str
) -> None:
    (other,) = set(FORMATS) - {format}
    manager = open_manager()
    manager.creation.create_topic("orders", 2, format=format)
    former = manager.topics.creation_id("orders")
    fill(manager, "orders", 1)
    manager.deletions.delete_topic("orders")
    assert "orders" not in manager.topics
    manager.creation.create_topic("orders", 1, format=other)
    log = fill(manager, "orders", count=1)
    end = log.log_end_offset
    manager.close()
    manager = open_manager()
    assert (manager.topics.format_of("orders"), manager.table.errors()) == (other, {})
    assert manager.topics.creation_id("orders") != former
    (log,) = manager.table.all()
    assert (log.partition.format, log.log_end_offset) == (other, end)
    assert len([one for one in data.iterdir() if one.name.startswith("orders")]) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_open_when_a_directory_of_the_other_format_was_put_there_then_it_is_offline_and_told(
    open_manager: Open, data: Path, format: str, caplog: pytest.LogCaptureFixture
) -> None:
    manager = open_manager()
    (other,) = set(FORMATS) - {format}
    manager.creation.create_topic("orders", 1, format=format)
    manager.creation.create_topic("foreign", 1, format=other)
    fill(manager, "orders")
    place = fill(manager, "foreign").directory
    manager.close()
    place.rename(place.with_name(place.name.replace("foreign", "orders")))
    manager = open_manager()
    ((partition, error),) = manager.table.errors().items()
    assert (partition.topic, partition.format) == ("orders", other)
    assert f"topic 'orders' has the format {format}" in str(error)
    assert "moved out of the data directory" in str(error)
    log = manager.creation.get_or_create("orders", 0)
    assert (log.partition.format, manager.topics.partition_count("orders")) == (format, 1)
    log.append(*SETS[format])
    assert str(error) in caplog.text
    manager.deletions.delete_topic("orders")
    assert not [one for one in data.iterdir() if one.name.startswith("orders")]
    assert manager.table.errors() == {}


def test_open_when_kafka_has_written_a_directory_then_the_topic_is_taken_in_with_its_id(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager()
    manager.creation.create_topic("orders", 3, format=FORMAT_KAFKA)
    for index in (0, 2):
        fill(manager, "orders", index)
    creation_id = manager.topics.creation_id("orders")
    manager.close()
    (data / "topic-partition-counts").unlink()
    (data / CHECKPOINT_NAME).unlink()
    (data / "backup-2024").mkdir()
    manager = open_manager()
    assert manager.topics.names() == ["orders"]
    assert manager.topics.format_of("orders") == FORMAT_KAFKA
    assert manager.topics.creation_id("orders") == creation_id
    assert manager.topics.partition_count("orders") == 3
    assert fill(manager, "orders", 2).log_end_offset == 12
    manager.close()
    assert open_manager().topics.creation_id("orders") == creation_id


def test_open_when_directories_are_of_a_real_kafka_then_they_are_continued(
    open_manager: Open, data: Path, kafka_logs: Path
) -> None:
    copied = sorted(one.name for one in kafka_logs.glob("*-0"))
    for name in copied:
        shutil.copytree(kafka_logs / name, data / name)
        for one in (data / name, *(data / name).iterdir()):
            one.chmod(0o755)
    ids = {one.parent.name: read_topic_id(one).hex for one in data.glob(f"*/{METADATA_NAME}")}
    ends: dict[str, int] = {}
    for turn in range(2):
        manager = open_manager()
        assert manager.table.errors() == {}
        assert [f"{one}-0" for one in manager.topics.names()] == copied
        for name in copied:
            topic = name.removesuffix("-0")
            assert manager.topics.creation_id(topic) == ids.setdefault(
                name, read_topic_id(data / name / METADATA_NAME).hex
            )
            log = manager.creation.get_or_create(topic, 0)
            appended = log.append(BATCH, 3)
            assert appended.base_offset == ends.get(name, appended.base_offset) > 0
            ends[name] = appended.end_offset
        manager.close()
        assert problems(data) == [], turn


def test_open_when_a_directory_is_of_another_topic_id_then_offline_until_the_file_is_removed(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager()
    manager.creation.create_topic("orders", 1, format=FORMAT_KAFKA)
    fill(manager, "orders")
    manager.close()
    write_topic_id(data / "orders-0", UUID(int=5))
    manager = open_manager()
    with pytest.raises(errors.StorageError, match=f"{METADATA_NAME} is of a topic with the id 0"):
        manager.creation.get_or_create("orders", 0)
    manager.close()
    (data / "orders-0" / METADATA_NAME).unlink()
    manager = open_manager()
    assert fill(manager, "orders").log_end_offset == 12
    creation_id = manager.topics.creation_id("orders")
    assert read_topic_id(data / "orders-0" / METADATA_NAME).hex == creation_id


def test_open_when_metadata_is_damaged_then_written_again(
    open_manager: Open, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = open_manager()
    manager.creation.create_topic("orders", 1, format=FORMAT_KAFKA)
    fill(manager, "orders")
    manager.close()
    (data / "orders-0" / METADATA_NAME).write_bytes(b"")
    manager = open_manager()
    assert fill(manager, "orders").log_end_offset == 12
    assert "it is written again" in caplog.text
    manager.close()
    assert problems(data) == []


def test_open_when_one_of_two_disks_is_missing_then_its_partitions_are_offline_until_it_is_back(
    open_manager: Open, dirs: tuple[Path, Path], tmp_path: Path
) -> None:
    manager = open_manager(data_dirs=dirs)
    manager.creation.create_topic("orders", 4, format=FORMAT_KAFKA)
    for index in range(4):
        fill(manager, "orders", index)
    creation_id = manager.topics.creation_id("orders")
    manager.close()
    dirs[1].rename(tmp_path / "away")
    dirs[1].touch()
    manager = open_manager(data_dirs=dirs)
    assert [str(one) for one in sorted(manager.table.errors())] == ["orders[1]", "orders[3]"]
    assert manager.topics.creation_id("orders") == creation_id
    assert (manager.topics.format_of("orders"), manager.topics.partition_count("orders")) == (
        FORMAT_KAFKA,
        4,
    )
    with pytest.raises(errors.StorageError, match=r"orders\[1\] is offline"):
        manager.creation.get_or_create("orders", 1)
    assert {manager.table.choose_partition("orders") for _ in range(50)} == {0, 2}
    fill(manager, "orders")
    manager.close()
    dirs[1].unlink()
    (tmp_path / "away").rename(dirs[1])
    manager = open_manager(data_dirs=dirs)
    assert manager.table.errors() == {}
    ends = [manager.creation.get_or_create("orders", n).log_end_offset for n in range(4)]
    assert ends == [12, 6, 6, 6]


def test_open_when_deleted_and_created_again_while_a_disk_was_away_then_only_the_new_one_is_left(
    open_manager: Open, dirs: tuple[Path, Path], tmp_path: Path
) -> None:
    manager = open_manager(data_dirs=dirs)
    manager.creation.create_topic("orders", 2, format=FORMAT_KAFKA)
    for index in range(2):
        fill(manager, "orders", index)
    manager.close()
    dirs[1].rename(tmp_path / "away")
    dirs[1].touch()
    manager = open_manager(data_dirs=dirs)
    manager.deletions.delete_topic("orders")
    manager.creation.create_topic("orders", 1)
    fill(manager, "orders")
    manager.close()
    dirs[1].unlink()
    (tmp_path / "away").rename(dirs[1])
    manager = open_manager(data_dirs=dirs)
    assert (manager.table.errors(), manager.topics.format_of("orders")) == ({}, FORMAT_07)
    assert [str(one.partition) for one in manager.table.all()] == ["orders[0-0]"]


def test_open_when_a_log_has_lost_its_end_then_no_offset_is_given_out_again(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager()
    manager.creation.create_topic("orders", 1, format=FORMAT_KAFKA)
    fill(manager, "orders", count=4)
    manager.close()
    segment = data / "orders-0" / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[: len(BATCH)])
    manager = open_manager()
    log = manager.creation.get_or_create("orders", 0)
    assert log.append(BATCH, 3).base_offset == 12
    log.flush()
    assert offsets(log) == [0, 1, 2, 12, 13, 14]
    manager.close()
    log = open_manager().creation.get_or_create("orders", 0)
    assert offsets(log) == [0, 1, 2, 12, 13, 14]


def test_open_when_all_segments_are_gone_then_the_log_goes_on_at_its_end(
    open_manager: Open, data: Path
) -> None:
    manager = open_manager()
    manager.creation.create_topic("orders", 1, format=FORMAT_KAFKA)
    fill(manager, "orders")
    manager.close()
    (data / "orders-0" / f"{0:020d}.log").unlink()
    manager = open_manager()
    assert manager.creation.get_or_create("orders", 0).append(BATCH, 3).base_offset == 6


def test_move_when_of_batches_then_all_files_go_along(
    open_manager: Open, dirs: tuple[Path, Path]
) -> None:
    manager = open_manager(data_dirs=dirs, segment_bytes=len(BATCH) * 3)
    manager.creation.create_topic("orders", 1, format=FORMAT_KAFKA)
    log = fill(manager, "orders", count=20)
    before = {one.name: one.read_bytes() for one in (dirs[0] / "orders-0").iterdir()}
    assert {Path(one).suffix for one in before} >= {".log", ".index", ".timeindex", ".metadata"}
    move = manager.moves.add(ORDERS, dirs[1])
    wait_until(lambda: move.is_done, "the move")
    assert move.error is None
    assert {one.name: one.read_bytes() for one in (dirs[1] / "orders-0").iterdir()} == before
    assert not (dirs[0] / "orders-0").exists()
    assert not (dirs[1] / "orders-0" / MOVED_FROM_NAME).exists()
    fill(manager, "orders")
    manager.close()
    manager = open_manager(data_dirs=dirs)
    assert offsets(manager.creation.get_or_create("orders", 0)) == list(range(66))
    assert log.log_end_offset == 66
    assert problems(*dirs) == []


_CHILD = """
import sys
from pathlib import Path
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.log.manager import LogManager
from broker.protocol import codec
from broker.protocol.record_batch import Record
from broker.topic import FORMAT_KAFKA

manager = LogManager(
    BrokerConfig(data_dirs=(Path(sys.argv[1]),), segment_bytes=10_000), SystemClock()
)
manager.open()
manager.start()
if "orders" not in manager.topics:
    manager.creation.create_topic("orders", 2, format=FORMAT_KAFKA)
number = 0
while True:
    log = manager.creation.get_or_create("orders", number % 2)
    record = Record(0, 1_000_000 + number, b"key", b"value %d" % number, ())
    end = log.append(codec.encode_batch([record]), 1).end_offset
    if number % 100 == 0:
        log.flush()
        print(number % 2, end, flush=True)
    number += 1
"""


def test_open_when_killed_again_and_again_then_all_that_was_flushed_is_there(
    open_manager: Open, data: Path
) -> None:
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(data)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        ends = {}
        for _ in range(15):
            index, end = map(int, child.stdout.readline().split())
            ends[index] = end
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        child.stdout.close()
        manager = open_manager(segment_bytes=10_000)
        assert manager.table.errors() == {}
        for index, end in ends.items():
            log = manager.table.get("orders", index)
            assert log is not None
            assert log.log_end_offset >= end
            assert offsets(log) == list(range(log.log_end_offset))
        manager.close()
        assert problems(data) == []
