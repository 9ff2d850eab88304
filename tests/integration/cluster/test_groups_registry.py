"""What a group member writes into the registry, and how it gets on with what others write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import pytest

from broker.consumer.committer import AssignedPartition, Committer
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Blacklist, Whitelist
from broker.consumer.offset_store import RegistryOffsets
from broker.errors import ConfigError, RegistryConflictError, RegistryUnreachableError
from broker.topic import MessagePosition, TopicPartition
from broker.zk.registry import Registry
from broker.zk.session import Session
from tests.integration.cluster.group_harness import Cluster, Load
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered, expire_session

pytestmark = pytest.mark.zookeeper

Join = Callable[..., ConsumerConnector]


@pytest.fixture
def join(cluster: Cluster, topic: str) -> Iterator[Join]:
    """Make connectors of the test's group; shut down at the end."""
    connectors: list[ConsumerConnector] = []

    def make(**settings: object) -> ConsumerConnector:
        defaults: dict[str, object] = {
            "zookeeper": cluster.zookeeper,
            "group": topic,
            "zk_session_timeout_ms": 10_000,
            "rebalance_backoff_ms": 200,
            "consumer_timeout_ms": 60_000,
        }
        config = ConsumerConfig(**(defaults | settings))  # type: ignore[arg-type]  # settings by name
        connectors.append(ConsumerConnector(cluster.access.secured(config)))
        return connectors[-1]

    yield make
    for connector in connectors:
        connector.shutdown()


@pytest.fixture
def nodes(cluster: Cluster) -> Registry:
    """The registry as a bystander sees it."""
    return cluster.registry


def test_connector_when_it_joins_then_nodes_have_the_bytes_of_kafka_07_and_its_mark(
    join: Join, nodes: Registry, topic: str
) -> None:
    connector = join(consumer_name="me")
    connector.create_message_streams({topic: 2})
    connector.await_assignment()

    value, stat = nodes.session.get(f"/consumers/{topic}/ids/{topic}_me")
    assert value == f'{{  "{topic}": 2 }}'.encode()
    assert stat.ephemeral_owner != 0


@pytest.mark.parametrize(
    ("chosen", "written"), [(Whitelist("a, b"), b"*03*a|b"), (Blacklist(".*"), b"!03!.*")]
)
def test_connector_when_it_joins_by_filter_then_writes_it_as_kafka_07_with_its_mark(
    join: Join, nodes: Registry, topic: str, chosen: Whitelist | Blacklist, written: bytes
) -> None:
    connector = join(consumer_name="me")
    connector.create_message_streams_by_filter(chosen, 3)

    assert nodes.session.get(f"/consumers/{topic}/ids/{topic}_me")[0] == written


