"""What a log of record batches promises beyond any log: indexes are hints, and times are found."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker.errors import LostOffsetsError, OffsetOutOfRangeError, StorageError
from broker.log.format import BATCHES
from broker.log.log import Log
from broker.log.recovery import list_segments, recover, restore_end
from broker.log.replica_files import EpochFile
from broker.protocol import codec
from broker.protocol.codec import NEW_BATCH, Record
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from tests.support.log_fixtures import LogFactory
from tests.support.log_formats import bytes_of, set_of

pytestmark = pytest.mark.parametrize("log_format", ["kafka"], indirect=True)

BATCH_COUNT = 150
FIRST_MS = 1_700_000_000_000
TIMES = [FIRST_MS + 1000 * n - (20_000 if n % 50 == 25 else 0) for n in range(3 * BATCH_COUNT)]
"""They rise, but for some that are much earlier."""


def batch(number: int) -> bytes:
    """Return a batch of three records, at the times of these offsets."""
    offsets = range(3 * number, 3 * number + 3)
    values = [Record(at, TIMES[one], None, b"x" * 100) for at, one in enumerate(offsets)]
    return codec.encode_batch(values)


@pytest.fixture
def log(make_log: LogFactory) -> Log:
    """Three segments or more whose indexes have several rows."""
    log = make_log(segment_bytes=20_000)
    for number in range(BATCH_COUNT):
        log.append(batch(number), 3)
    log.flush()
    assert len(log.segments.all) > 2
    return log


def expect_all(log: Log) -> None:
    """Expect each offset in the batch that a read of it starts with, and each time."""
    assert (log.log_start_offset, log.log_end_offset) == (0, 3 * BATCH_COUNT)
    for offset in range(3 * BATCH_COUNT):
        found = log.read(offset, 1000)
        assert found is not None
        head = codec.scan_batches(bytes_of(found)).batches[0]
        assert head.base_offset == offset // 3 * 3
    later = list(itertools.accumulate(TIMES, max))
    for time_ms in range(TIMES[0] - 1000, TIMES[-1] + 2000, 500):
        expected = next((at for at, one in enumerate(later) if one >= time_ms), None)
        wanted = None if expected is None else (TIMES[expected], expected)
        assert log.offset_at(time_ms) == wanted


def lie(row: str, *changes: int) -> Callable[[bytes], bytes]:
    """Return what gives the rows of an index other numbers."""

    def changed(content: bytes) -> bytes:
        rows = struct.iter_unpack(row, content)
        numbers = ([max(0, sum(pair)) for pair in zip(one, changes, strict=True)] for one in rows)
        return b"".join(struct.pack(row, *one) for one in numbers)

    return changed


SPOILED: dict[str, Callable[[bytes], bytes | None]] = {
    "lost": lambda content: None,
    "empty": lambda content: b"",
    "cut in a row": lambda content: content[: len(content) // 2 + 3],
    "zeros": lambda content: bytes(len(content)),
    "zeros behind": lambda content: content + bytes(4000),
    "garbage": lambda content: bytes(range(256)) * 4,
    "ones": lambda content: b"\xff" * len(content),
    "backwards": lambda content: content[::-1],
}
OF_OFFSETS = {
    "offsets too high": lie(">ii", 7, 0),
    "offsets too low": lie(">ii", -7, 0),
    "positions too high": lie(">ii", 0, 900),
    "positions inside a batch": lie(">ii", 0, 5),
}


def spoil(log: Log, suffix: str, change: Callable[[bytes], bytes | None]) -> None:
    for path in log.directory.glob(f"*{suffix}"):
        content = change(path.read_bytes())
        path.unlink()
        if content is not None:
            path.write_bytes(content)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        *((".index", kind) for kind in (*SPOILED, *OF_OFFSETS)),
        *((".timeindex", kind) for kind in SPOILED),
    ],
)
def test_index_when_it_is_lost_or_wrong_then_all_offsets_and_times_are_found(
    make_log: LogFactory, log: Log, suffix: str, kind: str, is_clean: bool
) -> None:
    log.close()
    spoil(log, suffix, (SPOILED | OF_OFFSETS)[kind])
    if not is_clean:
        segments = list_segments(log.directory, BATCHES)
        assert recover(log.partition, segments, recovery_point=None, time_ms=FIRST_MS) == []

    opened = make_log(segment_bytes=20_000)

    expect_all(opened)
    assert opened.append(batch(0), 3) == (3 * BATCH_COUNT, 3 * BATCH_COUNT + 3)


@pytest.mark.parametrize("kind", SPOILED)
def test_retention_when_a_time_index_is_lost_or_wrong_then_nothing_seems_older(
    make_log: LogFactory, log: Log, kind: str
) -> None:
    times = [one.time_ms for one in log.segments.all]
    log.close()
    spoil(log, ".timeindex", SPOILED[kind])

    opened = make_log(segment_bytes=20_000)

    assert all(one.time_ms >= ms for one, ms in zip(opened.segments.all, times, strict=True))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_append_when_an_index_cannot_be_written_then_goes_on_and_the_next_start_finds_all(
    make_log: LogFactory, tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "log").mkdir()
    blocker = tmp_path / "log" / f"{0:020d}{suffix}"
    blocker.mkdir()
    log = make_log(segment_bytes=20_000)
    for number in range(BATCH_COUNT):
        log.append(batch(number), 3)
    log.flush()
    expect_all(log)
    log.close()
    blocker.rmdir()
    expect_all(make_log(segment_bytes=20_000))


def test_truncate_when_the_producers_cannot_be_read_then_the_log_fails_and_ends_there(
    make_log: LogFactory,
) -> None:
    log = make_log()
    log.replicate(EpochFile(log.directory))
    for number in range(10):
        head = NEW_BATCH._replace(producer_id=7, producer_epoch=0, base_sequence=number)
        log.append(set_of(BATCHES, [b"ab"], head=head), 1)
    (log.directory / f"{1:020d}.snapshot").mkdir()  # it is read, as more are cut than are in memory
    with pytest.raises(StorageError, match="producers of events"):
        log.truncate(2)
    assert log.log_end_offset == 2
    with pytest.raises(StorageError):
        log.append(set_of(BATCHES, [b"ab"]), 1)


def test_read_when_a_swap_has_failed_then_ends_and_appends_are_refused(log: Log) -> None:
    replaced = log.segments.all[:2]
    with pytest.raises(StorageError):  # there is no such file
        log.replace_segments(replaced, log.directory / "00000000000000000000.log.swap")

    assert log.read(0, 1000) is not None
    assert log.offset_at(TIMES[0]) == (TIMES[0], 0)
    with pytest.raises(StorageError):
        log.append(batch(0), 3)


def test_read_when_the_end_of_the_log_was_lost_then_tells_where_it_goes_on(
    log: Log, make_log: LogFactory
) -> None:
    end = log.log_end_offset
    log.close()
    segments = list_segments(log.directory, BATCHES)
    restore_end(log.directory, segments, end + 5, time_ms=0, format=BATCHES)

    log = make_log()
    with pytest.raises(LostOffsetsError) as caught:
        log.read(end, 1000)
    assert caught.value.next_offset == log.log_end_offset == end + 5


def test_offsets_when_records_were_deleted_then_none_is_before_what_is_left(log: Log) -> None:
    first, second, *_ = bases = [one.base_offset for one in log.segments.all]
    for start in (first + 4, second + 4):
        log.delete_records(start)
        later = [one for one in bases if one > start]
        assert log.offsets_before(EARLIEST_TIME, 1) == [start]
        starts = [start, *later, 3 * BATCH_COUNT]
        assert log.offsets_before(LATEST_TIME, 100) == starts[::-1]
        for ask in (log.boundary_at_or_after, partial(log.read, max_bytes=100)):
            with pytest.raises(OffsetOutOfRangeError, match=f"{start} to 450 can be read"):
                ask(start - 1)
