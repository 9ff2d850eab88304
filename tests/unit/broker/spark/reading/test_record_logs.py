"""Kafka's segment files planned and read by tasks, without Spark."""

from __future__ import annotations

import gzip
import json
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from broker.errors import ConfigError, InvalidMessageError, LogCorruptError
from broker.protocol.codec import NEW_BATCH, Record, crc32c, scan_batches
from broker.protocol.message_set import build_set
from broker.spark.reading.ranges import LogFile, RecordFiles
from broker.spark.reading.record_logs import RecordLog
from broker.spark.reading.report import Cause
from broker.topic import NO_HOME, TopicPartition
from tests.support.kafka_files import (
    ABORT,
    CONTROL,
    TRANSACTIONAL,
    batch,
    committed_digests,
    digest_of,
    records,
    write_aborted,
    write_log,
)
from tests.support.spark_rows import plan, read, run, values

LOG = "web.access-log 2-7"
P7 = TopicPartition("web.access-log 2", NO_HOME, 7)


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % one for one in range(first, last)]


def two_segments(data: Path) -> Path:
    """Write 200 records in batches of five, in two segments."""
    for base in (0, 100):
        some = (batch(records(at, at + 5)) for at in range(base, base + 100, 5))
        write_log(data / LOG, *some, base_offset=base)
    return data


@pytest.mark.parametrize("task_bytes", ["1g", "1000"])
def test_directories_of_kafka_when_read_then_give_the_records_that_it_wrote(
    kafka_logs: Path, task_bytes: str
) -> None:
    rows = read(path=str(kafka_logs), maxBytesPerPartition=task_bytes)

    rows.sort(key=lambda row: str(row["topic"]))
    by_topic = {key: list(some) for key, some in groupby(rows, lambda row: str(row["topic"]))}
    found = {topic: digest_of(some) for topic, some in by_topic.items()}
    wanted = committed_digests(kafka_logs)
    assert {topic: found[topic] for topic in wanted} == wanted
    assert len(found) == 18
    assert len(by_topic["v2-rolled"]) == 300
    assert {row["timestampType"] for row in by_topic["v0-lz4"]} == {-1}
    assert {row["timestampType"] for row in by_topic["v2-append-time"]} == {1}


def test_records_when_read_then_have_the_columns_of_sparks_kafka_source(tmp_path: Path) -> None:
    header = ("trace", b"\xff"), ("näme", None)
    write_log(tmp_path / LOG, batch([Record(0, 1_500, None, None, header)]))

    (row,) = read(path=str(tmp_path))

    assert list(row) == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    assert (row["key"], row["value"], row["topic"], row["partition"]) == (None, None, P7.topic, 7)
    assert (row["timestamp"].timestamp(), row["timestampType"]) == (1.5, 0)
    assert [(one["key"], one["value"]) for one in row["headers"]] == list(header)


def test_header_name_and_time_when_spark_cannot_have_them_then_are_replaced(tmp_path: Path) -> None:
    some = [Record(0, 2**62, None, b"a"), Record(1, 1_000, None, b"b", (("näm", b""),))]
    stored = batch(some, NEW_BATCH)
    damaged = stored.replace("näm".encode(), b"n\xc3m" + b"!")
    assert len(damaged) == len(stored)
    crc_fixed = bytearray(damaged)
    crc_fixed[17:21] = crc32c(crc_fixed[21:]).to_bytes(4, "big")
    write_log(tmp_path / LOG, bytes(crc_fixed))

    first, second = read(path=str(tmp_path))

    assert first["timestamp"] is None
    assert second["headers"][0]["key"] == "n\ufffdm!"


@pytest.mark.parametrize("task_bytes", [300, 1_000, 100_000])
def test_range_when_cut_then_tasks_start_at_batches_and_have_each_record_once(
    tmp_path: Path, task_bytes: int
) -> None:
    data = two_segments(tmp_path)
    options = {"path": str(data), "maxBytesPerPartition": str(task_bytes)}

    made = plan(options)

    assert values(run(made, options)) == numbers(0, 200)
    ranges = [one.range for one in made.tasks]
    assert (ranges[0].start, ranges[-1].end) == (0, 200)
    assert all(one.end == other.start for one, other in pairwise(ranges))
    for task in made.tasks:
        assert isinstance(task.location, RecordFiles)
        assert task.size_bytes <= task_bytes + len(batch(records(100, 105)))
        for part in task.location.parts:
            content = part.path.read_bytes()[part.start : part.end]
            assert scan_batches(content).valid_bytes == len(content) > 0


