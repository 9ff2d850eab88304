"""Kafka's files beside a segment: read as brokers wrote them, refused when they are damaged."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.cluster_state import EpochStart
from broker.errors import LogCorruptError
from broker.log import side_files
from broker.log.side_files import (
    SideFileError,
    indexes_of,
    read_aborted,
    read_epochs,
    read_index,
    read_snapshot,
    read_time_index,
    read_topic_id,
)
from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch

TOPIC_ID = UUID("11223344-5566-7788-99aa-bbccddeeff00")
INTERVALS = {"v2-rolled": 512} | dict.fromkeys(
    ("v2-append-time", "v2-clients", "v2-compacted", "v2-txn"), 4096
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def index(*rows: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *row) for row in rows)


def time_index(*rows: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *row) for row in rows)


def aborted(*rows: tuple[int, int, int, int], version: int = 0) -> bytes:
    return b"".join(struct.pack(">hqqqq", version, *row) for row in rows)


def snapshot(*rows: tuple[int, ...], version: int = 1, count: int | None = None) -> bytes:
    checked = struct.pack(">i", len(rows) if count is None else count)
    checked += b"".join(struct.pack(">qhiqiqiq", *row) for row in rows)
    return struct.pack(">hI", version, codec.crc32c(checked)) + checked


def metadata(version: int = 0, topic_id: UUID = TOPIC_ID) -> bytes:
    text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    return f"version: {version}\ntopic_id: {text}".encode()


PRODUCER = (1005, 2, 7, 99, 7, 1700000000000, -1, 92)


def test_files_when_a_broker_wrote_them_then_have_what_the_manifest_tells(kafka_logs: Path) -> None:
    topics = json.loads((kafka_logs / "manifest.json").read_text())["topics"]
    seen = 0
    for topic in topics.values():
        for name, producers in topic["snapshots"].items():
            found = list(
                read_snapshot(kafka_logs / Path(topic["segments"][0]["file"]).parent / name)
            )
            assert found == [tuple(one.values()) for one in producers]
            seen += len(found)
        for one in topic["segments"]:
            path = kafka_logs / one["file"]
            base = int(path.stem)
            places = [
                [offset - base, position]
                for _, offset, position in read_index(path.with_suffix(".index"), base)
            ]
            times = [
                [time, offset - base]
                for _, time, offset in read_time_index(path.with_suffix(".timeindex"), base)
            ]
            assert (places, times) == (one["index"], one["timeindex"])
            seen += len(places) + len(times)
    assert seen > 100


def test_files_of_a_partition_when_a_broker_wrote_them_then_are_read(kafka_logs: Path) -> None:
    directory = kafka_logs / "v2-txn-0"
    assert list(read_aborted(directory / f"{10:020d}.txnindex")) == [
        (1005, 11, 21, 22),
        (1005, 44, 54, 55),
    ]
    assert read_epochs(directory / "leader-epoch-checkpoint") == [EpochStart(0, 0)]
    assert read_topic_id(directory / "partition.metadata").version == 4


def test_indexes_when_made_again_then_are_those_of_the_broker(kafka_logs: Path) -> None:
    for path in kafka_logs.glob("*/*.log"):
        interval = INTERVALS.get(path.parent.name[:-2], 1024)
        made = indexes_of(path, int(path.stem), path.stat().st_size, interval_bytes=interval)
        beside = [path.with_suffix(suffix).read_bytes() for suffix in (".index", ".timeindex")]
        assert list(made) == beside, path


def test_indexes_when_an_offset_does_not_fit_then_has_the_position(file: Path) -> None:
    batch = codec.encode_batch([Record(2**40, 0, None, b"")], RecordBatch(base_offset=2**40))
    file.write_bytes(batch)
    with pytest.raises(LogCorruptError, match=f"position 0: offset {2**40}"):
        indexes_of(file, 0, len(batch))


@pytest.mark.parametrize("size", [0, 8, 4096, 3 << 20])
def test_index_when_preallocated_then_zeros_behind_the_last_entry_are_none(
    file: Path, size: int
) -> None:
    file.write_bytes(index((5, 256), (9, 0x300)) + bytes(size))
    assert [one[1:] for one in read_index(file, 100)] == [(105, 256), (109, 0x300)]
    file.write_bytes(time_index((7, 0), (1 << 32, 256)) + bytes(size // 2 // 12 * 12))
    assert [one[1:] for one in read_time_index(file, 100)] == [(7, 100), (1 << 32, 356)]
    file.write_bytes(bytes(size))
    assert not list(read_index(file, 100))


DAMAGED: list[tuple[Callable[[Path], Iterable[Any]], bytes, int, str]] = [
    (lambda path: read_index(path, 0), index((5, 100), (5, 200)), 8, "relative offset above 5"),
    (lambda path: read_index(path, 0), index((5, 100), (6, 100)), 8, "position above 100"),
    (lambda path: read_index(path, 0), index((-1, 100)), 0, "relative offset above -1"),
    (lambda path: read_index(path, 0), index((5, 1), (0, 0), (6, 2)), 8, "above 5"),
    (lambda path: read_index(path, 0), index((5, 1)) + b"abc", 8, "entry of 8 bytes"),
    (lambda path: read_time_index(path, 0), time_index((9, 1), (9, 2)), 12, "timestamp above 9"),
    (lambda path: read_time_index(path, 0), time_index((9, 3), (10, 2)), 12, "offset from 3"),
    (lambda path: read_time_index(path, 0), time_index((9, -3)), 0, "relative offset"),
    (read_aborted, aborted((1, 2, 3, 4), (1, 2, 3, 4)), 34, "last offset above 3"),
    (read_aborted, aborted((1, 5, 3, 4)), 0, "first and last offset"),
    (read_aborted, aborted((1, 2, 3, 4), version=1), 0, "version 0"),
    (read_aborted, aborted((1, 2, 3, 4))[:-1], 0, "entry of 34 bytes"),
    (read_snapshot, b"", 0, "at least 10 bytes"),
    (read_snapshot, snapshot(PRODUCER)[:-1], 2, "CRC"),
    (read_snapshot, snapshot(PRODUCER, version=2), 0, "version 1"),
    (read_snapshot, snapshot(PRODUCER, count=2), 6, "2 producers"),
    (read_snapshot, snapshot(PRODUCER, count=-1), 6, "-1 producers"),
    (read_epochs, b"", 0, "a version and a count"),
    (read_epochs, b"1\n0\n", 0, "version 0"),
    (read_epochs, b"0\n2\n0 0\n", 8, "2 epochs"),
    (read_epochs, b"0\n2\n1 0\n1 5\n", 8, "numbers above 1 0"),
    (read_epochs, b"0\n2\n1 6\n2 5\n", 8, "numbers above 1 6"),
    (read_epochs, b"0\n1\n1 -6\n", 4, "an epoch and an offset"),
    (read_epochs, b"0\n\xff\xfe\n", 2, "the count of epochs"),
    (lambda path: [read_topic_id(path)], metadata(version=1), 0, "version: 0"),
    (lambda path: [read_topic_id(path)], metadata(topic_id=UUID(int=0)), 0, "version: 0"),
    (lambda path: [read_topic_id(path)], metadata()[:-1], 0, "22 characters"),
    (lambda path: [read_topic_id(path)], bytes(100), 0, "22 characters"),
]


@pytest.mark.parametrize(("read", "content", "position", "reason"), DAMAGED)
def test_file_when_damaged_then_names_it_with_position_and_reason(
    file: Path,
    read: Callable[[Path], Iterable[Any]],
    content: bytes,
    position: int,
    reason: str,
) -> None:
    file.write_bytes(content)
    with pytest.raises(SideFileError) as caught:
        list(read(file))
    assert caught.value.position == position
    assert str(caught.value).startswith(f"{file}: position {position}: ")
    assert reason in str(caught.value)


def test_file_when_whole_then_is_read(file: Path) -> None:
    file.write_bytes(snapshot(PRODUCER, PRODUCER))
    assert [tuple(one) for one in read_snapshot(file)] == [PRODUCER] * 2
    file.write_bytes(b"0\n2\n1 6\n4 6\n")
    assert read_epochs(file) == [(1, 6), (4, 6)]
    file.write_bytes(metadata() + b"\n")
    assert read_topic_id(file) == TOPIC_ID


def test_text_when_huge_then_is_not_read_as_a_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_files, "_MAX_TEXT_BYTES", 1000)
    file.write_bytes(b"0\n" * 501)
    with pytest.raises(SideFileError, match="at most 1000 bytes"):
        read_epochs(file)
