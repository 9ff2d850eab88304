"""Topics that are created, enlarged, moved and deleted, and elections on request."""

from __future__ import annotations

import pytest

from broker.cluster_state import Creation, KeptCreation, PartitionState, TopicAssignment
from broker.errors import (
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    RegistryUnreachableError,
    TopicExistsError,
    UnknownTopicError,
)
from broker.ids import NO_LEADER
from broker.topic import FORMAT_KAFKA, NO_HOME, TopicPartition
from tests.unit.broker.controller.cluster import Cluster, P


def led(leader: int, *isr: int) -> PartitionState:
    return PartitionState(leader, 5, isr, 1)


def create(cluster: Cluster, count: int = 6, factor: int = 3, **settings: str) -> list[str]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    created = cluster.controller.topics.create(
        "new", count, factor, named, creation_id="c1", start=0
    )
    return [one.partition.name for one in created]


# Creation


def test_create_when_brokers_are_live_then_partitions_are_led_by_their_homes() -> None:
    cluster = Cluster(led(0, 0))
    cluster.pushes()

    names = create(cluster)

    assert names == ["0-0", "1-0", "2-0", "0-1", "1-1", "2-1"]
    pushed = cluster.pushes()[1].partitions
    assert [(one.partition.home, one.state.leader_epoch) for one in pushed] == [
        (one.state.leader, 0) for one in pushed
    ]
    assert {one.creation_id for one in pushed} == {"c1"}
    assert all(set(one.state.isr) == {0, 1, 2} for one in pushed)


def test_create_when_the_format_is_kafka_then_partitions_are_numbers_with_leaders() -> None:
    cluster = Cluster(led(0, 0))
    cluster.pushes()

    made = cluster.controller.topics.create(
        "new", 4, 2, {}, format=FORMAT_KAFKA, creation_id="c1", start=1
    )

    assert [one.partition.name for one in made] == ["0", "1", "2", "3"]
    assert [one.state.leader for one in made] == [1, 2, 0, 1]
    assert cluster.registry.topics["new"].format == FORMAT_KAFKA
    pushed = cluster.pushes()[1].partitions
    assert {one.partition.format for one in pushed} == {FORMAT_KAFKA}


def test_create_when_kafka_would_refuse_the_name_then_so_does_the_controller() -> None:
    cluster = Cluster(led(0, 0))

    with pytest.raises(InvalidTopicError, match="in the format kafka"):
        cluster.controller.topics.create(
            "a b", 1, 1, {}, format=FORMAT_KAFKA, creation_id="c1", start=0
        )
    assert cluster.registry.topics.keys() == {"t"}


def test_topic_when_of_format_kafka_then_changes_as_any_other() -> None:
    cluster = Cluster(led(0, 0))
    cluster.controller.topics.create(
        "new", 2, 2, {}, format=FORMAT_KAFKA, creation_id="c1", start=0
    )

    added = cluster.controller.topics.add_partitions("new", 1, start=2)
    assert [(one.partition.name, one.replicas) for one in added] == [("2", (2, 0))]

    cluster.fail(0)
    states = {one.name: stored.state for one, stored in cluster.registry.states.items()}
    assert [(states[name].leader, states[name].isr) for name in "012"] == [
        (1, (1,)),
        (1, (1, 2)),
        (2, (2,)),
    ]

    cluster.start(0)
    one = TopicPartition("new", NO_HOME, 1)
    cluster.controller.reassignments.begin({one: (2, 0)}, None)
    assert cluster.registry.reassignments[one].target == (2, 0)
    cluster.controller.deletions.delete_topic("new")
    for _ in range(2):
        deliver(cluster)
    assert "new" not in cluster.registry.topics


def test_create_when_settings_are_given_then_they_are_kept_and_told() -> None:
    cluster = Cluster(led(0, 0))
    cluster.pushes()

    create(cluster, 1, 2, min_insync_replicas="2")

    assert cluster.registry.settings["new"] == {"min.insync.replicas": "2"}
    assert cluster.pushes()[0].partitions[0].min_isr == 2