def test_small_files_when_planned_then_are_read_in_one_task(tmp_path: Path) -> None:
    made = plan({"path": str(two_segments(tmp_path))})

    assert len(made.tasks) == 1
    assert [one.partition for one in made.ranges] == [P7]


def test_offsets_when_inside_batches_then_are_exact(tmp_path: Path) -> None:
    data = two_segments(tmp_path)
    starting, ending = f'{{"{P7.topic}": {{"7": 98}}}}', f'{{"{P7.topic}": {{"7": 103}}}}'

    rows = read(path=str(data), startingOffsets=starting, endingOffsets=ending)
    assigned = read(path=str(data), assign=f'{{"{P7.topic}": [7]}}', startingOffsets=starting)

    assert values(rows) == numbers(98, 103)
    assert values(assigned) == numbers(98, 200)


def test_times_when_given_then_are_those_of_records(tmp_path: Path) -> None:
    data = two_segments(tmp_path)

    bounds = {
        "startingTimestamp": "1970-01-01T00:01:37Z",
        "endingTimestamp": "1970-01-01T00:01:42.500Z",
    }
    rows = read(path=str(data), **bounds)
    later = read(path=str(data), startingTimestamp="1970-01-02T00:00:00Z")

    assert values(rows) == numbers(97, 103)
    assert later == []


def test_transaction_when_aborted_then_its_records_are_left_out(tmp_path: Path) -> None:
    mine, other = (NEW_BATCH._replace(attributes=TRANSACTIONAL, producer_id=one) for one in (5, 6))
    mark = mine._replace(attributes=CONTROL)
    path = write_log(
        tmp_path / LOG,
        batch(records(0, 3), mine),
        batch(records(3, 5), other),
        batch(records(5, 6)),
        batch([ABORT._replace(offset=6)], mark),
        batch(records(7, 9), mine),
    )
    # the mark may be in a later segment than the one that is read
    write_aborted(path.with_name(f"{9:020d}.log"), (5, 0, 6))

    made = plan({"path": str(path), "maxBytesPerPartition": "40"})

    assert values(run(made, {"path": str(path)})) == [b"3", b"4", b"5", b"7", b"8"]
    locations = [task.location for task in made.tasks if isinstance(task.location, RecordFiles)]
    assert [len(one.aborted) for one in (locations[0], locations[-1])] == [1, 0]
    path.with_suffix(".txnindex").write_bytes(bytes(33))
    with pytest.raises(LogCorruptError, match="txnindex"):
        read(path=str(path))


def test_batch_when_damaged_then_fails_or_is_left_out_and_reported(tmp_path: Path) -> None:
    good = [batch(records(at, at + 5)) for at in (0, 5, 10)]
    bad = bytearray(good[1])
    bad[-1] ^= 1
    path = write_log(tmp_path / LOG, good[0], bytes(bad), good[2])
    options = {"path": str(tmp_path), "crc": "skip", "reportPath": str(tmp_path / "report")}

    with pytest.raises(InvalidMessageError) as failure:
        read(path=str(tmp_path))
    rows = read(**options)

    text = str(failure.value)
    assert str(path) in text
    assert f"at offset 5: the message at {len(good[0])} is invalid" in text
    assert "crc=skip leaves it out" in text
    assert values(rows) == [*numbers(0, 5), *numbers(10, 15)]
    (report,) = (tmp_path / "report").iterdir()
    assert '"cause": "corrupt"' in report.read_text()
    assert f'"size_bytes": {len(bad)}' in report.read_text()


@pytest.mark.parametrize("task_bytes", ["100", "1g"])
@pytest.mark.parametrize("first", [0, 3, 12])
def test_size_when_damaged_then_rows_are_the_same_however_the_range_is_cut(
    tmp_path: Path, first: int, task_bytes: str
) -> None:
    good = [batch(records(at, at + 5)) for at in range(0, 20, 5)]
    bad = bytearray(good[0])
    bad[11] += 20  # leads into the next batch
    write_log(tmp_path / LOG, bytes(bad), *good[1:])
    starting = f'{{"{P7.topic}": {{"7": {first}}}}}'

    rows = read(
        path=str(tmp_path), crc="skip", maxBytesPerPartition=task_bytes, startingOffsets=starting
    )

    assert values(rows) == numbers(max(first, 5), 20)


