"""Damage in segments of record batches is found by offset, digested past, and mended."""

from __future__ import annotations

import hashlib
import os

import pytest

from broker.log.damage import digest_of, find_damage, mend, uncommitted_loss
from broker.log.log import Log
from broker.protocol.codec import Record, encode_batch, scan_batches
from tests.support.log_fixtures import LogFactory

RECORDS = 3  # in each batch
BATCH = encode_batch([Record(n, 1000, None, b"x" * 30) for n in range(RECORDS)])
SIZE = len(BATCH)
COUNT = 9


@pytest.fixture
def log(make_log: LogFactory) -> Log:
    """Three segments of three batches each."""
    log = make_log(home=-1, segment_bytes=3 * SIZE - 1)
    for _ in range(COUNT):
        log.append(BATCH, RECORDS)
    log.flush()
    return log


def content(log: Log) -> bytes:
    return b"".join(one.path.read_bytes() for one in log.segments.all)


def damage(log: Log, at: int) -> None:
    """Flip the byte at a position of all content behind the log's back."""
    segment = log.segments.all[at // (3 * SIZE)]
    with segment.path.open("r+b") as file:
        (byte,) = os.pread(file.fileno(), 1, at % (3 * SIZE))
        os.pwrite(file.fileno(), bytes([byte ^ 1]), at % (3 * SIZE))


def test_damage_when_there_is_none_then_none_is_found(log: Log) -> None:
    assert len(log.segments.all) == 3
    assert find_damage(log, 0, COUNT * RECORDS) is None
    assert find_damage(log, COUNT * RECORDS, 1) is None
    assert find_damage(log, 0, 0) is None


def test_damage_when_a_range_has_a_record_of_the_batch_then_found(log: Log) -> None:
    damage(log, 4 * SIZE + 70)
    assert find_damage(log, 0, COUNT * RECORDS) == 12
    assert find_damage(log, 12, 1) == 12
    assert find_damage(log, 9, 4) == 12
    assert find_damage(log, 9, 3) is None
    assert find_damage(log, 15, 100) is None


@pytest.mark.parametrize("at", range(0, COUNT * SIZE, 7))
def test_damage_when_any_byte_is_flipped_then_its_batch_is_found_and_mended(
    log: Log, at: int
) -> None:
    if at % SIZE in range(12, 16):
        return  # the leader epoch, which no CRC covers
    data = content(log)
    batches = scan_batches(data).batches
    damage(log, at)
    is_offset = at % SIZE < 8  # which no CRC covers either
    found = find_damage(log, 0, COUNT * RECORDS)
    if found is None:
        assert is_offset
        return
    assert found // RECORDS == at // SIZE
    log.segments.note_damage(found)
    (segment,) = log.segments.bad()

    def read(offset: int, size: int) -> bytes:
        (start,) = [one.position for one in batches if one.base_offset <= offset < one.next_offset]
        return data[start : start + min(size, 2 * SIZE - 10)]

    assert mend(log, segment, read) is None

    assert content(log) == data
    assert not log.segments.bad()
    assert log.append(BATCH, RECORDS).base_offset == COUNT * RECORDS


def test_mend_when_the_other_copy_is_damaged_too_then_nothing_is_replaced(log: Log) -> None:
    damage(log, SIZE + 70)
    damaged = content(log)
    log.segments.note_damage(3)
    (segment,) = log.segments.bad()
    assert mend(log, segment, lambda offset, size: damaged[offset // RECORDS * SIZE :][:size]) == 3
    assert content(log) == damaged
    assert list(log.directory.glob("*.mended")) == []


def test_mend_when_a_batch_is_larger_than_a_read_then_reads_more(make_log: LogFactory) -> None:
    log = make_log(home=-1)
    log.append(encode_batch([Record(0, 1000, None, bytes(5 << 20))]), 1)
    log.flush()
    data = content(log)
    damage(log, 100)
    log.segments.note_damage(0)
    (segment,) = log.segments.bad()
    sizes: list[int] = []

    def read(offset: int, size: int) -> bytes:
        sizes.append(size)
        return data[:size]

    assert mend(log, segment, read) is None
    assert content(log) == data
    assert sizes == [1 << 20, 2 << 20, 4 << 20, 8 << 20]


def test_mend_when_the_other_copy_is_compacted_then_takes_the_batches_that_it_has(
    log: Log,
) -> None:
    data = content(log)
    damage(log, 70)
    log.segments.note_damage(0)
    (segment,) = log.segments.bad()
    compacted = data[:SIZE] + data[2 * SIZE :]  # without the second batch

    def read(offset: int, size: int) -> bytes:
        batches = scan_batches(compacted).batches
        start = next(one.position for one in batches if one.next_offset > offset)
        return compacted[start : 8 * SIZE]

    assert mend(log, segment, read) is None

    log.retry_refused()
    assert content(log) == compacted
    assert not log.is_faulty
    found = log.read(4, 1 << 20)
    assert found is not None
    assert (found.position, found.length) == (SIZE, SIZE)


def test_uncommitted_loss_when_a_segment_cannot_be_read_then_from_there_on(
    make_log: LogFactory,
) -> None:
    log = make_log(home=-1, flush_before_read=True)
    for _ in range(3):
        log.append(BATCH, RECORDS)
    assert log.high_watermark == 0
    segment = log.segments.all[-1]
    os.truncate(segment.path, SIZE + 10)
    found = log.read(0, 3 * SIZE, to_log_end=True)
    assert found is not None
    assert log.segments.note_unreadable(found, SIZE + 10) is not None
    assert uncommitted_loss(log, segment) == 3


def test_digest_when_a_range_begins_or_ends_inside_batches_then_takes_them_whole(
    log: Log,
) -> None:
    data = content(log)
    found = digest_of(log, 4, 15)
    assert (found.length, found.segment) == (17, 0)
    assert found.digest == hashlib.sha256(data[SIZE : 7 * SIZE]).digest()
    assert digest_of(log, 0, 1000).length == COUNT * RECORDS
    assert digest_of(log, COUNT * RECORDS, 10).length == 0


@pytest.mark.parametrize("at", [SIZE + 8, SIZE + 16, SIZE + 26, SIZE + 70, 2 * SIZE + 8])
def test_digest_when_a_batch_is_damaged_then_differs_and_goes_on_behind_it(
    log: Log, at: int
) -> None:
    before = [digest_of(log, one, 9).digest for one in (0, 9)]
    damage(log, at)
    after = [digest_of(log, one, 9) for one in (0, 9)]
    assert [one.length for one in after] == [9, 9]
    assert after[0].digest != before[0]
    assert after[1].digest == before[1]
