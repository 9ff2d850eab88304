"""Looking up offsets in the index of record batches."""

from __future__ import annotations

import os

import pytest

from broker.log.batch_index import MAX_RELATIVE, BatchIndex
from broker.log.log import Log
from broker.protocol.codec import Record, RecordBatch, encode_batch
from broker.topic import NO_HOME
from tests.support.log_fixtures import LogFactory

_BATCH = encode_batch([Record(number, 5, None, bytes(700)) for number in range(3)])
_COUNT = 100


@pytest.fixture
def log(make_log: LogFactory) -> Log:
    """Return a log with a closed segment of a hundred batches of three records."""
    log = make_log(home=NO_HOME, segment_bytes=_COUNT * len(_BATCH) - 1)
    for _ in range(_COUNT + 1):
        log.append(_BATCH, 3)
    log.flush()
    return log


def position(log: Log, offset: int) -> int:
    found = log.read(offset, 100)
    assert found is not None
    return found.position


def test_offsets_when_they_follow_each_other_in_a_closed_segment_then_the_index_is_read_once(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    open_file = os.open

    def noting(path: str, flags: int, *more: int) -> int:
        opened.append(str(path))
        return open_file(path, flags, *more)

    assert len(log.segments.all) == 2
    monkeypatch.setattr(os, "open", noting)
    for offset in range(90, 200):
        assert position(log, offset) == offset // 3 * len(_BATCH)

    assert sum(path.endswith(".index") for path in opened) == 1


def test_offset_when_it_is_before_the_last_one_looked_up_then_is_found(log: Log) -> None:
    for offset in (290, 0, 299, 150, 7, 298):
        assert position(log, offset) == offset // 3 * len(_BATCH)


def test_segment_when_positions_exceed_those_of_an_index_then_is_rolled() -> None:
    index = BatchIndex(0)
    batch = RecordBatch(size=100, last_offset_delta=0)

    index.add(batch, MAX_RELATIVE - 100)
    assert not index.needs_roll([batch], 0, 1)
    index.add(batch._replace(base_offset=1), MAX_RELATIVE)
    assert index.needs_roll([batch], 0, 1)
    index.add(batch._replace(base_offset=2), MAX_RELATIVE + 5000)
    assert index.last_row == (0, MAX_RELATIVE - 100)
