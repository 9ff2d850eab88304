"""Starts, failures and shutdowns of brokers, and the in-sync replicas that leaders ask for."""

from __future__ import annotations

import pytest

from broker.cluster_state import (
    UNKNOWN_BROKER_EPOCH,
    IsrChange,
    IsrMember,
    PartitionState,
    StoredState,
    TopicAssignment,
    creation_key,
)
from broker.controller.controller import Controller
from broker.errors import (
    ControllerFencedError,
    FencedEpochError,
    InvalidRequestError,
    RegistryConflictError,
    StaleBrokerEpochError,
    UnknownTopicError,
)
from broker.ids import NO_LEADER
from broker.topic import TopicPartition
from tests.support.model_store import ModelStore
from tests.unit.broker.controller.cluster import CREATION, Cluster, P


def led(leader: int, *isr: int, epoch: int = 5) -> PartitionState:
    return PartitionState(leader, epoch, isr, 1)


# A new controller


def test_load_when_partition_is_new_then_first_live_replica_leads_with_all_live() -> None:
    cluster = Cluster()

    assert cluster.state == (0, 0, (0, 1, 2))
    assert cluster.registry.states[P].state.controller_epoch == 1


def test_load_when_no_replica_of_a_new_partition_is_live_then_waits_for_one() -> None:
    cluster = Cluster()
    del cluster.registry.states[P]
    cluster.live.clear()
    cluster.elect()
    assert P not in cluster.registry.states

    cluster.start(2)

    assert cluster.state == (2, 0, (2,))


def test_load_when_leader_is_live_then_state_stays_and_all_brokers_get_everything() -> None:
    cluster = Cluster(led(1, 1, 2))

    pushes = cluster.pushes()

    assert cluster.store.batches == []
    assert {one: push.is_full for one, push in pushes.items()} == {0: True, 1: True, 2: True}
    (told,) = pushes[2].partitions
    assert (told.creation_id, told.replicas, told.min_isr) == ("id", (0, 1, 2), 1)
    assert (told.state, told.version) == (led(1, 1, 2), 0)
    assert pushes[2].broker_epoch == cluster.epoch_of(2)
    assert [one.id for one in pushes[2].brokers] == [0, 1, 2]


def test_load_when_leader_died_before_then_another_leads() -> None:
    cluster = Cluster(led(0, 0, 2))
    del cluster.live[0]

    cluster.elect()

    assert cluster.state == (2, 6, (2,))


def test_load_when_a_member_died_before_then_it_leaves() -> None:
    cluster = Cluster(led(1, 0, 1))
    del cluster.live[0]

    cluster.elect()

    assert cluster.state == (1, 5, (1,))


def test_load_when_later_controller_is_in_office_then_nothing_is_written() -> None:
    cluster = Cluster(led(0, 0, 1))
    old = cluster.store
    ModelStore(cluster.registry)
    controller = Controller(0, old.epoch, old)

    with pytest.raises(ControllerFencedError):
        controller.load(cluster.registry.snapshot([cluster.live[1]]))

    assert cluster.state == (0, 5, (0, 1))


# Failures


def test_failure_when_leader_dies_then_first_in_sync_replica_leads_and_it_leaves() -> None:
    cluster = Cluster(led(0, 0, 2, 1))

    cluster.fail(0)

    assert cluster.state == (1, 6, (1, 2))


def test_failure_when_follower_dies_then_it_leaves_and_the_epoch_stays() -> None:
    cluster = Cluster(led(0, 0, 1))

    cluster.fail(1)

    assert cluster.state == (0, 5, (0,))
    assert cluster.registry.states[P].version == 1


def test_failure_when_no_other_is_in_sync_then_nobody_leads_and_the_member_stays() -> None:
    cluster = Cluster(led(0, 0))

    cluster.fail(0)

    assert cluster.state == (NO_LEADER, 6, (0,))


def test_failure_when_last_member_returns_then_it_leads_again() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(0)

    cluster.start(0)

    assert cluster.state == (0, 7, (0,))


def test_failure_when_all_members_die_at_once_then_each_may_lead_again() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.fail(0, 1)
    assert cluster.registry.states[P].state.isr == (0, 1)

    cluster.start(1)

    assert cluster.state == (1, 7, (1,))


