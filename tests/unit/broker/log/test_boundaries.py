from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import LogCorruptError, OffsetOutOfRangeError
from broker.log import scan
from broker.log.log import Log
from broker.log.segment import SPACING_BYTES, SegmentFile
from broker.protocol.codec import encode
from tests.doubles import FakeClock
from tests.support.log_fixtures import LogFactory

TWELVE_BYTES = encode([b"ab"])


@pytest.fixture
def kafka_example(make_log: LogFactory, clock: FakeClock) -> Log:
    """The log of Kafka 0.7's own test: segments at 0, 108 and 216, end at 240."""
    log = make_log(segment_bytes=100)
    for _ in range(20):
        log.append(TWELVE_BYTES, 1)
        log.flush()
    return log


def test_offsets_before_when_latest_then_end_and_all_segments(kafka_example: Log) -> None:
    assert kafka_example.offsets_before(-1, 10) == [240, 216, 108, 0]


def test_offsets_before_when_earliest_then_one_offset(kafka_example: Log) -> None:
    assert kafka_example.offsets_before(-2, 10) == [0]


def test_offsets_before_when_asked_later_for_last_write_then_end_is_left_out(
    kafka_example: Log, clock: FakeClock
) -> None:
    last_write_ms = clock.time_ms()
    clock.advance(0.1)
    assert kafka_example.offsets_before(last_write_ms, 10) == [216, 108, 0]


def test_offsets_before_when_time_is_now_then_end_is_in(kafka_example: Log) -> None:
    assert kafka_example.offsets_before(kafka_example.last_append_ms, 1) == [240]


@pytest.mark.parametrize(("max_offsets", "expected"), [(0, []), (2, [240, 216]), (-1, [])])
def test_offsets_before_when_limited_then_newest_ones(
    kafka_example: Log, max_offsets: int, expected: list[int]
) -> None:
    assert kafka_example.offsets_before(-1, max_offsets) == expected


@pytest.mark.parametrize("time_ms", [-3, 0, 1_000_000])
def test_offsets_before_when_time_is_before_all_then_empty(
    kafka_example: Log, time_ms: int
) -> None:
    assert kafka_example.offsets_before(time_ms, 10) == []


def test_offsets_before_when_log_is_empty_then_its_start(make_log: LogFactory) -> None:
    log = make_log()
    assert log.offsets_before(-1, 10) == [0]
    assert log.offsets_before(-2, 10) == [0]