def test_partitions_when_the_cluster_would_have_more_than_brokers_can_be_told_of_then_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.controller.topics.MAX_CLUSTER_PARTITIONS", 7)
    cluster = Cluster(led(0, 0))  # which has a topic of one partition
    kept = {0: Creation("c0", 1)}

    create(cluster, 6)

    with pytest.raises(InvalidRequestError, match="a cluster has at most 7"):
        cluster.controller.topics.create("more", 1, 1, {}, creation_id="c2", start=0)
    with pytest.raises(InvalidRequestError, match="a cluster has at most 7"):
        cluster.controller.topics.add_partitions("new", 1, start=0)
    with pytest.raises(InvalidRequestError, match="a cluster has at most 7"):
        cluster.controller.topics.replicate(
            "more", [TopicPartition("more", 0, 0)], 2, kept, {}, creation_id="c2"
        )
    assert cluster.registry.topics.keys() == {"t", "new"}
    assert len(cluster.registry.topics["new"].replicas) == 6


def test_create_when_topic_exists_then_error_and_nothing_is_changed() -> None:
    cluster = Cluster(led(0, 0))
    create(cluster, 1, 1)

    with pytest.raises(TopicExistsError):
        create(cluster, 1, 1)


def test_create_when_factor_exceeds_live_brokers_then_error_and_nothing_is_changed() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(2)

    with pytest.raises(InvalidReplicationFactorError, match="2 brokers are live"):
        create(cluster)

    assert "new" not in cluster.registry.topics


def test_create_when_min_isr_exceeds_factor_then_error() -> None:
    with pytest.raises(InvalidRequestError, match="from 1 to the replication factor, 2"):
        create(Cluster(led(0, 0)), 1, 2, min_insync_replicas="3")


def test_create_when_name_is_not_allowed_then_error() -> None:
    with pytest.raises(InvalidTopicError):
        Cluster().controller.topics.create("a/b", 1, 1, {}, creation_id="c", start=0)


def test_create_when_broker_shuts_down_then_it_gets_no_replica() -> None:
    cluster = Cluster(led(0, 0))
    cluster.shut_down(1)

    assert create(cluster, 2, 2) == ["0-0", "2-0"]


def test_create_when_interrupted_before_the_states_then_successor_completes_it() -> None:
    cluster = Cluster(led(0, 0))
    calls = iter([None, RegistryUnreachableError("lost")])

    def fail_second() -> None:
        if error := next(calls):
            raise error

    cluster.store.on_write = fail_second
    with pytest.raises(RegistryUnreachableError):
        create(cluster, 1, 3)

    cluster.elect()

    state = cluster.registry.states[TopicPartition("new", 0, 0)].state
    assert (state.leader, state.isr) == (0, (0, 1, 2))


# More partitions


def test_add_partitions_when_topic_exists_then_new_ones_follow_with_the_same_factor() -> None:
    cluster = Cluster(led(0, 0))

    added = cluster.controller.topics.add_partitions("t", 2, start=0)

    assert [(one.partition.name, one.replicas) for one in added] == [
        ("0-1", (0, 1, 2)),
        ("1-0", (1, 2, 0)),
    ]
    assert cluster.registry.topics["t"].version == 1
    assert cluster.state == (0, 5, (0,))


def test_add_partitions_when_topic_is_unknown_then_error() -> None:
    with pytest.raises(UnknownTopicError):
        Cluster().controller.topics.add_partitions("x", 1, start=0)


# Replicas for a topic without


def test_replicate_when_homes_are_live_then_they_lead_alone_and_clients_keep_the_topic() -> None:
    cluster = Cluster(led(0, 0))
    cluster.pushes()
    kept = {0: Creation("home 0", 7), 1: Creation("home 1", 8)}
    partitions = [TopicPartition("old", home, 0) for home in kept]

    taken = cluster.controller.topics.replicate(
        "old", partitions, 3, kept, {"min.insync.replicas": "2"}, creation_id="c1"
    )

    assert [one.replicas for one in taken] == [(0, 1, 2), (1, 2, 0)]
    assert [one.state[:3] for one in taken] == [(0, 0, (0,)), (1, 0, (1,))]
    assert [one.kept_id for one in taken] == ["home 0", "home 1"]
    assert cluster.registry.topics["old"].kept == {
        home: KeptCreation(one, 1) for home, one in kept.items()
    }
    assert cluster.registry.settings["old"] == {"min.insync.replicas": "2"}
    assert cluster.pushes()[2].partitions == tuple(taken)