def omissions_in(report: Path) -> list[tuple[int, int]]:
    lines = [line for one in report.iterdir() for line in one.read_text().splitlines()]
    return sorted((one["start"], one["end"]) for one in map(json.loads, lines))


def test_records_when_damaged_then_their_own_offsets_are_reported(tmp_path: Path) -> None:
    good = [batch(records(at, at + 5)) for at in range(0, 20, 5)]
    bad = bytearray(good[2])
    bad[61] ^= 2  # the length of a record
    bad[17:21] = crc32c(bad[21:]).to_bytes(4, "big")
    write_log(tmp_path / LOG, *good[:2], bytes(bad), good[3])
    report = tmp_path / "report"

    with pytest.raises(InvalidMessageError, match="at offset 10"):
        read(path=str(tmp_path))
    rows = read(path=str(tmp_path), crc="skip", reportPath=str(report))

    assert values(rows) == [*numbers(0, 10), *numbers(15, 20)]
    assert omissions_in(report) == [(10, 15)]


@pytest.mark.parametrize("task_bytes", ["100", "1g"])
def test_damage_when_at_the_end_of_a_file_then_offsets_up_to_the_next_file_are_reported(
    tmp_path: Path, task_bytes: str
) -> None:
    good = [batch(records(at, at + 5)) for at in range(0, 15, 5)]
    write_log(tmp_path / LOG, good[0], bytes(len(good[1])))
    write_log(tmp_path / LOG, good[2], base_offset=10)
    report = tmp_path / "report"
    options = {"path": str(tmp_path), "crc": "skip", "reportPath": str(report)}

    rows = read(**options, maxBytesPerPartition=task_bytes)

    assert values(rows) == [*numbers(0, 5), *numbers(10, 15)]
    assert omissions_in(report) == [(5, 10)]


@pytest.mark.parametrize("task_bytes", ["100", "1g"])
@pytest.mark.parametrize("is_archived", [False, True])
def test_segments_when_they_overlap_then_no_record_is_read_twice(
    tmp_path: Path, task_bytes: str, is_archived: bool
) -> None:
    path = write_log(tmp_path / LOG, batch(records(0, 2)), batch(records(2, 4)))
    write_log(tmp_path / LOG, batch(records(2, 5)), base_offset=2)
    if is_archived:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    options = {"path": str(tmp_path), "maxBytesPerPartition": task_bytes}

    with pytest.raises(InvalidMessageError, match=r"offsets 2\.\.3, and 2\.\.1 are free") as found:
        read(**options)
    rows = read(**options, crc="skip")

    assert str(path) in str(found.value)
    assert values(rows) == numbers(0, 5)