def test_offsets_before_when_rolled_but_unflushed_then_nothing_invisible(
    make_log: LogFactory,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(TWELVE_BYTES, 1)
    log.flush()
    log.append(TWELVE_BYTES * 2, 2)
    log.append(TWELVE_BYTES, 1)
    assert log.offsets_before(-1, 10) == [12, 0]


@given(
    sizes=st.lists(
        st.sampled_from([0, 1, 200, SPACING_BYTES // 3, 2 * SPACING_BYTES]), min_size=1, max_size=12
    ),
    data=st.data(),
)
def test_boundaries_around_when_any_position_then_nearest_entry_starts(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("walk") / "segment"
    entries = [encode([bytes(size)]) for size in sizes]
    path.write_bytes(b"".join(entries))
    starts = [sum(map(len, entries[:count])) for count in range(len(entries) + 1)]
    file = SegmentFile(path)
    for _ in range(4):
        near = data.draw(st.sampled_from(starts)) + data.draw(st.integers(-2, 2))
        target = min(max(0, near), starts[-1] - 1)
        before = max(start for start in starts if start <= target)
        after = min(start for start in starts if start >= target)
        assert scan.boundaries_around(file, target, starts[-1]) == (before, after)


def test_boundaries_around_when_walked_once_then_index_knows_the_way(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(encode([bytes(1000)]) * 5000)
    file = SegmentFile(path)
    scan.boundaries_around(file, 1010 * 4999, 1010 * 5000)
    assert len(file.boundaries) >= 3
    assert 1010 * 4999 - file.boundaries.floor(1010 * 4999) <= 2 * SPACING_BYTES


def test_boundaries_around_when_chain_is_broken_then_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(TWELVE_BYTES + bytes(100))
    with pytest.raises(LogCorruptError, match="position 12"):
        scan.boundaries_around(SegmentFile(path), 50, 112)


def test_boundary_when_position_is_inside_then_neighbours_across_segments(
    kafka_example: Log,
) -> None:
    assert kafka_example.boundary_at_or_before(107) == 96
    assert kafka_example.boundary_at_or_after(107) == 108
    assert kafka_example.boundary_at_or_before(108) == 108
    assert kafka_example.boundary_at_or_after(239) == 240
    assert kafka_example.boundary_at_or_after(240) == 240


@pytest.mark.parametrize("position", [-1, 241])
def test_boundary_when_outside_then_out_of_range(kafka_example: Log, position: int) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        kafka_example.boundary_at_or_before(position)


def test_boundary_when_a_segment_is_all_damaged_then_next_is_its_end(kafka_example: Log) -> None:
    path = kafka_example.segments.all[0].path
    os.truncate(path, 0)
    os.truncate(path, 108)
    assert kafka_example.boundary_at_or_before(50) == 0
    assert kafka_example.boundary_at_or_after(50) == 108


ENTRIES = [encode([b"one"]), encode([b"two"]), encode([b"x"]), encode([b"four"])]
"""They start at 0, 13, 26 and 37, and end at 51."""


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (13, b"\x7f"),  # a length past all there is
        (13, b"\xff"),  # a negative one
        (16, b"\x12"),  # one that ends inside another entry
        (16, b"\x01"),  # one too small for a header
        (17, b"\x07"),  # an unknown magic byte
        (25, b"?"),  # a payload that is not that of the CRC
    ],
)
@pytest.mark.parametrize(
    ("target", "expected"),
    [(0, (0, 0)), (13, (13, 13)), (14, (13, 26)), (25, (13, 26)), (26, (26, 26)), (30, (26, 37))],
)
def test_boundaries_despite_damage_when_an_entry_is_bad_then_it_reaches_up_to_the_next_good_one(
    tmp_path: Path, place: int, value: bytes, target: int, expected: tuple[int, int]
) -> None:
    data = bytearray(b"".join(ENTRIES))
    data[place : place + 1] = value
    path = tmp_path / "segment"
    path.write_bytes(data)

    assert scan.boundaries_despite_damage(SegmentFile(path), target, len(data)) == expected


@pytest.mark.parametrize("target", [14, 20, 39])
def test_boundaries_despite_damage_when_neighbours_are_bad_then_no_message_inside_one_is_taken(
    tmp_path: Path, target: int
) -> None:
    inside = encode([b"visible"])
    data = bytearray(ENTRIES[0] + ENTRIES[1] + encode([b"in " + inside + b" it"]) + ENTRIES[3])
    data[25] ^= 1  # the payload of the second
    data[37] ^= 1  # of the third, before the message in it
    path = tmp_path / "segment"
    path.write_bytes(data)

    found = scan.boundaries_despite_damage(SegmentFile(path), target, len(data))

    assert found == ((13, 26) if target < 26 else (26, 26 + 10 + 6 + len(inside)))


def test_boundaries_despite_damage_when_a_bad_length_ends_at_the_target_then_that_is_none(
    tmp_path: Path,
) -> None:
    data = bytearray(b"".join(ENTRIES))
    data[16] = 14  # the second seems to end at 31, inside the fourth
    path = tmp_path / "segment"
    path.write_bytes(data)

    assert scan.boundaries_despite_damage(SegmentFile(path), 31, len(data)) == (26, 37)


def test_boundaries_despite_damage_when_nothing_good_follows_then_the_end(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(ENTRIES[0] + b"\x7f" + bytes(30))

    assert scan.boundaries_despite_damage(SegmentFile(path), 20, 44) == (13, 44)


@given(
    sizes=st.lists(st.sampled_from([0, 1, 30, 200]), min_size=2, max_size=12),
    data=st.data(),
)
def test_boundaries_despite_damage_when_nothing_is_damaged_then_the_nearest_entry_starts(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("walk") / "segment"
    path.write_bytes(encode([bytes(size) for size in sizes]))
    file, end = SegmentFile(path), path.stat().st_size
    target = data.draw(st.integers(0, end - 1))

    assert scan.boundaries_despite_damage(file, target, end) == scan.boundaries_around(
        file, target, end
    )


def test_boundaries_despite_damage_when_asked_again_then_the_span_is_not_searched_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "segment"
    good = encode([b"good"])
    path.write_bytes(good + bytes(3 << 20) + good)
    file, size = SegmentFile(path), path.stat().st_size
    target = len(good) + 1000
    expected = len(good), len(good) + (3 << 20)
    assert scan.boundaries_despite_damage(file, target, size) == expected

    with path.open("r+b") as output:  # a good entry that only a second search would find
        output.seek(len(good) + 2000)
        output.write(good * 2)

    assert scan.boundaries_despite_damage(file, target + 500, size) == expected
    anew = SegmentFile(path)
    assert scan.boundaries_despite_damage(anew, target, size)[1] == len(good) + 2000
