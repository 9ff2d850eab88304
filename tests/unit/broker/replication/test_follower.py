"""The follower: positions, answers, cuts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster_state import EpochEnd, EpochStart, PartitionState, ReplicatedPartition
from broker.errors import (
    FencedEpochError,
    KeptMessagesError,
    NotLeaderError,
    OffsetOutOfRangeError,
)
from broker.leader_epochs import LeaderEpochs
from broker.replication.follower import FetchResult, Follower, TruncationCounts
from broker.replication.leader import Leader
from broker.replication.replica_log import NO_DIVERGENCE, FetchAnswer, FetchPosition
from broker.topic import TopicPartition
from tests.support.replica_log import MemoryLog

PARTITION = TopicPartition("t", 0, 0)


def info_of(leader: int = 0, epoch: int = 5) -> ReplicatedPartition:
    state = PartitionState(leader, epoch, (0, 1), controller_epoch=1)
    return ReplicatedPartition(PARTITION, "created", (0, 1), 1, state, 1)


def follower_of(
    log: MemoryLog, *, leader: int = 0, epoch: int = 5, keeps: bool = False
) -> Follower:
    """A follower whose retention keeps all messages, or none."""
    return Follower(info_of(leader, epoch), log, TruncationCounts(), lambda *_: keeps)


def log_of(*epochs: int, start: int = 0) -> MemoryLog:
    """A log with one entry of each epoch named."""
    log = MemoryLog(start)
    for epoch in epochs:
        append_in(log, epoch)
    return log


def append_in(log: MemoryLog, epoch: int, entry: object = None) -> None:
    if epoch != log.epochs.last_epoch:
        log.begin_epoch(epoch, log.log_end_offset)
    log.append((epoch, entry or log.log_end_offset))


def catch_up(follower: Follower, leader: Leader, max_entries: int = 2, fetches: int = 200) -> None:
    """Fetch until both logs end at one offset, or so many times."""
    source, log = leader.log, follower.log
    assert isinstance(source, MemoryLog)
    assert isinstance(log, MemoryLog)
    for count in range(fetches):
        position = follower.next_fetch(float(2 * count))
        assert position is not None
        try:
            answer = leader.fetched(1, 7, position, float(count))
        except OffsetOutOfRangeError:
            start = FetchAnswer(source.high_watermark, source.log_start_offset, NO_DIVERGENCE)
            follower.out_of_range(position, start, float(2 * count))
            continue
        data: list[object] = []
        if answer.diverging == NO_DIVERGENCE:
            if position.offset == source.log_end_offset:
                return
            data = source.read(position.offset, position.offset + max_entries)
        starts = source.epochs.covering(position.offset, position.offset + len(data))
        if follower.fetched(position, answer, starts, len(data)) is FetchResult.APPEND:
            log.append(*data)
            follower.appended(answer)


def leader_of(log: MemoryLog, epoch: int = 5) -> Leader:
    start = log.log_end_offset
    log.begin_epoch(epoch, start)
    return Leader(0, info_of(0, epoch), log, start, 0.0, lag_time_s=10.0, counts_flushed=False)


def test_follower_when_several_epochs_part_then_cuts_until_the_logs_agree() -> None:
    # KIP-279: both sides have epochs the other lacks; one cut leaves offsets 1 and 2 different.
    follower = follower_of(log_of(0, 1, 3))
    source = log_of(0, 2, 2, 2, 4, 4)

    catch_up(follower, leader_of(source))

    assert follower.log.epochs == LeaderEpochs(
        (EpochStart(0, 0), EpochStart(2, 1), EpochStart(4, 4))
    )
    assert isinstance(follower.log, MemoryLog)
    assert follower.log.entries == source.entries


def test_follower_when_cut_below_the_high_watermark_then_is_counted() -> None:
    log = log_of(0, 1)
    log.advance_high_watermark(2)
    follower = follower_of(log)
    position = follower.next_fetch(0.0)
    assert position is not None

    result = follower.fetched(position, FetchAnswer(1, 0, EpochEnd(0, 1)), (), 0)

    assert result is FetchResult.TRUNCATED
    assert (log.log_end_offset, log.high_watermark) == (1, 1)
    assert follower.counts == TruncationCounts(1, 1, 1)


def test_log_when_nothing_the_leader_still_has_can_be_compared_then_is_given_up() -> None:
    # Epoch 1 was led here alone, nothing was committed; the leader has removed what it had instead.
    log = log_of(1, 1)
    source = log_of(2, 3)
    source.remove_before(1)
    leader = leader_of(source)
    follower = follower_of(log)

    catch_up(follower, leader)

    assert log.log_start_offset == 1
    assert log.entries == source.entries


def test_follower_when_its_end_is_the_leaders_start_then_is_compared_all_the_same() -> None:
    log = log_of(1)
    source = log_of(2, 3)
    source.remove_before(1)
    catch_up(follower_of(log), leader_of(source))

    assert log.log_start_offset == 1


def test_log_when_retention_empties_the_leaders_then_stays() -> None:
    source, log = log_of(3, 3), log_of(3, 3)
    leader = leader_of(source)
    source.remove_before(2)
    follower = follower_of(log)
    catch_up(follower, leader)
    assert (log.log_start_offset, log.log_end_offset, follower.counts.truncations) == (0, 2, 0)

    append_in(source, 5, "next")
    catch_up(follower, leader)
    assert log.entries[2:] == source.entries


@pytest.mark.parametrize("source", [log_of(3, 3, 3, start=7), log_of(4, start=7)])
def test_log_when_the_leader_starts_behind_its_end_and_retention_keeps_it_then_is_not_given_up(
    source: MemoryLog,
) -> None:
    log, leader = log_of(3, 3), leader_of(source)
    with pytest.raises(KeptMessagesError, match=r"broker 0, starts at offset 7; .* 0 to 2"):
        catch_up(follower_of(log, keeps=True), leader)
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)

    catch_up(follower_of(log), leader)
    assert (log.log_start_offset, log.entries) == (7, source.entries)


def test_epochs_when_bytes_are_to_be_appended_then_are_recorded_before_them() -> None:
    log = log_of(0)
    follower = follower_of(log)
    position = follower.next_fetch(0.0)
    assert position is not None
    starts = (EpochStart(0, 0), EpochStart(3, 1), EpochStart(4, 3))

    result = follower.fetched(position, FetchAnswer(9, 0, NO_DIVERGENCE), starts, 2)

    assert result is FetchResult.APPEND
    assert log.log_end_offset == 1
    assert log.epochs.entries == (EpochStart(0, 0), EpochStart(3, 1))  # 4 lies after the bytes
    log.append("x", "y")
    follower.appended(FetchAnswer(9, 0, NO_DIVERGENCE))
    assert log.high_watermark == 3


def test_answer_when_the_log_changed_since_then_is_discarded() -> None:
    log = log_of(0)
    follower = follower_of(log)
    position = follower.next_fetch(0.0)
    assert position is not None
    log.append("x")

    answer = FetchAnswer(9, 0, EpochEnd(0, 0))
    assert follower.fetched(position, answer, (), 0) is FetchResult.DISCARDED
    assert follower.out_of_range(position, answer, 0.0) is FetchResult.DISCARDED
    assert log.log_end_offset == 2


def test_answer_when_the_term_is_over_then_is_discarded() -> None:
    follower = follower_of(log_of(0))
    position = follower.next_fetch(0.0)
    assert position is not None
    follower.stop()

    answer = FetchAnswer(9, 0, NO_DIVERGENCE)
    assert follower.fetched(position, answer, (), 5) is FetchResult.DISCARDED
    assert follower.next_fetch(9.0) is None


def test_high_watermark_when_a_new_leader_knows_less_then_stays() -> None:
    log = log_of(0, 0)
    log.advance_high_watermark(2)
    follower = follower_of(log)
    follower.appended(FetchAnswer(1, 0, NO_DIVERGENCE))

    assert log.high_watermark == 2


def test_follower_when_fenced_then_is_parked_and_after_other_errors_tries_again() -> None:
    follower = follower_of(log_of(0))
    position = follower.next_fetch(0.0)
    assert position is not None
    follower.refused(position, NotLeaderError("not yet"), 0.0)
    assert follower.next_fetch(0.0) is None
    assert follower.next_fetch(1.0) is not None

    follower.refused(position, FencedEpochError("over"), 1.0)
    assert follower.next_fetch(100.0) is None


def test_follower_when_refused_again_and_again_then_waits_longer_until_it_is_answered() -> None:
    follower = follower_of(log_of(0))
    position = follower.next_fetch(0.0)
    assert position is not None
    assert [wait_ms(follower, position) for _ in range(7)] == [50, 100, 200, 400, 800, 1000, 1000]

    follower.fetched(position, FetchAnswer(0, 0, NO_DIVERGENCE), (), 0)
    assert wait_ms(follower, position) == 50


def test_follower_when_its_disk_refuses_what_comes_then_waits_longer_until_it_is_appended() -> None:
    follower = follower_of(log_of(0))
    position = follower.next_fetch(0.0)
    assert position is not None
    answer = FetchAnswer(0, 0, NO_DIVERGENCE)
    waits = []
    for _ in range(3):
        assert follower.fetched(position, answer, (), 1) is FetchResult.APPEND
        waits.append(wait_ms(follower, position))
    assert waits == [50, 100, 200]

    follower.appended(answer)
    assert wait_ms(follower, position) == 50


def wait_ms(follower: Follower, position: FetchPosition) -> int:
    """Refuse a fetch; return after how many milliseconds there is another one."""
    follower.refused(position, NotLeaderError("not yet"), 0.0)
    return next(n for n in range(2000) if follower.next_fetch(n / 1000) is not None)


def test_follower_when_there_is_no_leader_then_asks_nobody() -> None:
    assert follower_of(log_of(0), leader=-1).next_fetch(0.0) is None


@pytest.mark.parametrize(
    ("leader_start", "result", "start"),
    [(3, FetchResult.RESTARTED, 3), (2, FetchResult.UP_TO_DATE, 0), (0, FetchResult.UP_TO_DATE, 0)],
)
def test_log_when_the_leader_lacks_the_offset_then_is_given_up_only_behind_its_start(
    leader_start: int, result: FetchResult, start: int
) -> None:
    log = log_of(0, 0)
    follower = follower_of(log)
    position = follower.next_fetch(0.0)
    assert position is not None

    answer = FetchAnswer(9, leader_start, NO_DIVERGENCE)
    assert follower.out_of_range(position, answer, 0.0) is result
    assert log.log_start_offset == start
    is_given_up = result is FetchResult.RESTARTED
    assert follower.counts == TruncationCounts(is_given_up, 2 * is_given_up, 0)


TERMS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=7
)
"""Who leads, how much it appends, how often the other fetches, how much retention removes."""


def epochs_of(log: MemoryLog, start: int) -> list[tuple[int, int]]:
    covering = log.epochs.covering(start, log.log_end_offset)
    return [(epoch, max(first, start)) for epoch, first in covering]


@given(TERMS, st.integers(1, 3))
def test_follower_when_elections_were_unclean_then_ends_with_the_leaders_log(
    terms: list[tuple[bool, int, int, int]], step: int
) -> None:
    source, log = logs = (MemoryLog(), MemoryLog())
    for epoch, (is_second, appends, fetches, removals) in enumerate([*terms, (False, 1, 200, 0)]):
        source, log = (logs[1], logs[0]) if is_second else logs
        leader = leader_of(source, epoch)
        source.append(*((epoch, n) for n in range(appends)))
        catch_up(follower_of(log, epoch=epoch), leader, step, fetches)
        source.remove_before(min(source.start + removals, source.log_end_offset))

    start = max(log.start, source.start)
    assert log.log_end_offset == source.log_end_offset
    assert log.read(start, log.log_end_offset) == source.read(start, log.log_end_offset)
    assert epochs_of(log, start) == epochs_of(source, start)
