"""Which copy of a lost partition the others are to follow, and what would be lost."""

from __future__ import annotations

from broker.admin.recovery import Lost, plan
from broker.cluster_state import PartitionState
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import TopicPartition

P = TopicPartition("t", 0, 0)


def copy(
    last_epoch: int,
    end_offset: int,
    *,
    replicas: tuple[int, ...] = (0, 1, 2),
    isr: tuple[int, ...] = (0, 1),
    created: str = "a",
    controller_epoch: int = 1,
) -> UnknownReplica:
    state = PartitionState(0, 5, isr, controller_epoch)
    record = ReplicaRecord(P, created, replicas, state, 3, {})
    return UnknownReplica(record, False, last_epoch, 0, end_offset)


def only(found: list[Lost]) -> Lost:
    (one,) = found
    return one


def test_plan_when_copies_differ_then_the_latest_epoch_counts_before_the_length() -> None:
    lost = only(plan({0: [copy(5, 900)], 1: [copy(7, 100)], 2: [copy(7, 90)]}))

    assert lost.record.state == PartitionState(1, 8, (1,), 1)
    assert list(lost.copies) == [1, 2, 0]
    assert lost.doubts == ()


def test_plan_when_copies_are_the_same_then_the_last_leader_leads() -> None:
    lost = only(plan({id: [copy(5, 100)] for id in range(3)}))

    assert lost.record.state.leader == 0


def test_plan_when_a_broker_is_away_then_says_what_may_be_lost() -> None:
    lost = only(plan({1: [copy(5, 100)], 2: [copy(5, 100)]}))

    assert lost.doubts == ("what only brokers 0 have, which are not there",)


def test_plan_when_a_live_broker_has_no_log_then_the_topic_may_have_been_deleted() -> None:
    lost = only(plan({0: [], 1: [copy(5, 100)], 2: [copy(5, 100)]}))

    assert lost.doubts == ("brokers 0 have no log of it: the topic may have been deleted",)


def test_plan_when_no_copy_was_in_sync_then_committed_messages_may_be_lost() -> None:
    lost = only(plan({2: [copy(5, 100)]}))

    assert "committed messages: no copy of brokers 0, 1, which were in sync" in lost.doubts


def test_plan_when_only_logs_are_known_then_their_brokers_are_the_replicas() -> None:
    bare = UnknownReplica(ReplicaRecord.of_bare_log(P, "a"), False, 4, 0, 50)
    lost = only(plan({1: [bare], 2: [bare._replace(log_end_offset=60)]}))

    assert lost.record.replicas == (1, 2)
    assert lost.record.state == PartitionState(2, 5, (2,), 0)
    assert lost.doubts == ("which brokers had it is not known",)


def test_plan_when_a_copy_is_of_no_replica_any_more_then_it_does_not_lead() -> None:
    former = copy(9, 900)._replace(
        record=copy(9, 900, replicas=(0, 1, 3)).record._replace(version=1)
    )
    lost = only(plan({0: [copy(5, 100)], 1: [copy(5, 100)], 2: [copy(5, 100)], 3: [former]}))

    assert lost.record.state.leader == 0
    assert 3 not in lost.copies


def test_plan_when_there_are_two_creations_then_the_later_one_counts() -> None:
    former = copy(5, 100, created="z")
    found = plan({id: [copy(0, 10, controller_epoch=2), former] for id in range(1)})

    assert {one.record.creation_id: one.is_former for one in found} == {"a": False, "z": True}