def test_failure_when_members_die_in_turn_then_only_the_last_may_lead() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.fail(0)
    cluster.fail(1)

    cluster.start(0)

    assert cluster.state == (NO_LEADER, 7, (1,))


def test_failure_when_unclean_is_allowed_then_replica_out_of_sync_leads_and_is_counted() -> None:
    cluster = Cluster(led(0, 0), unclean=True)

    cluster.fail(0)

    assert cluster.state == (1, 6, (1,))
    assert [one.is_unclean for one in cluster.controller.states.take_changes()] == [True]


def test_failure_when_many_partitions_are_concerned_then_one_batch_with_elections_first() -> None:
    cluster = Cluster(led(1, 0, 1))
    other = TopicPartition("t", 0, 1)
    cluster.registry.topics["t"] = TopicAssignment("t", "id", {P: (0, 1, 2), other: (0, 1, 2)})
    cluster.registry.states[other] = StoredState(led(0, 0, 1), 0)
    cluster.elect()

    cluster.fail(0)

    assert [[one.partition for one in batch] for batch in cluster.store.batches] == [[other, P]]


def test_bounce_when_broker_has_another_epoch_then_it_failed_and_started() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.pushes()

    cluster.start(0)

    assert cluster.state == (1, 6, (1,))
    pushes = cluster.pushes()
    assert {one: push.is_full for one, push in pushes.items()} == {0: True, 1: False, 2: False}
    assert pushes[0].broker_epoch == cluster.epoch_of(0)


def test_bounce_when_sole_member_then_it_leads_in_a_later_epoch() -> None:
    cluster = Cluster(led(0, 0))

    cluster.start(0)

    assert cluster.state == (0, 7, (0,))


# Starts


def test_start_when_broker_was_not_in_sync_then_it_is_told_everything_and_leads_nothing() -> None:
    cluster = Cluster(led(1, 1))
    cluster.fail(0)
    cluster.pushes()

    cluster.start(0)

    assert cluster.state == (1, 5, (1,))
    pushes = cluster.pushes()
    assert (pushes[0].is_full, len(pushes[0].partitions)) == (True, 1)
    assert (pushes[1].is_full, pushes[1].partitions) == (False, ())
    assert [one.id for one in pushes[1].brokers] == [0, 1, 2]


def test_start_when_nothing_changed_then_nothing_is_pushed() -> None:
    cluster = Cluster(led(1, 1))
    cluster.pushes()

    cluster.controller.brokers_changed(cluster.live.values())

    assert cluster.pushes() == {}


def test_unclean_start_when_others_were_in_sync_then_leaves_before_an_election() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.fail(0, 1)

    cluster.start(0, is_clean=False)
    assert cluster.state == (NO_LEADER, 6, (1,))

    cluster.start(1)
    assert cluster.state == (1, 7, (1,))


def test_unclean_start_when_last_in_sync_replica_then_stays_and_leads() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(0)

    cluster.start(0, is_clean=False)

    assert cluster.state == (0, 7, (0,))


def test_unclean_start_when_bounced_before_the_controller_looked_then_leaves() -> None:
    cluster = Cluster(led(1, 0, 1))

    cluster.start(0, is_clean=False)

    assert cluster.state == (1, 5, (1,))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (led(0, 0, 1), (1, 6, (1,))),
        (led(1, 0, 1), (1, 5, (1,))),
        (led(0, 0), (0, 6, (0,))),  # its log may have become shorter: no epoch goes on in it
    ],
)
def test_unclean_start_when_a_new_controller_finds_it_then_leaves_or_gets_a_new_epoch(
    before: PartitionState, after: tuple[int, int, tuple[int, ...]]
) -> None:
    cluster = Cluster(before)
    cluster.live[0] = cluster.live[0]._replace(epoch=900, is_clean=False)

    cluster.elect()

    assert cluster.state == after


def test_unclean_start_when_all_members_are_unclean_then_one_stays() -> None:
    cluster = Cluster(led(1, 1, 0))
    for broker_id in (0, 1):
        cluster.live[broker_id] = cluster.live[broker_id]._replace(is_clean=False)

    cluster.elect()

    assert cluster.state == (0, 6, (0,))


# Changes of in-sync replicas


