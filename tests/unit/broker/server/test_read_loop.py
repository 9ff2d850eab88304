from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.errors import OutOfDescriptorsError, StorageError
from broker.log.segment import FileSlice, SegmentFile
from broker.protocol.replica_requests import ReplicaPosition
from broker.protocol.responses import decode_extension_response
from broker.replication.replica_log import NO_DIVERGENCE, FetchAnswer
from broker.server.requests import replica_reads
from broker.server.requests.read_loop import ENOUGH, is_enough, read_parts
from broker.topic import TopicPartition


class Unread:
    def note_unreadable(self, found: FileSlice, position: int) -> StorageError | None:
        raise AssertionError(f"{found} could not be read at {position}")


@pytest.fixture
def segment(tmp_path: Path) -> SegmentFile:
    (tmp_path / "segment").write_bytes(bytes(100))
    return SegmentFile(tmp_path / "segment")


@pytest.mark.parametrize(
    ("readable", "min_bytes", "expected"),
    [
        ([], 1, False),
        ([], 0, True),
        ([3, 4], 7, True),
        ([3, 4], 8, False),
        ([3, ENOUGH], 1 << 40, True),
    ],
)
def test_is_enough_when_positions_have_bytes_then_counts_them_together(
    readable: list[int], min_bytes: int, expected: bool
) -> None:
    assert is_enough(readable, min_bytes) is expected


def test_read_parts_when_positions_have_messages_then_all_share_the_room(
    segment: SegmentFile,
) -> None:
    asked: list[tuple[int, int, bool]] = []

    def read(size: int, room_bytes: int, has_messages: bool) -> tuple[bytes, FileSlice | None]:
        asked.append((size, room_bytes, has_messages))
        return b"%d" % size, FileSlice(segment, 0, size, Unread()) if size else None

    head, first, between, second = read_parts(7, [0, 30, 20], 100, read)
    assert asked == [(0, 100, False), (30, 100, False), (20, 70, True)]
    assert isinstance(first, FileSlice) and isinstance(second, FileSlice)
    assert (first.length, between, second.length) == (30, b"20", 20)
    assert isinstance(head, bytes)
    size = int.from_bytes(head[:4], "big")
    assert size == len(head) - 4 + 30 + len(b"20") + 20
    correlation_id, body = decode_extension_response(memoryview(head)[4:])
    assert (correlation_id, body.int32(), bytes(body.rest)) == (7, 3, b"030")


@pytest.mark.parametrize("has_messages", [False, True])
def test_read_of_a_follower_when_descriptors_run_out_then_skipped_behind_messages_only(
    has_messages: bool,
) -> None:
    def read(*_: object, **__: object) -> None:
        raise OutOfDescriptorsError("too many open files")

    hosted: Any = SimpleNamespace(log=SimpleNamespace(read=read))
    position = ReplicaPosition(TopicPartition("events", 0, 0), 0, 0, 0, 0, 0, 100)
    answer = FetchAnswer(0, 0, NO_DIVERGENCE)
    if has_messages:
        assert replica_reads._read(hosted, position, answer, 100, has_messages)[1] is None
    else:
        with pytest.raises(OutOfDescriptorsError):
            replica_reads._read(hosted, position, answer, 100, has_messages)
