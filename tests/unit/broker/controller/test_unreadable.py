"""Topics with damaged nodes: left alone, while all others go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.cluster_state import (
    PartitionState,
    Reassignment,
    StoredState,
    TopicAssignment,
    UnreadableTopic,
)
from broker.controller.controller import Controller
from broker.errors import InvalidRequestError, ServerError, TopicExistsError, UnknownTopicError
from broker.topic import TopicPartition
from tests.unit.broker.controller.cluster import Cluster, P

D = TopicPartition("damaged", 1, 0)
ASSIGNMENT = TopicAssignment("damaged", "id-d", {D: (1, 2)})
REASON = "node /replicated/topics/damaged/partitions/1-0/state was deleted"


def damage(cluster: Cluster, assignment: TopicAssignment | None = ASSIGNMENT) -> None:
    """Have a new controller find a topic that it cannot read."""
    cluster.registry.topics["damaged"] = ASSIGNMENT
    cluster.registry.states[D] = StoredState(PartitionState(1, 3, (1, 2), 1), 7)
    cluster.registry.unreadable["damaged"] = UnreadableTopic(REASON, assignment)
    cluster.elect()


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(PartitionState(0, 5, (0, 1, 2), 1))
    damage(made)
    return made


def test_load_when_a_topic_is_unreadable_then_others_are_pushed_and_no_push_is_full(
    cluster: Cluster,
) -> None:
    pushes = cluster.pushes()

    assert {one: push.is_full for one, push in pushes.items()} == {0: False, 1: False, 2: False}
    assert all([one.partition for one in push.partitions] == [P] for push in pushes.values())
    assert cluster.controller.context.unreadable["damaged"].reason == REASON


def test_failure_when_a_topic_is_unreadable_then_others_get_leaders_and_it_stays(
    cluster: Cluster,
) -> None:
    cluster.fail(0)
    cluster.fail(1)
    cluster.start(1, is_clean=False)

    assert cluster.state == (2, 7, (2,))
    assert cluster.registry.states[D].version == 7
    assert [push.is_full for push in cluster.pushes().values()] == [False, False]


def test_load_when_it_can_be_read_again_then_it_is_taken_in_and_pushes_are_full(
    cluster: Cluster,
) -> None:
    cluster.pushes()
    cluster.registry.unreadable.clear()
    cluster.elect()

    push = cluster.pushes()[2]

    assert push.is_full
    assert {one.partition for one in push.partitions} == {P, D}
    assert cluster.registry.states[D].state.isr == (1, 2)


def test_isr_when_its_topic_is_unreadable_then_refused(cluster: Cluster) -> None:
    change = cluster.isr_change(D, 3, 7, (1,))

    (decision,) = cluster.controller.change_isr(1, cluster.epoch_of(1), [change])

    assert decision.error == UnknownTopicError.code
    assert decision.decided is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.topics.add_partitions("damaged", 1, start=0),
        lambda one: one.leadership.elect_unclean(D),
        lambda one: one.reassignments.begin({D: (0, 1)}),
    ],
)
def test_request_when_its_topic_is_unreadable_then_refused_with_the_node(
    cluster: Cluster, ask: Callable[[Controller], object]
) -> None:
    with pytest.raises(InvalidRequestError, match="partitions/1-0/state was deleted"):
        ask(cluster.controller)


def test_create_when_a_topic_of_the_name_is_unreadable_then_it_exists(cluster: Cluster) -> None:
    with pytest.raises(TopicExistsError, match="was deleted"):
        cluster.controller.topics.create("damaged", 1, 1, {}, creation_id="new", start=0)


def test_reassign_when_a_topic_is_unreadable_then_the_record_of_its_change_stays(
    cluster: Cluster,
) -> None:
    change = Reassignment((1, 2), (1, 2, 0))
    cluster.registry.reassignments[D] = change
    cluster.elect()

    cluster.controller.reassignments.begin({P: (0, 1)})

    assert cluster.registry.reassignments == {D: change}  # that of P is done at once


def test_delete_when_replicas_are_known_then_deleted_and_brokers_get_a_full_push(
    cluster: Cluster,
) -> None:
    cluster.pushes()

    cluster.controller.deletions.delete_topic("damaged")

    pushes = cluster.pushes()
    assert all(push.is_full for push in pushes.values())
    assert [one.partition for one in pushes[1].stopped] == [D]
    for broker_id, push in pushes.items():
        cluster.controller.deletions.delivered(broker_id, push)
    assert set(cluster.registry.topics) == {"t"}
    assert cluster.controller.context.unreadable == {}


def test_delete_when_replicas_are_not_known_then_refused(cluster: Cluster) -> None:
    damage(cluster, assignment=None)

    with pytest.raises(ServerError, match="stays as it is until it can be read"):
        cluster.controller.deletions.delete_topic("damaged")

    assert cluster.registry.deletions == set()
