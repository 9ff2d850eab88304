"""Replicated topics in a real ZooKeeper, as one controller writes them and the next reads them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import pytest

from broker.cluster_state import (
    Creation,
    DeletedTopic,
    KeptCreation,
    PartitionState,
    Reassignment,
    StateResult,
    StateWrite,
    StoredState,
    TopicAssignment,
    UnreadableTopic,
)
from broker.controller.states import Store
from broker.errors import ControllerFencedError, InvalidRequestError, RegistryConflictError
from broker.topic import FORMAT_KAFKA, NO_HOME, TopicPartition
from broker.zk import paths
from broker.zk.controller_election import ControllerElection, Term
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics, ReplicatedTopicsStore
from broker.zk.session import Session
from tests.support.waiting import wait_until
from tests.support.zookeeper_proxy import ZooKeeperProxy

pytestmark = pytest.mark.zookeeper

P = TopicPartition("t", 0, 0)
TOPIC = TopicAssignment("t", "c1", {P: (0, 1)})
LED = PartitionState(0, 0, (0, 1), 1)


def no_watch() -> None:
    """Watch nothing."""


def win(session: Session, broker_id: int = 0) -> ReplicatedTopicsStore:
    """Become the controller, whoever is it."""
    term = ControllerElection(session, broker_id).try_to_win(no_watch, now_ms=0)
    assert isinstance(term, Term)
    return ReplicatedTopicsStore(session, term.epoch_version)


@pytest.fixture
def store(session: Session) -> ReplicatedTopicsStore:
    return win(session)


@pytest.fixture
def proxy(zookeeper: str) -> Iterator[ZooKeeperProxy]:
    made = ZooKeeperProxy(zookeeper)
    yield made
    made.close()


def create(store: Store, assignment: TopicAssignment = TOPIC) -> None:
    store.write_topic(assignment._replace(version=-1))
    writes = [StateWrite(one, LED, None) for one in assignment.replicas]
    assert all(result.is_written for result in store.write_states(writes))


def test_topic_when_created_then_nodes_have_the_documented_form(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    store.write_topic(TOPIC._replace(version=-1), {"min.insync.replicas": "2"})
    results = store.write_states([StateWrite(P, LED, None)])

    assert results == [StateResult(True, StoredState(LED, 0))]
    assert json.loads(session.get("/replicated/topics/t")[0]) == {
        "version": 1,
        "creation_id": "c1",
        "partitions": {"0-0": [0, 1]},
    }
    assert json.loads(session.get("/replicated/topics/t/partitions/0-0/state")[0]) == {
        "version": 1,
        "leader": 0,
        "leader_epoch": 0,
        "isr": [0, 1],
        "controller_epoch": 1,
    }
    assert json.loads(session.get("/config/topics/t")[0])["config"] == {"min.insync.replicas": "2"}


def test_topic_when_of_the_format_kafka_then_its_nodes_are_named_by_numbers(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    partitions = [TopicPartition("orders", NO_HOME, number) for number in range(11)]
    topic = TopicAssignment("orders", "c1", dict.fromkeys(partitions, (1, 0)))
    create(store, topic)
    change = Reassignment((1, 0), (2,))
    store.write_reassignments({partitions[10]: change}, 0)

    snapshot = ReplicatedTopics(session).snapshot(on_brokers=no_watch, on_topics=no_watch)

    assert snapshot.topics == (topic,)
    assert snapshot.topics[0].format == FORMAT_KAFKA
    assert snapshot.states.keys() == set(partitions)
    assert snapshot.reassignments == {partitions[10]: change}
    assert session.exists("/replicated/topics/orders/partitions/10/state")
    assert json.loads(session.get("/replicated/topics/orders")[0])["partitions"]["10"] == [1, 0]
    store.finish_deletion(topic)
    assert ReplicatedTopics(session).topics() == []


def test_topic_when_its_node_has_partitions_of_both_formats_then_is_unreadable(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store)
    node = b'{"version":1,"creation_id":"c1","partitions":{"0":[0],"0-0":[0]}}'
    session.set("/replicated/topics/t", node)

    assert ReplicatedTopics(session).find(["t"]).unreadable.keys() == {"t"}


def test_topic_when_it_exists_then_conflict_and_it_stays(store: ReplicatedTopicsStore) -> None:
    create(store)

    with pytest.raises(RegistryConflictError):
        store.write_topic(TOPIC._replace(creation_id="c2", version=-1))


def test_topic_when_it_got_its_replicas_later_then_keeps_the_creations_of_its_homes(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    topic = TOPIC._replace(kept={0: KeptCreation(Creation("of home 0", 7), 1)})
    store.write_topic(topic._replace(version=-1), {})
    written = store.write_topic(topic._replace(replicas={P: (1, 0)}))

    found = ReplicatedTopics(session).find(["t"]).topics

    assert json.loads(session.get("/replicated/topics/t")[0])["kept"] == {"0": ["of home 0", 7, 1]}
    assert found == (written,)


def test_homes_when_partitions_have_no_leader_then_are_told(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    others = [TopicPartition("t", 2, 0), TopicPartition("t", 2, 1)]
    create(store, TOPIC._replace(replicas={P: (0, 1), **dict.fromkeys(others, (2, 0))}))
    store.write_states([StateWrite(others[1], LED._replace(leader=-1), 0)])

    assert ReplicatedTopics(session).homes_without_leader(["t", "plain"]) == {"t": [2]}


def test_homes_when_partitions_have_none_then_those_in_sync_are_told(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    waits, led = (TopicPartition("t", NO_HOME, number) for number in range(2))
    create(store, TOPIC._replace(replicas={waits: (0, 2, 1), led: (3, 0)}))
    store.write_states([StateWrite(waits, LED._replace(leader=-1), 0)])

    assert ReplicatedTopics(session).homes_without_leader(["t"]) == {"t": [0, 1]}


def test_snapshot_when_read_then_has_all_that_was_written(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store)
    change = Reassignment((0, 1), (2,))
    store.write_reassignments({P: change}, 5000)
    store.begin_deletion("t")
    session.set("/config/topics", b"")
    session.create("/config/topics/t", b'{"version":1,"config":{"min.insync.replicas":"2"}}')

    snapshot = ReplicatedTopics(session).snapshot(on_brokers=no_watch, on_topics=no_watch)

    assert snapshot.topics == (TOPIC,)
    assert snapshot.states == {P: StoredState(LED, 0)}
    assert snapshot.settings == {"t": {"min.insync.replicas": "2"}}
    assert snapshot.reassignments == {P: change}
    assert snapshot.deletions == {"t"}
    assert snapshot.deleted == ()


def test_deleted_topic_when_recorded_then_is_found_until_no_broker_has_it(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    deleted = DeletedTopic("t", "c1", (P, TopicPartition("t", 1, 0)), frozenset({1, 2}))
    topics = ReplicatedTopics(session)

    store.write_deleted(deleted)

    assert topics.snapshot(on_brokers=no_watch, on_topics=no_watch).deleted == (deleted,)
    store.write_deleted(deleted._replace(brokers=frozenset()))
    assert topics.snapshot(on_brokers=no_watch, on_topics=no_watch).deleted == ()
    assert session.children("/admin/deleted_topics") == []


@pytest.mark.parametrize(
    "value",
    [
        b"{",
        b'{"version":1,"config":{"min.insync.replicas":"0"}}',
        b'{"version":1,"config":{"min.insync.replicas":"1","flush.m":"1"}}',
    ],
)
def test_settings_when_a_node_is_not_valid_then_the_last_good_ones_of_its_topic_hold(
    session: Session, store: ReplicatedTopicsStore, value: bytes
) -> None:
    create(store)
    session.create("/config/topics/t", value)
    session.create("/config/topics/u", b'{"version":1,"config":{"log.retention.ms":"5"}}')
    topics = ReplicatedTopics(session, lambda topic: {"min.insync.replicas": f"2 of {topic}"})

    found = topics.settings(["t", "u", "v"])

    assert found == {"t": {"min.insync.replicas": "2 of t"}, "u": {"retention.ms": "5"}}


def test_snapshot_when_nodes_are_malformed_then_their_topics_are_unreadable(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store)
    half = TopicAssignment("half", "c", {TopicPartition("half", 0, 0): (0,)})
    create(store, TopicAssignment("broken", "c", {TopicPartition("broken", 0, 0): (0,)}))
    create(store, half)
    session.set("/replicated/topics/broken", b"{")
    session.set("/replicated/topics/half/partitions/0-0/state", b'{"leader":0}')

    snapshot = ReplicatedTopics(session).snapshot(on_brokers=no_watch, on_topics=no_watch)

    assert [one.topic for one in snapshot.topics] == ["t"]
    assert snapshot.states.keys() == {P}
    assert snapshot.unreadable == {
        "broken": UnreadableTopic("node /replicated/topics/broken is malformed: b'{'", None),
        "half": UnreadableTopic(
            "node /replicated/topics/half/partitions/0-0/state is malformed: b'{\"leader\":0}'",
            half,
        ),
    }


def test_snapshot_when_partitions_never_had_a_state_then_their_topic_is_readable(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    added = TopicPartition("t", 1, 0)
    create(store)
    store.write_topic(TOPIC._replace(replicas={P: (0, 1), added: (1, 0)}))
    store.write_topic(TopicAssignment("new", "c", {TopicPartition("new", 0, 0): (0,)}, -1))

    found = ReplicatedTopics(session).find(["t", "new", "absent"])

    assert {one.topic for one in found.topics} == {"t", "new"}
    assert found.states == {P: StoredState(LED, 0)}
    assert found.unreadable == {}


@pytest.mark.parametrize(
    ("deleted", "reason"),
    [
        (1, "node /replicated/topics/t/partitions/0-0/state was deleted"),
        (2, "node /replicated/topics/t/partitions/0-0/state was deleted"),
        (3, "node /replicated/topics/t/partitions was deleted"),
    ],
)
def test_snapshot_when_a_state_was_deleted_by_hand_then_its_topic_is_unreadable(
    session: Session, store: ReplicatedTopicsStore, deleted: int, reason: str
) -> None:
    create(store)
    path = paths.partition_state(P)
    for _ in range(deleted):
        session.delete(path)
        path = path.rpartition("/")[0]

    topics = ReplicatedTopics(session)

    assert topics.find(["t"]).unreadable == {"t": UnreadableTopic(reason, TOPIC)}
    assert topics.find(["t"], deletions={"t"}).topics == (TOPIC,)


def test_states_when_many_then_all_are_written_and_read(store: ReplicatedTopicsStore) -> None:
    partitions = [TopicPartition("t", 0, index) for index in range(350)]
    create(store, TopicAssignment("t", "c", dict.fromkeys(partitions, (0, 1))))
    new = LED._replace(leader=1, leader_epoch=1)

    results = store.write_states([StateWrite(one, new, 0) for one in partitions])

    assert set(results) == {StateResult(True, StoredState(new, 1))}


def test_states_when_one_was_changed_then_it_alone_is_refused_with_what_it_holds(
    store: ReplicatedTopicsStore,
) -> None:
    partitions = [TopicPartition("t", 0, index) for index in range(3)]
    create(store, TopicAssignment("t", "c", dict.fromkeys(partitions, (0, 1))))
    other = LED._replace(isr=(0,))
    store.write_states([StateWrite(partitions[1], other, 0)])
    new = LED._replace(leader=1, leader_epoch=1)

    results = store.write_states([StateWrite(one, new, 0) for one in partitions])

    assert [one.is_written for one in results] == [True, False, True]
    assert results[1].stored == StoredState(other, 1)


def test_states_when_topic_is_gone_then_refused_without_a_state(
    store: ReplicatedTopicsStore,
) -> None:
    assert store.write_states([StateWrite(P, LED, None)]) == [StateResult(False, None)]
    assert store.write_states([StateWrite(P, LED, 0)]) == [StateResult(False, None)]


def test_states_when_only_the_state_was_deleted_by_hand_then_it_can_be_created_again(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store)
    session.delete("/replicated/topics/t/partitions/0-0/state")

    assert store.write_states([StateWrite(P, LED, None)])[0].is_written


@pytest.mark.parametrize("expected_version", [0, None])
def test_states_when_a_node_is_malformed_then_it_is_written_anew(
    session: Session, store: ReplicatedTopicsStore, expected_version: int | None
) -> None:
    create(store)
    session.set(paths.partition_state(P), b"{")
    new = LED._replace(leader=1, leader_epoch=1)

    results = store.write_states([StateWrite(P, new, expected_version)])

    assert results == [StateResult(True, StoredState(new, 2))]
    assert ReplicatedTopics(session).states([P]) == {P: StoredState(new, 2)}


def test_states_when_all_nodes_below_the_topic_were_deleted_then_they_are_created_again(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    other = TopicPartition("t", 1, 0)
    create(store, TOPIC._replace(replicas={P: (0, 1), other: (1, 0)}))
    for _, path in reversed(list(session.walk("/replicated/topics/t/partitions"))):
        session.delete(path)

    results = store.write_states([StateWrite(P, LED, None), StateWrite(other, LED, None)])

    assert results == [StateResult(True, StoredState(LED, 0))] * 2


@pytest.mark.parametrize("lost", [1, 2])
def test_states_when_answer_is_lost_then_they_count_as_written_once(
    proxy: ZooKeeperProxy, session: Session, lost: int
) -> None:
    with Session(proxy.connect) as own:
        store = win(own)
        partitions = [TopicPartition("t", 0, index) for index in range(3)]
        create(store, TopicAssignment("t", "c", dict.fromkeys(partitions, (0, 1))))
        new = LED._replace(leader=1, leader_epoch=1)
        proxy.lose_next_answers(lost)

        results = store.write_states([StateWrite(one, new, 0) for one in partitions])

        assert set(results) == {StateResult(True, StoredState(new, 1))}
        assert proxy.lost_count == lost
    assert session.get(paths.partition_state(partitions[0]))[1].version == 1


def test_topic_when_answer_is_lost_then_it_counts_as_created(proxy: ZooKeeperProxy) -> None:
    with Session(proxy.connect) as own:
        store = win(own)
        proxy.lose_next_answers()

        store.write_topic(TOPIC._replace(version=-1), {})

        proxy.lose_next_answers()
        assert store.write_topic(TOPIC._replace(replicas={P: (1,)})).version == 1
        assert proxy.lost_count == 2


def test_writes_when_another_is_the_controller_then_all_are_fenced(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store)
    ControllerElection(session, 0).resign()
    win(session)

    for write in (
        lambda: store.write_states([StateWrite(P, LED._replace(isr=(0,)), 0)]),
        lambda: store.write_topic(TOPIC._replace(topic="u", version=-1)),
        lambda: store.write_topic(TOPIC._replace(replicas={P: (1,)})),
        lambda: store.write_reassignments({P: Reassignment((0,), (1,))}, 0),
        lambda: store.begin_deletion("t"),
        lambda: store.finish_deletion(TOPIC),
        lambda: store.write_deleted(DeletedTopic("t", "c1", (P,), frozenset({1}))),
    ):
        with pytest.raises(ControllerFencedError):
            write()

    topics = ReplicatedTopics(session)
    assert topics.states([P]) == {P: StoredState(LED, 0)}
    assert topics.topics() == ["t"]


def test_assignment_when_another_version_then_conflict(store: ReplicatedTopicsStore) -> None:
    create(store)
    written = store.write_topic(TOPIC._replace(replicas={P: (1, 0)}))

    assert written.version == 1
    with pytest.raises(RegistryConflictError):
        store.write_topic(TOPIC)


def test_reassignments_when_too_many_for_a_node_then_refused_with_how_many_are_possible(
    store: ReplicatedTopicsStore, session: Session
) -> None:
    change = Reassignment((0, 1), (2, 3))
    changes = {TopicPartition("events", 0, index): change for index in range(10_000)}
    with pytest.raises(InvalidRequestError, match="10000 partitions cannot move") as refused:
        store.validate_reassignments(changes)
    (possible,) = re.findall("of about ([0-9]+)", str(refused.value))

    fewer = dict(list(changes.items())[: int(possible)])
    store.validate_reassignments(fewer)
    store.write_reassignments(fewer, 5000)
    assert ReplicatedTopics(session)._reassignments() == (fewer, 5000)


def test_reassignments_when_none_are_left_then_node_is_removed(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    store.write_reassignments({P: Reassignment((0,), (1,))}, 0)
    assert session.exists("/admin/reassign_partitions")

    store.write_reassignments({}, 0)
    store.write_reassignments({}, 0)

    assert session.exists("/admin/reassign_partitions") is None


def test_deletion_when_finished_then_no_node_of_the_topic_is_left(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    partitions = [TopicPartition("t", 0, index) for index in range(150)]
    assignment = TopicAssignment("t", "c", dict.fromkeys(partitions, (0, 1)))
    create(store, assignment)
    store.begin_deletion("t")
    session.delete(paths.partition_state(partitions[0]))  # an attempt that was interrupted

    store.finish_deletion(assignment)

    assert session.children("/replicated/topics") == []
    assert session.children("/config/topics") == []
    assert session.children("/admin/delete_topics") == []


def test_brokers_when_registered_then_epochs_grow_with_each_registration(
    zookeeper: str, session: Session
) -> None:
    topics = ReplicatedTopics(session)
    with Registry(zookeeper) as registry:
        registry.register_broker(3, "h", 9092, creator="h-1", rack="r")
        first = registry.broker_epoch
        (broker,) = topics.brokers()
    assert (broker.id, broker.host, broker.port, broker.rack) == (3, "h", 9092, "r")
    assert (broker.epoch, broker.is_clean) == (first, False)
    assert topics.brokers() == ()

    with Registry(zookeeper) as registry:
        registry.register_broker(3, "h", 9092, creator="h-1", is_clean=True)
        (broker,) = topics.brokers()
        assert first is not None
        assert broker.epoch == registry.broker_epoch
        assert broker.epoch > first
        assert broker.is_clean


def test_broker_when_marked_clean_then_registration_says_so_in_the_same_epoch(
    zookeeper: str, session: Session
) -> None:
    topics = ReplicatedTopics(session)
    with Registry(zookeeper) as registry:
        registry.register_broker(3, "h", 9092, creator="h-1")
        registry.mark_clean()

        wait_until(lambda: topics.brokers()[0].is_clean, "the mark")
        assert topics.brokers()[0].epoch == registry.broker_epoch


def test_broker_when_its_registration_is_deleted_then_it_gets_another_epoch(
    zookeeper: str, session: Session
) -> None:
    with Registry(zookeeper) as registry:
        registry.register_broker(3, "h", 9092, creator="h-1")
        first = registry.broker_epoch
        session.delete("/replicated/brokers/3")

        wait_until(lambda: registry.broker_epoch != first, "another registration")
        assert ReplicatedTopics(session).brokers()[0].epoch == registry.broker_epoch


def test_brokers_when_one_comes_then_watch_is_called(zookeeper: str, session: Session) -> None:
    called = threading.Event()
    assert ReplicatedTopics(session).brokers(called.set) == ()

    with Registry(zookeeper) as registry:
        registry.register_broker(3, "h", 9092, creator="h-1")

        assert called.wait(60)