def test_replicate_when_the_next_controller_begins_then_the_home_alone_is_in_sync() -> None:
    cluster = Cluster(led(0, 0))
    home, topic = TopicPartition("old", 1, 0), "old"
    cluster.registry.topics[topic] = TopicAssignment(
        topic, "c1", {home: (1, 0, 2)}, kept={1: KeptCreation(Creation("home 1", 8), 1)}
    )

    cluster.elect()

    assert cluster.registry.states[home].state[:3] == (1, 0, (1,))


@pytest.mark.parametrize(
    ("homes", "factor", "error", "text"),
    [
        ((0, 9), 2, InvalidRequestError, r"'old' cannot .* brokers \[9\] are away"),
        ((0, 1), 4, InvalidReplicationFactorError, "'old' cannot have 4 replicas .* 3 brokers"),
        ((0, 1), 1, InvalidRequestError, r"min\.insync\.replicas of topic 'old' is 2"),
    ],
)
def test_replicate_when_it_cannot_be_then_refused_by_name_and_nothing_is_changed(
    homes: tuple[int, ...], factor: int, error: type[Exception], text: str
) -> None:
    cluster = Cluster(led(0, 0))
    partitions = [TopicPartition("old", home, 0) for home in homes]
    settings = {"min.insync.replicas": "2"}

    with pytest.raises(error, match=text):
        cluster.controller.topics.replicate(
            "old", partitions, factor, {}, settings, creation_id="c1"
        )
    assert "old" not in cluster.registry.topics


def test_replicate_when_the_topic_has_replicas_then_refused() -> None:
    cluster = Cluster(led(0, 0))

    with pytest.raises(TopicExistsError, match="'t' has replicas already: a reassignment"):
        cluster.controller.topics.replicate("t", [P], 3, {}, {}, creation_id="c1")


# Deletion


def test_delete_when_all_brokers_are_live_then_is_done_once_all_have_deleted() -> None:
    cluster = Cluster(led(0, 0))
    cluster.pushes()

    cluster.controller.deletions.delete_topic("t")

    pushes = cluster.pushes()
    assert {one: [s.deletes_log for s in push.stopped] for one, push in pushes.items()} == {
        0: [True],
        1: [True],
        2: [True],
    }
    cluster.controller.deletions.delivered(0, pushes[0])
    cluster.controller.deletions.delivered(1, pushes[1])
    assert "t" in cluster.registry.topics
    cluster.controller.deletions.delivered(2, pushes[2])
    assert (cluster.registry.topics, cluster.registry.states) == ({}, {})
    assert cluster.registry.deletions == set()


def deliver(cluster: Cluster) -> None:
    for broker_id, push in cluster.pushes().items():
        cluster.controller.deletions.delivered(broker_id, push)


@pytest.mark.parametrize("is_elected_again", [False, True])
def test_delete_when_a_replica_is_away_then_is_done_and_it_deletes_its_log_when_it_is_back(
    is_elected_again: bool,
) -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(2)
    cluster.pushes()

    cluster.controller.deletions.delete_topic("t")
    deliver(cluster)

    assert (cluster.registry.topics, cluster.registry.deletions) == ({}, set())
    cluster.controller.topics.create("t", 1, 2, {}, creation_id="new", start=0)
    if is_elected_again:
        cluster.elect()
    deliver(cluster)
    cluster.start(2)
    push = cluster.pushes()[2]
    assert [(one.partition, one.creation_id) for one in push.stopped] == [(P, "id")]
    cluster.controller.deletions.delivered(2, push)
    assert cluster.registry.deleted == {}
    assert cluster.registry.topics["t"].creation_id == "new"


