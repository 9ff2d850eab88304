"""Plans of where offsets go: always in the log, always on a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.group_plans import (
    Change,
    ResetPlanner,
    ShiftTime,
    Target,
    parse_shift,
    parse_shift_time,
)
from broker.admin.groups import GroupSnapshot, StoredOffset
from broker.admin.topics import Ends
from broker.errors import ArgumentError
from broker.topic import TopicPartition
from pylogctl.cli.environment import UsageError
from pylogctl.group.changes import parse_spec
from pylogctl.group.offsets_file import parse_entries

PARTITION = TopicPartition("t", 0, 0)
COMMIT_MS = 1_000_000


@dataclass
class FakeLog:
    """A log whose entries start at `starts`, one message each; `segments` are (time, start)."""

    starts: Sequence[int]
    segments: Sequence[tuple[int, int]] = ()

    def ends(self, partition: TopicPartition) -> Ends:
        return Ends(self.starts[0], self.starts[-1])

    def earliest(self, partition: TopicPartition) -> int:
        return self.starts[0]

    def latest(self, partition: TopicPartition) -> int:
        return self.starts[-1]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        before = [start for written_ms, start in self.segments if written_ms <= time_ms]
        after = [start for written_ms, start in self.segments if written_ms > time_ms]
        found = after[:1] if rounded_up else before[-1:]
        return found[0] if found else None

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        return max(start for start in self.starts if start <= position)

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        return min(start for start in self.starts if start >= position)

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> Sequence[tuple[int, int]]:
        return [(one, 1) for one in self.starts[:-1] if start <= one < end]


LOG = FakeLog([100, 110, 130, 170, 200], [(500_000, 100), (900_000, 130), (1_100_000, 170)])


def plan(target: Target, current: int | None = 130, log: FakeLog = LOG) -> Change:
    stored = {} if current is None else {PARTITION: StoredOffset(current, "", COMMIT_MS, 3)}
    return ResetPlanner("g", stored, log.ends, log).plan(PARTITION, target)


def to(text: str) -> Target:
    spec = parse_spec(text, now_ms=1_200_000)
    return lambda partition: spec.range_for(partition).start


@st.composite
def logs(draw: st.DrawFn) -> FakeLog:
    first = draw(st.integers(0, 1000))
    sizes = draw(st.lists(st.integers(1, 500), min_size=0, max_size=30))
    return FakeLog(list(accumulate(sizes, initial=first)))


@given(logs(), st.integers(-10, 20_000), st.one_of(st.none(), st.integers(-10, 20_000)))
def test_an_offset_never_ends_outside_the_log_or_inside_a_message(
    log: FakeLog, wanted: int, current: int | None
) -> None:
    targets: list[Target] = [
        to(str(max(0, wanted))),
        to(f"~{max(0, wanted)}"),
        to(f"-{max(0, wanted)}"),
        to(f"+{max(0, wanted)}B"),
        parse_shift(f"{wanted:+d}"),
        parse_shift(f"{wanted:+d}B"),
        ShiftTime(wanted),
        parse_entries(f"t 0-0 {wanted}", "f"),
        GroupSnapshot("o", (), {}, {PARTITION: StoredOffset(wanted, "", 0, 0)}),
    ]
    for target in targets:
        change = plan(target, current, log)
        if not change.keeps:
            assert change.new in log.starts, target


@pytest.mark.parametrize(
    ("text", "new", "notes"),
    [
        ("start", 100, ()),
        ("end", 200, ()),
        ("130", 130, ()),
        ("0", 100, ("0 is before the first offset 100",)),
        ("999", 200, ("999 is after the last offset 200",)),
        ("135", 130, ("135 is inside the message at 130",)),
        ("~135", 170, ()),
        ("-1", 170, ()),
        ("+2", 130, ()),
        ("+15B", 130, ()),
        ("0=110", 110, ()),
    ],
)
def test_an_offset_expression_is_moved_into_the_log_with_a_note(
    text: str, new: int, notes: tuple[str, ...]
) -> None:
    change = plan(to(text))
    assert (change.new, change.notes) == (new, notes)


@pytest.mark.parametrize("text", ["stored", "1=0"])
def test_a_partition_that_is_not_meant_stays(text: str) -> None:
    change = plan(to(text))
    assert (change.new, change.is_needed, change.direction) == (130, False, "same")


@pytest.mark.parametrize(
    ("text", "new"),
    [("+1", 170), ("+9", 200), ("-1", 110), ("-2", 100), ("-9", 100), ("+10B", 170), ("-5B", 130)],
)
def test_a_shift_starts_where_the_group_is(text: str, new: int) -> None:
    assert plan(parse_shift(text)).new == new


def test_a_shift_from_inside_a_message_starts_at_the_message() -> None:
    change = plan(parse_shift("+1"), current=111)
    assert (change.new, change.notes) == (130, ("111 is inside the message at 110",))


@pytest.mark.parametrize("target", [parse_shift("-1"), ShiftTime(-1)])
def test_a_shift_without_an_offset_changes_nothing(target: Target) -> None:
    change = plan(target, current=None)
    assert (change.is_needed, change.notes) == (False, ("there is no offset to shift",))


@pytest.mark.parametrize(
    ("text", "current", "new"),
    [
        ("-50s", 200, 130),
        ("-200s", 200, 100),
        ("-2h", 200, 100),
        ("-50s", 110, 110),
        ("+50s", 130, 170),
        ("+2h", 130, 200),
        ("+50s", 200, 200),
    ],
)
def test_a_shift_in_time_starts_at_the_last_commit_and_keeps_its_direction(
    text: str, current: int, new: int
) -> None:
    assert plan(parse_shift_time(text), current).new == new


def test_offsets_of_a_file_are_placed_and_nulls_remove() -> None:
    assert plan(parse_entries("t 0-0 135", "f")).new == 130
    assert plan(parse_entries("t 0-1 135", "f")).is_needed is False
    text = '{"topic":"t","partition":"0-0","offset":null}'
    assert plan(parse_entries(text, "f")).direction == "removed"


def test_an_offset_that_is_no_number_is_replaced_with_a_note() -> None:
    planner = ResetPlanner("g", {PARTITION: StoredOffset(None, "abc", 0, 0)}, LOG.ends, LOG)
    change = planner.plan(PARTITION, to("end"))
    assert (change.new, change.direction) == (200, "new")
    assert change.notes == ("the current offset is no number: 'abc'",)
    assert planner.plan(PARTITION, to("stored")).is_needed is False


@pytest.mark.parametrize("text", ["10", "+", "x", "+10:20", "-1y"])
def test_a_malformed_shift_is_refused(text: str) -> None:
    with pytest.raises((ArgumentError, UsageError)):
        parse_shift(text)


@pytest.mark.parametrize("text", ["1h", "+", "-x"])
def test_a_malformed_shift_in_time_is_refused(text: str) -> None:
    with pytest.raises((ArgumentError, UsageError)):
        parse_shift_time(text)


@pytest.mark.parametrize("text", ["start:end", ":end", "0=1:2"])
def test_a_target_with_an_end_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has an end"):
        to(text)
