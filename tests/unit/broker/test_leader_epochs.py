"""The list of leader epochs of a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster_state import EpochEnd, EpochStart
from broker.ids import NO_EPOCH
from broker.leader_epochs import LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(tuple(EpochStart(*one) for one in entries))


@st.composite
def lists(draw: st.DrawFn) -> LeaderEpochs:
    count = draw(st.integers(0, 5))
    numbers = st.lists(st.integers(0, 20), min_size=count, max_size=count, unique=True)
    return epochs(*zip(sorted(draw(numbers)), sorted(draw(numbers)), strict=True))


@pytest.mark.parametrize("entries", [((1, 0), (1, 5)), ((1, 0), (2, 0)), ((2, 0), (1, 5))])
def test_list_when_not_increasing_then_is_refused(entries: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="does not follow"):
        epochs(*entries)


@pytest.mark.parametrize(
    ("before", "epoch", "start", "after"),
    [
        (epochs(), 3, 7, epochs((3, 7))),
        (epochs((1, 0)), 2, 5, epochs((1, 0), (2, 5))),
        (epochs((1, 0), (2, 5)), 3, 5, epochs((1, 0), (3, 5))),
        (epochs((1, 0), (4, 5)), 3, 9, epochs((1, 0), (3, 9))),
    ],
)
def test_epoch_when_begun_then_replaces_what_is_not_before_it(
    before: LeaderEpochs, epoch: int, start: int, after: LeaderEpochs
) -> None:
    assert before.begun(epoch, start) == after


def test_epochs_when_without_data_at_the_cut_then_are_dropped_without_a_cut_of_bytes() -> None:
    assert epochs((1, 0), (2, 5)).truncated(5) == epochs((1, 0))


@pytest.mark.parametrize(
    ("log_start", "after"),
    [
        (0, epochs((1, 0), (2, 5), (3, 9))),
        (5, epochs((1, 0), (2, 5), (3, 9))),
        (7, epochs((2, 5), (3, 9))),
        (12, epochs((3, 9))),
    ],
)
def test_list_when_the_log_start_moves_then_keeps_the_epoch_before_it(
    log_start: int, after: LeaderEpochs
) -> None:
    assert epochs((1, 0), (2, 5), (3, 9)).trimmed(log_start) == after


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (5, EpochEnd(5, 30)),  # the last epoch ends where the log ends
        (7, EpochEnd(5, 30)),
        (2, EpochEnd(2, 10)),
        (4, EpochEnd(2, 10)),  # epoch 4 is not in this log: 2 is the one before it
        (1, EpochEnd(1, 4)),  # all epochs here are later: its range is gone
    ],
)
def test_end_of_epoch_when_asked_for_then_names_the_largest_not_above_it(
    asked: int, answer: EpochEnd
) -> None:
    assert epochs((2, 4), (5, 10)).end_of(asked, 30) == answer


def test_end_of_epoch_when_there_are_none_then_names_none() -> None:
    assert epochs().end_of(3, 30) == EpochEnd(NO_EPOCH, 30)


@pytest.mark.parametrize(
    ("offset", "end", "found"),
    [
        (0, 4, [1]),
        (3, 5, [1]),
        (3, 6, [1, 2]),
        (5, 6, [2]),
        (7, 20, [2, 3]),
        (7, 7, []),
    ],
)
def test_epochs_when_a_range_is_read_then_are_those_of_its_bytes(
    offset: int, end: int, found: list[int]
) -> None:
    assert [one.epoch for one in epochs((1, 0), (2, 5), (3, 9)).covering(offset, end)] == found


@given(lists(), st.integers(0, 25), st.integers(0, 25))
def test_list_when_changed_in_any_way_then_each_offset_kept_has_its_epoch(
    one: LeaderEpochs, start: int, end: int
) -> None:
    changed = one.recovered(start, end)

    for offset in range(start, end):
        assert epoch_at(changed, offset) == epoch_at(one, offset)
    starts = [entry.start_offset for entry in changed.entries]
    assert sum(one < start for one in starts) <= 1
    assert all(one < end for one in starts) or start >= end


def test_list_when_retention_has_removed_all_messages_then_each_start_keeps_the_last_epoch() -> (
    None
):
    """By it `cluster recover` knows the copy with the latest messages."""
    once = epochs((1, 0), (4, 5)).recovered(9, 9)
    assert once == epochs((4, 5))
    assert once.recovered(9, 9) == once


def epoch_at(one: LeaderEpochs, offset: int) -> int:
    return max((e.epoch for e in one.entries if e.start_offset <= offset), default=NO_EPOCH)
