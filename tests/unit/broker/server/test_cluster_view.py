from __future__ import annotations

from collections.abc import Mapping

import pytest

from broker.cluster_state import PartitionState, ReplicatedPartition
from broker.errors import LeaderNotAvailableError, ResponseTooLargeError, UnknownTopicError
from broker.ids import NO_LEADER
from broker.protocol.primitives import Reader
from broker.protocol.responses import BrokerAddress, ClusterMetadataResponse
from broker.server.cluster.cluster_view import ClusterView
from broker.topic import FORMAT_07, FORMAT_KAFKA, NO_HOME, TopicPartition

OWN = BrokerAddress(1, "one", 9091)
TWO = BrokerAddress(2, "two", 9092)
THREE = BrokerAddress(3, "three", 9093)


@pytest.fixture
def view() -> ClusterView:
    """Of broker 1, with one partition of `t`, and broker 2, with two."""
    view = ClusterView("zk:2181", OWN)
    view.set_own_topic("t", 1)
    view.set_registered({1: OWN, 2: TWO}, {"t": {1: 1, 2: 2}})
    return view


def listed(view: ClusterView, *topics: str) -> ClusterMetadataResponse:
    """What a client decodes from the response of the broker."""
    return ClusterMetadataResponse.decode(Reader(view.snapshot().encode(topics or None)))


def leaders(view: ClusterView, topic: str) -> dict[str, int]:
    (found,) = listed(view, topic).topics
    assert found.topic == topic
    metadata = view.snapshot().topic(topic)
    assert (metadata.partitions if metadata else ()) == found.partitions
    return {one.partition.name: one.leader for one in found.partitions}


def test_view_when_there_is_no_registry_then_has_the_own_broker_from_the_start() -> None:
    view = ClusterView("", OWN)
    view.set_own_topic("t", 2)

    assert view.ready.done()
    assert listed(view).brokers == (OWN,)
    assert leaders(view, "t") == {"1-0": 1, "1-1": 1}


def test_view_when_a_topic_here_is_of_the_format_kafka_then_its_partitions_are_numbers() -> None:
    view = ClusterView("", OWN)
    view.set_own_topic("t", 2, "ab", format=FORMAT_KAFKA)

    assert leaders(view, "t") == {"0": 1, "1": 1}
    (topic,) = listed(view).topics
    assert (topic.format, topic.creation_ids) == (FORMAT_KAFKA, {NO_HOME: "ab"})
    assert {one.replicas for one in topic.partitions} == {(1,)}


def test_view_when_the_controller_tells_of_the_format_kafka_then_all_partitions_are_numbers(
    view: ClusterView,
) -> None:
    state = PartitionState(2, 3, (2, 1), 1)
    numbers = [TopicPartition("new", NO_HOME, number) for number in range(11)]
    view.apply_partition_states(
        ReplicatedPartition(one, "c", (1, 2), 1, state, 0) for one in numbers
    )

    assert leaders(view, "new") == {str(number): 2 for number in range(11)}
    (topic,) = listed(view, "new").topics
    assert (topic.format, topic.creation_ids) == (FORMAT_KAFKA, {NO_HOME: "c"})
    assert [one.partition for one in topic.partitions] == numbers
    assert [one.format for one in listed(view, "t", "none").topics] == [FORMAT_07, ""]


def test_view_when_the_registry_was_not_read_yet_then_is_not_ready() -> None:
    assert not ClusterView("zk:2181", OWN).ready.done()


def test_view_when_brokers_are_registered_then_has_the_partitions_of_all(
    view: ClusterView,
) -> None:
    response = listed(view)

    assert view.ready.done()
    assert (response.cluster_id, response.broker_id) == ("zk:2181", 1)
    assert response.brokers == (OWN, TWO)
    assert [one.topic for one in response.topics] == ["t"]
    assert leaders(view, "t") == {"1-0": 1, "2-0": 2, "2-1": 2}


def test_view_when_a_topic_is_created_here_then_has_it_before_it_is_registered(
    view: ClusterView,
) -> None:
    view.set_own_topic("new", 2)
    assert leaders(view, "new") == {"1-0": 1, "1-1": 1}

    view.set_own_topic("new", 0)
    assert listed(view, "new").topics[0].error == UnknownTopicError.code
    assert view.snapshot().topic("new") is None