def test_change_isr_when_leader_asks_then_is_written_in_the_same_epoch() -> None:
    cluster = Cluster(led(0, 0))
    cluster.pushes()

    decision = cluster.change_isr(0, 2)

    assert cluster.state == (0, 5, (0, 2))
    assert decision.error == 0
    assert decision.decided is not None
    assert (decision.decided.state.isr, decision.decided.version) == ((0, 2), 1)
    assert {one for one, push in cluster.pushes().items() if push.partitions} == {0, 1, 2}


def test_change_isr_when_leader_resigns_then_another_member_leads() -> None:
    cluster = Cluster(led(0, 0, 1))

    assert cluster.change_isr(1).error == 0

    assert cluster.state == (1, 6, (1,))
    cluster.elect()
    assert cluster.state == (1, 6, (1,))


def test_change_isr_when_leader_resigns_and_no_member_is_live_then_nothing_changes() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.fail(1)
    before = cluster.state

    cluster.change_isr(1)

    assert cluster.state == before


def test_change_isr_when_leader_has_not_heard_of_a_member_that_stays_then_is_written() -> None:
    cluster = Cluster(led(0, 0, 1))
    members = (IsrMember(0, UNKNOWN_BROKER_EPOCH), IsrMember(1, UNKNOWN_BROKER_EPOCH))
    newcomer = IsrMember(2, cluster.epoch_of(2))
    change = IsrChange(P, 5, 0, (*members, newcomer), CREATION)
    cluster.controller.change_isr(0, cluster.epoch_of(0), [change])
    assert cluster.state == (0, 5, (0, 1, 2))

    change = IsrChange(P, 5, 1, (*members, newcomer._replace(broker_epoch=1)), CREATION)
    (decision,) = cluster.controller.change_isr(0, cluster.epoch_of(0), [change])
    assert decision.error == StaleBrokerEpochError.code


def test_change_isr_when_members_stay_then_gets_a_later_version_that_ends_earlier_requests() -> (
    None
):
    cluster = Cluster(led(0, 0))
    decision = cluster.change_isr(0)

    assert decision.decided is not None
    assert (decision.decided.state.isr, decision.decided.version) == ((0,), 1)
    cluster.change_isr(0, 2, version=0)
    assert cluster.state == (0, 5, (0,))


def test_change_isr_when_version_is_old_then_is_answered_with_the_present_state() -> None:
    cluster = Cluster(led(0, 0))
    cluster.change_isr(0, 1)

    decision = cluster.change_isr(0, version=0)

    assert cluster.state == (0, 5, (0, 1))
    assert decision.error == 0
    assert decision.decided is not None
    assert decision.decided.state.isr == (0, 1)


def test_change_isr_when_node_was_edited_then_is_answered_with_what_it_holds() -> None:
    cluster = Cluster(led(0, 0))
    cluster.registry.edit(P, led(0, 0, 2))

    decision = cluster.change_isr(0, 1, version=0)

    assert cluster.state == (0, 5, (0, 2))
    assert decision.decided is not None
    assert decision.decided.version == 1


def test_change_isr_when_sent_by_a_former_leader_then_is_fenced() -> None:
    cluster = Cluster(led(0, 0, 1))
    change = IsrChange(P, 4, 0, (IsrMember(0, cluster.epoch_of(0)),), CREATION)

    (decision,) = cluster.controller.change_isr(0, cluster.epoch_of(0), [change])

    assert decision.error == FencedEpochError.code
    assert cluster.state == (0, 5, (0, 1))


def test_change_isr_when_sent_by_another_broker_then_is_fenced() -> None:
    cluster = Cluster(led(0, 0, 1))
    change = IsrChange(P, 5, 0, (IsrMember(1, cluster.epoch_of(1)),), CREATION)

    (decision,) = cluster.controller.change_isr(1, cluster.epoch_of(1), [change])

    assert decision.error == FencedEpochError.code


def test_change_isr_when_leader_is_of_an_earlier_registration_then_is_refused() -> None:
    cluster = Cluster(led(0, 0, 1))
    change = IsrChange(P, 5, 0, (IsrMember(0, cluster.epoch_of(0)),), CREATION)

    (decision,) = cluster.controller.change_isr(0, cluster.epoch_of(0) - 1, [change])

    assert decision.error == StaleBrokerEpochError.code


