"""Partitions that the registry has lost, and brokers have logs of."""

from __future__ import annotations

import pytest

from broker.cluster_state import LAST_EPOCH, Creation, KeptCreation, PartitionState, StoppedReplica
from broker.errors import InvalidRequestError, TopicExistsError
from broker.ids import NO_LEADER
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import FORMAT_KAFKA, NO_HOME, TopicPartition
from tests.unit.broker.controller.cluster import Cluster, P


def record(epoch: int = 5, leader: int = 1, *, created: str = "id") -> ReplicaRecord:
    state = PartitionState(leader, epoch, (1, 2), 1)
    return ReplicaRecord(P, created, (0, 1, 2), state, 7, {"min.insync.replicas": "2"})


def replica(one: ReplicaRecord, *, is_live: bool = True, last_epoch: int = 5) -> UnknownReplica:
    return UnknownReplica(one, is_live, last_epoch, 0, 100)


def emptied() -> Cluster:
    """A cluster whose registry has no topics any more."""
    cluster = Cluster()
    cluster.registry.topics.clear()
    cluster.registry.states.clear()
    cluster.elect()
    cluster.pushes()
    return cluster


def tell(cluster: Cluster, broker_id: int, *found: UnknownReplica) -> None:
    cluster.controller.told_unknown(broker_id, cluster.epoch_of(broker_id), found)


def test_lost_when_all_replicas_are_live_then_written_back_in_the_next_epoch() -> None:
    cluster = emptied()
    tell(cluster, 0, replica(record(epoch=4)))
    tell(cluster, 1, replica(record()))
    assert P not in cluster.registry.states

    tell(cluster, 2, replica(record(epoch=4)))

    assert cluster.state == (1, 6, (1, 2))
    assert cluster.registry.topics["t"].creation_id == "id"
    assert cluster.registry.settings["t"] == {"min.insync.replicas": "2"}
    (told,) = cluster.pushes()[0].partitions
    assert (told.state.leader_epoch, told.replicas, told.min_isr) == (6, (0, 1, 2), 2)


def test_lost_when_written_back_then_clients_know_the_topic_as_before() -> None:
    cluster = emptied()
    added = TopicPartition("t", P.home, P.index + 1)
    known = record()._replace(kept_id="of home")
    for broker_id in range(3):
        tell(cluster, broker_id, replica(known), replica(known._replace(partition=added)))

    kept = cluster.registry.topics["t"].kept
    assert kept == {P.home: KeptCreation(Creation("of home", 0), P.index + 2)}
    assert {one.kept_id for one in cluster.pushes()[0].partitions} == {"of home"}
    assert ReplicaRecord.decode(known.encode()) == known


def test_lost_when_of_format_kafka_then_written_back_with_the_next_numbers_free() -> None:
    cluster = emptied()
    partitions = [TopicPartition("t", NO_HOME, number) for number in (0, 2)]
    told = [replica(record()._replace(partition=one)) for one in partitions]
    for broker_id in range(3):
        tell(cluster, broker_id, *told)

    topic = cluster.registry.topics["t"]
    assert (topic.format, list(topic.replicas)) == (FORMAT_KAFKA, partitions)
    assert topic.kept == {NO_HOME: KeptCreation(Creation("id", 0), 3)}
    (added,) = cluster.controller.topics.add_partitions("t", 1, start=0)
    assert (added.partition.name, added.replicas, added.state.leader) == ("3", (0, 1, 2), 0)


def test_restore_when_partitions_are_of_both_formats_then_is_refused() -> None:
    cluster = emptied()
    for broker_id in range(3):
        tell(cluster, broker_id, replica(record()))
    other = record()._replace(partition=TopicPartition("t", NO_HOME, 0))

    with pytest.raises(InvalidRequestError, match="topic 't' are of both formats"):
        cluster.controller.topics.restore([other])


def test_lost_when_a_replica_was_started_since_then_waits_for_an_operator() -> None:
    cluster = emptied()
    tell(cluster, 0, replica(record()))
    tell(cluster, 1, replica(record()))
    tell(cluster, 2, replica(record(), is_live=False))
    assert cluster.registry.topics == {}

    wanted = record()._replace(state=PartitionState(2, 6, (2,), 0))
    cluster.controller.topics.restore([wanted])

    assert cluster.state == (2, 6, (2,))
    assert cluster.registry.states[P].state.controller_epoch == cluster.controller.epoch


