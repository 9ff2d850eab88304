"""Which topic the offsets in a real ZooKeeper are of."""

from __future__ import annotations

import pytest

from broker.cluster_state import Creation, KeptCreation, PartitionState, StateWrite, TopicAssignment
from broker.consumer.membership import GroupView
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.controller_election import ControllerElection, Term
from broker.zk.creations import is_current, read_creations
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopicsStore
from broker.zk.session import Session
from broker.zk.values import StaticSubscription, encode_subscription

pytestmark = pytest.mark.zookeeper

FIRST, SECOND, ADDED = (TopicPartition("t", home, 0) for home in (0, 1, 2))
TOPIC = TopicAssignment("t", "given", {FIRST: (0, 1), SECOND: (1, 0)})
LED = PartitionState(0, 0, (0, 1), 1)


@pytest.fixture
def store(session: Session) -> ReplicatedTopicsStore:
    term = ControllerElection(session, 0).try_to_win(lambda: None, now_ms=0)
    assert isinstance(term, Term)
    return ReplicatedTopicsStore(session, term.epoch_version)


def create(store: ReplicatedTopicsStore, topic: TopicAssignment = TOPIC) -> None:
    store.write_topic(topic._replace(version=-1), {})
    store.write_states([StateWrite(one, LED, None) for one in topic.replicas])


def czxid(session: Session, path: str) -> int:
    stat = session.exists(path)
    assert stat is not None
    return stat.czxid


def test_creation_when_the_topic_has_replicas_then_is_the_controllers_whatever_homes_recorded(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    session.create(paths.creation_id("t", 0), b"of home 0")
    create(store)
    session.create(paths.creation_id("t", 1), b"of home 1")
    given = Creation("given", czxid(session, "/replicated/topics/t"))

    found = read_creations(session, [FIRST, SECOND])

    assert (found.of(FIRST), found.of(SECOND)) == (given, given)
    assert given.voids(given.zxid - 1) and not given.voids(given.zxid + 1)
    store.write_topic(TOPIC._replace(replicas={**TOPIC.replicas, ADDED: (2, 0)}))
    assert read_creations(session, [FIRST]).of(FIRST) == given


def test_creation_when_replicas_came_later_then_is_that_of_the_home(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    kept = Creation("of home 0", 7)
    create(store, TOPIC._replace(kept={0: KeptCreation(kept, 1)}))

    found = read_creations(session, [FIRST, SECOND])

    assert found.of(FIRST) == kept
    assert found.of(SECOND) == Creation("given", czxid(session, "/replicated/topics/t"))


def test_creation_when_a_home_with_an_older_one_gets_another_partition_then_that_is_new(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store, TOPIC._replace(kept={0: KeptCreation(Creation("of home 0", 7), 1)}))
    added = TopicPartition("t", 0, 1)

    found = read_creations(session, [FIRST, added])

    assert found.of(FIRST) == found.of(added)
    assert (found.is_of_controller(FIRST), found.is_of_controller(added)) == (False, True)


def test_creation_when_the_node_of_the_topic_is_damaged_then_voids_nothing(
    session: Session,
) -> None:
    session.create("/replicated/topics/t", b"{")
    session.create(paths.creation_id("t", 0), b"of home 0")

    found = read_creations(session, [FIRST])

    assert found.is_recorded(FIRST) and found.of(FIRST) is None


def test_topic_when_deleted_or_created_again_then_is_not_the_current_one(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    create(store)
    known = read_creations(session, [FIRST]).of(FIRST)
    assert is_current(session, FIRST, known)

    store.finish_deletion(TOPIC)
    assert not is_current(session, FIRST, known)
    create(store, TOPIC._replace(creation_id="again"))
    assert not is_current(session, FIRST, known)
    assert is_current(session, FIRST, None)


def test_home_when_it_registers_a_topic_with_replicas_then_records_no_creation(
    session: Session, store: ReplicatedTopicsStore, zookeeper: str
) -> None:
    create(store)

    with Registry(zookeeper) as registry:
        registry.register_broker(0, "h", 9092, creator="h-1")
        registry.register_topic("t", 1, creation_id="own", is_new=True)
        registry.register_topic("plain", 1, creation_id="own", is_new=True)
        registry.await_registered(60)

        assert session.exists(paths.topic_broker("t", 0)) is not None
        assert session.exists(paths.creation_id("t", 0)) is None
        assert session.get(paths.creation_id("plain", 0))[0] == b"own"


def test_partition_when_added_under_a_group_then_is_new_and_the_others_are_not(
    session: Session, store: ReplicatedTopicsStore
) -> None:
    """A new one is read from its start."""
    create(store)
    subscription = StaticSubscription({"t": 1})
    session.create(paths.consumer("g", "g_a"), encode_subscription(subscription), ephemeral=True)
    view = GroupView(session, "g", subscription, lambda: None)
    assert view.read().new == set()

    more = TOPIC._replace(replicas={**TOPIC.replicas, ADDED: (2, 0)})
    store.write_topic(more)
    store.write_states([StateWrite(ADDED, LED, None)])

    assert view.read().new == {ADDED}