def with_offset(stored: bytes, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + stored[8:]


@pytest.mark.parametrize(("number", "offset"), [(2, 2**40), (1, 7_000), (1, 107), (2, 1)])
def test_offset_of_a_batch_when_damaged_in_the_newest_file_then_it_has_no_end(
    tmp_path: Path, number: int, offset: int
) -> None:
    stored = [batch(records(at, at + 5)) for at in range(100, 115, 5)]
    stored[number] = with_offset(stored[number], offset)
    path = write_log(tmp_path / LOG, *stored, base_offset=100)

    with pytest.raises(LogCorruptError, match="must be in") as failure:
        plan({"path": str(tmp_path)})

    assert str(path) in str(failure.value)
    assert f"the batch at {2 * len(stored[0])} has offset" in str(failure.value)


@pytest.mark.parametrize("task_bytes", ["100", "1g"])
def test_offset_of_a_batch_when_damaged_where_a_task_may_start_then_fails(
    tmp_path: Path, task_bytes: str
) -> None:
    stored = [batch(records(at, at + 5)) for at in range(0, 20, 5)]
    write_log(tmp_path / LOG, stored[0], stored[1], with_offset(stored[2], 9), stored[3])
    write_log(tmp_path / LOG, batch(records(20, 25)), base_offset=20)

    with pytest.raises(InvalidMessageError, match="are free between"):
        read(path=str(tmp_path), maxBytesPerPartition=task_bytes)


@pytest.mark.parametrize("offset", [2**40, 3, 52, 90])
def test_offset_of_a_batch_when_damaged_in_an_older_file_then_fails_or_is_reported(
    tmp_path: Path, offset: int
) -> None:
    stored = [batch(records(at, at + 5)) for at in range(50, 65, 5)]
    write_log(tmp_path / LOG, stored[0], with_offset(stored[1], offset), stored[2], base_offset=50)
    write_log(tmp_path / LOG, batch(records(65, 70)), base_offset=65)
    report = tmp_path / "report"

    with pytest.raises(InvalidMessageError, match=r"and 55\.\.64 are free between"):
        read(path=str(tmp_path))
    rows = read(path=str(tmp_path), crc="skip", reportPath=str(report))

    assert values(rows) == [*numbers(50, 55), *numbers(60, 70)]
    assert omissions_in(report) == [(55, 60)]


def test_file_when_it_grows_after_listing_then_its_end_is_that_of_the_listing(
    tmp_path: Path,
) -> None:
    listed, later = batch(records(0, 5)), batch(records(5, 10))
    path = write_log(tmp_path / LOG, listed, later)

    log = RecordLog(P7, [LogFile(path, 0, len(listed) + 1)])

    assert (log.end, log.tail_bytes) == (5, 1)


@pytest.mark.parametrize("tail", [bytes(5_000), b"\xff" * 70, batch(records(5, 9))[:-1]])
def test_file_when_its_end_is_no_whole_batch_then_that_is_left_out(
    tmp_path: Path, tail: bytes
) -> None:
    write_log(tmp_path / LOG, batch(records(0, 5)), tail)
    options = {"path": str(tmp_path)}

    made = plan(options)

    assert values(run(made, options)) == numbers(0, 5)
    (omission,) = made.omissions
    assert (omission.cause, omission.size_bytes) == (Cause.INCOMPLETE, len(tail))


def test_index_when_wrong_then_is_not_believed(tmp_path: Path) -> None:
    data = two_segments(tmp_path)
    for path in (data / LOG).glob("*.log"):
        path.with_suffix(".index").write_bytes(b"\0\0\0\x50\0\0\0\x07" + b"\x7f" * 8)

    rows = read(path=str(data), maxBytesPerPartition="1000")

    assert values(rows) == numbers(0, 200)


def test_newest_file_when_empty_then_the_log_ends_before_it(tmp_path: Path) -> None:
    two_segments(tmp_path)
    write_log(tmp_path / LOG, base_offset=200)

    made = plan({"path": str(tmp_path)})

    assert [(one.start, one.end) for one in made.ranges] == [(0, 200)]


def test_archive_when_read_then_is_one_task(tmp_path: Path) -> None:
    data = two_segments(tmp_path)
    for path in list((data / LOG).iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    options = {"path": str(data), "maxBytesPerPartition": "1000"}

    made = plan(options)

    assert len(made.tasks) == 2
    assert values(run(made, options)) == numbers(0, 200)


def test_formats_when_mixed_then_are_refused_unless_one_is_selected(tmp_path: Path) -> None:
    kafka = write_log(tmp_path / LOG, batch(records(0, 5)))
    old = tmp_path / "events_0" / f"{0:020d}.kafka"
    old.parent.mkdir()
    old.write_bytes(build_set([b"old"]))

    with pytest.raises(ConfigError, match="one after the other") as failure:
        plan({"path": str(tmp_path)})

    assert str(kafka) in str(failure.value)
    assert str(old) in str(failure.value)
    assert values(read(path=str(tmp_path), subscribe="events")) == [b"old"]
    assert values(read(path=str(tmp_path), subscribe=P7.topic)) == numbers(0, 5)


@pytest.mark.parametrize("crc", ["mark", "off"])
def test_crc_when_batches_cannot_have_it_then_is_refused(tmp_path: Path, crc: str) -> None:
    write_log(tmp_path / LOG, batch(records(0, 5)))

    with pytest.raises(ConfigError, match="valid: fail, skip"):
        plan({"path": str(tmp_path), "crc": crc})


def test_directory_when_its_topic_is_being_deleted_then_is_left_out(tmp_path: Path) -> None:
    write_log(tmp_path / f"{LOG}.{'0a' * 16}-delete", batch(records(0, 5)))
    write_log(tmp_path / "other-0", batch(records(0, 5)))

    assert {row["topic"] for row in read(path=str(tmp_path))} == {"other"}


@pytest.mark.parametrize("name", ["t-99999999999", "t-2147483648", "t-2147483647"])
def test_partition_when_larger_than_an_int_then_is_refused_with_its_directory(
    tmp_path: Path, name: str
) -> None:
    write_log(tmp_path / name, batch(records(0, 5)))

    if name.endswith("7"):
        assert read(path=str(tmp_path))[0]["partition"] == 2**31 - 1
        return
    with pytest.raises(ConfigError, match=name):
        plan({"path": str(tmp_path)})
