from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.log.retention import archive_segment
from broker.log.segment import segment_name
from broker.topic import TopicPartition

PARTITION = TopicPartition("events", 2, 1)


def test_archive_segment_when_done_then_reads_back_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / segment_name(12)
    path.write_bytes(b"content" * 1000)
    target = archive_segment(tmp_path / "archive", PARTITION, path)
    assert target == tmp_path / "archive" / "events_2-1" / f"{12:020d}.pylog.gz"
    assert gzip.decompress(target.read_bytes()) == path.read_bytes()
    assert list(target.parent.iterdir()) == [target]


def test_archive_segment_when_left_from_an_earlier_try_then_replaced(tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(b"content")
    target = tmp_path / "events_2-1" / f"{path.name}.gz"
    target.parent.mkdir()
    target.write_bytes(b"half of it")
    archive_segment(tmp_path, PARTITION, path)
    assert gzip.decompress(target.read_bytes()) == b"content"


def test_archive_segment_when_source_is_missing_then_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot archive"):
        archive_segment(tmp_path / "archive", PARTITION, tmp_path / segment_name(0))
    assert list((tmp_path / "archive" / "events_2-1").iterdir()) == []
