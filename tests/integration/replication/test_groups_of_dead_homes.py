"""Groups that read the partitions of home brokers which are away, at their leaders elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from broker.consumer.assignment import assign
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.stream import ConsumerStream
from broker.errors import ConsumerTimeoutError, RegistryNodeNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from tests.integration.replication.history import Outcome
from tests.integration.replication.load import LoadThread, LoggedProducer
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

StartCluster = Callable[..., ReplicatedCluster]

PARTITION_COUNT = 6
GROUP, TOPIC = "g", "t"


class GroupMember:
    """A member of the group in this process, and the payloads its stream has given.

    Args:
        cluster: that has the group.
        name: its `consumerid`.
    """

    def __init__(self, cluster: ReplicatedCluster, name: str) -> None:
        self.payloads: list[str] = []
        config = ConsumerConfig(
            group=GROUP,
            consumer_name=name,
            zookeeper=cluster.zookeeper,
            consumer_timeout_ms=100,
            leader_wait_ms=60_000,
            zk_session_timeout_ms=10_000,
            offset_reset="smallest",
        )
        self.connector = ConsumerConnector(cluster.access.secured(config))
        (self._stream,) = self.connector.create_message_streams({TOPIC: 1})[TOPIC]
        self._reading = LoadThread(name, lambda: self._read(self._stream))

    def _read(self, stream: ConsumerStream) -> None:
        with suppress(ConsumerTimeoutError):
            _, _, _, _, payload = next(stream)
            self.payloads.append(bytes(payload).decode())

    def leave(self) -> None:
        self._reading.stop()
        self.connector.shutdown()


@contextmanager
def members_of(cluster: ReplicatedCluster, *names: str) -> Iterator[list[GroupMember]]:
    with ExitStack() as stack:
        members = []
        for name in names:
            member = GroupMember(cluster, name)
            stack.callback(member.leave)
            members.append(member)
        yield members


def owners(session: Session) -> dict[str, tuple[str, int]]:
    """Return the thread that owns each partition, and the change that created its node."""
    try:
        names = session.children(paths.owners(GROUP, TOPIC))
    except RegistryNodeNotFoundError:
        return {}
    nodes = {f"{paths.owners(GROUP, TOPIC)}/{name}": name for name in names}
    found = session.get_many(nodes)
    return {nodes[path]: (value.decode(), stat.czxid) for path, (value, stat) in found.items()}


def sessions_of_members(session: Session) -> dict[str, int]:
    ids = session.children(paths.consumer_ids(GROUP))
    found = session.get_many(paths.consumer(GROUP, one) for one in ids)
    return {path: stat.czxid for path, (_, stat) in found.items()}


def await_split(
    session: Session, partitions: list[TopicPartition], *threads: str, seen_of: tuple[str, ...]
) -> None:
    """Wait until the members own exactly their share of partitions.

    Args:
        session: to ZooKeeper.
        partitions: that the group splits.
        threads: of all members, foreign ones too.
        seen_of: the threads whose owner nodes are there.
    """
    wanted = {
        one.name: thread for one, thread in assign(partitions, threads).items() if thread in seen_of
    }

    def is_split() -> bool:
        return {name: thread for name, (thread, _) in owners(session).items()} == wanted

    wait_until(is_split, f"the split {wanted}", deadline_s=60)


def acknowledged(producer: LoggedProducer) -> set[str]:
    return {one.payload for one in list(producer.sent) if one.outcome is Outcome.ACKNOWLEDGED}


def kill_home(cluster: ReplicatedCluster, partitions: list[TopicPartition], home: int) -> None:
    """Kill a broker; wait until it is not registered, and others lead its partitions."""
    cluster.kill_replaceable(home, partitions)
    for partition in partitions:
        cluster.await_leader(partition, other_than=home)
    wait_until(
        lambda: cluster.session.exists(paths.topic_broker(TOPIC, home)) is None,
        "the end of the home broker's session",
        deadline_s=60,
    )


def test_group_when_a_home_broker_is_killed_then_reads_all_partitions_without_a_rebalance(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster()
    partitions = cluster.create_topic(TOPIC, PARTITION_COUNT, 3, min_insync_replicas="2")
    cluster.await_full_isr(partitions)
    threads = ("g_a-0", "g_b-0")
    producer = LoggedProducer(cluster, partitions, "p")
    with members_of(cluster, "a", "b") as members:

        def payloads() -> list[str]:
            return [one for member in members for one in list(member.payloads)]

        await_split(cluster.session, partitions, *threads, seen_of=threads)
        wait_until(lambda: len(payloads()) > 30, "the first messages", deadline_s=60)
        owned_before, members_before = owners(cluster.session), sessions_of_members(cluster.session)
        home = partitions[0].home
        kill_home(cluster, partitions, home)
        before = producer.acknowledged_count
        wait_until(lambda: producer.acknowledged_count > before + 60, "progress", deadline_s=60)
        producer.stop()
        wait_until(
            lambda: acknowledged(producer) <= set(payloads()), "all messages read", deadline_s=60
        )
        await_split(cluster.session, partitions, *threads, seen_of=threads)
        if sessions_of_members(cluster.session) == members_before:  # none expired on a slow machine
            assert owners(cluster.session) == owned_before
            assert max(Counter(payloads()).values()) == 1


def test_group_when_it_starts_while_a_home_broker_is_away_then_reads_its_partitions(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster()
    partitions = cluster.create_topic(TOPIC, PARTITION_COUNT, 3, min_insync_replicas="2")
    cluster.await_full_isr(partitions)
    producer = LoggedProducer(cluster, partitions, "p")
    wait_until(lambda: producer.acknowledged_count > 60, "messages", deadline_s=60)
    producer.stop()
    kill_home(cluster, partitions, partitions[0].home)

    with members_of(cluster, "a") as (member,):
        wait_until(
            lambda: acknowledged(producer) <= set(member.payloads), "all messages", deadline_s=60
        )
        await_split(cluster.session, partitions, "g_a-0", seen_of=("g_a-0",))
        verified = invoke("group", "verify", GROUP, "-Z", cluster.zookeeper)
        assert verified.status == 0, verified.stderr


@pytest.mark.parametrize("value", [b'{ "t": 1 }', b"*1*.*"])
def test_group_when_a_member_of_07_comes_and_goes_then_it_splits_live_homes_only_meanwhile(
    start_cluster: StartCluster, value: bytes
) -> None:
    cluster = start_cluster()
    partitions = cluster.create_topic(TOPIC, PARTITION_COUNT, 3, min_insync_replicas="2")
    cluster.await_full_isr(partitions)
    home = partitions[0].home
    kill_home(cluster, partitions, home)
    live = [one for one in partitions if one.home != home]
    ours, foreign = ("g_a-0", "g_b-0"), "g_old-0"
    with members_of(cluster, "a", "b"):
        await_split(cluster.session, partitions, *ours, seen_of=ours)

        cluster.session.create(paths.consumer(GROUP, "g_old"), value, ephemeral=True)
        await_split(cluster.session, live, *ours, foreign, seen_of=ours)

        cluster.session.delete(paths.consumer(GROUP, "g_old"))
        await_split(cluster.session, partitions, *ours, seen_of=ours)
