"""Damage in segments is found, and segments are replaced by what another replica has."""

from __future__ import annotations

import os

import pytest

from broker.errors import OffsetNotAvailableError
from broker.log.damage import find_damage, mend, uncommitted_loss
from broker.log.log import Log
from broker.log.replica_files import EpochFile
from broker.protocol.codec import encode
from tests.support.log_fixtures import LogFactory, content

ENTRY = encode([b"x" * 90])
SIZE = len(ENTRY)
COUNT = 9


def damage(log: Log, offset: int) -> None:
    """Flip a byte behind the log's back."""
    segment = next(one for one in reversed(log.segments.all) if one.base_offset <= offset)
    with segment.path.open("r+b") as file:
        position = offset - segment.base_offset
        (byte,) = os.pread(file.fileno(), 1, position)
        os.pwrite(file.fileno(), bytes([byte ^ 1]), position)


@pytest.fixture
def log(make_log: LogFactory) -> Log:
    """Three segments of three entries each, the last one with two that are not visible."""
    log = make_log(segment_bytes=3 * SIZE - 1, flush_before_read=True)
    for index in range(COUNT):
        log.append(ENTRY, 1)
        if index == COUNT - 3:
            log.flush()
    return log


def test_damage_when_there_is_none_then_none_is_found(log: Log) -> None:
    assert find_damage(log, 0, COUNT * SIZE) is None
    assert find_damage(log, COUNT * SIZE, 1) is None
    assert find_damage(log, 0, 0) is None


def test_damage_when_the_range_begins_or_ends_inside_the_message_then_found(log: Log) -> None:
    damage(log, 4 * SIZE + 50)
    assert find_damage(log, 0, COUNT * SIZE) == 4 * SIZE
    assert find_damage(log, 4 * SIZE + 70, 1) == 4 * SIZE
    assert find_damage(log, 3 * SIZE, SIZE + 1) == 4 * SIZE
    assert find_damage(log, 3 * SIZE, SIZE) is None
    assert find_damage(log, 5 * SIZE, COUNT * SIZE) is None


def test_damage_when_above_the_high_watermark_then_found(log: Log) -> None:
    assert log.high_watermark < 8 * SIZE
    damage(log, 8 * SIZE + 50)
    assert find_damage(log, 8 * SIZE, 1) == 8 * SIZE


@pytest.mark.parametrize("offset", [7 * SIZE + 50, 8 * SIZE + 1, COUNT * SIZE - 1])
def test_damage_when_a_range_above_the_high_watermark_begins_inside_a_message_then_none_is_found(
    log: Log, offset: int
) -> None:
    assert log.high_watermark <= 7 * SIZE
    assert find_damage(log, offset, 1) is None
    damage(log, offset)
    assert find_damage(log, offset, 1) == offset // SIZE * SIZE


@pytest.mark.parametrize("at", range(0, COUNT * SIZE, 17))
def test_damage_when_any_byte_is_flipped_then_its_message_is_found_and_mended(
    log: Log, at: int
) -> None:
    log.flush()
    data = content(log)
    assert len(data) == COUNT * SIZE
    damage(log, at)
    found = find_damage(log, 0, len(data))
    assert found == at // SIZE * SIZE
    log.segments.note_damage(found)
    (segment,) = log.segments.bad()

    assert mend(log, segment, lambda offset, size: data[offset : offset + min(size, 70)]) is None

    log.retry_refused()
    assert content(log) == data
    assert not log.is_faulty
    assert log.append(ENTRY, 1).base_offset == len(data)
    log.flush()
    assert content(log) == data + ENTRY


def test_mend_when_the_other_copy_is_damaged_too_then_nothing_is_replaced(log: Log) -> None:
    damage(log, SIZE + 50)
    damaged = content(log)
    log.segments.note_damage(SIZE)
    (segment,) = log.segments.bad()
    assert mend(log, segment, lambda offset, size: damaged[offset : offset + size]) == SIZE
    assert content(log) == damaged
    assert [one.state for one in log.failures()] == ["damaged"]
    assert list(log.directory.glob("*.mended")) == []


def test_mend_when_the_other_copy_breaks_off_then_nothing_is_replaced(log: Log) -> None:
    log.segments.note_damage(0)
    (segment,) = log.segments.bad()

    def read(offset: int, size: int) -> bytes:
        raise OffsetNotAvailableError("it is not there")

    with pytest.raises(OffsetNotAvailableError):
        mend(log, segment, read)
    assert log.is_faulty
    assert list(log.directory.glob("*.mended")) == []


