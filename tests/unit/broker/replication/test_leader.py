"""The leader: progress of followers, high watermark, in-sync replicas."""

from __future__ import annotations

import pytest

from broker.cluster_state import EpochEnd, PartitionState, ReplicatedPartition, creation_key
from broker.errors import (
    FencedEpochError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    UnknownEpochError,
)
from broker.replication.leader import Leader
from broker.replication.replica_log import NO_DIVERGENCE, FetchPosition
from broker.topic import TopicPartition
from tests.support.replica_log import MemoryLog

PARTITION = TopicPartition("t", 0, 0)
EPOCH = 5
CREATION = creation_key("created")
LAG_S = 10.0


def state_of(
    isr: tuple[int, ...] = (0, 1, 2), *, version: int = 1, min_isr: int = 1, epoch: int = EPOCH
) -> ReplicatedPartition:
    state = PartitionState(0, epoch, isr, controller_epoch=1)
    return ReplicatedPartition(PARTITION, "created", (0, 1, 2), min_isr, state, version)


def leader_of(
    log: MemoryLog, isr: tuple[int, ...] = (0, 1, 2), *, min_isr: int = 1, flushed: bool = False
) -> Leader:
    start = log.log_end_offset
    log.begin_epoch(EPOCH, start)
    return Leader(
        0,
        state_of(isr, min_isr=min_isr),
        log,
        start,
        0.0,
        lag_time_s=LAG_S,
        counts_flushed=flushed,
    )


def fetch(
    leader: Leader,
    replica: int,
    offset: int,
    now_s: float = 1.0,
    *,
    flushed: int | None = None,
    broker_epoch: int = 7,
) -> None:
    last = leader.log.epochs.covering(0, offset)
    last_epoch, flushed_offset = last[-1].epoch if last else -1, flushed
    if flushed_offset is None:
        flushed_offset = offset
    position = FetchPosition(EPOCH, offset, last_epoch, flushed_offset, CREATION)
    leader.fetched(replica, broker_epoch, position, now_s)


def log_with(count: int, *, epoch: int = EPOCH - 1) -> MemoryLog:
    log = MemoryLog()
    if count:
        log.begin_epoch(epoch, 0)
        log.append(*range(count))
        log.flush()
    return log


def test_high_watermark_when_a_member_has_not_fetched_then_stays() -> None:
    log = log_with(0)
    leader = leader_of(log)
    log.append("a", "b")
    leader.appended()

    fetch(leader, 1, 2)
    assert log.high_watermark == 0

    fetch(leader, 2, 1)
    assert log.high_watermark == 1
    assert leader.is_committed(1)
    assert not leader.is_committed(2)


def test_high_watermark_when_followers_have_not_flushed_then_waits_for_the_flushed_ends() -> None:
    log = log_with(0)
    leader = leader_of(log, (0, 1), flushed=True)
    log.append("a", "b")
    leader.appended()
    fetch(leader, 1, 2, flushed=1)
    assert log.high_watermark == 0

    log.flush()
    leader.flushed()
    assert log.high_watermark == 1


def test_high_watermark_when_flushed_messages_count_from_now_on_then_waits_for_them() -> None:
    log = log_with(0)
    leader = leader_of(log, (0, 1))
    log.append("a")
    leader.appended()
    fetch(leader, 1, 1, flushed=0)
    assert log.high_watermark == 1

    leader.count_flushed(True)
    log.append("b")
    leader.appended()
    fetch(leader, 1, 2, flushed=1)
    assert log.high_watermark == 1

    log.flush()
    leader.flushed()
    assert log.high_watermark == 1
    fetch(leader, 1, 2, flushed=2)
    assert log.high_watermark == 2


def test_high_watermark_when_memory_counts_from_now_on_then_moves_at_once() -> None:
    log = log_with(0)
    leader = leader_of(log, (0,), flushed=True)
    log.append("a")
    leader.appended()
    assert log.high_watermark == 0

    leader.count_flushed(False)
    assert log.high_watermark == 1


def test_high_watermark_when_the_leader_is_alone_then_moves_with_its_log() -> None:
    log = log_with(0)
    leader = leader_of(log, (0,))
    log.append("a")
    leader.appended()

    assert log.high_watermark == 1


