from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from broker.errors import (
    ConfigError,
    DataLossError,
    InvalidMessageError,
    LogCorruptError,
    StorageError,
    TopicNotFoundError,
)
from broker.log.archiving import archive_segment
from broker.log.segment import SegmentFile
from broker.protocol.message_set import build_set
from broker.spark.reading.report import Cause
from broker.spark.reading.segment_logs import FileLogs, files_of, partition_of_directory
from broker.topic import TopicPartition
from tests.support.segments import WriteSegments
from tests.support.spark_rows import plan, read, run, values

P0 = TopicPartition("events", 0, 0)
SIZE = len(build_set([b"abc"]))


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%03d" % number for number in range(first, last)]


def test_directory_when_read_then_gives_all_messages_in_order(
    write_segments: WriteSegments,
) -> None:
    data = write_segments(numbered(0, 10), numbered(10, 30))

    rows = read(path=str(data))

    assert values(rows) == numbered(0, 30)
    assert [row["offset"] for row in rows] == [n * SIZE for n in range(30)]
    assert [row["next_offset"] for row in rows] == [n * SIZE for n in range(1, 31)]
    assert {(row["topic"], row["partition"], row["inner_index"]) for row in rows} == {
        ("events", "0-0", 0)
    }


def test_file_when_named_then_only_it_is_read(write_segments: WriteSegments) -> None:
    data = write_segments(numbered(0, 10), numbered(10, 30))
    first, second = sorted((data / "events_0").iterdir())

    assert values(read(path=str(first))) == numbered(0, 10)
    assert read(path=str(second))[0]["offset"] == 10 * SIZE


def test_pattern_when_it_matches_files_then_reads_them(write_segments: WriteSegments) -> None:
    write_segments(numbered(0, 10), directory="events_1")
    data = write_segments(numbered(10, 20), directory="others_0")

    rows = read(path=f"{data}/e*_*/*.pylog")

    assert values(rows) == numbered(0, 10)
    assert rows[0]["partition"] == "0-1"


@pytest.mark.parametrize("name", ["missing", "*.pylog"])
def test_path_when_nothing_is_there_then_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no such file or directory"):
        read(path=str(tmp_path / name))


def test_file_when_it_is_no_segment_then_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello")

    with pytest.raises(ConfigError, match="not named as a segment"):
        read(path=str(file))


def test_directory_when_a_broker_id_is_there_then_it_is_the_home(
    write_segments: WriteSegments,
) -> None:
    data = write_segments(numbered(0, 1))
    (data / "meta.properties").write_text("broker.id=7\n")

    assert read(path=str(data))[0]["partition"] == "7-0"


@pytest.mark.parametrize(
    ("directory", "partition"),
    [
        ("data/web_3", TopicPartition("web", 0, 3)),
        ("data/replicas/5/web_3", TopicPartition("web", 5, 3)),
        ("data/saved", TopicPartition("saved", 0, 0)),
        ("archive/web_1_5-3", TopicPartition("web_1", 5, 3)),
    ],
)
def test_directory_when_named_as_brokers_do_then_says_whose_it_is(
    tmp_path: Path, directory: str, partition: TopicPartition
) -> None:
    assert partition_of_directory(tmp_path / directory) == partition


def test_segments_when_one_is_missing_between_then_the_read_fails(
    write_segments: WriteSegments,
) -> None:
    data = write_segments(numbered(0, 10), numbered(10, 20), numbered(20, 30))
    sorted((data / "events_0").iterdir())[1].unlink()

    with pytest.raises(
        DataLossError, match=rf"events\[0-0\]: no file has offsets {10 * SIZE} to {20 * SIZE}"
    ):
        read(path=str(data))


def test_segments_when_a_gap_is_borne_then_it_is_reported(write_segments: WriteSegments) -> None:
    data = write_segments(numbered(0, 10), numbered(10, 20), numbered(20, 30))
    sorted((data / "events_0").iterdir())[1].unlink()
    options = {"path": str(data), "failOnDataLoss": "false"}

    (omission,) = plan(options).omissions

    assert values(read(**options)) == numbered(0, 10) + numbered(20, 30)
    assert (omission.cause, omission.start, omission.end) == (Cause.LOST, 10 * SIZE, 20 * SIZE)