def test_mend_when_messages_are_not_committed_then_the_own_ones_stay(log: Log) -> None:
    high_watermark = log.high_watermark
    damage(log, 6 * SIZE + 50)
    log.segments.note_damage(6 * SIZE)
    (segment,) = log.segments.bad()

    def read(offset: int, size: int) -> bytes:
        assert offset + size <= high_watermark
        return (ENTRY * COUNT)[offset : offset + size]

    assert mend(log, segment, read) is None
    log.flush()
    assert content(log) == ENTRY * COUNT


def test_uncommitted_loss_when_damage_is_at_the_high_watermark_then_from_there_on(log: Log) -> None:
    assert log.high_watermark == 7 * SIZE
    damage(log, 7 * SIZE + 50)
    log.segments.note_damage(8 * SIZE)
    (segment,) = log.segments.bad()
    assert uncommitted_loss(log, segment) == 7 * SIZE


def test_uncommitted_loss_when_damage_is_committed_then_there_is_none(log: Log) -> None:
    log.segments.note_damage(6 * SIZE)
    (segment,) = log.segments.bad()
    assert uncommitted_loss(log, segment) is None


@pytest.mark.parametrize(("at", "lost_from"), [(6, 7), (7, 7), (8, 8)])
def test_uncommitted_loss_when_a_segment_cannot_be_read_then_at_least_from_the_high_watermark_on(
    log: Log, at: int, lost_from: int
) -> None:
    segment = log.segments.all[-1]
    os.truncate(segment.path, at * SIZE + 10 - segment.base_offset)
    found = log.read(6 * SIZE, 3 * SIZE, to_log_end=True)
    assert found is not None
    assert log.segments.note_unreadable(found, at * SIZE + 10 - segment.base_offset) is not None
    assert uncommitted_loss(log, segment) == lost_from * SIZE


def replica(make_log: LogFactory, count: int = 3) -> Log:
    log = make_log()
    log.replicate(EpochFile(log.directory))
    for _ in range(count):
        log.append(ENTRY, 1)
    return log


def test_truncate_when_a_message_before_is_damaged_then_it_stays_noted(
    make_log: LogFactory,
) -> None:
    log = replica(make_log)
    log.segments.note_damage(SIZE)

    log.truncate(2 * SIZE)

    (segment,) = log.segments.bad()
    assert segment.damage is not None
    assert segment.damage.offset == SIZE
    log.truncate(SIZE)
    assert not log.segments.bad()


@pytest.mark.parametrize("noted_at", [SIZE + 10, 2 * SIZE, None])
def test_truncate_when_the_file_is_shorter_than_what_stays_then_the_zeros_there_count_as_damage(
    make_log: LogFactory, noted_at: int | None
) -> None:
    log = replica(make_log)
    os.truncate(log.segments.all[0].path, SIZE + 10)
    if noted_at is not None:
        found = log.read(noted_at // SIZE * SIZE, SIZE, to_log_end=True)
        assert found is not None
        assert log.segments.note_unreadable(found, noted_at) is not None

    log.truncate(2 * SIZE)
    log.retry_refused()

    (segment,) = log.segments.bad()
    assert segment.damage is not None
    assert segment.damage.offset == SIZE
    log.advance_high_watermark(2 * SIZE)
    assert mend(log, segment, lambda offset, size: (ENTRY * 2)[offset : offset + size]) is None
    assert content(log) == ENTRY * 2
    assert not log.segments.bad()


def test_uncommitted_loss_when_zeros_reach_above_the_high_watermark_then_from_there_on(
    make_log: LogFactory,
) -> None:
    log = replica(make_log, 5)
    log.advance_high_watermark(2 * SIZE)
    os.truncate(log.segments.all[0].path, SIZE + 10)
    log.truncate(4 * SIZE)

    (segment,) = log.segments.bad()
    assert uncommitted_loss(log, segment) == 2 * SIZE


def test_append_when_the_file_is_shorter_than_the_log_then_the_zeros_before_it_count_as_damage(
    make_log: LogFactory,
) -> None:
    log = replica(make_log)
    os.truncate(log.segments.all[0].path, SIZE + 10)
    found = log.read(0, 3 * SIZE, to_log_end=True)
    assert found is not None
    assert log.segments.note_unreadable(found, 2 * SIZE + 5) is not None
    log.append(ENTRY, 1)

    log.retry_refused()

    (segment,) = log.segments.bad()
    assert uncommitted_loss(log, segment) == SIZE
    log.advance_high_watermark(4 * SIZE)
    assert mend(log, segment, lambda offset, size: (ENTRY * 4)[offset : offset + size]) is None
    assert content(log) == ENTRY * 4
    assert not log.segments.bad()