def test_change_isr_when_member_is_dead_then_is_refused() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(2)

    assert cluster.change_isr(0, 2).error == StaleBrokerEpochError.code
    assert cluster.state == (0, 5, (0,))


def test_change_isr_when_member_has_restarted_since_then_is_refused() -> None:
    cluster = Cluster(led(0, 0))
    caught_up = IsrMember(2, cluster.epoch_of(2))
    cluster.start(2)
    change = IsrChange(P, 5, 0, (IsrMember(0, cluster.epoch_of(0)), caught_up), CREATION)

    (decision,) = cluster.controller.change_isr(0, cluster.epoch_of(0), [change])

    assert decision.error == StaleBrokerEpochError.code


def test_change_isr_when_member_is_shutting_down_then_is_refused() -> None:
    cluster = Cluster(led(0, 0, 2))
    cluster.shut_down(2)

    assert cluster.change_isr(0, 2).error == StaleBrokerEpochError.code


def test_change_isr_when_leader_shuts_down_and_cannot_hand_over_then_it_may_still_shrink() -> None:
    cluster = Cluster(led(0, 0))
    cluster.shut_down(0)

    assert cluster.change_isr(0, 1).error == 0


@pytest.mark.parametrize("isr", [(), (2,), (1, 2), (0, 7)])
def test_change_isr_when_members_make_no_sense_then_is_refused(isr: tuple[int, ...]) -> None:
    cluster = Cluster(led(0, 0, 1))

    assert cluster.change_isr(*isr).error == InvalidRequestError.code
    assert cluster.state == (0, 5, (0, 1))


def test_change_isr_when_the_topic_was_created_again_since_then_is_refused() -> None:
    cluster = Cluster(led(0, 0, 1))
    members = tuple(IsrMember(one, cluster.epoch_of(one)) for one in (0, 1, 2))
    change = IsrChange(P, 5, 0, members, creation_key("former"))

    (decision,) = cluster.controller.change_isr(0, cluster.epoch_of(0), [change])

    assert decision.error == UnknownTopicError.code
    assert cluster.state == (0, 5, (0, 1))


def test_change_isr_when_partition_is_unknown_then_is_refused_without_a_state() -> None:
    cluster = Cluster(led(0, 0))
    change = IsrChange(TopicPartition("x", 0, 0), 0, 0, (), CREATION)

    (decision,) = cluster.controller.change_isr(0, cluster.epoch_of(0), [change])

    assert (decision.error, decision.decided) == (UnknownTopicError.code, None)


# Conflicts with the registry


def test_decision_when_node_was_changed_then_is_made_again_from_what_it_holds() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.registry.edit(P, led(0, 0, 2))

    cluster.fail(0)

    assert cluster.state == (2, 6, (2,))


def test_decision_when_node_was_deleted_by_hand_then_is_written_in_the_next_epoch() -> None:
    cluster = Cluster(led(0, 0, 1))
    del cluster.registry.states[P]

    cluster.fail(0)

    assert cluster.state == (1, 6, (1,))


def test_decision_when_node_was_set_to_an_earlier_epoch_then_epochs_go_on_from_the_known() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.registry.edit(P, led(0, 0, 2, epoch=1))

    cluster.fail(0)

    assert cluster.state == (2, 6, (2,))


def test_decision_when_topic_was_deleted_by_hand_then_error_asks_for_another_look() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.registry.topics.clear()
    cluster.registry.states.clear()

    with pytest.raises(RegistryConflictError):
        cluster.fail(0)


# Controlled shutdown


def test_shutdown_when_broker_leads_then_others_lead_and_it_leaves() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.pushes()

    progress = cluster.controller.controlled_shutdown(0, cluster.epoch_of(0))

    assert cluster.state == (1, 6, (1, 2))
    assert [one.partition for one in progress.moved] == [P]
    assert (progress.left, progress.unmoved) == ((), ())
    assert {one for one, push in cluster.pushes().items() if push.partitions} == {0, 1, 2}


def test_shutdown_when_broker_follows_then_its_replica_stops_and_leaves() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.pushes()

    progress = cluster.controller.controlled_shutdown(2, cluster.epoch_of(2))

    assert cluster.state == (0, 5, (0, 1))
    assert progress.left == (P,)
    pushes = cluster.pushes()
    assert [(one.partition, one.deletes_log) for one in pushes[2].stopped] == [(P, False)]
    assert pushes[0].stopped == ()


