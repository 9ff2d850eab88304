from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from broker.spark.options import ReadOptions, Where
from broker.spark.reading.planner import bundled_tasks
from broker.spark.reading.ranges import (
    ByteRange,
    ReadTask,
    cut,
    limited_ends,
    range_bytes,
    share_bytes,
    split_evenly,
    without,
)
from broker.topic import TopicPartition

P0 = TopicPartition("events", 0, 0)
P1 = TopicPartition("events", 0, 1)
MESSAGE_BYTES = 10


def after(partition: TopicPartition, position: int) -> int:
    return -(-position // MESSAGE_BYTES) * MESSAGE_BYTES


def before(partition: TopicPartition, position: int) -> int:
    return position // MESSAGE_BYTES * MESSAGE_BYTES


@given(
    start=st.integers(0, 50).map(lambda n: n * MESSAGE_BYTES),
    count=st.integers(0, 200),
    max_bytes=st.integers(1, 3000),
)
def test_cut_when_joined_again_then_is_the_range_and_every_cut_a_boundary(
    start: int, count: int, max_bytes: int
) -> None:
    whole = ByteRange(P0, start, start + count * MESSAGE_BYTES)

    parts = cut(whole, max_bytes, after)

    assert sum(part.size_bytes for part in parts) == whole.size_bytes
    assert all(part.size_bytes and part.start % MESSAGE_BYTES == 0 for part in parts)
    assert all(a.end == b.start for a, b in pairwise(parts))
    assert all(part.size_bytes < max_bytes + MESSAGE_BYTES for part in parts)


def test_cut_when_messages_are_larger_than_parts_then_gives_one_each() -> None:
    assert cut(ByteRange(P0, 0, 30), 3, after) == [
        ByteRange(P0, 0, 10),
        ByteRange(P0, 10, 20),
        ByteRange(P0, 20, 30),
    ]


def test_split_evenly_when_boundaries_are_many_then_takes_few() -> None:
    parts = split_evenly(ByteRange(P0, 5, 100), 40, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100])

    assert [(one.start, one.end) for one in parts] == [(5, 40), (40, 80), (80, 100)]


def test_split_evenly_when_there_is_no_boundary_inside_then_leaves_the_range() -> None:
    assert split_evenly(ByteRange(P0, 5, 100), 10, [0, 5, 100]) == [ByteRange(P0, 5, 100)]


def test_without_when_the_gap_is_inside_then_two_parts_are_left() -> None:
    assert without(ByteRange(P0, 0, 100), 40, 60) == [ByteRange(P0, 0, 40), ByteRange(P0, 60, 100)]


def test_without_when_the_gap_covers_all_then_nothing_is_left() -> None:
    assert without(ByteRange(P0, 45, 55), 40, 60) == []


def test_range_bytes_when_more_ranges_are_wanted_then_shrinks() -> None:
    ranges = [ByteRange(P0, 0, 100), ByteRange(P1, 0, 50)]

    assert range_bytes(ranges, 1000, 1) == 150
    assert range_bytes(ranges, 1000, 4) == 38
    assert range_bytes(ranges, 20, 4) == 20
    assert range_bytes([], 1000, 4) == 1


@given(sizes=st.lists(st.integers(0, 10_000), min_size=1, max_size=8), limit=st.integers(1, 20_000))
def test_shares_when_added_up_then_keep_the_limit(sizes: list[int], limit: int) -> None:
    pending = {TopicPartition("t", 0, index): size for index, size in enumerate(sizes)}

    shares = share_bytes(pending, limit)

    assert sum(shares.values()) <= max(limit, 0) or shares == pending
    assert all(shares[one] <= pending[one] for one in pending)


@given(counts=st.lists(st.integers(1, 500), min_size=1, max_size=5), limit=st.integers(1, 20_000))
def test_limited_ends_when_there_is_data_then_every_partition_moves_on(
    counts: list[int], limit: int
) -> None:
    pending = [
        ByteRange(TopicPartition("t", 0, index), 0, count * MESSAGE_BYTES)
        for index, count in enumerate(counts)
    ]

    ends = limited_ends(pending, limit, before, after)

    assert all(0 < ends[one.partition] <= one.end for one in pending)
    assert all(end % MESSAGE_BYTES == 0 for end in ends.values())
    assert sum(ends.values()) <= limit + MESSAGE_BYTES * len(pending)


@given(
    sizes=st.lists(st.integers(1, 300), max_size=40),
    min_partitions=st.integers(1, 50),
)
def test_tasks_when_bundled_then_keep_their_order_and_enough_of_them_run_at_once(
    sizes: list[int], min_partitions: int
) -> None:
    tasks = [
        ReadTask(ByteRange(TopicPartition("events", 0, index), 0, size), ())
        for index, size in enumerate(sizes)
    ]
    options = ReadOptions(Where(paths=(Path("data"),)), min_partitions=min_partitions)
    size_bytes = range_bytes([one.range for one in tasks], sum(sizes) + 1, min_partitions)

    bundles = bundled_tasks(tasks, options)

    assert [task for bundle in bundles for task in bundle] == tasks
    for bundle in bundles:
        assert len(bundle) == 1 or sum(one.range.size_bytes for one in bundle) <= size_bytes
    assert len(bundles) >= min(len(tasks), min_partitions)
    for first, second in pairwise(bundles if len(bundles) > min_partitions else []):
        joined = sum(one.range.size_bytes for one in (*first, second[0]))
        assert joined > size_bytes, "a task runs alone that need not"


def test_tasks_when_no_number_of_them_is_wanted_then_are_not_bundled() -> None:
    tasks = [ReadTask(ByteRange(one, 0, 10), ()) for one in (P0, P1)]

    bundles = bundled_tasks(tasks, ReadOptions(Where(paths=(Path("data"),))))

    assert bundles == [(tasks[0],), (tasks[1],)]