def test_file_when_it_may_not_be_read_then_is_named(
    write_segments: WriteSegments, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_segments(numbered(0, 10))
    (file,) = data.rglob("*.pylog")

    def refuse(path: Path) -> SegmentFile:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("broker.log.offline.segments.open_segment", refuse)

    with pytest.raises(StorageError, match=f"cannot read {file}: Permission denied"):
        read(path=str(data))


def test_file_when_gone_after_planning_then_is_named(write_segments: WriteSegments) -> None:
    options = {"path": str(write_segments(numbered(0, 10)))}
    made = plan(options)
    (file,) = Path(options["path"]).rglob("*.pylog")
    file.unlink()

    with pytest.raises(DataLossError, match=rf"events\[0-0\]: {file} is gone"):
        run(made, options)


def test_segments_when_two_have_the_same_offsets_then_they_are_refused(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments(numbered(0, 10))
    copy = tmp_path / "copy" / "events_0"
    copy.mkdir(parents=True)
    (copy / f"{0:020d}.pylog").write_bytes(build_set(numbered(0, 10)))

    with pytest.raises(LogCorruptError, match="both have offset 0"):
        read(paths=f'["{data}", "{tmp_path / "copy"}"]')


@pytest.mark.parametrize("tail", [b"\0", build_set([b"unfinished"])[:-1]])
def test_newest_segment_when_its_last_message_is_unfinished_then_leaves_it_out(
    write_segments: WriteSegments, tail: bytes
) -> None:
    data = write_segments(numbered(0, 10), tail=tail)

    (omission,) = plan({"path": str(data)}).omissions

    assert values(read(path=str(data))) == numbered(0, 10)
    assert (omission.cause, omission.start) == (Cause.INCOMPLETE, 10 * SIZE)
    assert omission.end - omission.start == len(tail)


@pytest.mark.parametrize("tail", [b"", b"\0\0", build_set([bytes(1 << 20)])[:-1]])
def test_newest_segment_when_larger_than_what_is_looked_at_then_its_end_is_right(
    write_segments: WriteSegments, tail: bytes
) -> None:
    payloads = [bytes([number]) * 1000 for number in range(256)] * 4
    data = write_segments(payloads, tail=tail)

    assert values(read(path=str(data))) == payloads


def test_newest_segment_when_messages_hold_message_sets_then_its_end_is_right(
    write_segments: WriteSegments,
) -> None:
    payloads = [build_set(numbered(0, 50)) for _ in range(1000)]
    data = write_segments(payloads)

    assert values(read(path=str(data))) == payloads


def test_newest_segment_when_whole_messages_follow_damage_then_it_is_no_unfinished_one(
    write_segments: WriteSegments,
) -> None:
    data = write_segments(numbered(0, 10))
    (file,) = (data / "events_0").iterdir()
    damaged = bytearray(file.read_bytes())
    damaged[5 * SIZE] = 0x7F  # a length beyond the end of the file
    file.write_bytes(damaged)

    with pytest.raises(InvalidMessageError, match=rf"events\[0-0\]: the message at {5 * SIZE} "):
        read(path=str(data))


def test_message_when_larger_than_a_block_then_the_end_is_found(
    write_segments: WriteSegments,
) -> None:
    large = bytes(5 << 20)
    data = write_segments([b"first", large, b"last"])

    assert values(read(path=str(data), maxBytesPerPartition="1m")) == [b"first", large, b"last"]


def test_large_partition_when_cut_then_every_piece_starts_on_a_message(
    write_segments: WriteSegments,
) -> None:
    data = write_segments(numbered(0, 500), numbered(500, 999))
    options = {"path": str(data), "maxBytesPerPartition": "1000"}

    made = plan(options)

    assert len(made.tasks) == 14
    assert values(read(**options)) == numbered(0, 999)


def test_pieces_when_more_are_wanted_then_are_made(write_segments: WriteSegments) -> None:
    data = write_segments(numbered(0, 500))

    assert len(plan({"path": str(data), "minPartitions": "4"}).tasks) == 4


BASE_S = 1_795_161_605


@pytest.mark.parametrize("is_archived", [False, True])
def test_times_when_asked_for_then_whole_files_are_read(
    write_segments: WriteSegments, is_archived: bool
) -> None:
    data = write_segments(numbered(0, 10), numbered(10, 20), numbered(20, 30))
    for age, file in enumerate(sorted((data / "events_0").iterdir(), reverse=True)):
        os.utime(file, (BASE_S - 100 * age, BASE_S - 100 * age))
    if is_archived:
        for file in list((data / "events_0").iterdir()):
            archive_segment(data, P0, file)
            file.unlink()

    def between(start_s: int, end_s: int) -> list[bytes]:
        return values(
            read(
                path=str(data),
                startingTimestamp=str(BASE_S + start_s),
                endingTimestamp=str((BASE_S + end_s) * 1000),
            )
        )

    assert between(-1000, 1000) == numbered(0, 30)
    assert between(-50, 1000) == numbered(10, 30)
    assert between(-50, -50) == numbered(10, 20)
    assert between(-1000, -300) == []


def test_archives_when_read_beside_segments_then_gives_all_messages_in_order(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments(numbered(0, 10), numbered(10, 20), numbered(20, 30))
    first, second, _ = sorted((data / "events_0").iterdir())
    for path in (first, second):
        archive_segment(tmp_path / "archive", P0, path)
    first.unlink()  # retention has not deleted the second one yet
    paths = json.dumps([str(data), str(tmp_path / "archive")])
    options = {"paths": paths, "maxBytesPerPartition": "20"}

    made = plan(options)

    assert values(run(made, options)) == numbered(0, 30)
    sizes = {task.range.start: task.range.size_bytes for task in made.tasks}
    assert sizes.pop(0) == 10 * SIZE  # the archive is not cut, the others are
    assert max(sizes.values()) < 2 * SIZE + 20


def test_archive_when_read_from_an_offset_inside_then_starts_there(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    (path,) = (write_segments(numbered(0, 10)) / "events_0").iterdir()
    archived = archive_segment(tmp_path, P0, path)
    starting = f'{{"events": {{"0-0": {4 * SIZE}}}}}'

    assert values(read(path=str(archived), startingOffsets=starting)) == numbered(4, 10)


def test_archive_when_cut_off_or_of_two_files_then_is_an_error(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    (path,) = (write_segments(numbered(0, 10)) / "events_0").iterdir()
    archived = archive_segment(tmp_path, P0, path)
    packed = archived.read_bytes()

    archived.write_bytes(packed[:-9])
    with pytest.raises(LogCorruptError, match="archive is damaged"):
        read(path=str(archived))
    archived.write_bytes(packed + packed)
    with pytest.raises(LogCorruptError, match="unpacks to"):
        read(path=str(archived))


def test_topics_when_selected_then_others_are_left_out(write_segments: WriteSegments) -> None:
    write_segments(numbered(0, 3), directory="events_0")
    write_segments(numbered(3, 6), directory="events_1")
    data = write_segments(numbered(6, 9), directory="others_0")

    assert values(read(path=str(data), subscribe="others")) == numbered(6, 9)
    assert values(read(path=str(data), subscribePattern="ev.*")) == numbered(0, 6)
    assert values(read(path=str(data), assign='{"events":["0-1"]}')) == numbered(3, 6)


@pytest.mark.parametrize("selection", [{"subscribe": "nowhere"}, {"assign": '{"events":["0-7"]}'}])
def test_topic_or_partition_when_there_are_no_files_of_it_then_says_so(
    write_segments: WriteSegments, selection: dict[str, str]
) -> None:
    with pytest.raises(TopicNotFoundError, match="is not in these files"):
        read(path=str(write_segments(numbered(0, 3))), **selection)


def test_positions_when_asked_of_files_then_are_the_boundaries_around(
    write_segments: WriteSegments,
) -> None:
    logs = FileLogs(files_of([write_segments(numbered(0, 10), numbered(10, 20))]))

    assert logs.boundary_before(P0, 15 * SIZE + 1) == 15 * SIZE
    assert logs.boundary_after(P0, 15 * SIZE + 1) == 16 * SIZE
    assert logs.boundary_after(P0, 20 * SIZE) == 20 * SIZE
    assert logs.segment_starts(P0) == [0, 10 * SIZE, 20 * SIZE]


def test_offset_when_inside_a_message_then_its_neighbours_are_named(
    write_segments: WriteSegments,
) -> None:
    data = write_segments(numbered(0, 10))
    document = f'{{"events":{{"0-0":{SIZE + 1}}}}}'

    with pytest.raises(
        ConfigError,
        match=rf"startingOffsets: offset {SIZE + 1} of events\[0-0\] is inside a message; "
        rf"messages start at {SIZE} and {2 * SIZE}",
    ):
        read(path=str(data), startingOffsets=document)


def test_real_kafka_segment_when_read_then_gives_its_messages(shared_data: Path) -> None:
    rows = read(path=str(shared_data / "kafka-magic0"))

    assert len(rows) == 100
    assert rows[-1]["next_offset"] == 10_900