def test_high_watermark_when_too_few_are_in_sync_then_is_frozen() -> None:
    log = log_with(0)
    leader = leader_of(log, (0,), min_isr=2)
    log.append("a")
    leader.appended()
    fetch(leader, 1, 1)

    assert log.high_watermark == 0
    with pytest.raises(NotEnoughReplicasError):
        leader.check_append(needs_commit=True)
    leader.check_append(needs_commit=False)
    with pytest.raises(NotEnoughReplicasAfterAppendError):
        leader.is_committed(1)

    assert leader.tick(1.0) is not None
    leader.isr_decided(state_of((0, 1), version=2, min_isr=2))
    assert log.high_watermark == 1


def test_stall_when_messages_wait_for_a_follower_then_counts_from_the_last_progress() -> None:
    log = log_with(0)
    leader = leader_of(log)
    leader.tick(50.0)
    assert leader.stalled_s(51.0) == 0, "nothing waits"

    log.append("a")
    leader.appended()
    leader.tick(50.5)
    fetch(leader, 1, 1, 52.0)
    assert leader.stalled_s(52.0) == 2.0, "the other follower has not fetched"

    fetch(leader, 2, 1, 53.0)
    log.append("b")
    leader.appended()
    assert leader.stalled_s(53.0) == 0, "it has advanced since the last tick"
    leader.tick(53.5)
    leader.tick(60.0)
    assert leader.stalled_s(61.0) == 7.5


def test_follower_when_behind_the_epoch_start_then_may_not_join() -> None:
    log = log_with(4)  # maybe committed up to 4, the high watermark of this replica lags at 0
    leader = leader_of(log, (0, 2))
    fetch(leader, 1, 3)
    assert not leader.has_joining

    fetch(leader, 1, 4)
    proposal = leader.tick(1.0)

    assert proposal is not None
    assert dict(proposal.isr).keys() == {0, 1, 2}
    assert dict(proposal.isr)[1] == 7


def test_follower_when_its_disk_refuses_more_then_leaves_at_once_and_joins_by_its_next_fetch() -> (
    None
):
    log = log_with(4)
    leader = leader_of(log, (0, 1))
    fetch(leader, 1, 4)
    position = FetchPosition(EPOCH, 4, EPOCH - 1, 4, CREATION)
    with pytest.raises(FencedEpochError):
        leader.left(1, position._replace(leader_epoch=EPOCH - 1))
    assert leader.tick(1.0) is None

    leader.left(1, position)
    assert not leader.fetched_again(1, position, 1.0)
    proposal = leader.tick(1.0)
    assert proposal is not None
    assert dict(proposal.isr).keys() == {0}
    leader.isr_decided(state_of((0,), version=2))
    assert leader.tick(1.0) is None
    fetch(leader, 1, 4)
    assert leader.has_joining


def test_high_watermark_when_a_follower_is_proposed_then_waits_for_it_at_once() -> None:
    log = log_with(0)
    leader = leader_of(log, (0,))
    fetch(leader, 1, 0)
    assert leader.tick(1.0) is not None
    log.append("a")
    leader.appended()

    assert log.high_watermark == 0
    assert leader.counted_isr == {0, 1}


def test_high_watermark_when_a_removal_is_proposed_then_waits_until_it_is_decided() -> None:
    log = log_with(0)
    leader = leader_of(log, (0, 1))
    log.append("a")
    leader.appended()
    proposal = leader.tick(LAG_S + 1)
    assert proposal is not None
    assert [id for id, _ in proposal.isr] == [0]
    assert log.high_watermark == 0
    assert leader.tick(LAG_S + 1) is None, "one proposal is in flight at a time"

    leader.isr_decided(state_of((0,), version=2))
    assert log.high_watermark == 1


def test_join_when_it_failed_then_is_counted_until_a_later_version_comes() -> None:
    log = log_with(0)
    leader = leader_of(log, (0,))
    fetch(leader, 1, 0)
    first = leader.tick(1.0)
    assert first is not None

    leader.isr_failed(first, 1.0)
    assert leader.tick(1.5) is None
    second = leader.tick(2.5)
    assert second is not None, "the answer to another proposal tells"
    assert [member.broker_id for member in second.isr] == [0]
    assert leader.counted_isr == {0, 1}, "the first one may be carried out yet"

    leader.isr_decided(state_of((0,), version=2))
    assert leader.counted_isr == {0}