def test_delete_when_a_broker_goes_meanwhile_then_it_is_not_waited_for() -> None:
    cluster = Cluster(led(0, 0))
    cluster.controller.deletions.delete_topic("t")
    pushes = cluster.pushes()
    for broker_id in (0, 1):
        cluster.controller.deletions.delivered(broker_id, pushes[broker_id])
    assert "t" in cluster.registry.topics

    cluster.fail(2)

    assert cluster.registry.topics == {}
    assert cluster.registry.deleted["id"].brokers == {2}


def test_delete_when_no_replica_is_live_then_is_done_at_once() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(0, 1, 2)

    cluster.controller.deletions.delete_topic("t")

    assert cluster.registry.topics == {}
    assert cluster.registry.deleted["id"].brokers == {0, 1, 2}


def test_delete_when_controller_changes_then_the_next_goes_on() -> None:
    cluster = Cluster(led(0, 0))
    cluster.controller.deletions.delete_topic("t")
    cluster.elect()

    for broker_id, push in cluster.pushes().items():
        cluster.controller.deletions.delivered(broker_id, push)

    assert cluster.registry.topics == {}


def test_delete_when_interrupted_then_no_later_topic_inherits_a_change_of_replicas() -> None:
    cluster = Cluster(led(0, 0))
    cluster.controller.reassignments.begin({P: (1, 2)})

    def fail_behind_the_deletion() -> None:
        if "t" in cluster.registry.deletions:
            raise RegistryUnreachableError("no answer in time")

    cluster.store.on_write = fail_behind_the_deletion
    with pytest.raises(RegistryUnreachableError):
        cluster.controller.deletions.delete_topic("t")

    cluster.elect()
    for broker_id, push in cluster.pushes().items():
        cluster.controller.deletions.delivered(broker_id, push)
    assert cluster.registry.topics == {}
    assert cluster.registry.reassignments == {}


def test_delete_when_under_way_then_topic_cannot_be_created_or_led() -> None:
    cluster = Cluster(led(0, 0, 1))
    cluster.controller.deletions.delete_topic("t")

    cluster.fail(0)

    assert cluster.state == (0, 5, (0, 1))
    with pytest.raises(TopicExistsError, match="is being deleted"):
        cluster.controller.topics.create("t", 1, 1, {}, creation_id="c", start=0)
    with pytest.raises(UnknownTopicError):
        cluster.controller.deletions.delete_topic("t")


# Elections on request


def test_preferred_when_in_sync_then_leads_again_with_the_same_members() -> None:
    cluster = Cluster(led(1, 1, 0))

    assert cluster.controller.leadership.elect_preferred([P]) == {P: None}
    assert cluster.state == (0, 6, (1, 0))


def test_preferred_when_it_leads_already_then_nothing_is_written() -> None:
    cluster = Cluster(led(0, 0, 1))

    assert cluster.controller.leadership.elect_preferred([P]) == {P: None}
    assert cluster.state == (0, 5, (0, 1))


def test_preferred_when_out_of_sync_or_unknown_then_says_so_and_state_stays() -> None:
    cluster = Cluster(led(1, 1))
    unknown = TopicPartition("x", 0, 0)

    outcome = cluster.controller.leadership.elect_preferred([P, unknown])

    assert isinstance(outcome[P], InvalidRequestError)
    assert isinstance(outcome[unknown], UnknownTopicError)
    assert cluster.state == (1, 5, (1,))


@pytest.mark.parametrize(("max_percentage", "leader"), [(99, 0), (100, 1)])
def test_balance_when_more_than_allowed_is_led_elsewhere_then_leaderships_go_back(
    max_percentage: int, leader: int
) -> None:
    cluster = Cluster(led(1, 1, 0))

    cluster.controller.leadership.balance_leaders(max_percentage)

    assert cluster.state[0] == leader