def test_shutdown_when_no_other_replica_is_in_sync_then_is_reported_and_stays() -> None:
    cluster = Cluster(led(0, 0))

    assert cluster.shut_down(0) == ["0-0"]
    assert cluster.state == (0, 5, (0,))


def test_shutdown_when_only_other_member_shuts_down_too_then_is_reported() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.shut_down(1)
    cluster.shut_down(2)

    assert cluster.shut_down(0) == ["0-0"]
    assert cluster.state == (0, 5, (0,))


def test_shutdown_when_unclean_is_allowed_then_no_replica_out_of_sync_leads() -> None:
    cluster = Cluster(led(0, 0), unclean=True)

    assert cluster.shut_down(0) == ["0-0"]


def test_shutdown_when_topic_has_one_replica_then_is_not_reported() -> None:
    cluster = Cluster(led(0, 0))
    cluster.registry.topics["t"] = TopicAssignment("t", "id", {P: (0,)})
    cluster.elect()

    assert cluster.shut_down(0) == []
    assert cluster.state == (0, 5, (0,))


def test_shutdown_when_repeated_after_another_joined_then_moves_what_was_left() -> None:
    cluster = Cluster(led(0, 0))
    cluster.shut_down(0)
    cluster.change_isr(0, 1)

    assert cluster.shut_down(0) == []
    assert cluster.state == (1, 6, (1,))


def test_shutdown_when_broker_is_of_an_earlier_registration_then_error() -> None:
    cluster = Cluster(led(0, 0, 1))

    with pytest.raises(StaleBrokerEpochError):
        cluster.controller.controlled_shutdown(0, cluster.epoch_of(0) - 1)

    assert cluster.state == (0, 5, (0, 1))


def test_shutdown_when_broker_stays_up_then_it_gets_no_leadership_back() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.shut_down(0)

    cluster.fail(1)

    assert cluster.state == (NO_LEADER, 7, (1,))


def test_shutdown_when_broker_has_registered_again_then_it_may_lead() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.shut_down(0)
    cluster.start(0)
    cluster.change_isr(1, 0)

    cluster.fail(1)

    assert cluster.state == (0, 7, (0,))


def test_shutdown_when_controller_changes_then_the_next_moves_on_request() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.shut_down(0)
    cluster.elect()

    assert cluster.shut_down(0) == []
    assert cluster.state == (1, 6, (1,))


# Settings


def test_settings_when_min_isr_changes_then_brokers_are_told_in_the_same_epoch() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.pushes()

    cluster.controller.settings_changed({"t": {"min.insync.replicas": "2"}})

    pushes = cluster.pushes()
    assert [one.min_isr for one in pushes[1].partitions] == [2]
    assert cluster.store.batches == []


def test_settings_when_unclean_is_allowed_then_offline_partition_gets_a_leader_at_once() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(0)

    cluster.controller.settings_changed({"t": {"unclean.leader.election.enable": "true"}})

    assert cluster.state == (1, 7, (1,))
    assert cluster.controller.states.take_changes()[-1].is_unclean


def test_settings_when_topic_forbids_unclean_then_default_does_not_count() -> None:
    cluster = Cluster(led(0, 0), unclean=True)
    cluster.controller.settings_changed({"t": {"unclean.leader.election.enable": "false"}})

    cluster.fail(0)

    assert cluster.state == (NO_LEADER, 6, (0,))


# Log of changes


def test_changes_when_decided_then_each_names_state_version_and_reason_once() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.fail(0)

    (change,) = cluster.controller.states.take_changes()

    assert (change.partition, change.state, change.version) == (P, led(1, 1, epoch=6), 1)
    assert change.reason == "broker failed"
    assert change.is_election
    assert cluster.controller.states.take_changes() == []


def test_changes_when_no_other_broker_leads_then_are_no_elections() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.fail(1)
    cluster.fail(0)

    changes = cluster.controller.states.take_changes()

    assert [(one.state.leader, one.is_election) for one in changes] == [
        (0, False),
        (NO_LEADER, False),
    ]
