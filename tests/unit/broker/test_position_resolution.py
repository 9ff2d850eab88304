"""Offsets on a partition, against a log in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ArgumentError, OffsetOutOfRangeError
from broker.positions import parse_range, resolve
from broker.topic import MessagePosition, ReadRange, TopicPartition

PARTITION = TopicPartition("t", 0, 0)


class LogInMemory:
    """Entries of given sizes and message counts from a given start; one segment for each ten."""

    def __init__(self, entries: Sequence[tuple[int, int]], start: int = 0) -> None:
        self.starts = [start]
        for size, _ in entries:
            self.starts.append(self.starts[-1] + size)
        self.counts = [count for _, count in entries]
        self.segments = {1000 * n: pos for n, pos in enumerate(self.starts[:-1:10])}

    def earliest(self, partition: TopicPartition) -> int:
        return self.starts[0]

    def latest(self, partition: TopicPartition) -> int:
        return self.starts[-1]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        if rounded_up:
            return min((p for t, p in self.segments.items() if t > time_ms), default=None)
        return max((p for t, p in self.segments.items() if t <= time_ms), default=None)

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        return max(p for p in self.starts if p <= position)

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        return min(p for p in self.starts if p >= position)

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> Sequence[tuple[int, int]]:
        pairs = zip(self.starts, self.counts, strict=False)
        return [(offset, count) for offset, count in pairs if start <= offset < end]


def _resolve(text: str, log: LogInMemory, *, strict: bool = False) -> ReadRange:
    return resolve(parse_range(text, now_ms=10**15), PARTITION, log, strict=strict)


def _start(text: str, log: LogInMemory) -> MessagePosition:
    return _resolve(text, log).start


THREE = LogInMemory([(10, 1), (20, 1), (30, 1)])


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("start", 0),
        ("end", 60),
        ("10", 10),
        ("~11", 30),
        ("-1", 30),
        ("-2", 10),
        ("-0", 60),
        ("-99", 0),
        ("+0", 0),
        ("+2", 30),
        ("+3", 60),
        ("+99", 60),
        ("-35B", 30),
        ("+1B", 10),
    ],
)
def test_resolve_given_a_start_returns_a_boundary(text: str, offset: int) -> None:
    assert _start(text, THREE) == MessagePosition(offset)


def test_resolve_given_a_position_inside_a_message_names_the_neighbours() -> None:
    with pytest.raises(ArgumentError) as caught:
        _resolve("17", THREE)
    assert str(caught.value) == ("17 is not a message boundary in t[0-0]; nearest are 10 and 30")


def test_resolve_given_a_position_out_of_range_moves_it_and_warns() -> None:
    log = LogInMemory([(10, 1)], start=8192)
    warnings: list[str] = []
    wanted = parse_range("4096", now_ms=0)
    resolved = resolve(wanted, PARTITION, log, warn=warnings.append)
    assert resolved.start == MessagePosition(8192)
    assert warnings == ["t[0-0]: 4096 is before the first offset 8192; starting at 8192"]


def test_resolve_given_strict_refuses_a_position_out_of_range() -> None:
    with pytest.raises(OffsetOutOfRangeError):
        _resolve("61", THREE, strict=True)


def test_resolve_given_stored_needs_a_group() -> None:
    with pytest.raises(ArgumentError, match="needs a consumer group"):
        _resolve("stored", THREE)


def test_resolve_given_no_start_begins_at_the_end() -> None:
    assert _resolve("e@1000000000", THREE).start == MessagePosition(60)


def test_resolve_given_compressed_entries_counts_inner_messages() -> None:
    log = LogInMemory([(50, 4), (10, 1), (80, 3)])
    assert _start("-2", log) == MessagePosition(60, 1)
    assert _start("-5", log) == MessagePosition(0, 3)
    assert _start("+3", log) == MessagePosition(0, 3)
    assert _start("+4", log) == MessagePosition(50, 0)


def test_resolve_given_a_time_uses_segments_early_at_the_start_and_late_at_the_end() -> None:
    log = LogInMemory([(10, 1)] * 30)
    resolved = resolve(parse_range("@1000001001:@1000001001", now_ms=0), PARTITION, log)
    assert resolved.start == MessagePosition(200)
    assert resolved.end == MessagePosition(300)
    log.segments = {1_000_001_001_000: 100, 1_000_001_002_000: 200}
    resolved = resolve(parse_range("@1000001001:@1000001001", now_ms=0), PARTITION, log)
    assert (resolved.start, resolved.end) == (MessagePosition(100), MessagePosition(200))


def test_resolve_given_a_time_before_all_segments_starts_at_the_first() -> None:
    log = LogInMemory([(10, 1)] * 3)
    log.segments = {2_000_000_000_000: 0}
    assert resolve(parse_range("@1000000001", now_ms=0), PARTITION, log).start == MessagePosition(0)


@given(
    st.lists(st.tuples(st.integers(1, 1 << 20), st.integers(1, 5)), max_size=12),
    st.integers(0, 70),
)
def test_resolve_given_messages_back_and_on_meet_in_the_middle(
    entries: list[tuple[int, int]], count: int
) -> None:
    log = LogInMemory(entries, start=100)
    total = sum(n for _, n in entries)
    back = _start(f"-{min(count, total)}", log)
    on = _start(f"+{total - min(count, total)}", log)
    assert back == on