def test_balance_when_preferred_replica_is_out_of_sync_or_replicas_change_then_state_stays() -> (
    None
):
    cluster = Cluster(led(1, 1))
    cluster.controller.leadership.balance_leaders(0)
    assert cluster.registry.states[P].version == 0

    cluster = Cluster(led(1, 1, 0))
    cluster.start(3)
    move(cluster, 0, 3)
    cluster.controller.leadership.balance_leaders(0)
    assert cluster.state[0] == 1


def test_unclean_when_partition_has_a_leader_then_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="has a leader"):
        Cluster(led(0, 0), unclean=True).controller.leadership.elect_unclean(P)


def test_unclean_when_topic_does_not_allow_it_then_is_refused() -> None:
    cluster = Cluster(led(0, 0))
    cluster.fail(0)

    with pytest.raises(InvalidRequestError, match="does not allow it"):
        cluster.controller.leadership.elect_unclean(P)

    assert cluster.state == (NO_LEADER, 6, (0,))


# Moving replicas


def move(cluster: Cluster, *target: int) -> None:
    cluster.controller.reassignments.begin({P: target})


def replicas(cluster: Cluster) -> tuple[int, ...]:
    return cluster.registry.topics["t"].replicas[P]


def test_reassign_when_there_is_no_room_for_its_record_then_refused_and_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)

    def refuse(*_: object) -> None:
        raise InvalidRequestError("no room")

    monkeypatch.setattr(cluster.store, "validate_reassignments", refuse)
    with pytest.raises(InvalidRequestError, match="no room"):
        cluster.controller.reassignments.begin({P: (1, 2, 3)}, 5000)
    assert replicas(cluster) == (0, 1, 2)
    assert not cluster.registry.reassignments
    assert not cluster.controller.context.throttle_bytes_per_s


def test_reassign_when_new_replica_is_in_sync_then_old_one_is_removed_with_its_log() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    cluster.pushes()

    move(cluster, 1, 2, 3)
    assert (replicas(cluster), cluster.state) == ((0, 1, 2, 3), (0, 6, (0, 1, 2)))
    assert cluster.registry.reassignments[P].original == (0, 1, 2)
    cluster.pushes()

    cluster.change_isr(0, 1, 2, 3)

    assert (replicas(cluster), cluster.state) == ((1, 2, 3), (1, 7, (1, 2, 3)))
    assert cluster.registry.reassignments == {}
    pushes = cluster.pushes()
    stopped = [(one.leader_epoch, one.deletes_log) for one in pushes[0].stopped]
    assert stopped == [(7, True)]
    assert pushes[3].partitions[0].replicas == (1, 2, 3)


def test_topic_when_it_keeps_an_older_creation_then_brokers_are_told_of_it() -> None:
    cluster = Cluster(led(0, 0, 1))
    kept = {P.home: KeptCreation(Creation("of home", 7), 1)}
    cluster.registry.topics["t"] = cluster.registry.topics["t"]._replace(kept=kept)
    cluster.elect()

    move(cluster, 1)

    assert cluster.registry.topics["t"].kept == kept
    (info,) = cluster.pushes()[1].partitions
    assert (info.creation_id, info.kept_id) == ("id", "of home")


def test_reassign_when_all_new_ones_are_in_sync_then_is_done_at_once() -> None:
    cluster = Cluster(led(0, 0, 1))

    move(cluster, 1)

    assert (replicas(cluster), cluster.state) == ((1,), (1, 6, (1,)))


def test_reassign_when_controller_changes_then_the_next_goes_on() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    move(cluster, 3)
    cluster.elect()

    cluster.change_isr(0, 1, 2, 3)

    assert (replicas(cluster), cluster.state) == ((3,), (3, 8, (3,)))


def test_reassign_when_interrupted_after_replicas_were_added_then_successor_begins_an_epoch() -> (
    None
):
    cluster = Cluster(led(0, 0))
    cluster.start(3)
    states = cluster.registry.states[P]
    move(cluster, 0, 3)
    cluster.registry.states[P] = states  # the write of the next epoch was lost
    cluster.elect()

    assert replicas(cluster) == (0, 1, 2, 3)
    assert cluster.state == (0, 6, (0,))