def test_connector_when_it_has_read_all_then_owners_and_offsets_are_as_kafka_07_writes_them(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    load = Load(cluster, topic)
    load.produce(2)
    connector = join(consumer_name="me")
    (stream,) = connector.create_message_streams({topic: 1})[topic]
    for _ in range(16):
        stream.finish(next(stream))
    connector.commit_offsets()

    assert (
        nodes.session.get(f"/consumers/{topic}/owners/{topic}/1-3")[0] == f"{topic}_me-0".encode()
    )
    value, stat = nodes.session.get(f"/consumers/{topic}/offsets/{topic}/1-3")
    assert re.fullmatch(rb"[0-9]+", value)
    assert stat.ephemeral_owner == 0


def test_connector_when_its_id_is_taken_then_says_so(join: Join, topic: str) -> None:
    join(consumer_name="me").create_message_streams({topic: 1})

    with pytest.raises(RegistryConflictError, match=f"'{topic}_me' is already registered"):
        join(consumer_name="me").create_message_streams({topic: 1})


def test_connector_when_it_shuts_down_then_leaves_only_offsets(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    Load(cluster, topic).produce(1)
    connector = join()
    (stream,) = connector.create_message_streams({topic: 1})[topic]
    stream.finish(next(stream))

    connector.shutdown()

    assert nodes.session.children(f"/consumers/{topic}/ids") == []
    assert nodes.session.children(f"/consumers/{topic}/owners/{topic}") == []
    assert sorted(cluster.offsets(topic, topic).values())[-1] > 0


def test_connector_when_streams_are_made_twice_then_is_refused(join: Join, topic: str) -> None:
    connector = join()
    connector.create_message_streams({topic: 1})

    with pytest.raises(ConfigError, match="once"):
        connector.create_message_streams({topic: 1})


def test_connector_when_there_is_no_registry_then_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"zk\.connect"):
        ConsumerConnector(ConsumerConfig(group="g"))


def test_connector_when_a_member_of_another_kind_is_there_then_leaves_it_its_share(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    Load(cluster, topic).produce(1)
    for broker_id in (0, 1):
        await_registered(nodes.session, topic, broker_id)
    foreign = f"{topic}_host-1315436360737-abcdef01"
    nodes.session.create(
        f"/consumers/{topic}/ids/{foreign}", f"*2*{topic}".encode(), ephemeral=True
    )
    connector = join(consumer_name="me")

    connector.create_message_streams({topic: 1})
    connector.await_assignment()

    # host-.. sorts before me: its two threads get 3 each of 0-0 to 1-3, the last thread gets 2
    assert [one.name for one in connector.positions] == ["1-2", "1-3"]
    nodes.session.delete(f"/consumers/{topic}/ids/{foreign}")
    wait_until(lambda: len(connector.positions) == 8, "the take-over")


def test_connector_when_a_partition_is_not_released_then_waits_for_it_and_reads_the_others(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    Load(cluster, topic).produce(1)
    nodes.session.create(f"/consumers/{topic}/owners/{topic}/0-1", b"somebody-0", ephemeral=True)
    connector = join(rebalance_backoff_ms=30_000)
    connector.create_message_streams({topic: 1})
    wait_until(lambda: len(connector.positions) == 7, "the claim of all the others")

    nodes.session.delete(f"/consumers/{topic}/owners/{topic}/0-1")

    wait_until(lambda: len(connector.positions) == 8, "the claim of the last one")


def test_connector_when_attempts_run_out_then_releases_everything_and_tries_again(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    Load(cluster, topic).produce(1)
    nodes.session.create(f"/consumers/{topic}/owners/{topic}/0-1", b"somebody-0", ephemeral=True)
    connector = join(rebalance_backoff_ms=100, rebalance_retries=2)
    connector.create_message_streams({topic: 1})

    owners = f"/consumers/{topic}/owners/{topic}"
    wait_until(lambda: len(nodes.session.children(owners)) == 8, "the claim of all the others")
    wait_until(lambda: nodes.session.children(owners) == ["0-1"], "the release of everything")
    nodes.session.delete(f"{owners}/0-1")
    wait_until(lambda: len(connector.positions) == 8, "another try")


def test_connector_when_its_session_expires_then_joins_again_and_keeps_its_progress(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    load = Load(cluster, topic)
    load.produce(5)
    connector = join()
    (stream,) = connector.create_message_streams({topic: 1})[topic]
    given = [next(stream) for _ in range(20)]
    stream.finish(given[-1])

    ids = f"/consumers/{topic}/ids"
    (consumer,) = nodes.session.children(ids)
    node = f"{ids}/{consumer}"
    _, before = nodes.session.get(node)
    expire_session(connector._registry.session)

    def has_come_back() -> bool:  # after a time without a node, which may be over at once
        stat = nodes.session.exists(node)
        return stat is not None and stat.czxid != before.czxid

    wait_until(has_come_back, "the registration in a new session")
    wait_until(lambda: len(cluster.owners(topic, topic)) == 8, "ownership of everything")
    given += [next(stream) for _ in range(20)]

    assert len({(one[1], one[2]) for one in given}) == 40  # nothing twice, nothing left out


def test_connector_when_offsets_are_lost_and_zookeeper_goes_again_then_they_are_written_back(
    join: Join,
    nodes: Registry,
    cluster: Cluster,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ZooKeeper comes back without its data, and the connection is lost once more."""
    Load(cluster, topic).produce(1)
    connector = join()
    (stream,) = connector.create_message_streams({topic: 1})[topic]
    given = [next(stream) for _ in range(8)]
    stream.finish(given[-1])
    connector.commit_offsets()
    committed = cluster.offsets(topic, topic)
    assert len(committed) == 8
    salvage, calls = Committer.salvage, []

    def salvage_later(committer: Committer, lost: Iterable[AssignedPartition]) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RegistryUnreachableError("the connection was lost again")
        salvage(committer, lost)

    monkeypatch.setattr(Committer, "salvage", salvage_later)
    for name in committed:
        nodes.session.delete(f"/consumers/{topic}/offsets/{topic}/{name}")
    expire_session(connector._registry.session)

    wait_until(lambda: len(calls) > 1, "another try")
    wait_until(lambda: cluster.offsets(topic, topic) == committed, "the offsets")


def test_connector_when_its_id_node_is_deleted_then_registers_again(
    join: Join, nodes: Registry, topic: str
) -> None:
    join(consumer_name="me").create_message_streams({topic: 1})
    path = f"/consumers/{topic}/ids/{topic}_me"

    nodes.session.delete(path)

    wait_until(lambda: nodes.session.exists(path), "the registration")


def test_connector_when_an_owner_node_is_deleted_then_claims_it_again_and_commits(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    load = Load(cluster, topic)
    load.produce(2)
    connector = join()
    (stream,) = connector.create_message_streams({topic: 1})[topic]
    given = [next(stream) for _ in range(16)]
    owner = f"/consumers/{topic}/owners/{topic}/1-3"
    wait_until(lambda: nodes.session.exists(owner), "the claim")

    nodes.session.delete(owner)
    stream.finish(given[-1])
    connector.commit_offsets()  # notices that the node is gone

    wait_until(lambda: nodes.session.exists(owner), "the second claim")
    load.produce(1)
    given += [next(stream) for _ in range(8)]
    stream.finish(given[-1])
    connector.commit_offsets()
    assert len({(one[1], one[2]) for one in given}) == 24  # nothing twice, nothing left out
    assert cluster.offsets(topic, topic) == {
        one.name: max(next_offset for _, partition, _, next_offset, _ in given if partition == one)
        for one in cluster.partitions(topic)
    }


def test_connector_when_a_broker_gets_more_partitions_of_a_topic_then_reads_them_too(
    join: Join, nodes: Registry, topic: str
) -> None:
    nodes.session.create(f"/brokers/topics/{topic}/77", b"1", ephemeral=True)
    connector = join()
    connector.create_message_streams({topic: 1})
    wait_until(lambda: len(connector.positions) == 1, "the claim of one partition")

    nodes.session.set(f"/brokers/topics/{topic}/77", b"3")

    wait_until(lambda: len(connector.positions) == 3, "the claim of the new ones")


def test_connector_when_a_member_node_makes_no_sense_then_goes_on_without_that_member(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    Load(cluster, topic).produce(1)
    nodes.session.create(f"/consumers/{topic}/ids/broken", b"*x", ephemeral=True)
    nodes.session.create(f"/consumers/{topic}/ids/illegal", b"*1*(", ephemeral=True)
    connector = join()

    connector.create_message_streams({topic: 1})

    wait_until(lambda: len(connector.positions) == 8, "the claim of everything")


def test_registry_offsets_when_somebody_else_has_written_then_leaves_it_alone(
    session: Session, nodes: Registry
) -> None:
    partition = TopicPartition("t", 0, 0)
    mine, theirs = RegistryOffsets(session, "g"), RegistryOffsets(session, "g")
    mine.commit({partition: MessagePosition(10)})
    assert theirs.load([partition]) == {partition: MessagePosition(10)}
    theirs.commit({partition: MessagePosition(20)})

    assert mine.commit({partition: MessagePosition(15)}) == {partition}

    assert session.get("/consumers/g/offsets/t/0-0")[0] == b"20"


def test_registry_offsets_when_nothing_has_changed_then_writes_nothing(session: Session) -> None:
    partition = TopicPartition("t", 0, 0)
    store = RegistryOffsets(session, "g")
    store.commit({partition: MessagePosition(10)})

    assert store.commit({partition: MessagePosition(10)}) == set()

    assert session.get("/consumers/g/offsets/t/0-0")[1].version == 0


def test_registry_offsets_when_one_is_no_number_then_it_counts_as_out_of_range(
    session: Session,
) -> None:
    partition = TopicPartition("t", 0, 0)
    session.create("/consumers/g/offsets/t/0-0", b"twelve")

    assert RegistryOffsets(session, "g").load([partition]) == {partition: MessagePosition(-1)}


def test_connector_when_many_members_come_at_once_then_rebalances_a_few_times(
    join: Join,
    nodes: Registry,
    cluster: Cluster,
    topic: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Load(cluster, topic).produce(1)
    connector = join(consumer_name="me")
    connector.create_message_streams({topic: 1})
    assert connector.await_assignment(60)
    caplog.set_level("INFO", "broker.consumer.coordinator")
    caplog.clear()

    ids = f"/consumers/{topic}/ids"
    nodes.session.create_many(
        {f"{ids}/{topic}_x{n}": f'{{ "{topic}": 1 }}'.encode() for n in range(20)}
    )
    wait_until(lambda: len(connector.positions) == 1, "the release of all but one")
    assert connector.await_assignment(60)

    # not for each of them; how many come together depends on how busy the machine is
    assert 1 <= caplog.text.count("owns") <= 10
    nodes.session.delete_many(f"{ids}/{topic}_x{n}" for n in range(20))


def test_connector_when_a_rebalance_changes_little_then_what_stays_is_not_read_again(
    join: Join, nodes: Registry, cluster: Cluster, topic: str
) -> None:
    Load(cluster, topic).produce(5)
    connector = join(consumer_name="me")
    (stream,) = connector.create_message_streams({topic: 1})[topic]
    given = [next(stream) for _ in range(3)]

    rival = f"/consumers/{topic}/ids/{topic}_rival"
    nodes.session.create(rival, f'{{ "{topic}": 1 }}'.encode(), ephemeral=True)
    wait_until(lambda: len(connector.positions) == 4, "the release of the rival's half")
    given += [next(stream) for _ in range(17)]
    nodes.session.delete(rival)
    given += [next(stream) for _ in range(20)]

    kept = [one for one in given if one[1].name.startswith("0-")]
    assert len(kept) == len({(one[1], one[2]) for one in kept}) == 20
    assert len({(one[1], one[2]) for one in given}) >= 39