def test_lost_when_a_replica_has_no_log_then_is_not_written_back() -> None:
    cluster = emptied()
    tell(cluster, 0, replica(record()))
    tell(cluster, 1, replica(record()))
    tell(cluster, 2)

    assert cluster.registry.topics == {}


def test_lost_when_its_broker_has_registered_again_then_what_it_told_is_void() -> None:
    cluster = emptied()
    tell(cluster, 0, replica(record()))
    tell(cluster, 1, replica(record()))
    cluster.start(0)

    tell(cluster, 2, replica(record()))

    assert cluster.registry.topics == {}


def test_lost_when_another_topic_of_the_name_is_to_be_created_then_is_refused() -> None:
    cluster = emptied()
    tell(cluster, 0, replica(record()))

    with pytest.raises(TopicExistsError, match="cluster recover"):
        cluster.controller.topics.create("t", 1, 3, {}, creation_id="new", start=0)


def test_lost_when_only_some_partitions_are_told_then_the_others_join_the_topic_later() -> None:
    cluster = emptied()
    other = TopicPartition("t", 1, 0)
    for broker_id in range(3):
        tell(cluster, broker_id, replica(record()))
    for broker_id in range(3):
        tell(cluster, broker_id, replica(record()._replace(partition=other)))

    assert cluster.registry.topics["t"].replicas.keys() == {P, other}
    assert cluster.registry.states.keys() == {P, other}


def test_restore_when_the_leader_has_told_of_no_log_then_is_refused() -> None:
    cluster = emptied()
    tell(cluster, 0, replica(record()))

    with pytest.raises(InvalidRequestError, match="broker 1 is to lead"):
        cluster.controller.topics.restore([record()])


def test_restore_when_no_broker_has_told_of_a_log_then_is_refused() -> None:
    cluster = emptied()
    without_leader = record()._replace(state=PartitionState(NO_LEADER, 6, (1, 2), 0))

    with pytest.raises(InvalidRequestError, match="no broker has told of a log"):
        cluster.controller.topics.restore([without_leader])
    assert cluster.registry.topics == {}


@pytest.mark.parametrize(
    ("replicas", "state"),
    [
        ((0, 1, 10**12), PartitionState(1, 6, (1,), 0)),
        ((-1, 1), PartitionState(1, 6, (1,), 0)),
        ((1, 1), PartitionState(1, 6, (1,), 0)),
        ((0, 1), PartitionState(1, LAST_EPOCH, (1,), 0)),
        ((0, 1), PartitionState(1, -1, (1,), 0)),
        ((0, 1), PartitionState(NO_LEADER, 6, (), 0)),
        ((0, 1), PartitionState(1, 6, (1, 1), 0)),
        ((0, 1), PartitionState(1, 6, (0,), 0)),
        ((0,), PartitionState(1, 6, (0, 1), 0)),
    ],
)
def test_restore_when_a_state_cannot_be_then_is_refused_and_nothing_is_stored(
    replicas: tuple[int, ...], state: PartitionState
) -> None:
    cluster = emptied()
    tell(cluster, 1, replica(record()))

    with pytest.raises(InvalidRequestError, match="cannot have leader"):
        cluster.controller.topics.restore([record()._replace(replicas=replicas, state=state)])
    assert cluster.registry.topics == {}


def test_restore_when_the_name_is_taken_then_is_refused() -> None:
    cluster = Cluster()
    tell(cluster, 1, replica(record(created="former")))

    with pytest.raises(TopicExistsError, match="another topic"):
        cluster.controller.topics.restore([record(created="former")])


def test_deletion_when_only_logs_are_left_then_live_brokers_delete_them() -> None:
    cluster = emptied()
    tell(cluster, 2, replica(record(), is_live=False))

    cluster.controller.deletions.delete_topic("t")

    assert cluster.pushes()[2].stopped == (StoppedReplica(P, "id", LAST_EPOCH, True),)
    cluster.controller.topics.create("t", 1, 3, {}, creation_id="new", start=0)