@pytest.mark.parametrize("step", range(6))
def test_reassign_when_interrupted_at_any_write_then_successor_ends_at_the_same(step: int) -> None:
    cluster = Cluster(led(0, 0, 1))
    left = [step]

    def fail_later() -> None:
        if left[0] == 0:
            raise RegistryUnreachableError("lost")
        left[0] -= 1

    cluster.store.on_write = fail_later
    try:
        move(cluster, 1)
        is_recorded = True
    except RegistryUnreachableError:
        is_recorded = P in cluster.registry.reassignments

    cluster.elect()

    assert replicas(cluster) == ((1,) if is_recorded else (0, 1, 2))
    assert cluster.registry.reassignments == {}
    assert cluster.state[0] == (1 if is_recorded else 0)


@pytest.mark.parametrize("target", [(), (1, 1), (7,)])
def test_reassign_when_target_makes_no_sense_then_error_and_nothing_is_changed(
    target: tuple[int, ...],
) -> None:
    cluster = Cluster(led(0, 0))

    with pytest.raises(InvalidRequestError):
        move(cluster, *target)

    assert (replicas(cluster), cluster.registry.reassignments) == ((0, 1, 2), {})


@pytest.mark.parametrize(("min_isr", "target"), [("2", (1,)), ("3", (0, 1))])
def test_reassign_when_fewer_than_must_be_in_sync_then_refused(
    min_isr: str, target: tuple[int, ...]
) -> None:
    cluster = Cluster(led(0, 0))
    cluster.controller.settings_changed({"t": {"min.insync.replicas": min_isr}})

    with pytest.raises(InvalidRequestError, match=f"min.insync.replicas is {min_isr}"):
        move(cluster, *target)

    assert (replicas(cluster), cluster.registry.reassignments) == ((0, 1, 2), {})


def test_reassign_when_there_were_too_few_before_then_as_many_are_allowed() -> None:
    cluster = Cluster(led(0, 0))
    cluster.registry.topics["t"] = TopicAssignment("t", "id", {P: (0,)})
    cluster.elect()
    cluster.controller.settings_changed({"t": {"min.insync.replicas": "2"}})

    move(cluster, 1)

    assert cluster.registry.reassignments[P].target == (1,)


def test_reassign_when_new_replica_dies_then_waits_and_can_be_cancelled() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    move(cluster, 3)
    cluster.fail(3)
    assert replicas(cluster) == (0, 1, 2, 3)

    cluster.controller.reassignments.cancel(P)

    assert (replicas(cluster), cluster.state) == ((0, 1, 2), (0, 7, (0, 1, 2)))
    assert cluster.registry.reassignments == {}


def test_reassign_when_changed_on_the_way_then_goes_to_the_later_target() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3, 4)
    move(cluster, 3)

    move(cluster, 4)
    cluster.change_isr(0, 1, 2, 4)

    assert (replicas(cluster), cluster.state[0]) == ((4,), 4)
    assert {one for one, push in cluster.pushes().items() if push.stopped} == {0, 1, 2, 3}


def test_reassign_when_throttled_then_brokers_are_told_of_it_and_of_what_it_limits() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    cluster.pushes()

    cluster.controller.reassignments.begin({P: (0, 1, 3)}, 5000)

    (info,) = cluster.pushes()[3].partitions
    assert (info.replicas, info.adding) == ((0, 1, 2, 3), (3,))
    assert [info.is_throttled(one) for one in range(4)] == [False, False, False, True]
    assert cluster.registry.throttle_bytes_per_s == 5000


def test_reassign_when_throttle_alone_changes_then_all_brokers_are_told_of_it() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    cluster.controller.reassignments.begin({P: (0, 1, 3)}, 5000)
    cluster.pushes()

    cluster.controller.reassignments.begin({}, 7000)

    pushes = cluster.pushes()
    assert {one: push.throttle_bytes_per_s for one, push in pushes.items()} == dict.fromkeys(
        range(4), 7000
    )
    assert not any(push.partitions for push in pushes.values())
    assert cluster.registry.throttle_bytes_per_s == 7000
    assert P in cluster.registry.reassignments

    cluster.controller.reassignments.begin({P: (0, 1, 3)})  # without a throttle: as it is

    assert cluster.controller.context.throttle_bytes_per_s == 7000