def test_isr_when_an_older_version_comes_late_then_stays() -> None:
    leader = leader_of(log_with(0), (0, 1))
    leader.isr_decided(state_of((0,), version=3))
    leader.isr_decided(state_of((0, 1), version=2))

    assert leader.info.state.isr == (0,)


def test_replica_when_added_in_the_same_epoch_then_may_join() -> None:
    leader = leader_of(log_with(0), (0,))
    position = FetchPosition(EPOCH, 0, -1, 0, CREATION)
    with pytest.raises(UnknownEpochError):
        leader.fetched(3, 7, position, 1.0)

    leader.isr_decided(state_of((0,))._replace(replicas=(3, 0, 1, 2)))
    leader.fetched(3, 7, position, 1.0)
    change = leader.tick(1.0)
    assert change is not None
    assert {member.broker_id for member in change.isr} == {0, 3}


def test_follower_when_always_one_fetch_behind_then_stays_in_sync() -> None:
    log = log_with(0)
    leader = leader_of(log, (0, 1))
    for second in range(30):
        fetch(leader, 1, log.log_end_offset - (2 if second else 0), float(second))
        log.append("a", "b")
        assert leader.tick(float(second)) is None


def test_leader_when_nothing_is_appended_then_keeps_silent_followers_in_sync() -> None:
    leader = leader_of(log_with(0), (0, 1))
    fetch(leader, 1, 0)

    assert leader.tick(1000.0) is None


@pytest.mark.parametrize(
    ("position", "error"),
    [
        (FetchPosition(EPOCH - 1, 4, EPOCH - 1, 4, CREATION), FencedEpochError),
        (FetchPosition(EPOCH + 1, 4, EPOCH - 1, 4, CREATION), UnknownEpochError),
        (FetchPosition(EPOCH, 4, EPOCH - 1, 4, creation_key("former")), UnknownEpochError),
        (FetchPosition(0, 4, 0, 4, creation_key("later")), UnknownEpochError),
        (FetchPosition(EPOCH, 1, EPOCH - 1, 1, CREATION), OffsetOutOfRangeError),
        (FetchPosition(EPOCH, 9, -1, 9, CREATION), OffsetOutOfRangeError),
    ],
)
def test_fetch_when_of_another_term_or_place_then_is_refused(
    position: FetchPosition, error: type[Exception]
) -> None:
    log = log_with(4)
    leader = leader_of(log)
    log.remove_before(2)

    with pytest.raises(error):
        leader.fetched(1, 7, position, 1.0)
    assert leader.lag_of(1) is None


def test_fetch_when_logs_part_then_is_no_progress() -> None:
    log = log_with(4, epoch=2)
    leader = leader_of(log)

    answer = leader.fetched(1, 7, FetchPosition(EPOCH, 6, 3, 6, CREATION), 1.0)

    assert answer.diverging == EpochEnd(2, 4)
    assert leader.lag_of(1) is None
    assert leader.answer(FetchPosition(EPOCH, 4, 2, 4, CREATION)).diverging == NO_DIVERGENCE


def test_leader_when_stopped_then_acknowledges_nothing() -> None:
    log = log_with(0)
    leader = leader_of(log, (0,))
    log.append("a")
    leader.stop()
    leader.appended()

    assert log.high_watermark == 0
    with pytest.raises(NotLeaderError):
        leader.is_committed(0)
    with pytest.raises(NotLeaderError):
        leader.check_append(needs_commit=False)
    with pytest.raises(NotLeaderError):
        fetch(leader, 1, 0)


def test_latest_when_high_watermark_is_behind_the_start_of_the_term_then_not_available() -> None:
    log = log_with(4)
    log.advance_high_watermark(2)
    leader = leader_of(log)
    log.append("a")
    fetch(leader, 1, 4)
    with pytest.raises(OffsetNotAvailableError, match=f"broker 0.*leader epoch {EPOCH}"):
        leader.check_latest()
    fetch(leader, 2, 3)
    with pytest.raises(OffsetNotAvailableError):
        leader.check_latest()
    fetch(leader, 2, 4)
    leader.check_latest()
    assert log.high_watermark == 4