def test_view_when_the_registry_lags_behind_a_deletion_then_goes_by_the_own_logs(
    view: ClusterView,
) -> None:
    view.set_own_topic("t", 0)
    view.set_registered(None, {"t": {1: 1, 2: 3}})

    assert leaders(view, "t") == {"2-0": 2, "2-1": 2, "2-2": 2}


def test_view_when_a_broker_goes_then_its_partitions_stay_without_leader_until_it_is_back(
    view: ClusterView,
) -> None:
    view.set_registered({1: OWN}, {})

    assert leaders(view, "t") == {"1-0": 1, "2-0": NO_LEADER, "2-1": NO_LEADER}
    errors = [one.error for one in listed(view, "t").topics[0].partitions]
    assert errors == [0, LeaderNotAvailableError.code, LeaderNotAvailableError.code]

    view.set_registered({1: OWN, 2: TWO}, {})
    assert leaders(view, "t") == {"1-0": 1, "2-0": 2, "2-1": 2}


def test_view_when_the_last_home_deletes_a_topic_then_the_topic_is_gone(view: ClusterView) -> None:
    view.set_own_topic("t", 0)
    assert leaders(view, "t") == {"2-0": 2, "2-1": 2}

    view.set_registered(None, {"t": {}})
    assert listed(view, "t").topics[0].error == UnknownTopicError.code


def test_view_when_a_new_topic_is_recorded_then_it_is_shown_once_this_broker_has_its_part(
    view: ClusterView,
) -> None:
    assert view.set_registered(None, {"new": {1: 2, 2: 1, 3: 1}}) == ["new"]
    assert listed(view, "new").topics[0].error == UnknownTopicError.code

    view.set_own_topic("new", 2)
    assert leaders(view, "new") == {"1-0": 1, "1-1": 1, "2-0": 2, "3-0": NO_LEADER}


def test_view_when_states_of_replicated_partitions_come_then_they_go_before_the_homes(
    view: ClusterView,
) -> None:
    partition = TopicPartition("t", 2, 1)
    state = PartitionState(leader=3, leader_epoch=7, isr=(3, 1), controller_epoch=1)
    view.apply_partition_states([ReplicatedPartition(partition, "id", (2, 3, 1), 2, state, 0)])

    assert leaders(view, "t") == {"1-0": 1, "2-0": 2, "2-1": 3}
    found = listed(view, "t").topics[0].partitions[2]
    assert (found.replicas, found.isr, found.leader_epoch) == ((2, 3, 1), (3, 1), 7)


def test_view_when_topics_have_creation_ids_then_tells_its_own_and_those_of_the_controller(
    view: ClusterView,
) -> None:
    def told() -> Mapping[int, str]:
        return listed(view, "t").topics[0].creation_ids

    view.set_own_topic("t", 1, "own")
    assert told() == {1: "own"}

    state = PartitionState(leader=3, leader_epoch=7, isr=(3, 1), controller_epoch=1)
    one = ReplicatedPartition(TopicPartition("t", 2, 0), "given", (2, 3), 1, state, 0)
    kept = one._replace(partition=TopicPartition("t", 1, 0), kept_id="own")
    view.apply_partition_states([one, kept])
    assert told() == {1: "own", 2: "given"}

    view.apply_partition_states([], [one.partition, kept.partition])
    view.set_own_topic("t", 0)
    assert told() == {}


def test_response_when_too_large_then_is_refused(
    view: ClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view.set_own_topic("large", 1000)
    monkeypatch.setattr("broker.server.cluster.cluster_view.MAX_METADATA_BYTES", 1000)

    with pytest.raises(ResponseTooLargeError, match="ask for fewer topics, by name"):
        view.snapshot().encode(None)
    assert len(listed(view, "t").topics) == 1


def test_response_of_all_topics_when_asked_for_again_then_is_the_one_encoded_before(
    view: ClusterView,
) -> None:
    body = view.snapshot().encode(None)
    assert view.snapshot().encode(None) is body

    view.set_own_topic("new", 1)
    assert view.snapshot().encode(None) != body


def test_response_of_all_topics_when_there_are_many_then_only_the_first_is_costly() -> None:
    view = ClusterView("", OWN)
    for number in range(201):
        view.set_own_topic(f"topic-{number}", 1)
    snapshot = view.snapshot()

    assert not snapshot.is_cheap(None)
    snapshot.encode(None)
    assert snapshot.is_cheap(None)
    assert snapshot.is_cheap(["topic-1"])