def test_reassign_when_the_last_change_has_ended_then_the_throttle_has_too() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    cluster.controller.reassignments.begin({P: (0, 1, 3)}, 5000)
    cluster.pushes()

    cluster.change_isr(0, 1, 2, 3)

    push = cluster.pushes()[3]
    assert (push.throttle_bytes_per_s, push.partitions[0].adding) == (0, ())
    assert cluster.registry.throttle_bytes_per_s == 0
    assert cluster.controller.context.throttle_bytes_per_s == 0


def test_reassign_when_a_new_replica_is_in_sync_then_it_is_throttled_no_more() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3, 4)
    cluster.controller.reassignments.begin({P: (3, 4)}, 5000)
    cluster.pushes()

    cluster.change_isr(0, 1, 2, 3)

    (info,) = cluster.pushes()[3].partitions
    assert info.adding == (3, 4)
    assert [info.is_throttled(one) for one in (3, 4)] == [False, True]


def test_reassign_when_cancelled_then_the_throttle_ends() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    cluster.controller.reassignments.begin({P: (0, 1, 3)}, 5000)
    cluster.pushes()

    cluster.controller.reassignments.cancel(P)

    assert cluster.pushes()[0].throttle_bytes_per_s == 0


def test_reassign_when_controller_changes_then_the_throttle_stays() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    cluster.controller.reassignments.begin({P: (0, 1, 3)}, 5000)

    cluster.elect()

    push = cluster.pushes()[3]
    assert (push.throttle_bytes_per_s, push.partitions[0].adding) == (5000, (3,))


def test_reassign_when_throttle_is_negative_then_error_and_nothing_is_changed() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)

    with pytest.raises(InvalidRequestError, match="a throttle of -5 bytes per second"):
        cluster.controller.reassignments.begin({P: (0, 1, 3)}, -5)

    assert cluster.registry.reassignments == {}


def test_reassign_when_same_target_is_asked_for_again_then_it_goes_on() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    move(cluster, 0, 1, 2, 3)

    move(cluster, 0, 1, 2, 3)  # all of them are replicas, but not all in sync

    assert cluster.registry.reassignments[P].original == (0, 1, 2)
    cluster.change_isr(0, 1, 2, 3)
    assert cluster.registry.reassignments == {}


def test_create_when_a_broker_loses_all_its_replicas_then_gets_none() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    move(cluster, 0, 1, 3)  # all that broker 2 has goes away

    created = cluster.controller.topics.create("new", 8, 3, {}, creation_id="n", start=2)

    assert {one for info in created for one in info.replicas} == {0, 1, 3}
    with pytest.raises(InvalidReplicationFactorError, match=r"3 brokers are live besides \[2\]"):
        cluster.controller.topics.create("other", 1, 4, {}, creation_id="o", start=0)

    cluster.change_isr(0, 1, 2, 3)  # the change has ended, and broker 2 is one like the others
    again = cluster.controller.topics.create("again", 8, 3, {}, creation_id="a", start=2)
    assert {one for info in again for one in info.replicas} == {0, 1, 2, 3}


def test_partitions_when_a_broker_keeps_a_replica_then_it_gets_others_too() -> None:
    cluster = Cluster(led(0, 0, 1, 2))
    cluster.start(3)
    (kept,) = cluster.controller.topics.create("kept", 1, 4, {}, creation_id="k", start=0)
    assert 2 in kept.replicas
    move(cluster, 0, 1, 3)

    created = cluster.controller.topics.create("new", 8, 3, {}, creation_id="n", start=0)

    assert {one for info in created for one in info.replicas} == {0, 1, 2, 3}


def test_cancel_when_nothing_is_under_way_then_error() -> None:
    with pytest.raises(UnknownTopicError):
        Cluster().controller.reassignments.cancel(P)
